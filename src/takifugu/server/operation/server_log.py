"""The server's log: JSON objects, one a line, on stderr. No protected value can get into it.

What takifugu logs is written by takifugu: its messages hold names of tasks, references and numbers
of processes. What others log (uvicorn, asyncio, drivers of databases) may quote anything, so that
of theirs the template alone is written, without what was to be filled in. Of an exception its kind
and the places in the code are written, never its message and never a value. That holds for errors
that nobody caught, in any thread, and for warnings too.
"""

import asyncio
import json
import logging
import sys
import threading
import warnings
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from takifugu.visible import visible

MAX_MESSAGE_LENGTH = 2_000  # characters of a message
MAX_TRACEBACK_PLACES = 12  # of a traceback, from the innermost outwards
OWN = "takifugu"
EXTRAS = (
    "reference", "error", "kind", "actor", "role", "method", "route", "status", "ms", "bytes",
    "client", "address",
)  # fmt: skip
current_request: ContextVar[str] = ContextVar("current_request", default="")


class JsonLines(logging.Formatter):
    """One JSON object for a record."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        if request := current_request.get():
            line["request"] = request
        for name in EXTRAS:
            value = record.__dict__.get(name)
            if isinstance(value, str):
                line[name] = visible(value)[:MAX_MESSAGE_LENGTH]
            elif isinstance(value, int | float) and not isinstance(value, bool):
                line[name] = value
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line.setdefault("error", type(error).__name__)
            line["places"] = places_of(error.__traceback__)
        return json.dumps(line, ensure_ascii=True, allow_nan=False)


def _message(record: logging.LogRecord) -> str:
    if record.name.partition(".")[0] == OWN:
        try:
            return visible(record.getMessage())[:MAX_MESSAGE_LENGTH]
        except Exception:  # noqa: BLE001 - a wrong template must not stop what it is about
            return "a message that cannot be written"
    text = str(record.msg).strip()
    if not text or text.startswith("%"):
        return "(withheld: not takifugu's own words)"
    return visible(text.splitlines()[0])[:MAX_MESSAGE_LENGTH]


def places_of(trace: TracebackType | None) -> list[str]:
    """Where in the code an error was raised, the innermost place first, and no values."""
    places = []
    while trace is not None:
        frame = trace.tb_frame
        module = frame.f_globals.get("__name__", "?")
        places.append(f"{module}:{trace.tb_lineno} {frame.f_code.co_name}")
        trace = trace.tb_next
    return places[-MAX_TRACEBACK_PLACES:][::-1]


def log_to_stderr() -> None:
    """Write every record of this process as a line of JSON, and whatever else would be printed."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.raiseExceptions = False  # a stderr that is gone must not stop the server
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
        logger.setLevel(logging.WARNING)
    report_errors("the server ended by an error", "a thread ended")


def report_errors(ended: str, thread_ended: str) -> None:
    """Log warnings and errors that nobody caught: their kinds and places, and no values."""
    warnings.showwarning = _warned
    sys.excepthook = lambda _, error, __: _log_error(ended, error)
    threading.excepthook = lambda uncaught: _log_error(thread_ended, uncaught.exc_value)
    sys.unraisablehook = lambda uncaught: _log_error("an error was not handled", uncaught.exc_value)


def handle_loop_errors(loop: asyncio.AbstractEventLoop) -> None:
    """Log what the loop reports without the values in it."""

    def report(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        _log_error("the event loop met an error", context.get("exception"))

    loop.set_exception_handler(report)


def _log_error(what: str, error: BaseException | None) -> None:
    trace = (type(error), error, error.__traceback__) if error is not None else None
    logging.getLogger("takifugu.server").error(what, exc_info=trace)


def _warned(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Log a warning: its words if they are takifugu's own, and its kind alone otherwise."""
    own = category.__module__.partition(".")[0] == OWN
    words = f": {message}" if own else ""
    logging.getLogger("takifugu.server").warning("%s%s", category.__name__, words)
