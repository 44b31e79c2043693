"""What an owner decided, in words: the events that are no charges."""

from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Any

FITTED = {
    "first-days": "on the first days",
    "share": "on a share of the entities",
    "all-rows": "on all rows, those that are released from too",
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
            told = f"budget of {_whose(body)} set to epsilon = {_short(body['epsilon'])}"
            spare = Fraction(body["delta"])
            told += f", delta = {_short(body['delta'])}" if spare else ""
        case "partition":
            told = f"groups of {body['dataset']} counted by {', '.join(body['columns'])}"
        case "policy":
            told = _policy(body)
        case "accepted":
            told = _accepted(body)
        case _:
            return None
    return told + (f", by {body['actor']}" if body.get("actor") else "")


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
            return f"prior of {name} written anew: {files}"
    return f"prior of {name} entered: {files}"


def _accepted(body: Mapping[str, Any]) -> str:
    name, before = body["dataset"], body["before"]
    if before is None:
        what = "prior and secrets"
    else:
        parts = [part for part in ("prior", "secrets") if before[part] != body[part]]
        what = " and ".join(parts) or "rows that are released from"
    told = f"{what} of {name} accepted"
    if body["spent_after"] != "0":
        was = body["spent_before"]
        old = "not known any more" if was is None else four_up(was)
        told += f": spent {four_up(body['spent_after'])} under the new, {old} under the old"
        if body["budget"] is not None:
            told += f", of a budget of {_short(body['budget'])}"
    return told


def four_up(value: str) -> str:
    """A decimal with four significant digits, rounded up."""
    if value == "infinity":
        return "infinite"
    with localcontext() as context:
        context.prec, context.rounding = 4, ROUND_CEILING
        return f"{(+Decimal(value)).normalize():f}"


def _short(value: str) -> str:
    return f"{float(Fraction(value)):.4g}"
