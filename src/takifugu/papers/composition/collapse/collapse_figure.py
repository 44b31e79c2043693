"""The figure of a collapse: the posterior run by run, and how many runs the attack takes."""

from fractions import Fraction
from typing import TYPE_CHECKING

from takifugu.papers.composition.collapse.repeated_runs import AttackTrace, SimulatedAttacks
from takifugu.papers.composition.collapse.waiting_time import WaitingTime

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXACT, SIMULATED, ALARM = "#4c72b0", "#dd8452", "#c44e52"


def collapse_figure(
    title: str, trace: AttackTrace, waiting: WaitingTime, simulated: SimulatedAttacks
) -> "Figure":
    """One attack run by run, and how many runs it takes: exact beside simulated."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    figure.suptitle(title, fontsize=12)
    left, right = figure.subplots(1, 2)
    _draw_posterior(left, trace)
    _draw_law(right, waiting, simulated)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_posterior(axes: "Axes", trace: AttackTrace) -> None:
    """For every statement the probability of its true value, given the outputs so far."""
    from matplotlib.ticker import MaxNLocator

    runs = [step.run for step in trace.steps]
    for i, (statement, true) in enumerate(zip(trace.statements, trace.truth, strict=True)):
        if trace.exclusive and not true:
            continue  # of exclusive secrets the true one says it all
        ends = [[float(end if true else 1 - end) for end in s.bounds[i]] for s in trace.steps]
        probability = [float(s.posterior[i] if true else 1 - s.posterior[i]) for s in trace.steps]
        label = f"P({statement})" if trace.exclusive else None
        axes.step(runs, probability, "o-", where="post", color=EXACT, lw=2, label=label, zorder=3)
        if any(low != high for low, high in ends):
            low, high = [min(pair) for pair in ends], [max(pair) for pair in ends]
            axes.fill_between(
                runs, low, high, step="post", color=EXACT, alpha=0.18, label="over all priors"
            )
    if not trace.exclusive:
        label = f"each of {len(trace.statements)} secret bits"
        axes.plot([], [], "o-", color=EXACT, lw=2, label=label)
    if trace.revealed_at is not None:
        axes.axvline(
            trace.revealed_at,
            color=ALARM,
            ls="--",
            lw=1.3,
            label=f"revealed at run {trace.revealed_at}",
        )
    axes.set(
        title="The adversary's posterior",
        xlabel="runs seen (0: before the first)",
        ylabel="probability of the true value",
        ylim=(-0.03, 1.05),
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y", alpha=0.25)
    axes.legend(loc="lower right", frameon=False)


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
    axes.axvline(float(mean), color=EXACT, ls=":", lw=1.5)
    axes.set(
        title="When the secret is revealed",
        xlabel="run at which it is revealed",
        ylabel="probability",
    )
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=20, integer=True))
    axes.grid(axis="y", alpha=0.25)
    axes.legend(loc="upper right", frameon=False)


def shown_runs(waiting: WaitingTime) -> int:
    """The last run worth showing: all but a thousandth is over by then, and at most 40."""
    return int(min(waiting.quantile(Fraction(999, 1000)), 40))
