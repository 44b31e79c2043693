"""Curves of sets of chains, entry by entry and term by term, against loops written out."""

import math
from fractions import Fraction
from itertools import product
from typing import Any, Literal

import numpy as np
import pytest

from takifugu._rounding import up
from takifugu.errors import TooLarge
from takifugu.influence.chain import interval_curves as boxes
from takifugu.influence.chain.curve_request import curve_request
from takifugu.influence.chain.interval_curves import interval_chain_curve
from takifugu.influence.chain.splitting import PairLeaks
from takifugu.numeric import Floats
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.secrets import Secrets
from tests.raising import raises

pytestmark = pytest.mark.nightly

LOWER = np.array([[0.5, 0.125, 0.0625], [0.0625, 0.375, 0.25], [0.125, 0.25, 0.4375]])
UPPER = np.array([[0.75, 0.3125, 0.1875], [0.25, 0.5, 0.5], [0.25, 0.375, 0.625]])
GROUPS = (((0,), (1, 2)), ((1, 2), (0,)))
PAIRS = Secrets(pairs=(((0,), (1,)), ((1,), (0,)), ((2,), (1,)), ((1,), (2,)), *GROUPS))
Start = Literal["any", "stationary"]


def chain_of(length: int | None, start: Start = "any") -> IntervalMarkovChain:
    return IntervalMarkovChain(LOWER, UPPER, length=length, start=start)


def best(
    before: list[Floats], after: list[Floats], reach: tuple[int, int], pair: Any, most: int
) -> list[float]:
    """The least over all splits of what the worst members show, for each size."""
    found = []
    for b in range(1, most + 1):
        sums = []
        for left, right in product(range(1, b + 1), repeat=2):
            if left + right - 1 > b or left > reach[0] + 1 or right > reach[1] + 1:
                continue
            worst = 0.0
            for x, y in product(*pair):
                past = before[left - 1][x, y] if left <= reach[0] else 0.0
                future = after[right - 1][x, y] if right <= reach[1] else 0.0
                worst = max(worst, past + future)
            sums.append(worst)
        found.append(min(sums))
    return found


@pytest.mark.parametrize(("length", "most"), [(2, 1), (4, 4), (5, 3), (5, 4), (6, 3)])
def test_each_entry_of_a_short_set_has_its_own_splits(length: int, most: int) -> None:
    chain = chain_of(length)
    found = interval_chain_curve(chain, PAIRS, max_exposed=most, by_entry=True)
    before, after = boxes._terms(chain, most)
    rows = dict(zip(found.pairs, found.leak, strict=True))
    names = ["0", "1", "2", "1|2"]
    sides = [(0,), (1,), (2,), (1, 2)]
    asked = [(0, 1), (1, 0), (2, 1), (1, 2), (0, 3), (3, 0)]
    assert len(rows) == length * len(asked)
    for entry in range(length):
        for a, b in asked:
            truth = best(before, after, (entry, length - 1 - entry), (sides[a], sides[b]), most)
            row = rows[f"{entry}={names[a]} / {entry}={names[b]}"]
            assert row[:most] == pytest.approx(truth, abs=1e-12)
            assert (row[:most] >= np.array(truth)).all()
    assert found.exposed.tolist() == [*range(1, most + 1), *([length] if length > most else [])]
    assert not found.leak[:, -1].any() and not found.exact[:, :-1].any()


@pytest.mark.parametrize("length", [None, 7, 8, 9, 10])
def test_one_class_of_entries_stands_for_all_of_a_long_set(length: int | None) -> None:
    """With at most 3 exposed, that is from 7 entries on: one of them has 3 on either side."""
    chain = chain_of(length)
    found = interval_chain_curve(chain, PAIRS, max_exposed=3, by_entry=True)
    assert len(found.pairs) == 6 and found.splits is not None
    before, after = boxes._terms(chain, 3)
    for name, pair in (("2 / 1", ((2,), (1,))), ("1|2 / 0", ((1, 2), (0,)))):
        row = found.pairs.index(name)
        truth = best(before, after, (9, 9), pair, 3)
        assert found.leak[row, :3] == pytest.approx(truth, abs=1e-12)
        assert found.splits.describe(row, 0) == {"entry": "3+", "left": 0, "right": 0}
    row = found.pairs.index("2 / 1")
    one_more = {
        (1, 0): before[1][2, 1] + after[0][2, 1],
        (0, 1): before[0][2, 1] + after[1][2, 1],
    }
    left, right = min(one_more, key=lambda one: one_more[one])
    assert found.splits.describe(row, 1) == {"entry": "3+", "left": left, "right": right}


@pytest.mark.parametrize("length", [None, 20])
def test_entries_near_the_start_see_less_unless_others_are_asked_about(length: int | None) -> None:
    chain = chain_of(length)
    some = Secrets(entries=(1, 2), pairs=PAIRS.pairs)
    found = interval_chain_curve(chain, some, max_exposed=3, by_entry=True)
    before, after = boxes._terms(chain, 3)
    for entry in (1, 2):
        for a, b, pair in (("2", "1", ((2,), (1,))), ("1|2", "0", ((1, 2), (0,)))):
            row = found.leak[found.pairs.index(f"{entry}={a} / {entry}={b}")]
            truth = best(before, after, (entry, 99), pair, 3)
            assert row[:3] == pytest.approx(truth, abs=1e-12)
    more = Secrets(entries=(1, 5), pairs=PAIRS.pairs)
    wide = interval_chain_curve(chain, more, max_exposed=3, by_entry=True)
    assert len(wide.pairs) == 6 and wide.splits is not None
    assert wide.splits.describe(0, 0)["entry"] == "3+"
    groups = interval_chain_curve(chain, Secrets(pairs=GROUPS), max_exposed=3)
    assert groups.pairs == wide.pairs[4:] and groups.leak.tolist() == wide.leak[4:].tolist()


def test_parts_of_an_entry_in_full() -> None:
    request = curve_request((0, 1, 2), 9, PAIRS, max_exposed=2, symmetric=False, by_entry=None)
    rng = np.random.default_rng(3)
    before, after = ([rng.random((3, 3)) for _ in range(2)] for _ in range(2))
    single, group = boxes._entry_parts(request, "4", (1, 4), before, after)
    assert isinstance(single, PairLeaks) and isinstance(group, boxes._WorstMembers)
    x, y = request.left, request.right
    for tables, given in ((single.before, before), (single.after, after)):
        assert [one.tolist() for one in tables] == [one[x, y].tolist() for one in given]
    assert single.offset.tolist() == [0.0] * 4
    assert group.before is before and group.after is after and group.pairs == GROUPS
    for part, size in ((single, 4), (group, 2)):
        assert part.entry == "4" and part.reach == (1, 4) and part.error == 0.0
        assert part.keep.tolist() == [True] * size and part.exact.tolist() == [False] * size
    for left, reached in ((1, True), (2, False)):
        for right, leak in zip((1, 2), group.leaks(left, range(1, 3)), strict=True):
            total = after[right - 1] + (before[left - 1] if reached else 0.0)
            worst = [max(total[a, b] for a, b in product(*pair)) for pair in GROUPS]
            assert leak == pytest.approx(worst, abs=1e-15)
    short = boxes._entry_parts(request, "8", (8, 0), before, after)[1]
    (leak,) = short.leaks(1, range(1, 2))
    assert leak == pytest.approx([max(before[0][a, b] for a, b in product(*p)) for p in GROUPS])


def test_as_many_states_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "MOST_STATES", 3)
    assert interval_chain_curve(chain_of(None), max_exposed=1).leak.shape == (6, 1)
    monkeypatch.setattr(boxes, "MOST_STATES", 2)
    with raises(TooLarge, field="states", size=3, limit=2):
        interval_chain_curve(chain_of(None), max_exposed=1)


# ---- terms


def ratios(high: Floats, low: Floats) -> Floats:
    """``[x, y]``: the largest log of a high number of row x over the low one of row y beside it."""
    n = len(high)
    found = np.full((n, n), -np.inf)
    for x, y, z in product(range(n), range(n), range(high.shape[1])):
        if high[x, z] > -np.inf:
            found[x, y] = max(found[x, y], high[x, z] - low[y, z])
    return found


def terms(chain: IntervalMarkovChain, far: int, more: float) -> tuple[list[Floats], list[Floats]]:
    """What the docstring of the module says, one pair at a time; with ``more`` at each rounding."""
    n = len(chain.states)
    spread = boxes._Spread(chain)
    extremes = [(a.log, b.log) for a, b in boxes._extremes(chain, max(far, 30))]
    sides = [ratios(high.T, low.T) for high, low in extremes]
    after: list[Floats] = []
    before: list[Floats] = []
    for d, (high, low) in enumerate(extremes[:far]):
        ahead = ratios(high, low)
        if d:
            ahead = np.minimum(ahead, after[-1])
            if after[-1].max() < 500:
                ahead = np.minimum(ahead, spread.after(float(after[-1].max())))
        ahead = np.maximum(ahead, 0.0)
        for x in range(n):
            ahead[x, x] = 0.0
        after.append(ahead)
        known = sides if chain.start == "stationary" else sides[: d + 1]
        past = np.zeros((n, n))
        for x, y in product(range(n), repeat=2):
            odds = min(side[y, x] for side in known)
            if sides[d][x, y] > -np.inf and odds > -np.inf:
                past[x, y] = sides[d][x, y] + odds + more
            past[x, y] = max(min(past[x, y], 2 * after[d].max() + more), 0.0)
            if d:
                past[x, y] = min(past[x, y], before[-1][x, y])
        before.append(past)
    return before, after


NEVER = (  # nothing leads to the last state; the first is left by both others, rarely
    np.array([[0.5, 0.25, 0.0], [0.0, 0.75, 0.0], [0.25, 0.5, 0.0]]),
    np.array([[0.75, 0.5, 0.0], [0.125, 1.0, 0.0], [0.5, 0.75, 0.0]]),
)
SPARSE = (LOWER * (LOWER != 0.0625), UPPER)  # after two steps everything is possible for sure
NARROW = (LOWER, np.minimum(UPPER, LOWER + 0.25))


@pytest.mark.parametrize("start", ["any", "stationary"])
@pytest.mark.parametrize("given", [(LOWER, UPPER), NEVER, SPARSE, NARROW])
@pytest.mark.parametrize("far", [1, 2, 5])
def test_terms_are_those_of_loops_written_out(
    given: tuple[Floats, Floats], start: Start, far: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = IntervalMarkovChain(*given, start=start)
    plain = boxes._terms(chain, far)
    for found, truth in zip(plain, terms(chain, far, 0.0), strict=True):
        assert len(found) == len(truth) == far
        for one, other in zip(found, truth, strict=True):
            assert one == pytest.approx(other, abs=1e-11)
    # what is added up is raised, also where another bound is the least
    monkeypatch.setattr(boxes, "up", lambda value: up(value) + 0.125)
    before, _ = boxes._terms(chain, far)
    for one, other in zip(before, terms(chain, far, 0.125)[0], strict=True):
        assert one == pytest.approx(other, abs=1e-11)


def test_the_spread_of_values_is_raised_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = IntervalMarkovChain(LOWER, UPPER)
    spread = boxes._Spread(chain)
    exact = spread.after(1.25)
    monkeypatch.setattr(boxes, "up", lambda value: np.asarray(up(value) + 0.25))
    assert spread.after(1.0) == pytest.approx(exact + 0.25, abs=1e-12)


def test_a_bound_that_cannot_be_used_leaves_the_others() -> None:
    """Where rows lack more than there is, the bound by what they lack says nothing."""
    low, high = np.full((3, 3), 0.0625), np.full((3, 3), 0.875)
    chain = IntervalMarkovChain(low, high)
    found = boxes._Spread(chain).after(2.0)
    grown = math.e**2 - 1
    # over sets of one or two: at most the upper bounds, and all but the lower ones of the rest
    truth = max(
        (1 + grown * min(0.875 * k, 1 - 0.0625 * (3 - k))) / (1 + grown * 0.0625 * k)
        for k in (1, 2)
    )
    assert (found >= math.log(truth)).all() and (found <= 2.0 + 1e-12).all()


@pytest.mark.parametrize("seed", range(4))
def test_means_of_the_smallest_numbers_are_rounded_outwards(seed: int) -> None:
    """Where numbers are about as small as the least that is told apart from 0."""
    rng = np.random.default_rng(seed)
    least = 2.0**-900
    values = least * rng.uniform(1.0, 4.0, (3, 3))
    row = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
    point = np.array([[float(one) for one in row]] * 3)
    chain = IntervalMarkovChain(point, point)
    high = boxes._mixed(chain, values, largest=True)
    low = boxes._mixed(chain, values, largest=False)
    for z in range(3):
        truth = sum(p * Fraction(float(v)) for p, v in zip(row, values[:, z], strict=True))
        for x in range(3):
            assert truth <= Fraction(float(high[x, z])) <= max(map(Fraction, values[:, z].tolist()))
            assert Fraction(float(low[x, z])) <= truth
            assert low[x, z] in (0.0, *values[:, z]) or low[x, z] >= least


def test_what_is_possible_stays_possible_however_small() -> None:
    """Two steps of 2^-500 at most: the last state is reached with 2^-900 rather than never."""
    lower = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5]])
    upper = lower.copy()
    upper[0, 1] = upper[1, 2] = 2.0**-500
    chain = IntervalMarkovChain(lower, upper)
    first, second, third = boxes._extremes(chain, 3)
    for most, least in (first, second, third):
        assert least.log[0, 1] == least.log[0, 2] == least.log[1, 2] == -np.inf
        assert most.log[0, 1] == pytest.approx(-500 * math.log(2), abs=1.5)
        assert most.log[1, 0] == least.log[1, 0] == -np.inf
        assert most.log[0, 0] == pytest.approx(0.0, abs=1e-13)
    assert first[0].log[0, 2] == -np.inf
    assert second[0].log[0, 2] == pytest.approx(-900 * math.log(2), abs=1e-9)
    assert third[0].log[0, 2] == pytest.approx(-899 * math.log(2), abs=1e-9)
    assert third[1].log[2, 2] == pytest.approx(3 * math.log(0.5), abs=1e-12)
