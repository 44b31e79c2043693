"""Bringing a ledger up to date, step by named step; refusing one from a later version."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from takifugu.errors import LedgerDamaged, LedgerUnwritable, NewerLedger, NotALedger
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.event_chain import Anchor, Event
from takifugu.ledger.events.replay import replayed
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.database import Connection, Statement, Store, insert
from takifugu.ledger.storage.schema import (
    ACCOUNTS,
    BY_DATASET,
    CELLS,
    EVENTS,
    HEAD,
    LATER_INDEXES,
    MIGRATIONS,
    PEOPLE_INDEXES,
    SEGMENTS,
    create_index,
    create_table,
    foreign_objects,
    recreate,
    table_names,
)
from takifugu.ledger.witnesses.head_witness import Guard, identity_in


def _fill_totals(connection: Connection) -> None:
    recreate(connection)
    tables.rebuild(connection, replayed(connection))
    chain.totals(connection).save(connection)


@dataclass(frozen=True)
class Migration:
    """One named step: the tables and indexes that it makes. It never touches an event.

    A step without any marks events that earlier versions cannot read.
    """

    name: str
    tables: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    fill: Callable[[Connection], None] | None = None

    def apply(self, connection: Connection) -> None:
        """Make what it makes, in the transaction that records it."""
        for table in self.tables:
            create_table(connection, table)
        for index in self.indexes:
            create_index(connection, index)
        if self.fill is not None:
            self.fill(connection)


_DONE = insert(MIGRATIONS, "place", "name")
TRUTH = Migration("0001 events in a chain", (HEAD, EVENTS))
DIGESTED = Migration("0003 digests of totals", fill=_fill_totals)
KNOWN = (
    TRUTH,
    Migration("0002 totals by cell", (ACCOUNTS, SEGMENTS, CELLS)),
    DIGESTED,
    Migration("0004 what names a cell", indexes=LATER_INDEXES),
    Migration("0005 events by dataset", indexes=(BY_DATASET,)),
    Migration("0006 costs by value"),
    Migration("0007 people who ask and approve", indexes=PEOPLE_INDEXES),
    Migration("0008 states of the data and witnesses"),
)


def prepare(
    store: Store,
    now: datetime,
    *,
    create: bool,
    guard: Guard,
    actor: str | None = None,
    follow: bool = True,
) -> Anchor:
    """Create the ledger if there is none and ``create`` allows it, or bring it up to date.

    An existing one is compared with its witness before anything is written. Then the witness is
    brought forward, unless it is not to ``follow``; and a ledger that does not yet record that it
    has one does so: if the record is missing later, nothing is released.

    Returns:
        The first event, which names the ledger.
    """
    first = _up_to_date(store, create=create)
    if first is None:
        first = _brought_up_to_date(store, now, guard, actor)
    store.empty_log()
    store.identity = guard.ledger = identity_in(first)
    last, recorded = _compare(store, guard)
    store.guard = guard
    if follow and not store.read_only and guard.witness is not None:
        if recorded != last:
            guard.advance(last, recorded, store.unguarded)
        if first.body.get("witness") != chain.BEGUN:
            with store.unguarded() as connection:
                witnessed = chain.is_witnessed(connection)
            if not witnessed:
                begin_witness(store, now, actor)
    return first.anchor


def _up_to_date(store: Store, *, create: bool) -> Event | None:
    """The first event of a ledger that needs no migration; None if it is to be made or migrated."""
    if store.is_new:
        if not create:
            raise NotALedger(
                f"there is no ledger at {store.name!r}; name an existing one", reason="missing"
            )
        return None
    with store.unguarded() as connection:
        done = _applied(connection, store)
        if done == len(KNOWN):
            return chain.one(connection, 1)
    if done == 0 and not create:
        raise NotALedger(f"{store.name!r} holds no ledger; name an existing one", reason="missing")
    if store.read_only:
        raise LedgerUnwritable(
            f"ledger {store.name!r} must be migrated; open it once with the right to write",
            reason="migration",
        )
    return None


def _brought_up_to_date(store: Store, now: datetime, guard: Guard, actor: str | None) -> Event:
    """Make or migrate the ledger; its first event."""
    if store.is_new:
        store.make_file()
    else:
        with store.unguarded() as connection:
            first = chain.one(connection, 1) if _applied(connection, store) else None
        if first is not None:
            guard.ledger = identity_in(first)
            _compare(store, guard)
    with store.writing() as connection:
        store.only_one(connection)
        connection.unwitnessed = guard.witness is None
        migrate(connection, store, now, actor)
        return chain.one(connection, 1)


def begin_witness(store: Store, now: datetime, actor: str | None) -> Event:
    """Record in the ledger that from now on it has a witness."""
    content = {"dataset": None, "analyst": None, "how": chain.BEGUN}
    with store.writing() as connection:
        return chain.append(connection, "witness", content | _signed(actor), now)


def _signed(actor: str | None) -> dict[str, str]:
    return {} if actor is None else {"actor": actor}


def _compare(store: Store, guard: Guard) -> tuple[Anchor, Anchor | None]:
    """The head and what is recorded of it; an error if the ledger lacks what is recorded.

    So is something in the database that could change what is written or read unseen.
    """
    recorded = guard.recorded()  # before the ledger is read: it never runs ahead of it
    with store.unguarded() as connection:
        for kind, name in () if guard.lenient else foreign_objects(connection):
            if kind not in ("table", "index"):  # which `verify` reports, and which do nothing
                raise LedgerDamaged(
                    f"{kind} {name!r} was added to the database of ledger {store.name!r}; nothing"
                    " was released. Find out who did so, remove it, and run `takifugu ledger"
                    " verify`",
                    reason="foreign",
                )
        guard.compare(connection, recorded)
        return chain.head(connection).anchor, recorded


def migrate(connection: Connection, store: Store, now: datetime, actor: str | None) -> None:
    """Apply what is missing. Others may have done so since: look again under the lock."""
    done = _applied(connection, store)
    signed = _signed(actor)
    if done == 0:
        create_table(connection, MIGRATIONS)
    for place, migration in enumerate(KNOWN[done:], start=done + 1):
        migration.apply(connection)
        _DONE.run(connection, {"place": place, "name": migration.name})
        if migration is TRUTH:
            chain.start(connection)
            content = {"ledger": uuid.uuid4().hex, "witness": chain.BEGUN, **signed}
            chain.append(connection, "created", content, now)
        if migration is DIGESTED:
            last = chain.head(connection, lock=True)
            known = chain.one(connection, last.seq).body.get("totals")
            if known is None:  # written before there were any
                content = {"migration": migration.name, **signed}
                chain.append(connection, "totals", content, now)
            elif known != chain.totals(connection).root:
                raise LedgerDamaged(
                    f"the events of {store.name!r} do not add up; restore a copy", reason="totals"
                )


def _applied(connection: Connection, store: Store) -> int:
    """How many of the known migrations the ledger has; 0 if it is no ledger yet."""
    return applied_steps(connection, store, MIGRATIONS, [migration.name for migration in KNOWN])


def applied_steps(connection: Connection, store: Store, table: str, known: Sequence[str]) -> int:
    """How many of the ``known`` steps were applied, as ``table`` has them; 0 without that table.

    Raises:
        NotALedger: The file holds something else, or the steps were made in another order.
        NewerLedger: A step is not known: a later version has made it.
    """
    names = table_names(connection)
    if table not in names:
        if store.sqlite and names:
            raise NotALedger(
                f"{store.name!r} is a database of something else; nothing was written",
                reason="foreign",
            )
        return 0
    named = Statement(f"SELECT name FROM {table} ORDER BY place", types={"name": (str,)})
    rows = named.all(connection, {})
    applied = [row.name for row in rows]
    later = [name for name in applied if name not in known]
    if later:
        raise NewerLedger(
            f"{store.name!r} was written by a later version of takifugu (it has {later[0]!r});"
            " update takifugu",
            field=later[0],
        )
    if applied != list(known[: len(applied)]):
        raise NotALedger(
            f"the migrations of {store.name!r} were made in another order; restore a copy",
            reason="order",
        )
    return len(applied)
