"""``takifugu token``: who may call a server, as what, until when."""

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from takifugu.cli.shared_options import (
    AsJson,
    InProject,
    InvalidOption,
    StrictTyper,
    echo,
    print_json,
    the_project,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from takifugu.project.project import Project
    from takifugu.server.state.server_state import ServerState, TokenRecord

app = StrictTyper(
    no_args_is_help=True, help="Tokens for `takifugu serve`: make, list and revoke them."
)
LISTED_FIELDS = ("id", "name", "role")  # of a list, in columns


@app.command("create")
def run_create(
    role: Annotated[
        Literal["owner", "analyst", "auditor", "witness"],
        typer.Option(
            help="What its holder may do: decide (owner), plan and release (analyst), read the"
            " ledger, verify and report (auditor), or record the head of another server's ledger"
            " (witness)."
        ),
    ],
    name: Annotated[
        str,
        typer.Option(
            help="Whose it is: the analyst of charges, and the actor of events. One name has one"
            " role."
        ),
    ],
    expires: Annotated[
        str,
        typer.Option(
            help="When it ends: 90d, 12h, 2027-06-30 (the day it no longer works, in UTC), or"
            " never."
        ),
    ] = "90d",
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Make a token for the server of a project, and print it: it is shown this once.

    The token is on standard output and the words about it on standard error. Only its hash is
    stored.

    JSON: secret (the token), id (what `token revoke` takes), name, role, made, made_by, expires
    (null for never).
    """
    from datetime import UTC, datetime

    from takifugu.ledger.lifecycle import current_actor
    from takifugu.server.access.tokens import expiry_of, make_token
    from takifugu.server.state.access_tokens import check_token_name
    from takifugu.server.state.server_state import open_state

    check_token_name(name)
    ends = expiry_of(expires, datetime.now(UTC))  # refused before anything is made
    project = the_project(folder)
    with open_state(project) as state:
        token = make_token(project, state, name, role, ends, by=current_actor())
    record = token.record
    if as_json:
        shown_keys = ("id", "name", "role", "made", "made_by", "expires")
        facts = record.document(record.made)
        print_json({"secret": token.secret} | {key: facts[key] for key in shown_keys})
        return
    echo(token.secret)
    echo(
        f"token {record.id} for {record.name}, {record.role}, {_until(record)}; it is shown this"
        " once, and only its hash is stored",
        err=True,
    )


@app.command("list")
def run_list(
    every: Annotated[
        bool, typer.Option("--all", help="Also tokens that have ended or were revoked.")
    ] = False,
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """List tokens: whose they are, until when, and when they were last used.

    JSON: tokens, a list of objects with id, name, role, state (live, expired or revoked), made,
    made_by, expires, revoked, revoked_by, used (to a minute; null if never).
    """
    from datetime import UTC, datetime

    project = the_project(folder)
    with _stored(project) as state:
        tokens = [] if state is None else state.tokens()
        now = datetime.now(UTC) if state is None else state.now()
    rows = [record for record in tokens if every or record.live(now)]
    if as_json:
        print_json({"tokens": [record.document(now) for record in rows]})
        return
    if not rows:
        ended = " (some have ended: --all)" if tokens else ""
        echo(f"no tokens{ended}; `takifugu token create` makes one")
    widths = [
        max((len(getattr(record, key)) for record in rows), default=0) for key in LISTED_FIELDS
    ]
    for record in rows:
        who = "  ".join(
            f"{getattr(record, key):<{width}}"
            for key, width in zip(LISTED_FIELDS, widths, strict=True)
        )
        used = "never used" if record.used is None else f"last used {_time(record.used)}"
        echo(f"{who}  {_until(record)}, {used}")


@app.command("revoke")
def run_revoke(
    token: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]", help="The token, as `token list` names it (or the token itself)."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Every token of this holder instead.")] = None,
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token: from now on it is refused, and so are browsers that signed in with it.

    JSON: revoked, a list of objects with the keys of `token list`.
    """
    from takifugu.ledger.lifecycle import current_actor
    from takifugu.server.access.tokens import end_token, identity_of, tokens_named
    from takifugu.server.state.server_state import open_state

    if (token is None) == (name is None):
        given = "is missing" if token is None else "is given, and so is --name"
        raise InvalidOption("ID", given=given, needed="name a token, or use --name for all of one")
    project = the_project(folder)
    with open_state(project, create=False) as state:
        if name is not None:
            which = [record.id for record in tokens_named(state, name)]
        else:
            which = [identity_of(state, token or "")]
        done = [end_token(project, state, one, by=current_actor()) for one in which]
        now = state.now()
    if as_json:
        print_json({"revoked": [record.document(now) for record in done]})
        return
    for record in done:
        echo(f"token {record.id} for {record.name}, {record.role}, is revoked")


@contextmanager
def _stored(project: "Project") -> "Iterator[ServerState | None]":
    """The state of the server; None if there is none yet: a list makes nothing."""
    from takifugu.errors import InvalidFile
    from takifugu.server.state.server_state import open_state

    try:
        state = open_state(project, create=False)
    except InvalidFile as error:
        if error.reason != "missing":
            raise
        yield None
        return
    with state:
        yield state


def _until(record: "TokenRecord") -> str:
    if record.revoked is not None:
        return f"revoked {_time(record.revoked)} by {record.revoked_by}"
    return "never expires" if record.expires is None else f"until {_time(record.expires)}"


def _time(moment: "datetime") -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
