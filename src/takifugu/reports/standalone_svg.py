"""Figures as SVG files of their own, for an ``<img>``: they know light and dark themselves.

A page under a strict policy may not hold the style attributes of a drawing; a picture may. Inside
one the colours of the page that shows it are out of reach, so that it has them all.
"""

from html import escape
from typing import TYPE_CHECKING

from takifugu.reports.html_figures import drawing
from takifugu.reports.html_style import PALETTE, themed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LETTERS = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif'
COLOURS = PALETTE.replace(":root", "svg")
STYLE = f"svg {{ color: var(--ink); fill: currentColor; font-family: {LETTERS}; }}\n"


def standalone_svg(figure: "Figure", alt: str) -> bytes:
    """A figure as an SVG file; ``alt`` is what it shows, for those who open the file itself."""
    text = themed(drawing(figure, name="figure", alt=alt).svg)
    tag, _, rest = text.partition(">")
    about = f'<title>{escape(alt)}</title>\n<style type="text/css">\n{COLOURS}{STYLE}</style>\n'
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tag}>\n{about}{rest}\n'.encode()
