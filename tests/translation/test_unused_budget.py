"""An allowance keeps its budget, and leaves at most a millionth of it unused.

Bounds that jump leave more, and none of them is found by a search: a table allows the last point of
its grid (`TranslationTable`, and `TabledTranslation` within it), 2 % apart by default.
"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.costs.cost import Cost, Membership
from takifugu.influence import InfluenceCurve
from takifugu.priors import (
    HigherOrderChain,
    IntervalMarkovChain,
    MarkovChain,
    MarkovRandomField,
    Prior,
    Secrets,
    TimeOfDayChain,
)
from takifugu.translation import CurveTranslation, LossTranslation, Translation, tabulate
from tests.priors.families import PRIORS, secrets_of

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


@pytest.mark.costly
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


@pytest.mark.nightly
def test_a_table_allows_a_point_of_its_grid_and_not_the_next() -> None:
    translation = Translation(MORE["five states"])
    table = tabulate(translation, losses=(0.5, 1.5), share=0.1)
    allowed = float(table.to_dp(1.0))
    assert allowed in table.epsilon
    assert float(table.to_pufferfish(allowed)) <= 1.0
    assert float(table.to_pufferfish(allowed * (1 + UNUSED))) > 1.0
    assert allowed >= float(translation.to_dp(1.0)) / 1.1
