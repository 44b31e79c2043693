"""Bounds on ρ from counts, against quadrature and against the law of the noise itself."""

from math import inf, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.auditing.loss_bounds import (
    ORDERS,
    epsilon_below,
    probability_above,
    probability_below,
    renyi,
    rho_below,
)
from takifugu.errors import UnsoundRequest
from tests.raising import raises

pytestmark = pytest.mark.nightly

inside = st.floats(1e-6, 1 - 1e-6)


def plain(p: float, q: float, order: float) -> float:
    return log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (
        order - 1
    )


@given(p=inside, q=inside, order=st.sampled_from([o for o in ORDERS if o >= 1.25]))
def test_a_divergence_is_that_of_the_formula(p: float, q: float, order: float) -> None:
    assert renyi(p, q, order) == pytest.approx(plain(p, q, order), rel=1e-9, abs=1e-12)


def test_a_divergence_at_the_ends() -> None:
    assert renyi(0.5, 0.0, 2.0) == inf
    assert renyi(0.0, 0.5, 2.0) == pytest.approx(log(2))
    assert renyi(0.3, 0.3, 1.01) == pytest.approx(0, abs=1e-12)


@settings(max_examples=50)
@given(p=inside, q=inside, order=st.sampled_from(ORDERS), more=st.floats(0, 1))
def test_it_grows_as_the_coins_move_apart(p: float, q: float, order: float, more: float) -> None:
    low, high = sorted((p, q))
    further = high + more * (1 - high) * 0.999
    assert renyi(further, low, order) >= renyi(high, low, order) - 1e-9
    assert renyi(low, further, order) >= renyi(low, high, order) - 1e-9


def test_what_the_true_noise_does_is_never_above_its_rho() -> None:
    """Gaussian noise of deviation 1 and a shift of μ is ρ = μ²/2: any event, exactly counted."""
    from scipy.stats import norm

    for mean in (0.1, 0.5, 1.0, 2.0, 4.0):
        for cut in np.linspace(-4, 6, 41):
            p, q = norm.sf(cut - mean), norm.sf(cut)
            for order in ORDERS:
                assert renyi(p, q, order) / order <= mean**2 / 2 + 1e-12
                assert renyi(q, p, order) / order <= mean**2 / 2 + 1e-12


def test_a_bound_is_that_of_the_two_ends() -> None:
    found = rho_below(840, 1_000, 160, 1_000, confidence=0.99)
    low = float(probability_below(840, 1_000, error=0.005))
    high = float(probability_above(160, 1_000, error=0.005))
    assert found == pytest.approx(
        max(plain(*ends, o) / o for ends in ((low, high), (high, low)) for o in ORDERS), rel=1e-6
    )
    assert 0.8 < found < 0.68 * log(0.84 / 0.16)  # less than the divergence of what was counted


def test_nothing_is_found_where_nothing_differs() -> None:
    assert rho_below(500, 1_000, 500, 1_000, confidence=0.99) == 0
    assert rho_below(0, 1_000, 1_000, 1_000, confidence=0.99) == 0
    assert rho_below(1_000, 1_000, 0, 1_000, confidence=0.99) > 2
    with raises(UnsoundRequest, field="confidence"):
        rho_below(1, 2, 1, 2, confidence=1.0)


@pytest.mark.parametrize("bound", [rho_below, epsilon_below])
@pytest.mark.parametrize(
    ("counts", "field"),
    [
        ((3, 2, 0, 2), "hits"),
        ((0, 2, 3, 2), "hits"),
        ((-1, 2, 0, 2), "hits"),
        ((1, 2, -1, 2), "hits"),
        ((float("nan"), 2, 0, 2), "hits"),
        ((0, 0, 0, 2), "draws"),
        ((1, 2, 0, 0), "draws"),
        ((1, 2, 0, float("nan")), "draws"),
        ((1, -2, 0, 2), "draws"),
    ],
)
def test_counts_that_cannot_be_are_refused(bound: Any, counts: Any, field: str) -> None:
    with raises(UnsoundRequest, field=field):
        bound(*counts, confidence=0.99)


def test_one_impossible_count_among_others_is_refused() -> None:
    with raises(UnsoundRequest, field="hits", given=3.0):
        epsilon_below([1, 3], 2, 0, 2, confidence=0.99)
