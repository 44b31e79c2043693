"""The paper's tables from measured cells: rows of ε, columns of mechanisms and metrics.

A table is a value; `tables_and_figures.formats` writes it as Markdown, CSV, LaTeX or HTML.
Printed numbers stand beside ours only where they belong (`print_agreement.printed_belong`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from takifugu.papers.composition.experiments.measurements import Cell
from takifugu.papers.composition.experiments.printed import printed_majority
from takifugu.papers.composition.results import DatasetSummary, Results
from takifugu.papers.composition.tables_and_figures.layout import (
    SHEETS,
    Metric,
    Sheet,
    mechanisms,
    shown_size,
)
from takifugu.papers.composition.tables_and_figures.print_agreement import (
    beside_print,
    printed_belong,
    shown_difference,
)
from takifugu.papers.composition.tables_and_figures.world_remarks import DATASET, majority_mean

ORIGIN = {
    "paper": "The paper's own data.",
    "real": "Real data, but not the paper's, so its printed numbers do not belong here.",
    "simulated": "SIMULATED DATA: drawn from a model, measured on nobody.",
}
SPENT = ("per-entry ε", "noise")
DAGGER = "†"
PRIORS = {False: "w/o uncertainty", True: "w/ 20 % uncertainty"}


@dataclass(frozen=True)
class Entry:
    """One number of a table, as text.

    Attributes:
        mean: Ours.
        half: Half of its confidence interval.
        printed: What the paper prints there, if that belongs here.
        difference: Ours less printed.
        calibrated: Whether the world was calibrated to the printed column.
        best: Whether it is the best of its row.
    """

    mean: str
    half: str = ""
    printed: str = ""
    difference: str = ""
    calibrated: bool = False
    best: bool = False


@dataclass(frozen=True)
class Row:
    """One ε, with or without uncertainty; ``entries[mechanism][column]``, None if not measured."""

    uncertain: bool
    epsilon: str
    entries: tuple[tuple[Entry, ...] | None, ...]


@dataclass(frozen=True)
class ResultTable:
    """A table ready to be written.

    Attributes:
        key: Its name among files.
        title: One line.
        caption: What the data is, what ± and bold mean.
        mechanisms: The groups of columns.
        columns: What stands below each mechanism.
        rows: Without uncertainty first.
    """

    key: str
    title: str
    caption: str
    mechanisms: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def all_tables(results: Results) -> tuple[ResultTable, ...]:
    """Every table of every dataset."""
    return tuple(table for one in results.about for table in tables(one, results.of(one.key)))


def tables(about: DatasetSummary, cells: Iterable[Cell]) -> tuple[ResultTable, ...]:
    """Tables 1 and 2 of the paper on one dataset, and what each mechanism may spend there."""
    listed = tuple(cells)
    return (*(sheet_table(sheet, about, listed) for sheet in SHEETS), spending_table(about, listed))


def sheet_table(sheet: Sheet, about: DatasetSummary, cells: tuple[Cell, ...]) -> ResultTable:
    """One table of the paper, filled with our own measurements."""

    def entries(cell: Cell) -> tuple[Entry, ...]:
        return tuple(_measured(cell, metric, about) for metric in sheet.metrics)

    rows = tuple(
        _with_best(row, [metric.higher for metric in sheet.metrics])
        for row in _rows(cells, entries)
    )
    return ResultTable(
        f"{about.key}-{sheet.key}",
        f"{sheet.number} ({sheet.title}): {about.title}",
        " ".join(
            [_query(sheet, about), ORIGIN[about.origin], _legend(about), *_majority(cells, about)]
        ),
        _names(cells),
        tuple(metric.heading for metric in sheet.metrics),
        rows,
    )


def spending_table(about: DatasetSummary, cells: tuple[Cell, ...]) -> ResultTable:
    """The per-entry ε that a Pufferfish ε allows each mechanism, and its noise on one count."""

    def entries(cell: Cell) -> tuple[Entry, ...]:
        return Entry(shown_size(cell.epsilon_dp)), Entry(shown_size(cell.noise))

    return ResultTable(
        f"{about.key}-spending",
        f"Per-entry ε and noise: {about.title}",
        f"The per-entry ε that each mechanism may spend, rounded, and the standard deviation of its"
        f" noise on one count. {ORIGIN[about.origin].split(';')[0].rstrip('.')}.",
        _names(cells),
        SPENT,
        tuple(_rows(cells, entries)),
    )


def facts(about: DatasetSummary) -> dict[str, int | str]:
    """The public numbers of a dataset."""
    return {**about.facts, "groups": f"{about.groups} ({about.group_by})"}


def _rows(cells: tuple[Cell, ...], entries: Callable[[Cell], tuple[Entry, ...]]) -> Iterable[Row]:
    found = {(cell.mechanism, cell.uncertain, cell.epsilon): cell for cell in cells}
    names = _names(cells)
    for uncertain, epsilon in sorted({(c.uncertain, c.epsilon) for c in cells}):
        there = [found.get((name, uncertain, epsilon)) for name in names]
        yield Row(
            uncertain,
            f"{epsilon:g}",
            tuple(None if cell is None else entries(cell) for cell in there),
        )


def _names(cells: tuple[Cell, ...]) -> tuple[str, ...]:
    return mechanisms(list(dict.fromkeys(cell.mechanism for cell in cells)))


def _measured(cell: Cell, metric: Metric, about: DatasetSummary) -> Entry:
    estimate = cell.measured[metric.key]
    ours = Entry(metric.shown(estimate.mean), metric.shown(estimate.half))
    beside = beside_print(about, cell, metric)
    if beside is None:
        return ours
    return replace(
        ours,
        printed=beside.printed.text,
        difference=shown_difference(beside),
        calibrated=beside.calibrated,
    )


def _with_best(row: Row, higher: list[bool]) -> Row:
    """The best number of each metric in bold, and all that look the same at this rounding."""
    there = [entries for entries in row.entries if entries is not None]
    best = [
        (max if up else min)(float(entries[place].mean) for entries in there)
        for place, up in enumerate(higher)
    ]
    marked = tuple(
        entries
        and tuple(
            replace(e, best=float(e.mean) == most) for e, most in zip(entries, best, strict=True)
        )
        for entries in row.entries
    )
    return Row(row.uncertain, row.epsilon, marked)


def _query(sheet: Sheet, about: DatasetSummary) -> str:
    return (
        f"{sheet.title} for the three most frequent of {about.labels} labels in each of"
        f" {about.groups} groups ({about.group_by}), under various Pufferfish ε."
    )


def _legend(about: DatasetSummary) -> str:
    return (
        f"Mean over {about.repetitions} repetitions ± half of its 95 % confidence interval; best in"
        f" bold.{_brackets(about)}"
    )


def _brackets(about: DatasetSummary) -> str:
    if not printed_belong(about):
        return ""
    known = (
        f" {DAGGER}: the world was calibrated to that column, so that agreement shows nothing."
        if about.calibrated
        else ""
    )
    return f" In brackets the printed number, and ours less printed, taken before rounding.{known}"


def _majority(cells: tuple[Cell, ...], about: DatasetSummary) -> list[str]:
    """Majority needs no ε: it says the same three labels everywhere, and stands in the caption."""
    mean = majority_mean(cells)
    if mean is None:
        return []
    belongs = about.origin in ("paper", "simulated")
    of = "" if printed_belong(about) else f" for {DATASET[about.family]}"
    printed = f" (printed{of}: {100 * printed_majority(about.family):.2f} %)" * belongs
    return [f"Majority, which uses nothing of what is released: {100 * mean:.2f} %{printed} Acc@k."]
