"""A table as Markdown, CSV, LaTeX (booktabs) or HTML."""

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from takifugu.papers.composition.tables_and_figures.paper_tables import (
    DAGGER,
    PRIORS,
    Entry,
    ResultTable,
    Row,
)
from takifugu.visible import csv_cell

if TYPE_CHECKING:
    from takifugu.papers.composition.tables_and_figures.paper_layout import LayoutEntry

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
SPACE, HEADING = 1.3, 4.4  # letters between columns, and of the shortest heading
SHORT = {False: "exact", True: "± 20 %"}
PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage{booktabs,graphicx}
\usepackage[a4paper,landscape,margin=12mm]{geometry}
\begin{document}
"""


def markdown(table: ResultTable) -> str:
    """One column a mechanism; the metrics of a mechanism stand side by side in it."""
    lines = [f"**{table.title}**", "", table.caption, ""]
    lines.append(f"Each entry: {' / '.join(table.columns)}.")
    lines += ["", "| ε | prior | " + " | ".join(table.mechanisms) + " |"]
    lines.append("|---" * (2 + len(table.mechanisms)) + "|")
    for row in table.rows:
        shown = [" / ".join(map(_marked, entries)) if entries else "" for entries in row.entries]
        lines.append(f"| {row.epsilon} | {SHORT[row.uncertain]} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def as_csv(table: ResultTable) -> str:
    """One line a number, for programs; a difference has a plain minus."""
    return numbers_csv(
        table.caption,
        (
            (row.epsilon, row.uncertain, mechanism, column, entry.calibrated, entry)
            for row, mechanism, column, entry in _numbers(table)
        ),
    )


def numbers_csv(
    caption: str, numbers: Iterable[tuple[str, bool, str, str, bool, "Entry | LayoutEntry"]]
) -> str:
    """Lines of ε, whether the prior is uncertain, mechanism, metric, whether calibrated, number."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ["epsilon", "prior", "mechanism", "metric", "mean", "half", "printed", "difference",
         "calibrated", "best", "data"]
    )  # fmt: skip
    for epsilon, uncertain, mechanism, metric, calibrated, entry in numbers:
        writer.writerow(
            [epsilon, PRIORS[uncertain], csv_cell(mechanism), csv_cell(metric), entry.mean,
             entry.half, entry.printed, entry.difference.replace("−", "-"), int(calibrated),
             int(entry.best), csv_cell(caption)]
        )  # fmt: skip
    return out.getvalue()


def latex(table: ResultTable) -> str:
    """The paper's layout: mechanisms above metrics, best in bold; needs booktabs and graphicx."""
    width = len(table.columns)
    ends = [2 + width * place for place in range(len(table.mechanisms))]
    heads = "".join(
        f" & \\multicolumn{{{width}}}{{c}}{{{latex_text(name)}}}" for name in table.mechanisms
    )
    rules = " ".join(f"\\cmidrule(r){{{start}-{start + width - 1}}}" for start in ends)
    below = "".join(
        f" & {latex_text(column)}" for _ in table.mechanisms for column in table.columns
    )
    lines = [
        r"\begin{table*}[p]",
        r"\centering",
        r"\resizebox{\linewidth}{!}{%",
        rf"\begin{{tabular}}{{c{'c' * width * len(table.mechanisms)}}}",
        r"\toprule",
        heads + r" \\ " + rules,
        r"$\varepsilon_{\mathrm{puf}}$" + below + r" \\",
    ]
    for uncertain, name in PRIORS.items():
        rows = [row for row in table.rows if row.uncertain == uncertain]
        if not rows:
            continue
        span = 1 + width * len(table.mechanisms)
        lines += [r"\midrule", rf"\multicolumn{{{span}}}{{l}}{{{latex_text(name)}}} \\"]
        lines += [_latex_row(row, width) for row in rows]
    lines += [
        r"\bottomrule",
        r"\end{tabular}}",
        rf"\caption{{{latex_text(f'{table.title}. {table.caption}')}}}",
        rf"\label{{tab:{table.key}}}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def latex_document(tables: Iterable[str]) -> str:
    """Tables in LaTeX as one document that compiles by itself."""
    return PREAMBLE + "\n\\clearpage\n".join(tables) + "\\end{document}\n"


def latex_text(text: str) -> str:
    """Text that LaTeX sets as it is; accents are kept, what it has no letter for loses its form."""
    return "".join(_latex_letter(letter) for letter in text)


def html(table: ResultTable) -> str:
    """A title, what the data is, and a table with two lines of headings."""
    width = len(table.columns)
    heads = "".join(
        f'<th colspan="{width}" scope="colgroup">{escape(name)}</th>' for name in table.mechanisms
    )
    below = "".join(
        f'<th scope="col">{escape(column)}</th>'
        for _ in table.mechanisms
        for column in table.columns
    )
    body = []
    for uncertain, name in PRIORS.items():
        rows = [row for row in table.rows if row.uncertain == uncertain]
        if rows:
            span = 1 + width * len(table.mechanisms)
            body.append(f'<tr><th colspan="{span}" scope="rowgroup">{escape(name)}</th></tr>')
            body += [_html_row(row, width) for row in rows]
    inside = (
        f'<thead><tr><th rowspan="2" scope="col">ε</th>{heads}</tr><tr>{below}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody>"
    )
    lines = [
        [
            max(letters(entry.mean, entry.half), letters("", _bracket(entry)[2:]))
            for entries in row.entries
            for entry in entries or (Entry(""),) * width
        ]
        for row in table.rows
    ]
    return (
        f'<p id="{escape(table.key)}"><strong>{escape(table.title)}.</strong>'
        f" {escape(table.caption)}</p>\n{boxed(inside, table.title, lines)}"
    )


def boxed(inside: str, name: str, lines: Sequence[Sequence[float]], beside: int = 3) -> str:
    """A table in a box that is as wide as the screen allows, and says so where it must scroll.

    Args:
        inside: Its head and body.
        name: What it is, for those who cannot see it.
        lines: For each line how many letters each of its numbers takes (`letters`).
        beside: The letters of what stands before the numbers.
    """
    columns = [max(column) + SPACE for column in zip(*lines, strict=True)]
    return (
        f'<div class="box wide sideways" style="--letters: {beside + round(sum(columns))}"'
        f' tabindex="0" role="group" aria-label="{escape(name)}">'
        f'<table class="results">\n{inside}</table></div>\n'
    )


def letters(mean: str, small: str) -> float:
    """The width of a number and of what stands smaller beside it, in letters of the page."""
    return max(len(mean) + 0.83 * (len(small) + 1), HEADING)


def _numbers(table: ResultTable) -> Iterable[tuple[Row, str, str, Entry]]:
    for row in table.rows:
        for mechanism, entries in zip(table.mechanisms, row.entries, strict=True):
            for column, entry in zip(table.columns, entries or (), strict=False):
                yield row, mechanism, column, entry


def _marked(entry: Entry) -> str:
    mean = f"**{entry.mean}**" if entry.best else entry.mean
    half = f"±{entry.half}" if entry.half else ""
    return mean + half + _bracket(entry)


def _bracket(entry: Entry) -> str:
    """The printed number and the difference; a dagger where the world was calibrated to it."""
    if not entry.printed:
        return ""
    return f" [{entry.printed}, {entry.difference}]{DAGGER if entry.calibrated else ''}"


def _latex_row(row: Row, width: int) -> str:
    shown = []
    for entries in row.entries:
        for entry in entries or (Entry(""),) * width:
            mean = latex_text(entry.mean)
            text = rf"\textbf{{{mean}}}" if entry.best else mean
            text += rf"{{\tiny$\pm${latex_text(entry.half)}}}" if entry.half else ""
            shown.append(text + latex_text(_bracket(entry)))
    return " & ".join([row.epsilon, *shown]) + r" \\"


def _html_row(row: Row, width: int) -> str:
    shown = []
    for entries in row.entries:
        for entry in entries or (Entry(""),) * width:
            mean = escape(entry.mean)
            text = f"<strong>{mean}</strong>" if entry.best else mean
            text += f"<small>±{escape(entry.half)}</small>" if entry.half else ""
            text += f"<br><small>{escape(_bracket(entry).strip())}</small>" if entry.printed else ""
            shown.append(f'<td class="number">{text}</td>')
    return f'<tr><th scope="row">{escape(row.epsilon)}</th>{"".join(shown)}</tr>'


def _latex_letter(letter: str) -> str:
    if letter in LATEX:
        return LATEX[letter]
    plain = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
    if ord(letter) < 0x180 and plain:  # ASCII, and Latin letters with accents
        return letter
    return "".join(LATEX.get(one, one) for one in plain) or "?"
