"""Faults of sessions, projects and servers that their machines must find."""

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest import mock

from takifugu.ledger import Window
from takifugu.ledger.events import cell_naming
from takifugu.ledger.witnesses.head_witness import Guard
from takifugu.project.project import Project
from takifugu.session import cells, plans
from tests.torture.planted_ledger_faults import Planted, accept_a_rollback, forget_at_an_edit
from torture.models import session_releases


def notice_no_edit() -> AbstractContextManager[Any]:
    """What declarations call the cells is not compared."""
    inner = cell_naming.compare

    def compare(*given: Any) -> tuple[bool, None]:
        return inner(*given)[0], None

    return mock.patch.object(cell_naming, "compare", compare)


def charge_half_of_a_window() -> AbstractContextManager[Any]:
    """The second half of a window is read and not charged."""
    inner = cells.rows_of

    def rows_of(*given: Any) -> cells.Rows:
        found = inner(*given)
        window = found.window
        if window is None or window.start is None or window.end is None:
            return found
        start, end = (moment.astimezone() for moment in (window.start, window.end))  # type: ignore[union-attr]
        return replace(found, window=Window(start, start + (end - start) / 2))

    return mock.patch.object(plans, "rows_of", rows_of)


def set_twice_the_budget() -> AbstractContextManager[Any]:
    """An owner sets a budget, and twice as much is written."""
    inner = Project.set_budget

    def set_budget(self: Project, name: str, epsilon: str, **others: Any) -> Any:
        return inner(self, name, str(2 * int(epsilon)), **others)

    return mock.patch.object(Project, "set_budget", set_budget)


def show_before_the_witness_knows() -> AbstractContextManager[Any]:
    """An answer that others stored, who died before its witness knew, is shown at once."""
    return mock.patch.object(Guard, "unrecorded", return_value=None)


def compare_rows_once() -> AbstractContextManager[Any]:
    """Rows whose cells were named anew are not compared with those of other datasets again."""

    def is_known(connection: Any, dataset: str, data: str) -> bool:
        filed = cell_naming.filed_under(dataset, data)
        return cell_naming._BY_STATE.one(connection, {"state": filed}).seq is not None

    return mock.patch.object(cell_naming, "is_known", is_known)


class Here:
    """Runs in this process, where the fault is, what would run in another one, to its end."""

    def run(self, work: Any, *given: Any) -> tuple[int, list[Any]]:
        """What was told, and that it ended."""
        told: list[Any] = []
        work(told.append, *given[:-1], None)
        return 0, told


def in_this_process() -> AbstractContextManager[Any]:
    """No process is started."""
    return mock.patch.object(session_releases, "ELSEWHERE", Here())


RELEASE_FAULTS: dict[str, tuple[str, Planted]] = {
    "an edit is not noticed": ("session", notice_no_edit),
    "half of a window is charged": ("session", charge_half_of_a_window),
    "an edit forgets": ("session", forget_at_an_edit),
    "a rollback is accepted": ("session", accept_a_rollback),
    "an answer is shown before the witness knows": ("session", show_before_the_witness_knows),
    "an edit of a project forgets": ("project", forget_at_an_edit),
    "rows are compared once": ("session, reused", compare_rows_once),
    "a budget is doubled": ("server", set_twice_the_budget),
}
