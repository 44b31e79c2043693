"""A query in plain JSON: as a command or a plan file has it, before a session knows it.

A plan file is never believed: what it asks is planned anew, and must come to the same price.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any, get_args

from takifugu.engines import InvalidQuery
from takifugu.errors import InvalidFile
from takifugu.priors.documents import read_json
from takifugu.project.policy_session import PolicySession
from takifugu.session.asking import Kind
from takifugu.session.problems import StalePlan
from takifugu.session.session import Session
from takifugu.session.values import Plan

FORM = "takifugu-plan-1"
SAME = ("dataset", "query", "window", "groups", "mechanism", "cells")  # must not differ in a plan
PRICE = ("currency", "per_entry", "delta")  # nor in its cost: the rest moves with the ledger


def _number(value: object) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool)


def _names(value: object) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(name, str | int) and not isinstance(name, bool) for name in value
    )


def _window(value: object) -> bool:
    pair = isinstance(value, list | tuple) and len(value) == 2
    return pair and _names([end for end in value if end is not None])  # type: ignore[attr-defined]


def _where(value: object) -> bool:
    return isinstance(value, dict) and all(map(_names, value.values()))


FORMS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "column": (lambda value: isinstance(value, str), "be the name of a column"),
    "by": (lambda value: _names(value) and all(isinstance(v, str) for v in value), "list columns"),  # type: ignore[attr-defined]
    "window": (_window, "be a pair, null for an open end"),
    "where": (_where, "map columns to lists of keys"),
    "values": (_names, "list labels"),
    "epsilon": (_number, "be a number"),
    "within": (_number, "be a number"),
    "delta": (_number, "be a number"),
    "level": (_number, "be a number"),
    "grid": (_number, "be a number"),
    "chance": (lambda value: isinstance(value, float), "be a number, as 0.9"),
    "gap": (lambda value: isinstance(value, int | float), "be a number"),
    "k": (
        lambda value: isinstance(value, int) and not isinstance(value, bool),
        "be a whole number",
    ),
}  # of options whose form is known here; of others sessions judge


def known_options() -> tuple[str, ...]:
    """The options of a query: those that sessions know, whichever they are."""
    return tuple(
        name for name in signature(Session.plan).parameters if name not in ("self", "kind")
    )


@dataclass(frozen=True)
class Asked:
    """A query to a dataset of a project.

    Attributes:
        dataset: Which dataset.
        kind: What to ask.
        how: The options of `Session.plan`, as JSON; a key of a column may be given as text.
        analyst: Who asks.
    """

    dataset: str
    kind: str
    how: Mapping[str, Any]
    analyst: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InvalidQuery(
                "kind",
                given=f"is {self.kind!r:.80}",
                needed=f"be one of {', '.join(get_args(Kind))}",
            )
        for name in self.how:
            if name not in known_options():
                raise InvalidQuery(
                    name,
                    given="is no option of a query",
                    needed=f"be one of {', '.join(known_options())}",
                )
            fits, needed = FORMS.get(name, (lambda _: True, ""))
            if not fits(self.how[name]):
                raise InvalidQuery(name, given="is something else", needed=needed)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        asked = {"dataset": self.dataset, "kind": self.kind, "analyst": self.analyst}
        return asked | {"how": dict(self.how)}

    def plan(self, session: PolicySession) -> Plan:
        """The plan of the query. Nothing is spent and nothing protected is read."""
        how = dict(self.how)
        column = how.pop("column", None) or session.about
        if "where" in how:
            how["where"] = {name: session.named(name, keys) for name, keys in how["where"].items()}
        if "values" in how:
            how["values"] = session.named(column, how["values"])
        if "window" in how:
            how["window"] = session.window(how["window"])
        return session.plan(self.kind, column, **how)  # type: ignore[arg-type]


def plan_document(asked: Asked, plan: Plan, guarantee: str) -> dict[str, Any]:
    """A plan as JSON, ready to be released from later."""
    return {"form": FORM, "asked": asked.document(), **plan.describe(), "guarantee": guarantee}


def read_plan(path: Path) -> tuple[Asked, Mapping[str, Any]]:
    """What a plan file asks, and all that it says."""
    document = read_json(path, needed="be a plan: `takifugu plan … --out FILE` writes one")
    if not isinstance(document, dict) or document.get("form") != FORM:
        raise InvalidFile(
            str(path), given="is no plan", needed="be one: `takifugu plan … --out FILE` writes it"
        )
    try:
        asked = document["asked"]
        who = asked["analyst"]
        if not all(isinstance(asked[key], str) for key in ("dataset", "kind")):
            raise TypeError
        if not isinstance(asked["how"], dict) or not isinstance(who, str | None):
            raise TypeError
        return Asked(asked["dataset"], asked["kind"], asked["how"], who), document
    except (KeyError, TypeError):
        raise InvalidFile(
            str(path), given="was changed", needed="be as `takifugu plan` wrote it"
        ) from None


def refuse_stale(document: Mapping[str, Any], plan: Plan) -> None:
    """Raise unless the plan that was made now is the one in the document, at the same price."""
    now, then = plan.describe(), document.get("cost")
    price = {key: then.get(key) if isinstance(then, dict) else None for key in PRICE}
    if price != {key: now["cost"][key] for key in PRICE} or any(
        document.get(key) != now[key] for key in SAME
    ):
        raise StalePlan(
            "the plan in the file is not what would be released now: the data, the policy or the"
            " file has changed; nothing was charged. Plan again"
        )
