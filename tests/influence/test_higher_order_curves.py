"""Curves of higher-order chains: never below the leak that enumeration finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidWorld
from takifugu.influence import chain_curve, influence_curve
from takifugu.priors import HigherOrderChain, MarkovChain, Secrets
from tests.priors.strategies import higher_order_chains


@pytest.mark.costly
@settings(deadline=None, max_examples=30)
@given(chain=higher_order_chains(length=5, zeros=True))
def test_the_curve_is_never_below_the_exact_one(chain: HigherOrderChain) -> None:
    own, exact = influence_curve(chain), influence_curve(chain.explicit())
    assert own.exposed.tolist() == exact.exposed.tolist() == [1, 2, 3, 4, 5]
    assert (own.pooled() >= exact.pooled() - 1e-9).all()
    assert set(exact.pairs) <= set(own.pairs)
    for pair, leak in zip(exact.pairs, exact.leak, strict=True):
        assert (own.leak[own.pairs.index(pair)] >= leak - 1e-9).all()


@given(rows=st.lists(st.integers(1, 9), min_size=4, max_size=4))
def test_a_chain_of_order_one_keeps_its_curve(rows: list[int]) -> None:
    table = np.array(rows, dtype=np.float64).reshape(2, 2)
    plain = MarkovChain(table / table.sum(axis=1, keepdims=True))
    lifted = HigherOrderChain(np.broadcast_to(plain.transition, (2, 2, 2)))
    own, exact = (influence_curve(prior, max_exposed=8) for prior in (lifted, plain))
    assert own.pairs == exact.pairs
    assert own.leak == pytest.approx(exact.leak, abs=1e-8)
    assert not own.exact.any()


@settings(deadline=None, max_examples=20)
@given(chain=higher_order_chains(), length=st.integers(1, 12))
def test_a_longer_chain_never_leaks_less(chain: HigherOrderChain, length: int) -> None:
    short = HigherOrderChain(chain.transition, length=length)
    own = influence_curve(short, max_exposed=6).to_pufferfish(0.3)
    assert own <= influence_curve(chain, max_exposed=6).to_pufferfish(0.3) + 1e-9


def test_groups_and_entries_are_the_chosen_ones() -> None:
    rng = np.random.default_rng(5)
    table = rng.dirichlet(np.ones(3), size=(3, 3))
    chain = HigherOrderChain(table, ("home", "work", "ward"), length=5)
    secrets = Secrets(entries=(2,), pairs=((("ward",), ("home", "work")),))
    own, exact = (influence_curve(prior, secrets) for prior in (chain, chain.explicit()))
    assert set(own.pairs) == {"ward / home|work", "home|work / ward"}
    assert (own.pooled() >= exact.pooled() - 1e-9).all()
    described = own.points()[1].split
    assert described["entry"] == "2"


def test_a_sequence_that_never_changes_has_no_secrets() -> None:
    table = np.zeros((2, 2, 2))
    table[..., 0] = 1.0
    with pytest.raises(InvalidWorld):
        influence_curve(HigherOrderChain(table, length=4))


def test_values_that_never_happen_are_no_secrets() -> None:
    table = np.full((3, 3, 3), 0.5)
    table[..., 2] = 0.0
    chain = HigherOrderChain(table, length=4)
    assert chain_curve(MarkovChain(np.full((2, 2), 0.5), length=4)).to_pufferfish(0.2) <= 0.2 + 1e-9
    assert influence_curve(chain).to_pufferfish(0.2) <= 0.2 + 1e-9
