"""The figure of influence curves: what is printed differs from what is right where we say so."""

import json
from pathlib import Path

import numpy as np
import pytest

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
    panel = figures.Panel("a", "chains", printed, right, "exact", figures.CHAIN_MOST)
    drawn = figures.figure(panel)
    assert len(drawn.axes) == 2
    assert len(drawn.axes[0].lines) == len(figures.BINARY)
    assert figures.numbers(printed)["p = 0.1, q = 0.3"][1][1] == pytest.approx(2.77259, abs=1e-5)
    assert figures.numbers(right)["p = 0.1, q = 0.3"][1][1] == pytest.approx(2.63906, abs=1e-5)


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
