"""The demonstration's project behind a server, with a token for each role: ``make serve-demo``.

``python -m takifugu.cli.demo.serve_demo`` makes the project, or uses the one that is there, prints
three tokens, serves it on this machine alone, and opens the page in a browser if there is one.
"""

import argparse
import logging
import os
import sys
import threading
import webbrowser
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from takifugu.cli.demo.demo_command import run_demo
from takifugu.cli.exit_status import status_of
from takifugu.cli.shared_options import echo
from takifugu.errors import TakifuguError

if TYPE_CHECKING:
    from takifugu.project.project import Project
    from takifugu.server.roles import Role

FOLDER = Path("out") / "serve-demo"
PEOPLE: "dict[Role, str]" = {"owner": "olga", "analyst": "ana", "auditor": "udo"}
MAY = {
    "owner": "decides: budgets, requests, tokens",
    "analyst": "asks: plans and releases",
    "auditor": "checks: the ledger, reports",
}
LIFE = timedelta(days=1)


def main(arguments: list[str] | None = None) -> None:
    """Make the project if need be, and serve it."""
    parser = argparse.ArgumentParser(description="Serve the demonstration's project.")
    parser.add_argument("--out", type=Path, default=FOLDER, help="the folder of the project")
    parser.add_argument("--rows", type=int, default=500_000, help="check-ins of a new project")
    parser.add_argument("--port", type=int, help="by default 8461, or a free one if it is taken")
    parser.add_argument("--no-browser", action="store_true", help="open no browser")
    given = parser.parse_args(arguments)
    try:
        serve_demo(given.out, rows=given.rows, port=given.port, browser=not given.no_browser)
    except TakifuguError as error:
        echo(f"takifugu: {error}", err=True)
        raise SystemExit(status_of(error)) from None


def serve_demo(folder: Path, *, rows: int, port: int | None, browser: bool) -> None:
    """Serve the project in ``folder``, which is made first if it is not there."""
    from takifugu.project.project import open_project
    from takifugu.server.operation.read_settings import server_settings
    from takifugu.server.operation.server_process import run_server

    if not (folder / "takifugu.toml").exists():
        run_demo(rows=rows, out=folder)
    project = open_project(folder)
    tokens = new_tokens(project)
    settings = server_settings(project, {"port": free_port() if port is None else port})
    logging.getLogger("takifugu.server.requests").setLevel(logging.WARNING)

    def announce(url: str) -> None:
        echo(f"\nThe project in {folder} is served at {url} for this machine.\n")
        echo("Sign in with one of these, which end tomorrow:\n")
        for role, token in tokens.items():
            echo(f"  {role:<8} {PEOPLE[role]:<5} {token}   {MAY[role]}")
        echo("\nCtrl-C stops it.\n")
        if browser and has_display():
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    run_server(project.file, settings, announce=announce)


def new_tokens(project: "Project") -> "dict[Role, str]":
    """A token for everybody, for a day."""
    from takifugu.ledger.lifecycle import current_actor
    from takifugu.server.access.token_changes import make_token
    from takifugu.server.state.server_state import open_state

    with open_state(project) as state:
        ends = state.now() + LIFE
        return {
            role: make_token(project, state, name, role, ends, by=current_actor()).secret
            for role, name in PEOPLE.items()
        }


def free_port() -> int:
    """The default port of a server; 0, which takes any, if somebody has it."""
    from takifugu.errors import Malformed
    from takifugu.server.operation.listening import listening_socket
    from takifugu.server.settings import ServerSettings

    try:
        listening_socket(ServerSettings()).close()
    except Malformed:
        return 0
    return ServerSettings().port


def has_display() -> bool:
    """Whether a browser would have a window to open."""
    if sys.platform == "darwin":
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


if __name__ == "__main__":
    main()
