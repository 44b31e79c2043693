"""Sessions against sums that are added by hand: what is asked, by whom, on what data.

A table of a few people is released from by two handles and other processes, while rows, the
declaration, the prior and budgets change, releases come to an end between charge, draw and record,
and older copies of the ledger are put back.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from takifugu.errors import BudgetExceeded, TakifuguError
from takifugu.ledger import open_ledger
from takifugu.session import Session
from takifugu.session.release_plan import Plan
from torture.models.counted_machine import CRASHED, must
from torture.models.crash_points import POINTS, Crash, Elsewhere, Point, crashing, kill_self
from torture.models.session_state import (
    DATASET,
    SessionState,
    compared_when_due,
    opened_session,
)
from torture.models.table_model import BELIEVED, Asked, TableModel, planned
from torture.models.two_handles import handles

ANALYSTS = (None, "ana", "bob")
EPSILONS = ("0.25", "0.5", "1", "2")
BUDGETS = tuple(map(Fraction, ("0", "1", "2", "4", "8")))
ELSEWHERE = Elsewhere("torture.models.session_releases")
queries = st.builds(
    Asked,
    st.sampled_from(("histogram", "count", "together")),
    st.sampled_from(("place", "health")),
    st.sampled_from((None, (0, 2), (2, 4), (1, 3))),
    st.sampled_from((0, 0, 1, 2)),
    st.sampled_from(EPSILONS),
)
analysts = st.sampled_from(ANALYSTS)
Opener = Callable[..., AbstractContextManager[Session]]


@dataclass(frozen=True)
class Shown:
    """What an analyst sees: whether it was free, the events of charge and answer, its rows."""

    free: bool
    paid: int
    answer: int
    rows: Any


@contextmanager
def opened_here(folder: str, table: TableModel, prior: int, who: str | None) -> Iterator[Session]:
    """A session with a ledger of its own."""
    with (
        open_ledger(Path(folder) / "visits.ledger", wait=60, create=False) as ledger,
        opened_session(Path(folder), table, ledger, prior, who) as session,
    ):
        yield session


def release_elsewhere(
    tell: Any, opened: Opener, given: tuple[Any, ...], state: str, asked: Asked,
    options: dict[str, Any], key: str | None, point: Point | None,
) -> None:  # fmt: skip
    """Release in this process, which may be killed at some point."""
    os.environ["XDG_STATE_HOME"] = state
    with opened(*given) as session, crashing(point, kill_self):
        try:
            plan = planned(session, asked, options)
            result = session.release(plan, accept_noise=True, key=key)
        except TakifuguError as error:
            tell(type(error).__name__)
        else:
            tell(_seen(result))


class SessionReleases(SessionState):
    """Releases: by handles, late, interrupted, killed, under a key."""

    @initialize(over=st.sampled_from(("sequence", "row")))
    def begin(self, over: str) -> None:
        """A table, a ledger and a budget."""
        self.table = TableModel(BELIEVED[over].columns)
        self.write()
        self.prepare()
        self.plans: list[tuple[Asked, Plan, str | None]] = []
        self.requests: dict[str, tuple[Asked, str | None]] = {}
        self.answers: dict[int, Any] = {}  # rows that were shown, by the charge that paid
        self.paid: dict[tuple[str | None, str], int] = {}  # charges by analyst and key
        self.reopen()
        self.enter_budget(0, None, BUDGETS[3])
        self.open[0].backup(self.copy(0))

    def enter_budget(self, handle: int, analyst: str | None, most: Fraction) -> None:
        """Set a budget."""
        self.open[handle].set_budget(DATASET, most, analyst=analyst)
        self.budgets[analyst] = most

    def prepare(self) -> None:
        """What a project has beside a table and a ledger."""

    def session(self, handle: int, who: str | None) -> AbstractContextManager[Session]:
        """A session by one of the handles."""
        return opened_session(self.folder, self.table, self.open[handle], self.prior, who)

    def elsewhere(self, who: str | None) -> tuple[Opener, tuple[Any, ...]]:
        """How another process opens a session."""
        return opened_here, (str(self.folder), self.table, self.prior, who)

    def write(self) -> None:
        """The table as it is now."""
        self.table.write(self.file)

    def fitted(self, asked: Asked) -> Asked:
        """A query about columns that the table has."""
        if len(self.table.columns) > 1:
            return asked
        kind = "histogram" if asked.kind == "together" else asked.kind
        return replace(asked, kind=kind, column="place")

    def somebody(self) -> str | None:
        """Somebody who may ask."""
        return min((who for who in self.budgets if who is not None), default=None)

    # --- releases ---

    def release(
        self, step: str, handle: int, asked: Asked, who: str | None, *, key: str | None = None,
        late: Plan | None = None, point: Point | None = None, elsewhere: bool = False,
    ) -> None:  # fmt: skip
        """Plan, release, perhaps come to an end in the middle, and hold it against the ledger.

        Args:
            step: How it is counted.
            handle: Whose ledger.
            asked: The query.
            who: The analyst.
            key: Of a request that is made again until it has an answer.
            late: A plan that was made before.
            point: Where it comes to an end.
            elsewhere: Whether in a process of its own.
        """
        before, state = self.events()[-1].seq, self.state()
        crashed = False
        shown: Shown | str | None = None
        try:
            with self.session(handle, who) as session:
                plan = late or planned(session, asked, self.table.options(asked))
                try:
                    if elsewhere:
                        crashed, shown = self.other_process(asked, who, key, point)
                    else:
                        with crashing(point):
                            shown = _seen(session.release(plan, accept_noise=True, key=key))
                except Crash:
                    crashed = True
                except BudgetExceeded:
                    must(late is not None or not plan.cost.fits, "a plan that fits was refused")
                    raise
                spent = session.spent()
        except TakifuguError as error:
            must(self.state() == state, f"a {step} was refused and left a trace")
            self.took(step, type(error).__name__)
            return
        charged = self.charges(before)
        must(len(charged) <= 1, "a release was charged twice")
        if charged:
            must(
                not crashed or point not in ("begun", "written"), f"a crash when {point} left half"
            )
            must(late is not None or plan.cost.fits, "a plan that does not fit was charged")
            if late is None:
                must(spent <= (plan.cost.after or 0) * (1 + 1e-6), "more is spent than was said")
            must(spent <= self.budgets[None], "more is spent than the budget")
            self.there.add(charged[0])
            self.note(asked, scale_of(plan), who)
            if key is not None:
                must(self.paid.setdefault((who, key), charged[0]) == charged[0], "paid twice")
        if crashed:
            self.died(point)
            self.took(f"{step}, killed" if elsewhere else step, CRASHED)
        elif isinstance(shown, str):
            must(self.state() == state, f"a {step} was refused and left a trace")
            must(shown != "OverBudget" or not plan.cost.fits, "a plan that fits was refused")
            self.took(step, shown)
        elif shown is not None:
            self.look(step, shown, charged, before, asked, plan, who)

    def other_process(
        self, asked: Asked, who: str | None, key: str | None, point: Point | None
    ) -> tuple[bool, Shown | str | None]:
        """Whether a release in a process of its own was killed; what it showed, or its error."""
        how = (*self.elsewhere(who), self.environment, asked, self.table.options(asked))
        status, said = ELSEWHERE.run(release_elsewhere, *how, key, point)
        must(status in (0, -9), f"another process ended with {status}")
        return status != 0, said[0] if said and status == 0 else None

    def look(
        self, step: str, shown: Shown, charged: list[int], before: int, asked: Asked, plan: Plan,
        who: str | None,
    ) -> None:  # fmt: skip
        """What was shown: paid for, once, and always the same for one charge."""
        must(shown.paid in self.there, "an answer that nobody paid for")
        self.told(max(shown.paid, shown.answer))
        must(
            self.answers.setdefault(shown.paid, shown.rows) == shown.rows,
            "two answers of one charge",
        )
        events = self.events()
        old = [event for event in events if event.seq <= before]
        new = events[len(old) :]
        if charged:
            kinds = [event.kind for event in new if event.kind != "state"]  # written by the plan
            must(not shown.free, "a release was charged and called free")
            must(
                kinds in (["charge", "answer"], ["source", "charge", "answer"]), f"there is {kinds}"
            )
            compared_when_due(old, new)
            self.took(step)
        else:
            if self.reused(old, new):
                self.add(who, asked, scale_of(plan))
            self.took(f"{step}, free or paid before")

    @rule(handle=handles, asked=queries, analyst=analysts)
    def ask(self, handle: int, asked: Asked, analyst: str | None) -> None:
        """Somebody releases something."""
        self.release("release", handle, self.fitted(asked), analyst)

    @rule(first=handles, asked=queries, other=queries)
    def ask_twice(self, first: int, asked: Asked, other: Asked) -> None:
        """Somebody who may ask releases two things, by two handles in turn."""
        for handle, one in ((first, asked), (1 - first, other)):
            self.release("release", handle, self.fitted(one), self.somebody())

    @rule(handle=handles, asked=queries)
    def ask_little(self, handle: int, asked: Asked) -> None:
        """The same, of what mostly fits, by somebody who may ask."""
        self.release(
            "release", handle, self.fitted(replace(asked, epsilon="0.25")), self.somebody()
        )

    @rule(handle=handles, asked=queries)
    def keep_plan(self, handle: int, asked: Asked) -> None:
        """A plan is made, to be released some time."""
        one, who = self.fitted(asked), self.somebody()
        with (
            self.attempt("plan", self.state),
            self.session(handle, who) as session,
        ):
            plan = planned(session, one, self.table.options(one))
            self.plans.append((one, plan, who))

    @precondition(lambda self: self.plans)
    @rule(handle=handles, which=st.integers(0, 9))
    def release_late(self, handle: int, which: int) -> None:
        """A plan is released after whatever has happened since it was made."""
        asked, plan, who = self.plans[which % len(self.plans)]
        self.release("late release", handle, asked, who, late=plan)

    @rule(handle=handles, asked=queries, point=st.sampled_from(POINTS), elsewhere=st.booleans())
    def interrupt(self, handle: int, asked: Asked, point: Point, elsewhere: bool) -> None:
        """A release comes to an end in the middle: by an exception, or killed in its process."""
        one, who = self.fitted(asked), self.somebody()
        self.release("interrupted release", handle, one, who, point=point, elsewhere=elsewhere)

    @rule(
        handle=handles, asked=queries, key=st.sampled_from(("first", "second")),
        point=st.sampled_from((None, *POINTS)), elsewhere=st.booleans(),
    )  # fmt: skip
    def request(
        self, handle: int, asked: Asked, key: str, point: Point | None, elsewhere: bool
    ) -> None:  # fmt: skip
        """A request under a key, made again until it has an answer: paid once."""
        one, who = self.requests.setdefault(key, (self.fitted(asked), self.somebody()))
        self.release("request", handle, one, who, key=key, point=point, elsewhere=elsewhere)


def scale_of(plan: Plan) -> float:
    """The scale of the noise of a plan."""
    return float(plan.mechanism.describe()["scale"])


def _seen(result: Any) -> Shown:
    source = result.provenance
    return Shown(result.free, source.charge.seq, source.answer.seq, result.rows)
