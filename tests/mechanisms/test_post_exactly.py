"""Post-processing against plain slow computations with whole numbers and fractions."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from takifugu.errors import TakifuguError
from takifugu.mechanisms import post
from tests.raising import raises

LISTS = ([5, 3, -4], [0], [7], [2, 2, 2], [9, -1, 0, 4], [-5, -7, -5], [1, 3, 3, 3], [4, 0, 4, 1])


def nearest(values: list[int], total: int) -> list[Fraction]:
    """max(x − τ, 0) with the τ that makes it add up, sought over how many stay above 0."""
    found = []
    for k in range(1, len(values) + 1):
        kept = sorted(values, reverse=True)[:k]
        tau = Fraction(sum(kept) - total, k)
        point = [max(x - tau, Fraction(0)) for x in values]
        if sum(point) == total:
            found.append(point)
    assert all(point == found[0] for point in found)
    return found[0]


@pytest.mark.parametrize("values", LISTS, ids=str)
@pytest.mark.parametrize("total", [0, 1, 2, 6, 11, 2**31, 2**33 + 1, 2**61])
def test_the_nearest_point_with_a_total_is_exact(values: list[int], total: int) -> None:
    above, k = post.nearest_with_total(values, total)
    assert [Fraction(x, k) for x in above] == nearest(values, total)
    assert all(type(x) is int for x in above) and sum(above) == k * total
    shifted = [x - 2**60 for x in values]
    assert post.nearest_with_total(shifted, total) == (above, k)


@pytest.mark.parametrize("total", [2**31 - 1, 2**31, 2**60, 2**61])
def test_the_nearest_point_of_many_far_apart_is_exact(total: int) -> None:
    """Sums of these are beyond what 64 bits hold."""
    for step in (2**20 + 7, 2**57 - 9, 2**58 + 3):
        values = [2**61 - step * i + i * i for i in range(16)]
        above, k = post.nearest_with_total(values, total)
        assert [Fraction(x, k) for x in above] == nearest(values, total)


@pytest.mark.parametrize("values", LISTS, ids=str)
@pytest.mark.parametrize("total", [0, 1, 2, 6, 11, 2**33 + 1])
def test_whole_numbers_with_a_total_are_remainders_to_the_first(
    values: list[int], total: int
) -> None:
    point = nearest(values, total)
    expected = [x.numerator // x.denominator for x in point]
    for i in [i for i, x in enumerate(point) if x > 0][: total - sum(expected)]:
        expected[i] += 1
    found = post.whole_with_total(values, total)
    assert found.tolist() == expected
    assert found.dtype == np.int64 and found.sum() == total


@pytest.mark.parametrize(
    ("values", "total", "expected"),
    [
        ([1.5, 1.5], 3, [2, 1]),  # the first of equal remainders
        ([1.2, 1.8], 3, [1, 2]),
        ([0.4, 2.9, 0.7], 4, [0, 3, 1]),
        ([10.0, -3.0, 1.0], 4, [4, 0, 0]),
        ([2.0, 3.0], 5, [2, 3]),
        ([2.25, 3.25], 9, [4, 5]),
        ([-1.0, -2.0], 3, [2, 1]),
        ([0.5], 0, [0]),
        ([0.0, 0.0], 0, [0, 0]),
        ([0.1, 0.2, 0.7], 1, [0, 0, 1]),
        ([3.0, 1.0, 0.5], 2, [2, 0, 0]),
        ([5.0, 3.0, 1.0], 2, [2, 0, 0]),  # the second is level with the shift
        ([0.3, 0.3, 0.3], 2, [1, 1, 0]),
        ([0.6, 1.1, 2.3], 5, [1, 1, 3]),
    ],
)
def test_whole_numbers_near_others_have_the_largest_remainders_rounded_up(
    values: list[float], total: int, expected: list[int]
) -> None:
    found = post.whole_with_total(values, total)
    assert found.tolist() == expected
    assert found.dtype == np.int64


def projected(x: list[float], spread: list[float], A: list[list[float]]) -> tuple[Any, Any]:
    """The least squares estimate by its normal equations; needs equations of full rank."""
    V, matrix = np.diag(np.square(spread)), np.array(A)
    gain = V @ matrix.T @ np.linalg.inv(matrix @ V @ matrix.T)
    left = np.diag(V - gain @ matrix @ V)
    return np.array(x) - gain @ (matrix @ np.array(x)), np.sqrt(np.maximum(left, 0))


def test_numbers_known_exactly_stay_as_they_are() -> None:
    found = post.consistent([1.0, 2.0], [0.0, 0.0], [1.0, 1.0])  # and one equation is a list
    assert found.values.tolist() == [1.0, 2.0]
    assert found.deviation.tolist() == [0.0, 0.0]
    twice = post.consistent([4.0, 2.0], [1.0, 1.0], [[1.0, -1.0], [2.0, -2.0]])
    assert twice.values == pytest.approx([3.0, 3.0])


def test_a_table_and_its_margins_are_projected_together() -> None:
    cells, rows, columns = [[1.0, 2.0, 0.5], [3.0, 4.0, 9.0]], [4.0, 17.5], [4.2, 5.5, 10.0]
    found = post.marginals(
        cells, rows, columns, cell_deviation=1.0, row_deviation=2.0, column_deviation=0.5
    )
    x = [*cells[0], *cells[1], *rows, *columns]
    spread = [1.0] * 6 + [2.0] * 2 + [0.5] * 3
    A = np.zeros((5, 11))
    for i, j in product(range(2), range(3)):
        A[i, 3 * i + j] = A[2 + j, 3 * i + j] = 1
    for i in range(5):
        A[i, 6 + i] = -1
    values, deviation = projected(x, spread, A.tolist())
    assert found.values == pytest.approx(values[:6].reshape(2, 3))
    assert found.deviation == pytest.approx(deviation[:6].reshape(2, 3))


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: post.consistent([1.0, 2.0], [1.0], [[1.0, 1.0]]), "equations"),
        (lambda: post.consistent([1.0, 2.0], [1.0, 1.0], [[1.0]]), "equations"),
        (lambda: post.consistent([[1.0, 2.0]], [[1.0, 1.0]], [[1.0, 1.0]]), "equations"),
        (lambda: post.consistent([1.0, 2.0], [1.0, -1.0], [[1.0, 1.0]]), "deviations"),
        (lambda: margins([[1.0]], [1.0, 2.0], [1.0]), "cells"),
        (lambda: margins([[1.0]], [1.0], [1.0, 2.0]), "cells"),
        (lambda: margins([1.0], [1.0], [1.0]), "cells"),
        (lambda: post.whole_with_total([[1.0]], 3), "values"),
        (lambda: post.rounded([1.0, float("inf")]), "values"),
        (lambda: post.rounded([]), "values"),
        (lambda: post.rounded(["a"]), "values"),
        (lambda: post.rounded([1.0], step=0), "step"),
        (lambda: post.at_least_zero([float("nan")]), "values"),
        (lambda: post.ranks([1, 2], scale=0.0), "scale"),
        (lambda: post.ranks([1, 2], scale=1.0, places=3), "k"),
        (lambda: post.rounded([[1.0], [1.0, 2.0]]), "values"),
        (lambda: post.ranks([[1, 2]], scale=1.0), "noisy"),
    ],
)
def test_what_does_not_fit_is_named(call: Any, field: str) -> None:
    with raises(TakifuguError, field=field):
        call()


def margins(cells: Any, rows: Any, columns: Any) -> post.Consistent:
    return post.marginals(
        cells, rows, columns, cell_deviation=1, row_deviation=1, column_deviation=1
    )


@pytest.mark.parametrize("total", [-1, 1.5, True, None])
def test_a_total_is_a_whole_number(total: Any) -> None:
    for values in ([1, 2], [1.0, 2.0]):
        with raises(TakifuguError, field="total"):
            post.whole_with_total(values, total)
    with raises(TakifuguError, field="total"):
        post.nearest_with_total([1, 2], total)


def test_nothing_in_all_is_nothing_each() -> None:
    for values in ([5], [5, 3], [-2, 0, 0], [4, 4]):
        assert post.nearest_with_total(values, 0) == ([0] * len(values), 1)
