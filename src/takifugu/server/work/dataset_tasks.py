"""Tasks about a dataset that spend nothing: its public description, its guarantee, its budgets.

Nothing here reads a protected value, and nothing that is returned names a file: a declaration's
labels, bounds and public keys are public, as are the order and how many rows there are.
"""

from datetime import datetime
from typing import Any

from takifugu.engines import Amount, Category, Engine
from takifugu.engines.declarations.columns import NO_ORDER
from takifugu.errors import NoBudget
from takifugu.project.budgets import BudgetStanding, at_tick, standing_of
from takifugu.project.opened_dataset import OpenedDataset
from takifugu.server.api.problems import Problem
from takifugu.server.work.tasks import Task, task
from takifugu.server.work.worker_host import WorkerHost
from takifugu.session.query_options import KIND_OPTIONS
from takifugu.session.query_planner import KINDS

LATEST = 100  # charges in the history of a budget
SHARED_OPTIONS = (*("column", "by", "window", "where", "epsilon", "delta", "within", "confidence"),)


def dataset_of(host: WorkerHost, asked: Task) -> OpenedDataset:
    """The dataset of a task, open; a problem if there is none that the one who asks may see."""
    name, actor = asked.dataset, asked.actor
    found = None if name is None else host.project().policy.datasets.get(name)
    listed = () if found is None else found.analysts
    hidden = actor.role == "analyst" and listed and actor.name not in listed
    if name is None or found is None or hidden:
        raise Problem(404, "no-dataset", "there is no such dataset here", field="dataset")
    return host.opened(name)


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
        "released_from": start.isoformat() if isinstance(start, datetime) else start,
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
        "first": first.isoformat() if isinstance(first, datetime) else first,
        "last": last.isoformat() if isinstance(last, datetime) else last,
    }


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
        "several": KINDS[name].several,
        "required": list(options.required),
        "optional": [
            *options.optional,
            *(shared for shared in SHARED_OPTIONS if shared not in options.without),
        ],
        "without": dict(options.without),
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
    positions = [one for one in opened.ledger.positions() if one.dataset == name]
    shown = [
        one for one in positions if actor.role != "analyst" or one.analyst in (None, actor.name)
    ]
    if not any(one.analyst is None for one in positions):
        raise NoBudget(name)
    whole = next(one.epsilon for one in positions if one.analyst is None)
    found = [
        standing_of(
            *(opened.ledger, one, whole, opened.view),
            last=LATEST if one.analyst in (None, actor.name) else 0,
        )
        for one in shown
    ]
    instants = opened.engine.declaration.order.kind != "number"
    return {
        "dataset": name,
        "budgets": [_budget(one, instants) for one in sorted(found, key=lambda b: b.analyst or "")],
    }


def _budget(found: BudgetStanding, instants: bool) -> dict[str, Any]:
    return {
        "analyst": found.analyst,
        "epsilon": None if found.budget is None else str(found.budget),
        "delta": str(found.delta),
        "spent": found.spent,
        "left": found.left,
        "most": None if found.most is None else str(found.most),
        "by_column": None if found.by_column is None else dict(found.by_column),
        "history": [
            {"seq": one.seq, "at": one.at.isoformat(), "spent": one.epsilon}
            for one in found.history
        ],
        "stretches": [
            {
                "start": _moment(one.start, instants),
                "end": _moment(one.end, instants),
                "spent": one.spent,
            }
            for one in found.stretches
        ],
    }


def _moment(tick: int | None, instants: bool) -> str | int | None:
    found = at_tick(tick, instants=instants)
    return found.isoformat() if isinstance(found, datetime) else found
