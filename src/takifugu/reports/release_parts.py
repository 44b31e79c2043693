"""A release in a privacy report: what was asked, what it cost, and what was published."""

from collections.abc import Sequence
from typing import Any

from takifugu.reports.html_figures import drawing
from takifugu.reports.html_page import (
    Cell,
    Drawing,
    FactList,
    PageTable,
    Paragraphs,
    Part,
    Section,
)
from takifugu.reports.report_sentences import moment
from takifugu.reports.report_values import ReportedRelease
from takifugu.reports.result_figure import ranking_numbers, result_figure
from takifugu.visible import four_digits

MAX_ROWS = 300  # of a table in the report
MAX_PANELS, MAX_BARS, PANELS_ACROSS = 6, 20, 2  # of a figure in the report
MAX_FIGURE_INCHES = 12.5  # inches of two panels side by side: on paper they are two thirds as large


def release_section(release: ReportedRelease, number: int, mark: str) -> Section:
    """The section of a release; ``mark`` begins the names of its figures."""
    whom = "no analyst was named" if release.analyst is None else f"to {release.analyst}"
    facts: dict[str, Cell] = {
        "released": f"{moment(release.at)}, {whom}",
        "rows": release.rows,
        "ε alone": None if release.alone is None else four_digits(release.alone, "up"),
        "ε on top": None if release.on_top is None else four_digits(release.on_top, "up"),
        "how it is protected": release.method,
        "predicted error": release.error,
        "drawn by": release.software,
        "event": f"{release.seq}, hash {release.hash}",
    }
    parts: list[Part] = [
        Paragraphs(release.question),
        FactList({name: value for name, value in facts.items() if value not in (None, "")}),
        *(Paragraphs(note) for note in release.notes),
    ]
    if release.table:
        figure = figure_of(release, mark)
        parts += [] if figure is None else [figure]
        parts.append(table_of(release))
    return Section(f"Release {number}: {release.title}", parts)


def figure_of(release: ReportedRelease, mark: str) -> Drawing | None:
    """Its numbers with their intervals; None for a ranking, whose table says it all."""
    numbers = _numbers(release)
    if release.ranked or numbers is None or not numbers:
        return None
    figure = result_figure(
        release.columns,
        [tuple(row) for row in release.table],
        by=tuple(release.by),
        title="",
        most_panels=MAX_PANELS,
        most_bars=MAX_BARS,
        across=PANELS_ACROSS,
        tallest=MAX_FIGURE_INCHES,
    )
    most = max(numbers, key=lambda row: row[-3])
    named = " ".join(map(str, most[:-3])) or "all rows"
    quantile = str(release.columns[-1]).startswith("high level")
    ends = f" (from {four_digits(most[-2])} to {four_digits(most[-1])})"
    if quantile or most[-2] is None:
        ends = ""
    return drawing(
        figure,
        name=mark,
        caption="What was published: points are the released numbers"
        + (
            ", with the levels that they lie between."
            if quantile
            else ", bars their 95 % intervals for the noise."
        ),
        alt=f"{len(numbers):,} released numbers; the largest is {four_digits(most[-3])}{ends}, for"
        f" {named}.",
    )


def _numbers(release: ReportedRelease) -> list[Sequence[Any]] | None:
    """The rows that have an estimate and both ends; None if the table is not of that form."""
    if len(release.columns) < 3 or not str(release.columns[-3]).startswith("estimate"):
        return None
    return [row for row in release.table if isinstance(row[-3], int | float)]


def table_of(release: ReportedRelease) -> PageTable:
    """The table that was published; a ranking has a row for each place."""
    numbers = 0 if _numbers(release) is None else 3  # what comes before them names the row
    caption = "The same as a table."
    if release.ranked:
        numbers = ranking_numbers(release.columns)
        caption = "The ranking, one line for each place."
        if str(release.columns[-1]).startswith("probability"):
            caption += " The probability, where it is known, is that of the place being right."
    rows = [_line(row, numbers) for row in release.table]
    if len(rows) > MAX_ROWS:
        caption += f" The first {MAX_ROWS} of {len(rows):,} lines."
    return PageTable(list(release.columns), rows[:MAX_ROWS], caption)


def _line(row: Sequence[Any], numbers: int) -> list[Cell]:
    """Keys as they are written, and not as numbers: 2012 is a year; then the numbers."""
    keys = len(row) - numbers
    return [*(None if key is None else str(key) for key in row[:keys]), *row[keys:]]
