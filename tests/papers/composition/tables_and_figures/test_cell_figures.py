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
from tests.papers.composition import synthetic_cells

CELLS = synthetic_cells.cells()


def title(figure: Figure) -> str:
    return str(figure.get_suptitle())


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
