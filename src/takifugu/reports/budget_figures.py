"""Figures of budgets: what a Pufferfish loss allows per entry, and what was spent of it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from takifugu.numeric import Floats
from takifugu.visible import four_digits, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPENT, ALARM = "#4c72b0", "#c44e52"
STYLES = (
    {"color": "#4c72b0", "lw": 2.0, "marker": "o", "ms": 4},
    {"color": "#dd8452", "lw": 1.6, "marker": "s", "ms": 3.5},
    {"color": "#8c8c8c", "lw": 1.4, "ls": ":"},
)


def allowance_figure(
    epsilon: Floats, losses: Mapping[str, Floats], *, budget: float, title: str = ""
) -> "Figure":
    """Pufferfish ε against DP ε per entry, by up to three methods, and the budget as a line."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    for (name, values), style in zip(losses.items(), STYLES, strict=False):
        axes.plot(epsilon, values, label=name, **style)  # type: ignore[arg-type]
    axes.axhline(budget, color=ALARM, ls="--", lw=1.2, label=f"budget, ε = {four_digits(budget)}")
    axes.set(title=title, xlabel="DP ε per entry", ylabel="Pufferfish ε", yscale="log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.2, which="major")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    return figure


def odometer_figure(
    answered: Sequence[str],
    spent: Sequence[float],
    refused: Sequence[str],
    *,
    budget: float,
    title: str = "",
) -> "Figure":
    """The Pufferfish ε of everything released so far, query by query, under the budget.

    Args:
        answered: The queries that were answered, in order.
        spent: What was spent after each of them.
        refused: The queries that were refused after that; they spent nothing.
        budget: The Pufferfish ε that the owner allows.
        title: A heading.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.8), layout="constrained")
    axes = figure.subplots()
    names = ["the beginning", *answered, *refused]
    height = [0.0, *spent]
    height += [height[-1]] * len(refused)
    places = range(len(names))
    axes.step(places, height, where="post", color=SPENT, lw=2)
    axes.fill_between(places, height, step="post", color=SPENT, alpha=0.15)
    axes.plot(places[: len(spent) + 1], height[: len(spent) + 1], "o", color=SPENT, ms=6)
    for place in places[len(spent) + 1 :]:
        axes.plot(place, budget, "x", color=ALARM, ms=11, mew=2.5, clip_on=False)
        axes.annotate(
            "refused", (place, budget), (0, 9), textcoords="offset points", ha="center", color=ALARM
        )
    for place, value in zip(places[1:], spent, strict=False):
        axes.annotate(
            four_digits(value, "up"),
            (place, value),
            (0, 7),
            textcoords="offset points",
            ha="center",
        )
    axes.axhline(budget, color=ALARM, ls="--", lw=1.2)
    axes.annotate(
        f"budget, ε = {four_digits(budget)}",
        (0, budget),
        (0, 6),
        textcoords="offset points",
        color=ALARM,
    )
    axes.set_xticks(places, [visible(name, keep="\n") for name in names])
    axes.set(title=title, ylabel="Pufferfish ε spent", ylim=(0, 1.2 * budget))
    axes.set_xlim(-0.25, len(names) - 0.5)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
