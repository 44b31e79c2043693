"""Events as text, for the ledger's listing, for results and for reports."""

from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from takifugu.cost_words import cost_words
from takifugu.costs import Cost
from takifugu.ledger.entries_read import EPOCH
from takifugu.visible import four_digits

FITTED = {
    "first-days": "on the first days",
    "share": "on a share of the entities",
    "all-rows": "on all rows, including those that are released from",
}


def event_words(body: Mapping[str, Any]) -> str:
    """An event in one clause."""
    return decision(body) or _activity(body)


def decision(body: Mapping[str, Any]) -> str | None:
    """A decision in one clause; None for another kind of event, or one that cannot be read."""
    try:
        return _decision(body)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        return None


def _decision(body: Mapping[str, Any]) -> str | None:
    match body["kind"]:
        case "budget":
            epsilon, delta = Fraction(body["epsilon"]), Fraction(body["delta"])
            text = f"budget of {_whose(body)} set to epsilon = {four_digits(epsilon, 'down')}"
            text += f", delta = {four_digits(delta, 'down')}" if delta else ""
        case "partition":
            text = f"groups of {body['dataset']} counted by {', '.join(body['columns'])}"
        case "policy":
            text = _policy(body)
        case "accepted":
            text = _accepted(body)
        case "access":
            text = f"token {body['token']} of {body['name']}, {body['role']}, {body['how']}"
            if body["expires"] is not None and body["how"] == "made":
                text += f", until {body['expires'][:16].replace('T', ' ')}"
        case "approval":
            to = f" to {body['analyst']}" if body["analyst"] else ""
            cost = four_digits(Fraction(body["epsilon"]), "up")
            text = (
                f"release{to} from {body['dataset']} {body['decision']}: {body['words']};"
                f" epsilon = {cost}"
            )
        case _:
            return None
    return text + (f", by {body['actor']}" if body.get("actor") else "")


def _whose(body: Mapping[str, Any]) -> str:
    return f"{body['analyst']} on {body['dataset']}" if body.get("analyst") else body["dataset"]


def _policy(body: Mapping[str, Any]) -> str:
    details = body["details"]
    files = ", ".join(map(str, details.get("files", ()))) or body["prior"][:12]
    name = body["dataset"]
    match details.get("how"):
        case "fitted":
            rows = FITTED.get(details.get("rows"), "")
            place = " in place of the earlier ones" if details.get("replaced") else ""
            return f"prior of {name} fitted {rows}{place}: {files}"
        case "written":
            return f"prior of {name} rewritten: {files}"
    return f"prior of {name} entered: {files}"


def _accepted(body: Mapping[str, Any]) -> str:
    name, before = body["dataset"], body["before"]
    if before is None:
        what = "prior and secrets"
    else:
        parts = [part for part in ("prior", "secrets") if before[part] != body[part]]
        what = " and ".join(parts) or "rows that are released from"
    text = f"{what} of {name} accepted"
    if body["spent_after"] != "0":
        was = body["spent_before"]
        old = "no longer known" if was is None else four_up(was)
        text += f": spent {four_up(body['spent_after'])} under the new, {old} under the old"
        if body["budget"] is not None:
            text += f", of a budget of {four_digits(Fraction(body['budget']), 'down')}"
    return text


def four_up(value: str) -> str:
    """A stored decimal with four significant digits, rounded up."""
    return "infinite" if value == "infinity" else four_digits(Decimal(value), "up")


def query_words(body: Mapping[str, Any]) -> str:
    """The query, its rows and its mechanism."""
    kind = body["mechanism"].get("kind") or body["mechanism"].get("name")
    words = asked_words(body)
    return f"{words} ({kind})" if isinstance(kind, str) else words


def asked_words(body: Mapping[str, Any]) -> str:
    """A query and its rows, as one line.

    >>> asked_words({"query": {"name": "top_k", "column": "place", "by": ["country"], "k": 3},
    ...     "window": {"unit": "day", "start": 734869, "end": None}, "groups": None})
    'top_k of place by country, k = 3, from 2013-01-01'
    """
    query = dict(body["query"])
    words = str(query.pop("name", None) or body["query_fingerprint"][:12])
    if about := query.get("column"):
        between = ", " if words == "marginals" else " × "
        words += f" of {between.join(map(str, about)) if isinstance(about, list) else about}"
    if query.get("by"):
        words += f" by {', '.join(map(str, query['by']))}"
    rest = {k: v for k, v in query.items() if k not in ("column", "by") and v not in (None, [], {})}
    words += "".join(f", {name} = {few(value)}" for name, value in rest.items())
    if window := body["window"]:
        words += f", {window_words(window)}"
    if groups := body["groups"]:
        keys = [" × ".join(map(str, key)) for key in groups["keys"]]
        words += f", only {' × '.join(groups['columns'])} {few(keys)}"
    return words


def window_words(window: Mapping[str, Any]) -> str:
    """Which rows a window holds, in the order that the dataset counts by."""
    start, end = (_moment(window["unit"], window[side]) for side in ("start", "end"))
    return " ".join([f"from {start}"] * (start is not None) + [f"before {end}"] * (end is not None))


def _moment(unit: str, tick: int | None) -> str | None:
    """A step, a day or an instant, as people write it."""
    if tick is None or unit == "step":
        return None if tick is None else str(tick)
    try:
        if unit == "day":
            return date.fromordinal(tick).isoformat()
        return (EPOCH + timedelta(microseconds=tick)).strftime("%Y-%m-%d %H:%M:%S").removesuffix(
            ":00"
        ) + " UTC"
    except (OverflowError, ValueError):  # beyond what a calendar holds
        return f"{unit} {tick}"


def few(value: Any) -> str:
    """A value on one line, cut where it is long."""
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _activity(body: Any) -> str:
    who = f" by {body['actor']}" if body.get("actor") else ""
    where = f"{body['dataset']}" if body.get("dataset") else ""
    if body.get("analyst"):
        where += f", analyst {body['analyst']}"
    match body["kind"]:
        case "charge" | "reuse" as kind:
            to = f" to {body['analyst']}" if body["analyst"] else ""
            act = "released" if kind == "charge" else "released again"
            by = f", approved in event {body['approval']}" if body.get("approval") else ""
            if body.get("actor") not in (None, body["analyst"]):
                by += f", by {body['actor']}"
            words = f"{query_words(body)}; {_loss(body['loss'])}{by}"
            return f"{act}{to} from {body['dataset']}: {words}"
        case "abandoned":
            return f"answer to event {body['charge']} abandoned{who}"
        case "answer":
            return f"answer to event {body['charge']} stored{who}"
        case "loss":
            names = ", ".join(dict.fromkeys(one["dataset"] for one in body["accounts"]))
            lost = body["lost"]["seq"]
            return f"loss of history up to event {lost} accepted{who}: {names} counted as spent"
        case "created":
            return f"ledger created{who}"
        case "totals":
            return "digests of totals begun"
        case "cells" if body["how"] == "everywhere":
            by_value = body.get("costs", "by value") == "by value"
            every = "every row" if by_value else "every row, whatever its values are called"
            return f"declaration of {where} accepted{who}: earlier releases charged to {every}"
        case "cells":
            return f"declaration of {where} stated to be unchanged{who}"
        case "source":
            return f"rows of {where} compared with those of other datasets{who}"
        case "state":
            return f"state {body['number']} of the data of {where} begun{who}"
        case "separate":
            return f"{where} counted separately from {body['other']}{who}"
        case kind:
            more = (str(body[name]) for name in ("how", "other") if name in body)
            return " ".join(filter(None, (kind, where, *more))) + who


def _loss(loss: Any) -> str:
    if loss["currency"] == "metric":
        return _cost(loss["cost"])
    parts = [
        f"{name} = {four_digits(Fraction(value), 'up')}"
        for name, value in loss.items()
        if name != "currency"
    ]
    return f"{', '.join(parts)} per entry"


def _cost(document: Any) -> str:
    """A cost that was charged; as it is written, if it cannot be read."""
    try:
        cost = Cost.of_document(document)
    except (ValueError, TypeError):
        return f"a cost that cannot be read: {few(document)}"
    return f"{cost_words(cost)}; at most epsilon = {four_digits(cost.scalar, 'up')} per entry"
