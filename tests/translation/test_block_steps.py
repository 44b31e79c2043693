"""Coupling several entries at once: sound, and never worse than one after the other."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.translation.chain.block_steps import block_length, block_step, settle, walk_blocks
from takifugu.translation.chain.chain_losses import chain_losses
from takifugu.translation.chain.unbounded_losses import unbounded_losses
from tests.oracles import transport as oracle


@pytest.mark.nightly
@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_blocks_lie_between_the_truth_and_the_recursion(seed: int, length: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(3), 3) * (rng.random((3, 3)) < 0.8) + 0.02 * np.eye(3)
    rows /= rows.sum(axis=1, keepdims=True)
    spent = rng.choice([0.0, 0.2, 1.0], length)
    tables = walk_blocks([rows] * (length - 1), spent[1:], size=3, slack=0.0)
    single = chain_losses(rows, spent, start=np.full(3, 1 / 3))
    for x, y in permutations(range(3), 2):
        true = oracle.written_out_chain_loss(
            [rows] * (length - 1), np.full(3, 1 / 3), spent, 0, x, y
        )
        found = spent[0] + tables[0][x, y]  # the first entry has nothing behind it
        assert true - 1e-7 <= found <= single.at(0)[x, y] + 1e-7
        assert found == pytest.approx(true, abs=1e-6)  # all the rest is one block


@pytest.mark.nightly
@given(st.integers(0, 10**6))
@settings(max_examples=10)
def test_a_settled_bound_covers_every_length(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(3), 3)
    above = unbounded_losses(rows, 0.4, with_lower=False).forward.upper
    lowered = settle(rows, 0.4, above, slack=1e-14)
    assert (lowered <= above).all()
    for length in (1, 3, 40):
        table = walk_blocks([rows] * length, np.full(length, 0.4), size=3, slack=0.0)[0]
        assert (table <= lowered + 1e-9).all()


@pytest.mark.parametrize(("states", "length"), [(2, 6), (3, 4), (4, 3), (9, 2), (10, 1), (1, 1)])
def test_a_block_holds_at_most_eighty_one_states(states: int, length: int) -> None:
    assert block_length(states) == length


def test_nothing_spent_tells_nothing_and_too_much_is_the_dearest_move() -> None:
    rows = np.array([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8]])
    none = np.zeros((3, 3))
    assert not block_step([rows, rows], [0.0, 0.0], none, slack=0.0).any()
    huge = block_step([rows, rows], [1e4, 1e4], none, slack=0.0)
    assert huge.max() == pytest.approx(2e4) and not np.diag(huge).any()
