"""Exact influence curves of small priors that are written out, by trying every split."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.errors import InvalidWorld, TooLarge
from takifugu.finite.world import World
from takifugu.influence.curve import ExposedSets, InfluenceCurve
from takifugu.influence.rounded_ratios import sums_ratio_up
from takifugu.priors.universe import Name, Tables

MAX_SPLIT_ENTRIES = 14


@dataclass(frozen=True)
class Uncertainty:
    """Bounds l ≤ P*(x_L | s) ≤ u on the true law, from the assumed P(x_L | s) (the paper, §6.3.2).

    Both are functions of the array of assumed probabilities; `relative` is the paper's "20 %".
    """

    lower: Callable[[Floats], Floats]
    upper: Callable[[Floats], Floats]

    @classmethod
    def relative(cls, error: float) -> "Uncertainty":
        """Every joint probability P(x_L | s) may be off by a factor of 1 ± ``error``."""
        if not 0 <= error < 1:
            raise InvalidWorld(
                "uncertainty", given=f"is {error}", needed="be at least 0 and below 1"
            )
        return cls(lambda p: (1 - error) * p, lambda p: (1 + error) * p)


def explicit_curve(world: World, *, uncertainty: Uncertainty | None = None) -> InfluenceCurve:
    """a*(b) of every ordered pair of a world over tables, over all 2^|I| splits.

    The guarantee for the ordered pair (s, s′) needs log P(x_L|s)/P(x_L|s′) only, not its absolute
    value, which the paper's Definition 6 takes; the reverse pair stands in a row of its own. Every
    prior of the world has rows of its own: a guarantee that holds for each prior with its own best
    split holds for all.
    """
    if not isinstance(world.universe, Tables):
        raise InvalidWorld("world", given="is not over tables", needed="have entries to split")
    n = len(world.universe.entries)
    if n > MAX_SPLIT_ENTRIES:
        raise TooLarge(
            f"a world of {n} entries has 2^{n} splits; this curve tries them all, for at most"
            f" {MAX_SPLIT_ENTRIES} entries",
            field="world",
            size=n,
            limit=MAX_SPLIT_ENTRIES,
        )
    rows: list[Floats] = []
    members: list[tuple[tuple[Name, ...], ...]] = []
    names: list[str] = []
    for k, prior in enumerate(world.listed_priors):
        label = f"{prior.name}: " if len(world.listed_priors) > 1 else ""
        for pair, (s, t) in zip(world.pairs, world.sides, strict=True):
            if world.secret_probabilities[k, s] == 0 or world.secret_probabilities[k, t] == 0:
                continue
            left, right = world.conditional(k, pair.left), world.conditional(k, pair.right)
            leak, splits = _best_splits(world.universe, left, right, uncertainty)
            rows.append(leak)
            members.append(splits)
            names.append(f"{label}{pair}")
    if not rows:
        raise InvalidWorld("pairs", given="are all impossible", needed="have one that can occur")
    return InfluenceCurve(
        exposed=np.arange(1, n + 1),
        leak=np.stack(rows),
        entries=n,
        pairs=tuple(names),
        exact=np.array(uncertainty is None),
        splits=ExposedSets(members),
    )


def _best_splits(
    universe: Tables,
    left: Floats,
    right: Floats,
    uncertainty: Uncertainty | None,
) -> tuple[Floats, tuple[tuple[Name, ...], ...]]:
    """The least leak for every b, and the exposed entries that attain it."""
    n = len(universe.entries)
    best: float = np.inf
    chosen: tuple[int, ...] = ()
    leak, splits = np.empty(n), []
    for b in range(1, n + 1):
        for exposed in combinations(range(n), b):
            value = _leak(universe, left, right, exposed, uncertainty)
            if value < best or not chosen:
                best, chosen = value, exposed
        leak[b - 1] = best
        splits.append(tuple(universe.entries[j] for j in chosen))
    return leak, tuple(splits)


def _leak(
    universe: Tables,
    left: Floats,
    right: Floats,
    exposed: Sequence[int],
    uncertainty: Uncertainty | None,
) -> float:
    """The largest log P(x_L|s)/P(x_L|s′) over x_L, at least 0; 0 when L is empty."""
    if len(exposed) == len(universe.entries):
        return 0.0
    p = left.reshape(universe.shape).sum(axis=tuple(exposed))
    q = right.reshape(universe.shape).sum(axis=tuple(exposed))
    if uncertainty is not None:
        p, q = uncertainty.upper(p), uncertainty.lower(q)
    return max(float(sums_ratio_up(p, q, roundings=len(universe) + 8).max()), 0.0)
