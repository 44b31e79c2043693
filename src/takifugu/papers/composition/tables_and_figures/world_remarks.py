"""In what a world differs from the paper's data, as far as numbers of the tables show it.

Each remark is computed from measured cells and printed numbers; none is a sentence kept by hand.
"""

from collections.abc import Iterator, Sequence
from math import log, sqrt

import numpy as np

from takifugu.papers.composition.experiments.contenders import (
    MAJORITY,
    MQM_SPLIT,
    MQM_VECTOR,
    OURS_EXP,
)
from takifugu.papers.composition.experiments.measurements import Cell
from takifugu.papers.composition.experiments.printed import (
    PrintedCell,
    printed_majority,
    printed_numbers,
)
from takifugu.papers.composition.results import DatasetSummary
from takifugu.papers.composition.tables_and_figures.layout import ACCURACY, RANKING
from takifugu.papers.composition.tables_and_figures.print_agreement import printed_belong

DATASET = {"foursquare": "the Foursquare data", "capture24": "Capture24"}
UNLIKE = 0.2  # Majority this much off: the groups are not like those of the paper's data
SAME_HIT = 0.01  # hit rates this close are called nearly the same


def world_remarks(about: DatasetSummary, cells: Sequence[Cell]) -> tuple[str, ...]:
    """What a synthetic world and the paper's data do not share; nothing for real data."""
    if about.origin != "simulated":
        return ()
    found = [majority_remark(about, cells)]
    if printed_belong(about):
        found += [count_remark(about, cells), scale_remark(about, cells)]
    return tuple(one for one in found if one)


def majority_mean(cells: Sequence[Cell]) -> float | None:
    """The Acc@k of Majority, averaged over the places."""
    found = next((cell for cell in cells if cell.mechanism == MAJORITY), None)
    if found is None:
        return None
    return sum(found.measured[metric.key].mean for metric in ACCURACY) / len(ACCURACY)


def majority_remark(about: DatasetSummary, cells: Sequence[Cell]) -> str:
    """Majority here and in print, and what a large difference means."""
    mean, printed = majority_mean(cells), printed_majority(about.family)
    if mean is None:
        return ""
    said = (
        f"Majority: right in {100 * mean:.2f} % of places here, in {100 * printed:.2f} % in print"
        f" ({DATASET[about.family]})."
    )
    if mean > printed + UNLIKE:
        said += (
            f" In this the world is not like {DATASET[about.family]}: its groups have mostly the"
            " same top labels in the same order."
        )
    return said


def count_remark(about: DatasetSummary, cells: Sequence[Cell]) -> str:
    """Why NDCG and ℓ1 differ: at the same hit rate they are others, so the counts are."""
    pairs = []
    for name in (OURS_EXP, MQM_SPLIT):
        ours = [
            {metric.key: cell.measured[metric.key].mean for metric in RANKING}
            for cell in cells
            if cell.mechanism == name
        ]
        near = [
            (one, other)
            for one in ours
            for other in _printed_rows(about, name)
            if abs(one["hit"] - other["hit"]) <= SAME_HIT
        ]
        if near:
            here, there = min(near, key=lambda pair: pair[1]["hit"])
            pairs.append(f"{name} {_row(here)} here and {_row(there)} in print")
    if not pairs:
        return ""
    return (
        "NDCG and ℓ1 weigh a wrong label by its count, HR does not. At nearly the same HR they"
        f" differ, {'; '.join(pairs)}: how far apart the counts of confused labels are is not as in"
        " the paper's data, and the calibration did not look at it."
    )


def implied_scales(about: DatasetSummary, cells: Sequence[Cell]) -> tuple[float, ...]:
    """The Laplace scale, times ε_DP, with which MQM would have each printed Acc@k and HR here.

    Both readings of MQM add Laplace noise to every count, so that their cells together say what a
    scale gets right; between them the logarithm of the scale is taken as linear.
    """
    found = []
    laplace = [c for c in cells if c.mechanism in (MQM_SPLIT, MQM_VECTOR) and np.isfinite(c.noise)]
    allowed = {(c.uncertain, c.epsilon): c.epsilon_dp for c in laplace if c.mechanism == MQM_SPLIT}
    for metric in (*ACCURACY, RANKING[0]):
        known = sorted((c.measured[metric.key].mean, log(c.noise / sqrt(2))) for c in laplace)
        for number in _printed(about, MQM_SPLIT):
            spent = allowed.get((number.uncertain, number.epsilon))
            if number.metric != metric.key or spent is None:
                continue
            if known[0][0] <= number.value <= known[-1][0]:
                shares, scales = ([pair[place] for pair in known] for place in (0, 1))
                found.append(float(np.exp(np.interp(number.value, shares, scales))) * spent)
    return tuple(found)


def scale_remark(about: DatasetSummary, cells: Sequence[Cell]) -> str:
    """Which reading of MQM the printed columns are nearer to, on this world."""
    found = implied_scales(about, cells)
    if not found:
        return ""
    return (
        "MQM's noise: to have its printed Acc@k and HR on this world, at the ε_DP that it may spend"
        f" here, MQM would need a Laplace scale of {min(found):.0f} to {max(found):.0f} over ε_DP,"
        f" {np.median(found):.0f} in the median of {len(found)} numbers. The split budget has"
        f" {about.labels}, one Laplace per bar has 2."
    )


def _printed(about: DatasetSummary, mechanism: str) -> Iterator[PrintedCell]:
    for number in printed_numbers():
        if (number.family, number.mechanism) == (about.family, mechanism):
            yield number


def _printed_rows(about: DatasetSummary, mechanism: str) -> list[dict[str, float]]:
    rows: dict[tuple[bool, float], dict[str, float]] = {}
    for number in _printed(about, mechanism):
        rows.setdefault((number.uncertain, number.epsilon), {})[number.metric] = number.value
    return [row for row in rows.values() if "hit" in row]


def _row(values: dict[str, float]) -> str:
    hit, ndcg, l1 = (metric.shown(values[metric.key]) for metric in RANKING)
    return f"HR {hit} %, NDCG {ndcg}, ℓ1 {l1}"
