"""What a server remembers beside the ledger: tokens, browser sessions, approvals, results.

A file ``takifugu.server`` beside the project file, readable by its owner alone; or, where the
ledger is in PostgreSQL, tables beside the ledger's. Any number of processes and threads may use it
at once: what one of them revokes, none of the others accepts.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from takifugu.errors import InvalidFile
from takifugu.ledger.storage.addresses import address_of
from takifugu.ledger.storage.store import WAIT, Store
from takifugu.server.state.access_tokens import NewToken, TokenRecord
from takifugu.server.state.approval_requests import Approval, ApprovalRequest, ApprovalTable
from takifugu.server.state.browser_sessions import BrowserSession, SessionTable
from takifugu.server.state.kept_results import KeptResult, ResultTable
from takifugu.server.state.state_tables import prepare_tables
from takifugu.server.state.witness_table import WitnessTable

if TYPE_CHECKING:
    from takifugu.project.project import Project

__all__ = [
    "Approval",
    "ApprovalRequest",
    "BrowserSession",
    "KeptResult",
    "NewToken",
    "ServerState",
    "TokenRecord",
    "open_state",
    "state_at",
]

STATE = "takifugu.server"


class ServerState(SessionTable, ApprovalTable, ResultTable, WitnessTable):
    """The state of a server. Every method is one transaction."""


def _clock() -> datetime:
    return datetime.now(UTC)


def open_state(
    project: "Project", *, create: bool = True, clock: Callable[[], datetime] = _clock
) -> ServerState:
    """The state of the server of a project, made where there is none unless not to ``create``."""
    place = project.ledger_place
    if address_of(place).sqlite:
        place = project.folder / STATE
    return state_at(place, create=create, clock=clock)


def state_at(
    place: str | Path, *, create: bool = True, clock: Callable[[], datetime] = _clock
) -> ServerState:
    """The state in a file, or in the tables of a PostgreSQL database."""
    store = Store(place, read_only=False, wait=WAIT)
    try:
        if not prepare_tables(store, create=create):
            raise InvalidFile(
                "server",
                given=f"has no state at {store.name}",
                needed="have one: make a token with `takifugu token create`",
                reason="missing",
            )
    except BaseException:
        store.close()
        raise
    return ServerState(store, clock)
