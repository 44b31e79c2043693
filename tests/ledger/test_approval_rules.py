"""Which approval allows which charge, one difference at a time; the ledger and its replay agree."""

from typing import Any

import pytest

from takifugu.ledger.events.decisions import (
    ApprovedRequests,
    misfit,
    withdraws,
)

pytestmark = pytest.mark.nightly


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
