"""Fields of pairs, part by part: what is read of tables, where searches go on, walks in full."""

from itertools import product
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest

from takifugu.errors import TooLarge
from takifugu.numeric import Floats
from takifugu.priors.factors import Factor
from takifugu.priors.random_field import MarkovRandomField
from takifugu.priors.secrets import EntryIs, SecretPair, Secrets
from takifugu.translation.network import attractive_losses, pinning, walk_losses
from takifugu.translation.network.attractive_losses import AttractiveModel
from takifugu.translation.network.junction_losses import NetworkLosses
from takifugu.translation.network.network_transport import NetworkTransport
from takifugu.translation.network.pinning import narrow, pairwise_field
from takifugu.translation.network.walk_losses import PairwiseWalks, contacts_of

pytestmark = pytest.mark.nightly


def model_of(count: int, factors: list[tuple[tuple[int, ...], Any]]) -> Any:
    made = tuple(Factor(scope, np.array(table, dtype=float)) for scope, table in factors)
    return SimpleNamespace(name="field", entries=tuple(range(count)), factors=lambda: made)


def logs(number: float) -> mpmath.mpf:
    return mpmath.log(mpmath.mpf(float(number)))


@pytest.mark.parametrize("wide", [0.3, 3.0, 200.0])
def test_fields_and_couplings_lie_between_what_is_read(wide: float) -> None:
    """Several tables on one pair, in either order, add up; exactly, to many digits."""
    rng = np.random.default_rng(3)

    def pulling() -> Floats:
        table = np.exp(rng.uniform(-wide, wide, (2, 2)))
        if table[0, 0] * table[1, 1] < table[0, 1] * table[1, 0]:
            table = table[::-1].copy()
        return table

    factors: list[tuple[tuple[int, ...], Any]] = [
        ((0,), np.exp(rng.uniform(-wide, wide, 2))),
        ((1,), np.exp(rng.uniform(-wide, wide, 2))),
        *[(scope, pulling()) for scope in ((0, 1), (1, 0), (2, 1), (3, 0), (0, 2), (0, 2))],
    ]
    found = pairwise_field(model_of(5, factors))
    with mpmath.workdps(60):
        field = [mpmath.mpf(0)] * 5
        pulls: dict[tuple[int, int], mpmath.mpf] = {}
        for scope, table in factors:
            if len(scope) == 1:
                field[scope[0]] += logs(table[1]) - logs(table[0])
                continue
            i, j = scope
            field[i] += logs(table[1, 0]) - logs(table[0, 0])
            field[j] += logs(table[0, 1]) - logs(table[0, 0])
            pull = logs(table[1, 1]) + logs(table[0, 0]) - logs(table[0, 1]) - logs(table[1, 0])
            key = min(i, j), max(i, j)
            pulls[key] = pulls.get(key, mpmath.mpf(0)) + pull
        for i in range(5):
            assert found.low[i] < field[i] < found.high[i]
            assert found.high[i] - found.low[i] < 1e-12 * (1 + wide)
        assert found.degree.tolist() == [3, 2, 2, 1, 0]
        for i in range(5):
            contacts = found.near[i, : found.degree[i]].tolist()
            strengths = [pulls[min(i, j), max(i, j)] for j in contacts]
            assert strengths == sorted(strengths)  # the weakest first
            for a, (j, strength) in enumerate(zip(contacts, strengths, strict=True)):
                assert found.weak[i, a] < strength < found.strong[i, a]
                assert found.strong[i, a] - found.weak[i, a] < 1e-12 * (1 + wide)
                assert found.near[j, found.back[i, a]] == i
    levels = pinning.LEVELS
    assert found.pins.max() <= levels + 1 and found.pins.shape == found.near.shape


def test_the_margin_of_a_field_grows_with_all_the_logarithms_that_are_added() -> None:
    """Large ones that cancel leave a small field with a large error."""
    large = [[1e200, 1e100], [1e-100, 1e-200]]
    one = pairwise_field(model_of(2, [((0, 1), large)]))
    two = pairwise_field(model_of(2, [((0, 1), large), ((0, 1), np.array(large) ** -1)]))
    for few, many in ((one, two),):
        wide = (few.high - few.low, many.high - many.low)
        assert (wide[0] > 1000 * 16 * 2.0**-53).all() and wide[1] == pytest.approx(2 * wide[0], 0.1)
        spans = few.strong[0, 0] - few.weak[0, 0], many.strong[0, 0] - many.weak[0, 0]
        # the sum of couplings is 0: no coupling is below that
        assert many.weak[0, 0] == 0.0 and spans[1] > 0.8 * (few.high[0] - few.low[0])


def test_a_coupling_that_rounding_makes_negative_is_none() -> None:
    found = pairwise_field(model_of(2, [((0, 1), [[1.0, 3.0], [1.0, 3.0]])]))
    assert found.weak.tolist() == [[0.0], [0.0]] and 0 < found.strong[0, 0] < 1e-13
    lone = pairwise_field(model_of(2, [((0,), [1.0, 2.0])]))
    assert lone.near.shape == (2, 1) and lone.degree.tolist() == [0, 0]
    with pytest.raises(TooLarge) as caught:
        pairwise_field(model_of(3, [((0, 1, 2), np.ones((2, 2, 2)))]))
    assert (caught.value.size, caught.value.limit) == (3, 2)


class Searched:
    """A field that is explored: what was asked of it, and bounds that narrow as told."""

    def __init__(self, lower: list[float], upper: list[float], *, spent: float, each: int) -> None:
        self.lower, self.upper = np.array(lower), np.array(upper)
        self.epsilon, self.entries = np.array([spent, spent / 2]), list(range(len(lower)))
        self.computes, self.each = True, each
        self.asked: list[tuple[int, float, int]] = []

    def explore(self, k: int, tolerance: float, visits: int) -> int:
        """Note what was asked, and halve the distance."""
        self.asked.append((k, tolerance, visits))
        self.upper[k] = self.lower[k] + (self.upper[k] - self.lower[k]) / 2
        return self.each


def test_every_entry_is_explored_once_and_then_those_that_may_be_the_largest() -> None:
    field = Searched([1.0, 0.5, 0.9], [2.0, 1.2, 1.5], spent=0.5, each=10)
    narrow([field], visits=10**6, close=0.01)  # type: ignore[list-item]
    assert field.asked[:3] == [(0, 0.05, 10**6), (1, 0.05, 10**6 - 10), (2, 0.05, 10**6 - 20)]
    # 1 is below 1.01 after the first round; 0 and 2 go on, each round four times as finely
    assert field.asked[3:5] == [(0, 0.0125, 10**6 - 30), (2, 0.0125, 10**6 - 40)]
    last = [k for k, _, _ in field.asked[3:]]
    assert last.count(1) == 0 and (field.upper[[0, 2]] <= 1.01).all()
    assert last.count(2) < last.count(0)  # it was below sooner


def test_a_search_ends_with_its_visits_or_its_tolerance_but_looks_at_all_once() -> None:
    for visits, rounds in ((0, 1), (1, 1), (20, 1), (21, 2), (40, 2), (41, 3)):
        field = Searched([1.0, 1.0], [9e9, 9e9], spent=0.5, each=10)
        narrow([field], visits=visits)  # type: ignore[list-item]
        assert len(field.asked) == 2 * rounds
        assert all(left >= 1 for _, _, left in field.asked)
    fine = Searched([1.0], [np.inf], spent=0.5, each=0)
    narrow([fine], visits=1)  # type: ignore[list-item]
    least = min(tolerance for _, tolerance, _ in fine.asked)
    assert 2.0**-53 * 0.05 < least <= 4.0 * 2.0**-53 * 0.05
    idle = Searched([1.0], [2.0], spent=0.5, each=1)
    idle.computes = False
    narrow([idle], visits=100)  # type: ignore[list-item]
    narrow([], visits=100)
    assert idle.asked == []


def test_the_largest_is_that_of_all_fields() -> None:
    one = Searched([3.0], [4.0], spent=0.5, each=1)
    other = Searched([1.0], [5.9], spent=2.0, each=1)
    narrow([one, other], visits=10**6, close=0.5)  # type: ignore[list-item]
    assert one.asked == [(0, 0.2, 10**6)] and len(other.asked) == 1


def beta(spread: float, rise: mpmath.mpf) -> mpmath.mpf:
    a, b = mpmath.mpf(spread) / 4, mpmath.mpf(rise) / 4
    return 4 * mpmath.atanh(mpmath.tanh(a) * mpmath.tanh(b))


def field_of(seed: int, edges: list[tuple[int, int]], sizes: tuple[int, ...]) -> MarkovRandomField:
    rng = np.random.default_rng(seed)
    return MarkovRandomField(
        tuple(range(len(sizes))),
        tuple(tuple(range(n)) for n in sizes),
        tuple(rng.uniform(0.5, 2, n) for n in sizes),
        tuple(edges),
        tuple(np.exp(rng.uniform(-0.6, 0.6, (sizes[i], sizes[j]))) for i, j in edges),
    )


def reach(table: Floats, x: int, y: int) -> float:
    apart = np.log(table[x]) - np.log(table[y])
    return float(apart.max() - apart.min())


SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]


@pytest.mark.parametrize("seed", range(3))
def test_walks_that_avoid_themselves_are_followed_in_full(seed: int) -> None:
    """The bound of the entry with the largest loss, from a list of all its walks."""
    sizes = (2, 3, 2, 2)
    model = field_of(seed, SQUARE, sizes)
    spent = np.array([0.5, 0.25, 0.75, 0.4])
    tables = {}
    for (i, j), table in zip(SQUARE, model.weights, strict=True):
        tables[i, j], tables[j, i] = np.asarray(table), np.asarray(table).T

    def behind(j: int, gone: frozenset[int]) -> mpmath.mpf:
        return mpmath.fsum(
            beta(
                max(reach(tables[j, k], x, y) for x, y in product(range(sizes[j]), repeat=2)),
                mpmath.mpf(spent[k]) + behind(k, gone | {j}),
            )
            for k in range(4)
            if (j, k) in tables and k not in gone
        )

    found = walk_losses.walk_losses(model, spent)
    shallow = walk_losses.walk_losses(model, spent, depth=0)
    truths = []
    for pair, upper, rough in zip(found.pairs, found.upper, shallow.upper, strict=True):
        assert isinstance(pair.left, EntryIs) and isinstance(pair.right, EntryIs)
        i, x, y = int(pair.left.entry), int(pair.left.values[0]), int(pair.right.values[0])  # type: ignore[call-overload]
        truth = mpmath.mpf(spent[i]) + mpmath.fsum(
            beta(reach(tables[i, j], x, y), spent[j] + behind(j, frozenset({i})))
            for j in range(4)
            if (i, j) in tables
        )
        truths.append((i, float(min(truth, mpmath.mpf(float(spent.sum()))))))
        assert truths[-1][1] <= upper * (1 + 1e-14) and upper <= rough
    worst = max(truths, key=lambda one: one[1])
    assert found.loss == pytest.approx(worst[1], rel=1e-11)
    assert found.by_entry[worst[0]] == found.loss
    for i in range(4):
        own = [upper for (j, _), upper in zip(truths, found.upper, strict=True) if j == i]
        assert found.by_entry[i] == max(own)
    assert found.epsilon == pytest.approx(spent)
    # where walks end after a few steps, what lies behind is bounded as without walks
    for depth in (1, 2, 3):
        some = walk_losses.walk_losses(model, spent, depth=depth)
        assert found.loss <= some.loss * (1 + 1e-14) <= shallow.loss * (1 + 1e-13)


def test_on_a_tree_what_lies_behind_needs_no_walks() -> None:
    model = field_of(5, [(0, 1), (1, 2), (1, 3), (3, 4)], (2, 2, 3, 2, 2))
    deep, shallow = (walk_losses.walk_losses(model, 0.3, depth=depth) for depth in (12, 0))
    assert deep.upper == pytest.approx(shallow.upper, rel=1e-9)
    assert len(walk_losses.walk_losses(model, 0.3, Secrets(entries=(3,))).pairs) == 2
    alone = walk_losses.walk_losses(field_of(1, [], (2, 3)), [0.25, 0.5])
    assert alone.upper == pytest.approx(np.array([0.25] * 2 + [0.5] * 6), rel=1e-14)
    assert (alone.upper >= [0.25] * 2 + [0.5] * 6).all()


def test_a_cycle_is_bounded_from_above_and_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds from 0 up, as many as there are entries, are a bound in a small field."""
    model = field_of(2, [(0, 1), (1, 2), (2, 0)], (2, 2, 2))
    contacts = contacts_of(model)
    walks = PairwiseWalks(model)
    largest = np.full(3, 0.5)
    both = walks._behind(largest, 1.5)
    monkeypatch.setattr(walk_losses, "SHORT", 3)
    assert walks._behind(largest, 1.5).tolist() == both.tolist()
    monkeypatch.setattr(walk_losses, "SHORT", 2)
    falling = walks._behind(largest, 1.5)
    assert (both <= falling).all()
    truth = [mpmath.mpf(0)] * len(contacts.near)
    for _ in range(3):
        felt = [
            beta(float(contacts.spread[k]), mpmath.mpf(largest[contacts.near[k]]) + truth[k])
            for k in range(len(truth))
        ]
        truth = [
            mpmath.fsum(
                felt[other]
                for other in range(*contacts.start[int(contacts.near[k]) :][:2].tolist())
                if other != contacts.back[k]
            )
            for k in range(len(truth))
        ]
    assert both == pytest.approx(np.minimum(falling, [float(one) for one in truth]), rel=1e-11)
    # no more than all costs, nor than the sum of what all tables beyond reach
    assert (walks._behind(largest, 0.01) <= 0.01).all()
    assert (walks._behind(np.full(3, 1e9), 3e9) <= walks._sums[contacts.near] + 1e-12).all()


def attracting(count: int) -> MarkovRandomField:
    return MarkovRandomField.ising(
        {i: -1.0 + 0.3 * i for i in range(count)},
        {(i, i + 1): 0.4 + 0.1 * i for i in range(count - 1)},
    )


def test_a_guess_of_an_attractive_field_is_near_its_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    model = attracting(5)
    assert AttractiveModel(model).estimate(0.5) is None  # sums are quick
    pinned = AttractiveModel(model, largest=1)
    guess = pinned.estimate(0.5)
    assert guess is not None
    for epsilon in (0.25, 0.5, 1.0):
        exact = AttractiveModel(model).losses(epsilon)
        found = pinned.losses(epsilon)
        assert exact.exact and not found.summed
        assert (found.lower <= exact.upper).all() and (exact.lower <= found.upper).all()
        assert guess(epsilon) == pytest.approx(exact.loss, rel=0.02)
    monkeypatch.setattr(attractive_losses, "LIKELY", 0)
    empty = pinned.estimate(0.5)
    assert empty is not None and empty(0.5) == 0.0


def test_losses_of_an_attractive_field_are_told_by_pair_and_by_entry() -> None:
    model = attracting(4)
    whole = AttractiveModel(model).losses([0.5, 0.25, 0.75, 0.5])
    some = AttractiveModel(model, Secrets(entries=(2, 0))).losses([0.5, 0.25, 0.75, 0.5])
    known = dict(zip(whole.pairs, zip(whole.lower, whole.upper, strict=True), strict=True))
    assert len(some.pairs) == 4
    for pair, low, high in zip(some.pairs, some.lower, some.upper, strict=True):
        assert known[pair] == (low, high)
    assert np.isneginf(some.by_entry[[1, 3]]).all()
    for k in (0, 2):
        own = [u for p, u in zip(some.pairs, some.upper, strict=True) if p.left.entry == k]  # type: ignore[union-attr]
        assert some.by_entry[k] == max(own) == whole.by_entry[k]
    assert some.gap == some.loss - some.attained and 0 <= some.gap < 1e-9
    assert some.binding is not None and known[some.binding][1] == some.loss
    # no bound by pinning is above all costs together
    far = AttractiveModel(model, largest=1).losses(0.5, visits=1)
    assert (far.upper <= 2.0 * (1 + 1e-15)).all() and (far.lower <= far.upper).all()


def test_a_steep_cost_is_not_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = AttractiveModel(attracting(3))
    assert model.losses(299.0).summed and not model.losses(300.0).summed
    monkeypatch.setattr(attractive_losses, "STEEP", 0.5)
    assert not model.losses([0.25, 0.5, 0.25]).summed and model.losses(0.49).summed


def losses(pairs: list[tuple[int, float]], one: bool) -> NetworkLosses:
    made = tuple(SecretPair(EntryIs(k, (0,)), EntryIs(k, (1,))) for k, _ in pairs)
    upper = np.array([value for _, value in pairs])
    return NetworkLosses((0, 1, 2), np.ones(3), made, upper, np.full(3, 9.0 if one else 8.0))


def test_the_lesser_bound_of_each_pair_is_kept() -> None:
    transport = NetworkTransport(attracting(3), Secrets())
    least = transport._least(
        losses([(0, 1.0), (2, 2.0), (2, 0.5)], True), losses([(2, 1.5), (1, 0.1)], False)
    )
    assert least.upper.tolist() == [1.0, 1.5, 0.5]
    assert least.by_entry.tolist() == [1.0, -np.inf, 1.5]


def test_the_last_losses_are_kept_for_what_was_spent() -> None:
    transport = NetworkTransport(attracting(3), Secrets())
    assert transport.size == 3
    one = transport._losses(np.full(3, 0.5))
    assert transport._losses(np.full(3, 0.5)) is one
    other = transport._losses(np.full(3, 0.25))
    assert other is not one and other.loss < one.loss
    assert transport._losses(np.full(3, 0.5)).loss == one.loss
    assert transport.uniform(0.5).value == one.loss
    assert transport.largest(one.loss) == pytest.approx(0.5, rel=1e-6)


def test_a_witness_of_a_network_has_a_factor_for_each_value() -> None:
    same = NetworkTransport(field_of(4, [(0, 1), (1, 2)], (3, 3, 3)), Secrets())
    bound = same.uniform(0.5)
    found = same.witness(0.5, bound)
    assert found.factors is not None and found.factors.shape == (3, 3)
    assert bound.value * 0.9 <= found.leak <= bound.value
    mixed = NetworkTransport(field_of(4, [(0, 1), (1, 2)], (3, 2, 3)), Secrets())
    told = mixed.witness(0.5, mixed.uniform(0.5))
    assert told.factors is None and told.leak > 0.4
    nobody = NetworkTransport(field_of(4, [(0, 1)], (1, 1)), Secrets())
    nothing = nobody.witness(0.5, nobody.uniform(0.5))
    assert nothing.leak == 0.0 and nothing.binding is None


def test_sums_over_a_field_are_rounded_away_from_the_truth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = attracting(2)
    plain = AttractiveModel(model)
    spent = np.array([[0.5, 0.25], [0.75, 0.125]])
    assert plain.tree is not None
    lower, upper = plain._summed(plain.tree, spent)
    assert (lower < upper).all() and lower == pytest.approx(upper, rel=1e-12)
    monkeypatch.setattr(attractive_losses, "up", lambda number: number + 1)
    monkeypatch.setattr(attractive_losses, "down", lambda number: number - 1)
    below, above = plain._summed(plain.tree, spent)
    assert above - upper == pytest.approx(1.0) and lower - below == pytest.approx(1.0)
