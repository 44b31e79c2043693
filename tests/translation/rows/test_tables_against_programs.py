"""Translated costs of rows are never below what linear programs over all tables find.

More of them in `benchmarks/table_oracle.py`.
"""

import numpy as np
import pytest

from tests.oracles import cost_programs as programs
from tests.oracles import table_programs as oracle
from tests.oracles.table_instances import FAMILIES, table_instance

SEEDS, BLOCK = 45, 15
FIVE = 5.1e-6  # half a unit in the fifth digit, and a little


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_no_bound_is_below_the_truth(first: int) -> None:
    for seed in range(first, first + BLOCK):
        for found in table_instance(seed):
            assert not found.below, found


@pytest.mark.nightly
@pytest.mark.parametrize("family", FAMILIES)
def test_every_reading_is_held_to_its_programs(family: str) -> None:
    for seed in range(SEEDS, SEEDS + 3):
        for found in table_instance(seed, family):
            assert not found.below, found


@pytest.mark.nightly
@pytest.mark.parametrize(("family", "loose"), [("row", 1e-6), ("row by network", 0.02)])
def test_columns_of_a_row_lose_no_more_than_the_worst_mechanism_takes(
    family: str, loose: float
) -> None:
    for seed in range(1000, 1015):
        for found in table_instance(seed, family):
            if found.most:  # otherwise its value is certain
                assert found.upper <= found.most * (1 + loose) + 1e-8, found


@pytest.mark.nightly
@pytest.mark.parametrize("family", ["sequence", "household"])
def test_joint_states_lose_little_more_than_the_worst_mechanism_takes(family: str) -> None:
    ratios = [
        found.upper / found.most
        for seed in range(1000, 1007)
        for found in table_instance(seed, family)
        if found.complete and found.least > 1e-6
    ]
    assert len(ratios) >= 5
    assert np.median(ratios) <= 1.01


@pytest.mark.nightly
def test_the_programs_find_the_known_losses_of_two_columns() -> None:
    rows = np.array([[70, 10, 15, 5], [20, 55, 5, 20], [15, 5, 60, 20], [5, 10, 25, 60]]) / 100
    table = programs.chain_table([0.4, 0.2, 0.1, 0.3], [rows] * 3)
    for first, second, loss in [(0.5, 0.0, 1.28734), (0.0, 0.5, 0.43615), (0.5, 0.5, 1.61006)]:
        terms = [oracle.any_change((2, 2), (c,), e) for c, e in enumerate((first, second))]
        matrix = oracle.row_matrix((2, 2), terms)
        found = oracle.column_losses(table, (2, 2), [matrix] * 4, 0)
        assert max(one.lower for one in found) == pytest.approx(loss, abs=FIVE)


def test_a_cross_tabulation_costs_the_same_for_one_column_as_for_two() -> None:
    matrix = oracle.row_matrix((2, 2), [oracle.any_change((2, 2), (0, 1), 0.5)])
    assert (matrix == 0.5 * (1 - np.eye(4))).all()


def test_rows_that_are_independent_tell_nothing_about_each_other() -> None:
    law = np.array([0.1, 0.4, 0.3, 0.2])
    table = oracle.independent_rows([law, law])
    quiet, read = np.zeros((4, 4)), 0.5 * (1 - np.eye(4))
    found = oracle.column_losses(table, (2, 2), [quiet, read], 0, rows=[0])
    assert max(one.upper for one in found) <= 1e-9


def test_two_people_of_a_household_are_rows_of_their_own() -> None:
    """Two people who infect each other (SIS), four steps: the losses of one of them by step."""
    a, b, r = 0.1, 0.2, 0.4
    rows = np.zeros((4, 4))
    for one, other in oracle.row_values((2, 2)):
        ill = [
            1 - r if me else 1 - (1 - a) * (1 - b * you) for me, you in ((one, other), (other, one))
        ]
        for x, y in oracle.row_values((2, 2)):
            weight = (ill[0] if x else 1 - ill[0]) * (ill[1] if y else 1 - ill[1])
            rows[2 * one + other, 2 * x + y] = weight
    start = [0.64, 0.16, 0.16, 0.04]
    table = oracle.cells_of_steps(programs.chain_table(start, [rows] * 3), (2, 2))
    assert table.shape == (2,) * 8
    read = 0.5 * (1 - np.eye(2))
    for step, loss in enumerate([1.14824, 1.32183, 1.35045, 1.16472]):
        found = oracle.column_losses(table, (2,), [read] * 8, 0, rows=[2 * step])
        assert max(one.lower for one in found) == pytest.approx(loss, abs=FIVE)
