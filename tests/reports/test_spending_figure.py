"""The budget over time: steps are what was spent, and the line is what was allowed."""

from datetime import UTC, datetime, timedelta

import numpy as np

from takifugu.reports.spending_figure import MAX_NUMBERS, BudgetEvent, spending_figure

DAY = datetime(2026, 3, 1, tzinfo=UTC)


def event(seq: int, spent: float, budget: float | None, *, released: bool) -> BudgetEvent:
    return BudgetEvent(seq, DAY + timedelta(days=seq), spent, budget, released)


EVENTS = [
    event(3, 0.0, 1.0, released=False),
    event(5, 0.4, 1.0, released=True),
    event(7, 0.7, 1.0, released=True),
    event(9, 0.7, 2.0, released=False),
]


def test_spent_rises_with_releases_and_the_budget_with_decisions() -> None:
    (axes,) = spending_figure(EVENTS).axes
    spent, points, limit = axes.lines
    assert np.asarray(spent.get_ydata()).tolist() == [0.0, 0.0, 0.4, 0.7, 0.7, 0.7]
    assert np.asarray(points.get_ydata()).tolist() == [0.4, 0.7]
    assert np.asarray(limit.get_ydata()).tolist() == [1.0, 1.0, 1.0, 2.0, 2.0]
    assert {"0.4", "0.7", "1", "2"} == {text.get_text() for text in axes.texts}
    names = [tick.get_text() for tick in axes.get_xticklabels()]
    assert names[0] == "event 3\n2026-03-04" and len(names) == 4


def test_losses_are_written_rounded_up() -> None:
    (axes,) = spending_figure([event(2, 0.123401, None, released=True)]).axes
    assert [text.get_text() for text in axes.texts] == ["0.1235"]
    assert len(axes.lines) == 2  # no budget, no line


def test_many_releases_are_thinned_out() -> None:
    many = [event(k, k / 100, 5.0, released=True) for k in range(1, 4 * MAX_NUMBERS)]
    (axes,) = spending_figure(many).axes
    assert [text.get_text() for text in axes.texts] == ["5"]
    assert len(axes.get_xticklabels()) <= 10


def test_an_infinite_loss_is_drawn_far_up() -> None:
    (axes,) = spending_figure([event(2, float("inf"), 1.0, released=True)]).axes
    assert np.isfinite(np.asarray(axes.lines[0].get_ydata())).all()
    assert "infinity" in {text.get_text() for text in axes.texts}
