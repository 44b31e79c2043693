"""One transport problem: the fast solver against two linear programs and enumeration."""

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from takifugu.errors import TooLarge
from takifugu.numeric import Floats, Integers
from takifugu.translation.chain.transport_steps import bound, closed, follow, improve, off_diagonal
from tests.oracles import transport as oracle
from tests.raising import raises

AGREE = 1e-6  # the solver perturbs costs by 1e-9 of the largest


def problem(seed: int, states: int, *, zeros: float = 0.0, scale: float = 0.5) -> list[Floats]:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(states, 0.5), 2) * (rng.random((2, states)) >= zeros)
    rows[rows.sum(axis=1) == 0, 0] = 1.0
    rows /= rows.sum(axis=1, keepdims=True)
    cost = rng.exponential(scale, (states, states)) * off_diagonal(states)
    return [np.where(rows[0] < 1e-12, 0.0, rows[0]), np.where(rows[1] < 1e-12, 0.0, rows[1]), cost]


@dataclass(frozen=True, eq=False)
class Solved:
    """Both bounds on log t, and the arcs that prove the upper one."""

    upper: float
    lower: float
    source: Integers
    sink: Integers
    mass: Floats


def transport(p: ArrayLike, q: ArrayLike, cost: ArrayLike) -> Solved:
    """One problem, by the solver of all pairs of rows."""
    rows, close = np.array([p, q], dtype=float), closed(np.array(cost, dtype=float))
    _, couplings = improve(rows, rows, close, guess=np.zeros((2, 2)))
    upper = float(bound(rows, rows, close, couplings)[0, 1])
    lower = float(follow(rows, rows, close, couplings, lower=True)[0, 1])
    used = np.flatnonzero(couplings.mass[0, 1] > 0)
    ends = couplings.parent[0, 1, used].astype(np.int64)
    leaves = couplings.leaves[0, 1, used]
    source, sink = np.where(leaves, used, ends), np.where(leaves, ends, used)
    return Solved(upper, lower, source, sink, couplings.mass[0, 1, used])


problems = st.builds(
    problem,
    st.integers(0, 10**6),
    st.integers(2, 9),
    zeros=st.sampled_from([0.0, 0.3, 0.7]),
    scale=st.sampled_from([0.01, 0.5, 4.0]),
)


@settings(max_examples=60)
@given(case=problems)
def test_both_bounds_meet_at_what_a_general_solver_finds(case: list[Floats]) -> None:
    solved, exact = transport(*case), oracle.loss_by_flows(*case)
    assert solved.lower <= exact + 1e-9
    assert exact <= solved.upper + 1e-9
    assert solved.upper - solved.lower <= AGREE * (1 + exact)


@settings(max_examples=25)
@given(case=problems)
def test_the_reference_equals_the_dual_program(case: list[Floats]) -> None:
    assert oracle.loss_by_flows(*case) == pytest.approx(oracle.loss_by_potentials(*case), abs=1e-7)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("states", [2, 3, 4])
def test_enumerating_trees_finds_the_same(seed: int, states: int) -> None:
    p, q, cost = problem(seed, states, zeros=0.2 * (seed % 2))
    exact = oracle.loss_by_trees(p, q, closed(cost))
    solved = transport(p, q, cost)
    assert solved.lower - 1e-9 <= exact <= solved.upper + 1e-9
    assert solved.upper == pytest.approx(exact, abs=AGREE)


@settings(max_examples=40)
@given(case=problems)
def test_the_coupling_proves_the_upper_bound_by_hand(case: list[Floats]) -> None:
    p, q, cost = case
    solved = transport(p, q, cost)
    coupling = np.diag(p)
    for u, v, mass in zip(solved.source, solved.sink, solved.mass, strict=True):
        coupling[u, v] += mass
        coupling[u, u] -= mass
    assert coupling.min() >= -1e-9
    assert coupling.sum(axis=1) == pytest.approx(p)
    arriving = (coupling * np.exp(closed(cost))).sum(axis=0)
    assert (arriving <= np.exp(solved.upper) * q + 1e-9).all()


def test_equal_rows_and_free_moves_lose_nothing() -> None:
    p, q, cost = problem(3, 6)
    assert transport(p, p, cost).upper < 1e-7
    assert transport(p, q, 0 * cost).upper < 1e-7


def test_certain_and_opposite_rows_lose_the_whole_cost() -> None:
    solved = transport([1, 0], [0, 1], [[0, 0.7], [0.2, 0]])
    assert solved.lower == pytest.approx(0.7, abs=AGREE)
    assert 0.7 <= solved.upper <= 0.7 + AGREE


def test_a_detour_is_used_when_it_is_cheaper() -> None:
    direct = np.array([[0, 5.0, 0.1], [5, 0, 5], [5, 0.1, 0]])
    assert transport([1, 0, 0], [0, 1, 0], direct).upper == pytest.approx(0.2, abs=AGREE)


@pytest.mark.parametrize("seed", range(6))
def test_tiny_probabilities_do_not_spoil_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q, cost = problem(seed, 12)
    p = np.where(rng.random(12) < 0.6, 10.0 ** -rng.integers(5, 14, 12), p)
    q = np.where(rng.random(12) < 0.6, 10.0 ** -rng.integers(5, 14, 12), q)
    p, q = p / p.sum(), q / q.sum()
    solved = transport(p, q, cost)
    assert solved.upper - solved.lower <= 1e-5 * (1 + solved.upper)


def test_couplings_keep_their_worth_when_costs_change() -> None:
    rng = np.random.default_rng(5)
    rows = rng.dirichlet(np.full(7, 0.6), 7)
    cost = closed(rng.exponential(0.4, (7, 7)) * off_diagonal(7))
    _, couplings = improve(rows, rows, cost, guess=np.zeros((7, 7)))
    later = closed(cost * rng.uniform(0.8, 1.4, (7, 7)))
    above = bound(rows, rows, later, couplings)
    below = follow(rows, rows, later, couplings, lower=True)
    value, again = improve(rows, rows, later, guess=np.zeros((7, 7)), known=couplings)
    assert (value <= above + 1e-6).all() and (below <= value + 1e-6).all()
    for x in range(7):
        for y in range(7):
            if x != y:
                exact = oracle.loss_by_flows(rows[x], rows[y], later)
                assert below[x, y] - 1e-9 <= exact <= above[x, y] + 1e-9
                assert value[x, y] == pytest.approx(exact, abs=AGREE)
    assert (bound(rows, rows, later, again) <= value + 1e-6).all()


def test_more_states_than_couplings_have_room_for_are_refused() -> None:
    many = np.full((300, 300), 1 / 300)
    with raises(TooLarge, size=300, limit=256):
        improve(many, many, off_diagonal(300), guess=np.zeros((300, 300)))


def test_importing_the_room_does_not_load_numba() -> None:
    check = "import sys, takifugu.translation; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True, env={"PYTHONPATH": "src"})  # noqa: S603
