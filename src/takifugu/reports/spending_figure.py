"""The budget over time: what was spent after each event of the ledger, and what was allowed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from takifugu.reports.html_style import BLUE, RED
from takifugu.reports.plot_files import plain_axes
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_NAMED = 9  # events that have a name below the axis
MAX_NUMBERS = 12  # releases whose number is written beside their point
BEYOND = 1e6  # an ε that no axis needs to reach


@dataclass(frozen=True)
class BudgetEvent:
    """An event that spent something, or that changed what may be spent.

    Attributes:
        seq: Its number in the ledger.
        at: When it was.
        spent: The Pufferfish ε of all that was released until then, rounded up.
        budget: The Pufferfish ε that was allowed from then on; None if nobody had set one.
        released: Whether something was released; otherwise the owner decided something.
    """

    seq: int
    at: datetime
    spent: float
    budget: float | None
    released: bool


def spending_figure(events: Sequence[BudgetEvent]) -> "Figure":
    """Steps of what was spent, under the line of what was allowed; one step for each event."""
    figure, axes = plain_axes(7.2, 3.9)
    places = list(range(len(events) + 1))
    spent = [0.0, *(min(event.spent, BEYOND) for event in events)]
    steps, heights = [*places, places[-1] + 0.5], [*spent, spent[-1]]  # the last one goes on
    axes.step(steps, heights, where="post", color=BLUE, lw=2, label="spent")
    axes.fill_between(steps, heights, step="post", color=BLUE, alpha=0.15, lw=0)
    released = [k for k, event in enumerate(events, 1) if event.released]
    axes.plot(released, [spent[k] for k in released], "o", color=BLUE, ms=5.5, label="a release")
    allowed = [(k, event.budget) for k, event in enumerate(events, 1) if event.budget is not None]
    if allowed:
        _draw_budget(axes, allowed, places[-1])
    if len(released) <= MAX_NUMBERS:
        for place in released:
            axes.annotate(
                four_digits(events[place - 1].spent, "up"), (place, spent[place]), (0, 7),
                textcoords="offset points", ha="center", fontsize=9,
            )  # fmt: skip
    every = -(-len(events) // MAX_NAMED)
    named = places[1 :: max(every, 1)]
    axes.set_xticks(
        named, [f"event {events[k - 1].seq}\n{events[k - 1].at:%Y-%m-%d}" for k in named],
        fontsize=8,
    )  # fmt: skip
    top = max([*spent, *(budget for _, budget in allowed)], default=0.0) or 1.0
    axes.set(ylabel="Pufferfish ε", ylim=(0, 1.2 * top), xlim=(-0.25, len(events) + 0.6))
    axes.legend(frameon=False, fontsize=9, loc="upper left", ncols=3)
    return figure


def _draw_budget(axes: "Axes", allowed: Sequence[tuple[int, float]], last: int) -> None:
    """The line of the budget, from where it was set; its changes are steps."""
    places = [place for place, _ in allowed]
    values = [min(budget, BEYOND) for _, budget in allowed]
    axes.step(
        [*places, max(last, places[-1]) + 0.5], [*values, values[-1]], where="post", color=RED,
        ls="--", lw=1.4, label="budget",
    )  # fmt: skip
    changes = [k for k, value in enumerate(values) if k == 0 or value != values[k - 1]]
    for k in changes:
        axes.annotate(
            four_digits(values[k], "down"), (places[k], values[k]), (2, 5),
            textcoords="offset points", color=RED, fontsize=9,
        )  # fmt: skip
