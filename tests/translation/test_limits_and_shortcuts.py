"""What is passed on, where another way is taken, and what is answered at a limit."""

from collections.abc import Iterator
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pytest

from takifugu.errors import TooLarge
from takifugu.priors import MarkovChain, Secrets
from takifugu.priors.bayesian_network import BayesianNetwork
from takifugu.priors.random_field import MarkovRandomField
from takifugu.translation import Translation
from takifugu.translation.accounting import translation_table
from takifugu.translation.chain.chain_transport import ChainTransport
from takifugu.translation.gaussian.gaussian_noise import MOST, gdp_delta, gdp_epsilon
from takifugu.translation.network import junction_losses
from takifugu.translation.network.walk_losses import PairwiseWalks, walk_losses
from takifugu.translation.rows.columns_of_row import ColumnsOfRow
from takifugu.translation.rows.row_spending import RowSpending

pytestmark = pytest.mark.nightly

CHAIN = MarkovChain(np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]), length=4)
ROW = BayesianNetwork(
    ("ill", "coughs"),
    (("no", "yes"),) * 2,
    ((), ("ill",)),
    (np.array([0.8, 0.2]), np.array([[0.9, 0.1], [0.25, 0.75]])),
)


def test_from_the_largest_shift_on_gaussian_noise_protects_nothing() -> None:
    assert gdp_epsilon(MOST, 0.5) == inf and gdp_delta(MOST, 1.0) == 1.0
    assert gdp_epsilon(np.nextafter(MOST, 0), 0.5) < inf


def test_the_limits_of_walks_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: dict[str, Any] = {}
    monkeypatch.setattr(PairwiseWalks, "losses", lambda *_, **how: heard.update(how))
    field = MarkovRandomField.ising({0: -0.5, 1: -0.5}, {(0, 1): 1.0})
    walk_losses(field, 0.5, depth=3, visits=7)
    assert heard == {"depth": 3, "visits": 7}


def test_a_row_that_is_too_large_has_no_bound_by_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = RowSpending(Fraction(0), {("ill", "coughs"): Fraction(1, 2)}, {})

    def by_terms() -> float:
        rows = ColumnsOfRow({"prior": ROW}, {"ill": Secrets(), "coughs": Secrets()})
        return rows._by_terms("prior", "ill", spent)

    assert 0 < by_terms() < inf

    def too_large(*_: Any, **__: Any) -> Any:
        raise TooLarge("a row", size=2, limit=1)

    monkeypatch.setattr(junction_losses, "network_losses", too_large)
    assert by_terms() == inf


@pytest.mark.parametrize(("uncertainty", "at_once"), [(0.0, True), (0.1, False)])
def test_losses_of_a_chain_that_rise_are_found_in_one_go(
    uncertainty: float, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[float]] = []
    own = ChainTransport.rising

    def rising(self: ChainTransport, grid: Any) -> Iterator[tuple[float, bool]]:
        asked.append(list(grid))
        return own(self, asked[-1])

    monkeypatch.setattr(ChainTransport, "rising", rising)
    translation = Translation(CHAIN, uncertainty=uncertainty)
    found = list(translation_table._transported(translation, [0.25, 0.5]))
    assert asked == ([[0.25, 0.5]] if at_once else [])
    alone = [translation.bound(epsilon, "transport").value for epsilon in (0.25, 0.5)]
    assert [loss for loss, _ in found] == pytest.approx(alone)
