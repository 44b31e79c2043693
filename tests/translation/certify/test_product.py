"""What products of factors leak: beside enumeration with many digits, and from hostile factors."""

from itertools import product as sequences

import mpmath
import numpy as np
import pytest

from takifugu._core.numeric import Floats
from takifugu.translation.certify.flow import closed, off_diagonal
from takifugu.translation.certify.product import FactorCost, Neighbourhood, Product, lower
from takifugu.translation.search.product_search import best_product


def neighbourhood(seed: int, scale: float = 1.0) -> tuple[Neighbourhood, Floats, Floats]:
    rng = np.random.default_rng(seed)

    def rows() -> Floats:
        return rng.dirichlet(np.full(3, 0.7), size=3)

    def cost() -> Floats:
        return closed(scale * (rng.uniform(0.1, 1.5, (3, 3)) * off_diagonal(3)))

    around = Neighbourhood(
        [rows(), rows()], [rows()], cost(), [cost(), off_diagonal(3, scale)], [cost()], 1e-15
    )
    return around, *rng.dirichlet(np.ones(3), size=2)


def exact_leak(around: Neighbourhood, left: Floats, right: Floats, found: Product) -> mpmath.mpf:
    """The logarithm of E[g|s]/E[g|s′] over all sequences, with 60 digits."""
    totals = []
    for law in (left, right):
        total = mpmath.mpf(0)
        for x, a, b, c in sequences(range(3), repeat=4):
            term = mpmath.mpf(float(law[x])) * mpmath.mpf(float(found.here[x]))
            for probability, factor in (
                (around.ahead[0][x, a], found.ahead[0, a]),
                (around.ahead[1][a, b], found.ahead[1, b]),
                (around.behind[0][x, c], found.behind[0, c]),
            ):
                term *= mpmath.mpf(float(probability)) * mpmath.mpf(float(factor))
            total += term
        totals.append(total)
    return mpmath.log(totals[0] / totals[1])


def obeys(cost: Floats, factor: Floats) -> bool:
    """Whether a factor obeys its cost, with 60 digits."""
    return all(
        mpmath.mpf(float(factor[u]))
        <= mpmath.exp(mpmath.mpf(float(cost[u, v]))) * mpmath.mpf(float(factor[v]))
        for u in range(len(cost))
        for v in range(len(cost))
    )


def admitted(around: Neighbourhood, found: Product) -> bool:
    costs = [around.cost, *around.costs_ahead, *around.costs_behind]
    factors = [found.here, *found.ahead, *found.behind]
    return all(obeys(cost, factor) for cost, factor in zip(costs, factors, strict=True))


@pytest.mark.parametrize("scale", [1e-6, 0.3, 1.0, 20.0, 90.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_product_leaks_at_least_what_is_certified(seed: int, scale: float) -> None:
    around, left, right = neighbourhood(seed, scale)
    best = best_product(around, left[None], right[None])
    shown = Product(best.here, best.ahead, best.behind)
    with mpmath.workdps(60):
        true = exact_leak(around, left, right, shown)
        assert admitted(around, shown)
        assert mpmath.mpf(best.leak) <= true
        assert float(true) - best.leak <= 1e-11 * (1 + float(true))


@pytest.mark.parametrize("kind", range(10))
def test_hostile_factors_show_no_more_than_they_leak(kind: int) -> None:
    around, left, right = neighbourhood(1)
    rng = np.random.default_rng(kind)
    here, ahead, behind = rng.uniform(0.1, 9, 3), rng.uniform(0.1, 9, (2, 3)), np.ones((1, 3))
    given = [
        Product(here, ahead, behind),
        Product(1e200 * here, 1e-200 * ahead, behind),
        Product(-here, ahead, behind),
        Product(here * np.nan, ahead, behind),
        Product(np.array([1.0, np.inf, 2.0]), ahead, behind),
        Product(np.zeros(3), ahead, behind),
        Product(here, ahead[:1], behind),
        Product(here[:2], ahead, behind),
        Product(here, ahead, np.ones((5, 3))),
        Product(here, 1e306 * ahead, behind),
    ][kind]
    leak, shown = lower(around, left, right, given)
    assert leak >= 0
    with mpmath.workdps(60):
        assert admitted(around, shown)
        assert mpmath.mpf(leak) <= max(exact_leak(around, left, right, shown), mpmath.mpf(0))


def test_a_witness_is_written_and_read() -> None:
    around, left, right = neighbourhood(2)
    best = best_product(around, left[None], right[None])
    document = Product(best.here, best.ahead, best.behind).to_document()
    again, _ = lower(around, left, right, Product.from_document(document))
    assert again == pytest.approx(best.leak, rel=1e-14)


def test_values_that_cost_nothing_share_a_factor() -> None:
    cost = np.array([[0.0, 0.0, 1.0], [0.5, 0.0, 1.0], [1.0, 1.0, 0.0]])
    factors = FactorCost(closed(cost)).admissible(np.array([[1.0, 5.0, 2.0], [3.0, 1.0, 1.0]]))
    assert (factors[:, 0] == factors[:, 1]).all()
    assert all(obeys(cost, row) for row in factors)
