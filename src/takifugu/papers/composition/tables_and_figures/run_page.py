"""One page with all tables and figures of a run, and what differs from the paper and why."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from takifugu.papers.composition.experiments.findings import word
from takifugu.papers.composition.experiments.verdicts import ClaimVerdict
from takifugu.papers.composition.results import DatasetSummary, Results
from takifugu.papers.composition.tables_and_figures.differences import DIFFERENCES, NOTES
from takifugu.papers.composition.tables_and_figures.formats import html
from takifugu.papers.composition.tables_and_figures.paper_tables import (
    ORIGIN,
    ResultTable,
    facts,
    tables,
)
from takifugu.reports.html_page import (
    Drawing,
    FactList,
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

    table: ResultTable

    def html(self) -> str:
        """Its words, and the table in a box that scrolls."""
        return html(self.table)


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
        sections.append(Section("In short", [_findings(results, verdicts)]))
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


def _findings(results: Results, verdicts: list[ClaimVerdict]) -> PageTable:
    titles = {one.key: one.title for one in results.about}
    rows = [[titles[one.data], one.claim, word(one), one.detail] for one in verdicts]
    return PageTable(["data", "claim", "holds", "where"], rows)


def _parts(one: DatasetSummary, results: Results, drawings: list[Drawing]) -> list[Part]:
    measured = [
        cast("Part", ResultTablePart(table)) for table in tables(one, results.of(one.key))
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
