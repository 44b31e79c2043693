"""What all figures have in common, and files that are written whole or not at all."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from takifugu._core import atomic as _atomic
from takifugu.errors import InvalidFile

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SALT = "takifugu"  # names inside an SVG are hashed with it, so that they are the same every time
FONTS = ["DejaVu Sans", "Verdana", "Arial"]


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file, and its folder if there is none; it is never seen half written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _atomic.unwritable(path, error) from error
    _atomic.write_whole(path, content)


def check_folder(path: Path) -> None:
    """Make a folder if there is none; refuse one that nothing can be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise InvalidFile(
            "--out",
            given=f"is {str(path)!r} ({(error.strerror or 'no folder').lower()})",
            needed="be a folder that can be written to",
        ) from None


def new_figure(width: float, height: float, title: str = "", *, size: float = 12) -> "Figure":
    """An empty figure; inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    if title:
        figure.suptitle(title, fontsize=size)
    return figure


def open_axes(axes: "Axes") -> None:
    """Axes without a frame above and on the right, with faint lines across."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)


def legend_below(
    figure: "Figure", axes: "Axes", across: int, more: Sequence[tuple["Artist", str]] = ()
) -> None:
    """One legend below all panels, of what ``axes`` show and ``more``, in rows of equal length."""
    handles, labels = axes.get_legend_handles_labels()
    handles, labels = [*handles, *(h for h, _ in more)], [*labels, *(text for _, text in more)]
    columns = -(-len(labels) // -(-len(labels) // across))
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )


def write_svg_and_png(figure: "Figure", folder: Path, name: str) -> list[Path]:
    """A figure in both formats: the files."""
    files = [folder / f"{name}{end}" for end in (".svg", ".png")]
    for path in files:
        write_figure(figure, path)
    return files


def write_figure(figure: "Figure", path: Path) -> None:
    """Write a figure as its suffix says; the text of an SVG stays text, which keeps it small."""
    write_whole(path, figure_bytes(figure, path.suffix[1:]))


def figure_bytes(figure: "Figure", kind: str) -> bytes:
    """A figure as ``svg`` or ``png``."""
    from matplotlib import rc_context

    drawn = BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": SALT, "font.sans-serif": FONTS}):
        dated = {"Date": None} if kind == "svg" else {}
        figure.savefig(drawn, format=kind, dpi=130, metadata=dated)
    return drawn.getvalue()
