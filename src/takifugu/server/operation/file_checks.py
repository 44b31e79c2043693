"""Who else on this machine could read or change the files of a server.

Owners are told by mode bits alone: access lists, other mounts of the same disk, backups and root
are beyond what a look at a file tells. Of data that a declaration names, files are looked at; who
may read a database is decided there.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from takifugu._atomic import real_path
from takifugu.server.operation.findings import Finding, ok, warning, wrong

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def private_file(name: str, path: Path, *, group_may_read: bool = False) -> Iterator[Finding]:
    """Whether a file with secrets is for its owner alone."""
    found = path.stat()
    mode = stat.S_IMODE(found.st_mode)
    command = f"chmod 600 {path}"
    if mode & (stat.S_IRWXO | OTHERS_WRITE | stat.S_IXGRP):
        yield wrong(name, f"{path} is open to others (mode {mode:03o})", command)
    elif mode & stat.S_IRGRP and not group_may_read:
        yield wrong(name, f"{path} can be read by its group (mode {mode:03o})", command)
    elif mode & stat.S_IRGRP:
        yield warning(name, f"{path} can be read by its group (mode {mode:03o})", command)
    yield from _foreign(name, path, found)


def unwritable_by_others(name: str, path: Path) -> Iterator[Finding]:
    """Whether nobody else can change a file, or replace it in any of the folders above it."""
    found = path.stat()
    mode = stat.S_IMODE(found.st_mode)
    if mode & OTHERS_WRITE and not (path.is_dir() and found.st_mode & stat.S_ISVTX):
        yield wrong(
            name, f"{path} can be changed by others (mode {mode:03o})", f"chmod go-w {path}"
        )
    yield from _foreign(name, path, found)
    for folder in real_path(path).parents:
        above = folder.stat()
        if above.st_mode & OTHERS_WRITE and not above.st_mode & stat.S_ISVTX:
            mode = stat.S_IMODE(above.st_mode)
            yield wrong(
                name,
                f"others can replace what is in {folder} (mode {mode:03o})",
                f"chmod go-w {folder}",
            )


def _foreign(name: str, path: Path, found: os.stat_result) -> Iterator[Finding]:
    if found.st_uid not in (os.geteuid(), 0):
        yield warning(
            name,
            f"{path} belongs to another user (number {found.st_uid})",
            f"chown it to the user of the server (number {os.geteuid()}), or run as that user",
        )


def project_files(
    file: Path, private: Iterable[Path], *, group_may_read: Iterable[Path] = ()
) -> Iterator[Finding]:
    """The folder of a project, its file, and those of its files that are private."""
    findings = [*unwritable_by_others("files", file.parent), *unwritable_by_others("files", file)]
    for path in private:
        if path.exists():
            findings += private_file("files", path)
    for path in group_may_read:
        if path.exists():
            findings += private_file("files", path, group_may_read=True)
    seen = dict.fromkeys(findings)
    yield from seen or [
        ok(
            "files",
            "others can change none of them, and not read those of the ledger and the server",
        )
    ]


def open_data(name: str, path: Path) -> Iterator[Finding]:
    """Whether everybody on this machine can read a file of data, past the server and its ledger."""
    real = real_path(path)
    found = [real, *real.rglob("*")] if real.is_dir() else [real]
    reached = all(above.stat().st_mode & stat.S_IXOTH for above in real.parents)
    if reached and any(one.is_file() and one.stat().st_mode & stat.S_IROTH for one in found):
        mode = stat.S_IMODE(real.stat().st_mode)
        yield warning(
            "data",
            f"{path}, the rows of dataset {name}, can be read by everybody here (mode {mode:03o})",
            f"chmod o-rwx {path}, if they are not public",
        )


def same_disk(one: Path, other: Path) -> bool:
    """Whether two paths are on one file system, so that one accident or backup takes both."""
    return existing(one).stat().st_dev == existing(other).stat().st_dev


def existing(path: Path) -> Path:
    """A path, or the nearest folder above it that is there."""
    found = real_path(path)
    while not found.exists():
        found = found.parent
    return found
