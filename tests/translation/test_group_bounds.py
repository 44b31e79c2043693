"""Where in a chain groups of values lose most: pieces, tables beyond windows, entries."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from takifugu.numeric import Floats
from takifugu.translation.chain import group_bounds
from takifugu.translation.chain.chain_losses import HeldLaw, chain_losses
from takifugu.translation.chain.entry_laws import Law
from takifugu.translation.chain.group_bounds import GroupWindows, SideTables
from takifugu.translation.chain.group_step import PairLosses, SecretSides
from takifugu.translation.chain.group_window import Window
from takifugu.translation.chain.transport_steps import off_diagonal

pytestmark = pytest.mark.nightly

ROWS = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
LAW = np.array([0.5, 0.2, 0.3])
SIDES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((0, 1), (2,)), ((2,), (0, 1))]


def held(law: Floats, slack: float = 0.0) -> HeldLaw:
    return HeldLaw(Law.of(law), slack)


def losing(value: float) -> PairLosses:
    return PairLosses(value, 0, np.zeros((2, 2)))


# which entry loses most


@pytest.mark.parametrize("entries", [None, (0,), (3, 4, 9, 17), (19,), tuple(range(5, 15))])
@pytest.mark.parametrize("peak", [0.0, 7.0, 9.5, 19.0])
def test_pieces_are_halved_down_to_the_entry_that_loses_most(
    entries: tuple[int, ...] | None, peak: float
) -> None:
    """A loss that rises with the entries on both sides, slower on one of them."""
    length, asked = 20, list[tuple[int, int]]()

    def loss(after: int, before: int) -> PairLosses:
        asked.append((after, before))
        return losing(min(after, 19 - peak) + min(before, peak) / 2 + 1)

    listed = list(range(length)) if entries is None else list(entries)
    given = None if entries is None else np.array(entries)
    by_entry, entry, top = group_bounds._by_pieces(length, given, loss)
    true = np.array([loss(length - 1 - i, i).value if i in listed else 0.0 for i in range(length)])
    assert len(by_entry) == length and (by_entry >= true).all()
    assert (by_entry[[i for i in range(length) if i not in listed]] == 0).all()
    assert top.value == by_entry.max() == by_entry[entry] and entry in listed
    assert top.value <= true.max() * 1.1
    assert asked[0] == (length - 1 - listed[0], listed[-1])


def test_a_piece_without_a_bound_is_not_halved() -> None:
    calls = list[int]()

    def loss(after: int, _: int) -> PairLosses:
        calls.append(after)
        return losing(np.inf)

    by_entry, entry, top = group_bounds._by_pieces(8, None, loss)
    assert np.isinf(by_entry).all() and np.isinf(top.value) and entry == 4 and calls == [7]


def test_pieces_that_lose_no_more_than_a_single_entry_are_left_alone() -> None:
    calls = list[tuple[int, int]]()

    def loss(after: int, before: int) -> PairLosses:
        calls.append((after, before))
        single = after + before == 7
        return losing(5.0 if single and before == 0 else 9.0 if after == 7 else 1.0)

    by_entry, entry, top = group_bounds._by_pieces(8, None, loss)
    assert entry == 0 and top.value == 5.0
    assert by_entry.tolist() == [5.0] + [1.0] * 7
    assert calls == [(7, 7), (7, 3), (3, 7), (7, 1), (5, 3), (7, 0), (6, 1)]


# what lies beyond a window


class Side:
    """Stands for a star: what it solves to, and how often it was asked."""

    def __init__(self, solved: float, most: int = 3, name: str = "all") -> None:
        self.solved, self.most, self.name = solved, most, name
        self.asked = list[tuple[str, int]]()

    def beyond(self, number: int) -> "Side":
        """Without the nearest entries."""
        self.asked.append(("beyond", number))
        return self

    def nearest(self, number: int) -> "Side":
        """Only the nearest entries."""
        self.asked.append(("nearest", number))
        return self

    def solve(self, pairs: Any, above: Floats) -> tuple[None, Floats]:
        """All pairs of different values."""
        assert [tuple(pair) for pair in pairs.tolist()] == [
            (x, y) for x, y in product(range(3), repeat=2) if x != y
        ]
        self.above = above
        return None, np.arange(6.0) + self.solved


@pytest.mark.parametrize("passed", [True, False])
@pytest.mark.parametrize("number", [None, 0, 2])
def test_the_lesser_of_two_bounds_is_kept(passed: bool, number: int | None) -> None:
    known, side = off_diagonal(3, 2.0), Side(0.0)
    asked = list[int | None]()

    def bound(n: int | None) -> Floats:
        asked.append(n)
        return known

    star: Any = side
    tables = SideTables(bound, star, passed)
    found = tables.table(number)
    assert found.tolist() == [[0.0, 0.0, 1.0], [2.0, 0.0, 2.0], [2.0, 2.0, 0.0]]
    assert (known == off_diagonal(3, 2.0)).all()  # what was given is not written to
    assert tables.table(number) is found and asked == [number]
    name = "beyond" if passed else "nearest"
    assert side.asked == ([] if number is None else [(name, number)])
    assert (side.above == 2.0).all()


def test_without_a_star_and_with_too_much_work_the_known_bound_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = off_diagonal(3, 2.0)
    assert SideTables(lambda _: known, None, True).table(1) is known
    star: Any = Side(-9.0, most=3)
    monkeypatch.setattr(group_bounds, "WORK", 10 * 3 * 81 - 1)
    assert SideTables(lambda _: known, star, True).table(1) is known
    monkeypatch.setattr(group_bounds, "WORK", 10 * 3 * 81)
    assert SideTables(lambda _: known, star, True).table(1)[0, 1] == -9.0


def numbered(passed: bool) -> SideTables:
    """Tables that say their number: 0.1 for each."""
    return SideTables(lambda n: off_diagonal(3, 0.5 if n is None else 0.1 * n), None, passed)


@pytest.mark.parametrize("passed", [True, False])
@pytest.mark.parametrize("number", [None, 4])
def test_a_window_begins_and_ends_with_the_tables_beyond_it(
    passed: bool, number: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[Window]()
    losses = Window.losses

    def seen(self: Window, secret: SecretSides) -> Floats:
        made.append(self)
        return losses(self, secret)

    monkeypatch.setattr(Window, "losses", seen)
    cost, secret = off_diagonal(3, 0.25), SecretSides(SIDES, 3)
    ahead = ([(ROWS, cost)] * 2, numbered(passed), number)
    behind = ([(ROWS, cost)] * 1, numbered(passed), number)
    found = group_bounds.window_losses(secret, held(LAW), cost, ahead, behind, 0.0)
    (window,) = made
    after, before = (0.6, 0.5) if passed else (0.2, 0.3)
    if number is None:
        after = before = 0.5
    assert window.forward == pytest.approx(off_diagonal(3, after))
    assert window.backward == pytest.approx(off_diagonal(3, before))
    assert found.value == pytest.approx(float(window.losses(secret).max()))
    made.clear()
    bare = group_bounds.window_losses(
        secret, held(LAW), cost, ([], *ahead[1:]), ([], *behind[1:]), 0.0
    )
    assert not made and bare.value > found.value * 0.5
    one = group_bounds.window_losses(secret, held(LAW), cost, ([], *ahead[1:]), behind, 0.0)
    assert len(made) == 1 and one.value <= bare.value + 1e-9
    group_bounds.window_losses(secret, held(LAW), cost, ahead, ([], *behind[1:]), 0.0)
    assert len(made) == 2


def test_the_pairs_of_values_lose_what_is_here_and_on_both_sides() -> None:
    """Without steps and groups: own + ahead + behind, rounded up, and what cannot happen none."""
    singles: Any = [((x,), (y,)) for x, y in product(range(3), repeat=2) if x != y]
    cost = np.array([[0.0, 0.3, 0.9], [0.1, 0.0, 0.7], [0.2, 0.4, 0.0]])
    secret = SecretSides(singles, 3)
    sides: Any = (([], numbered(True), 1), ([], numbered(True), 3))
    found = group_bounds.window_losses(secret, held(LAW), cost, sides[0], sides[1], 0.0)
    expected = cost + 0.4 * off_diagonal(3)
    assert found.value == pytest.approx(1.3) and found.pair == singles.index(((0,), (2,)))
    apart = ~np.eye(3, dtype=np.bool_)
    assert found.by_values[apart] == pytest.approx(expected[apart], rel=1e-13)
    assert (found.by_values[apart] > (cost + off_diagonal(3, 0.1) + 0.3)[apart]).all()
    two = held(np.array([0.5, 0.5, 0.0]))
    fewer = group_bounds.window_losses(secret, two, cost, sides[0], sides[1], 0.0)
    assert fewer.value == pytest.approx(0.7)
    assert np.isneginf(fewer.by_values[2]).all() and np.isneginf(fewer.by_values[:, 2]).all()


# windows of a finite chain


@pytest.mark.parametrize(
    ("entry", "last", "expected"),
    [
        (20, 36, (16, 16, (True, False))),
        (20, 37, (16, 16, (False, False))),
        (16, 40, (16, 16, (False, True))),
        (17, 40, (16, 16, (False, False))),
        (3, 8, (5, 3, (True, True))),
        (0, 8, (8, 0, (True, True))),
        (8, 8, (0, 8, (True, True))),
    ],
)
def test_the_window_of_an_entry_takes_its_own_steps_and_costs(
    entry: int, last: int, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    epsilon = 0.1 + 0.01 * np.arange(last + 1)
    losses = chain_losses(ROWS, epsilon)
    rows, back = (
        [np.full((3, 3), (sign * (k + 1)) / 100.0) for k in range(last)] for sign in (1, -1)
    )
    seen = list[Any]()

    def reach(cost: Floats, ahead: Any, behind: Any, ends: tuple[bool, bool]) -> tuple[int, int]:
        seen.append((len(ahead), len(behind), ends))
        assert cost[0, 1] == epsilon[entry]
        assert [c[0, 1] for c in ahead] == epsilon[entry + 1 : entry + 17].tolist()
        assert [c[0, 1] for c in behind] == epsilon[max(0, entry - 16) : entry][::-1].tolist()
        return min(2, len(ahead)), min(3, len(behind))

    def window(_: Any, law: Any, cost: Any, ahead: Any, behind: Any, slack: float) -> Any:
        assert law is losses.laws[losses.law_at[entry]] and slack == 0.125
        assert cost is losses.charged.cost(entry)
        steps, tables, number = ahead
        assert number == entry and tables.passed and tables.star == "ahead"
        expected = list(range(entry + 1, min(entry + 2, last) + 1))
        assert [c[0, 1] for _, c in steps] == epsilon[expected].tolist()
        assert [m[0, 0] for m, _ in steps] == [k / 100.0 for k in expected]
        steps, tables, number = behind
        assert number == last - entry and tables.passed and tables.star == "behind"
        expected = list(range(entry - 1, max(entry - 3, 0) - 1, -1))
        assert [c[0, 1] for _, c in steps] == epsilon[expected].tolist()
        first = last - entry + 1  # of the steps back, those from the last entry on come first
        assert [m[0, 0] for m, _ in steps] == [-(first + k) / 100.0 for k in range(len(expected))]
        return losing(0.5)

    monkeypatch.setattr(group_bounds, "window_reach", reach)
    monkeypatch.setattr(group_bounds, "window_losses", window)
    stars: Any = ("ahead", "behind")
    windows = GroupWindows(SecretSides(SIDES, 3), losses, None, stars, rows, back, 0.125)
    known = np.where(np.arange(last + 1) == entry, 1.0, 0.25)
    by_entry, worst, top = windows.each((known, entry, losing(1.0)))
    assert seen == [expected]
    assert worst == entry and top.value == 0.5
    assert by_entry.tolist() == np.where(known == 1.0, 0.5, 0.25).tolist()


def each(
    known: list[float], single: Callable[[int], float], monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, list[int]]:
    """The losses of a chain whose windows lose ``single``; which entries were looked at."""
    asked = list[int]()

    def window(_: Any, __: Any, ___: Any, ahead: Any, *____: Any) -> PairLosses:
        asked.append(ahead[2])
        return losing(single(ahead[2]))

    monkeypatch.setattr(group_bounds, "window_losses", window)
    losses = chain_losses(ROWS, np.full(len(known), 0.1))
    steps = [ROWS] * (len(known) - 1)
    windows = GroupWindows(SecretSides(SIDES, 3), losses, None, (None, None), steps, steps, 0.0)
    return windows.each((np.array(known), 1, losing(7.0))), asked


def test_the_largest_losses_are_lowered_first(monkeypatch: pytest.MonkeyPatch) -> None:
    (by_entry, entry, top), asked = each([1.0, 3.0, 2.0, 0.5], lambda i: 1.5 - i / 4, monkeypatch)
    assert asked == [1, 2] and entry == 1
    assert by_entry.tolist() == [1.0, 1.25, 1.0, 0.5] and top.value == 1.25
    (by_entry, entry, top), asked = each([1.0, 3.0, 2.0], lambda _: 9.0, monkeypatch)
    assert by_entry.tolist() == [1.0, 3.0, 2.0] and entry == 1 and asked == [1]


def test_a_chain_that_loses_nothing_keeps_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    (by_entry, entry, top), asked = each([0.0, 0.0], lambda _: 0.0, monkeypatch)
    assert by_entry.tolist() == [0.0, 0.0] and entry == 1 and top.value == 7.0 and not asked
    (by_entry, entry, top), asked = each([0.0, 0.5], lambda _: 0.0, monkeypatch)
    assert by_entry.tolist() == [0.0, 0.0] and entry == 1 and top.value == 7.0 and asked == [1]


def test_only_so_many_entries_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_bounds, "REFINED", 2)
    (by_entry, entry, top), asked = each([4.0, 3.0, 2.0], lambda i: 0.5 + i / 4, monkeypatch)
    assert asked == [0, 1, 2] and entry == 2  # the third only to name its pair
    assert by_entry.tolist() == [0.5, 0.75, 2.0] and top.value == 1.0


@pytest.mark.parametrize("blocks", [False, True])
def test_both_sides_of_an_entry_are_the_least_that_is_known(blocks: bool) -> None:
    losses = chain_losses(ROWS, np.linspace(0.1, 0.5, 5))
    tables = [[off_diagonal(3, 0.05 * k + 0.01 * side) for k in range(5)] for side in (0, 1)]
    sides = (tables[0], tables[1]) if blocks else None
    secret = SecretSides(SIDES, 3)
    windows = GroupWindows(secret, losses, sides, (None, None), [], [], 0.0)
    for entry in range(5):
        ahead = losses.forward[losses.forward_at[entry]]
        behind = losses.backward[losses.backward_at[entry]]
        if blocks:
            ahead = np.minimum(ahead, tables[0][entry])
            behind = np.minimum(behind, tables[1][entry])
        assert (windows._ahead(entry) == ahead).all()
        assert (windows._behind(entry) == behind).all()
