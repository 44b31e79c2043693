"""Unbounded chains: certified from above, close to long finite ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.errors import Malformed
from takifugu.priors import MarkovChain
from takifugu.translation import Translation, chain_losses, interval_losses, unbounded_losses
from takifugu.translation.accounting.tables import tabulate_at
from tests.oracles import transport as oracle
from tests.raising import raises


def chain(seed: int, states: int, *, sticky: float = 0.0, sparse: bool = False) -> Floats:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(states, 0.8), states)
    if sparse:
        rows = np.where(rng.random(rows.shape) < 0.6, 1e-5, rows)
    rows = (1 - sticky) * rows / rows.sum(axis=1, keepdims=True) + sticky * np.eye(states)
    normalised: Floats = rows / rows.sum(axis=1, keepdims=True)
    return normalised


chains = st.builds(
    chain,
    st.integers(0, 10**6),
    st.integers(2, 6),
    sticky=st.sampled_from([0.0, 0.7]),
    sparse=st.booleans(),
)


@pytest.mark.costly
@settings(max_examples=25)
@given(rows=chains, epsilon=st.floats(0.01, 0.8))
def test_the_bound_holds_for_long_finite_chains(rows: Floats, epsilon: float) -> None:
    unbounded = unbounded_losses(rows, epsilon)
    finite = chain_losses(rows, np.full(30, epsilon))
    for entry in (0, 3, 15, 29):  # near the ends and inside
        assert (finite.at(entry) <= unbounded.upper + 1e-6).all()


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_the_proof_of_the_bound_can_be_checked_by_a_general_solver(seed: int) -> None:
    rows, epsilon = chain(seed, 5, sparse=seed % 2 == 1), 0.3
    law = MarkovChain(rows).stationary
    unbounded = unbounded_losses(rows, epsilon)
    sides = ((rows, unbounded.forward), ((rows * law[:, None] / law).T, unbounded.backward))
    for kernel, side in sides:
        cost = epsilon * (1 - np.eye(5)) + side.upper
        for x in range(5):
            for y in range(5):
                if x != y:  # T(F) <= F
                    assert (
                        oracle.loss_by_flows(kernel[x], kernel[y], cost) <= side.upper[x, y] + 1e-9
                    )


@pytest.mark.nightly
def test_the_proof_holds_at_twenty_five_states() -> None:
    rows, epsilon = chain(12, 25, sparse=True), 0.1
    side = unbounded_losses(rows, epsilon).forward
    cost = epsilon * (1 - np.eye(25)) + side.upper
    rng = np.random.default_rng(0)
    for x, y in rng.permuted(np.tile(np.arange(25), (30, 1)), axis=1)[:, :2]:
        exact = oracle.loss_by_flows(rows[x], rows[y], cost)
        assert exact <= side.upper[x, y] + 1e-9
        assert side.upper[x, y] <= exact + 1e-3 * side.upper.max()


@pytest.mark.parametrize("sticky", [0.0, 0.8])
def test_the_gap_is_small(sticky: float) -> None:
    unbounded = unbounded_losses(chain(3, 8, sticky=sticky), 0.05)
    finite = chain_losses(chain(3, 8, sticky=sticky), np.full(201, 0.05))
    deep = finite.at(100).max()
    assert unbounded.loss <= deep * 1.002 and deep <= unbounded.loss * 1.001


@pytest.mark.parametrize(("stay", "allowed"), [(0.8, 0.2598), (0.9, 0.1157)])
def test_allowance_at_a_loss_of_one(stay: float, allowed: float) -> None:
    rows = np.array([[stay, 1 - stay], [1 - stay, stay]])
    epsilon = Translation(MarkovChain(rows)).to_dp(1.0)
    assert allowed - 6e-5 <= epsilon <= allowed + 5e-5
    assert unbounded_losses(rows, epsilon).loss <= 1.001


def test_allowance_where_the_loss_soon_has_no_bound() -> None:
    rows = np.array([[0.8, 0.2, 0.0], [0.0, 0.5, 0.5], [0.1, 0.0, 0.9]])
    assert unbounded_losses(rows, 1.5).loss == np.inf
    translation = Translation(MarkovChain(rows))
    epsilon = translation.to_dp(5.0)
    assert translation.to_pufferfish(epsilon) <= 5.0 < translation.to_pufferfish(epsilon * 1.01)
    coins = Translation(MarkovChain(np.full((3, 3), 1 / 3)))
    assert coins.to_dp(0.7) == pytest.approx(0.7, rel=2e-3)


@pytest.mark.nightly
def test_a_chain_that_never_forgets_has_no_bound() -> None:
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert unbounded_losses(swap, 0.1).loss == np.inf
    assert unbounded_losses(swap, 0.0).loss < 1e-12
    assert Translation(MarkovChain(swap)).to_dp(1.0) == 0.0


@pytest.mark.nightly
def test_a_rising_grid_is_certified_and_never_falls() -> None:
    rows, grid = chain(9, 5), [0.1, 0.2, 0.4]
    translation = Translation(MarkovChain(rows))
    losses = tabulate_at(translation, grid).loss.tolist()
    assert losses == sorted(losses)
    for epsilon, loss in zip(grid, losses, strict=True):
        assert loss <= unbounded_losses(rows, epsilon).loss * 1.002
        assert loss == pytest.approx(translation.to_pufferfish(epsilon), rel=2e-3)


@pytest.mark.nightly
def test_changing_rows_within_boxes_lose_no_more_than_guaranteed() -> None:
    rng = np.random.default_rng(4)
    rows = chain(1, 3)
    low, high = rows * 0.9, np.minimum(rows * 1.1, 1)
    guaranteed = interval_losses(low, high, 0.3)
    assert guaranteed.loss > chain_losses(rows, np.full(60, 0.3)).loss

    def draw() -> Floats:
        return np.array([rng.choice(oracle.box_vertices(low[x], high[x])) for x in range(3)])

    for _ in range(4):
        matrices = [draw() for _ in range(20)]
        for start in (MarkovChain(rows).stationary, MarkovChain(draw()).stationary):
            inside = chain_losses(matrices, np.full(21, 0.3), start=start)
            assert inside.loss <= guaranteed.loss + 1e-9


def test_boxes_that_are_points_give_back_the_chain() -> None:
    rows = chain(6, 4)
    pointwise = interval_losses(rows, rows, 0.2)
    assert pointwise.loss == pytest.approx(unbounded_losses(rows, 0.2).loss, rel=2e-3)


def test_what_has_no_meaning_is_refused_in_one_line() -> None:
    rows = chain(0, 3)
    with raises(Malformed, field="epsilon"):
        unbounded_losses(rows, -0.1)
    with raises(Malformed, field="lower", reason="sum"):
        interval_losses(rows * 0.5, rows * 0.9, 0.1)
    with raises(Malformed, field="upper", reason="shape"):
        interval_losses(rows, rows[:2], 0.1)
