"""The translation of higher-order chains: sound against worlds written out, and close to them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import UnsoundRequest
from takifugu.priors import HigherOrderChain, MarkovChain, Secrets
from takifugu.translation import Translation
from tests.priors.strategies import higher_order_chains

LOSSES = st.sampled_from([0.01, 0.3, 1.0, 4.0])


@pytest.mark.nightly
@settings(deadline=None, max_examples=25)
@given(chain=higher_order_chains(length=4, zeros=True), epsilon=LOSSES)
def test_the_loss_lies_between_the_truth_and_group_privacy(
    chain: HigherOrderChain, epsilon: float
) -> None:
    own = Translation(chain).explain(epsilon, "transport")
    true = Translation(chain.explicit()).explain(epsilon, "transport")
    assert true.lower - 1e-9 <= own.pufferfish <= 4 * epsilon + 1e-9
    assert own.lower <= true.pufferfish + 1e-9
    assert own.by_entry is not None and true.by_entry is not None
    assert (own.by_entry >= true.by_entry - 1e-6).all()


@pytest.mark.nightly
@settings(deadline=None, max_examples=15)
@given(
    chain=higher_order_chains(length=4),
    spent=st.lists(st.sampled_from([0.0, 0.2, 1.0]), min_size=4, max_size=4),
)
def test_a_profile_is_never_below_the_truth(chain: HigherOrderChain, spent: list[float]) -> None:
    own = Translation(chain).explain(spent, "transport")
    true = Translation(chain.explicit()).explain(spent, "transport")
    assert own.pufferfish >= true.lower - 1e-9
    assert own.lower <= true.pufferfish + 1e-9


@pytest.mark.costly
@settings(deadline=None, max_examples=10)
@given(rows=st.lists(st.integers(1, 9), min_size=4, max_size=4), epsilon=LOSSES)
def test_a_chain_of_order_one_keeps_its_exact_loss(rows: list[int], epsilon: float) -> None:
    table = np.array(rows, dtype=np.float64).reshape(2, 2)
    table /= table.sum(axis=1, keepdims=True)
    lifted = HigherOrderChain(np.broadcast_to(table, (2, 2, 2)), length=8)
    own = Translation(lifted).bound(epsilon, "transport").value
    exact = Translation(MarkovChain(table, length=8)).bound(epsilon, "transport").value
    assert exact - 1e-9 <= own <= exact * (1 + 1e-6) + 1e-6


@pytest.mark.nightly
@pytest.mark.parametrize("length", [None, 10_000])
def test_long_chains_are_bounded_as_unbounded_ones(length: int | None) -> None:
    table = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.6, 0.4], [0.1, 0.9]]])
    long, short = (Translation(HigherOrderChain(table, length=n)) for n in (length, 12))
    found = long.explain(0.1)
    assert found.by_method["transport"] == found.pufferfish
    assert short.bound(0.1, "transport").value <= found.pufferfish + 1e-6
    assert found.lower >= 0.9 * found.pufferfish
    allowed = float(long.to_dp(1.0))
    assert allowed > 0 and float(long.to_pufferfish(allowed)) <= 1.0


def test_an_unbounded_chain_takes_a_profile_of_its_first_entries() -> None:
    table = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.6, 0.4], [0.1, 0.9]]])
    spent = [0.2, 0.0, 0.3]
    unbounded = Translation(HigherOrderChain(table)).bound(np.array(spent), "transport")
    padded = np.array(spent + [0.0] * 9)
    finite = Translation(HigherOrderChain(table, length=12)).bound(padded, "transport")
    assert unbounded.value == pytest.approx(finite.value, abs=1e-9)
    assert unbounded.by_entry is not None and len(unbounded.by_entry) == 4


@pytest.mark.nightly
def test_secrets_choose_entries_and_groups() -> None:
    rng = np.random.default_rng(3)
    chain = HigherOrderChain(rng.dirichlet(np.ones(3), size=(3, 3)), ("a", "b", "c"), length=4)
    secrets = Secrets(entries=(1,), pairs=((("a",), ("b", "c")),))
    own, true = (Translation(p, secrets).explain(0.8) for p in (chain, chain.explicit()))
    assert true.lower - 1e-9 <= own.pufferfish < Translation(chain).explain(0.8).pufferfish
    assert own.binding is not None and own.binding.entry == 1
    assert {own.binding.left, own.binding.right} == {"a", "b|c"}
    assert own.by_entry is not None and np.flatnonzero(own.by_entry).tolist() == [1]


def test_a_profile_of_the_wrong_length_is_refused() -> None:
    chain = HigherOrderChain(np.full((2, 2, 2), 0.5), length=3)
    with pytest.raises(UnsoundRequest):
        Translation(chain).explain([0.1, 0.2])
