"""What witnesses show is never above the truth, whatever was proposed."""

import mpmath
import numpy as np
import pytest

from takifugu._core.rounding import gamma, log_ratio_up, losses_up
from takifugu.priors.networks import Factor
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


@pytest.mark.parametrize("level", [0.0, 1e3, 1e15, 1.0000001e15, -1e15, 1e300])
def test_log_factors_on_a_high_level_show_no_more(level: float) -> None:
    tree, cost = JunctionTree((3,), ((0,),), (-1,)), 0.1 * (1 - np.eye(3))
    secret = 0, np.array([True, True, False]), np.array([False, False, True])
    for sign in (1, -1):
        log = level + np.array([0.0, sign, 0.0])
        shown = product_lower(tree, (Factor((0,), np.full(3, 1 / 3)),), (cost,), secret, [log])
        assert 0 <= shown <= 0.1


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("epsilon", [0.1, 300.0, 599.0, 744.1, 1190.0])
@pytest.mark.parametrize("rare", [1.0, 1e-150])
def test_a_table_of_any_spread_shows_no_more_than_its_cost(
    epsilon: float, sign: int, rare: float
) -> None:
    cost = epsilon * (1 - np.eye(2))
    for laws in (np.diag([rare, 1.0]), np.diag([1.0, rare])):
        for spread in (epsilon, 300.0, 1199.0):
            table = 0.5 * sign * np.array([spread, -spread])
            assert 0 <= table_lower((laws[0], laws[1]), (cost,), table, 1) <= epsilon


def test_a_table_of_any_spread_shows_its_whole_cost() -> None:
    cost, laws = 1190.0 * (1 - np.eye(2)), (np.array([1e-150, 0.0]), np.array([0.0, 1.0]))
    assert 1190 - 1e-8 <= table_lower(laws, (cost,), np.array([595.0, -595.0]), 1) <= 1190
    faint = np.array([5e-324, 0.0]), np.array([1.0, 1.0])
    assert table_lower(faint, (cost,), np.array([595.0, -595.0]), 1) == 0


def test_a_table_about_a_side_that_cannot_happen_shows_nothing() -> None:
    cost, law = 0.4 * (1 - np.eye(2)), np.array([0.5, 0.5])
    for laws in ((law, 0 * law), (0 * law, law), (0 * law, 0 * law)):
        assert table_lower(laws, (cost,), np.array([0.4, 0.0]), 1) == 0


def test_a_ratio_of_numbers_without_a_digit_is_unbounded() -> None:
    for error in (1.0, 1.5, np.inf, gamma(2**53)):
        assert log_ratio_up(1.0, 1.0, error=error) == np.inf
        assert losses_up(np.ones(2), [0], [1], error=error) == np.inf
