"""The figure of influence curves: what is printed differs from what is right where we say so."""

import json
from pathlib import Path

import numpy as np
import pytest

from takifugu.influence.curve import InfluenceCurve
from takifugu.papers.composition.tables_and_figures import curve_figures as figures


def test_printed_binary_curves_are_never_below_and_sometimes_above() -> None:
    printed, right = figures.binary_curves()
    above = []
    for name, curve in printed.items():
        shown = slice(0, figures.CHAIN_MOST)
        assert (curve.pooled()[shown] >= right[name].pooled()[shown] - 1e-9).all()
        above.append((curve.pooled()[shown] > right[name].pooled()[shown] + 1e-6).any())
    assert any(above) and not all(above)


def test_figures_are_drawn_with_infinite_points_marked() -> None:
    printed, right = figures.binary_curves()
    names = "printed", "exact"
    panel = figures.Panel("a", "chains", printed, right, names, figures.CHAIN_MOST, 1e-3)
    drawn = figures.figure(panel)
    left, beside = drawn.axes
    assert [axes.get_title() for axes in drawn.axes] == ["printed", "exact"]
    assert (left.get_xlim(), left.get_ylim()) == (beside.get_xlim(), beside.get_ylim())
    for axes in drawn.axes:
        curves = [line for line in axes.lines if np.size(line.get_xdata()) > 1]
        assert len(curves) == len(figures.BINARY)
        styles = {(str(line.get_color()), str(line.get_marker())) for line in curves}
        assert len(styles) == len(curves)  # each in its own colour, with its own marks
        assert min(float(np.min(line.get_ydata())) for line in curves) >= 1e-3
        assert axes.get_xlabel() and (axes.get_ylabel() or axes is beside)
    assert figures.numbers(printed)["p = 0.1, q = 0.3"][1][1] == pytest.approx(2.77259, abs=1e-5)
    assert figures.numbers(right)["p = 0.1, q = 0.3"][1][1] == pytest.approx(2.63906, abs=1e-5)


def test_arrows_at_one_place_stand_beside_each_other() -> None:
    """Two infinite points at b = 1, and two curves that end at 0: four arrows at four places."""
    exposed = np.arange(1, 4)
    curves = {
        name: InfluenceCurve(exposed, np.array([[np.inf, leak, 0.0]]), 3)
        for name, leak in (("one", 2.0), ("two", 2.5))
    }
    panel = figures.Panel("x", "both", curves, curves, ("left", "right"), 3, 1e-3)
    drawn = figures.figure(panel)
    drawn.draw_without_rendering()
    for axes in drawn.axes:
        arrows = [line for line in axes.lines if line.get_marker() in ("^", "v")]
        arrows = [line for line in arrows if np.size(line.get_xdata()) == 1]
        places = {
            (round(x), round(y))
            for line in arrows
            for x, y in line.get_transform().transform(np.column_stack(line.get_data()))
        }
        assert [line.get_marker() for line in arrows].count("^") == 2
        assert len(arrows) == len(places) == 4
        low, high = axes.get_xlim()
        assert low < 1 and high > 3
    said = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert len(said) == 2 + 2  # and what each of the two kinds of arrows means


def test_alarm_has_an_infinite_first_point() -> None:
    path = figures.alarm_file()
    if path is None:
        pytest.skip("ALARM comes with the package pgmpy, which is not installed")
    from takifugu.influence.network.network_curves import network_curve
    from takifugu.priors import Secrets
    from takifugu.priors.bif import read_bif

    alarm = read_bif(path)
    zeros = {e: int((t == 0).sum()) for e, t in zip(alarm.entries, alarm.tables, strict=True)}
    assert {entry: count for entry, count in zeros.items() if count} == {"PVSAT": 5}
    curve = network_curve(alarm, Secrets(entries=("PVSAT", "FIO2", "VENTALV")), largest=2)
    assert np.isinf(curve.pooled()[0])


@pytest.mark.nightly
def test_panels_are_drawn_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "BINARY", ((0.1, 0.3),))
    monkeypatch.setattr(figures, "LENGTHS", (0.5,))
    monkeypatch.setattr(figures, "ENTRIES", 5)
    monkeypatch.setattr(figures, "alarm_file", lambda: None)  # (c) is left out without its file
    steps: list[tuple[str, int, int]] = []

    def progress(*step: object) -> None:
        steps.append(step)  # type: ignore[arg-type]

    out, work = tmp_path / "figures", tmp_path / "work"
    files = figures.write_panels(out, work, progress)
    names = [path.name for path in files]
    assert names == [
        "curves-a.svg", "curves-a.png", "curves-b.svg", "curves-b.png", "curves.json",
    ]  # fmt: skip
    assert steps == [("influence curves", place, 2) for place in range(3)]
    numbers = json.loads((out / "curves.json").read_text())
    assert numbers["a"]["printed"]["p = 0.1, q = 0.3"][1] == [2, pytest.approx(2.77259, abs=1e-5)]
    assert [one.caption[:3] for one in figures.kept_drawings(work, files)] == ["(a)", "(b)"]
    before = {path: path.stat().st_mtime_ns for path in files}
    assert figures.write_panels(out, work, progress) == files
    assert len(steps) == 3 and {path: path.stat().st_mtime_ns for path in files} == before
    (out / "curves-a.png").unlink()
    figures.write_panels(out, work, progress)
    assert len(steps) == 6 and (out / "curves-a.png").exists()
