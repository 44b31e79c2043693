"""Waiting for a server of PostgreSQL: for what, how long, and what is made of what comes."""

import select
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

psycopg = pytest.importorskip("psycopg", reason="an extra: install takifugu[postgres]")
from psycopg import waiting  # noqa: E402

from takifugu.ledger.storage import postgresql_connections as server  # noqa: E402

pytestmark = pytest.mark.nightly

HANDLE = 41
LOST = select.POLLHUP, select.POLLERR


class Poll:
    """In place of the system's: it notes what is waited for, and finds what it is told."""

    def __init__(self) -> None:
        self.found: list[int | None] = []  # None: nothing, and the time goes by
        self.registered: list[tuple[int, int]] = []
        self.waited: list[float] = []
        self.now = 1000.0

    def __call__(self) -> "Poll":
        """The same one, whenever one is made."""
        return self

    def register(self, handle: int, events: int) -> None:
        """What is waited for."""
        self.registered.append((handle, events))

    def poll(self, milliseconds: float) -> list[tuple[int, int]]:
        """What is there by then."""
        self.waited.append(milliseconds)
        event = self.found.pop(0)
        if event is None:
            self.now += milliseconds / 1000
            return []
        return [(HANDLE, event)]


@pytest.fixture
def poll(monkeypatch: pytest.MonkeyPatch) -> Poll:
    made = Poll()
    monkeypatch.setattr(select, "poll", made)
    monkeypatch.setattr(server, "monotonic", lambda: made.now)
    return made


@pytest.mark.parametrize(
    ("awaited", "registered"),
    [
        (waiting.WAIT_R, select.POLLIN),
        (waiting.WAIT_W, select.POLLOUT),
        (waiting.WAIT_RW, select.POLLIN | select.POLLOUT),
    ],
)
@pytest.mark.parametrize(
    ("event", "ready"),
    [
        (select.POLLIN, waiting.READY_R),
        (select.POLLOUT, waiting.READY_W),
        (select.POLLIN | select.POLLOUT, waiting.READY_RW),
        *((lost, waiting.READY_RW) for lost in LOST),  # the driver then finds out that it is gone
        (select.POLLPRI, 0),
    ],
)
def test_a_driver_is_told_what_is_ready_of_what_it_waits_for(
    poll: Poll, awaited: int, registered: int, event: int, ready: int
) -> None:
    poll.found = [event]
    asked = {waiting.WAIT_R: waiting.READY_R, waiting.WAIT_W: waiting.READY_W}
    mine = asked.get(waiting.Wait(awaited), waiting.READY_RW)
    assert server._ready(HANDLE, awaited, poll.now + 9) == ready & mine
    assert poll.registered == [(HANDLE, registered)]


def test_a_wait_is_cut_into_seconds_and_ends_in_time(poll: Poll) -> None:
    """A second at a time, so that whoever presses Ctrl-C is heard."""
    poll.found = [None] * 9
    with pytest.raises(TimeoutError):
        server._ready(HANDLE, waiting.WAIT_R, poll.now + 2.25)
    assert poll.waited == [1000.0, 1000.0, 250.0]
    poll.found, poll.waited = [None, select.POLLIN], []
    assert server._ready(HANDLE, waiting.WAIT_R, poll.now + 2.25) == waiting.READY_R
    assert poll.waited == [1000.0, 1000.0]
    poll.waited = []
    with pytest.raises(TimeoutError):
        server._ready(HANDLE, waiting.WAIT_R, poll.now)  # the time is over already
    assert poll.waited == []


def test_an_exchange_goes_on_until_the_driver_has_its_answer(poll: Poll) -> None:
    """Each step may take so long: a server that sends is not silent."""
    seen: list[Any] = []

    def exchange() -> Generator[Any, Any, str]:
        seen.append((yield waiting.WAIT_W))
        seen.append((yield waiting.WAIT_R))
        return "answer"

    poll.found = [None, None, select.POLLOUT, None, None, select.POLLIN]
    assert server._wait(exchange(), HANDLE, 2.5) == "answer"
    assert seen == [waiting.READY_W, waiting.READY_R]
    assert [events for _, events in poll.registered] == [select.POLLOUT, select.POLLIN]
    poll.found = [None, None, None]
    with pytest.raises(TimeoutError):
        server._wait(exchange(), HANDLE, 2.5)


def test_a_silent_server_is_left_and_told_so(poll: Poll) -> None:
    ended: list[bool] = []
    raw: Any = SimpleNamespace(
        pgconn=SimpleNamespace(socket=HANDLE, finish=lambda: ended.append(True))
    )

    def exchange(answer: str) -> Generator[Any, Any, str]:
        yield waiting.WAIT_R
        return answer

    kind: Any = server._timed(1.5)
    poll.found = [None, select.POLLIN]
    assert kind.wait(raw, exchange("answer"), 0.1, timeout=3) == "answer" and ended == []
    poll.found = [None, None]
    with pytest.raises(psycopg.OperationalError, match=r"not answered for 1\.5 s") as told:
        kind.wait(raw, exchange("late"))
    assert ended == [True] and told.value.__cause__ is None
    assert {handle for handle, _ in poll.registered} == {HANDLE}
