"""Figures of influence curves, and of translations between DP ε and Pufferfish ε."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.influence.curve import InfluenceCurve
from takifugu.reports.html_style import BLUE, GREEN, GREY, ORANGE, RED
from takifugu.reports.plot_files import plain_axes
from takifugu.translation.translation import METHODS, Translation
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ARROW_DISTANCE = 7.0  # points of the page between the arrows of two curves
POINTS = 12
MAX_PLOTTED = 1e100  # a number beyond this is on no axis
STYLES = {
    "transport": {"color": BLUE, "lw": 2.0, "zorder": 4},
    "curve": {"color": ORANGE, "lw": 1.6, "zorder": 3},
    "group": {"color": GREY, "lw": 1.2, "ls": ":", "zorder": 2},
}


def curves_figure(
    curves: Mapping[str, InfluenceCurve],
    *,
    title: str = "",
    epsilon: float | None = None,
    most: int | None = None,
) -> "Figure":
    """One or several curves; with ``epsilon`` the operating point ε = b·ε_DP + a of the first."""
    figure, axes = plain_axes(6.4, 4.4)
    axes.set_prop_cycle(color=[BLUE, ORANGE, GREEN, GREY])
    draw_curves(axes, curves, most=most)
    if epsilon is not None:
        _draw_operating_point(axes, next(iter(curves.values())), epsilon)
    axes.set_title(title, fontsize=11)
    axes.legend(frameon=False, fontsize=9)
    return figure


def draw_curves(
    axes: "Axes",
    curves: Mapping[str, InfluenceCurve],
    *,
    most: int | None = None,
    floor: float | None = None,
    markers: Sequence[str] = ("o",),
) -> None:
    """Draw pooled curves into ``axes``: finite points joined, infinite ones as arrows on top.

    Args:
        axes: Where.
        curves: Each with its name.
        most: The largest number of exposed entries that is shown.
        floor: With it the scale is logarithmic, and begins here; where a curve first goes below,
            an arrow at the bottom says so.
        markers: Of the curves in turn.
    """
    from matplotlib.ticker import MaxNLocator

    arrows: dict[tuple[int, str], list[Any]] = {}  # where they point, and the colours there
    every: list[int] = []
    highest: list[float] = []
    for place, (name, curve) in enumerate(curves.items()):
        leak = curve.pooled()
        shown = np.ones(len(leak), dtype=bool) if most is None else curve.exposed <= most
        low = shown & (leak < floor) if floor is not None else np.zeros(len(leak), dtype=bool)
        finite = shown & np.isfinite(leak) & ~low
        (line,) = axes.plot(
            curve.exposed[finite], leak[finite], marker=markers[place % len(markers)], ms=4, lw=1.6,
            label=name,
        )  # fmt: skip
        every += curve.exposed[shown].tolist()
        highest += leak[finite].tolist()
        for b in curve.exposed[shown & np.isinf(leak)].tolist():
            arrows.setdefault((b, "^"), []).append(line.get_color())
        for b in curve.exposed[low][:1].tolist():
            arrows.setdefault((b, "v"), []).append(line.get_color())
    if every:
        room = 0.05 * (max(every) - min(every)) or 0.5
        axes.set_xlim(min(every) - room, max(every) + room)
    for (b, marker), colours in arrows.items():
        _draw_arrows(axes, b, marker, colours)
    axes.set_xlabel("b, entries exposed")
    axes.set_ylabel("a(b), nats that the rest leaks")
    most_leaked = max(highest, default=1.0)
    if floor is not None:
        axes.set_yscale("log")
        axes.set_ylim(floor, max(2.5 * most_leaked, 10 * floor))
    else:
        axes.set_ylim(0, 1.09 * most_leaked or 1.0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)


def _draw_arrows(axes: "Axes", b: int, marker: str, colours: Sequence[Any]) -> None:
    """Arrows at the top (``^``) or bottom; those of several curves stand beside each other."""
    from matplotlib.transforms import offset_copy

    figure = axes.get_figure(root=True)
    for place, colour in enumerate(colours):
        x = (place - (len(colours) - 1) / 2) * ARROW_DISTANCE
        moved = offset_copy(axes.get_xaxis_transform(), fig=figure, x=x, units="points")
        (mark,) = axes.plot(
            b, 0.985 if marker == "^" else 0.015, marker=marker, ms=6.5, color=colour,
            transform=moved, clip_on=False,
        )  # fmt: skip
        mark.set_in_layout(False)


def _draw_operating_point(axes: "Axes", curve: InfluenceCurve, epsilon: float) -> None:
    """The line of slope −ε_DP from (0, ε) that touches the curve, and the point where it does."""
    pooled = curve.pooled()
    with np.errstate(invalid="ignore"):
        room = np.where(pooled < epsilon, (epsilon - pooled) / curve.exposed, 0.0)
    best = int(np.argmax(room))
    if room[best] <= 0:
        return
    spend = float(room[best])
    ends = np.array([0.0, min(epsilon / spend, float(axes.get_xlim()[1]))])
    label = f"ε = {four_digits(epsilon)} = b·{four_digits(spend, 'down')} + a"
    axes.plot(ends, epsilon - spend * ends, ls="--", color=RED, lw=1.2, label=label)
    axes.plot(curve.exposed[best], pooled[best], "o", color=RED, ms=7, zorder=4)


def translation_figure(
    translation: Translation,
    *,
    title: str = "",
    largest: float = 2.0,
    points: int = POINTS,
    marked: Sequence[tuple[float, float]] = (),
) -> "Figure":
    """Pufferfish ε up to about ``largest`` against DP ε, by each method, and what really leaks.

    ``marked`` are pairs of DP ε and Pufferfish ε: each gets a mark, and both axes reach all of
    them.
    """
    shown_marks = [pair for pair in marked if all(0 <= number < MAX_PLOTTED for number in pair)]
    allowed = float(translation.to_dp(largest))
    end = max([allowed if allowed > 0 else largest, *(dp for dp, _ in shown_marks)])
    grid: Floats = np.linspace(0.0, end, points + 1)[1:]
    answers = [translation.explain(float(epsilon)) for epsilon in grid]
    figure, axes = plain_axes(6.4, 4.4)
    for name in METHODS[1:]:
        values = np.array([a.by_method[name] for a in answers], dtype=np.float64)  # None: NaN
        shown = np.isfinite(values)
        if shown.any():
            axes.plot(
                np.r_[0.0, grid[shown]],
                np.r_[0.0, values[shown]],
                label=name,
                **STYLES[name],  # type: ignore[arg-type]
            )
    leaks = [answer.lower for answer in answers]
    axes.plot(grid, leaks, "o", ms=4, color=GREEN, label="leaked by some mechanism", zorder=5)
    if shown_marks:
        axes.plot(*zip(*shown_marks, strict=True), "D", ms=5, mfc="none", color=RED,
                  label="translated", zorder=6, clip_on=False)  # fmt: skip
    top = max([largest / 1.8, *(a.pufferfish for a in answers if np.isfinite(a.pufferfish))])
    high = max([1.8 * top, *(1.05 * loss for _, loss in shown_marks)])
    axes.set(
        title=title,
        xlabel="DP ε per entry",
        ylabel="Pufferfish ε",
        xlim=(0, float(grid[-1])),
        ylim=(0, high),
    )
    axes.legend(frameon=False, fontsize=9)
    return figure
