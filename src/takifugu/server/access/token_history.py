"""Tokens compared with the ledger, which has an event for each that was made or revoked.

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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from takifugu.errors import LedgerError, TakifuguError
from takifugu.server.state.access_tokens import TokenRecord
from takifugu.server.state.server_state import ServerState

if TYPE_CHECKING:
    from takifugu.ledger import Event, Ledger
    from takifugu.project.project import Project

log = logging.getLogger("takifugu.server.access")
INTERVAL = 30.0  # seconds between two comparisons of a running server
SERVER = "takifugu serve"  # who ends a token that nobody revoked
WORDS = {
    "revoked": "was revoked, as the ledger has it",
    "unknown": "is not in the ledger: nobody is known to have made it",
    "altered": "was made for another holder, role or time, as the ledger has it",
}


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
        return f"token {self.record.id} of {self.record.name} {WORDS[self.reason]}"


def doubtful_tokens(state: ServerState, ledger: "Ledger") -> list[DoubtfulToken]:
    """The tokens that can be used although the ledger does not have them so."""
    now = state.now()
    live = [record for record in state.tokens() if record.live(now)]
    made, revoked = _history(ledger)  # read after the state: an event comes before its token
    found = []
    for record in live:
        if (end := revoked.get(record.id)) is not None:
            by = str(end.body.get("actor") or SERVER)
            found.append(DoubtfulToken(record, "revoked", by, end.at))
        elif (event := made.get(record.id)) is None:
            found.append(DoubtfulToken(record, "unknown"))
        elif not _as_made(record, event):
            found.append(DoubtfulToken(record, "altered"))
    return found


def end_doubtful(project: "Project", state: ServerState) -> list[DoubtfulToken]:
    """End every doubtful token."""
    with _reading(project) as ledger:
        return _ended(state, ledger)


def _ended(state: ServerState, ledger: "Ledger") -> list[DoubtfulToken]:
    found = doubtful_tokens(state, ledger)
    for one in found:
        state.revoke_token(one.record.id, one.by, at=one.at)
        log.error("%s; it is refused. Was the server's state put back?", one.words)
    return found


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
        found = _ended(state, ledger)
        ended = [record for record in state.tokens() if record.revoked is not None]
        made, revoked = _history(ledger)
    unwritten = [one for one in ended if one.id in made and one.id not in revoked]
    if unwritten:
        try:
            _write(project, unwritten)
        except TakifuguError as error:  # they are ended here; the next start tries again
            log.error("revocations were not written to the ledger: %s", type(error).__name__)
    return found


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
            place = project.ledger_place
            alone = open_ledger(place, create=False, read_only=True, witness=False)
            ledger = opened.enter_context(alone)
            if ledger.origin.hash != project.policy.ledger_id:
                raise
        yield ledger


def _write(project: "Project", ended: list[TokenRecord]) -> None:
    with project.ledger() as ledger:
        for one in ended:
            ledger.acting(one.revoked_by or SERVER).record_access(
                "revoked", name=one.name, role=one.role, token=one.id, expires=one.expires
            )


def _history(ledger: "Ledger") -> "tuple[dict[str, Event], dict[str, Event]]":
    """By token, the event that it was made, and that it was revoked."""
    made: dict[str, Event] = {}
    revoked: dict[str, Event] = {}
    for event in _access(ledger):
        kept = made if event.body["how"] == "made" else revoked
        kept.setdefault(event.body["token"], event)
    return made, revoked


def _access(ledger: "Ledger") -> "Iterator[Event]":
    last = 0
    while page := ledger.events(after=last, limit=1_000, kind="access"):
        yield from page
        last = page[-1].seq


def _as_made(record: TokenRecord, event: "Event") -> bool:
    body = event.body
    ends = None if body["expires"] is None else datetime.fromisoformat(body["expires"])
    return (record.name, record.role, record.expires) == (body["name"], body["role"], ends)
