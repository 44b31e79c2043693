"""Figures written to files, or drawn into pages: without global state or a screen.

In a page text stays text, in the page's letters and colour, and the names inside a figure are made
its own, so that many figures can share a page.
"""

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from takifugu._core.atomic import write_whole
from takifugu.errors import InvalidFile
from takifugu.reports.html_page import Drawing
from takifugu.reports.html_style import PALETTE, themed
from takifugu.visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".pdf", ".png", ".svg")
LETTERS = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif'
COLOURS = PALETTE.replace(":root", "svg")
STYLE = f"svg {{ color: var(--ink); fill: currentColor; font-family: {LETTERS}; }}\n"
NAMES = re.compile(r'(\bid="|url\(#|href="#)')
ITS_OWN = re.compile(  # facts about the file, rules for all of the page, a list of fonts
    r"<metadata>.*?</metadata>\s*|<style[^>]*>.*?</style>\s*|font-family: [^;\"]+;? ?", re.DOTALL
)


@contextmanager
def as_written(figure: "Figure") -> Iterator[None]:
    r"""Draw every text as it is written: a label ``$\frac{1$`` is no formula.

    Marks that do not show are written out, and a letter that the font lacks is drawn as a box. The
    numbers along an axis are left to matplotlib, which writes powers of ten as formulas.
    """
    from matplotlib.table import Table
    from matplotlib.text import Text
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    numbers = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for label in (*axis.get_majorticklabels(), *axis.get_minorticklabels())
    }
    texts = {text for text in figure.findobj(Text) if isinstance(text, Text)}
    for table in figure.findobj(Table):
        if isinstance(table, Table):  # which keeps its texts to itself
            texts |= {cell.get_text() for cell in table.get_celld().values()}
    for text in texts - numbers:
        if text.get_text():
            text.set_parse_math(False)
            text.set_text(visible(text.get_text(), keep="\n"))
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_formatter(), FixedFormatter | FuncFormatter):
                for label in axis.get_majorticklabels():
                    label.set_parse_math(False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        yield


def plain_axes(width: float, height: float) -> "tuple[Figure, Axes]":
    """A figure of so many inches with one plot in it, which is open above and to the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def shortened(name: str, letters: int) -> str:
    """A name as a figure has room for it."""
    text = visible(name)
    return text if len(text) <= letters else text[: letters - 1] + "…"


def check_target(path: Path) -> None:
    """Refuse a file that could not be written, before anything is computed."""
    needed, reason = "", ""
    try:
        if path.suffix.lower() not in SUFFIXES:
            needed, reason = f"end in {', '.join(SUFFIXES)}", "suffix"
        elif not path.parent.is_dir():
            needed, reason = "be in an existing folder", "folder"
        elif path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            needed, reason = "be a writable file", "unwritable"
    except OSError:  # a name that no file can have
        needed, reason = "be a writable file", "unwritable"
    if reason:
        raise InvalidFile("plot", given=f"is {str(path)!r}", needed=needed, reason=reason)


def save(figure: "Figure", path: Path) -> None:
    """Write a figure as its suffix says: all of it, or nothing and an error."""
    check_target(path)
    drawn = BytesIO()
    with as_written(figure):
        figure.savefig(drawn, format=path.suffix.lower()[1:], dpi=150)
    write_whole(path, drawn.getvalue(), field="plot")


def drawing(figure: "Figure", *, name: str, caption: str = "", alt: str = "") -> Drawing:
    """A figure for a page; ``name`` is short, and no other figure of the page has it."""
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ValueError("the name of a drawing is made of small letters, digits and -")
    from matplotlib import rc_context

    drawn = StringIO()
    # salted, so that the same figure gives the same text
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "takifugu"}), as_written(figure):
        figure.savefig(
            drawn,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    text = drawn.getvalue()
    text = text[text.index("<svg ") :].strip()
    text = NAMES.sub(rf"\g<1>{name}-", ITS_OWN.sub("", text))
    text = text.replace("#000000", "currentColor")
    return Drawing(text, caption, alt or caption)


def standalone_svg(figure: "Figure", alt: str) -> bytes:
    """A figure as an SVG file of its own, for an ``<img>``, which knows light and dark itself.

    A page under a strict policy may not hold the style attributes of a drawing; a picture may.
    Inside one the colours of the page that shows it are out of reach, so that it has them all.
    ``alt`` is what it shows, for those who open the file itself.
    """
    text = themed(drawing(figure, name="figure", alt=alt).svg)
    tag, _, rest = text.partition(">")
    about = f'<title>{escape(alt)}</title>\n<style type="text/css">\n{COLOURS}{STYLE}</style>\n'
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tag}>\n{about}{rest}\n'.encode()
