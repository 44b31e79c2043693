"""A figure of a translation: Pufferfish ε against DP ε, every method and the witness."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.reports.html_style import BLUE, GREEN, GREY, ORANGE, RED
from takifugu.translation.translation import METHODS, Translation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 12
MOST = 1e100  # a number beyond this is on no axis
STYLES = {
    "transport": {"color": BLUE, "lw": 2.0, "zorder": 4},
    "curve": {"color": ORANGE, "lw": 1.6, "zorder": 3},
    "group": {"color": GREY, "lw": 1.2, "ls": ":", "zorder": 2},
}


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
    from matplotlib.figure import Figure

    shown_marks = [(dp, loss) for dp, loss in marked if 0 <= dp < MOST and 0 <= loss < MOST]
    allowed = float(translation.to_dp(largest))
    end = max([allowed if allowed > 0 else largest, *(dp for dp, _ in shown_marks)])
    grid: Floats = np.linspace(0.0, end, points + 1)[1:]
    answers = [translation.explain(float(epsilon)) for epsilon in grid]
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.subplots()
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
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    return figure
