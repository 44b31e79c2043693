r"""Verdicts on each claim from the cells of a run, comparison by comparison and for a dataset.

**Uncertainty is a shift**: 20 % off is log 1.5 = 0.405 less ε, and nothing else. A mechanism that
allows for 20 % uncertainty at ε may spend per entry what the plain one may at ε − log 1.5, or what
group DP may at ε if that is more (`experiments.allowances`). It has then the same noise law, so on
the same stream of random numbers it gives the same answers. `shifts` shows that on our own tables,
`printed_shifts` on what the paper prints.

**Comparisons.** A comparison is one metric of two mechanisms at one ε, with or without uncertainty.
It is the mean difference of the two, repetition by repetition on the same random numbers. All
comparisons of a claim in a dataset are judged together, by simultaneous 95 % intervals (Bonferroni,
`metrics.interval`): whatever their dependence, all of them are right at once with 95 % confidence.
Both directions are tested alike:

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

`SHIFT` is a claim of sameness, judged by `shift_verdict`: an uncertain cell and the plain one that
stands in for it are equal to the last bit, or they are not. Nothing is estimated there.

Majority spends nothing on what is released: it names the labels of the fitted part. It is a measure
of how hard the query is, and no claim is about it; `against_majority` counts where it is better.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log
from pathlib import Path
from typing import Literal

from takifugu.errors import UnsoundRequest
from takifugu.papers.composition.experiments.allowances import (
    EPSILONS,
    UNCERTAINTY_SHIFT,
    allowances,
    shifted,
)
from takifugu.papers.composition.experiments.experiment import (
    CONTENDERS,
    MAJORITY,
    MQM_SPLIT,
    MQM_VECTOR,
    OURS_EXP,
    TAKIFUGU,
    calibrated,
    measures,
    trial,
)
from takifugu.papers.composition.experiments.measurements import (
    Cell,
    Difference,
    Estimate,
    Prepared,
    Results,
    ShiftedCell,
)
from takifugu.papers.composition.experiments.metrics import METRICS, K, interval


def shifts(
    prepared: Prepared,
    cells: Sequence[Cell],
    *,
    repetitions: int,
    rng_seed: int,
    folder: Path | None = None,
    epsilons: Sequence[float] = EPSILONS,
) -> tuple[ShiftedCell, ...]:
    """Every uncertain cell of a run beside the plain experiment at ε − log 1.5, run anew.

    ``cells`` are those of `experiment.run` with the same settings;
    Majority, which knows no ε, is left out.
    """
    allowed = allowances(prepared.chain, epsilons, folder=folder)
    found = []
    for cell in cells:
        if cell.data != prepared.key or not cell.uncertain or cell.mechanism not in CONTENDERS:
            continue
        proof, room = CONTENDERS[cell.mechanism].proof, shifted(cell.epsilon)
        below = allowed.at(proof, room) if room > 0 else 0.0
        group = allowed.at("group", cell.epsilon)
        by_group = group > below
        spent = group if by_group else below
        again = trial(prepared, calibrated(cell.mechanism, prepared, spent), repetitions, rng_seed)
        plain = measures(prepared, again.found)
        equal = spent == cell.epsilon_dp and plain == dict(cell.measured)
        at = cell.epsilon if by_group else room
        found.append(
            ShiftedCell(cell.data, cell.mechanism, cell.epsilon, at, by_group, equal, plain)
        )
    return tuple(found)


@dataclass(frozen=True)
class PrintedShift:
    """A printed number with uncertainty, and what the printed numbers without it say of ε − 0.405.

    Attributes:
        epsilon: The ε of the number with uncertainty.
        at: ε − log 1.5.
        printed: The number with uncertainty.
        between: The two printed numbers without, at the ε next to ``at``; None outside the table.
        expected: Drawn between them as a straight line in log ε; None outside the table.
    """

    epsilon: float
    at: float
    printed: float
    between: tuple[float, float] | None
    expected: float | None

    @property
    def difference(self) -> float | None:
        """What is printed less what is expected."""
        return None if self.expected is None else self.printed - self.expected

    @property
    def inside(self) -> bool | None:
        """Whether the printed number is between its two neighbours, as the shift says."""
        if self.between is None:
            return None
        return min(self.between) <= self.printed <= max(self.between)


def printed_shifts(
    plain: Mapping[float, float], uncertain: Mapping[float, float]
) -> tuple[PrintedShift, ...]:
    """One printed column without uncertainty, read at ε − 0.405, beside the column with it."""
    if not all(epsilon > 0 for epsilon in (*plain, *uncertain)):
        raise UnsoundRequest("every ε of a printed column must be positive", field="epsilon")
    known = sorted(plain)
    found = []
    for epsilon, printed in sorted(uncertain.items()):
        at = epsilon - UNCERTAINTY_SHIFT
        around = next(((a, b) for a, b in pairwise(known) if a <= at <= b), None)
        if around is None:
            found.append(PrintedShift(epsilon, at, printed, None, None))
            continue
        low, high = around
        share = log(at / low) / log(high / low)
        ends = plain[low], plain[high]
        expected = ends[0] + share * (ends[1] - ends[0])
        found.append(PrintedShift(epsilon, at, printed, ends, expected))
    return tuple(found)


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


PRIORS = 2  # known exactly, and to 20 %
_OTHERS, _EPSILONS, _METRICS = len(CONTENDERS) - 1, len(EPSILONS), len(METRICS)
_SMALL = sum(epsilon <= STRICT_UP_TO for epsilon in EPSILONS)
MADE_OF = (
    f"Comparisons of a dataset: {_OTHERS * _EPSILONS * PRIORS * _METRICS} for the first claim"
    f" ({_OTHERS} other mechanisms × {_EPSILONS} ε × {PRIORS} priors, exact and 20 % uncertain, ×"
    f" {_METRICS} metrics), at most {_SMALL * PRIORS * K} for the second ({_SMALL} ε × {PRIORS}"
    f" priors × {K} Acc@k), {_EPSILONS * PRIORS * _METRICS} each for the third and the fourth"
    f" ({_EPSILONS} ε × {PRIORS} priors × {_METRICS} metrics), {len(CONTENDERS) * _EPSILONS} for"
    f" the fifth ({len(CONTENDERS)} mechanisms × {_EPSILONS} ε with uncertainty)."
)
JUDGED = """\
Every comparison is the mean difference of two mechanisms, repetition by repetition on the same
random numbers, in one metric at one ε. All comparisons of a claim in a dataset are judged together,
in both directions, by simultaneous 95 % intervals (Bonferroni). Shown: the interval is wholly above
0. The opposite shown: it is wholly below 0. Open: it holds 0. The same law: both mechanisms are the
same there, so that the difference is exactly 0. The first claim is not contradicted as long as no
interval is wholly below 0, which does not show it; it is shown only where takifugu is better. The
second is about each Acc@k that Ours-Exp gets right less than 99 % of the time. The fifth is one of
sameness, in which nothing is estimated: equal means that on the same random numbers both spend the
same per entry and measure the same in all metrics, to the last bit."""
NAMED = 3  # exceptions that are named; the others are counted


def findings(results: Results) -> tuple[ClaimVerdict, ...]:
    """Every claim about every dataset, those of one dataset together."""
    by_claim = verdicts(results.cells)
    found: list[ClaimVerdict] = []
    for one in results.about:
        found += [verdict for verdict in by_claim if verdict.data == one.key]
        if results.shifted_of(one.key):
            found.append(shift_verdict(one.key, results))
    return tuple(found)


def shift_verdict(key: str, results: Results) -> ClaimVerdict:
    """In how many uncertain cells the plain mechanism, run again, gave the same to the last bit."""
    shifted = results.shifted_of(key)
    other = [f"{one.mechanism} at ε = {one.epsilon:g}" for one in shifted if not one.equal]
    equal = len(shifted) - len(other)
    group = sum(one.by_group for one in shifted)
    verdict = ClaimVerdict(key, SHIFT, not other and equal > 0, 0, equal, 0, len(other), "")
    detail = f"{counted(verdict)}, to the last bit; {group} of all are by group DP"
    if other:
        more = f"; and {len(other) - NAMED} more" if len(other) > NAMED else ""
        detail += f"; not {'; '.join(other[:NAMED])}{more}"
    return replace(verdict, detail=detail)


def majority_line(key: str, results: Results) -> str:
    """Where Majority, which spends nothing, is better than takifugu; empty if it was not run."""
    judged = against_majority(results.of(key))
    if not judged:
        return ""
    outcomes = [one.outcome for one in judged]
    return (
        "Majority, which spends nothing and names the top labels of the fitted part, is better than"
        f" takifugu in {outcomes.count('contradicted')} of {len(judged)} comparisons, takifugu is"
        f" better in {outcomes.count('shown')} (joint 95 % intervals)"
    )


def word(verdict: ClaimVerdict) -> str:
    """A verdict in a word or two: what was shown, and what only was not contradicted.

    What the intervals leave open neither proves nor refutes, and mechanisms of the same law are no
    evidence either way.
    """
    if not verdict.compared:
        return "nothing to compare"
    if verdict.claim == SHIFT:
        return "not equal everywhere" if verdict.contradicted else "equal"
    if verdict.contradicted:
        if verdict.shown:
            return "not everywhere"
        clear = verdict.contradicted == verdict.compared
        return "the opposite" if clear else "the opposite where it is clear"
    if verdict.shown == verdict.compared:
        return "shown"
    if verdict.claim == AT_LEAST:
        return "not contradicted"
    return "shown where it is clear" if verdict.shown else "open"
