"""A worker: a process that does one task after another for the server that started it.

It may be killed at any moment. An answer is sent only after the ledger has recorded it, so that a
kill releases nothing that was not charged, and what was charged can be taken up again by its key.

It ends with the server, however that ends: the kernel kills it when its parent dies (on Linux), and
everywhere it ends when the other end of its pipe is closed. It belongs to no terminal, and ignores
SIGINT and SIGTERM, which a terminal or systemd sends to all processes of a service: the server
lets it finish, or kills it.
"""

import contextlib
import ctypes
import importlib
import logging
import os
import select
import signal
import socket
import sys
import threading
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn

from takifugu.server.operation.server_log import places_of, report_errors
from takifugu.server.work.tasks import TASKS, Task, packed, receive
from takifugu.server.work.worker_host import WorkerHost

PR_SET_PDEATHSIG = 1
FAREWELL = 1.0  # seconds to close files in when the server is gone
PROGRESS_INTERVAL = 0.1  # seconds between two lines of progress
log = logging.getLogger("takifugu.server.work")


class _Pipe:
    """The worker's end of the pipe; threads may share it."""

    def __init__(self, end: socket.socket) -> None:
        self.end, self._lock = end, threading.Lock()
        self.incoming = end.makefile("rb")

    def send(self, kind: str, content: Any) -> None:
        self.send_packed(packed((kind, content)))

    def send_packed(self, message: bytes) -> None:
        with self._lock:
            self.end.sendall(message)


class _ToServer(logging.Handler):
    """Sends records to the server's log, where they are written."""

    def __init__(self, pipe: _Pipe) -> None:
        super().__init__()
        self._pipe = pipe

    def emit(self, record: logging.LogRecord) -> None:
        known = ("reference", "error")
        extra = {name: str(getattr(record, name)) for name in known if hasattr(record, name)}
        text = record.getMessage()
        if record.exc_info and (error := record.exc_info[1]) is not None:
            places = places_of(error.__traceback__) or ["an unknown place"]
            text = f"{text}: {type(error).__name__} at {places[0]}"
        with contextlib.suppress(OSError):
            self._pipe.send("log", (record.name, record.levelno, text, extra))


class _Progress:
    """Lines of progress: of those that begin alike, one in every `PROGRESS_INTERVAL`."""

    def __init__(self, pipe: _Pipe) -> None:
        self._pipe, self._last, self._about = pipe, 0.0, ""

    def __call__(self, text: str) -> None:
        now, about = monotonic(), text.partition(" ")[0]
        if now - self._last >= PROGRESS_INTERVAL or about != self._about:
            self._last, self._about = now, about
            self._pipe.send("progress", text)


def end_with(parent: int) -> None:
    """Have the kernel kill this process when the thread ends that started it; on Linux only."""
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the kernel was told
        os._exit(1)


def _watch(end: socket.socket) -> None:
    """End the process soon after the server has closed its end of the pipe.

    The main thread sees that, too, unless it is in the middle of a task, which is then for nobody.
    """
    closed = select.poll()
    closed.register(end, 0)  # woken when the other end is closed, and by no message
    closed.poll()
    threading.Event().wait(FAREWELL)
    os._exit(0)


def _done(host: WorkerHost, task: Task) -> bytes:
    """The message that says how a task ended."""
    from takifugu.server.api.problems import json_bytes, problem_of

    try:
        result = TASKS[task.name](host, task)
        return _ended(host, "result", json_bytes(result) if task.encoded else result)
    except Exception as error:  # noqa: BLE001 - whatever it is: told as far as they may know
        host.drop_after(task.dataset, error)
        return _ended(host, "problem", problem_of(error, task.actor.role, key=task.key))


def _ended(host: WorkerHost, kind: str, content: Any) -> bytes:
    facts = {"content": content, "open": host.datasets()}
    return packed((kind, facts))


def serve(pipe: _Pipe, project_file: Path, time_step: float, plan_time: float) -> None:
    """Do tasks until the server is gone."""
    threading.Thread(target=_watch, args=(pipe.end,), daemon=True).start()
    host = WorkerHost(project_file, _Progress(pipe), time_step, plan_time)
    pipe.send("ready", os.getpid())
    with contextlib.suppress(EOFError, OSError):  # the server is gone
        while True:
            message = receive(pipe.incoming)
            pipe.send_packed(_done(host, Task.from_message(message)))
    host.close()


def main() -> NoReturn:
    """``python -m takifugu.server.work.worker FD PARENT``; the server starts it, nobody else."""
    handle, parent = int(sys.argv[1]), int(sys.argv[2])
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # which ends it: see `WorkerHost.planning`
    end_with(parent)
    with socket.socket(fileno=handle) as end:
        end.set_inheritable(False)
        pipe = _Pipe(end)
        logging.basicConfig(level=logging.INFO, handlers=[_ToServer(pipe)])
        report_errors("a worker ended", "a thread of a worker ended")
        try:
            begin = receive(pipe.incoming)
            for module in begin["modules"]:
                importlib.import_module(module)
            seconds = (float(begin[name]) for name in ("time_step", "plan_time"))
            serve(pipe, Path(begin["project"]), *seconds)
        except Exception as error:  # told while there is somebody to tell
            log.error("a worker ended", exc_info=error)
            sys.exit(1)
    sys.exit(0)


if __name__ == "__main__":
    main()
