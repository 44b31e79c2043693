"""What a prior says, as figures: how states follow one another, how columns depend, how far."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.kernels import Covariance
from takifugu.priors.markov import MarkovChain
from takifugu.priors.networks import BayesianNetwork
from takifugu.priors.prior import Prior, state_text
from takifugu.priors.time_of_day import TimeOfDayChain
from takifugu.reports.html_style import BLUE, GREY
from takifugu.reports.plot_files import plain_axes, shortened
from takifugu.visible import four_digits, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_STATES = 24  # of a heat map; more would be too small to see
NUMBERED = 8  # states up to which the probabilities are written into the cells
MAX_NAME_LETTERS = 18
MAX_LAGS = 48
MAX_NODES = 16  # of a drawn network


@dataclass(frozen=True)
class PriorFigure:
    """A figure of a prior, what it shows, and its gist for those who cannot see it."""

    figure: "Figure"
    caption: str
    alt: str


def prior_figures(prior: Prior) -> Iterator[PriorFigure]:
    """The figures of a prior; none for a family that has none."""
    match prior:
        case MarkovChain():
            yield from _chain(prior)
        case IntervalMarkovChain():
            middle = (np.asarray(prior.lower) + np.asarray(prior.upper)) / 2
            names = [state_text(state) for state in prior.states]
            yield _transitions(
                middle, names, names, "the middle of the interval of each probability"
            )
        case HigherOrderChain():
            names = [state_text(state) for state in prior.states]
            after = [" → ".join(names[k] for k in window) for window in prior.windows.tolist()]
            table = np.asarray(prior.transition).reshape(len(after), -1)
            yield _transitions(table, after, names, "the next value after each window of rows")
        case TimeOfDayChain():
            stays = np.diagonal(np.asarray(prior.transition), axis1=-2, axis2=-1)
            yield _hours(stays, [state_text(state) for state in prior.states])
        case Gaussian() if isinstance(prior.kernel, Covariance):
            yield _correlations(prior)
        case Gaussian():
            yield _lags(prior)
        case BayesianNetwork() if len(prior.entries) <= MAX_NODES:
            yield _network(prior)
        case _:
            return


def _chain(chain: MarkovChain) -> Iterator[PriorFigure]:
    names = [state_text(state) for state in chain.states]
    drawn = _frequent_states(chain)
    table = chain.kernel(0)
    which = "" if chain.homogeneous else " from the first entry to the second"
    yield _transitions(table, names, names, f"the next value{which}", drawn)
    law = chain.stationary if chain.homogeneous and chain.stationary_start else None
    if law is not None:
        yield _law(law, names, drawn)


def _frequent_states(chain: MarkovChain) -> list[int]:
    """The states that are drawn: the most frequent, in their own order."""
    size = len(chain.states)
    if size <= MAX_STATES:
        return list(range(size))
    weight = chain.stationary if chain.homogeneous else chain.kernel(0).mean(axis=0)
    return sorted(np.argsort(-weight, kind="stable")[:MAX_STATES].tolist())


def _transitions(
    table: Floats,
    before: Sequence[str],
    after: Sequence[str],
    about: str,
    drawn: Sequence[int] | None = None,
) -> PriorFigure:
    rows = list(range(len(before)))[:MAX_STATES] if drawn is None else list(drawn)
    columns = list(range(len(after)))[:MAX_STATES] if drawn is None else list(drawn)
    shown = np.asarray(table)[np.ix_(rows, columns)]
    figure = heat_map(
        shown, [before[k] for k in rows], [after[k] for k in columns], down="value now",
        across="next value",
    )  # fmt: skip
    some = ""
    if len(rows) < len(before) or len(columns) < len(after):
        which = "the first" if drawn is None else "the most frequent"
        some = f" Of {len(before)} only {len(rows)} are shown, {which}."
    place = np.unravel_index(int(np.argmax(table)), np.shape(table))
    top = float(np.asarray(table)[place])
    largest = (
        f"The largest is {four_digits(top)}, from {_short(before[int(place[0])])} to"
        f" {_short(after[int(place[1])])}."
    )
    return PriorFigure(
        figure,
        f"The probability of {about}, for each value that a row may hold: a line for the value now,"
        f" a column for the next. The stronger the colour, the larger the probability.{some}",
        f"Heat map of {len(before)} by {len(after)} transition probabilities. {largest}",
    )


def heat_map(
    table: Floats, down_names: Sequence[str], across_names: Sequence[str], *, down: str, across: str
) -> "Figure":
    """Cells in one colour, the stronger the larger; with their numbers if they are few."""
    from matplotlib.colors import to_rgb

    high, wide = table.shape
    few = max(high, wide) <= NUMBERED
    width = min(max(3.0 + 0.62 * wide, 4.6), 7.2) if few else 7.2
    height = 1.3 + (0.42 if few else 0.23) * high
    figure, axes = plain_axes(width, height)
    shares = np.clip(np.nan_to_num(table), 0.0, 1.0)
    strength = shares / max(float(shares.max(initial=0.0)), 1e-9) * (0.5 if few else 1.0)
    for row in range(high):
        for column in range(wide):
            if strength[row, column] > 0.004:
                axes.fill(
                    [column, column + 1, column + 1, column], [row, row, row + 1, row + 1],
                    color=(*to_rgb(BLUE), float(strength[row, column])), lw=0,
                )  # fmt: skip
            if few:
                axes.text(
                    column + 0.5, row + 0.5, four_digits(float(table[row, column])), ha="center",
                    va="center", fontsize=8.5,
                )  # fmt: skip
    axes.set(xlim=(0, wide), ylim=(high, 0))
    axes.set_yticks(np.arange(high) + 0.5, [_short(name) for name in down_names], fontsize=8)
    longest = max((len(_short(name)) for name in across_names), default=0)
    tilted = longest * wide > 60
    axes.set_xticks(
        np.arange(wide) + 0.5, [_short(name) for name in across_names], fontsize=8,
        rotation=45 if tilted else 0, ha="right" if tilted else "center",
        rotation_mode="anchor" if tilted else None,
    )  # fmt: skip
    axes.set_ylabel(down, fontsize=9)
    axes.set_xlabel(across, fontsize=9)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set(visible=True, color=GREY, lw=0.6)
    return figure


def _law(law: Floats, names: Sequence[str], drawn: Sequence[int]) -> PriorFigure:
    order = sorted(drawn, key=lambda k: -float(law[k]))
    figure, axes = plain_axes(7.2, 1.0 + 0.23 * len(order))
    places = range(len(order))
    axes.barh(places, [float(law[k]) for k in order], color=BLUE, height=0.7)
    axes.set_yticks(places, [_short(names[k]) for k in order], fontsize=8)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_xlabel("probability", fontsize=9)
    first, last = order[0], order[-1]
    some = "" if len(order) == len(names) else f" The {len(order)} largest of {len(names)}."
    return PriorFigure(
        figure,
        "The stationary law: how likely each value is at a time of which nothing else is known."
        + some,
        f"Bars of {len(order)} probabilities, from {four_digits(float(law[first]))} for"
        f" {_short(names[first])} down to {four_digits(float(law[last]))} for"
        f" {_short(names[last])}.",
    )


def _hours(stays: Floats, names: Sequence[str]) -> PriorFigure:
    hours = [str(hour) for hour in range(len(stays))]
    shown = list(range(len(names)))[:MAX_STATES]
    figure = heat_map(
        np.asarray(stays)[:, shown].T, [names[k] for k in shown], hours, down="value",
        across="hour of the day",
    )  # fmt: skip
    least, most = float(np.min(stays)), float(np.max(stays))
    return PriorFigure(
        figure,
        "The probability that a value stays as it is for one more hour, by hour of the day. The"
        " stronger the colour, the larger the probability.",
        f"Heat map of {len(names)} values by {len(hours)} hours; the probabilities of staying run"
        f" from {four_digits(least)} to {four_digits(most)}.",
    )


def _lags(process: Gaussian) -> PriorFigure:
    many = MAX_LAGS if process.length is None else min(MAX_LAGS, process.length - 1)
    lags = np.arange(1, max(many, 1) + 1)
    kernel: Any = process.kernel
    values = kernel.most(lags)
    figure, axes = plain_axes(7.2, 3.2)
    axes.plot(lags, values, marker="o", ms=3.5, lw=1.6, color=BLUE)
    axes.axhline(0, color=GREY, lw=0.6)
    axes.set_xlabel("steps between two numbers", fontsize=9)
    axes.set_ylabel("correlation", fontsize=9)
    axes.set_ylim(min(0.0, float(np.min(values))) - 0.02, 1.02)
    return PriorFigure(
        figure,
        "How strongly two numbers of one entity are correlated, by how many steps lie between"
        " them: 1 would mean that one tells the other.",
        f"A line that goes from {four_digits(float(values[0]))} at one step to"
        f" {four_digits(float(values[-1]))} at {int(lags[-1])} steps.",
    )


def _correlations(process: Gaussian) -> PriorFigure:
    size = min(process.size or 1, MAX_STATES)
    covariance = np.asarray(process.covariance(list(range(size))))
    spread = np.sqrt(np.diagonal(covariance))
    correlation = np.abs(covariance / np.outer(spread, spread))
    names = [str(k) for k in range(size)]
    figure = heat_map(correlation, names, names, down="entry", across="entry")
    apart = correlation[~np.eye(size, dtype=bool)]
    most = float(apart.max(initial=0.0))
    return PriorFigure(
        figure,
        "How strongly two entries are correlated, in absolute value: the stronger the colour, the"
        f" more. The first {size} of {process.size} entries.",
        f"Heat map of the correlations of {size} entries; between two different ones at most"
        f" {four_digits(most)}.",
    )


def _network(network: BayesianNetwork) -> PriorFigure:
    """The columns on a circle, with an arrow from each to those that depend on it."""
    names = [str(entry) for entry in network.entries]
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(names)) / max(len(names), 1)
    x, y = 1.6 * np.cos(angle), np.sin(angle)
    place = {name: k for k, name in enumerate(names)}
    arrows = [
        (place[str(parent)], place[name])
        for name, parents in zip(names, network.parents, strict=True)
        for parent in parents
    ]
    figure, axes = plain_axes(6.4, 3.8)
    room = [8 + 3.1 * len(_short(name)) for name in names]  # points, half of a name
    for parent, child in arrows:
        level = abs(x[child] - x[parent]) / (abs(x[child] - x[parent]) + abs(y[child] - y[parent]))
        ends = {"shrinkA": 10 + level * room[parent], "shrinkB": 10 + level * room[child]}
        axes.annotate(
            "", (x[child], y[child]), (x[parent], y[parent]),
            arrowprops={"arrowstyle": "-|>", "color": BLUE, "lw": 1.4, **ends},
        )  # fmt: skip
    for name, left, up in zip(names, x, y, strict=True):
        axes.text(left, up, _short(name), ha="center", va="center", fontsize=10)
    axes.set(xlim=(-2.2, 2.2), ylim=(-1.25, 1.25))
    axes.set_axis_off()
    listed = "; ".join(f"{names[child]} on {names[parent]}" for parent, child in arrows[:12])
    return PriorFigure(
        figure,
        "Which column depends on which: an arrow leads to the one that depends."
        " Columns without a path between them are taken to be independent.",
        visible(f"{len(arrows)} arrows between {len(names)} columns: {listed or 'none'}."),
    )


def _short(name: str) -> str:
    return shortened(name, MAX_NAME_LETTERS)
