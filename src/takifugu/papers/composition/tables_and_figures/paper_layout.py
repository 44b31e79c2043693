"""Tables 1 and 2 in the paper's own layout: with and without uncertainty side by side.

For each ε three lines: our number, the printed one, and the difference. Only for data beside which
the printed numbers belong (`print_agreement.printed_belong`).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from takifugu.papers.composition.experiments.measurements import Cell, PrintedColumn
from takifugu.papers.composition.experiments.printed import printed_numbers
from takifugu.papers.composition.results import DatasetSummary, Results
from takifugu.papers.composition.tables_and_figures.layout import SHEETS, Metric, Sheet
from takifugu.papers.composition.tables_and_figures.print_agreement import (
    METRIC,
    PRIOR,
    BesidePrint,
    agreement_lines,
    beside_print,
    printed_belong,
    shown_difference,
)

LINES = ("ours", "printed", "difference")
ORIGINS = {
    "paper": "Measured on the paper's own data.",
    "simulated": "SIMULATED DATA of the paper's size: drawn from a model, measured on nobody.",
}


@dataclass(frozen=True)
class LayoutColumn:
    """One column of the paper: a metric of a mechanism, with or without uncertainty."""

    mechanism: str
    uncertain: bool
    metric: Metric
    calibrated: bool

    @property
    def group(self) -> str:
        """What stands above the three metrics."""
        return f"{self.mechanism} {PRIOR[self.uncertain]}"

    @property
    def heading(self) -> str:
        """The metric with its unit, and whether the world was calibrated to it."""
        return self.metric.heading + (" calibrated" if self.calibrated else "")


@dataclass(frozen=True)
class LayoutEntry:
    """Our number beside the printed one, as text."""

    mean: str
    half: str
    printed: str
    difference: str
    best: bool = False


@dataclass(frozen=True)
class LayoutRow:
    """One ε; an entry is None where nothing was measured."""

    epsilon: str
    entries: tuple[LayoutEntry | None, ...]


@dataclass(frozen=True)
class PaperLayout:
    """A table of the paper with our numbers in it.

    Attributes:
        key: Its name among files.
        title: One line.
        caption: What stands in it, and what the data is.
        summary: What was calibrated, and how far off the predictions are.
        columns: From left to right, three metrics for each mechanism and prior.
        rows: The ε.
    """

    key: str
    title: str
    caption: str
    summary: tuple[str, ...]
    columns: tuple[LayoutColumn, ...]
    rows: tuple[LayoutRow, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """The headings above the columns, one for each ``width`` columns."""
        return tuple(dict.fromkeys(column.group for column in self.columns))

    @property
    def width(self) -> int:
        """How many columns stand below a group."""
        return len(self.columns) // len(self.groups)


def all_layouts(results: Results) -> tuple[PaperLayout, ...]:
    """Every table in the paper's layout of every dataset that has printed numbers beside it."""
    return tuple(table for one in results.about for table in layouts(one, results.of(one.key)))


def layouts(about: DatasetSummary, cells: Iterable[Cell]) -> tuple[PaperLayout, ...]:
    """Tables 1 and 2 in the paper's layout; none if the printed numbers do not belong here."""
    if not printed_belong(about):
        return ()
    listed = tuple(cells)
    made = (_layout(sheet, about, listed) for sheet in SHEETS)
    return tuple(table for table in made if table is not None)


def _layout(sheet: Sheet, about: DatasetSummary, cells: tuple[Cell, ...]) -> PaperLayout | None:
    keys = {metric.key for metric in sheet.metrics}
    printed = [n for n in printed_numbers() if n.family == about.family and n.metric in keys]
    if not printed:
        return None
    columns = tuple(
        LayoutColumn(name, uncertain, METRIC[key], column in about.calibrated)
        for name, uncertain, key in dict.fromkeys(
            (n.mechanism, n.uncertain, n.metric) for n in printed
        )
        for column in (PrintedColumn(name, uncertain, key),)
    )
    by_place = {(cell.mechanism, cell.uncertain, cell.epsilon): cell for cell in cells}
    found: dict[float, list[BesidePrint | None]] = {}
    for epsilon in dict.fromkeys(n.epsilon for n in printed):
        own = [by_place.get((c.mechanism, c.uncertain, epsilon)) for c in columns]
        found[epsilon] = [
            None if cell is None else beside_print(about, cell, column.metric)
            for cell, column in zip(own, columns, strict=True)
        ]
    return PaperLayout(
        f"{about.key}-{sheet.key}-beside-print",
        f"{sheet.number} in the paper's layout: {about.title}",
        f"{sheet.title} of the paper's mechanism and of MQM (what the paper calls MQM is MQM with a"
        f" split budget), ours beside the printed number, and ours less printed, taken before"
        f" rounding. {ORIGINS[about.origin]} Mean over {about.repetitions} repetitions ± half of"
        " its 95 % confidence interval; better of ours in bold.",
        agreement_lines(about, [one for row in found.values() for one in row if one is not None]),
        columns,
        tuple(LayoutRow(f"{epsilon:g}", _entries(columns, row)) for epsilon, row in found.items()),
    )


def _entries(
    columns: tuple[LayoutColumn, ...], row: list[BesidePrint | None]
) -> tuple[LayoutEntry | None, ...]:
    return tuple(
        None
        if one is None
        else LayoutEntry(
            one.metric.shown(one.mean),
            one.metric.shown(one.half),
            one.printed.text,
            shown_difference(one),
            best=_best(column, columns, row),
        )
        for column, one in zip(columns, row, strict=True)
    )


def _best(
    column: LayoutColumn, columns: tuple[LayoutColumn, ...], row: list[BesidePrint | None]
) -> bool:
    """Whether a column is the best of those that measure the same, at the table's rounding."""
    same = {
        other: float(column.metric.shown(one.mean))
        for other, one in zip(columns, row, strict=True)
        if one is not None and (other.metric, other.uncertain) == (column.metric, column.uncertain)
    }
    most = (max if column.metric.higher else min)(same.values())
    return same[column] == most
