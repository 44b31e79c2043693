"""Files that people name: read whole, written whole or not at all, and ordinary files only.

A name may lead anywhere. A device must not be replaced by a file or have its mode changed (which
root could do), one such as ``/dev/full`` never ends when it is read, and a named pipe without a
writer would block forever. Everything that goes wrong is one `InvalidFile`.
"""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EEXIST, EINVAL, EISDIR
from pathlib import Path
from uuid import uuid4

from takifugu.errors import InvalidFile

_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_CLOEXEC", 0)
MAX_UNPACKED_SIZE = 256 * 2**20  # bytes of a packed file
PIPE_TIMEOUT = 5.0  # seconds that a named pipe may be without a writer


def write_whole(
    path: Path,
    content: str | bytes,
    *,
    field: str | None = None,
    fsync: bool = False,
    refuse_existing: bool = False,
    private: bool = False,
) -> None:
    """Write a file, whole or not at all; the options are those of `whole_file`."""
    options = {"refuse_existing": refuse_existing, "private": private}
    with whole_file(path, field=field, fsync=fsync, **options) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(
    path: Path,
    *,
    field: str | None = None,
    fsync: bool = False,
    refuse_existing: bool = False,
    private: bool = False,
) -> Iterator[Path]:
    """A file beside ``path`` to write to, which takes its place if the block ends well.

    Args:
        path: The file to write. One that is replaced keeps its mode.
        field: What an error calls it; by default its path.
        fsync: Wait until the content and the name are on disk.
        refuse_existing: Leave a file alone that is there, also one that appears meanwhile.
        private: Let nobody but its owner read a new file.
    """
    pending = PendingFile(path, field=field, refuse_existing=refuse_existing, private=private)
    try:
        yield pending.part
        pending.keep(fsync=fsync)
    except (OSError, UnicodeEncodeError) as error:
        raise unwritable(path, error, field=field) from error
    finally:
        pending.discard()


class PendingFile:
    """A file beside ``path`` to write to, until it is kept or discarded.

    It is made at once: a folder that cannot be written to is found out before any work is done.

    Attributes:
        part: The file to write to.
    """

    def __init__(
        self,
        path: Path,
        *,
        field: str | None = None,
        refuse_existing: bool = False,
        private: bool = False,
    ) -> None:
        if "\0" in str(path):
            raise InvalidFile(field or "path", given="holds a zero byte", needed="be a file name")
        if not path.name:  # the folder itself, as "." or "/"
            raise InvalidFile(
                field or str(path), given="is a folder", needed="be a file name", reason="folder"
            )
        self.path, self._refuse_existing = path, refuse_existing
        self.part = path.with_name(f".takifugu-{os.getpid()}-{uuid4().hex[:8]}.part")
        try:
            refuse_special(path)
            if refuse_existing:
                _refuse_existing(path)
            mode = 0o600 if private else 0o666
            os.close(os.open(self.part, _NEW, mode))  # the umask applies
            with suppress(FileNotFoundError):
                self.part.chmod(stat.S_IMODE(path.stat().st_mode))
        except OSError as error:
            self.discard()
            raise unwritable(path, error, field=field) from error

    def keep(self, *, fsync: bool = False) -> None:
        """Give the file its name; an OSError if that cannot be done."""
        if fsync:
            _sync(self.part, os.O_RDWR)
        if self._refuse_existing:
            _give_name(self.part, self.path)
        else:
            self.part.replace(self.path)
        if fsync:
            with suppress(OSError):  # not every file system lets a folder be synced
                _sync(self.path.parent, os.O_RDONLY)

    def discard(self) -> None:
        """Remove the file, unless it has its name."""
        with suppress(OSError):
            self.part.unlink(missing_ok=True)


def _give_name(part: Path, path: Path) -> None:
    """Rename a file to a name that nobody has taken."""
    try:
        os.link(str(part), str(path))
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        _refuse_existing(path)
        part.replace(path)


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise FileExistsError(EEXIST, os.strerror(EEXIST), str(path))


def unwritable(
    path: Path, error: OSError | UnicodeEncodeError, *, field: str | None = None
) -> InvalidFile:
    """The error for a file that could not be written."""
    named = "" if field is None else f"{path} "
    if isinstance(error, UnicodeEncodeError):
        given, needed, reason = "would hold half a character", "be text in UTF-8", "text"
    elif isinstance(error, FileExistsError) and str(path) in (error.filename, error.filename2):
        given, needed, reason = "exists", "be a new file", "exists"
    else:
        why = (error.strerror or "no reason is known").lower()
        given, needed = f"cannot be written ({why})", "be a file in a writable folder"
        reason = "unwritable"
    return InvalidFile(field or str(path), given=named + given, needed=needed, reason=reason)


def refuse_special(path: str | Path | int) -> None:
    """Raise an OSError where a path, or an open file, is there but no ordinary file."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    name = None if isinstance(path, int) else str(path)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), name)
    if not stat.S_ISREG(mode):
        raise OSError(EINVAL, "is not an ordinary file", name)


def real_path(path: str | Path) -> Path:
    """Where a path leads, with every link followed; a link to itself leads to itself.

    `Path.resolve` raises a RuntimeError there, which nobody expects of a name.
    """
    return Path(os.path.realpath(path))


def read_whole(path: Path, *, field: str | None = None, needed: str = "be a text file") -> str:
    """All of a text file, in UTF-8; a pipe only if somebody writes to it.

    Args:
        path: The file.
        field: What an error calls it; by default its path.
        needed: What an error says that it must be.
    """
    try:
        text = read_bytes(path, field=field, needed=needed).decode("utf-8")
    except UnicodeDecodeError:
        raise _unreadable(path, field, needed, "it is not UTF-8 text", "text") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_bytes(path: Path, *, field: str | None = None, needed: str = "be a file") -> bytes:
    """All bytes of a file; the options are those of `read_whole`."""
    try:
        return _content(path)
    except FileNotFoundError:
        why, reason = "it does not exist", "missing"
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        why = (getattr(error, "strerror", None) or "no file has such a name").lower()
        reason = "unreadable"
    raise _unreadable(path, field, needed, why, reason)


def read_unpacked(path: Path, *, field: str | None = None, needed: str = "be a file") -> bytes:
    """All bytes of a file, unpacked if it is gzipped; the options are those of `read_whole`.

    A few bytes may unpack to more than any memory holds: a file of more than `MAX_UNPACKED_SIZE` is
    refused before it is there.
    """
    import gzip  # only a few files may be packed
    import zlib
    from io import BytesIO

    raw = read_bytes(path, field=field, needed=needed)
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        with gzip.GzipFile(fileobj=BytesIO(raw)) as stream:
            content = stream.read(MAX_UNPACKED_SIZE + 1)
    except (OSError, EOFError, zlib.error):
        why = "it is not a whole gzip file"
        raise _unreadable(path, field, needed, why, "damaged") from None
    if len(content) > MAX_UNPACKED_SIZE:
        why = f"it unpacks to more than {MAX_UNPACKED_SIZE:,} bytes"
        raise _unreadable(path, field, needed, why, "too large")
    return content


def _unreadable(path: Path, field: str | None, needed: str, why: str, reason: str) -> InvalidFile:
    named = "" if field in (None, path.name) else f"{path} "
    return InvalidFile(
        field or str(path), given=f"{named}cannot be read ({why})", needed=needed, reason=reason
    )


def _content(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | _AT_ONCE)
    first = b""
    try:
        if stat.S_ISFIFO(os.fstat(handle).st_mode):
            first = _first_of_pipe(handle, path)
            os.set_blocking(handle, True)
        else:
            refuse_special(handle)
    except BaseException:
        os.close(handle)
        raise
    with os.fdopen(handle, "rb") as stream:
        return first + stream.read()


def _first_of_pipe(handle: int, path: Path) -> bytes:
    """What a pipe begins with, maybe nothing yet, once it has a writer."""
    until = time.monotonic() + PIPE_TIMEOUT
    while time.monotonic() < until:
        try:
            if found := os.read(handle, 2**16):
                return found
        except BlockingIOError:  # there is a writer, which has not written yet
            return b""
        time.sleep(0.02)
    raise OSError(EINVAL, "nobody writes to this pipe", str(path))


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
