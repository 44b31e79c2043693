"""The contract on PostgreSQL, in a server of its own that lives as long as these tests."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from takifugu.declarations import (
    Category,
    DatabaseFailed,
    Declaration,
    InvalidDeclaration,
    InvalidQuery,
    Order,
    Source,
)
from takifugu.tables import open_engine
from takifugu.tables.backends.postgres import PostgresBackend
from tests.contracts.engine_facts import *  # noqa: F403
from tests.contracts.engine_sequences import *  # noqa: F403
from tests.contracts.engines import *  # noqa: F403 - the contract's tests are tests of this module
from tests.contracts.engines import (
    KINDS,
    Store,
    Stored,
    opened,
    rows,
)
from tests.contracts.fits import *  # noqa: F403
from tests.contracts.household_facts import *  # noqa: F403
from tests.contracts.lag_moments import *  # noqa: F403
from tests.contracts.written_sql import compare_with_ibis
from tests.ledger import postgres
from tests.raising import raises

pytestmark = pytest.mark.nightly

TYPES = {
    "text": "text",
    "whole": "integer",
    "real": "double precision",
    "time": "timestamp",
    "zoned": "timestamptz",
}
WIDE = {"visits": "bigint", "unix": "bigint"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a new, empty server."""
    if needed := postgres.missing():
        pytest.skip(needed)
    with postgres.cluster() as running:
        yield running.url


@pytest.fixture(scope="module")
def store(server: str) -> Store:
    def put(name: str, table: Sequence[Mapping[str, Any]], folder: Path) -> Stored:
        import psycopg

        where = f'"{name} of {folder.name}"'
        columns = ", ".join(f'"{c}" {WIDE.get(c, TYPES[kind])}' for c, kind in KINDS.items())
        with psycopg.connect(server) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {where} ({columns})".encode())
            with cursor.copy(f"COPY {where} FROM STDIN".encode()) as copy:
                for row in table:
                    copy.write_row([row[column] for column in KINDS])
        return Source("postgres", table=f"public.{where[1:-1]}", url=server), {}

    return put


@pytest.fixture(autouse=True)
def _compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """All queries of the contract are also those that Ibis writes."""
    compare_with_ibis(monkeypatch)


def test_a_label_that_no_text_of_the_server_can_be_is_refused(stored: Stored) -> None:
    odd = (Category("label", ("home", "a\0b"), "other"),)
    with opened(stored, protected=odd) as engine, raises(InvalidQuery, reason="NUL"):
        engine.histogram(["label"])


def test_the_connection_cannot_write(stored: Stored) -> None:
    import psycopg

    with opened(stored) as engine:
        backend = engine._backend
        assert isinstance(backend, PostgresBackend)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            backend._connection.execute("CREATE TABLE mine ()")


def test_a_server_that_is_not_there_is_one_clear_line(stored: Stored) -> None:
    with opened(stored) as engine:
        declaration = engine.declaration
    away = Source("postgres", table="visits", url="postgresql:///x?host=/nowhere")
    with raises(DatabaseFailed, place="table visits of postgres", doing="opened"):
        open_engine(replace(declaration, source=away))


def test_the_fingerprint_of_a_table_says_what_it_leaves_out(stored: Stored) -> None:
    with opened(stored) as engine:
        found = engine.fingerprint()
    assert "not the values" in found.covers and found.changed is None


def test_labels_are_compared_letter_by_letter_whatever_the_collation(
    server: str, store: Store, tmp_path: Path
) -> None:
    """Grouped without case, a group has the name of any of its rows: one cell would move all."""
    import psycopg

    stored = store("cased", rows(), tmp_path)
    where = str(stored[0].table).removeprefix("public.")
    try:
        with psycopg.connect(server) as connection:
            connection.execute(
                "CREATE COLLATION anyhow (provider = icu, locale = 'und-u-ks-level1',"
                " deterministic = false)"
            )
            connection.execute(
                f'ALTER TABLE "{where}" ALTER COLUMN label TYPE text COLLATE anyhow'.encode()
            )
            cased = "CASE WHEN row % 2 = 0 THEN upper(label) ELSE label END"
            connection.execute(f'UPDATE "{where}" SET label = {cased}'.encode())  # noqa: S608
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("needs a PostgreSQL with ICU")
    truth = sum(row["label"] == "home" and row["row"] % 2 == 1 for row in rows())
    assert truth > 0
    with opened(stored) as engine:
        assert engine.histogram(["label"]).at("home") == truth


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_labels_are_found_whatever_the_encoding_of_the_database_is(
    server: str, encoding: str
) -> None:
    """A client that takes on the server's would write another letter than it means."""
    import psycopg

    name = f"in_{encoding.lower()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
            " TEMPLATE template0"
        )
    url = server.replace("/postgres?", f"/{name}?", 1)
    with psycopg.connect(url, client_encoding="UTF8") as connection:
        connection.execute("CREATE TABLE visits (who text, n bigint, label text)")
        connection.execute("INSERT INTO visits VALUES ('p', 1, 'é'), ('p', 2, 'ü'), ('q', 3, 'a')")

    def declared(*labels: str) -> Declaration:
        return Declaration(
            Source("postgres", table="visits", url=url),
            "who",
            Order("n", "number"),
            (Category("label", labels, "drop"),),
        )

    with open_engine(declared("é", "ü", "a", "Ã©")) as engine:
        assert engine.histogram(["label"]).counts.tolist() == [1, 1, 1, 0]
        assert engine.entities(3) == {"p": 2, "q": 1}
    if encoding == "LATIN1":  # before a query is paid for, which would fail
        with raises(InvalidDeclaration, field="label", reason="encoding"):
            open_engine(declared("é", "東京"))


@pytest.fixture
def places(server: str) -> Iterator[tuple[str, Declaration]]:
    """A database of a role whose search path begins with a schema that others can write to."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("CREATE DATABASE places")
        connection.execute("ALTER ROLE reader SET search_path = public, study, pg_catalog")
    owner = server.replace("/postgres?", "/places?", 1)
    with psycopg.connect(owner) as connection:
        connection.execute("CREATE SCHEMA study")
        connection.execute("CREATE TABLE study.visits (who text, n bigint, label text)")
        connection.execute("INSERT INTO study.visits VALUES ('p', 1, 'a'), ('p', 2, 'b')")
        connection.execute("GRANT USAGE ON SCHEMA study TO reader")
        connection.execute("GRANT SELECT ON study.visits TO reader")
    url = owner.replace("postgres@", "reader@", 1)
    labels = (Category("label", ("a", "b"), "drop"),)
    yield (
        owner,
        Declaration(
            Source("postgres", table="visits", url=url), "who", Order("n", "number"), labels
        ),
    )
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP DATABASE places WITH (FORCE)")
        connection.execute("DROP ROLE reader")


def test_functions_and_operators_of_others_do_not_run(places: tuple[str, Declaration]) -> None:
    """They would fit better than PostgreSQL's own, and run with the rights of the reader."""
    import psycopg

    owner, declaration = places
    raised = "LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$"
    with psycopg.connect(owner) as connection:
        for statement in (
            f"CREATE FUNCTION public.array_position(text[], text) RETURNS int {raised}",
            f"CREATE FUNCTION public.hijack(text, text) RETURNS bool {raised}",
            "CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.hijack)",
            "CREATE FUNCTION public.count() RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint'",
            "CREATE DOMAIN public.int8 AS pg_catalog.int8 CHECK (VALUE > 5)",
        ):
            connection.execute(statement.encode())
    with open_engine(declaration) as engine:
        assert engine.histogram(["label"]).counts.tolist() == [1, 1]
        assert engine.entities(3) == {"p": 2}


def test_a_table_that_several_schemas_of_the_search_path_have_is_refused(
    places: tuple[str, Declaration],
) -> None:
    import psycopg

    owner, declaration = places
    with psycopg.connect(owner) as connection:
        connection.execute("CREATE VIEW public.visits AS SELECT * FROM study.visits")
    with raises(InvalidDeclaration, field="source, table", reason="ambiguous"):
        open_engine(declaration)
    named = replace(declaration, source=replace(declaration.source, table="study.visits"))
    with open_engine(named) as engine:
        assert engine.histogram(["label"]).counts.tolist() == [1, 1]
