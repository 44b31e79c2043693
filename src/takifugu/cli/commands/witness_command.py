"""``takifugu witness``: the heads of others' ledgers that the server of this project remembers."""

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.shared_options import AsJson, InProject, StrictTyper, echo, print_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from takifugu.server.state.server_state import ServerState

app = StrictTyper(
    no_args_is_help=True,
    help="Heads of others' ledgers that `takifugu serve` remembers: list them, forget one.",
)


@app.command("list")
def run_list(folder: InProject = None, as_json: AsJson = False) -> None:
    """List the ledgers whose last event is recorded here, and those that were forgotten.

    JSON: heads (ledger, seq, hash, owner, at), forgotten (ledger, seq, hash, owner, by, at).
    """
    with _state(folder) as state:
        heads, gone = state.witnessed_heads(), state.forgotten_heads()
    if as_json:
        forgotten = [_facts(one) | {"by": one.by} for one in gone]
        print_json({"heads": [_facts(one) for one in heads], "forgotten": forgotten})
        return
    for one in heads:
        echo(f"{one.ledger}  event {one.event.seq}, recorded by {one.owner} {_when(one.at)}")
    for lost in gone:
        echo(f"{lost.ledger}  event {lost.event.seq}, forgotten by {lost.by} {_when(lost.at)}")
    if not heads and not gone:
        echo("no head of another ledger is recorded here")


@app.command("forget")
def run_forget(
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

    with _state(folder) as state:
        gone = state.forget_head(ledger, current_actor())
    if as_json:
        print_json(_facts(gone) | {"by": gone.by})
    else:
        echo(f"forgot event {gone.event.seq} of ledger {gone.ledger}", err=True)


@contextmanager
def _state(folder: "Path | None") -> "Iterator[ServerState]":
    from takifugu.cli.shared_options import the_project
    from takifugu.server.state.server_state import open_state

    with open_state(the_project(folder), create=False) as state:
        yield state


def _facts(head: Any) -> dict[str, Any]:
    return {
        "ledger": head.ledger,
        "seq": head.event.seq,
        "hash": head.event.hash,
        "owner": head.owner,
        "at": head.at.isoformat(),
    }


def _when(at: Any) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
