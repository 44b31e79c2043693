"""What every backend of a server's state has to keep; `tests/server/state` runs it on each.

The fixtures: ``place``, where a state is to be that does not exist yet; ``clock``, a clock that the
test moves; ``state``, an open state with that clock.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import takifugu
from takifugu.errors import InvalidCharge, InvalidFile, NewerLedger
from takifugu.ledger.events.event_chain import Anchor
from takifugu.ledger.storage.statement import insert
from takifugu.ledger.storage.store import Store
from takifugu.server.roles import ROLES, Role
from takifugu.server.state.access_tokens import TokenRecord
from takifugu.server.state.approval_requests import MOST_PENDING, Approval, ApprovalRequest
from takifugu.server.state.browser_sessions import LONGEST, MOST
from takifugu.server.state.server_state import ServerState, state_at
from takifugu.server.state.state_errors import (
    InvalidApproval,
    InvalidResult,
    InvalidToken,
    StateConflict,
)
from takifugu.server.state.state_tables import STEPS
from takifugu.server.state.witness_table import WitnessedHead
from tests.raising import raises

ROOT = Path(takifugu.__file__).parents[2]
DAY = timedelta(days=1)


@dataclass
class Clock:
    """A clock that the test moves."""

    time: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        """The time."""
        return self.time

    def move(self, by: timedelta) -> None:
        """Let time pass."""
        self.time += by


Opener = Callable[[], ServerState]


def in_another_process(place: str, *arguments: str) -> str:
    """What ``python -m tests.server.state.other_process`` prints."""
    done = subprocess.run(  # noqa: S603 - our own interpreter and arguments
        [sys.executable, "-m", "tests.server.state.other_process", place, *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
    )
    return done.stdout.strip()


# --- tokens ---


@pytest.mark.parametrize("role", ROLES)
def test_a_token_says_who_holds_it_and_what_they_may_do(state: ServerState, role: Role) -> None:
    made = state.create_token("ana", role, None, "root")
    assert made.secret.startswith("tf_") and len(made.secret) == 3 + 43
    found = state.token_of(made.secret)
    assert found == made.record == state.token(made.record.id)
    assert found is not None and (found.name, found.role, found.made_by) == ("ana", role, "root")
    assert found.used is None and found.expires is None and found.revoked is None


@pytest.mark.parametrize(
    "sent", ["", "tf_", "tf_x", "Bearer", "tf_" + "a" * 43, "tf_" + "é" * 43, "tf_" + "a" * 10**6]
)
def test_what_is_no_token_is_nobody(state: ServerState, sent: str) -> None:
    made = state.create_token("ana", "analyst", None, "root")
    assert state.token_of(sent) is None
    assert state.token_of(made.record.id) is None  # what is public is no token
    assert state.token_of(made.secret[:-1]) is None
    assert state.token_of(made.secret + "=") is None
    assert state.token_of(made.secret.upper()) is None


def test_a_token_ends_when_it_was_said_to_and_not_before(state: ServerState, clock: Clock) -> None:
    made = state.create_token("ana", "analyst", clock.time + DAY, "root")
    clock.move(DAY - timedelta(microseconds=1))
    assert state.token_of(made.secret) is not None
    clock.move(timedelta(microseconds=1))
    assert state.token_of(made.secret) is None
    clock.move(-DAY)  # a clock that is set back revives nothing
    assert state.token_of(made.secret) is None


def test_a_revoked_token_is_refused_at_once_and_everywhere(
    state: ServerState, another: Opener, place: str
) -> None:
    made, kept = (state.create_token(name, "analyst", None, "root") for name in ("ana", "bo"))
    other = another()
    assert other.token_of(made.secret) == made.record
    session = other.begin_session(made.record)
    assert in_another_process(place, "revoke", made.record.id) == made.record.id
    for one in (state, other):
        assert one.token_of(made.secret) is None
        assert one.session_of(session.secret) is None
        assert one.token_of(kept.secret) == kept.record
    record = state.token(made.record.id)
    assert record is not None and record.revoked is not None
    assert record.revoked_by == "another process"
    assert state.revoke_token(made.record.id, "late") == record  # who revoked it first, did


def test_another_process_knows_a_token_at_once(state: ServerState, place: str) -> None:
    made = state.create_token("ana", "analyst", None, "root")
    assert in_another_process(place, "whose", made.secret) == "ana analyst"
    assert in_another_process(place, "whose", made.secret[:-1]) == "nobody"
    secret = in_another_process(place, "create", "bo", "owner")
    found = state.token_of(secret)
    assert found is not None and (found.name, found.role) == ("bo", "owner")


def test_one_name_has_one_role_among_live_tokens(state: ServerState, clock: Clock) -> None:
    first = state.create_token("ana", "analyst", clock.time + DAY, "root")
    state.create_token("ana", "analyst", None, "root")  # a second one of the same role
    for role in ("owner", "auditor", "witness"):
        with raises(InvalidToken, field="role", reason="two roles"):
            state.create_token("ana", role, None, "root")
    for record in state.tokens():
        state.revoke_token(record.id, "root")
    assert state.create_token("ana", "owner", clock.time + DAY, "root").record.role == "owner"
    clock.move(2 * DAY)
    assert state.create_token("ana", "auditor", None, "root").record.role == "auditor"
    assert state.token_of(first.secret) is None


@pytest.mark.parametrize("spelling", ["Ana", "ANA", "ａｎａ", "a na"])
def test_a_second_spelling_of_a_live_name_is_refused(state: ServerState, spelling: str) -> None:
    state.create_token("ana", "analyst", None, "root")
    with raises(InvalidToken, field="name", reason="spelling"):
        state.create_token(spelling, "analyst", None, "root")
    assert len(state.tokens()) == 1


def test_two_roles_at_once_are_refused_also_to_processes_that_race(state: ServerState) -> None:
    def make(role: Role) -> str:
        try:
            return state.create_token("ana", role, None, "root").record.role
        except InvalidToken as error:
            return error.reason

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(make, ["owner", "analyst"] * 8))
    assert len({record.role for record in state.tokens()}) == 1
    assert made.count("two roles") == 8


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ana",
        "ana\r\nSet-Cookie: takifugu=x",
        "ana\nx",
        "ana\x00",
        "a\u202eb",
        "\ud800",
        "\u200b",
        "a" * 101,
        7,
        None,
    ],
)
def test_a_name_that_people_or_headers_cannot_carry_is_refused(
    state: ServerState, name: Any
) -> None:
    with raises(InvalidToken, field="name", reason="name"):
        state.create_token(name, "analyst", None, "root")
    assert state.tokens() == []


def test_an_unknown_role_or_a_time_that_has_passed_is_refused(
    state: ServerState, clock: Clock
) -> None:
    with raises(InvalidToken, field="role", reason="role"):
        state.create_token("ana", "admin", None, "root")  # type: ignore[arg-type]
    for expires in (clock.time, clock.time - DAY, datetime(2030, 1, 1)):
        with raises(InvalidToken, field="expires", reason="expires"):
            state.create_token("ana", "analyst", expires, "root")
    with raises(InvalidCharge, field="by"):
        state.create_token("ana", "analyst", None, "")
    assert state.tokens() == []


def test_a_token_that_could_not_be_announced_is_not_made(state: ServerState) -> None:
    announced: list[TokenRecord] = []

    def refuse(record: TokenRecord) -> None:
        announced.append(record)
        raise OSError("the ledger is full")

    with pytest.raises(OSError, match="full"):
        state.create_token("ana", "analyst", None, "root", before=refuse)
    assert state.tokens() == [] and announced[0].name == "ana"
    made = state.create_token("ana", "analyst", None, "root", before=announced.append)
    assert announced[1] == made.record


def test_tokens_are_listed_with_their_last_use(state: ServerState, clock: Clock) -> None:
    made = state.create_token("ana", "analyst", None, "root").record
    assert state.use_is_due(made)
    state.note_use(made)
    clock.move(timedelta(seconds=59))
    assert not state.use_is_due(made)
    used = clock.time - timedelta(seconds=59)
    assert [record.used for record in state.tokens()] == [used]
    clock.move(timedelta(seconds=1))
    assert state.use_is_due(made)
    state.note_use(made)
    assert state.tokens() == [replace(made, used=clock.time)]


def test_an_unknown_token_cannot_be_revoked(state: ServerState) -> None:
    with raises(StateConflict, field="token", reason="unknown"):
        state.revoke_token("beef", "root")


def test_secrets_are_nowhere_in_representations(state: ServerState) -> None:
    made = state.create_token("ana", "analyst", None, "root")
    session = state.begin_session(made.record)
    shown = f"{made} {made!r} {session} {session!r} {state.tokens()}"
    assert made.secret not in shown and session.secret not in shown


# --- browser sessions ---


def test_a_session_is_new_at_every_sign_in(state: ServerState) -> None:
    record = state.create_token("ana", "analyst", None, "root").record
    one, two = state.begin_session(record), state.begin_session(record)
    assert one.secret != two.secret and one.csrf != two.csrf
    assert state.session_of(one.secret) == one and state.session_of(two.secret) == two
    assert one.token == record
    for known in (one.secret, two.secret):
        assert one.csrf not in known and known not in one.csrf
    state.end_session(one.secret)
    assert state.session_of(one.secret) is None and state.session_of(two.secret) == two
    assert state.session_of(two.csrf) is None
    assert state.session_of("") is None and state.session_of("é") is None


def test_a_session_ends_after_twelve_hours_or_with_its_token(
    state: ServerState, clock: Clock
) -> None:
    assert timedelta(hours=12) == LONGEST
    long = state.create_token("ana", "analyst", None, "root")
    short = state.create_token("bo", "analyst", clock.time + timedelta(hours=1), "root")
    sessions = [state.begin_session(made.record) for made in (long, short)]
    clock.move(timedelta(hours=1))
    assert [state.session_of(one.secret) is not None for one in sessions] == [True, False]
    clock.move(timedelta(hours=11))
    assert state.session_of(sessions[0].secret) is None
    assert state.token_of(long.secret) is not None


def test_a_token_that_has_ended_begins_no_session(state: ServerState) -> None:
    record = state.create_token("ana", "analyst", None, "root").record
    state.revoke_token(record.id, "root")
    with raises(StateConflict, field="token", reason="unknown"):
        state.begin_session(record)


def test_a_token_has_so_many_sessions_and_the_first_ends_for_the_next(
    state: ServerState, clock: Clock
) -> None:
    record = state.create_token("ana", "analyst", None, "root").record
    sessions = []
    for _ in range(MOST + 2):
        clock.move(timedelta(seconds=1))
        sessions.append(state.begin_session(record))
    alive = [state.session_of(one.secret) is not None for one in sessions]
    assert alive == [False] * 2 + [True] * MOST


# --- approvals ---


def asked(key: str = "k1", analyst: str = "ana", **changed: Any) -> ApprovalRequest:
    request = ApprovalRequest(
        "ward", analyst, key, "q" * 64, "a histogram by ward", "1/2", "above 0.25", {"kind": "sum"}
    )
    return replace(request, **changed)


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
    done = state.decide(1, "approved", "olga", event=7, note="fine")
    assert done == replace(
        made, state="approved", decided=clock.time, decided_by="olga", event=7, note="fine"
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
            other.decide(1, "approved", "olga", event=9, claim=claim)
    assert other.drop_claim(1, "another") == claimed
    assert other.drop_claim(1, claimed.claim.id) == made
    with raises(StateConflict, reason="decided"):
        state.decide(1, "approved", "olga", event=9, claim=claimed.claim.id)
    again = state.claim_decision(1, "refused", "otto", "no")
    assert again.claim is not None and again.claim.id != claimed.claim.id
    done = other.decide(1, "refused", "otto", event=9, note="no", claim=again.claim.id)
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
        state.finish_approval(1, charge=9)  # nobody has approved it
    state.decide(1, "approved", "olga", event=4)
    done = state.finish_approval(1, charge=9)
    assert (done.state, done.charge, done.event, done.decided_by) == ("released", 9, 4, "olga")
    assert state.finish_approval(1, charge=9) == done
    with raises(StateConflict, reason="decided"):
        state.finish_approval(1, charge=10)
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
        state.finish_approval(4, charge=1)


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
    for number in range(MOST_PENDING):
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


# --- results ---


def paid(number: int, letter: str = "f") -> Anchor:
    return Anchor(number, letter * 64)


def test_a_number_that_is_used_again_after_a_loss_is_another_charge(state: ServerState) -> None:
    lost = state.keep_result(paid(8), "ward", "ana", {"of": "the lost history"})
    assert state.result(paid(8, "e")) is None and state.result(paid(8, "e"), "ana") is None
    kept = state.keep_result(paid(8, "e"), "ward", "bo", {"of": "what came after"})
    assert state.result(paid(8, "e")) == kept and state.result(paid(8)) == lost
    assert state.result(paid(8, "e"), "ana") is None and state.result(paid(8), "bo") is None


def test_a_result_is_kept_once(state: ServerState, clock: Clock) -> None:
    document = {"rows": [["é\u2028", 1.5, None]], "deep": {"a": [True]}}
    kept = state.keep_result(paid(12), "ward", "ana", document)
    assert kept == state.result(paid(12)) and kept.document == document and kept.kept == clock.time
    assert (kept.charge, kept.dataset, kept.analyst) == (paid(12), "ward", "ana")
    assert state.keep_result(paid(12), "ward", "ana", {"rows": []}) == kept  # never a second answer
    assert state.result(paid(13)) is None
    assert state.result(paid(12), "bo") is None and state.result(paid(12), "ana") == kept
    theirs = state.keep_result(paid(12), "ward", "bo", {"cost": 0})  # the same answer, for free
    assert state.result(paid(12), "bo") == theirs and state.result(paid(12), "ana") == kept
    shared = state.keep_result(paid(12), "ward", "bo", {"free": True})
    assert state.result(paid(12), "bo") == shared and state.result(paid(12), "ana") == kept
    assert state.result(paid(12)) == kept and state.result(paid(12), "cy") is None
    assert state.keep_result(paid(2**40), "ward", None, {}).analyst is None
    with raises(InvalidResult, field="document"):
        state.keep_result(paid(14), "ward", "ana", {"x": float("inf")})
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda n: state.keep_result(paid(15), "ward", "ana", {"n": n}), range(16))
    assert len({one.document["n"] for one in found}) == 1


def test_what_is_kept_is_known_without_its_document(state: ServerState) -> None:
    for number, letter, analyst in (
        *((3, "f", "ana"), (3, "f", "bo"), (5, "f", None), (5, "e", "cy"), (2**40, "f", "ana")),
    ):
        state.keep_result(paid(number, letter), "ward", analyst, {"rows": []})
    wanted = [
        (paid(number, letter), who)
        for number in (3, 4, 5, 2**40)
        for letter in "ef"
        for who in ("ana", "bo", "cy", None)
    ]
    found = state.kept_charges(wanted)
    assert found == {one for one in wanted if state.result(*one) is not None}
    assert len(found) == 8 and state.kept_charges([]) == set()
    assert all(state.kept_charges([one]) == found & {one} for one in wanted)


# --- heads of other ledgers ---


LEDGER, OTHER = "a" * 32, "b" * 32


def event(seq: int, letter: str = "c") -> Anchor:
    return Anchor(seq, letter * 64)


def test_a_head_is_recorded_if_it_still_is_what_was_seen(state: ServerState) -> None:
    assert state.witnessed(LEDGER, "far") is None
    assert state.record_head(LEDGER, event(1), event(9), "far") is None  # not what was seen
    assert state.witnessed(LEDGER, "far") is None
    assert state.record_head(LEDGER, event(1), None, "far") == event(1)
    assert state.record_head(LEDGER, event(1), None, "far") == event(1)  # sent twice
    assert state.record_head(LEDGER, event(3), None, "far") == event(1)
    assert state.record_head(LEDGER, event(3), event(2), "far") == event(1)
    assert state.record_head(LEDGER, event(3), event(1), "far") == event(3)
    assert state.witnessed(LEDGER, "far") == event(3)
    assert state.witnessed(OTHER, "far") is None
    assert state.forgotten_heads() == []


def test_a_head_never_goes_back(state: ServerState) -> None:
    state.record_head(LEDGER, event(5), None, "far")
    for earlier in (event(4), event(5, "d"), event(1, "e")):
        with raises(StateConflict, reason="earlier"):
            state.record_head(LEDGER, earlier, event(5), "far")
    assert state.witnessed(LEDGER, "far") == event(5)


def test_a_head_that_is_forgotten_can_be_recorded_anew(state: ServerState, clock: Clock) -> None:
    state.record_head(LEDGER, event(5), None, "far")
    gone = state.forget_head(LEDGER, "root")
    assert (gone.event, gone.owner, gone.by, gone.at) == (event(5), "far", "root", clock.time)
    assert state.witnessed_heads() == [] and state.forgotten_heads() == [gone]
    assert state.record_head(LEDGER, event(4, "d"), None, "near") == event(4, "d")
    assert state.witnessed_heads() == [WitnessedHead(LEDGER, event(4, "d"), "near", clock.time)]
    with raises(StateConflict, reason="unknown"):
        state.forget_head(OTHER, "root")


def test_only_who_began_a_record_goes_on(state: ServerState) -> None:
    state.record_head(LEDGER, event(5), None, "far")
    with raises(StateConflict, reason="another person"):
        state.witnessed(LEDGER, "near")
    with raises(StateConflict, reason="another person"):
        state.record_head(LEDGER, event(6), event(5), "near")
    assert state.witnessed(LEDGER, "far") == event(5)
    assert state.record_head(OTHER, event(6), None, "near") == event(6)


def test_of_many_heads_at_once_one_is_recorded_after_what_was_seen(
    state: ServerState, another: Opener
) -> None:
    state.record_head(LEDGER, event(1), None, "far")
    other = another()

    def record(number: int) -> Anchor | None:
        one = (state, other)[number % 2]
        return one.record_head(LEDGER, event(2 + number), event(1), "far")

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(record, range(8)))
    now = state.witnessed(LEDGER, "far")
    assert now is not None and set(found) == {now} and now.seq >= 2


# --- the storage ---


def test_it_is_made_by_many_at_once_and_opened_again(another: Opener) -> None:
    with ThreadPoolExecutor(6) as pool:
        states = list(pool.map(lambda _: another(), range(6)))
    made = states[0].create_token("ana", "analyst", None, "root")
    assert all(one.token_of(made.secret) == made.record for one in states)


def test_it_is_not_made_when_it_must_not_be(place: str) -> None:
    with raises(InvalidFile, reason="missing"):
        state_at(place, create=False)
    state_at(place).close()
    state_at(place, create=False).close()


def test_one_of_a_later_version_is_refused(place: str) -> None:
    state_at(place).close()
    store = Store(place, read_only=False, wait=5)
    with store.writing() as connection:
        insert(STEPS, "place", "name").run(connection, {"place": 99, "name": "9999 later"})
    store.close()
    with raises(NewerLedger, field="9999 later"):
        state_at(place)
