"""Outputs of every shape are read, and what differs in them is found."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from takifugu.auditing import Comparison, audit
from takifugu.auditing.output_rows import UNSEEN, reader
from takifugu.errors import Malformed
from tests.raising import raises


def test_rows_hold_numbers_and_codes() -> None:
    outputs = [(1, "a", np.array([0.5, 2])), (3, "b", np.array([1.5, 4]))]
    read = reader(outputs)
    assert read.numbers == (0, 2, 3)
    assert read.rows(outputs).tolist() == [[1, 0, 0.5, 2], [3, 1, 1.5, 4]]
    strange = read.rows([("x", "c", np.array([1, 2])), (1,), (1, [], np.array([1, 2]))])
    assert np.isnan(strange[0, 0])
    assert strange[0, 1] == strange[1, 1] == strange[2, 1] == UNSEEN
    assert np.isnan(strange[1, 0])


def test_arrays_are_read_as_they_are() -> None:
    numbers = np.arange(12).reshape(2, 3, 2)
    assert reader(numbers, numbers).rows(numbers).shape == (2, 6)
    assert reader([True, False]).rows([True, False]).tolist() == [[1], [0]]
    assert reader([Fraction(1, 2), 10**400]).rows([Fraction(1, 2), 10**400, -(10**400)])[
        :, 0
    ].tolist() == [0.5, np.inf, -np.inf]


def test_outputs_of_different_length_are_filled_up() -> None:
    read = reader([[4, 5], [6], []])
    assert read.ragged
    rows = read.rows([[4, 5], [6], [], [1, 2, 3]])
    assert rows[:, 0].tolist() == [2, 1, 0, 3]
    assert np.isnan(rows[1, 2])
    assert np.isnan(rows[2, 1])
    assert rows[3, 2] == 2  # what is too long is cut; its length remains


def test_what_cannot_be_read_is_refused_without_showing_it() -> None:
    with raises(Malformed, field="outputs") as caught:
        reader([{"patient": 7}])
    assert "patient" not in str(caught.value)
    with raises(Malformed, field="outputs"):
        reader([(), ()])
    with raises(Malformed, field="outputs"):
        reader(np.zeros((2, 200_000)))


def pick(rng: np.random.Generator, values: list[Any], law: list[float]) -> Callable[[int], Any]:
    return lambda size: [values[i] for i in rng.choice(len(values), size, p=law)]


@pytest.mark.parametrize(
    "values",
    [
        ["ward", "home", "work"],
        [None, 2, 3],
        [("ward", 1), ("home", 2), ("work", 1)],
        [[1], [1, 2], []],
        [frozenset({1}), frozenset({2}), frozenset()],
        [float("nan"), float("inf"), 0.0],
        [np.array([1, 0]), np.array([0, 1]), np.array([0, 0])],
    ],
)
def test_a_leak_is_found_in_any_kind_of_output(values: list[Any]) -> None:
    rng = np.random.default_rng(1)
    first, second = pick(rng, values, [0.6, 0.2, 0.2]), pick(rng, values, [0.1, 0.2, 0.7])
    found = audit(Comparison(first, second), 1.0, samples=4_000)
    assert found.refuted
    assert audit(Comparison(first, second), 0.0, samples=500, confidence=1 - 1e-10).lower <= np.log(
        7
    )


def test_a_leak_in_the_joint_value_alone_is_found() -> None:
    """Both answers are fair coins on either side; together they are equal, or they are not."""
    rng = np.random.default_rng(2)

    def coins(equal: float) -> Callable[[int], np.ndarray]:
        def draw(size: int) -> np.ndarray:
            one = rng.integers(0, 2, size)
            return np.stack([one, np.where(rng.random(size) < equal, one, 1 - one)], 1)

        return draw

    found = audit(Comparison(coins(0.9), coins(0.1)), 1.0, samples=4_000)
    assert found.refuted


def test_outputs_that_never_repeat_do_not_fool_the_choice() -> None:
    """Twenty continuous answers: every row is new, so no row may count as evidence."""
    rng = np.random.default_rng(3)

    def noise(shift: float) -> Callable[[int], np.ndarray]:
        return lambda size: rng.laplace(0, 1, (size, 20)) + shift * (np.arange(20) == 11)

    assert audit(Comparison(noise(3.0), noise(0.0)), 1.0, samples=6_000).refuted
    true_claim = audit(Comparison(noise(0.0), noise(0.0)), 0.0, samples=6_000, confidence=1 - 1e-10)
    assert not true_claim.refuted
