"""What windows of a chain are asked for, piece by piece and of a chain without end."""

from typing import Any

import numpy as np
import pytest

from takifugu.numeric import Floats
from takifugu.translation.chain import group_bounds
from takifugu.translation.chain.chain_losses import HeldLaw, chain_losses
from takifugu.translation.chain.coalescing import StarSide
from takifugu.translation.chain.entry_laws import Law
from takifugu.translation.chain.group_bounds import GroupWindows
from takifugu.translation.chain.group_step import PairLosses, SecretSides
from takifugu.translation.chain.group_window import REACH
from takifugu.translation.chain.transport_steps import off_diagonal

pytestmark = pytest.mark.nightly

ROWS = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
SECRET = SecretSides([((0, 1), (2,)), ((2,), (0, 1))], 3)
LENGTH = 30


def losing(value: float) -> PairLosses:
    return PairLosses(value, 0, np.zeros((2, 2)))


@pytest.mark.parametrize("entries", [None, np.array([2, 5])])
def test_a_piece_has_the_steps_and_tables_of_all_its_entries(
    entries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many entries and before so many: what is near, and the tables of what is left."""
    losses = chain_losses(ROWS, np.full(LENGTH, 0.4))
    rows, back = ([np.full((3, 3), sign * k) for k in range(LENGTH - 1)] for sign in (1.0, -1.0))
    pieces, windows_of = list[Any](), list[Any]()

    def by_pieces(length: int, given: Any, loss: Any) -> Any:
        pieces.append((length, given, loss))
        return np.array([1.0, 5.0, 3.0]), 2, losing(3.0)

    def reach(cost: Floats, ahead: Any, behind: Any, ends: tuple[bool, bool]) -> tuple[int, int]:
        assert all(one is cost for one in (*ahead, *behind))
        windows_of.append((len(ahead), len(behind), ends))
        return 2, 3

    def window(*given: Any) -> PairLosses:
        windows_of.append(given)
        return losing(0.5)

    monkeypatch.setattr(group_bounds, "_by_pieces", by_pieces)
    monkeypatch.setattr(group_bounds, "window_reach", reach)
    monkeypatch.setattr(group_bounds, "window_losses", window)
    stars: Any = ("ahead", "behind")
    windows = GroupWindows(SECRET, losses, None, stars, rows, back, 0.125)
    known = (np.array([2.0, 2.0, 4.0]), 0, losing(4.0))
    by_entry, entry, top = windows.alike(entries, known)
    assert by_entry.tolist() == [1.0, 2.0, 3.0] and entry == 2 and top.value == 3.0
    ((length, given, piece),) = pieces
    assert length == LENGTH and given is entries
    assert piece(20, 7).value == 0.5
    (near, (secret, law, cost, ahead, behind, slack)) = windows_of
    assert near == (16, 7, (False, True))
    assert secret is SECRET and law is losses.laws[0] and slack == 0.125
    assert (cost == off_diagonal(3, 0.4)).all()
    assert [m[0, 0] for m, _ in ahead[0]] == [0.0, 1.0] and all(c is cost for _, c in ahead[0])
    assert [m[0, 0] for m, _ in behind[0]] == [0.0, -1.0, -2.0]
    assert all(c is cost for _, c in behind[0])
    assert (ahead[2], behind[2]) == (20, 7)
    assert (ahead[1].star, behind[1].star) == ("ahead", "behind")
    assert not ahead[1].passed and not behind[1].passed
    for left in (0, 1, 6):  # with so many entries left
        assert ahead[1].known(left) is losses.forward[losses.forward_at[LENGTH - 1 - left]]
        assert behind[1].known(left) is losses.backward[losses.backward_at[left]]
    assert ahead[1].known(1).any() and not ahead[1].known(0).any()
    assert behind[1].known(1).any() and not behind[1].known(0).any()


def test_an_entry_has_the_tables_of_what_is_beyond_it(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = chain_losses(ROWS, np.linspace(0.1, 0.4, 8), start=[0.5, 0.2, 0.3])
    asked = list[Any]()

    def window(*given: Any) -> PairLosses:
        asked.append(given)
        return losing(0.25)

    monkeypatch.setattr(group_bounds, "window_losses", window)
    steps = [ROWS] * 7
    windows = GroupWindows(SECRET, losses, None, (None, None), steps, steps, 0.0)
    known = (np.array([0.1, 0.2, 1.0] + [0.2] * 5), 2, losing(1.0))
    windows.each(known)
    ((_, law, _, (_, ahead, first), (_, behind, last), _),) = asked
    assert (first, last) == (2, 5) and law is losses.laws[losses.law_at[2]]
    for passed in range(8):  # so many entries from the first one, or from the last
        assert ahead.known(passed) is losses.forward[losses.forward_at[passed]]
        assert behind.known(passed) is losses.backward[losses.backward_at[7 - passed]]
    assert known[0][2] == 1.0  # what was given is not written to


def test_a_chain_without_end_has_one_table_on_each_side(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, stars = list[Any](), list[Any]()

    def star(matrices: Any, costs: Any, **given: Any) -> str:
        (matrix,) = matrices
        stars.append((matrix, costs, given))
        return f"star {len(stars)}"

    def reach(cost: Floats, ahead: Any, behind: Any, ends: tuple[bool, bool]) -> tuple[int, int]:
        assert len(ahead) == len(behind) == REACH and ends == (False, False)
        assert all(one is cost for one in (*ahead, *behind))
        return 2, 3

    def window(*given: Any) -> PairLosses:
        asked.append(given)
        return losing(0.75)

    monkeypatch.setattr(StarSide, "of", star)
    monkeypatch.setattr(group_bounds, "window_reach", reach)
    monkeypatch.setattr(group_bounds, "window_losses", window)
    law, cost, back = HeldLaw(Law.of(np.array([0.5, 0.2, 0.3])), 0.0), off_diagonal(3, 0.5), ROWS.T
    tables = off_diagonal(3, 0.7), off_diagonal(3, 0.9)
    found = group_bounds.unbounded_groups(SECRET, law, cost, (ROWS, back), tables, slack=0.125)
    assert found.value == 0.75
    ((secret, held, own, ahead, behind, slack),) = asked
    assert secret is SECRET and held is law and own is cost and slack == 0.125
    for side, rows, table, count, name in (
        (ahead, ROWS, tables[0], 2, "star 1"),
        (behind, back, tables[1], 3, "star 2"),
    ):
        steps, beyond, number = side
        assert len(steps) == count and all(m is rows and c is cost for m, c in steps)
        assert number is None and beyond.passed and beyond.star == name
        assert beyond.known(None) is table
    assert [one[0] is rows for one, rows in zip(stars, (ROWS, back), strict=True)] == [True, True]
    assert all(given == {"slack": 0.125, "unbounded": True} for _, _, given in stars)
    assert stars[0][1][0] is stars[1][1][0]
