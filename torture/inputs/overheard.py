"""Whatever a case says beside its own output: in logs, and on file descriptors 1 and 2."""

import contextlib
import ctypes
import logging
import os
import sys
import tempfile
from collections.abc import Iterator

OWN = "takifugu"  # whose loggers tell everything; of others what is a warning or worse
_C = ctypes.CDLL(None)


class Heard(logging.Handler):
    """Keeps whatever is logged, tracebacks included."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self.setFormatter(logging.Formatter())

    def emit(self, record: logging.LogRecord) -> None:
        """One record."""
        self.lines.append(self.format(record))

    def listen(self) -> None:
        """Hear all loggers that there are, also those that pass nothing on; ours at any level.

        A command may have taken handlers away, so this is for every case anew.
        """
        logging.getLogger(OWN).setLevel(logging.DEBUG)
        for name, logger in [("", logging.getLogger()), *_loggers()]:
            if name.startswith(f"{OWN}.") and logger.level:
                logger.setLevel(logging.NOTSET)
            if (not logger.parent or not logger.propagate) and self not in logger.handlers:
                logger.addHandler(self)

    def taken(self) -> str:
        """All that was heard since the last time."""
        text = "\n".join(self.lines)
        self.lines.clear()
        return text


def _loggers() -> list[tuple[str, logging.Logger]]:
    known = list(logging.root.manager.loggerDict.items())
    return [(name, one) for name, one in known if isinstance(one, logging.Logger)]


class Descriptors:
    """File descriptors 1 and 2: what subprocesses, libraries in C and ``sys.__stdout__`` write."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as the process

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Keep what is written to them in the block."""
        _flush()
        before = os.dup(1), os.dup(2)
        for number in (1, 2):
            os.dup2(self._file.fileno(), number)
        try:
            yield
        finally:
            _flush()
            for number, known in zip((1, 2), before, strict=True):
                os.dup2(known, number)
                os.close(known)

    def taken(self) -> bytes:
        """All that was written since the last time."""
        size = os.fstat(self._file.fileno()).st_size
        if not size:
            return b""
        self._file.seek(0)
        found = self._file.read()
        self._file.seek(0)
        self._file.truncate()
        return found


def _flush() -> None:
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):  # closed
                stream.flush()
    _C.fflush(None)
