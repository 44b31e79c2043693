"""Arrays that cannot be written, and arrays that are refused."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import strategies as st

from takifugu.errors import InvalidMechanism, InvalidPrior
from takifugu.numeric import LEAST, distribution, frozen

chances = st.one_of(st.just(0.0), st.floats(LEAST, 1.0))


def test_frozen_arrays_are_copies_that_cannot_be_written() -> None:
    given = np.array([1.0, -0.0])
    kept = frozen(given)
    given[0] = 5.0
    assert kept[0] == 1.0 and math.copysign(1, kept[1]) == 1
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 2.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, 0.4], r"`p` sums to 0.9; it must sum to 1$"),
        ([[0.5, 0.5], [0.9, 0.2]], r"`p` row 1 sums to 1.1; it must sum to 1 along every row"),
        ([[0.5, 0.5], [math.nan, 1]], r"`p` row 1, place 0 is not a number; it must hold numbers"),
        ([1.5, -0.5], r"`p` place 1 is -0.5; it must be a probability, 0 or more"),
        ([math.inf, 0.0], r"`p` place 0 is inf"),
        ([1.0, 1e-200], r"`p` place 1 is 1e-200; it must be 0 or at least 3.05e-151"),
        ([], r"`p` has shape \(0,\); it must hold at least one number"),
        (0.5, r"`p` has shape \(\); it must hold at least one number"),
        (["a", "b"], r"`p` is not an array of numbers; it must hold one number in each place"),
        ([[1.0], [0.5, 0.5]], r"`p` is not an array of numbers"),
        ([1j, 0], r"`p` is not an array of numbers"),
    ],
)
def test_what_is_no_distribution_is_refused_in_one_line(values: object, message: str) -> None:
    for problem in (InvalidPrior, InvalidMechanism):
        with pytest.raises(problem, match=message) as caught:
            distribution(values, "p", problem)  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)
        assert caught.value.field == "p"


def test_a_distribution_may_be_off_by_the_stated_tolerance() -> None:
    assert distribution([0.5, 0.5 + 0.9e-9], "p", InvalidPrior).sum() > 1
    with pytest.raises(InvalidPrior):
        distribution([0.5, 0.5 + 1.1e-9], "p", InvalidPrior)
    thirds = np.array([Fraction(1, 3), Fraction(2, 3)], dtype=object)
    assert distribution(thirds, "p", InvalidPrior)[0] == 1 / 3
