"""The whole machine of sessions: rows, declarations, priors and budgets that change."""

from dataclasses import replace
from fractions import Fraction

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from takifugu.binding.prior_reading import terms_of
from takifugu.errors import TakifuguError
from takifugu.session.cells import cells_of
from takifugu.tables import open_engine
from tests.session.zone_namings import ZONE_NAMINGS
from torture.models.counted_machine import must
from torture.models.session_releases import BUDGETS, SessionReleases
from torture.models.session_state import DATASET
from torture.models.table_model import BELIEVED, CLOCKS, HEALTH, PLACES
from torture.models.two_handles import handles


class SessionMachine(SessionReleases):
    """The whole machine of sessions."""

    accepted_at = 0  # the event by which the owner accepted a declaration last

    @rule(
        what=st.sampled_from(("person", "value", "value", "remove", "move")),
        which=st.integers(0, 99), handle=handles,
    )  # fmt: skip
    def change_rows(self, what: str, which: int, handle: int) -> None:
        """Rows are added, edited, removed, or moved to another zone.

        One that was moved has another cell: the owner has to count everything on every row.
        """
        rows = self.table.rows
        row = sorted(rows)[which % len(rows)]
        held = rows[row]
        match what:
            case "person":
                self.table.add(("dan", "eve", "fay")[which % 3])
            case "value":
                place, ill = PLACES[which % 2], HEALTH[which // 2 % 2]
                rows[row] = replace(held, place=place, health=ill)
            case "remove" if len(rows) > 4:
                del rows[row]
            case "move":
                rows[row] = replace(held, zone="ab"[held.zone == "a"])
        self.write()
        if what == "move":
            self.accept("row moved and accepted", handle)
            return
        self.took({"person": "rows added", "value": "row edited"}.get(what, "row removed"))

    @rule(naming=st.integers(0, len(ZONE_NAMINGS) - 1), clock=st.integers(0, len(CLOCKS) - 1))
    def edit(self, naming: int, clock: int) -> None:
        """The names of zones, or the time zone of the order, are edited."""
        self.table.naming, self.table.clock = naming, clock
        self.write()
        self.took("declaration edited")

    @precondition(lambda self: self.accepted_at < self.known)
    @rule(handle=handles, unchanged=st.booleans())
    def accept_edit(self, handle: int, unchanged: bool) -> None:
        """The owner accepts the declaration, or somebody says that it was not edited."""
        now = (self.table.naming, self.table.clock)
        if unchanged and self.there and self.named != now:
            before = self.state()
            try:
                self.enter_cells(handle, unchanged=True)
            except TakifuguError as error:
                must(self.state() == before, "it left a trace")
                self.took("edit denied", type(error).__name__)
                return
            must(False, "an edit was taken for none")
        self.accept("edit accepted", handle)

    def accept(self, step: str, handle: int) -> None:
        """Count everything on every row, under the declaration as it is."""
        with self.attempt(step, self.state):
            self.enter_cells(handle, unchanged=False)
            self.named = (self.table.naming, self.table.clock)
            self.accepted_at = self.events()[-1].seq

    def enter_cells(self, handle: int, *, unchanged: bool) -> None:
        """The owner's decision about the declaration."""
        with open_engine(self.table.declaration(self.file), threads=1) as engine:
            cells = cells_of(engine, self.table.columns, self.folder)
        self.open[handle].accept_cells(DATASET, cells, unchanged=unchanged)

    @rule(handle=handles, prior=st.integers(0, 1), accept=st.booleans())
    def replace_prior(self, handle: int, prior: int, accept: bool) -> None:
        """Another prior, which the owner accepts or not."""
        self.prior = prior
        self.write_prior()
        if not accept:
            self.took("prior replaced, not accepted")
            return
        with self.attempt("prior replaced", self.state):
            self.enter_prior(handle)

    def write_prior(self) -> None:
        """A project keeps its prior in a file."""

    def enter_prior(self, handle: int) -> None:
        """The owner accepts the prior."""
        believed = BELIEVED["row" if len(self.table.columns) > 1 else "sequence"]
        translation = believed.translation(self.prior, self.table.declaration(self.file))
        seen = self.open[handle].review(DATASET, translation)
        self.open[1 - handle].accept(terms_of(translation), seen)

    @rule(
        handle=handles, most=st.sampled_from(BUDGETS), analyst=st.sampled_from((None, None, "ana"))
    )
    def budget(self, handle: int, most: Fraction, analyst: str | None) -> None:
        """The owner raises or lowers a budget."""
        lower = most < self.budgets.get(analyst, Fraction(0))
        self.enter_budget(handle, analyst, most)
        self.took("budget lowered" if lower else "budget raised")
