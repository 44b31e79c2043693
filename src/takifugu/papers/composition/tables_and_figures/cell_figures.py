"""The figures of measured cells: accuracy with its band of uncertainty, noise, and the shift.

Each takes cells and gives a figure; nothing is measured here. On simulated data every figure says
so in its title.
"""

from collections.abc import Iterable, Mapping
from math import isfinite, log
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from takifugu.papers.composition.experiments.contenders import GROUP_DP, MAJORITY, TAKIFUGU
from takifugu.papers.composition.experiments.measurements import Cell
from takifugu.papers.composition.experiments.printed import (
    UNCERTAINTY,
    PrintedCell,
    printed_numbers,
)
from takifugu.papers.composition.results import DatasetSummary, Results, ShiftedCell
from takifugu.papers.composition.tables_and_figures.layout import (
    ACCURACY,
    OTHER,
    STYLES,
    Metric,
    mechanisms,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHIFT = log((1 + UNCERTAINTY) / (1 - UNCERTAINTY))  # theory: a(b) rises by this, except at the end
SIMULATED = "simulated data"
ACROSS = 3  # panels in a row of the overview
Points = Mapping[float, float]


def accuracy_figure(about: DatasetSummary, cells: tuple[Cell, ...]) -> "Figure":
    """Acc@k against ε, the figure of Capture24: each band is between no and 20 % uncertainty."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(11.5, 4.1), layout="constrained")
    panels = drawn.subplots(1, len(ACCURACY), sharey=True)
    for axes, metric in zip(panels, ACCURACY, strict=True):
        for name in _names(cells):
            _band(axes, name, _means(cells, name, metric))
        majority = next((c for c in cells if c.mechanism == MAJORITY), None)
        if majority is not None:
            axes.axhline(
                100 * majority.measured[metric.key].mean,
                color="#333333", ls=":", lw=1.1, label=MAJORITY,
            )  # fmt: skip
        axes.set(title=metric.label, xlabel="Pufferfish ε", ylim=(-2, 103))
        _ticks(axes, cells)
        _plain(axes)
    panels[0].set_ylabel("correct, %")
    _finish(drawn, panels[0], f"Top 3 for each {about.group_by}", about)
    return drawn


def overview_figure(results: Results) -> "Figure":
    """Acc@1 on every dataset, each band between no and 20 % uncertainty: all at a glance."""
    from matplotlib.figure import Figure

    rows = -(-len(results.about) // ACROSS)
    drawn = Figure(figsize=(11, 0.6 + 3.1 * rows), layout="constrained")
    panels = list(drawn.subplots(rows, ACROSS, sharey=True, squeeze=False).flat)
    for axes, one in zip(panels, results.about, strict=False):
        cells = results.of(one.key)
        for name in _names(cells):
            _band(axes, name, _means(cells, name, ACCURACY[0]))
        origin = f"\n({SIMULATED})" if one.origin == "simulated" else ""
        axes.set_title(fill(one.title, 38) + origin, fontsize=9)
        axes.set(xlabel="Pufferfish ε", ylim=(-2, 103))
        _ticks(axes, cells)
        _plain(axes)
    for place, axes in enumerate(panels):
        axes.set_visible(place < len(results.about))
        if place % ACROSS == 0:
            axes.set_ylabel("Acc@1, %")
    handles, labels = panels[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    return drawn


def noise_figure(about: DatasetSummary, cells: tuple[Cell, ...]) -> "Figure":
    """The standard deviation of the noise on one count; dashed with 20 % uncertainty."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(7.6, 4.4), layout="constrained")
    axes = drawn.subplots()
    for name in _names(cells):
        style = STYLES.get(name, OTHER)
        for uncertain, dash in ((False, "-"), (True, "--")):
            points = {
                c.epsilon: c.noise
                for c in cells
                if c.mechanism == name and c.uncertain == uncertain and isfinite(c.noise)
            }
            axes.plot(
                *_sorted(points), ls=dash, color=style.color, marker=style.marker, ms=4.5,
                lw=style.width, alpha=0.55 if uncertain else 1,
                label=None if uncertain else name,
            )  # fmt: skip
    axes.plot([], [], ls="--", color="#333333", label="with 20 % uncertainty")
    axes.set(xlabel="Pufferfish ε", ylabel="noise on one count, s.d.", yscale="log")
    _ticks(axes, cells)
    _plain(axes)
    _finish(drawn, axes, "The price of correlation", about)
    return drawn


def shift_figure(
    about: DatasetSummary | None, plain: Mapping[str, Points], uncertain: Mapping[str, Points]
) -> "Figure":
    """Uncertainty is a shift: the points with 20 % at ε − log 1.5 lie on the line without.

    Args:
        about: The dataset; None for the printed tables.
        plain: For each mechanism Acc@1 in % at each ε, without uncertainty.
        uncertain: The same with 20 %.
    """
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(10.5, 4.1), layout="constrained")
    left, right = drawn.subplots(1, 2, sharey=True)
    for name, points in plain.items():
        if name == GROUP_DP:  # it is no worse for uncertainty, so nothing is shifted
            continue
        style = STYLES.get(name, OTHER)
        for axes, by, label in ((left, 0.0, name), (right, SHIFT, None)):
            axes.plot(*_sorted(points), color=style.color, lw=style.width, marker=".", label=label)
            at, values = _sorted(uncertain[name])
            axes.plot(
                at - by, values, ls="", marker=style.marker, ms=7, mfc="none", color=style.color
            )
    for axes, title in ((left, "at ε"), (right, f"at ε − {SHIFT:.3f}")):
        axes.plot([], [], ls="", marker="o", mfc="none", color="#333333", label="20 % uncertainty")
        axes.set(title=f"uncertain prior drawn {title}", xlabel="Pufferfish ε")
        _plain(axes)
    left.set_ylabel("Acc@1, %")
    _finish(drawn, left, "Uncertainty is a shift of ε", about)
    return drawn


def measured_points(
    cells: Iterable[Cell], *, uncertain: bool, metric: Metric = ACCURACY[0]
) -> dict[str, dict[float, float]]:
    """For each mechanism the mean at each ε, as `shift_figure` takes it."""
    found: dict[str, dict[float, float]] = {}
    for cell in cells:
        if cell.uncertain == uncertain and cell.mechanism != MAJORITY:
            scale = 100 if metric.percent else 1
            points = found.setdefault(cell.mechanism, {})
            points[cell.epsilon] = scale * cell.measured[metric.key].mean
    return found


def again_points(
    shifted: Iterable[ShiftedCell], *, metric: Metric = ACCURACY[0]
) -> dict[str, dict[float, float]]:
    """What was run again without uncertainty, at its smaller ε; not where group DP stands in."""
    found: dict[str, dict[float, float]] = {}
    for one in shifted:
        if not one.by_group:
            scale = 100 if metric.percent else 1
            found.setdefault(one.mechanism, {})[one.at] = scale * one.plain[metric.key].mean
    return found


def printed_points(*, uncertain: bool) -> dict[str, dict[float, float]]:
    """Acc@1 of the printed tables, as `shift_figure` takes it."""
    found: dict[str, dict[float, float]] = {}
    numbers: Iterable[PrintedCell] = printed_numbers()
    for number in numbers:
        if number.metric == ACCURACY[0].key and number.uncertain == uncertain:
            found.setdefault(number.mechanism, {})[number.epsilon] = 100 * number.value
    return found


def _band(axes: "Axes", name: str, ends: tuple[Points, Points]) -> None:
    """The line without uncertainty, and the band down to the one with it."""
    style = STYLES.get(name, OTHER)
    plain, uncertain = ends
    at, high = _sorted(plain)
    axes.plot(
        at, high, color=style.color, marker=style.marker, ms=4.5, lw=style.width, label=name,
        zorder=4 if name == TAKIFUGU else 3,
    )  # fmt: skip
    both = sorted(set(plain) & set(uncertain))
    if both:
        axes.fill_between(
            both,
            [plain[e] for e in both],
            [uncertain[e] for e in both],
            color=style.color,
            alpha=0.18,
            lw=0,
        )


def _means(cells: tuple[Cell, ...], name: str, metric: Metric) -> tuple[Points, Points]:
    own = [cell for cell in cells if cell.mechanism == name]
    return (
        measured_points(own, uncertain=False, metric=metric).get(name, {}),
        measured_points(own, uncertain=True, metric=metric).get(name, {}),
    )


def _sorted(points: Points) -> tuple[np.ndarray, np.ndarray]:
    at = sorted(points)
    return np.array(at), np.array([points[x] for x in at])


def _names(cells: tuple[Cell, ...]) -> tuple[str, ...]:
    return mechanisms(list(dict.fromkeys(cell.mechanism for cell in cells)))


def _ticks(axes: "Axes", cells: tuple[Cell, ...]) -> None:
    at = sorted({cell.epsilon for cell in cells})
    axes.set_xticks(at, [f"{epsilon:g}" for epsilon in at])


def _plain(axes: "Axes") -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)


def _finish(drawn: "Figure", axes: "Axes", what: str, about: DatasetSummary | None) -> None:
    """The title says what the data is; one legend below for all panels."""
    if about is None:
        title = f"{what}: the paper's printed table"
    else:
        origin = f" ({SIMULATED})" if about.origin == "simulated" else ""
        title = f"{what}: {about.title}{origin}"
    drawn.suptitle(fill(title, int(9 * drawn.get_figwidth())), fontsize=11)
    handles, labels = axes.get_legend_handles_labels()
    columns = 3 if drawn.get_figwidth() < 9 else 6
    drawn.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )
