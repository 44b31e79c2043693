"""Which pairs and entries are solved: with sides that know the truth and write down who asks."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any, cast

import numpy as np
import pytest

from takifugu.numeric import Booleans, Floats, Integers
from takifugu.translation.chain import coalescing, solved_chains
from takifugu.translation.chain.coalescing import worst_pair
from takifugu.translation.chain.solved_adversaries import (
    CLOSE,
    ROUGH,
    TALLEST,
    SolvedSides,
    solve_anywhere,
    solve_entries,
)
from takifugu.translation.chain.solved_chains import RisingLosses, StationaryChain, refined
from takifugu.translation.chain.star_sides import StarWalk
from takifugu.translation.chain.stars import Star, star_of

pytestmark = pytest.mark.nightly

UNIT = 2.0**-53


@dataclass
class Asked:
    """Sides of which each stage of each pair is known; it says what was asked."""

    rough: Floats
    close: Floats
    affordable: int = 50
    calls: list[tuple[int, int, float, float]] = field(default_factory=list)

    def anywhere(self, x: int, y: int, cap: float, close: float) -> float:
        """What that stage finds."""
        self.calls.append((x, y, cap, close))
        return float((self.close if close == CLOSE else self.rough)[x, y])

    def at_entries(self, x: int, y: int, cap: float, close: float, length: int) -> Floats:
        """What that stage finds, entry by entry."""
        self.calls.append((x, y, cap, close))
        found = (self.close if close == CLOSE else self.rough)[:, x, y]
        assert len(found) == length
        return found


def test_pairs_are_solved_until_the_largest_is_a_solved_one() -> None:
    """Roughly, then closely; never those that are no secret, nor those that lose less."""
    table = np.array([[0.0, 5.0, 4.0], [9.0, 0.0, 1.0], [3.0, 2.0, 0.0]])
    mask = ~np.eye(3, dtype=bool)
    mask[1, 0] = False
    rough = np.array([[0.0, 3.5, 4.5], [0.0, 0.0, 0.0], [2.75, 0.0, 0.0]])
    close = np.array([[0.0, 2.5, 3.75], [0.0, 0.0, 0.0], [2.7, 0.0, 0.0]])
    sides = Asked(rough, close)
    found = solve_anywhere(cast("SolvedSides", sides), table, mask)
    assert found.tolist() == [[0.0, 3.5, 3.75], [9.0, 0.0, 1.0], [3.0, 2.0, 0.0]]
    assert sides.calls == [(0, 1, 5.0, ROUGH), (0, 2, 4.0, ROUGH), (0, 2, 4.0, CLOSE)]
    assert table[0, 1] == 5.0  # what was given is left as it was
    few = Asked(rough, close, affordable=1)
    solve_anywhere(cast("SolvedSides", few), table, mask)
    assert len(few.calls) == 2  # both stages of one pair
    none = Asked(rough, close)
    assert (solve_anywhere(cast("SolvedSides", none), np.zeros((3, 3)), mask) == 0).all()
    assert not none.calls


def test_a_loss_as_large_as_was_looked_for_is_no_bound() -> None:
    """Where nothing was known the search is capped: a loss at the cap may be any."""
    table = np.array([[0.0, np.inf], [np.inf, 0.0]])
    losses = np.array([[0.0, TALLEST], [TALLEST - 1, 0.0]])
    mask = np.array([[False, True], [True, False]])
    for one in ((0, 1), (1, 0)):
        only = np.zeros((2, 2), bool)
        only[one] = True
        found = solve_anywhere(cast("SolvedSides", Asked(losses, losses)), table, mask & only)
        assert found[one] == (np.inf if one == (0, 1) else TALLEST - 1)
        assert found[one[::-1]] == np.inf
    # a cap that was a bound is one
    low = np.array([[0.0, 2.0], [1.0, 0.0]])
    kept = solve_anywhere(cast("SolvedSides", Asked(low, low)), low, mask)
    assert kept.tolist() == low.tolist()


def test_entries_are_solved_where_secrets_are() -> None:
    """The same of a table for each entry: caps are of all entries, the largest of secret ones."""
    first = np.array([[0.0, 5.0], [4.0, 0.0]])
    second = np.array([[0.0, 7.0], [np.inf, 0.0]])
    at = np.array([0, 1, 0])
    secret = np.array([True, False, True])
    mask = np.array([[False, True], [True, False]])
    rough = np.array([first, second, first])
    rough[:, 0, 1] = [4.5, 8.0, 4.25]
    rough[:, 1, 0] = [3.5, 6.0, 3.0]
    close = rough.copy()
    close[:, 0, 1] = [4.4, 6.5, 4.6]
    sides = Asked(rough, close)
    found = solve_entries(cast("SolvedSides", sides), [first, second], at, secret, mask)
    assert sides.calls == [(0, 1, 7.0, ROUGH), (0, 1, 7.0, CLOSE)]
    assert found[:, 0, 1].tolist() == [4.4, 6.5, 4.25]
    assert found[:, 1, 0].tolist() == [4.0, np.inf, 4.0]
    only = np.array([[False, False], [True, False]])
    sides = Asked(rough, close)
    found = solve_entries(cast("SolvedSides", sides), [first, second], at, secret, only)
    assert [call[:3] for call in sides.calls] == [(1, 0, 4.0)] * 2
    assert found[:, 1, 0].tolist() == [3.5, 6.0, 3.0] and found[1, 0, 1] == 7.0
    nobody = np.zeros(3, bool)
    none = Asked(rough, close)
    assert (
        solve_entries(cast("SolvedSides", none), [first], np.zeros(3, int), nobody, mask) == first
    ).all()
    assert not none.calls


@dataclass
class Searched:
    """A search that ends close to the truth: half of what it may, above it."""

    truth: Floats
    start: Floats | None = None

    @property
    def steps(self) -> int:
        """How many entries are walked."""
        return len(self.truth) - 1

    def search(self, *_: float) -> "Searched":
        """The same for every pair."""
        return self

    def losses(self, close: float, near: Booleans | None = None) -> Floats:
        """The truth and half of what it may be off by, more where it is not near."""
        far = self.truth + close / 2
        return far if near is None else np.where(near, far, self.truth + ROUGH)


def test_both_sides_of_a_pair_add_up() -> None:
    """Its own cost, and what it loses before and after, at each entry or at any."""
    after, before = Searched(np.array([0.0, 1.0, 1.5])), Searched(np.array([0.0, 0.25, 0.5, 0.6]))
    cost = np.array([[0.0, 0.125], [0.0, 0.0]])
    sides = SolvedSides(cast("StarWalk", after), cast("StarWalk", before), cost)
    for close in (ROUGH, CLOSE):
        total = sides.anywhere(0, 1, 2.0, close)
        assert 0.125 + 1.5 + 0.6 + 2 * close <= total <= 0.125 + 1.5 + 0.6 + 2 * close + 1e-12
        found = sides.at_entries(0, 1, 2.0, close, 6)
        # entries 0 to 5: two steps after are walked, and three before
        truth = 0.125 + np.array([1.5, 1.75, 2.0, 2.1, 1.6, 0.6])
        assert (found >= truth + 2 * close - 1e-12).all() and (
            found <= truth + 2 * ROUGH + 1e-9
        ).all()
        assert found[3] <= 2.225 + 2 * close + 1e-12


def test_entries_are_solved_from_the_largest_bound_on() -> None:
    """``refined`` with pairs whose own cost is all that is lost."""
    bounds = np.array([3.0, 5.0, 4.0, 2.0, 0.0])
    losses = {0: 2.0, 1: 2.5, 2: 4.5, 3: 1.0}
    asked: list[int] = []

    def at(entry: int) -> Any:
        asked.append(entry)
        own = np.array([0.5, losses[entry]])
        return None, None, own, np.array([[0, 1], [2, 3]])

    found, top, pair = refined(bounds, at, work=1e9)  # two are affordable
    assert asked == [1, 2] and top == 2 and pair == (2, 3)
    assert found == pytest.approx([3.0, 2.5, 4.0, 2.0, 0.0])
    asked.clear()
    found, top, pair = refined(bounds, at, work=1e3)  # few: all that lose something
    assert asked == [0, 1, 2, 3] and (top, pair) == (2, (2, 3))
    assert found == pytest.approx([2.0, 2.5, 4.0, 1.0, 0.0])
    asked.clear()
    found, top, pair = refined(bounds, at, work=1e9, every=True)  # too many
    assert asked == [] and (top, pair) == (1, None) and found.tolist() == bounds.tolist()
    found, top, pair = refined(bounds, at, work=4e7, every=True)
    assert asked == [0, 1, 2, 3] and found == pytest.approx([2.0, 2.5, 4.0, 1.0, 0.0])
    found, top, pair = refined(bounds, lambda _: None, work=1e9)
    assert found.tolist() == bounds.tolist() and (top, pair) == (1, None)
    assert refined(np.zeros(2), at, work=1e9)[2] is None
    empty = np.zeros(0), np.zeros((0, 2), int)
    found, top, pair = refined(bounds, lambda _: (None, None, *empty), work=1e9)
    assert found.tolist() == [3.0, 0.0, 0.0, 2.0, 0.0] and (top, pair) == (0, None)


def test_a_finite_chain_is_as_bad_as_its_worst_entry() -> None:
    """Every entry solved by itself: the largest is found, and no entry is below its own loss."""
    rows = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    law = np.linalg.matrix_power(rows, 200)[0]
    back = (law[:, None] * rows).T / law[:, None]
    pairs = np.argwhere(~np.eye(3, dtype=bool))
    chain = StationaryChain(rows, back, (1e-14, 1e-14), pairs)
    cost = np.where(np.eye(3) > 0, 0.0, 0.4)
    for length in (1, 2, 9, 40):
        sides = chain.sides(star_of(cost), max(length - 1, 1))
        assert sides is not None
        truths, worst = [], []
        for i in range(length):
            one = worst_pair(
                sides[0].nearest(length - 1 - i), sides[1].nearest(i), np.full(6, 0.4), pairs
            )
            truths.append(one.loss)
            worst.append(one.pair)
        for entries in (None, np.array([0, length - 1]) if length > 1 else np.array([0])):
            listed = range(length) if entries is None else entries.tolist()
            found = chain.finite(cost, length, entries)
            assert found is not None and found.by_entry is not None
            top = max(truths[i] for i in listed)
            assert top - 1e-12 <= found.value <= top * (1 + 1e-6)
            assert found.entry is not None and found.entry in listed
            assert truths[found.entry] >= top * (1 - 1e-6)
            assert found.pair == tuple(pairs[worst[found.entry]])
            for i in range(length):
                if i in listed:
                    assert truths[i] - 1e-12 <= found.by_entry[i] <= found.value
                else:
                    assert found.by_entry[i] == 0.0


class Nothing:
    """A side through which nothing seems to be lost."""

    def glance(self, pairs: Integers) -> Floats:
        """0 for every pair."""
        return np.zeros(len(pairs))


@dataclass
class Rising:
    """A chain whose pairs lose so many times the multiple, and how often it was asked."""

    slopes: Floats
    asked: list[tuple[float, int, float]] = field(default_factory=list)

    @property
    def pairs(self) -> Integers:
        """One value beside each other one."""
        return np.array([[0, place + 1] for place in range(len(self.slopes))])

    def sides(self, *_: Any) -> Any:
        """Two sides that lose nothing."""
        return Nothing(), Nothing()

    def worst(
        self, cost: Floats, *, leeway: float, among: Integers, guesses: tuple[Floats, Floats]
    ) -> Any:
        """The largest multiple of a slope, and those that lose nearly as much."""
        multiple = float(cost.max())
        assert all(len(guess) == len(among) for guess in guesses)
        self.asked.append((multiple, len(among), leeway))
        losses = multiple * self.slopes[among]
        loss = float(losses.max()) if len(among) else -1.0
        rivals = np.flatnonzero(losses > leeway * loss) if leeway < 1 else np.arange(len(among))
        others = leeway * loss if leeway < 1 else 0.0
        return coalescing.WorstPair(loss, 0, (0.0, 0.0), rivals, others)


def test_the_losses_of_rising_multiples_are_those_of_all_pairs() -> None:
    chain = Rising(np.array([0.1, 1.0, 0.97, 0.5, 0.99]))
    losses = RisingLosses(cast("StationaryChain", chain), np.where(np.eye(3) > 0, 0.0, 1.0))
    for multiple in (0.1, 0.11, 0.115, 0.5, 3.0):
        assert losses.at(multiple) == pytest.approx(multiple)
    # looked at far ahead with all, a little ahead with three, and then with those
    far, near = (ahead for ahead, _ in solved_chains.AHEAD)
    assert chain.asked[0][0] == pytest.approx(0.1 * far) and chain.asked[0][1:] == (5, 0.8)
    assert chain.asked[1][0] == pytest.approx(0.1 * near) and chain.asked[1][1:] == (3, 0.94)
    assert chain.asked[2][0] == pytest.approx(0.1) and chain.asked[2][1:] == (3, 1.0)
    # below the last ceiling only the near look is taken again, up to that ceiling
    assert chain.asked[3][0] == pytest.approx(0.11 * near) and chain.asked[3][1] == 3
    assert chain.asked[4][0] == pytest.approx(0.11)
    assert chain.asked[5][0] == pytest.approx(0.115) and chain.asked[5][1:] == (3, 1.0)


def test_weights_of_two_states_on_which_a_sum_vanishes() -> None:
    """Log λ of the law on p and q with ⟨μ, G⟩ = 0, by exact numbers; small ones stay in range."""
    rows = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0.25, 0.5]])
    star = Star(np.full(3, 0.5), np.full(3, 0.5), np.arange(3), True)
    search = StarWalk.of(rows, star, 2, known=False, start=None).search(0, 1, 3.0)
    after = np.array([[0.5, -0.25, 0.125], [-1.0, -0.5, 0.0], [-2.0, 1.0, -0.75]])
    for n in (0, 1):
        laws = np.linalg.matrix_power(rows, n + 1)
        found = search._mixtures(after, n)
        for tau, p, q in product(range(3), repeat=3):
            weights = [Fraction(float(v)) for v in after[tau]]
            mixture = {p: -weights[q], q: weights[p]} if p != q else {p: Fraction(1)}
            fits = weights[p] > 0 > weights[q] if p != q else weights[p] >= 0
            if not fits:
                assert found[tau, p, q] == -np.inf
                continue
            sums = [
                sum((mixture[u] * Fraction(float(laws[v, u])) for u in mixture), Fraction(0))
                for v in (1, 0)
            ]
            assert found[tau, p, q] == pytest.approx(math.log(sums[0] / sums[1]), abs=1e-12)
    faint = np.array([[1.0, 1e-270], [0.5, 0.5]])
    two = Star(np.full(2, 0.5), np.full(2, 0.5), np.arange(2), True)
    search = StarWalk.of(faint, two, 1, known=False, start=None).search(0, 1, 3.0)
    mixed = search._mixtures(np.array([[1e43, -1e43]]), 0)
    assert mixed[0, 0, 1] == pytest.approx(0.0, abs=1e-12)  # ½ + ½ to 1 + 1e-270
    assert mixed[0, 0, 0] == pytest.approx(math.log(0.5))


@dataclass
class Curves:
    """A chain whose pairs lose what these functions of the multiple say; None if out of range."""

    curves: list[Callable[[float], float]]
    able: bool = True
    solved: list[int] = field(default_factory=list)

    @property
    def pairs(self) -> Integers:
        """One value beside each other one."""
        return np.array([[0, place + 1] for place in range(len(self.curves))])

    def sides(self, *_: Any) -> Any:
        """Two sides that lose nothing."""
        return (Nothing(), Nothing()) if self.able else None

    def worst(self, cost: Floats, *, leeway: float, among: Integers, **_: Any) -> Any:
        """The largest of them, and those that lose nearly as much."""
        self.solved.append(len(among))
        losses = np.array([self.curves[place](float(cost.max())) for place in among.tolist()])
        loss = float(losses.max())
        rivals = np.flatnonzero(losses > leeway * loss) if leeway < 1 else np.arange(len(among))
        others = leeway * loss if leeway < 1 else 0.0
        return coalescing.WorstPair(loss, 0, (0.0, 0.0), rivals, others)


def test_pairs_that_were_left_out_are_looked_at_again_where_they_may_matter() -> None:
    """A steep loss leaves the others behind at larger multiples, and is below them at smaller."""
    unit = np.where(np.eye(3) > 0, 0.0, 1.0)
    chain = Curves([lambda m: m**8, lambda m: 2.0 * m])
    losses = RisingLosses(cast("StationaryChain", chain), unit)
    assert losses.at(1.0) == pytest.approx(2.0)
    assert chain.solved[-1] == 2  # both of them
    assert losses.at(1.5) == pytest.approx(1.5**8)
    # a little ahead others are left out as well: the larger of both limits counts
    chain = Curves([lambda m: m**30, lambda m: 0.9 * m])
    assert RisingLosses(cast("StationaryChain", chain), unit).at(0.99) == pytest.approx(0.891)
    # infinite further ahead: nobody is left out
    chain = Curves([lambda m: math.inf if m > 1 else m, lambda m: 3.0 * m])
    assert RisingLosses(cast("StationaryChain", chain), unit).at(0.9) == pytest.approx(2.7)
    nowhere = Curves([lambda m: m], able=False)
    assert RisingLosses(cast("StationaryChain", nowhere), unit).at(0.5) == math.inf
