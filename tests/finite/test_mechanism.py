"""A mechanism is one distribution of outputs per dataset."""

import math
from fractions import Fraction

import numpy as np
import pytest

from takifugu.errors import InvalidMechanism
from takifugu.finite import FiniteMechanism
from takifugu.priors import Tables, Universe

TWO = Universe(("rain", "shine"))


def test_outputs_are_numbered_unless_named() -> None:
    assert FiniteMechanism(TWO, np.full((2, 3), 1 / 3)).outputs == (0, 1, 2)
    assert FiniteMechanism(TWO, np.eye(2), ("yes", "no")).outputs == ("yes", "no")


def test_the_table_is_kept_as_given_and_read_only() -> None:
    rough = FiniteMechanism(TWO, np.array([[0.5, 0.5 + 5e-10], [0.25, 0.75]]))
    assert rough.likelihood[0, 1] == 0.5 + 5e-10  # not normalised behind one's back
    with pytest.raises(ValueError, match="read-only"):
        rough.likelihood[0, 0] = 1


def test_a_function_is_asked_about_every_dataset() -> None:
    bits = Tables.bits(2)
    count = FiniteMechanism.from_function(bits, sum)
    assert count.outputs == (0, 1, 2)
    assert count.likelihood.tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]
    third = FiniteMechanism.from_function(
        TWO, lambda d: {d: Fraction(2, 3), "other": Fraction(1, 3)}, name="third"
    )
    assert third.outputs == ("rain", "other", "shine") and third.name == "third"
    assert third.likelihood.tolist() == [[2 / 3, 1 / 3, 0], [0, 1 / 3, 2 / 3]]


@pytest.mark.parametrize(
    ("table", "outputs", "message"),
    [
        ([[0.5, 0.4], [0.5, 0.5]], (), r"`likelihood` row 0 sums to 0.9; it must sum to 1 along"),
        ([[0.5, 0.5], [math.nan, 1]], (), r"`likelihood` row 1, place 0 is not a number"),
        ([[0.5, 0.5], [1.1, -0.1]], (), r"`likelihood` row 1, place 1 is -0.1; it must be a prob"),
        ([[math.inf, 0], [0.5, 0.5]], (), r"`likelihood` row 0, place 0 is inf"),
        ([[1e-200, 1], [0.5, 0.5]], (), r"`likelihood` row 0, place 0 is 1e-200; it must be 0 or"),
        (np.eye(3), (), r"`likelihood` has shape \(3, 3\); it must have one row for each of the 2"),
        ([0.5, 0.5], (), r"`likelihood` has shape \(2,\); it must have one row for each"),
        (np.full((2, 2, 2), 0.5), (), r"`likelihood` has shape \(2, 2, 2\)"),
        ([[], []], (), r"`likelihood` has shape \(2, 0\); it must hold at least one number"),
        ([["a", "b"], ["c", "d"]], (), r"`likelihood` is not an array of numbers"),
        (
            np.eye(2),
            ("x", "x"),
            r"`outputs` names 2 outputs, or one of them twice; it must name each of the 2 columns",
        ),
        (
            np.eye(2),
            ("x", "y", "z"),
            r"`outputs` names 3 outputs, or one of them twice; it must name each of the 2",
        ),
    ],
)
def test_what_is_no_mechanism_is_refused_in_one_line(
    table: object, outputs: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InvalidMechanism, match=message) as caught:
        FiniteMechanism(TWO, table, outputs)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_a_function_that_answers_with_no_distribution_is_refused() -> None:
    with pytest.raises(InvalidMechanism, match=r"`likelihood` row 0 sums to 0.5"):
        FiniteMechanism.from_function(TWO, lambda _: {"x": 0.5})
    with pytest.raises(InvalidMechanism, match=r"`likelihood` row 0 sums to 0"):
        FiniteMechanism.from_function(TWO, lambda _: {})
