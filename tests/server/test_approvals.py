"""Releases that wait for an owner: as functions of a project, its ledger and the server's state."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import ApprovalRefused, LedgerUnavailable
from takifugu.ledger import Anchor, Event, Ledger
from takifugu.project.project import Project, open_project
from takifugu.server import approvals
from takifugu.server.access_rules import Actor
from takifugu.server.api.problems import Problem
from takifugu.server.approvals import adopt_decisions, decide, release_or_ask
from takifugu.server.state.approval_requests import Approval
from takifugu.server.state.server_state import ServerState, charge_of, open_state
from takifugu.server.state.state_store import StateConflict
from takifugu.server.work.tasks import Task
from takifugu.session.plan_documents import plan_to_document
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_errors import MostlyNoise
from takifugu.session.session import Session
from tests.raising import raises
from tests.server.projects import small_project

QUERY = {"kind": "histogram", "by": ["zone"], "epsilon": "1"}
SMALL = QUERY | {"epsilon": "1/4"}
OTHER = {"kind": "histogram", "epsilon": "1"}


def with_rule(file: Path, rule: str = 'above = "0.5"') -> Path:
    """The project whose releases above ε = 0.5 wait for an owner."""
    file.write_text(f"{file.read_text()}\n[dataset.stays.approval]\n{rule}\n")
    return file


@contextmanager
def told(kind: str, reason: str = "") -> Iterator[pytest.ExceptionInfo[Problem]]:
    """Expect that the analyst is told a problem."""
    with pytest.raises(Problem) as caught:
        yield caught
    assert (caught.value.status, caught.value.kind, caught.value.reason) == (409, kind, reason)


@dataclass(frozen=True)
class Study:
    """A project, its ledger and the state of its server."""

    project: Project
    ledger: Ledger
    state: ServerState

    @contextmanager
    def session(self, analyst: str = "ana") -> Iterator[Session]:
        """The session of an analyst."""
        with open_project(self.project.file).acting(analyst).session("stays", analyst) as session:
            yield session

    def release(
        self,
        query: dict[str, Any],
        key: str = "k1",
        analyst: str = "ana",
        dataset: str = "stays",
        *,
        accept_noise: bool = False,
        wrap: Callable[[Session], Any] = lambda session: session,
    ) -> Any:
        """What a worker does for POST releases."""
        options = {"query": query, "key": key, "accept_noise": accept_noise}
        asked = Task("release", dataset, Actor(analyst, "analyst", "test"), options)
        with self.session(analyst) as session:
            return release_or_ask(
                *(self.state, wrap(session), asked),
                lambda: session.plan(session.resolved(QueryOptions.from_document(query))),
                plan_to_document,
            )

    def decide(self, number: int, decision: Any = "approved", by: str = "olga") -> Approval:
        """What an owner decides."""
        return decide(self.state, self.ledger, number, decision, by, "a note")

    def events(self, *kinds: str) -> list[Event]:
        """The events of some kinds."""
        return list(self.ledger.events(limit=1000, kind=kinds))

    def approval(self, number: int) -> Approval:
        """A request, as it is stored."""
        found = self.state.approval(number)
        assert found is not None
        return found


@pytest.fixture
def study(project: Path) -> Iterator[Study]:
    opened = open_project(with_rule(project))
    with opened.ledger() as ledger, open_state(opened) as state:
        yield Study(opened, ledger, state)


@pytest.fixture
def simple(tmp_path: Path) -> Iterator[Study]:
    opened = open_project(with_rule(small_project(tmp_path / "a study")))
    with opened.ledger() as ledger, open_state(opened) as state:
        yield Study(opened, ledger, state)


@pytest.mark.nightly
def test_a_request_is_decided_and_released(study: Study) -> None:
    asked = study.release(QUERY)["approval"]
    assert (asked["state"], asked["id"], asked["analyst"]) == ("pending", 1, "ana")
    assert asked["plan"]["cost"]["alone"] <= float(asked["epsilon"])
    assert asked["why"]
    assert not study.events("charge", "approval")
    assert study.release(QUERY)["approval"] == asked  # the same key: the same request
    done = study.decide(1)
    (event,) = study.events("approval")
    assert (done.state, done.event, done.decided_by) == ("approved", event.seq, "olga")
    assert (event.body["actor"], event.body["analyst"]) == ("olga", "ana")
    found = study.release(QUERY)
    (charge,) = study.events("charge")
    assert charge.body["approval"] == event.seq
    assert (charge.body["analyst"], charge.body["actor"]) == ("ana", "ana")
    now = study.approval(1)
    assert (now.state, now.charge, now.note) == ("released", charge.seq, "a note")
    kept = study.state.result(Anchor(charge.seq, charge.hash), "ana")
    assert kept is not None
    assert dict(kept.document) == found["result"]
    again = study.release(QUERY)
    assert again == found
    assert len(study.events("charge")) == 1
    assert len(study.events("answer")) == 1
    assert study.ledger.verify().sound
    assert approvals.approval_document(now)["result"] == f"/api/v1/releases/{charge.seq}/result"


@pytest.mark.nightly
def test_what_is_below_the_limit_waits_for_nobody(simple: Study) -> None:
    assert "result" in simple.release(SMALL)
    assert simple.state.approvals() == []
    assert "result" in simple.release(SMALL, "k2", "bo")  # stored: free
    assert len(simple.events("charge")) == 1


@pytest.mark.nightly
def test_a_first_release_waits_once(tmp_path: Path) -> None:
    opened = open_project(with_rule(small_project(tmp_path / "study"), "first = true"))
    with opened.ledger() as ledger, open_state(opened) as state:
        study = Study(opened, ledger, state)
        assert study.release(SMALL)["approval"]["state"] == "pending"
        study.decide(1)
        assert "result" in study.release(SMALL)
        assert "result" in study.release(OTHER, "k2")


@pytest.mark.nightly
def test_a_key_is_of_one_request(simple: Study) -> None:
    simple.release(QUERY)
    for query, noise in ((OTHER, False), (QUERY, True)):
        with raises(StateConflict, field="key", reason="key"):
            simple.release(query, accept_noise=noise)
    assert simple.release(QUERY, analyst="bo")["approval"]["id"] == 2


@pytest.mark.nightly
def test_of_many_owners_at_once_one_decides(study: Study) -> None:
    study.release(QUERY)

    def attempt(number: int) -> str:
        try:
            with study.project.ledger() as ledger:
                decision: Any = ("approved", "refused")[number % 2]
                return decide(study.state, ledger, 1, decision, f"owner {number}").state
        except StateConflict as error:
            return error.reason

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(attempt, range(8)))
    assert outcomes.count("decided") == 7
    (event,) = study.events("approval")
    now = study.approval(1)
    assert (now.state, now.event, now.decided_by) == (
        *(event.body["decision"], event.seq, event.body["actor"]),
    )


@pytest.mark.nightly
def test_a_request_is_withdrawn(simple: Study) -> None:
    simple.release(QUERY)
    with raises(StateConflict, reason="another person"):
        simple.decide(1, "withdrawn", "bo")
    done = simple.decide(1, "withdrawn", "ana")
    (event,) = simple.events("approval")
    assert (done.state, done.event, event.body["decision"]) == ("withdrawn", event.seq, "refused")
    with raises(StateConflict, reason="decided"):
        simple.decide(1)
    with told("ApprovalDeclined", "withdrawn"):
        simple.release(QUERY)
    assert len(simple.events("approval")) == 1 and simple.ledger.verify().sound


def test_an_unknown_request_is_not_decided(simple: Study) -> None:
    with raises(StateConflict, reason="unknown"):
        simple.decide(7)
    assert not simple.events("approval")


@pytest.mark.nightly
def test_an_approval_is_of_one_request_and_one_charge(simple: Study) -> None:
    simple.release(QUERY)
    simple.release(QUERY, "k2", "bo")
    event = simple.decide(1).event
    with raises(ApprovalRefused, reason="analyst"), simple.session("bo") as session:
        session.release(session.plan.histogram(by="zone", epsilon=1), key="k9", approval=event)
    simple.decide(2)
    assert [one.event for one in simple.state.approvals()] == [
        one.seq for one in simple.events("approval")
    ]


@pytest.mark.nightly
def test_an_answer_of_noise_is_refused_before_an_owner_is_asked(tmp_path: Path) -> None:
    file = with_rule(small_project(tmp_path / "study", people=3), 'above = "0.0001"')
    opened = open_project(file)
    noisy = QUERY | {"epsilon": "1/1000"}
    with opened.ledger() as ledger, open_state(opened) as state:
        study = Study(opened, ledger, state)
        with raises(MostlyNoise):
            study.release(noisy)
        assert state.approvals() == []
        asked = study.release(noisy, accept_noise=True)["approval"]
        assert asked["accept_noise"]
        study.decide(1)
        assert "result" in study.release(noisy, accept_noise=True)


# --- whatever stops in between ---


class Killed(BaseException):
    """Stands for a process that ended here: nothing catches it."""


@dataclass(frozen=True)
class Ends:
    """A session whose release ends before, or after, it was made."""

    session: Session
    after: bool
    error: BaseException

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)

    def release(self, *given: Any, **how: Any) -> Any:
        """End."""
        if self.after:
            self.session.release(*given, **how)
        raise self.error


@pytest.mark.nightly
def test_a_decision_in_the_ledger_alone_is_adopted(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    study.release(QUERY)
    study.release(OTHER, "k2")
    study.release(QUERY, "k3", "bo")

    def ends(*_: Any, **__: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(ServerState, "copy_decision", ends)
        for number, decision in ((1, "approved"), (2, "refused")):
            with pytest.raises(Killed):
                study.decide(number, decision)
    assert [study.approval(n).state for n in (1, 2, 3)] == ["pending"] * 3
    first, second = study.events("approval")
    adopted = adopt_decisions(study.state, study.ledger)
    assert [(one.id, one.state, one.event, one.decided_by, one.note) for one in adopted] == [
        (1, "approved", first.seq, "olga", "a note"),
        (2, "refused", second.seq, "olga", "a note"),
    ]
    assert study.approval(3).state == "pending"
    assert adopt_decisions(study.state, study.ledger) == []
    assert [one.id for one in approvals.to_resume(study.state)] == [1]
    assert "result" in study.release(QUERY)
    assert len(study.events("approval")) == 2


@pytest.mark.nightly
def test_the_same_decision_again_writes_no_second_event(
    simple: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    simple.release(QUERY)

    def ends(*_: Any, **__: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(ServerState, "copy_decision", ends)
        with pytest.raises(Killed):
            simple.decide(1)
    assert simple.decide(1).event == simple.events("approval")[0].seq
    assert len(simple.events("approval")) == 1


@pytest.mark.nightly
def test_a_decision_of_before_a_request_is_not_its_own(simple: Study) -> None:
    simple.release(QUERY)
    simple.decide(1)
    simple.ledger.acting("olga").set_budget("stays", "1/2")
    with told("OverBudget"):
        simple.release(QUERY)
    simple.ledger.acting("olga").set_budget("stays", "8")
    simple.release(QUERY, "k2")  # the same query: its approval was for the first request
    assert adopt_decisions(simple.state, simple.ledger) == []
    assert simple.approval(2).state == "pending"
    assert simple.decide(2).event == simple.events("approval")[1].seq


@pytest.mark.nightly
@pytest.mark.parametrize("after", [False, True], ids=["before the charge", "after the answer"])
def test_a_release_that_was_stopped_is_taken_up_again(study: Study, after: bool) -> None:
    study.release(QUERY)
    study.decide(1)
    with pytest.raises(Killed):
        study.release(QUERY, wrap=lambda session: Ends(session, after, Killed()))
    assert study.approval(1).state == "approved"
    assert [one.id for one in approvals.to_resume(study.state)] == [1]
    assert len(study.events("charge")) == after
    found = study.release(QUERY)
    assert study.approval(1).state == "released"
    assert len(study.events("charge")) == 1
    (answer,) = study.events("answer")
    assert found["result"]["provenance"]["answer"]["event"] == answer.seq
    assert study.ledger.verify().sound


@pytest.mark.nightly
def test_what_may_pass_fails_nothing(simple: Study) -> None:
    simple.release(QUERY)
    simple.decide(1)
    trouble = LedgerUnavailable("locked", reason="locked")
    with raises(LedgerUnavailable):
        simple.release(QUERY, wrap=lambda session: Ends(session, False, trouble))
    assert simple.approval(1).state == "approved"
    assert "result" in simple.release(QUERY)


def test_a_result_that_cannot_be_kept_is_told_and_an_approved_one_is_tried_again(
    simple: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    simple.release(QUERY)
    simple.decide(1)

    def unreachable(*_: Any, **__: Any) -> Any:
        raise LedgerUnavailable("locked", reason="locked")

    with monkeypatch.context() as patched:
        patched.setattr(ServerState, "keep_result", unreachable)
        told_at_once = simple.release(SMALL, "k2")
        with raises(LedgerUnavailable):
            simple.release(QUERY)
    assert simple.approval(1).state == "approved"
    assert "result" in simple.release(QUERY) and simple.approval(1).state == "released"
    again = simple.release(SMALL, "k2")
    assert again["charge"] == told_at_once["charge"]
    assert simple.state.result(charge_of(again["result"]), "ana") is not None
    assert len(simple.events("charge")) == 2
