"""A server that many examples share: each has a dataset, and people, of its own."""

import itertools
import os
from contextlib import ExitStack
from pathlib import Path

from takifugu.priors import write_prior
from takifugu.project.project import init_project, open_project
from tests.ledger.folders import in_memory
from tests.server.api.serving import Served, served
from torture.models.project_machine import declared
from torture.models.table_model import BELIEVED, TableModel

EXAMPLES = 25  # by one server: its ledger is verified after every step


class Site:
    """The app of a project with its real workers, called without a socket.

    Attributes:
        folder: That of the project.
        server: The app.
        killed: Workers that were killed, by the numbers of their processes.
    """

    folder: Path
    server: Served
    killed: set[int]

    def __init__(self) -> None:
        self._place, self._running = ExitStack(), ExitStack()
        self._left, self._numbers = 0, itertools.count(1)

    def begin(self) -> str:
        """The name of a new dataset, on a server that is not too old."""
        if self._left == 0:
            self.close()
            self.folder = self._place.enter_context(in_memory())
        os.environ["XDG_STATE_HOME"] = str(self.folder / "state")
        if self._left == 0:
            project = init_project(self.folder)
            self.server = self._running.enter_context(served(project.file))
            self._left, self.killed = EXAMPLES, set()
        self._left -= 1
        return f"visits{next(self._numbers)}"

    def restart(self) -> None:
        """Stop the server in order and start it anew."""
        self._running.close()
        file = open_project(self.folder).file
        self.server = self._running.enter_context(served(file))
        self.killed = set()

    def close(self) -> None:
        """Stop the server, and leave nothing."""
        self._running.close()
        self._place.close()
        self._left = 0

    def workers(self) -> tuple[int, ...]:
        """Those that the server believes it has."""
        return self.server.services.pool.processes

    @property
    def ledger(self) -> Path:
        """The file of its ledger."""
        return self.folder / "takifugu.ledger"

    def write(self, dataset: str, table: TableModel) -> None:
        """A table and its declaration as they are now."""
        table.write(self.folder / f"{dataset}.csv")
        text = declared(table, f"{dataset}.csv")
        (self.folder / "zones.json").write_text('{"a": "b", "b": "a"}', encoding="utf-8")
        (self.folder / f"{dataset}.toml").write_text(text, encoding="utf-8")

    def write_prior(self, dataset: str, prior: int) -> None:
        """The prior of a dataset, over the one before."""
        write_prior(BELIEVED["sequence"].priors[prior], self.folder / f"{dataset}.json")

    def enter(self, dataset: str) -> None:
        """Enter a dataset whose files are written."""
        open_project(self.folder).add_dataset(
            *(dataset, self.folder / f"{dataset}.toml"), priors=[self.folder / f"{dataset}.json"]
        )


SITE = Site()
