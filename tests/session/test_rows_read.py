"""Plans and results say how many rows are read, of how many; rows that are none are not charged."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from takifugu.declarations import InvalidQuery
from takifugu.ledger import open_ledger
from takifugu.priors import FittedRows
from takifugu.session import Session
from takifugu.session.plan_documents import PlanFile
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_plan import RowsRead
from takifugu.tables import open_engine
from takifugu.tables.backends.duckdb_backend import FileBackend
from tests.raising import raises
from tests.session.world import CHAIN, PLAIN, ROWS, WEIGHT, declaration, opened

KINDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("histogram", {}),
    ("proportions", {}),
    ("count", {"values": ["ward"]}),
    ("counts", {"values": ["ward", "home"]}),
    ("top_k", {"k": 1}),
    ("transitions", {}),
)


def test_all_rows_of_a_table_are_read_and_nothing_is_said_of_it(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, *_):
        plan = session.plan.top_k(1, epsilon=1)
        assert (plan.rows_read, plan.rows_there) == (len(ROWS), len(ROWS))
        assert plan.reads.lines == () and "reads" not in str(plan)


def test_some_rows_are_said_to_be_some_with_what_keeps_the_others(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, *_):
        plan = session.plan.histogram(window=(1, None), where={"zone": ["a"]}, epsilon=1)
        result = session.release(plan, accept_noise=True)
        for found in (plan, result):
            assert (found.rows_read, found.rows_there) == (2, 6)
            assert "outside the window, or left out by `where`" in str(found)
            assert "outside the window" in found._repr_html_()
        for document in (plan.describe(), json.loads(result.to_json())):
            assert (document["rows_read"], document["rows_there"]) == (2, 6)
        assert "up to 4 of each `person`" in str(plan)
        assert (
            session.release(plan, accept_noise=True).free
            and session.release(plan, accept_noise=True).rows_read == 2
        )


@pytest.mark.parametrize(
    ("rule", "read"),
    [
        ({"before": 1}, sum(row[1] >= 1 for row in ROWS)),
        ({"share": Fraction(1, 2), "salt": "0"}, None),
    ],
)
def test_rows_that_were_fitted_on_are_there_and_not_read(
    tmp_path: Path, rule: dict[str, Any], read: int | None
) -> None:
    made = declaration(tmp_path)
    prior = replace(CHAIN, fitted_on=(FittedRows("csv visits.csv", "person", "step", **rule),))
    with open_engine(made, threads=1) as engine, open_ledger(tmp_path / "a.ledger") as ledger:
        session = Session(engine, prior, ledger=ledger, dataset="visits", budget=10)
        read = session._open.engine.count() if read is None else read
        assert 0 < read < len(ROWS)
        plan = session.plan.histogram(epsilon=1)
        assert (plan.rows_read, plan.rows_there) == (read, len(ROWS))
        (why,) = plan.reads.others
        assert "a prior was fitted" in why and why in str(session.release(plan, accept_noise=True))
        (stored,) = (event.body["answer"]["shown"] for event in ledger.history(kind="answer"))
        assert (stored["rows_read"], stored["rows_there"]) == (read, len(ROWS))
        assert stored["rows_others"] == [why]  # for readers of the ledger, who have no table
        assert stored["entities_there"] == len({row[0] for row in ROWS})


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "more"), KINDS)
@pytest.mark.parametrize(
    ("rows", "field"),
    [
        ({"window": (4, 9)}, "window"),
        ({"where": {"zone": ["c"]}}, "where"),
        ({"window": (2, None), "where": {"zone": ["a"]}}, "window"),
    ],
)
def test_rows_that_are_none_are_refused_and_not_charged(
    tmp_path: Path, kind: str, more: dict[str, Any], rows: dict[str, Any], field: str
) -> None:
    zones = replace(declaration(tmp_path).public[0], values=("a", "b", "c"))
    with opened(tmp_path, public=(zones,)) as (session, ledger, _):
        with raises(InvalidQuery, field=field):
            session.plan(QueryOptions(kind, epsilon=1, **more, **rows))
        assert list(ledger.history(kind="charge")) == []


@pytest.mark.parametrize("kind", ["sum", "mean", "quantile"])
def test_numbers_of_no_rows_are_refused(tmp_path: Path, kind: str) -> None:
    more: dict[str, Any] = {"level": "0.5"} if kind == "quantile" else {}
    with (
        opened(tmp_path, translation=PLAIN, protected=(WEIGHT,)) as (session, *_),
        raises(InvalidQuery, field="window"),
    ):
        session.plan(QueryOptions(kind, epsilon=1, window=(4, 9), **more))


def test_a_plan_is_not_stale_for_what_it_says_of_rows(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, *_):
        plan = session.plan.histogram(window=(1, None), epsilon=1)
        other = replace(plan, reads=RowsRead(1, 2))
        assert other.differences(plan) == ()
        document = plan.describe()
        del document["rows_read"], document["rows_there"]  # as an earlier version wrote it
        assert PlanFile("visits", plan.options, document=document).differences(plan) == ()
        assert session.release(other, accept_noise=True).rows_read == 4


def test_a_table_that_others_write_to_is_not_scanned_for_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_engine(declaration(tmp_path), threads=1) as engine:
        assert engine.known_size() == (6, 4, 2)
        monkeypatch.setattr(FileBackend, "may_change", True)
        assert engine.known_size() == (6, 4, 2)
    with open_engine(declaration(tmp_path), threads=1) as engine:
        assert engine.known_size() is None


def test_a_fingerprint_that_counted_rows_says_how_many_there_are() -> None:
    reads = RowsRead(3, 3, ("outside the window",))
    assert reads.lines == ()
    assert reads.of_table(None) is reads
    assert reads.of_table(2).there == 3  # rows came between the two counts
    assert reads.of_table(4000).lines == (
        "reads 3 of 4,000 rows: the others are outside the window",
    )
