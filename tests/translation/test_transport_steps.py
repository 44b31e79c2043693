"""Two entries: what one tells of the other is one transport problem, solved by linear programs."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.costs.cost import Cost, Matrix
from takifugu.errors import TooLarge
from takifugu.priors import MarkovChain
from takifugu.translation import Translation, chain_losses
from tests.oracles import transport as oracle
from tests.raising import raises

AGREE = 1e-6


def problem(seed: int, states: int, *, zeros: float = 0.0, scale: float = 0.5) -> list[Floats]:
    """A matrix of transitions, some of them 0 or tiny, and a cost."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(states, 0.5), states) * (rng.random((states, states)) >= zeros)
    if seed % 5 == 0:
        tiny = 10.0 ** -rng.integers(5, 11, (states, states))
        rows = np.where(rng.random((states, states)) < 0.4, tiny, rows)
    rows[rows.sum(axis=1) == 0, 0] = 1.0
    rows = np.where(rows < 1e-12, 0.0, rows)
    cost = rng.exponential(scale, (states, states)) * (1 - np.eye(states))
    return [rows / rows.sum(axis=1, keepdims=True), cost]


problems = st.builds(
    problem,
    st.integers(0, 10**6),
    st.integers(2, 8),
    zeros=st.sampled_from([0.0, 0.3, 0.7]),
    scale=st.sampled_from([0.01, 0.5, 4.0]),
)


@pytest.mark.costly
@settings(max_examples=40)
@given(case=problems)
def test_a_costly_entry_tells_of_the_one_before_what_both_programs_say(case: list[Floats]) -> None:
    rows, cost = case
    size = len(rows)
    chain = MarkovChain(rows, start=np.full(size, 1 / size), length=2)
    told = Cost.of({Matrix(range(size), cost.tolist()): 1})
    found = Translation(chain).cost_bound([Cost.any(0), told], "transport").by_entry
    assert found is not None
    pairs = [(x, y) for x in range(size) for y in range(size) if x != y]
    exact = max(oracle.loss_by_flows(rows[x], rows[y], cost) for x, y in pairs)
    assert exact - 1e-9 <= found[0] <= exact + AGREE * (1 + exact)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("states", [2, 3, 4])
def test_one_number_for_every_change_is_what_all_trees_give(seed: int, states: int) -> None:
    rows, _ = problem(seed, states, zeros=0.2 * (seed % 2))
    epsilon = [0.05, 0.5, 3.0][seed % 3]
    found = chain_losses(rows, [0.0, epsilon], start=np.full(states, 1 / states)).at(0)
    for x in range(states):
        for y in range(states):
            if x != y:
                cost = epsilon * (1 - np.eye(states))
                exact = oracle.loss_by_trees(rows[x], rows[y], cost)
                assert exact - 1e-9 <= found[x, y] <= exact + AGREE


@settings(max_examples=25)
@given(case=problems)
def test_both_programs_agree(case: list[Floats]) -> None:
    (p, q, *_), cost = case
    flows = oracle.loss_by_flows(p, q, cost)
    assert flows == pytest.approx(oracle.loss_by_potentials(p, q, cost), abs=1e-7)


def test_more_states_than_there_is_room_for_are_refused() -> None:
    with raises(TooLarge, size=300, limit=256):
        chain_losses(np.full((300, 300), 1 / 300), [0.1, 0.2])


def test_a_chain_of_two_states_is_translated_without_numba() -> None:
    check = (
        "import sys; from takifugu.priors import MarkovChain; from takifugu.translation import *;"
        "Translation(MarkovChain([[0.9, 0.1], [0.1, 0.9]], length=9)).to_pufferfish(0.1);"
        "sys.exit('numba' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", check], check=True, env={"PYTHONPATH": "src"})  # noqa: S603
