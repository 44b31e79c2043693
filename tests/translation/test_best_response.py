"""The best factor of one entry: against every choice of levels, and proven to obey its cost."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from takifugu.numeric import Floats
from takifugu.translation.chain.best_response import BestResponse, _scaled, two_levels
from takifugu.translation.chain.transport_steps import off_diagonal

pytestmark = pytest.mark.nightly

UNIT = 2.0**-53
WEIGHTS = [
    ([[0.2, 0.5, 0.3]], [[0.4, 0.1, 0.5]]),
    ([[0.0, 0.5, 0.5], [0.6, 0.2, 0.2]], [[0.3, 0.0, 0.7], [0.1, 0.1, 0.8]]),
    ([[0.3, 0.3, 0.4]], [[0.3, 0.3, 0.4]]),
    ([[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]),
    ([[1e-3, 2e-3, 4e-3], [5.0, 1.0, 2.0]], [[2.0, 1.0, 8.0], [1e-4, 3e-4, 1e-4]]),
]


def quotient(a: Floats, b: Floats, g: Floats) -> float:
    return float((a * g).sum() / (b * g).sum())


@pytest.mark.parametrize("high", [1.5, 20.0])
@pytest.mark.parametrize(("one", "other"), WEIGHTS)
def test_two_levels_are_the_best_of_all(
    one: list[list[float]], other: list[list[float]], high: float
) -> None:
    a, b = np.array(one), np.array(other)
    found = two_levels(a, b, high)
    assert found.shape == a.shape and set(found.ravel().tolist()) <= {1.0, high}
    for row in range(len(a)):
        choices = [np.array(g) for g in product((1.0, high), repeat=a.shape[1])]
        best = max(quotient(a[row], b[row], g) for g in choices)
        assert quotient(a[row], b[row], found[row]) == pytest.approx(best, rel=1e-12)
        assert not (found[row] == high).all()


def test_levels_that_reveal_nothing_are_ones() -> None:
    same = np.array([[0.3, 0.7]])
    assert two_levels(same, same, 2.0).min() == 1.0
    assert two_levels(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), 2.0).tolist() == [[2.0, 1.0]]
    # what neither law has may have either level
    found = two_levels(np.array([[0.0, 0.2, 0.8]]), np.array([[0.0, 0.6, 0.4]]), 3.0)
    assert found[0, 1:].tolist() == [1.0, 3.0]
    # one value is no secret, and neither is a factor of all that only rounding prefers
    assert two_levels(np.array([[0.5]]), np.array([[0.5]]), 2.0).tolist() == [[1.0]]
    for part in range(1, 40):
        law = np.array([[part / 41, 0.1, 1 - part / 41]])
        assert two_levels(law / 3, law, 1.7).min() == 1.0


def test_a_change_that_is_free_one_way_is_free_both_ways() -> None:
    cost = np.array([[0.0, 0.0, 2.0], [1.0, 0.0, 2.0], [2.0, 2.0, 0.0]])
    free = BestResponse(cost)
    assert free.classes == 2 and free.alike
    found = free.choose(np.array([[0.1, 0.6, 0.3]]), np.array([[0.5, 0.1, 0.4]]), free.trees(1),
                        fresh=True)  # fmt: skip
    assert found[0, 0] == found[0, 1]  # one factor for both
    assert not BestResponse(np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0], [2.0, 2.0, 0.0]])).alike
    nothing = BestResponse(np.zeros((3, 3)))
    assert (nothing.classes, nothing.alike, nothing.high) == (1, True, 1.0)
    a = np.array([[0.1, 0.2, 0.7]])
    assert nothing.choose(a, a, nothing.trees(1), fresh=True).tolist() == [[1.0] * 3]


def test_classes_are_those_of_the_closed_cost() -> None:
    """0 and 2 are joined by way of 1."""
    cost = np.array([[0.0, 0.0, 5.0, 1.0], [0.0, 0.0, 0.0, 1.0], [5.0, 0.0, 0.0, 1.0],
                     [1.0, 1.0, 1.0, 0.0]])  # fmt: skip
    found = BestResponse(cost)
    assert found.classes == 2
    assert found._members.tolist() == [[1.0, 0.0]] * 3 + [[0.0, 1.0]]


@pytest.mark.parametrize("share", [1.0, 0.25])
def test_the_high_level_is_just_below_what_the_cost_allows(share: float) -> None:
    found = BestResponse(off_diagonal(3, 1.5), share)
    exact = np.exp(1.5 * share)
    units = 1.5 * share * 56 + 4  # of roundoff, by which the cost and its exponential are lowered
    assert exact * (1 - 1.5 * units * UNIT) < found.high < exact * (1 - 0.7 * units * UNIT)
    trees, flags = found.trees(4)
    assert trees.shape == flags.shape == (4, 3)
    assert not trees.any() and not flags.any()
    a, b = np.array([[0.2, 0.5, 0.3]]), np.array([[0.4, 0.1, 0.5]])
    assert found.choose(a, b, found.trees(1), fresh=True).tolist() == [[1.0, found.high, 1.0]]


@pytest.mark.parametrize("third", [False, True])
def test_two_classes_rise_towards_the_likelier_one(third: bool) -> None:
    cost = np.array([[0.0, 1.0], [2.0, 0.0]])
    members = [0, 1, 1] if third else [0, 1]
    found = BestResponse(cost[np.ix_(members, members)])
    assert found.classes == 2 and not found.alike
    a, b = np.array([[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]), np.array([[0.5, 0.5]] * 3)
    if third:
        a, b = (np.column_stack([w[:, 0], 0.25 * w[:, 1], 0.75 * w[:, 1]]) for w in (a, b))
    g = found.choose(a, b, found.trees(3), fresh=True)
    assert g[0] == pytest.approx(np.where(np.array(members) == 1, np.exp(2.0), 1.0), rel=1e-13)
    assert g[1] == pytest.approx(np.where(np.array(members) == 0, np.exp(1.0), 1.0), rel=1e-13)
    assert (found.admissible(g) == g).all()
    for row in g:
        for u, v in product(range(len(members)), repeat=2):
            allowed = cost[members[u], members[v]]
            assert row[u] <= np.exp(allowed) * row[v] * (1 - (allowed > 0) * UNIT)
    # both sides are weighed: equal shares of unequal totals are no rise
    g = found.choose(np.full((1, len(members)), 0.1), np.ones((1, len(members))), found.trees(1),
                     fresh=True)  # fmt: skip
    assert g[0, 0] == pytest.approx(np.e) and g[0, -1] == 1.0


THREE = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.5], [1.0, 0.8, 0.0]])


@pytest.mark.parametrize(("one", "other"), WEIGHTS)
def test_potentials_of_a_cost_are_the_best_of_all(
    one: list[list[float]], other: list[list[float]]
) -> None:
    """The best g is at a corner: each value but one is tied to another."""
    a, b = np.array(one), np.array(other)
    found = BestResponse(THREE)
    assert found.classes == 3 and not found.alike
    g = found.admissible(found.choose(a, b, found.trees(len(a)), fresh=True))
    gain = np.exp(THREE)
    corners = []
    for tops in product(range(3), repeat=3):
        for levels in product((False, True), repeat=3):
            level = np.ones(3)
            for _ in range(3):
                for u, (to, rise) in enumerate(zip(tops, levels, strict=True)):
                    if u != to and u != 0:
                        level[u] = level[to] * (gain[u, to] if rise else 1 / gain[to, u])
            if all(level[u] <= gain[u, v] * level[v] * (1 + 1e-12)
                   for u, v in product(range(3), repeat=2)):  # fmt: skip
                corners.append(level)
    for row in range(len(a)):
        if not (a[row] * b[row]).any():
            continue
        best = max(quotient(a[row], b[row], level) for level in corners)
        assert quotient(a[row], b[row], g[row]) == pytest.approx(best, rel=1e-6)
        for u, v in product(range(3), repeat=2):
            assert g[row, u] <= gain[u, v] * g[row, v]


def test_what_breaks_the_cost_is_lowered_as_little_as_needed() -> None:
    found = BestResponse(THREE)
    gain = np.exp(THREE)
    g = found.admissible(np.array([[100.0, 1.0, 1.0], [1.0, 1.2, 1.1], [9.0, 9.0, 1.0]]))
    assert g[0] == pytest.approx([gain[0, 1], 1.0, 1.0], rel=1e-12)
    assert g[1].tolist() == [1.0, 1.2, 1.1]
    assert g[2] == pytest.approx([min(gain[0, 2], gain[1, 2] * gain[0, 1]), gain[1, 2], 1.0])
    for row in g:
        for u, v in product(range(3), repeat=2):
            if u != v:
                assert Fraction(row[u]) <= Fraction(gain[u, v]) * Fraction(row[v])
    members = [0, 1, 1, 2]
    wide = BestResponse(THREE[np.ix_(members, members)])
    g = wide.admissible(np.array([[100.0, 1.0, 1.0, 1.0]]))
    assert g[0] == pytest.approx([gain[0, 1], 1.0, 1.0, 1.0], rel=1e-12)


def test_factors_that_do_not_settle_reveal_nothing() -> None:
    found = BestResponse(THREE)
    found.__dict__["_cost"] = np.array([[0.0, -1.0, 1.0], [-1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    g = found.admissible(np.array([[2.0, 2.0, 1.0]]))
    assert g.tolist() == [[1.0, 1.0, 1.0]]


def test_rows_are_divided_by_their_largest_number() -> None:
    assert _scaled(np.array([[1.0, 4.0], [0.0, 0.0], [3.0, 3.0]])).tolist() == [
        [0.25, 1.0],
        [0.0, 0.0],
        [1.0, 1.0],
    ]
