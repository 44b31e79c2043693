"""What the cells of a run say of each claim: data, so that pages can show where it fails.

* ``at least as good``: takifugu against every other mechanism, in every cell and metric. It holds
  unless the whole 95 % interval of the lead is below 0.
* ``better than Ours-Exp``: at ε ≤ 1, for each Acc@k that Ours-Exp gets right less than 99 % of the
  time. It holds if the whole interval of the lead is above 0.
* ``paper's order``: Ours-Exp above MQM with a split budget, and ``reversal``: MQM with one Laplace
  per bar above Ours-Exp. By the two leads of takifugu, whose difference is the difference of the
  two; the widths of their intervals are added, which is on the safe side. It holds, or fails, if
  the difference is clear; else it is open.

Majority is no mechanism: it uses nothing that is protected, and stands beside as a measure of how
hard the question is. It is left out here.

Of intervals at 95 % some miss: of 100 cells in which nothing differs, two or three may fail the
first claim by luck.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from papers.composition.contenders import MAJORITY, MQM_SPLIT, MQM_VECTOR, OURS_EXP, TAKIFUGU
from papers.composition.metrics import METRICS
from papers.composition.values import Cell, Estimate

AT_LEAST = "at least as good"
BETTER = "better than Ours-Exp"
ORDER = "paper's order"
REVERSAL = "reversal"
CLAIMS = (AT_LEAST, BETTER, ORDER, REVERSAL)
STRICT_UP_TO = 1.0
NEARLY_RIGHT = 0.99
ACCURACIES = tuple(metric for metric in METRICS if metric.startswith("acc"))


@dataclass(frozen=True)
class Verdict:
    """A claim about one cell and metric.

    Attributes:
        claim: One of `CLAIMS`.
        data: The dataset.
        better: The mechanism that is claimed to be better.
        worse: The one that it is compared with.
        uncertain: Whether the prior is only known to 20 %.
        epsilon: The Pufferfish ε.
        metric: What is compared.
        lead: By how much the first is better.
        holds: Whether the claim holds; None if the interval leaves it open.
    """

    claim: str
    data: str
    better: str
    worse: str
    uncertain: bool
    epsilon: float
    metric: str
    lead: Estimate
    holds: bool | None


def verdicts(cells: Iterable[Cell]) -> tuple[Verdict, ...]:
    """Every claim about every cell that it speaks of."""
    listed = [cell for cell in cells if cell.mechanism != MAJORITY]
    by_place: dict[tuple[str, bool, float], dict[str, Cell]] = {}
    for cell in listed:
        place = (cell.data, cell.uncertain, cell.epsilon)
        by_place.setdefault(place, {})[cell.mechanism] = cell
    found: list[Verdict] = []
    for there in by_place.values():
        for cell in there.values():
            if cell.mechanism != TAKIFUGU:
                found += [_at_least(cell, metric) for metric in cell.lead]
        if OURS_EXP in there:
            found += _better(there[OURS_EXP])
        found += _ordered(ORDER, OURS_EXP, MQM_SPLIT, there)
        found += _ordered(REVERSAL, MQM_VECTOR, OURS_EXP, there)
    return tuple(found)


@dataclass(frozen=True)
class Summary:
    """How often a claim about a dataset holds, fails, and is left open."""

    claim: str
    data: str
    holds: int
    fails: int
    open: int


def summary(found: Sequence[Verdict]) -> tuple[Summary, ...]:
    """One line for each claim and dataset."""
    lines = []
    for data in dict.fromkeys(verdict.data for verdict in found):
        for claim in CLAIMS:
            said = [one.holds for one in found if one.data == data and one.claim == claim]
            lines.append(
                Summary(claim, data, said.count(True), said.count(False), said.count(None))
            )
    return tuple(lines)


def _at_least(cell: Cell, metric: str) -> Verdict:
    lead = cell.lead[metric]
    return _verdict(AT_LEAST, TAKIFUGU, cell, metric, lead, lead.mean + lead.half >= 0)


def _better(cell: Cell) -> list[Verdict]:
    if cell.epsilon > STRICT_UP_TO:
        return []
    return [
        _verdict(BETTER, TAKIFUGU, cell, metric, lead, lead.mean - lead.half > 0)
        for metric in ACCURACIES
        if cell.measured[metric].mean < NEARLY_RIGHT
        for lead in (cell.lead[metric],)
    ]


def _ordered(claim: str, better: str, worse: str, there: Mapping[str, Cell]) -> list[Verdict]:
    if better not in there or worse not in there:
        return []
    found = []
    for metric, over_worse in there[worse].lead.items():
        over_better = there[better].lead[metric]
        lead = Estimate(over_worse.mean - over_better.mean, over_worse.half + over_better.half)
        clear = abs(lead.mean) > lead.half
        holds = lead.mean > 0 if clear else None
        found.append(_verdict(claim, better, there[worse], metric, lead, holds))
    return found


def _verdict(
    claim: str, better: str, cell: Cell, metric: str, lead: Estimate, holds: bool | None
) -> Verdict:
    return Verdict(
        claim,
        cell.data,
        better,
        cell.mechanism,
        cell.uncertain,
        cell.epsilon,
        metric,
        lead,
        holds,
    )
