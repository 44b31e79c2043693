"""Figures of influence curves."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from takifugu.influence.curve import InfluenceCurve
from takifugu.reports.html_style import BLUE, GREEN, GREY, ORANGE, RED
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def curves_figure(
    curves: Mapping[str, InfluenceCurve],
    *,
    title: str = "",
    epsilon: float | None = None,
    most: int | None = None,
) -> "Figure":
    """One or several curves; with ``epsilon`` the operating point ε = b·ε_DP + a of the first."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.subplots()
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
    log: bool = False,
) -> None:
    """Draw pooled curves into ``axes``: finite points joined, infinite ones as arrows on top."""
    from matplotlib.ticker import MaxNLocator

    for name, curve in curves.items():
        leak = curve.pooled()
        shown = np.ones(len(leak), dtype=bool) if most is None else curve.exposed <= most
        finite = shown & np.isfinite(leak)
        (line,) = axes.plot(
            curve.exposed[finite], leak[finite], marker="o", ms=3.5, lw=1.6, label=name
        )
        for b in curve.exposed[shown & np.isinf(leak)]:
            axes.plot(
                b, 0.985, marker="^", ms=7, color=line.get_color(),
                transform=axes.get_xaxis_transform(), clip_on=False,
            )  # fmt: skip
    axes.set_xlabel("b, entries exposed")
    axes.set_ylabel("a(b), nats that the rest leaks")
    if log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)


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
