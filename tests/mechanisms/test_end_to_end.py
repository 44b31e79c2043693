"""From a chain and a Pufferfish ε to a mechanism, and its exact leakage back: never above ε.

The chains are written out in full, the curve tries every split, and the leakage is the definition.
`exact_leakage` is the hook for tests of tightness by better translations.
"""

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from takifugu.finite import FiniteMechanism, World, leakage
from takifugu.influence.explicit_curves import explicit_curve
from takifugu.mechanisms import (
    COUNT,
    Exponential,
    FiniteChannel,
    IntegerLaplace,
    PermuteAndFlip,
    RandomisedResponse,
)
from takifugu.papers.composition.baselines.algorithms import (
    PufferfishExponential,
    PufferfishLaplace,
)
from takifugu.priors.explicit import Explicit
from takifugu.priors.secrets import entry_pairs
from takifugu.priors.universe import Tables
from takifugu.translation.curve_translation import CurveTranslation
from takifugu.translation.protocol import LossTranslation
from tests.oracles import noise as oracle

LENGTH = 5
Output = Mapping[Hashable, float]


def chain(stay: Sequence[float]) -> World:
    """A binary stationary chain, state s staying with probability ``stay[s]``, written out."""
    universe = Tables.bits(LENGTH)
    leave = [1 - p for p in stay]
    rest = [leave[1] / sum(leave), leave[0] / sum(leave)]
    law = []
    for path in product((0, 1), repeat=LENGTH):
        p = rest[path[0]]
        for a, b in pairwise(path):
            p *= stay[a] if a == b else leave[a]
        law.append(p)
    prior = Explicit(universe, np.array(law), "chain")
    return World(universe, (prior,), entry_pairs(universe))


def answer(mechanism: Any, path: Sequence[int]) -> Output:
    """The exact law of what a mechanism says of a path, from the oracle's formulas alone."""
    ones = sum(path)
    match mechanism:
        case RandomisedResponse(truth=truth):
            law: dict[Hashable, float] = {}
            for said in product((0, 1), repeat=len(path)):
                p = 1.0
                for true, claim in zip(path, said, strict=True):
                    p *= truth if true == claim else 1 - truth
                law[said] = p
            return law
        case PermuteAndFlip(scale=scale):
            return dict(enumerate(oracle.permute_and_flip([len(path) - ones, ones], scale)))
        case Exponential(scale=scale):
            return dict(enumerate(oracle.softmax([len(path) - ones, ones], scale)))
        case PufferfishExponential(selection=selection):
            return answer(selection, path)
        case IntegerLaplace(scale=scale):  # cut off to 0 … n, which is free
            law = {}
            for z in range(-400, 401):
                seen = min(max(ones + z, 0), len(path))
                law[seen] = law.get(seen, 0.0) + oracle.laplace(scale, z)
            return law
        case PufferfishLaplace(noise=noise):
            return answer(noise, path)
    raise AssertionError(mechanism)


def exact_leakage(world: World, mechanism: Any) -> float:
    """The Pufferfish loss of a mechanism in a world, by Definition 5, less what was rounded up."""
    channel = FiniteMechanism.from_function(world.universe, lambda path: answer(mechanism, path))
    found = leakage(world, channel)
    return found.epsilon - found.slack


def calibrated(kind: str, epsilon: float, translation: LossTranslation) -> Any:
    asked: dict[str, Any] = {"epsilon": epsilon, "translation": translation}
    match kind:
        case "response":
            return RandomisedResponse.calibrated(**asked, categories=(0, 1))
        case "flip":
            return PermuteAndFlip.calibrated(**asked)
        case "exponential":
            return Exponential.calibrated(**asked)
        case "count":
            return IntegerLaplace.calibrated(**asked, sensitivity=COUNT)
        case "algorithm 1":
            return PufferfishLaplace.of(translation, epsilon=epsilon)
        case "algorithm 2":
            return PufferfishExponential.of(translation, epsilon=epsilon)
    raise AssertionError(kind)


KINDS = ["response", "flip", "exponential", "count", "algorithm 1", "algorithm 2"]
CHAINS = {"sticky": (0.9, 0.9), "uneven": (0.6, 0.8), "flipping": (0.2, 0.3), "fair": (0.5, 0.5)}
WORLDS = {name: chain(stay) for name, stay in CHAINS.items()}
CURVES = {name: CurveTranslation(explicit_curve(w)) for name, w in WORLDS.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", list(CHAINS))
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_exact_leakage_is_at_most_the_epsilon_asked_for(
    kind: str, name: str, epsilon: float
) -> None:
    mechanism = calibrated(kind, epsilon, CURVES[name])
    assert exact_leakage(WORLDS[name], mechanism) <= epsilon


def test_noise_for_independent_entries_leaks_more_on_a_sticky_chain() -> None:
    """The check above can fail: per-entry ε = 1 is far more than Pufferfish ε = 1 here."""
    free = RandomisedResponse.within(1.0, categories=(0, 1))
    assert exact_leakage(WORLDS["fair"], free) <= 1.0
    assert exact_leakage(WORLDS["sticky"], free) > 2.0


def test_without_correlation_nothing_is_lost() -> None:
    mechanism = calibrated("response", 1.0, CURVES["fair"])
    assert exact_leakage(WORLDS["fair"], mechanism) > 0.999


def test_a_channel_brought_by_a_user_is_priced_per_entry_as_its_twin() -> None:
    response = RandomisedResponse((0, 1), 0.75)
    world = WORLDS["uneven"]
    channel = FiniteMechanism.from_function(world.universe, lambda path: answer(response, path))
    assert float(FiniteChannel(channel).loss.epsilon) == pytest.approx(
        float(response.loss.epsilon), abs=1e-12
    )
    assert leakage(world, channel).epsilon <= float(
        CURVES["uneven"].to_pufferfish(float(FiniteChannel(channel).loss.epsilon))
    )
