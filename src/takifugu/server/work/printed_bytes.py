"""What workers print: how much of it is logged, and nothing else.

Takifugu prints nothing in a worker: what it has to say goes to the server's log by the pipe of
messages, in words that hold no protected value. So what is printed comes from libraries, of which
those that are not Python may print what they please: a row that cannot be read, the text of a
query. It is thrown away. That there was something is told, since it may be why a worker ended.
"""

import asyncio
import logging
import os

SOON = 1.0  # seconds in which what is printed is told together
PART = 65_536

log = logging.getLogger("takifugu.server.work")


class PrintedBytes:
    """Reads what one worker prints, to be used in the event loop.

    Args:
        handle: The end of a pipe that it is read from.
        worker: The number of the worker's process.
    """

    def __init__(self, handle: int, worker: int) -> None:
        self._handle: int | None = handle
        self._worker, self._untold = worker, 0
        self._telling: asyncio.TimerHandle | None = None
        os.set_blocking(handle, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(handle, self._read)

    def _read(self) -> None:
        if self._handle is None:
            return
        try:
            size = len(os.read(self._handle, PART))
        except BlockingIOError:
            return
        if not size:  # the process has ended, and all that it started
            self.close()
            return
        self._untold += size
        if self._telling is None:
            self._telling = self._loop.call_later(SOON, self._tell)

    def _tell(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
        if self._untold:
            size, self._untold = self._untold, 0
            log.warning("worker %d printed %d bytes, which are withheld", self._worker, size)

    def close(self) -> None:
        """Read no more, and tell what was not told yet."""
        if self._handle is None:
            return
        handle, self._handle = self._handle, None
        self._loop.remove_reader(handle)
        try:
            while size := len(os.read(handle, PART)):
                self._untold += size
        except BlockingIOError:
            pass
        os.close(handle)
        self._tell()
