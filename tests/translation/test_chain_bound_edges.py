"""A chain's bound at its edges: the first pair, no pair, nothing allowed, entries far behind."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from takifugu._rounding import UNIT
from takifugu.costs import Cost
from takifugu.numeric import Floats
from takifugu.priors import MarkovChain, Secrets
from takifugu.translation.bounds import Bound, Witness
from takifugu.translation.chain import chain_transport as parts
from takifugu.translation.chain.adversary_transport import AdversaryTransport
from takifugu.translation.chain.chain_losses import HeldLaw, chain_losses
from takifugu.translation.chain.chain_transport import ChainTransport
from takifugu.translation.chain.coalescing import StarSide
from takifugu.translation.chain.cost_levels import CostLevels
from takifugu.translation.chain.entry_laws import Law, law_slack, row_slack
from takifugu.translation.chain.group_step import PairLosses
from takifugu.translation.chain.transport_steps import off_diagonal
from takifugu.translation.entry_costs import EntryCosts
from tests.translation.test_chain_request_parts import GROUPS, LAW, ROWS, SPENT, chain

pytestmark = pytest.mark.nightly

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
    one.everywhere(UNEVEN)
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
    monkeypatch.setattr(StarSide, "of", star)
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


def test_groups_are_told_by_the_law_of_their_own_entry() -> None:
    """Entries that differ in nothing but their law."""
    one = chain(begun=True, pairs=GROUPS)
    known = chain_losses(ROWS, SPENT, start=LAW)
    laws = (known.laws[0], HeldLaw(Law.of(np.array([0.2, 0.01, 0.79])), 0.0))
    alike = np.zeros(5, dtype=np.int64)
    losses = replace(
        known,
        charged=CostLevels((UNEVEN,), alike),
        forward=known.forward[:1],
        forward_at=alike,
        backward=known.backward[:1],
        backward_at=alike,
        possible_at=alike,
        laws=laws,
        law_at=np.array([0, 1, 0, 1, 1]),
    )
    by_entry, entry, top = one._by_entry(losses, None)
    each = [one._secret.losses(losses.at(0), law).value for law in laws]
    assert abs(each[0] - each[1]) > 1e-3
    assert by_entry.tolist() == [each[k] for k in (0, 1, 0, 1, 1)]
    assert entry == int(each[1] > each[0]) and top.value == max(each)


def test_losses_of_which_one_is_too_large_are_left_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by_entry = np.array([0.1, 400.0, 0.2, 0.3, 0.1])
    found = (by_entry, 1, PairLosses(400.0, 0, off_diagonal(3)))

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("it is not asked")

    monkeypatch.setattr(ChainTransport, "_by_entry", lambda *_: found)
    monkeypatch.setattr(ChainTransport, "_in_windows", refused)
    monkeypatch.setattr(parts, "refined", refused)
    for pairs in (GROUPS, None):
        assert chain(pairs=pairs).profile(SPENT).value == 400.0


def test_both_sums_of_a_table_are_rounded_up() -> None:
    one = chain()
    charged = CostLevels((np.zeros((3, 3)),), np.zeros(1, dtype=np.int64))
    losses: Any = SimpleNamespace(at=lambda _: np.full((3, 3), np.inf), charged=charged)
    (table,) = one._joined(losses, [off_diagonal(3, 0.25)], [off_diagonal(3, 0.125)])
    assert 16 * UNIT < table[0, 1] - 0.375 < 40 * UNIT


@pytest.mark.parametrize("begun", [False, True])
def test_blocks_are_walked_with_the_costs_of_their_entries(
    begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[Any]()

    def walk(rows: Any, spent: Any, *, slack: float, size: int) -> list[Floats]:
        asked.append((rows, [float(cost.max()) for cost in spent], slack, size))
        return [np.full((3, 3), float(k)) for k in range(5)]

    monkeypatch.setattr(parts, "walk_blocks", walk)
    one = chain(begun=begun)
    losses = chain_losses(ROWS, SPENT, start=LAW if begun else None)
    ahead, behind = one._in_blocks(losses)
    assert [table[0, 0] for table in ahead] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [table[0, 0] for table in behind] == [4.0, 3.0, 2.0, 1.0, 0.0]
    rows, back, slack = one._all_rows(4)
    (first, spent, paid, size), (second, spent_back, paid_back, size_back) = asked
    assert spent == SPENT[1:].tolist() and spent_back == SPENT[3::-1].tolist()
    assert (paid, paid_back) == (row_slack(3), slack) and size == size_back == 3
    for found, true in ((first, rows), (second, back)):
        assert all((a == b).all() for a, b in zip(found, true, strict=True))


def test_a_witness_is_asked_with_what_was_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Any]()

    def leaking(_: Any, charged: CostLevels, bound: Bound, *, everywhere: bool) -> str:
        costs = [round(float(charged.cost(i).max()), 9) for i in range(len(charged))]
        asked.append((costs, bound.value, everywhere))
        return "found"

    monkeypatch.setattr(ChainTransport, "_leaking", leaking)
    one, bound = chain(), Bound(1.5)
    one.witness(0.5, bound)
    one.witness(SPENT, bound)
    one.valued_witness(EntryCosts(anywhere=(Cost.any(0.25),)), bound)
    one.valued_witness(EntryCosts(by_entry=tuple(Cost.any(e) for e in SPENT)), bound)
    assert asked == [
        ([0.5], 1.5, True),
        (SPENT.tolist(), 1.5, False),
        ([0.25], 1.5, True),
        (SPENT.tolist(), 1.5, False),
    ]


def test_a_search_is_told_about_nearby_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[Any]()

    def search(loss: Any, target: float, *, nearby: Any) -> float:
        assert target == 0.75 and loss(0.5) == 1.25
        estimate = nearby(0.5)
        told.append(estimate and estimate(0.25))
        return 0.3

    def known(cost: Floats) -> float:
        return 10 * float(cost.max())

    monkeypatch.setattr(parts, "largest_within", search)
    monkeypatch.setattr(ChainTransport, "uniform", lambda *_: Bound(1.25))
    monkeypatch.setattr(ChainTransport, "_nearby", lambda *_: known)
    assert chain(None).largest(0.75) == 0.3 and told == [2.5]
    monkeypatch.setattr(ChainTransport, "_nearby", lambda *_: None)
    assert chain(None).largest(0.75) == 0.3 and told == [2.5, None]


def test_an_unbounded_chain_is_searched_from_above_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Any]()
    monkeypatch.setattr(
        parts, "unbounded_losses", lambda *given, **more: asked.append((given, more))
    )
    one = chain(None)
    one._unbounded(UNEVEN)
    ((rows, cost), more) = asked[0]
    assert (rows == ROWS).all() and cost is UNEVEN
    assert more == {"tolerance": 1e-3, "with_lower": False}


def test_groups_of_an_even_number_of_entries_are_tried_in_the_middle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, seen = chain(10, pairs=GROUPS), list[int]()

    charged = CostLevels((off_diagonal(3, 0.5),), np.zeros(10, dtype=np.int64))
    bound = Bound(1.0, one._binding(0, 7))

    def leak_at(
        centre: int, given: CostLevels, known: Bound, reach: int, *, everywhere: bool
    ) -> Witness:
        assert given is charged and known is bound
        assert reach == one._reach and everywhere is False
        seen.append(centre)
        return Witness(0.1, None)

    monkeypatch.setattr(one, "_leak_at", leak_at)
    one._leaking(charged, bound, everywhere=False)
    assert seen == [7, 0, 1, 4, 6, 8, 9]


@pytest.mark.parametrize("kind", [ChainTransport, AdversaryTransport])
def test_costs_by_value_are_read_with_the_states_and_columns_of_the_chain(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[Any]()
    one = kind(MarkovChain(ROWS, length=5, start=LAW if kind is ChainTransport else "unknown"),
               Secrets())  # fmt: skip
    one._chain = SimpleNamespace(states="states", columns="columns", length=5)

    def of_costs(*given: Any) -> str:
        asked.append(given)
        return "levels"

    monkeypatch.setattr(CostLevels, "of_costs", of_costs)
    monkeypatch.setattr(kind, "_one_by_one", lambda _, charged: f"each {charged}")
    name = "everywhere" if kind is ChainTransport else "_everywhere"
    monkeypatch.setattr(kind, name, lambda _, cost: f"every {cost}")

    def matrix(*given: str) -> tuple[str, ...]:
        return given

    each, every = (SimpleNamespace(uniform=same, matrix=matrix) for same in (False, True))
    assert one.valued(each) == "each levels"
    assert asked.pop() == (each, "states", "columns", 5)
    assert one.valued(every) == "every ('states', 'columns')" and not asked
    if kind is ChainTransport:
        bound = Bound(1.5)
        monkeypatch.setattr(kind, "_leaking", lambda _, *given, everywhere: (*given, everywhere))
        assert one.valued_witness(each, bound) == ("levels", bound, False)
        assert one.valued_witness(every, bound) == ("levels", bound, True)
        assert asked == [(each, "states", "columns", None), (every, "states", "columns", None)]


def test_one_entry_alone_loses_its_own_cost() -> None:
    for pairs in (GROUPS, None):
        for begun in (False, True):
            found = chain(1, begun=begun, pairs=pairs).uniform(0.5)
            assert found.value == pytest.approx(0.5) and found.value >= 0.5
            assert found.binding is not None and found.binding.entry == 0
            assert found.by_entry is not None and len(found.by_entry) == 1
