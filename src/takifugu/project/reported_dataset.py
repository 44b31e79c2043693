"""The columns, secrets and priors of a dataset, in words for a privacy report."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from takifugu.binding.entries import Entries
from takifugu.declarations import Amount, Category, Declaration
from takifugu.declarations.columns import FittedLabels
from takifugu.ledger import Event
from takifugu.priors.independent import Product
from takifugu.priors.networks import MarkovRandomField
from takifugu.priors.prior import Prior
from takifugu.project.loaded_dataset import LoadedDataset
from takifugu.project.policy import DatasetPolicy, Pairs, PriorPolicy
from takifugu.reports.report_values import ReportedColumn, ReportedPrior
from takifugu.session.guarantee import described
from takifugu.session.held_out import ReleasableRows
from takifugu.visible import four_digits, visible

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
