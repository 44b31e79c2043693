"""The curve of a chain beside the leaks that an oracle finds, entry by entry."""

from collections.abc import Iterator
from typing import Any

from takifugu.influence import InfluenceCurve, chain_curve
from takifugu.priors import MarkovChain, Secrets
from tests.oracles import extremes as oracle


def chain_points(
    chain: MarkovChain, entries: Any, sides: Any, most: int
) -> Iterator[tuple[int, InfluenceCurve, int, Any]]:
    """Entry, curve, row of the curve and what really leaks, of every pair that can happen."""
    size = chain.length or 0
    steps = oracle.powers(chain.transition, min(most + 1, size))
    laws = oracle.chain_laws(chain.start, chain.transition, size)
    for entry in entries:
        for left, right in sides:
            if not all(sum(laws[entry][x] for x in side) > 0 for side in (left, right)):
                continue  # one side cannot happen there
            secrets = Secrets(entries=(entry,), pairs=((left, right),))
            curve = chain_curve(chain, secrets, max_exposed=most)
            name = "|".join(map(str, left)) + " / " + "|".join(map(str, right))
            seen = min(most, size - 1)
            truths = oracle.interval_leaks(steps, laws, entry, (left, right), seen, size)
            yield entry, curve, curve.pairs.index(name), truths
