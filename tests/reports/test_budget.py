"""Figures of budgets: lines are the values, and the budget is where it is."""

import numpy as np

from takifugu.reports.budget_figures import allowance_figure, odometer_figure


def test_every_translation_is_a_line_and_the_budget_another() -> None:
    epsilon = np.array([0.1, 0.2, 0.3])
    losses = {"transport": 2 * epsilon, "curve": 5 * epsilon, "group": 100 * epsilon}
    (axes,) = allowance_figure(epsilon, losses, budget=0.8, title="Losses").axes
    for line, (name, values) in zip(axes.lines, losses.items(), strict=False):
        assert line.get_label() == name
        assert np.asarray(line.get_xdata()).tolist() == epsilon.tolist()
        assert np.asarray(line.get_ydata()).tolist() == values.tolist()
    assert set(np.asarray(axes.lines[3].get_ydata()).tolist()) == {0.8}
    legend = axes.get_legend()
    assert legend is not None and legend.get_texts()[3].get_text() == "budget, ε = 0.8"
    assert axes.get_title() == "Losses"


def test_the_odometer_rises_with_answers_and_rests_with_refusals() -> None:
    (axes,) = odometer_figure(["a", "b"], [0.4, 0.7], ["c"], budget=1.0, title="Spent").axes
    steps, points, cross, limit = axes.lines
    assert np.asarray(steps.get_ydata()).tolist() == [0.0, 0.4, 0.7, 0.7]
    assert np.asarray(points.get_ydata()).tolist() == [0.0, 0.4, 0.7]
    assert np.asarray(cross.get_xdata()).tolist() == [3]
    assert set(np.asarray(limit.get_ydata()).tolist()) == {1.0}
    assert [t.get_text() for t in axes.get_xticklabels()] == ["the beginning", "a", "b", "c"]
    assert {"0.4", "0.7", "refused", "budget, ε = 1"} == {t.get_text() for t in axes.texts}
    assert axes.get_ylim()[1] > 1.0


def test_nothing_refused_nothing_crossed_out() -> None:
    (axes,) = odometer_figure(["a"], [0.4], [], budget=1.0).axes
    assert len(axes.lines) == 3
    assert "refused" not in {text.get_text() for text in axes.texts}
