"""Files that people name: read whole, written whole or not at all, and ordinary files only.

A name may lead anywhere. A device must not be replaced by a file or have its mode changed (which
root could do), one such as ``/dev/full`` never ends when it is read, and a named pipe that nobody
writes to would be waited for without end. Each of these is an `OSError` that says what it is.
"""

import os
import stat
import time
from contextlib import suppress
from errno import EINVAL, EISDIR
from pathlib import Path
from uuid import uuid4

_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
PATIENCE = 5.0  # seconds that a named pipe may be without anybody who writes to it


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file under another name beside it and rename it; an OSError leaves nothing behind."""
    refuse_special(path)
    part = path.with_name(f".takifugu-{os.getpid()}-{uuid4().hex[:8]}.part")
    try:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


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
        raise OSError(EINVAL, "is no ordinary file", name)


def real_path(path: str | Path) -> Path:
    """Where a path leads, with every link followed; a link to itself leads to itself.

    `Path.resolve` raises a RuntimeError there, which nobody expects of a name.
    """
    return Path(os.path.realpath(path))


def read_whole(path: Path) -> str:
    """The text of a file or a pipe, in UTF-8; OSError where there is no end to be expected.

    A pipe is read once somebody writes to it, so that a shell's ``<(command)`` may be given.
    """
    handle = os.open(path, os.O_RDONLY | _AT_ONCE)
    begun = b""
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISFIFO(mode):
            begun = _first_of_pipe(handle, path)
            os.set_blocking(handle, True)
        else:
            refuse_special(handle)
    except BaseException:
        os.close(handle)
        raise
    with os.fdopen(handle, "rb") as stream:
        content = begun + stream.read()
    return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def _first_of_pipe(handle: int, path: Path) -> bytes:
    """What a pipe begins with, maybe nothing yet, once there is somebody who writes to it."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            if found := os.read(handle, 2**16):
                return found
        except BlockingIOError:  # somebody is there, and has not written yet
            return b""
        time.sleep(0.02)
    raise OSError(EINVAL, "nobody writes to this pipe", str(path))
