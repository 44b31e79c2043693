"""A figure of a goodness of fit: what was counted, beside what the prior has instead."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from takifugu.reports.html_style import BLUE, GREEN, GREY, ORANGE, RED
from takifugu.reports.plot_files import shortened
from takifugu.visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COUNTED, FITTED, PALE = BLUE, ORANGE, GREY
VERDICTS = {
    "fits": GREEN,
    "unclear": GREY,
    "differs little": GREY,
    "does not fit": RED,
    "not tested": GREY,
}
MAX_NAME_LETTERS = 24
HEIGHT = 2.9  # inches of a panel


def goodness_figure(document: Mapping[str, Any], *, title: str = "") -> "Figure":
    """One panel for each test that has a picture; ``document`` is what a goodness of fit writes.

    Points with standard errors are what was counted, a line is what the prior has; bars are what
    a richer prior would know, or how far parts differ.
    """
    from matplotlib.figure import Figure

    shown = [test for test in document["tests"] if test["panel"] is not None]
    figure = Figure(figsize=(7.2, HEIGHT * max(len(shown), 1) + 0.3), layout="constrained")
    if title:
        figure.suptitle(visible(title), fontsize=11)
    if not shown:
        axes = figure.subplots()
        axes.set_axis_off()
        axes.text(0.5, 0.5, "nothing was tested", ha="center", va="center", color=PALE)
        return figure
    for axes, test in zip(figure.subplots(len(shown), squeeze=False).flat, shown, strict=True):
        panel = test["panel"]
        if panel["fitted"]:
            _points(axes, panel)
        else:
            _bars(axes, panel)
        axes.set_title(panel["title"], fontsize=9, loc="left")
        axes.set_title(test["verdict"], fontsize=9, loc="right", color=VERDICTS[test["verdict"]])
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    return figure


def _points(axes: "Axes", panel: Mapping[str, Any]) -> None:
    places = range(len(panel["values"]))
    errors = [2 * error for error in panel["errors"]] or None
    axes.errorbar(
        places, panel["values"], yerr=errors, fmt="o", ms=4, color=COUNTED, capsize=2, lw=1,
        label="counted, ± 2 standard errors", zorder=4,
    )  # fmt: skip
    if all(name.isdigit() for name in panel["names"]):
        axes.set_xlabel("lag, in rows", fontsize=8)
    axes.plot(places, panel["fitted"], color=FITTED, lw=1.6, label="by the prior", zorder=3)
    axes.axhline(0, color=PALE, lw=0.6)
    axes.set_ylabel(panel["axis"], fontsize=8)
    _name(axes, panel["names"])
    axes.legend(frameon=False, fontsize=8)


def _bars(axes: "Axes", panel: Mapping[str, Any]) -> None:
    places = range(len(panel["values"]))
    axes.bar(places, panel["values"], color=COUNTED, width=0.7)
    axes.set_ylabel(panel["axis"], fontsize=8)
    axes.set_ylim(bottom=0)
    _name(axes, panel["names"])


def _name(axes: "Axes", names: Sequence[str]) -> None:
    """Names below the points; every second or third where they are many, tilted where long."""
    every = max(1, -(-len(names) // 30))
    ticks = list(range(0, len(names), every))
    shown = [shortened(names[place], MAX_NAME_LETTERS) for place in ticks]
    tilted = max(map(len, shown), default=0) > 4
    axes.set_xticks(ticks, shown, rotation=30 if tilted else 0, ha="right" if tilted else "center")
