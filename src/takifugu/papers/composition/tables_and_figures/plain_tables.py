"""Tables of words and numbers as Markdown, CSV, LaTeX (booktabs) and for a page."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from takifugu.papers.composition.tables_and_figures.figure_writing import write_whole
from takifugu.papers.composition.tables_and_figures.formats import latex_text
from takifugu.reports.html_page import PageTable
from takifugu.visible import csv_cell


@dataclass(frozen=True)
class PlainTable:
    """Rows of text under named columns.

    Attributes:
        key: Its name among files.
        title: One line.
        caption: What the rows are, and what a sign in them means.
        columns: Their names.
        rows: As many cells as there are columns, row by row.
        shares: How wide the columns are in LaTeX, as shares of the line; numbers are narrow.
    """

    key: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in (*self.rows, self.shares)):
            raise ValueError(f"every row needs {len(self.columns)} cells")

    def markdown(self) -> str:
        """A title, a caption and a table of pipes."""
        lines = [f"**{self.title}**", "", self.caption, ""]
        lines += [_piped(self.columns), "|---" * len(self.columns) + "|"]
        lines += [_piped(row) for row in self.rows]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """The columns and the rows, for programs."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows([map(csv_cell, row) for row in (self.columns, *self.rows)])
        return out.getvalue()

    def latex(self) -> str:
        """A table with columns that break their lines; needs booktabs and array."""
        total = sum(self.shares)
        widths = "".join(
            rf">{{\raggedright\arraybackslash}}p{{{0.96 * share / total:.3f}\linewidth}}"
            for share in self.shares
        )
        lines = [
            r"\begin{table*}[p]", r"\centering", r"\footnotesize", r"\setlength{\tabcolsep}{2pt}",
            rf"\begin{{tabular}}{{@{{}}{widths}@{{}}}}", r"\toprule",
            " & ".join(map(latex_text, self.columns)) + r" \\ \midrule",
            *(" & ".join(map(latex_text, row)) + r" \\" for row in self.rows),
            r"\bottomrule", r"\end{tabular}",
            rf"\caption{{{latex_text(f'{self.title}. {self.caption}')}}}",
            rf"\label{{tab:{self.key}}}", r"\end{table*}",
        ]  # fmt: skip
        return "\n".join(lines) + "\n"

    def part(self) -> PageTable:
        """The table as a part of a page."""
        return PageTable(self.columns, self.rows, f"{self.title}. {self.caption}")


def write_plain_tables(tables: Sequence[PlainTable], folder: Path) -> list[Path]:
    """Every table as Markdown, CSV and LaTeX: the files."""
    files = []
    for table in tables:
        for end, text in (("md", table.markdown()), ("csv", table.csv()), ("tex", table.latex())):
            write_whole(folder / f"{table.key}.{end}", text)
            files.append(folder / f"{table.key}.{end}")
    return files


def _piped(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
