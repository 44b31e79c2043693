"""The command line: parse, call, print. No arithmetic is done here.

Each command is a module of its own, which is imported if it is called, and imports what it needs
when it runs.
"""

import gc
import io
import logging
import re
import sys
import warnings
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Any

import typer

from takifugu.cli import shell_completion as completion
from takifugu.cli.exit_status import EPILOG, MISTAKE, STOPPED, status_of
from takifugu.cli.shared_options import StrictTyper, echo
from takifugu.errors import TakifuguError
from takifugu.visible import visible

OBJECTS_BETWEEN_COLLECTIONS = 200_000  # imports make many objects, and hardly any garbage
MAX_NAME_LENGTH = 200  # characters of a name that a message repeats
_LONG = re.compile(rf"\S{{{2 * MAX_NAME_LENGTH},}}")

# What is called, in the order of the help: a function of its module, or a group of commands.
COMMANDS = {
    "quickstart": "commands.quickstart_command:run_quickstart",
    "init": "commands.quickstart_command:run_init",
    "dataset": "commands.dataset_command:app",
    "prior": "commands.prior_command:app",
    "budget": "commands.budget_command:app",
    "plan": "commands.release_command:run_plan",
    "release": "commands.release_command:run_release",
    "approve": "commands.release_command:run_approve",
    "schedule": "commands.schedule_command:app",
    "serve": "commands.serve_command:run_serve",
    "token": "commands.serve_command:token_app",
    "report": "commands.report_command:app",
    "witness": "commands.serve_command:witness_app",
    "ledger": "commands.ledger_command:app",
    "curve": "commands.curve_command:run_curve",
    "translate": "commands.translate_command:run_translate",
    "reassess": "commands.reassess_command:run_reassess",
    "check": "commands.check_command:run_check",
    "collapse": "commands.collapse_command:run_collapse",
    "demo": "demo.demo_command:run_demo",
    "reproduce": "commands.reproduce_command:run_reproduce",
}


def program(names: Iterable[str] = tuple(COMMANDS)) -> StrictTyper:
    """The command line with the commands of these names, whose modules are imported."""
    app = StrictTyper(
        name="takifugu",
        no_args_is_help=True,
        add_completion=False,  # our own options, below, take the name of a shell
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        epilog=EPILOG,
    )
    app.callback()(takifugu)
    for name in names:
        module, attribute = COMMANDS[name].split(":")
        command = getattr(import_module(f"takifugu.cli.{module}"), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def _show_version(show: bool) -> None:
    if show:
        from takifugu import __version__

        echo(f"takifugu {__version__}")
        raise typer.Exit


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


def _called(arguments: list[str]) -> StrictTyper:
    """The program with the command alone that is called: only its module is imported.

    All of it for anything else: help, completion, a name that is misspelt.
    """
    return program(arguments[:1]) if arguments and arguments[0] in COMMANDS else program()


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
