"""Influence curves of chains by hour of the day, by the chain that begins at hour 0.

The entries of an entity that begins at hour h are entries of one chain Z
(`takifugu.priors.time_of_day.TimeOfDayChain`), of which it shows T. A mechanism on them is one on Z
that reads no other entry, so that every point of the curve of Z, as long as any entity needs, is
one of theirs: b entries exposed, the rest leaks at most a(b). All T of them exposed leak nothing.
The curve is an upper bound: a curve for each hour would be below it.
"""

from dataclasses import replace

import numpy as np

from takifugu.influence.chain.chain_curves import chain_curve
from takifugu.influence.chain.curve_request import entry_time
from takifugu.influence.curve import InfluenceCurve
from takifugu.priors.secrets import Secrets
from takifugu.priors.time_of_day import TimeOfDayChain


def time_of_day_curve(
    prior: TimeOfDayChain, secrets: Secrets, *, max_exposed: int | None = None
) -> InfluenceCurve:
    """The curve for entities that begin at any hour: an upper bound at every point."""
    length, hours = prior.entries, prior.hours
    if secrets.entries is not None:
        named = [entry_time(entry, length) for entry in secrets.entries]
        later = {i + h for i in named for h in range(hours)}
        secrets = replace(secrets, entries=tuple(sorted(later)))
    found = chain_curve(prior.days_of(length + hours - 1), secrets, max_exposed=max_exposed)
    kept = np.flatnonzero(found.exposed < length)
    leak = found.leak[:, kept]
    return InfluenceCurve(
        exposed=np.append(found.exposed[kept], length),
        leak=np.concatenate([leak, np.zeros((len(leak), 1))], axis=1),
        entries=length,
        pairs=found.pairs,
        exact=np.zeros((len(leak), len(kept) + 1), dtype=bool),
    )
