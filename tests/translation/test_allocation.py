"""A budget over time: within it, as large as other ways find, at the extremes too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.errors import UnsoundRequest
from takifugu.priors import (
    IndependentEntries,
    IntervalMarkovChain,
    MarkovChain,
    Product,
    Secrets,
)
from takifugu.translation import Translation, allocate
from tests.oracles import allocation as oracle
from tests.raising import raises

STICKY = np.array([[0.9, 0.1], [0.1, 0.9]])
ALTERNATING = np.array([[0.01, 0.99], [0.8, 0.2]])
THREE = np.array([[0.62, 0.28, 0.10], [0.05, 0.75, 0.20], [0.33, 0.07, 0.60]])


def rows(states: int, seed: int, count: int = 1) -> list[Floats]:
    """Random matrices without zeros."""
    rng = np.random.default_rng(seed)
    return [0.97 * rng.dirichlet([0.5] * states, states) + 0.03 / states for _ in range(count)]


@pytest.mark.nightly
@pytest.mark.parametrize("stay", [0.6, 0.9, 0.99])
@pytest.mark.parametrize("length", [1, 2, 3, 30])
@pytest.mark.parametrize("target", [0.01, 1.0, 20.0])
def test_the_sum_is_that_of_the_published_profile(stay: float, length: int, target: float) -> None:
    chain = MarkovChain(np.array([[stay, 1 - stay], [1 - stay, stay]]), length=length)
    found = allocate(Translation(chain), target, objective="total")
    published = oracle.published_profile(stay, length, target)
    assert found.loss <= target
    assert found.total == pytest.approx(sum(published), rel=1e-9)
    assert found.epsilon == pytest.approx(published, rel=1e-6)


def test_thirty_entries_get_what_is_printed() -> None:
    found = allocate(Translation(MarkovChain(STICKY, length=30)), 1.0, objective="total")
    assert found.total == pytest.approx(4.3562962782, abs=1e-9)
    assert found.loss == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_two_states_get_as_much_as_another_optimiser_finds(seed: int) -> None:
    """Chains that rather stay, each step its own matrix: there the worst mechanism counts."""
    rng = np.random.default_rng(seed)
    length = int(rng.integers(2, 6))
    target = float(10 ** rng.uniform(-1, 1))
    steps = []
    for p, q in rng.uniform(0.5, 0.97, (length - 1, 2)):
        steps.append(np.array([[p, 1 - p], [1 - q, q]]))
    start = rng.dirichlet([1.0, 1.0]) * 0.9 + 0.05
    prior = MarkovChain(np.array(steps), start=start)
    found = allocate(Translation(prior), target, objective="total")
    first = np.full(length, found.constant)
    other = oracle.largest_sum(oracle.count_losses(steps, start), target, first, 4, seed)
    assert found.loss <= target
    assert found.total >= other * (1 - 1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("matrix", "length", "target"),
    [(ALTERNATING, 4, 1.0), (THREE, 2, 0.8), (rows(3, 5)[0], 2, 2.0), (STICKY, 4, 0.5)],
)
def test_any_chain_gets_as_much_as_a_search_over_programs_finds(
    matrix: Floats, length: int, target: float
) -> None:
    """With three states the bound may be above the program's loss: then less is allowed."""
    prior = MarkovChain(matrix, length=length)
    translation = Translation(prior)
    found = allocate(translation, target, objective="total")
    losses = oracle.program_losses([np.asarray(matrix)] * (length - 1), prior.stationary)
    other = oracle.largest_sum(losses, target, np.full(length, found.constant), 1, 0)
    assert losses(np.asarray(found.epsilon)).max() <= target + 1e-7
    assert found.total >= other * (1 - (1e-5 if len(matrix) == 2 else 0.03))


def test_where_losses_cannot_be_level_some_entries_get_nothing() -> None:
    """Level losses would need a negative ε; SLSQP finds 2.410345706 for 13 entries."""
    found = allocate(Translation(MarkovChain(ALTERNATING, length=13)), 1.0, objective="total")
    assert found.loss <= 1.0
    assert found.total == pytest.approx(2.4103457060, abs=1e-7)
    assert (np.asarray(found.epsilon) < 1e-9).sum() >= 2
    assert np.asarray(found.epsilon).min() >= 0


@pytest.mark.nightly
@settings(max_examples=25)
@given(
    states=st.integers(2, 3),
    length=st.sampled_from([1, 2, 5, 12, 24]),
    target=st.sampled_from([1e-6, 0.05, 1.0, 30.0, 1e3]),
    seed=st.integers(0, 10**6),
    given_start=st.booleans(),
)
def test_a_profile_is_within_the_target_and_its_sum_at_least_the_constants(
    states: int, length: int, target: float, seed: int, given_start: bool
) -> None:
    (matrix,) = rows(states, seed)
    start = np.random.default_rng(seed).dirichlet([1.0] * states)
    prior = MarkovChain(matrix, start=start if given_start else "stationary", length=length)
    translation = Translation(prior)
    found = allocate(translation, target, objective="total")
    epsilon = np.asarray(found.epsilon)
    assert found.loss <= target
    assert translation.bound(epsilon).value <= max(found.loss, target) * (1 + 1e-12)
    assert (epsilon >= 0).all()
    assert (epsilon <= target).all()
    assert found.total >= length * found.constant * (1 - 1e-12)


@pytest.mark.parametrize(
    "matrix",
    [
        [[0.0, 1.0], [1.0, 0.0]],  # one entry determines all others
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]],
        [[0.5, 0.5], [0.5, 0.5]],  # no entry says anything of another
        [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]],  # periodic
    ],
)
@pytest.mark.parametrize("length", [1, 2, 9])
def test_chains_with_zeros(matrix: list[list[float]], length: int) -> None:
    found = allocate(
        Translation(MarkovChain(np.array(matrix), length=length)), 1.0, objective="total"
    )
    assert found.loss <= 1.0
    assert found.total >= length * found.constant * (1 - 1e-12)
    if matrix[0] == [0.0, 1.0] or (len(matrix) == 3 and matrix[1][2] == 1):
        assert found.total == pytest.approx(1.0, abs=1e-9)
    if matrix[0] == [0.5, 0.5]:
        assert found.total == pytest.approx(length, abs=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize("matrix", [STICKY, ALTERNATING])
def test_two_thousand_entries(matrix: Floats) -> None:
    found = allocate(Translation(MarkovChain(matrix, length=2_000)), 1.0, objective="total")
    assert found.loss <= 1.0
    assert found.total > 2_000 * found.constant
    if matrix is STICKY:
        published = oracle.published_profile(0.9, 2_000, 1.0)
        assert found.total == pytest.approx(sum(published), rel=1e-9)


@pytest.mark.parametrize("target", [1e-300, 1e-30])
def test_next_to_nothing_is_nothing_or_within_it(target: float) -> None:
    for objective in ("least", "total"):
        found = allocate(Translation(MarkovChain(STICKY, length=6)), target, objective=objective)
        assert found.loss <= target
        assert found.total <= 6 * target


def test_an_entry_without_secrets_gets_at_most_the_target() -> None:
    chain = MarkovChain(STICKY, states=("a", "b"), length=5)
    translation = Translation(chain, Secrets(entries=(0,)))
    found = allocate(translation, 1.0, objective="total")
    assert found.loss <= 1.0
    assert found.total >= 5 * found.constant
    assert np.asarray(found.epsilon).max() <= 1.0


def test_independent_people_and_uncertainty() -> None:
    people = Product({"a": MarkovChain(STICKY, length=4), "b": MarkovChain(STICKY, length=3)})
    found = allocate(Translation(people), 1.0, objective="total")
    alone = sum(sum(oracle.published_profile(0.9, length, 1.0)) for length in (4, 3))
    assert found.loss <= 1.0
    assert found.total == pytest.approx(alone, rel=1e-6)
    unsure = allocate(
        Translation(MarkovChain(STICKY, length=4), uncertainty=0.1), 1.0, objective="total"
    )
    room = 1.0 - np.log(1.1 / 0.9)
    assert unsure.loss <= 1.0
    assert unsure.total == pytest.approx(sum(oracle.published_profile(0.9, 4, room)), rel=1e-6)


def test_entries_of_an_independent_table_get_all_of_it() -> None:
    prior = IndependentEntries({"a": {"x": 0.5, "y": 0.5}, "b": {"x": 0.1, "y": 0.9}})
    found = allocate(Translation(prior), 1.0, objective="total")
    assert found.loss <= 1.0
    assert found.total == pytest.approx(2.0, abs=1e-9)


def test_too_many_entries_are_refused() -> None:
    with raises(UnsoundRequest, field="entries"):
        allocate(Translation(MarkovChain(STICKY, length=6_000)), 1.0, objective="total")


@pytest.mark.parametrize(("uncertainty", "target"), [(0.05, 0.1), (0.2, 0.4), (0.2, 1e-9)])
def test_a_target_below_the_uncertainty_leaves_the_constant(
    uncertainty: float, target: float
) -> None:
    chain = MarkovChain(np.array([[0.3, 0.7], [0.45, 0.55]]), length=3)
    found = allocate(Translation(chain, uncertainty=uncertainty), target, objective="total")
    assert found.loss <= target and found.epsilon.sum() >= 3 * found.constant


def test_where_single_entries_have_no_loss_of_their_own_the_constant_is_kept() -> None:
    middle = np.array([[0.8, 0.2], [0.2, 0.8]])
    chain = IntervalMarkovChain(middle - 0.05, middle + 0.05, length=4)
    translation = Translation(chain)
    assert translation.bound(np.full(4, 0.1), "transport").by_entry is None
    found = allocate(translation, 1.0, objective="total")
    assert found.constant == translation.to_dp(1.0) < 0.5
    assert found.loss == translation.to_pufferfish(found.constant) > 0.99
    assert found.epsilon.tolist() == [found.constant] * 4
