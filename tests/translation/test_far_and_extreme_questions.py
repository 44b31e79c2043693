"""Secrets, numbers and lengths at the edges of what is supported."""

import warnings
from math import exp, log

import numpy as np
import pytest

from takifugu.costs.losses import Pure
from takifugu.errors import TakifuguError, UnsoundRequest
from takifugu.priors import IntervalMarkovChain, MarkovChain, Secrets
from takifugu.priors.independent import IndependentEntries, Product
from takifugu.priors.networks import MarkovRandomField
from takifugu.translation import Release, Translation, compose
from tests.raising import raises
from tests.translation.transports import transport_of

TWO = np.array([[0.9, 0.1], [0.1, 0.9]])
THREE = np.array([[0.62, 0.28, 0.10], [0.05, 0.75, 0.20], [0.33, 0.07, 0.60]])


def test_a_question_behind_the_profile_has_no_witness_at_another_entry() -> None:
    """Entry 50 has the secret; what entry 0 leaks is no lower bound for it."""
    answer = Translation(MarkovChain(THREE), Secrets(entries=(50,))).explain(np.full(10, 0.5))
    assert answer.witness.leak <= answer.pufferfish
    assert answer.binding is not None
    assert answer.binding.entry == 50
    assert answer.witness.binding is not None
    assert answer.witness.binding.entry == 50
    assert not answer.exact


def test_the_worst_of_chosen_entries_may_lie_behind_the_profile() -> None:
    sticky = np.full((3, 3), 1e-4) + np.eye(3) * (1 - 3e-4)
    spent = np.r_[np.zeros(600), np.full(3, 0.5)]
    answer = Translation(MarkovChain(sticky), Secrets(entries=(2, 700))).explain(spent)
    alone = Translation(MarkovChain(sticky), Secrets(entries=(2,))).explain(spent)
    assert answer.binding is not None
    assert answer.binding.entry == 700
    assert alone.lower < answer.lower <= answer.pufferfish


def test_a_question_that_nobody_can_ask_is_not_answered_at_another_entry() -> None:
    chain = MarkovChain(THREE, start=np.array([1.0, 0.0, 0.0]), length=4)
    transport = transport_of(chain, Secrets(entries=(0,)))
    for spent in (np.full(4, 0.5), np.zeros(4)):
        bound = transport.profile(spent)
        assert bound.value == 0
        assert bound.binding is None
        assert transport.witness(spent, bound).leak == 0


def test_by_entry_of_chosen_entries_says_nothing_of_others() -> None:
    """The entries after a profile count only where one of them has secrets."""
    chain, spent = MarkovChain(THREE), np.array([0.0, 0.0, 0.0, 0.5])
    near = Translation(chain, Secrets(entries=(0,))).explain(spent)
    every = Translation(chain).explain(spent)
    assert every.by_entry is not None
    assert near.pufferfish == pytest.approx(every.by_entry[0], rel=1e-9)


def test_a_binary_question_too_far_away_is_not_called_exact() -> None:
    """Beyond the entries that are listed the loss is bounded by that of the last one alone."""
    slow = MarkovChain(np.array([[1 - 1e-9, 1e-9], [1e-9, 1 - 1e-9]]))
    answer = Translation(slow, Secrets(entries=(10**9,))).explain(np.full(10, 0.5))
    # λ^(10^9) = e^-2: far less than what the last listed entry loses
    assert answer.pufferfish >= 0.5
    assert answer.lower <= log((1 + exp(-2) * 0.99) / (1 - exp(-2) * 0.99))
    assert not answer.exact
    assert answer.binding is not None
    assert answer.binding.entry == 10**9


@pytest.mark.nightly
def test_a_question_far_away_in_an_unbounded_chain_is_answered_at_once() -> None:
    far = Translation(MarkovChain(THREE), Secrets(entries=(10**12,))).explain(0.5)
    middle = Translation(MarkovChain(THREE)).explain(0.5)
    assert far.pufferfish == pytest.approx(middle.pufferfish)
    assert far.lower == pytest.approx(middle.lower)
    assert int(far.witness.entries[0]) > 10**11


def test_uncertainty_between_people_is_not_left_out() -> None:
    """If every joint probability may be off, other people's entries reveal something too."""
    person = IndependentEntries({"x": {0: 0.5, 1: 0.5}})
    both = Product({"a": person, "b": person})
    translation = Translation(both, uncertainty=0.2)
    leak = 0.5 + log((1.2 * exp(0.5) + 0.8) / (0.8 * exp(0.5) + 1.2))  # counts both entries
    assert translation.to_pufferfish(0.5) >= leak
    assert translation.explain([0.5, 0.5]).pufferfish >= leak
    for method in ("best", "transport", "curve", "group"):
        allowed = float(translation.to_dp(0.5, method))
        assert translation.to_pufferfish(allowed, method) <= 0.5
        assert allowed <= 0.45
    assert Translation(both).to_pufferfish(0.5) == pytest.approx(0.5)


PRIORS = {
    "independent": IndependentEntries({k: {0: 0.5, 1: 0.5} for k in "xyz"}),
    "written out": IndependentEntries({k: {0: 0.5, 1: 0.5} for k in "xyz"}).explicit(),
    "chain": MarkovChain(THREE, length=3),
    "binary": MarkovChain(TWO, length=3),
    "interval": IntervalMarkovChain(
        np.array([[0.0, 0.5], [0.0, 0.5]]), np.array([[0.5, 1], [0.5, 1]]), length=3
    ),
}


@pytest.mark.filterwarnings("ignore::takifugu.translation.bounds.LooserTranslation")
@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("profile", [[], [0.1], [0.1, 0.2], [0.1] * 4, [[0.1, 0.2, 0.3]]])
def test_a_profile_of_another_length_is_refused(name: str, profile: list[float]) -> None:
    translation = Translation(PRIORS[name])
    with raises(UnsoundRequest, field="profile"):
        translation.explain(profile)
    with raises(UnsoundRequest, field="profile"):
        translation.bound(np.array(profile), "group")


@pytest.mark.nightly
@pytest.mark.parametrize(
    "matrix", [[[0.9, 0.1], [0.2, 0.8]], [[0.0, 1.0], [1.0, 0.0]], THREE.tolist()]
)
@pytest.mark.parametrize("length", [1, 3, None])
@pytest.mark.parametrize("amount", [1e15, 1e299, 1e305, 1.7e308])
def test_losses_beyond_all_use_are_answered_or_refused(
    matrix: list[list[float]], length: int | None, amount: float
) -> None:
    translation = Translation(MarkovChain(np.array(matrix), length=length))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            answer = translation.explain(amount)
            allowed = float(translation.to_dp(amount))
        except TakifuguError:
            assert amount > 1e299
            return
        assert answer.lower <= answer.pufferfish
        assert translation.bound(allowed).value <= amount


def test_releases_beyond_all_floats_are_refused() -> None:
    translation = Translation(MarkovChain(TWO, length=3))
    for given in (["1e400"], ["1e308", "1e308"], ["1e305"]):
        with pytest.raises(TakifuguError):
            compose(translation, [Release(Pure(loss)) for loss in given])


def test_a_large_exponent_of_nothing() -> None:
    """Decimals keep the exponent of a 0: 0·10³⁵⁰ is 0, and has no logarithm of its own."""
    rows = [[0.19986753836970855, 0.8001324616302914], [1.0, 6.20522495016674e-108]]
    chain = MarkovChain(np.array(rows), start=np.array([0.0, 1.0]), length=3)
    answer = Translation(chain, Secrets(entries=(1,))).explain(800.0)
    assert answer.exact
    assert 800 <= answer.pufferfish <= 1600


def test_an_interval_chain_with_ratios_beyond_all_floats() -> None:
    low = [[2e-16, 0.9999999999999998, 0.0], [1e-30, 0.9999, 9.999e-05], [0.999999999, 1e-9, 0.0]]
    high = [[0.1, 1.0, 0.1], [0.1, 1.0, 0.1001], [1.0, 0.100000001, 0.1]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prior = IntervalMarkovChain(np.array(low), np.array(high), start="stationary", length=3)
        assert transport_of(prior, Secrets()).uniform(1e-300).value >= 1e-300


@pytest.mark.parametrize("epsilon", [300.0, 500.0, 800.0, 1e5, 1e15])
def test_a_network_is_answered_where_no_witness_can_be_summed(epsilon: float) -> None:
    coupling = {(1, 0): 0.5, (2, 1): -0.3, (2, 0): 0.2}
    field = MarkovRandomField.ising(dict.fromkeys(range(3), 0.1), coupling)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = Translation(field).explain(epsilon)
    assert min(epsilon, 500) * 0.99 <= answer.lower <= answer.pufferfish < np.inf
    assert answer.witness.leak <= answer.pufferfish
