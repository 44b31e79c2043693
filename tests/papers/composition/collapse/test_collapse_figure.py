"""The figure of a collapse shows the exact law and the posterior."""

import numpy as np
import pytest

from takifugu.papers.composition.collapse import example, simulate, trace_attack
from takifugu.papers.composition.collapse.collapse_figure import collapse_figure, shown_runs


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_bars_are_the_exact_law_and_the_line_the_posterior(number: int) -> None:
    built, rng = example(number, 4), np.random.default_rng(0)
    trace = trace_attack(built, 5, rng=rng)
    simulated = simulate(built, 500, rng=rng)
    law = built.waiting()
    left, right = collapse_figure("title", trace, law, simulated).axes
    heights = [patch.get_height() for patch in right.patches]  # type: ignore[attr-defined]
    assert heights == [float(law.probability(k)) for k in range(1, shown_runs(law) + 1)]
    line = np.asarray(left.lines[0].get_ydata(), dtype=float)
    place = trace.truth.index(True) if trace.exclusive else 0
    probabilities = [step.posterior[place] for step in trace.steps]
    assert line.tolist() == [float(p if trace.truth[place] else 1 - p) for p in probabilities]
