"""What every backend of a server's state keeps of requests that wait for an owner.

For the fixtures see `tests.contracts.server_state`.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from takifugu.errors import InvalidCharge
from takifugu.ledger.events.event_chain import Anchor, Event
from takifugu.ledger.storage.database import Store, insert
from takifugu.server.state import state_store
from takifugu.server.state.approval_requests import (
    MAX_PENDING,
    Approval,
    ApprovalRequest,
    Decision,
)
from takifugu.server.state.server_state import ServerState, state_at
from takifugu.server.state.state_store import (
    InvalidApproval,
    StateConflict,
)
from tests.contracts.server_state import Clock, Opener
from tests.raising import raises

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
OWNERS: tuple[Decision, ...] = ("approved", "refused")


def asked(key: str = "k1", analyst: str = "ana", **changed: Any) -> ApprovalRequest:
    request = ApprovalRequest(
        "ward", analyst, key, "q" * 64, "a histogram by ward", "1/2", "above 0.25", {"kind": "sum"}
    )
    return replace(request, **changed)


def at(seq: int) -> Anchor:
    return Anchor(seq, f"{seq:064x}")


def decision(seq: int, how: str = "approved", actor: str = "olga", note: str = "") -> Event:
    """An event of the ledger that decides a request."""
    body = {"decision": how, "actor": actor} | ({"note": note} if note else {})
    return Event(seq, "approval", BEGIN, at(seq).hash, body)


def test_a_request_waits_until_another_person_decides(state: ServerState, clock: Clock) -> None:
    made = state.ask_approval(asked())
    assert made == Approval(1, asked(), "pending", clock.time)
    assert state.approval(1) == made and state.approval(2) is None
    for how in OWNERS:
        for who in ("ana", "Ana"):
            with raises(StateConflict, reason="same person"):
                state.undecided(1, how, who)
        assert state.undecided(1, how, "olga") == made
    with raises(StateConflict, reason="another person"):
        state.undecided(1, "withdrawn", "bo")
    assert state.undecided(1, "withdrawn", "ana") == made
    event = decision(7, note="fine")
    done = state.copy_decision(1, event)
    assert done == replace(
        made,
        state="approved",
        decided=event.at,
        decided_by="olga",
        event=7,
        event_hash=at(7).hash,
        note="fine",
    )
    assert state.approval(1) == done


def test_the_first_decision_stands(state: ServerState, another: Opener) -> None:
    state.ask_approval(asked())
    other = another()

    def decide(number: int) -> str:
        try:
            one = (state, other)[number % 2]
            event = decision(number + 2, ("approved", "refused")[number % 2], f"o{number}")
            return one.copy_decision(1, event).state
        except StateConflict as error:
            return error.reason

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(decide, range(8)))
    assert outcomes.count("decided") == 7
    found = state.approval(1)
    assert found is not None and found.state in outcomes


def test_no_two_requests_have_one_identity(state: ServerState, clock: Clock) -> None:
    found = [state.ask_approval(one) for one in (asked(), asked("k2"), asked(analyst="bo"))]
    clock.move(timedelta(microseconds=1))
    later = replace(found[0], asked=clock.time)  # of a state that was set back
    assert len({one.identity for one in (*found, later)}) == 4


def test_what_became_of_an_approved_request(state: ServerState) -> None:
    for number in (1, 2, 3):
        state.ask_approval(asked(f"k{number}"))
    with raises(StateConflict, reason="decided"):
        state.finish_approval(1, charge=at(9))  # nobody has approved it
    assert state.copy_decision(1, decision(4)) == state.copy_decision(1, decision(4))
    done = state.finish_approval(1, charge=at(9))
    assert (done.state, done.charge, done.event, done.decided_by) == ("released", 9, 4, "olga")
    assert state.finish_approval(1, charge=at(9)) == done
    assert done.decided_in(at(4)) and done.paid_by(at(9))
    for other in (Anchor(9, "f" * 64), at(10)):  # numbers are used again after history was lost
        assert not done.paid_by(other) and not done.decided_in(Anchor(4, other.hash))
        with raises(StateConflict, reason="decided"):
            state.finish_approval(1, charge=other)
    with raises(StateConflict, reason="decided"):
        state.finish_approval(1, charge=at(10))
    state.copy_decision(2, decision(5, note="fine"))
    failed = state.finish_approval(2, problem={"detail": "over budget"})
    assert (failed.state, failed.note, failed.charge) == ("failed", "fine", None)
    assert failed == state.approval(2) and failed.problem == {"detail": "over budget"}
    for wrong in ({}, {"charge": 9, "problem": {}}):
        with raises(InvalidApproval, field="charge"):
            state.finish_approval(2, **wrong)  # type: ignore[arg-type]
    assert state.copy_decision(3, decision(6, "refused", "ana")).state == "withdrawn"
    with raises(StateConflict, reason="decided"):
        state.undecided(3, "approved", "olga")
    with raises(StateConflict, reason="decided"):
        state.copy_decision(3, decision(8))
    with raises(StateConflict, reason="unknown"):
        state.undecided(4, "approved", "olga")
    with raises(StateConflict, reason="unknown"):
        state.copy_decision(4, decision(8))
    with raises(StateConflict, reason="unknown"):
        state.finish_approval(4, charge=at(1))


def test_the_same_request_under_the_same_key_is_one(state: ServerState) -> None:
    first = state.ask_approval(asked())
    assert state.ask_approval(asked(words="put another way")) == first
    for other in (asked(dataset="clinic"), asked(options={"kind": "count"}), asked(question="r")):
        with raises(StateConflict, field="key", reason="key"):
            state.ask_approval(other)
    assert state.ask_approval(asked(analyst="bo")).id == 2  # keys are each analyst's own
    with ThreadPoolExecutor(8) as pool:
        many = list(pool.map(lambda _: state.ask_approval(asked("k9")).id, range(16)))
    assert set(many) == {3}


def test_an_analyst_has_so_many_requests_that_wait(state: ServerState) -> None:
    for number in range(MAX_PENDING):
        state.ask_approval(asked(f"k{number}"))
    with raises(StateConflict, field="analyst", reason="many"):
        state.ask_approval(asked("one more"))
    assert state.ask_approval(asked("k0")).id == 1  # the same as before
    assert state.ask_approval(asked("one more", analyst="bo")).state == "pending"
    state.copy_decision(1, decision(5, "refused", "ana"))
    assert state.ask_approval(asked("one more")).state == "pending"


def test_a_request_is_found_by_its_key(state: ServerState) -> None:
    made = state.ask_approval(asked(plan={"cost": {"alone": 0.5}}))
    assert state.approval_asked("ana", "k1") == made
    assert made.request.plan == {"cost": {"alone": 0.5}}
    assert state.approval_asked("ana", "k2") is None
    assert state.approval_asked("bo", "k1") is None
    assert state.ask_approval(asked(plan={"cost": {"alone": 0.6}})).request.plan == (
        made.request.plan
    )


def test_requests_are_listed_a_page_at_a_time(state: ServerState) -> None:
    for number in range(6):
        state.ask_approval(asked(f"k{number}", analyst=("ana", "bo")[number % 2]))
    state.copy_decision(2, decision(5, "refused"))

    def numbers(found: list[Approval]) -> list[int]:
        return [one.id for one in found]

    assert numbers(state.approvals()) == [1, 2, 3, 4, 5, 6]
    assert numbers(state.approvals(after=2, limit=2)) == [3, 4]
    assert numbers(state.approvals("pending", after=1)) == [3, 4, 5, 6]
    assert numbers(state.approvals(analyst="bo")) == [2, 4, 6]
    assert numbers(state.approvals("refused", "bo")) == [2]
    assert numbers(state.approvals("refused", "ana")) == []
    assert numbers(state.approvals(before=5, limit=2)) == [4, 3]
    assert numbers(state.approvals(analyst="ana", before=2**62)) == [5, 3, 1]
    assert state.approvals(limit=-1) == []
    with raises(InvalidApproval, field="state"):
        state.approvals("lost")  # type: ignore[arg-type]


def test_a_request_that_cannot_be_stored_is_refused(state: ServerState) -> None:
    for options in ({"epsilon": float("nan")}, {"what": object()}):
        with raises(InvalidApproval, field="options"):
            state.ask_approval(asked(options=options))
    with raises(InvalidCharge, field="dataset"):
        state.ask_approval(asked(dataset=""))
    assert state.approvals() == []


def test_requests_of_an_earlier_version_stay(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(state_store, "KNOWN", state_store.KNOWN[:2])  # before hashes were kept
        state_at(place).close()
    values = {
        "id": 1,
        "dataset": "ward",
        "analyst": "ana",
        "asked_under": "k1",
        "question": "q",
        "words": "a histogram",
        "epsilon": "1/2",
        "why": "above 0.25",
        "options": "{}",
        "plan": "{}",
        "state": "approved",
        "asked": "2026-03-01T12:00:00.000000+00:00",
        "note": "",
        "event": 7,
    }
    store = Store(place, read_only=False, wait=5)
    with store.writing() as connection:
        insert(state_store.APPROVALS, *values).run(connection, values)
        values |= {"id": 2, "asked_under": "k2", "state": "pending", "event": None}
        values |= {"claim": "c", "claim_decision": "approved", "claim_by": "otto"}
        values |= {"claim_note": "", "claim_at": values["asked"]}  # that owner's server was killed
        insert(state_store.APPROVALS, *values).run(connection, values)
    store.close()
    with state_at(place) as state:
        (known,) = state.approvals("approved")
        assert (known.event, known.event_hash, known.charge_hash) == (7, None, None)
        assert known.decided_in(at(7)) and not known.decided_in(at(8))
        done = state.finish_approval(1, charge=at(9))
        assert done.paid_by(at(9)) and state.approval(1) == done
        assert state.undecided(2, "refused", "olga").state == "pending"
        assert state.copy_decision(2, decision(8, "refused")).state == "refused"
