"""The loops behind the leaks of networks, one by one, against every choice written out."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from takifugu.influence.network import ratios

pytestmark = pytest.mark.nightly

loops: Any = ratios  # what is compiled has lost its types


@pytest.fixture(autouse=True)
def _as_compiled() -> Iterator[None]:
    """Compiled loops do not warn of what they test for; nor shall they as plain Python."""
    with np.errstate(all="ignore"):
        yield


class Problem:
    """Parts with a few rows each, over a set of entries; part p sees some of the entries."""

    def __init__(self, seed: int, *, zeros: float = 0.0, cases: int = 3) -> None:
        rng = np.random.default_rng(seed)
        self.sizes = np.array([2, 3, 2])[: rng.integers(2, 4)]
        self.axis = int(rng.integers(len(self.sizes)))
        self.count, fixed = int(rng.integers(1, 4)), int(rng.integers(0, 2))
        kinds = []
        self.strides = np.zeros((self.count + fixed, len(self.sizes)), np.int64)
        for p in range(self.count + fixed):
            seen = [v for v in range(len(self.sizes)) if rng.random() < 0.6]
            width = 1
            for v in seen:
                self.strides[p, v] = width
                width *= int(self.sizes[v])
            kinds.append(width)
        tables: list[tuple[int, int]] = []
        cells_of = []
        listed = np.zeros((cases, self.count), np.int64)
        for k, p in product(range(cases), range(self.count)):
            listed[k, p] = len(tables)
            tables.append((int(rng.integers(1, 4)), kinds[p]))
        self.fixed = np.arange(len(tables), len(tables) + fixed)
        tables += [(1, kinds[self.count + p]) for p in range(fixed)]
        self.cases = listed
        self.rows = np.array([rows for rows, _ in tables])
        self.width = np.array([width for _, width in tables])
        for rows, width in tables:
            values = rng.uniform(0.05, 1.0, (rows, width))
            values[rng.random((rows, width)) < zeros] = 0.0
            cells_of.append(values)
        self.tables = cells_of
        self.cells = np.concatenate([one.ravel() for one in cells_of])
        self.start = np.concatenate([[0], np.cumsum([one.size for one in cells_of])])[:-1]
        ends = [np.stack([one.max(axis=0), one.min(axis=0)]) for one in cells_of]
        self.limit = np.concatenate([one.ravel() for one in ends])
        first = np.concatenate([[0], np.cumsum([one.size for one in ends])])[:-1]
        self.edge = np.stack([first, first + self.width], axis=1)
        size = int(self.sizes[self.axis])
        self.pairs: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
            ((a,), (b,)) for a, b in product(range(size), repeat=2) if a != b
        ]
        if size == 3:
            self.pairs += [((0, 1), (2,)), ((1,), (0, 2))]
        self.sides = np.zeros((len(self.pairs), 2, size), np.bool_)
        for place, pair in enumerate(self.pairs):
            for side in range(2):
                self.sides[place, side, list(pair[side])] = True

    def sums(self, case: int, chosen: tuple[int, ...], side: tuple[int, ...]) -> float:
        """The weight of the states with the secret on a side."""
        total = 0.0
        for state in product(*(range(size) for size in self.sizes)):
            if state[self.axis] not in side:
                continue
            weight = 1.0
            for p, one in enumerate([*self.cases[case], *self.fixed]):
                row = chosen[p] if p < self.count else 0
                at = sum(v * int(self.strides[p, k]) for k, v in enumerate(state))
                weight *= float(self.tables[one][row, at])
            total += weight
        return total

    def largest(self, pair: tuple[tuple[int, ...], tuple[int, ...]]) -> float:
        """The largest ratio over all cases and choices."""
        best = -1.0
        for case in range(len(self.cases)):
            for chosen in product(*(range(int(self.rows[one])) for one in self.cases[case])):
                top, base = (self.sums(case, chosen, side) for side in pair)
                best = max(best, loops.ratio(top, base))
        return best

    def run(self, thresholds: np.ndarray, budget: float = 1e9) -> tuple[np.ndarray, np.ndarray]:
        """What the loop finds: sums and verdicts."""
        found = np.full((len(self.pairs), 2), np.nan)
        verdict = np.full(len(self.pairs), -1)
        loops.largest(
            *(self.cells, self.start, self.rows, self.width, self.limit, self.edge, self.cases),
            *(self.fixed, self.strides, self.sizes, self.axis, self.sides, thresholds, budget),
            *(found, verdict),
        )
        return found, verdict


@pytest.mark.parametrize("seed", range(24))
def test_the_largest_ratio_of_all_choices_is_found_and_proven(seed: int) -> None:
    problem = Problem(seed, zeros=0.25 * (seed % 3 == 2), cases=1 + seed % 4)
    found, verdict = problem.run(np.full(len(problem.pairs), np.inf))
    for pair, (top, base), what in zip(problem.pairs, found.tolist(), verdict, strict=True):
        truth = problem.largest(pair)
        assert loops.ratio(top, base) == pytest.approx(truth, rel=1e-10)
        assert what == (loops.BEATEN if truth == math.inf else loops.PROVED)


@pytest.mark.parametrize("seed", range(8))
def test_a_threshold_ends_the_search(seed: int) -> None:
    problem = Problem(seed, cases=3)
    truths = np.array([problem.largest(pair) for pair in problem.pairs])
    for share in (0.5, 0.999, 1.001, 2.0):
        found, verdict = problem.run(truths * share)
        values = found[:, 0] / found[:, 1]
        assert (values <= truths * (1 + 1e-10)).all()
        if share < 1:
            assert (verdict == loops.BEATEN).all() and (values >= truths * share).all()
        else:
            assert (verdict == loops.PROVED).all()
            assert values == pytest.approx(truths, rel=1e-10)


def test_without_a_budget_nothing_is_claimed() -> None:
    given_up = 0
    for seed in range(8):
        problem = Problem(seed, cases=3)
        found, verdict = problem.run(np.full(len(problem.pairs), np.inf), budget=-1.0)
        for pair, (top, base), what in zip(problem.pairs, found.tolist(), verdict, strict=True):
            truth = problem.largest(pair)
            assert top / base <= truth * (1 + 1e-12)
            if what == loops.PROVED:
                assert top / base == pytest.approx(truth, rel=1e-9)
            given_up += what == loops.UNKNOWN
    assert given_up > 4


def test_ratios_of_sums() -> None:
    assert loops.ratio(3.0, 2.0) == 1.5
    assert loops.ratio(0.0, 2.0) == loops.ratio(0.0, 0.0) == loops.ratio(-1.0, 2.0) == -1.0
    assert loops.ratio(1.0, 0.0) == loops.ratio(1.0, -1.0) == np.inf


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 12])
def test_places_by_falling_value(n: int) -> None:
    rng = np.random.default_rng(n)
    values = rng.integers(0, 6, n).astype(float)
    order = loops.descending(values)
    assert sorted(order.tolist()) == list(range(n))
    assert (np.diff(values[order]) <= 0).all()


def small(seed: int, *, zeros: float = 0.0) -> dict[str, np.ndarray]:
    """Three parts with three rows; six states, of which the first three are side A; no case."""
    rng = np.random.default_rng(seed)
    rest, count, width = 3, 3, 3
    holds = np.array([False, True, False])
    place = np.stack(
        [np.tile(rng.permutation(rest), 2), rng.integers(0, width, 2 * rest), np.tile([0, 1, 2], 2)]
    )
    cells = rng.uniform(0.1, 1.0, (count, 3, width))
    cells[rng.random(cells.shape) < zeros] = 0.0
    limit = np.stack([cells.max(axis=1), cells.min(axis=1)], axis=1)
    return {
        "table": cells,
        "cells": cells.ravel(),
        "start": np.arange(count) * 9,
        "rows": np.full(count, 3),
        "width": np.full(count, 3),
        "parts": np.arange(count),
        "place": place,
        "holds": holds,
        "limit": limit.ravel(),
        "edge": np.stack([np.arange(count) * 6, np.arange(count) * 6 + 3], axis=1),
        "lead": rng.uniform(0.5, 1.0, 2 * rest),
    }


def weights(given: dict[str, np.ndarray], chosen: tuple[int, ...]) -> np.ndarray:
    found = given["lead"].copy()
    for p, row in enumerate(chosen):
        found *= given["table"][p, row, given["place"][p]]
    return found


@pytest.mark.parametrize("seed", range(6))
def test_limits_hold_for_every_choice_of_the_others(seed: int) -> None:
    given = small(seed)
    joint, alone = np.full((4, 2, 6), np.nan), np.full((4, 2, 3), np.nan)
    names = ("limit", "edge", "parts", "place", "holds")
    loops.limits(*(given[name] for name in names), 3, joint, alone)
    for p in range(4):
        for side, best in ((0, np.max), (1, np.min)):
            for h in range(6):
                held = [q for q in range(p, 3) if given["holds"][q]]
                free = [q for q in range(p, 3) if not given["holds"][q]]
                ends = [
                    math.prod(float(best(given["table"][q, :, given["place"][q, h]])) for q in some)
                    for some in (held, free)
                ]
                assert joint[p, side, h] == pytest.approx(ends[0], rel=1e-14)
                assert alone[p, side, h % 3] == pytest.approx(ends[1], rel=1e-14)


@pytest.mark.parametrize("seed", range(6))
def test_hopeless_means_that_no_choice_beats_the_level(seed: int) -> None:
    given = small(seed)
    joint, alone = np.full((4, 2, 6), np.nan), np.full((4, 2, 3), np.nan)
    names = ("limit", "edge", "parts", "place", "holds")
    loops.limits(*(given[name] for name in names), 3, joint, alone)
    seen = set()
    for first in range(3):
        so_far = weights(given, (1,) * first)
        best = max(
            float(weights(given, (1,) * first + rest)[:3].sum())
            / float(weights(given, (1,) * first + rest)[3:].sum())
            for rest in product(range(3), repeat=3 - first)
        )
        for level in (*np.geomspace(best / 2, best * 8, 25), best):
            bound = 0.0
            for r in range(3):  # the largest of n − level d over what the others may contribute
                n = so_far[r] * joint[first, 0, r]
                d = level * so_far[3 + r] * joint[first, 1, 3 + r]
                bound += (n - d) * alone[first, 0 if n > d else 1, r]
            found = loops.hopeless(so_far, joint[first], alone[first], 3, 3, level, 1e-12)
            assert found == (bound <= 0) or abs(bound) < 1e-9
            assert not (found and best > level * (1 + 1e-9))
            seen.add(bool(found))
    assert seen == {True, False}
    # with no room at all, what is even is not proven
    ones = np.ones((2, 2))
    assert loops.hopeless(np.ones(2), ones, np.ones((2, 1)), 1, 1, 1.0, 0.0)
    assert not loops.hopeless(np.ones(2), ones, np.ones((2, 1)), 1, 1, 1.0, 1e-15)
    assert loops.hopeless(np.ones(2), ones, np.ones((2, 1)), 1, 1, 1.0 + 1e-14, 1e-15)


@pytest.mark.parametrize("seed", range(6))
def test_a_rough_bound_takes_the_most_above_and_the_least_below(seed: int) -> None:
    given = small(seed)
    found = np.full(1, np.nan)
    loops.rough(
        given["limit"],
        given["edge"],
        given["parts"][None, :],
        given["place"],
        given["lead"],
        3,
        found,
    )
    ends = []
    for best, states in ((np.max, range(3)), (np.min, range(3, 6))):
        ends.append(
            sum(
                given["lead"][h]
                * math.prod(
                    float(best(given["table"][p, :, given["place"][p, h]])) for p in range(3)
                )
                for h in states
            )
        )
    assert found[0] == pytest.approx(ends[0] / ends[1], rel=1e-13)


@pytest.mark.parametrize("seed", range(6))
def test_climbing_part_by_part_leaves_nothing_that_one_part_can_better(seed: int) -> None:
    given = small(seed)
    chosen = np.array([seed % 3, 0, 2])
    names = ("cells", "start", "rows", "width", "parts", "place", "lead")
    work, sums = np.empty((4, 6)), np.empty((2, 3))

    def value(rows: tuple[int, ...]) -> float:
        weight = weights(given, rows)
        return float(weight[:3].sum() / weight[3:].sum())

    begun = value(tuple(chosen.tolist()))
    first = chosen.copy()
    top, base = loops.ascend(*(given[n] for n in names), 3, chosen, work, sums, np.inf)
    ended = tuple(chosen.tolist())
    assert top / base == pytest.approx(value(ended), rel=1e-13) and top / base >= begun * (
        1 - 1e-13
    )
    weight = weights(given, ended)
    assert (top, base) == pytest.approx((weight[:3].sum(), weight[3:].sum()), rel=1e-13)
    for p, row in product(range(3), range(3)):
        other = list(ended)
        other[p] = row
        assert value(tuple(other)) <= value(ended) * (1 + 1e-12)
    top, base = loops.ascend(*(given[n] for n in names), 3, first, work, sums, begun)
    assert top / base >= begun * (1 - 1e-12)  # a threshold that is reached at once


@pytest.mark.parametrize("seed", range(6))
def test_going_down_finds_the_largest_from_any_start(seed: int) -> None:
    given = small(seed, zeros=0.0)
    joint, alone = np.full((4, 2, 6), np.nan), np.full((4, 2, 3), np.nan)
    names = ("limit", "edge", "parts", "place", "holds")
    loops.limits(*(given[name] for name in names), 3, joint, alone)
    every = [weights(given, rows) for rows in product(range(3), repeat=3)]
    best = max(float(one[:3].sum() / one[3:].sum()) for one in every)
    shape = ("cells", "start", "rows", "width", "parts", "place")
    for start, budget, threshold in (
        (0.0, 1e9, np.inf),
        (0.4 * best, 1e9, np.inf),
        (0.0, 1e9, best / 2),
    ):
        work = np.empty((4, 6))
        work[0] = given["lead"]
        at, sums = np.zeros(4, np.int64), np.empty((2, 3))
        top, base, left = loops.descend(
            *(given[name] for name in shape),
            *(3, 3, 0, work, joint, alone, sums, at, start, 1.0, threshold, budget),
        )
        assert top / base <= best * (1 + 1e-12)
        assert top / base >= min(best * (1 - 1e-9), threshold)
        assert 0 < left < budget
    # nothing beats what is there already: it stays, at no cost
    work[0] = given["lead"]
    kept = loops.descend(
        *(given[name] for name in shape),
        *(3, 3, 0, work, joint, alone, sums, at, best * 100, 1.0, np.inf, 1e9),
    )
    assert kept == (best * 100, 1.0, 1e9)
    spent = loops.descend(
        *(given[name] for name in shape),
        *(3, 3, 0, work, joint, alone, sums, at, 0.0, 1.0, np.inf, 5.0),
    )
    assert spent[2] < 0


def test_work_is_counted_to_the_last_step() -> None:
    given = small(1)
    joint, alone = np.full((4, 2, 6), np.nan), np.full((4, 2, 3), np.nan)
    names = ("limit", "edge", "parts", "place", "holds")
    loops.limits(*(given[name] for name in names), 3, joint, alone)
    shape = ("cells", "start", "rows", "width", "parts", "place")

    def left(budget: float) -> float:
        work = np.empty((4, 6))
        work[0] = given["lead"]
        at, sums = np.zeros(4, np.int64), np.empty((2, 3))
        fixed = (3, 3, 0, work, joint, alone, sums, at, 0.0, 1.0, np.inf, budget)
        return float(loops.descend(*(given[name] for name in shape), *fixed)[2])

    cost = round(1e6 - left(1e6))
    assert cost > 60
    # what is spent to the last unit is a search that has ended; anything less is not
    for budget in range(3, cost, 3):
        assert left(float(budget)) < 0
    assert left(float(cost)) == 0.0
    assert left(5.0) == 5.0 - 2 * 6  # nothing is done after the step that was not paid for


def test_single_rows_are_chosen_first_then_what_differs_most() -> None:
    rows, width = np.array([2, 1, 3, 2]), np.array([2, 2, 2, 2])
    limit = np.array(
        [0.5, 1.0, 0.5, 0.5, 9.0, 9.0, 9.0, 9.0, 0.8, 0.9, 0.1, 0.9, 0.5, 0.0, 0.4, 0.0]
    )
    edge = np.array([[0, 2], [4, 6], [8, 10], [12, 14]])
    order = loops.turns(rows, width, limit, edge, np.array([0, 1, 2, 3]))
    assert order.tolist() == [1, 2, 0, 3]  # then by 8, 2 and 1.25
    limit[14] = 0.0  # may be anything: differs most of all
    assert loops.turns(rows, width, limit, edge, np.array([3, 2, 1, 0])).tolist() == [2, 0, 1, 3]
