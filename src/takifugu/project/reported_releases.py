"""Releases of a ledger for a privacy report: in plain sentences, and as tables of their answers.

Answers are stored with the table that was published. One that was stored before that, or whose
table is too long, is laid out by the declaration, as it was drawn, if that is still the one it was
released under and lists all keys; else it is a list of numbers, and the report says so. No data is
read.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, Literal

from takifugu.declarations import Category, Declaration, InvalidQuery
from takifugu.ledger.event_documents import asked_words, few, window_words
from takifugu.session.cells import declared
from takifugu.visible import four_digits

KEYS_IN_WORDS = frozenset(
    {"name", "column", "by", "k", "values", "level", "every", "query", "weighted_by"}
)
KEYS_LEFT_OUT = frozenset({"weights"})  # too long for a sentence
NOISE_SENTENCE = "Random noise was added to each number before it was released"
ORDER_SENTENCE = "Random noise was added to each count, and the largest were taken, in order"
WITH_COUNTS = "The labels were published with these noisy counts and their intervals."
ORDER_ONLY = "The labels were published in this order, and no counts."
METHODS = {
    "integer-laplace": f"{NOISE_SENTENCE} (integer Laplace noise).",
    "integer-gaussian": f"{NOISE_SENTENCE} (integer Gaussian noise).",
    "bounded-sum": f"{NOISE_SENTENCE}; every row counts only within declared bounds.",
    "bounded-mean": f"{NOISE_SENTENCE}; every row counts only within declared bounds.",
    "permute-and-flip": "The answer was chosen at random, likelier the closer it is to the true one"
    " (permute-and-flip).",
    "exponential": "The answer was chosen at random, likelier the closer it is to the true one"
    " (exponential mechanism).",
    "laplace-top-k": f"{ORDER_SENTENCE} (integer Laplace noise).",
    "gaussian-top-k": f"{ORDER_SENTENCE} (integer Gaussian noise).",
}


AS_DRAWN = (
    "The ledger has this answer as it was drawn: numbers may lie outside what is possible, below 0"
    " for instance."
)
NO_NAMES = (
    "The ledger has this answer as a list of numbers. The names that belong to them are not in the"
    " ledger, and the declaration does not list them all, or was changed since."
)
FOREIGN_ANSWER = (
    "It was charged by another program, an external release: the ledger has its answer, in a form"
    " that only that program reads."
)
COUNTS = frozenset({"histogram", "count", "counts", "transitions", "marginals", "proportions"})


# A kind of query: in a few words, and as a question.
KIND_WORDS = {
    "top_k": (
        "the {k} most frequent values of {column}{by}",
        "Which are the {k} most frequent values of {column}{each}?",
    ),
    "proportions": (
        "the shares of the values of {column}{by}",
        "What share of the rows has each value of {column}{each}?",
    ),
    "histogram": (
        "the counts of the values of {column}{by}",
        "How many rows have each value of {column}{each}?",
    ),
    "counts": (
        "the counts of some values of {column}{by}",
        "How many rows have each of {values} in {column}{each}?",
    ),
    "count": (
        "the count of {values} in {column}{by}",
        "How many rows have one of {values} in {column}{each}?",
    ),
    "transitions": (
        "the counts of how values of {column} follow one another{by}",
        "How often was each value of {column} followed by each value, in the rows of one"
        " entity{each}?",
    ),
    "marginals": (
        "the counts of the values of each of {column}{by}",
        "How many rows have each value of each of {column}{each}?",
    ),
    "sum": ("the sum of {column}{by}", "What do the numbers of {column} add up to{each}?"),
    "mean": ("the mean of {column}{by}", "What is the mean of {column}{each}?"),
    "quantile": (
        "the {quantile} of {column}{by}",
        "Below which number lies the share {level} of {column}{each}?",
    ),
    "linear": (
        "the weighted sum {query} of {column}{by}",
        "What is the sum of {column}, weighted by {weighted_by} ({query}){each}?",
    ),
}


def title_of(body: Mapping[str, Any]) -> str:
    """The query of a charge in a few words, with the groups that it is about."""
    only = _only(body["groups"])
    title = _in_words(body, 0) or asked_words(body)
    return f"{title}, {only}" if only else title


def question_of(body: Mapping[str, Any]) -> str:
    """The query of a charge in a sentence."""
    question = _in_words(body, 1)
    if question is None:
        return f"{asked_words(body)}."
    rest = {
        name: value
        for name, value in body["query"].items()
        if name not in KEYS_IN_WORDS | KEYS_LEFT_OUT
    }
    more = [f"{name.replace('_', ' ')}: {few(value)}" for name, value in rest.items() if value]
    return f"{question} ({'; '.join(more)})" if more else question


def _in_words(body: Mapping[str, Any], form: Literal[0, 1]) -> str | None:
    """A query by the words of its kind; None if that has none."""
    query, words = body["query"], KIND_WORDS.get(str(body["query"].get("name")))
    if words is None:
        return None
    level = _level(query) if query["name"] == "quantile" else ""
    by = _and(query.get("by") or ())
    return words[form].format(
        column=_columns(query),
        by=f" by {by}" if by else "",
        each=f", for each {by}" if by else "",
        k=query.get("k", 1),
        values=few(query.get("values", [])),
        level=level,
        quantile="median" if level == "0.5" else f"quantile of level {level}",
        query=query.get("query"),
        weighted_by=query.get("weighted_by"),
    )


def rows_of_charge(body: Mapping[str, Any], shown: Mapping[str, Any]) -> str:
    """Which rows a charge read, and how many if that was recorded."""
    parts = []
    read, there = shown.get("rows_read"), shown.get("rows_there")
    if isinstance(read, int) and isinstance(there, int):
        parts.append(f"{read:,} of {there:,}" if read < there else f"all {read:,}")
    if window := body["window"]:
        parts.append(window_words(window))
    if only := _only(body["groups"]):
        parts.append(only)
    words = ", ".join(parts) or "all that may be released"
    others = shown.get("rows_others")
    if isinstance(others, list) and others:
        why = re.sub("`([^`]*)`", r"“\1”", " or ".join(map(str, others)))
        words += f"; the others are {why}"
    return words


def _only(groups: Mapping[str, Any] | None) -> str:
    """The groups that a charge read; empty for all of them."""
    if not groups:
        return ""
    keys = [" × ".join(map(str, key)) for key in groups["keys"]]
    return f"only {' × '.join(groups['columns'])} {few(keys)}"


def method_of(mechanism: Mapping[str, Any], *, ranked: Sequence[str] = ()) -> str:
    """How an answer was protected; of a ranking with the columns ``ranked``, what was published."""
    kind = str(mechanism.get("kind") or mechanism.get("name") or "unknown")
    words = METHODS.get(kind, f"By the mechanism {kind}.")
    if not ranked:
        return words
    counts = any(str(name).removesuffix(" (answer)") == "estimate" for name in ranked)
    return f"{words} {WITH_COUNTS if counts else ORDER_ONLY}"


def _columns(query: Mapping[str, Any]) -> str:
    about = query.get("column") or ""
    if not isinstance(about, list):
        return str(about)
    between = ", " if query.get("name") == "marginals" else " × "
    return between.join(map(str, about))


def _and(names: Sequence[Any]) -> str:
    return " and ".join(map(str, names))


def _level(query: Mapping[str, Any]) -> str:
    return four_digits(Fraction(str(query.get("level", "1/2"))))


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
        return StoredTable((), (), FOREIGN_ANSWER)
    try:
        return _table(body, answer, declaration)
    except (AttributeError, LookupError, TypeError, ValueError):
        return StoredTable((), (), FOREIGN_ANSWER)


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
    if body.get("declared") == declared(declaration) and "leave_out" not in body["query"]:
        axes = _axes(body, declaration)
    if axes is not None and body["query"]["name"] == "top_k" and drawn == answer["drawn"]:
        return _ranking(body["query"], axes, drawn)
    if body["query"]["name"] == "top_k":
        axes = None
    if axes is None or prod(len(keys) for _, keys in axes) != len(drawn):
        return StoredTable(("number",), tuple((value,) for value in drawn), NO_NAMES)
    names = tuple(name for name, _ in axes)
    keys = product(*(keys for _, keys in axes))
    half = _half(body)
    counts = "count as drawn" if body["query"]["name"] == "proportions" else "estimate"
    if half is None or counts != "estimate":
        rows = tuple((*key, value) for key, value in zip(keys, drawn, strict=True))
        return StoredTable((*names, counts), rows, AS_DRAWN)
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


def _axes(body: Mapping[str, Any], declaration: Declaration) -> Axes | None:
    """The names and keys of an answer; None if the declaration does not list them."""
    query = body["query"]
    columns = query["column"] if isinstance(query["column"], list) else [query["column"]]
    axes: Axes = []
    for name in query.get("by", ()):
        keys = _keys(declaration, name)
        if keys is None:
            return None
        axes.append((name, _chosen(name, keys, body["groups"])))
    match query["name"]:
        case "histogram" | "proportions":
            own = [(name, _keys(declaration, name)) for name in columns]
        case "top_k":
            out = frozenset(query.get("leave_out", ()))
            own = [(name, _ranked(_keys(declaration, name), out)) for name in columns]
        case "counts":
            listed = frozenset(query["values"])
            keys = _keys(declaration, columns[0]) or ()
            own = [(columns[0], tuple(key for key in keys if key in listed))]
        case "transitions":
            keys = _keys(declaration, columns[0])
            own = [(f"{columns[0]} before", keys), (columns[0], keys)]
        case "count" | "sum" | "mean":
            own = []
        case _:
            return None
    if any(keys is None for _, keys in own):
        return None
    return [*axes, *((name, keys) for name, keys in own if keys is not None)]


def _keys(declaration: Declaration, name: str) -> tuple[Any, ...] | None:
    try:
        column: Category = declaration.category(name)
    except InvalidQuery:
        return None
    return None if column.values is None else column.keys


def _ranked(keys: tuple[Any, ...] | None, out: frozenset[Any]) -> tuple[Any, ...] | None:
    return None if keys is None else tuple(key for key in keys if key not in out)


def _chosen(name: str, keys: Sequence[Any], groups: Mapping[str, Any] | None) -> tuple[Any, ...]:
    if groups is None or name not in groups["columns"]:
        return tuple(keys)
    place = groups["columns"].index(name)
    chosen = {key[place] for key in groups["keys"]}
    return tuple(key for key in keys if key in chosen)


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
    if body["query"]["name"] not in COUNTS or not str(mechanism.get("kind")).startswith("integer"):
        return None
    error = mechanism.get("error")
    return float(error["interval"]) if isinstance(error, Mapping) and "interval" in error else None
