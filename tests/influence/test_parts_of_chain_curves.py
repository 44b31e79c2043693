"""What chain curves are made of: products of steps, rows of boxes, splits; each in full."""

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

from takifugu.influence.chain import interval_curves, powers
from takifugu.influence.chain.chain_walk import _hull, _masses, _spread
from takifugu.influence.chain.powers import LogProduct, largest_ratios, products, turned
from takifugu.influence.chain.splitting import (
    PairLeaks,
    SequenceSplits,
    best_leaks,
    distances,
    highest,
)
from takifugu.influence.curve import InfluenceCurve
from takifugu.numeric import Floats
from takifugu.priors.interval_chain import IntervalMarkovChain

pytestmark = pytest.mark.nightly


def stochastic(
    rng: np.random.Generator, n: int, *, tiny: float = 1.0, zeros: float = 0.0
) -> Floats:
    rows = rng.dirichlet(np.ones(n), n)
    rows[:, -1] *= tiny
    rows[rng.random((n, n)) < zeros] = 0.0
    rows[np.arange(n), np.arange(n)] += 0.1
    found: Floats = rows / rows.sum(axis=1, keepdims=True)
    return found


@pytest.mark.parametrize(
    ("tiny", "zeros"), [(1.0, 0.0), (1.0, 0.5), (1e-80, 0.0), (1e-200, 0.3), (1e-290, 0.0)]
)
def test_products_of_steps_are_known_to_their_error(tiny: float, zeros: float) -> None:
    rng = np.random.default_rng(3)
    n, steps = 3, 6
    first = stochastic(rng, n, tiny=tiny, zeros=zeros)
    first[:, 0] *= tiny
    kernels = [stochastic(rng, n, tiny=tiny, zeros=zeros) for _ in range(steps)]
    exact = [[Fraction(float(one)) for one in row] for row in first]
    found = list(products(first, 0.0, kernels, 0.0))
    assert len(found) == steps + 1
    for place, power in enumerate(found):
        if place:
            step = [[Fraction(float(one)) for one in row] for row in kernels[place - 1]]
            exact = [
                [Fraction(sum(row[k] * step[k][z] for k in range(n))) for z in range(n)]
                for row in exact
            ]
        with mpmath.workdps(60):
            for x, z in product(range(n), repeat=2):
                truth = exact[x][z]
                assert bool(power.possible[x, z]) == (truth > 0)
                if truth:
                    log = mpmath.log(mpmath.mpf(truth.numerator) / truth.denominator)
                    assert abs(mpmath.mpf(float(power.log[x, z])) - log) <= power.error
                else:
                    assert power.log[x, z] == -np.inf
        assert power.error < 1e-10
    wider = list(products(first, 1e-9, kernels, 1e-8))
    for place, power in enumerate(wider):  # errors that are given are carried along
        assert 1e-9 + place * 1e-8 <= power.error <= 1.1e-9 + place * 1.1e-8 + 1e-11


@pytest.mark.parametrize("block", [1, 7, 60, 2**18])
def test_the_largest_ratio_of_two_rows(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(powers, "BLOCK", block)
    rng = np.random.default_rng(4)
    n = 5
    first, second = stochastic(rng, n, zeros=0.2), stochastic(rng, n)
    pairs = [(x, y) for x in range(n) for y in range(n)]
    with np.errstate(divide="ignore"):
        one, other = LogProduct(np.log(first), 1e-12), LogProduct(np.log(second), 1e-13)
    for some in (pairs, pairs[3:6]):
        for under, below in ((None, first), (other, second)):
            x, y = (np.array(side) for side in zip(*some, strict=True))
            found = largest_ratios(one, x, y, under)
            for value, (a, b) in zip(found, some, strict=True):
                ratios = [
                    math.log(p / q) if q else math.inf
                    for p, q in zip(first[a], below[b], strict=True)
                    if p
                ]
                assert max(ratios) <= value <= max(ratios) + 1e-11
    back = turned(one)
    assert (back.log == one.log.T).all() and back.error == one.error


def test_rows_of_groups_spread_and_hull() -> None:
    rng = np.random.default_rng(5)
    rows = rng.dirichlet(np.ones(4), 3)
    law = LogProduct(np.log(rows), 1e-13)
    alone, error = _masses(law, [(0,), (2,)])
    assert error == 1e-13 and np.array_equal(alone, np.log(rows[:, [0, 2]]))
    both, error = _masses(law, [(0, 1), (3,)])
    truth = np.log([[row[0] + row[1], row[3]] for row in rows])
    assert 1e-13 < error < 1e-12 and np.abs(both - truth).max() <= error
    assert _spread(law) == pytest.approx(float(np.ptp(np.log(rows), axis=0).max()))
    assert _spread(LogProduct(np.log(rows[[1, 1]]), 0.0)) == 0.0
    rows[1, 2] = 0.0
    with np.errstate(divide="ignore"):
        law = LogProduct(np.log(rows), 1e-13)
    assert _spread(law) == np.inf
    pairs = (((0,), (1,)), ((0, 1), (3,)), ((0,), (2,)), ((2,), (0,)))
    hull = _hull(law, pairs)
    for value, (left, right) in zip(hull, pairs, strict=True):
        sums = [(row[list(right)].sum(), row[list(left)].sum()) for row in rows]
        truth_of = max(
            -math.inf if a == 0 else (math.inf if b == 0 else math.log(a / b)) for a, b in sums
        )
        assert truth_of <= value <= truth_of + 1e-11


# ---- boxes


def boxes(rng: np.random.Generator, n: int, width: float) -> IntervalMarkovChain:
    middle = rng.multinomial(1024, rng.dirichlet(np.ones(n)), n) / 1024  # adds up to 1 exactly
    lower = np.maximum(middle - width * rng.random((n, n)), 0.0)
    upper = np.minimum(middle + width * rng.random((n, n)), 1.0)
    return IntervalMarkovChain(lower.tolist(), upper.tolist())


def corners(low: Floats, high: Floats) -> list[list[Fraction]]:
    """The corners of a box of laws: all but one entry at an end."""
    n, found = len(low), []
    ends = [(Fraction(float(a)), Fraction(float(b))) for a, b in zip(low, high, strict=True)]
    for free in range(n):
        for chosen in product((0, 1), repeat=n - 1):
            law = [ends[k if k < free else k + 1][c] for k, c in enumerate(chosen)]
            rest = 1 - sum(law)
            if ends[free][0] <= rest <= ends[free][1]:
                found.append([*law[:free], Fraction(rest), *law[free:]])
    return found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("width", [0.0, 0.05, 0.4])
def test_the_extreme_means_over_a_box_are_rounded_outwards(seed: int, width: float) -> None:
    rng = np.random.default_rng(seed)
    n = 4
    chain = boxes(rng, n, width)
    values = rng.random((n, n))
    values[0, 0] = 0.0
    high = interval_curves._mixed(chain, values, largest=True)
    low = interval_curves._mixed(chain, values, largest=False)
    for x in range(n):
        laws = corners(chain.lower[x], chain.upper[x])
        if not laws:  # rounding leaves no law that adds up to 1: the nearest one
            continue
        for z in range(n):
            means = [
                sum(p * Fraction(float(v)) for p, v in zip(law, values[:, z], strict=True))
                for law in laws
            ]
            assert max(means) <= Fraction(float(high[x, z])) <= max(means) + Fraction(1, 10**13)
            assert min(means) - Fraction(1, 10**13) <= Fraction(float(low[x, z])) <= min(means)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("width", [0.0, 0.1])
def test_a_step_from_two_boxes_and_values_that_differ_by_so_much(seed: int, width: float) -> None:
    rng = np.random.default_rng(seed)
    n = 3
    chain = boxes(rng, n, width)
    spread = interval_curves._Spread(chain)
    for alpha in (1e-6, 0.5, 4.0):
        found = spread.after(alpha)
        for x, y in product(range(n), repeat=2):
            truth = 0.0
            above, below = (corners(chain.lower[k], chain.upper[k]) for k in (x, y))
            for values in product((1.0, math.exp(alpha)), repeat=n):
                tops = [
                    sum(float(p) * v for p, v in zip(law, values, strict=True)) for law in above
                ]
                ends = [
                    sum(float(p) * v for p, v in zip(law, values, strict=True)) for law in below
                ]
                if tops and ends:
                    truth = max(truth, math.log(max(tops) / min(ends)))
            assert found[x, y] >= truth - 1e-15
            if width == 0.0:
                assert found[x, y] <= truth + 1e-12
            else:
                assert found[x, y] <= alpha + 1e-12


def test_small_probabilities_are_raised_above_and_dropped_below() -> None:
    value = np.array([0.0, 1e-300, 1e-200, 0.5])
    assert interval_curves._raised(value).tolist() == [0.0, 2.0**-900, 1e-200, 0.5]
    assert interval_curves._kept(value).tolist() == [0.0, 0.0, 1e-200, 0.5]
    logs = interval_curves._log(value)
    assert logs.log[0] == -np.inf and logs.log[3] == math.log(0.5)
    assert 600 * 2.0**-53 < logs.error < 1e4 * 2.0**-53


# ---- splits


@pytest.mark.parametrize("reach", [(None, None), (2, None), (None, 1), (2, 3), (0, 1), (1, 0)])
def test_the_best_split_of_all(reach: tuple[int | None, int | None]) -> None:
    rng = np.random.default_rng(6)
    most, pairs = 5, 4
    before = [np.sort(rng.uniform(-0.5, 2, pairs))[::-1] / d for d in range(1, most + 1)]
    after = [rng.uniform(0, 2, pairs) / d for d in range(1, most + 1)]
    before, after = (list(np.minimum.accumulate(one)) for one in (before, after))  # as curves do
    offset = rng.normal(0, 0.2, pairs)
    keep = np.array([True, True, False, True])
    exact = np.ones(pairs, bool)
    part = PairLeaks("3", reach, keep, exact, before, after, offset)
    reverse = np.array([1, 0, 3, 2])
    for turn in (None, reverse):
        found = best_leaks(part, most, turn)
        for b in range(1, most + 1):
            leaks = []
            for left, right in product(range(1, most + 2), repeat=2):
                ends = [math.inf if one is None else one for one in reach]
                if left > ends[0] + 1 or right > ends[1] + 1 or left + right - 1 > b:
                    continue
                past = before[left - 1] + offset if left <= ends[0] else np.zeros(pairs)
                leaks.append(past + after[right - 1] if right <= ends[1] else past)
            whole = None not in reach and sum(one or 0 for one in reach) + 1 <= b
            for k in np.flatnonzero(keep):
                each = [one[k] if turn is None else max(one[k], one[turn[k]]) for one in leaks]
                truth = 0.0 if whole else max(min(each), 0.0)
                assert truth <= found[b - 1, k] <= truth + 1e-14
            assert 0.0 <= found[b - 1, 2] < 1e-15
            splits = SequenceSplits(
                [([part], k) for k in range(pairs)], np.arange(1, most + 1), None, [turn] * pairs
            )
            said = splits.describe(0, b - 1)
            assert said["entry"] == "3"
            left, right = said["left"] + 1, said["right"] + 1
            assert left + right - 1 <= b or whole
            for side, there in zip(("left", "right"), reach, strict=True):
                assert there is None or said[side] <= there  # no entry that there is not
            past = (
                before[left - 1] + offset
                if left <= (most if reach[0] is None else reach[0])
                else np.zeros(pairs)
            )
            shown = (
                past + after[right - 1]
                if right <= (most if reach[1] is None else reach[1])
                else past
            )
            value = shown[0] if turn is None else max(shown[0], shown[1])
            assert max(value, 0.0) <= found[b - 1, 0] + 1e-14 or whole
    everything = SequenceSplits([([part], 0)], np.array([most]), most, [None])
    assert everything.describe(0, 0) == {"exposed": "all"}


def test_distances_to_try() -> None:
    assert list(distances(None, 3)) == [1, 2, 3]
    assert list(distances(1, 3)) == [1, 2]
    assert list(distances(0, 3)) == [1]
    assert list(distances(7, 2)) == [1, 2]


def test_a_leak_that_is_no_number_is_infinite() -> None:
    nan = np.array([np.nan, 1.0])
    part = PairLeaks("0", (None, None), np.ones(2, bool), np.ones(2, bool), [nan], [nan * 0], nan)
    assert best_leaks(part, 1, None)[0, 0] == np.inf


def test_the_highest_of_several_curves_by_name() -> None:
    first = InfluenceCurve(
        np.array([1, 2]),
        np.array([[2.0, 1.0], [3.0, 0.5]]),
        None,
        ("a", "b"),
        np.ones((2, 2), bool),
    )
    second = InfluenceCurve(
        np.array([1, 2]),
        np.array([[1.0, 0.9], [2.5, 0.7]]),
        None,
        ("c", "a"),
        np.array([[True, False], [False, True]]),
    )
    found = highest([first, second])
    assert found.pairs == ("a", "b", "c")
    assert found.leak.tolist() == [[2.5, 1.0], [3.0, 0.5], [1.0, 0.9]]
    assert found.exact.tolist() == [[False, True], [True, True], [True, False]]
