"""What every backend keeps about people: who acted, who may ask, what a second person allowed.

One suite; `tests/ledger` runs it on each backend, with the fixtures of `tests.contracts.ledger`.
"""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest

from takifugu.errors import (
    ApprovalRefused,
    InvalidCharge,
    LedgerConflict,
    LedgerUnavailable,
    UnsoundRequest,
)
from takifugu.ledger import Charge, Event, Ledger, Terms
from takifugu.ledger.event_documents import event_words
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.storage.database import Store, update
from tests.contracts.ledger import Opener, acknowledgements_lost, paid
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

# --- actors ---


def test_every_event_names_its_actor(url: str, opened: Opener) -> None:
    ledger = opened(url, actor="olga")
    ledger.set_budget("ward", 2)
    ana = ledger.acting("ana")
    first = charge("0.25", analyst="ana", sources=("path k:1",))
    ana.record_answer(ana.charge(first, DOUBLING), 1)
    ledger.acting("bob").reuse(charge("0.25", analyst="bob"), DOUBLING)
    ledger.set_partition("ward", ("country",))
    found = {event.kind: event.body.get("actor") for event in ledger.history()}
    assert found == {
        "created": "olga", "budget": "olga", "source": "ana", "charge": "ana", "answer": "ana",
        "reuse": "bob", "partition": "olga",
    }  # fmt: skip
    assert ledger.actor == "olga" and ana.actor == "ana" and ledger.verify().sound
    with raises(InvalidCharge, field="actor"):
        ledger.acting("")


def test_an_actor_is_not_part_of_what_is_charged(ledger: Ledger) -> None:
    first = charge("0.25")
    receipt = ledger.acting("ana").charge(first, DOUBLING)
    assert ledger.acting("bob").charge(first, DOUBLING).anchor == receipt.anchor
    assert ledger.spent("ward", DOUBLING) == 0.5


def test_acting_shares_what_was_lost_on_the_way(ledger: Ledger) -> None:
    """A retry by another actor of the same open ledger is still a retry."""
    first = charge("0.25")
    with acknowledgements_lost(), pytest.raises(LedgerUnavailable):
        ledger.acting("ana").charge(first, DOUBLING)
    assert ledger.charge(first, DOUBLING).may_release
    assert not ledger.charge(first, DOUBLING).may_release


# --- pages of events ---


def test_events_are_paged_in_both_directions(ledger: Ledger) -> None:
    ledger.set_budget("other", 2)
    for n in range(12):
        dataset, who = ("ward", "other")[n % 2], ("ana", "bob", None)[n % 3]
        ledger.charge(charge("0.01", dataset=dataset, analyst=who), DOUBLING)
    whole = list(ledger.history())
    choices: list[dict[str, Any]] = [
        {},
        {"dataset": "ward"},
        {"analyst": "ana"},
        {"kind": "charge", "analyst": "bob", "dataset": "other"},
        {"kind": ("budget", "charge")},
        {"kind": ()},
    ]
    for chosen in choices:
        kinds = chosen.get("kind", chain.KINDS)
        expected = [
            event
            for event in whole
            if event.kind in ((kinds,) if isinstance(kinds, str) else kinds)
            and all(event.body.get(k) == v for k, v in chosen.items() if k != "kind")
        ]
        for limit in (1, 3, 100):
            pages, after = list[Event](), 0
            while page := ledger.events(after, limit, **chosen):
                assert len(page) <= limit
                pages += page
                after = page[-1].seq
            assert pages == expected
            pages, before = [], 10**6
            while page := ledger.events(limit=limit, before=before, **chosen):
                pages += page
                before = page[-1].seq
            assert pages == expected[::-1]
    wrongs: list[dict[str, Any]] = [{"limit": 0}, {"limit": 10**6}, {"after": -1}]
    for wrong in (*wrongs, {"before": 2**70}):
        with raises(UnsoundRequest, field="limit"):
            ledger.events(**wrong)
    assert ledger.event(2) == whole[1]
    assert ledger.event(0) is None and ledger.event(99) is None


# --- tokens ---

PERSON: dict[str, Any] = {"name": "ana", "role": "analyst", "token": "t1"}


def test_tokens_that_are_made_and_revoked_are_written_down(ledger: Ledger) -> None:
    ends = datetime(2027, 2, 1, 12, tzinfo=UTC)
    owner = ledger.acting("olga")
    owner.record_access("made", **PERSON, expires=ends)
    owner.record_access("revoked", **PERSON)
    made, revoked = ledger.events(kind="access")
    assert made.body["expires"] == ends.isoformat() and revoked.body["expires"] is None
    assert event_words(made.body) == (
        "token t1 of ana, analyst, made, until 2027-02-01 12:00, by olga"
    )
    assert event_words(revoked.body) == "token t1 of ana, analyst, revoked, by olga"
    assert ledger.verify().sound
    with raises(InvalidCharge, field="change"):
        owner.record_access("lost", **PERSON)  # type: ignore[arg-type]
    with raises(InvalidCharge, field="token"):
        owner.record_access("made", **PERSON | {"token": ""})


# --- approvals ---


@pytest.fixture
def unwitnessed(url: str, opened: Opener) -> Ledger:
    """A ledger that may be written anew by whoever has the storage; with a budget of 2."""
    ledger = opened(url, witness=False)
    ledger.set_budget("ward", 2)
    return ledger


def approve(ledger: Ledger, wanted: Charge, *, by: str = "olga", **others: Any) -> int:
    body = wanted.body()
    asked = {key: body[key] for key in ("dataset", "analyst", "question")}
    options: dict[str, Any] = asked | {"words": "stays", "epsilon": "0.5"} | others
    return ledger.acting(by).approve(**options).seq


def refuse(ledger: Ledger, wanted: Charge, **others: Any) -> Event:
    """Refuse what was asked for, as olga."""
    body = wanted.body()
    asked = {key: body[key] for key in ("dataset", "analyst", "question")}
    options: dict[str, Any] = asked | {"words": "stays", "epsilon": "0.5"} | others
    return ledger.acting("olga").refuse_request(**options)


def named(wanted: Charge, approval: int, **others: Any) -> Charge:
    parts = {name: getattr(wanted, name) for name in wanted.__dataclass_fields__ if name != "key"}
    return Charge(**parts | {"approval": approval} | others)


def test_an_approved_charge_names_its_approval(ledger: Ledger) -> None:
    wanted = charge("0.25", analyst="ana")
    number = approve(ledger, wanted)
    event = ledger.event(number)
    assert event is not None and event_words(event.body) == (
        "release to ana from ward approved: stays; epsilon = 0.5, by olga"
    )
    receipt = ledger.acting("ana").charge(named(wanted, number), DOUBLING)
    paid_for = ledger.event(receipt.anchor.seq)
    assert paid_for is not None and paid_for.body["approval"] == number
    assert paid_for.body["question"] == wanted.body()["question"]  # an approval changes no answer
    assert f"approved in event {number}" in event_words(paid_for.body)
    assert ledger.verify().sound


@pytest.mark.parametrize(
    ("reason", "given", "asked"),
    [
        ("question", {}, {"data": "newer"}),
        ("question", {}, {"mechanism": {"kind": "other"}}),
        ("question", {"question": "0" * 64}, {}),
        ("analyst", {}, {"analyst": "bob"}),
        ("analyst", {"analyst": None}, {}),
        ("dataset", {"dataset": "other"}, {}),
    ],
)
def test_an_approval_of_something_else_allows_nothing(
    ledger: Ledger, reason: str, given: dict[str, Any], asked: dict[str, Any]
) -> None:
    wanted = charge("0.25", analyst="ana")
    number = approve(ledger, wanted, **given)
    with raises(ApprovalRefused, reason=reason, approval=number, dataset="ward"):
        ledger.acting("ana").charge(named(wanted, number, **asked), DOUBLING)
    assert not paid(ledger) and ledger.verify().sound


def test_an_event_that_is_no_approval_allows_nothing(ledger: Ledger) -> None:
    for number in (1, 2, 99):
        with raises(ApprovalRefused, reason="missing", approval=number):
            ledger.charge(charge("0.25", approval=number), DOUBLING)
    for wrong in (0, -1, True, "2", 2**64):
        with raises(InvalidCharge, field="approval"):
            charge("0.25", approval=wrong)
    assert not paid(ledger)


@pytest.mark.parametrize("spelt", ["ana", "Ana", "ana ", "\uff41na"])
def test_two_people_are_needed_however_one_of_them_is_spelt(ledger: Ledger, spelt: str) -> None:
    wanted = charge("0.25", analyst="ana")
    with raises(ApprovalRefused, reason="person", approval=None):
        approve(ledger, wanted, by=spelt)
    number = approve(ledger, wanted, by="olga")
    with raises(ApprovalRefused, reason="person", approval=number):  # olga asks in ana's name
        ledger.acting("Olga").charge(named(wanted, number), DOUBLING)
    nobody = charge("0.25")
    number = approve(ledger, nobody, by=spelt)
    with raises(ApprovalRefused, reason="person", approval=number):
        ledger.acting("ana").charge(named(nobody, number), DOUBLING)
    assert not paid(ledger)


def test_an_approval_is_used_once(ledger: Ledger, url: str, opened: Opener) -> None:
    wanted = charge("0.25", analyst="ana")
    number, ana = approve(ledger, wanted), ledger.acting("ana")
    first = named(wanted, number, key="first")
    receipt = ana.charge(first, DOUBLING)
    with raises(ApprovalRefused, reason="used", approval=number):
        opened(url, actor="ana").charge(named(wanted, number), DOUBLING)
    assert ana.charge(first, DOUBLING).anchor == receipt.anchor  # a retry is no second use
    with raises(LedgerConflict, reason="key"):
        ana.charge(charge("0.25", analyst="ana", key="first"), DOUBLING)
    again = approve(ledger, wanted)
    ana.charge(named(wanted, again), DOUBLING)
    assert len(paid(ledger)) == 2 and ledger.verify().sound


def test_a_refusal_allows_nothing_and_withdraws_what_was_allowed(ledger: Ledger) -> None:
    wanted = charge("0.25", analyst="ana")
    number, ana = approve(ledger, wanted), ledger.acting("ana")
    refused = refuse(ledger, wanted)
    assert event_words(refused.body).startswith("release to ana from ward refused: stays")
    for given, reason in ((refused.seq, "refused"), (number, "withdrawn")):
        with raises(ApprovalRefused, reason=reason, approval=given):
            ana.charge(named(wanted, given), DOUBLING)
    number = approve(ledger, wanted)
    refuse(ledger, wanted, analyst="bob")
    ana.charge(named(wanted, number), DOUBLING)  # another analyst's refusal
    assert ledger.verify().sound


def test_a_refusal_of_a_request_withdraws_that_request_alone(ledger: Ledger) -> None:
    wanted = charge("0.25", analyst="ana")
    question, ana = wanted.body()["question"], ledger.acting("ana")
    one, two = (approve(ledger, wanted, request=which) for which in ("r1", "r2"))
    whole = approve(ledger, wanted)
    refused = refuse(ledger, wanted, request="r1")
    assert refused.body["request"] == "r1"
    with ledger.decision_on(question, "r1") as last:
        assert last == refused
    with ledger.decision_on(question, "r3") as last:
        assert last is None
    with raises(ApprovalRefused, reason="withdrawn", approval=one):
        ana.charge(named(wanted, one, request="r1"), DOUBLING)
    for number, which in ((two, "r2"), (whole, None)):
        ana.charge(named(wanted, number, request=which), DOUBLING)
    assert ledger.verify().sound
    three = approve(ledger, wanted, request="r3")
    refuse(ledger, wanted)  # the query, whoever asked for it
    with raises(ApprovalRefused, reason="withdrawn", approval=three):
        ana.charge(named(wanted, three, request="r3"), DOUBLING)


def test_an_approval_of_a_request_serves_that_request_alone(ledger: Ledger) -> None:
    wanted, ana = charge("0.25", analyst="ana"), ledger.acting("ana")
    number = approve(ledger, wanted, request="r1")
    for other in (None, "r2"):
        with raises(ApprovalRefused, reason="request", approval=number):
            ana.charge(named(wanted, number, request=other), DOUBLING)
    receipt = ana.charge(named(wanted, number, request="r1"), DOUBLING)
    event = ledger.event(receipt.anchor.seq)
    assert event is not None and event.body["request"] == "r1"
    assert event.body["question"] == wanted.body()["question"]
    assert ledger.verify().sound
    with raises(InvalidCharge, field="request"):
        named(wanted, number, request="")


@pytest.mark.parametrize("bound", [True, False])
def test_verify_finds_a_charge_of_another_request(
    unwitnessed: Ledger, url: str, bound: bool
) -> None:
    wanted = charge("0.25", analyst="ana")
    number = approve(unwitnessed, wanted, request="r1")
    receipt = unwitnessed.acting("ana").charge(named(wanted, number, request="r1"), DOUBLING)

    def without_request(body: dict[str, Any]) -> None:
        if body["kind"] == "charge":
            del body["request"]
        if body["kind"] == "approval" and not bound:
            del body["bound"]  # as an earlier version wrote it, whose charges named no request

    rewritten(url, without_request)
    found = {(problem.reason, problem.event) for problem in unwitnessed.verify().problems}
    assert (("approval", receipt.anchor.seq) in found) == bound


def test_what_a_check_refuses_is_not_written(ledger: Ledger) -> None:
    wanted = charge("0.25", analyst="ana")
    number, seen = approve(ledger, wanted, request="r1"), []

    def check(last: Any) -> None:
        seen.append(None if last is None else last.seq)
        raise KeyError

    for which in ("r1", "r2"):
        with pytest.raises(KeyError):
            approve(ledger, wanted, request=which, check=check)
    assert seen == [number, None] and ledger.head().seq == number
    with raises(InvalidCharge, field="request"):
        approve(ledger, wanted, request="")


def test_verify_finds_a_charge_whose_request_was_refused(unwitnessed: Ledger, url: str) -> None:
    wanted = charge("0.25", analyst="ana")
    number = approve(unwitnessed, wanted, request="r1")
    refuse(unwitnessed, wanted, request="r2")
    receipt = unwitnessed.acting("ana").charge(named(wanted, number, request="r1"), DOUBLING)
    assert unwitnessed.verify().sound

    def same_request(body: dict[str, Any]) -> None:
        if body["kind"] == "approval":
            body["request"] = "r1"

    rewritten(url, same_request)
    found = {(problem.reason, problem.event) for problem in unwitnessed.verify().problems}
    assert ("approval", receipt.anchor.seq) in found


def test_an_approval_holds_under_the_terms_that_the_owner_saw(ledger: Ledger) -> None:
    wanted = charge("0.25", analyst="ana")
    number = approve(ledger, wanted)
    ledger.accept(Terms("prior", "secrets"), ledger.review("ward", DOUBLING))
    with raises(ApprovalRefused, reason="terms", approval=number):
        ledger.acting("ana").charge(named(wanted, number), DOUBLING)
    ledger.acting("ana").charge(named(wanted, approve(ledger, wanted)), DOUBLING)
    assert ledger.verify().sound


def test_another_analysts_answer_may_need_an_approval_too(ledger: Ledger) -> None:
    for who in ("ana", "bob"):
        ledger.set_budget("ward", 1, analyst=who)
    ledger.record_answer(ledger.charge(charge("0.25", analyst="ana"), DOUBLING), 7)
    his = charge("0.25", analyst="bob")
    number, bob = approve(ledger, his), ledger.acting("bob")
    with raises(ApprovalRefused, reason="missing"):
        bob.reuse(named(his, 1), DOUBLING)
    answer = bob.reuse(named(his, number), DOUBLING)
    assert answer is not None and answer.value == 7 and ledger.verify().sound


def rewritten(url: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Write the whole chain anew with changed bodies, as whoever has the storage can."""
    store = Store(url, read_only=False, wait=5)
    with store.writing() as connection:
        previous = chain.ROOT
        for row in list(chain.rows(connection)):
            body = json.loads(row.body)
            change(body)
            text = json.dumps(body, sort_keys=True, separators=(",", ":"))
            previous = chain.link(previous, text)
            values = {
                "hash": previous,
                "body": text,
                "analyst": body.get("analyst"),
                "at": row.seq,
            }
            update("takifugu_events", "hash", "body", "analyst", where="seq = :at").run(
                connection, values
            )
            update("takifugu_head", "hash", where="seq = :at").run(connection, values)
    store.close()


@pytest.mark.parametrize(
    "change",
    [
        {"decision": "refused"},
        {"analyst": "bob"},
        {"actor": "ana"},
        {"under": 1},
        {"question": "0" * 64},
    ],
)
def test_verify_finds_a_charge_whose_approval_does_not_fit(
    unwitnessed: Ledger, url: str, change: dict[str, Any]
) -> None:
    wanted = charge("0.25", analyst="ana")
    number = approve(unwitnessed, wanted)
    receipt = unwitnessed.acting("ana").charge(named(wanted, number), DOUBLING)
    assert unwitnessed.verify().sound

    def unfit(body: dict[str, Any]) -> None:
        if body["kind"] == "approval":
            body |= change

    rewritten(url, unfit)
    found = {(problem.reason, problem.event) for problem in unwitnessed.verify().problems}
    assert ("approval", receipt.anchor.seq) in found


def test_verify_finds_an_approval_that_was_used_twice(unwitnessed: Ledger, url: str) -> None:
    wanted = charge("0.25", analyst="ana")
    one, two = approve(unwitnessed, wanted), approve(unwitnessed, wanted)
    ana = unwitnessed.acting("ana")
    ana.charge(named(wanted, one), DOUBLING)
    second = ana.charge(named(wanted, two), DOUBLING)

    def twice(body: dict[str, Any]) -> None:
        if body.get("approval") == two:
            body["approval"] = one

    rewritten(url, twice)
    assert [(problem.reason, problem.event) for problem in unwitnessed.verify().problems] == [
        ("approval", second.anchor.seq)
    ]


def test_verify_finds_a_second_answer(unwitnessed: Ledger, url: str) -> None:
    one, two = (unwitnessed.charge(charge("0.25"), DOUBLING, resume=True) for _ in range(2))
    unwitnessed.record_answer(one, 1)
    unwitnessed.abandon(two)
    last = unwitnessed.head().seq

    def twice(body: dict[str, Any]) -> None:
        if body["kind"] == "abandoned":
            body["charge"] = one.anchor.seq

    rewritten(url, twice)
    found = {(problem.reason, problem.event) for problem in unwitnessed.verify().problems}
    assert ("answer", last) in found


def test_the_price_that_the_owner_saw_is_kept_exactly(ledger: Ledger) -> None:
    number = approve(ledger, charge("0.25", analyst="ana"), epsilon=Fraction(1, 3))
    event = ledger.event(number)
    assert event is not None and Fraction(event.body["epsilon"]) == Fraction(1, 3)
    with raises(InvalidCharge, field="words"):
        approve(ledger, charge("0.25", analyst="ana"), words="x" * 20_000)


@pytest.mark.parametrize(
    "request_", ["r1", "R1", "a%", "100_", 'back\\slash "quoted"', "é\U0001f41f"]
)
def test_a_decision_is_that_on_the_request_whatever_it_is_called(
    ledger: Ledger, request_: str
) -> None:
    wanted = charge("0.25", analyst="ana")
    number = approve(ledger, wanted, request=request_)
    for other in ("r2", "aaa", "100x", f"{request_}x", "back_slash _quoted_"):
        approve(ledger, wanted, request=other)
    with ledger.decision_on(wanted.body()["question"], request_) as last:
        assert last is not None and last.seq == number
    with ledger.decision_on(wanted.body()["question"], "%") as last:
        assert last is None


def calls(work: Callable[[], object]) -> int:
    """How many functions of Python it calls: work that no clock measures."""
    events: list[str] = []
    sys.setprofile(lambda _frame, event, _argument: events.append(event))
    try:
        work()
    finally:
        sys.setprofile(None)
    return events.count("call")


def test_decisions_on_other_requests_cost_nothing_under_the_lock(ledger: Ledger) -> None:
    wanted = charge("0.25", analyst="ana")
    question = wanted.body()["question"]

    def look() -> None:
        with ledger.decision_on(question, "mine") as last:
            assert last is None

    approve(ledger, wanted, request="r")
    look()
    few = calls(look)
    for number in range(40):
        approve(ledger, wanted, request=f"r{number}")
    assert calls(look) < 2 * few
