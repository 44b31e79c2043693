"""Tasks of those who ask: what a dataset has, plans, releases, pages, and files of results.

Descriptions, guarantees and budgets read no protected value, and nothing that is returned names a
file: a declaration's labels, bounds and public keys are public, as are the order and how many rows
there are.

A release is charged under a key that stands for its request, so that the same request is one
charge however often it is sent: by a client that heard nothing, after a worker was killed, or after
the server was. The worker answers only when the answer is recorded beside its charge.

Counting and drawing take whole steps of `ServerSettings.time_step`, in the worker: the answer is
recorded, or the failure told, and the worker free for others, at the end of a step.
"""

import io
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from takifugu.declarations import Amount, Category, InvalidQuery
from takifugu.declarations.columns import NO_ORDER
from takifugu.errors import InvalidMechanism, NoBudget
from takifugu.project.budgets import standing_of
from takifugu.project.opened_dataset import OpenedDataset
from takifugu.reports.plot_files import as_written, standalone_svg
from takifugu.reports.spending_figure import BudgetEvent, spending_figure
from takifugu.server.api.problems import Problem, find_policy, json_bytes
from takifugu.server.approvals import release_or_ask
from takifugu.server.work.tasks import Task, task
from takifugu.server.work.worker_host import WorkerHost
from takifugu.session.plan_documents import plan_to_document
from takifugu.session.query_kinds import KINDS, query_class
from takifugu.session.query_options import KIND_OPTIONS, QueryOptions
from takifugu.session.release_plan import Plan, plan_words
from takifugu.session.release_result import result_from_document
from takifugu.session.result_files import WRITERS, arrow_stream, csv_metadata
from takifugu.session.session import Session
from takifugu.tables import Engine
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from takifugu.session.release_result import Result

MAX_BUDGET_HISTORY = 100  # charges in the history of a budget


def dataset_of(host: WorkerHost, asked: Task) -> OpenedDataset:
    """The dataset of a task, open; a problem if there is none that the one who asks may see."""
    find_policy(host.project(), asked.actor, asked.dataset)
    return host.opened(str(asked.dataset))


@task("describe")
def describe(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """What may be asked of a dataset, and what is public about it."""
    opened = dataset_of(host, asked)
    declaration, engine, session = opened.engine.declaration, opened.engine, opened.shared
    order = declaration.order
    rows, longest, entities = engine.known_size() or (engine.count(), None, None)
    start = session.releasable.start
    return {
        "dataset": opened.name,
        "title": declaration.title,
        "entity": declaration.entity,
        "order": None if order.column == NO_ORDER else _order(engine),
        "rows": rows,
        "rows_of_an_entity": longest,
        "entities": entities,
        "released_from": _moment(start),
        "about": list(session.columns),
        "protected": [_protected(column) for column in declaration.protected],
        "public": [
            {"column": column.column, "keys": list(engine.keys(column.column))}
            for column in declaration.public
        ],
        "linear": sorted(opened.loaded.policy.linear),
        "queries": [_kind(name) for name in KINDS],
    }


def _order(engine: Engine) -> dict[str, Any]:
    order = engine.declaration.order
    first, last = engine.span()
    return {
        "column": order.column,
        "kind": order.kind,
        "zone": order.zone,
        "first": _moment(first),
        "last": _moment(last),
    }


def _moment(place: Any) -> Any:
    return place.isoformat() if isinstance(place, datetime) else place


def _protected(column: Category | Amount) -> dict[str, Any]:
    if isinstance(column, Amount):
        return {
            "column": column.column,
            "kind": "number",
            "lower": str(column.low),
            "upper": str(column.high),
            "step": str(column.step),
        }
    return {
        "column": column.column,
        "kind": "label",
        "labels": list(column.keys),
        "outside": column.outside,
    }


def _kind(name: Any) -> dict[str, Any]:
    options = KIND_OPTIONS[name]
    return {
        "kind": name,
        "several": query_class(name).several,
        "required": list(options.required),
        "optional": [*options.optional, *options.shared],
        "without": dict(KINDS[name].without),
    }


@task("guarantee")
def guarantee(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """What is protected and what is not, in plain words."""
    opened = dataset_of(host, asked)
    return {"dataset": opened.name, "guarantee": opened.shared.guarantee()}


@task("budget")
def budget(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """Budgets, what was spent of them and what is left, with the latest history of each.

    An analyst sees that of the dataset and their own, each with its history: the Pufferfish ε after
    each charge, rounded up. Owners and auditors see everybody's, with the history of the dataset's.
    """
    opened = dataset_of(host, asked)
    name, actor = opened.name, asked.actor
    positions = opened.ledger.positions(name)
    shown = [
        position
        for position in positions
        if actor.role != "analyst" or position.analyst in (None, actor.name)
    ]
    if not any(position.analyst is None for position in positions):
        raise NoBudget(name)
    standings = [
        standing_of(
            *(opened.ledger, position, opened.view),
            last=MAX_BUDGET_HISTORY if position.analyst in (None, actor.name) else 0,
        )
        for position in shown
    ]
    instants = opened.engine.declaration.order.kind != "number"
    return {
        "dataset": name,
        "budgets": [
            standing.document(instants=instants)
            for standing in sorted(standings, key=lambda each: each.analyst or "")
        ],
    }


def session_of(host: WorkerHost, asked: Task) -> Session:
    """The session of the one who asks.

    An owner plans as nobody by name, or as the analyst that ``options`` names: whose budget counts
    is then theirs to see.
    """
    actor = asked.actor
    analyst = actor.name if actor.role == "analyst" else asked.options.get("analyst")
    return dataset_of(host, asked).session(analyst, actor=actor.name)


def planned_query(host: WorkerHost, session: Session, asked: Task) -> Plan:
    """The plan of a query. Nothing protected is read, so that what is refused is the query's."""
    options = QueryOptions.from_document(asked.options["query"])
    try:
        with host.planning():
            return session.plan(session.resolved(options))
    except InvalidMechanism as error:  # a reference of another shape, or more places than labels
        raise InvalidQuery(
            error.field, given=error.given, needed=error.needed, reason=error.reason
        ) from None


@task("plan")
def plan(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """What a query would cost and how good its answer would be. Nothing is spent.

    Options: ``query``, a document of `QueryOptions`; of an owner also ``analyst``.
    """
    session = session_of(host, asked)
    planned = planned_query(host, session, asked)
    return {
        "plan": plan_to_document(planned),
        "words": plan_words(planned),
        "approval": session.approval_needed(planned),
    }


@task("release")
def release(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """Pay for a query and answer it; for free if it was answered before.

    Options: ``query``; ``key``, which names the request; ``accept_noise``; ``plan``, the digest of
    the plan that the one who asks has seen. Where the policy wants an owner's approval, the request
    for it is stored, and released once it is approved: see `takifugu.server.approvals`.
    """
    if asked.actor.role != "analyst":
        raise Problem(403, "forbidden", "only analysts release; owners and auditors do not ask")
    session = session_of(host, asked)
    session.release_in_steps(host.time_step)
    return release_or_ask(
        *(host.state(), session, asked),
        lambda: planned_query(host, session, asked),
        plan_to_document,
    )


@task("budget-figure")
def budget_figure(host: WorkerHost, asked: Task) -> bytes:
    """What was spent after each event, and what was allowed, as an SVG file.

    It shows what the task ``budget`` says of the dataset as a whole, and when the owner set which
    budget.
    """
    opened = dataset_of(host, asked)
    whole = next(
        standing for standing in budget(host, asked)["budgets"] if standing["analyst"] is None
    )
    events = _events(whole, opened)
    spent = four_digits(whole["spent"] or 0.0, "up")
    return standalone_svg(
        spending_figure(events), f"What was spent of the budget of {opened.name}: now {spent}"
    )


@task("result-words")
def result_words(_: WorkerHost, asked: Task) -> dict[str, Any]:
    """What a result is, in words: its ``title``, and the ``facts`` about it by name."""
    result = result_from_document(asked.options["document"])
    return {"title": result.title, "facts": result.facts()}


def _events(whole: dict[str, Any], opened: OpenedDataset) -> list[BudgetEvent]:
    """Charges and the budgets that were set between them, in order; older budgets are left out."""
    charged = [
        (change["seq"], datetime.fromisoformat(change["at"]), change["spent"], True)
        for change in whole["history"]
    ]
    set_at = [
        (event.seq, event.at, float(Fraction(event.body["epsilon"])), False)
        for event in opened.ledger.events(kind="budget", dataset=opened.name)
        if event.body.get("analyst") is None
    ]
    first = charged[0][0] if charged else 0
    begun = max((change for change in set_at if change[0] < first), default=None)
    shown = [change for change in set_at if change[0] >= first or change == begun]
    budget: float | None = None
    spent, events = 0.0, []
    for seq, at, amount, is_charge in sorted([*charged, *shown]):
        spent, budget = (amount, budget) if is_charge else (spent, amount)
        events.append(BudgetEvent(seq, at, spent, budget, released=is_charge))
    return events


FILES: dict[str, Callable[["Result", str], bytes]] = {
    "csv": lambda result, _: WRITERS[".csv"](result),
    "csv-metadata": lambda result, name: json_bytes(csv_metadata(result, name)),
    "parquet": lambda result, _: WRITERS[".parquet"](result),
    "arrow": lambda result, _: arrow_stream(result),
    "xlsx": lambda result, _: WRITERS[".xlsx"](result),
}


@task("result file")
def result_file(_: WorkerHost, asked: Task) -> bytes:
    """A result as a file: ``format``, ``document`` and the name of the ``file``."""
    options = asked.options
    result = result_from_document(options["document"])
    return FILES[options["format"]](result, options["file"])


@task("figure")
def figure(_: WorkerHost, asked: Task) -> bytes:
    """The figure of a result, as ``svg`` or ``png``."""
    result = result_from_document(asked.options["document"])
    drawn = result.figure()
    if asked.options["format"] == "svg":
        return standalone_svg(drawn, result.title)
    written = io.BytesIO()
    with as_written(drawn):
        drawn.savefig(written, format=asked.options["format"], dpi=150)
    return written.getvalue()
