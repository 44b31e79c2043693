"""What of a declaration names a cell, in parts that people can compare.

A part belongs here if an edit of it could make the same row answer to another name: the ledger
would then count two losses of that row on two cells. Lists count as sets, since their order names
nothing; texts count letter by letter, since 1 and "1", or two spellings of one letter, may name
different rows. Titles, and columns that the account is not about, are left out.
"""

import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from takifugu._atomic import real_path
from takifugu.engines import Amount, Category, Declaration, Engine
from takifugu.fingerprint import fingerprint
from takifugu.ledger import Cells
from takifugu.priors import Name


def cells_of(engine: Engine, about: str, home: Path | None) -> Cells:
    """What names the cells of ``about`` in a table; paths count from ``home`` where they can."""
    declaration = engine.declaration
    order = declaration.order
    column = next(c for c in declaration.protected if c.column == about)
    return Cells.of(
        {
            "source": source_of(declaration, home),
            "entity": declaration.entity,
            "order": {
                "column": order.column,
                "kind": order.kind,
                "zone": order.zone,
                "ties": list(order.ties),
                "clock": engine.clock,
            },
            "public": {c.column: _labels(c) for c in declaration.public},
            "protected": {
                about: _numbers(column) if isinstance(column, Amount) else _labels(column)
            },
        }
    )


def declared(declaration: Declaration) -> str:
    """The fingerprint of how rows are read: under another one an answer has other keys."""
    read = (declaration.entity, declaration.order, declaration.protected, declaration.public)
    return fingerprint(("declared", read))


def source_of(declaration: Declaration, home: Path | None) -> dict[str, Any]:
    """Where the rows are. Files count by their path from ``home``, so that a project may be moved.

    What is in them does not count: rows are added every day. A pattern counts as it is written.
    """
    source = declaration.source
    found: dict[str, Any] = {"kind": source.kind}
    if source.path is not None:
        whole = os.path.normpath(real_path(declaration.folder) / source.path)
        base = None if home is None else real_path(home)
        inside = base is not None and Path(whole).is_relative_to(base)
        found["path"] = Path(os.path.relpath(whole, base)).as_posix() if inside else whole
    if source.table is not None:
        found["table"] = source.table
    if source.url is not None:
        found["url"] = source.url
    return found


def _labels(column: Category) -> dict[str, Any]:
    if column.values is None:
        return {"values": "from the data", "outside": column.outside}
    found: dict[str, Any] = {
        "values": sorted(column.values, key=_typed),
        "outside": column.outside,
    }
    if column.outside == "other":
        found["other"] = column.other
    if column.labels:  # stable: of "1" and "01" for a column of numbers the later one counts
        found["labels"] = [list(pair) for pair in sorted(column.labels, key=lambda p: _plain(p[0]))]
    return found


def _typed(value: Name) -> tuple[str, str]:
    return type(value).__name__, str(value)


def _plain(raw: Name) -> str:
    text = str(raw)
    return str(int(text)) if text.isascii() and text.removeprefix("-").isdigit() else text


def _numbers(column: Amount) -> Mapping[str, Any]:
    """Not the bounds and the step: whatever is made of a number, its row loses the same."""
    missing = column.missing
    return {"missing": str(missing) if isinstance(missing, Fraction) else missing}
