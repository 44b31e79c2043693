"""How wide the margins for rounding of chain curves are, counted in units of roundoff.

A margin of a few units in the last place hardly shows in a curve, whichever sign it has. So modules
are given a unit that is a million million times as large: what a bound is off by, in these units,
is the sum of its margins, and it is on the safe side.
"""

import math
from itertools import product
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest

from takifugu.influence.chain import chain_groups, chain_walk, interval_curves, powers
from takifugu.influence.chain.chain_groups import GroupLeaks, _worst_ratio
from takifugu.influence.chain.chain_walk import SETTLED, Walk, _hull, _masses
from takifugu.influence.chain.curve_request import curve_request
from takifugu.influence.chain.powers import LogProduct, largest_ratios, products
from takifugu.influence.chain.splitting import PairLeaks
from takifugu.numeric import Floats
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets

pytestmark = pytest.mark.nightly

LARGE = 2.0**-20
STEP = np.array([[0.75, 0.25], [0.125, 0.875]])
THREE = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0.25, 0.5]])
GROUPS = (((0,), (1, 2)), ((1, 2), (0,)))


def with_large_units(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    monkeypatch.setattr(module, "UNIT", LARGE)
    if hasattr(module, "gamma"):
        monkeypatch.setattr(module, "gamma", lambda terms: terms * LARGE)


def counted(number: Any) -> Any:
    return pytest.approx(number, abs=1e-5)


# ---- products of steps


def test_logarithms_of_numbers_with_a_relative_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with_large_units(monkeypatch, powers)
    value = np.array([[0.25, 0.75, 0.0]])
    found = powers._logs(value, value > 0, 0.0)
    assert found.error / LARGE == counted(8 * math.log(4) + 8)
    wide = powers._logs(value, value > 0, 0.25)
    # log(1 − 1/4) is as far off as 1/4 can be: −log(3/4) < 1/3
    assert (wide.error - 0.25 / 0.75) / LARGE == counted(8 * math.log(4) + 8)


def test_relative_errors_of_steps_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    with_large_units(monkeypatch, powers)
    relative = 0.02
    for place, found in enumerate(products(STEP, 0.02, [STEP, STEP, STEP], 0.01)):
        if place:
            relative = (1 + relative) * 1.01 * (1 + 2 * LARGE) - 1 + LARGE
        own = LARGE * (8 * np.abs(found.log).max() + 8)
        assert found.error == pytest.approx(relative / (1 - relative) + own, abs=1e-12)


def test_a_step_in_logarithms_adds_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    with_large_units(monkeypatch, powers)
    one, other = LogProduct(np.log(STEP), 0.01), LogProduct(np.log(STEP @ STEP), 0.02)
    found = powers._log_step(one, other)
    sizes = sum(np.abs(part.log).max() for part in (one, other, found))
    assert (found.error - 0.03) / LARGE == counted(6 * sizes + 2 + 32)


@pytest.mark.parametrize("some", [[(0, 1)], [(0, 1), (1, 0), (0, 0), (1, 1)]])
def test_the_largest_ratio_has_the_errors_of_both(
    some: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_large_units(monkeypatch, powers)
    one, other = LogProduct(np.log(STEP), 0.01), LogProduct(np.log(STEP @ STEP), 0.02)
    x, y = (np.array(side) for side in zip(*some, strict=True))
    slack = 0.03 + 2 * LARGE * (math.log(8) + np.abs(other.log).max())
    truth = [max(np.log(STEP[a]) - other.log[b]) for a, b in some]
    assert largest_ratios(one, x, y, other) == pytest.approx(np.array(truth) + slack, abs=1e-12)
    truth = [max(np.log(STEP[a] / STEP[b])) for a, b in some]
    slack = 0.02 + 4 * LARGE * math.log(8)
    assert largest_ratios(one, x, y) == pytest.approx(np.array(truth) + slack, abs=1e-12)


def test_what_some_row_can_reach_is_possible_and_what_none_can_is_not() -> None:
    kernel = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    first, second = products(np.full((2, 3), 1 / 3), 0.0, [kernel], 0.0)
    assert first.possible.all()
    assert second.possible.tolist() == [[True, True, False]] * 2
    assert np.exp(second.log) == pytest.approx(np.array([[1 / 6, 5 / 6, 0.0]] * 2))
    _, second = products(np.full((1, 2), 0.5), 0.0, [np.array([[0.5, 0.5], [0.0, 1.0]])], 0.0)
    assert second.possible.all() and np.isfinite(second.log).all()


def test_a_step_in_logarithms_of_numbers_too_small_for_floats() -> None:
    """Two rows, three values between, four after; some ways are closed, and one end to all."""
    inf = math.inf
    left = np.array([[-900.0, -1.0, -inf], [-inf, -850.0, -2.0]])
    right = np.array(
        [[-1.0, -inf, -inf, -0.5], [-700.0, -inf, -3.0, -inf], [-inf, -inf, -inf, -0.25]]
    )
    found = powers._log_step(LogProduct(left, 0.0), LogProduct(right, 0.0))
    with mpmath.workdps(40):
        for x, z in product(range(2), range(4)):
            terms = [mpmath.mpf(left[x, k]) + mpmath.mpf(right[k, z]) for k in range(3)]
            total = mpmath.fsum(mpmath.exp(one) for one in terms if one > -inf)
            truth = float(mpmath.log(total)) if total else -inf
            assert found.log[x, z] == pytest.approx(truth, rel=1e-14)
    assert powers.reach(left) == 900.0 and powers.reach(np.array([[-0.25, -inf]])) == 0.25


def test_what_is_impossible_is_no_reason_to_take_logarithms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are for what is too small for a float, and much slower."""

    def slow(*_: object) -> None:
        raise AssertionError("no number is small here")

    monkeypatch.setattr(powers, "_log_step", slow)
    kernel = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    for first in (np.full((2, 3), 1 / 3), np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])):
        found = list(products(first, 0.0, [kernel, kernel], 0.0))
        assert found[2].possible.tolist() == (first @ kernel @ kernel > 0).tolist()


# ---- walks


def grouped_walk(shift: int = 0, start: Any = (0.5, 0.25, 0.25), most: int = 2) -> Walk:
    given: Any = start if isinstance(start, str) else np.array(start)
    chain = MarkovChain(THREE, start=given)
    request = curve_request(
        chain.states,
        None,
        Secrets(pairs=(*GROUPS, ((0,), (1,)))),
        max_exposed=most,
        symmetric=False,
        by_entry=None,
    )
    return Walk(chain, request, shift=shift)


@pytest.mark.parametrize(
    ("shift", "sides", "most", "deepest"),
    [
        (0, (0, 0), 0.0, 2.0),
        (0, (1, 0), 0.1, 5.0),
        (0, (0, 1), 0.1, 5.0),
        (0, (2, 1), 0.3, 7.0),
        (0, (1, 2), 0.3, 7.0),
        (1, (1, 1), 0.3, 7.0),
        (1, (1, 0), 0.1, 5.0),
        (1, (0, 2), 0.3, 7.0),
        (2, (0, 1), 0.2, 3.0),
    ],
)
def test_how_far_leaks_may_be_above_the_truth(
    shift: int,
    sides: tuple[int, int],
    most: float,
    deepest: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_large_units(monkeypatch, chain_walk)
    found = grouped_walk(shift)
    found._powers[0] = [
        LogProduct(np.full((3, 3), -deep), error)
        for deep, error in ((5.0, 0.1), (7.0, 0.3), (3.0, 0.2))
    ]
    law = LogProduct(np.array([[-2.0, -1.0, -np.inf]]), 0.05)
    alone = 6 * (2 * most + 0.05)
    assert found._error(3, sides, law) == pytest.approx(alone, abs=1e-12)
    both = found._error(3, sides, law, (((0,), (1,)), ((0, 1), (2,)), ((1,), (2,))))
    assert (both - alone) / LARGE == counted(64 * 3 * (1 + deepest))


@pytest.mark.parametrize("shift", [0, 1])
def test_an_entry_tells_of_the_powers_it_is_made_of(
    shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = grouped_walk(shift, start=(1.0, 0.0, 0.0), most=3)
    asked: list[tuple[int, tuple[int, int], LogProduct, Any]] = []

    def error(entry: int, sides: tuple[int, int], law: LogProduct, grouped: Any = ()) -> float:
        asked.append((entry, sides, law, grouped))
        return 0.25 * len(asked)

    monkeypatch.setattr(found, "_error", error)
    single, group = found.at(2)
    assert isinstance(single, PairLeaks) and isinstance(group, GroupLeaks)
    assert asked == [(2, (2, 3), found.law(2), ()), (2, (2, 3), found.law(2), GROUPS)]
    assert (single.error, group.error) == (0.25, 0.5)
    assert single.exact.tolist() == [True] * 2 and group.exact.tolist() == [not shift] * 2
    assert (single.entry, single.reach) == (group.entry, group.reach) == ("2", (2, None))
    assert group.law is found.law(2) and group.pairs == GROUPS
    assert len(single.before) == len(group.before) == 2
    assert len(single.after) == len(group.after) == 3
    for d, power in enumerate(group.before, start=1):  # only what is possible there is seen
        assert np.array_equal(power.log, found.power(2 - d, d).log[found.support(2 - d)])
        assert power.error == found.power(2 - d, d).error
    assert [len(power.log) for power in group.before] == [3, 1]
    assert list(group.after) == [found.power(2, d + shift) for d in (1, 2, 3)]


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("start", ["stationary", (0.5, 0.5, 0.0)])
def test_later_entries_tell_of_the_powers_they_are_made_of(
    start: Any, shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = grouped_walk(shift, start=start, most=3)
    asked: list[tuple[int, tuple[int, int], Any]] = []

    def error(entry: int, sides: tuple[int, int], _: LogProduct, grouped: Any = ()) -> float:
        asked.append((entry, sides, grouped))
        return 0.0

    monkeypatch.setattr(found, "_error", error)
    single, group = found.later(4, found._settles())
    assert isinstance(single, PairLeaks) and isinstance(group, GroupLeaks)
    assert asked == [(4, (3, 3), ()), (4, (3, 3), GROUPS)]
    room = 0.0 if start == "stationary" else 4 * SETTLED  # laws this close count as one
    assert single.error == group.error == room
    assert single.exact.tolist() == [True] * 2 and group.exact.tolist() == [not shift] * 2
    assert single.entry == group.entry == "4+"
    assert len(single.before) == len(single.after) == 3
    assert len(group.before) == len(group.after) == 3
    for d in (1, 2, 3):
        assert np.array_equal(group.before[d - 1].log, found.power(0, d).log)
        assert group.before[d - 1].error == found.power(0, d).error
        assert group.after[d - 1] is found.power(0, d + shift)


def test_odds_have_the_errors_of_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    with_large_units(monkeypatch, chain_walk)
    law = LogProduct(np.log([[0.0625, 0.1875, 0.75]]), 0.01)
    masses, error = _masses(law, [(0, 1), (2,)])
    assert np.exp(masses[0]) == pytest.approx([0.25, 0.75])
    assert (error - 0.01) / LARGE == counted(2 * (8 + 4 * math.log(16)))
    even = LogProduct(np.array([[math.log(0.5), math.log(0.5), -np.inf]]), 0.01)
    _, least = _masses(even, [(0, 2), (1,)])
    assert (least - 0.01) / LARGE == counted(2 * (8 + 4 * math.log(2)))
    keep, offset = grouped_walk()._offset(law, (((0, 1), (2,)), ((2,), (0, 1))))
    assert keep.all()
    for value, odds in zip(offset, (math.log(3), -math.log(3)), strict=True):
        plain = odds + 2 * error
        assert (value - plain) / LARGE == counted(4 * abs(plain))
    hull = _hull(law, (((0, 1), (2,)), ((2,), (0, 1))))
    assert hull == pytest.approx([math.log(3) + 2 * error, -math.log(3) + 2 * error], abs=1e-12)


# ---- groups


def reference(past: Floats, future: Floats, size: int) -> mpmath.mpf:
    """The largest log-ratio, with as many digits as it takes."""
    worst = -mpmath.inf
    for row, column in product(past, future.T):
        terms = [mpmath.e ** mpmath.mpf(float(a + b)) for a, b in zip(row, column, strict=True)]
        top, base = mpmath.fsum(terms[:size]), mpmath.fsum(terms[size:])
        if top > 0:
            worst = max(worst, mpmath.log(top / base) if base > 0 else mpmath.inf)
    return worst


@pytest.mark.parametrize("depth", [1.0, 300.0, 900.0, 3000.0])
@pytest.mark.parametrize("zeros", [0.0, 0.2, 0.5])
def test_the_worst_ratio_of_two_groups(depth: float, zeros: float) -> None:
    rng = np.random.default_rng(7)
    seen = set()
    for size in (1, 2, 3) * 8:
        past, future = -depth * rng.random((3, 4)), -depth * rng.random((4, 2))
        for part in (past, future):
            part[rng.random(part.shape) < zeros] = -np.inf
        with mpmath.workdps(40):
            truth = reference(past, future, size)
        value, deep = _worst_ratio(past, future, size)
        seen.add((math.isfinite(value), deep > 0))
        if mpmath.isinf(truth):
            assert value == float(truth)
        else:
            assert abs(value - truth) <= 1e-12 * (1 + deep)
        terms = past[:, :, None] + future[None]
        most = np.abs(terms[np.isfinite(terms)]).max()
        assert deep == 0.0 or (most / 4 <= deep <= 4 * most)
    assert (True, depth > 300) in seen
    if zeros == 0.5:
        assert (False, False) in seen  # what happens under one of the groups only


def test_a_side_that_cannot_happen_has_no_ratio() -> None:
    past = np.array([[-np.inf, 0.0]])
    assert _worst_ratio(past, np.array([[0.0], [0.0]]), 1) == (-np.inf, 0.0)
    assert _worst_ratio(past[:, ::-1], np.array([[0.0], [0.0]]), 1) == (np.inf, 0.0)


@pytest.mark.parametrize("reach", [(None, None), (1, 1), (0, 1), (1, 0), (0, 0), (0, None)])
def test_groups_have_the_errors_of_both_sides(
    reach: tuple[int | None, int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_large_units(monkeypatch, chain_groups)
    law = np.array([[0.5, 0.25, 0.25]])
    before, after = LogProduct(np.log(THREE[:2]), 0.01), LogProduct(np.log(THREE @ THREE), 0.02)
    part = GroupLeaks(
        "0",
        reach,
        np.array([True, False]),
        np.ones(2, bool),
        GROUPS,
        [before],
        [after],
        LogProduct(np.log(law), 0.04),
        np.array([-0.5, 0.25]),
    )
    (found,) = part.leaks(1, range(1, 2))
    assert found[1] == 0.0  # not kept
    if reach == (0, 0):
        assert found[0] == 0.0
        return
    left, past_error = (law, 0.04) if reach[0] == 0 else (THREE[:2], 0.01)
    right, future_error = (np.ones((3, 1)), 0.0) if reach[1] == 0 else (THREE @ THREE, 0.02)
    worst = max(
        math.log(row[0] * column[0] / (row[1:] @ column[1:]))
        for row, column in product(left, right.T)
    )
    deep = [np.abs(np.log(side)).max() for side in (left, right)]
    own = LARGE * (32 + 4 * sum(deep) + 3)
    slack = 2 * (past_error + future_error + own) + 16 * LARGE * (1 + 0.5)
    assert found[0] == pytest.approx(worst - 0.5 + slack, abs=1e-10)


# ---- boxes

WIDE = IntervalMarkovChain(np.full((2, 2), 0.25), np.full((2, 2), 0.75))
POINT = IntervalMarkovChain(np.array([[0.75, 0.25]] * 2), np.array([[0.75, 0.25]] * 2))


def test_extreme_means_are_widened(monkeypatch: pytest.MonkeyPatch) -> None:
    with_large_units(monkeypatch, interval_curves)
    values = np.array([[0.5, 0.125], [0.25, 0.5]])
    blur = 12 * LARGE
    high = interval_curves._mixed(WIDE, values, largest=True)
    low = interval_curves._mixed(WIDE, values, largest=False)
    for z, (most, least) in enumerate([(0.4375, 0.3125), (0.40625, 0.21875)]):
        wide = 32 * LARGE * 0.5
        assert high[:, z] == pytest.approx(most * (1 + blur) + wide, abs=1e-12)
        assert low[:, z] == pytest.approx(least * (1 - blur) - wide, abs=1e-12)
    # the bounds alone: no more than the upper ones give, no less than the lower ones
    high = interval_curves._mixed(POINT, values, largest=True)
    low = interval_curves._mixed(POINT, values, largest=False)
    mean = np.array([0.4375, 0.21875])
    assert high == pytest.approx(np.array([mean * (1 + blur)] * 2), abs=1e-12)
    assert low == pytest.approx(np.array([mean * (1 - blur)] * 2), abs=1e-12)
    same = np.full((2, 2), 0.5)  # a mean is never outside the values
    assert interval_curves._mixed(WIDE, same, largest=True).tolist() == same.tolist()
    assert interval_curves._mixed(WIDE, same, largest=False).tolist() == same.tolist()


def test_logarithms_of_extreme_means(monkeypatch: pytest.MonkeyPatch) -> None:
    with_large_units(monkeypatch, interval_curves)
    found = interval_curves._log(np.array([[0.25, 0.0, 1.0]]))
    assert found.log.tolist() == [[math.log(0.25), -math.inf, 0.0]]
    assert found.error / LARGE == counted(8 * math.log(4) + 8)


def test_one_step_of_two_boxes_is_widened(monkeypatch: pytest.MonkeyPatch) -> None:
    with_large_units(monkeypatch, interval_curves)
    loose = 4 * LARGE
    ways = interval_curves._Spread(WIDE).ways
    assert [way[2].tolist() for way in ways] == [[0.0] * 2] * 2 + [[0.5 + loose] * 2] * 2
    lack = -0.5 - 1.5 * loose
    assert [way[3].tolist() for way in ways] == [[0.0] * 2, [lack] * 2] * 2
    point = IntervalMarkovChain(STEP, STEP)
    found = interval_curves._Spread(point).after(1.0)
    high = math.e - 1
    truth = math.log((1 + high * 0.75) / (1 + high * 0.125))
    assert (found[0, 1] - truth) / LARGE == counted(4 * 20)
    truth = math.log((1 + high * 0.875) / (1 + high * 0.25))
    assert (found[1, 0] - truth) / LARGE == counted(4 * 20)
    assert np.diag(found) / LARGE == counted(4 * 20)
