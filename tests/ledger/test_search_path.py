"""What others define in the schemas of a PostgreSQL database never runs for a ledger."""

from collections.abc import Callable
from contextlib import closing
from urllib.parse import quote

import pytest

from takifugu.errors import InvalidFile
from takifugu.ledger import Ledger
from takifugu.ledger.storage.database import Store
from takifugu.server.state.server_state import state_at
from tests.ledger import postgres
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

HIJACK = (
    "CREATE FUNCTION {0}.hijack(varchar, varchar) RETURNS bool LANGUAGE plpgsql AS"
    " $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$",
    "CREATE OPERATOR {0}.= (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = {0}.hijack)",
    "CREATE FUNCTION {0}.pg_advisory_xact_lock(bigint) RETURNS void LANGUAGE plpgsql AS"
    " $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$",
)


def execute(url: str, *statements: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def test_operators_of_others_do_not_run_for_a_ledger_its_witness_or_a_server(
    server: postgres.Cluster, opened: Callable[..., Ledger]
) -> None:
    """Nor where a role's own setting puts their schema before PostgreSQL's catalogue."""
    execute(
        server.url,
        "CREATE ROLE keeper LOGIN",
        "CREATE DATABASE kept OWNER keeper",
        "CREATE DATABASE noted OWNER keeper",
        "ALTER ROLE keeper SET search_path = public, pg_catalog",
    )
    places = []
    for name in ("kept", "noted"):
        url = server.url.replace("/postgres?", f"/{name}?", 1)
        execute(
            url, "GRANT CREATE ON SCHEMA public TO PUBLIC", *(s.format("public") for s in HIJACK)
        )
        places.append(url.replace("postgres@", "keeper@", 1))
    for _ in range(2):  # made, and opened again
        ledger = opened(places[0], witness=places[1])
        ledger.set_budget("ward", 2)
        ledger.charge(charge("0.25"), DOUBLING)
        assert ledger.verify().sound
        with state_at(places[0]) as state:
            assert state.tokens() == []


def test_a_ledger_that_two_schemas_could_hold_is_refused(
    server: postgres.Cluster, opened: Callable[..., Ledger]
) -> None:
    first, second = (server.address().partition("search_path%3D")[2] for _ in range(2))
    for schema in (first, second):
        opened(f"{server.url}&options={quote(f'-c search_path={schema}')}").set_budget("ward", 2)
    both = f"{server.url}&options={quote(f'-c search_path={first},{second}')}"
    with raises(InvalidFile, reason="schema"):
        opened(both)


@pytest.mark.parametrize(
    ("wait", "lock", "statement", "connecting"),
    [(10.0, "10s", "30s", "10"), (0.0001, "1ms", "5s", "2")],
)
def test_a_server_writes_before_it_answers_and_gives_up_in_time(
    server: postgres.Cluster, wait: float, lock: str, statement: str, connecting: str
) -> None:
    address = f"{server.address()}%20-c%20work_mem%3D64kB&keepalives_idle=3"
    store = Store(address, read_only=True, wait=wait)
    with closing(store), store.unguarded() as connection:

        def setting(name: str) -> str:
            return str(connection.raw.execute(f"SHOW {name}".encode()).fetchone()[0])

        assert (setting("synchronous_commit"), setting("transaction_read_only")) == ("on", "on")
        assert (setting("lock_timeout"), setting("statement_timeout")) == (lock, statement)
        assert setting("work_mem") == "64kB"  # which the address says itself
        assert setting("search_path") == "pg_catalog,pg_temp"
        network = connection.raw.info.get_parameters()
        assert network["connect_timeout"] == connecting and network["keepalives_idle"] == "3"
        assert int(network["tcp_user_timeout"]) == 1000 * int(statement.removesuffix("s"))


def test_a_pooler_that_ignores_the_search_path_is_refused(server: postgres.Cluster) -> None:
    import psycopg

    from takifugu._core.postgresql import connect_pinned

    def through_a_pooler(
        address: str, **settings: object
    ) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(address, autocommit=bool(settings["autocommit"]))

    with raises(InvalidFile, reason="search_path"):
        connect_pinned(through_a_pooler, server.url, options="")
