"""Released results as figures and tables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from takifugu.reports.html_page import PageTable
from takifugu.reports.ranking_columns import ranking_places
from takifugu.visible import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ESTIMATE, EXACT = "#4c72b0", "#dd8452"


def estimates_figure(
    labels: Sequence[str],
    estimates: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    *,
    axis: str,
    exact: Sequence[float] | None = None,
    title: str = "",
) -> "Figure":
    """Estimates with their intervals, the first on top.

    ``exact`` values are shown beside them only for synthetic data, where nobody is protected.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 0.9 + 0.27 * len(labels)), layout="constrained")
    axes = figure.subplots()
    places = range(len(labels))
    below = [middle - low for middle, low in zip(estimates, lows, strict=True)]
    above = [high - middle for middle, high in zip(estimates, highs, strict=True)]
    axes.errorbar(
        estimates,
        places,
        xerr=[below, above],
        fmt="o",
        ms=4.5,
        capsize=3,
        color=ESTIMATE,
        label="released, with its 95 % interval",
    )
    if exact is not None:
        axes.plot(
            exact, places, "|", ms=13, mew=2, color=EXACT, label="exact (the data is synthetic)"
        )
    axes.set_yticks(places, [visible(label) for label in labels])
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xlabel(axis)
    axes.set_title(title, fontsize=11)
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    return figure


def ranking_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, caption: str = ""
) -> PageTable:
    """One row for each group and one column for each place.

    ``columns`` are those of a released ranking (`ranking_places`). Its rows have the ranks of a
    group one after the other. A place that has a probability shows it.
    """
    public, groups = ranking_places(columns, rows)
    places = max((len(found) for found in groups.values()), default=0)
    return PageTable(
        [*public, *(f"place {place + 1}" for place in range(places))],
        [[*map(str, group), *found] for group, found in groups.items()],
        caption,
    )
