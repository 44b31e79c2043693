"""Influence curves beside a*(b) from its definition, in 60 digits, over every set of entries.

The instances of `tests/extremes/instances.py`: probabilities down to 2⁻⁵⁰⁰, weights from 1e-150 to
1e150, deterministic and periodic rows.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import mpmath
import numpy as np

from takifugu.influence import InfluenceCurve
from takifugu.influence.chain.interval_curves import interval_chain_curve
from takifugu.influence.network.attractive_curves import attractive_curve
from takifugu.influence.network.network_curves import network_curve
from takifugu.priors import MarkovChain, Secrets
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.networks import NetworkPrior
from takifugu.priors.secrets import EntryIs, SecretPair
from tests.extremes import instances
from tests.extremes.chain_points import chain_points
from tests.oracles import extremes as oracle
from torture.oracles.comparison import Compared, Family, Instance, Rng
from torture.oracles.extreme_draws import length

FAR = 3  # exposed entries of a long chain
FEW = 5  # exposed entries of a chain within intervals
IMPOSSIBLE = oracle.NEVER
LEAST_EXACT = 5e-4  # where "exact" is said of a leak that is smaller, it is judged all the same
ROUNDING = mpmath.mpf("1e-50")  # of a logarithm of sums in 60 digits


def _draw(rng: Rng) -> Instance:
    return {"seed": int(rng.integers(2**53))}


def _rng(instance: Instance) -> Rng:
    return np.random.default_rng(instance["seed"])


def _points(
    curve: InfluenceCurve, row: int, truths: list[Any], where: str = ""
) -> Iterator[Compared]:
    """One row of a curve: each point beside the truth."""
    exact, pooled = np.broadcast_to(curve.exact, curve.leak.shape), curve.points()
    for k, (b, bound) in enumerate(zip(curve.exposed.tolist(), curve.leak[row], strict=True)):
        if b > len(truths):
            return
        truth = truths[b - 1]
        if truth == IMPOSSIBLE:
            return
        told = pooled[k].exact and pooled[k].secret == curve.pairs[row]
        said = bool(exact[row, k]) or told if bound > LEAST_EXACT or told else None
        yield Compared(
            f"{where}{curve.pairs[row]}, {b} exposed",
            *(float(bound), max(truth - ROUNDING, mpmath.mpf(0)), truth + ROUNDING),
            exact=said if truth < mpmath.inf else None,
            bounded=False,
        )


def network(instance: Instance) -> NetworkPrior:
    """A network or a field."""
    rng = _rng(instance)
    return instances.network(rng) if rng.integers(2) else instances.field(rng)


def attractive(instance: Instance) -> NetworkPrior:
    """An attractive field."""
    return instances.attractive(_rng(instance))


def _networks(instance: Instance) -> Iterator[Compared]:
    model = network(instance)
    yield from _model(model, network_curve(model, largest=3))


def _attractive(instance: Instance) -> Iterator[Compared]:
    model = attractive(instance)
    yield from _model(model, attractive_curve(model, largest=3))


def _model(model: Any, curve: InfluenceCurve) -> Iterator[Compared]:
    sizes, tables = instances.tables(model)
    law = oracle.law(sizes, tables)
    row_of = {pair: k for k, pair in enumerate(curve.pairs)}
    for entry in range(len(sizes)):
        for left, right in Secrets().sides(model.states[entry]):
            truths = oracle.leaks(law, len(sizes), entry, left, right)
            if truths is None:
                continue
            one, other = (
                EntryIs(model.entries[entry], tuple(model.states[entry][v] for v in side))
                for side in (left, right)
            )
            yield from _points(curve, row_of[str(SecretPair(one, other))], truths)


ChainQuestions = tuple[MarkovChain, Sequence[int], list[Any], int]


def short_chain(instance: Instance) -> ChainQuestions:
    """A chain, entries, pairs of sides, and the most entries that are exposed."""
    rng = _rng(instance)
    size, entries = int(rng.integers(2, 4)), int(rng.integers(2, 6))
    chain = _chain(rng, size, entries)
    sides: list[Any] = [((x,), (y,)) for x, y in permutations(range(size), 2)]
    if size == 3:
        sides += [((0, 1), (2,)), ((2,), (0, 1))]
    return chain, range(entries), sides, entries


def long_chain(instance: Instance) -> ChainQuestions:
    """The same of a longer chain."""
    rng = _rng(instance)
    size, entries = int(rng.integers(2, 4)), length(rng, 10_000 if rng.random() < 0.02 else 500)
    chain = _chain(rng, size, entries)
    sides = [((x,), (y,)) for x, y in permutations(range(size), 2)]
    places = sorted({entries // 2, entries - 1, int(rng.integers(entries))})
    return chain, places, sides, FAR


def _short_chains(instance: Instance) -> Iterator[Compared]:
    yield from _asked(*short_chain(instance))


def _long_chains(instance: Instance) -> Iterator[Compared]:
    yield from _asked(*long_chain(instance))


def _chain(rng: Rng, size: int, entries: int) -> MarkovChain:
    start = instances.row(size, rng)
    return MarkovChain(instances.matrix(size, rng), start=start, length=entries)


def _asked(chain: MarkovChain, entries: Any, sides: Any, most: int) -> Iterator[Compared]:
    for entry, curve, row, truths in chain_points(chain, entries, sides, most):
        yield from _points(curve, row, truths, f"entry {entry}: ")


def intervals(instance: Instance) -> IntervalMarkovChain:
    """The intervals of an instance."""
    return instances.interval_chain(_rng(instance))[0]


def _intervals(instance: Instance) -> Iterator[Compared]:
    """A member of the set, started anywhere, leaks no more than the bound for all of them."""
    rng, most = _rng(instance), FEW
    box, member = instances.interval_chain(rng)
    size = len(member)
    curve = interval_chain_curve(box, max_exposed=most)
    steps = oracle.powers(member, most + 1)
    laws = oracle.chain_laws(instances.row(size, rng), member, 12)
    for x, y in permutations(range(size), 2):
        row = curve.pairs.index(f"{x} / {y}")
        for entry in (0, 1, 6, 7):
            truths = oracle.interval_leaks(steps, laws, entry, ((x,), (y,)), most, 100)
            for one in _points(curve, row, truths, f"entry {entry}: "):
                yield Compared(one.claim, one.upper, one.least, mpmath.inf, bounded=False)


SETS, SIDES = "a*(b) over all sets, 60 digits", "a*(b) over all intervals, 60 digits"
FAMILIES = (
    Family("curve: networks and fields", SETS, _draw, _networks, 1e-45),
    Family("curve: attractive fields", SETS, _draw, _attractive, 1e-45),
    Family("curve: short chains, groups", SIDES, _draw, _short_chains, 1e-45),
    Family("curve: chains, up to 10,000 entries", SIDES, _draw, _long_chains, 1e-45),
    Family("curve: chains within intervals", "one member of the set", _draw, _intervals, 1e-45),
)
