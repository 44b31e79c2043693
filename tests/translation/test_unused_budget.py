"""An allowance keeps its budget, and leaves at most a millionth of it unused.

Bounds that jump leave more, and none of them is found by a search: a table allows the last point of
its grid (`TranslationTable`, and `TabledTranslation` within it), 2 % apart by default.
"""

from collections.abc import Callable
from itertools import pairwise
from math import expm1, inf, log, log1p

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.costs import Cost, Membership
from takifugu.errors import UnsoundRequest
from takifugu.influence.curve import InfluenceCurve
from takifugu.priors import (
    HigherOrderChain,
    IntervalMarkovChain,
    MarkovChain,
    MarkovRandomField,
    Prior,
    Secrets,
    TimeOfDayChain,
)
from takifugu.translation import CurveTranslation, Translation
from takifugu.translation.accounting.largest_epsilon import largest_by_bracket, largest_within
from takifugu.translation.accounting.translation_table import tabulate
from takifugu.translation.protocol import LossTranslation
from tests.priors.families import PRIORS, secrets_of
from tests.raising import raises

UNUSED = 1e-6
TARGETS = (0.03, 0.7, 5.0)


def random_rows(*shape: int, seed: int = 0) -> np.ndarray:
    """Laws along the last axis."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.dirichlet(np.ones(shape[-1]), shape[:-1]))


NAMES = tuple("abcdef")
MORE: dict[str, Prior] = {
    "five states": MarkovChain(random_rows(5, 5), length=12),
    "five states, unbounded": MarkovChain(random_rows(5, 5)),
    "five states, given start": MarkovChain(random_rows(5, 5), start=np.full(5, 0.2), length=12),
    "each step its own": MarkovChain(random_rows(6, 3, 3), start=np.full(3, 1 / 3)),
    "two states, unbounded": MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]])),
    "unknown start": MarkovChain(random_rows(3, 3), start="unknown", length=6),
    "known entries": MarkovChain(random_rows(3, 3), known="any", length=6),
    "intervals, three states": IntervalMarkovChain.around(
        MarkovChain(random_rows(3, 3), length=8), relative=0.05
    ),
    "second order": HigherOrderChain(random_rows(3, 3, 3), length=8),
    "by hour": TimeOfDayChain(random_rows(4, 3, 3), length=6),
    "a field": MarkovRandomField.ising(
        {name: 0.1 * k for k, name in enumerate(NAMES)},
        {
            (a, b): 0.3 if (i + j) % 2 else -0.2
            for i, a in enumerate(NAMES)
            for j, b in enumerate(NAMES[:i])
        },
    ),
    "an attractive field": MarkovRandomField.ising(
        dict.fromkeys(NAMES, 0.1), dict.fromkeys(pairwise(NAMES), 0.4)
    ),
}
TRANSLATIONS: dict[str, LossTranslation] = {
    **{
        f"{type(prior).__name__} {k}": Translation(prior, secrets_of(prior))
        for k, prior in enumerate(PRIORS)
    },
    **{name: Translation(prior) for name, prior in MORE.items()},
    "groups of values": Translation(
        MarkovChain(random_rows(4, 4), states=("a", "b", "c", "d"), length=8),
        Secrets(pairs=((("a", "b"), ("c", "d")),)),
    ),
    "several priors": Translation(
        [MORE["five states"], MarkovChain(random_rows(5, 5, seed=2), length=12)]
    ),
    "uncertain": Translation(MORE["five states"], uncertainty=0.01),
    "a curve": CurveTranslation(
        InfluenceCurve(np.array([1, 3, 9]), np.array([[2.0, 0.5, 0.0]]), entries=9)
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", TRANSLATIONS)
def test_an_allowance_keeps_its_budget_and_uses_it(name: str) -> None:
    translation = TRANSLATIONS[name]
    for target in TARGETS:
        allowed = float(translation.to_dp(target))
        if allowed == 0:  # the uncertainty alone is more
            assert float(translation.to_pufferfish(1e-9 * target)) > target
            continue
        loss = float(translation.to_pufferfish(allowed))
        assert loss <= target
        more = float(translation.to_pufferfish(allowed * (1 + UNUSED)))
        assert more > target or loss >= target * (1 - UNUSED)


@settings(max_examples=30)
@given(
    states=st.integers(2, 4),
    seed=st.integers(0, 10**6),
    target=st.floats(0.01, 20.0),
    length=st.sampled_from([1, 2, 9, None]),
)
def test_any_chain_uses_its_budget(
    states: int, seed: int, target: float, length: int | None
) -> None:
    rows = 0.95 * random_rows(states, states, seed=seed) + 0.05 / states
    translation = Translation(MarkovChain(rows, length=length))
    allowed = float(translation.to_dp(target))
    loss = float(translation.to_pufferfish(allowed))
    assert 0 < loss <= target
    more = float(translation.to_pufferfish(allowed * (1 + UNUSED)))
    assert more > target or loss >= target * (1 - UNUSED)


@pytest.mark.parametrize("target", TARGETS)
def test_a_factor_of_a_cost_uses_its_budget(target: float) -> None:
    chain = MarkovChain(random_rows(3, 3), states=("a", "b", "c"), length=6)
    translation = Translation(chain)
    count = Cost.of({Membership(["a"]): "1"})
    for spent in (Cost.any(0), Cost.of({Membership(["b"]): "0.01"})):
        factor = translation.to_cost(count, target, spent=(spent,))
        loss = translation.cost_to_pufferfish(spent + count * factor)
        more = translation.cost_to_pufferfish(spent + count * (float(factor) * (1 + UNUSED)))
        assert loss <= target
        assert more > target or loss >= target * (1 - UNUSED)


def test_a_table_allows_a_point_of_its_grid_and_not_the_next() -> None:
    translation = Translation(MORE["five states"])
    table = tabulate(translation, losses=(0.5, 1.5), share=0.1)
    allowed = float(table.to_dp(1.0))
    assert allowed in table.epsilon
    assert float(table.to_pufferfish(allowed)) <= 1.0
    assert float(table.to_pufferfish(allowed * (1 + UNUSED))) > 1.0
    assert allowed >= float(translation.to_dp(1.0)) / 1.1


Loss = Callable[[float], float]
SMOOTH: dict[str, Loss] = {
    "proportional": lambda e: 7 * e,
    "a power": lambda e: e + 3 * e**1.4,
    "bends up": lambda e: e + 40 * e**2,
    "bends down": lambda e: e + 2 * log1p(30 * e),
    "saturates": lambda e: (
        e + log((1 + 0.9 * expm1(min(e, 600.0))) / (1 + 0.1 * expm1(min(e, 600.0))))
    ),
    "steep and then flat": lambda e: e + 5 * e / (e + 0.01),
    "begins above nothing": lambda e: 0.001 + 2 * e,
}


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("target", [0.01, 1.0, 60.0, 1e6])
def test_a_smooth_loss_takes_few_evaluations(name: str, target: float) -> None:
    tried: list[float] = []

    def loss(epsilon: float) -> float:
        tried.append(epsilon)
        return SMOOTH[name](epsilon)

    found = largest_within(loss, target)
    assert found in tried
    assert target * (1 - UNUSED) <= SMOOTH[name](found) <= target
    assert len(tried) <= 14
    assert all(0 < epsilon <= target for epsilon in tried)
    bracketed = largest_by_bracket(SMOOTH[name], target)
    assert found == pytest.approx(bracketed, rel=1e-4)
    assert found <= bracketed * (1 + 1e-9)


@pytest.mark.parametrize("after", [1e-3, 3.0, inf])
@pytest.mark.parametrize("at", [1e-7, 0.01, 0.3])
def test_a_loss_that_jumps_is_followed_to_its_jump(at: float, after: float) -> None:
    """Where the target lies within the jump, no ε above it fits."""

    def loss(epsilon: float) -> float:
        return 1.5 * epsilon if epsilon < at else 1.0 + after + epsilon

    found = largest_within(loss, 1.0)
    assert at * (1 - 1e-3) <= found < at


def test_noise_in_a_loss_does_not_keep_a_search_going() -> None:
    rng = np.random.default_rng(0)
    tried: list[tuple[float, float]] = []

    def loss(epsilon: float) -> float:
        tried.append((epsilon, 4 * epsilon * (1 + 1e-4 * rng.random())))
        return tried[-1][1]

    found = largest_within(loss, 1.0)
    assert dict(tried)[found] <= 1.0
    assert found >= 0.25 * (1 - 1e-3)
    assert len(tried) <= 12


def test_nothing_fits() -> None:
    assert largest_within(lambda _: inf, 1.0) == 0.0
    assert largest_within(lambda e: 2 + e, 1.0) == 0.0
    assert largest_within(lambda e: e, 0.0) == 0.0
    for target in (-1.0, inf, float("nan")):
        with raises(UnsoundRequest, field="target"):
            largest_within(lambda e: e, target)
