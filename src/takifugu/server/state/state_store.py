"""The database of a server's own state: its tables, its connections, and its errors.

They hold who may call, what waits for an owner and the documents of results: nothing that a budget
depends on. What was spent is in the ledger alone.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from takifugu._core.closing import Closing
from takifugu.errors import LedgerUnwritable, Malformed, TakifuguError
from takifugu.ledger.storage.database import Connection, Statement, Store, insert
from takifugu.ledger.storage.migrations import applied_steps

STEPS = "takifugu_server_migrations"
TOKENS = "takifugu_server_tokens"
SESSIONS = "takifugu_server_sessions"
APPROVALS = "takifugu_server_approvals"
RESULTS = "takifugu_server_results"
HEADS = "takifugu_server_heads"
FORGOTTEN = "takifugu_server_forgotten_heads"
# Times are texts of one length in UTC, so that their order is that of time.
FIRST = (
    # hash: SHA-256 of the token, which is stored nowhere; folded: the name without case, width and
    # accents' form, by which two spellings of it are found
    f"""CREATE TABLE {TOKENS} (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        hash VARCHAR(64) NOT NULL UNIQUE,
        name TEXT NOT NULL,
        folded TEXT NOT NULL,
        role VARCHAR(20) NOT NULL,
        made VARCHAR(40) NOT NULL,
        made_by TEXT NOT NULL,
        expires VARCHAR(40),
        revoked VARCHAR(40),
        revoked_by TEXT,
        used VARCHAR(40))""",
    f"CREATE INDEX takifugu_server_token_names ON {TOKENS} (folded)",
    # hash: SHA-256 of what is in the cookie
    f"""CREATE TABLE {SESSIONS} (
        hash VARCHAR(64) NOT NULL PRIMARY KEY,
        token VARCHAR(40) NOT NULL,
        begun VARCHAR(40) NOT NULL,
        ends VARCHAR(40) NOT NULL)""",
    f"CREATE INDEX takifugu_server_sessions_of ON {SESSIONS} (token)",
    # asked_under: the idempotency key of the request; options: the query, as JSON; event: of the
    # ledger, the decision; charge: of the ledger, what was released; plan: what was shown to the
    # analyst who asked, as JSON; problem: why an approved release failed, as JSON; claim and its
    # parts: of earlier versions, no longer used
    f"""CREATE TABLE {APPROVALS} (
        id BIGINT NOT NULL PRIMARY KEY,
        dataset TEXT NOT NULL,
        analyst TEXT NOT NULL,
        asked_under TEXT NOT NULL,
        question TEXT NOT NULL,
        words TEXT NOT NULL,
        epsilon TEXT NOT NULL,
        why TEXT NOT NULL,
        options TEXT NOT NULL,
        plan TEXT NOT NULL,
        state VARCHAR(20) NOT NULL,
        asked VARCHAR(40) NOT NULL,
        decided VARCHAR(40),
        decided_by TEXT,
        note TEXT NOT NULL,
        event BIGINT,
        charge BIGINT,
        problem TEXT,
        claim VARCHAR(32),
        claim_decision VARCHAR(20),
        claim_by TEXT,
        claim_note TEXT,
        claim_at VARCHAR(40))""",
    f"CREATE UNIQUE INDEX takifugu_server_asked_once ON {APPROVALS} (analyst, asked_under)",
    f"CREATE INDEX takifugu_server_approval_states ON {APPROVALS} (state, id)",
    # one for each analyst who was given the answer of a charge; analyst: empty for nobody by name;
    # hash: of the charge, whose number is used again if history is lost
    f"""CREATE TABLE {RESULTS} (
        charge BIGINT NOT NULL,
        hash VARCHAR(64) NOT NULL,
        analyst TEXT NOT NULL,
        dataset TEXT NOT NULL,
        document TEXT NOT NULL,
        kept VARCHAR(40) NOT NULL,
        PRIMARY KEY (charge, hash, analyst))""",
)
# heads of ledgers that others keep: who has recorded one, and when; and those that an owner of this
# server had it forget, which only a loss of history explains
SECOND = (
    f"""CREATE TABLE {HEADS} (
        ledger VARCHAR(32) NOT NULL PRIMARY KEY,
        seq BIGINT NOT NULL,
        hash VARCHAR(64) NOT NULL,
        owner TEXT NOT NULL,
        at VARCHAR(40) NOT NULL)""",
    f"""CREATE TABLE {FORGOTTEN} (
        id BIGINT NOT NULL PRIMARY KEY,
        ledger VARCHAR(32) NOT NULL,
        seq BIGINT NOT NULL,
        hash VARCHAR(64) NOT NULL,
        owner TEXT NOT NULL,
        forgotten_by TEXT NOT NULL,
        at VARCHAR(40) NOT NULL)""",
)
# numbers of events are used again after history was lost; hashes are not
THIRD = (
    f"ALTER TABLE {APPROVALS} ADD COLUMN event_hash VARCHAR(64)",
    f"ALTER TABLE {APPROVALS} ADD COLUMN charge_hash VARCHAR(64)",
)
KNOWN: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("0001 tokens, approvals, results", FIRST),
    ("0002 heads of other ledgers", SECOND),
    ("0003 hashes of the events of requests", THIRD),
)
_MADE = f"""CREATE TABLE {STEPS} (
    place INTEGER NOT NULL PRIMARY KEY,
    name VARCHAR(100) NOT NULL UNIQUE)"""
_DONE = insert(STEPS, "place", "name")
_LOCK = Statement("SELECT pg_advisory_xact_lock(7472696668)")  # not that of a ledger


class StateConflict(TakifuguError):
    """What is asked contradicts what is stored: ``reason`` says how.

    Its reasons: ``unknown`` (there is none of that number or name), ``decided`` (somebody has
    decided already), ``key`` (the key was used for another request), ``same person`` (who asks
    cannot decide), ``another person`` (only who asked can withdraw), ``many`` (too many wait),
    ``no token`` (who asked has no token that works).
    """


class InvalidToken(Malformed):
    """A token cannot be made: its name, its role or its end.

    Its reasons: ``name``, ``spelling`` (of a name that has a token), ``role``, ``two roles`` (the
    name has a token of another role), ``expires``.
    """


class InvalidApproval(Malformed):
    """A request for approval, or a decision, that cannot be stored."""


class InvalidResult(Malformed):
    """A result that cannot be kept."""


def prepare_tables(store: Store, *, create: bool) -> bool:
    """Make the tables or bring them up to date; False if there are none and none may be made."""
    if store.is_new:
        if not create:
            return False
        store.make_file()
    else:
        with store.unguarded() as connection:
            done = _applied(connection, store)
        if done == len(KNOWN):
            return True
        if done == 0 and not create:
            return False
    if store.read_only:
        raise LedgerUnwritable(
            f"{store.name!r} must be migrated; open it once with the right to write",
            reason="migration",
        )
    with store.writing() as connection:
        store.only_one(connection)  # others may have done so since: look again under the lock
        done = _applied(connection, store)
        if done == 0:
            Statement(_MADE).run(connection, {})
        for position, (name, statements) in enumerate(KNOWN[done:], start=done + 1):
            for statement in statements:
                Statement(statement).run(connection, {})
            _DONE.run(connection, {"place": position, "name": name})
    return True


def _applied(connection: Connection, store: Store) -> int:
    """How many of the known steps were made; 0 if there are no tables yet."""
    return applied_steps(connection, store, STEPS, [name for name, _ in KNOWN])


class StateStore(Closing):
    """The storage of a server's state, without what is in it."""

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store, self._clock = store, clock
        self._latest = datetime.min.replace(tzinfo=UTC)
        self._clock_lock = Lock()

    @property
    def name(self) -> str:
        """Where it is kept, without any password."""
        return self._store.name

    @property
    def in_file(self) -> bool:
        """Whether it is in a file: reading it takes microseconds, and waits for nobody."""
        return self._store.sqlite

    def close(self) -> None:
        """Release the storage."""
        self._store.close()

    @contextmanager
    def _alone(self) -> Iterator[Connection]:
        """A transaction that no other of this kind runs beside, in any process."""
        with self._store.writing() as connection:  # which is enough in SQLite
            if not connection.sqlite:
                _LOCK.run(connection, {})
            yield connection

    def now(self) -> datetime:
        """The time; a clock that is set back does not revive what has ended in this process."""
        now = self._clock().astimezone(UTC)
        with self._clock_lock:
            self._latest = max(self._latest, now)
            return self._latest


def stamp(moment: datetime) -> str:
    """A time as it is stored: texts of one length, in the order of time."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def moment_of(text: str) -> datetime:
    """The time that was stored."""
    return datetime.fromisoformat(text)


def moment_if_any(text: str | None) -> datetime | None:
    """The time that was stored, if there is one."""
    return None if text is None else moment_of(text)


def json_text(document: Mapping[str, Any]) -> str:
    """A document as it is stored; numbers that JSON lacks are an error."""
    return json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
