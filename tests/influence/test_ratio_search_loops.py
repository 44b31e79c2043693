"""What each loop of the search for a largest ratio hands to the next, and makes of the answer.

The loop under test runs as it is written; those that it calls are replaced by notes of what they
were given. Parts differ in rows, width and cells, so that nothing can stand in for another.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from takifugu._rounding import UNIT
from takifugu.influence.network import ratios

pytestmark = pytest.mark.nightly

loops: Any = ratios  # what is compiled has lost its types


@pytest.fixture(autouse=True)
def _as_compiled() -> Iterator[None]:
    """Compiled loops do not warn of what they test for; nor shall they as plain Python."""
    with np.errstate(all="ignore"):
        yield


class Parts:
    """Messages of different rows and widths, in flat arrays, and the cell that a state is in."""

    def __init__(self, rows: list[int], width: list[int], states: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.rows, self.width = np.array(rows), np.array(width)
        sizes = self.rows * self.width
        self.start = np.concatenate([[0], np.cumsum(sizes)])[:-1]
        self.cells = rng.uniform(0.1, 1.0, int(sizes.sum()))
        self.place = np.stack([rng.integers(0, wide, states) for wide in width])
        ends = [self.table(k) for k in range(len(rows))]
        self.limit = np.concatenate([np.r_[one.max(axis=0), one.min(axis=0)] for one in ends])
        first = np.concatenate([[0], np.cumsum(2 * self.width)])[:-1]
        self.edge = np.stack([first, first + self.width], axis=1)
        self.lead = rng.uniform(0.5, 1.0, states)

    def table(self, number: int) -> np.ndarray:
        """The rows of a message."""
        wide = int(self.width[number])
        first = int(self.start[number])
        return self.cells[first : first + wide * int(self.rows[number])].reshape(-1, wide)

    def felt(self, number: int, row: int, place: np.ndarray) -> np.ndarray:
        """``[state]``: what a row contributes."""
        return np.array([self.table(number)[row, at] for at in place])


def test_places_by_falling_value_in_every_order() -> None:
    """A search ends at the first bound that is too low: those after it must be lower still."""
    for n in range(6):
        for order in permutations(range(n)):
            values = np.array(order, dtype=np.float64)
            assert values[loops.descending(values)].tolist() == [*range(n - 1, -1, -1)]


def test_ratios_are_found_closer_than_sets_are_told_apart() -> None:
    """And not closer than what rounding does to sums over sets of up to 2¹⁶ states."""
    assert 2.0**-36 < ratios.CLOSER < 1e-10


# ---- whether anything is left to hope for


@pytest.mark.parametrize("seed", range(6))
def test_room_for_rounding_is_a_share_of_all_that_was_added(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rest, half, states = 2, 4, 10  # two values of the secret against three
    weight, joint = rng.uniform(0.1, 1, states), rng.uniform(0.2, 1, (2, states))
    alone = np.sort(rng.uniform(0.2, 1, (2, rest)), axis=0)[::-1].copy()
    level = 3.0
    total = scale = Fraction(0)
    for r in range(rest):
        n = sum(Fraction(weight[h]) * Fraction(joint[0, h]) for h in range(r, half, rest))
        d = sum(Fraction(weight[h]) * Fraction(joint[1, h]) for h in range(half + r, states, rest))
        d *= Fraction(level)
        total += (n - d) * Fraction(alone[0 if n > d else 1, r])
        scale += (n + d) * Fraction(alone[0, r])
    assert total < 0
    most = float(-total / scale)  # the widest margin that leaves it proved

    def hopeless(margin: float) -> bool:
        return bool(loops.hopeless(weight, joint, alone, half, rest, level, margin))

    assert hopeless(most * (1 - 1e-9)) and not hopeless(most * (1 + 1e-9))


# ---- down through the rows


class Descent:
    """Three parts, of which the last is evaluated at once, and notes of what was asked."""

    def __init__(self, patch: pytest.MonkeyPatch, first: int = 0) -> None:
        self.parts = Parts([3, 2, 4, 2], [3, 4, 2, 5], states=9, seed=3)
        self.chosen = np.array([3, 0, 1])  # by number: 2 rows of 5, 3 of 3, 2 of 4
        self.place = self.parts.place[self.chosen]
        self.half, self.rest, self.first = 6, 3, first
        rng = np.random.default_rng(8)
        self.joint, self.alone = rng.random((4, 2, 9)), rng.random((4, 2, 3))
        self.asked: list[tuple[int, np.ndarray, float, float]] = []
        self.hopeless: Callable[[int, int], bool] = lambda *_: False
        patch.setattr(ratios, "hopeless", self._ask)

    def _ask(self, *given: Any) -> bool:
        weight, joint, alone, half, rest, level, margin = given
        depth = int(np.flatnonzero((self.joint == joint).all(axis=(1, 2)))[0])
        assert (alone == self.alone[depth]).all() and (half, rest) == (self.half, self.rest)
        self.asked.append((depth, weight.copy(), level, margin))
        return self.hopeless(depth, len(self.asked))

    def run(
        self, top: float, base: float, threshold: float = np.inf, budget: float = 1e6
    ) -> tuple[float, float, float]:
        """The best sums and the budget left."""
        of = self.parts
        work = np.full((4, 9), np.nan)
        work[self.first] = of.lead
        found = loops._descend(
            *(of.cells, of.start, of.rows, of.width, self.chosen, self.place, self.half),
            *(self.rest, self.first, work, self.joint, self.alone, np.full((2, 5), np.nan)),
            *(np.full(4, 77), top, base, threshold, budget),
        )
        return float(found[0]), float(found[1]), float(found[2])

    def after(self, *rows: int) -> np.ndarray:
        """``[state]``: the weights with rows of the first few parts chosen."""
        found = self.parts.lead.copy()
        for p, row in enumerate(rows, self.first):
            found *= self.parts.felt(int(self.chosen[p]), row, self.place[p])
        return found

    def sums(self, *rows: int) -> tuple[float, float]:
        """Both sums of a choice of all rows."""
        weight = self.after(*rows)
        return float(weight[: self.half].sum()), float(weight[self.half :].sum())


@pytest.mark.parametrize("start", [0.0, 0.6])
@pytest.mark.parametrize("first", [0, 1, 2])
def test_every_row_is_gone_into_with_the_level_of_the_best_so_far(
    first: int, start: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Descent(monkeypatch, first)
    counts = [2, 3, 2][first:]
    expected: list[tuple[int, np.ndarray, float]] = []
    best, sums, cost = (start or -1.0), (start, 1.0), 0
    level = start * (1 + ratios.CLOSER)
    before: tuple[int, ...] = ()
    expected.append((first, search.after(), level))
    for rows in product(*(range(count) for count in counts[:-1])):
        for depth in range(1, len(rows) + 1):
            if before[:depth] != rows[:depth]:
                expected.append((first + depth, search.after(*rows[:depth]), level))
                cost += 2 * 9
        before = rows
        for last in range(2):
            top, base = search.sums(*rows, last)
            if top / base > best:
                best, sums, level = top / base, (top, base), top / base * (1 + ratios.CLOSER)
        cost += 9 + 2 * 4
    top, base, left = search.run(start, 1.0)
    assert (top, base) == pytest.approx(sums, rel=1e-13) and 1e6 - left == cost
    assert [one[0] for one in search.asked] == [one[0] for one in expected]
    margin = (3 + 9 + 4 * 3 + 16) * 2 * UNIT  # for sums over both, products of each part, and more
    for (_, weight, given, room), (_, true, level) in zip(search.asked, expected, strict=True):
        assert weight == pytest.approx(true, rel=1e-13)
        assert given == pytest.approx(level, rel=1e-15) and (given > 0) == (level > 0)
        assert room == pytest.approx(margin, rel=1e-12, abs=0)


def test_nothing_is_evaluated_below_what_is_hopeless(monkeypatch: pytest.MonkeyPatch) -> None:
    search = Descent(monkeypatch)
    search.hopeless = lambda depth, _: depth == 1 and len(search.asked) == 2  # the first row
    top, base, left = search.run(0.0, 1.0)
    assert [one[0] for one in search.asked] == [0, 1, 1, 2, 2, 2]
    best = max(
        (search.sums(1, *rows) for rows in product(range(3), range(2))), key=lambda s: s[0] / s[1]
    )
    assert (top, base) == pytest.approx(best, rel=1e-13)
    assert 1e6 - left == 2 * 18 + 3 * 18 + 3 * (9 + 8)
    search.asked.clear()
    search.hopeless = lambda depth, _: depth == 2
    assert search.run(0.25, 0.5) == (0.25, 0.5, 1e6 - 2 * 18 - 6 * 18)


@pytest.mark.parametrize("reached", [True, False])
def test_a_threshold_that_is_reached_ends_the_descent(
    reached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Descent(monkeypatch)
    first = max((search.sums(0, 0, last) for last in range(2)), key=lambda s: s[0] / s[1])
    exact = search.run(0.0, 1.0, threshold=1e-3)  # the first leaf is enough
    assert exact[:2] == pytest.approx(first, rel=1e-13)
    value = exact[0] / exact[1]
    ended = search.run(0.0, 1.0, threshold=value if reached else np.nextafter(value, np.inf))
    assert (1e6 - ended[2] == 2 * 18 + 17) == reached


# ---- limits and rough bounds


def test_limits_are_written_for_the_states_there_are() -> None:
    """Longer arrays are left as they are beyond them."""
    of = Parts([2, 3], [3, 2], states=4, seed=5)
    joint, alone = np.full((3, 2, 6), np.nan), np.full((3, 2, 5), np.nan)
    place = np.array([[0, 2, 1, 0], [1, 0, 1, 0]])
    loops.limits(
        of.limit, of.edge, np.array([0, 1]), place, np.array([True, False]), 2, joint, alone
    )
    for side, best in ((0, np.max), (1, np.min)):
        held = [best(of.table(0)[:, at]) for at in place[0]]
        free = [best(of.table(1)[:, at]) for at in place[1, :2]]
        assert joint[:, side, :4].tolist() == [held, [1.0] * 4, [1.0] * 4]
        assert alone[:, side, :2].tolist() == [free, free, [1.0] * 2]
    assert np.isnan(joint[:, :, 4:]).all() and np.isnan(alone[:, :, 2:]).all()


def test_a_rough_bound_for_each_case() -> None:
    of = Parts([2, 3, 1, 2, 4], [3, 2, 3, 2, 2], states=6, seed=7)
    cases = np.array([[0, 1], [2, 3], [0, 4]])
    place = np.array([[0, 2, 1, 1, 0, 2], [1, 0, 1, 0, 0, 1]])
    found = np.full(3, np.nan)
    loops.rough(of.limit, of.edge, cases, place, of.lead, 4, found)
    for k, (a, b) in enumerate(cases):
        most, least = (
            of.lead * best(of.table(a), axis=0)[place[0]] * best(of.table(b), axis=0)[place[1]]
            for best in (np.max, np.min)
        )
        assert found[k] == pytest.approx(most[:4].sum() / least[4:].sum(), rel=1e-13)


# ---- a high ratio, without a proof


def climbed(of: Parts, cases: np.ndarray, hint: int) -> tuple[float, float, int, np.ndarray]:
    """What climbing finds over two parts and six states, and the rough bounds it leaves."""
    outer = np.full(len(cases), -1.0)  # whatever was there: it is written anew
    place = np.array([[0, 2, 1, 1, 0, 2], [1, 0, 1, 0, 0, 1]])
    top, base, where = loops.climb(
        *(of.cells, of.start, of.rows, of.width, of.limit, of.edge, cases, place, of.lead),
        *(3, np.inf, hint, np.empty((3, 6)), np.empty((2, 3)), outer),
    )
    return top, base, where, outer


@pytest.mark.parametrize("number", [1, 2, 5, 40])
def test_what_is_found_belongs_to_the_case_that_is_named(number: int) -> None:
    of = Parts([2, 3] * number, [3, 2] * number, states=6, seed=number)
    cases = np.arange(2 * number).reshape(number, 2)
    top, base, where, outer = climbed(of, cases, number - 1)
    place = np.array([[0, 2, 1, 1, 0, 2], [1, 0, 1, 0, 0, 1]])
    rough = np.full(number, np.nan)
    loops.rough(of.limit, of.edge, cases, place, of.lead, 3, rough)
    assert outer.tolist() == rough.tolist()
    values = {}
    for k, rows in product(range(number), product(range(2), range(3))):
        weight = of.lead.copy()
        for p in range(2):
            weight *= of.felt(2 * k + p, rows[p], place[p])
        values[k, rows] = weight[:3].sum(), weight[3:].sum()
    assert any(
        (top, base) == pytest.approx(s, rel=1e-13) for (k, _), s in values.items() if k == where
    )
    assert top / base == pytest.approx(max(n / d for n, d in values.values()), rel=1e-10)


def test_every_start_is_a_choice_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    of = Parts([2, 3] * 6, [3, 2] * 6, states=6, seed=9)
    cases = np.arange(12).reshape(6, 2)
    starts: list[tuple[int, int]] = []

    def ascend(*given: Any) -> tuple[float, float]:
        starts.append((int(given[8][0]), int(given[8][1])))
        return 0.01, 1.0

    monkeypatch.setattr(ratios, "ascend", ascend)
    outer, place = np.full(6, -1.0), np.array([[0, 2, 1, 1, 0, 2], [1, 0, 1, 0, 0, 1]])
    found = loops._climb(
        *(of.cells, of.start, of.rows, of.width, of.limit, of.edge, cases, place, of.lead),
        *(3, np.inf, 2, np.empty((3, 6)), np.empty((2, 3)), outer),
    )
    assert found == (0.01, 1.0, 2) and (outer > 0).all()
    assert all(0 <= a < 2 and 0 <= b < 3 for a, b in starts)
    assert set(starts) == set(product(range(2), range(3)))  # all of them are begun from


def test_nothing_is_found_where_a_side_cannot_happen() -> None:
    of = Parts([2, 3] * 3, [3, 2] * 3, states=6, seed=2)
    of.lead[:3] = 0.0
    top, base, where, outer = climbed(of, np.arange(6).reshape(3, 2), 2)
    assert (top, base, where) == (0.0, 0.0, 2) and outer.tolist() == [-1.0] * 3


# ---- compiling


def test_what_is_compiled_is_kept_on_disk_where_there_is_a_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[dict[str, Any]] = []

    def njit(**options: Any) -> Callable[[Any], Any]:
        asked.append(options)
        if options.get("cache") and len(asked) == 2:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda loop: (loop, len(asked))

    monkeypatch.setattr(loops.numba, "njit", njit)
    assert loops._compiled(climbed) == (climbed, 1)
    assert asked == [{"cache": True, "error_model": "numpy"}]
    assert loops._compiled(climbed) == (climbed, 3)
    assert asked[2] == {"error_model": "numpy"}
