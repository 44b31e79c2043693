"""Figures written to files: drawn without global state or a screen, complete or not at all."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from takifugu._core.atomic import write_whole
from takifugu.errors import InvalidFile
from takifugu.visible import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".pdf", ".png", ".svg")


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


def check_target(path: Path) -> None:
    """Refuse a file that could not be written, before anything is computed."""
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidFile(
            "plot",
            given=f"is {str(path)!r}",
            needed=f"end in {', '.join(SUFFIXES)}",
            reason="suffix",
        )
    try:
        if not path.parent.is_dir():
            raise InvalidFile(
                "plot",
                given=f"is {str(path)!r}",
                needed="be in an existing folder",
                reason="folder",
            )
        free = not path.is_dir() and os.access(path if path.exists() else path.parent, os.W_OK)
    except OSError:  # a name that no file can have
        free = False
    if not free:
        raise InvalidFile(
            "plot", given=f"is {str(path)!r}", needed="be a writable file", reason="unwritable"
        )


def save(figure: "Figure", path: Path) -> None:
    """Write a figure as its suffix says: all of it, or nothing and an error."""
    check_target(path)
    drawn = BytesIO()
    with as_written(figure):
        figure.savefig(drawn, format=path.suffix.lower()[1:], dpi=150)
    write_whole(path, drawn.getvalue(), field="plot")
