"""What the bound against stronger adversaries asks its parts for, and how it adds them up."""

from fractions import Fraction
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from takifugu.costs import Cost
from takifugu.errors import UnsoundRequest
from takifugu.numeric import Floats
from takifugu.priors import MarkovChain, Secrets
from takifugu.translation.bounds import Binding, Bound
from takifugu.translation.chain import adversary_transport as module
from takifugu.translation.chain.adversary_transport import AdversaryTransport, EntryLosses
from takifugu.translation.chain.cost_levels import CostLevels
from takifugu.translation.chain.entry_laws import law_slack, recurrent_law
from takifugu.translation.chain.known_entries import KnownSide
from takifugu.translation.chain.transport_steps import off_diagonal
from takifugu.translation.entry_costs import EntryCosts

pytestmark = pytest.mark.nightly

ROWS = np.array([[0.5, 0.375, 0.125], [0.125, 0.625, 0.25], [0.25, 0.25, 0.5]])
COST = np.array([[0.0, 0.5, 0.9], [0.4, 0.0, 0.6], [0.8, 0.7, 0.0]])
EQUAL = off_diagonal(3, 0.5)


def against(length: int | None = 6, rows: Floats = ROWS, **adversary: Any) -> AdversaryTransport:
    return AdversaryTransport(MarkovChain(rows, length=length, **adversary), Secrets())


@pytest.mark.parametrize("length", [6, None])
def test_the_worst_start_is_asked_for_the_pair_and_entry_that_bind(
    length: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[Any]()
    sides: Any = SimpleNamespace(worst_start=lambda *given: given)

    def solved(_: Any, cost: Floats, others: int | None) -> Any:
        asked.append((cost, others))
        return sides

    monkeypatch.setattr(AdversaryTransport, "_solved_sides", solved)
    transport = against(length, start="unknown")
    values = np.array([[0.0, 0.1, 0.2], [0.9, 0.0, 0.3], [0.2, 0.3, 0.0]])
    here = Bound(0.9, Binding("1", "0", entry=4), by_values=values)
    worst: Any = transport._worst_start
    assert worst(COST, here) == (1, 0, 4)
    assert asked == [(COST, None if length is None else 5)]
    anywhere = Bound(0.9, Binding("1", "0"), by_values=values)
    assert worst(COST, anywhere) == (1, 0, None)
    assert worst(COST, Bound(0.9, by_values=values)) == (1, 0, None)
    asked.clear()
    assert transport._worst_start(None, here) is None
    assert transport._worst_start(COST, Bound(0.9, here.binding)) is None
    assert transport._worst_start(COST, Bound(np.inf, here.binding, by_values=values)) is None
    assert not asked
    sides = None
    assert transport._worst_start(COST, here) is None


@pytest.mark.parametrize("known", ["any", "none"])
@pytest.mark.parametrize("begins", ["unknown", "stationary", "given"])
def test_both_sides_are_walked_as_the_adversary_knows_them(
    begins: str, known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[tuple[Any, ...]]()

    def walk(kernel: Floats, star: Any, length: int | None, **given: Any) -> Any:
        asked.append((kernel, star, length, given))
        return len(asked)

    usable = True

    def sides(after: int, before: int, cost: Floats) -> Any:
        return SimpleNamespace(given=(after, before, cost), usable=usable)

    law = np.array([0.25, 0.5, 0.25])
    start: Any = law if begins == "given" else begins
    transport = against(start=start, known=known)
    monkeypatch.setattr(module, "StarWalk", SimpleNamespace(of=walk))
    monkeypatch.setattr(module, "SolvedSides", sides)
    found: Any = transport._solved_sides(EQUAL, 5)
    assert found.given[:2] == (1, 2) and found.given[2] is EQUAL
    (ahead, star, length, given), (behind, same, others, back) = asked
    assert ahead.tolist() == ROWS.tolist() and behind.tolist() == ROWS.T.tolist()
    assert star is same and length == others == 5
    assert given["known"] == back["known"] == (known == "any")
    assert given["start"].tolist() == [1.0] * 3 and given["steady"] is True
    assert back["steady"] == (begins == "stationary") and back["slack"] == law_slack(3)
    if begins == "unknown":
        assert back["start"] is None
    else:
        expected = law if begins == "given" else recurrent_law(ROWS)
        assert back["start"] == pytest.approx(expected)
    usable = False
    assert transport._solved_sides(EQUAL, 5) is None


def test_pairs_are_solved_only_for_stars_and_equal_steps() -> None:
    transport = against(start="unknown")
    assert transport._solved_sides(EQUAL, 5) is not None
    assert transport._solved_sides(EQUAL, 1) is not None
    assert transport._solved_sides(EQUAL, None) is not None
    assert transport._solved_sides(EQUAL, 0) is None
    assert transport._solved_sides(0 * EQUAL, 5) is None
    line = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))  # no star from four on
    four = against(rows=np.full((4, 4), 0.25), start="unknown")
    assert four._solved_sides(line, 5) is None
    stack = np.stack([ROWS, ROWS[::-1]])
    changing = AdversaryTransport(MarkovChain(stack, start="unknown"), Secrets())
    assert changing._solved_sides(EQUAL, 2) is None


@pytest.mark.parametrize("adversary", [{"start": "unknown"}, {"known": "any"}])
def test_any_entry_loses_its_cost_and_both_sides(
    adversary: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    ahead, behind, after, before = rng.uniform(0, 2, (4, 3, 3)) * off_diagonal(3)

    def upper(table: Floats) -> Any:
        return SimpleNamespace(upper=table)

    def known(self: KnownSide, *, tolerance: float) -> Floats:
        assert tolerance == 1e-3
        (kernel,), (cost,) = self.kernels, self.charged
        assert cost is COST and (kernel == (ROWS if self.ahead else ROWS.T)).all()
        table: Floats = after if self.ahead else before
        return table

    both = SimpleNamespace(forward=upper(ahead), backward=upper(behind))
    monkeypatch.setattr(module, "fixed_point", lambda *_, **__: upper(ahead))
    monkeypatch.setattr(module, "unbounded_start", lambda *_, **__: behind)
    monkeypatch.setattr(module, "unbounded_losses", lambda *_, **__: both)
    monkeypatch.setattr(KnownSide, "unbounded", known)
    transport = against(None, **adversary)
    found = transport._at_any_entry(COST)
    sides = (ahead, behind)
    if "known" in adversary:
        sides = np.maximum(ahead, after), np.maximum(behind, before)
    assert found.by_values is not None and found.binding is not None
    for x, y in permutations(range(3), 2):
        true = sum(Fraction(float(part[x, y])) for part in (COST, *sides))
        assert true <= Fraction(float(found.by_values[x, y])) <= true + Fraction(1, 10**12)
    worst = np.unravel_index(int(np.argmax(COST + sides[0] + sides[1])), (3, 3))
    assert (found.binding.left, found.binding.right) == tuple(str(value) for value in worst)
    assert found.binding.entry is None and found.value == found.by_values.max()


def test_solved_pairs_take_the_place_of_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Any]()
    sides = object()

    def anywhere(given: Any, table: Floats, mask: Any) -> Floats:
        asked.append((given, mask))
        assert not np.diag(table).any()
        return table / 2

    monkeypatch.setattr(module, "unbounded_start", lambda *_, **__: EQUAL)
    monkeypatch.setattr(AdversaryTransport, "_solved_sides", lambda *_: None)
    transport = against(None, start="unknown")
    plain = transport._at_any_entry(COST)
    monkeypatch.setattr(AdversaryTransport, "_solved_sides", lambda *_: sides)
    monkeypatch.setattr(module, "solve_anywhere", anywhere)
    found = transport._at_any_entry(COST)
    assert found.value == pytest.approx(plain.value / 2, rel=1e-9)
    assert asked[0][0] is sides and asked[0][1] is transport._secret.mask


@pytest.mark.parametrize("entries", [None, (1, 3)])
def test_solved_entries_are_those_with_secrets(
    entries: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = MarkovChain(ROWS, length=4, start="unknown")
    transport = AdversaryTransport(chain, Secrets(entries=entries))
    sides, asked = object(), list[Any]()

    def solved(given: Any, tables: Any, at: Any, secret: Any, mask: Any) -> Any:
        asked.append((given, tables, at.tolist(), secret.tolist(), mask))
        return [tables[k] for k in at]

    monkeypatch.setattr(module, "solve_entries", solved)
    charged = CostLevels((EQUAL,), np.zeros(4, dtype=np.int64))
    hulls: Any = ("first", "second")
    losses = EntryLosses((EQUAL, COST), hulls, [0, 1, 1, 0], COST)
    monkeypatch.setattr(AdversaryTransport, "_solved_sides", lambda *_: None)
    assert transport._solved(losses, charged) is losses
    lengths = list[Any]()

    def found_sides(_: Any, cost: Floats, length: int) -> Any:
        lengths.append((cost, length))
        return sides

    monkeypatch.setattr(AdversaryTransport, "_solved_sides", found_sides)
    found = transport._solved(losses, charged)
    assert lengths == [(EQUAL, 3)]
    wanted = [True] * 4 if entries is None else [False, True, False, True]
    assert asked == [(sides, losses.tables, [0, 1, 1, 0], wanted, transport._secret.mask)]
    assert list(found.at) == [0, 1, 2, 3] and found.behind is COST
    assert [str(hull) for hull in found.hulls] == ["first", "second", "second", "first"]
    monkeypatch.setattr(module, "LARGEST", 35)
    assert transport._solved(losses, charged) is losses
    monkeypatch.setattr(module, "LARGEST", 36)
    assert transport._solved(losses, charged) is not losses


def test_only_one_cost_on_every_entry_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()

    def solved(_: Any, losses: EntryLosses, charged: CostLevels) -> EntryLosses:
        asked.append(len(charged))
        return losses

    monkeypatch.setattr(AdversaryTransport, "_solved", solved)
    transport = against(3, start="unknown")
    transport.profile(np.array([0.5, 0.5, 0.5]))
    assert asked == [3]
    transport.profile(np.array([0.5, 0.5, 0.25]))
    against(1, start="unknown").uniform(0.5)
    stack = np.stack([ROWS, ROWS[::-1]])
    AdversaryTransport(MarkovChain(stack, start="unknown"), Secrets()).uniform(0.5)
    assert asked == [3]


def test_entries_without_secrets_lose_nothing() -> None:
    chain = MarkovChain(ROWS, length=5, known="any")
    transport = AdversaryTransport(chain, Secrets(entries=(1, 3)))
    found = transport.profile(np.array([0.1, 0.1, 0.9, 0.4, 0.2]))
    every = against(5, known="any").profile(np.array([0.1, 0.1, 0.9, 0.4, 0.2]))
    assert found.by_entry is not None and every.by_entry is not None
    assert np.flatnonzero(found.by_entry).tolist() == [1, 3]
    assert found.by_entry[[1, 3]].tolist() == every.by_entry[[1, 3]].tolist()
    assert found.binding is not None and found.binding.entry == 3 == int(np.argmax(found.by_entry))
    assert found.value == found.by_entry.max() < every.value
    with pytest.raises(UnsoundRequest):
        transport.profile(np.array([0.1, 0.1]))


def test_costs_by_value_are_those_of_the_entries() -> None:
    transport = against(3, start="unknown")
    one = EntryCosts(anywhere=(Cost.any(Fraction(1, 2)),))
    assert transport.valued(one).value == pytest.approx(transport.uniform(0.5).value)
    each = EntryCosts(by_entry=tuple(Cost.any(Fraction(k, 4)) for k in (1, 2, 1)))
    assert transport.valued(each).value == pytest.approx(
        transport.profile(np.array([0.25, 0.5, 0.25])).value
    )
    assert transport.size == 3 and against(None, start="unknown").size is None


def test_kernels_that_are_equal_are_one_object() -> None:
    stack = np.stack([ROWS, ROWS[::-1], ROWS])
    kernels = AdversaryTransport(MarkovChain(stack, start="unknown"), Secrets())._kernels
    assert len(kernels) == 3 and kernels[0] is kernels[2] and kernels[0] is not kernels[1]
    assert len(against(9, start="unknown")._kernels) == 1
    with pytest.raises(UnsoundRequest):
        against(None, start=np.full(3, 1 / 3), known="any")
