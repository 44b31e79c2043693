"""Projects against sums that are added by hand: the machine of sessions, by way of a policy.

The table is declared in a file that is edited, the prior is a file that is overwritten, owners
accept what changed by the functions of a project, and every release opens the project anew.
"""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from typing import Any, ClassVar

from takifugu.errors import LedgerSetBack
from takifugu.priors import write_prior
from takifugu.project.project import Project, init_project, open_project
from takifugu.session import Session
from tests.session.zone_namings import ZONE_NAMINGS
from torture.models.counted_machine import must
from torture.models.session_machine import SessionMachine
from torture.models.session_releases import Opener
from torture.models.session_state import DATASET
from torture.models.table_model import BELIEVED, CLOCKS, VALUES, TableModel


def declared(table: TableModel, file: str = "visits.csv") -> str:
    """The declaration as a file."""
    zone = ZONE_NAMINGS[table.naming][0]
    lines = ["[source]", 'kind = "csv"', f'path = "{file}"', "[entity]", 'column = "person"']
    lines += ["[order]", 'column = "at"', 'kind = "time"', f'zone = "{CLOCKS[table.clock]}"']
    lines += ['ties = "refuse"']
    for name in table.columns:
        lines += [f"[protected.{name}]", f"values = {json.dumps(VALUES[name])}"]
        lines += ['outside = "refuse"']
    lines += ["[public.zone]", f"values = {json.dumps(zone.values)}", f'outside = "{zone.outside}"']
    lines += [f'other = "{zone.other}"'] if zone.outside == "other" else []
    lines += ['labels = "zones.json"'] if zone.labels else []
    return "\n".join(lines) + "\n"


@contextmanager
def opened_project(folder: str, who: str | None) -> Iterator[Session]:
    """A session of the project in a folder."""
    with open_project(folder).session(DATASET, who) as session:
        yield session


class ProjectMachine(SessionMachine):
    """The whole machine of projects."""

    machine: ClassVar[str] = "project"

    @property
    def project(self) -> Project:
        """The project, read anew."""
        return open_project(self.folder)

    def prepare(self) -> None:
        """The project, with a prior."""
        self.path = self.folder / "takifugu.ledger"
        self.write_prior()
        over = None if len(self.table.columns) == 1 else "row"
        init_project(self.folder).add_dataset(
            *(DATASET, self.folder / "visits.toml"),
            priors=[self.folder / "prior.json"],
            over=over,
        )

    def write(self) -> None:
        """The table and its declaration as they are now."""
        super().write()
        (self.folder / "zones.json").write_text('{"a": "b", "b": "a"}', encoding="utf-8")
        (self.folder / "visits.toml").write_text(declared(self.table), encoding="utf-8")

    def write_prior(self) -> None:
        """The prior, over the one before."""
        believed = BELIEVED["row" if len(self.table.columns) > 1 else "sequence"]
        write_prior(believed.priors[self.prior], self.folder / "prior.json")

    def session(self, handle: int, who: str | None) -> AbstractContextManager[Session]:  # noqa: ARG002
        """A session of the project, which opens its ledger by itself."""
        return opened_project(str(self.folder), who)

    def elsewhere(self, who: str | None) -> tuple[Opener, tuple[Any, ...]]:
        """How another process opens the project."""
        return opened_project, (str(self.folder), who)

    def enter_budget(self, handle: int, analyst: str | None, most: Fraction) -> None:  # noqa: ARG002
        """Set a budget."""
        self.project.set_budget(DATASET, str(most), analyst=analyst)
        self.budgets[analyst] = most

    def enter_cells(self, handle: int, *, unchanged: bool) -> None:  # noqa: ARG002
        """The owner's decision about the declaration."""
        self.project.accept(self.project.pending(DATASET), unchanged=unchanged)

    def enter_prior(self, handle: int) -> None:  # noqa: ARG002
        """The owner accepts the prior."""
        self.project.accept_prior(DATASET, self.project.change(DATASET))

    def refused_everywhere(self) -> None:
        """An older copy of the ledger is of no use for the project either."""
        super().refused_everywhere()
        try:
            with self.session(0, self.somebody()):
                pass
        except LedgerSetBack:
            return
        must(False, "a project was opened with an older copy of its ledger")
