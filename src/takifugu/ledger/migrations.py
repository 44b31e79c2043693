"""Bringing a ledger up to date, step by named step; refusing one from a later version."""

import uuid
from datetime import datetime

from sqlalchemy import Connection, insert, inspect, select, text

from takifugu.errors import LedgerUnwritable, NewerLedger, NotALedger
from takifugu.ledger import chain, tables
from takifugu.ledger.replay import replayed
from takifugu.ledger.schema import BY_DATASET, EVENTS, INDEXES, MIGRATIONS, TOTALS, TRUTH, Migration
from takifugu.ledger.store import Store

ADVISORY_LOCK = 7_472_696_667  # of PostgreSQL: one process at a time creates or migrates


def _totals(connection: Connection) -> None:
    """Totals beside the events, filled from them."""
    TOTALS(connection)
    tables.rebuild(connection, replayed(connection))


def _naming(connection: Connection) -> None:
    """Indexes to find what names the cells of a dataset. Charges before it name none."""
    for index in EVENTS.indexes:
        if index.name in INDEXES:
            index.create(connection, checkfirst=True)


def _by_dataset(connection: Connection) -> None:
    """The last charge or decision on a dataset is found at once, however long the ledger is."""
    BY_DATASET.create(connection, checkfirst=True)


KNOWN = (
    TRUTH,
    Migration("0002 totals by cell", _totals),
    Migration("0004 what names a cell", _naming),
    Migration("0005 events by dataset", _by_dataset),
)


def prepare(store: Store, now: datetime, *, create: bool) -> None:
    """Create the ledger if there is none and ``create`` allows it, or bring it up to date."""
    if store.is_new and not create:
        raise NotALedger(f"there is no ledger at {store.name!r}; name an existing one")
    if not (store.is_new and not store.read_only):
        with store.reading() as connection:
            done = _applied(connection, store)
        if done == len(KNOWN):
            return
        if done == 0 and not create:
            raise NotALedger(f"{store.name!r} holds no ledger; name an existing one")
        if store.read_only:
            raise LedgerUnwritable(f"ledger {store.name!r} must be migrated; open it to write once")
    with store.writing() as connection:
        if not store.sqlite:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"))
        migrate(connection, store, now)


def migrate(connection: Connection, store: Store, now: datetime) -> None:
    """Apply what is missing. Others may have done so since: look again under the lock."""
    done = _applied(connection, store)
    if done == 0:
        MIGRATIONS.create(connection)
    for place, migration in enumerate(KNOWN[done:], start=done + 1):
        migration.apply(connection)
        connection.execute(insert(MIGRATIONS), {"place": place, "name": migration.name})
        if migration is TRUTH:
            last = chain.start(connection)
            chain.append(connection, last, "created", {"ledger": uuid.uuid4().hex}, now)


def _applied(connection: Connection, store: Store) -> int:
    """How many of the known migrations the ledger has; 0 if it is no ledger yet."""
    names = inspect(connection).get_table_names()
    if MIGRATIONS.name not in names:
        if store.sqlite and names:
            raise NotALedger(f"{store.name!r} is a database of something else; nothing was written")
        return 0
    found = connection.execute(select(MIGRATIONS.c.name).order_by(MIGRATIONS.c.place)).scalars()
    applied = found.all()
    known = [migration.name for migration in KNOWN]
    later = [name for name in applied if name not in known]
    if later:
        raise NewerLedger(
            f"ledger {store.name!r} was written by a later version of takifugu (it has"
            f" {later[0]!r}); update takifugu"
        )
    if list(applied) != known[: len(applied)]:
        raise NotALedger(f"{store.name!r} has had its migrations in another order; restore a copy")
    return len(applied)
