"""What is said of a prior is what the changed prior, built by other means, really allows."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.advice import PriorAdvice, advise
from takifugu.advice.prior_advice import slow_states, why_nothing
from takifugu.advice.remedies import Remedy, expense, max_merges, times_words
from takifugu.errors import UnsoundRequest
from takifugu.mechanisms import IntegerLaplace
from takifugu.priors import MarkovChain, Secrets, Transitions
from takifugu.priors.fitting import ChainSteps, secrets_merged
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.translation import Translation
from tests.oracles import changed_chains as oracle
from tests.raising import raises

STAGES = ("W", "N1", "N2", "N3", "REM", "other")
COUNTS = np.array(  # `other` is entered and never left, as in rows that end with it
    [
        [7889, 977, 66, 1, 41, 6],
        [324, 1182, 1045, 1, 77, 1],
        [561, 383, 16872, 460, 152, 4],
        [57, 11, 391, 4472, 3, 1],
        [136, 76, 59, 1, 6002, 1],
        [0, 0, 0, 0, 0, 1639],
    ]
)
chain_of: Any = MarkovChain  # also of lists
PATIENT = 1e9  # seconds: in tests everything is tried


@st.composite
def matrices(draw: st.DrawFn, least: int = 3, most: int = 5) -> Any:
    size = draw(st.integers(least, most))
    row = st.lists(st.floats(0.01, 1), min_size=size, max_size=size)
    table = np.array(draw(st.lists(row, min_size=size, max_size=size)))
    if draw(st.booleans()):  # one state that is hardly ever left
        stuck = draw(st.integers(0, size - 1))
        table[stuck] *= draw(st.floats(1e-6, 1e-2)) / table[stuck].sum()
        table[stuck, stuck] = 1 - (table[stuck].sum() - table[stuck, stuck])
    return table / table.sum(axis=1, keepdims=True)


def rebuilt(
    chain: MarkovChain, remedy: Remedy, counts: Any = None, tau: float | None = None
) -> Translation:
    """The translation of a remedy, from the oracle's chain."""
    names = [str(state) for state in chain.states]
    if remedy.kind == "length":
        return Translation(chain_of(chain.transition, chain.states, length=remedy.length))
    at = [names.index(name) for name in remedy.states]
    if remedy.kind == "pairs":
        kept = [
            ((x,), (y,))
            for x, y in combinations(chain.states, 2)
            if not (
                {str(x), str(y)} == {*remedy.states}
                if len(remedy.states) == 2
                else remedy.states[0] in (str(x), str(y))
            )
        ]
        return Translation(chain, Secrets(pairs=tuple(kept)))
    gone = at[-1]
    states = tuple(state for k, state in enumerate(chain.states) if k != gone)
    if counts is not None and remedy.kind == "merge":
        flow = np.array(counts)
        flow[at[0]] += flow[gone]
        flow[:, at[0]] += flow[:, gone]
        rest = [k for k in range(len(names)) if k != gone]
        made = Transitions(flow[np.ix_(rest, rest)], states).chain(unseen="uniform", tau=tau)
        return Translation(made)
    matrix = chain.transition.tolist()
    law = chain.stationary.tolist()
    return Translation(chain_of(oracle.lumped(matrix, law, at[0], gone), states))


def confirmed(chain: MarkovChain, advice: PriorAdvice, counts: Any = None, tau: Any = None) -> None:
    """Every gain is there, and is as large as it is said to be."""
    base = float(Translation(chain).to_dp(advice.epsilon))
    assert advice.allowed == base
    for remedy in advice.remedies:
        allowed = float(rebuilt(chain, remedy, counts, tau).to_dp(advice.epsilon))
        if remedy.kind == "length" and remedy.allowed < allowed * (1 - 1e-6):
            assert remedy.allowed == pytest.approx(advice.epsilon / (remedy.length or 0), rel=1e-9)
        else:
            assert remedy.allowed == pytest.approx(allowed, rel=1e-3)
        assert allowed > base and remedy.allowed >= 1.1 * base
        assert remedy.factor == pytest.approx(remedy.allowed / base)


@pytest.mark.nightly
@given(table=matrices(), epsilon=st.sampled_from([0.1, 1.0, 3.0]))
@settings(max_examples=12, deadline=None)
def test_no_gain_is_claimed_that_is_not_there(table: Any, epsilon: float) -> None:
    chain = chain_of(table)
    confirmed(chain, advise(chain, epsilon, seconds=PATIENT))


@pytest.mark.nightly
def test_a_state_that_is_never_left_is_named_with_what_it_costs() -> None:
    chain = Transitions(COUNTS, STAGES).chain(unseen="uniform", tau=1e-5)
    advice = advise(chain, steps=ChainSteps.of(chain, COUNTS, 1e-5), seconds=PATIENT)
    assert advice.pair is not None and "other" in (advice.pair.left, advice.pair.right)
    assert dict(advice.slow) == {"other": pytest.approx(5e-5)}
    best = {remedy.kind: remedy for remedy in reversed(advice.remedies)}
    assert {remedy.kind for remedy in advice.remedies} == {"merge", "pairs", "length"}
    assert "other" in best["merge"].states
    assert best["pairs"].states == ("other",)
    assert best["length"].length == 10
    for word in ("'other' is left with probability 5e-5 per step", "allows"):
        assert word in advice.words
    assert "drop" not in advice.words  # rows that are left out are protected by no state
    merges = [remedy for remedy in advice.remedies if remedy.kind == "merge"]
    for remedy in merges:
        allowed = float(rebuilt(chain, remedy, COUNTS, 1e-5).to_dp(1))
        assert remedy.allowed == pytest.approx(allowed, rel=1e-9)


@pytest.mark.nightly
def test_without_counts_the_same_state_is_named() -> None:
    chain = Transitions(COUNTS, STAGES).chain(unseen="uniform", tau=1e-5)
    advice = advise(chain, seconds=PATIENT)
    confirmed(chain, advice)
    assert ("pairs", ("other",)) in [(remedy.kind, remedy.states) for remedy in advice.remedies]


def test_a_chain_that_forgets_at_once_has_no_remedy() -> None:
    fair = chain_of(np.full((4, 4), 0.25))
    advice = advise(fair, seconds=PATIENT)
    assert advice.remedies == () and advice.tried > 0 and advice.slow == ()
    assert advice.allowed == pytest.approx(1, rel=1e-3)
    assert "None of" in advice.words


@pytest.mark.costly
@given(table=matrices())
@settings(max_examples=40, deadline=None)
def test_two_states_as_one_is_their_mixture(table: Any) -> None:
    chain = chain_of(table)
    expected = oracle.lumped(table.tolist(), chain.stationary.tolist(), 0, 2)
    made = ChainSteps.of(chain).merged(0, 2)
    assert made.transition == pytest.approx(np.array(expected))
    assert made.states == tuple(k for k in chain.states if k != 2)


@given(paths=st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=40), min_size=1, max_size=6))
def test_merged_counts_are_counts_of_merged_rows(paths: list[list[int]]) -> None:
    counts = np.array(oracle.counted(paths, [0, 1, 2, 3]))
    chain = Transitions(counts, (0, 1, 2, 3)).chain(unseen="uniform", tau=1e-5)
    again = np.array(oracle.counted(oracle.relabelled(paths, 3, 1), [0, 1, 2]))
    expected = Transitions(again, (0, 1, 2)).chain(unseen="uniform", tau=1e-5)
    made = ChainSteps.of(chain, counts, 1e-5).merged(1, 3)
    assert made.transition == pytest.approx(expected.transition)


def test_a_state_that_is_left_for_good_still_has_a_row() -> None:
    chain = chain_of([[0.9, 0.1, 0], [0.1, 0.8, 0.1], [0, 0, 1]], start=[0.3, 0.3, 0.4])
    made = ChainSteps.of(chain).merged(0, 1)
    assert made.start == pytest.approx(np.array([0.6, 0.4]))
    both = chain_of(np.eye(3), start=[0.2, 0.3, 0.5])
    assert not ChainSteps.of(both).weighed  # several stationary laws: nothing says how to mix
    assert ChainSteps.of(both).merged(0, 1).start == pytest.approx(np.array([0.5, 0.5]))


PAIRS = ((("a",), ("b", "c")), (("b",), ("c",)))


def test_secrets_of_merged_values() -> None:
    assert secrets_merged(Secrets(), "a", "b") == Secrets()
    assert secrets_merged(Secrets(pairs=PAIRS), "b", "c") == Secrets(pairs=((("a",), ("b",)),))
    assert secrets_merged(Secrets(pairs=((("a",), ("b",)),)), "a", "b") is None


@pytest.mark.nightly
def test_only_neighbouring_ranges_are_merged() -> None:
    states = ("[0, 1)", "[1, 2)", "[2, 3]")
    chain = chain_of([[0.9, 0.1, 0], [0.1, 0.8999, 0.0001], [0, 0.0001, 0.9999]], states=states)
    advice = advise(chain, seconds=PATIENT)
    merged = [remedy.states for remedy in advice.remedies if remedy.kind == "merge"]
    assert {*states[:1], *states[2:]} not in [{*pair} for pair in merged]


@pytest.mark.nightly
def test_many_states_get_few_tries_and_the_stuck_one_is_among_them() -> None:
    rng = np.random.default_rng(5)
    table = rng.dirichlet(np.full(30, 0.3), size=30) + 1e-5
    table[-1] = 1e-5
    table[-1, -1] = 1
    chain = chain_of(table / table.sum(axis=1, keepdims=True))
    advice = advise(chain, lengths=(5,), seconds=PATIENT)
    assert max_merges(30) == 3 and max_merges(78) == 1
    assert advice.tried + advice.untried <= 3 + 2 + 1
    assert ("pairs", ("29",)) in [(remedy.kind, remedy.states) for remedy in advice.remedies]


@pytest.mark.nightly
def test_time_that_is_up_leaves_the_rest_untried() -> None:
    chain = Transitions(COUNTS, STAGES).chain(unseen="uniform", tau=1e-5)
    advice = advise(chain, seconds=0)
    assert advice.tried == 1 and advice.untried > 1
    assert advice.remedies[0].kind == "length"


@given(table=matrices(most=4))
@settings(max_examples=20, deadline=None)
def test_the_ranking_is_symmetric_and_counts_the_entry_itself(table: Any) -> None:
    found = expense(ChainSteps.of(chain_of(table)))
    assert found == pytest.approx(found.T)
    off = ~np.eye(len(found), dtype=bool)
    assert (found[off] >= 1 - 1e-12).all() and (np.diag(found) == 0).all()


@pytest.mark.nightly
def test_chains_of_another_kind_are_priced_and_can_be_shorter() -> None:
    low = np.array([[0.8, 0.05], [0.05, 0.8]])
    chains = IntervalMarkovChain(low, low + 0.15, ("in", "out"))
    advice = advise(chains, lengths=(3,), seconds=PATIENT)
    assert advice.allowed == pytest.approx(float(Translation(chains).to_dp(1)))
    assert {remedy.kind for remedy in advice.remedies} <= {"length", "pairs"}


def test_an_adversary_who_knows_more_is_named() -> None:
    chain = chain_of([[0.9, 0.1], [0.2, 0.8]], known="any")
    advice = advise(chain)
    plain = chain_of([[0.9, 0.1], [0.2, 0.8]])
    assert advice.allowed == float(Translation(plain).to_dp(1))
    assert "knows no entry" in advice.words


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_a_price_is_above_zero(epsilon: float) -> None:
    with raises(UnsoundRequest, field="epsilon"):
        advise(chain_of([[0.9, 0.1], [0.2, 0.8]]), epsilon)


def test_a_translation_has_secrets_of_its_own() -> None:
    chain = chain_of([[0.9, 0.1], [0.2, 0.8]])
    with raises(UnsoundRequest, field="secrets"):
        advise(Translation(chain), secrets=Secrets())
    pairs = Secrets(pairs=(((0,), (1,)),))
    assert advise(chain, secrets=pairs).allowed == advise(Translation(chain, pairs)).allowed


def slow(table: Sequence[Sequence[float]]) -> dict[str, float]:
    return dict(slow_states(chain_of(table)))


def test_small_probabilities_of_leaving_are_not_rounded_away() -> None:
    stays = 1 - 2e-17  # is 1 as a float
    assert slow([[stays, 2e-17], [0.5, 0.5]]) == {"0": pytest.approx(2e-17)}
    assert slow([[0.5, 0.5], [0.5, 0.5]]) == {}


def test_times_are_rounded_down() -> None:
    assert times_words(1.99) == "1.9 times as much"
    assert times_words(1234.9) == "1,234 times as much"


NEVER = chain_of([[0, 1], [1, 0]], states=("day", "night"))
STUCK = chain_of([[0.9, 0.1, 0], [0.1, 0.8, 0.1], [0, 0, 1]], start=[0.3, 0.3, 0.4])


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::takifugu.translation.bounds.LooserTranslation")
def test_nothing_allowed_names_the_state_and_what_would_help() -> None:
    with raises(UnsoundRequest, field="epsilon", reason="no allowance") as caught:
        IntegerLaplace.calibrated(epsilon=1.0, translation=Translation(STUCK))
    advice = caught.value.needed
    assert isinstance(advice, PriorAdvice) and dict(advice.slow) == {"2": 0.0}
    assert "state '2' is never left" in str(caught.value)
    shorter = next(remedy for remedy in advice.remedies if remedy.kind == "length")
    assert 0 < shorter.allowed <= float(Translation(rebuilt_start(STUCK, 10)).to_dp(1)) * 1.001


def rebuilt_start(chain: MarkovChain, length: int) -> Any:
    return chain_of(chain.transition, chain.states, start=chain.start, length=length)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::takifugu.translation.bounds.LooserTranslation")
def test_nothing_allowed_without_a_state_to_blame() -> None:
    with raises(UnsoundRequest, reason="no allowance") as caught:
        IntegerLaplace.calibrated(epsilon=1.0, translation=Translation(NEVER))
    assert isinstance(caught.value.needed, PriorAdvice)
    assert "--length 10" in str(caught.value)


def test_nothing_allowed_for_uncertainty_names_it() -> None:
    sure = Translation(chain_of([[0.9, 0.1], [0.1, 0.9]]), uncertainty=0.2)
    with raises(UnsoundRequest, reason="no allowance") as caught:
        IntegerLaplace.calibrated(epsilon=0.3, translation=sure)
    least = caught.value.needed
    assert isinstance(least, float) and least == pytest.approx(np.log(1.2 / 0.8))
    assert "uncertainty of 0.2" in str(caught.value)
    assert float(sure.to_dp(least * 1.1)) > 0


def test_a_translation_without_a_prior_still_says_what_to_do() -> None:
    from takifugu.influence.curve import InfluenceCurve
    from takifugu.translation import CurveTranslation

    curve = CurveTranslation(InfluenceCurve(np.array([1]), np.array([[2.0]]), None))
    words, needed = why_nothing(curve, 1.0)
    assert "larger epsilon" in words and needed is None


@pytest.mark.nightly
def test_only_lengths_that_all_sequences_keep_to_are_offered_and_first() -> None:
    chain = Transitions(COUNTS, STAGES).chain(unseen="uniform", tau=1e-5)
    advice = advise(chain, lengths=(8,), seconds=PATIENT)
    first, *others = advice.remedies
    assert (first.kind, first.length) == ("length", 8)
    assert all(remedy.kind != "length" for remedy in others)
    assert others[0].allowed >= others[-1].allowed
    bounded = Translation(replace(chain, length=8))
    assert first.allowed == pytest.approx(float(bounded.to_dp(1)), rel=1e-9)
    assert "--length 8" in advice.words
    # a prior that is as short already, or shorter, is offered none
    for own in (8, 5):
        again = advise(replace(chain, length=own), lengths=(8,), seconds=PATIENT)
        assert all(remedy.kind != "length" for remedy in again.remedies)


MIXED = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])


@pytest.mark.nightly
def test_a_price_by_the_curve_is_told_without_a_warning() -> None:
    """That an answer is looser is said where a release is planned."""
    begins = MarkovChain(np.array([[0.9, 0.1], [0.1, 0.9]]), start=np.array([1.0, 0.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (advise(begins, seconds=0.0).allowed or 0) > 0


@pytest.mark.nightly
def test_an_adversary_who_knows_less_keeps_secrets_and_uncertainty() -> None:
    known = MarkovChain(MIXED, start="unknown", known="any", length=4)
    secrets = Secrets(entries=(1,), pairs=(((0,), (2,)),))
    advice = advise(Translation(known, secrets, 0.05), 2.0, seconds=0.0)
    plain = Translation(MarkovChain(MIXED, length=4), secrets, 0.05)
    assert advice.allowed == float(plain.to_dp(2.0)) > 0.5 and advice.epsilon == 2.0
    assert advice.allowed < float(Translation(MarkovChain(MIXED, length=4), secrets).to_dp(2.0))
    assert advice.pair == plain.bound(advice.allowed).binding is not None


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [0.01, 2.0])
def test_the_pair_is_told_also_where_nothing_is_allowed(epsilon: float) -> None:
    """With an uncertainty that is more than the budget, at the budget itself."""
    unsure = Translation(MarkovChain(MIXED), Secrets(entries=(1,)), 0.05)
    advice = advise(unsure, epsilon, seconds=0.0)
    assert (advice.allowed == 0) == (epsilon == 0.01)
    assert advice.pair == unsure.bound(advice.allowed or epsilon).binding is not None
