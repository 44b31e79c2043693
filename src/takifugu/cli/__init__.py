"""The command line: parse, call, print. No arithmetic lives here.

Each command is a module of its own that imports what it needs when it is called, so that
``takifugu --help`` answers at once.
"""

import typer

from takifugu.cli import dataset, prior
from takifugu.cli.audit import run_audit
from takifugu.cli.check import run_check
from takifugu.cli.collapse import run_collapse
from takifugu.cli.curve import run_curve
from takifugu.cli.demo import run_demo
from takifugu.cli.ledger import app as ledger_app
from takifugu.cli.reproduce import run_reproduce
from takifugu.cli.translate import run_translate
from takifugu.errors import TakifuguError

app = typer.Typer(
    name="takifugu",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from takifugu import __version__

        typer.echo(f"takifugu {__version__}")
        raise typer.Exit


@app.callback()
def takifugu(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Pufferfish privacy for correlated data."""


app.command("audit")(run_audit)
app.command("check")(run_check)
app.command("collapse")(run_collapse)
app.command("curve")(run_curve)
app.command("demo")(run_demo)
app.command("reproduce")(run_reproduce)
app.command("translate")(run_translate)
app.add_typer(dataset.app, name="dataset")
app.add_typer(prior.app, name="prior")
app.add_typer(ledger_app, name="ledger")


def main() -> None:
    """Entry point: a mistake of the user is one line and status 2, a bug is a traceback."""
    try:
        status = app(standalone_mode=False)
    except (TakifuguError, typer.Abort) as error:
        message = str(error) or "stopped"
    except typer.TyperException as error:
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message().rstrip(".")
        if "\n" in message:  # a command without arguments answers with its help
            typer.echo(message, err=True)
            raise SystemExit(2) from None
        message += "; --help shows what there is"
    else:
        raise SystemExit(status or 0)
    typer.echo(f"takifugu: {message}", err=True)
    raise SystemExit(2)
