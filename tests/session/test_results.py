"""Results in a terminal and in figures."""

import json
import sys
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.declarations import DriverMissing
from takifugu.errors import InvalidFile
from takifugu.reports.result_figure import MAX_BARS, MAX_PANELS, result_figure
from takifugu.session import ReleaseCost, Result
from takifugu.session.query.query import own_columns
from takifugu.session.result_files import INTERVAL
from tests.raising import raises
from tests.session.world import PLAIN, WEIGHT, opened

COST = ReleaseCost(
    currency="epsilon",
    per_entry=Fraction(1, 10),
    delta=Fraction(0),
    alone=0.25,
    before=0.0,
    after=0.25,
    budget=Fraction(1),
    budget_delta=Fraction(0),
    fits=True,
    most=Decimal("0.5"),
)


def result(columns: tuple[str, ...], rows: list[tuple[Any, ...]], **query: Any) -> Result:
    asked = {"name": "histogram", "column": "state", "by": [], **query}
    return Result(
        query={"dataset": "visits", "query": asked},
        columns=columns,
        rows=tuple(rows),
        error={},
        cost=COST,
        free=False,
        at=datetime(2020, 1, 1, tzinfo=UTC),
        mechanism={},
        guarantee="",
    )


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_a_missing_package_names_the_extra_that_installs_it(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    released = result(("state", "estimate"), [("home", 3)])
    method = "to_arrow" if package == "pyarrow" else f"to_{package}"
    with raises(DriverMissing, package=package, extra="tables", __cause__=None):
        getattr(released, method)()


def test_a_long_table_says_how_much_is_left_out() -> None:
    rows = [("a label that goes on and on, for longer than any screen is wide", i, None, 1.5)
            for i in range(1000)]  # fmt: skip
    lines = str(result(("state", "estimate", "low", "high"), rows)).splitlines()
    assert len(lines) == 64 and lines[-3] == (
        "… 940 more of 1,000 rows; to_json, or to_pandas, has them all"
    )
    assert lines[-2].startswith("cost epsilon = 0.25 alone")
    assert lines[-1].startswith("for one entry: someone who thought 50 : 50 can come to at most")
    assert max(map(len, lines[:-1])) <= 80 and "…" in lines[1]
    assert len({line.index(" -  ") for line in lines[1:61]}) == 1  # columns stay columns


def test_labels_stand_left_and_numbers_right() -> None:
    rows = [("home", 5, 1.25, 9.0), ("the ward", -12, -3.5, 4.0)]
    lines = str(result(("state", "estimate", "low", "high"), rows)).splitlines()
    assert lines[0] == "state     estimate   low  high"
    assert lines[1] == "home             5  1.25     9"
    assert lines[2] == "the ward       -12  -3.5     4"


def test_numbers_for_people_have_four_digits_and_counts_have_all() -> None:
    rows = [(123_456, 0.123456, 12_345.678), (1, -0.00123456, 999.96)]
    lines = str(result(("estimate", "low", "high"), rows)).splitlines()
    assert lines[1].split() == ["123456", "0.1235", "12346"]
    assert lines[2].split() == ["1", "-0.001235", "1000"]


def test_a_notebook_shows_a_table_and_escapes_its_labels(tmp_path: Path) -> None:
    html = result(("a<b", "estimate"), [("<i>ward</i>", 5)])._repr_html_()
    assert ">a&lt;b</th>" in html and "<td>&lt;i&gt;ward&lt;/i&gt;</td><td>5</td>" in html
    assert "<i>" not in html and html.count("<tr>") == 2
    with opened(tmp_path) as (session, _, _):
        plan = session.plan.histogram(epsilon=1)
    assert "histogram of state" in plan._repr_html_() and "<strong>" in plan._repr_html_()


def test_a_free_answer_says_so() -> None:
    found = result(("estimate", "low", "high"), [(1, 0, 2)])
    assert "free" not in str(found)
    free = Result(**{**found.__dict__, "free": True})
    assert "free: answered before" in str(free).splitlines()


@pytest.mark.nightly
def test_results_of_every_kind_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path, budget=20) as (session, _, _):
        found = {
            "bars": session.release(
                session.plan.histogram(by="zone", epsilon=1), accept_noise=True
            ),
            "one": session.release(session.plan.count(["ward"], epsilon=1), accept_noise=True),
            "steps": session.release(session.plan.transitions(epsilon=1), accept_noise=True),
            "best": session.release(session.plan.top_k(2, by="zone", epsilon=1), accept_noise=True),
            "gaps": session.release(
                session.plan.proportions(by="zone", window=(3, None), epsilon=1), accept_noise=True
            ),
        }
    other = tmp_path / "other"
    other.mkdir()
    with opened(other, budget=40, protected=(WEIGHT,), translation=PLAIN) as (session, _, _):
        found["level"] = session.release(
            session.plan.quantile("0.5", by="zone", epsilon=9), accept_noise=True
        )
    for name, one in found.items():
        path = tmp_path / f"{name}.png"
        one.plot(path)
        assert path.stat().st_size > 1000
    for suffix in ("svg", "pdf", "svg"):  # the last over the first
        found["one"].plot(str(tmp_path / f"one.{suffix}"))
        assert (tmp_path / f"one.{suffix}").stat().st_size > 1000
    with pytest.raises(InvalidFile):
        found["bars"].plot(tmp_path / "figure.txt")
    with pytest.raises(InvalidFile):
        found["bars"].plot(tmp_path / "nowhere" / "figure.png")
    with monkeypatch.context() as patched:
        patched.setattr(Result, "figure", lambda *_, **__: pytest.fail("drawn for nothing"))
        with pytest.raises(InvalidFile):
            found["bars"].plot(tmp_path / "figure.txt")
    for name, kind in (("level", "the levels it lies between"), ("bars", INTERVAL)):
        assert f"Each point is an estimate, with {kind}." in found[name].to_html()


def test_letters_that_a_font_lacks_do_no_harm(tmp_path: Path) -> None:
    found = result(("state", "estimate", "low", "high"), [("東京", 5, 1.0, 9.0)])
    found.plot(tmp_path / "tokyo.png")
    assert (tmp_path / "tokyo.png").stat().st_size > 1000


@pytest.mark.nightly
def test_a_figure_has_a_panel_for_each_group_and_counts_the_rest() -> None:
    columns = ("land", "state", "estimate", "low", "high")
    rows = [(f"land {i}", f"state {j}", 1.0 * j, j - 1.0, j + 1.0)
            for i in range(20) for j in range(60)]  # fmt: skip
    figure = result_figure(columns, rows, by=("land",), title="histogram", note="ε = 1")
    drawn = [axes for axes in figure.axes if axes.axison]
    assert len(drawn) == MAX_PANELS
    assert drawn[0].get_title() == "land land 0"
    assert len(drawn[0].get_yticklabels()) == MAX_BARS
    assert any("the 40 largest of 60" in text.get_text() for text in drawn[0].texts)
    title = figure.get_suptitle()
    assert "8 more groups are not shown" in title and "ε = 1" in title


def test_the_intervals_that_are_drawn_are_those_of_the_result() -> None:
    columns = ("state", "estimate", "low", "high")
    rows = [("home", 5, 1.0, 9.0), ("none", None, None, None), ("ward", 7, 3.0, 11.0)]
    (axes,) = result_figure(columns, rows, by=(), title="x").axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["home", "ward"]
    (bars,) = axes.collections
    ends = [segment[:, 0].tolist() for segment in bars.get_segments()]  # type: ignore[attr-defined]
    assert ends == [[1.0, 9.0], [3.0, 11.0]]
    (dots,) = [line for line in axes.lines if line.get_marker() == "o"]
    assert np.asarray(dots.get_xdata()).tolist() == [5, 7]


def test_combinations_of_labels_are_drawn_by_all_their_names() -> None:
    rows = [(1, "home", "ill"), (2, "out", "ill")]
    (axes,) = result_figure(("rank", "place", "health"), rows, by=(), title="x", ranked=True).axes
    (table,) = axes.tables
    cells = {place: cell.get_text().get_text() for place, cell in table.get_celld().items()}
    assert [cells[1, column] for column in range(2)] == ["home × ill", "out × ill"]
    columns = ("rank", "health", "estimate", "low", "high")  # a column may be called rank
    bars = [("first", "ill", 5, 1.0, 9.0), ("first", "well", 3, 1.0, 9.0)]
    (axes,) = result_figure(columns, bars, by=(), title="x").axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["first × ill", "first × well"]
    steps = ("place before", "place after", "estimate", "low", "high")
    (axes,) = result_figure(steps, bars, by=(), title="x").axes
    assert axes.get_yticklabels()[0].get_text() == "first → ill"


def test_a_ranking_is_drawn_as_one_table() -> None:
    rows = [("a", 1, "home"), ("a", 2, "ward"), ("b", 1, "ward"), ("b", 2, "home")]
    (axes,) = result_figure(
        ("zone", "rank", "state"), rows, by=("zone",), title="top k", ranked=True
    ).axes
    (table,) = axes.tables
    cells = {place: cell.get_text().get_text() for place, cell in table.get_celld().items()}
    lines = [[cells[line, column] for column in range(3)] for line in range(3)]
    assert lines == [["zone", "1", "2"], ["a", "home", "ward"], ["b", "ward", "home"]]
    many = [(f"zone {i}", 1, "home") for i in range(77)]
    (axes,) = result_figure(
        ("zone", "rank", "state"), many, by=("zone",), title="top k", ranked=True
    ).axes
    assert any("37 more groups" in text.get_text() for text in axes.texts)


def test_groups_with_one_number_each_share_a_panel() -> None:
    rows = [(f"zone {i}", 1.0, 0.0, 2.0) for i in range(5)]
    (axes,) = result_figure(("zone", "estimate", "low", "high"), rows, by=("zone",), title="x").axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [row[0] for row in rows]


def test_a_budget_that_lost_its_delta_is_still_written_as_json(tmp_path: Path) -> None:
    with opened(tmp_path, budget=5, delta="1e-6") as (session, ledger, _):
        first = session.plan.histogram(epsilon=1, delta="1e-6")
        session.release(first, accept_noise=True)
        ledger.set_budget("visits", 5)
        plan = session.plan.count(["ward"], epsilon=1)
        described = json.loads(json.dumps(plan.describe(), allow_nan=False))
        assert described["cost"]["before"] is None and not described["cost"]["fits"]
        assert "too much" in str(plan)


def test_columns_of_an_answer_are_told_apart_from_declared_ones() -> None:
    assert own_columns(("zone", "rank"), "rank") == ("rank (answer)",)
    assert own_columns(("low", "state"), "estimate", "low", "high") == (
        "estimate",
        "low (answer)",
        "high",
    )
