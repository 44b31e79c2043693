"""Charges of a ledger in plain sentences: what was asked, of which rows, how it is protected."""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from takifugu.ledger.event_documents import asked_words, few, window_words
from takifugu.session.query.query import Query
from takifugu.session.query_kinds import KINDS, query_class
from takifugu.visible import four_digits

KNOWN = frozenset({"name", "column", "by", "k", "values", "level", "every", "query", "weighted_by"})
LISTED = frozenset({"weights"})  # too long for a sentence
NOISE = "Random noise was added to each number before it was released"
ORDER = "Random noise was added to each count, and the largest were taken, in order"
WITH_COUNTS = "The labels were published with these noisy counts and their intervals."
ORDER_ONLY = "The labels were published in this order, and no counts."
METHODS = {
    "integer-laplace": f"{NOISE} (integer Laplace noise).",
    "integer-gaussian": f"{NOISE} (integer Gaussian noise).",
    "bounded-sum": f"{NOISE}; every row counts only within declared bounds.",
    "bounded-mean": f"{NOISE}; every row counts only within declared bounds.",
    "permute-and-flip": "The answer was chosen at random, likelier the closer it is to the true one"
    " (permute-and-flip).",
    "exponential": "The answer was chosen at random, likelier the closer it is to the true one"
    " (exponential mechanism).",
    "laplace-top-k": f"{ORDER} (integer Laplace noise).",
    "gaussian-top-k": f"{ORDER} (integer Gaussian noise).",
}


def title_of(body: Mapping[str, Any]) -> str:
    """The query of a charge in a few words, with the groups that it is about."""
    only = _only(body["groups"])
    return f"{_title(body)}, {only}" if only else _title(body)


def _title(body: Mapping[str, Any]) -> str:
    kind = _kind(body["query"])
    return asked_words(body) if kind is None else kind.summary.format_map(_parts(body["query"]))


def question_of(body: Mapping[str, Any]) -> str:
    """The query of a charge in a sentence."""
    query, kind = body["query"], _kind(body["query"])
    if kind is None:
        return f"{asked_words(body)}."
    asked = kind.question.format_map(_parts(query))
    rest = {name: value for name, value in query.items() if name not in KNOWN | LISTED}
    more = [f"{name.replace('_', ' ')}: {few(value)}" for name, value in rest.items() if value]
    return f"{asked} ({'; '.join(more)})" if more else asked


def _kind(query: Mapping[str, Any]) -> type[Query] | None:
    """The class of a query that has words of its own; None of another, or of another program."""
    name = query.get("name")
    kind = query_class(name) if isinstance(name, str) and name in KINDS else None
    return None if kind is None or not kind.summary else kind


def _parts(query: Mapping[str, Any]) -> dict[str, str]:
    """What the words of a query class may name."""
    groups = " and ".join(map(str, query.get("by") or ()))
    level = four_digits(Fraction(str(query.get("level", "1/2"))))
    return {
        "column": _columns(query),
        "by": f" by {groups}" if groups else "",
        "each": f", for each {groups}" if groups else "",
        "k": str(query.get("k", 1)),
        "values": few(query.get("values", [])),
        "level": level,
        "quantile": "median" if level == "0.5" else f"quantile of level {level}",
        "name": str(query.get("query")),
        "weighted_by": str(query.get("weighted_by")),
    }


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
    about, kind = query.get("column") or "", _kind(query)
    if kind is None or not isinstance(about, list):
        return str(about)
    return kind.between.join(map(str, about))
