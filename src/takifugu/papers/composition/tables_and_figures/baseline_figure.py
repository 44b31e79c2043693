"""The bounds of the literature beside ours on the same chains: tables and a figure.

What they mean and how they are computed: `experiments.compared_chains`.
"""

from collections.abc import Iterable, Sequence
from math import isinf
from typing import TYPE_CHECKING

import numpy as np

from takifugu.papers.composition.experiments.compared_chains import (
    APPROX,
    CURVE,
    EPSILON,
    EXACT,
    GROUP,
    LENGTH,
    METHODS,
    OTHER,
    OTHERS,
    PUBLISHED,
    QUILTS,
    SHARPENED,
    STAYS,
    TEMPORAL,
    ChainAllowances,
    ComparedChains,
)
from takifugu.papers.composition.tables_and_figures.layout import INK
from takifugu.papers.composition.tables_and_figures.plain_tables import PlainTable
from takifugu.reports.html_style import BLUE, GREEN, GREY, ORANGE, RED
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOT_APPLICABLE = "n/a"
TABLED = (0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9)  # p = q
TABLED_OTHERS = (0.1, 0.3, 0.8)  # p, with q = .6
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
MEANING = (
    f"All are lower bounds, rounded down. {NOT_APPLICABLE}: the theorem does not apply (GK16: a"
    " spectral norm of 1 or more, in brackets, infinite where values rule one another out;"
    " MQMApprox: states to which the chain does not return), and nothing takes its place. A"
    " 1-Lipschitz query takes Laplace noise of scale 1/ε."
)
CAPTION = (
    f"The per-entry ε that a Pufferfish ε of {EPSILON:g} allows on binary chains of {LENGTH}"
    " entries, by each bound; both in nats, on a logarithmic axis. A line ends with a cross where"
    " its theorem does not apply any more."
    " MQMExact and the paper's curve agree, and so do TPL and takifugu where p + q is at least 1."
)
HEADS = {  # short, so that the table is not wider than a page
    GROUP: "group DP",
    PUBLISHED: "GK16",
    SHARPENED: "GK16 sharp",
    APPROX: "MQM Approx",
    QUILTS: "MQM Exact",
    CURVE: "paper's curve",
    TEMPORAL: "TPL",
    EXACT: "takifugu",
}
STYLES = {  # wide pale lines lie below the thin ones that they agree with
    GROUP: (GREY, ":", 1.6, 1.0),
    APPROX: (GREY, "-", 1.4, 1.0),
    QUILTS: (ORANGE, "-", 5.5, 0.35),
    CURVE: (BLUE, "--", 1.6, 1.0),
    PUBLISHED: (RED, "-", 1.8, 1.0),
    SHARPENED: (RED, "-.", 1.8, 1.0),
    TEMPORAL: (GREEN, "-", 5.5, 0.35),
    EXACT: (INK, "-", 1.6, 1.0),
}


def baseline_table(made: ComparedChains) -> PlainTable:
    """Per-entry ε by method, on binary and published chains."""
    few = [one for p, one in zip(STAYS, made.equal, strict=True) if p in TABLED]
    few += [one for p, one in zip(OTHERS, made.unequal, strict=True) if p in TABLED_OTHERS]
    body = tuple(
        (one.name, *(_cell(one, method) for method in METHODS)) for one in [*few, *made.published]
    )
    return PlainTable(
        "baselines",
        f"The per-entry ε that a Pufferfish ε of {EPSILON:g} allows, by each bound",
        f"Chains of {LENGTH} entries; p and q are the probabilities to stay of two states."
        " Stationary but for those of Song et al. (who start at (1, 0) and (.9, .1)) and the one of"
        f" Cao et al. with two states (½, ½). {MEANING}",
        ("chain", *(HEADS[method] for method in METHODS)),
        body,
        (3.0, *(1.0,) * len(METHODS)),
    )


def fitted_table(rows: Iterable[ChainAllowances]) -> PlainTable:
    """The same on fitted chains, a column each."""
    listed = list(rows)
    applies = sum(one.allowed[PUBLISHED] is not None for one in listed)
    body = [
        ("states", *(str(one.states) for one in listed)),
        ("entries", *(str(one.length) for one in listed)),
        *((method, *(_cell(one, method) for one in listed)) for method in METHODS),
    ]
    return PlainTable(
        "baselines-fitted",
        f"The per-entry ε that a Pufferfish ε of {EPSILON:g} allows on fitted chains",
        "Smoothed with τ = 1e-5, as in the paper."
        f" GK16 applies to {applies} of {len(listed)}: where probabilities are as small as τ the"
        f" influence of neighbours is large. {MEANING}",
        ("bound", *(one.name for one in listed)),
        tuple(body),
        (1.5, *(1.0,) * len(listed)),
    )


def _cell(one: ChainAllowances, method: str) -> str:
    value = one.allowed[method]
    if value is not None:
        return four_digits(value, "down")
    if method != PUBLISHED:
        return NOT_APPLICABLE
    return f"{NOT_APPLICABLE} ({'∞' if isinf(one.norm) else four_digits(one.norm)})"


def baseline_figure(made: ComparedChains) -> "Figure":
    """Per-entry ε against p: on the left p = q, on the right q fixed; the same axis for both."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(10.5, 5.0), layout="constrained")
    drawn.suptitle(
        f"What a Pufferfish ε of {EPSILON:g} nat allows per entry of a binary chain of {LENGTH}",
        fontsize=12,
    )
    left, right = drawn.subplots(1, 2, sharey=True)
    _lines(left, STAYS, made.equal)
    _lines(right, OTHERS, made.unequal)
    left.set(
        title="p = q: both states stay alike",
        xlabel="p = q, probability to stay",
        ylabel="per-entry ε in nats (lower bound; logarithmic axis)",
        yscale="log",
    )
    right.set(
        title=f"q = {OTHER:g}: dependence of either sign", xlabel="p, probability to stay at 0"
    )
    left.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    left.minorticks_off()
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = left.get_legend_handles_labels()
    handles.append(left.plot([], [], "x", color=RED, ms=8, mew=2)[0])
    labels.append("applies no further")
    drawn.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return drawn


def _lines(axes: "Axes", places: Sequence[float], rows: Sequence[ChainAllowances]) -> None:
    for method, (colour, dash, width, alpha) in STYLES.items():
        values = [one.allowed[method] for one in rows]
        axes.plot(
            places, [np.nan if y is None else y for y in values],
            color=colour, ls=dash, lw=width, alpha=alpha, label=method,
        )  # fmt: skip
        for k, (x, y) in enumerate(zip(places, values, strict=True)):
            if y is not None and None in values[max(k - 1, 0) : k + 2]:
                axes.plot(x, y, "x", color=colour, ms=8, mew=2)
