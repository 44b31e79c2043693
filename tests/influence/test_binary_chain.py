"""The paper's closed form beside the true curve."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.influence.chain.binary_curves import binary_chain, printed_binary_curve
from takifugu.influence.chain.chain_curves import chain_curve
from tests.raising import raises

CHANCES = st.floats(0.001, 0.999)


@settings(max_examples=60)
@given(p=CHANCES, q=CHANCES)
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
