"""The figure of a goodness of fit shows what it was given, whatever labels are called."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="figures need matplotlib")

from takifugu.reports.goodness_figure import goodness_figure
from takifugu.reports.plot_files import save

LAGS = {
    "title": "Autocorrelation", "axis": "correlation", "names": ["0", "1", "2"],
    "values": [1.0, 0.5, 0.3], "errors": [0.0, 0.01, 0.02], "fitted": [1.0, 0.5, 0.25],
}  # fmt: skip
BARS = {
    "title": "Bars", "axis": "nats", "names": ["$\\frac{1$", "a" * 80], "values": [0.2, 0.1],
    "errors": [], "fitted": [],
}  # fmt: skip


def document(*panels: Any) -> dict[str, Any]:
    tests = [{"verdict": "fits", "sentence": "", "panel": panel} for panel in panels]
    return {"fits": True, "tests": tests}


@pytest.mark.nightly
def test_points_lines_and_bars_are_the_numbers(tmp_path: Path) -> None:
    figure = goodness_figure(document(LAGS, None, BARS), title="kwh")
    points, bars = figure.axes
    lines = [list(line.get_ydata()) for line in points.lines]  # type: ignore[arg-type]
    assert LAGS["values"] in lines and LAGS["fitted"] in lines
    assert [bar.get_height() for bar in bars.patches] == BARS["values"]  # type: ignore[attr-defined]
    assert points.get_xlabel() == "lag, in rows" and bars.get_xlabel() == ""
    assert max(len(label.get_text()) for label in bars.get_xticklabels()) <= 24
    for name in ("fit.png", "fit.svg", "fit.pdf"):
        save(figure, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000


def test_many_lags_are_named_now_and_then_and_nothing_is_said_to_be_nothing() -> None:
    many = LAGS | {name: [0.0] * 200 for name in ("values", "errors", "fitted")}
    many["names"] = [str(k) for k in range(200)]
    (axes,) = goodness_figure(document(many)).axes
    assert len(axes.get_xticks()) <= 30
    (empty,) = goodness_figure(document(None)).axes
    assert empty.texts[0].get_text() == "nothing was tested"
