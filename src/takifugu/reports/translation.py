"""A figure of a translation: Pufferfish ε against DP ε, every method and the witness."""

from typing import TYPE_CHECKING

import numpy as np

from takifugu.numeric import Floats
from takifugu.translation.translation import METHODS, Translation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 12
STYLES = {
    "transport": {"color": "#4c72b0", "lw": 2.0, "zorder": 4},
    "curve": {"color": "#dd8452", "lw": 1.6, "zorder": 3},
    "group": {"color": "#8c8c8c", "lw": 1.2, "ls": ":", "zorder": 2},
}


def translation_figure(
    translation: Translation, *, title: str = "", largest: float = 2.0, points: int = POINTS
) -> "Figure":
    """Pufferfish ε up to about ``largest`` against DP ε, by each method, and what really leaks."""
    from matplotlib.figure import Figure

    allowed = float(translation.differential(largest))
    grid: Floats = np.linspace(0.0, allowed if allowed > 0 else largest, points + 1)[1:]
    answers = [translation.explain(float(epsilon)) for epsilon in grid]
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.subplots()
    for name in METHODS[1:]:
        values = np.array([a.by_method[name] for a in answers], dtype=np.float64)  # None: NaN
        shown = np.isfinite(values)
        if shown.any():
            axes.plot(
                np.r_[0.0, grid[shown]], np.r_[0.0, values[shown]], label=name, **STYLES[name]  # type: ignore[arg-type]
            )
    leaks = [answer.lower for answer in answers]
    axes.plot(grid, leaks, "o", ms=4, color="#55a868", label="leaked by some mechanism", zorder=5)
    top = max(a.pufferfish for a in answers if np.isfinite(a.pufferfish)) if answers else largest
    axes.set(
        title=title,
        xlabel="DP ε per entry",
        ylabel="Pufferfish ε",
        xlim=(0, float(grid[-1])),
        ylim=(0, 1.8 * top),
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    return figure
