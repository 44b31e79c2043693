"""Stored answers as tables, from the ledger and the declaration alone: no data is read.

Answers are stored with the table that was published. One that was stored before that, or whose
table is too long, is laid out by the declaration, as it was drawn, if that is still the one it was
released under and lists all keys; else it is a list of numbers, and it is said so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from typing import Any

from takifugu.declarations import Category, Declaration, InvalidQuery
from takifugu.session.cells import declared
from takifugu.session.query.query import Query
from takifugu.session.query_kinds import KINDS, query_class

AS_DRAWN = (
    "The ledger has this answer as it was drawn: numbers may lie outside what is possible, below 0"
    " for instance."
)
NO_NAMES = (
    "The ledger has this answer as a list of numbers. The names that belong to them are not in the"
    " ledger, and the declaration does not list them all, or was changed since."
)
FOREIGN = (
    "It was charged by another program, an external release: the ledger has its answer, in a form"
    " that only that program reads."
)


@dataclass(frozen=True)
class StoredTable:
    """A stored answer: columns and rows, and what to know of them; empty if nothing."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""


def is_foreign(body: Mapping[str, Any], answer: Any) -> bool:
    """Whether no session has stored the answer to a charge, whose event has the body ``body``."""
    return not (
        isinstance(answer, Mapping)
        and isinstance(answer.get("drawn"), list)
        and isinstance(body["query"].get("name"), str)
    )


def stored_table(
    body: Mapping[str, Any], answer: Mapping[str, Any], declaration: Declaration
) -> StoredTable:
    """The table of the answer to a charge, whose event has the body ``body``.

    `Ledger.record_answer` stores what it is given: a foreign answer has no table.
    """
    if is_foreign(body, answer):
        return StoredTable((), (), FOREIGN)
    try:
        return _table(body, answer, declaration)
    except (AttributeError, LookupError, TypeError, ValueError):
        return StoredTable((), (), FOREIGN)


def _table(
    body: Mapping[str, Any], answer: Mapping[str, Any], declaration: Declaration
) -> StoredTable:
    shown = answer.get("shown")
    if isinstance(shown, Mapping):
        notes = [_sentence(note) for note in shown.get("notes", ()) if note]
        rows = tuple(map(tuple, shown["rows"]))
        return StoredTable(tuple(shown["columns"]), rows, " ".join(notes))
    drawn = _flat(answer.get("drawn", ()))
    axes = None
    kind = query_class(body["query"]["name"]) if body["query"]["name"] in KINDS else None
    if kind is not None and body.get("declared") == declared(declaration):
        axes = None if "leave_out" in body["query"] else _axes(kind, body, declaration)
    if kind is not None and kind.ranks:
        if axes is not None and drawn == answer["drawn"]:
            return _ranking(body["query"], axes, drawn)
        axes = None
    if kind is None or axes is None or prod(len(keys) for _, keys in axes) != len(drawn):
        return StoredTable(("number",), tuple((value,) for value in drawn), NO_NAMES)
    names = tuple(name for name, _ in axes)
    keys = product(*(keys for _, keys in axes))
    half = _half(body)
    if half is None or kind.stored_as != "estimate":
        rows = tuple((*key, value) for key, value in zip(keys, drawn, strict=True))
        return StoredTable((*names, kind.stored_as), rows, AS_DRAWN)
    rows = tuple(
        (*key, None, None, None) if value is None else (*key, value, value - half, value + half)
        for key, value in zip(keys, drawn, strict=True)
    )
    return StoredTable((*names, "estimate", "low", "high"), rows, AS_DRAWN)


def _sentence(note: str) -> str:
    """A note on a result, without what only analysts can make use of."""
    for advice in ("; `raw`", "; give "):
        note = note.partition(advice)[0]
    return f"{note[0].upper()}{note[1:]}."


def _flat(drawn: Sequence[Any]) -> list[Any]:
    """One number after the other: rankings with counts have a list for each group."""
    return [part for value in drawn for part in (value if isinstance(value, list) else [value])]


Axes = list[tuple[str, Sequence[Any]]]


def _axes(kind: type[Query], body: Mapping[str, Any], declaration: Declaration) -> Axes | None:
    """The names and keys of an answer; None if the declaration does not list them."""
    query = body["query"]
    own = kind.stored_axes(query, partial(_keys, declaration))
    groups = [(name, _keys(declaration, name)) for name in query.get("by", ())]
    if own is None or any(keys is None for _, keys in (*groups, *own)):
        return None
    chosen = [(name, _chosen(name, keys or (), body["groups"])) for name, keys in groups]
    return [*chosen, *((name, keys or ()) for name, keys in own)]


def _keys(declaration: Declaration, name: str) -> tuple[Any, ...] | None:
    try:
        column: Category = declaration.category(name)
    except InvalidQuery:
        return None
    return None if column.values is None else column.keys


def _chosen(name: str, keys: Sequence[Any], groups: Mapping[str, Any] | None) -> tuple[Any, ...]:
    if groups is None or name not in groups["columns"]:
        return tuple(keys)
    place = groups["columns"].index(name)
    kept = {key[place] for key in groups["keys"]}
    return tuple(key for key in keys if key in kept)


def _ranking(query: Mapping[str, Any], axes: Axes, drawn: list[Any]) -> StoredTable:
    depth = len(query.get("by", ()))
    labels = list(product(*(keys for _, keys in axes[depth:])))
    groups = list(product(*(keys for _, keys in axes[:depth])))
    k = int(query.get("k", 1))
    if drawn and all(isinstance(noisy, list) for noisy in drawn):  # the counts that were sorted
        drawn = [place for noisy in drawn for place in _largest(noisy)[:k]]
    fits = all(isinstance(value, int) and 0 <= value < len(labels) for value in drawn)
    if not fits or len(drawn) != k * len(groups):
        return StoredTable(("number",), tuple((value,) for value in drawn), NO_NAMES)
    places = iter(drawn)
    rows = tuple(
        (*group, place + 1, *labels[next(places)]) for group in groups for place in range(k)
    )
    names = [name for name, _ in axes]
    return StoredTable((*names[:depth], "rank", *names[depth:]), rows)


def _largest(noisy: Sequence[int]) -> list[int]:
    """The places of the largest numbers, in order; of equal ones, the first."""
    return [place for _, place in sorted((-number, place) for place, number in enumerate(noisy))]


def _half(body: Mapping[str, Any]) -> float | None:
    """Half of a 95 % interval, of counts with integer noise."""
    mechanism = body["mechanism"]
    if not str(mechanism.get("kind")).startswith("integer"):
        return None
    error = mechanism.get("error")
    return float(error["interval"]) if isinstance(error, Mapping) and "interval" in error else None
