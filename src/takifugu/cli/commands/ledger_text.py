"""Decisions of an owner as text: the events that are not charges."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from takifugu.visible import four_digits

FITTED = {
    "first-days": "on the first days",
    "share": "on a share of the entities",
    "all-rows": "on all rows, including those that are released from",
}


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
            text = f"budget of {_whose(body)} set to epsilon = {four_digits(epsilon)}"
            text += f", delta = {four_digits(delta)}" if delta else ""
        case "partition":
            text = f"groups of {body['dataset']} counted by {', '.join(body['columns'])}"
        case "policy":
            text = _policy(body)
        case "accepted":
            text = _accepted(body)
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
            text += f", of a budget of {four_digits(Fraction(body['budget']))}"
    return text


def four_up(value: str) -> str:
    """A stored decimal with four significant digits, rounded up."""
    return "infinite" if value == "infinity" else four_digits(Decimal(value), "up")


def query_words(body: Any) -> str:
    """The query, its rows and its mechanism."""
    query = dict(body["query"])
    words = str(query.pop("name", None) or body["query_fingerprint"][:12])
    if about := query.get("column"):
        words += f" of {', '.join(map(str, about)) if isinstance(about, list) else about}"
    if query.get("by"):
        words += f" by {', '.join(map(str, query['by']))}"
    rest = {k: v for k, v in query.items() if k not in ("column", "by") and v not in (None, [], {})}
    words += "".join(f", {name} = {few(value)}" for name, value in rest.items())
    if body["window"]:
        window = body["window"]
        ends = ("" if window[end] is None else str(window[end]) for end in ("start", "end"))
        words += f", {window['unit']}s {'…'.join(ends)}"
    if body["groups"]:
        count = len(body["groups"]["keys"])
        words += (
            f", {count} group{'s' if count > 1 else ''} of {', '.join(body['groups']['columns'])}"
        )
    kind = body["mechanism"].get("kind") or body["mechanism"].get("name")
    return f"{words} ({kind})" if isinstance(kind, str) else words


def few(value: Any) -> str:
    """A value on one line, cut where it is long."""
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else text[:59] + "…"
