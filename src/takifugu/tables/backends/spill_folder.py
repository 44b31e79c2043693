"""Where a database may put rows that do not fit in memory: a folder that nobody else can read.

It is removed when the engine is closed and when the process ends. A process that is killed leaves
it behind, with plain rows in it; the next one that opens an engine removes it. Which folders are
in use is shown by a lock on the folder itself, which the system releases however a process ends.
"""

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from takifugu.declarations.table_errors import DatabaseFailed

try:
    import fcntl
except ImportError:  # not a Unix: folders are removed at the end, and not looked for
    fcntl = None  # type: ignore[assignment]

PREFIX = "takifugu-spill-"
MAX_TRIES = 10


class Spill:
    """A folder of mode 0700 that this process holds."""

    def __init__(self) -> None:
        remove_stale()
        for _ in range(MAX_TRIES):
            try:
                path = tempfile.mkdtemp(prefix=PREFIX)
                held = os.open(path, os.O_RDONLY)
            except FileNotFoundError:
                continue  # taken for a stale one before it was locked
            except OSError as error:
                raise _no_room(error) from None
            if _locked(held) is not False and _is_at(held, path):
                self.path, self._held, self._process = path, held, os.getpid()
                return
            os.close(held)
        raise _no_room(None)

    def remove(self) -> None:
        """Remove the folder with all that is in it; a second time, or in a fork, do nothing."""
        held, self._held = self._held, -1
        if held < 0 or os.getpid() != self._process:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(held)


def remove_stale() -> int:
    """Remove this user's folders whose process is gone; how many there were."""
    removed = 0
    if fcntl is None:
        return removed
    with contextlib.suppress(OSError):
        for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                removed += _removed_if_stale(path)
    return removed


def _removed_if_stale(path: Path) -> bool:
    facts = path.lstat()
    ours = facts.st_uid == os.geteuid() and not facts.st_mode & 0o077
    if not stat.S_ISDIR(facts.st_mode) or not ours:
        return False
    held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        if not _locked(held):
            return False  # in use, or not known
        shutil.rmtree(path, ignore_errors=True)
        return True
    finally:
        os.close(held)


def _locked(held: int) -> bool | None:
    """Lock a folder; False if another has, None where folders cannot be locked."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_at(held: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(held), os.stat(path))
    except OSError:
        return False


def _no_room(error: OSError | None) -> DatabaseFailed:
    reason = (error.strerror if error is not None else None) or "it could not be locked"
    return DatabaseFailed(
        "a temporary folder",
        doing="made",
        trouble=reason.lower(),
        advice="see that TMPDIR names a folder on a local disk that can be written to",
        reason="spill folder",
    )
