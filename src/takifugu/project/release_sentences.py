"""Charges of a ledger in plain sentences: what was asked, of which rows, how it is protected."""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from takifugu.ledger.event_documents import asked_words, few, window_words
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
    query = body["query"]
    column, by = _columns(query), _by(query)
    match query.get("name"):
        case "top_k":
            return f"the {query.get('k', 1)} most frequent values of {column}{by}"
        case "proportions":
            return f"the shares of the values of {column}{by}"
        case "histogram":
            return f"the counts of the values of {column}{by}"
        case "counts":
            return f"the counts of some values of {column}{by}"
        case "count":
            return f"the count of {few(query.get('values', []))} in {column}{by}"
        case "transitions":
            return f"the counts of how values of {column} follow one another{by}"
        case "marginals":
            return f"the counts of the values of each of {column}{by}"
        case "sum" | "mean" as kind:
            return f"the {kind} of {column}{by}"
        case "quantile":
            return f"the {_quantile(query)} of {column}{by}"
        case "linear":
            return f"the weighted sum {query.get('query')} of {column}{by}"
    return asked_words(body)


def question_of(body: Mapping[str, Any]) -> str:
    """The query of a charge in a sentence."""
    query = body["query"]
    column, each = _columns(query), _each(query)
    match query.get("name"):
        case "top_k":
            asked = f"Which are the {query.get('k', 1)} most frequent values of {column}{each}?"
        case "proportions":
            asked = f"What share of the rows has each value of {column}{each}?"
        case "histogram":
            asked = f"How many rows have each value of {column}{each}?"
        case "counts":
            asked = f"How many rows have each of {few(query.get('values', []))} in {column}{each}?"
        case "count":
            asked = f"How many rows have one of {few(query.get('values', []))} in {column}{each}?"
        case "transitions":
            asked = (
                f"How often was each value of {column} followed by each value, in the rows of one"
                f" entity{each}?"
            )
        case "marginals":
            asked = f"How many rows have each value of each of {column}{each}?"
        case "sum":
            asked = f"What do the numbers of {column} add up to{each}?"
        case "mean":
            asked = f"What is the mean of {column}{each}?"
        case "quantile":
            asked = f"Below which number lies the share {_level(query)} of {column}{each}?"
        case "linear":
            asked = (
                f"What is the sum of {column}, weighted by {query.get('weighted_by')}"
                f" ({query.get('query')}){each}?"
            )
        case _:
            return f"{asked_words(body)}."
    rest = {name: value for name, value in query.items() if name not in KNOWN | LISTED}
    more = [f"{name.replace('_', ' ')}: {few(value)}" for name, value in rest.items() if value]
    return f"{asked} ({'; '.join(more)})" if more else asked


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


def _by(query: Mapping[str, Any]) -> str:
    return f" by {_and(query['by'])}" if query.get("by") else ""


def _each(query: Mapping[str, Any]) -> str:
    return f", for each {_and(query['by'])}" if query.get("by") else ""


def _and(names: Sequence[Any]) -> str:
    return " and ".join(map(str, names))


def _level(query: Mapping[str, Any]) -> str:
    return four_digits(Fraction(str(query.get("level", "1/2"))))


def _quantile(query: Mapping[str, Any]) -> str:
    level = _level(query)
    return "median" if level == "0.5" else f"quantile of level {level}"
