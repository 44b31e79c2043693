"""What a verification says of charges that were not within their budget."""

from pathlib import Path

from takifugu.ledger import open_ledger
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
