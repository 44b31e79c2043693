"""Which method of a chain's bound is taken, and what each entry, pair and later entry is told."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from takifugu._rounding import UNIT
from takifugu.numeric import Floats
from takifugu.priors import IntervalMarkovChain, MarkovChain, Secrets
from takifugu.translation.bounds import Bound
from takifugu.translation.chain import adversary_transport, binary_transport, block_steps
from takifugu.translation.chain.adversary_transport import AdversaryTransport
from takifugu.translation.chain.binary_transport import BinaryTransport
from takifugu.translation.chain.chain_losses import chain_losses
from takifugu.translation.chain.cost_levels import CostLevels
from takifugu.translation.chain.entry_laws import Law
from takifugu.translation.chain.interval_transport import IntervalTransport
from takifugu.translation.chain.start_hull import StartHull
from takifugu.translation.chain.transport_steps import off_diagonal
from takifugu.translation.chain.unknown_start import unknown_start
from tests.oracles.transport import loss_by_potentials

pytestmark = pytest.mark.nightly

ROWS = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
TWO = np.array([[0.7, 0.3], [0.2, 0.8]])
COST = np.array([[0.0, 0.5, 0.9], [0.4, 0.0, 0.6], [0.8, 0.7, 0.0]])
ADVERSARIES = [{"start": "unknown"}, {"known": "any"}, {"start": "unknown", "known": "any"}]


def against(adversary: dict[str, Any], length: int | None, **more: Any) -> AdversaryTransport:
    return AdversaryTransport(MarkovChain(ROWS, length=length, **adversary), Secrets(**more))


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_short_chains_are_told_entry_by_entry(
    adversary: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adversary_transport, "WALKED", 5)
    short, long, unbounded = (against(adversary, n).uniform(0.3) for n in (5, 6, None))
    assert short.by_entry is not None and len(short.by_entry) == 5
    assert long.by_entry is None and unbounded.by_entry is None
    assert long.value == unbounded.value
    assert short.value <= long.value * (1 + 1e-3)
    assert long.binding is not None and long.binding.entry is None
    assert short.binding is not None and isinstance(short.binding.entry, int)


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("entries", [None, (1, 30)])
def test_one_number_stands_for_all_entries_after_a_profile(
    adversary: dict[str, Any], entries: tuple[int, ...] | None
) -> None:
    spent = np.array([0.5, 0.2, 0.4])
    found = against(adversary, None, entries=entries).profile(spent)
    long = against(adversary, 40, entries=entries).profile(np.concatenate([spent, np.zeros(37)]))
    assert found.by_entry is not None and long.by_entry is not None
    assert len(found.by_entry) == 4
    assert found.by_entry[:3] == pytest.approx(long.by_entry[:3], rel=1e-9)
    assert found.by_entry[3] >= long.by_entry[3:].max()
    if entries is None:
        assert found.by_entry[3] == pytest.approx(long.by_entry[3:].max(), rel=1e-6)
        assert found.value == pytest.approx(long.value)
    else:
        assert found.by_entry[0] == found.by_entry[2] == 0.0
        assert found.binding is not None and found.binding.entry == 1


def test_the_loss_of_an_entry_is_the_sum_of_its_three_parts() -> None:
    costs = [COST, COST / 2, COST, COST / 2]
    chain = MarkovChain(ROWS, length=4, start="unknown")
    transport = AdversaryTransport(chain, Secrets())
    charged = CostLevels((costs[0], costs[1]), np.array([0, 1, 0, 1]))
    losses = transport._entry_losses(charged)
    free = unknown_start([transport._kernels[0]] * 3, costs)
    plain = chain_losses(ROWS, charged, start=np.full(3, 1 / 3))
    for entry in range(4):
        ahead = plain.forward[plain.forward_at[entry]]
        expected = costs[entry] + ahead + free.before.table(entry)
        table = losses.tables[losses.at[entry]]
        apart = ~np.eye(3, dtype=np.bool_)
        assert table[apart] == pytest.approx(expected[apart], rel=1e-6)
        assert not np.diag(table).any()
    assert losses.behind == pytest.approx(free.before.table(3), rel=1e-6)
    assert all(hull is None for hull in losses.hulls)  # no groups are asked for


def test_equal_entries_share_a_table() -> None:
    transport = AdversaryTransport(MarkovChain(ROWS, length=200, start="unknown"), Secrets())
    charged = CostLevels((COST,), np.zeros(200, dtype=np.int64))
    losses = transport._entry_losses(charged)
    assert len(losses.at) == 200 and len(losses.tables) < 150
    assert losses.tables[losses.at[99]] is losses.tables[losses.at[100]]


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_any_entry_loses_no_more_than_one_of_an_unbounded_chain(
    adversary: dict[str, Any],
) -> None:
    long, unbounded = against(adversary, 60), against(adversary, None)
    one = long._one_by_one(CostLevels((COST,), np.zeros(60, dtype=np.int64)))
    other = unbounded._at_any_entry(COST)
    assert one.value <= other.value * (1 + 1e-9) and other.value <= one.value * 1.02
    assert other.by_values is not None and one.by_values is not None
    assert other.by_values.max() == other.value


def test_pairs_of_groups_have_the_largest_of_their_values() -> None:
    sides = (((0, 1), (2,)), ((0,), (1,)))
    transport = AdversaryTransport(MarkovChain(ROWS, length=4, known="any"), Secrets(pairs=sides))
    value, pair, by_values = transport._of_pairs(COST, None)
    assert value == 0.9 and transport._sides[pair] == ((0, 1), (2,))
    assert by_values[0, 2] == by_values[1, 2] == 0.9
    assert by_values[2, 0] == by_values[2, 1] == 0.8
    assert by_values[0, 1] == 0.5 and by_values[1, 0] == 0.4 and np.isneginf(by_values[0, 0])
    none, _, _ = transport._of_pairs(np.full((3, 3), -np.inf), None)
    assert none == 0.0


def test_a_hull_lowers_the_loss_of_groups_and_covers_its_laws() -> None:
    sides = (((0, 1), (2,)),)
    transport = AdversaryTransport(
        MarkovChain(ROWS, length=4, start="unknown"), Secrets(pairs=sides)
    )
    assert transport._by_hull
    hull = StartHull.whole(3).after(ROWS).after(ROWS)
    value, pair, by_values = transport._of_pairs(COST, hull)
    rng = np.random.default_rng(2)
    for law in [*hull.laws, *(rng.dirichlet(np.ones(3), 20) @ hull.laws)]:
        inside = np.array([law[0], law[1], 0.0]) / (law[0] + law[1])
        alone = np.array([0.0, 0.0, 1.0])
        for p, q, at in ((inside, alone, (0, 2)), (alone, inside, (2, 0))):
            assert loss_by_potentials(p, q, COST) <= by_values[at] + 1e-8
    assert value < 0.9 and by_values[2, 0] < 0.8 and value == by_values.max()
    assert transport._sides[pair][0] == ((0, 1) if by_values[0, 2] == value else (2,))
    table = COST.copy()
    table[2] = table[:, 2] = -np.inf
    assert AdversaryTransport._filled(table) > 2 * 0.5
    for adversary in ({"known": "any"}, {"start": "unknown", "known": "any"}):
        other = MarkovChain(ROWS, length=4, **adversary)  # type: ignore[arg-type]
        assert not AdversaryTransport(other, Secrets(pairs=sides))._by_hull


def test_a_hull_lowers_the_loss_of_groups_with_a_value_that_cannot_happen() -> None:
    rows = np.array([[0.6, 0.3, 0.0, 0.1], [0.2, 0.5, 0.0, 0.3], [0.3, 0.3, 0.0, 0.4]] * 2)[:4]
    sides = (((0, 1, 2), (3,)),)
    chain = MarkovChain(rows, length=4, start="unknown")
    hull = StartHull.whole(4).after(rows).after(rows)
    assert hull.possible.tolist() == [True, True, False, True]
    table = np.full((4, 4), -np.inf)
    able = [0, 1, 3]
    table[np.ix_(able, able)] = COST
    found = AdversaryTransport(chain, Secrets(pairs=sides))._of_pairs(table, hull)[0]
    assert 0.6 < found < 0.85  # with the dearest of its values it would be 0.9


def test_what_cannot_happen_has_no_loss() -> None:
    table = adversary_transport._combined(COST, np.array([True, False, True]))
    assert table[0, 2] == 0.9 and table[2, 0] == 0.8 and table[0, 0] == table[2, 2] == 0.0
    assert np.isneginf(table[1]).all() and np.isneginf(table[:, 1]).all()
    assert COST[1, 1] == 0.0  # what was given is not written to


# two states


def test_short_binary_chains_are_told_entry_by_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary_transport, "LISTED", 6)
    listed, summed = (BinaryTransport(MarkovChain(TWO, length=n), Secrets()) for n in (6, 7))
    short, long = listed.uniform(0.4), summed.uniform(0.4)
    assert short.by_entry is not None and len(short.by_entry) == 6 and long.by_entry is None
    begun = BinaryTransport(MarkovChain(TWO, length=7, start=np.array([0.5, 0.5])), Secrets())
    assert begun.uniform(0.4).by_entry is not None
    monkeypatch.setattr(binary_transport, "LISTED", 7)
    same = summed.uniform(0.4)
    assert same.by_entry is not None and same.by_entry.max() == pytest.approx(long.value, rel=1e-14)
    assert listed.witness(0.4, short).factors is not None
    monkeypatch.setattr(binary_transport, "LISTED", 6)
    assert summed.witness(0.4, long).factors is None
    assert begun.witness(0.4, long).factors is not None
    assert summed.witness(0.4, long).leak == pytest.approx(long.value, rel=1e-14)


@pytest.mark.parametrize("target", [0.125, 4.0])
def test_an_allowance_is_lowered_until_it_holds(
    target: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search by another order of operations may end a little above what holds."""
    transport = BinaryTransport(MarkovChain(TWO, length=9), Secrets())
    monkeypatch.setattr(BinaryTransport, "uniform", lambda _, epsilon: Bound(2 * epsilon))
    for found in (target / 2 * (1 + 1000 * UNIT), target / 2):
        monkeypatch.setattr(binary_transport, "largest_by_bracket", lambda *_, f=found: f)
        lowered = transport.largest(target)
        assert 2 * lowered <= target and lowered >= target / 2 * (1 - 200 * UNIT)
    assert lowered == target / 2
    monkeypatch.setattr(BinaryTransport, "uniform", lambda *_: Bound(np.inf))
    monkeypatch.setattr(binary_transport, "largest_by_bracket", lambda *_: 0.0)
    assert transport.largest(target) == 0.0


def test_steps_that_are_equal_are_one_object() -> None:
    stack = np.stack([TWO, TWO[::-1], TWO])
    chain = MarkovChain(stack, start=np.array([0.5, 0.5]))
    steps = BinaryTransport(chain, Secrets())._steps
    assert isinstance(steps, list) and steps[0] is steps[2] and steps[0] is not steps[1]
    assert steps[0].same and not steps[1].same


def test_what_is_remembered_is_that_of_the_same_costs() -> None:
    transport = BinaryTransport(MarkovChain(TWO, length=4), Secrets())
    first = transport._losses(np.full((2, 4), 0.5))
    assert transport._losses(np.full((2, 4), 0.5)) is first
    other = transport._losses(np.full((2, 4), 0.25))
    assert other is not first and other.upper.max() < first.upper.max()


def test_the_worst_entry_of_those_with_secrets() -> None:
    cost = np.full(2, 0.4)
    for entries in ((0, 3), (5,), None):
        transport = BinaryTransport(MarkovChain(TWO, length=9), Secrets(entries=entries))
        upper, lower, entry = transport._worst(cost)
        each = {
            k: BinaryTransport(MarkovChain(TWO, length=9), Secrets(entries=(k,))).uniform(0.4).value
            for k in entries or range(9)
        }
        assert upper.max() == pytest.approx(max(each.values()), rel=1e-14)
        assert entry is not None and each[entry] == pytest.approx(max(each.values()), rel=1e-14)
        assert (lower <= upper).all() and lower == pytest.approx(upper, rel=1e-14)


# others


def test_the_chain_inside_intervals_is_inside_them() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        centre = rng.dirichlet(np.ones(3), 3) / 2 + 1 / 6
        low = np.maximum(centre - rng.uniform(0, 0.1, (3, 3)), 0.0)
        high = np.minimum(centre + rng.uniform(0, 0.1, (3, 3)), 1.0)
        inside = IntervalTransport(IntervalMarkovChain(low, high, length=3), Secrets())._inside
        assert inside is not None and inside.size == 3
        rows = inside._chain.transition  # type: ignore[attr-defined]
        assert rows.sum(axis=1) == pytest.approx(1.0)
        assert (rows >= low - 1e-12).all() and (rows <= high + 1e-12).all()
        room = (high - low).sum(axis=1)
        share = (rows - low) / (high - low)
        assert share == pytest.approx(np.repeat((1 - low.sum(axis=1)) / room, 3).reshape(3, 3))
    points = IntervalTransport(IntervalMarkovChain(TWO, TWO), Secrets())._inside
    assert points is not None
    assert points._chain.transition == pytest.approx(TWO)  # type: ignore[attr-defined]


def test_a_bound_is_lowered_until_it_settles() -> None:
    above = off_diagonal(3, 5.0)
    found = block_steps.settle(ROWS, COST, above, slack=0.0)
    value: Floats = above
    length = block_steps.block_length(3)
    for _ in range(30):
        after = block_steps.block_step([ROWS] * length, [COST] * length, value, slack=0.0)
        value = np.minimum(value, after)
    assert (found >= value - 1e-9).all() and found == pytest.approx(value, rel=1e-3)


def test_the_rounding_of_a_law_is_covered_after_many_steps() -> None:
    for size, steps in product((2, 10, 100), (0, 1, 1000)):
        law = replace(Law.of(np.full(size, 1 / size)), steps=steps)
        needed = (8 * size * steps + 6 * size + 4) * UNIT
        assert needed <= law.slack <= 9 * needed
