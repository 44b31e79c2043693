"""Product mechanisms of networks: what they leak over all datasets, and how the best is sought."""

import math
from itertools import chain, combinations, product
from typing import Any

import mpmath
import numpy as np
import pytest

from takifugu.costs import Cost, Matrix
from takifugu.errors import InvalidPrior, TooLarge
from takifugu.numeric import Floats
from takifugu.priors.random_field import MarkovRandomField
from takifugu.priors.secrets import EntryIs, SecretPair
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.network import network_witness
from takifugu.translation.network.network_witness import (
    ProductWitness,
    best_witness,
    product_witness,
)

pytestmark = pytest.mark.nightly


def field(seed: int, sizes: tuple[int, ...] = (3, 2, 3)) -> MarkovRandomField:
    rng = np.random.default_rng(seed)
    edges = [(i, i + 1) for i in range(len(sizes) - 1)]
    return MarkovRandomField(
        tuple(range(len(sizes))),
        tuple(tuple(range(n)) for n in sizes),
        tuple(rng.uniform(0.5, 2, n) for n in sizes),
        tuple(edges),
        tuple(np.exp(rng.uniform(-1, 1, (sizes[i], sizes[j]))) for i, j in edges),
    )


def pair(entry: int, left: tuple[int, ...], right: tuple[int, ...]) -> SecretPair:
    return SecretPair(EntryIs(entry, left), EntryIs(entry, right))


def leaked(model: MarkovRandomField, asked: SecretPair, factors: Any) -> float:
    """Log of how much the odds of the two sides move, over all datasets, to many digits."""
    assert isinstance(asked.left, EntryIs) and isinstance(asked.right, EntryIs)
    entry = model.entries.index(asked.left.entry)
    before, after = [mpmath.mpf(0)] * 2, [mpmath.mpf(0)] * 2
    with mpmath.workdps(40):
        for x in product(*(range(len(states)) for states in model.states)):
            side = [x[entry] in one.values for one in (asked.left, asked.right)]
            if not any(side):
                continue
            weight = mpmath.fprod(
                mpmath.mpf(float(factor.table[tuple(x[v] for v in factor.scope)]))
                for factor in model.factors()
            )
            at = side.index(True)
            before[at] += weight
            after[at] += weight * mpmath.fprod(
                mpmath.mpf(float(one[v])) for one, v in zip(factors, x, strict=True)
            )
        return float(mpmath.log(after[0] / after[1] * before[1] / before[0]))


def admissible(factor: Floats, cost: Floats) -> bool:
    return bool((factor[:, None] <= np.exp(cost) * factor[None] * (1 + 1e-12)).all())


def best_ratio(one: Floats, other: Floats, cost: Floats) -> float:
    """The best of e^−c(A, ·) and e^c(·, B) over all sets A and B of values."""
    values = range(len(cost))
    sets = chain.from_iterable(combinations(values, size) for size in range(1, len(cost) + 1))
    best = 0.0
    for some in sets:
        for g in (
            [math.exp(-min(cost[a, u] for a in some)) for u in values],
            [math.exp(min(cost[u, b] for b in some)) for u in values],
        ):
            best = max(best, float(np.dot(g, one) / np.dot(g, other)))
    return best


@pytest.mark.parametrize("seed", range(6))
def test_the_best_factor_of_an_entry_given_all_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 2 + seed % 3
    one, other = rng.uniform(0.1, 1, n), rng.uniform(0.1, 1, n) * 7.0
    flat = 0.8 * (1 - np.eye(n))
    found = network_witness._best_factor(one, other, flat)
    assert admissible(found, flat) and found.min() == 1.0
    assert found @ one / (found @ other) == pytest.approx(best_ratio(one, other, flat), rel=1e-12)
    # with costs that are not all the same: sets of the values with the best odds
    cost = rng.uniform(0.5, 1.0, (n, n))
    np.fill_diagonal(cost, 0.0)
    found = network_witness._best_factor(one, other, cost)
    assert admissible(found, cost)
    order = np.argsort(-(one / other))
    tried = []
    for many in range(1, n + 1):
        best, worst = order[:many], order[n - many :]
        tried.append(np.exp(-cost[best].min(axis=0)))
        tried.append(np.exp(cost[:, worst].min(axis=1)))
    assert found @ one / (found @ other) == pytest.approx(
        max(g @ one / (g @ other) for g in tried), rel=1e-12
    )


def test_values_that_cannot_be_told_apart_count_together() -> None:
    cost = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0.0]])
    one, other = np.array([0.5, 0.0, 0.5]), np.array([0.1, 0.5, 0.4])
    found = network_witness._best_factor(one, other, cost)
    assert found[0] == found[1] and found == pytest.approx([1.0, 1.0, math.e])
    same = network_witness._best_factor(np.ones(3), np.ones(3), np.zeros((3, 3)))
    assert same.tolist() == [1.0, 1.0, 1.0]
    # a value that cannot happen on either side is no reason for anything
    none = network_witness._best_factor(
        np.array([0.0, 0.5, 0.5]), np.array([0.0, 0.9, 0.1]), 1.0 - np.eye(3)
    )
    assert none[2] == pytest.approx(math.e) and none[1] == 1.0
    sure = network_witness._best_factor(np.array([1.0, 0.0]), np.zeros(2), 1.0 - np.eye(2))
    assert sure.shape == (2,)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sweeps", [0, 1, 3])
def test_what_is_said_to_leak_leaks(seed: int, sweeps: int) -> None:
    model = field(seed)
    spent = [0.5, 0.75, 0.25]
    for asked in (pair(0, (0,), (2,)), pair(1, (1,), (0,)), pair(2, (0, 1), (2,))):
        found = product_witness(model, spent, asked, sweeps=sweeps)
        told = leaked(model, asked, found.factors)
        assert 0.5e-12 <= told - found.lower <= 1e-11
        for factor, epsilon in zip(found.factors, spent, strict=True):
            assert admissible(factor, epsilon * (1.0 - np.eye(len(factor))))
        assert found.pair is asked


@pytest.mark.parametrize("seed", range(3))
def test_two_neighbours_of_two_values_are_attacked_in_the_best_way(seed: int) -> None:
    """Over all choices of a value that is raised at each entry."""
    model = field(seed, (2, 2, 2))
    asked = pair(0, (0,), (1,))
    best = max(
        leaked(model, asked, [np.exp(0.5 * np.eye(2)[k]) for k in raised])
        for raised in product(range(2), repeat=3)
    )
    assert product_witness(model, 0.5, asked).lower == pytest.approx(best, abs=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_one_factor_after_the_other_is_no_worse_and_each_is_the_best_given_the_others(
    seed: int,
) -> None:
    model = field(seed, (3, 3, 3, 2))
    asked = pair(1, (0,), (1,))
    once, often = (product_witness(model, 1.5, asked, sweeps=k) for k in (0, 6))
    assert often.lower >= once.lower
    for j in (0, 2, 3):
        for high in product((1.0, math.exp(1.5)), repeat=len(often.factors[j])):
            other = [*often.factors[:j], np.array(high), *often.factors[j + 1 :]]
            assert leaked(model, asked, other) <= often.lower + 1e-9


def test_a_secret_of_groups_has_its_own_factor_sought_as_well() -> None:
    model = field(3, (3, 2))
    cost = Cost.of({Matrix([0, 1, 2], [[0, 1, 1], [1, 0, 2], [1, 2, 0]]): 1})
    costs = EntryCosts(by_entry=(cost, Cost.any("0.5")))
    asked = pair(0, (0, 1), (2,))
    found = product_witness(model, costs, asked, sweeps=2)
    assert admissible(found.factors[0], np.array([[0, 1, 1], [1, 0, 2], [1, 2, 0.0]]))
    told = leaked(model, asked, found.factors)
    assert 0.5e-12 <= told - found.lower <= 1e-10
    assert found.lower > 1.0


def test_costs_that_are_too_large_are_spent_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    three = [np.full((2, 2), one) for one in (1.0, 2.0, 4.0)]
    monkeypatch.setattr(network_witness, "MOST", 3.0)
    assert [one[0, 0] for one in network_witness._written(three, [0, 1])] == [1.0, 2.0, 4.0]
    assert [one[0, 0] for one in network_witness._written(three, [0, 1, 2])] == pytest.approx(
        [3 / 7, 6 / 7, 12 / 7]
    )
    model = field(1, (2, 2, 2))
    asked = pair(0, (0,), (1,))
    for own, told in ((2.0, 2.0), (5.0, 3.0)):
        found = product_witness(model, [own, 0.0, 0.0], asked)
        assert 0.5e-12 * told <= told - found.lower <= 1e-10
        assert found.factors[0] == pytest.approx([math.exp(told), 1.0], rel=1e-12)
        assert all((one == 1.0).all() for one in found.factors[1:])


def test_an_own_factor_is_shrunk_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = Cost.of({Matrix([0, 1, 2], [[0, 1, 4], [1, 0, 3], [4, 3, 0]]): 1})
    monkeypatch.setattr(network_witness, "MOST", 2.0)
    found = product_witness(
        field(1, (3, 2)), EntryCosts(by_entry=(cost, Cost())), pair(0, (0,), (1,))
    )
    assert found.factors[0] == pytest.approx(np.exp([0.5, 0.0, 1.5]))
    assert found.lower == pytest.approx(1.0)


def test_where_sums_are_too_large_the_own_entry_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    model, asked = field(2), pair(0, (0,), (1,))

    def refuse(*_: object, **__: object) -> None:
        raise TooLarge("too wide")

    monkeypatch.setattr(network_witness, "junction_tree", refuse)
    found = product_witness(model, 0.75, asked)
    assert found.lower == pytest.approx(0.75, abs=1e-10) and found.lower < 0.75
    assert found.factors[0] == pytest.approx([math.exp(0.75), 1.0, math.exp(0.75)])
    assert all((one == 1.0).all() for one in found.factors[1:])


def test_pairs_are_tried_from_the_largest_bound_until_none_can_be_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = field(1)
    pairs = [pair(0, (0,), (1,)), pair(1, (0,), (1,)), pair(2, (0,), (1,)), pair(2, (1,), (2,))]
    leaks = [0.5, 0.9, 0.7, 0.6]
    asked: list[tuple[int, int]] = []

    def found(_: object, one: SecretPair, sweeps: int) -> ProductWitness:
        k = pairs.index(one)
        asked.append((k, sweeps))
        return ProductWitness(one, leaks[k] + 0.01 * sweeps, ())

    monkeypatch.setattr(network_witness, "_found", found)
    assert best_witness(model, 0.5, pairs, [0.95, 0.9, 1.0, 0.8]).lower == pytest.approx(0.91)
    assert asked == [(2, 0), (0, 0), (1, 0), (1, 1)]
    asked.clear()
    assert best_witness(model, 0.5, pairs, [0.8, 2.0, 0.9, 0.91]).lower == pytest.approx(0.91)
    assert asked == [(1, 0), (3, 0), (1, 1)]  # at 0.9 no other can be better
    asked.clear()
    monkeypatch.setattr(network_witness, "WORK", -1)
    assert best_witness(model, 0.5, pairs, [2.0, 1.9, 1.8, 1.7]).lower == 0.5
    assert asked == [(0, 0)]  # too much work: neither another pair nor a sweep


def test_sums_count_the_cells_they_take() -> None:
    searches = network_witness._Searches(field(1, (3, 2, 3)), 0.5)
    assert searches.work == searches.cells == 0
    searches.sums({})
    searches.sums({0: np.ones(3)})
    assert searches.cells == 6 + 6 and searches.work == 24
    assert [cost.max() for cost in searches.costs] == [0.5] * 3


def test_of_several_costs_the_largest_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = EntryCosts(tuple(
        Cost.of({Matrix([0, 1], [[0, 1 + 0.125 * k], [2 - 0.125 * k, 0]]): 1}) for k in range(3)
    ))  # fmt: skip
    model, asked = field(1, (2, 2)), pair(0, (0,), (1,))
    whole = product_witness(model, costs, asked)
    each = [product_witness(model, one, asked).lower for one in costs.alone]
    assert whole.lower == max(each) and len(set(each)) == 3
    pairs = [asked, pair(1, (0,), (1,))]
    best = best_witness(model, costs, pairs, [9.0, 9.0])
    assert best.lower == max(
        best_witness(model, one, pairs, [9.0, 9.0]).lower for one in costs.alone
    )
    monkeypatch.setattr(network_witness, "COSTS", 1)
    assert product_witness(model, costs, asked).lower == each[0]


def test_a_pair_with_a_side_that_cannot_happen_is_refused() -> None:
    model = MarkovRandomField(
        (0, 1), ((0, 1, 2), (0, 1)), (np.array([1.0, 0.0, 2.0]), np.ones(2)), ((0, 1),),
        (np.ones((3, 2)),),
    )  # fmt: skip
    with pytest.raises(InvalidPrior) as caught:
        product_witness(model, 0.5, pair(0, (0,), (1,)))
    assert (caught.value.field, caught.value.reason) == ("pair", "impossible")
    assert product_witness(model, 0.5, pair(0, (0, 1), (2,))).lower == pytest.approx(0.5, abs=1e-10)
