"""What entries have lost, what would be accepted, and budgets with a δ kept by a filter."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from takifugu.costs.losses import Approximate, Concentrated, Loss, Pure, Total
from takifugu.errors import BudgetExceeded, NoBudget
from takifugu.ledger import Groups, Ledger, Window, open_ledger
from takifugu.ledger.limits import to_pufferfish
from takifugu.mechanisms import ThresholdedHistogram
from takifugu.priors import MarkovChain
from takifugu.translation.accounting.tables import tabulate
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.translation import Translation
from tests.ledger.charges import DOUBLING, charge

HOME = Translation(MarkovChain(np.array([[0.8, 0.2], [0.3, 0.7]]), length=4))
TABLE = tabulate(HOME, losses=(0.01, 8.0), share=0.05)
MICRO = Fraction(1, 10**6)


def accepts(ledger: Ledger, loss: Loss, translation: LossTranslation, **entries: Any) -> bool:
    standings = ledger.standings("ward", translation, **entries)
    return all(standing.admits(loss) for standing in standings)


def spent_after(ledger: Ledger, loss: Loss, translation: LossTranslation, **entries: Any) -> float:
    (whole,) = ledger.standings("ward", translation, **entries)
    return whole.spent_after(loss)


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with open_ledger(url) as made:
        made.set_budget("ward", 3)
        yield made


def test_what_was_lost_is_told_by_window_and_group_exactly(ledger: Ledger) -> None:
    assert ledger.lost("ward") == (Total(),)
    ledger.charge(charge("0.1", (0, 10)), DOUBLING)
    ledger.charge(charge("0.2", (5, 20), ["FR"]), DOUBLING)
    ledger.charge(charge("0.4", analyst="Eve"), DOUBLING)
    groups = Groups(["country"], [("FR",)])
    tenths = Fraction(1, 10)
    assert ledger.lost("ward") == (Total(7 * tenths),)
    assert ledger.lost("ward", window=Window(0, 5)) == (Total(5 * tenths),)
    assert ledger.lost("ward", window=Window(10, 20), groups=groups) == (Total(6 * tenths),)
    assert ledger.lost("ward", window=Window(20, 30)) == (Total(4 * tenths),)
    assert ledger.lost("ward", analyst="Eve") == (Total(4 * tenths),)
    assert ledger.lost("ward", analyst="Sam") == (Total(),)
    with pytest.raises(NoBudget):
        ledger.lost("elsewhere")


def test_what_would_be_spent_and_accepted_is_what_happens(ledger: Ledger) -> None:
    ledger.charge(charge("0.5", (0, 10)), DOUBLING)
    for epsilon, window in (("0.25", (20, 30)), ("0.9", (0, 10)), ("1", (5, 12)), ("2", None)):
        cells = None if window is None else Window(*window)
        head = ledger.head()
        accepted = accepts(ledger, Pure(epsilon), DOUBLING, window=cells)
        foretold = spent_after(ledger, Pure(epsilon), DOUBLING, window=cells)
        assert ledger.head() == head
        try:
            ledger.charge(charge(epsilon, window), DOUBLING)
            assert accepted and ledger.spent("ward", DOUBLING) == foretold
        except BudgetExceeded:
            assert not accepted and foretold > 3


def test_an_analysts_budget_decides_what_is_accepted_too(ledger: Ledger) -> None:
    ledger.set_budget("ward", 1, analyst="Eve")
    assert accepts(ledger, Pure(1), DOUBLING)
    assert not accepts(ledger, Pure(1), DOUBLING, analyst="Eve")
    assert accepts(ledger, Pure("0.5"), DOUBLING, analyst="Eve")
    with pytest.raises(NoBudget):
        ledger.standings("elsewhere", DOUBLING)


@pytest.mark.parametrize("translation", [HOME, TABLE], ids=["translation", "table"])
def test_a_budget_with_a_delta_admits_every_currency_and_is_never_overspent(
    ledger: Ledger, translation: Translation
) -> None:
    ledger.set_budget("ward", 3, delta=MICRO)
    mark, spent = translation.fingerprint, 0.0
    losses: list[Loss] = [Concentrated("0.002"), Pure("0.1"), Approximate("0.05", "1e-9")]
    for loss in losses * 3:
        after = spent_after(ledger, loss, translation)
        ledger.charge(charge(loss, translation=mark), translation)
        assert ledger.spent("ward", translation) == after > spent
        spent = after
    assert spent <= 3
    most = ledger.remaining("ward", translation, like=Concentrated(0))
    assert most > 0 and accepts(ledger, Concentrated(most), translation)
    assert not accepts(ledger, Concentrated(most + MICRO), translation)
    ledger.charge(charge(Concentrated(most), translation=mark), translation)
    assert ledger.spent("ward", translation) <= 3
    for loss in losses:
        with pytest.raises(BudgetExceeded):
            ledger.charge(charge(loss, translation=mark), translation)
    assert ledger.spent("ward", translation) <= 3


def test_losses_in_rho_add_up_to_less_than_the_same_noise_in_epsilon(ledger: Ledger) -> None:
    """Gaussian noise of deviation 10 on a count, a hundred times, at δ = 10⁻⁶."""
    ledger.set_budget("ward", 50, delta=MICRO)
    for _ in range(100):
        ledger.charge(charge(Concentrated("0.005"), translation=HOME.fingerprint), HOME)
    assert ledger.spent("ward", HOME) < float(HOME.to_pufferfish(100 * 2**0.5 / 10)) / 1.5


def test_a_small_epsilon_with_a_delta_is_not_read_apart_from_what_others_lost() -> None:
    """Alone it may use a larger share of δ than beside entries that lost more ε."""
    small, large = Total(Fraction(1, 1000), Fraction("5e-8")), Total(Fraction(1, 4))
    sticky = Translation(MarkovChain(np.array([[0.9, 0.1], [0.1, 0.9]]), length=20))
    alone = [to_pufferfish(sticky, (one,), MICRO) for one in (small, large)]
    assert alone == pytest.approx([0.00803, 1.8446], rel=1e-3)
    most = sticky.filter(large.epsilon, Fraction(alone[1]), MICRO)
    assert most.admits(large) and not most.admits(small)  # so that nothing proves 1.8446 for both
    assert to_pufferfish(sticky, (small, large), MICRO) > alone[1]
    less = Total(Fraction(1, 1000), Fraction("2e-8"))
    assert most.admits(less) and to_pufferfish(sticky, (less, large), MICRO) == alone[1]


def test_without_a_delta_nothing_but_epsilon_is_accepted(ledger: Ledger) -> None:
    for loss in (Concentrated("0.0001"), Approximate("0.1", "1e-9")):
        assert not accepts(ledger, loss, HOME)
        with pytest.raises(BudgetExceeded):
            ledger.charge(charge(loss, translation=HOME.fingerprint), HOME)


def test_a_thresholded_histogram_is_admitted_where_there_is_a_delta(ledger: Ledger) -> None:
    made = ThresholdedHistogram.calibrated(epsilon=1, delta=1e-7, translation=HOME)
    ledger.set_budget("ward", 3, delta=MICRO)
    ledger.charge(charge(made.loss, translation=HOME.fingerprint), HOME)
    assert 0.5 < ledger.spent("ward", HOME) <= 1
    ledger.set_budget("ward", 3)
    assert ledger.spent("ward", HOME) == np.inf  # a δ was spent that is no longer allowed
    with pytest.raises(BudgetExceeded):
        ledger.charge(charge("0.1", translation=HOME.fingerprint), HOME)
