"""Arrays that cannot be written, and arrays that are refused."""

import math
from fractions import Fraction

import numpy as np
import pytest

from takifugu._core.numeric import distribution, frozen
from takifugu.errors import InvalidMechanism, InvalidPrior
from tests.raising import raises


def test_frozen_arrays_are_copies_that_cannot_be_written() -> None:
    given = np.array([1.0, -0.0])
    kept = frozen(given)
    given[0] = 5.0
    assert kept[0] == 1.0 and math.copysign(1, kept[1]) == 1
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 2.0


@pytest.mark.parametrize(
    ("values", "reason", "given"),
    [
        ([0.5, 0.4], "sum", "sums to 0.9"),
        ([[0.5, 0.5], [0.9, 0.2]], "sum", "row 1 sums to 1.1"),
        ([[0.5, 0.5], [math.nan, 1]], "nan", "row 1, place 0 is not a number"),
        ([1.5, -0.5], "range", "place 1 is -0.5"),
        ([math.inf, 0.0], "range", "place 0 is inf"),
        ([1.0, 1e-200], "tiny", "place 1 is 1e-200"),
        ([], "shape", "has shape (0,)"),
        (0.5, "shape", "has shape ()"),
        (["a", "b"], "type", "is not an array of numbers"),
        ([[1.0], [0.5, 0.5]], "type", "is not an array of numbers"),
        ([1j, 0], "type", "is not an array of numbers"),
    ],
)
def test_what_is_not_a_distribution_is_refused(values: object, reason: str, given: str) -> None:
    for problem in (InvalidPrior, InvalidMechanism):
        with raises(problem, field="p", reason=reason, given=given) as caught:
            distribution(values, "p", problem)  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)


def test_a_distribution_may_be_off_by_the_stated_tolerance() -> None:
    assert distribution([0.5, 0.5 + 0.9e-9], "p", InvalidPrior).sum() > 1
    with pytest.raises(InvalidPrior):
        distribution([0.5, 0.5 + 1.1e-9], "p", InvalidPrior)
    thirds = np.array([Fraction(1, 3), Fraction(2, 3)], dtype=object)
    assert distribution(thirds, "p", InvalidPrior)[0] == 1 / 3
