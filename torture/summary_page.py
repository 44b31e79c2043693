"""One page, and the same as Markdown, of all the parts whose files lie in a folder."""

from collections.abc import Sequence
from pathlib import Path

from takifugu._core.atomic import write_whole
from takifugu.reports.html_page import (
    FactList,
    Listing,
    Notice,
    Page,
    PageTable,
    Paragraphs,
    Section,
    write_page,
)
from takifugu.visible import four_digits
from torture.part_report import Cell, PartSummary, ReportTable
from torture.parts import PARTS

MANY = 20  # findings of one part that are shown; the file has them all


def write_summary(folder: Path) -> bool:
    """Write ``summary.html`` and ``summary.md``; whether nothing was found and all have ended."""
    parts = read_parts(folder)
    if not parts:
        raise FileNotFoundError(f"no part has been run in {folder}")
    write_page(summary_page(parts), folder / "summary.html")
    write_whole(folder / "summary.md", summary_text(parts))
    return all(part.ended and not part.findings for part in parts)


def read_parts(folder: Path) -> list[PartSummary]:
    """The parts that have run, in their order."""
    files = [folder / f"{part.name}.json" for part in PARTS]
    return [PartSummary.read(file) for file in files if file.exists()]


def summary_page(parts: Sequence[PartSummary]) -> Page:
    """The page."""
    found = sum(len(part.findings) for part in parts)
    notice = Notice(verdict(parts), alarm=bool(found) or not all(part.ended for part in parts))
    sections = [Section("All parts", [notice, PageTable(OVERVIEW, overview(parts))])]
    sections += [_section(part) for part in parts]
    return Page("Torture", lead(parts), sections, foot=parts[0].machine)


def summary_text(parts: Sequence[PartSummary]) -> str:
    """The same as Markdown."""
    lines = ["# Torture", "", lead(parts), "", verdict(parts), ""]
    lines += [*table_lines(OVERVIEW, overview(parts)), ""]
    for part in parts:
        lines += [f"## {_title(part)}", ""]
        lines += [f"- {_counted(part)}", *(f"- {text}" for text in part.remarks), ""]
        lines += [f"- **{one.what}** ({one.again})" for one in part.findings[:MANY]]
        for table in part.tables:
            lines += ["", f"**{table.title}**", "", *table_lines(table.columns, table.rows), ""]
    return "\n".join(lines).rstrip() + "\n"


def lead(parts: Sequence[PartSummary]) -> str:
    """Where and how long."""
    hours = sum(part.seconds for part in parts) / 3600
    commits = sorted({part.commit for part in parts})
    return (
        f"{len(parts)} of {len(PARTS)} parts, {hours:.2f} hours of them together, "
        f"on {parts[0].machine}; commit {', '.join(commits)}."
    )


def verdict(parts: Sequence[PartSummary]) -> str:
    """What was found, in a sentence or two."""
    found = sum(len(part.findings) for part in parts)
    short = [part.part for part in parts if not part.ended]
    missing = [part.name for part in PARTS if part.name not in {one.part for one in parts}]
    said = [f"{found} findings." if found else "Nothing was found."]
    if short:
        said.append(f"Not ended: {', '.join(short)}.")
    if missing:
        said.append(f"Not run: {', '.join(missing)}.")
    return " ".join(said)


OVERVIEW = ("part", "minutes", "done", "findings", "seed")


def overview(parts: Sequence[PartSummary]) -> list[tuple[Cell, ...]]:
    """One row a part."""
    return [
        (part.part, round(part.seconds / 60, 1), _counted(part), len(part.findings), str(part.seed))
        for part in parts
    ]


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[str]:
    """A table of pipes."""
    lines = [_piped(columns), "|---" * len(columns) + "|"]
    return [*lines, *(_piped([_shown(cell) for cell in row]) for row in rows)]


def _section(part: PartSummary) -> Section:
    facts = FactList(
        {
            "began": part.began,
            "minutes": f"{part.seconds / 60:.1f} of {part.minutes:.1f}",
            "seed": str(part.seed),
            "commit": part.commit,
            **part.counts,
        }
    )
    pieces: list[Paragraphs | Listing | Notice | FactList | PageTable] = [facts]
    pieces += [Notice(f"{one.what}\n\n{one.again}", alarm=True) for one in part.findings[:MANY]]
    if len(part.findings) > MANY:
        pieces.append(Paragraphs(f"{len(part.findings) - MANY} more are in {part.part}.json."))
    if part.remarks:
        pieces.append(Listing(part.remarks))
    pieces += [_page_table(table) for table in part.tables]
    return Section(_title(part), pieces)


def _page_table(table: ReportTable) -> PageTable:
    return PageTable(table.columns, table.rows, table.title)


def _title(part: PartSummary) -> str:
    return next(one.title for one in PARTS if one.name == part.part)


def _counted(part: PartSummary) -> str:
    return ", ".join(f"{number:,} {what}" for what, number in part.counts.items())


def _shown(cell: Cell) -> str:
    return four_digits(cell) if isinstance(cell, float) else str(cell)


def _piped(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
