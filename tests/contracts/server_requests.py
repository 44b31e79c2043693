"""What every backend of a server's state keeps of requests that wait for an owner.

For the fixtures see `tests.contracts.server_state`.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from takifugu.errors import InvalidCharge
from takifugu.ledger.events.event_chain import Anchor
from takifugu.ledger.storage.database import Store, insert
from takifugu.server.state import state_store
from takifugu.server.state.approval_requests import MAX_PENDING, Approval, ApprovalRequest
from takifugu.server.state.server_state import ServerState, state_at
from takifugu.server.state.state_store import (
    InvalidApproval,
    StateConflict,
)
from tests.contracts.server_state import DAY, Clock, Opener
from tests.raising import raises


def asked(key: str = "k1", analyst: str = "ana", **changed: Any) -> ApprovalRequest:
    request = ApprovalRequest(
        "ward", analyst, key, "q" * 64, "a histogram by ward", "1/2", "above 0.25", {"kind": "sum"}
    )
    return replace(request, **changed)


def at(seq: int) -> Anchor:
    return Anchor(seq, f"{seq:064x}")


def test_a_request_waits_until_another_person_decides(state: ServerState, clock: Clock) -> None:
    made = state.ask_approval(asked())
    assert made == Approval(1, asked(), "pending", clock.time)
    assert state.approval(1) == made and state.approval(2) is None
    for state_asked in ("approved", "refused"):
        for who in ("ana", "Ana"):
            with raises(StateConflict, reason="same person"):
                state.decide(1, state_asked, who)
    with raises(StateConflict, reason="another person"):
        state.decide(1, "withdrawn", "bo")
    clock.move(DAY)
    done = state.decide(1, "approved", "olga", event=at(7), note="fine")
    assert done == replace(
        made,
        state="approved",
        decided=clock.time,
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
            return one.decide(1, ("approved", "refused")[number % 2], f"o{number}").state
        except StateConflict as error:
            return error.reason

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(decide, range(8)))
    assert outcomes.count("decided") == 7
    found = state.approval(1)
    assert found is not None and found.state in outcomes


def test_a_claimed_request_is_of_one_owner_and_waits_for_everybody_else(
    state: ServerState, another: Opener, clock: Clock
) -> None:
    made, other = state.ask_approval(asked()), another()
    with raises(StateConflict, reason="same person"):
        state.claim_decision(1, "approved", "Ana")
    claimed = state.claim_decision(1, "approved", "olga", "fine")
    assert claimed.claim is not None and claimed.claim.at == clock.time
    assert replace(claimed, claim=None) == made and other.approval(1) == claimed
    assert other.approvals("pending") == [claimed] and claimed.identity == made.identity
    with raises(StateConflict, reason="decided"):
        other.claim_decision(1, "refused", "otto")
    with raises(StateConflict, reason="decided"):
        other.decide(1, "withdrawn", "ana")
    for claim in (None, "another"):
        with raises(StateConflict, reason="decided"):
            other.decide(1, "approved", "olga", event=at(9), claim=claim)
    assert other.drop_claim(1, "another") == claimed
    assert other.drop_claim(1, claimed.claim.id) == made
    with raises(StateConflict, reason="decided"):
        state.decide(1, "approved", "olga", event=at(9), claim=claimed.claim.id)
    again = state.claim_decision(1, "refused", "otto", "no")
    assert again.claim is not None and again.claim.id != claimed.claim.id
    done = other.decide(1, "refused", "otto", event=at(9), note="no", claim=again.claim.id)
    assert (done.state, done.claim, done.note) == ("refused", None, "no")
    assert state.approval(1) == done == state.drop_claim(1, again.claim.id)


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
    state.decide(1, "approved", "olga", event=at(4))
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
    state.decide(2, "approved", "olga", note="fine")
    failed = state.finish_approval(2, problem={"detail": "over budget"})
    assert (failed.state, failed.note, failed.charge) == ("failed", "fine", None)
    assert failed == state.approval(2) and failed.problem == {"detail": "over budget"}
    for wrong in ({}, {"charge": 9, "problem": {}}):
        with raises(InvalidApproval, field="charge"):
            state.finish_approval(2, **wrong)  # type: ignore[arg-type]
    assert state.decide(3, "withdrawn", "ana").state == "withdrawn"
    with raises(StateConflict, reason="decided"):
        state.decide(3, "approved", "olga")
    with raises(StateConflict, reason="unknown"):
        state.decide(4, "approved", "olga")
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
    state.decide(1, "withdrawn", "ana")
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
    state.decide(2, "refused", "olga")

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
    store.close()
    with state_at(place) as state:
        (known,) = state.approvals("approved")
        assert (known.event, known.event_hash, known.charge_hash) == (7, None, None)
        assert known.decided_in(at(7)) and not known.decided_in(at(8))
        done = state.finish_approval(1, charge=at(9))
        assert done.paid_by(at(9)) and state.approval(1) == done
