"""Decisions that meet: two owners, two servers, a withdrawal, a crash at each step.

The first event of the ledger that names a request decides it.

What comes in between is called from inside of a decision, so that nothing depends on a clock.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import LedgerUnavailable
from takifugu.ledger import Event, Ledger, open_ledger
from takifugu.ledger.storage.database import Connection, Store
from takifugu.project.project import open_project
from takifugu.server.approvals import adopt_decisions, approval_document, decide
from takifugu.server.state.approval_requests import Approval, ApprovalRequest
from takifugu.server.state.server_state import ServerState, open_state
from takifugu.server.state.state_store import StateConflict
from tests.raising import raises

QUESTION = "q" * 64
Act = Callable[[], object]


class Killed(BaseException):
    """Stands for a process that ended here: nothing catches it."""


def killed(*_: Any, **__: Any) -> Any:
    raise Killed


@dataclass(frozen=True)
class Servers:
    """Two servers of one project: each has the ledger and the state open for itself."""

    ledgers: tuple[Ledger, Ledger]
    states: tuple[ServerState, ServerState]

    def ask(self, key: str) -> Approval:
        """A request for the same query under another key."""
        request = ApprovalRequest("stays", "ana", key, QUESTION, "words", "1", "above", {})
        return self.states[0].ask_approval(request)

    def decide(self, server: int, number: int, decision: Any, by: str) -> Approval:
        """An owner, or who asked, decides on one of the servers."""
        note = f"a note of {by}"
        return decide(self.states[server], self.ledgers[server], number, decision, by, note)

    def refused(self, act: Act) -> Act:
        """Expects of ``act`` that it is told to have changed nothing."""

        def tried() -> None:
            before = self.events()
            with raises(StateConflict, reason="decided"):
                act()
            assert self.events() == before

        return tried

    def events(self) -> list[Event]:
        """The decisions in the ledger, the first one first."""
        return list(self.ledgers[0].events(limit=1000, kind="approval"))

    def now(self, number: int) -> Approval:
        """A request as the other server sees it."""
        found = self.states[1].approval(number)
        assert found is not None
        return found

    def restart(self) -> list[int]:
        """What a server that starts finds to be decided."""
        return [one.id for one in adopt_decisions(self.states[1], self.ledgers[1])]


@pytest.fixture
def servers(project: Path) -> Iterator[Servers]:
    opened = open_project(project)
    with (
        opened.ledger() as one,
        open_project(project).ledger() as two,
        open_state(opened) as first,
        open_state(opened) as second,
    ):
        yield Servers((one, two), (first, second))


def around(
    patch: pytest.MonkeyPatch, owner: type, name: str, *, before: Act | None, after: Act | None
) -> None:
    """Call ``before`` and ``after`` around the next call of a method, and of no later one."""
    real, waiting = getattr(owner, name), [True]

    def wrapped(self: Any, *given: Any, **how: Any) -> Any:
        first = bool(waiting and waiting.pop())
        if first and before is not None:
            before()
        found = real(self, *given, **how)
        if first and after is not None:
            after()
        return found

    patch.setattr(owner, name, wrapped)


SECOND = {"refuses": ("refused", "otto"), "withdraws": ("withdrawn", "ana")}


@pytest.mark.nightly
@pytest.mark.parametrize("other", SECOND)
def test_who_comes_second_has_changed_nothing(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    number, twin = servers.ask("k").id, servers.ask("twin").id
    second = servers.refused(lambda: servers.decide(1, number, *SECOND[other]))
    around(monkeypatch, Ledger, "approve", before=None, after=second)
    done = servers.decide(0, number, "approved", "olga")
    (event,) = servers.events()
    assert event.body["request"] == done.identity != servers.now(twin).identity
    assert (done.state, done.event, done.decided_by) == ("approved", event.seq, "olga")
    assert (done.note, done.decided) == ("a note of olga", event.at)
    assert servers.now(number) == done
    second()
    assert servers.restart() == []
    assert servers.now(twin).state == "pending"  # nobody decided it


@pytest.mark.parametrize("other", SECOND)
def test_who_writes_first_decides(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    number, twin = servers.ask("k").id, servers.ask("twin").id
    decision, name = SECOND[other]
    around(
        *(monkeypatch, Ledger, "approve"),
        before=lambda: servers.decide(1, number, decision, name),
        after=None,
    )
    with raises(StateConflict, reason="decided"):
        servers.decide(0, number, "approved", "olga")
    (event,) = servers.events()
    now = servers.now(number)
    assert (now.state, now.decided_by, now.event) == (decision, name, event.seq)
    assert servers.restart() == [] and servers.now(twin).state == "pending"


@pytest.mark.nightly
@pytest.mark.parametrize("decision", ["approved", "refused", "withdrawn"])
@pytest.mark.parametrize("step", ["write", "copy_decision"])
def test_a_crash_before_each_step(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, decision: str, step: str
) -> None:
    number, twin = servers.ask("k").id, servers.ask("twin").id
    by = "ana" if decision == "withdrawn" else "olga"
    of: type = Ledger if step == "write" else ServerState
    write = "approve" if decision == "approved" else "refuse_request"
    with monkeypatch.context() as patched:
        patched.setattr(of, write if step == "write" else step, killed)
        with pytest.raises(Killed):
            servers.decide(0, number, decision, by)
    shown = approval_document(servers.now(number))
    assert (shown["state"], shown["decided_by"], shown["note"]) == ("pending", None, "")
    if step == "copy_decision":
        servers.refused(lambda: servers.decide(1, number, "approved", "otto"))()
    else:
        assert servers.restart() == [] and servers.events() == []
        assert servers.now(number).state == "pending"
        servers.decide(1, number, decision, by)
    assert servers.restart() == []
    now = servers.now(number)
    (event,) = servers.events()
    assert (now.state, now.event) == (decision, event.seq)
    assert (now.decided_by, now.note) == (by, f"a note of {by}")
    assert servers.now(twin).state == "pending"


@pytest.mark.nightly
@pytest.mark.parametrize("after", [False, True], ids=["before the event", "after it"])
def test_a_server_that_starts_meets_one_that_decides(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    number, started = servers.ask("k").id, list[list[int]]()

    def start() -> None:
        started.append(servers.restart())

    place = {"before": None, "after": start} if after else {"before": start, "after": None}
    around(monkeypatch, Ledger, "approve", **place)
    done = servers.decide(0, number, "approved", "olga")
    (event,) = servers.events()
    assert (done.state, done.event, done.note) == ("approved", event.seq, "a note of olga")
    assert started == [[number] if after else []]


@pytest.mark.nightly
@pytest.mark.parametrize("written", [False, True], ids=["not written", "written"])
def test_a_ledger_that_does_not_answer(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    number = servers.ask("k").id

    def unreachable() -> None:
        raise LedgerUnavailable("gone", reason="unreachable")

    around(
        *(monkeypatch, Ledger, "approve"),
        before=None if written else unreachable,
        after=unreachable if written else None,
    )
    if written:
        assert servers.decide(0, number, "approved", "olga").note == "a note of olga"
    else:
        with raises(LedgerUnavailable):
            servers.decide(0, number, "approved", "olga")
        assert servers.decide(1, number, "approved", "otto").state == "approved"
    assert len(servers.events()) == 1


def test_a_ledger_that_others_hold_locked_is_waited_for_once(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, waits, writing = servers.ask("k").id, list[Store](), Store.writing

    def counted(store: Store) -> AbstractContextManager[Connection]:
        waits.append(store)
        return writing(store)

    with (
        open_ledger(servers.ledgers[0].name, wait=0.05) as ledger,
        servers.ledgers[1].decision_on(QUESTION, "another request"),
    ):
        monkeypatch.setattr(Store, "writing", counted)
        with raises(LedgerUnavailable, reason="locked"):
            decide(servers.states[0], ledger, number, "withdrawn", "ana")
    assert len(waits) == 1 and servers.now(number).state == "pending"
    assert servers.decide(0, number, "withdrawn", "ana").state == "withdrawn"


@pytest.mark.nightly
def test_a_decision_of_the_command_line_decides_no_request(servers: Servers) -> None:
    number = servers.ask("k").id
    servers.ledgers[0].acting("olga").approve(
        dataset="stays", analyst="ana", question=QUESTION, words="words", epsilon="1"
    )
    assert servers.restart() == []
    assert servers.now(number).state == "pending"
