"""Connections to PostgreSQL that give up when the server is silent for too long.

The server's own timeouts end what takes too long there. They do not help when the server is stopped
or the network drops its packets: then the client has to give up by itself.
"""

import select
from collections.abc import Generator
from time import monotonic
from typing import Any

import psycopg
from psycopg import waiting

LEAST = 5.0  # seconds of silence that are always allowed


def silence(wait: float) -> float:
    """How many seconds a server may be silent, if locks are waited for ``wait`` seconds."""
    return max(LEAST, 3 * wait)


def impatient(seconds: float) -> type[psycopg.Connection[Any]]:
    """A connection class that closes when the server is silent for so many seconds."""

    class Impatient(psycopg.Connection[Any]):
        def wait(self, gen: Generator[Any, Any, Any], *_: Any, **__: Any) -> Any:
            try:
                return _wait(gen, self.pgconn.socket, seconds)
            except KeyboardInterrupt:
                self.pgconn.finish()
                raise
            except TimeoutError:
                self.pgconn.finish()  # whatever comes later must not be taken for an answer
                raise psycopg.OperationalError(
                    f"the server has not answered for {seconds:g} s"
                ) from None

    return Impatient


def _wait(gen: Generator[Any, Any, Any], handle: int, seconds: float) -> Any:
    """Run one exchange of psycopg's generator, which yields what it waits for."""
    try:
        awaited = next(gen)
        while True:
            awaited = gen.send(_ready(handle, awaited, monotonic() + seconds))
    except StopIteration as done:
        return done.value


def _ready(handle: int, awaited: Any, deadline: float) -> Any:
    poll = select.poll()
    reads, writes = bool(awaited & waiting.WAIT_R), bool(awaited & waiting.WAIT_W)
    poll.register(handle, (select.POLLIN if reads else 0) | (select.POLLOUT if writes else 0))
    while True:
        left = deadline - monotonic()
        if left <= 0:
            raise TimeoutError
        found = poll.poll(min(left, 1.0) * 1000)  # in steps, so that Ctrl-C is seen
        if found:
            events = found[0][1]
            ready: int = waiting.READY_NONE
            if events & (select.POLLIN | select.POLLHUP | select.POLLERR) and reads:
                ready |= waiting.READY_R
            if events & (select.POLLOUT | select.POLLHUP | select.POLLERR) and writes:
                ready |= waiting.READY_W
            return ready
