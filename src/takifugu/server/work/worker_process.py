"""A worker as the server sees it: a process, its pipe, and the one task that it is doing."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO

from takifugu.project.server_section import ServerSettings
from takifugu.server.work.tasks import NotPlain, Task, packed, receive_async

REPORT_SECONDS = 1.0  # seconds in which what is printed is told together

log = logging.getLogger("takifugu.server.work")
Progress = Callable[[str], None]


class PrintedBytes(asyncio.Protocol):
    """Counts what one worker prints, and tells how much it was and never what.

    Args:
        worker: The number of the worker's process.
    """

    def __init__(self, worker: int) -> None:
        self._worker, self._untold = worker, 0
        self._telling: asyncio.TimerHandle | None = None
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        """Something was printed."""
        self._untold += len(data)
        if self._telling is None:
            loop = asyncio.get_running_loop()
            self._telling = loop.call_later(REPORT_SECONDS, self._tell)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - of asyncio
        """The process has ended, and all that it started."""
        self._tell()
        self.ended.set()

    def _tell(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
        if self._untold:
            size, self._untold = self._untold, 0
            log.warning("worker %d printed %d bytes, which are withheld", self._worker, size)


class WorkerGone(Exception):
    """The process ended."""


class WorkerProcess:
    """One worker. It is started and used by the event loop, in the loop's thread.

    The thread matters: the kernel ends a worker with the thread that started it.

    Attributes:
        task: What it is doing; None if it is idle.
        since: When it began that, or when it became idle.
        ready: Whether it has started up.
        datasets: Those that it has open.
        lost: Whether it is of no more use: killed, told to end, or gone.
    """

    def __init__(
        self, process: "subprocess.Popen[bytes]", end: socket.socket, output: BinaryIO
    ) -> None:
        self._process, self._end, self._output = process, end, output
        self._printed = PrintedBytes(process.pid)
        self._output_pipe: asyncio.ReadTransport | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reader: asyncio.StreamReader | None = None
        self.task: Task | None = None
        self.since = monotonic()
        self.ready, self.lost = False, False
        self.datasets = frozenset[str]()

    @classmethod
    def start(cls) -> "WorkerProcess":
        """Start a process. What it prints is counted and goes nowhere: see `PrintedBytes`.

        It has a session of its own, so that no terminal signals it and all that it starts can be
        killed with it, and inherits nothing but its end of the pipe.
        """
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        try:
            command = ("-P", "-m", "takifugu.server.work.worker")
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
                [sys.executable, *command, str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError:
            ours.close()
            os.close(reading)
            raise
        finally:
            theirs.close()
            os.close(writing)
        ours.setblocking(False)
        return cls(process, ours, os.fdopen(reading, "rb", buffering=0))

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def idle(self) -> bool:
        """Whether it waits for a task."""
        return self.ready and not self.lost and self.task is None

    @property
    def gone(self) -> bool:
        """Whether the process has ended, as far as the kernel knows."""
        return self._process.poll() is not None

    async def begin(
        self, project_file: Path, modules: Sequence[str], settings: ServerSettings
    ) -> None:
        """Tell it what it is about, and wait until it is ready; `WorkerGone` if it cannot be."""
        loop = asyncio.get_running_loop()
        self._output_pipe, _ = await loop.connect_read_pipe(lambda: self._printed, self._output)
        try:
            self._reader, self._writer = await asyncio.open_connection(sock=self._end)
        except (OSError, ValueError):  # killed meanwhile
            self.kill()
            raise WorkerGone from None
        about = {"project": str(project_file), "modules": list(modules)}
        self._write(about | {name: getattr(settings, name) for name in ("time_step", "plan_time")})
        kind, _ = await self._receive(None)
        self.ready = kind == "ready"
        self.since = monotonic()

    async def do(self, task: Task, progress: Progress | None) -> tuple[str, Any]:
        """Have it do a task that it was assigned: ("result", value) or ("problem", document).

        Raises:
            WorkerGone: It ended before it was done.
        """
        self._write(task.message())
        kind, facts = await self._receive(progress)
        self.datasets = frozenset(facts["open"])
        return kind, facts["content"]

    def _write(self, message: Any) -> None:
        if self._writer is None:
            raise WorkerGone
        self._writer.write(packed(message))

    async def _receive(self, progress: Progress | None) -> tuple[str, Any]:
        """The next message that is neither progress nor a record of the log."""
        if self._reader is None:
            raise WorkerGone
        try:
            while True:
                kind, content = await receive_async(self._reader)
                if kind == "progress":
                    if progress is not None:
                        progress(content)
                elif kind == "log":
                    name, level, text, extra = content
                    logging.getLogger(name).log(level, "%s", text, extra=extra)
                else:
                    return kind, content
        except (EOFError, OSError, NotPlain):
            self.kill()
            raise WorkerGone from None

    async def planned_too_long(self) -> bool:
        """Of one that is gone: whether it ended because a plan took too much processor time."""
        await self.ended(5)
        return self._process.returncode == -signal.SIGPROF

    def kill(self) -> None:
        """End it at once, with all that it started."""
        self.lost = True
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._close()

    def dismiss(self) -> None:
        """Let it end by itself: it is idle, and closes what it has open."""
        self.lost = True
        self._close()

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        else:
            self._end.close()

    async def ended(self, seconds: float) -> bool:
        """Wait until the process is gone, and let the kernel forget it."""
        limit = monotonic() + seconds
        while self._process.poll() is None:
            if monotonic() > limit:
                return False
            await asyncio.sleep(0.01)
        return True

    async def close_output(self) -> None:
        """Tell what it printed last, once it is gone, and listen no more."""
        if self._output_pipe is None:
            self._output.close()
            return
        with contextlib.suppress(TimeoutError):  # something that it started may live on
            await asyncio.wait_for(self._printed.ended.wait(), REPORT_SECONDS)
        self._output_pipe.close()
