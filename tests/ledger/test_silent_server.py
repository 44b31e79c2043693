"""Waiting for a server of PostgreSQL: for what, how long, and what is made of what comes."""

import select
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

psycopg = pytest.importorskip("psycopg", reason="an extra: install takifugu[postgres]")
from psycopg import waiting  # noqa: E402

from takifugu.ledger.storage import postgresql as server  # noqa: E402

pytestmark = pytest.mark.nightly

HANDLE = 41


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
