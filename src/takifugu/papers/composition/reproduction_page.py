"""The page ``docs/explanation/reproduction.md`` and the page of a run, made from results.

Both say what is done otherwise than in the paper, and why. Each is an item of
``docs/explanation/paper-notes.md``, where the tests that show it are named; a test checks that the
numbers here are those of the notes.

``python -m takifugu.papers.composition.reproduction_page`` writes it from the results that are
stored; with RESULTS.json … as arguments it stores these first.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import cast

from takifugu.errors import TakifuguError
from takifugu.papers.composition.data import SOURCES
from takifugu.papers.composition.experiments.measurements import (
    DatasetSummary,
    Results,
    merged,
    printed_numbers,
    read_results,
    shortened,
    write_results,
)
from takifugu.papers.composition.experiments.verdicts import (
    JUDGED,
    MADE_OF,
    ClaimVerdict,
    counted,
    findings,
    majority_line,
    printed_shifts,
    word,
)
from takifugu.papers.composition.tables_and_figures.cell_figures import (
    OVERVIEW,
    overview_figure,
    printed_shift,
)
from takifugu.papers.composition.tables_and_figures.figure_writing import write_figure, write_whole
from takifugu.papers.composition.tables_and_figures.paper_tables import (
    ORIGIN,
    facts,
    layouts,
    tables,
)
from takifugu.papers.composition.tables_and_figures.print_agreement import (
    SHEETS,
    agreement_lines,
    all_beside_print,
    world_remarks,
)
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
    shown,
)

NOTES = "paper-notes.md"


@dataclass(frozen=True)
class PaperDifference:
    """What differs, in a few words and in a few sentences; the item of the notes, if it has one."""

    what: str
    why: str
    item: int | None = None


PAGES = files("takifugu.papers.composition") / "pages"
DIFFERENCES = tuple(
    PaperDifference(**one)
    for one in json.loads((PAGES / "differences.json").read_text(encoding="utf-8"))
)


def page_template(name: str) -> Template:
    """The prose of a page, with a name where something computed stands."""
    return Template((PAGES / name).read_text(encoding="utf-8"))


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
        sections.append(Section("In short", _summary_parts(results, verdicts)))
    if notices:
        sections.append(Section("Missing data", [Verbatim("\n".join(notices))]))
    sections.append(Section("What differs from the paper, and why", [_difference_table()]))
    general = [shown.drawing for shown in drawn if shown.data not in keys]
    if general:
        sections.append(Section("Figures of the paper", general))
    if tables_beside:
        sections.append(Section("Definitions and baselines", list(tables_beside)))
    for one in results.about:
        own = [shown.drawing for shown in drawn if shown.data == one.key]
        sections.append(Section(one.title, _dataset_parts(one, results, own)))
    return Page(TITLE, LEAD, sections, foot)


def _summary_parts(results: Results, verdicts: list[ClaimVerdict]) -> list[Part]:
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


def _dataset_parts(one: DatasetSummary, results: Results, drawings: list[Drawing]) -> list[Part]:
    cells = results.of(one.key)
    every = [*layouts(one, cells), *tables(one, cells)]
    measured = [cast("Part", table) for table in every]  # a part is what has html()
    origin = Verbatim(ORIGIN[one.origin], alarm=one.origin == "simulated")
    notes = Paragraphs("\n\n".join(one.notes))
    return [origin, FactList(facts(one)), notes, *drawings, *measured]


def _difference_table() -> PageTable:
    rows = [
        [one.what, one.why, f"docs/explanation/{NOTES}, item {one.item}" if one.item else None]
        for one in DIFFERENCES
    ]
    return PageTable(["what", "why", "where"], rows)


ROOT = Path(__file__).parents[4]
STORED = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "explanation" / "reproduction.md"


def document(results: Results) -> str:
    """The whole page."""
    return page_template("reproduction.md").substitute(
        summary="\n".join(_summary_lines(results)),
        overview=OVERVIEW,
        differences="\n".join(map(_difference_line, DIFFERENCES)),
        shift="\n".join(_shift_lines()),
        datasets="\n".join(_dataset_lines(results)),
        files="\n".join(_file_lines()),
    )


def write_figures(results: Results, folder: Path) -> None:
    """The two figures that the page shows."""
    write_figure(overview_figure(results), folder / "overview.svg")
    write_figure(printed_shift().figure, folder / "printed-shift.svg")


def _summary_lines(results: Results) -> Iterator[str]:
    verdicts = findings(results)
    claims = list(dict.fromkeys(one.claim for one in verdicts))
    yield "## In short\n"
    yield from (f"{place}. {claim}" for place, claim in enumerate(claims, 1))
    yield f"\n{JUDGED}\n"
    yield f"{MADE_OF}\n"
    yield "| data | " + " | ".join(map(str, range(1, len(claims) + 1))) + " |"
    yield "|---" * (len(claims) + 1) + "|"
    for one in results.about:
        own = {verdict.claim: verdict for verdict in verdicts if verdict.data == one.key}
        cells = [_told(own[claim]) if claim in own else "" for claim in claims]
        yield f"| {one.title} ({one.origin}) | " + " | ".join(cells) + " |"
    yield ""
    titles = {one.key: one.title for one in results.about}
    short = [one for one in verdicts if not one.holds]
    if short:
        yield "Not supported:\n"
        yield from (f"- {titles[one.data]}: {one.claim}: {one.detail}." for one in short)
        yield ""
    against = {one.title: majority_line(one.key, results) for one in results.about}
    if any(against.values()):
        yield "No claim is about Majority:\n"
        yield from (f"- {title}: {line}." for title, line in against.items() if line)
        yield ""
    for one in results.about:
        lines = print_lines(one, results)
        if lines:
            yield f"Beside the printed tables: {one.title}.\n"
            yield from (f"- {line}" for line in lines)
            yield ""


def _told(verdict: ClaimVerdict) -> str:
    """How many comparisons say what, after the verdict where that is not the same word."""
    counts, verdict_word = counted(verdict), word(verdict)
    return counts if counts.startswith(verdict_word) else f"*{verdict_word}*: {counts}"


def _shift_lines() -> Iterator[str]:
    """The shift on the paper's own columns: how far they are apart, moved and not."""
    numbers = printed_numbers()
    for name in dict.fromkeys(number.mechanism for number in numbers):
        for metric in (m for sheet in SHEETS for m in sheet.metrics):
            plain, uncertain = (
                {
                    n.epsilon: n.value
                    for n in numbers
                    if (n.mechanism, n.metric, n.uncertain) == (name, metric.key, flag)
                }
                for flag in (False, True)
            )
            moved = [
                abs(one.difference)
                for one in printed_shifts(plain, uncertain)
                if one.difference is not None
            ]
            still = [abs(uncertain[e] - plain[e]) for e in sorted(plain)[1:]]
            shown_as = [metric.shown(max(apart)) for apart in (moved, still)]
            yield f"| {name} | {metric.heading[:-2]} | {' | '.join(shown_as)} |"


def _difference_line(one: PaperDifference) -> str:
    where = f" ([item {one.item}]({NOTES}))" if one.item else ""
    return f"- **{one.what}.** {one.why}{where}"


def _dataset_lines(results: Results) -> Iterator[str]:
    for one in results.about:
        yield f"## {one.title}\n"
        yield f"*{ORIGIN[one.origin]}*\n"
        yield "; ".join(f"{name} {shown(value)}" for name, value in facts(one).items()) + ".\n"
        if one.notes:
            yield "\n".join(f"- {note}" for note in one.notes) + "\n"
        cells = results.of(one.key)
        yield from (table.markdown() for table in (*layouts(one, cells), *tables(one, cells)))


def _file_lines() -> Iterator[str]:
    for source in SOURCES.values():
        for needed in source.files.values():
            where = f"<{source.published}>" + ", made from it" * source.derived
            yield f"| {source.title} | `{needed.name}` | {needed.shape} | {where} |"


def main() -> None:
    """Store results that are given, and write the page from what is stored."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", nargs="*", type=Path, help="results.json of runs to store")
    given: list[Path] = parser.parse_args().results
    try:
        if given:
            write_results(shortened(merged(map(read_results, given))), STORED)
        results = read_results(STORED)
        write_figures(results, PAGE.with_suffix(""))
        write_whole(PAGE, document(results))
    except TakifuguError as error:
        sys.exit(f"takifugu: {error}")
    print(PAGE.relative_to(ROOT))


if __name__ == "__main__":
    main()
