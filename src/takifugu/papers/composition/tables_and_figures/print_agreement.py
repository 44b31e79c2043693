"""How far our numbers are from the printed ones, where printed numbers belong beside ours.

They belong beside the paper's own data, and beside the synthetic check-ins if there are as many as
the paper has. A synthetic world is calibrated to some printed columns; that these agree shows only
that the calibration worked, so they are summed up by themselves, as its fit. So are the columns
that follow from them, as uncertainty is a shift of ε. All other columns are predictions.

Our intervals are of the mechanism's noise on the data that was measured. On the paper's own data it
says something whether they hold the printed number. On a synthetic world it does not, as another
world has other numbers: there the scatter between worlds is told instead.

A remark says in what a world differs from the paper's data, as far as the tables show it. Each is
computed from measured cells and printed numbers; none is a sentence kept by hand.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log, sqrt
from statistics import fmean
from typing import Literal

import numpy as np

from takifugu.papers.composition.data.calibration import SEEDS, between_worlds
from takifugu.papers.composition.data.simulated import CALIBRATED, PAPER_ROWS
from takifugu.papers.composition.experiments.allowances import EPSILONS
from takifugu.papers.composition.experiments.experiment import (
    GROUP_DP,
    MAJORITY,
    MQM_SPLIT,
    MQM_VECTOR,
    OURS_EXP,
    TAKIFUGU,
)
from takifugu.papers.composition.experiments.measurements import (
    Cell,
    DatasetSummary,
    PrintedCell,
    PrintedColumn,
    printed_majority,
    printed_number,
    printed_numbers,
)
from takifugu.papers.composition.tables_and_figures.table_formats import PRIOR
from takifugu.reports.html_style import BLUE, GREEN, GREY, ORANGE, PURPLE

INK = "#000000"  # the colour of words, in the light and in the dark


@dataclass(frozen=True)
class Metric:
    """What is measured, and how it is shown; ``counts`` if it is a number of rows."""

    key: str
    label: str
    digits: int
    percent: bool = False
    higher: bool = True
    counts: bool = False

    @property
    def scale(self) -> int:
        """What a measurement is multiplied by to be shown."""
        return 100 if self.percent else 1

    def shown(self, value: float) -> str:
        """A number, rounded as the paper rounds it."""
        return f"{self.scale * value:.{self.digits}f}"

    @property
    def heading(self) -> str:
        """The label with its unit, and an arrow to where it is better."""
        return f"{self.label}{' %' if self.percent else ''} {'↑' if self.higher else '↓'}"


@dataclass(frozen=True)
class LineStyle:
    """How a mechanism is drawn."""

    color: str
    marker: str
    width: float = 1.6


@dataclass(frozen=True)
class Sheet:
    """A table of the paper: which metrics stand in it, and what it is called."""

    key: str
    number: str
    title: str
    metrics: tuple[Metric, ...]


ACCURACY = tuple(Metric(f"acc@{k}", f"Acc@{k}", 1, percent=True) for k in (1, 2, 3))
RANKING = (
    Metric("hit", "HR", 1, percent=True),
    Metric("ndcg", "NDCG", 3),
    Metric("l1", "ℓ1", 0, higher=False, counts=True),
)
SHEETS = (
    Sheet("accuracy", "Table 1", "Acc@k", ACCURACY),
    Sheet("ranking", "Table 2", "Hit Rate@3, NDCG@3 and ℓ1 count error", RANKING),
)
STYLES = {
    TAKIFUGU: LineStyle(INK, "o", 2.2),
    OURS_EXP: LineStyle(BLUE, "s"),
    MQM_VECTOR: LineStyle(ORANGE, "D"),
    MQM_SPLIT: LineStyle(PURPLE, "v"),
    GROUP_DP: LineStyle(GREY, "x"),
}
OTHER = LineStyle(GREEN, "^")


def mechanisms(names: list[str]) -> tuple[str, ...]:
    """The mechanisms that are there, in the order of the tables; Majority has no column."""
    known = [name for name in STYLES if name in names]
    return tuple(known + [n for n in names if n not in STYLES and n != MAJORITY])


def shown_size(value: float) -> str:
    """An ε or a noise in three significant digits, or whole from a thousand on."""
    if not isfinite(value):
        return "∞"
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"


METRIC = {metric.key: metric for sheet in SHEETS for metric in sheet.metrics}
Unit = Literal["points", "plain", "percent"]


@dataclass(frozen=True)
class BesidePrint:
    """One of our numbers beside the printed one.

    Attributes:
        printed: What the paper prints.
        mean: Ours, on the scale of the measurements.
        half: Half of its 95 % interval.
        calibrated: Whether the world was calibrated to the printed column.
        follows: Whether the column follows from a calibrated one: the same with uncertainty.
    """

    printed: PrintedCell
    mean: float
    half: float
    calibrated: bool
    follows: bool = False

    @property
    def predicted(self) -> bool:
        """Whether agreement says something: it was not arranged."""
        return not (self.calibrated or self.follows)

    @property
    def metric(self) -> Metric:
        """What both measure."""
        return METRIC[self.printed.metric]

    @property
    def difference(self) -> float:
        """Ours less the printed number."""
        return self.mean - self.printed.value

    @property
    def off(self) -> float:
        """The same as it is summed up: relative for counts, as it is for shares and NDCG."""
        return self.difference / self.printed.value if self.metric.counts else self.difference

    @property
    def inside(self) -> bool:
        """Whether our interval holds the printed number, which is rounded."""
        digits = len(self.printed.text.partition(".")[2])
        rounding = 0.5 / 10.0**digits / self.metric.scale
        return abs(self.difference) <= self.half + rounding

    @property
    def column(self) -> PrintedColumn:
        """Its column in the paper."""
        it = self.printed
        return PrintedColumn(it.mechanism, it.uncertain, it.metric)

    @property
    def group(self) -> str:
        """The mechanism and the prior, which have three columns of a table together."""
        return f"{self.printed.mechanism} {PRIOR[self.printed.uncertain]}"

    def __str__(self) -> str:
        it = self.printed
        return (
            f"{self.group}, {self.metric.label} at ε = {it.epsilon:g}:"
            f" {self.metric.shown(self.mean)} beside {it.text}"
        )


@dataclass(frozen=True)
class PrintAgreement:
    """How far numbers of one kind are from the printed ones.

    Attributes:
        kind: What they are.
        unit: In what they are summed up: points of a percentage, as they are, or percent.
        numbers: How many.
        columns: Of how many columns.
        inside: In how many our 95 % interval holds the printed number.
        mean: The mean of the absolute differences.
        bias: The mean of the signed ones, ours less printed.
        largest: The largest absolute difference.
        worst: Where that is.
        by_group: The mean for each mechanism and prior, which is where agreement differs most.
    """

    kind: str
    unit: Unit
    numbers: int
    columns: int
    inside: int
    mean: float
    bias: float
    largest: float
    worst: str
    by_group: Mapping[str, float]

    def __str__(self) -> str:
        each = ", ".join(
            f"{_in_unit(mean, self.unit)} for {name}" for name, mean in self.by_group.items()
        )
        return f"{self.kind}: {self.off}; on average {each}"

    @property
    def off(self) -> str:
        """How far off, in words."""
        mean, largest = (_in_unit(value, self.unit) for value in (self.mean, self.largest))
        return (
            f"off by {mean} on average ({_in_unit(self.bias, self.unit, '+')} with its sign),"
            f" {largest} at most ({self.worst})"
        )


UNITS: Mapping[Unit, tuple[int, int, str]] = {  # times what, with how many digits, what follows
    "points": (100, 1, " points"),
    "plain": (1, 3, ""),
    "percent": (100, 0, " %"),
}


def _in_unit(value: float, unit: Unit, sign: str = "") -> str:
    """A number as differences of a kind are summed up."""
    times, digits, after = UNITS[unit]
    return _signed(f"{times * value:{sign}.{digits}f}") + after


def printed_belong(about: DatasetSummary) -> bool:
    """Whether the paper's printed numbers belong beside this dataset's."""
    if not any(number.family == about.family for number in printed_numbers()):
        return False
    same_size = about.facts.get("rows") == PAPER_ROWS
    return about.origin == "paper" or (about.origin == "simulated" and same_size)


def beside_print(about: DatasetSummary, cell: Cell, metric: Metric) -> BesidePrint | None:
    """A number of ours beside the printed one; None if nothing is printed, or does not belong."""
    if not printed_belong(about):
        return None
    printed = printed_number(
        about.family,
        cell.mechanism,
        uncertain=cell.uncertain,
        epsilon=cell.epsilon,
        metric=metric.key,
    )
    if printed is None:
        return None
    ours = cell.measured[metric.key]
    column = PrintedColumn(cell.mechanism, cell.uncertain, metric.key)
    follows = cell.uncertain and column._replace(uncertain=False) in about.calibrated
    return BesidePrint(printed, ours.mean, ours.half, column in about.calibrated, follows)


def all_beside_print(about: DatasetSummary, cells: Iterable[Cell]) -> tuple[BesidePrint, ...]:
    """Every number that has a printed one."""
    every = (beside_print(about, cell, metric) for cell in cells for metric in METRIC.values())
    return tuple(one for one in every if one is not None)


def agreements(compared: Sequence[BesidePrint]) -> tuple[PrintAgreement, ...]:
    """The predictions among them, summed up for each kind of number; nothing that was arranged."""
    return _summed([one for one in compared if one.predicted])


def _summed(compared: Sequence[BesidePrint]) -> tuple[PrintAgreement, ...]:
    """All of them, summed up for each kind of number."""
    found = []
    for unit in UNITS:
        own = [one for one in compared if _unit(one.metric) == unit]
        if own:
            worst = max(own, key=lambda one: abs(one.off))
            found.append(
                PrintAgreement(
                    _kind(one.metric for one in own),
                    unit,
                    len(own),
                    len({one.column for one in own}),
                    sum(one.inside for one in own),
                    fmean(abs(one.off) for one in own),
                    fmean(one.off for one in own),
                    abs(worst.off),
                    str(worst),
                    {
                        name: fmean(abs(one.off) for one in own if one.group == name)
                        for name in dict.fromkeys(one.group for one in own)
                    },
                )
            )
    return tuple(found)


def agreement_lines(about: DatasetSummary, compared: Sequence[BesidePrint]) -> tuple[str, ...]:
    """In sentences: the fit of the calibration, how far off predictions are, and another world."""
    calibrated = [one for one in compared if one.calibrated]
    follow = [one for one in compared if one.follows]
    found = agreements(compared)
    lines = []
    if calibrated:
        lines.append(
            f"Fit of the calibration, which shows nothing about the mechanisms:"
            f" {_fit(calibrated)}; left out of what follows."
        )
    if follow:
        lines.append(
            f"Follow from the calibrated columns at smaller ε, as uncertainty is a shift of ε:"
            f" {_fit(follow)}; left out too."
        )
    if found:
        numbers, columns, inside = (
            sum(getattr(one, name) for one in found) for name in ("numbers", "columns", "inside")
        )
        if about.origin == "paper":
            lines.append(
                f"Compared: {numbers} numbers of {columns} columns; in {inside} our 95 % interval,"
                " which is of the mechanism's noise alone, holds the printed number."
            )
        else:
            lines.append(f"Predictions: {numbers} numbers of {columns} columns.")
        lines += [f"{one}." for one in found]
    if calibrated and {one.column for one in calibrated} <= set(CALIBRATED):
        lines.append(_another_world())
    return tuple(lines)


def _fit(compared: Sequence[BesidePrint]) -> str:
    """Columns that were arranged, and how far off they are."""
    off = "; ".join(one.off for one in _summed(compared))
    return f"{_columns(compared)}, {len(compared)} numbers, {off}"


def _another_world() -> str:
    """How much another seed of the world would change, in a sentence."""
    deviation = between_worlds()
    first, last = (", ".join(f"{one:.1f}" for one in deviation[:, at]) for at in (0, -1))
    return (
        "Another world: ± is of the mechanism's noise on this world alone, which was taken as the"
        " closest of 48 in the calibrated columns; all columns of Ours-Exp share that choice. Over"
        f" {len(SEEDS)} worlds of other seeds the Acc@k of Ours-Exp w/o uncertainty have a standard"
        f" deviation of {deviation.min():.1f} to {deviation.max():.1f} points ({first} for Acc@1,"
        f" Acc@2, Acc@3 at ε = {EPSILONS[0]:g}; {last} at ε = {EPSILONS[-1]:g}), and predictions"
        " depend on the seed too: a difference to print of up to twice that may be the seed's."
    )


def shown_difference(one: BesidePrint) -> str:
    """The difference with its sign, as the metric is rounded."""
    return _signed(f"{one.metric.scale * one.difference:+.{one.metric.digits}f}")


def _columns(compared: Iterable[BesidePrint]) -> str:
    """Columns by mechanism and prior, as ``Ours-Exp w/o uncertainty (Acc@1, Acc@2)``."""
    groups: dict[str, dict[str, None]] = {}
    for one in compared:
        groups.setdefault(one.group, {})[one.metric.label] = None
    return ", ".join(f"{name} ({', '.join(metrics)})" for name, metrics in groups.items())


def _unit(metric: Metric) -> Unit:
    if metric.percent:
        return "points"
    return "percent" if metric.counts else "plain"


def _kind(metrics: Iterable[Metric]) -> str:
    """The names of metrics, those of the three places as one."""
    ordered = sorted(metrics, key=list(METRIC.values()).index)
    names = dict.fromkeys("Acc@k" if m.key.startswith("acc") else m.label for m in ordered)
    return " and ".join(names)


def _signed(text: str) -> str:
    """With a true minus; nothing is −0."""
    if not any(letter in "123456789" for letter in text):
        text = text.lstrip("+-")
    return text.replace("-", "−")


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
