"""Matplotlib figures as drawings of a page: text stays text, in the page's letters and colour.

Names inside a figure are made its own, so that many figures can share a page.
"""

import re
from html import escape
from io import StringIO
from typing import TYPE_CHECKING

from takifugu.reports.html_page import Drawing
from takifugu.reports.html_style import PALETTE, themed
from takifugu.reports.plot_files import as_written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LETTERS = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif'
COLOURS = PALETTE.replace(":root", "svg")
STYLE = f"svg {{ color: var(--ink); fill: currentColor; font-family: {LETTERS}; }}\n"
NAMES = re.compile(r'(\bid="|url\(#|href="#)')
ITS_OWN = re.compile(  # facts about the file, rules for all of the page, a list of fonts
    r"<metadata>.*?</metadata>\s*|<style[^>]*>.*?</style>\s*|font-family: [^;\"]+;? ?", re.DOTALL
)


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
