"""Allowances: both searches for quilts agree, uncertainty is as each proof has it; files."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.influence.chain.chain_curves import chain_curve
from takifugu.influence.presets import uncertain
from takifugu.papers.composition.baselines.quilts import mqm_exact, quilt_allowances
from takifugu.papers.composition.experiments import allowances as module
from takifugu.papers.composition.experiments.allowances import (
    PROOFS,
    UNCERTAINTY,
    UNCERTAINTY_SHIFT,
    allowances,
    curve_allowances,
    exact_allowances,
    shifted,
    targets,
)
from takifugu.priors import MarkovChain
from takifugu.translation import Translation
from tests.oracles import rankings as oracle
from tests.oracles.baselines import chain_law
from tests.papers.composition.small_datasets import FORGETFUL, STICKY, prepared
from tests.raising import raises


@st.composite
def chains(draw: st.DrawFn, longest: int = 9) -> MarkovChain:
    """A stationary chain of two or three states."""
    size = draw(st.integers(2, 3))
    row = st.lists(st.integers(1, 12), min_size=size, max_size=size)
    table = np.array([draw(row) for _ in range(size)], dtype=float)
    length = draw(st.integers(2, longest))
    return MarkovChain(table / table.sum(axis=1, keepdims=True), length=length)


@settings(max_examples=40)
@given(chain=chains(40), epsilon=st.floats(0.02, 6.0))
def test_the_search_over_all_nodes_finds_what_the_search_node_by_node_does(
    chain: MarkovChain, epsilon: float
) -> None:
    """All nodes at once for a stationary chain, and node by node for any other."""
    start = chain.stationary
    slow = mqm_exact(chain.kernel(), chain.length or 0, epsilon, start=start).to_dp
    quick = quilt_allowances(chain, [epsilon, 2 * epsilon])
    assert quick[0] == pytest.approx(slow, rel=1e-9)
    assert quick[1] >= quick[0]


@pytest.mark.parametrize(("q", "p", "noise"), [(0.1, 0.9, 31.738), (0.4, 0.6, 3.572)])
def test_quick_quilts_reach_the_published_noise(q: float, p: float, noise: float) -> None:
    chain = MarkovChain(np.array([[1 - q, q], [1 - p, p]]), length=100)
    assert 1 / quilt_allowances(chain, [1.0])[0] == pytest.approx(noise, abs=5e-4)


def test_a_chain_that_is_not_stationary_is_searched_node_by_node() -> None:
    chain = MarkovChain(STICKY, start=np.array([1.0, 0, 0, 0]), length=12)
    slow = mqm_exact(chain.kernel(), 12, 1.0, start=chain.start_law).to_dp
    assert quilt_allowances(chain, [1.0])[0] == slow


@settings(max_examples=8)
@given(chain=chains(5), epsilon=st.sampled_from([0.3, 0.5, 1.0, 2.5]))
def test_uncertain_quilts_are_the_better_of_a_shift_and_group_dp(
    chain: MarkovChain, epsilon: float
) -> None:
    law = chain_law(chain.transition.tolist(), chain.stationary.tolist(), chain.length or 0)
    slow = oracle.uncertain_quilts(law, epsilon, UNCERTAINTY)
    found = allowances(chain, [epsilon]).at("quilts", epsilon, uncertain=True)
    assert found == pytest.approx(slow, rel=1e-8)


@settings(max_examples=10)
@given(chain=chains(12), epsilon=st.sampled_from([0.3, 0.5, 1.0, 4.0]))
def test_uncertain_curves_and_transports_are_too(chain: MarkovChain, epsilon: float) -> None:
    found = allowances(chain, [epsilon])
    curve = uncertain(chain_curve(chain, symmetric=True), relative=UNCERTAINTY)
    assert found.at("curve", epsilon, uncertain=True) == pytest.approx(
        float(curve.to_dp(epsilon)), rel=1e-9
    )
    whole = Translation(chain, uncertainty=UNCERTAINTY)
    assert found.at("exact", epsilon, uncertain=True) == pytest.approx(
        float(whole.to_dp(epsilon)), rel=3e-3
    )
    assert whole.to_pufferfish(found.at("exact", epsilon, uncertain=True)) <= epsilon * (1 + 1e-3)
    group = found.at("group", epsilon, uncertain=True)
    assert group == found.at("group", epsilon) == pytest.approx(epsilon / (chain.length or 1))


def test_what_is_allowed_keeps_the_guarantee() -> None:
    """The exact allowance spent on every entry loses at most ε, by the translation itself."""
    chain = prepared(length=12).chain
    translation = Translation(chain)
    wanted = (0.5, 2.0)
    found = allowances(chain, wanted)
    for proof in PROOFS:
        for epsilon in wanted:
            assert translation.to_pufferfish(found.at(proof, epsilon)) <= epsilon
            assert found.at(proof, epsilon) <= found.at("exact", epsilon)


@pytest.mark.nightly
def test_a_long_chain_is_bounded_as_if_without_end_and_allows_nearly_as_much() -> None:
    rows = STICKY
    wanted = targets([0.5, 2.0])
    long = exact_allowances(MarkovChain(rows, length=20_000), wanted)
    walked = exact_allowances(MarkovChain(rows, length=200), wanted)
    reported: list[int] = []
    again = exact_allowances(
        MarkovChain(rows, length=20_000), wanted, progress=lambda done, _: reported.append(done)
    )
    assert long == again  # the same table every time
    assert reported == list(range(1, len(wanted) + 1))
    assert np.all(np.diff(long) > 0)
    np.testing.assert_allclose(long, walked, rtol=0.02)


def test_independent_entries_may_spend_all() -> None:
    found = allowances(MarkovChain(FORGETFUL, length=50))
    for proof in ("curve", "quilts", "exact"):
        assert found.at(proof, 1.0) == pytest.approx(1.0, rel=2e-3)
    assert found.at("group", 1.0) == pytest.approx(0.02)


def test_the_curve_has_as_many_points_as_help() -> None:
    """A chain that remembers for long: with 64 points only, nothing but group DP would be left."""
    slow = MarkovChain(np.array([[0.98, 0.02], [0.02, 0.98]]), length=1_000)
    few = chain_curve(slow, symmetric=True, max_exposed=64).to_dp(0.5)
    found = curve_allowances(slow, [0.5])[0]
    assert float(few) == pytest.approx(0.5 / 1_000)
    assert found > 3 * float(few)
    assert found == pytest.approx(quilt_allowances(slow, [0.5])[0], rel=1e-6)


def test_the_shift_is_log_one_and_a_half_and_rounded_to_the_safe_side() -> None:
    assert pytest.approx(np.log(1.5), abs=1e-12) == UNCERTAINTY_SHIFT
    assert np.log(1.5) <= UNCERTAINTY_SHIFT
    assert shifted(1.0) <= 1.0 - UNCERTAINTY_SHIFT
    assert len(targets()) == 12
    assert targets([0.4]) == (0.4,)  # nothing is left of it under uncertainty


def test_allowances_are_kept_and_read_back_to_the_last_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = prepared().chain
    first = allowances(chain, [1.0, 2.0], folder=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(module, "exact_allowances", lambda *_, **__: pytest.fail("computed again"))
        assert allowances(chain, [2.0], folder=tmp_path).at("exact", 2.0) == first.at("exact", 2.0)
    [path] = tmp_path.iterdir()
    document = json.loads(path.read_text())
    for spoilt in ({**document, "chain": "another"}, {**document, "version": "0"}, {"torn": 1}):
        path.write_text(json.dumps(spoilt))
        assert allowances(chain, [1.0, 2.0], folder=tmp_path) == first
    path.write_text('{"torn')
    assert allowances(chain, [1.0, 2.0], folder=tmp_path) == first


def test_bad_input_is_one_line() -> None:
    with raises(UnsoundRequest, field="epsilons"):
        targets([0.0])
    with raises(UnsoundRequest, field="epsilons"):
        targets([])
    with raises(InvalidPrior, field="length"):
        allowances(MarkovChain(STICKY))
    with raises(InvalidPrior, field="chain"):
        quilt_allowances(MarkovChain(STICKY), [1.0])
