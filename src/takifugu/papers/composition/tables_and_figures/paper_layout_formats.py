"""A table in the paper's layout as Markdown, CSV, LaTeX (booktabs) or HTML."""

from collections.abc import Iterable, Iterator
from html import escape

from takifugu.papers.composition.tables_and_figures.formats import (
    boxed,
    latex_text,
    letters,
    numbers_csv,
)
from takifugu.papers.composition.tables_and_figures.paper_layout import (
    LINES,
    LayoutEntry,
    LayoutRow,
    PaperLayout,
)
from takifugu.papers.composition.tables_and_figures.paper_tables import DAGGER

EMPTY = LayoutEntry("", "", "", "")


def markdown(table: PaperLayout) -> str:
    """A line each for ours, the printed number and the difference; two headings in one cell."""
    lines = [f"**{table.title}**", "", table.caption, ""]
    lines += [text for line in table.summary for text in (line, "")]
    heads = [
        f"{column.group.removesuffix(' uncertainty')}: {column.heading}" for column in table.columns
    ]
    lines += ["| ε | | " + " | ".join(heads) + " |", "|---" * (2 + len(heads)) + "|"]
    for row in table.rows:
        for line, cells in _lines(row):
            shown = (f"**{text}**{half}" if best else text + half for text, half, best in cells)
            epsilon = row.epsilon if line == LINES[0] else ""
            lines.append(f"| {epsilon} | {line} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def as_csv(table: PaperLayout) -> str:
    """One line a number, for programs; a difference has a plain minus."""
    return numbers_csv(
        table.caption,
        (
            (
                *(row.epsilon, column.uncertain, column.mechanism, column.metric.heading),
                *(column.calibrated, entry),
            )
            for row in table.rows
            for column, entry in zip(table.columns, row.entries, strict=True)
            if entry is not None
        ),
    )


def latex(table: PaperLayout) -> str:
    """The paper's own table; three lines for each ε. Needs booktabs and graphicx."""
    starts = [3 + table.width * place for place in range(len(table.groups))]
    heads = "".join(
        f" & \\multicolumn{{{table.width}}}{{c}}{{{latex_text(name)}}}" for name in table.groups
    )
    rules = " ".join(f"\\cmidrule(r){{{start}-{start + table.width - 1}}}" for start in starts)
    below = "".join(
        f" & {latex_text(column.metric.heading)}{_dagger(column.calibrated)}"
        for column in table.columns
    )
    lines = [
        r"\begin{table*}[p]",
        r"\centering",
        r"\resizebox{\linewidth}{!}{%",
        rf"\begin{{tabular}}{{cl{'c' * len(table.columns)}}}",
        r"\toprule",
        " &" + heads + r" \\ " + rules,
        r"$\varepsilon_{\mathrm{puf}}$ &" + below + r" \\",
    ]
    for row in table.rows:
        lines.append(r"\midrule")
        for line, cells in _lines(row):
            epsilon = row.epsilon if line == LINES[0] else ""
            shown = (
                (rf"\textbf{{{latex_text(text)}}}" if best else latex_text(text))
                + (rf"{{\tiny {latex_text(half)}}}" if half else "")
                for text, half, best in cells
            )
            lines.append(" & ".join([epsilon, line, *shown]) + r" \\")
    known = any(column.calibrated for column in table.columns)
    note = f" {DAGGER} calibrated." if known else ""
    caption = latex_text(" ".join([f"{table.title}.", table.caption + note, *table.summary]))
    lines += [
        r"\bottomrule",
        r"\end{tabular}}",
        rf"\caption{{{caption}}}",
        rf"\label{{tab:{table.key}}}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def html(table: PaperLayout) -> str:
    """A title, what the data is, how far off it is, and the table."""
    heads = "".join(
        f'<th colspan="{table.width}" scope="colgroup">{escape(name)}</th>' for name in table.groups
    )
    below = "".join(
        f'<th scope="col">{escape(column.metric.heading)}'
        + ("<br><small>calibrated</small>" if column.calibrated else "")
        + "</th>"
        for column in table.columns
    )
    body = "".join(_html_rows(row) for row in table.rows)
    words = "".join(f"<p>{escape(line)}</p>\n" for line in table.summary)
    inside = (
        f'<thead><tr><th rowspan="2" scope="col">ε</th><th rowspan="2"></th>{heads}</tr>'
        f"<tr>{below}</tr></thead><tbody>{body}</tbody>"
    )
    lines = [
        [letters(text, half) for text, half, _ in cells]
        for row in table.rows
        for _, cells in _lines(row)
    ]
    return (
        f'<p id="{escape(table.key)}"><strong>{escape(table.title)}.</strong>'
        f" {escape(table.caption)}</p>\n{words}{boxed(inside, table.title, lines, 14)}"
    )


def _html_rows(row: LayoutRow) -> str:
    made = []
    for line, cells in _lines(row):
        first = (
            f'<th scope="rowgroup" rowspan="{len(LINES)}">{escape(row.epsilon)}</th>'
            if line == LINES[0]
            else ""
        )
        shown = "".join(
            f'<td class="number">{_strong(escape(text), best)}'
            + (f"<small>{escape(half)}</small></td>" if half else "</td>")
            for text, half, best in cells
        )
        made.append(f'<tr class="{line}">{first}<th scope="row">{line}</th>{shown}</tr>')
    return "".join(made)


def _lines(row: LayoutRow) -> Iterator[tuple[str, Iterable[tuple[str, str, bool]]]]:
    """The three lines of an ε: a name, and for each column text, ± and whether it is best."""
    every = [entry or EMPTY for entry in row.entries]
    yield LINES[0], [(e.mean, f"±{e.half}" if e.half else "", e.best) for e in every]
    yield LINES[1], [(e.printed, "", False) for e in every]
    yield LINES[2], [(e.difference, "", False) for e in every]


def _strong(text: str, best: bool) -> str:
    return f"<strong>{text}</strong>" if best else text


def _dagger(calibrated: bool) -> str:
    return latex_text(DAGGER) if calibrated else ""
