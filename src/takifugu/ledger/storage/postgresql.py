"""Connections to PostgreSQL that give up when the server is silent for too long.

The server's own timeouts end what takes too long there. They do not help when the server is stopped
or the network drops its packets: then the client has to give up by itself.
"""

from collections.abc import Generator
from time import monotonic
from typing import Any

import psycopg
from psycopg import waiting
from psycopg.conninfo import conninfo_to_dict

from takifugu._core.postgresql import configured_schemas, connect_pinned, schemas_with
from takifugu.errors import InvalidFile
from takifugu.ledger.storage.database import Connections, not_an_address

MIN_SILENCE = 5.0  # seconds of silence that are always allowed
PREFIX = "takifugu_"  # of every table of a ledger, a witness and a server


def open_postgresql(address: str, *, read_only: bool, wait: float) -> Connections:
    """The connections to the ledger at an address; they give up when the server is silent."""
    try:
        query = conninfo_to_dict(address)
    except psycopg.ProgrammingError:
        raise not_an_address() from None  # its message may hold the password
    most = max(MIN_SILENCE, 3 * wait)
    limits = {"lock_timeout": wait, "statement_timeout": most}
    settings = "-c synchronous_commit=on -c idle_in_transaction_session_timeout=0" + "".join(
        f" -c {name}={max(1, round(seconds * 1000))}" for name, seconds in limits.items()
    )
    if read_only:
        settings += " -c default_transaction_read_only=on"
    options = f"{query.get('options') or ''} {settings}".strip()
    network: dict[str, Any] = {  # the kernel notices lost packets; `_timed` does the rest
        "connect_timeout": max(2, round(wait)),
        "tcp_user_timeout": round(most * 1000),
        "keepalives": 1,
        "keepalives_idle": max(1, round(most / 2)),
        "keepalives_interval": max(1, round(most / 6)),
        "keepalives_count": 3,
    }
    network = {name: value for name, value in network.items() if name not in query}
    kind = _timed(most)
    how = {  # in the encoding of the server, text could be bytes, or not be written at all
        "options": options,
        "client_encoding": "UTF8",
        **network,
    }
    resolved: list[str] = []  # the schema, once it was looked for

    def connect() -> psycopg.Connection[Any]:
        connection: Any = connect_pinned(kind.connect, address, **how)
        try:
            if not resolved:
                schemas = configured_schemas(kind.connect, address, **how)
                resolved.append(_schema_of_ledger(connection, schemas))
            connection.schema = resolved[0]
        except BaseException:
            connection.close()
            raise
        return connection  # type: ignore[no-any-return]

    begin = ("BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL READ COMMITTED")
    return Connections(connect, sqlite=False, errors=(psycopg.Error,), begin=begin, wait=most)


def _schema_of_ledger(connection: psycopg.Connection[Any], schemas: list[str]) -> str:
    """The one schema of the configured search path that has tables of ours; the first if none."""
    having = schemas_with(connection, PREFIX, schemas, prefix=True) or schemas[:1]
    if len(having) == 1:
        return having[0]
    raise InvalidFile(
        "ledger",
        given=f"could be in the schemas {', '.join(having)}"
        if having
        else "has no schema to be in",
        needed="name its schema in the address: ?options=-c%20search_path%3DSCHEMA",
        reason="schema",
    )


def _timed(seconds: float) -> type[psycopg.Connection[Any]]:
    """A connection class that closes when the server is silent for so many seconds."""

    class TimedConnection(psycopg.Connection[Any]):
        schema = ""  # that has the tables; `open_postgresql` says which

        def wait(self, gen: Generator[Any, Any, Any], *_: Any, **__: Any) -> Any:
            try:
                exchange, step = _limited(gen, seconds), min(seconds, 1.0)  # so that Ctrl-C is seen
                return waiting.wait(exchange, self.pgconn.socket, interval=step)
            except KeyboardInterrupt:
                self.pgconn.finish()
                raise
            except TimeoutError:
                self.pgconn.finish()  # whatever comes later must not be taken for an answer
                raise psycopg.OperationalError(
                    f"the server has not answered for {seconds:g} s"
                ) from None

    return TimedConnection


def _limited(gen: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    """An exchange of psycopg, which yields what it waits for, given up after so long a silence."""
    try:
        awaited = next(gen)
        deadline = monotonic() + seconds
        while True:
            ready = yield awaited
            if ready:
                awaited = gen.send(ready)
                deadline = monotonic() + seconds
            elif monotonic() >= deadline:
                raise TimeoutError
    except StopIteration as done:
        return done.value
