"""What a verification says of charges that their budget or their approval does not allow."""

from pathlib import Path
from typing import Any

from takifugu.ledger import open_ledger
from takifugu.ledger.events.decisions import (
    ApprovedRequests,
)
from takifugu.translation.protocol import LossTranslation
from tests.ledger.charges import DOUBLING, IDENTITY, RICH, charge


class Free(LossTranslation):
    """A translation that is not sound: whatever is released means next to nothing."""

    fingerprint = "free"

    def to_pufferfish(self, dp: float, /) -> float:
        """Nearly nothing."""
        return dp / 1e6

    def to_dp(self, pufferfish: float, /) -> float:
        """Nearly everything."""
        return pufferfish * 1e6


def test_an_entry_that_lost_more_than_the_budget_is_found_without_a_prior(folder: Path) -> None:
    """No sound translation is below the per-entry loss, so that no filter has admitted it."""
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 2)
        ledger.charge(charge("1", translation="free"), Free())
        assert ledger.verify().sound
        ledger.charge(charge("62", translation="free"), Free())
        ledger.set_budget("ward", 100)
        (problem,) = ledger.verify().problems
    assert (problem.reason, problem.event) == ("overspent", 4)


def test_a_charge_is_judged_again_under_its_prior(folder: Path) -> None:
    path = folder / "ward.ledger"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2)
        ledger.charge(charge("1.5", translation="same"), IDENTITY)
        ledger.set_budget("ward", 8)
        ledger.set_budget("ward", 8, analyst="ana")
        ledger.charge(charge("1", analyst="ana", translation="same"), IDENTITY)
        assert ledger.verify().unproven is None
        sound = ledger.verify(translation_under=lambda *_: IDENTITY)
        assert sound.sound and sound.unproven == ()
        (problem,) = ledger.verify(translation_under=lambda *_: DOUBLING).problems
        assert (problem.reason, problem.event) == ("overspent", 3)
        unknown = ledger.verify(translation_under=lambda *_: None)
        assert unknown.sound and unknown.unproven == ("ward",)


def test_a_budget_that_is_lowered_later_makes_no_charge_wrong(folder: Path) -> None:
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 2)
        ledger.charge(charge("1.5", translation="same"), IDENTITY)
        ledger.set_budget("ward", 1)
        assert ledger.verify(translation_under=lambda *_: RICH).sound


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
