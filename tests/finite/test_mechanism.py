"""A mechanism is one distribution of outputs per dataset."""

import math
from fractions import Fraction

import numpy as np
import pytest

from takifugu.errors import InvalidMechanism
from takifugu.finite import FiniteMechanism
from takifugu.priors import Tables, Universe
from tests.raising import raises

TWO = Universe(("rain", "shine"))


def test_outputs_are_numbered_unless_named() -> None:
    assert FiniteMechanism(TWO, np.full((2, 3), 1 / 3)).outputs == (0, 1, 2)
    assert FiniteMechanism(TWO, np.eye(2), ("yes", "no")).outputs == ("yes", "no")


def test_the_table_is_kept_as_given_and_read_only() -> None:
    rough = FiniteMechanism(TWO, np.array([[0.5, 0.5 + 5e-10], [0.25, 0.75]]))
    assert rough.likelihood[0, 1] == 0.5 + 5e-10  # not normalised behind one's back
    with pytest.raises(ValueError, match="read-only"):
        rough.likelihood[0, 0] = 1


def test_a_function_is_called_on_every_dataset() -> None:
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
    ("table", "outputs", "field", "facts"),
    [
        ([[0.5, 0.4], [0.5, 0.5]], (), "likelihood", ("0", "0.9", "1")),
        ([[0.5, 0.5], [math.nan, 1]], (), "likelihood", ("1", "0")),
        ([[0.5, 0.5], [1.1, -0.1]], (), "likelihood", ("1", "-0.1")),
        ([[math.inf, 0], [0.5, 0.5]], (), "likelihood", ("0",)),
        ([[1e-200, 1], [0.5, 0.5]], (), "likelihood", ("0", "1e-200")),
        (np.eye(3), (), "likelihood", ("3", "2")),
        ([0.5, 0.5], (), "likelihood", ("2",)),
        (np.full((2, 2, 2), 0.5), (), "likelihood", ("2",)),
        ([[], []], (), "likelihood", ("2", "0")),
        ([["a", "b"], ["c", "d"]], (), "likelihood", ()),
        (
            np.eye(2),
            ("x", "x"),
            "outputs",
            ("2",),
        ),
        (
            np.eye(2),
            ("x", "y", "z"),
            "outputs",
            ("3", "2"),
        ),
    ],
)
def test_what_is_no_mechanism_is_refused_in_one_line(
    table: object, outputs: tuple[str, ...], field: str, facts: tuple[str, ...]
) -> None:
    with raises(InvalidMechanism, field=field) as caught:
        FiniteMechanism(TWO, table, outputs)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message and all(fact in message for fact in facts)


def test_a_function_that_answers_with_no_distribution_is_refused() -> None:
    with raises(InvalidMechanism, field="likelihood"):
        FiniteMechanism.from_function(TWO, lambda _: {"x": 0.5})
    with raises(InvalidMechanism, field="likelihood"):
        FiniteMechanism.from_function(TWO, lambda _: {})
