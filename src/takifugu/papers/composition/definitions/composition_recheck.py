"""The losses of mechanisms again, from the definition alone: a check that shares no search.

Everything is read off the world itself: each prior's own numbers, each secret's own statement about
each dataset, every sequence of outputs in every order.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import inf

from takifugu.finite.world import World
from takifugu.papers.composition.collapse.exact_loss import Exact


def odds_of_runs(world: World, rows: Sequence[Sequence[Fraction]], runs: int) -> Exact:
    """e^ε of ``runs`` runs of the mechanism with P(ω|D) = ``rows[D][ω]``; exact."""
    return odds_together(world, [rows] * runs)


def odds_together(world: World, mechanisms: Sequence[Sequence[Sequence[Fraction]]]) -> Exact:
    """e^ε of one run of each mechanism, P(ω|D) = ``mechanisms[i][D][ω]``, seen together; exact.

    For every pair, prior and sequence of outputs the two conditional probabilities are added up
    dataset by dataset and compared.
    """
    if any(sum(row) != 1 or min(row) < 0 for rows in mechanisms for row in rows):
        raise ValueError("every row of a mechanism must be a distribution")
    largest: Exact = Fraction(1)
    truth = {
        secret: secret.mask(world.universe).tolist()
        for pair in world.pairs
        for secret in (pair.left, pair.right)
    }
    for sequence in product(*(range(len(rows[0])) for rows in mechanisms)):
        likelihood = []
        for dataset in range(len(world.universe)):
            value = Fraction(1)
            for rows, output in zip(mechanisms, sequence, strict=True):
                value *= rows[dataset][output]
            likelihood.append(value)
        for prior in world.listed_priors:
            probability = list(map(Fraction, prior.probability.tolist()))
            given = {}
            for secret, holds in truth.items():
                mass = seen = Fraction(0)
                for true, p, value in zip(holds, probability, likelihood, strict=True):
                    if true:
                        mass += p
                        seen += p * value
                given[secret] = seen / mass if mass else None
            for pair in world.pairs:
                left, right = given[pair.left], given[pair.right]
                if left is None or right is None or left == 0:
                    continue
                largest = max(largest, left / right if right else inf)
    return largest
