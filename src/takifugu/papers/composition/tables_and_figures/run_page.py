"""One page with all tables and figures of a run, and what differs from the paper and why."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from takifugu.papers.composition.experiments.findings import JUDGED, MADE_OF, majority_line, word
from takifugu.papers.composition.experiments.verdicts import ClaimVerdict
from takifugu.papers.composition.results import DatasetSummary, Results
from takifugu.papers.composition.tables_and_figures import formats, paper_layout_formats
from takifugu.papers.composition.tables_and_figures.differences import DIFFERENCES, NOTES
from takifugu.papers.composition.tables_and_figures.paper_layout import PaperLayout, layouts
from takifugu.papers.composition.tables_and_figures.paper_tables import (
    ORIGIN,
    ResultTable,
    facts,
    tables,
)
from takifugu.papers.composition.tables_and_figures.print_agreement import (
    agreement_lines,
    all_beside_print,
)
from takifugu.papers.composition.tables_and_figures.world_remarks import world_remarks
from takifugu.reports.html_page import (
    Drawing,
    FactList,
    Listing,
    Page,
    PageTable,
    Paragraphs,
    Part,
    Section,
    Verbatim,
)

TITLE = "Composition for Pufferfish Privacy, reproduced"
LEAD = (
    "The experiments of Bai, He, Gu, Kifer and Maeng: the three most frequent labels of every"
    " group, released under Pufferfish privacy against an adversary who knows the Markov chain. The"
    " paper's mechanism, the baselines done right, and takifugu, side by side."
)


@dataclass(frozen=True)
class DatasetDrawing:
    """A drawing, and the dataset that it belongs to; "" for none."""

    data: str
    drawing: Drawing


@dataclass(frozen=True)
class ResultTablePart:
    """A table of results as a part of the page: two lines of headings, the best in bold."""

    table: ResultTable | PaperLayout

    def html(self) -> str:
        """Its words, and the table in a box that scrolls."""
        if isinstance(self.table, PaperLayout):
            return paper_layout_formats.html(self.table)
        return formats.html(self.table)


def page(
    results: Results,
    figures: Iterable[DatasetDrawing],
    findings: Iterable[ClaimVerdict],
    notices: Sequence[str] = (),
    tables_beside: Sequence[PageTable] = (),
    foot: str = "",
) -> Page:
    """The whole page: one file that can be sent around."""
    drawn, verdicts = list(figures), list(findings)
    keys = {one.key for one in results.about}
    sections = []
    if results.about:
        sections.append(Section("In short", _short(results, verdicts)))
    if notices:
        sections.append(Section("Missing data", [Verbatim("\n".join(notices))]))
    sections.append(Section("What differs from the paper, and why", [_differences()]))
    general = [shown.drawing for shown in drawn if shown.data not in keys]
    if general:
        sections.append(Section("Figures of the paper", general))
    if tables_beside:
        sections.append(Section("Definitions and baselines", list(tables_beside)))
    for one in results.about:
        own = [shown.drawing for shown in drawn if shown.data == one.key]
        sections.append(Section(one.title, _parts(one, results, own)))
    return Page(TITLE, LEAD, sections, foot)


def _short(results: Results, verdicts: list[ClaimVerdict]) -> list[Part]:
    """The verdicts, what their words mean, and how far the printed numbers are from ours."""
    parts: list[Part] = [Paragraphs(JUDGED), Paragraphs(MADE_OF)]
    for one in results.about:
        own = [[v.claim, word(v), v.detail] for v in verdicts if v.data == one.key]
        title = f"{one.title} ({one.origin})"
        parts.append(PageTable(["claim", "verdict", "comparisons"], own, caption=title))
        against = majority_line(one.key, results)
        if against:
            parts.append(Paragraphs(f"{against}."))
    for one in results.about:
        lines = print_lines(one, results)
        if lines:
            above = f"Beside the printed tables: {one.title}."
            parts += [Paragraphs(above, leads=True), Listing(lines)]
    return parts


def print_lines(one: DatasetSummary, results: Results) -> tuple[str, ...]:
    """How far a dataset's numbers are from the printed ones, and in what its world differs."""
    cells = results.of(one.key)
    return (*agreement_lines(one, all_beside_print(one, cells)), *world_remarks(one, cells))


def _parts(one: DatasetSummary, results: Results, drawings: list[Drawing]) -> list[Part]:
    cells = results.of(one.key)
    every: list[ResultTable | PaperLayout] = [*layouts(one, cells), *tables(one, cells)]
    measured = [
        cast("Part", ResultTablePart(table)) for table in every
    ]  # a part is what has html(), though the type names only the builder's own
    origin = Verbatim(ORIGIN[one.origin], alarm=one.origin == "simulated")
    notes = Paragraphs("\n\n".join(one.notes))
    return [origin, FactList(facts(one)), notes, *drawings, *measured]


def _differences() -> PageTable:
    rows = [
        [one.what, one.why, f"docs/explanation/{NOTES}, item {one.item}" if one.item else None]
        for one in DIFFERENCES
    ]
    return PageTable(["what", "why", "where"], rows)
