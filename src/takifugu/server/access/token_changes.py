"""Making and revoking tokens, by a command or a page: each change is an event of the ledger."""

from datetime import datetime
from typing import TYPE_CHECKING

from takifugu.server.roles import Role
from takifugu.server.state.access_tokens import PREFIX, NewToken, TokenRecord
from takifugu.server.state.server_state import ServerState
from takifugu.server.state.state_errors import StateConflict

if TYPE_CHECKING:
    from takifugu.project.project import Project


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
            ledger.acting(by).record_access(
                "made", name=record.name, role=record.role, token=record.id, expires=record.expires
            )

    return state.create_token(name, role, expires, by, before=announce)


def end_token(project: "Project", state: ServerState, identity: str, *, by: str) -> TokenRecord:
    """Revoke a token, and write down that it was: first here, so that it ends in any case."""
    known = state.token(identity)
    record = state.revoke_token(identity, by)
    if known is not None and known.revoked is None:
        with project.ledger() as ledger:
            ledger.acting(by).record_access(
                *("revoked",),
                name=record.name,
                role=record.role,
                token=record.id,
                expires=record.expires,
            )
    return record


def tokens_named(state: ServerState, name: str) -> list[TokenRecord]:
    """The tokens of a holder that can be used; an error if there are none."""
    now = state.now()
    found = [record for record in state.tokens() if record.name == name and record.live(now)]
    if not found:
        raise StateConflict(
            f"{name!r:.80} has no token that can be used; `takifugu token list` has them",
            field="name",
            reason="unknown",
        )
    return found


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
