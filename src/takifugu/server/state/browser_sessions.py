"""Browser sessions: what a cookie stands for, from sign-in to sign-out.

A session is 32 random bytes, made anew at every sign-in, so that one that somebody else put into a
browser is worth nothing. Its SHA-256 is stored, and a session ends with its token.
"""

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from takifugu.ledger.canonical_text import sha256
from takifugu.ledger.storage.statement import Statement, insert
from takifugu.server.state.access_tokens import (
    LONGEST_SECRET,
    TokenRecord,
    TokenTable,
    token_record,
)
from takifugu.server.state.state_errors import StateConflict
from takifugu.server.state.state_store import moment_of, stamp
from takifugu.server.state.state_tables import SESSIONS, TOKENS

LONGEST = timedelta(hours=12)
MOST = 20  # sessions of one token; the one that began first ends for the next


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
        made = hmac.digest(self.secret.encode(), b"takifugu forms", hashlib.sha256)
        return urlsafe_b64encode(made).decode().rstrip("=")


_ADD = insert(SESSIONS, "hash", "token", "begun", "ends")
_FIND = Statement(
    "SELECT s.hash AS session_hash, s.begun, s.ends, t.id, t.name, t.role, t.made, t.made_by,"
    f" t.expires, t.revoked, t.revoked_by, t.used FROM {SESSIONS} s JOIN {TOKENS} t"
    " ON t.id = s.token WHERE s.hash = :hash"
)
_END = Statement(f"DELETE FROM {SESSIONS} WHERE hash = :hash")
_END_OLD = Statement(f"DELETE FROM {SESSIONS} WHERE ends <= :now")
_OF_TOKEN = Statement(f"SELECT hash FROM {SESSIONS} WHERE token = :token ORDER BY begun, hash")


class SessionTable(TokenTable):
    """The browser sessions of a server."""

    def begin_session(self, record: TokenRecord) -> BrowserSession:
        """A new session for the holder of a token, whatever the browser had before."""
        secret = secrets.token_urlsafe(32)
        now = self.now()
        ends = now + LONGEST if record.expires is None else min(now + LONGEST, record.expires)
        values = {"hash": sha256(secret), "token": record.id}
        with self._store.writing() as connection:
            present = self._live(connection, record.id)
            if present is None:  # revoked since it was looked up
                raise StateConflict(
                    "the token has ended; ask an owner for another", field="token", reason="unknown"
                )
            _END_OLD.run(connection, {"now": stamp(now)})
            known = _OF_TOKEN.all(connection, {"token": record.id})
            for row in known[: max(0, len(known) - MOST + 1)]:
                _END.run(connection, {"hash": row.hash})
            _ADD.run(connection, values | {"begun": stamp(now), "ends": stamp(ends)})
        return BrowserSession(secret, present, now, ends)

    def session_of(self, secret: str) -> BrowserSession | None:
        """The session of a cookie; None if it is unknown, has ended, or its token has."""
        if not secret or len(secret) > LONGEST_SECRET or not secret.isascii():
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
