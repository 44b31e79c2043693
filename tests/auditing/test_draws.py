"""Datasets are drawn from the prior given the secret, exactly; worlds are audited against truth."""

from math import log, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import frozen
from takifugu.auditing import (
    Comparison,
    audit,
    datasets_given,
    paths_given,
    released,
    world_comparisons,
)
from takifugu.errors import InvalidPrior, InvalidWorld
from takifugu.finite import FiniteMechanism, World, leakage
from takifugu.priors import EntryIs, Explicit, SecretPair, Tables, entry_pairs
from tests.oracles.baselines import chain_law
from tests.raising import raises

FALSE_ALARM = 1e-9
DRAWS = 100_000
THREE = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.0, 0.5]]
START = [0.6, 0.3, 0.1]


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize(("node", "states"), [(0, 1), (1, 2), (3, 0), (2, (0, 1))])
def test_paths_follow_the_law_given_the_secret(node: int, states: int | tuple[int, ...]) -> None:
    rng = np.random.default_rng(node)
    allowed = (states,) if isinstance(states, int) else states
    joint = chain_law(THREE, START, 4)
    probability = sum(p for path, p in joint.items() if path[node] in allowed)
    law = {path: p / probability for path, p in joint.items() if path[node] in allowed}
    paths, times = np.unique(
        paths_given(THREE, START, 4, node, states, rng=rng)(DRAWS), axis=0, return_counts=True
    )
    seen = {tuple(path.tolist()): n / DRAWS for path, n in zip(paths, times, strict=True)}
    assert set(seen) <= set(law)
    slack = sqrt(log(2 * 81 / FALSE_ALARM) / (2 * DRAWS))  # Hoeffding, all paths at once
    assert max(abs(seen.get(path, 0.0) - p) for path, p in law.items()) <= slack
    # the control: paths of the chain at large are further off than that
    assert max(abs(joint[path] - p) for path, p in law.items()) > 2 * slack


def test_a_chain_that_forgets_nothing_is_drawn_without_rounding_errors() -> None:
    rng = np.random.default_rng(1)
    frozen_chain = np.eye(2)
    paths = paths_given(frozen_chain, [0.5, 0.5], 50, 25, 1, rng=rng)(1_000)
    assert (paths == 1).all()


def test_impossible_secrets_of_a_chain_are_refused() -> None:
    rng = np.random.default_rng(1)
    with raises(InvalidPrior, field="states"):
        paths_given([[0.5, 0.5], [0.5, 0.5]], [1.0, 0.0], 3, 0, 1, rng=rng)
    with raises(InvalidPrior, field="node"):
        paths_given(THREE, START, 3, 3, 1, rng=rng)
    with raises(InvalidPrior, field="states"):
        paths_given(THREE, START, 3, 0, 7, rng=rng)
    with raises(InvalidPrior, field="transition"):
        paths_given(THREE[:2], START, 3, 0, 0, rng=rng)
    with raises(InvalidPrior, field="start"):
        paths_given(THREE, [1.0], 3, 0, 0, rng=rng)
    with raises(InvalidPrior, field="length"):
        paths_given(THREE, START, 0, 0, 0, rng=rng)


TABLES = Tables.bits(2)


def sampler_of(mechanism: FiniteMechanism, rng: np.random.Generator) -> Any:
    """A release that draws from the mechanism's own table."""

    def release(dataset: tuple[int, int]) -> Any:
        law = mechanism.likelihood[TABLES.position(dataset)]
        return mechanism.outputs[rng.choice(len(law), p=law / law.sum())]

    return release


@st.composite
def rows(draw: st.DrawFn, size: int) -> list[float]:
    weights = draw(st.lists(st.integers(1, 9), min_size=size, max_size=size))
    return [w / sum(weights) for w in weights]


@pytest.mark.nightly
@pytest.mark.statistical
@settings(max_examples=6)
@given(prior=rows(4), table=st.lists(rows(3), min_size=4, max_size=4), seed=st.integers(0, 99))
def test_no_world_seems_to_leak_more_than_it_does(
    prior: list[float], table: list[list[float]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    world = World(TABLES, (Explicit(TABLES, frozen(prior)),), entry_pairs(TABLES))
    mechanism = FiniteMechanism(TABLES, frozen(table))
    truth = leakage(world, mechanism).epsilon
    comparisons = world_comparisons(world, sampler_of(mechanism, rng), rng=rng)
    assert len(comparisons) == 2  # two entries; both ways at once
    found = audit(comparisons, truth, samples=2_000, confidence=1 - 1e-10)
    assert not found.refuted


def test_a_world_that_leaks_is_refuted_at_the_worst_comparison() -> None:
    """The two bits agree with probability .9, so an answer about one reveals the other."""
    rng = np.random.default_rng(2)
    prior = Explicit(TABLES, frozen([0.45, 0.05, 0.05, 0.45]), "twins")
    world = World(TABLES, (prior,), entry_pairs(TABLES, entries=[0]))
    mechanism = FiniteMechanism(TABLES, frozen([[0.9, 0.1], [0.2, 0.8], [0.8, 0.2], [0.1, 0.9]]))
    truth = leakage(world, mechanism).epsilon
    comparisons = world_comparisons(world, sampler_of(mechanism, rng), rng=rng)
    found = audit(comparisons, truth / 2, samples=10_000, confidence=1 - 1e-10)
    assert found.refuted
    assert 0.7 * truth < found.lower <= truth
    assert found.comparison == "0=0 / 0=1 under twins"


def test_a_one_way_pair_is_audited_one_way() -> None:
    rng = np.random.default_rng(3)
    pair = SecretPair(EntryIs(0, (0,)), EntryIs(0, (1,)))
    prior = Explicit(TABLES, frozen([0.5, 0.0, 0.5, 0.0]))
    world = World(TABLES, (prior,), (pair,))
    (comparison,) = world_comparisons(world, lambda bits: bits[0], rng=rng)
    assert not comparison.both_ways
    assert audit(comparison, 1.0, samples=1_000).refuted


def test_priors_that_forbid_a_side_are_left_out_when_the_world_says_so() -> None:
    rng = np.random.default_rng(4)
    sure = Explicit(TABLES, frozen([1.0, 0.0, 0.0, 0.0]), "sure")
    open_minded = Explicit.uniform(TABLES)
    pairs = entry_pairs(TABLES)
    world = World(TABLES, (sure, open_minded), pairs, unsupported="skip")
    comparisons = world_comparisons(world, lambda bits: bits, rng=rng)
    assert {q.name for q in comparisons} == {"0=0 / 0=1 under uniform", "1=0 / 1=1 under uniform"}
    with raises(InvalidWorld, field="secret") as caught:
        datasets_given(sure, EntryIs(0, (1,)), rng=rng)
    assert "'sure'" in caught.value.given


def test_each_output_has_a_dataset_of_its_own() -> None:
    rng = np.random.default_rng(5)
    prior = Explicit.uniform(TABLES)
    draw = datasets_given(prior, EntryIs(0, (1,)), rng=rng)
    outputs = released(lambda bits: bits, draw)(2_000)
    assert set(outputs) == {(1, 0), (1, 1)}
    comparison = Comparison(
        released(lambda bits: bits[1], draw), released(lambda bits: bits[1], draw)
    )
    assert audit(comparison, 0.0, samples=1_000, confidence=1 - 1e-10).lower == 0
