"""The tables, and the named migrations that made them. Events are never rewritten.

Events and their head are the truth. Accounts, segments and cells, and the digests of all these, are
derived from them, kept up to date in the same transaction, and can be rebuilt at any time.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

METADATA = MetaData()

MIGRATIONS = Table(
    "takifugu_migrations",
    METADATA,
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("name", String(100), nullable=False, unique=True),
)

HEAD = Table(
    "takifugu_head",
    METADATA,
    Column(
        "id", Integer, primary_key=True, autoincrement=False
    ),  # always 1: the row that is locked
    Column("seq", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("at", String(40), nullable=False),  # the latest time any event has seen
)

EVENTS = Table(
    "takifugu_events",
    METADATA,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("hash", String(64), nullable=False),
    Column("body", Text, nullable=False),
    # Copies of fields of the body, to find it by; `verify` compares them.
    Column("kind", String(20), nullable=False),
    Column("dataset", Text),
    Column("analyst", Text),
    Column("key", Text),
    Column("question", String(64)),
    Column("charge", BigInteger),  # of an answer or a reuse: the event that was paid for
)
BY_DATASET = Index("takifugu_events_of", EVENTS.c.dataset, EVENTS.c.kind, EVENTS.c.seq)
_named_key, _is_question = EVENTS.c.key.is_not(None), EVENTS.c.question.is_not(None)
_is_answer = EVENTS.c.kind == "answer"
Index(
    "takifugu_one_event_per_key",
    EVENTS.c.key,
    unique=True,
    sqlite_where=_named_key,
    postgresql_where=_named_key,
)
Index(
    "takifugu_questions",
    EVENTS.c.question,
    sqlite_where=_is_question,
    postgresql_where=_is_question,
)
Index(
    "takifugu_one_answer_per_charge",
    EVENTS.c.charge,
    unique=True,
    sqlite_where=_is_answer,
    postgresql_where=_is_answer,
)

Index("takifugu_of_dataset", EVENTS.c.dataset, EVENTS.c.seq)  # finds what its cells are
_is_source = EVENTS.c.kind == "source"
Index(
    "takifugu_sources",
    EVENTS.c.seq,
    sqlite_where=_is_source,
    postgresql_where=_is_source,
)
INDEXES = ("takifugu_of_dataset", "takifugu_sources")  # that the first ledgers did not have

ACCOUNTS = Table(
    "takifugu_accounts",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("dataset", Text, nullable=False),
    Column("analyst", Text, nullable=False),  # "" is the whole dataset
    Column("epsilon", Text),  # the budget; none yet if null
    Column("delta", Text),
    Column("unit", Text),
    Column("partition", Text),
    Column("always", Text, nullable=False),
    Column("worst", Text, nullable=False),
    Column("lost", Text),  # of the whole: what any analyst may have learnt in a lost part
)
Index("takifugu_account_names", ACCOUNTS.c.dataset, ACCOUNTS.c.analyst, unique=True)

SEGMENTS = Table(
    "takifugu_segments",
    METADATA,
    Column("account", Integer, primary_key=True, autoincrement=False),
    Column("start", BigInteger, primary_key=True, autoincrement=False),
    Column("end", BigInteger, nullable=False),
    Column("base", Text, nullable=False),
    Column("peak", Text, nullable=False),
    Column("cells", String(64), nullable=False),  # the root of the digests of its cells
    sqlite_with_rowid=False,
)

CELLS = Table(
    "takifugu_cells",
    METADATA,
    Column("account", Integer, primary_key=True, autoincrement=False),
    Column("start", BigInteger, primary_key=True, autoincrement=False),
    Column("cell", Text, primary_key=True),
    Column("own", Text, nullable=False),
    sqlite_with_rowid=False,
)

DIGESTS = Table(
    "takifugu_digests",
    METADATA,
    Column("account", Integer, primary_key=True, autoincrement=False),  # 0: of all accounts
    Column("start", BigInteger, primary_key=True, autoincrement=False),
    Column("path", String(32), primary_key=True),
    Column("content", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

WITNESSES = Table(  # in another database than the ledger's
    "takifugu_witnesses",
    MetaData(),
    Column("ledger", String(32), primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
)


@dataclass(frozen=True)
class Migration:
    """One named step. It may add tables and fill derived ones; it never touches an event."""

    name: str
    apply: Callable[[Connection], None]


def _create(*tables: Table) -> Callable[[Connection], None]:
    def apply(connection: Connection) -> None:
        METADATA.create_all(connection, tables=tables, checkfirst=False)

    return apply


TRUTH = Migration("0001 events in a chain", _create(HEAD, EVENTS))
TOTALS = _create(ACCOUNTS, SEGMENTS, CELLS)


def recreate(connection: Connection) -> None:
    """Replace every derived table by an empty one: their contents follow from the events."""
    derived = (ACCOUNTS, SEGMENTS, CELLS, DIGESTS)
    METADATA.drop_all(connection, tables=derived)
    METADATA.create_all(connection, tables=derived, checkfirst=False)
