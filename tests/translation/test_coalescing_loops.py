"""The loops that carry laws along a side: every choice of factors written out, and exact proofs."""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from takifugu.translation.chain import coalescing_loops
from takifugu.translation.chain.coalescing import StarSide

pytestmark = pytest.mark.nightly

UNIT = 2.0**-53

loops: Any = coalescing_loops  # what is compiled has lost its types


@pytest.fixture(autouse=True)
def _as_compiled() -> Iterator[None]:
    """Compiled loops do not warn of what they test for; nor shall they as plain Python."""
    with np.errstate(all="ignore"):
        yield


def side(
    seed: int,
    k: int,
    classes: list[list[int]],
    rows: list[int],
    costs: list[int],
    *,
    zeros: float = 0.0,
) -> StarSide:
    """Steps with these rows and costs; ``classes`` of each level say which states are one."""
    rng = np.random.default_rng(seed)
    matrices = rng.dirichlet(np.ones(k), (max(rows) + 1, k)) * (
        rng.random((max(rows) + 1, k, k)) >= zeros
    )
    matrices[..., 0] += 0.05
    matrices /= matrices.sum(axis=2, keepdims=True)
    level = np.array(classes)
    up, down = np.zeros(level.shape), np.zeros(level.shape)
    for n, one in enumerate(classes):
        for name in set(one):
            up[n, level[n] == name] = rng.uniform(0.1, 0.8)
            down[n, level[n] == name] = rng.uniform(0.1, 0.8)
    order = np.argsort(level, axis=1, kind="stable")
    listed = np.take_along_axis(level, order, axis=1)
    last = np.ones(level.shape, np.bool_)
    last[:, :-1] = listed[:, 1:] != listed[:, :-1]
    same = [
        all(r == rows[-1] for r in rows[n + 1 :]) and all(c == costs[n] for c in costs[n:])
        for n in range(len(rows))
    ]
    return StarSide(
        *(matrices, np.array(rows), np.exp(up), np.exp(-down), order, last, np.array(costs)),
        *(False, np.array(same), 2 * (k + 16) * UNIT, 1e-230 / 0.001, np.full(len(level), 1.6)),
    )


def outcomes(one: StarSide, x: int, y: int, *, whole: bool) -> list[tuple[float, float]]:
    """E[Πg | x] and E[Πg | y] for every choice of the factors.

    A factor goes by the class of its entry and, unless ``whole``, by the entry after it.
    """
    k, steps = one.states, len(one.row_at)
    names = []
    for n in range(steps):
        level = one.cost_at[n]
        number, found = 0, [0] * k
        for place in range(k):
            found[one.order[level, place]] = number
            number += bool(one.last[level, place])
        names.append((found, number))
    slots: list[tuple[int, int, int]] = []
    for n in range(steps):
        for name in range(names[n][1]):
            alone = names[n][0].count(name) == 1 or whole or n == steps - 1
            slots += [(n, name, v) for v in ([-1] if alone else range(k))]
    found_sums = []
    for choice in product((0, 1), repeat=len(slots)):
        chosen = dict(zip(slots, choice, strict=True))
        totals = []
        for begin in (x, y):
            law = one.rows[one.row_at[0]][begin].copy()
            for n in range(steps):
                level = one.cost_at[n]
                ends = n == steps - 1
                after = np.zeros(k)
                for u in range(k):
                    name = names[n][0][u]
                    high, low = one.high[level, u], one.low[level, u]
                    if ends:
                        after[u] = law[u] * (high if chosen[n, name, -1] else low)
                        continue
                    row = one.rows[one.row_at[n + 1]][u]
                    for v in range(k):
                        key = (n, name, v) if (n, name, v) in chosen else (n, name, -1)
                        after[v] += law[u] * row[v] * (high if chosen[key] else low)
                law = after
            totals.append(float(law.sum()))
        found_sums.append((totals[0], totals[1]))
    return found_sums


SIDES = [
    side(1, 3, [[0, 1, 2]], [0, 0], [0, 0]),
    side(2, 3, [[0, 0, 1]], [0, 1], [0, 0]),
    side(3, 3, [[0, 1, 0], [0, 0, 0]], [0, 1], [0, 1]),
    side(4, 2, [[0, 1]], [0, 0, 0], [0, 0, 0]),
    side(5, 2, [[0, 1], [0, 0]], [0, 1, 0, 1], [0, 1, 0, 1]),
    side(6, 4, [[0, 0, 1, 1]], [0], [0]),
    side(7, 3, [[1, 0, 0]], [0, 0], [0, 0], zeros=0.5),
    side(8, 3, [[0, 1, 1]], [0, 1], [0, 0], zeros=0.4),
]


@pytest.mark.parametrize("place", range(len(SIDES)))
def test_the_loss_of_a_side_is_the_largest_over_all_factors(place: int) -> None:
    one = SIDES[place]
    k, steps = one.states, len(one.row_at)
    pairs = np.argwhere(~np.eye(k, dtype=bool))
    walk = (one.rows, one.row_at, one.high, one.low, one.order, one.last, one.cost_at)
    proof = (*walk, False, steps, one.held, one.error, one.floor)
    truths = []
    for guess in (0.0, 0.4, 3.0):
        below, above = np.full(len(pairs), np.nan), np.full(len(pairs), np.nan)
        start = np.full(len(pairs), guess)
        loops.solve(*proof, 1e-6, pairs, 0, len(pairs), start, below, above)
        for number, (x, y) in enumerate(pairs.tolist()):
            if guess == 0.0:
                truths.append(max(math.log(a / b) for a, b in outcomes(one, x, y, whole=False)))
            assert below[number] == pytest.approx(truths[number], abs=1e-10)
            assert truths[number] - 1e-13 <= above[number] <= truths[number] + 1e-11
    limits = np.array(truths)
    for off, expected in ((1e-9, True), (-1e-9, False), (0.5, True), (-0.5, False)):
        proven = np.zeros(len(pairs), np.bool_)
        loops.test(*proof, pairs, 0, len(pairs), limits + off, proven)
        assert (proven == (expected & (limits + off >= 0))).all()
    # half of the pairs only
    below = np.full(len(pairs), -7.0)
    above = below.copy()
    loops.solve(*proof, 1e-6, pairs, 1, 2, np.zeros(len(pairs)), below, above)
    assert below[1] == pytest.approx(truths[1], abs=1e-10)
    assert (np.delete(below, 1) == -7.0).all() and (np.delete(above, 1) == -7.0).all()


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("place", range(len(SIDES)))
def test_a_law_that_is_carried_has_the_ratio_of_its_factors(place: int, whole: bool) -> None:
    one = SIDES[place]
    steps = len(one.row_at)
    walk = (one.rows, one.row_at, one.high, one.low, one.order, one.last, one.cost_at)
    work = np.full((6, one.states), np.nan)
    for x, y in ((0, 1), (1, 0)):
        every = outcomes(one, x, y, whole=whole)
        best = max(a / b for a, b in every)
        for t in (0.5, 1.0, 1.3, best):
            found = loops.carried(*walk, x, y, t, steps, whole, work)
            assert found <= best * (1 + 1e-12)
            if not whole:  # the factors are those that are best for a − t b
                a, b = max(every, key=lambda pair: pair[0] - t * pair[1])
                assert found == pytest.approx(a / b, rel=1e-10)
            else:  # some choice attains it
                assert min(abs(found - a / b) for a, b in every) <= 1e-10 * found
        guess = np.array([0.2, 0.2, 0.2])
        pairs = np.array([[x, y], [x, y], [x, y]])
        loops.glance(*walk, pairs, 1, 2, steps, whole, guess)
        shown = loops.carried(*walk, x, y, math.exp(0.2), steps, whole, work)
        assert guess.tolist() == pytest.approx([0.2, max(math.log(shown), 0.0), 0.2])


def exactly(one: StarSide, x: int, y: int, t: Fraction) -> Fraction:
    """The largest E[Πg | x] − t E[Πg | y], in exact numbers, entry by entry."""
    k, steps = one.states, len(one.row_at)
    rows = [[[Fraction(float(v)) for v in row] for row in matrix] for matrix in one.rows]
    first = rows[one.row_at[0]]
    e: list[Fraction] = [first[x][v] - t * first[y][v] for v in range(k)]
    for n in range(steps):
        level = int(one.cost_at[n])
        groups: list[list[int]] = [[]]
        for place in range(k):
            groups[-1].append(int(one.order[level, place]))
            if one.last[level, place]:
                groups.append([])
        after: list[Fraction] = [Fraction(0)] * k
        for group in filter(None, groups):
            high = Fraction(float(one.high[level, group[0]]))
            low = Fraction(float(one.low[level, group[0]]))
            if n == steps - 1:
                total = Fraction(sum((e[u] for u in group), Fraction(0)))
                after[0] += total * (high if total > 0 else low)
                continue
            matrix = rows[one.row_at[n + 1]]
            for v in range(k):
                total = sum((e[u] * matrix[u][v] for u in group), Fraction(0))
                after[v] += total * (high if total > 0 else low)
        e = after
    return e[0]


@pytest.mark.parametrize("place", range(len(SIDES)))
def test_nothing_is_certified_that_is_not_so(place: int) -> None:
    """Just below the loss no t is certified, just above it each is: by exact sums."""
    one = SIDES[place]
    steps = len(one.row_at)
    walk = (one.rows, one.row_at, one.high, one.low, one.order, one.last, one.cost_at)
    work = np.full((6, one.states), np.nan)
    seen = set()
    for x, y in ((0, 1), (1, 0)):
        best = max(a / b for a, b in outcomes(one, x, y, whole=False))
        for off in (-1e-3, -1e-6, -1e-9, -1e-12, -1e-14, 0.0, 1e-14, 1e-12, 1e-9, 1e-3):
            t = best * (1 + off)
            found = loops.certified(
                *(*walk, x, y, t, steps, False, one.held, one.error, one.floor, work)
            )
            excess = exactly(one, x, y, Fraction(t))
            assert not (found and excess > 0)
            if off >= 1e-9:
                assert found
            seen.add(bool(found))
    assert seen == {True, False}


@pytest.mark.parametrize("seed", range(4))
def test_a_side_without_end_is_the_limit_of_long_ones(seed: int) -> None:
    one = side(seed, 3, [[0, 0, 1]] if seed % 2 else [[0, 1, 2]], [0], [0])
    pairs = np.argwhere(~np.eye(3, dtype=bool))
    count = 40
    long = replace(
        one,
        row_at=np.zeros(count, np.int64),
        cost_at=np.zeros(count, np.int64),
        held=np.ones(count, np.bool_),
    )
    finite, least = (out.copy() for out in np.zeros((2, len(pairs))))
    for which, unbounded, most in ((long, False, count), (one, True, 400)):
        below, above = np.zeros(len(pairs)), np.zeros(len(pairs))
        loops.solve(
            *(which.rows, which.row_at, which.high, which.low, which.order, which.last),
            *(which.cost_at, unbounded, most, which.held, which.error, which.floor, 1e-4),
            *(pairs, 0, len(pairs), np.zeros(len(pairs)), below, above),
        )
        if not unbounded:
            finite, least = above, below
    assert (above >= least - 1e-12).all() and (above < np.inf).all()
    assert (above <= finite * (1 + 3e-3) + 1e-9).all()
    assert below == pytest.approx(least, rel=1e-3)
    # a limit below the loss of a few entries is never proven, one well above is
    walk = (one.rows, one.row_at, one.high, one.low, one.order, one.last, one.cost_at)
    for limit, expected in ((least * 0.99, False), (finite * 1.01 + 1e-6, True)):
        proven = np.zeros(len(pairs), np.bool_)
        loops.test(
            *(*walk, True, 400, one.held, one.error, one.floor, pairs, 0, len(pairs)),
            *(limit, proven),
        )
        assert (proven == expected).all()


def test_a_long_side_is_walked_only_as_far_as_it_matters() -> None:
    """100 steps: the bound holds for all of them, and is close."""
    count = 100
    one = side(3, 2, [[0, 1]], [0] * count, [0] * count)
    pairs = np.array([[0, 1], [1, 0]])
    below, above = np.zeros(2), np.zeros(2)
    walk = (one.rows, one.row_at, one.high, one.low, one.order, one.last, one.cost_at)
    loops.solve(
        *(*walk, False, count, one.held, one.error, one.floor, 1e-4, pairs, 0, 2),
        *(np.zeros(2), below, above),
    )
    work = np.zeros((6, 2))
    for number, (x, y) in enumerate(pairs.tolist()):
        t = 1.0
        for _ in range(60):
            t = max(loops.carried(*walk, x, y, t, count, False, work), t)
        assert math.log(t) - 1e-12 <= above[number] <= math.log(t) * (1 + 2e-3)
        assert exactly(one, x, y, Fraction(math.exp(above[number]))) <= 0


def test_what_happens_on_one_side_only_loses_everything() -> None:
    rows = np.array([[[1.0, 0.0], [0.5, 0.5]]])
    one = replace(side(1, 2, [[0, 1]], [0], [0]), rows=rows)
    deep = replace(one, low=np.zeros((1, 2)))  # a factor of 0: the other law vanishes
    pairs = np.array([[1, 0]])
    walk = (deep.rows, deep.row_at, deep.high, deep.low, deep.order, deep.last, deep.cost_at)
    below, above, guess = np.zeros(1), np.zeros(1), np.full(1, 0.5)
    assert loops.carried(*walk, 1, 0, 2.0, 1, False, np.zeros((6, 2))) == np.inf
    loops.solve(
        *(*walk, False, 1, deep.held, deep.error, deep.floor, 1e-4, pairs, 0, 1),
        *(np.full(1, math.log(2.0)), below, above),
    )
    assert below[0] == above[0] == np.inf
    loops.glance(*walk, pairs, 0, 1, 1, False, guess)
    assert guess[0] >= 0.0
    guess[0] = math.log(2.0)
    loops.glance(*walk, pairs, 0, 1, 1, False, guess)
    assert guess[0] == 0.0


def test_what_is_only_lost_far_away_is_not_overlooked() -> None:
    """Nothing can be seen of the first 50 entries, and much of those after them."""
    near, count = 50, 60
    rows = np.array([[[0.999, 0.001], [0.002, 0.998]]])
    one = side(1, 2, [[0, 1], [0, 1]], [0] * count, [0] * near + [1] * (count - near))
    high, low = one.high.copy(), one.low.copy()
    high[0] = low[0] = 1.0
    one = replace(one, rows=rows, high=high, low=low)
    walk = (one.rows, one.row_at, one.high, one.low, one.order, one.last, one.cost_at)
    work, t = np.zeros((6, 2)), 1.0
    for _ in range(60):
        t = max(loops.carried(*walk, 0, 1, t, count, False, work), t)
    assert t > 1.5
    pairs = np.array([[0, 1]])
    longer = replace(one, row_at=np.zeros(70, np.int64), cost_at=np.array([0] * 55 + [1] * 15))
    for which, steps in ((one, count), (longer, 70)):
        below, above = np.zeros(1), np.zeros(1)
        loops.solve(
            *(which.rows, which.row_at, which.high, which.low, which.order, which.last),
            *(which.cost_at, False, steps, np.zeros(steps, np.bool_), which.error, which.floor),
            *(1e-4, pairs, 0, 1, np.zeros(1), below, above),
        )
        assert above[0] >= 0.5 * math.log(t)
        for limit, expected in ((0.5 * math.log(t), False), (2.0 * math.log(t), True)):
            proven = np.zeros(1, np.bool_)
            loops.test(
                *(which.rows, which.row_at, which.high, which.low, which.order, which.last),
                *(which.cost_at, False, steps, np.zeros(steps, np.bool_), which.error),
                *(which.floor, pairs, 0, 1, np.array([limit]), proven),
            )
            assert proven[0] == expected
