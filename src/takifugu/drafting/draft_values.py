"""Labels, numbers and rules of a draft, as a declaration has them."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, get_args

from takifugu.declarations.columns import Outside
from takifugu.declarations.label_lists import FROM_THE_FITTED_ROWS
from takifugu.declarations.open_points import OPEN
from takifugu.declarations.table_errors import InvalidDeclaration
from takifugu.drafting.source_schema import SchemaColumn
from takifugu.visible import visible

OUTSIDE_WORDS = {
    "refuse": "a value that is not listed, or is missing, is refused",
    "other": "a value that is not listed, or is missing, counts as 'other'",
    "drop": "rows with a value that is not listed, or is missing, are left out, and which these are"
    " is not protected unless the prior has a state for them",
}
EVERY = ""  # of rules by column: for all protected columns of labels that have none of their own


def outside_of(column: str, values: Any, rules: Mapping[str, str], usual: str) -> str:
    """What becomes of values that are not in a list: as said, or else as ``usual``.

    What is found on a part of the rows, or is not known yet, leaves others, which count as one.
    """
    found = values in (FROM_THE_FITTED_ROWS, OPEN)
    return rules.get(column, rules.get(EVERY, "other" if found else usual))


def refuse_outside(said: Mapping[str, str], labels: Sequence[str]) -> None:
    """Raise for a rule that is none, or that no column of ``labels`` follows."""
    for column, rule in said.items():
        if rule not in get_args(Outside):
            raise InvalidDeclaration(
                f"{visible(column)}, outside" if column else "outside",
                given=f"is {rule!r:.40}",
                needed=f"be one of {', '.join(get_args(Outside))}",
                reason="outside",
            )
        if not labels or (column and column not in labels):
            raise InvalidDeclaration(
                f"{visible(column)}, outside" if column else "outside",
                given="is given, and "
                + ("this is no declared column" if column else "there is no protected column")
                + " of labels",
                needed="be left out: it is about values that are not in a list",
                reason="outside",
            )


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return float(value) if isinstance(value, Decimal) else value


def typed(values: Any, column: SchemaColumn) -> Any:
    """Labels as the column has them: whole numbers where it holds those."""
    if column.kind != "whole" or isinstance(values, str | Mapping):
        return list(values) if isinstance(values, tuple) else values
    whole = [int(v) for v in values if str(v).removeprefix("-").isdecimal()]
    return whole if len(whole) == len(values) else list(values)


def step_of(bounds: Sequence[Any], column: SchemaColumn) -> int | Decimal:
    """The unit of sums: 1, or for numbers with decimals at most a thousandth of their range."""
    low, high = (Decimal(str(end)) for end in bounds)
    digits = [-int(end.normalize().as_tuple().exponent) for end in (low, high)]
    if column.kind == "real" and high > low:
        digits.append(3 - (high - low).adjusted())
    places = max(0, *digits)
    return Decimal(1).scaleb(-places) if places else 1
