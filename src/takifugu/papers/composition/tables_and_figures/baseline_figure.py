"""What each published bound allows per entry on the same chains: a table and a figure.

    python -m takifugu.papers.composition.tables_and_figures.baseline_figure [--out DIR]

Group DP, GK16 (as published and sharpened), MQMApprox, MQMExact, the paper's curve, temporal
privacy leakage (TPL) and takifugu's exact translation. All are lower bounds on the per-entry ε
that a Pufferfish ε allows; a 1-Lipschitz query takes Laplace noise of scale one over it. Where a
theorem does not apply there is no number, and nothing takes its place.
"""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from takifugu.errors import InvalidPrior
from takifugu.numeric import Floats
from takifugu.papers.composition.baselines.chain_laws import group_to_dp
from takifugu.papers.composition.baselines.gk16 import gk16_norm, gk16_to_dp
from takifugu.papers.composition.baselines.quilts import mqm_approx, mqm_exact
from takifugu.papers.composition.baselines.temporal import tpl_to_dp
from takifugu.papers.composition.experiments.allowances import curve_allowances
from takifugu.papers.composition.tables_and_figures.figure_writing import write_figure
from takifugu.papers.composition.tables_and_figures.plain_tables import (
    PlainTable,
    write_plain_tables,
)
from takifugu.priors.fitting import smooth
from takifugu.priors.markov import MarkovChain
from takifugu.reports.html_style import BLUE, GREEN, GREY, ORANGE, RED
from takifugu.translation.translation import Translation
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Progress = Callable[[str, int, int], None]
LENGTH, EPSILON = 100, 1.0
STAYS = tuple(round(0.5 + 0.025 * k, 3) for k in range(19))  # p = q
OTHERS = tuple(round(0.05 + 0.05 * k, 2) for k in range(19))  # p, with q = .6
OTHER = 0.6
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
NOT_APPLICABLE = "n/a"
GROUP, PUBLISHED, SHARPENED = "group DP", "GK16", "GK16, sharpened"
APPROX, QUILTS, CURVE = "MQMApprox", "MQMExact", "paper's curve"
TEMPORAL, EXACT = "TPL", "takifugu"
METHODS = (GROUP, PUBLISHED, SHARPENED, APPROX, QUILTS, CURVE, TEMPORAL, EXACT)
CAPTION = (
    "The per-entry ε that a Pufferfish ε of 1 allows on chains of 100 entries, by each bound. A"
    " line ends, with a cross, where its theorem does not apply. MQMExact and the paper's curve"
    " agree, and so do TPL and takifugu where p + q is at least 1."
)


@dataclass(frozen=True)
class ComparedChain:
    """A chain on which bounds are compared.

    Attributes:
        name: Where it comes from.
        transition: Its matrix.
        start: The law of its first entry; None if it is stationary.
        length: How many entries it has.
    """

    name: str
    transition: Floats
    start: tuple[float, ...] | None = None
    length: int = LENGTH

    @property
    def prior(self) -> MarkovChain:
        """The chain as a prior."""
        if self.start is None:
            return MarkovChain(self.transition, length=self.length)
        return MarkovChain(self.transition, start=np.array(self.start), length=self.length)


@dataclass(frozen=True)
class ChainAllowances:
    """What a Pufferfish ε allows per entry on one chain, by each method; all rounded down.

    Attributes:
        chain: The chain.
        epsilon: The Pufferfish ε.
        allowed: For each method its per-entry ε; None where it does not apply.
        norm: The spectral norm of GK16's matrix; it applies below 1.
    """

    chain: ComparedChain
    epsilon: float
    allowed: Mapping[str, float | None]
    norm: float


def binary(p: float, q: float) -> ComparedChain:
    """The stationary chain that stays at 0 with probability p and at 1 with probability q."""
    return ComparedChain(f"binary, p = {p:g}, q = {q:g}", np.array([[p, 1 - p], [1 - q, q]]))


def published_chains() -> tuple[ComparedChain, ...]:
    """Chains of Song et al., of Cao et al., and the fitted one that the paper prints."""
    printed = np.array(
        [
            [0.5, 0, 0.1666, 0.0555, 0.2777, 0],
            [0.1428, 0.3571, 0.1428, 0.0714, 0.2857, 0],
            [0.0361, 0.0120, 0.4698, 0.1325, 0.3493, 0],
            [0, 0, 0.0897, 0.4615, 0.4487, 0],
            [0.0125, 0.0251, 0.1006, 0.0911, 0.7704, 0],
            [0.2, 0.2, 0.2, 0.2, 0.2, 0],
        ]
    )
    fitted = smooth(printed / printed.sum(axis=1, keepdims=True))
    return (
        ComparedChain("Song et al., θ₁", np.array([[0.9, 0.1], [0.4, 0.6]]), (1.0, 0.0)),
        ComparedChain("Song et al., θ₂", np.array([[0.8, 0.2], [0.3, 0.7]]), (0.9, 0.1)),
        ComparedChain("Cao et al., two states", np.array([[0.8, 0.2], [0.0, 1.0]]), (0.5, 0.5)),
        ComparedChain(
            "Cao et al., three states",
            np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]]),
        ),
        ComparedChain("the paper's smoothing example, 6 states", fitted),
    )


def compared_allowances(chain: ComparedChain, epsilon: float = EPSILON) -> ChainAllowances:
    """Every bound on one chain."""
    P, n, start = chain.transition, chain.length, chain.start
    prior = chain.prior
    found: dict[str, float | None] = {
        GROUP: group_to_dp(n, epsilon),
        PUBLISHED: gk16_to_dp(P, n, epsilon, start=start) or None,
        SHARPENED: gk16_to_dp(P, n, epsilon, start=start, sharpened=True) or None,
        APPROX: _mixing(P, n, epsilon),
        QUILTS: mqm_exact(P, n, epsilon, start=start).to_dp,
        CURVE: curve_allowances(prior, [epsilon])[0],
        TEMPORAL: tpl_to_dp(P, n, epsilon, start=start),
        EXACT: float(Translation(prior).to_dp(epsilon)),
    }
    return ChainAllowances(chain, epsilon, found, gk16_norm(P, n, start=start))


def _mixing(P: Floats, length: int, epsilon: float) -> float | None:
    """MQMApprox; None for a chain that has states to which it does not return."""
    try:
        return mqm_approx(P, length, epsilon).to_dp
    except InvalidPrior:
        return None


def baseline_table(rows: Iterable[ChainAllowances]) -> PlainTable:
    """Per-entry ε by method and chain, the largest of the baselines' and ours as they are."""
    listed = list(rows)
    body = tuple(
        (
            one.chain.name,
            *(_cell(one.allowed[method]) for method in METHODS),
            "infinite" if np.isinf(one.norm) else four_digits(round(one.norm, 4)),
        )
        for one in listed
    )
    return PlainTable(
        "baselines",
        "The per-entry ε that a Pufferfish ε of 1 allows",
        f"Chains of {LENGTH} entries, stationary but for those of Song et al. (who start at"
        " (1, 0) and (.9, .1)) and Cao et al.'s of two states (½, ½). All numbers are lower bounds,"
        f" rounded; {NOT_APPLICABLE}: the theorem does not apply (GK16: a spectral norm of 1 or"
        " more, or impossible combinations of values; MQMApprox: states that do not return)."
        " A 1-Lipschitz query takes Laplace noise of scale 1/ε.",
        ("chain", *METHODS, "norm of Γ"),
        body,
        (3.2, *(1.0,) * (len(METHODS) + 1)),
    )


def _cell(value: float | None) -> str:
    return NOT_APPLICABLE if value is None else four_digits(value, "down")


STYLES = {  # wide pale lines lie below the thin ones that they agree with
    GROUP: (GREY, ":", 1.6, 1.0),
    APPROX: (GREY, "-", 1.4, 1.0),
    QUILTS: (ORANGE, "-", 5.5, 0.35),
    CURVE: (ORANGE, "--", 1.6, 1.0),
    PUBLISHED: (RED, "-", 1.8, 1.0),
    SHARPENED: (RED, "-.", 1.8, 1.0),
    TEMPORAL: (GREEN, "-", 5.5, 0.35),
    EXACT: (BLUE, "-", 1.6, 1.0),
}


def baseline_figure(
    equal: Sequence[tuple[float, ChainAllowances]], unequal: Sequence[tuple[float, ChainAllowances]]
) -> "Figure":
    """Per-entry ε against p: on the left p = q, on the right q fixed; the same axis for both."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(10.5, 5.0), layout="constrained")
    drawn.suptitle(
        f"What a Pufferfish ε of {EPSILON:g} allows per entry of a binary chain of {LENGTH}",
        fontsize=12,
    )
    left, right = drawn.subplots(1, 2, sharey=True)
    _lines(left, equal)
    _lines(right, unequal)
    left.set(
        title="p = q: both states stay alike", ylabel="per-entry ε (lower bound)", yscale="log",
        xlabel="p = q, probability to stay",
    )  # fmt: skip
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


def _lines(axes: "Axes", points: Sequence[tuple[float, ChainAllowances]]) -> None:
    for method, (colour, dash, width, alpha) in STYLES.items():
        values = [(x, one.allowed[method]) for x, one in points]
        axes.plot(
            [x for x, _ in values], [np.nan if y is None else y for _, y in values],
            color=colour, ls=dash, lw=width, alpha=alpha, label=method,
        )  # fmt: skip
        for place, (x, y) in enumerate(values):
            near = [values[k][1] for k in (place - 1, place + 1) if 0 <= k < len(values)]
            if y is not None and None in near:
                axes.plot(x, y, "x", color=colour, ms=8, mew=2)


def write_baselines(figures: Path, tables: Path, progress: Progress) -> list[Path]:
    """The figure as SVG and PNG, the table in three formats: the files."""
    made = compared_chains(progress)
    files = [figures / f"baselines{end}" for end in (".svg", ".png")]
    for path in files:
        write_figure(made.figure, path)
    return files + write_plain_tables([made.table], tables)


@dataclass(frozen=True)
class BaselineComparison:
    """The comparison: a table of chains, and a figure of binary ones."""

    table: PlainTable
    figure: "Figure"


def compared_chains(progress: Progress = lambda *_: None) -> BaselineComparison:
    """Every bound on every chain."""
    listed = [binary(p, p) for p in STAYS] + [binary(p, OTHER) for p in OTHERS]
    chains = [*listed, *published_chains()]
    found = []
    for place, chain in enumerate(chains):
        progress("baselines", place, len(chains))
        found.append(compared_allowances(chain))
    progress("baselines", len(chains), len(chains))
    equal, unequal = found[: len(STAYS)], found[len(STAYS) : len(listed)]
    few = [one for p, one in zip(STAYS, equal, strict=True) if p in TABLED]
    few += [one for p, one in zip(OTHERS, unequal, strict=True) if p in TABLED_OTHERS]
    return BaselineComparison(
        baseline_table([*few, *found[len(listed) :]]),
        baseline_figure(
            list(zip(STAYS, equal, strict=True)), list(zip(OTHERS, unequal, strict=True))
        ),
    )


TABLED = (0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9)
TABLED_OTHERS = (0.1, 0.3, 0.8)


def main() -> None:
    """Compare, and write the table and the figure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/composition"))
    out: Path = parser.parse_args().out
    for path in write_baselines(out, out, lambda *_: None):
        print(path)


if __name__ == "__main__":
    main()
