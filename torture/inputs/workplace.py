"""A copy of the study in which one case after another runs, and which is put right after each."""

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from torture.inputs.canary_study import SEEN, STATE
from torture.inputs.case import Put

Facts = tuple[int, int, int, int]
PASSING = ("-wal", "-shm", "-journal")  # of SQLite, which removes them when it can


class Workplace:
    """A copy of the study.

    Attributes:
        folder: Where commands run.
        tmp: Where temporary files go.
        kept: The bytes of every file as it should be.
    """

    def __init__(self, template: Path, place: Path) -> None:
        self.folder, self.tmp = place / "study", place / SEEN
        shutil.copytree(template, self.folder)
        self.tmp.mkdir()
        self.kept = {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file()
        }
        self._modes = {
            name: stat.S_IMODE((self.folder / name).stat().st_mode) for name in self.kept
        }
        self._place = place
        self._right = self.facts()
        os.environ["XDG_STATE_HOME"] = str(self.folder / STATE)
        os.environ["TMPDIR"] = tempfile.tempdir = str(self.tmp)

    def facts(self) -> dict[str, Facts]:
        """What lies in the place, by path: kind and mode, number, size and time."""
        found: dict[str, Facts] = {}
        waiting = [str(self._place)]
        while waiting:
            try:
                with os.scandir(waiting.pop()) as entries:
                    for entry in entries:
                        seen = entry.stat(follow_symlinks=False)
                        name = os.path.relpath(entry.path, self.folder)
                        regular = stat.S_ISREG(seen.st_mode)
                        found[name] = (
                            seen.st_mode,
                            seen.st_ino,
                            seen.st_size if regular else 0,
                            seen.st_mtime_ns if regular else 0,
                        )
                        if stat.S_ISDIR(seen.st_mode):
                            waiting.append(entry.path)
            except OSError:  # a folder that was taken away or locked
                continue
        return found

    def put(self, files: Mapping[str, Put]) -> None:
        """Put the files of a case in their places."""
        for name, put in files.items():
            path = self.folder / name
            if os.path.lexists(path):
                path.unlink()
            path.parent.mkdir(parents=True, exist_ok=True)
            if put.kind == "bytes":
                path.write_bytes(put.content)
            elif put.kind == "locked":
                path.write_bytes(put.content)
                path.chmod(0)
            elif put.kind == "folder":
                path.mkdir()
            elif put.kind == "link":
                path.symlink_to(os.fsdecode(put.content))
            elif put.kind == "pipe":
                os.mkfifo(path)
            elif put.kind == "device":
                _device(path, int(put.content))

    def changed(self, before: Mapping[str, Facts], after: Mapping[str, Facts]) -> list[str]:
        """What is new, gone or another since ``before``."""
        return sorted(
            name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
        )

    def contents(self, name: str) -> bytes:
        """The bytes of an ordinary file; empty for anything else."""
        path = self.folder / name
        try:
            return path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else b""
        except OSError:
            return b""

    def put_right(self) -> None:
        """Undo whatever a case has done."""
        now = self.facts()
        if now == self._right:
            return
        for name in sorted(now.keys() - self._right.keys(), reverse=True):
            _remove(self.folder / name)
        for name in self.changed(self._right, self.facts()):
            path = self.folder / name
            if name not in self.kept:
                if not path.is_dir() or path.is_symlink():
                    _remove(path)
                    path.mkdir(parents=True)
                continue
            _remove(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.kept[name])
            path.chmod(self._modes[name])
        self._right = self.facts()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.chmod(0o700)
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        path.unlink()


def _device(path: Path, number: int) -> None:
    """A device of our own: root, whom nothing stops, must not be let at those of the machine."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, number))
    except OSError:
        os.mkfifo(path)  # the next best that is no ordinary file
