"""The figures show every mechanism, say when data is simulated, and come out the same twice."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib.figure import Figure

from takifugu.papers.composition.experiments.measurements import Estimate, Origin
from takifugu.papers.composition.tables_and_figures import cell_figures as drawings
from takifugu.papers.composition.tables_and_figures.figure_writing import figure_bytes, write_figure
from takifugu.papers.composition.tables_and_figures.print_agreement import STYLES
from tests.papers.composition import synthetic_cells

CELLS = synthetic_cells.cells()


def title(figure: Figure) -> str:
    return str(figure.get_suptitle())


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_accuracy_figure_has_a_panel_for_each_place() -> None:
    figure = drawings.accuracy_figure(synthetic_cells.about(), CELLS)
    assert [axes.get_title()[:5] for axes in figure.axes] == ["Acc@1", "Acc@2", "Acc@3"]
    assert legend(figure)[: len(STYLES)] == list(STYLES)
    assert legend(figure)[len(STYLES)].startswith("Majority")
    assert all(len(axes.collections) == len(STYLES) for axes in figure.axes)  # a band each


def test_a_band_reaches_from_the_plain_to_the_uncertain_mean() -> None:
    figure = drawings.accuracy_figure(synthetic_cells.about(), CELLS)
    (path,) = figure.axes[0].collections[1].get_paths()
    corners = {(round(float(x), 6), round(float(y), 6)) for x, y in np.asarray(path.vertices)}
    for cell in CELLS:
        if cell.mechanism == "Ours-Exp":
            mean = round(100 * cell.measured["acc@1"].mean, 6)
            assert (cell.epsilon, mean) in corners


@pytest.mark.parametrize("origin", ["paper", "real", "simulated"])
def test_simulated_data_is_named_in_every_title(origin: Origin) -> None:
    about = synthetic_cells.about(origin=origin)
    plain = drawings.measured_points(CELLS, uncertain=False)
    drawn = [
        drawings.accuracy_figure(about, CELLS),
        drawings.noise_figure(about, CELLS),
        drawings.shift_figure(about, plain, plain),
    ]
    for figure in drawn:
        assert ("simulated data" in title(figure)) == (origin == "simulated")
        assert about.title in title(figure)


def test_noise_that_is_infinite_is_marked_at_the_top_and_explained() -> None:
    figure = drawings.noise_figure(synthetic_cells.about(), CELLS)
    own = [c for c in CELLS if c.mechanism != "Majority"]
    lines = [line for line in figure.axes[0].lines if line.get_linestyle() != "None"]
    marks = [line for line in figure.axes[0].lines if line.get_linestyle() == "None"]
    finite = sum(np.size(line.get_xdata()) for line in lines)
    infinite = sum(np.size(line.get_xdata()) for line in marks)
    assert finite == sum(np.isfinite(c.noise) for c in own) < 60
    assert infinite == sum(np.isinf(c.noise) for c in own) > 0
    known = tuple(c for c in CELLS if np.isfinite(c.noise))
    without = drawings.noise_figure(synthetic_cells.about(), known)
    assert len(legend(figure)) == len(legend(without)) + 1


def test_noise_that_uncertainty_does_not_change_is_one_line() -> None:
    same = tuple(replace(c, noise=5.0) if c.mechanism == "Group DP" else c for c in CELLS)
    drawn = [
        [line for line in drawings.noise_figure(synthetic_cells.about(), cells).axes[0].lines
         if line.get_color() == STYLES["Group DP"].color and line.get_linestyle() != "None"]
        for cells in (CELLS, same)
    ]  # fmt: skip
    assert [len(lines) for lines in drawn] == [2, 1]


@pytest.mark.parametrize("rows", [1234, synthetic_cells.PAPER_ROWS])
def test_printed_numbers_are_drawn_where_they_belong(rows: int) -> None:
    about = synthetic_cells.about(rows=rows, calibrated=synthetic_cells.CALIBRATED)
    figure = drawings.accuracy_figure(about, CELLS)
    found = [
        [(line.get_markeredgewidth() > 2, float(np.asarray(line.get_ydata())[0]))
         for line in axes.lines if line.get_marker() == "+" and np.size(line.get_xdata())]
        for axes in figure.axes
    ]  # fmt: skip
    belong = rows == synthetic_cells.PAPER_ROWS
    assert [len(marks) for marks in found] == [12 * belong] * 3  # two mechanisms at six ε
    if belong:
        assert [sum(bold for bold, _ in marks) for marks in found] == [6, 6, 6]
        assert {(bold, round(value, 6)) for bold, value in found[0]} >= {
            (True, 79.0),
            (False, 36.3),
        }


def test_no_mechanism_hides_another_that_measured_the_same() -> None:
    """With one value for all, every mark is at a place of its own, in all three panels."""
    same = tuple(
        replace(c, measured=dict.fromkeys(c.measured, Estimate(0.5, 0.0)), noise=7.0)
        for c in CELLS
        if c.mechanism != "Majority"
    )
    figures = (
        drawings.accuracy_figure(synthetic_cells.about(), same),
        drawings.noise_figure(synthetic_cells.about(), same),
    )
    for figure in figures:
        figure.draw_without_rendering()
        for axes in figure.axes:
            lines = [line for line in axes.lines if np.size(line.get_xdata()) and
                     line.get_marker() != "None"]  # fmt: skip
            firsts = {
                round(float(line.get_transform().transform(np.column_stack(line.get_data()))[0, 0]))
                for line in lines
            }
            assert len(firsts) == len(lines) == len(STYLES)
            assert len({str(line.get_marker()) for line in lines}) == len(STYLES)
            assert all(line.get_xdata()[0] == 0.5 for line in lines)  # type: ignore[index]


@pytest.mark.nightly
def test_panels_that_are_compared_have_the_same_axes_and_every_axis_has_a_name() -> None:
    about, plain = synthetic_cells.about(), drawings.measured_points(CELLS, uncertain=False)
    uncertain = drawings.measured_points(CELLS, uncertain=True)
    for figure in (
        drawings.accuracy_figure(about, CELLS),
        drawings.shift_figure(about, plain, uncertain),
        drawings.overview_figure(synthetic_cells.results("one", "two")),
    ):
        shown = [axes for axes in figure.axes if axes.get_visible()]
        assert len({(axes.get_xlim(), axes.get_ylim()) for axes in shown}) == 1
        assert all("ε" in axes.get_xlabel() for axes in shown) and shown[0].get_ylabel()


def test_lines_that_cannot_be_told_apart_are_named() -> None:
    group = {(c.uncertain, c.epsilon): c for c in CELLS if c.mechanism == "Group DP"}
    near = tuple(
        replace(
            c,
            measured={
                k: v._replace(mean=v.mean + 0.009)
                for k, v in group[c.uncertain, c.epsilon].measured.items()
            },
        )
        if c.mechanism == "MQM, split budget"
        else c
        for c in CELLS
    )
    assert drawings.coinciding(CELLS) == ()
    assert drawings.coinciding(near) == (("MQM, split budget", "Group DP"),)


def test_series_that_lie_on_each_other_from_some_epsilon_on_are_named_in_the_overview() -> None:
    full = {"takifugu": 2.0, "Ours-Exp": 4.0, "MQM, vector Laplace": 2.0}
    near = tuple(
        replace(c, measured={**c.measured, "acc@1": Estimate(0.995, 0.0)})
        if c.epsilon >= full.get(c.mechanism, 9.0)
        else c
        for c in CELLS
    )
    pair, three = (
        ("takifugu", "MQM, vector Laplace"),
        ("takifugu", "Ours-Exp", "MQM, vector Laplace"),
    )
    assert {pair: 2.0, three: 4.0}.items() <= dict(drawings.coinciding_from(near)).items()
    assert pair not in dict(drawings.coinciding_from(CELLS))
    made = synthetic_cells.results("world")
    figure = drawings.overview_figure(replace(made, cells=near))
    said = figure.axes[0].get_xlabel()
    assert "ε = 2 on" in said and "ε = 4 on" in said and "MQM, vector Laplace" in said
    assert "side by side" in title(figure)


def test_every_mark_of_the_shift_is_in_its_legend() -> None:
    plain, uncertain = (drawings.printed_points(uncertain=flag) for flag in (False, True))
    figure = drawings.shift_figure(None, plain, uncertain)
    drawn = {(line.get_marker(), line.get_color(), line.get_markerfacecolor())
             for line in figure.axes[0].lines}  # fmt: skip
    shown = {(handle.get_marker(), handle.get_color(), handle.get_markerfacecolor())  # type: ignore[union-attr]
             for handle in figure.legends[0].legend_handles}  # fmt: skip
    assert drawn == shown and len(legend(figure)) == 4


def test_shifted_points_lie_where_the_uncertain_ones_are_said_to_be() -> None:
    plain, uncertain = (drawings.printed_points(uncertain=flag) for flag in (False, True))
    assert list(plain) == ["Ours-Exp", "MQM, split budget"] and plain["Ours-Exp"][0.5] == 79.0
    figure = drawings.shift_figure(None, plain, uncertain)
    assert "printed" in title(figure)
    right = figure.axes[1].lines[1]
    assert np.allclose(right.get_xdata(), np.array([0.5, 1, 2, 3, 4, 5]) - np.log(1.5))


def test_the_printed_columns_are_each_other_shifted() -> None:
    """Within 1.5 points, linearly between the printed ε from 1 on; unshifted they are 6.7 apart."""

    def apart(by: float) -> float:
        return max(
            abs(np.interp(e - by, sorted(points), [points[x] for x in sorted(points)]) - value)
            for name, points in drawings.printed_points(uncertain=False).items()
            for e, value in drawings.printed_points(uncertain=True)[name].items()
            if e >= 1
        )

    assert apart(drawings.SHIFT) < 1.5 < 6 < apart(0.0)


@pytest.mark.nightly
def test_a_figure_is_the_same_file_twice(tmp_path: Path) -> None:
    first, second = (
        figure_bytes(drawings.noise_figure(synthetic_cells.about(), CELLS), "svg") for _ in range(2)
    )
    assert first == second and ET.fromstring(first).tag.endswith("svg")  # noqa: S314 - our own
    assert len(first) < 60_000 and b"Pufferfish" in first
    write_figure(
        drawings.noise_figure(synthetic_cells.about(), CELLS), tmp_path / "new" / "noise.png"
    )
    assert (tmp_path / "new" / "noise.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["noise.png"]
