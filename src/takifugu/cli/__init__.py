"""The command line: parse, call, print. No arithmetic is done here.

Each command is a module of its own that imports what it needs when it is called, so that
``takifugu --help`` answers at once.
"""

import gc
import io
import logging
import re
import sys
import warnings
from copy import copy
from typing import Annotated, Any

import typer

from takifugu.cli import shell_completion as completion
from takifugu.cli.commands import budget_command as budget
from takifugu.cli.commands import dataset_command as dataset
from takifugu.cli.commands import ledger_command as ledger
from takifugu.cli.commands import prior_command as prior
from takifugu.cli.commands import report_command as report
from takifugu.cli.commands import schedule_command as schedule
from takifugu.cli.commands import serve_command as serve
from takifugu.cli.commands.check_command import run_check
from takifugu.cli.commands.collapse_command import run_collapse
from takifugu.cli.commands.curve_command import run_curve
from takifugu.cli.commands.quickstart_command import run_init, run_quickstart
from takifugu.cli.commands.reassess_command import run_reassess
from takifugu.cli.commands.release_command import run_approve, run_plan, run_release
from takifugu.cli.commands.reproduce_command import run_reproduce
from takifugu.cli.commands.translate_command import run_translate
from takifugu.cli.demo.demo_command import run_demo
from takifugu.cli.exit_status import EPILOG, MISTAKE, STOPPED, status_of
from takifugu.cli.shared_options import StrictTyper, echo
from takifugu.errors import TakifuguError
from takifugu.visible import visible

OBJECTS_BETWEEN_COLLECTIONS = 200_000  # imports make many objects, and hardly any garbage
MAX_NAME_LENGTH = 200  # characters of a name that a message repeats
_LONG = re.compile(rf"\S{{{2 * MAX_NAME_LENGTH},}}")

app = StrictTyper(
    name="takifugu",
    no_args_is_help=True,
    add_completion=False,  # our own options, below, take the name of a shell
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=EPILOG,
)


def _show_version(show: bool) -> None:
    if show:
        from takifugu import __version__

        echo(f"takifugu {__version__}")
        raise typer.Exit


@app.callback()
def takifugu(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version."
    ),
    show_completion: Annotated[
        completion.Shell | None,
        typer.Option(
            callback=completion.show,
            is_eager=True,
            help="Print the script that completes commands.",
        ),
    ] = None,
    install_completion: Annotated[
        completion.Shell | None,
        typer.Option(
            callback=completion.install, is_eager=True, help="Install completion for this shell."
        ),
    ] = None,
) -> None:
    """Pufferfish privacy for correlated data."""


app.command("quickstart")(run_quickstart)
app.command("init")(run_init)
app.add_typer(dataset.app, name="dataset")
app.add_typer(prior.app, name="prior")
app.add_typer(budget.app, name="budget")
app.command("plan")(run_plan)
app.command("release")(run_release)
app.command("approve")(run_approve)
app.add_typer(schedule.app, name="schedule")
app.command("serve")(serve.run_serve)
app.add_typer(serve.token_app, name="token")
app.add_typer(report.app, name="report")
app.add_typer(serve.witness_app, name="witness")
app.add_typer(ledger.app, name="ledger")
app.command("curve")(run_curve)
app.command("translate")(run_translate)
app.command("reassess")(run_reassess)
app.command("check")(run_check)
app.command("collapse")(run_collapse)
app.command("demo")(run_demo)
app.command("reproduce")(run_reproduce)


def _warn(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Print a warning of takifugu's own as one line on stderr, any other as Python does."""
    if category.__module__.startswith("takifugu."):
        echo(f"takifugu: {_one_line(str(message))}", err=True)
    else:
        _show_as_python(message, category, *where, **more)


_show_as_python = warnings.showwarning


def _of_a_path(error: OSError) -> str:
    reason = (error.strerror or type(error).__name__).lower()
    if error.filename is None:
        return f"a file or folder cannot be used ({reason}); allow this user to, or name another"
    return f"{str(error.filename)!r} cannot be used ({reason}); name a file or folder that can"


def _one_line(message: str) -> str:
    """A message as one readable line: a name in it may hold anything, at any length."""
    return visible(_LONG.sub(lambda found: f"{found[0][:MAX_NAME_LENGTH]}…", message))


def _print_anything() -> None:
    """Escape what a stream cannot write, since names of files need not be text."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _called(arguments: list[str]) -> typer.Typer:
    """The program with the command alone that is called: Typer reads the options of all it has.

    All of it for anything else: help, completion, a name that is misspelt.
    """
    name = arguments[0] if arguments else None
    commands = [command for command in app.registered_commands if command.name == name]
    groups = [group for group in app.registered_groups if group.name == name]
    if name is None or not (commands or groups):
        return app
    only = copy(app)
    only.registered_commands, only.registered_groups = commands, groups
    return only


def main() -> None:
    """Entry point: an error is one line and a status (see `exit_status`), a bug a traceback."""
    code, failure = MISTAKE, None
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    warnings.showwarning = _warn
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # it tries others
    _print_anything()
    try:
        completion.prepare()
        status = _called(sys.argv[1:])(prog_name="takifugu", standalone_mode=False)
        if status == STOPPED:
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        message, code = "stopped", STOPPED
    except typer.Abort as error:  # a confirmation was answered with no, or with Ctrl-C
        interrupted = isinstance(error.__context__, KeyboardInterrupt)
        message, code = ("stopped", STOPPED) if interrupted else ("nothing was changed", MISTAKE)
    except TakifuguError as error:
        message = "; ".join((str(error), *getattr(error, "__notes__", ())))
        code, failure = status_of(error), error
    except typer.TyperException as error:
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message().rstrip(".")
        if type(error).__name__ == "NoArgsIsHelpError":  # a command without arguments: its help
            echo(message, err=True)
            raise SystemExit(MISTAKE) from None
        message = f"{' '.join(message.split())}; see --help"  # choices come one a line
    except OSError as error:  # a path that is too long, a folder, not readable, not there
        message = _of_a_path(error)
    else:
        raise SystemExit(status or 0)
    echo(f"takifugu: {_one_line(message)}", err=True)
    raise SystemExit(code) from failure
