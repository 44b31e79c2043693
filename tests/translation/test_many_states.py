"""Chains with more states than other bounds can join: what they forget in a step bounds them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.priors import MarkovChain, Secrets
from takifugu.translation import Translation
from takifugu.translation.models.many_states import ManyStatesTransport
from tests.oracles.transport import written_out_chain_loss

START = np.array([0.2, 0.5, 0.3])
SLOW = np.array([[0.9, 0.1], [0.1, 0.9]])


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    length=st.integers(2, 4),
    stationary=st.booleans(),
    zeros=st.booleans(),
)
def test_no_mechanism_leaks_more_at_any_entry(
    seed: int, length: int, stationary: bool, zeros: bool
) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(3, 0.7), size=3)
    if zeros and not stationary:
        rows[0] = [0.0, 1.0, 0.0]
    epsilon = rng.choice([0.0, 0.05, 0.5, 2.0], size=length)
    chain = MarkovChain(rows, length=length, start="stationary" if stationary else START)
    bound = ManyStatesTransport(chain, Secrets()).profile(epsilon)
    assert bound.by_entry is not None
    laws = chain.marginals()
    for entry in range(length):
        for x, y in [(0, 1), (1, 0), (2, 0), (1, 2)]:
            if laws[entry, x] > 1e-12 and laws[entry, y] > 1e-12:
                steps = [np.asarray(chain.kernel())] * (length - 1)
                truth = written_out_chain_loss(steps, chain.start_law, epsilon, entry, x, y)
                assert truth <= bound.by_entry[entry] + 1e-9


def test_two_states_that_forget_equally_have_the_closed_form() -> None:
    endless = MarkovChain(SLOW)  # the vector (m, τ, ε) = (1, .8, .05)
    bound = ManyStatesTransport(endless, Secrets())
    assert bound.uniform(0.05).value == pytest.approx(0.50904, abs=5e-6)
    assert bound.uniform(0.25).value == np.inf  # .8·e^.25 > 1
    long = MarkovChain(SLOW, length=2_000)
    near = ManyStatesTransport(long, Secrets()).uniform(0.05).value
    assert near == pytest.approx(bound.uniform(0.05).value, abs=1e-6)


def test_a_chain_that_forgets_everything_loses_what_an_entry_does() -> None:
    chain = MarkovChain(np.full((3, 3), 1 / 3), length=50)
    bound = ManyStatesTransport(chain, Secrets())
    assert bound.uniform(0.7).value == pytest.approx(0.7, abs=1e-9)
    assert bound.largest(0.7) == pytest.approx(0.7, rel=1e-6)


def test_three_hundred_states_lose_far_less_than_all_entries_together() -> None:
    rows = 0.5 * np.eye(300) + 0.5 * np.random.default_rng(1).dirichlet(np.full(300, 2.0), 300)
    translation = Translation(MarkovChain(rows, length=100))
    assert translation.to_pufferfish(0.1) < 0.8  # group DP: 10, the influence curve: 2.4
    assert translation.to_pufferfish(translation.to_dp(1.0)) <= 1.0


def test_only_the_entries_with_secrets_count() -> None:
    chain = MarkovChain(SLOW, length=4)
    profile = np.array([2.0, 0.0, 0.0, 0.0])
    every = ManyStatesTransport(chain, Secrets()).profile(profile).value
    last = ManyStatesTransport(chain, Secrets(entries=(3,))).profile(profile).value
    assert last < every
