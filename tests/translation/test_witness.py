"""A witness is a real mechanism, and it leaks what is said."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.costs.cost import ANY, Cost, Distance, Matrix, Membership
from takifugu.priors import MarkovChain
from takifugu.translation import Translation


def enumerated_leak(
    chain: MarkovChain,
    factors: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]",
    entry: int,
    left: int,
    right: int,
) -> float:
    """The log-ratio of E[g|left] to E[g|right], one dataset after the other."""
    total = {left: 0.0, right: 0.0}
    weight = {left: 0.0, right: 0.0}
    for path in product(range(len(chain.states)), repeat=len(factors)):
        if path[entry] not in total:
            continue
        probability = float(chain.start_law[path[0]])
        for t in range(len(path) - 1):
            probability *= float(chain.kernel(t)[path[t], path[t + 1]])
        weight[path[entry]] += probability
        total[path[entry]] += probability * float(
            np.prod([factors[j, v] for j, v in enumerate(path)])
        )
    return float(np.log(total[left] / weight[left] * weight[right] / total[right]))


@pytest.mark.costly
@settings(max_examples=40)
@given(st.integers(0, 10**6), st.booleans())
def test_its_leak_is_what_enumeration_finds(seed: int, profile: bool) -> None:
    rng = np.random.default_rng(seed)
    states, length = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    chain = MarkovChain(
        rng.dirichlet(np.ones(states), states),
        start="stationary" if seed % 2 else rng.dirichlet(np.ones(states)),
        length=length,
    )
    epsilon = rng.choice([0.0, 0.1, 1.0, 4.0], length) if profile else float(rng.uniform(0, 2))
    answer = Translation(chain).explain(epsilon)
    witness = answer.witness
    spent = np.broadcast_to(epsilon, length)
    assert witness.factors is not None and witness.binding is not None
    assert (witness.factors >= 1).all()
    assert (witness.factors <= np.exp(spent)[:, None]).all()  # so it is per-entry ε-DP
    entry = int(str(witness.binding.entry))
    sides = (int(witness.binding.left), int(witness.binding.right))
    true = enumerated_leak(chain, witness.factors, entry, *sides)
    assert true - 1e-9 <= witness.leak <= true + 1e-12


@pytest.mark.parametrize(("p", "q"), [(0.9, 0.9), (0.7, 0.4), (0.5, 0.5)])
def test_in_sticky_binary_chains_it_counts(p: float, q: float) -> None:
    chain = MarkovChain(np.array([[p, 1 - p], [1 - q, q]]), length=5)
    answer = Translation(chain).explain(0.8)
    factors, binding = answer.witness.factors, answer.witness.binding
    assert factors is not None and binding is not None
    if p + q > 1:
        left = int(binding.left)
        assert (factors[:, left] > factors[:, 1 - left]).all()
    assert answer.gap <= 1e-7


def test_very_large_losses_stay_finite_and_sound() -> None:
    answer = Translation(MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]]), length=30)).explain(100.0)
    assert 100 <= answer.lower <= answer.pufferfish <= 3000 * (1 + 1e-12)


@pytest.mark.costly
@settings(max_examples=40)
@given(st.integers(0, 10**6), st.booleans())
def test_the_witness_of_a_cost_obeys_it(seed: int, profile: bool) -> None:
    rng = np.random.default_rng(seed)
    states, length = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    chain = MarkovChain(
        rng.dirichlet(np.ones(states), states),
        start="stationary" if seed % 2 else rng.dirichlet(np.ones(states)),
        length=length,
    )
    table = rng.uniform(0.1, 1, (states, states))
    np.fill_diagonal(table, 0.0)
    known = [
        Cost.any("1/2"),
        Cost.of({Membership([0]): "7/10", Membership([1]): 1}),
        Cost.of({Membership(range(1 + states // 2)): "7/10", Distance(0, states - 1): 1}),
        Cost.of({Matrix(range(states), table.tolist()): 1, ANY: "1/10"}),
        Cost(),
    ]
    listed = [known[k] for k in rng.integers(0, 5, length)]
    costs: Cost | list[Cost] = listed if profile else listed[0]
    each = listed if profile else [listed[0]] * length
    witness = Translation(chain).explain_cost(costs, "transport").witness
    assert witness.factors is not None and witness.binding is not None
    for cost, g in zip(each, witness.factors, strict=True):
        allowed = np.exp(cost.matrix(range(states))) * g[None, :]
        assert (g[:, None] <= allowed * (1 + 1e-15)).all()
    entry = int(str(witness.binding.entry))
    sides = (int(witness.binding.left), int(witness.binding.right))
    true = enumerated_leak(chain, witness.factors, entry, *sides)
    assert true - 1e-9 <= witness.leak <= true + 1e-12


def test_a_sum_is_attained_by_tilting() -> None:
    rows = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]])
    chain = MarkovChain(rows, start=np.full(3, 1 / 3), length=5)
    found = Translation(chain).explain_cost(Cost.of({Distance(0, 2): 1}))
    assert found.exact
    factors = found.witness.factors
    assert factors is not None
    logs = np.log(factors / factors[:, :1])
    assert np.abs(logs) == pytest.approx(np.tile([0.0, 0.5, 1.0], (5, 1)), abs=1e-6)


def test_a_change_that_costs_nothing_one_way_is_not_used_the_other_way() -> None:
    free = Cost.of({Matrix([0, 1, 2], [[0, 0, 1], [1, 0, 1], [1, 1, 0]]): 1})
    chain = MarkovChain(np.full((3, 3), 1 / 3), length=3)
    witness = Translation(chain).explain_cost(free, "transport").witness
    assert witness.factors is not None and witness.binding is not None
    assert (witness.factors[:, 0] == witness.factors[:, 1]).all()
    assert witness.leak == pytest.approx(1.0)
