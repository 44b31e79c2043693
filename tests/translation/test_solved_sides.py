"""Both sides of a pair of values: what they are asked, what they add up to, in exact numbers."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import cast

import numpy as np
import pytest

from takifugu.numeric import Booleans, Floats
from takifugu.translation.chain.solved_adversaries import (
    CLOSE,
    ROUGH,
    TALLEST,
    SolvedSides,
    solve_anywhere,
    solve_entries,
)
from takifugu.translation.chain.star_sides import StarWalk

pytestmark = pytest.mark.nightly


@dataclass
class Side:
    """A walk that is its own search, and knows what is lost."""

    truth: Floats
    start: Floats | None = None
    usable: bool = True
    law: Floats | None = None
    asked: list[tuple[float, ...]] = field(default_factory=list)

    @property
    def steps(self) -> int:
        """How many entries are walked."""
        return len(self.truth) - 1

    def search(self, x: int, y: int, cap: float) -> "Side":
        """The same for every pair; it says for which it was asked."""
        self.asked.append((x, y, cap))
        return self

    def losses(self, close: float, near: Booleans | None = None) -> Floats:
        """The truth, whatever is asked."""
        assert close > 0 and (near is None or near.shape == self.truth.shape)
        return self.truth

    def worst_start(self, place: int) -> Floats | None:
        """A law of the first entry."""
        self.asked.append((place,))
        return self.law


def sides(after: Side, before: Side, cost: float) -> SolvedSides:
    """Both of them; what a change from 0 to 1 costs."""
    table = np.array([[0.0, cost], [0.0, 0.0]])
    return SolvedSides(cast("StarWalk", after), cast("StarWalk", before), table)


def test_sums_are_rounded_up() -> None:
    rng = np.random.default_rng(3)
    for own, ahead, behind in rng.random((100, 3)).tolist():
        after, before = Side(np.array([0.0, ahead])), Side(np.array([0.0, behind]))
        both = sides(after, before, own)
        exact = Fraction(own) + Fraction(ahead) + Fraction(behind)
        most = exact + Fraction(1, 10**13)
        for close in (ROUGH, CLOSE):
            assert exact <= Fraction(both.anywhere(0, 1, 2.0, close)) <= most
            found = both.at_entries(0, 1, 2.0, close, 3)
            assert exact <= Fraction(float(found[1])) <= most
        # each side was searched once, for this pair and this cap
        assert after.asked == before.asked == [(0, 1, 2.0)]


def test_sides_are_usable_together() -> None:
    for one in (True, False):
        for other in (True, False):
            pair = Side(np.zeros(2), usable=one), Side(np.zeros(2), usable=other)
            assert sides(*pair, 0.1).usable is (one and other)


def test_where_an_unknown_start_is_worst() -> None:
    """The entry with the largest loss behind it, or the one that is asked for, if it is walked."""
    law, losses = np.array([0.5, 0.5]), np.array([0.0, 0.2, 0.9, 0.4])
    before = Side(losses, law=law)
    both = sides(Side(np.zeros(2), law=np.zeros(2)), before, 0.1)
    for entry, expected in ((None, 2), (1, 1), (3, 3), (0, None), (4, None)):
        found = both.worst_start(1, 0, entry)
        assert (None if found is None else found[0]) == expected
        assert found is None or found[1] is law
    assert before.asked == [(1, 0, TALLEST), (2,), (1,), (3,)]
    assert sides(Side(losses), Side(losses), 0.1).worst_start(0, 1, 1) is None  # no such law
    known = Side(losses, start=law, law=law)
    assert sides(Side(losses), known, 0.1).worst_start(0, 1, 1) is None


@dataclass
class Asked:
    """Sides that find half of what was known, at every stage; they say what was asked."""

    known: Floats
    affordable: int = 50
    calls: list[tuple[int, int, float, float]] = field(default_factory=list)

    def anywhere(self, x: int, y: int, cap: float, close: float) -> float:
        """Half of it."""
        self.calls.append((x, y, cap, close))
        return float(self.known[x, y]) / 2

    def at_entries(self, x: int, y: int, cap: float, close: float, length: int) -> Floats:
        """Half of it at each entry."""
        self.calls.append((x, y, cap, close))
        assert length == len(self.known)
        return self.known[:, x, y] / 2


def test_the_next_largest_pair_follows_one_that_fell() -> None:
    """0.8 falls to 0.4, so that 0.6 is solved, which falls to 0.3: then 0.4 closely."""
    table = np.array([[0.0, 0.6], [0.8, 0.0]])
    mask = ~np.eye(2, dtype=bool)
    one = Asked(table)
    found = solve_anywhere(cast("SolvedSides", one), table, mask)
    assert found.tolist() == [[0.0, 0.3], [0.4, 0.0]]
    order = [(1, 0, 0.8, ROUGH), (0, 1, 0.6, ROUGH), (1, 0, 0.8, CLOSE)]
    assert one.calls == order
    # three entries, of which the second is no secret
    stacked = np.array([table, [[0.0, 9.0], [9.0, 0.0]], [[0.0, 0.5], [0.02, 0.0]]])
    many = Asked(stacked)
    secret = np.array([True, False, True])
    by_entry = solve_entries(cast("SolvedSides", many), list(stacked), np.arange(3), secret, mask)
    assert [call[:2] + call[3:] for call in many.calls] == [call[:2] + call[3:] for call in order]
    assert [call[2] for call in many.calls] == [9.0] * 3
    assert by_entry == pytest.approx(stacked / 2)


def test_infinite_bounds_do_not_raise_a_cap() -> None:
    """A pair that has a bound at one entry, and none at another."""
    tables = [np.array([[0.0, 0.5], [0.0, 0.0]]), np.array([[0.0, np.inf], [0.0, 0.0]])]
    mask = np.array([[False, True], [False, False]])
    one = Asked(np.array([tables[0], tables[0]]))
    at, secret = np.array([0, 1]), np.array([True, True])
    found = solve_entries(cast("SolvedSides", one), tables, at, secret, mask)
    assert found[:, 0, 1].tolist() == [0.25, 0.25]
    assert one.calls == [(0, 1, 0.5, ROUGH), (0, 1, 0.5, CLOSE)]


@pytest.mark.parametrize("largest", [0.0, 0.5])
def test_only_what_loses_something_is_solved(largest: float) -> None:
    table = np.array([[0.0, largest], [0.0, 0.0]])
    mask = ~np.eye(2, dtype=bool)
    one, other = Asked(table), Asked(table[None])
    solve_anywhere(cast("SolvedSides", one), table, mask)
    solve_entries(cast("SolvedSides", other), [table], np.zeros(1, int), np.ones(1, bool), mask)
    assert len(one.calls) == len(other.calls) == (2 if largest else 0)
