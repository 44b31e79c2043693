"""The contract on Spark: a table of its catalogue, and a Parquet file.

In one process, unless ``SPARK_MASTER`` names another place: see `torture.distributed`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from takifugu.declarations import (
    Amount,
    Category,
    DatabaseFailed,
    Declaration,
    InvalidDeclaration,
    Order,
    Source,
)
from takifugu.errors import TakifuguError
from takifugu.ledger import open_ledger
from takifugu.priors import MarkovChain
from takifugu.session import Session
from takifugu.tables import Scope, Share, open_engine
from takifugu.tables.backends.spark import SparkBackend
from takifugu.translation.translation import Translation
from tests.contracts.engine_facts import *  # noqa: F403
from tests.contracts.engine_sequences import *  # noqa: F403
from tests.contracts.engines import *  # noqa: F403 - the contract's tests are tests of this module
from tests.contracts.engines import (
    LABELS,
    Store,
    Stored,
    opened,
    rows,
)
from tests.contracts.fits import *  # noqa: F403
from tests.contracts.household_facts import *  # noqa: F403
from tests.contracts.lag_moments import *  # noqa: F403
from tests.contracts.written_sql import compare_with_ibis
from tests.raising import raises
from tests.tables.spark_sessions import small_spark, why_no_spark
from tests.tables.storing import store_duckdb

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings(
        "ignore:PySpark does not yet fully support pandas:FutureWarning",
        # PySpark 4.0 and 4.1 leave the sockets that they read rows from to be collected.
        "ignore:unclosed <socket:ResourceWarning",
    ),
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    missing = why_no_spark()
    if missing is not None:
        pytest.skip(missing)
    found = small_spark(tmp_path_factory.mktemp("warehouse"))
    yield found
    found.stop()


@pytest.fixture(scope="module")
def store(session: Any) -> Store:
    def put(name: str, table: Sequence[Mapping[str, Any]], folder: Path) -> Stored:
        path = folder / f"{name}.parquet"
        store_duckdb(table, f"COPY visits TO '{path}' (FORMAT parquet)")
        view = f"{name}_{folder.name}".replace("-", "_")
        session.read.parquet(str(path)).createOrReplaceGlobalTempView(view)
        return Source("spark", table=f"global_temp.{view}"), {"session": session}

    return put


def test_queries_are_answered_as_the_sql_of_ibis_is(
    stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow_hotfix", reason="Ibis needs it, and pandas, for Spark")
    equal = compare_with_ibis(monkeypatch)
    odd = ("it's", "\\", "\n", "a\0b", "{}", *LABELS)
    weight = Amount("weight", Fraction(-1), Fraction(5, 2), Fraction(1, 4), "drop")
    labels = Category("label", odd, "other")
    with opened(stored, protected=(labels, weight)) as engine:
        for scope in (
            Scope(start="2012-10-28", end="2012-10-28T06:00"),
            Scope(where={"home land": ["JP"]}, entities=Share("s'\\", Fraction(0), Fraction(1, 2))),
        ):
            engine.lengths(scope)
            engine.histogram(["home land", "label"], scope)
            engine.transitions("label", scope)
            engine.sums("weight", ["home land"], scope)
            engine.distribution("weight", (), scope, every=3)
        engine.span()
        engine.entities(2)
    assert equal.total() == 12 and not equal["not in Ibis"]


def test_parquet_files_are_read_by_spark_where_asked(
    stored: Stored, session: Any, tmp_path: Path
) -> None:
    path = tmp_path / "visits.parquet"
    store_duckdb(rows(), f"COPY visits TO '{path}' (FORMAT parquet)")
    with opened(stored) as engine:
        truth = engine.transitions("label"), engine.span()
    files = Source("parquet", path=str(path))
    with opened((files, {"backend": "spark", "session": session})) as engine:
        assert (engine.transitions("label"), engine.span()) == truth
        assert "SHA-256" in engine.fingerprint().covers


def test_the_callers_session_keeps_its_settings(stored: Stored, session: Any) -> None:
    with opened(stored) as engine:
        assert engine.count() == 96
    assert session.conf.get("spark.sql.session.timeZone") == "America/New_York"


def test_no_label_or_name_stands_for_a_variable(session: Any, tmp_path: Path) -> None:
    """Spark puts the value of a variable of the machine, or of its settings, in its place."""
    odd = ("${env:PATH}", "${spark.app.name}", "a${system:user.name}", "${hivevar:x}", "$$", "${")
    path = tmp_path / "odd.parquet"
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE odd (who VARCHAR, n BIGINT, "${env:PATH}" VARCHAR)')
        for number, label in enumerate(odd):
            connection.execute("INSERT INTO odd VALUES ('p', ?, ?)", [number, label])
        connection.execute(f"COPY odd TO '{path}' (FORMAT parquet)")
    declaration = Declaration(
        Source("parquet", path=str(path)),
        "who",
        Order("n", "number"),
        (Category("${env:PATH}", odd, "drop"),),
    )
    with open_engine(declaration, backend="spark", session=session) as engine:
        assert engine.histogram(["${env:PATH}"]).counts.tolist() == [1] * len(odd)
        steps = engine.transitions("${env:PATH}")
    with open_engine(declaration) as engine:
        assert engine.transitions("${env:PATH}") == steps
    assert session.conf.get("spark.sql.variable.substitute") == "true"


def test_an_error_of_spark_is_logged_without_the_value(
    stored: Stored, capfd: pytest.CaptureFixture[str]
) -> None:
    with opened(stored) as engine, raises(DatabaseFailed) as refused:
        engine._backend.rows("SELECT CAST('secret' || count(*) AS INT) AS found FROM data")
    written = capfd.readouterr()
    assert "secret" not in written.out + written.err + str(refused.value)


def test_spark_reads_no_csv(stored: Stored, session: Any) -> None:
    with opened(stored) as engine:
        declaration = engine.declaration
    csv = replace(declaration, source=Source("csv", path="visits.csv"))
    with raises(InvalidDeclaration, field="source, kind"):
        SparkBackend(csv, session=session)


def test_a_session_on_spark_tells_what_one_on_duckdb_tells(session: Any, tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    store_duckdb(rows(), f"COPY visits TO '{path}' (FORMAT parquet)")
    files = Source("parquet", path=str(path))
    states = (*LABELS, "other")
    # rows are independent, so that a Pufferfish loss of 200 is a DP loss of 200: a step moves four
    # counts at most, and any noise at all on them has a probability below 36 · 2 exp(-50) < 1e-19
    chain = MarkovChain(np.full((6, 6), 1 / 6), states=states, length=96)
    released = []
    for number, options in enumerate(({}, {"backend": "spark", "session": session})):
        with (
            opened((files, options)) as engine,
            open_ledger(tmp_path / f"{number}.ledger", witness=False) as ledger,
        ):
            ledger.set_budget("visits", 500)
            curator = Session(engine, Translation(chain), ledger=ledger, dataset="visits")
            filled = {"home land": ["ID", "JP"]}  # where no rows are, any label may be named
            top = curator.release(curator.plan.top_k(1, by="home land", where=filled, epsilon=200))
            steps = curator.release(curator.plan.transitions(epsilon=200))
            released.append((top.rows, steps.rows))
    assert released[0] == released[1]


def test_spark_reads_the_files_that_are_fingerprinted(session: Any, tmp_path: Path) -> None:
    for name in ("study[1]", "study1", "a*b", "axb", "{x,y}", "x", "place=ward", "100%20 #é"):
        (tmp_path / name).mkdir()
        many = 5 if name in ("study1", "axb", "x") else 3
        store_duckdb(rows()[:many], f"COPY visits TO '{tmp_path}/{name}.made' (FORMAT parquet)")
        (tmp_path / f"{name}.made").rename(tmp_path / name / "visits.parquet")
        if many == 5:
            continue
        files = Source("parquet", path="visits.parquet")
        options = {"backend": "spark", "session": session}
        with opened((files, options), folder=tmp_path / name) as engine:
            assert engine.count() == 3, name
    (tmp_path / "x" / "visits.parquet").rename(tmp_path / "x" / "_visits.parquet")
    hidden = Source("parquet", path="_visits.parquet")  # a name that Spark passes over
    with pytest.raises(TakifuguError, match=r"visits\.parquet"):
        opened((hidden, options), folder=tmp_path / "x")
