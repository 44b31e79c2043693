"""Star-shaped costs on chains: solved sides against linear programs over all datasets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.costs.cost import Cost, Distance, Matrix, Membership
from takifugu.priors import MarkovChain
from takifugu.translation import Translation, unbounded_losses
from tests.oracles import cost_programs as oracle

A = np.array([[0.62, 0.28, 0.10], [0.05, 0.75, 0.20], [0.33, 0.07, 0.60]])


def random_star(rng: np.random.Generator, size: int) -> Floats:
    """A closed matrix that is a star: symmetric or not, some rays of no length."""
    up = rng.exponential(0.4, size) * (rng.random(size) < 0.7)
    down = up if rng.random() < 0.5 else rng.exponential(0.4, size) * (rng.random(size) < 0.7)
    return (1 - np.eye(size)) * (up[:, None] + down[None, :])


def random_rows(rng: np.random.Generator, size: int) -> Floats:
    rows = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0])), size=size)
    if rng.random() < 0.4:
        rows = np.where(rng.random(rows.shape) < 0.3, 0.0, rows) + 0.3 * np.eye(size)
    normalised: Floats = rows / rows.sum(axis=1, keepdims=True)
    return normalised


@pytest.mark.nightly
@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_every_entry_loses_what_the_program_over_all_datasets_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 5))
    length = int(rng.integers(2, 5 if size < 4 else 4))
    rows = [random_rows(rng, size) for _ in range(length - 1)]
    start = rng.dirichlet(np.ones(size))
    tables = [random_star(rng, size) for _ in range(length)]
    costs = [Cost.of({Matrix(range(size), table.tolist()): 1}) for table in tables]
    chain = MarkovChain(np.array(rows), start=start, length=length)
    found = Translation(chain).cost_bound(costs, "transport")
    solved = oracle.all_losses(oracle.chain_table(start, rows), tables)
    largest = max(one.upper for one in solved.values())
    assert found.value == pytest.approx(largest, rel=1e-7, abs=1e-8)
    assert found.by_entry is not None
    for (entry, *_), one in solved.items():
        assert found.by_entry[entry] >= one.lower - 1e-9


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 5.0, 20.0])
def test_the_bound_is_attained_and_below_the_pairwise_one(epsilon: float) -> None:
    rng = np.random.default_rng(11)
    chain = MarkovChain(rng.dirichlet(np.ones(6), size=6), length=40)
    found = Translation(chain).explain(epsilon)
    assert found.lower <= found.pufferfish <= found.lower * (1 + 1e-6)
    above = unbounded_losses(chain.transition, epsilon).loss
    assert found.pufferfish <= above * (1 + 1e-6)


@pytest.mark.parametrize(
    ("cost", "loss"),
    [
        (Cost.of({Membership([0]): "1/2"}), 1.22046),
        (Cost.of({Membership([1]): "1/2"}), 1.37373),
        (Cost.of({Distance(0, 2): "1/2"}), 1.08946),
        (Cost.any("1/2"), 1.47058),
        (
            Cost.of({Membership([0]): "3/10", Membership([1]): "3/10"}) + Cost.any("1/10"),
            1.71512,
        ),
    ],
)
def test_the_known_values_of_three_states_are_reached(cost: Cost, loss: float) -> None:
    chain = MarkovChain(A, start=np.array([0.5, 0.2, 0.3]), length=5)
    assert Translation(chain).cost_bound(cost).value == pytest.approx(loss, abs=6e-6)


def test_different_costs_on_different_entries_are_solved() -> None:
    zero, one = (Cost.of({Membership([label]): "1/2"}) for label in (0, 1))
    chain = MarkovChain(A, start=np.array([0.5, 0.2, 0.3]), length=5)
    found = Translation(chain).cost_bound([zero, zero, zero + one, one, one])
    assert found.value == pytest.approx(1.54467, abs=6e-6)
    rows = np.array([[0.5, 0.5, 0.0], [0.0, 0.4, 0.6], [0.7, 0.0, 0.3]])
    begun = MarkovChain(rows, start=np.array([1.0, 0.0, 0.0]), length=4)
    assert Translation(begun).explain(0.5).exact
