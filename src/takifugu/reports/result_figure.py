"""A figure of a released result: numbers with their intervals, or a ranking as a table."""

from collections.abc import Sequence
from math import ceil, inf
from typing import TYPE_CHECKING, Any

from takifugu.reports.html_style import BLUE, GREY
from takifugu.visible import four_digits, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NUMBER_COLUMNS = ("estimate", "low", "high", "probability")
MAX_PANELS = 12
MAX_BARS = 40  # in one panel
NUMBER, INTERVAL = BLUE, GREY
Row = tuple[Any, ...]


def result_figure(
    columns: Sequence[str],
    rows: Sequence[Row],
    *,
    by: Sequence[str],
    title: str,
    note: str = "",
    ranked: bool = False,
    most_panels: int = MAX_PANELS,
    most_bars: int = MAX_BARS,
    across: int = 3,
    tallest: float = inf,
) -> "Figure":
    """One panel for each group of ``by``; groups that do not fit are counted in the title.

    Groups that have one number each share a panel. A ranking (``ranked``) is one table, a line for
    each group, with the probability of each place where it is known. There are at most
    ``most_panels`` panels, ``across`` of them side by side, each of ``most_bars`` numbers: of more,
    the largest. Lines of panels are left out, too, that would make it higher than ``tallest``
    inches.
    """
    from matplotlib.figure import Figure

    panels = _panels(rows, len(by))
    alone = ranked or all(len(group_rows) == 1 for group_rows in panels.values())
    depth = 0 if alone else len(by)
    shown = dict(list((_panels(rows, 0) if alone else panels).items())[:most_panels])
    wide, lines = min(len(shown), across), min(max(map(len, shown.values())), most_bars)
    each = 1.4 + 0.24 * (min(len(panels), most_bars) if ranked else lines)
    high = ceil(len(shown) / wide)
    if each * high + 0.7 > tallest:
        high = max(int((tallest - 0.7) / each), 1)
    shown = dict(list(shown.items())[: high * wide])
    size = min(each * high + 0.7, tallest, 40.0)
    figure = Figure(figsize=(max(5.2 * wide, 6.4), size), layout="constrained")
    left_out = 0 if alone else len(panels) - len(shown)
    more = f" ({left_out} more groups are not shown)" if left_out else ""
    heading = f"{title}{more}\n{note}" if note else f"{title}{more}"
    if heading:
        figure.suptitle(heading, fontsize=11)
    grid = figure.subplots(high, wide, squeeze=False).ravel()
    for axes, (group, group_rows) in zip(grid, shown.items(), strict=False):
        if ranked:
            _table(axes, columns, rows, most_bars)
        else:
            _intervals(axes, columns[depth:], [row[depth:] for row in group_rows], most_bars)
        if depth:
            named = zip(by, group, strict=True)
            axes.set_title(", ".join(f"{column} {key}" for column, key in named), fontsize=10)
    for axes in grid[len(shown) :]:
        axes.set_axis_off()
    return figure


def _panels(rows: Sequence[Row], depth: int) -> dict[Row, list[Row]]:
    group_rows: dict[Row, list[Row]] = {}
    for row in rows:
        group_rows.setdefault(row[:depth], []).append(row)
    return group_rows


def _intervals(axes: "Axes", columns: Sequence[str], rows: Sequence[Row], most: int) -> None:
    """A point and an interval for each number; for a quantile, its levels as text."""
    place = len(columns) - 3  # estimate, low, high
    known = [row for row in rows if row[place] is not None]
    shown = known
    if len(known) > most:
        shown = sorted(known, key=lambda row: -row[place])[:most]
    between = " → " if place == 2 and columns[0].endswith(" before") else " × "
    if tuple(columns[:2]) == ("column", "label"):
        between = ": "
    names = [visible(between.join(map(str, row[:place]))) or "all" for row in shown]
    heights = list(range(len(shown)))
    values = [row[place] for row in shown]
    if not columns[-1].startswith("high level"):
        away = [
            [value - row[place + 1] for value, row in zip(values, shown, strict=True)],
            [row[place + 2] - value for value, row in zip(values, shown, strict=True)],
        ]
        axes.errorbar(values, heights, xerr=away, fmt="none", ecolor=INTERVAL, capsize=2, lw=1)
        axes.set_xlabel("estimate, with its 95 % interval", fontsize=9)
    else:
        for height, row in zip(heights, shown, strict=True):
            if row[place + 1] is not None:
                low, high = four_digits(row[place + 1]), four_digits(row[place + 2])
                levels = f"level {low} … {high}"
                axes.annotate(
                    levels, (row[place], height), (6, 4), textcoords="offset points", fontsize=8
                )
        axes.set_xlabel("estimate, with the levels it lies between", fontsize=9)
    axes.plot(values, heights, "o", ms=4, color=NUMBER, zorder=3)
    axes.set_yticks(heights, names, fontsize=8)
    axes.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.25)
    if len(known) > len(shown):
        left = f"the {len(shown):,} largest of {len(known):,}"
        axes.annotate(left, (1, 0), xycoords="axes fraction", ha="right", va="bottom", fontsize=8)
    if not shown:
        axes.annotate("no rows", (0.5, 0.5), xycoords="axes fraction", ha="center")


def _table(axes: "Axes", columns: Sequence[str], rows: Sequence[Row], most: int) -> None:
    """A ranking: a line for each group, a column for each place."""
    axes.set_axis_off()
    by, groups = ranking_places(columns, rows)
    places = [str(place + 1) for place in range(max(map(len, groups.values()), default=0))]
    cells = [[*map(str, group), *labels] for group, labels in groups.items()]
    shown = cells[:most]
    drawn = axes.table(cellText=shown, colLabels=[*by, *places], loc="upper center", cellLoc="left")
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(9)
    drawn.auto_set_column_width(list(range(len(by) + len(places))))
    if len(cells) > len(shown):
        left = f"… {len(cells) - len(shown):,} more groups"
        axes.annotate(left, (0.5, 0), xycoords="axes fraction", ha="center", fontsize=8)


def ranking_numbers(columns: Sequence[str]) -> int:
    """How many of the last columns of a ranking are numbers: all, the last, or none."""
    tail = [name.removesuffix(" (answer)") for name in columns[-len(NUMBER_COLUMNS) :]]
    return (
        len(NUMBER_COLUMNS)
        if tuple(tail) == NUMBER_COLUMNS
        else int(tail[-1] == NUMBER_COLUMNS[-1])
    )


def ranking_places(
    columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> tuple[tuple[str, ...], dict[tuple[Any, ...], list[str]]]:
    """The public columns; and for each group what is at each of its places, best first.

    The columns of a ranking are its public ones, ``rank``, the label of each column, and then the
    number of the label and the ``probability`` of the place, as far as they are known.
    """
    after = ranking_numbers(columns)
    rank = "rank (answer)" if "rank (answer)" in columns else "rank"
    place, end = list(columns).index(rank), len(columns) - after
    places: dict[tuple[Any, ...], list[str]] = {}
    for row in rows:
        label = " × ".join(map(str, row[place + 1 : end]))
        sure = row[-1] if after else None
        text = label if sure is None else f"{label} ({four_digits(sure, 'down')})"
        places.setdefault(tuple(row[:place]), []).append(text)
    return tuple(columns[:place]), places
