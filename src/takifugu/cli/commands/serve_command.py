"""``takifugu serve``: the project for owners, analysts and auditors, over HTTP."""

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from takifugu.cli.shared_options import (
    AsJson,
    InProject,
    InvalidOption,
    StrictTyper,
    aligned,
    echo,
    print_json,
    show_result,
    the_project,
)
from takifugu.cli.shell_completion import FILE, nearest_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from takifugu.project.project import Project
    from takifugu.server.state.server_state import ServerState, TokenRecord


def run_serve(
    host: Annotated[
        str | None, typer.Option(help="The address to listen on; by default 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="The port, by default 8461; 0 for one that is free.")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="The TLS certificate with its chain, as PEM.")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="Its private key, as PEM.")] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            help="An address or network of a proxy in front, whose X-Forwarded headers are"
            " trusted; may be repeated."
        ),
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(help="The address that browsers see, such as https://stats.example.org."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="The most worker processes; by default 2.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Tell everything that is misconfigured; serve nothing.")
    ] = False,
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Serve the project: owners decide, analysts ask, auditors check.

    Options stand in the section [server] of the project file too; those of the command come first.
    The address is printed once requests are answered; logs go to stderr, a JSON object each. Tokens
    are made by `takifugu token create`.

    SIGTERM or Ctrl-C stops it gracefully: running requests end first. A second one stops it
    immediately.

    With --check the status is 1 if anything is wrong; a warning may be meant so.

    JSON: url, project, pid; with --check: ok, project, checks (name, level: ok, warning or wrong,
    found, advice).
    """
    options = {
        "host": host,
        "port": port,
        "certificate": certificate,
        "key": key,
        "proxies": None if not proxy else tuple(proxy),
        "origin": origin,
        "workers": workers,
    }
    if check:
        _check(folder, options, as_json=as_json)
        return
    project = the_project(folder)

    from takifugu.server.settings import server_settings

    settings = server_settings(project, options)

    from takifugu.server.operation.server_process import run_server

    def announce(url: str) -> None:
        import os

        facts = {"url": url, "project": str(project.file), "pid": os.getpid()}
        echo(json.dumps(facts, ensure_ascii=False) if as_json else url)

    run_server(project.file, settings, announce=announce)


def _check(folder: Path | None, options: dict[str, Any], *, as_json: bool) -> None:
    """Print what is misconfigured; an exit status of 1 if something is wrong."""
    from takifugu.server.operation.preflight import check_server

    folder_or_file = folder or nearest_project(Path())
    if folder_or_file is None:
        folder_or_file = the_project(folder).file  # which says what is missing
    file = folder_or_file / FILE if folder_or_file.is_dir() else folder_or_file
    findings = check_server(file, options)
    well = all(one.level != "wrong" for one in findings)
    if as_json:
        checks = [vars(one) for one in findings]
        print_json({"ok": well, "project": str(file), "checks": checks})
    else:
        for one in findings:
            echo(f"{one.level:<8} {one.name:<9} {one.found}")
            if one.advice:
                echo(f"{'':<18} → {one.advice}")
    if not well:
        raise typer.Exit(1)


witness_app = StrictTyper(
    no_args_is_help=True,
    help="Heads of others' ledgers that `takifugu serve` remembers: list them, forget one.",
)


@witness_app.command("list")
def run_witness_list(folder: InProject = None, as_json: AsJson = False) -> None:
    """List the ledgers whose last event is recorded here, and those that were forgotten.

    JSON: heads (ledger, seq, hash, owner, at), forgotten (ledger, seq, hash, owner, by, at).
    """
    with _server_state(folder) as state:
        heads, gone = state.witnessed_heads(), state.forgotten_heads()
    if as_json:
        forgotten = [_head_facts(one) | {"by": one.by} for one in gone]
        print_json({"heads": [_head_facts(one) for one in heads], "forgotten": forgotten})
        return
    for one in heads:
        echo(f"{one.ledger}  event {one.event.seq}, recorded by {one.owner} {_when(one.at)}")
    for lost in gone:
        echo(f"{lost.ledger}  event {lost.event.seq}, forgotten by {lost.by} {_when(lost.at)}")
    if not heads and not gone:
        echo("no head of another ledger is recorded here")


@witness_app.command("forget")
def run_witness_forget(
    ledger: Annotated[
        str, typer.Argument(metavar="LEDGER", help="The ledger, as `takifugu witness list` has it.")
    ],
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Forget the last event of LEDGER: its owner has accepted that history is lost.

    From then on an older copy of it is no longer refused by what was recorded, so make sure that
    its owner asks for this, and why.

    JSON: ledger, seq, hash, owner, by, at.
    """
    from takifugu.ledger.lifecycle import current_actor

    with _server_state(folder) as state:
        gone = state.forget_head(ledger, current_actor())
    words = f"forgot event {gone.event.seq} of ledger {gone.ledger}"
    show_result(_head_facts(gone) | {"by": gone.by}, words, as_json=as_json, err=True)


@contextmanager
def _server_state(folder: "Path | None") -> "Iterator[ServerState]":
    from takifugu.server.state.server_state import open_state

    with open_state(the_project(folder), create=False) as state:
        yield state


def _head_facts(head: Any) -> dict[str, Any]:
    return {
        "ledger": head.ledger,
        "seq": head.event.seq,
        "hash": head.event.hash,
        "owner": head.owner,
        "at": head.at.isoformat(),
    }


def _when(at: Any) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


token_app = StrictTyper(
    no_args_is_help=True, help="Tokens for `takifugu serve`: make, list and revoke them."
)
LISTED_FIELDS = ("id", "name", "role")  # of a list, in columns


@token_app.command("create")
def run_token_create(
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


@token_app.command("list")
def run_token_list(
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
    lines = [
        [
            *(getattr(record, key) for key in LISTED_FIELDS),
            f"{_until(record)}, "
            + ("never used" if record.used is None else f"last used {_time(record.used)}"),
        ]
        for record in rows
    ]
    for line in aligned(lines):
        echo(line)


@token_app.command("revoke")
def run_token_revoke(
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
        done = [end_token(project, state, each, by=current_actor()) for each in which]
        now = state.now()
    facts = {"revoked": [record.document(now) for record in done]}
    words = [f"token {each.id} for {each.name}, {each.role}, is revoked" for each in done]
    show_result(facts, *words, as_json=as_json)


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
