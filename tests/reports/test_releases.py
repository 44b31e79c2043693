"""Released answers: the figure and the table hold what was released."""

import numpy as np
import pytest

from takifugu.reports.release_figures import estimates_figure, ranking_table

LABELS = ["Office", "Bar", "Park"]
ESTIMATES, LOWS, HIGHS = [0.5, 0.2, -0.1], [0.4, 0.15, -0.2], [0.7, 0.25, 0.0]


def test_points_and_bars_are_the_values() -> None:
    figure = estimates_figure(
        LABELS, ESTIMATES, LOWS, HIGHS, axis="share", exact=[0.6, 0.2, 0.0], title="Shares"
    )
    (axes,) = figure.axes
    points = axes.lines[0]
    assert np.asarray(points.get_xdata()).tolist() == ESTIMATES
    assert np.asarray(points.get_ydata()).tolist() == [0, 1, 2]
    bars = axes.collections[0].get_segments()  # type: ignore[attr-defined]
    ends = [(segment[0][0], segment[1][0]) for segment in bars]
    assert np.asarray(ends) == pytest.approx(np.array([LOWS, HIGHS]).T)
    assert np.asarray(axes.lines[-1].get_xdata()).tolist() == [0.6, 0.2, 0.0]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == LABELS
    assert axes.get_xlabel() == "share" and axes.get_title() == "Shares"
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first on top


def test_exact_values_stand_there_only_if_they_are_given() -> None:
    (axes,) = estimates_figure(LABELS, ESTIMATES, LOWS, HIGHS, axis="share").axes
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["released, with its 95 % interval"]


def test_a_ranking_has_a_row_for_each_group() -> None:
    rows = [("A", 1, "Bar"), ("A", 2, "Park"), ("B", 1, "Park"), ("B", 2, "Office")]
    table = ranking_table(("country", "rank", "label"), rows, caption="Top 2")
    assert table.columns == ["country", "place 1", "place 2"]
    assert table.rows == [["A", "Bar", "Park"], ["B", "Park", "Office"]]
    assert table.caption == "Top 2"
    sure = [(*row, 3, 1, 5, 0.97) for row in rows]
    columns = ("country", "rank", "label", "estimate", "low", "high", "probability")
    assert ranking_table(columns, sure).rows[0] == ["A", "Bar (0.97)", "Park (0.97)"]
    named = ("rank", "rank (answer)", "estimate", "probability")
    assert ranking_table(named, [("x", 1, "Bar", None)]).rows == [["x", "Bar"]]


def test_a_ranking_of_everything_has_one_row() -> None:
    table = ranking_table(("rank", "label"), [(1, "Bar"), (2, "Park")])
    assert (table.columns, table.rows) == (["place 1", "place 2"], [["Bar", "Park"]])
    assert ranking_table(("rank", "label"), []).rows == []
