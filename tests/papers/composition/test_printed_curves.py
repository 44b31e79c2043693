"""The paper's closed form beside the true curve."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.influence.chain.chain_curves import chain_curve
from takifugu.influence.curve import InfluenceCurve
from takifugu.papers.composition.tables_and_figures.curve_figures import (
    binary_chain,
    misspecified,
    printed_binary_curve,
)
from tests.influence.test_curve import curves
from tests.raising import raises

PROBABILITIES = st.floats(0.001, 0.999)


@settings(max_examples=60)
@given(p=PROBABILITIES, q=PROBABILITIES)
def test_the_printed_form_is_an_upper_bound_and_tight_for_sticky_chains(p: float, q: float) -> None:
    printed = printed_binary_curve(p, q, max_exposed=12)
    true = chain_curve(binary_chain(p, q), max_exposed=12, symmetric=True)
    assert (printed.leak[0] >= true.pooled() - 1e-9).all()
    if p + q >= 1:
        np.testing.assert_allclose(printed.leak[0], true.pooled(), atol=1e-8)


@pytest.mark.parametrize(
    ("p", "q", "b", "printed", "true"),
    [(0.1, 0.3, 2, 2.77259, 2.63906), (0.01, 0.39, 5, 1.25442, 1.23611)],
)
def test_where_the_printed_form_is_not_tight(
    p: float, q: float, b: int, printed: float, true: float
) -> None:
    closed = printed_binary_curve(p, q, max_exposed=b)
    both = chain_curve(binary_chain(p, q), max_exposed=b, symmetric=True)
    assert float(closed.leak[0, -1]) == pytest.approx(printed, abs=5e-6)
    assert float(both.pooled()[-1]) == pytest.approx(true, abs=5e-6)
    assert not closed.exact.any()


def test_one_sided_splits_beat_the_printed_form() -> None:
    closed = printed_binary_curve(0.9, 0.9, max_exposed=9, length=9)
    assert float(closed.leak[0, 4]) == pytest.approx(2.26175, abs=5e-6)
    true = chain_curve(binary_chain(0.9, 0.9, length=9)).pooled()
    assert float(true[4]) == pytest.approx(2.19722, abs=5e-6)
    assert closed.leak[0, -1] == 0


def test_what_the_form_is_not_for_is_refused() -> None:
    for p in (0.0, 1.0, float("nan")):
        with raises(InvalidPrior, field="stay_0"):
            printed_binary_curve(p, 0.5, max_exposed=3)
    with raises(UnsoundRequest, field="max_exposed"):
        printed_binary_curve(0.5, 0.5, max_exposed=4, length=3)


def test_the_paper_s_bound_on_a_wrong_curve_is_what_it_prints() -> None:
    """ε + a₂(b*) − a₁(b*), with b* = 3 the point that calibrates: (2 − .5)/3 is the largest."""
    assumed = InfluenceCurve(np.array([1, 3, 9]), np.array([[1.6, 0.5, 0.0]]), 9)
    actual = InfluenceCurve(np.array([1, 3, 9]), np.array([[3.0, 1.25, 0.0]]), 9)
    result = misspecified(assumed, actual, 2.0)
    assert result.dp == pytest.approx(0.5)
    assert result.bound == pytest.approx(2.0 + 1.25 - 0.5)
    assert result.achieved == pytest.approx(0.5 * 3 + 1.25)
    better = misspecified(actual, assumed, 2.0)  # what holds leaks less: the bound is below ε
    assert better.bound == pytest.approx(2.0 + 0.5 - 1.25) and better.bound < 2.0


@given(assumed=curves(), actual=curves(), epsilon=st.floats(0.1, 10))
def test_a_wrong_curve_costs_at_most_what_the_paper_says(
    assumed: InfluenceCurve, actual: InfluenceCurve, epsilon: float
) -> None:
    try:
        result = misspecified(assumed, actual, epsilon)
    except UnsoundRequest:
        assert (assumed.pooled() >= epsilon * (1 - 1e-9)).all()
        return
    assert result.achieved <= result.bound or result.bound == float("inf")
    assert result.achieved == float(actual.to_pufferfish(result.dp))
