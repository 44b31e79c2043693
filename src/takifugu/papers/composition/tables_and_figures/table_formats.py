"""Tables as Markdown, CSV, LaTeX (booktabs) and HTML: of words, and of measured numbers."""

import csv
import io
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from takifugu.papers.composition.tables_and_figures.figure_writing import write_whole
from takifugu.reports.html_page import PageTable
from takifugu.visible import csv_cell

LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''",
    "ε": r"$\varepsilon$", "ℓ": r"$\ell$", "±": r"$\pm$", "∞": r"$\infty$", "×": r"$\times$",
    "⊕": r"$\oplus$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "→": r"$\to$", "≥": r"$\geq$",
    "≤": r"$\leq$", "−": "$-$", "τ": r"$\tau$", "δ": r"$\delta$", "π": r"$\pi$", "λ": r"$\lambda$",
    "–": "--", "—": "---", "…": r"\dots{}", "’": "'", "“": "``", "”": "''", "·": r"$\cdot$",
    "†": r"\dag{}", "ß": r"\ss{}", "ø": r"\o{}", "æ": r"\ae{}",
}  # fmt: skip
COLUMN_GAP, SHORTEST_HEADING = 1.3, 4.4  # in letters
DAGGER = "†"
PRIOR = {False: "w/o uncertainty", True: "w/ uncertainty"}
PRIOR_SECTION = {False: "w/o uncertainty", True: "w/ 20 % uncertainty"}
PRIOR_IN_MARKDOWN = {False: "exact", True: "± 20 %"}
NUMBER_COLUMNS = (
    "epsilon", "prior", "mechanism", "metric", "mean", "half", "printed", "difference",
    "calibrated", "best", "data",
)  # fmt: skip
PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage{booktabs,graphicx}
\usepackage[a4paper,landscape,margin=12mm]{geometry}
\begin{document}
"""


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
        return _markdown(self.title, [self.caption], self.columns, self.rows)

    def csv(self) -> str:
        """The columns and the rows, for programs."""
        return _csv([map(csv_cell, row) for row in (self.columns, *self.rows)])

    def latex(self) -> str:
        """A table with columns that break their lines; needs booktabs and array."""
        total = sum(self.shares)
        widths = "".join(
            rf">{{\raggedright\arraybackslash}}p{{{0.96 * share / total:.3f}\linewidth}}"
            for share in self.shares
        )
        before = [
            r"\footnotesize", r"\setlength{\tabcolsep}{2pt}",
            rf"\begin{{tabular}}{{@{{}}{widths}@{{}}}}", r"\toprule",
            " & ".join(map(latex_text, self.columns)) + r" \\ \midrule",
        ]  # fmt: skip
        body = [" & ".join(map(latex_text, row)) + r" \\" for row in self.rows]
        return _latex([*before, *body], "", f"{self.title}. {self.caption}", self.key)

    def part(self) -> PageTable:
        """The table as a part of a page."""
        return PageTable(self.columns, self.rows, f"{self.title}. {self.caption}")


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

    @property
    def bracket(self) -> str:
        """The printed number and the difference; a dagger where the world was calibrated to it."""
        if not self.printed:
            return ""
        return f" [{self.printed}, {self.difference}]{DAGGER if self.calibrated else ''}"


@dataclass(frozen=True)
class Group:
    """The columns of one mechanism.

    Attributes:
        mechanism: Its name.
        uncertain: Whether the prior is only known to 20 %; None where rows say that.
        calibrated: The columns, by position, that the world was calibrated to.
    """

    mechanism: str
    uncertain: bool | None = None
    calibrated: frozenset[int] = frozenset()

    @property
    def heading(self) -> str:
        """What stands above its columns."""
        if self.uncertain is None:
            return self.mechanism
        return f"{self.mechanism} {PRIOR[self.uncertain]}"


@dataclass(frozen=True)
class Row:
    """One ε; ``entries[group][column]``, None where nothing was measured.

    ``uncertain`` is None where groups say whether the prior is uncertain.
    """

    uncertain: bool | None
    epsilon: str
    entries: tuple[tuple[Entry, ...] | None, ...]


@dataclass(frozen=True)
class _ShownCell:
    """A cell in one line of a table: a number, what is smaller beside it, what is below it."""

    text: str = ""
    small: str = ""
    below: str = ""
    best: bool = False

    @property
    def letters(self) -> float:
        """Its width, in letters of the page."""
        return max(
            len(self.text) + 0.83 * max(len(self.small), 1),
            0.83 * (len(self.below) - 1),
            SHORTEST_HEADING,
        )

    def markdown(self) -> str:
        """The best in bold."""
        return (f"**{self.text}**" if self.best else self.text) + self.small + self.below

    def latex(self, gap: str) -> str:
        """The best in bold, what is small in tiny letters after ``gap``."""
        text = latex_text(self.text)
        text = rf"\textbf{{{text}}}" if self.best else text
        text += rf"{{\tiny{gap}{latex_text(self.small)}}}" if self.small else ""
        return text + latex_text(self.below)

    def html(self) -> str:
        """The best in bold, what is small beside or below it."""
        text = f"<strong>{escape(self.text)}</strong>" if self.best else escape(self.text)
        text += f"<small>{escape(self.small)}</small>" if self.small else ""
        text += f"<br><small>{escape(self.below.strip())}</small>" if self.below else ""
        return f'<td class="number">{text}</td>'


_Line = tuple[str, tuple[tuple[_ShownCell, ...], ...]]  # its name, and the cells of each group


@dataclass(frozen=True)
class ResultTable:
    """Measured numbers: rows of ε, and for each mechanism several columns.

    Attributes:
        key: Its name among files.
        title: One line.
        caption: What the data is, what ± and bold mean.
        groups: The mechanisms.
        columns: What stands below each mechanism.
        rows: Without uncertainty first.
        summary: Sentences below the caption.
        beside_print: Whether every ε takes three lines, as in the paper's own layout: our number,
            the printed one, and the difference. If not, the printed number is in brackets.
    """

    key: str
    title: str
    caption: str
    groups: tuple[Group, ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    summary: tuple[str, ...] = ()
    beside_print: bool = False

    def markdown(self) -> str:
        """A column for each mechanism, or for each metric where every ε takes three lines."""
        above, rows = [self.caption, *self.summary], []
        if self.beside_print:
            heads = ["ε", ""]
            for group in self.groups:
                name = group.heading.removesuffix(" uncertainty")
                heads += [
                    f"{name}: {column}{' calibrated' if place in group.calibrated else ''}"
                    for place, column in enumerate(self.columns)
                ]
        else:
            above.append(f"Each entry: {' / '.join(self.columns)}.")
            heads = ["ε", "prior", *(group.heading for group in self.groups)]
        for row in self.rows:
            for place, (name, groups) in enumerate(self._lines(row)):
                texts = [[cell.markdown() for cell in cells] for cells in groups]
                if self.beside_print:
                    lead = [row.epsilon if not place else "", name]
                    rows.append([*lead, *(text for cells in texts for text in cells)])
                else:
                    measured = [entries is not None for entries in row.entries]
                    shown = [" / ".join(t) * m for t, m in zip(texts, measured, strict=True)]
                    rows.append([row.epsilon, PRIOR_IN_MARKDOWN[bool(row.uncertain)], *shown])
        return _markdown(self.title, above, heads, rows)

    def csv(self) -> str:
        """One line a number, for programs; a difference has a plain minus."""
        rows: list[Iterable[object]] = [NUMBER_COLUMNS]
        for row in self.rows:
            for group, entries in zip(self.groups, row.entries, strict=True):
                uncertain = row.uncertain if group.uncertain is None else group.uncertain
                about = row.epsilon, PRIOR_SECTION[bool(uncertain)], csv_cell(group.mechanism)
                for column, it in zip(self.columns, entries or (), strict=False):
                    numbers = it.mean, it.half, it.printed, it.difference.replace("−", "-")
                    flags = int(it.calibrated), int(it.best)
                    rows.append(
                        [*about, csv_cell(column), *numbers, *flags, csv_cell(self.caption)]
                    )
        return _csv(rows)

    def latex(self) -> str:
        """The paper's layout: mechanisms above metrics, best in bold; needs booktabs, graphicx."""
        width, lead = len(self.columns), " &" * self.beside_print
        starts = [2 + self.beside_print + width * place for place in range(len(self.groups))]
        heads = "".join(
            f" & \\multicolumn{{{width}}}{{c}}{{{latex_text(group.heading)}}}"
            for group in self.groups
        )
        rules = " ".join(f"\\cmidrule(r){{{start}-{start + width - 1}}}" for start in starts)
        below = "".join(
            f" & {latex_text(column)}{latex_text(DAGGER) * (place in group.calibrated)}"
            for group in self.groups
            for place, column in enumerate(self.columns)
        )
        lines = [
            r"\resizebox{\linewidth}{!}{%",
            rf"\begin{{tabular}}{{c{'l' * self.beside_print}{'c' * width * len(self.groups)}}}",
            r"\toprule",
            lead + heads + r" \\ " + rules,
            r"$\varepsilon_{\mathrm{puf}}$" + lead + below + r" \\",
        ]
        for heading, rows in self._sections():
            lines.append(r"\midrule")
            if heading:
                span = 1 + width * len(self.groups)
                lines.append(rf"\multicolumn{{{span}}}{{l}}{{{latex_text(heading)}}} \\")
            for row in rows:
                for place, (name, groups) in enumerate(self._lines(row)):
                    first = [row.epsilon if not place else "", *[name] * self.beside_print]
                    gap = " " * self.beside_print
                    shown = [cell.latex(gap) for cells in groups for cell in cells]
                    lines.append(" & ".join([*first, *shown]) + r" \\")
        calibrated = any(group.calibrated for group in self.groups) and self.beside_print
        caption = self.caption + f" {DAGGER} calibrated." * calibrated
        return _latex(lines, "}", " ".join([f"{self.title}.", caption, *self.summary]), self.key)

    def html(self) -> str:
        """A title, what the data is, and a table with two lines of headings, in a box."""
        width = len(self.columns)
        heads = "".join(
            f'<th colspan="{width}" scope="colgroup">{escape(group.heading)}</th>'
            for group in self.groups
        )
        mark = "<br><small>calibrated</small>"
        below = "".join(
            f'<th scope="col">{escape(column)}{mark * (place in group.calibrated)}</th>'
            for group in self.groups
            for place, column in enumerate(self.columns)
        )
        body = []
        for heading, rows in self._sections():
            if heading:
                span = 1 + width * len(self.groups)
                body.append(
                    f'<tr><th colspan="{span}" scope="rowgroup">{escape(heading)}</th></tr>'
                )
            for row in rows:
                body += self._html_rows(row)
        lead = '<th rowspan="2"></th>' * self.beside_print
        inside = (
            f'<thead><tr><th rowspan="2" scope="col">ε</th>{lead}{heads}</tr>'
            f"<tr>{below}</tr></thead><tbody>{''.join(body)}</tbody>"
        )
        letters = [
            [cell.letters for cells in groups for cell in cells]
            for row in self.rows
            for _, groups in self._lines(row)
        ]
        total = round(sum(max(column) + COLUMN_GAP for column in zip(*letters, strict=True)))
        words = "".join(f"<p>{escape(line)}</p>\n" for line in self.summary)
        return (
            f'<p id="{escape(self.key)}"><strong>{escape(self.title)}.</strong>'
            f" {escape(self.caption)}</p>\n{words}"
            f'<div class="box wide sideways"'
            f' style="--letters: {(14 if self.beside_print else 3) + total}"'
            f' tabindex="0" role="group" aria-label="{escape(self.title)}">'
            f'<table class="results">\n{inside}</table></div>\n'
        )

    def _html_rows(self, row: Row) -> Iterator[str]:
        for place, (name, groups) in enumerate(self._lines(row)):
            epsilon = escape(row.epsilon)
            if self.beside_print:
                first = f'<th scope="rowgroup" rowspan="3">{epsilon}</th>' * (not place)
                start = f'<tr class="{name}">{first}<th scope="row">{name}</th>'
            else:
                start = f'<tr><th scope="row">{epsilon}</th>'
            yield f"{start}{''.join(cell.html() for cells in groups for cell in cells)}</tr>"

    def _sections(self) -> Iterator[tuple[str, list[Row]]]:
        """Rows that stand together, and what stands above them: the prior, or nothing."""
        if self.beside_print:
            yield from (("", [row]) for row in self.rows)
            return
        for uncertain, heading in PRIOR_SECTION.items():
            rows = [row for row in self.rows if row.uncertain == uncertain]
            if rows:
                yield heading, rows

    def _lines(self, row: Row) -> Iterator[_Line]:
        """The lines that a row takes."""
        every = [entries or (Entry(""),) * len(self.columns) for entries in row.entries]

        def line(name: str, *, numbers: str, brackets: bool = False) -> _Line:
            ours = numbers == "mean"
            return name, tuple(
                tuple(
                    _ShownCell(
                        getattr(it, numbers),
                        f"±{it.half}" if ours and it.half else "",
                        it.bracket if brackets else "",
                        ours and it.best,
                    )
                    for it in entries
                )
                for entries in every
            )

        if not self.beside_print:
            yield line("", numbers="mean", brackets=True)
            return
        yield line("ours", numbers="mean")
        yield line("printed", numbers="printed")
        yield line("difference", numbers="difference")


Table = PlainTable | ResultTable


def write_table_files(tables: Iterable[Table], folder: Path) -> list[Path]:
    """Every table as Markdown, CSV and LaTeX: the files."""
    files = []
    for table in tables:
        for end, text in (("md", table.markdown()), ("csv", table.csv()), ("tex", table.latex())):
            files.append(folder / f"{table.key}.{end}")
            write_whole(files[-1], text)
    return files


def latex_document(tables: Iterable[Table]) -> str:
    """Tables as one LaTeX document that compiles by itself."""
    return PREAMBLE + "\n\\clearpage\n".join(t.latex() for t in tables) + "\\end{document}\n"


def latex_text(text: str) -> str:
    """Text that LaTeX sets as it is; accents are kept, what it has no letter for loses its form."""
    return "".join(_latex_letter(letter) for letter in text)


def _latex_letter(letter: str) -> str:
    if letter in LATEX:
        return LATEX[letter]
    plain = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
    if ord(letter) < 0x180 and plain:  # ASCII, and Latin letters with accents
        return letter
    return "".join(LATEX.get(one, one) for one in plain) or "?"


def _markdown(
    title: str, above: Iterable[str], heads: Sequence[str], rows: Iterable[Sequence[str]]
) -> str:
    lines = [f"**{title}**", ""]
    for text in above:
        lines += [text, ""]
    head, *body = (
        "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
        for cells in (heads, *rows)
    )
    rule = "|---" * len(heads) + "|"
    return "\n".join([*lines, head.replace("|  |", "| |"), rule, *body]) + "\n"


def _csv(rows: Iterable[Iterable[object]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _latex(inside: Sequence[str], after: str, caption: str, key: str) -> str:
    lines = [
        r"\begin{table*}[p]", r"\centering", *inside, r"\bottomrule", rf"\end{{tabular}}{after}",
        rf"\caption{{{latex_text(caption)}}}", rf"\label{{tab:{key}}}", r"\end{table*}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"
