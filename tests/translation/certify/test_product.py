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


TINY = 5e-324


@pytest.mark.parametrize(
    ("here", "near", "far"),
    [
        ([TINY, 2 * TINY], [1.0, 1.0], [1.0, 1.0]),
        ([1.0, 1.0], [7 * TINY, 7 * TINY], [1.2, 1.0]),
        ([1.0, 1.0], [1.0, 1.2], [3 * TINY, 5 * TINY]),
        ([1.0, 1e-320], [1.0, 1e-320], [1.0, 1.0]),
        ([1e308, TINY], [1.0, 1.0], [1.0, 1.0]),
        ([1.0, np.exp(-600.0)], [1.0, np.exp(-144.1)], [1.0, 1.0]),
        ([1.0, np.exp(-600.0)], [1.0, np.exp(-300.0)], [1.0, np.exp(-299.0)]),
        ([1e-200, 1e-300], [1e-300, 1e-300], [1e-300, 1e-120]),
    ],
)
@pytest.mark.parametrize("scale", [0.1, 0.41, 300.0, 600.0])
def test_factors_near_the_end_of_floats_show_no_more_than_they_leak(
    here: list[float], near: list[float], far: list[float], scale: float
) -> None:
    cost, same = off_diagonal(2, scale), np.eye(2)
    around = Neighbourhood([same, same], [], cost, [cost, cost], [], 0.0)
    given = Product(np.array(here), np.array([near, far]), np.ones((0, 2)))
    for left, right in (same, same[::-1]):
        leak, shown = lower(around, left, right, given)
        with mpmath.workdps(60):
            exact = mpmath.log(
                mpmath.fprod(map(mpmath.mpf, (left @ shown.here, *(shown.ahead @ left))))
                / mpmath.fprod(map(mpmath.mpf, (right @ shown.here, *(shown.ahead @ right))))
            )
            assert all(obeys(cost, row) for row in (shown.here, *shown.ahead))
            assert 0 <= mpmath.mpf(leak) <= max(exact, mpmath.mpf(0)) <= 3 * scale


def test_an_entry_may_lose_as_much_as_its_sides_beside_them() -> None:
    around = Neighbourhood([np.eye(2)], [], off_diagonal(2, 600.0), [off_diagonal(2, 590.0)], [], 0)
    given = Product(np.exp([0.0, -600.0]), np.exp([[0.0, -590.0]]), np.ones((0, 2)))
    leak, _ = lower(around, np.array([1.0, 0.0]), np.array([0.0, 1.0]), given)
    assert 1190 - 1e-9 <= leak <= 1190
