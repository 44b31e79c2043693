"""A dataset and its releases for a privacy report: in plain sentences, and answers as tables.

Answers are stored with the table that was published. One that was stored before that, or whose
table is too long, is laid out by the declaration, as it was drawn, if that is still the one it was
released under and lists all keys; else it is a list of numbers, and the report says so. No data is
read.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from math import prod
from pathlib import PurePath
from typing import Any, Literal

from takifugu.binding.entries import Entries
from takifugu.declarations import Amount, Category, Declaration, InvalidQuery
from takifugu.declarations.columns import FittedLabels
from takifugu.ledger import Event
from takifugu.ledger.event_documents import asked_words, few, window_words
from takifugu.priors.independent import Product
from takifugu.priors.networks import MarkovRandomField
from takifugu.priors.prior import Prior
from takifugu.project.loaded_dataset import LoadedDataset
from takifugu.project.policy import DatasetPolicy, Pairs, PriorPolicy
from takifugu.reports.report_values import ReportedColumn, ReportedPrior
from takifugu.session.cells import declared
from takifugu.session.guarantee import described
from takifugu.session.held_out import ReleasableRows
from takifugu.session.query.query import Query
from takifugu.session.query_kinds import KINDS, is_ranking, query_class
from takifugu.visible import four_digits, visible

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


def title_of(body: Mapping[str, Any]) -> str:
    """The query of a charge in a few words, with the groups that it is about."""
    only = _only(body["groups"])
    title = _in_words(body, "summary") or asked_words(body)
    return f"{title}, {only}" if only else title


def question_of(body: Mapping[str, Any]) -> str:
    """The query of a charge in a sentence."""
    question = _in_words(body, "question")
    if question is None:
        return f"{asked_words(body)}."
    rest = {
        name: value
        for name, value in body["query"].items()
        if name not in KEYS_IN_WORDS | KEYS_LEFT_OUT
    }
    more = [f"{name.replace('_', ' ')}: {few(value)}" for name, value in rest.items() if value]
    return f"{question} ({'; '.join(more)})" if more else question


def _in_words(body: Mapping[str, Any], form: Literal["summary", "question"]) -> str | None:
    """A query by the words of its kind; None if that has none."""
    query, kind = body["query"], _kind(body)
    if kind is None or not kind.summary:
        return None
    level = four_digits(Fraction(str(query.get("level", "1/2")))) if "level" in query else "0.5"
    by, about = " and ".join(map(str, query.get("by") or ())), query.get("column") or ""
    parts = {
        **query,
        "column": kind.between.join(map(str, about)) if isinstance(about, list) else about,
        "by": f" by {by}" if by else "",
        "each": f", for each {by}" if by else "",
        "k": query.get("k", 1),
        "values": few(query.get("values", [])),
        "level": level,
        "quantile": "median" if level == "0.5" else f"quantile of level {level}",
    }
    words: str = getattr(kind, form)
    return words.format_map(defaultdict(str, parts))


def _kind(body: Mapping[str, Any]) -> type[Query] | None:
    """The class of the query of a charge; None of another program's."""
    name = body["query"].get("name")
    return query_class(name) if isinstance(name, str) and name in KINDS else None


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
    kind, axes = _kind(body), None
    if kind is not None and body.get("declared") == declared(declaration):
        axes = None if "leave_out" in body["query"] else _axes(kind, body, declaration)
    if kind is not None and is_ranking(kind.kind):
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
    if not str(mechanism.get("kind")).startswith("integer"):
        return None
    error = mechanism.get("error")
    return float(error["interval"]) if isinstance(error, Mapping) and "interval" in error else None


MAX_LISTED = 12  # labels or pairs of a list
OUTSIDE_WORDS = {
    "drop": "rows with anything else are left out",
    "refuse": "anything else is an error",
}
OF_PEOPLE = frozenset({"entities", "entities × sequence"})  # readings whose entries are people
MAX_FACT_NAMES = 12
FACT_WORDS = {  # of facts, for people
    "states": "values",
    "names": "which are",
    "length": "rows of one entity, at most",
    "entries": "entries",
    "zeros": "transitions taken as impossible",
    "start": "law of the first row",
    "known": "other rows that are known",
    "kernel": "kernel of the correlation",
}
SEQUENCES = frozenset({"sequence", "household", "entities × sequence"})
RELATED_EXAMPLES = (  # by what the entries of all priors are
    (SEQUENCES, "where somebody was at noon says where they were at eleven"),
    (frozenset({"row"}), "one column of a row says something about another"),
    (frozenset({"entities"}), "what holds for one person says something about those around them"),
)
NOT_PROTECTED = (
    "The people whose rows the prior was fitted on are not protected from what the prior shows"
)
POLICY_CHANGES = frozenset({"fitted", "entered", "written"})  # what a policy event records


def reported_columns(declaration: Declaration, about: Sequence[str]) -> tuple[ReportedColumn, ...]:
    """Every column that exists for queries, protected ones first."""
    order = declaration.order
    when = "a number" if order.kind == "number" else f"a time, in the zone {order.zone}"
    columns = [
        ReportedColumn(
            column.column,
            "protected" if column.column in about else "protected, and not in this dataset",
            _values(column),
        )
        for column in declaration.protected
    ]
    columns += [
        ReportedColumn(column.column, "public", _values(column)) for column in declaration.public
    ]
    columns += [
        ReportedColumn(declaration.entity, "whose row it is; public", "as the table has them"),
        ReportedColumn(order.column, "the order of rows; public", when),
    ]
    named = {column.name for column in columns}
    columns += [
        ReportedColumn(tie, "orders rows of the same time; public", "as the table has them")
        for tie in order.ties
        if tie not in named
    ]
    return tuple(columns)


def _values(column: Category | Amount) -> str:
    if isinstance(column, Amount):
        low, high, step = (four_digits(x) for x in (column.low, column.high, column.step))
        return f"a number from {low} to {high}, in steps of {step}"
    if isinstance(column, FittedLabels):
        return "those of the rows that a prior is fitted on; there is none yet"
    if column.values is None:
        return "as the table has them"
    listed = _some([str(key) for key in column.keys])
    rule = OUTSIDE_WORDS.get(column.outside, f"anything else counts as {column.other}")
    return f"{len(column.keys)} labels: {listed}; {rule}"


def secrets_sentence(policy: DatasetPolicy) -> str:
    """Which values of a cell are kept apart."""
    parts = []
    if policy.entries is not None:
        parts.append(f"of {len(policy.entries)} chosen entries only")
    if isinstance(policy.pairs, Mapping):
        parts += [f"in {column}: {_pairs(pairs)}" for column, pairs in policy.pairs.items()]
    elif policy.pairs is not None:
        parts.append(_pairs(policy.pairs))
    if policy.within is not None:
        parts.append(f"two numbers that are at most {four_digits(policy.within, 'down')} apart")
    if not parts:
        return "Kept apart are any two values that a protected cell may hold."
    words = "; ".join(parts)
    return f"Kept apart are, of a protected cell, {words}. Nothing is guaranteed for others."


def _pairs(pairs: Pairs) -> str:
    return _some([f"{_side(left)} against {_side(right)}" for left, right in pairs])


def _side(values: Sequence[Any]) -> str:
    return " or ".join(map(str, values))


def _some(names: Sequence[str]) -> str:
    more = len(names) - MAX_LISTED
    return visible(", ".join(names[:MAX_LISTED])) + (f" and {more} more" if more > 0 else "")


def reported_priors(found: LoadedDataset, events: Sequence[Event]) -> tuple[ReportedPrior, ...]:
    """Each prior of the policy, once."""
    done: dict[str, ReportedPrior] = {}
    for policy, prior in found.by_policy:
        if prior.fingerprint in done:
            continue
        done[prior.fingerprint] = ReportedPrior(
            prior,
            words=described(prior),
            file=PurePath(policy.file).name,
            origin=tuple(_origin(policy, prior, events)),
            facts=_facts(prior),
            named=policy.over not in OF_PEOPLE and not isinstance(prior, Product),
        )
    return tuple(done.values())


def related_words(read: Mapping[str, Entries]) -> str:
    """An example of how one cell tells of another, by what the entries of the priors are."""
    over = {one.over for one in read.values()}
    return next((example for kinds, example in RELATED_EXAMPLES if over <= kinds), "")


def fitted_sentence(releasable: ReleasableRows) -> str:
    """Whom the guarantee leaves out because a prior was fitted on their rows; empty for nobody."""
    if not releasable.statements:
        return ""
    if releasable.warning is not None:
        return f"{NOT_PROTECTED}, and results are about these rows too."
    which, others = [], []
    if releasable.entities is not None:
        share = four_digits(100 * releasable.entities.low)
        which.append(f"of about {share} % of the people, whom a hash has chosen")
        others.append("the other people")
    if releasable.start is not None:
        which.append(f"before {releasable.start}")
        others.append("later rows")
    return (
        f"{NOT_PROTECTED}; these are the rows {' and those '.join(which)}, and results are about"
        f" {' and '.join(others)} only."
    )


def _origin(policy: PriorPolicy, prior: Prior, events: Sequence[Event]) -> Iterator[str]:
    if prior.fitted_on:
        yield from dict.fromkeys(rule.statement for rule in prior.fitted_on)
    else:
        yield "It was written down by the owner, and not estimated from rows of the table."
    if policy.start is not None or policy.known is not None:
        yield "The policy takes the adversary to know more, or less, than its file says."
    name = PurePath(policy.file).name
    for event in reversed(events):
        details = event.body.get("details", {})
        if event.kind == "policy" and name in [
            PurePath(str(file)).name for file in details.get("files", ())
        ]:
            how = details.get("how") if details.get("how") in POLICY_CHANGES else "entered"
            who = f" by {event.body['actor']}" if event.body.get("actor") else ""
            yield f"It was {how} on {event.at:%Y-%m-%d}{who} (event {event.seq})."
            return


def _facts(prior: Prior) -> dict[str, str]:
    facts: Mapping[str, Any] = prior.facts()
    in_words = {}
    for name, value in facts.items():
        if isinstance(value, list | tuple):
            names = [str(part) for part in value]
            more = len(names) - MAX_FACT_NAMES
            text = ", ".join(names[:MAX_FACT_NAMES]) + (f" and {more} more" if more > 0 else "")
        elif isinstance(value, float):
            text = four_digits(value)
        elif value is None:
            text = "unbounded" if name in ("length", "entries") else "none"
        else:
            text = f"{value:,}" if isinstance(value, int) else str(value)
        in_words[FACT_WORDS.get(name, name.replace("_", " "))] = text
    if isinstance(prior, MarkovRandomField):
        in_words["pairs that pull each other"] = f"{len(prior.edges):,}"
    return in_words
