"""Margins for rounding in the loops of networks, with a unit of roundoff that can be seen.

The loops run as plain Python on floats that are as precise as ever; only what they take the unit of
roundoff to be is 2⁻²⁰. What is added for rounding then stands out, and can be held against what
that many operations could lose: never less, and not many times as much.
"""

import math
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from takifugu.numeric import Floats
from takifugu.translation.network import coupling_kernel, pinning, pinning_kernel, walk_kernel

pytestmark = pytest.mark.nightly

U = 2.0**-20
LOOPS: list[ModuleType] = [coupling_kernel, pinning_kernel, walk_kernel]


@pytest.fixture(autouse=True)
def _coarse(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A coarse unit, and no compiled loop: nothing is compiled, or kept on disk, with that unit."""
    for module in LOOPS:
        for name, loop in vars(module).copy().items():
            if hasattr(loop, "py_func"):
                monkeypatch.setattr(module, name, loop.py_func)
    for module in (*LOOPS, pinning):
        monkeypatch.setattr(module, "UNIT", U)
    with np.errstate(all="ignore"):
        yield


def units(found: float, exact: float) -> float:
    """By how many units a number is above another one, relatively."""
    return (found / exact - 1) / U


WALKS: Any = walk_kernel  # what is compiled has lost its types


def walked_star(count: int, spread: float, cost: float, below: float) -> float:
    """From the middle of a star: ``count`` contacts, all alike."""
    start = np.array([0, count, *range(count + 1, 2 * count + 1)])
    near = np.array([*range(1, count + 1), *[0] * count])
    return float(
        WALKS.walked(
            *(0, 0, np.array([9]), np.full(count + 1, cost), start, near),
            *(np.full(2 * count, spread), np.full(2 * count, below)),
            np.zeros(count + 1, dtype=np.bool_),
        )
    )


def summed_star(count: int, spread: float, cost: float, below: float) -> float:
    """The same for one pair of values of the middle."""
    total = np.zeros((1, 1))
    WALKS.summed(
        *(0, count, np.arange(count), np.arange(count), np.full(count, spread)),
        *(np.full(count, cost), np.full(count, below), total),
    )
    return float(total[0, 0])


@pytest.mark.parametrize("star", [walked_star, summed_star])
@pytest.mark.parametrize("count", [1, 2, 6, 20])
def test_sums_along_walks_cover_the_rounding_of_their_terms(star: Any, count: int) -> None:
    # with an unbounded cost behind, each contact adds its spread: only the sum is rounded
    outer = units(star(count, 0.5, np.inf, 1.0), 0.5 * count)
    assert count + 1.5 <= outer <= 8 * (count + 3)
    # with an unbounded table, each adds what is behind it: a sum of two, and a product
    whole = star(count, np.inf, 0.75, 0.25)
    inner = units(whole / (1 + outer * U), float(count))
    assert 1.99 <= inner <= 4


@pytest.mark.parametrize("falling", [True, False])
def test_rounds_cover_the_rounding_of_a_sum_and_a_difference(falling: bool) -> None:
    """A star: an outer entry finds behind the middle all outer entries but itself."""
    for count in (2, 5, 12):
        start = np.array([*range(count + 1), 2 * count])  # the middle is the last
        near = np.array([*[count] * count, *range(count)])
        back = np.array([*range(count, 2 * count), *range(count)])
        for cost, spread in ((np.inf, 0.5), (0.5, np.inf)):
            behind = np.full(2 * count, 100.0 if falling else 0.0)
            behind[count:] = 0.0  # nothing is behind the outer ones
            WALKS.rounds(
                1, 0.0, np.full(count + 1, cost), start, near, back, np.full(2 * count, spread),
                behind, falling,
            )  # fmt: skip
            rest = 0.5 * (count - 1)
            above = (behind[:count] - rest) / (0.5 * count * U)
            own = 0.0 if cost == np.inf else 2.0 * (count - 1) / count
            assert (above >= count + own).all() and (above <= 8 * (count + 3)).all()
            inner = above - 4 * (count + 2)
            assert inner == pytest.approx(own, abs=1.01 if own else 0.01)
            assert (behind[count:] == 0.0).all()


@pytest.mark.parametrize("high", [0.01, 0.3])
def test_falling_rounds_keep_a_bound_that_is_known_to_be_lower(high: float) -> None:
    """As group privacy may be: where a round finds more, what was known before stays."""
    start, near = np.array([0, 2, 4, 6]), np.array([1, 2, 0, 2, 0, 1])
    back = np.array([2, 4, 0, 5, 1, 3])
    behind = np.full(6, high)
    behind[3] = 40.0
    WALKS.rounds(1, 0.0, np.full(3, 2.0), start, near, back, np.full(6, 1.5), behind, True)
    assert (behind[[0, 1, 2, 4, 5]] == high).all() and behind[3] < 1.5


def test_a_sink_without_mass_that_gets_nothing_is_not_divided_by() -> None:
    with np.errstate(all="raise"):
        found = COUPLINGS.proven(
            *(np.ones(1), np.array([0.5, 0.0]), np.ones((1, 2)), np.zeros(2, dtype=np.int64)),
            *(np.array([0, 1]), np.array([1.0, 0.0]), np.zeros((2, 3))),
        )
    assert found == pytest.approx(2.0, rel=1e-3)


def test_a_change_of_weights_covers_the_rounding_of_its_logarithms() -> None:
    reweighted = WALKS.reweighted
    for spread, rise in ((0.5, 0.25), (1.0, 3.0), (4.0, 4.0), (9.0, 7.0), (60.0, 60.0)):
        exact = 4 * math.atanh(math.tanh(spread / 4) * math.tanh(rise / 4))
        if spread > 50:
            exact = 2 * math.log(math.cosh(30.0))
        found = reweighted(spread, rise)
        wide = (found - exact) / U
        assert 16 * exact <= wide <= 256 * (1 + exact)


COUPLINGS: Any = coupling_kernel


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (5, 4)])
def test_a_flow_proves_its_bound_with_a_margin_for_every_sum(sizes: tuple[int, int]) -> None:
    """All sources at the first sink: two sums, a quotient and products of p with gains."""
    k, w = sizes
    p, q = np.full(k, 1 / k), np.full(w, 1 / w)
    gain = np.full((k, w), 2.0)
    source = np.array([*range(k), *[0] * (w - 1)])
    sink = np.array([*[0] * k, *range(1, w)])
    flow = np.array([*[1 / k] * k, *[0.0] * (w - 1)])
    sums = np.zeros((2, k + w))
    found = COUPLINGS._proven(p, q, gain, source, sink, flow, sums)
    assert 2 * (k + w) <= units(found, 2.0 * w) <= 8 * (k + w + 8)


def test_moves_and_detours_are_rounded_up_by_the_number_of_their_sums() -> None:
    for tables in (1, 3, 7):
        found = COUPLINGS._move(
            *(np.zeros((tables, 2), dtype=np.int64), np.full(tables, 0.5)),
            *(np.arange(tables), np.ones(tables, dtype=np.int64), np.full(tables, np.inf), 0, 1),
        )
        assert tables + 1 <= units(found, 0.5 * tables) <= 4 * (tables + 3)
    for n in (2, 5):
        cost = 1.0 - np.eye(n)
        COUPLINGS._by_way_of_others(cost)
        assert cost[0, 0] == 0.0
        assert n <= units(float(cost[0, 1]), 1.0) <= 8 * n


def crossing(p: float, q: float, cost: float) -> float:
    """Between one state and another."""
    given: list[Any] = [
        *(np.array([0, 1, 2]), np.arange(2), np.array([p, 9.0]), np.array([9.0, q])),
        *(np.array([[0, 1]]), np.array([0.0, cost, 0.0, 0.0]), np.array([0])),
        *(np.array([2]), np.array([np.inf])),
    ]
    value = np.full(1, np.nan)
    COUPLINGS._cross(*given, np.array([0]), np.array([1]), value)
    return float(value[0])


@pytest.mark.parametrize("cost", [2.0, 4.0, 40.0])
def test_a_crossing_covers_the_rounding_of_costs_and_logarithms(
    cost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(COUPLINGS, "proven", lambda *_: 0.25)
    found = crossing(1.0, 4.0, cost)
    low = cost * (1 + 6 * U)  # what a move costs is rounded up before
    added = (found - (low + math.log(0.25) * (1 + 8 * U))) / U
    assert 4 * (1 + abs(found) + low) <= added <= 16 * (1 + abs(found) + low)
    gains: list[Floats] = []

    def seen(*given: Any) -> float:
        gains.append(given[2].copy())
        return 0.25

    monkeypatch.setattr(COUPLINGS, "proven", seen)
    crossing(1.0, 4.0, cost)
    # exp of the cost less the least of all: the rounding of the difference, and of exp
    assert 4 * low + 4 <= units(float(gains[0][0, 0]), 1.0) <= 16 * (1 + low)


def stays(stay: float, gap: float, monkeypatch: pytest.MonkeyPatch, *answers: Any) -> list[Any]:
    """Two states that stay at one cost and move at another; what is asked, and the bound last."""
    asked: list[Any] = []
    given = iter(answers)

    def likelier(*args: Any) -> tuple[float, float]:
        asked.append(args[-2:])
        found: tuple[float, float] = next(given)(args[-2])
        return found

    monkeypatch.setattr(COUPLINGS, "likelier", likelier)
    monkeypatch.setattr(
        COUPLINGS, "move", lambda *given: stay if given[-2] == given[-1] else stay + gap
    )
    states, value = np.array([0, 1, 0, 1]), np.full(1, np.nan)
    COUPLINGS._nearly(
        *(np.array([0, 2, 4]), states, np.full(4, 0.5), np.full(4, 0.5), *[None] * 5),
        *(np.array([0]), np.array([1]), value, np.arange(2), -1.0),
    )
    return [*asked, float(value[0])]


def test_a_bound_by_staying_is_raised_until_it_is_proven_beyond_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    margin = 16 * (2 + 2 + 8)  # units

    def even(_: float) -> tuple[float, float]:
        return 1.0, 1.0

    def short(share: float) -> Any:
        """The function is negative by this share of the margin only."""
        return lambda tau: (tau, 1 + share * margin * U)

    for stay in (0.0, 50.0):
        (first, second, value) = stays(stay, 2.0, monkeypatch, even, short(0.75))
        assert first[0] == 1.0 and units(second[0], 1.0) == pytest.approx(margin)
        assert 4 <= units(first[1], math.expm1(2.0)) <= 16 and second[1] == first[1]
        assert 4 * (1 + stay) <= (value - stay) / U - margin <= 16 * (1 + stay) + 1
        # too little beyond rounding: it is raised again, by twice as much
        asked = stays(stay, 2.0, monkeypatch, even, short(0.25), short(0.75), short(2.0))
        raised = units(asked[-2][0], 1.0)
        assert len(asked) == 5 and raised == pytest.approx((1 + 2 + 4) * margin, rel=0.01)
        # steps from below go on while they are larger than rounding
        asked = stays(
            stay, 2.0, monkeypatch, lambda _: (1.25, 1.0), lambda _: (1.5, 1.2), short(1.0)
        )
        assert asked[1][0] == 1.25 and units(asked[2][0], 1.25) == pytest.approx(margin)


PINS: Any = pinning_kernel


def test_boxes_are_widened_by_the_number_of_their_factors() -> None:
    """Two entries that pull each other: every end of a box has its margin, on its own side."""
    near = back = np.array([[1], [0]])
    back = np.zeros((2, 1), dtype=np.int64)
    degree, pull = np.ones(2, dtype=np.int64), np.full((2, 1), 0.5)
    low, high, own = np.full(2, 2.0), np.full(2, 3.0), np.full(2, 0.25)
    boxes = np.full((2, 2, 1, 5), np.nan)
    PINS.far_boxes(
        *(low, high, own, 9.0, near, back, degree, pull, pull),
        *(np.full((2, 1), 5), boxes),
    )
    for box in boxes.reshape(-1, 5):
        for part, exact in ((0, 2.0), (2, 0.25)):
            assert 64 <= -units(float(box[part]), exact) <= 256
        for part, exact in ((1, 3.0), (3, 0.25), (4, 3.0)):
            assert 64 <= units(float(box[part]), exact) <= 512
        assert units(float(box[1]), float(box[4])) >= 64
    given = np.zeros(2, dtype=np.bool_), np.ones((2, 2)), np.zeros((1, 2, 1))
    found = PINS.explore(
        *(0, 0, 1.0, 9.0, 9, low, high, own, near, degree, pull, pull, boxes),
        *(*given, np.zeros(1, dtype=np.int64)),
    )
    down, up, grown, more = (float(one) for one in boxes[0, 0, 0, :4])
    felt = [1 + 0.5 * z / (1 + z) for z in (down, up)]
    peak = PINS.gained(down, more, 0.5)  # beyond the peak the lowest odds gain most
    little = min(PINS.gained(z, grown, 0.5) for z in (down, up))
    assert 64 <= -units(found[0], 2.0 * felt[0]) <= 256
    assert 64 <= units(found[1], 3.0 * felt[1]) <= 256
    assert 64 <= -units(found[2], 0.25 + little + 0.25 * little) <= 256
    assert 64 <= units(found[3], 0.25 + peak + 0.25 * peak) <= 256


def field() -> pinning.PairwiseField:
    one = np.zeros((2, 1), dtype=np.int64)
    return pinning.PairwiseField(
        np.array([-1.0, 0.5]), np.array([-1.0, 0.5]), np.array([[1], [0]]), one,
        np.ones(2, dtype=np.int64), np.full((2, 1), 0.75), np.full((2, 1), 0.75), one + 99,
    )  # fmt: skip


def test_what_the_loops_are_given_is_rounded_to_either_side() -> None:
    epsilon = np.array([0.25, 0.5])
    rising = pinning.RisingField(field(), epsilon, [1, 0])
    assert rising.computes and rising.upper.tolist() == [np.inf, np.inf]
    for found, exact in zip(rising.lower.tolist(), (0.5, 0.25), strict=True):
        assert 4 <= -units(found, exact) <= 16
    low, high, own, _, _, weak, strong, boxes = rising._given
    for k, h in enumerate((-1.0, 0.5)):
        assert 4 <= -units(float(low[k]), math.exp(h)) <= 16
        assert 4 <= units(float(high[k]), math.exp(h)) <= 16
        assert 4 <= -units(float(weak[k, 0]), math.expm1(0.75)) <= 16
        assert 4 <= units(float(strong[k, 0]), math.expm1(0.75)) <= 16
        assert own[k] == math.expm1(epsilon[k])
    # no odds gain more than all fields together
    most = float(boxes[..., 3].max())
    assert most <= math.expm1(0.75) * (1 + 40 * U)


def test_explored_bounds_are_rounded_to_either_side_and_never_get_worse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rising = pinning.RisingField(field(), np.array([0.25, 0.5]), [1, 0])
    answers = iter([(0.75, 2.0), (0.5, 3.0), (1.0, 1.5), (math.nan, 1.0), (9.0, 0.1)])

    def explore(*given: Any) -> tuple[float, ...]:
        assert given[0] == 0 and given[1:5] == (0, 1.0, 0.125, 77)  # the entry that is second
        assert given[-1][0] == 0
        given[-1][0] += 5
        return (0.0, 0.0, *next(answers))

    monkeypatch.setattr(rising, "_kernel", type("Loops", (), {"explore": staticmethod(explore)}))
    ends: list[tuple[float, float]] = []
    for _ in range(5):
        assert rising.explore(1, 0.125, 77) == 5
        ends.append((float(rising.lower[1]), float(rising.upper[1])))
    for (low, high), (least, most) in zip(
        ends, [(0.75, 2.0), (0.75, 2.0), (1.0, 1.5), (1.0, 1.5), (1.0, 1.5)], strict=True
    ):
        assert 4 <= -units(low, math.log1p(least)) <= 16
        assert 4 <= units(high, math.log1p(most)) <= 16
    assert rising.upper[0] == np.inf  # the other one was not explored
