"""Curves of older definitions, and operations on curves: uncertainty, union."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from takifugu._core.numeric import distinct
from takifugu.errors import UnsoundRequest
from takifugu.influence.curve import InfluenceCurve, Splits
from takifugu.influence.rounded_ratios import curve_loss_up, uncertainty_shift


def per_entry(entries: int | None = None) -> InfluenceCurve:
    """Entries are independent: exposing one is enough (per-entry DP as a curve)."""
    return InfluenceCurve(
        exposed=np.array([1]), leak=np.zeros((1, 1)), entries=entries, pairs=("independent",)
    )


def group(entries: int, *, records: int | None = None, attributes: int = 1) -> InfluenceCurve:
    """Groups of ``records`` records of ``attributes`` entries; by default all entries at once."""
    size = entries if records is None else records * attributes
    if not 1 <= size <= entries:
        raise UnsoundRequest(
            f"a group of {size} entries needs between 1 and {entries} of them",
            field="records",
            given=size,
            needed=entries,
        )
    return InfluenceCurve(
        exposed=np.array([size]),
        leak=np.zeros((1, 1)),
        entries=entries,
        pairs=(f"groups of {size}",),
    )


def dependent(most: int, *, entries: int | None = None) -> InfluenceCurve:
    """Dependent DP: an entry depends on at most ``most`` − 1 others (Liu et al., 2016)."""
    if most < 1:
        raise UnsoundRequest(
            f"an entry depends at least on itself; {most} was given",
            field="most",
            given=most,
            needed=1,
        )
    return InfluenceCurve(
        exposed=np.array([most]), leak=np.zeros((1, 1)), entries=entries, pairs=("dependent",)
    )


def uncertain(curve: InfluenceCurve, *, relative: float) -> InfluenceCurve:
    """The curve when every P(x_L | s) may be off by a factor of 1 ± ``relative``.

    u/l = (1+r)/(1−r) times the assumed ratio, so log((1+r)/(1−r)) is added wherever L is not
    empty; with all entries exposed nothing is left to be wrong about (the paper, §6.3.2).
    """
    if not 0 <= relative < 1:  # also false for NaN
        raise UnsoundRequest(
            f"uncertainty is {relative}; it must be at least 0 and below 1",
            field="relative",
            given=relative,
        )
    shift = uncertainty_shift(relative)
    whole = curve.exposed == curve.entries if curve.entries is not None else np.array(False)
    return InfluenceCurve(
        exposed=curve.exposed,
        leak=np.where(
            whole, curve.leak, curve_loss_up(shift, curve.leak) if relative else curve.leak
        ),
        entries=curve.entries,
        pairs=curve.pairs,
        exact=curve.exact if not relative else np.broadcast_to(whole, curve.leak.shape),
        splits=curve.splits,
    )


def union(curves: Mapping[str, InfluenceCurve]) -> InfluenceCurve:
    """One curve for a set of priors, each with its own curve: their rows, side by side.

    Pufferfish asks for each prior separately, so each may use its own best split; the rows keep
    the name of their prior. Between the points of a curve its last point still holds.
    """
    if not curves:
        raise UnsoundRequest("a union needs at least one curve", field="curves")
    sizes = {curve.entries for curve in curves.values()}
    if len(sizes) > 1:
        raise UnsoundRequest(
            f"curves over different numbers of entries: {sorted(map(str, sizes))}",
            field="curves",
            given=sizes,
        )
    exposed = distinct(np.concatenate([curve.exposed for curve in curves.values()]))
    leak, exact, pairs, places = [], [], [], []
    for name, curve in curves.items():
        at = np.searchsorted(curve.exposed, exposed, side="right") - 1
        leak.append(np.where(at >= 0, curve.leak[:, at], np.inf))
        exact.append(curve.exact[:, at] & np.isin(exposed, curve.exposed))
        pairs += [f"{name}: {pair}" for pair in curve.pairs]
        places += [(curve.splits, row, at) for row in range(len(curve.pairs))]
    return InfluenceCurve(
        exposed=exposed,
        leak=np.concatenate(leak),
        entries=sizes.pop(),
        pairs=tuple(pairs),
        exact=np.concatenate(exact),
        splits=_UnionSplits(tuple(places)),
    )


@dataclass(frozen=True)
class _UnionSplits:
    places: Sequence[tuple[Splits | None, int, Any]]

    def describe(self, pair: int, point: int) -> Mapping[str, Any]:
        splits, row, at = self.places[pair]
        return {} if splits is None or at[point] < 0 else splits.describe(row, int(at[point]))
