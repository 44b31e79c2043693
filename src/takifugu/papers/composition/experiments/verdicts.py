"""Verdicts on each claim from the cells of a run, cell by cell and for a dataset as a whole.

* `AT_LEAST`: takifugu against every other mechanism, in every cell and metric. It holds unless
  the whole 95 % interval of the lead is below 0.
* `BETTER`: at ε ≤ 1, for each Acc@k that Ours-Exp gets right less than 99 % of the time. It holds
  if the whole interval of the lead is above 0, and fails if it is below; between it is open.
* `ORDER` and `REVERSAL`: by the two leads of takifugu, whose difference is the difference of the
  two mechanisms; the widths of their intervals are added, which is on the safe side. Again a cell
  may be open, as where both only guess.

The first two are about all cells, so a dataset supports them only if every cell does. The last two
are supported by cells that show them, if none shows the opposite.

Majority is no mechanism: it uses nothing that is protected, and is shown as a measure of how hard
the query is. It is left out here.

Of intervals at 95 % some miss: of 100 cells in which nothing differs, two or three may fail the
first claim at random. Mechanisms of the same law are not among them: their lead is exactly 0.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from takifugu.papers.composition.experiments.contenders import (
    MAJORITY,
    MQM_SPLIT,
    MQM_VECTOR,
    OURS_EXP,
    TAKIFUGU,
)
from takifugu.papers.composition.experiments.measurements import Cell, Estimate
from takifugu.papers.composition.experiments.metrics import METRICS

AT_LEAST = "takifugu is at least as good as every other mechanism"
BETTER = "takifugu is better than Ours-Exp at ε ≤ 1"
ORDER = "the paper's order: Ours-Exp is better than MQM with a split budget"
REVERSAL = "the reversal: MQM with one Laplace per bar is better than Ours-Exp"
CLAIMS = (AT_LEAST, BETTER, ORDER, REVERSAL)
OF_ALL = (AT_LEAST, BETTER)  # claims about every cell
STRICT_UP_TO = 1.0
NEARLY_RIGHT = 0.99
ACCURACIES = tuple(metric for metric in METRICS if metric.startswith("acc"))
SHOWN = 3  # comparisons named that do not support a claim


@dataclass(frozen=True)
class Judgement:
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

    def __str__(self) -> str:
        prior = ", uncertain" if self.uncertain else ""
        return (
            f"{self.metric} against {self.worse} at ε = {self.epsilon:g}{prior}:"
            f" {self.lead.mean:+.3g} ± {self.lead.half:.2g}"
        )


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim about a dataset.

    Attributes:
        data: The dataset.
        claim: One of `CLAIMS`.
        holds: Whether the cells support it: all of them where the claim is about all.
        held: How many cells support it.
        failed: How many contradict it.
        open: How many do neither.
        detail: The same in words, with the worst failures.
    """

    data: str
    claim: str
    holds: bool
    held: int
    failed: int
    open: int
    detail: str


def verdicts(cells: Iterable[Cell]) -> tuple[ClaimVerdict, ...]:
    """Every claim about every dataset."""
    found = judgements(cells)
    return tuple(
        _verdict(data, claim, [one for one in found if (one.data, one.claim) == (data, claim)])
        for data in dict.fromkeys(one.data for one in found)
        for claim in CLAIMS
    )


def judgements(cells: Iterable[Cell]) -> tuple[Judgement, ...]:
    """Every claim about every cell that it covers."""
    by_place: dict[tuple[str, bool, float], dict[str, Cell]] = {}
    for cell in cells:
        if cell.mechanism != MAJORITY:
            place = (cell.data, cell.uncertain, cell.epsilon)
            by_place.setdefault(place, {})[cell.mechanism] = cell
    found: list[Judgement] = []
    for there in by_place.values():
        for cell in there.values():
            if cell.mechanism != TAKIFUGU:
                found += [_at_least(cell, metric) for metric in cell.lead]
        if OURS_EXP in there:
            found += _better(there[OURS_EXP])
        found += _ordered(ORDER, OURS_EXP, MQM_SPLIT, there)
        found += _ordered(REVERSAL, MQM_VECTOR, OURS_EXP, there)
    return tuple(found)


def _verdict(data: str, claim: str, judged: list[Judgement]) -> ClaimVerdict:
    outcomes = [one.holds for one in judged]
    held, failed, left = (outcomes.count(value) for value in (True, False, None))
    words = f"shown in {held} of {len(judged)} comparisons" if judged else "nothing to compare"
    if failed:
        words += f", contradicted in {_named(judged, False)}"
    if left:
        words += f", open in {_named(judged, None) if claim in OF_ALL else left}"
    holds = held == len(judged) if claim in OF_ALL else held > 0 and not failed
    return ClaimVerdict(data, claim, holds, held, failed, left, words)


def _named(judged: list[Judgement], holds: bool | None) -> str:
    """How many, and which."""
    found = [one for one in judged if one.holds is holds]
    rest = "; …" if len(found) > SHOWN else ""
    return f"{len(found)} ({'; '.join(map(str, found[:SHOWN]))}{rest})"


def _at_least(cell: Cell, metric: str) -> Judgement:
    lead = cell.lead[metric]
    return _judgement(AT_LEAST, TAKIFUGU, cell, metric, lead, lead.mean + lead.half >= 0)


def _better(cell: Cell) -> list[Judgement]:
    if cell.epsilon > STRICT_UP_TO:
        return []
    return [
        _judgement(BETTER, TAKIFUGU, cell, metric, lead, _clearly(lead))
        for metric in ACCURACIES
        if cell.measured[metric].mean < NEARLY_RIGHT
        for lead in (cell.lead[metric],)
    ]


def _ordered(claim: str, better: str, worse: str, there: Mapping[str, Cell]) -> list[Judgement]:
    if better not in there or worse not in there:
        return []
    found = []
    for metric, over_worse in there[worse].lead.items():
        over_better = there[better].lead[metric]
        lead = Estimate(over_worse.mean - over_better.mean, over_worse.half + over_better.half)
        found.append(_judgement(claim, better, there[worse], metric, lead, _clearly(lead)))
    return found


def _clearly(lead: Estimate) -> bool | None:
    """Whether a lead is above 0; None if its interval holds 0."""
    return lead.mean > 0 if abs(lead.mean) > lead.half else None


def _judgement(
    claim: str, better: str, cell: Cell, metric: str, lead: Estimate, holds: bool | None
) -> Judgement:
    return Judgement(
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
