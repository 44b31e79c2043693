"""The paper's tables from measured cells: rows of ε, columns of mechanisms and metrics.

Printed numbers stand beside ours only where they belong (`print_agreement.printed_belong`); there
Tables 1 and 2 are also given in the paper's own layout, with and without uncertainty side by side.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from takifugu.papers.composition.experiments.measurements import (
    Cell,
    DatasetSummary,
    PrintedColumn,
    Results,
    printed_majority,
    printed_numbers,
)
from takifugu.papers.composition.tables_and_figures.print_agreement import (
    DATASET,
    METRIC,
    SHEETS,
    Metric,
    Sheet,
    agreement_lines,
    beside_print,
    majority_mean,
    mechanisms,
    printed_belong,
    shown_difference,
    shown_size,
)
from takifugu.papers.composition.tables_and_figures.table_formats import (
    DAGGER,
    Entry,
    Group,
    ResultTable,
    Row,
)

ORIGIN = {
    "paper": "The paper's own data.",
    "real": "Real data, but not the paper's, so its printed numbers do not belong here.",
    "simulated": "SIMULATED DATA: drawn from a model, measured on nobody.",
}
ORIGIN_BESIDE_PRINT = {
    "paper": "Measured on the paper's own data.",
    "simulated": "SIMULATED DATA of the paper's size: drawn from a model, measured on nobody.",
}
SPENT = ("per-entry ε", "noise")


def all_tables(results: Results) -> tuple[ResultTable, ...]:
    """Every table of every dataset."""
    return tuple(table for one in results.about for table in tables(one, results.of(one.key)))


def all_layouts(results: Results) -> tuple[ResultTable, ...]:
    """Every table in the paper's layout of every dataset that has printed numbers beside it."""
    return tuple(table for one in results.about for table in layouts(one, results.of(one.key)))


def tables(about: DatasetSummary, cells: Iterable[Cell]) -> tuple[ResultTable, ...]:
    """Tables 1 and 2 of the paper on one dataset, and what each mechanism may spend there."""
    listed = tuple(cells)
    return (*(sheet_table(sheet, about, listed) for sheet in SHEETS), spending_table(about, listed))


def layouts(about: DatasetSummary, cells: Iterable[Cell]) -> tuple[ResultTable, ...]:
    """Tables 1 and 2 in the paper's layout; none if the printed numbers do not belong here."""
    if not printed_belong(about):
        return ()
    listed = tuple(cells)
    every = (_layout(sheet, about, listed) for sheet in SHEETS)
    return tuple(table for table in every if table is not None)


def sheet_table(sheet: Sheet, about: DatasetSummary, cells: tuple[Cell, ...]) -> ResultTable:
    """One table of the paper, filled with our own measurements."""
    groups = _groups(cells)
    return ResultTable(
        f"{about.key}-{sheet.key}",
        f"{sheet.number} ({sheet.title}): {about.title}",
        " ".join(
            [_query(sheet, about), ORIGIN[about.origin], _legend(about), *_majority(cells, about)]
        ),
        groups,
        tuple(metric.heading for metric in sheet.metrics),
        tuple(
            _with_best(row, groups, sheet)
            for row in _rows(cells, groups, lambda cell: _measured(sheet, about, cell))
        ),
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
        _groups(cells),
        SPENT,
        tuple(_rows(cells, _groups(cells), entries)),
    )


def _layout(sheet: Sheet, about: DatasetSummary, cells: tuple[Cell, ...]) -> ResultTable | None:
    """For each ε three lines: our number, the printed one, and the difference."""
    keys = [metric.key for metric in sheet.metrics]
    printed = [n for n in printed_numbers() if n.family == about.family and n.metric in keys]
    if not printed:
        return None
    groups = tuple(
        Group(
            name,
            uncertain,
            frozenset(
                place
                for place, key in enumerate(keys)
                if PrintedColumn(name, uncertain, key) in about.calibrated
            ),
        )
        for name, uncertain in dict.fromkeys((n.mechanism, n.uncertain) for n in printed)
    )
    measured = {(cell.mechanism, cell.uncertain, cell.epsilon): cell for cell in cells}
    in_print = {
        epsilon: [measured.get((g.mechanism, g.uncertain is True, epsilon)) for g in groups]
        for epsilon in dict.fromkeys(n.epsilon for n in printed)
    }
    rows = (
        Row(
            None,
            f"{epsilon:g}",
            tuple(None if cell is None else _measured(sheet, about, cell) for cell in there),
        )
        for epsilon, there in in_print.items()
    )
    compared = (
        beside_print(about, cell, METRIC[key])
        for there in in_print.values()
        for cell in there
        if cell is not None
        for key in keys
    )
    return ResultTable(
        f"{about.key}-{sheet.key}-beside-print",
        f"{sheet.number} in the paper's layout: {about.title}",
        f"{sheet.title} of the paper's mechanism and of MQM (what the paper calls MQM is MQM with a"
        f" split budget), ours beside the printed number, and ours less printed, taken before"
        f" rounding. {ORIGIN_BESIDE_PRINT[about.origin]} Mean over {about.repetitions} repetitions"
        " ± half of its 95 % confidence interval; better of ours in bold.",
        groups,
        tuple(metric.heading for metric in sheet.metrics),
        tuple(_with_best(row, groups, sheet) for row in rows),
        agreement_lines(about, [one for one in compared if one is not None]),
        beside_print=True,
    )


def facts(about: DatasetSummary) -> dict[str, int | str]:
    """The public numbers of a dataset."""
    return {**about.facts, "groups": f"{about.groups} ({about.group_by})"}


def _rows(
    cells: tuple[Cell, ...],
    groups: tuple[Group, ...],
    entries: Callable[[Cell], tuple[Entry, ...]],
) -> Iterable[Row]:
    measured = {(cell.mechanism, cell.uncertain, cell.epsilon): cell for cell in cells}
    for uncertain, epsilon in sorted({(c.uncertain, c.epsilon) for c in cells}):
        there = [measured.get((group.mechanism, uncertain, epsilon)) for group in groups]
        shown = tuple(None if cell is None else entries(cell) for cell in there)
        yield Row(uncertain, f"{epsilon:g}", shown)


def _groups(cells: tuple[Cell, ...]) -> tuple[Group, ...]:
    return tuple(map(Group, mechanisms(list(dict.fromkeys(cell.mechanism for cell in cells)))))


def _measured(sheet: Sheet, about: DatasetSummary, cell: Cell) -> tuple[Entry, ...]:
    return tuple(_entry(cell, metric, about) for metric in sheet.metrics)


def _entry(cell: Cell, metric: Metric, about: DatasetSummary) -> Entry:
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


def _with_best(row: Row, groups: tuple[Group, ...], sheet: Sheet) -> Row:
    """The best of each metric and prior in bold, and all that look the same at this rounding."""

    def best(uncertain: bool | None, place: int) -> float:
        compared = [
            float(entries[place].mean)
            for group, entries in zip(groups, row.entries, strict=True)
            if entries is not None and group.uncertain == uncertain
        ]
        return (max if sheet.metrics[place].higher else min)(compared)

    marked = tuple(
        entries
        and tuple(
            replace(entry, best=float(entry.mean) == best(group.uncertain, place))
            for place, entry in enumerate(entries)
        )
        for group, entries in zip(groups, row.entries, strict=True)
    )
    return replace(row, entries=marked)


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
