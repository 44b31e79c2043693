"""The figures of measured cells: accuracy with its band of uncertainty, noise, and the shift.

Each takes cells and gives a figure; nothing is measured here. On simulated data every figure says
so in its title. Each mechanism is moved sideways by a few points of the page, its data unchanged,
so that none hides another where they agree; panels that are compared have the same axes.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import isfinite, log
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from takifugu.papers.composition.experiments.experiment import GROUP_DP, MAJORITY
from takifugu.papers.composition.experiments.measurements import (
    UNCERTAINTY,
    Cell,
    DatasetSummary,
    Results,
    ShiftedCell,
    printed_numbers,
)
from takifugu.papers.composition.tables_and_figures.figure_writing import (
    legend_below,
    new_figure,
    open_axes,
    write_whole,
)
from takifugu.papers.composition.tables_and_figures.paper_tables import all_layouts, all_tables
from takifugu.papers.composition.tables_and_figures.print_agreement import (
    ACCURACY,
    INK,
    OTHER,
    STYLES,
    Metric,
    beside_print,
    mechanisms,
    printed_belong,
)
from takifugu.papers.composition.tables_and_figures.table_formats import (
    latex_document,
    write_table_files,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Transform


SHIFT = log((1 + UNCERTAINTY) / (1 - UNCERTAINTY))  # theory: a(b) rises by this, except at the end
SIMULATED = "simulated data"
CALIBRATED = "printed, and calibrated to"
EPSILON = "Pufferfish ε (nats)"
PERCENT = (-3, 104)
NEAR = 0.01  # a point of a percentage: lines that near are one line in print
APART = 3.2  # points of the page between two mechanisms at the same ε
TOP = 0.985  # of the height: where what is infinite is marked
ACROSS = 3  # panels in a row of the overview
OVERVIEW = (
    "Acc@1 on every dataset. Solid: the prior is known; dashed: only to 20 %. Points at one ε are"
    " drawn side by side, so that none hides another: each belongs to the ε in their middle. Series"
    " that are within a point of each other are named below their panel."
)
Points = Mapping[float, float]


def accuracy_figure(about: DatasetSummary, cells: tuple[Cell, ...]) -> "Figure":
    """Acc@k against ε, the figure of Capture24: each band is between no and 20 % uncertainty."""
    drawn = new_figure(11.5, 4.4)
    panels = drawn.subplots(1, len(ACCURACY), sharex=True, sharey=True)
    for axes, metric in zip(panels, ACCURACY, strict=True):
        for name in _names(cells):
            _band(axes, name, _means(cells, name, metric))
        _printed(axes, metric, about, cells)
        majority = next((c for c in cells if c.mechanism == MAJORITY), None)
        if majority is not None:
            axes.axhline(
                100 * majority.measured[metric.key].mean,
                color=INK, ls=":", lw=1.1, label=f"{MAJORITY} (no ε)",
            )  # fmt: skip
        axes.set(title=f"{metric.label}: place {metric.label[-1]}", xlabel=EPSILON, ylim=PERCENT)
        _ticks(axes, cells)
        open_axes(axes)
    panels[0].set_ylabel("label in its place is right (%)")
    _uncertain_in_legend(panels[0])
    if printed_belong(about):
        panels[0].plot([], [], ls="", marker="+", ms=9, color=INK, label="printed, no uncertainty")
        if about.calibrated:
            panels[0].plot([], [], ls="", marker="+", ms=9, mew=2.6, color=INK, label=CALIBRATED)
    _finish(drawn, panels[0], f"Top 3 for each {about.group_by}", about)
    return drawn


def overview_figure(results: Results) -> "Figure":
    """Acc@1 on every dataset, each band between no and 20 % uncertainty: all at a glance."""
    rows = -(-len(results.about) // ACROSS)
    title = "Acc@1 of every mechanism on every dataset; points at one ε are drawn side by side"
    drawn = new_figure(11, 1.1 + 3.4 * rows, title, size=11)
    panels = list(drawn.subplots(rows, ACROSS, sharex=True, sharey=True, squeeze=False).flat)
    for axes, one in zip(panels, results.about, strict=False):
        cells = results.of(one.key)
        for name in _names(cells):
            _band(axes, name, _means(cells, name, ACCURACY[0]))
        origin = f"\n({SIMULATED})" if one.origin == "simulated" else ""
        axes.set_title(fill(one.title, 38) + origin, fontsize=9)
        axes.set(ylim=PERCENT)
        axes.set_xlabel(EPSILON + _within_a_point(cells), fontsize=8.5)
        axes.tick_params(labelbottom=True)
        _ticks(axes, cells)
        open_axes(axes)
    _uncertain_in_legend(panels[0])
    for place, axes in enumerate(panels):
        axes.set_visible(place < len(results.about))
        if place % ACROSS == 0:
            axes.set_ylabel("Acc@1 (%)")
    legend_below(drawn, panels[0], 6)
    return drawn


def noise_figure(about: DatasetSummary, cells: tuple[Cell, ...]) -> "Figure":
    """The standard deviation of the noise on one count; dashed with 20 % uncertainty."""
    drawn = new_figure(8.6, 4.8)
    axes = drawn.subplots()
    infinite = False
    for name in _names(cells):
        style = STYLES.get(name, OTHER)
        own = [cell for cell in cells if cell.mechanism == name]
        plain, uncertain = (
            {c.epsilon: c.noise for c in own if c.uncertain == flag} for flag in (False, True)
        )
        same = plain == uncertain  # then one line is enough, and says so
        for points, dash in ((plain, "-"), (uncertain, "--"))[: 1 if same else 2]:
            axes.plot(
                *_sorted({e: noise for e, noise in points.items() if isfinite(noise)}),
                ls=dash, color=style.color, marker=style.marker, ms=5, lw=style.width,
                mfc=style.color if dash == "-" else "none", transform=_moved(axes, name),
                label=None if dash == "--" else name + " (the same with 20 %)" * same,
            )  # fmt: skip
            unbounded = [epsilon for epsilon, noise in points.items() if not isfinite(noise)]
            if unbounded:
                infinite = True
                (marks,) = axes.plot(
                    unbounded, [TOP] * len(unbounded), ls="", marker="^", ms=8, color=style.color,
                    mfc=style.color if dash == "-" else "none", clip_on=False,
                    transform=_moved(axes, name, axes.get_xaxis_transform()),
                )  # fmt: skip
                marks.set_in_layout(False)
    axes.plot([], [], ls="--", marker="o", mfc="none", color=INK, label="with 20 % uncertainty")
    if infinite:
        axes.plot([], [], ls="", marker="^", ms=8, color=INK, label="infinite: nothing to spend")
    axes.set(xlabel=EPSILON, ylabel="noise on one count (s.d., rows)", yscale="log")
    finite = [c.noise for c in cells if c.mechanism != MAJORITY and isfinite(c.noise)]
    if finite:
        axes.set_ylim(min(finite) / 1.5, max(finite) * (4 if infinite else 1.5))
    _ticks(axes, cells)
    open_axes(axes)
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
    drawn = new_figure(10.5, 4.1)
    left, right = drawn.subplots(1, 2, sharex=True, sharey=True)
    for name, points in plain.items():
        if name == GROUP_DP:  # it is no worse for uncertainty, so nothing is shifted
            continue
        style = STYLES.get(name, OTHER)
        for axes, by, label in ((left, 0.0, name), (right, SHIFT, None)):
            axes.plot(*_sorted(points), color=style.color, lw=style.width, marker=".", label=label)
            at, values = _sorted(uncertain[name])
            axes.plot(
                at - by, values, ls="", marker=style.marker, ms=7, mfc="none", color=style.color,
                label=label and f"{label}, 20 % uncertainty",
            )  # fmt: skip
    for axes, title in ((left, "at ε"), (right, f"at ε − {SHIFT:.3f}")):
        axes.set(title=f"uncertain prior drawn {title}", xlabel=EPSILON, ylim=PERCENT)
        open_axes(axes)
    left.set_ylabel("Acc@1 (%)")
    _finish(drawn, left, "Uncertainty is a shift of ε", about)
    return drawn


def coinciding(
    cells: Iterable[Cell], metrics: Iterable[Metric] = ACCURACY
) -> tuple[tuple[str, str], ...]:
    """Mechanisms whose shares are within a point of each other in all cells and metrics."""
    by_name: dict[str, dict[tuple[bool, float, str], float]] = {}
    keys = [metric.key for metric in metrics]
    for cell in cells:
        if cell.mechanism != MAJORITY:
            own = by_name.setdefault(cell.mechanism, {})
            for key in keys:
                own[cell.uncertain, cell.epsilon, key] = cell.measured[key].mean
    return tuple(
        (one, other)
        for one, other in combinations(by_name, 2)
        if by_name[one].keys() == by_name[other].keys()
        and all(abs(mean - by_name[other][at]) <= NEAR for at, mean in by_name[one].items())
    )


def coinciding_from(
    cells: Iterable[Cell], metric: Metric = ACCURACY[0]
) -> tuple[tuple[tuple[str, ...], float], ...]:
    """Mechanisms within a point of each other from some ε on, with and without uncertainty.

    Largest sets only: one that is part of another from no larger ε is left out.
    """
    listed = [cell for cell in cells if cell.mechanism != MAJORITY]
    names, epsilons = _names(tuple(listed)), sorted({cell.epsilon for cell in listed})
    found: dict[frozenset[str], float] = {}
    for start in epsilons:
        above = [cell for cell in listed if cell.epsilon >= start]
        near = {frozenset(pair) for pair in coinciding(above, [metric])}
        for size in range(len(names), 1, -1):
            for some in map(frozenset, combinations(names, size)):
                pairs = map(frozenset, combinations(some, 2))
                if all(pair in near for pair in pairs) and not any(some <= one for one in found):
                    found[some] = start
    return tuple(
        (tuple(name for name in names if name in some), start) for some, start in found.items()
    )


def _by_mechanism(points: Iterable[tuple[str, float, float]]) -> dict[str, dict[float, float]]:
    """For each mechanism the value at each ε, as `shift_figure` takes it."""
    values: dict[str, dict[float, float]] = {}
    for mechanism, epsilon, value in points:
        values.setdefault(mechanism, {})[epsilon] = value
    return values


def measured_points(
    cells: Iterable[Cell], *, uncertain: bool, metric: Metric = ACCURACY[0]
) -> dict[str, dict[float, float]]:
    """For each mechanism the mean at each ε."""
    return _by_mechanism(
        (cell.mechanism, cell.epsilon, metric.scale * cell.measured[metric.key].mean)
        for cell in cells
        if cell.uncertain == uncertain and cell.mechanism != MAJORITY
    )


def again_points(
    shifted: Iterable[ShiftedCell], *, metric: Metric = ACCURACY[0]
) -> dict[str, dict[float, float]]:
    """What was run again without uncertainty, at its smaller ε; not where group DP stands in."""
    return _by_mechanism(
        (one.mechanism, one.at, metric.scale * one.plain[metric.key].mean)
        for one in shifted
        if not one.by_group
    )


def printed_points(*, uncertain: bool) -> dict[str, dict[float, float]]:
    """Acc@1 of the printed tables."""
    return _by_mechanism(
        (number.mechanism, number.epsilon, 100 * number.value)
        for number in printed_numbers()
        if number.metric == ACCURACY[0].key and number.uncertain == uncertain
    )


def _band(axes: "Axes", name: str, ends: tuple[Points, Points]) -> None:
    """The line without uncertainty, and the band down to the one with it."""
    style = STYLES.get(name, OTHER)
    plain, uncertain = ends
    moved = _moved(axes, name)
    axes.plot(
        *_sorted(plain), color=style.color, marker=style.marker, ms=4.5, lw=style.width, label=name,
        transform=moved, zorder=4,
    )  # fmt: skip
    both = sorted(set(plain) & set(uncertain))
    if both:
        low, high = [uncertain[e] for e in both], [plain[e] for e in both]
        axes.plot(both, low, color=style.color, ls="--", lw=0.9, transform=moved, zorder=3)
        axes.fill_between(both, high, low, color=style.color, alpha=0.14, lw=0, transform=moved)


def _printed(axes: "Axes", metric: Metric, about: DatasetSummary, cells: tuple[Cell, ...]) -> None:
    """What the paper prints without uncertainty, where that belongs here; bold if calibrated."""
    for cell in cells:
        beside = None if cell.uncertain else beside_print(about, cell, metric)
        if beside is not None:
            axes.plot(
                cell.epsilon, 100 * beside.printed.value, ls="", marker="+", ms=9,
                mew=2.6 if beside.calibrated else 1.2, zorder=5,
                color=STYLES.get(cell.mechanism, OTHER).color,
                transform=_moved(axes, cell.mechanism),
            )  # fmt: skip


def _moved(axes: "Axes", name: str, start: "Transform | None" = None) -> "Transform":
    """The place of a mechanism: a few points of the page beside the others, data unchanged."""
    from matplotlib.transforms import offset_copy

    order = list(STYLES)
    place = order.index(name) if name in order else len(order)
    x = APART * (place - (len(order) - 1) / 2)
    return offset_copy(start or axes.transData, fig=axes.get_figure(root=True), x=x, units="points")


def _within_a_point(cells: tuple[Cell, ...]) -> str:
    """A line for each set of series that lie on each other, below the name of the axis."""
    first = min((cell.epsilon for cell in cells), default=0.0)
    lines = ""
    for names, start in coinciding_from(cells):
        where = "everywhere" if start == first else f"from ε = {start:g} on"
        whole = "; ".join(name.replace(" ", "\u00a0") for name in names)  # a name on one line
        lines += "\n" + fill(f"coincide {where}: {whole}", 62)
    return lines.replace("\u00a0", " ")


def _uncertain_in_legend(axes: "Axes") -> None:
    axes.plot([], [], ls="--", lw=0.9, color=INK, label="with 20 % uncertainty")


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
    """The ε that were measured, with room for what is moved sideways."""
    at = sorted({cell.epsilon for cell in cells})
    axes.set_xticks(at, [f"{epsilon:g}" for epsilon in at])
    if at:
        room = 0.07 * (at[-1] - at[0]) or 0.5
        axes.set_xlim(at[0] - room, at[-1] + room)


def _finish(drawn: "Figure", axes: "Axes", what: str, about: DatasetSummary | None) -> None:
    """The title says what the data is; one legend below for all panels."""
    if about is None:
        title = f"{what}: the paper's printed table"
    else:
        origin = f" ({SIMULATED})" if about.origin == "simulated" else ""
        title = f"{what}: {about.title}{origin}"
    together = title.replace(SIMULATED, SIMULATED.replace(" ", "\u00a0"))  # on one line
    lines = fill(together, int(9 * drawn.get_figwidth())).replace("\u00a0", " ")
    drawn.suptitle(lines, fontsize=11)
    legend_below(drawn, axes, 3 if drawn.get_figwidth() < 9 else 6)


PRINTED = "printed"
SIDEWAYS = "Each mechanism is moved sideways a little, so that none hides another."


@dataclass(frozen=True)
class NamedFigure:
    """A figure: its name among files, its dataset ("printed" for the paper's), what it shows."""

    key: str
    data: str
    caption: str
    figure: "Figure"


def write_tables(results: Results, out: Path) -> list[Path]:
    """Every table as Markdown, CSV and LaTeX, and all of them as one LaTeX document.

    Where the printed numbers belong, the paper's tables also in the paper's own layout.
    """
    tables = [*all_layouts(results), *all_tables(results)]
    files = write_table_files(tables, out)
    if tables:
        files.append(out / "all.tex")
        write_whole(files[-1], latex_document(tables))
    return files


def pictures(results: Results) -> list[NamedFigure]:
    """The figures of every dataset, after the shift on the printed tables."""
    drawn = [picture for one in results.about for picture in _pictures(one, results)]
    return [printed_shift(), *drawn]


def printed_shift() -> NamedFigure:
    """The paper's own columns: those with uncertainty are those without, shifted."""
    plain, uncertain = (printed_points(uncertain=flag) for flag in (False, True))
    return NamedFigure(
        f"{PRINTED}-shift",
        PRINTED,
        "Printed Acc@1 of Table 1: from ε = 1 on each point with 20 % uncertainty (open) lies on"
        f" the line without it, at ε − {SHIFT:.3f}.",
        shift_figure(None, plain, uncertain),
    )


def _coinciding(cells: tuple[Cell, ...]) -> str:
    """Which lines cannot be told apart, in words."""
    pairs = [f"{one} and {other}" for one, other in coinciding(cells)]
    return f" Everywhere within a point of each other: {'; '.join(pairs)}." if pairs else ""


def _pictures(one: DatasetSummary, results: Results) -> Iterator[NamedFigure]:
    cells = results.of(one.key)
    yield NamedFigure(
        f"{one.key}-accuracy",
        one.key,
        "Acc@k against the Pufferfish ε. The shaded region is between no and 20 % uncertainty."
        f" {SIDEWAYS}{_coinciding(cells)}",
        accuracy_figure(one, cells),
    )
    yield NamedFigure(
        f"{one.key}-noise",
        one.key,
        "The standard deviation of the noise on one count, on a logarithmic scale; where nothing"
        f" may be spent it is infinite, and marked at the top. {SIDEWAYS}",
        noise_figure(one, cells),
    )
    plain, uncertain = (measured_points(cells, uncertain=flag) for flag in (False, True))
    again = again_points(results.shifted_of(one.key))
    line = {name: points | again.get(name, {}) for name, points in plain.items()}
    yield NamedFigure(
        f"{one.key}-shift",
        one.key,
        "Lines: without uncertainty, with what was run again at each ε −"
        f" {SHIFT:.3f}. Marks: with 20 % uncertainty. Group DP, which is no worse for it,"
        " is left out; where it is all that is left, a mark is above its line.",
        shift_figure(one, line, uncertain),
    )
