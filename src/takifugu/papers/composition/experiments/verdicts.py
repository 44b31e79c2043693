"""Verdicts on each claim from the cells of a run, comparison by comparison and for a dataset.

A comparison is one metric of two mechanisms at one ε, with or without uncertainty. It is the mean
difference of the two, repetition by repetition on the same random numbers. All comparisons of a
claim in a dataset are judged together, by simultaneous 95 % intervals (Bonferroni,
`estimates.interval`): whatever their dependence, all of them are right at once with 95 %
confidence. Both directions are tested alike:

* *shown*: the interval is wholly above 0.
* *contradicted*: it is wholly below 0, so that the opposite is shown.
* *open*: it holds 0; nothing is said.
* *tied*: both mechanisms have the same law, so that the difference is exactly 0.

The claims:

* `AT_LEAST`: takifugu against every other mechanism, in every cell and metric. It holds as long as
  nothing contradicts it, which does not show it: it is shown only where takifugu is better.
* `BETTER`: at ε ≤ 1, for each Acc@k that Ours-Exp gets right less than 99 % of the time. It holds
  if every comparison shows it; those that were left out still count for the intervals.
* `ORDER` and `REVERSAL`: Ours-Exp against MQM in its two readings, in every cell and metric. They
  are supported by comparisons that show them, if none shows the opposite.

`SHIFT` is a claim of sameness, judged in `findings`: an uncertain cell and the plain one that
stands in for it are equal to the last bit, or they are not. Nothing is estimated there.

Majority spends nothing on what is released: it names the labels of the fitted part. It is a measure
of how hard the query is, and no claim is about it; `against_majority` counts where it is better.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from takifugu.papers.composition.experiments.contenders import (
    MAJORITY,
    MQM_SPLIT,
    MQM_VECTOR,
    OURS_EXP,
    TAKIFUGU,
)
from takifugu.papers.composition.experiments.estimates import interval
from takifugu.papers.composition.experiments.measurements import Cell, Difference, Estimate
from takifugu.papers.composition.experiments.metrics import METRICS

AT_LEAST = "takifugu is at least as good as every other mechanism that spends ε"
BETTER = "takifugu is better than Ours-Exp at ε ≤ 1"
ORDER = "the paper's order: Ours-Exp is better than MQM with a split budget"
REVERSAL = "the reversal: MQM with one Laplace per bar is better than Ours-Exp"
SHIFT = "20 % uncertainty at ε is the plain mechanism at ε − 0.405, or group DP: the same answers"
CLAIMS = (AT_LEAST, BETTER, ORDER, REVERSAL)
STRICT_UP_TO = 1.0
NEARLY_RIGHT = 0.99
ACCURACIES = tuple(metric for metric in METRICS if metric.startswith("acc"))
SHOWN = 3  # comparisons named that speak against a claim, or leave it open

Outcome = Literal["shown", "tied", "open", "contradicted"]


@dataclass(frozen=True)
class Comparison:
    """One metric of two mechanisms in one cell.

    Attributes:
        claim: One of `CLAIMS`.
        data: The dataset.
        better: The mechanism that is claimed to be better.
        worse: The one that it is compared with.
        uncertain: Whether the prior is only known to 20 %.
        epsilon: The Pufferfish ε.
        metric: What is compared.
        lead: By how much the first is better.
        judged: Whether the claim speaks of it; if not, it only counts for the intervals.
    """

    claim: str
    data: str
    better: str
    worse: str
    uncertain: bool
    epsilon: float
    metric: str
    lead: Difference
    judged: bool = True


@dataclass(frozen=True)
class Judgement:
    """A comparison, judged together with all others of its claim and dataset.

    Attributes:
        comparison: What is compared.
        lead: By how much the first mechanism is better, with its simultaneous 95 % interval.
        outcome: What the interval says.
        doubted: Whether its own 95 % interval, taken alone, is wholly below 0.
    """

    comparison: Comparison
    lead: Estimate
    outcome: Outcome
    doubted: bool

    def __str__(self) -> str:
        it = self.comparison
        prior = ", uncertain" if it.uncertain else ""
        return (
            f"{it.metric} against {it.worse} at ε = {it.epsilon:g}{prior}:"
            f" {self.lead.mean:+.3g} ± {self.lead.half:.2g}"
        )

    def opposite(self) -> str:
        """The same seen from the other mechanism: by how much that one is better."""
        it = self.comparison
        prior = ", uncertain" if it.uncertain else ""
        return (
            f"{it.worse} is better than {it.better} in {it.metric} at ε = {it.epsilon:g}{prior} by"
            f" {-self.lead.mean:.3g} ± {self.lead.half:.2g}"
        )


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim about a dataset.

    Attributes:
        data: The dataset.
        claim: One of `CLAIMS`, or `SHIFT`.
        holds: Whether the comparisons support it, as the claim needs it; `AT_LEAST` holds as long
            as nothing contradicts it.
        shown: How many comparisons show it.
        tied: How many are exactly 0, as both mechanisms have the same law; for `SHIFT` how many
            cells are equal to the last bit.
        open: How many intervals hold 0.
        contradicted: How many show the opposite; for `SHIFT` how many cells are not equal.
        detail: The same in words, with the comparisons that speak against it.
    """

    data: str
    claim: str
    holds: bool
    shown: int
    tied: int
    open: int
    contradicted: int
    detail: str

    @property
    def compared(self) -> int:
        """All comparisons that the claim is about."""
        return self.shown + self.tied + self.open + self.contradicted


def verdicts(cells: Iterable[Cell]) -> tuple[ClaimVerdict, ...]:
    """Every claim about every dataset."""
    found = judgements(cells)
    return tuple(
        _verdict(
            data,
            claim,
            [j for j in found if (j.comparison.data, j.comparison.claim) == (data, claim)],
        )
        for data in dict.fromkeys(one.comparison.data for one in found)
        for claim in CLAIMS
    )


def judgements(cells: Iterable[Cell]) -> tuple[Judgement, ...]:
    """Every comparison of every claim, judged together with those of its claim and dataset."""
    every = list(comparisons(cells))
    together: dict[tuple[str, str], int] = {}
    for one in every:
        together[one.data, one.claim] = together.get((one.data, one.claim), 0) + 1
    return tuple(judge(one, together[one.data, one.claim]) for one in every if one.judged)


def judge(one: Comparison, together: int) -> Judgement:
    """One comparison by the interval that holds for as many ``together``."""
    joint, alone = interval(one.lead, together=together), interval(one.lead)
    outcome: Outcome = "open"
    if one.lead.exactly_zero:
        outcome = "tied"
    elif abs(joint.mean) > joint.half:
        outcome = "shown" if joint.mean > 0 else "contradicted"
    return Judgement(one, joint, outcome, doubted=alone.mean + alone.half < 0)


def comparisons(cells: Iterable[Cell]) -> Iterator[Comparison]:
    """What the claims are about, cell by cell."""
    for cell in cells:
        if cell.mechanism in (TAKIFUGU, MAJORITY):
            continue
        for metric, lead in cell.lead.items():
            yield _compared(AT_LEAST, TAKIFUGU, cell, metric, lead)
        if cell.mechanism == OURS_EXP and cell.epsilon <= STRICT_UP_TO:
            for metric in ACCURACIES:
                room = cell.measured[metric].mean < NEARLY_RIGHT
                yield _compared(BETTER, TAKIFUGU, cell, metric, cell.lead[metric], judged=room)
        if cell.mechanism == MQM_SPLIT:
            for metric, lead in cell.exp_lead.items():
                yield _compared(ORDER, OURS_EXP, cell, metric, lead)
        if cell.mechanism == MQM_VECTOR:
            for metric, lead in cell.exp_lead.items():
                back = Difference(-lead.mean, lead.error, lead.step, lead.repetitions)
                yield replace(_compared(REVERSAL, MQM_VECTOR, cell, metric, back), worse=OURS_EXP)


def against_majority(cells: Iterable[Cell]) -> tuple[Judgement, ...]:
    """Every comparison of takifugu with Majority on one dataset, judged together."""
    every = [
        _compared("", TAKIFUGU, cell, metric, lead)
        for cell in cells
        if cell.mechanism == MAJORITY
        for metric, lead in cell.lead.items()
    ]
    return tuple(judge(one, len(every)) for one in every)


def counted(verdict: ClaimVerdict) -> str:
    """How many comparisons say what, in the words that pages and commands share."""
    every = verdict.compared
    if not every:
        return "nothing to compare"
    if verdict.claim == SHIFT:
        other = f", not equal in {verdict.contradicted}" if verdict.contradicted else ""
        return f"equal in {verdict.tied} of {every}{other}"
    first, parts = f"shown in {verdict.shown} of {every}", []
    if verdict.claim == AT_LEAST and verdict.shown < every:
        first = f"not contradicted in {every - verdict.contradicted} of {every}"
        parts.append(f"shown in {verdict.shown}")
    for number, words in (
        (verdict.contradicted, "the opposite shown in"),
        (verdict.tied, "the same law in"),
        (verdict.open, "open in"),
    ):
        if number:
            parts.append(f"{words} {number}")
    return ", ".join([first, *parts])


def _verdict(data: str, claim: str, judged: list[Judgement]) -> ClaimVerdict:
    outcomes = [one.outcome for one in judged]
    shown, tied, left, against = (
        outcomes.count(value) for value in ("shown", "tied", "open", "contradicted")
    )
    holds = {
        AT_LEAST: not against,
        BETTER: shown == len(judged),
    }.get(claim, shown > 0 and not against)
    verdict = ClaimVerdict(data, claim, holds, shown, tied, left, against, "")
    words = counted(verdict)
    if against:
        words += f": {_listed(j.opposite() for j in judged if j.outcome == 'contradicted')}"
    if left and claim == BETTER:
        words += f": {_listed(str(j) for j in judged if j.outcome == 'open')}"
    doubted = sum(one.doubted and one.outcome != "contradicted" for one in judged)
    if doubted:
        words += f"; of {doubted} more the 95 % interval, taken alone, is below 0"
    return ClaimVerdict(data, claim, holds, shown, tied, left, against, words)


def _listed(words: Iterable[str]) -> str:
    """The first ones."""
    every = list(words)
    return "; ".join(every[:SHOWN]) + ("; …" if len(every) > SHOWN else "")


def _compared(
    claim: str, better: str, cell: Cell, metric: str, lead: Difference, *, judged: bool = True
) -> Comparison:
    return Comparison(
        claim,
        cell.data,
        better,
        cell.mechanism,
        cell.uncertain,
        cell.epsilon,
        metric,
        lead,
        judged,
    )
