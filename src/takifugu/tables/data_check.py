"""Whether the data fits its declaration, checked without revealing any protected value."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from takifugu.declarations.columns import Amount
from takifugu.declarations.label_lists import FittedLabels
from takifugu.declarations.table_errors import DatabaseFailed, InvalidDeclaration, run_isolated
from takifugu.errors import TakifuguError
from takifugu.tables.backends.backend import DataFingerprint
from takifugu.tables.backends.csv_reading import has_utf8_letters
from takifugu.tables.engine import Engine
from takifugu.visible import visible


@dataclass(frozen=True)
class DataCheck:
    """The public facts of a table that fits its declaration.

    Attributes:
        rows: How many rows there are.
        entities: How many entities they belong to.
        longest: The number of rows of the entity with most of them.
        first: The first place in the order; None if there are no rows, or no order.
        last: The last one.
        keys: For each column of labels, how many keys it has.
        data: The identity of the data that was checked.
    """

    rows: int
    entities: int
    longest: int
    first: datetime | float | None
    last: datetime | float | None
    keys: dict[str, int]
    data: DataFingerprint


def check(engine: Engine) -> DataCheck:
    """Read the whole table, and raise the first thing in it that the declaration rules out.

    That is: rows without an entity or a place, ties in the order, and values outside a list, or
    missing, where they are to be refused. Counts of protected values are looked at for nothing
    else and go nowhere.
    """
    declaration = engine.declaration
    _refuse_misread(engine)
    engine.refuse_disorder()
    run_isolated(lambda: _refuse_strays(engine), _broke(engine), stop=engine.interrupt)
    lengths = engine.lengths()
    ordered = lengths.rows and not declaration.order.absent
    first, last = engine.span() if ordered else (None, None)
    described = (*declaration.protected, *declaration.public)
    labels = [c for c in described if not isinstance(c, Amount | FittedLabels)]
    return DataCheck(
        rows=lengths.rows,
        entities=int(lengths.entities.sum()),
        longest=lengths.longest,
        first=first,
        last=last,
        keys={column.column: len(engine.keys(column.column)) for column in labels},
        data=engine.fingerprint(),
    )


def _refuse_misread(engine: Engine) -> None:
    """Raise if a file is not written as declared: of times, with how many rows that are."""
    source, order = engine.declaration.source, engine.declaration.order
    if source.encoding == "latin-1" and any(map(has_utf8_letters, engine.files)):
        raise InvalidDeclaration(
            "source, encoding",
            given="is 'latin-1', and a file is UTF-8: its letters would be read as others",
            needed="be 'utf-8'",
            reason="encoding",
        )
    engine.refuse_cut_rows()
    if order.format is None:
        return
    unparsed = engine.unparsed_times()
    if unparsed:
        rows = "1 row" if unparsed == 1 else f"{unparsed:,} rows"
        raise InvalidDeclaration(
            "order, format",
            given=f"is {order.format!r}, and {rows} of `{visible(order.column)}` are written"
            " otherwise",
            needed="be that of all rows: mend those rows, or the format",
            reason="unparsed",
        )


def _refuse_strays(engine: Engine) -> None:
    declaration = engine.declaration
    for column in (*declaration.protected, *declaration.public):
        if isinstance(column, Amount):
            if column.missing == "refuse":
                engine.sums(column.column)
        elif column.outside == "refuse":
            engine.histogram([column.column])


def _broke(engine: Engine) -> Callable[[str], TakifuguError]:
    return lambda kind: DatabaseFailed(
        visible(engine.declaration.source.place),
        doing="checked",
        trouble=kind,
        advice="check it again, or report it",
    )
