"""Tokens: when they end, how they are made and revoked, and how the ledger vouches for them.

The file of tokens is not part of a chain of hashes, and nothing witnesses it: an old copy of it may
be put back, in which a token that was revoked since is as good as new, or somebody who can write to
it may add one. The ledger cannot be put back or changed unseen. So a server trusts its tokens
only as far as the ledger has them: when it starts, and every `INTERVAL` seconds after that, a token
is ended that the ledger says was revoked, that it never saw made, or that it saw made for another
holder, another role or a shorter time. `make_token` writes the event before the token works, so
that no honest token is without one, unless the events themselves are lost (`takifugu ledger
accept-loss`): then owners make new ones.

What was revoked while the ledger could not be written is written to it now, so that the next copy
that is put back does not revive it either.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from takifugu.errors import LedgerError, TakifuguError
from takifugu.server.access_rules import Role
from takifugu.server.state.access_tokens import PREFIX, NewToken, TokenRecord
from takifugu.server.state.server_state import ServerState
from takifugu.server.state.state_store import InvalidToken, StateConflict

if TYPE_CHECKING:
    from takifugu.ledger import Event, Ledger
    from takifugu.project.project import Project

DEFAULT_EXPIRY = "90d"
EXPIRY_NEEDED = "be like 90d, 12h, 2027-06-30 (the day it no longer works, in UTC), or never"
MAX_EXPIRY_DAYS = 36_500
_SPAN = re.compile(r"([1-9][0-9]{0,6})([dh])")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
log = logging.getLogger("takifugu.server.access")
INTERVAL = 30.0  # seconds between two comparisons of a running server
SERVER = "takifugu serve"  # who ends a token that nobody revoked
DOUBTS = {
    "revoked": "was revoked, as the ledger has it",
    "unknown": "is not in the ledger: nobody is known to have made it",
    "altered": "was made for another holder, role or time, as the ledger has it",
}


def expiry_of(text: str, now: datetime) -> datetime | None:
    """When a token ends that is made now; None for never.

    A day is its beginning in UTC: the token works until the day before. A time needs its zone.

    >>> expiry_of("12h", datetime(2027, 1, 1, tzinfo=UTC)).isoformat()
    '2027-01-01T12:00:00+00:00'
    """
    if text == "never":
        return None
    if span := _SPAN.fullmatch(text):
        hours = int(span[1]) * (24 if span[2] == "d" else 1)
        if hours > 24 * MAX_EXPIRY_DAYS:
            raise _refused(f"is {text!r:.40}", f"be at most {MAX_EXPIRY_DAYS} days, or never")
        return now + timedelta(hours=hours)
    try:
        if _DAY.fullmatch(text):
            day = date.fromisoformat(text)
            ends = datetime(day.year, day.month, day.day, tzinfo=UTC)
        else:
            ends = datetime.fromisoformat(text)
    except ValueError:
        raise _refused(f"is {text!r:.40}", EXPIRY_NEEDED) from None
    if ends.tzinfo is None:
        raise _refused(f"is {text!r:.40}, a time without its zone", "end in +00:00 or another")
    try:
        ends = ends.astimezone(UTC)
    except OverflowError:
        raise _refused(f"is {text!r:.40}", EXPIRY_NEEDED) from None
    if ends <= now:
        raise _refused(f"is {text!r:.40}, which has passed", "be in the future")
    return ends


def _refused(given: str, needed: str) -> InvalidToken:
    return InvalidToken("expires", given=given, needed=needed, reason="expires")


def make_token(
    project: "Project",
    state: ServerState,
    name: str,
    role: Role,
    expires: datetime | None,
    *,
    by: str,
) -> NewToken:
    """Make a token, and write down that it was made: first there, so that none works unrecorded."""

    def announce(record: TokenRecord) -> None:
        with project.ledger() as ledger:
            _record(ledger, "made", record, by)

    return state.create_token(name, role, expires, by, before=announce)


def end_token(project: "Project", state: ServerState, identity: str, *, by: str) -> TokenRecord:
    """Revoke a token, and write down that it was: first here, so that it ends in any case."""
    known = state.token(identity)
    record = state.revoke_token(identity, by)
    if known is not None and known.revoked is None:
        with project.ledger() as ledger:
            _record(ledger, "revoked", record, by)
    return record


def _record(
    ledger: "Ledger", how: Literal["made", "revoked"], record: TokenRecord, by: str
) -> None:
    """Write the event of a token that was made or revoked."""
    ledger.acting(by).record_access(
        how, name=record.name, role=record.role, token=record.id, expires=record.expires
    )


def tokens_named(state: ServerState, name: str) -> list[TokenRecord]:
    """The tokens of a holder that can be used; an error if there are none."""
    now = state.now()
    records = [record for record in state.tokens() if record.name == name and record.live(now)]
    if not records:
        raise StateConflict(
            f"{name!r:.80} has no token that can be used; `takifugu token list` has them",
            field="name",
            reason="unknown",
        )
    return records


def identity_of(state: ServerState, given: str) -> str:
    """The public identity of a token: what was given, or, of the token itself, its own.

    Who finds a token lying about can revoke it without knowing whose it is.
    """
    if not given.startswith(PREFIX):
        return given
    record = state.token_of(given)
    if record is None:
        raise StateConflict(
            "this token is unknown, has ended or was revoked; nothing was changed",
            field="token",
            reason="unknown",
        )
    return record.id


@dataclass(frozen=True)
class DoubtfulToken:
    """A token that the server's state says can be used, and the ledger does not.

    Attributes:
        record: The token, as the state has it.
        reason: What the ledger has of it.
        by: Who revoked it, or that the server ends it.
        at: When it was revoked; None if it was not.
    """

    record: TokenRecord
    reason: Literal["revoked", "unknown", "altered"]
    by: str = SERVER
    at: datetime | None = None

    @property
    def words(self) -> str:
        """What is wrong with it."""
        return f"token {self.record.id} of {self.record.name} {DOUBTS[self.reason]}"


def doubtful_tokens(state: ServerState, ledger: "Ledger") -> list[DoubtfulToken]:
    """The tokens that can be used although the ledger does not have them so."""
    now = state.now()
    live = [record for record in state.tokens() if record.live(now)]
    made_events, revoked = _history(ledger)  # read after the state: an event comes before its token
    doubtful = []
    for record in live:
        if (end := revoked.get(record.id)) is not None:
            by = str(end.body.get("actor") or SERVER)
            doubtful.append(DoubtfulToken(record, "revoked", by, end.at))
        elif (event := made_events.get(record.id)) is None:
            doubtful.append(DoubtfulToken(record, "unknown"))
        elif not _as_made(record, event):
            doubtful.append(DoubtfulToken(record, "altered"))
    return doubtful


def end_doubtful(project: "Project", state: ServerState) -> list[DoubtfulToken]:
    """End every doubtful token."""
    with _reading(project) as ledger:
        return _ended(state, ledger)


def _ended(state: ServerState, ledger: "Ledger") -> list[DoubtfulToken]:
    doubtful = doubtful_tokens(state, ledger)
    for token in doubtful:
        state.revoke_token(token.record.id, token.by, at=token.at)
        log.error("%s; it is refused. Was the server's state put back?", token.words)
    return doubtful


async def watch_tokens(
    project: "Callable[[], Project]",
    state: ServerState,
    stop: asyncio.Event,
    interval: float = INTERVAL,
) -> None:
    """End doubtful tokens of a running server, time and again, until it stops.

    Revocations that the ledger lacks are left to `settle_tokens`: here somebody may be about to
    write one. A ledger that cannot be read ends no token; nothing is released without it either.
    """
    while not stop.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), interval)
            return
        try:
            await asyncio.to_thread(lambda: end_doubtful(project(), state))
        except (TakifuguError, OSError) as error:
            log.error("tokens were not compared with the ledger: %s", type(error).__name__)


def settle_tokens(project: "Project", state: ServerState) -> list[DoubtfulToken]:
    """End every doubtful token, and write revocations that the ledger lacks to it."""
    with _reading(project) as ledger:
        doubtful = _ended(state, ledger)
        ended = [record for record in state.tokens() if record.revoked is not None]
        made_events, revoked = _history(ledger)
    unwritten = [token for token in ended if token.id in made_events and token.id not in revoked]
    if unwritten:
        try:
            with project.ledger() as ledger:
                for token in unwritten:
                    _record(ledger, "revoked", token, token.revoked_by or SERVER)
        except TakifuguError as error:  # they are ended here; the next start tries again
            log.error("revocations were not written to the ledger: %s", type(error).__name__)
    return doubtful


@contextmanager
def _reading(project: "Project") -> "Iterator[Ledger]":
    """The ledger, compared with its witness if that can be reached.

    It may be another server that is starting too, and waits for this one: then the events that are
    there are read, since nothing can be charged before the witness is back.
    """
    from takifugu.ledger import open_ledger

    with ExitStack() as opened:
        try:
            ledger = opened.enter_context(project.ledger(read_only=True))
        except LedgerError as error:
            if error.reason != "witness":
                raise
            log.error("the witness cannot be reached; tokens are compared with the ledger alone")
            address = project.ledger_place
            alone = open_ledger(address, create=False, read_only=True, witness=False)
            ledger = opened.enter_context(alone)
            if ledger.origin.hash != project.policy.ledger_id:
                raise
        yield ledger


def _history(ledger: "Ledger") -> "tuple[dict[str, Event], dict[str, Event]]":
    """By token, the event that it was made, and that it was revoked."""
    made_events: dict[str, Event] = {}
    revoked: dict[str, Event] = {}
    last = 0
    while page := ledger.events(after=last, limit=1_000, kind="access"):
        last = page[-1].seq
        for event in page:
            events = made_events if event.body["how"] == "made" else revoked
            events.setdefault(event.body["token"], event)
    return made_events, revoked


def _as_made(record: TokenRecord, event: "Event") -> bool:
    body = event.body
    ends = None if body["expires"] is None else datetime.fromisoformat(body["expires"])
    return (record.name, record.role, record.expires) == (body["name"], body["role"], ends)
