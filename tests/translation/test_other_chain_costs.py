"""Costs on chains of higher order and with rows known within intervals, against the program."""

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.costs.cost import ANY, Cost, Distance, Matrix, Membership
from takifugu.priors import HigherOrderChain, IntervalMarkovChain, MarkovChain, Secrets
from takifugu.translation import Translation
from tests.oracles import cost_programs as oracle

COSTS = [
    Cost.any("1/2"),
    Cost.of({Membership([0]): 1}),
    Cost.of({Membership([1, 2]): "1/2", ANY: "1/10"}),
    Cost.of({Distance(0, 2): 1, Membership([2]): "1/5"}),
    Cost.of({Matrix([0, 1, 2], [[0, 1, "1/2"], ["1/5", 0, 1], [2, "1/10", 0]]): 1}),
]
PAIRS = [Secrets(), Secrets(pairs=(((0,), (1, 2)),)), Secrets(pairs=(((0, 2), (1,)),))]


def largest(table: Floats, costs: list[Floats], secrets: Secrets) -> float:
    best = 0.0
    for entry in range(table.ndim):
        for a, b in secrets.sides(range(3)):
            left, right = (oracle.entry_is(table.shape, entry, side) for side in (a, b))
            if table[left].sum() > 0 and table[right].sum() > 0:
                best = max(best, oracle.worst_loss(table, costs, left, right).lower)
    return best


@pytest.mark.nightly
@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_a_chain_of_higher_order_loses_at_least_what_the_program_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain = HigherOrderChain(rng.dirichlet(np.ones(3), (3, 3)), length=4)
    secrets = PAIRS[int(rng.integers(3))]
    costs = [COSTS[k] for k in rng.integers(0, 5, 4)]
    if rng.random() < 0.5:
        costs = costs[:1] * 4
    written = chain.explicit()
    table = np.asarray(written.probability).reshape((3,) * 4)
    true = largest(table, [cost.matrix(range(3)) for cost in costs], secrets)
    given_costs = costs if rng.random() < 0.5 or len(set(costs)) > 1 else costs[0]
    found = Translation(chain, secrets).explain_cost(given_costs, "transport")
    assert true - 1e-8 <= found.pufferfish
    assert found.lower <= true + 1e-8
    assert found.pufferfish <= 2 * true


@pytest.mark.nightly
@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_no_chain_within_the_intervals_loses_more(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel = 0.85 * rng.dirichlet(np.ones(3), 3) + 0.05
    width = float(rng.choice([0.001, 0.02, 0.04]))
    low, high = kernel - width, kernel + width
    length = 3
    start: Literal["any", "stationary"] = "stationary" if rng.random() < 0.7 else "any"
    prior = IntervalMarkovChain(low, high, length=length, start=start)
    secrets, cost = PAIRS[int(rng.integers(3))], COSTS[int(rng.integers(5))]
    found = Translation(prior, secrets).explain_cost(cost, "transport")
    matrices = [cost.matrix(range(3))] * length
    best = 0.0
    for _ in range(3):
        share = rng.dirichlet(np.ones(3), 3)
        rows = low + share * (1 - low.sum(axis=1, keepdims=True))
        rows = np.clip(rows, low, high)
        rows = rows if np.allclose(rows.sum(axis=1), 1) else kernel
        chain = MarkovChain(rows, length=length)
        table = oracle.chain_table(chain.stationary, [chain.kernel()] * (length - 1))
        best = max(best, largest(table, matrices, secrets))
    assert best - 1e-8 <= found.pufferfish
    assert found.lower <= found.pufferfish + 1e-9


@pytest.mark.nightly
def test_a_group_loses_less_than_its_worst_pair_within_intervals_too() -> None:
    kernel = np.array([[0.62, 0.28, 0.10], [0.05, 0.75, 0.20], [0.33, 0.07, 0.60]])
    prior = IntervalMarkovChain(kernel - 0.01, kernel + 0.01, start="stationary")
    single = Translation(prior).bound(0.3, "transport").value
    grouped = Translation(prior, Secrets(pairs=(((0, 1), (2,)),)))
    found = grouped.explain(0.3, "transport")
    assert found.lower <= found.pufferfish < 0.99 * single
    assert found.binding is not None
    assert {found.binding.left, found.binding.right} == {"0|1", "2"}
