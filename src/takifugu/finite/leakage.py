"""How far one output moves the odds: the Pufferfish loss of a mechanism, exactly."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from takifugu.errors import InvalidWorld
from takifugu.finite.mechanism import Mechanism
from takifugu.finite.world import World
from takifugu.numeric import Floats, frozen, gamma, log_ratio_up
from takifugu.priors.explicit import same_universe
from takifugu.priors.secrets import SecretPair


@dataclass(frozen=True)
class Worst:
    """Where the loss is largest: this pair, under this prior, when this output is seen."""

    pair: SecretPair
    prior: str
    output: Hashable


@dataclass(frozen=True, eq=False)
class Leakage:
    """The Pufferfish loss of a mechanism in a world (the paper, Definition 5).

    Attributes:
        epsilon: The loss ε, at least 0: an upper bound, above the exact value by at most `slack`.
        slack: How far rounding may have raised ``epsilon``; 0 when it is infinite.
        worst: The pair, prior and output that attain it.
        table: ``[pair, prior, output]``: log P(ω|s)/P(ω|s′), rounded up; −∞ where the output
            cannot happen under s or the pair is left out for that prior; +∞ where it can happen
            under s only.
    """

    epsilon: float
    slack: float
    worst: Worst
    table: Floats

    def by_pair(self) -> Floats:
        """``[pair]``: the loss of every ordered pair on its own, at least 0."""
        losses: Floats = np.maximum(self.table.max(axis=(1, 2)), 0.0)
        return losses


def leakage(world: World, mechanism: Mechanism) -> Leakage:
    """The Pufferfish loss of one run of ``mechanism`` against a list of priors."""
    same_world(world, mechanism)
    joint = _joint(world, mechanism)  # [secret, prior, output]
    error = gamma(len(world.universe) + 2)
    left = [pair[0] for pair in world.sides]
    right = [pair[1] for pair in world.sides]
    chance = world.chances.T[:, :, None]  # [secret, prior, 1]
    with np.errstate(invalid="ignore"):
        given = np.where(chance > 0, joint / np.where(chance > 0, chance, 1.0), 0.0)
    table = log_ratio_up(given[left], given[right], error=2 * error)
    possible = (chance[left] > 0) & (chance[right] > 0)
    table = frozen(np.where(possible, table, -np.inf))
    place = np.unravel_index(int(np.argmax(table)), table.shape)
    epsilon = max(float(table[place]), 0.0)
    slack = 0.0 if np.isinf(epsilon) else _slack(given, error)
    worst = Worst(
        world.pairs[int(place[0])],
        world.listed_priors[int(place[1])].name,
        mechanism.outputs[int(place[2])],
    )
    return Leakage(epsilon, slack, worst, table)


def same_world(world: World, mechanism: Mechanism) -> None:
    """Refuse a mechanism that speaks of other datasets than the world does."""
    if not same_universe(world.universe, mechanism):
        raise InvalidWorld(
            "mechanism",
            given=f"{mechanism.name!r} is over other datasets than the world",
            needed="have a row for each of the world's datasets, in their order",
        )


def _joint(world: World, mechanism: Mechanism) -> Floats:
    """``[secret, prior, output]``: P(s, M(D) = ω | θ), summing only where the secret is true."""
    shape = (len(world.secrets), len(world.listed_priors), len(mechanism.outputs))
    joint = np.empty(shape)
    for s, secret in enumerate(world.secrets):
        rows = np.flatnonzero(world.mask(secret))
        np.matmul(world.weights[:, rows], mechanism.likelihood[rows], out=joint[s])
    return joint


def _slack(given: Floats, error: float) -> float:
    """A bound on what `log_ratio_up` added to any finite value."""
    least = float(given[given > 0].min(initial=1.0))
    return 2 * float(4 * error / (1 - 2 * error) + 2.0**-49 * (1 - np.log(least)))
