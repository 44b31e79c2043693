"""What witnesses show is never above the truth, whatever was proposed."""

import mpmath
import numpy as np
import pytest

from takifugu.priors.factors import Factor
from takifugu.translation.certify.tables import product_lower, table_lower
from takifugu.translation.models.tree import JunctionTree
from tests.translation.certify.networks import solved_network

SEEDS = (3, 5, 11, 18)


@pytest.mark.parametrize("seed", SEEDS)
def test_products_leak_no_more_than_the_programs_allow(seed: int) -> None:
    network = solved_network(seed)
    rng = np.random.default_rng(seed)
    for (entry, left, right), truth in network.truth.items():
        secret = entry, network.mask(entry, left), network.mask(entry, right)
        for steep in (0.0, 0.1, 1.0, 30.0, 700.0, np.nan, np.inf):
            logs = [steep * rng.uniform(-1, 1, size) for size in network.problem.sizes]
            lower = product_lower(
                network.tree, network.problem.tables, network.problem.costs, secret, logs
            )
            assert 0 <= lower <= truth.upper * (1 + 1e-9) + 1e-9


def test_products_of_the_wrong_shape_show_nothing() -> None:
    network = solved_network(SEEDS[0])
    (entry, left, right), _ = next(iter(network.truth.items()))
    secret = entry, network.mask(entry, left), network.mask(entry, right)
    given = network.tree, network.problem.tables, network.problem.costs, secret
    sizes = network.problem.sizes
    assert product_lower(*given, [np.ones(size + 1) for size in sizes]) == 0
    assert product_lower(*given, [np.ones(size) for size in sizes[:-1]]) == 0


@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 40.0, 500.0])
def test_a_product_on_two_entries_leaks_what_exact_arithmetic_says(epsilon: float) -> None:
    table = np.array([[0.3, 1e-9], [0.05, 0.65]])
    tree = JunctionTree((2, 2), ((0, 1),), (-1,))
    cost = epsilon * (1 - np.eye(2))
    secret = 0, np.array([True, False]), np.array([False, True])
    logs = [np.array([epsilon, 0.0]), np.array([epsilon, 0.0])]
    lower = product_lower(tree, (Factor((0, 1), table),), (cost, cost), secret, logs)
    with mpmath.workdps(60):
        exact = {
            x: mpmath.fsum(mpmath.mpf(table[x, v]) * mpmath.exp(epsilon * (v == 0)) for v in (0, 1))
            / mpmath.fsum(map(float, table[x]))
            for x in (0, 1)
        }
        leak = epsilon + mpmath.log(exact[0] / exact[1])
        assert leak * (1 - mpmath.mpf(1e-10)) - 1e-13 <= lower <= leak


def test_a_table_is_made_admissible_before_it_counts() -> None:
    rng = np.random.default_rng(2)
    cost = 0.4 * (1 - np.eye(3))
    laws = rng.dirichlet(np.ones(9)).reshape(3, 3), rng.dirichlet(np.ones(9)).reshape(3, 3)
    for steep in (0.1, 1.0, 100.0):
        lower = table_lower(laws, (cost, cost), steep * rng.uniform(-1, 1, (3, 3)), 9)
        assert 0 <= lower <= 0.8
    assert table_lower(laws, (cost, cost), np.full((3, 3), np.nan), 9) == 0
    assert table_lower(laws, (cost, cost), np.zeros((3, 2)), 9) == 0
