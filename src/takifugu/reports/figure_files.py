"""Figures as values: drawn without a global state or a screen, written whole or not at all."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from takifugu.errors import InvalidFile
from takifugu.finite.collapse import Simulated, Trace, Waiting
from takifugu.visible import visible
from takifugu.whole import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".pdf", ".png", ".svg")
EXACT, SIMULATED, ALARM = "#4c72b0", "#dd8452", "#c44e52"


def collapse_figure(title: str, trace: Trace, waiting: Waiting, simulated: Simulated) -> "Figure":
    """One attack run by run, and how many runs it takes: exact beside simulated."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    figure.suptitle(title, fontsize=12)
    left, right = figure.subplots(1, 2)
    _draw_posterior(left, trace)
    _draw_law(right, waiting, simulated)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_posterior(axes: "Axes", trace: Trace) -> None:
    """For every statement the chance of its true value, given the outputs so far."""
    from matplotlib.ticker import MaxNLocator

    runs = [step.run for step in trace.steps]
    for i, (statement, true) in enumerate(zip(trace.statements, trace.truth, strict=True)):
        if trace.exclusive and not true:
            continue  # of exclusive secrets the true one says it all
        ends = [[float(end if true else 1 - end) for end in s.bounds[i]] for s in trace.steps]
        chance = [float(s.posterior[i] if true else 1 - s.posterior[i]) for s in trace.steps]
        label = f"P({statement})" if trace.exclusive else None
        axes.step(runs, chance, "o-", where="post", color=EXACT, lw=2, label=label, zorder=3)
        if any(low != high for low, high in ends):
            low, high = [min(pair) for pair in ends], [max(pair) for pair in ends]
            axes.fill_between(
                runs, low, high, step="post", color=EXACT, alpha=0.18, label="over all priors"
            )
    if not trace.exclusive:
        label = f"each of {len(trace.statements)} secret bits"
        axes.plot([], [], "o-", color=EXACT, lw=2, label=label)
    if trace.revealed_at is not None:
        axes.axvline(
            trace.revealed_at,
            color=ALARM,
            ls="--",
            lw=1.3,
            label=f"revealed at run {trace.revealed_at}",
        )
    axes.set(
        title="What the adversary believes",
        xlabel="runs seen (0: before the first)",
        ylabel="chance of the true value",
        ylim=(-0.03, 1.05),
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y", alpha=0.25)
    axes.legend(loc="lower right", frameon=False)


def _draw_law(axes: "Axes", waiting: Waiting, simulated: Simulated) -> None:
    """The chance that the secret is revealed at each run; the bars are two standard errors."""
    from matplotlib.ticker import MaxNLocator

    runs = range(1, longest(waiting) + 1)
    shares = [simulated.share(run) for run in runs]
    spread = [2 * simulated.share_error(run) for run in runs]
    mean = waiting.expectation
    axes.bar(
        runs,
        [float(waiting.probability(run)) for run in runs],
        color=EXACT,
        alpha=0.55,
        width=0.7,
        label=f"exact (mean {float(mean):.4g})",
    )
    axes.errorbar(
        runs,
        shares,
        yerr=spread,
        fmt="o",
        ms=5,
        capsize=3,
        color=SIMULATED,
        clip_on=False,
        label=f"{len(simulated.runs):,} simulated (mean {simulated.mean:.4g}), ±2 s.e.",
    )
    axes.axvline(float(mean), color=EXACT, ls=":", lw=1.5)
    axes.set(title="When the secret is out", xlabel="run at which it is revealed", ylabel="chance")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=20, integer=True))
    axes.grid(axis="y", alpha=0.25)
    axes.legend(loc="upper right", frameon=False)


def longest(waiting: Waiting) -> int:
    """The last run worth showing: all but a thousandth is over by then, and at most 40."""
    return int(min(waiting.quantile(Fraction(999, 1000)), 40))


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
        raise InvalidFile("plot", given=f"is {str(path)!r}", needed=f"end in {', '.join(SUFFIXES)}")
    try:
        if not path.parent.is_dir():
            raise InvalidFile("plot", given=f"is {str(path)!r}", needed="lie in an existing folder")
        free = not path.is_dir() and os.access(path if path.exists() else path.parent, os.W_OK)
    except OSError:  # a name that no file can have
        free = False
    if not free:
        raise InvalidFile("plot", given=f"is {str(path)!r}", needed="be a file that can be written")


def save(figure: "Figure", path: Path) -> None:
    """Write a figure as its suffix says: all of it, or nothing and an error."""
    check_target(path)
    drawn = BytesIO()
    with as_written(figure):
        figure.savefig(drawn, format=path.suffix.lower()[1:], dpi=150)
    try:
        write_whole(path, drawn.getvalue())
    except OSError as error:
        raise InvalidFile(
            "plot", given=f"{str(path)!r} was not written ({error.strerror})", needed="be writable"
        ) from error
