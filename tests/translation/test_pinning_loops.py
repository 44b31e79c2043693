"""The loops of pinning: formulas to many digits, products and paths in full, all datasets."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest

from takifugu.translation.network import pinning_kernel

pytestmark = pytest.mark.nightly

loops: Any = pinning_kernel  # what is compiled has lost its types
BIG, HUGE = loops.BIG, loops.HUGE


@pytest.fixture(autouse=True)
def _as_compiled() -> Iterator[None]:
    """Compiled loops do not warn of what they test for; nor shall they as plain Python."""
    with np.errstate(all="ignore"), mpmath.workdps(80):
        yield


def factor(odds: mpmath.mpf, more: mpmath.mpf) -> mpmath.mpf:
    """What a contact with these odds multiplies the odds of its neighbour by: (1 + az)/(1 + z)."""
    return (1 + (1 + more) * odds) / (1 + odds)


def gain(odds: object, grown: object, more: object) -> mpmath.mpf:
    """By how much that factor gains when the odds gain ``grown``."""
    z, d, m = mpmath.mpf(odds), mpmath.mpf(grown), mpmath.mpf(more)
    return factor(z * (1 + d), m) / factor(z, m) - 1


def test_factors_are_multiplied_as_gains() -> None:
    for one, other in product([0.0, 1e-300, 1e-9, 0.5, 3.0, 1e150], repeat=2):
        exact = (1 + mpmath.mpf(one)) * (1 + mpmath.mpf(other)) - 1
        assert loops.together(one, other) == pytest.approx(float(exact), rel=1e-15)
    assert loops.together(HUGE, 0.0) == loops.together(0.0, HUGE) == np.inf
    assert loops.together(np.inf, 0.0) == np.inf
    assert loops.together(0.99 * HUGE, 0.0) == 0.99 * HUGE


def test_lower_bounds_that_are_computed_with() -> None:
    found = [loops.at_most_big(one) for one in (0.0, 2.5, BIG, 2 * BIG, np.inf, np.nan)]
    assert found == [0.0, 2.5, BIG, BIG, BIG, 0.0]


ODDS = [0.0, 1e-80, 1e-9, 0.3, 1.0, 4.0, 1e9, 1e59]
GAINS = [0.0, 1e-250, 1e-9, 0.4, 3.0, 1e12, 1e70, 1e190]


def test_what_a_contact_adds() -> None:
    for odds, more in product(ODDS, GAINS):
        exact = factor(mpmath.mpf(odds), mpmath.mpf(more)) - 1
        assert loops.felt(odds, more) == pytest.approx(float(exact), rel=1e-14)
    assert loops.felt(BIG, 3.0) == loops.felt(np.inf, 3.0) == 3.0
    assert loops.felt(0.5 * BIG, 3.0) <= 3.0


@pytest.mark.parametrize("more", [*GAINS, 1e61])
@pytest.mark.parametrize("grown", [*GAINS, 1e61])
def test_what_a_contact_gains(grown: float, more: float) -> None:
    with mpmath.workdps(500):
        for odds in ODDS:
            exact = float(gain(odds, grown, more))
            assert loops.gained(odds, grown, more) == pytest.approx(exact, rel=1e-13, abs=1e-305)
    assert loops.gained(2.0, np.inf, 3.0) == pytest.approx(3.0 / 9.0, rel=1e-14)
    assert loops.gained(2.0, 1e250, 3.0) == pytest.approx(3.0 / 9.0, rel=1e-14)


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 0.1), (0.1, 0.1), (0.2, 5.0), (3.0, 40.0), (0.05, 1e59), (0.0, 1e-9)]
)
@pytest.mark.parametrize("grown", [1e-9, 0.4, 30.0])
@pytest.mark.parametrize("more", [1e-6, 0.7, 50.0])
def test_the_most_and_the_least_a_contact_gains(
    low: float, high: float, grown: float, more: float
) -> None:
    """At one peak, where z² a (1 + D) = 1, and at the ends."""
    peak = 1 / mpmath.sqrt((1 + mpmath.mpf(more)) * (1 + mpmath.mpf(grown)))
    at = min(max(peak, mpmath.mpf(low)), mpmath.mpf(high))
    most = gain(at, grown, more)
    grid = [gain(low + (high - low) * mpmath.mpf(k) / 50, grown, more) for k in range(51)]
    assert max(grid) <= most * (1 + mpmath.mpf(10) ** -60)
    found = loops.most_gain(low, high, grown, more)
    assert found == pytest.approx(float(most), rel=1e-13, abs=1e-305)
    least = loops.least_gain(low, high, grown, more)
    assert least == pytest.approx(float(min(grid[0], grid[-1])), rel=1e-13)
    assert min(grid) >= min(grid[0], grid[-1])


def test_gains_at_the_end_of_floats() -> None:
    assert loops.most_gain(0.0, 1.0, HUGE, 2.0) == 2.0
    assert loops.most_gain(0.0, 1.0, 0.5, HUGE) == HUGE
    assert loops.most_gain(0.0, np.inf, 0.5, 2.0) == pytest.approx(
        float(gain(1 / mpmath.sqrt(4.5), 0.5, 2.0)), rel=1e-14
    )
    for given in ((1.0, np.inf, 0.5, 2.0), (1.0, BIG, 0.5, 2.0), (0.0, 1.0, 0.5, 2.0)):
        assert loops.least_gain(*given) == 0.0
    assert loops.least_gain(1.0, 2.0, 1e-295, 2.0) == 0.0  # might have been rounded up
    assert loops.least_gain(1.0, 2.0, 2.0, 1e-295) == 0.0
    assert loops.least_gain(1e-200, 2.0, 1e-100, 1.0) == 0.0
    assert loops.gained(1e26, 1e-280, 1.0) > 0
    assert loops.least_gain(1.0, 1e26, 1e-280, 1.0) == 0.0  # less than LEAST
    assert 0 < loops.least_gain(1.0, 2.0, 1e-280, 2.0) < 1e-280


def times(factors: list[float]) -> float:
    return float(mpmath.fprod(1 + mpmath.mpf(one) for one in factors) - 1)


@pytest.mark.parametrize("count", range(1, 6))
def test_products_without_each(count: int) -> None:
    rng = np.random.default_rng(count)
    ordered = rng.exponential(1.0, count)
    for keep in range(count + 2):
        room, found = np.full(count + 1, np.nan), np.full(count, np.nan)
        loops.without_each(ordered, count, keep, room, found)
        for r in range(count):
            others = [float(one) for k, one in enumerate(ordered) if k != r][:keep]
            assert found[r] == pytest.approx(times(others), rel=1e-13)


def test_places_in_order() -> None:
    values = np.array([2.0, 1.0, 3.0, 1.0, 2.0, 0.5, 9.0])
    for count in range(7):
        for rising in (True, False):
            order = np.full(7, -1)
            loops.sort_places(values, count, rising, order)
            listed = sorted(range(count), key=lambda k: values[k] if rising else -values[k])
            assert order[:count].tolist() == listed  # equal ones in the order they came


def contacts(
    rng: np.random.Generator, n: int, density: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A random graph, as near, back and degree, each in an order of its own."""
    joined = np.triu(rng.random((n, n)) < density, 1)
    for k in range(n - 1):
        joined[k, k + 1] = True  # connected
    lists = [rng.permutation(np.flatnonzero((joined | joined.T)[i])).tolist() for i in range(n)]
    degree = np.array([len(one) for one in lists])
    near = np.zeros((n, degree.max()), np.int64)
    back = np.zeros((n, degree.max()), np.int64)
    for i, one in enumerate(lists):
        near[i, : len(one)] = one
        back[i, : len(one)] = [lists[j].index(i) for j in one]
    return near, back, degree


@pytest.mark.parametrize("seed", range(6))
def test_how_many_must_be_gone_for_a_pin(seed: int) -> None:
    """As many as there are steps, without g, to a contact of g behind w in g's order."""
    rng = np.random.default_rng(seed)
    n = 7
    near, back, degree = contacts(rng, n, 0.1 + 0.05 * seed)
    for most in (1, 2, 6):
        found = loops.pin_levels(near, back, degree, most)
        for w, g in product(range(n), repeat=2):
            places = [a for a in range(degree[w]) if near[w, a] == g]
            if not places:
                continue
            goals = set(near[g, back[w, places[0]] + 1 : degree[g]].tolist())
            reached, steps, truth = {w}, 0, most + 1
            while steps < most and truth > most:
                steps += 1
                reached |= {
                    int(u) for v in reached for u in near[v, : degree[v]].tolist() if u != g
                }
                if reached & goals:
                    truth = steps
            assert found[w, places[0]] == truth


class Field:
    """A small attractive field: odds, couplings, and what the loops are given of it."""

    def __init__(self, seed: int, n: int, density: float, *, loose: float = 0.0) -> None:
        rng = np.random.default_rng(seed)
        self.n = n
        self.near, self.back, self.degree = contacts(rng, n, density)
        self.odds, self.own = rng.exponential(1.0, n), rng.exponential(0.5, n)
        pulls = rng.exponential(0.8, (n, n))
        self.more = np.triu(pulls, 1) + np.triu(pulls, 1).T
        width = self.near.shape[1]
        ends = np.zeros((2, n, width))
        for i in range(n):
            for a in range(self.degree[i]):
                ends[:, i, a] = self.more[i, self.near[i, a]]
        self.low, self.high = self.odds * (1 - loose), self.odds * (1 + loose)
        self.weak, self.strong = ends[0] * (1 - loose), ends[1] * (1 + loose)
        self.whole = times(self.own.tolist())

    def boxes(self, levels: int) -> np.ndarray:
        """The boxes of so many levels."""
        pins = loops.pin_levels(self.near, self.back, self.degree, levels)
        boxes = np.full((levels, self.n, self.near.shape[1], 5), np.nan)
        loops.far_boxes(
            *(self.low, self.high, self.own, self.whole, self.near, self.back, self.degree),
            *(self.weak, self.strong, pins, boxes),
        )
        return boxes

    def explore(
        self, entry: int, boxes: np.ndarray, depth: int, **given: float
    ) -> tuple[float, ...]:
        """The box of an entry, explored to a depth."""
        gone, pinned = np.zeros(self.n, np.bool_), np.ones((2, self.n))
        self.visits = np.zeros(1, np.int64)
        found: tuple[float, ...] = loops.explore(
            *(entry, 0, 1.0, given.get("tolerance", 0.0), int(given.get("most", 10**6))),
            *(self.low, self.high, self.own, self.near, self.degree, self.weak, self.strong),
            *(boxes, gone, pinned, np.zeros((depth, 2, self.near.shape[1])), self.visits),
        )
        assert not gone.any() and (pinned == 1.0).all()
        return found

    def exactly(self, entry: int) -> tuple[mpmath.mpf, mpmath.mpf]:
        """Odds of an entry, and what they gain when all fields rise: over all datasets."""
        sums = [[mpmath.mpf(0)] * 2, [mpmath.mpf(0)] * 2]
        for x in product((0, 1), repeat=self.n):
            weight = mpmath.fprod(mpmath.mpf(float(self.odds[i])) for i in range(self.n) if x[i])
            for i in range(self.n):
                for a in range(self.degree[i]):
                    j = int(self.near[i, a])
                    if j < i and x[i] and x[j]:
                        weight *= 1 + mpmath.mpf(float(self.more[i, j]))
            risen = mpmath.fprod(1 + mpmath.mpf(float(self.own[i])) for i in range(self.n) if x[i])
            sums[0][x[entry]] += weight
            sums[1][x[entry]] += weight * risen
        odds, after = (pair[1] / pair[0] for pair in sums)
        return odds, after / odds - 1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("depth", [1, 2, 3, 7])
@pytest.mark.parametrize("levels", [1, 3])
def test_odds_and_their_gains_are_in_the_box(seed: int, depth: int, levels: int) -> None:
    field = Field(seed, 5, 0.5)
    boxes = field.boxes(levels)
    for entry in range(5):
        low, high, least, most = field.explore(entry, boxes, depth)
        odds, gained = field.exactly(entry)
        assert low <= odds <= high and least <= gained <= most
        if depth > 5:  # the whole tree of walks: nothing is left open
            assert high <= low * (1 + 1e-12) and most <= least * (1 + 1e-12)


def test_a_loose_field_has_loose_odds_and_less_is_explored_where_it_does_not_matter() -> None:
    tight, loose = Field(3, 5, 0.4), Field(3, 5, 0.4, loose=0.01)
    for entry in range(5):
        odds, gained = tight.exactly(entry)
        low, high, least, most = loose.explore(entry, loose.boxes(3), 7)
        assert low * 1.005 < odds < high / 1.005 and least <= gained <= most
        boxes = tight.boxes(3)
        visits, widths = [], []
        for tolerance in (0.0, 0.02, 10.0):
            low, high, least, most = tight.explore(entry, boxes, 7, tolerance=tolerance)
            assert low <= odds <= high and least <= gained <= most
            visits.append(int(tight.visits[0]))
            widths.append(most - least)
        assert visits[0] > visits[1] >= visits[2] == 1 and widths[0] < widths[2]
        for number in (1, 2, 4):
            low, high, least, most = tight.explore(entry, boxes, 7, most=number)
            assert low <= odds <= high and least <= gained <= most
            assert tight.visits[0] <= number


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("levels", [1, 2, 4])
def test_boxes_follow_level_by_level(seed: int, levels: int) -> None:
    """By their definition: all products written out, the strongest m left out or pinned."""
    field = Field(seed, 6, 0.4, loose=0.05 * (seed % 2))
    found = field.boxes(levels)
    pins = loops.pin_levels(field.near, field.back, field.degree, levels)
    behind: dict[tuple[int, int], list[float]] = {}
    for m in range(levels - 1, -1, -1):
        new: dict[tuple[int, int], list[float]] = {}
        for w in range(field.n):
            count = int(field.degree[w])
            terms = []
            for b in range(count):
                push, pull = float(field.weak[w, b]), float(field.strong[w, b])
                if m == levels - 1:
                    terms.append((0.0, pull, 0.0, pull, 0.0))
                    continue
                down, up, grown, more, _ = behind[w, b]
                seen = float(factor(mpmath.mpf(up), mpmath.mpf(pull)) - 1)
                pin = (pull - seen) / (1 + seen) if pins[w, b] <= m else 0.0
                ends = [gain(one, grown, push) for one in (down, up)]
                peak = 1 / mpmath.sqrt((1 + mpmath.mpf(pull)) * (1 + mpmath.mpf(more)))
                top = gain(min(max(peak, mpmath.mpf(down)), mpmath.mpf(up)), more, pull)
                low = float(factor(mpmath.mpf(down), mpmath.mpf(push)) - 1)
                terms.append((low, seen, float(min(ends)), float(top), pin))
            for b in range(count):
                others = [one for k, one in enumerate(terms) if k != b]
                columns = [sorted(one[part] for one in others) for part in range(5)]
                fewer = max(count - 1 - m, 0)
                low = field.low[w] * (1 + times(columns[0][:fewer]))
                upper = field.high[w] * (1 + times(columns[1]))
                pinned = upper * (1 + times(columns[4][len(columns[4]) - m :] if m else []))
                least = times([field.own[w], times(columns[2][:fewer])])
                most = min(times([field.own[w], times(columns[3])]), field.whole)
                place = int(field.near[w, b]), int(field.back[w, b])
                new[place] = [low, pinned, least, most, upper]
                box = found[m, place[0], place[1]]
                assert box == pytest.approx(np.array(new[place]), rel=1e-12)
                assert box[0] <= low * (1 + 1e-15) and box[2] <= least * (1 + 1e-15)
                assert box[1] >= pinned and box[4] >= upper
                assert box[3] >= most * (1 - 1e-15)
        behind = {key: [float(one) for one in found[m, key[0], key[1]]] for key in new}


@pytest.mark.parametrize("seed", range(4))
def test_the_ends_of_a_loose_field_are_the_odds_of_its_ends(seed: int) -> None:
    """Odds rise with fields and couplings: least where all are least, and so for the most."""
    loose = Field(seed, 5, 0.5, loose=0.3)
    boxes = loose.boxes(3)
    least, most = Field(seed, 5, 0.5), Field(seed, 5, 0.5)
    least.odds, least.more = loose.odds * 0.7, loose.more * 0.7
    most.odds, most.more = loose.odds * 1.3, loose.more * 1.3
    for entry in range(5):
        lowest, highest = least.exactly(entry), most.exactly(entry)
        low, high, gained, grown = loose.explore(entry, boxes, 7)
        assert low == pytest.approx(float(lowest[0]), rel=1e-12) and low <= lowest[0]
        assert high == pytest.approx(float(highest[0]), rel=1e-12) and high >= highest[0]
        for depth in (1, 2, 3):
            less, more, small, large = loose.explore(entry, boxes, depth)
            assert less <= low * (1 + 1e-12) and more >= high * (1 - 1e-12)
            assert small <= gained * (1 + 1e-12) and large >= grown * (1 - 1e-12)
            for ends in (lowest, highest, Field(seed, 5, 0.5).exactly(entry)):
                assert small <= ends[1] <= large


def test_what_may_have_been_lost_to_underflow_is_added() -> None:
    field = Field(1, 4, 0.5)
    field.own[:], field.whole = 0.0, 1.0
    boxes = field.boxes(3)
    found = [field.explore(entry, boxes, depth) for entry in range(4) for depth in (1, 5)]
    filled = [boxes[:, i, : field.degree[i]].reshape(-1, 5) for i in range(4)]
    gains = [*np.concatenate(filled)[:, 2:4].tolist(), *(one[2:] for one in found)]
    for least, most in gains:
        assert least == 0.0 and most >= loops.LEAST
    field.own[:] = 1e-304
    field.whole = 1.0
    boxes = field.boxes(2)
    for entry in range(4):
        least, most = field.explore(entry, boxes, 5)[2:]
        assert least < 0.95e-304 and most > 1.05e-304
