"""One HTML page from values: sections of paragraphs, facts, tables and drawings, in one file.

Everything is escaped, nothing is fetched, and nothing runs: a policy in the page forbids both. It
follows the reader's choice of light or dark and prints on white. What is wider than the screen
scrolls in a box of its own, whose edges are shaded where there is more, and which keys can reach.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape as escape_html
from pathlib import Path

from takifugu._core.atomic import write_whole
from takifugu.reports.html_style import STYLE, themed
from takifugu.visible import four_digits, visible

Cell = str | int | float | None
WIDTH = re.compile(r'<svg [^>]*?\bwidth="([0-9.]+(?:pt|px))"')
MAX_STANDING_ROWS = 24  # rows; a longer table scrolls on a screen, and is whole on paper
PAPER_LETTERS = 80  # letters that a line of a table surely has room for on paper


@dataclass(frozen=True)
class Paragraphs:
    """Paragraphs: an empty line begins a new one.

    Attributes:
        text: The paragraphs.
        leads: Whether they lead to what comes next, and stay on one page with it.
    """

    text: str
    leads: bool = False

    def html(self) -> str:
        """The paragraphs."""
        parts = [part.strip() for part in re.split(r"\n\s*\n", self.text)]
        kind = ' class="leads"' if self.leads else ""
        return "".join(f"<p{kind}>{escape(part)}</p>\n" for part in parts if part)


@dataclass(frozen=True)
class Listing:
    """Sentences or names, one below the other.

    Attributes:
        items: One each.
        numbered: Whether they are counted.
    """

    items: Sequence[str]
    numbered: bool = False

    def html(self) -> str:
        """A list."""
        kind = "ol" if self.numbered else "ul"
        lines = "".join(f"<li>{escape(item)}</li>\n" for item in self.items)
        return f"<{kind}>\n{lines}</{kind}>\n"


@dataclass(frozen=True)
class Notice:
    """What a reader must not overlook.

    Attributes:
        text: Paragraphs.
        alarm: Whether it is bad news.
    """

    text: str
    alarm: bool = False

    def html(self) -> str:
        """Paragraphs in a frame."""
        kind = "notice alarm" if self.alarm else "notice"
        return f'<div class="{kind}">\n{Paragraphs(self.text).html()}</div>\n'


@dataclass(frozen=True)
class Definitions:
    """Words and what they mean, in sentences."""

    words: Mapping[str, str]

    def html(self) -> str:
        """A list of terms, each above its meaning."""
        return _terms(self.words, ' class="words"')


@dataclass(frozen=True)
class Verbatim:
    """Text as it was printed elsewhere, line by line.

    Attributes:
        text: The lines.
        alarm: Whether it is shown as bad news.
    """

    text: str
    alarm: bool = False

    def html(self) -> str:
        """A block of its own."""
        kind = ' class="alarm"' if self.alarm else ""
        return f"<pre{kind}>{escape(self.text.strip())}</pre>\n"


@dataclass(frozen=True)
class FactList:
    """Names and values, one line each."""

    pairs: Mapping[str, Cell]

    def html(self) -> str:
        """A list of terms."""
        return _terms(self.pairs)


@dataclass(frozen=True)
class PageTable:
    """Rows under named columns; numbers stand to the right.

    Attributes:
        columns: Their names.
        rows: As many cells as there are columns, row by row.
        caption: What the table shows.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"every row needs {len(self.columns)} cells")

    def html(self) -> str:
        """The table in a box that scrolls if it must."""
        caption = f"<caption>{escape(self.caption)}</caption>\n" if self.caption else ""
        numbers = [
            all(_is_number(row[k]) or row[k] is None for row in self.rows) and bool(self.rows)
            for k in range(len(self.columns))
        ]
        head = "".join(
            f'<th scope="col"{_side(number)}>{escape(name)}</th>'
            for name, number in zip(self.columns, numbers, strict=True)
        )
        body = "".join(
            "<tr>"
            + "".join(
                f"<td{_side(number)}>{escape(shown(cell))}</td>"
                for cell, number in zip(row, numbers, strict=True)
            )
            + "</tr>\n"
            for row in self.rows
        )
        tall = " tall" if len(self.rows) > MAX_STANDING_ROWS else ""
        name = escape(self.caption or ", ".join(self.columns))
        letters = self._letters()
        whole = ' class="whole"' if letters <= PAPER_LETTERS else ""
        return (
            f'<div class="box sideways{tall}" style="--letters: {letters}" tabindex="0"'
            f' role="group" aria-label="{name}"><table{whole}>\n'
            f"{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
        )

    def _letters(self) -> int:
        """The letters that a line needs if no word is broken, with the space between columns."""
        columns = (
            [name, *(shown(row[k]) for row in self.rows)] for k, name in enumerate(self.columns)
        )
        return sum(
            2 + max(len(word) for cell in column for word in cell.split(" ")) for column in columns
        )


@dataclass(frozen=True)
class Drawing:
    """A figure that stands in the page; `plot_files.drawing` makes one.

    Attributes:
        svg: The element, of our own making.
        caption: What it shows, in words.
        alt: The same for those who cannot see it.
    """

    svg: str
    caption: str
    alt: str

    def __post_init__(self) -> None:
        if not self.svg.startswith("<svg ") or "<script" in self.svg:
            raise ValueError("a drawing is one svg element without scripts")

    def html(self) -> str:
        """The figure and its caption."""
        words = f"<figcaption>{escape(self.caption)}</figcaption>\n" if self.caption else ""
        width = WIDTH.match(self.svg)
        wide = f' style="--wide: {width[1]}"' if width else ""
        box = f'<div role="img" aria-label="{escape(self.alt)}"{wide}>{self.svg}</div>'
        name = escape(self.caption or self.alt)
        scrolls = f'<div class="box" tabindex="0" role="group" aria-label="{name}">{box}</div>'
        return f"<figure>\n{scrolls}\n{words}</figure>\n"


Part = Paragraphs | Listing | Notice | Definitions | Verbatim | FactList | PageTable | Drawing
MAX_HEADING = 6  # the last level that a heading can have


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it: parts, and sections of a lower level after them."""

    title: str
    parts: Sequence[Part]
    sections: Sequence["Section"] = ()

    def html(self, mark: str, level: int = 2) -> str:
        """The section, under the name ``mark``."""
        heading = f"h{min(level, MAX_HEADING)}"
        inside = "".join(part.html() for part in self.parts)
        below = "".join(
            part.html(f"{mark}-{number}", level + 1) for number, part in enumerate(self.sections, 1)
        )
        title = f"<{heading}>{escape(self.title)}</{heading}>"
        return f'<section id="{mark}">\n{title}\n{inside}{below}</section>\n'

    def link(self, mark: str, *, deeper: bool) -> str:
        """Its line in the list of contents, with those of its own sections if ``deeper``."""
        below = ""
        if deeper and self.sections:
            lines = "".join(
                part.link(f"{mark}-{number}", deeper=False)
                for number, part in enumerate(self.sections, 1)
            )
            below = f"\n<ol>\n{lines}</ol>\n"
        return f'<li><a href="#{mark}">{escape(self.title)}</a>{below}</li>\n'


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        title: Its heading, and the title of the window.
        lead: The first paragraphs.
        sections: In order; the page begins with a list of them.
        foot: A last line.
        marks: Names and values for programs that read the file; nobody sees them.
    """

    title: str
    lead: str
    sections: Sequence[Section]
    foot: str = ""
    marks: Mapping[str, str] = field(default_factory=dict)

    def html(self, *, paper: bool = False) -> str:
        """The whole file; with ``paper`` without what only a screen needs."""
        pairs = [(f"part-{number}", part) for number, part in enumerate(self.sections, 1)]
        links = "".join(part.link(mark, deeper=True) for mark, part in pairs)
        body = "".join(part.html(mark) for mark, part in pairs)
        contents = ""
        if len(pairs) > 1:
            contents = f'<nav aria-label="Contents"><ol>\n{links}</ol></nav>\n'
        foot = f"<footer>{escape(self.foot)}</footer>\n" if self.foot else ""
        skip = "" if paper else '<a class="skip" href="#main">Skip to the content</a>\n'
        main = body if paper else themed(body)
        marks = "".join(
            f'<meta name="{escape(name)}" content="{escape(value)}">\n'
            for name, value in self.marks.items()
        )
        return (
            "<!DOCTYPE html>\n"
            '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\';'
            " style-src 'unsafe-inline'\">\n"
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<meta name="color-scheme" content="light dark">\n{marks}'
            f"<title>{escape(self.title)}</title>\n<style>\n{STYLE}</style>\n</head>\n"
            f"<body>\n{skip}<header>\n<h1>{escape(self.title)}</h1>\n"
            f"{Paragraphs(self.lead).html()}</header>\n"
            f'{contents}<main id="main">\n{main}</main>\n{foot}</body>\n</html>\n'
        )


def escape(text: str) -> str:
    """Text as it stands in the page: invisible characters are written out."""
    return escape_html(visible(text, keep="\n"))


def shown(value: Cell) -> str:
    """A value as it stands in the page: a number with four digits, a count with separators."""
    if value is None or value != value:  # NaN
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    return four_digits(value).replace("infinity", "∞")


def write_page(page: Page, path: Path) -> None:
    """Write all of a page, or nothing and an error."""
    write_whole(path, page.html(), field="page")


def _terms(pairs: Mapping[str, Cell], kind: str = "") -> str:
    lines = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(shown(value))}</dd>\n" for name, value in pairs.items()
    )
    return f"<dl{kind}>\n{lines}</dl>\n"


def _is_number(value: Cell) -> bool:
    return isinstance(value, int | float)


def _side(number: bool) -> str:
    return ' class="number"' if number else ""
