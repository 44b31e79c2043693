"""Laws of entries and the rows back in time, beside exact fractions."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from takifugu.errors import InvalidPrior
from takifugu.numeric import Floats
from takifugu.translation.chain import entry_laws
from takifugu.translation.chain.entry_laws import (
    Law,
    backward_rows,
    law_slack,
    recurrent_law,
    row_slack,
    transition_rows,
)
from tests.raising import raises

pytestmark = pytest.mark.nightly

UNIT = 2.0**-53


def exact(law: Law) -> list[Fraction]:
    """The probabilities up to a common factor."""
    return [
        Fraction(float(m)) * Fraction(2) ** int(e)
        for m, e in zip(law.mantissa, law.exponent, strict=True)
    ]


def shares(values: list[Fraction]) -> list[Fraction]:
    total = sum(values, Fraction(0))
    return [one / total for one in values]


def close(found: Floats, truth: list[Fraction]) -> None:
    for one, other in zip(found.tolist(), truth, strict=True):
        assert one == pytest.approx(float(other), rel=1e-14, abs=0)


ROWS = np.array([[0.5, 0.5, 0.0], [0.125, 0.25, 0.625], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("start", [[0.25, 0.75, 0.0], [0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
def test_rows_back_in_time_are_those_of_bayes(start: list[float]) -> None:
    law, true = Law.of(np.array(start)), [Fraction(one) for one in start]
    assert law.steps == 0 and law.possible.tolist() == [one > 0 for one in start]
    for step in range(1, 4):
        back, after = law.back(ROWS)
        joint = [[true[u] * Fraction(float(ROWS[u, x])) for u in range(3)] for x in range(3)]
        for x in range(3):
            if sum(joint[x]) > 0:
                close(back[x], shares(joint[x]))
            else:
                close(back[x], shares(true))  # any row would do: this law
        true = [sum(row, Fraction(0)) for row in joint]
        assert after.possible.tolist() == [one > 0 for one in true]
        close(np.array([float(one) for one in shares(exact(after))]), shares(true))
        assert after.steps == step
        assert all(m == 0 or 0.5 <= m < 1 for m in after.mantissa.tolist())
        assert all(after.exponent[~after.possible] == 0)
        law = after


def test_probabilities_below_all_floats_are_kept_apart() -> None:
    """Staying in the first state has a probability of 2⁻ⁿ, which no float holds in the end."""
    rows = np.array([[0.5, 0.5], [0.0, 1.0]])
    law = Law.of(np.array([1.0, 0.0]))
    for _ in range(3000):
        back, law = law.back(rows)
    assert law.possible.all() and law.steps == 3000
    assert math.log2(law.mantissa[0]) + law.exponent[0] == pytest.approx(
        math.log2(law.mantissa[1]) + law.exponent[1] - 3000
    )
    assert back.tolist() == [[1.0, 0.0], [0.0, 1.0]]  # a faint entry is 0
    assert law.given(np.array([True, True])).tolist() == [0.0, 1.0]
    assert law.given(np.array([True, False])).tolist() == [1.0, 0.0]


def test_terms_are_left_out_only_where_they_are_negligible() -> None:
    low = np.array([-999, -1000, -1001, 0, 5, -3])
    found = entry_laws._scaled(np.full(6, 0.75), low)
    assert found.tolist() == [0.75 * 2.0**-999, 0.0, 0.0, 0.75, 0.75, 0.75 / 8]
    assert Law.of(np.array([1.0, 2.0**-955])).given(np.array([True, True]))[1] == 2.0**-955
    assert Law.of(np.array([1.0, 2.0**-961])).given(np.array([True, True]))[1] == 0.0
    back, _ = backward_rows(np.array([[2.0**-955, 1.0], [1.0, 2.0**-961]]), np.array([0.5, 0.5]))
    assert back[0, 0] == 2.0**-955 and back[1, 1] == 0.0


@pytest.mark.parametrize("side", [s for s in product((False, True), repeat=3) if any(s[:2])])
def test_a_law_given_a_side(side: tuple[bool, ...]) -> None:
    law = Law.of(np.array([0.25, 0.75, 0.0]))
    weights = [Fraction(1, 4) * side[0], Fraction(3, 4) * side[1], Fraction(0)]
    close(law.given(np.array(side)), shares(weights))


def test_how_far_one_more_step_moves_ratios() -> None:
    law = Law.of(np.array([0.25, 0.75]))
    for other in ([0.5, 0.5], [0.25, 0.75], [2.0**-70, 0.5], [0.125, 0.375]):
        changes = [math.log(b / a) for a, b in zip((0.25, 0.75), other, strict=True)]
        truth = max(changes) - min(changes)
        size = max(map(abs, changes))
        found = law.drift(Law.of(np.array(other)))
        assert found == pytest.approx(truth + (4 * 2 + 8 + 16 * size) * UNIT, rel=1e-14, abs=1e-18)
    assert law.drift(Law.of(np.array([1.0, 0.0]))) == math.inf
    some = Law.of(np.array([0.5, 0.5, 0.0]))
    assert 0 < some.drift(Law.of(np.array([0.25, 0.75, 0.0]))) < math.inf
    assert some.drift(some) == (4 * 3 + 8) * UNIT


def test_what_rounding_may_do() -> None:
    law = Law.of(np.array([0.25, 0.25, 0.5]))
    assert law.slack == 8 * (3 + 4) * 2 * UNIT
    assert law.back(ROWS)[1].slack == 8 * (3 + 4) * 3 * UNIT
    assert row_slack(5) == 4 * (5 + 8) * UNIT
    assert law_slack(5) == 16 * 7**3 * UNIT


def test_rows_are_square_and_divided_by_their_sums() -> None:
    near = [[0.5, 0.5 + 1e-12], [0.25, 0.75]]
    rows = transition_rows(near)
    assert rows.flags.c_contiguous and rows[1].tolist() == [0.25, 0.75]
    assert rows[0].sum() == pytest.approx(1.0, abs=1e-15)
    assert rows[0, 0] == pytest.approx(0.5 / (1 + 1e-12), abs=1e-15)
    for wrong in ([0.5, 0.5], [[0.5, 0.5]], [[[1.0]]]):
        with raises(InvalidPrior) as caught:
            transition_rows(wrong, "rows")
        assert caught.value.field == "rows" and caught.value.reason == "shape"
        assert str(np.shape(wrong)) in str(caught.value)
    with raises(InvalidPrior) as caught:
        transition_rows([[0.5, 0.6], [0.5, 0.5]])
    assert caught.value.field == "transition"


def test_the_stationary_law_needs_every_state_to_lead_to_every_other() -> None:
    rows = np.array([[0.5, 0.5], [0.25, 0.75]])
    assert recurrent_law(rows) == pytest.approx([1 / 3, 2 / 3], rel=1e-14)
    with raises(InvalidPrior) as caught:
        recurrent_law(np.array([[0.5, 0.5], [0.0, 1.0]]))
    assert caught.value.field == "transition" and caught.value.reason == "recurrence"


def test_backward_rows_tell_what_can_happen() -> None:
    back, possible = backward_rows(ROWS[:2, :2] / ROWS[:2, :2].sum(axis=1)[:, None], np.eye(2)[0])
    assert possible.tolist() == [True, True] and back.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    _, some = backward_rows(ROWS, np.array([0.0, 0.0, 1.0]))
    assert some.tolist() == [False, False, True]
