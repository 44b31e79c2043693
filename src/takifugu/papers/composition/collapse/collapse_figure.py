"""The figure of a collapse: the posterior run by run, and how many runs the attack takes."""

from fractions import Fraction
from typing import TYPE_CHECKING

from takifugu.papers.composition.collapse.repeated_runs import (
    AttackTrace,
    SimulatedAttacks,
    WaitingTime,
)
from takifugu.papers.composition.tables_and_figures.figure_writing import new_figure, open_axes
from takifugu.reports.html_style import BLUE, ORANGE, RED
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXACT, SIMULATED, ALARM = BLUE, ORANGE, RED
MARKERS = ("o", "s", "D", "v", "^", "P", "X", "*")


def collapse_figure(
    title: str, trace: AttackTrace, waiting: WaitingTime, simulated: SimulatedAttacks
) -> "Figure":
    """One attack run by run, and how many runs it takes: exact beside simulated."""
    figure = new_figure(10.5, 5.0, title)
    left, right = figure.subplots(1, 2)
    _draw_posterior(left, trace)
    _draw_law(right, waiting, simulated)
    return figure


def _draw_posterior(axes: "Axes", trace: AttackTrace) -> None:
    """For every statement the probability of its true value, given the outputs so far."""
    from matplotlib.ticker import MaxNLocator

    runs = [step.run for step in trace.steps]
    drawn: dict[tuple[float, ...], int] = {}  # a line that was drawn, and how many it stands for
    for i, (statement, true) in enumerate(zip(trace.statements, trace.truth, strict=True)):
        if trace.exclusive and not true:
            continue  # of exclusive secrets the true one says it all
        ends = [[float(end if true else 1 - end) for end in s.bounds[i]] for s in trace.steps]
        line = tuple(float(s.posterior[i] if true else 1 - s.posterior[i]) for s in trace.steps)
        drawn[line] = drawn.get(line, 0) + 1
        if drawn[line] == 1:
            axes.step(
                runs, line, where="post", color=EXACT, lw=2, zorder=3,
                marker=MARKERS[(len(drawn) - 1) % len(MARKERS)],
                label=f"P({statement})" if trace.exclusive else None,
            )  # fmt: skip
        if any(low != high for low, high in ends):
            low, high = [min(pair) for pair in ends], [max(pair) for pair in ends]
            axes.fill_between(
                runs, low, high, step="post", color=EXACT, alpha=0.18, label="over all priors"
            )
    if not trace.exclusive:
        for shown, together in zip(axes.lines, drawn.values(), strict=True):
            every = "each" if together == len(trace.statements) else f"{together}"
            bits = f"{every} of {len(trace.statements)} secret bits"
            shown.set_label(bits + ("; they coincide" if together > 1 else ""))
    if trace.revealed_at is not None:
        axes.axvline(
            trace.revealed_at,
            color=ALARM,
            ls="--",
            lw=1.3,
            label=f"revealed at run {trace.revealed_at}: the loss is infinite",
        )
    axes.set(
        title="The adversary's posterior",
        xlabel="runs seen (0: before the first)",
        ylabel="probability of the true value",
        ylim=(-0.03, 1.05),
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    open_axes(axes)
    _legend_below(axes)


def _draw_law(axes: "Axes", waiting: WaitingTime, simulated: SimulatedAttacks) -> None:
    """The probability that the secret is revealed at each run; bars are two standard errors."""
    from matplotlib.ticker import MaxNLocator

    runs = range(1, shown_runs(waiting) + 1)
    shares = [simulated.share(run) for run in runs]
    spread = [2 * simulated.share_error(run) for run in runs]
    mean = waiting.expectation
    axes.bar(
        runs,
        [float(waiting.probability(run)) for run in runs],
        color=EXACT,
        alpha=0.55,
        width=0.7,
        label=f"exact (mean {float(mean):.4g})",
    )
    axes.errorbar(
        runs,
        shares,
        yerr=spread,
        fmt="o",
        ms=5,
        capsize=3,
        color=SIMULATED,
        clip_on=False,
        label=f"{len(simulated.runs):,} simulated (mean {simulated.mean:.4g}), ±2 s.e.",
    )
    axes.axvline(float(mean), color=EXACT, ls=":", lw=1.5, label="exact mean")
    axes.set(
        title="When the secret is revealed",
        xlabel=f"run at which it is revealed (after run {runs[-1]}: {_rest(waiting, runs[-1])})",
        ylabel="probability",
    )
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=20, integer=True))
    open_axes(axes)
    _legend_below(axes)


def _legend_below(axes: "Axes") -> None:
    """What is drawn, below the panel, where it hides nothing."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False, fontsize=9)


def _rest(waiting: WaitingTime, last: int) -> str:
    """The probability that it takes longer than is shown."""
    rest = 1 - sum(waiting.probability(run) for run in range(1, last + 1))
    return four_digits(float(rest))


def shown_runs(waiting: WaitingTime) -> int:
    """The last run worth showing: all but a thousandth is over by then, and at most 40."""
    return int(min(waiting.quantile(Fraction(999, 1000)), 40))
