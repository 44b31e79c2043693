"""What rounding may do, and how close a search must come, reaches each bound of a chain.

Margins are far below what anybody would notice. So they are made large here, one at a time, and
each must come out on the safe side of the bound, as often as it is needed.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from takifugu.errors import Malformed
from takifugu.numeric import Floats
from takifugu.priors import HigherOrderChain, IntervalMarkovChain, MarkovChain, Secrets
from takifugu.translation.chain import (
    adversary_transport,
    block_steps,
    chain_witness,
    higher_order_transport,
    interval_steps,
    interval_transport,
    known_entries,
    unbounded_losses,
    unknown_start,
)
from takifugu.translation.chain.adversary_transport import AdversaryTransport
from takifugu.translation.chain.chain_witness import Neighbourhood, best_product
from takifugu.translation.chain.fixed_point import fixed_point
from takifugu.translation.chain.higher_order_transport import HigherOrderTransport
from takifugu.translation.chain.interval_transport import IntervalTransport
from takifugu.translation.chain.transport_steps import off_diagonal

pytestmark = pytest.mark.nightly

ROWS = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
COST = np.array([[0.0, 0.5, 0.9], [0.4, 0.0, 0.6], [0.8, 0.7, 0.0]])
ORDER = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.6, 0.4], [0.1, 0.9]]])


def seen(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> list[dict[str, Any]]:
    """What every search for a fixed point is given by name."""
    asked = list[dict[str, Any]]()

    def solved(rows: Any, charged: Floats, **given: Any) -> Any:
        asked.append(given)
        return fixed_point(rows, charged, **given)

    for module in modules:
        monkeypatch.setattr(module, "fixed_point", solved)
    return asked


SEARCHES = (adversary_transport, known_entries, unknown_start, unbounded_losses)


@pytest.mark.parametrize(
    ("adversary", "searches"),
    [
        ({"start": "unknown"}, 2),
        ({"known": "any"}, 4),
        ({"start": "unknown", "known": "any"}, 4),
    ],
)
def test_a_tolerance_is_that_of_every_search(
    adversary: dict[str, Any], searches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = seen(monkeypatch, *SEARCHES)
    chain = MarkovChain(ROWS, length=None, **adversary)
    AdversaryTransport(chain, Secrets(), tolerance=0.0625).uniform(0.3)
    assert [given["tolerance"] for given in asked] == [0.0625] * searches
    assert not any(given["with_lower"] for given in asked)


def test_a_tolerance_is_that_of_every_search_of_other_chains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = seen(monkeypatch, unbounded_losses, interval_steps, interval_transport)
    higher = HigherOrderTransport(HigherOrderChain(ORDER), Secrets(), tolerance=0.0625)
    higher.uniform(0.3)
    assert len(asked) == 2
    for start in ("stationary", "any"):
        low, high = ROWS - 0.01, ROWS + 0.01
        prior = IntervalMarkovChain(low, high, start=start)
        IntervalTransport(prior, Secrets(), tolerance=0.0625).uniform(0.3)
    assert len(asked) == 2 + 8
    assert {given["tolerance"] for given in asked} == {0.0625}
    assert not any(given["with_lower"] for given in asked)


def test_both_directions_of_an_unbounded_chain_pay_for_their_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = seen(monkeypatch, unbounded_losses)
    monkeypatch.setattr(unbounded_losses, "row_slack", lambda states: states / 256)
    monkeypatch.setattr(unbounded_losses, "law_slack", lambda states: states / 128)
    first = unbounded_losses.unbounded_losses(ROWS, COST)
    near = unbounded_losses.unbounded_losses(ROWS, COST, near=first, with_lower=False)
    assert [given["slack"] for given in asked] == [3 / 256, 3 / 128] * 2
    assert [given["start"] for given in asked] == [None, None, first.forward, first.backward]
    assert [given["with_lower"] for given in asked] == [True, True, False, False]
    assert not near.forward.lower.any() and first.forward.lower.any()


def test_sums_of_three_are_rounded_outwards() -> None:
    losses = unbounded_losses.unbounded_losses(ROWS, COST)
    for x, y in product(range(3), repeat=2):
        for side, sign in (("upper", 1), ("lower", -1)):
            found = Fraction(float(getattr(losses, side)[x, y]))
            parts = (COST, getattr(losses.forward, side), getattr(losses.backward, side))
            true = sum(Fraction(float(part[x, y])) for part in parts)
            if x == y:
                assert found == 0
            else:
                assert true <= found if sign > 0 else true >= found
                assert abs(found - true) < Fraction(1, 10**12)
    assert losses.loss == losses.upper.max()
    assert losses.upper[losses.worst] == losses.loss
    with pytest.raises(Malformed):
        unbounded_losses.unbounded_losses(ROWS, -0.5)
    with pytest.raises(Malformed):
        unbounded_losses.unbounded_losses(ROWS, np.inf)
    assert unbounded_losses.unbounded_losses(ROWS, 0.0).loss <= 1e-12


def test_a_block_pays_for_the_rows_of_each_step_twice() -> None:
    rows, after = [ROWS] * 3, off_diagonal(3, 0.25)
    plain = block_steps.block_step(rows, [0.3, COST, 0.2], after, slack=0.0)
    wider = block_steps.block_step(rows, [0.3, COST, 0.2], after, slack=1 / 64)
    assert wider == pytest.approx(plain + 6 / 64 * off_diagonal(3), abs=1e-12)
    widest = block_steps.block_step(rows, [0.3, COST, 0.2], after, slack=9.0)
    assert widest == pytest.approx(off_diagonal(3, 0.3 + 0.9 + 0.2 + 0.25))


@pytest.mark.parametrize("slack", [0.0, 1 / 128])
def test_groups_of_windows_pay_for_their_laws(
    slack: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = np.random.default_rng(3).dirichlet(np.ones(3), size=(3, 3))
    secrets = Secrets(pairs=(((0,), (1, 2)), ((1, 2), (0,)), ((1,), (2,))))
    transport = HigherOrderTransport(HigherOrderChain(table, length=3), secrets)
    cost = 0.3 * transport._metric
    none = np.zeros_like(cost)
    plain, pair = transport._loss(cost, none, none)
    monkeypatch.setattr(higher_order_transport, "row_slack", lambda _: slack)
    monkeypatch.setattr(higher_order_transport, "law_slack", lambda _: 2 * slack)
    wider, same = transport._loss(cost, none, none)
    assert pair == same and wider == pytest.approx(min(plain + 3 * slack, 0.3), abs=1e-9)
    assert 0 < plain <= 0.3 * (1 + 1e-12)


def test_the_loss_of_windows_is_that_of_all_terms() -> None:
    transport = HigherOrderTransport(HigherOrderChain(ORDER), Secrets())
    metric = transport._metric.astype(np.float64)
    size = len(metric)
    other = off_diagonal(size, 0.05)
    one = transport._loss(0.3 * metric, other, 2 * other)[0]
    two = transport._loss(0.3 * metric + 3 * other, 0 * other, 0 * other)[0]
    assert one == pytest.approx(two, rel=1e-9) and 0.3 < one <= 0.45 * (1 + 1e-12)
    large = transport._loss(off_diagonal(size, 301.0), 0 * other, 0 * other)
    assert large[0] == pytest.approx(301.0) and large[1] == 0
    nothing = transport._loss(0 * other, 0 * other, 0 * other)
    assert 0 <= nothing[0] < 1e-14 and nothing[1] == 0


@pytest.mark.parametrize("entries", [None, (40,)])
def test_what_follows_a_profile_of_windows_is_covered(entries: tuple[int, ...] | None) -> None:
    """One number stands for all later entries: no less than any of them loses."""
    spent = np.array([0.5, 0.5, 0.5])
    secrets = Secrets(entries=entries)
    found = HigherOrderTransport(HigherOrderChain(ORDER), secrets).profile(spent)
    long = HigherOrderTransport(HigherOrderChain(ORDER, length=60), secrets).profile(
        np.concatenate([spent, np.zeros(57)])
    )
    assert found.by_entry is not None and long.by_entry is not None
    assert len(found.by_entry) == 4
    assert found.by_entry[-1] >= long.by_entry[3:].max() > 0
    if entries is None:
        assert found.by_entry == pytest.approx([*long.by_entry[:3], long.by_entry[3]], rel=1e-9)
        assert found.binding is not None and found.binding.entry == int(np.argmax(long.by_entry))
        assert found.value == long.value
    else:
        assert not found.by_entry[:3].any() and found.binding is None
        assert found.value <= 0.1


def test_where_a_witness_of_windows_looks() -> None:
    many = HigherOrderTransport(HigherOrderChain(ORDER, length=9), Secrets())
    assert many._middle == 4 and many._covered(3) == [0, 1, 2]
    chosen = HigherOrderTransport(HigherOrderChain(ORDER, length=9), Secrets(entries=(8, 1, 3)))
    assert chosen._middle == 3 and chosen._covered(8) == [1, 3] and chosen._covered(9) == [1, 3, 8]
    assert HigherOrderTransport(HigherOrderChain(ORDER), Secrets())._middle == 64


@pytest.mark.parametrize("length", [9, 200, None])
@pytest.mark.parametrize("entry", [0, 5, 100])
def test_a_witness_of_windows_takes_the_entries_around_its_own(
    length: int | None, entry: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if length is not None and entry >= length:
        return
    asked = list[Neighbourhood]()

    def kept(around: Neighbourhood, left: Floats, right: Floats) -> Any:
        asked.append(around)
        return best_product(around, left, right)

    monkeypatch.setattr(higher_order_transport, "best_product", kept)
    monkeypatch.setattr(higher_order_transport, "row_slack", lambda n: n * 2.0**-40)
    monkeypatch.setattr(higher_order_transport, "law_slack", lambda n: n * 2.0**-20)
    transport = HigherOrderTransport(HigherOrderChain(ORDER, length=length), Secrets())
    bound = transport.uniform(0.05)
    assert bound.binding is not None
    from dataclasses import replace

    here = replace(bound, binding=replace(bound.binding, entry=entry))
    found = transport.witness(0.05, here)
    (around,) = asked
    after = 64 if length is None else min(64, length - 1 - entry)
    before = min(64, entry)
    assert (len(around.ahead), len(around.behind)) == (after, before)
    assert (len(around.costs_ahead), len(around.costs_behind)) == (after, before)
    assert found.entries == tuple(range(entry - before, entry + after + 1))
    size, steps = len(around.cost), after + before
    assert around.slack == pytest.approx(
        steps * size * 2.0**-40 + (2 + steps) * size * 2.0**-20, rel=1e-12
    )
    assert found.binding is not None and found.binding.entry == entry
    rows = transport._stationary_rows
    assert all(one is rows[0] for one in around.ahead)
    assert all(one is rows[2] for one in around.behind)


# a witness leaks what its factors do


def leaks(around: Neighbourhood, found: Any, left: Floats, right: Floats) -> Decimal:
    """The ratio of two expectations of a product, exactly, and its logarithm to many digits."""

    def message(rows: Any, factors: Floats) -> list[Fraction]:
        value = [Fraction(1)] * left.shape[1]
        for kernel, factor in zip(reversed(rows), reversed(factors), strict=True):
            worth = [Fraction(float(f)) * v for f, v in zip(factor, value, strict=True)]
            value = [
                sum((Fraction(float(p)) * w for p, w in zip(row, worth, strict=True)), Fraction(0))
                for row in kernel
            ]
        return value

    ahead, behind = message(around.ahead, found.ahead), message(around.behind, found.behind)
    both = []
    for law in (left, right):
        parts = (law[found.pair], found.here, ahead, behind)
        terms = [
            Fraction(float(a)) * Fraction(float(b)) * c * d
            for a, b, c, d in zip(*parts, strict=True)
        ]
        both.append(sum(terms, Fraction(0)))
    ratio = both[0] / both[1]
    with localcontext() as context:
        context.prec = 60
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scalar", [True, False])
def test_a_product_leaks_at_least_what_it_says(seed: int, scalar: bool) -> None:
    rng = np.random.default_rng(seed)
    ahead, behind = (list(rng.dirichlet(np.ones(3), (n, 3))) for n in (2, 3))
    cost = off_diagonal(3, 0.5) if scalar else COST
    around = Neighbourhood(ahead, behind, cost, [cost] * 2, [cost] * 3, 0.0)
    left, right = np.eye(3)[[0, 1, 2]], np.eye(3)[[1, 2, 0]]
    found = best_product(around, left, right)
    true = leaks(around, found, left, right)
    assert Decimal(found.leak) <= true <= Decimal(found.leak) + Decimal(10) ** -11
    for factor in (found.here, *found.ahead, *found.behind):
        for u, v in product(range(3), repeat=2):
            assert factor[u] <= factor[v] * np.exp(cost[u, v]) * (1 + 1e-15)
    paid = Neighbourhood(ahead, behind, cost, [cost] * 2, [cost] * 3, 0.125)
    assert best_product(paid, left, right).leak == pytest.approx(found.leak - 0.125, abs=1e-12)
    much = Neighbourhood(ahead, behind, cost, [cost] * 2, [cost] * 3, 99.0)
    assert best_product(much, left, right).leak == 0.0


def test_rows_are_scaled_by_their_largest_number() -> None:
    rows = chain_witness._unit(np.array([[0.25, 0.5], [0.0, 0.0], [8.0, 2.0]]))
    assert rows.tolist() == [[0.5, 1.0], [0.0, 0.0], [1.0, 0.25]]


def test_costs_beyond_floats_are_reduced_alike() -> None:
    costs = [off_diagonal(2, 300.0), off_diagonal(2, 500.0)]
    around = Neighbourhood(
        [np.full((2, 2), 0.5)], [np.full((2, 2), 0.5)], costs[0], costs[:1], costs[1:], 0.0
    )
    asked = list[tuple[float, float]]()

    def response(cost: Floats, share: float) -> Any:
        asked.append((float(cost.max()), share))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(chain_witness, "BestResponse", response)
        known: Any = chain_witness._responses(around)
    assert asked == [(300.0, 0.75), (500.0, 0.75)]
    assert list(known) == [id(costs[0]), id(costs[1])]
    nothing = Neighbourhood([], [], costs[0], [np.zeros((2, 2))], [], 0.0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(chain_witness, "BestResponse", response)
        chain_witness._responses(nothing)
    assert asked[-1] == (0.0, 1.0)


# boxes are widened, never narrowed

LOW = np.array([[0.5, 0.2, 0.05], [0.1, 0.4, 0.2], [0.2, 0.2, 0.3]])
HIGH = np.array([[0.7, 0.4, 0.15], [0.3, 0.6, 0.4], [0.4, 0.4, 0.5]])
LAWS = np.array([0.25, 0.25, 0.2]), np.array([0.45, 0.45, 0.4])


def boxed() -> list[Callable[[], tuple[Floats, Floats]]]:
    return [
        lambda: interval_steps.box_rows(LOW * [0, 1, 1], np.where([True, False, False], 1.0, HIGH)),
        lambda: interval_steps.law_bounds(LOW, HIGH, rounds=1),
        lambda: interval_steps.law_bounds(LOW, HIGH, rounds=3),
        lambda: interval_steps.backward_boxes(LOW, HIGH, *LAWS),
        lambda: interval_steps.group_boxes(*LAWS, [(0, 1), (2,), (0, 2)]),
    ]


@pytest.mark.parametrize("case", range(5))
def test_rounding_makes_boxes_wider(case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interval_steps, "UNIT", 0.0)
    low, high = boxed()[case]()
    monkeypatch.setattr(interval_steps, "UNIT", 2.0**-13)
    lower, higher = boxed()[case]()
    assert (lower <= low).all() and (higher >= high).all()
    inside = (low > 0) & (high < 1)
    assert (low - lower)[inside].max() > 2.0**-13 and (higher - high)[inside].max() > 2.0**-13
    assert (low - lower).max() < 2.0**-4 and (higher - high).max() < 2.0**-4


def test_measures_of_the_robust_step_are_rounded_outwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interval_steps, "UNIT", 0.0)
    above, below = interval_steps.robust_rows(LOW, HIGH)(COST)
    monkeypatch.setattr(interval_steps, "UNIT", 2.0**-10)
    more, less = interval_steps.robust_rows(LOW, HIGH)(COST)
    assert (more > above).all() and (less < below).all()
    assert more == pytest.approx(above, rel=0.02) and less == pytest.approx(below, rel=0.02)


@pytest.mark.parametrize("most", [True, False])
def test_what_is_left_is_rounded_on_its_side(most: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    worth = np.array([0.3, 0.9, 0.5])
    monkeypatch.setattr(interval_steps, "UNIT", 0.0)
    plain = interval_steps._expected(*LAWS, worth, most=most)
    true = [
        float(np.array([a, b, 1 - a - b]) @ worth)
        for a, b in product(np.linspace(0.25, 0.45, 41), repeat=2)
        if 0.2 - 1e-9 <= 1 - a - b <= 0.4 + 1e-9
    ]
    assert plain == pytest.approx(max(true) if most else min(true), abs=1e-9)
    monkeypatch.setattr(interval_steps, "UNIT", 2.0**-12)
    wider = interval_steps._expected(*LAWS, worth, most=most)
    assert 2.0**-12 < abs(wider - plain) < 2.0**-5 and (wider > plain) == most


def test_steps_over_boxes_pay_for_rounding_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = seen(monkeypatch, interval_steps, interval_transport)
    for module in (interval_steps, interval_transport):
        monkeypatch.setattr(module, "row_slack", lambda states: states / 512)
    for start, searches in (("stationary", 2), ("any", 2)):
        prior = IntervalMarkovChain(ROWS - 0.01, ROWS + 0.01, start=start)  # type: ignore[arg-type]
        transport = IntervalTransport(prior, Secrets())
        asked.clear()
        transport.uniform(0.3)
        assert [given["slack"] for given in asked] == [6 / 512] * searches


def test_groups_of_values_pay_for_rounding_of_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = Secrets(pairs=(((0, 1), (2,)), ((0,), (2,))))
    prior = IntervalMarkovChain(ROWS - 0.01, ROWS + 0.01)
    transport = IntervalTransport(prior, secrets)
    table = off_diagonal(3, 0.5)
    monkeypatch.setattr(interval_transport, "row_slack", lambda _: 0.0)
    plain = transport._group_steps(table)
    monkeypatch.setattr(interval_transport, "row_slack", lambda states: states / 64)
    wider = transport._group_steps(table)
    grouped = np.array([len(a) + len(b) > 2 for a, b in transport._sides])
    assert (
        grouped.sum() == 2 and np.isinf(plain[~grouped]).all() and np.isinf(wider[~grouped]).all()
    )
    assert wider[grouped] == pytest.approx(plain[grouped] + 6 / 64, abs=1e-9)
    assert (plain[grouped] <= 0.52).all() and (plain[grouped] > 0.3).all()
    assert np.isinf(transport._group_steps(np.zeros((3, 3)))).all()
    assert np.isinf(transport._group_steps(off_diagonal(3, 300.0))).all()
    single = IntervalTransport(prior, Secrets(pairs=(((0,), (2,)),)))
    assert np.isinf(single._group_steps(table)).all()
