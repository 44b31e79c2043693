"""``takifugu init``: make a project."""

from pathlib import Path
from typing import Annotated

import typer

from takifugu.cli.shared_options import AsJson, echo, print_json


def run_init(
    folder: Annotated[Path, typer.Argument(help="The folder; it is made if needed.")] = Path(),
    ledger: Annotated[
        str,
        typer.Option(
            help="Where the ledger is: a file, relative to FOLDER, or a postgresql:// address"
            " without a password."
        ),
    ] = "takifugu.ledger",
    as_json: AsJson = False,
) -> None:
    """Make a project in FOLDER: the file takifugu.toml, to be edited, and a ledger.

    A ledger that exists is used as it is.

    JSON: project, ledger, ledger_id (its first event; the project accepts no other ledger).
    """
    from takifugu.project.project import init_project

    project = init_project(folder, ledger=ledger)
    if as_json:
        policy = project.policy
        facts = {"project": str(project.file), "ledger": policy.ledger}
        print_json(facts | {"ledger_id": policy.ledger_id})
        return
    echo(f"made {project.file}, with the ledger {project.policy.ledger}")
    echo("next: takifugu dataset add NAME DECLARATION.toml")
