"""Product mechanisms of networks: what they leak over all datasets, and how the best is sought."""

import math
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest

from takifugu._core.numeric import Floats
from takifugu.costs.cost import Cost, Matrix
from takifugu.errors import InvalidPrior
from takifugu.priors.networks import MarkovRandomField
from takifugu.priors.secrets import EntryIs, SecretPair
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.search.products import product_witness

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


def test_a_pair_with_a_side_that_cannot_happen_is_refused() -> None:
    model = MarkovRandomField(
        (0, 1), ((0, 1, 2), (0, 1)), (np.array([1.0, 0.0, 2.0]), np.ones(2)), ((0, 1),),
        (np.ones((3, 2)),),
    )  # fmt: skip
    with pytest.raises(InvalidPrior) as caught:
        product_witness(model, 0.5, pair(0, (0,), (1,)))
    assert (caught.value.field, caught.value.reason) == ("pair", "impossible")
    assert product_witness(model, 0.5, pair(0, (0, 1), (2,))).lower == pytest.approx(0.5, abs=1e-10)
