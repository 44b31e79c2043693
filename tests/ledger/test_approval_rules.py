"""Which approval allows which charge, one difference at a time; the ledger and its replay agree."""

from typing import Any

import pytest

from takifugu.ledger.events.decisions import (
    ApprovedRequests,
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
