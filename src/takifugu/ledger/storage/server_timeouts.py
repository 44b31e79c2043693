"""A connection to PostgreSQL that does not wait for ever.

The server's own timeouts end what takes too long there. Nothing on the server helps when the server
is stopped, or the network swallows what it says: then the client has to give up by itself.
"""

import select
from collections.abc import Generator
from time import monotonic
from typing import Any

import psycopg
from psycopg import waiting

LEAST = 5.0  # seconds of silence that are borne at least


def silence(wait: float) -> float:
    """How long a server may say nothing, if locks are waited for ``wait`` seconds."""
    return max(LEAST, 3 * wait)


def impatient(seconds: float) -> type[psycopg.Connection[Any]]:
    """Connections that are closed when the server says nothing for so many seconds."""

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
    """Run one exchange of psycopg's: it says what it waits for, and is told what is ready."""
    try:
        wanted = next(gen)
        while True:
            wanted = gen.send(_ready(handle, wanted, monotonic() + seconds))
    except StopIteration as done:
        return done.value


def _ready(handle: int, wanted: Any, deadline: float) -> Any:
    poll = select.poll()
    reads, writes = bool(wanted & waiting.WAIT_R), bool(wanted & waiting.WAIT_W)
    poll.register(handle, (select.POLLIN if reads else 0) | (select.POLLOUT if writes else 0))
    while True:
        left = deadline - monotonic()
        if left <= 0:
            raise TimeoutError
        found = poll.poll(min(left, 1.0) * 1000)  # in steps, so that Ctrl-C is seen
        if found:
            said = found[0][1]
            ready: int = waiting.READY_NONE
            if said & (select.POLLIN | select.POLLHUP | select.POLLERR) and reads:
                ready |= waiting.READY_R
            if said & (select.POLLOUT | select.POLLHUP | select.POLLERR) and writes:
                ready |= waiting.READY_W
            return ready
