"""``takifugu schedule``: rolling releases that the policy declares."""

import json
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.exit_status import REFUSED
from takifugu.cli.shared_options import (
    AsJson,
    Backend,
    InProject,
    InvalidOption,
    StrictTyper,
    echo,
    open_session,
    print_json,
    the_project,
)

if TYPE_CHECKING:
    from takifugu.declarations import InvalidQuery
    from takifugu.ledger import Event
    from takifugu.project.project import Project
    from takifugu.project.schedules import PeriodState, Place, Schedule
    from takifugu.session.release_errors import MostlyNoise

app = StrictTyper(no_args_is_help=True, help="Rolling releases: what is due, and release it.")
Chosen = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Schedules; by default all of them.")
]
AsOf = Annotated[
    str | None,
    typer.Option(
        help="Up to which day or step the rows are complete; by default that of the last row."
    ),
]


@app.command("show")
def run_show(
    names: Chosen = None,
    *,
    as_of: AsOf = None,
    folder: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Show which periods of each schedule were released, are due, or wait for their rows.

    Also how many periods to come the budget admits at this pace: each is added to what is spent, on
    its own rows. Nothing is spent.

    JSON: schedules, a list of objects with name, dataset, every, last, periods (start, end, state,
    event, at) and ahead (the number of periods to come that the budget admits, at most 24; null if
    there are no rows to plan with).
    """
    from takifugu.project.schedules import PERIODS_AHEAD, admitted_ahead, states

    project = the_project(folder)
    schedules = []
    for schedule in _chosen(project, names):
        activity = f"looking at {schedule.name}"
        with open_session(
            project, schedule.dataset, schedule.analyst, activity, backend=backend
        ) as (session, _):
            periods = list(
                states(
                    schedule,
                    session,
                    _events(project, schedule.dataset),
                    as_of=_place(as_of, schedule),
                )
            )
            reached = [one for one in periods if one.state != "waiting"]
            ahead = admitted_ahead(schedule, session, reached[-1].period) if reached else None
        schedules.append((schedule, periods, ahead))
    if as_json:
        print_json({"schedules": [_document(*one) for one in schedules]})
        return
    if not schedules:
        echo("no schedules; declare one under [schedule.NAME] in takifugu.toml")
    for schedule, periods, ahead in schedules:
        echo(_title(schedule))
        for one in periods:
            echo(f"  {one.period}  {_state(schedule, one)}")
        if ahead is not None:
            many = (
                f"all of the next {PERIODS_AHEAD}"
                if ahead == PERIODS_AHEAD
                else f"the next {ahead}"
            )
            echo(f"  the budget admits {many} periods at this pace")


@app.command("run")
def run_run(
    names: Chosen = None,
    *,
    as_of: AsOf = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Release at most so many periods of each schedule.")
    ] = None,
    folder: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Release every period that is due and was not released; run it as often as you like.

    A period that was released is not released again, also if its rows changed since. A period whose
    answer would be mostly noise, or that has no rows, is left out, and those after it are released.
    A period that the budget does not admit, or that waits for the approval of a second person, ends
    its schedule; those before it stay released. In both cases the status is 3.

    JSON: released, a list of objects with schedule, start, end, columns, rows, cost and out;
    left_out, a list of objects with schedule, start, end and reason; refused (null, or the schedule
    and period that is not admitted).
    """
    from takifugu.declarations import InvalidQuery
    from takifugu.errors import BudgetExceeded
    from takifugu.project.schedules import only_run, session_options, states
    from takifugu.session.release_errors import ApprovalNeeded, MostlyNoise

    project = the_project(folder)
    released, left_out = list[dict[str, Any]](), list[dict[str, Any]]()
    refused: dict[str, Any] | None = None
    messages = list[str]()
    with only_run(project.folder):
        for schedule in _chosen(project, names):
            activity = f"releasing {schedule.name}"
            with open_session(
                project, schedule.dataset, schedule.analyst, activity, backend=backend
            ) as (session, _):
                events = _events(project, schedule.dataset)
                found = states(schedule, session, events, as_of=_place(as_of, schedule))
                done = len(released)
                for period in [one.period for one in found if one.state == "due"]:
                    if limit is not None and len(released) - done >= limit:
                        break
                    which = {"schedule": schedule.name, **_window(period)}
                    try:
                        options = session_options(session, schedule, period)
                        plan = session.planned(options, advice=False)
                        result = session.release(plan, accept_noise=schedule.accept_noise)
                    except (BudgetExceeded, ApprovalNeeded) as error:
                        refused = which
                        messages.append(f"{schedule.name}, {period}: {error}")
                        break
                    except (MostlyNoise, InvalidQuery) as error:
                        if isinstance(error, InvalidQuery) and error.reason != "no-rows":
                            raise
                        left_out.append({**which, "reason": error.reason})
                        messages.append(f"{schedule.name}, {period}: {_left_out(schedule, error)}")
                        continue
                    out = _write(project, schedule, period, result)
                    part = {**which, "out": out}
                    document = result.document()
                    shown_keys = ("columns", "rows", "cost")
                    released.append(part | {key: document[key] for key in shown_keys})
                    if not as_json:
                        place = "" if out is None else f", written to {out}"
                        echo(f"{schedule.name}  {period}  {result.price}{place}")
    if as_json:
        print_json({"released": released, "left_out": left_out, "refused": refused})
    elif not released and not messages:
        echo("nothing is due")
    for message in messages:
        echo(f"takifugu: {message}", err=True)
    if messages:
        raise typer.Exit(REFUSED)


def _left_out(schedule: "Schedule", error: "MostlyNoise | InvalidQuery") -> str:
    """Why a period was left out, and what can be done about it."""
    if error.reason == "no-rows":
        return f"{error}; it was left out"
    words = getattr(error, "words", "")
    return (
        f"{words}. It was left out, and nothing was charged. To release it all the same, write"
        f" `accept_noise = true` in [schedule.{schedule.name}]"
    )


def _chosen(project: "Project", names: list[str] | None) -> "list[Schedule]":
    from takifugu.errors import one_of

    declared = project.policy.schedules
    for name in names or ():
        if name not in declared:
            needed = (
                one_of(declared, name)
                if declared
                else "be declared: [schedule.NAME] in takifugu.toml"
            )
            raise InvalidOption("NAME", given=f"is {name!r:.80}", needed=needed)
    return [declared[name] for name in names] if names else list(declared.values())


def _events(project: "Project", dataset: str) -> "dict[int, Event]":
    with project.ledger(read_only=True) as ledger:
        return {event.seq: event for event in ledger.history(dataset)}


def _place(text: str | None, schedule: "Schedule") -> "Place | None":
    """Up to where rows are complete, as the schedule counts."""
    if text is None:
        return None
    try:
        return int(text) if isinstance(schedule.start, int) else date.fromisoformat(text)
    except ValueError:
        needed = "be a whole number" if isinstance(schedule.start, int) else "be a day: 2012-04-09"
        raise InvalidOption("--as-of", given=f"is {text!r:.80}", needed=needed) from None


def _window(period: Any) -> dict[str, Any]:
    start, end = period.window
    return {"start": start, "end": end}


def _write(project: "Project", schedule: "Schedule", period: Any, result: Any) -> str | None:
    """Write a result where the schedule says; a file of the same name is left alone."""
    if schedule.folder is None:
        return None
    from takifugu._core.atomic import unwritable
    from takifugu.cli.commands.release_command import Undelivered
    from takifugu.session.result_files import ResultFile

    place = project.folder / schedule.folder
    start, end = period.window
    path: Path = place / f"{schedule.name}_{start}_{end}.csv"
    if path.exists():
        return None
    try:
        place.mkdir(parents=True, exist_ok=True)
        with ResultFile(path, field="folder") as target:
            target.write(result)
    except OSError as error:
        raise Undelivered(str(path), str(unwritable(path, error).given)) from None
    return str(path)


def _title(schedule: "Schedule") -> str:
    every = f"{schedule.every} steps" if isinstance(schedule.every, int) else str(schedule.every)
    query = json.dumps(schedule.options.document(), ensure_ascii=False)
    return (
        f"{schedule.name}: every {every}, the last {schedule.last} of {schedule.dataset}: {query}"
    )


def _state(schedule: "Schedule", one: "PeriodState") -> str:
    if one.state == "released":
        at = "" if one.at is None else f" {one.at:%Y-%m-%d %H:%M} UTC"
        return f"released{at}, event {one.event}"
    if one.state == "due":
        return "due"
    return f"waiting for rows up to {schedule.complete_from(one.period)}"


def _document(
    schedule: "Schedule", periods: "list[PeriodState]", ahead: int | None
) -> dict[str, Any]:
    return {
        "name": schedule.name,
        "dataset": schedule.dataset,
        "every": schedule.every,
        "last": str(schedule.last),
        "periods": [one.describe() for one in periods],
        "ahead": ahead,
    }
