"""Which approval allows which charge, one difference at a time; the ledger and its replay agree."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import ApprovalRefused
from takifugu.ledger import Charge, Ledger, open_ledger
from takifugu.ledger.events.decisions import (
    ApprovedRequests,
    Terms,
    misfit,
    same_person,
    withdraws,
)
from tests.ledger.charges import DOUBLING, IDENTITY, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly


@pytest.fixture
def kept(folder: Path) -> Iterator[Ledger]:
    with open_ledger(folder / "ward.ledger", actor="olga") as ledger:
        ledger.set_budget("ward", 8)
        yield ledger


def asked(**others: Any) -> Charge:
    return charge("0.25", **({"analyst": "ana"} | others))


def approved(ledger: Ledger, wanted: Charge, **others: Any) -> Charge:
    """The charge with an approval of it."""
    given: dict[str, Any] = {
        "dataset": wanted.dataset,
        "analyst": wanted.analyst,
        "question": wanted.body()["question"],
        "words": "stays",
        "epsilon": 1,
    }
    return replace(wanted, approval=ledger.approve(**(given | others)).seq)


def test_an_approval_allows_one_charge_once(kept: Ledger) -> None:
    wanted = approved(kept, asked())
    ana = kept.acting("ana")
    ana.charge(wanted, DOUBLING)
    with raises(ApprovalRefused, reason="used", approval=wanted.approval):
        ana.charge(replace(wanted, key="again"), DOUBLING)
    assert kept.verify().sound


Change = Callable[[Ledger, Charge], Charge]
WRONG: dict[str, tuple[str, Change]] = {
    "no event": ("missing", lambda _, wanted: replace(wanted, approval=999)),
    "another kind": ("missing", lambda _, wanted: replace(wanted, approval=1)),
    "analyst": ("analyst", lambda _, wanted: replace(wanted, analyst="bob")),
    "question": ("question", lambda _, wanted: replace(wanted, query={"name": "other"})),
    "dataset": ("dataset", lambda ledger, wanted: elsewhere(ledger, wanted)),
    "withdrawn": ("withdrawn", lambda ledger, wanted: refused(ledger, wanted)),
    "terms": ("terms", lambda ledger, wanted: accepted(ledger, wanted)),
}


def elsewhere(ledger: Ledger, wanted: Charge) -> Charge:
    ledger.set_budget("other", 8)
    return replace(wanted, dataset="other")


def refused(ledger: Ledger, wanted: Charge) -> Charge:
    question = wanted.body()["question"]
    ledger.refuse_request(dataset="ward", analyst="ana", question=question, words="no", epsilon=1)
    return wanted


def accepted(ledger: Ledger, wanted: Charge) -> Charge:
    ledger.accept(Terms("prior", "secrets"), ledger.review("ward", IDENTITY))
    return wanted


@pytest.mark.parametrize("which", WRONG)
def test_an_approval_of_something_else_allows_nothing(kept: Ledger, which: str) -> None:
    reason, change = WRONG[which]
    wanted = change(kept, approved(kept, asked()))
    head = kept.head()
    with raises(ApprovalRefused, reason=reason):
        kept.acting("ana").charge(wanted, DOUBLING)
    assert kept.head() == head


def test_nobody_approves_what_they_ask_for_under_another_spelling(kept: Ledger) -> None:
    wanted = approved(kept, asked())
    with raises(ApprovalRefused, reason="person"):
        kept.acting(" OLGA").charge(wanted, DOUBLING)
    own = approved(kept, asked(analyst="Bo"), analyst="Bo")
    kept.acting("carl").charge(own, DOUBLING)
    assert not same_person(None, None) and not same_person("a", None)
    assert same_person("Ana", "ａna ") and not same_person("Ana", "Anna")


def test_a_refusal_of_one_request_leaves_the_others(kept: Ledger) -> None:
    ana, question = kept.acting("ana"), asked().body()["question"]
    first = replace(approved(kept, asked(), request="r1"), request="r1")
    second = replace(approved(kept, asked(), request="r2"), request="r2")
    kept.refuse_request(
        dataset="ward", analyst="ana", question=question, words="no", epsilon=1, request="r1"
    )
    with raises(ApprovalRefused, reason="withdrawn"):
        ana.charge(first, DOUBLING)
    with raises(ApprovalRefused, reason="request"):
        ana.charge(replace(second, request="r9"), DOUBLING)
    ana.charge(second, DOUBLING)
    assert kept.verify().sound


APPROVAL: dict[str, Any] = {
    "kind": "approval",
    "decision": "approved",
    "dataset": "ward",
    "analyst": "ana",
    "question": "q",
    "actor": "olga",
    "under": 4,
}
CHARGE = {"kind": "charge", "dataset": "ward", "analyst": "ana", "question": "q", "actor": "ana"}


@pytest.mark.parametrize(
    ("approval", "body", "under", "reason"),
    [
        ({}, {}, 4, None),
        ({}, {"actor": None}, 4, None),
        ({"decision": "refused"}, {}, 4, "refused"),
        ({}, {"dataset": "x"}, 4, "dataset"),
        ({}, {"analyst": "x"}, 4, "analyst"),
        ({}, {"question": "x"}, 4, "question"),
        ({}, {"actor": "Olga"}, 4, "person"),
        ({"actor": "ANA"}, {"actor": "x"}, 4, "person"),
        ({}, {}, 5, "terms"),
        ({}, {}, None, "terms"),
        ({"under": None}, {}, None, None),
    ],
)
def test_why_an_approval_does_not_fit(
    approval: dict[str, Any], body: dict[str, Any], under: int | None, reason: str | None
) -> None:
    assert misfit(APPROVAL | approval, CHARGE | body, under) == reason
    assert misfit(None, CHARGE | body, under) == "missing"


@pytest.mark.parametrize(
    ("later", "does"),
    [
        ({"decision": "refused"}, True),
        ({"decision": "approved"}, False),
        ({"decision": "refused", "kind": "charge"}, False),
        ({"decision": "refused", "dataset": "x"}, False),
        ({"decision": "refused", "analyst": "x"}, False),
        ({"decision": "refused", "question": "x"}, False),
        ({"decision": "refused", "request": "r2"}, False),
        ({"decision": "refused", "request": "r1"}, True),
    ],
)
def test_what_withdraws_an_approval(later: dict[str, Any], does: bool) -> None:
    assert withdraws(APPROVAL | later, APPROVAL | {"request": "r1"}) is does


def test_a_replay_refuses_what_the_ledger_would() -> None:
    replay = ApprovedRequests()

    def event(seq: int, body: dict[str, Any]) -> str | None:
        return replay.misfit({"seq": seq} | body)

    taken = CHARGE | {"approval": 5}
    assert event(4, {"kind": "accepted", "dataset": "ward"}) is None
    assert event(5, APPROVAL | {"request": "r1", "bound": True}) is None
    assert event(6, CHARGE) is None  # names none
    assert event(7, taken | {"request": "r2"}) == "request"
    assert event(8, APPROVAL) is None and event(9, APPROVAL) is None and event(10, APPROVAL) is None
    assert event(11, CHARGE | {"approval": 8, "kind": "reuse"}) is None
    assert event(12, CHARGE | {"approval": 8}) == "used"
    assert event(13, {"kind": "loss"}) is None
    assert event(14, CHARGE | {"approval": 9}) == "lost"
    assert event(15, APPROVAL) is None and event(16, APPROVAL | {"decision": "refused"}) is None
    assert event(17, CHARGE | {"approval": 15}) == "used"
    assert event(18, {"kind": "accepted", "dataset": "ward"}) is None
    assert event(19, APPROVAL) is None
    assert event(20, CHARGE | {"approval": 19}) == "terms"
    assert event(21, CHARGE | {"approval": 3}) == "missing"


# --- the chain ---
