"""The contract on files, in the DuckDB of this process."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from takifugu.declarations import Amount, DatabaseFailed, InvalidDeclaration, Source
from takifugu.tables import Scope
from takifugu.tables import label_lookup as fitness
from tests.contracts.engine_facts import *  # noqa: F403
from tests.contracts.engine_sequences import *  # noqa: F403
from tests.contracts.engines import *  # noqa: F403 - the contract's tests are tests of this module
from tests.contracts.engines import Store, Stored, opened, rows
from tests.contracts.fits import *  # noqa: F403
from tests.contracts.household_facts import *  # noqa: F403
from tests.contracts.lag_moments import *  # noqa: F403
from tests.contracts.written_sql import compare_with_ibis
from tests.raising import raises
from tests.tables.storing import store_duckdb

Table = Sequence[Mapping[str, Any]]


def parquet(name: str, table: Table, folder: Path) -> Stored:
    path = folder / f"{name}.parquet"
    store_duckdb(table, f"COPY visits TO '{path}' (FORMAT parquet)")
    return Source("parquet", path=str(path)), {}


def csv(name: str, table: Table, folder: Path) -> Stored:
    path = folder / f"{name}.csv.gz"
    store_duckdb(table, f"COPY visits TO '{path}' (FORMAT csv, HEADER)")
    return Source("csv", path=str(path)), {"threads": 1}


def file(name: str, table: Table, folder: Path) -> Stored:
    path = folder / f"{name}.duckdb"
    store_duckdb(table, 'CREATE TABLE "kept" AS FROM visits', path=path)
    return Source("duckdb", path=str(path), table="main.kept"), {"memory": "500MB"}


OTHER_FILES = [pytest.param(way, marks=pytest.mark.nightly) for way in (csv, file)]


@pytest.fixture(scope="module", params=[parquet, *OTHER_FILES], ids=lambda way: str(way.__name__))
def store(request: pytest.FixtureRequest) -> Store:
    way: Store = request.param
    return way


@pytest.fixture(autouse=True)
def _compared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All queries of the contract on one kind of file are also those that Ibis writes."""
    if find_spec("ibis") is None:  # `make nightly` installs it
        return
    if "store" in request.fixturenames and request.getfixturevalue("store") is parquet:
        compare_with_ibis(monkeypatch)


def test_a_file_that_changes_under_the_engine_is_refused(tmp_path: Path) -> None:
    stored = parquet("visits", rows(), tmp_path)
    with opened(stored) as engine:
        assert engine.count() == 96
        parquet("visits", rows()[:50], tmp_path)
        with raises(DatabaseFailed, reason="changed"):
            engine.count()


def test_a_value_that_breaks_a_query_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    lines = [f"Ann,2012-10-28 10:00:00,{i},home,ID" for i in range(30_000)]
    lines[-1] = "Ann,the secret time,30001,home,ID"  # past the rows that types are guessed by
    path.write_text("\n".join(["person,at,row,label,home land", *lines]))
    with (
        opened((Source("csv", path=str(path)), {})) as engine,
        pytest.raises(DatabaseFailed) as refused,
    ):
        engine.transitions("label")
    assert "secret" not in str(refused.value) and "\n" not in str(refused.value)
    assert refused.value.__context__ is None


def test_an_archive_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    """DuckDB alone reads such a file as if it ended there."""
    stored = csv("visits", rows(), tmp_path)
    path = Path(str(stored[0].path))
    whole = path.read_bytes()
    for kept in (whole[:-4], whole[:-8]):
        path.write_bytes(kept)
        with (
            opened(stored) as engine,
            raises(DatabaseFailed, reason="incomplete"),
        ):
            engine.fingerprint()


def test_many_files_are_one_table(tmp_path: Path) -> None:
    one = parquet("whole", rows(), tmp_path)
    for part in range(3):
        parquet(f"part {part}", rows()[part::3], tmp_path)
    many = Source("parquet", path=f"{tmp_path}/part*.parquet")
    with opened(one) as engine:
        truth = engine.transitions("label")
    with opened((many, {"threads": 1})) as engine:
        assert engine.transitions("label") == truth
        before = engine.fingerprint()
        parquet("part 2", rows()[2::3][:-1], tmp_path)
    with opened((many, {})) as engine:
        assert engine.fingerprint().fingerprint != before.fingerprint


def test_a_long_list_is_looked_up_here_with_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = parquet("visits", rows(), tmp_path)
    weight = Amount("weight", Fraction(0), Fraction(5), Fraction(1, 2), Fraction(1))
    answers = []
    for longest in (1_000, 0):
        monkeypatch.setattr(fitness, "MAX_DATABASE_LIST", longest)
        for outside in ("other", "drop"):
            with opened(stored, outside=outside, amounts=(weight,)) as engine:
                kept = Scope(where={"home land": ["JP"]})
                answers += [
                    engine.histogram(["home land", "label"]),
                    engine.histogram(["label"], kept),
                    engine.sums("weight", ["label"]),
                    engine.distribution("weight", ["label"]),
                    engine.transitions("label"),
                ]
    half = len(answers) // 2
    assert answers[:half] == answers[half:]
    with (
        opened(stored, outside="refuse") as engine,
        raises(InvalidDeclaration, field="label"),
    ):
        engine.histogram(["label"])
