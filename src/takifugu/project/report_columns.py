"""The columns and the secrets of a dataset, in words for a privacy report."""

from collections.abc import Mapping, Sequence
from typing import Any

from takifugu.declarations import Amount, Category, Declaration
from takifugu.declarations.label_lists import FittedLabels
from takifugu.project.policy import DatasetPolicy, Pairs
from takifugu.reports.report_values import ReportedColumn
from takifugu.visible import four_digits, visible

MOST_LISTED = 12  # labels or pairs of a list
OUTSIDE = {
    "drop": "rows with anything else are left out",
    "refuse": "anything else is an error",
}


def reported_columns(declaration: Declaration, about: Sequence[str]) -> tuple[ReportedColumn, ...]:
    """Every column that exists for queries, protected ones first."""
    order = declaration.order
    when = "a number" if order.kind == "number" else f"a time, in the zone {order.zone}"
    found = [
        ReportedColumn(
            column.column,
            "protected" if column.column in about else "protected, and not in this dataset",
            _values(column),
        )
        for column in declaration.protected
    ]
    found += [
        ReportedColumn(column.column, "public", _values(column)) for column in declaration.public
    ]
    found += [
        ReportedColumn(declaration.entity, "whose row it is; public", "as the table has them"),
        ReportedColumn(order.column, "the order of rows; public", when),
    ]
    named = {column.name for column in found}
    found += [
        ReportedColumn(tie, "orders rows of the same time; public", "as the table has them")
        for tie in order.ties
        if tie not in named
    ]
    return tuple(found)


def _values(column: Category | Amount) -> str:
    if isinstance(column, Amount):
        low, high, step = (four_digits(x) for x in (column.low, column.high, column.step))
        return f"a number from {low} to {high}, in steps of {step}"
    if isinstance(column, FittedLabels):
        return "those of the rows that a prior is fitted on; there is none yet"
    if column.values is None:
        return "as the table has them"
    listed = _some([str(key) for key in column.keys])
    rule = OUTSIDE.get(column.outside, f"anything else counts as {column.other}")
    return f"{len(column.keys)} labels: {listed}; {rule}"


def secrets_sentence(policy: DatasetPolicy) -> str:
    """Which values of a cell are kept apart."""
    kept = []
    if policy.entries is not None:
        kept.append(f"of {len(policy.entries)} chosen entries only")
    if isinstance(policy.pairs, Mapping):
        kept += [f"in {column}: {_pairs(pairs)}" for column, pairs in policy.pairs.items()]
    elif policy.pairs is not None:
        kept.append(_pairs(policy.pairs))
    if policy.within is not None:
        kept.append(f"two numbers that are at most {four_digits(policy.within, 'down')} apart")
    if not kept:
        return "Kept apart are any two values that a protected cell may hold."
    return (
        f"Kept apart are, of a protected cell, {'; '.join(kept)}. Nothing is guaranteed for others."
    )


def _pairs(pairs: Pairs) -> str:
    return _some([f"{_side(left)} against {_side(right)}" for left, right in pairs])


def _side(values: Sequence[Any]) -> str:
    return " or ".join(map(str, values))


def _some(names: Sequence[str]) -> str:
    more = len(names) - MOST_LISTED
    return visible(", ".join(names[:MOST_LISTED])) + (f" and {more} more" if more > 0 else "")
