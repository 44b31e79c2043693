"""Events and accounts for people and for auditors: as words, as JSON, as an export to check.

Nothing here changes a ledger.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Any

from takifugu._core.atomic import read_whole
from takifugu.costs.cost import Cost, cost_words
from takifugu.errors import InvalidFile, LedgerDamaged
from takifugu.ledger.charge_values import EPOCH
from takifugu.ledger.charging import Position
from takifugu.ledger.events.event_chain import ROOT, Anchor, Event, link
from takifugu.ledger.frontier import total_document
from takifugu.ledger.ledger import Ledger, export_line
from takifugu.visible import four_digits

HIDDEN_MARKS = frozenset({"data", "question", "marks"})  # marks of the data; early ones had no key


def public_body(event: Event) -> dict[str, Any]:
    """The body of an event without hashes of protected data."""
    return {name: value for name, value in event.body.items() if name not in HIDDEN_MARKS}


def without_folders(body: Mapping[str, Any]) -> dict[str, Any]:
    """A body whose files are named without their folders."""
    details = body.get("details")
    if not isinstance(details, Mapping) or "files" not in details:
        return dict(body)
    files = [PurePath(str(file)).name for file in details["files"]]
    return {**body, "details": {**details, "files": files}}


def event_document(event: Event, *, places: bool = True) -> dict[str, Any]:
    """An event: its number, time, kind, actor, what it says in words, and all of it but marks.

    Without ``places`` its files are named without their folders.
    """
    body = public_body(event)
    if not places:
        body = without_folders(body)
    return {
        "seq": event.seq,
        "at": event.at.isoformat(),
        "kind": event.kind,
        "hash": event.hash,
        "actor": body.get("actor"),
        "dataset": body.get("dataset"),
        "analyst": body.get("analyst"),
        "words": event_words(body),
        "body": body,
    }


def account_document(position: Position) -> dict[str, Any]:
    """An account: its budget, and the worst per-entry totals, exactly."""
    budget = None
    if position.epsilon is not None:
        budget = {"epsilon": str(position.epsilon), "delta": str(position.delta)}
    return {
        "dataset": position.dataset,
        "analyst": position.analyst,
        "budget": budget,
        "worst": [total_document(total) for total in position.worst],
    }


def ledger_document(ledger: Ledger, *, places: bool) -> dict[str, Any]:
    """The head, the first event and the accounts; with ``places`` also where it is kept."""
    head = ledger.head()
    document = {
        "origin": ledger.origin.hash,
        "head": {"seq": head.seq, "hash": head.hash},
        "accounts": [account_document(position) for position in ledger.positions()],
    }
    return document | ({"place": ledger.name, "witness": ledger.witness} if places else {})


def verification_document(ledger: Ledger, *, places: bool) -> dict[str, Any]:
    """What a verification finds: the chain, every total, the witness; each problem by name."""
    report = ledger.verify()
    recorded = report.witness

    def words(message: str) -> str:
        for place in () if places else (ledger.name, ledger.witness):
            message = message.replace(place, "…") if place else message
        return message

    document = {
        "sound": report.sound,
        "events": report.events,
        "head": {"seq": report.head.seq, "hash": report.head.hash},
        "witness": {
            "kept": ledger.witness is not None,
            "noted": None if recorded is None else {"seq": recorded.seq, "hash": recorded.hash},
        },
        "problems": [
            {"reason": problem.reason, "message": words(str(problem)), "event": problem.event}
            for problem in report.problems
        ],
    }
    return document | ({"place": ledger.name} if places else {})


def export_part(ledger: Ledger, after: int, last: int, most: int) -> tuple[bytes, int]:
    """The events after a number, as ``takifugu ledger export`` writes them; the last one's number.

    At most ``most``, and none after ``last``. Each part is a transaction of its own, so that a
    reader who is slow holds nothing open. Events are never changed, so that the parts fit; a ledger
    that was replaced by a shorter one meanwhile is an error.
    """
    rows = ledger.stored(after, min(most, last - after))
    if not rows:
        raise LedgerDamaged(
            f"event {after + 1} is missing; restore a copy", reason="missing", event=after + 1
        )
    lines = (export_line(hash_, body) for _, hash_, body in rows)
    return "".join(lines).encode("ascii"), rows[-1][0]


FITTED_ROWS_WORDS = {
    "first-days": "on the first days",
    "share": "on a share of the entities",
    "all-rows": "on all rows, including those that are released from",
}


def event_words(body: Mapping[str, Any]) -> str:
    """An event in one clause."""
    try:
        words = _decision(body)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        words = None  # a decision that cannot be read
    return words or _activity(body)


def _decision(body: Mapping[str, Any]) -> str | None:
    """A decision in one clause; None for another kind of event."""
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
            own = body["decision"] == "refused" and body.get("actor") == body["analyst"] is not None
            verb = "withdrawn" if own else body["decision"]
            text = f"release{to} from {body['dataset']} {verb}: {body['words']}; epsilon = {cost}"
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
            rows = FITTED_ROWS_WORDS.get(details.get("rows"), "")
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


_ACTIVITIES = {
    "abandoned": "answer to event {charge} abandoned",
    "answer": "answer to event {charge} stored",
    "created": "ledger created",
    "separate": "{where} counted separately from {other}",
    "source": "rows of {where} compared with those of other datasets",
    "state": "state {number} of the data of {where} begun",
}


def _activity(body: Any) -> str:
    who = f" by {body['actor']}" if body.get("actor") else ""
    where = str(body.get("dataset") or "")
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
        case "loss":
            names = ", ".join(dict.fromkeys(account["dataset"] for account in body["accounts"]))
            lost = body["lost"]["seq"]
            return f"loss of history up to event {lost} accepted{who}: {names} counted as spent"
        case "totals":
            return "digests of totals begun"
        case "cells" if body["how"] == "everywhere":
            by_value = body.get("costs", "by value") == "by value"
            every = "every row" if by_value else "every row, whatever its values are called"
            return f"declaration of {where} accepted{who}: earlier releases charged to {every}"
        case "cells":
            return f"declaration of {where} stated to be unchanged{who}"
        case kind if kind in _ACTIVITIES:
            return _ACTIVITIES[kind].format_map({**body, "where": where}) + who
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


_EXPORTED = re.compile(r'\{"hash":"(.{64})","body":(.*)\}')


@dataclass(frozen=True)
class ExportedChain:
    """What an export holds, if every event follows from the one before it.

    Attributes:
        events: How many there are.
        origin: The first of them, which no other ledger has.
        head: The last.
        ledger: The name that the ledger was given when it was made: its witness knows it by that;
            None if the first event does not say.
    """

    events: int
    origin: Anchor
    head: Anchor
    ledger: str | None = None


def check_export(path: Path, anchors: Sequence[Anchor] = ()) -> ExportedChain:
    """The chain of an export, all of it checked; `LedgerDamaged` if it breaks anywhere.

    An export has one event a line: its hash, and the text that was hashed (`Ledger.export`). So
    each hash can be computed again from the one before it, without the ledger and without its
    software.

    Args:
        path: What `takifugu ledger export` wrote.
        anchors: Events that must be in it with these hashes.
    """
    recorded = {anchor.seq: anchor.hash for anchor in anchors}
    previous, origin, ledger = ROOT, "", None
    needed = "be as `takifugu ledger export` wrote it"
    *lines, last = read_whole(path, field="export", needed=needed).split("\n")
    if last or not lines:
        raise _unreadable(len(lines) + 1)
    for seq, line in enumerate(lines, 1):
        parts = _EXPORTED.fullmatch(line)
        if parts is None:
            raise _unreadable(seq)
        hash_, text = parts.groups()
        if hash_ != link(previous, text):
            raise LedgerDamaged(
                f"event {seq} of the export does not follow from the one before it: the file was"
                " changed. Ask for the original",
                reason="edited",
                event=seq,
            )
        if recorded.pop(seq, hash_) != hash_:
            raise LedgerDamaged(
                f"event {seq} of the export is another one than the recorded one: it is another"
                " history",
                reason="anchor",
                event=seq,
            )
        if seq == 1:
            origin, ledger = hash_, _ledger_in(text)
        previous = hash_
    if recorded:
        missing = min(recorded)
        raise LedgerDamaged(
            f"the export ends with event {seq} and lacks event {missing}, which was recorded: it"
            " is older, or was cut. Ask for a newer one",
            reason="missing",
            event=missing,
        )
    return ExportedChain(seq, Anchor(1, origin), Anchor(seq, previous), ledger)


def _ledger_in(text: str) -> str | None:
    """The name of a ledger in its first event; None if that does not say."""
    try:
        return str(json.loads(text)["ledger"])
    except (ValueError, KeyError, TypeError):
        return None


def _unreadable(seq: int) -> InvalidFile:
    return InvalidFile(
        "export",
        given=f"has no event in line {seq}",
        needed="be as `takifugu ledger export` wrote it",
        reason="not-an-export",
    )
