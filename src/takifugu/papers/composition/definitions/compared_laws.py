"""What a world compares, in fractions: the law of the data given each side of a secret pair."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from takifugu.finite.world import World

Law = Mapping[int, Fraction]  # dataset -> probability, without those that are impossible


@dataclass(frozen=True)
class ComparedLaws:
    """The law of the data given either side of a pair, under one prior.

    Attributes:
        pair: The position of the pair in its world.
        prior: The position of the prior.
        left: P(D | left side).
        right: P(D | right side).
    """

    pair: int
    prior: int
    left: Law
    right: Law

    @property
    def single(self) -> tuple[int, int] | None:
        """The two datasets, if there is one on either side; else None."""
        if len(self.left) == len(self.right) == 1:
            return next(iter(self.left)), next(iter(self.right))
        return None


def compared_laws(world: World) -> tuple[ComparedLaws, ...]:
    """Every pair under every prior that allows both of its sides, in order.

    The probabilities of a prior count as the fractions that their floats are.
    """
    found = []
    for k, prior in enumerate(world.listed_priors):
        weights = [Fraction(p) for p in prior.probability.tolist()]
        laws = {}
        for secret in world.secrets:
            inside = {int(d): weights[d] for d in world.mask(secret).nonzero()[0] if weights[d]}
            total = sum(inside.values(), Fraction(0))
            laws[secret] = {d: w / total for d, w in inside.items()}
        for p, pair in enumerate(world.pairs):
            left, right = laws[pair.left], laws[pair.right]
            if left and right:
                found.append(ComparedLaws(p, k, left, right))
    return tuple(found)
