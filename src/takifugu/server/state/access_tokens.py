"""Tokens: who holds them, what they may do, until when.

A token is 32 random bytes; only its SHA-256 is stored, so that whoever reads the database cannot
call with what they find. A slow hash is for secrets that can be guessed: these cannot.

A token is looked up by its hash, by an index. How long that takes may tell how the hash compares
with stored ones; but whoever sends a token cannot choose its hash, and bits of a stored hash do not
lead back to a token. So the time tells nothing that helps to find one.
"""

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from takifugu.errors import one_of
from takifugu.ledger.canonical_text import check_name, folded, sha256
from takifugu.ledger.storage.database import Connection, Statement, askable, insert
from takifugu.server.access_rules import ROLES, Role
from takifugu.server.state.state_store import (
    SESSIONS,
    TOKENS,
    InvalidToken,
    StateConflict,
    StateStore,
    moment_if_any,
    moment_of,
    stamp,
)
from takifugu.visible import is_unmistakable

PREFIX = "tf_"
MAX_NAME_LENGTH = 100
USE_INTERVAL = timedelta(minutes=1)  # the last use of a token is written at most this often
MAX_SECRET_LENGTH = 200  # of what is worth hashing
_COLUMNS = ("id", "name", "role", "made", "made_by", "expires", "revoked", "revoked_by", "used")
_TIMES = ("made", "expires", "revoked", "used")
_TOKEN = f"SELECT {', '.join(_COLUMNS)}, hash FROM {TOKENS}"
_BY_HASH = Statement(f"{_TOKEN} WHERE hash = :hash")
_BY_ID = Statement(f"{_TOKEN} WHERE id = :id")
_ALL = Statement(f"{_TOKEN} ORDER BY made, id")
_SPELT = Statement(f"{_TOKEN} WHERE folded = :folded AND revoked IS NULL")
_ADD = insert(TOKENS, *_COLUMNS, "hash", "folded")
_REVOKE = Statement(
    f"UPDATE {TOKENS} SET revoked = :at, revoked_by = :who WHERE id = :id AND revoked IS NULL"
)
_END_SESSIONS = Statement(f"DELETE FROM {SESSIONS} WHERE token = :id")
_USED = Statement(f"UPDATE {TOKENS} SET used = :at WHERE id = :id AND (used IS NULL OR used < :at)")
SESSION_LENGTH = timedelta(hours=12)
MAX_SESSIONS = 20  # sessions of one token; the one that began first ends for the next
_ADD_SESSION = insert(SESSIONS, "hash", "token", "begun", "ends")
_FIND = Statement(
    "SELECT s.hash AS session_hash, s.begun, s.ends, t.id, t.name, t.role, t.made, t.made_by,"
    f" t.expires, t.revoked, t.revoked_by, t.used FROM {SESSIONS} s JOIN {TOKENS} t"
    " ON t.id = s.token WHERE s.hash = :hash"
)
_END = Statement(f"DELETE FROM {SESSIONS} WHERE hash = :hash")
_END_OLD = Statement(f"DELETE FROM {SESSIONS} WHERE ends <= :now")
_OF_TOKEN = Statement(f"SELECT hash FROM {SESSIONS} WHERE token = :token ORDER BY begun, hash")


@dataclass(frozen=True)
class TokenRecord:
    """What is known of a token: everything but the token.

    Attributes:
        id: Its public identity.
        name: Whose it is: the actor of events, and the analyst of charges.
        role: What they may do.
        made: When it was made.
        made_by: By whom.
        expires: When it ends by itself; None for never.
        revoked: When it was revoked; None if it was not.
        revoked_by: By whom.
        used: When it was last used, to a minute; None if never.
    """

    id: str
    name: str
    role: Role
    made: datetime
    made_by: str
    expires: datetime | None = None
    revoked: datetime | None = None
    revoked_by: str | None = None
    used: datetime | None = None

    def live(self, now: datetime) -> bool:
        """Whether it can be used."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def document(self, now: datetime) -> dict[str, Any]:
        """What is known of it and whether it can be used, as JSON: never the token."""
        ended = "revoked" if self.revoked is not None else "expired"
        times = {name: getattr(self, name) for name in _TIMES}
        return {
            "id": self.id,
            "name": self.name,
            "role": self.role,
            "state": "live" if self.live(now) else ended,
            "made_by": self.made_by,
            "revoked_by": self.revoked_by,
            **{name: None if at is None else at.isoformat() for name, at in times.items()},
        }


@dataclass(frozen=True)
class NewToken:
    """A token that was just made. The secret is shown once, and is stored nowhere."""

    secret: str
    record: TokenRecord

    def __repr__(self) -> str:
        """Without the secret: it must not get into a log."""
        return f"NewToken(record={self.record!r})"


def check_token_name(name: object) -> None:
    """Refuse a name that people could not tell from another, or that no header can carry.

    Tokens that have such a name, from before it was refused, can be used and revoked.
    """
    if (
        not isinstance(name, str)
        or not 0 < len(name) <= MAX_NAME_LENGTH
        or name != name.strip()
        or not name.isprintable()
    ):
        raise InvalidToken(
            "name",
            given=f"is {name!r:.80}",
            needed=f"be 1 to {MAX_NAME_LENGTH} printable letters, without spaces around them",
            reason="name",
        )
    if not is_unmistakable(name):
        raise InvalidToken(
            "name",
            given=f"is {name!a:.80}, which looks like another name",
            needed="have letters of one script, in their usual form, and signs of ASCII",
            reason="look-alike",
        )


def _refuse_double(new: TokenRecord, live: list[TokenRecord]) -> None:
    for known in live:
        if known.name != new.name:
            raise InvalidToken(
                "name",
                given=f"is {new.name!r:.80} and {known.name!r:.80} has a token",
                needed="be spelt the same way, or be another name",
                reason="spelling",
            )
        if known.role != new.role:
            raise InvalidToken(
                "role",
                given=f"is {new.role} and {new.name!r:.80} has a token as {known.role}",
                needed=f"be {known.role}, or revoke that token first ({known.id}): who asks must"
                " not decide",
                reason="two roles",
            )


def _values(record: TokenRecord) -> dict[str, Any]:
    times = {name: getattr(record, name) for name in _TIMES}
    stamps = {name: None if at is None else stamp(at) for name, at in times.items()}
    return {**vars(record), **stamps, "folded": folded(record.name)}


def token_record(row: Any) -> TokenRecord:
    """The token that a row describes."""
    values = {name: getattr(row, name) for name in _COLUMNS}
    return TokenRecord(**values | {name: moment_if_any(values[name]) for name in _TIMES})


@dataclass(frozen=True)
class BrowserSession:
    """A signed-in browser.

    Attributes:
        secret: What is in the cookie.
        token: The token that it was begun with.
        begun: When.
        ends: When it ends by itself.
    """

    secret: str
    token: TokenRecord
    begun: datetime
    ends: datetime

    def __repr__(self) -> str:
        """Without the secret: it must not get into a log."""
        return f"BrowserSession(token={self.token!r}, ends={self.ends!r})"

    @property
    def csrf(self) -> str:
        """What forms of this session carry: it follows from the secret, and not the reverse."""
        digest = hmac.digest(self.secret.encode(), b"takifugu forms", hashlib.sha256)
        return urlsafe_b64encode(digest).decode().rstrip("=")


class AccessTable(StateStore):
    """The tokens of a server, and the browser sessions that they began."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._noted: dict[str, datetime] = {}

    def create_token(
        self,
        name: str,
        role: Role,
        expires: datetime | None,
        by: str,
        *,
        before: Callable[[TokenRecord], object] | None = None,
    ) -> NewToken:
        """Make a token.

        One name has one role among the tokens that can be used, in one spelling: an analyst who
        could also call as an owner would approve what they ask for.

        Args:
            name: Whose it is.
            role: What they may do.
            expires: When it ends by itself; None for never.
            by: Who makes it.
            before: Called with the record before the token can be used; if it raises, there is no
                token. A token then never works without the ledger's event of it.
        """
        check_token_name(name)
        check_name(by, "by")
        if role not in ROLES:
            raise InvalidToken(
                "role", given=f"is {role!r:.80}", needed=one_of(ROLES, role), reason="role"
            )
        now = self.now()
        if expires is not None and expires.tzinfo is None:
            raise InvalidToken(
                "expires", given="has no time zone", needed="have one", reason="expires"
            )
        if expires is not None and not now < expires:
            raise InvalidToken(
                "expires",
                given=f"is {expires:%Y-%m-%d %H:%M} UTC, which has passed",
                needed="be in the future",
                reason="expires",
            )
        secret = PREFIX + secrets.token_urlsafe(32)
        record = TokenRecord(secrets.token_hex(8), name, role, now, by, expires)
        with self._alone() as connection:  # two at once must not have two roles
            rows = _SPELT.all(connection, {"folded": folded(name)})
            _refuse_double(record, [known for known in map(token_record, rows) if known.live(now)])
            _ADD.run(connection, _values(record) | {"hash": sha256(secret)})
            if before is not None:
                before(record)
        return NewToken(secret, record)

    def token_of(self, secret: str) -> TokenRecord | None:
        """The token that was sent; None if it is unknown, has ended or was revoked."""
        if not secret.startswith(PREFIX) or len(secret) > MAX_SECRET_LENGTH or not secret.isascii():
            return None
        sent = sha256(secret)
        row = self._store.one(_BY_HASH, {"hash": sent})
        if row is None or not hmac.compare_digest(row.hash, sent):
            return None
        record = token_record(row)
        return record if record.live(self.now()) else None

    def token(self, identity: str) -> TokenRecord | None:
        """The token of this public identity, whether it can be used or not."""
        with self._store.unguarded() as connection:
            row = _BY_ID.one(connection, {"id": identity}) if askable(identity) else None
        return None if row is None else token_record(row)

    def _live(self, connection: Connection, identity: str) -> TokenRecord | None:
        """The token as it is now; None if it cannot be used."""
        row = _BY_ID.one(connection, {"id": identity})
        record = None if row is None else token_record(row)
        return record if record is not None and record.live(self.now()) else None

    def tokens(self) -> list[TokenRecord]:
        """Every token that was ever made, the oldest first."""
        with self._store.unguarded() as connection:
            return [token_record(row) for row in _ALL.all(connection, {})]

    def revoke_token(self, identity: str, by: str, *, at: datetime | None = None) -> TokenRecord:
        """End a token, and the browser sessions that it began, at once.

        A token that was revoked before stays as it was.

        Args:
            identity: The token.
            by: Who revokes it.
            at: When it was revoked, if that was before now.
        """
        check_name(by, "by")
        with self._store.writing() as connection:
            row = None
            if askable(identity):
                values = {"id": identity, "at": stamp(at or self.now()), "who": by}
                _REVOKE.run(connection, values)
                _END_SESSIONS.run(connection, {"id": identity})
                row = _BY_ID.one(connection, {"id": identity})
            if row is None:
                raise StateConflict(
                    f"there is no token {identity!r:.80}; `takifugu token list` has them",
                    field="token",
                    reason="unknown",
                )
            return token_record(row)

    def use_is_due(self, record: TokenRecord) -> bool:
        """Whether the last use of a token is to be written now: once a minute is enough."""
        last_use = self._noted.get(record.id, record.used)
        return last_use is None or self.now() - last_use >= USE_INTERVAL

    def note_use(self, record: TokenRecord) -> None:
        """Write that a token is used."""
        now = self.now()
        self._noted[record.id] = now
        with self._store.writing() as connection:
            _USED.run(connection, {"id": record.id, "at": stamp(now)})

    def begin_session(self, record: TokenRecord) -> BrowserSession:
        """A new session for the holder of a token, whatever the browser had before."""
        secret = secrets.token_urlsafe(32)
        now = self.now()
        ends = (
            now + SESSION_LENGTH
            if record.expires is None
            else min(now + SESSION_LENGTH, record.expires)
        )
        values = {"hash": sha256(secret), "token": record.id}
        with self._store.writing() as connection:
            present = self._live(connection, record.id)
            if present is None:  # revoked since it was looked up
                raise StateConflict(
                    "the token has ended; ask an owner for another", field="token", reason="unknown"
                )
            _END_OLD.run(connection, {"now": stamp(now)})
            known = _OF_TOKEN.all(connection, {"token": record.id})
            for row in known[: max(0, len(known) - MAX_SESSIONS + 1)]:
                _END.run(connection, {"hash": row.hash})
            _ADD_SESSION.run(connection, values | {"begun": stamp(now), "ends": stamp(ends)})
        return BrowserSession(secret, present, now, ends)

    def session_of(self, secret: str) -> BrowserSession | None:
        """The session of a cookie; None if it is unknown, has ended, or its token has."""
        if not secret or len(secret) > MAX_SECRET_LENGTH or not secret.isascii():
            return None
        sent = sha256(secret)
        row: Any = self._store.one(_FIND, {"hash": sent})
        if row is None or not hmac.compare_digest(row.session_hash, sent):
            return None
        token, now = token_record(row), self.now()
        begun, ends = moment_of(row.begun), moment_of(row.ends)
        if not (begun <= now < ends and token.live(now)):
            return None
        return BrowserSession(secret, token, begun, ends)

    def end_session(self, secret: str) -> None:
        """Sign out: the cookie stands for nothing from now on."""
        with self._store.writing() as connection:
            _END.run(connection, {"hash": sha256(secret)})
