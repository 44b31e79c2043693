"""A chain's bound at its edges: the first pair, no pair, nothing allowed, entries far behind."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from takifugu.numeric import Floats
from takifugu.priors import MarkovChain, Secrets
from takifugu.translation.bounds import Bound
from takifugu.translation.chain import chain_transport as parts
from takifugu.translation.chain.chain_losses import chain_losses
from takifugu.translation.chain.chain_transport import ChainTransport
from takifugu.translation.chain.cost_levels import CostLevels
from takifugu.translation.chain.entry_laws import law_slack, row_slack
from takifugu.translation.chain.group_step import PairLosses
from takifugu.translation.chain.transport_steps import off_diagonal
from tests.translation.test_chain_request_parts import GROUPS, LAW, ROWS, SPENT, chain

TWO = np.array([[0.7, 0.3], [0.2, 0.8]])
UNEVEN = np.array([[0.0, 0.1, 0.9], [0.8, 0.0, 0.2], [0.1, 0.7, 0.0]])


@pytest.mark.parametrize("pair", [-1, 0, 1])
@pytest.mark.parametrize("grouped", [False, True])
def test_only_a_pair_that_there_is_is_looked_at_more_closely(
    pair: int, grouped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    one = chain(pairs=GROUPS if grouped else None)
    found = (np.array([0.1, 0.2, 0.5, 0.3, 0.2]), 2, PairLosses(0.5, pair, off_diagonal(3)))

    def windows(*_: Any) -> Any:
        asked.append("windows")
        return found

    def refined(*_: Any) -> Any:
        asked.append("stars")
        return found

    monkeypatch.setattr(ChainTransport, "_by_entry", lambda *_: found)
    monkeypatch.setattr(ChainTransport, "_in_windows", windows)
    monkeypatch.setattr(ChainTransport, "_refined", refined)
    bound = one.profile(SPENT)
    assert asked == ([] if pair < 0 else ["windows" if grouped else "stars"])
    assert bound.value == 0.5 and (bound.binding is None) == (pair < 0)
    if bound.binding is not None:
        assert bound.binding == one._binding(pair, 2)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_entries_are_coupled_where_blocks_have_more_than_one(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    in_blocks, bound = ChainTransport._in_blocks, Bound(9.0)

    def blocks(self: ChainTransport, losses: Any) -> Any:
        asked.append("blocks")
        return in_blocks(self, losses)

    def endless(*_: Any) -> Bound:
        asked.append("endless")
        return bound

    monkeypatch.setattr(ChainTransport, "_blocks", length)
    monkeypatch.setattr(ChainTransport, "_in_blocks", blocks)
    monkeypatch.setattr(ChainTransport, "_unbounded_bound", endless)
    one = chain()
    one._one_by_one(CostLevels((UNEVEN,), np.zeros(5, dtype=np.int64)))
    assert asked == (["blocks"] if length > 1 else [])
    asked.clear()
    monkeypatch.setattr(parts, "LONGEST", 4)
    monkeypatch.setattr(ChainTransport, "_solved", lambda *_: None)
    one._everywhere(UNEVEN)
    assert asked == (["endless"] if length > 1 else [])


def test_nothing_allowed_is_no_search() -> None:
    two = MarkovChain(TWO)
    assert ChainTransport(two, Secrets()).largest(0.0) == 0.0
    changing = MarkovChain(np.stack([TWO, TWO[::-1]]), start=np.array([0.5, 0.5]))
    one = ChainTransport(changing, Secrets())
    allowed = one.largest(0.5)
    assert one.uniform(allowed).value <= 0.5 < one.uniform(allowed * 1.01).value


def test_a_secret_far_behind_is_told_by_the_last_entry_that_was_walked() -> None:
    spent = np.array([0.3, 0.8, 0.5])
    padded = np.concatenate([spent, np.zeros(parts.TAIL)])
    losses = chain_losses(ROWS, padded)
    last = losses.backward[losses.backward_at[-1]]
    far = chain(None, entries=(40,)).profile(spent)
    assert far.value == last.max() > 0 and far.binding is not None and far.binding.entry == 40
    assert last.max() < losses.backward[losses.backward_at[-2]].max()
    assert far.by_values is not None and far.by_values.max() == last.max()
    both = chain(None, entries=(1, 40)).profile(spent)
    assert both.binding is not None and both.binding.entry == 1
    assert both.by_entry is not None and both.by_entry[3] == last.max() < both.by_entry[1]


def test_stars_pay_for_the_rounding_of_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Any]()

    def star(rows: Any, stars: Any, *, slack: float) -> Any:
        asked.append((len(rows), [float(np.max(one.high) > 0) for one in stars], slack))
        return "side"

    monkeypatch.setattr(parts, "star_of", lambda cost: SimpleNamespace(high=cost))
    monkeypatch.setattr(parts.StarSide, "of", star)
    charged = CostLevels.of_losses(np.array([0.0, 0.4, 0.3, 0.3, 0.2]), off_diagonal(3))
    for begun in (False, True):
        one = chain(begun=begun)
        ahead, behind = one._stars(charged)
        assert (str(ahead), str(behind)) == ("side", "side")
        expected = one._walk_back(4)[0].slack if begun else law_slack(3)
        assert asked == [
            (4, [1.0, 1.0, 1.0, 1.0], row_slack(3)),
            (4, [1.0, 1.0, 1.0, 0.0], expected),
        ]
        asked.clear()


def test_a_solved_entry_says_nothing_of_pairs_that_are_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refined(bounds: Floats, *_: Any, **__: Any) -> tuple[Floats, int, tuple[int, int]]:
        return bounds / 2, 1, (0, 2)

    monkeypatch.setattr(parts, "refined", refined)
    one = chain(pairs=(((0,), (2,)),), begun=True)
    found = one.profile(SPENT)
    table = found.by_values
    assert table is not None and table.max() <= found.value
    assert np.isneginf(table[[0, 1, 1, 1, 2, 0, 2], [0, 0, 1, 2, 1, 1, 2]]).all()
    assert np.isfinite(table[0, 2]) and np.isfinite(table[2, 0])


def test_rising_losses_beyond_stars_are_those_of_the_recursion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each search begins with the one before; from an infinite loss on all are."""
    asked = list[Any]()
    losses = iter([0.5, 0.7, np.inf])

    def search(*given: Any, **more: Any) -> Any:
        asked.append((given, more))
        return SimpleNamespace(loss=next(losses))

    monkeypatch.setattr(parts, "unbounded_losses", search)
    monkeypatch.setattr(parts, "RisingLosses", lambda *_: SimpleNamespace(at=lambda _: np.inf))
    monkeypatch.setattr(ChainTransport, "_unbounded_bound", lambda _, near: Bound(2 * near.loss))
    prior = MarkovChain(ROWS)
    one = ChainTransport(prior, Secrets(), tolerance=0.0625)
    found = list(one.rising([0.1, 0.2, 0.3, 0.4, 0.5]))
    assert found == [(1.0, False), (1.4, False), (np.inf, False), (np.inf, False), (np.inf, False)]
    assert [given[1] for given, _ in asked] == [0.1, 0.2, 0.3]
    assert all((given[0] == ROWS).all() for given, _ in asked)
    assert [more["near"] is None for _, more in asked] == [True, False, False]
    assert asked[2][1]["near"].loss == 0.7
    for _, more in asked:
        assert more["tolerance"] == 0.0625 and more["with_lower"] is False


def test_a_chain_that_begins_somewhere_is_told_from_there() -> None:
    one = chain(begun=True)
    plain = chain_losses(ROWS, SPENT, start=LAW)
    found = one.consistent(SPENT)
    assert (found <= plain.by_entry * (1 + 1e-12)).all() and (found > 0.5 * plain.by_entry).all()
    other = ChainTransport(MarkovChain(ROWS, length=5, start=LAW[::-1].copy()), Secrets())
    assert not np.allclose(other.consistent(SPENT), found, rtol=1e-3)
