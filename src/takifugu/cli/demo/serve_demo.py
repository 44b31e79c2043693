"""The demonstration's project behind a server, with a token for each role: ``make serve-demo``.

``python -m takifugu.cli.demo.serve_demo`` makes the project, or uses the one that is there, prints
three tokens, serves it on this machine alone, and opens the page in a browser if there is one.

The demonstration has spent most of its budget. For serving it is raised, the translation gets a
finer table, so that what is asked for and what is charged are nearly the same, and releases above
some ε wait for the owner: there is something to ask, and something to decide.
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

from takifugu._core.atomic import write_whole
from takifugu.cli.demo.demo_command import run_demo
from takifugu.cli.exit_status import status_of
from takifugu.cli.shared_options import echo
from takifugu.errors import TakifuguError

if TYPE_CHECKING:
    from takifugu.project.project import Project
    from takifugu.server.access_rules import Role

FOLDER = Path("out") / "serve-demo"
PEOPLE: "dict[Role, str]" = {"owner": "olga", "analyst": "ana", "auditor": "udo"}
MAY = {
    "owner": "decides: budgets, requests, tokens",
    "analyst": "asks: plans and releases",
    "auditor": "checks: the ledger, reports",
}
LIFE = timedelta(days=1)
BUDGET = 3  # for serving; the demonstration has 1, and spends most of it
ABOVE = "0.5"  # releases that cost more wait for the owner
POINTS_FOR_EACH = 4  # points of the table for each one of the demonstration
STEPS = 9  # of the demonstration, nearly as far as the budget goes


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
    from takifugu.server.operation.server_process import run_server
    from takifugu.server.settings import server_settings

    known = (folder / "takifugu.toml").exists()
    if not known:
        run_demo(rows=rows, out=folder)
    project = prepared(open_project(folder))
    revoked = revoke_tokens(project)
    tokens = new_tokens(project)
    settings = server_settings(project, {"port": free_port() if port is None else port})
    logging.getLogger("takifugu.server.requests").setLevel(logging.WARNING)

    def announce(url: str) -> None:
        echo(f"\nThe project in {folder} is served at {url} for this machine.\n")
        if known:
            echo(
                "It is the project of before, with all that was released and spent"
                + ("; the tokens of before are revoked" if revoked else "")
                + f".\nRemove {folder} to start afresh.\n"
            )
        if project.policy.datasets.keys() == {"check-ins"}:
            echo(
                f"Try as analyst: the top places by country for ε = 0.2, which is released at"
                f" once;\nthen for more than {ABOVE}, which waits on the page Approvals for the"
                " owner.\n"
            )
        echo("Sign in with one of these, which end tomorrow:\n")
        for role, token in tokens.items():
            echo(f"  {role:<8} {PEOPLE[role]:<5} {token}   {MAY[role]}")
        echo("\nCtrl-C stops it.\n")
        if browser and has_display():
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    run_server(project.file, settings, announce=announce)


def prepared(project: "Project") -> "Project":
    """The demonstration's project as it is served; any other one as it is.

    The rule is written last: what was interrupted is done again.
    """
    from fractions import Fraction

    from takifugu.cli.demo.demo_steps import DATASET
    from takifugu.project.project import open_project

    policy = project.policy.datasets.get(DATASET)
    if policy is None or policy.approval is not None:
        return project
    echo(f"For serving: a budget of {BUDGET}, a finer table, approval above {ABOVE} …")
    if (project.budget(DATASET) or 0) < Fraction(BUDGET):
        project.set_budget(DATASET, str(BUDGET))
    _finer_table(project)
    text = project.file.read_text(encoding="utf-8").rstrip("\n")
    write_whole(project.file, f'{text}\n\n[dataset.{DATASET}.approval]\nabove = "{ABOVE}"\n')
    return open_project(project.file)


def _finer_table(project: "Project") -> None:
    """A table whose points lie between those of the demonstration, as far as the budget goes.

    Sums of what was charged are points too. It takes some 20 s, and one as fine as those of
    projects several times that.
    """
    from fractions import Fraction

    import numpy as np

    from takifugu.cli.demo.demo_steps import DATASET, PROBE, table_step
    from takifugu.project.project_cache import keep_table, reach, table_path
    from takifugu.translation.accounting.tables import tabulate_at
    from takifugu.translation.translation import Translation

    translation = project.load(DATASET).entry_translation
    most = reach([Fraction(BUDGET)])
    if most is None or not isinstance(translation, Translation):
        raise TypeError("the demonstration has a chain, and a budget that a table can reach")
    step = table_step(translation) / POINTS_FOR_EACH
    grid = [min(PROBE, step) / 2, *(np.arange(1, STEPS * POINTS_FOR_EACH + 1) * step).tolist()]
    table = tabulate_at(translation, grid)
    path = table_path(project.folder, DATASET, translation, most)
    with project.ledger() as ledger:
        keep_table(table, path, ledger.mark)


def revoke_tokens(project: "Project") -> int:
    """End the tokens that an earlier run has printed; how many there were."""
    from takifugu.ledger.lifecycle import current_actor
    from takifugu.server.access.tokens import end_token
    from takifugu.server.state.server_state import open_state

    with open_state(project) as state:
        now = state.now()
        old = [
            record
            for record in state.tokens()
            if PEOPLE.get(record.role) == record.name and record.live(now)
        ]
        for record in old:
            end_token(project, state, record.id, by=current_actor())
    return len(old)


def new_tokens(project: "Project") -> "dict[Role, str]":
    """A token for everybody, for a day."""
    from takifugu.ledger.lifecycle import current_actor
    from takifugu.server.access.tokens import make_token
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
    from takifugu.project.server_section import ServerSettings
    from takifugu.server.operation.listening import listening_socket

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
