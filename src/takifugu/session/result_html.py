"""Results in a browser: a fragment for notebooks, and a page in one file to pass on."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from takifugu.reports.html_figures import drawing
from takifugu.reports.html_page import FactList, Page, PageTable, Part, Section, Verbatim
from takifugu.visible import four_digits, visible

if TYPE_CHECKING:
    from takifugu.session.release_result import Result

INTERVAL = "a 95 % interval for the exact number"
SCROLLS = "max-width:100%;overflow-x:auto"  # a notebook has no style sheet of ours


def result_fragment(
    cells: Sequence[Sequence[str]], lines: Sequence[str], facts: Mapping[str, str]
) -> str:
    """A table of text below its names, lines under it, and facts that unfold."""
    names, *rows = cells
    head = "".join(f'<th scope="col">{_escaped(name)}</th>' for name in names)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{_escaped(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    below = "<br>\n".join(map(_escaped, lines))
    terms = "\n".join(
        f"<dt>{_escaped(name)}</dt><dd>{_escaped(value)}</dd>" for name, value in facts.items()
    )
    return (
        f'<div style="{SCROLLS}"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>'
        f"</table></div>\n<p>{below}</p>\n<details><summary>guarantee and provenance</summary>"
        f"<dl>\n{terms}\n</dl></details>"
    )


def result_page(result: "Result") -> Page:
    """A page: the figure and the table, what the guarantee is, where the result came from."""
    facts = result.facts()
    guarantee, title = facts.pop("guarantee"), _capital(facts["query"])
    table = PageTable(
        result.columns,
        [[_shown(value) for value in row] for row in result.rows],
        caption=f"{len(result.rows):,} rows",
    )
    parts: list[Part] = [table]
    if result.query["query"]["name"] != "top_k":  # a ranking is drawn as the table that it is
        kind = "the levels it lies between" if "low level" in result.columns else INTERVAL
        caption = f"Each point is an estimate, with {kind}."
        figure = result.figure(titled=False)
        parts = [drawing(figure, name="result", caption=caption, alt=_alternative(result)), table]
    lead = (
        f"Released {result.at:%Y-%m-%d %H:%M} UTC, with noise that protects the people in the"
        f" data.\n\n{_capital(result.price)}.\n\n{_capital(result.cost.odds_words)}."
    )
    return Page(
        title,
        lead,
        [
            Section("Result", parts),
            Section("What is guaranteed", [Verbatim(guarantee)]),
            Section("Where it came from", [FactList(facts)]),
        ],
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _alternative(result: "Result") -> str:
    """What the figure shows, for those who cannot see it."""
    known = [row for row in result.rows if row]
    if not known:
        return f"{result.title}: no rows."
    first = ", ".join(
        f"{name} {_shown(value)}" for name, value in zip(result.columns, known[0], strict=True)
    )
    return (
        f"{result.title}: {len(known):,} rows, all of them in the table below; the first: {first}."
    )


def _shown(value: object) -> str | int | float | None:
    if value is None or isinstance(value, str | int):
        return value
    return float(value) if isinstance(value, float) else four_digits(float(str(value)))


def _escaped(text: str) -> str:
    return escape(visible(text, keep="\n"))
