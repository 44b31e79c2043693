"""Whether a declaration fits the columns that a database has, and how its lists are looked up."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from takifugu._core.numeric import Integers
from takifugu.declarations.columns import Category
from takifugu.declarations.declaration import Declaration
from takifugu.declarations.table_errors import InvalidDeclaration
from takifugu.errors import TooLarge
from takifugu.priors import Name
from takifugu.tables.backends.backend import Kind

OUTSIDE = -1  # the code of a value that is not in the declared list
MAX_DATABASE_LIST = 1_000  # raw values that a database looks up: one step each, for each group
MAX_LABELS = 2_000  # of a protected column: a prior has a probability for each pair of them
MAX_SECRET_LABELS = 500  # where each two are a secret pair: 500 take a minute to plan with
WORDS = {
    "text": "text",
    "whole": "whole numbers",
    "real": "numbers",
    "time": "times",
    "zoned": "times with a zone",
    "unknown": "something else",
}


@dataclass(frozen=True)
class Lookup:
    """The code of every raw value of a column, and that of all others.

    A database answers with the place of a raw value among ``codes``, or, where the list is long,
    with the raw value itself; `code` does the rest.
    """

    codes: Mapping[Name, int]
    otherwise: int = OUTSIDE
    finds_in_lists: bool = True  # whether the database can

    @cached_property
    def raw(self) -> tuple[Name, ...]:
        """The raw values, in the order of their places."""
        return tuple(self.codes)

    @cached_property
    def _by_place(self) -> tuple[int, ...]:
        return tuple(self.codes.values())

    @cached_property
    def long(self) -> bool:
        """Whether the database answers with raw values."""
        return not self.finds_in_lists or len(self.codes) > MAX_DATABASE_LIST

    def all(self, places: Sequence[Any]) -> Integers:
        """The codes of many places."""
        return np.fromiter(map(self.code, places), dtype=np.int64, count=len(places))

    def code(self, place: Any) -> int:
        """The code of the raw value at ``place``; −1 or None for one that has none."""
        if self.long:
            return self.codes.get(place, self.otherwise)
        return self.otherwise if place is None or place < 0 else self._by_place[place]


def refuse_many_labels(
    column: str, labels: int, *, every_pair: bool = False, found: bool = False
) -> None:
    """Raise for more labels than a prior can relate, before anything is counted or translated.

    Args:
        column: The column.
        labels: How many it has.
        every_pair: Whether which of any two labels a cell holds is to be kept secret.
        found: Whether they were found on the rows of a fit, where ``at_least`` leaves some out.
    """
    most = MAX_SECRET_LABELS if every_pair else MAX_LABELS
    if labels <= most:
        return
    remedies = ["merge them by a map"]
    if found:
        remedies.append("leave rare ones out, --at-least N keeps labels of N entities")
    if every_pair and labels <= MAX_LABELS:
        remedies.append("name the secret pairs, --pairs")
    raise TooLarge(
        f"{column!r} has {labels:,} labels; at most {most:,} are handled"
        f"{' where each two are a secret pair' if every_pair else ''}:"
        f" {'; or '.join(remedies)}. A map is a CSV file whose first line is raw,label, with a line"
        ' for each raw value, as "Joe\'s Diner",food; it is declared as values ='
        ' { codebook = "map.csv", column = "label", raw = "raw" }',
        field=column,
        reason="labels",
        size=labels,
        limit=most,
    )


def refuse_misfits(declaration: Declaration, kinds: Mapping[str, Kind]) -> None:
    """Raise for a column whose kind is not the one that its part needs."""
    order = declaration.order
    _needs(declaration.entity, kinds, ("text", "whole"))
    times = ("time", "zoned") if order.kind == "time" else ("whole", "real")
    numbered = order.kind == "time" and kinds[order.column] in ("whole", "real")
    hint = "; or be declared as order_kind = 'number' or 'unix' (kind in [order])"
    _needs(order.column, kinds, times, hint if numbered else "")
    for name in order.ties:
        _needs(name, kinds, ("text", "whole", "real", "time", "zoned"))
    for column in (*declaration.protected, *declaration.public):
        if not isinstance(column, Category):
            _needs(column.column, kinds, ("whole", "real"))
        elif column.values is None:
            _needs(column.column, kinds, ("text", "whole"))
        else:
            lookup(column, kinds[column.column])


def lookup(category: Category, kind: Kind) -> Lookup:
    """How raw values of this kind become codes.

    The raw values of a file of labels are always text, JSON has no other keys: for a column of
    whole numbers they are read as such, and its labels may then be text.
    """
    codes = category.codes()
    if kind == "whole" and category.labels:
        raw = {name: code for name, code in codes.items() if _whole(name)}
        stray = [name for name, _ in category.labels if not _whole(name)]
        if stray:
            raise InvalidDeclaration(
                f"{category.column}, labels",
                given="have raw values that are not whole numbers",
                needed="have whole numbers only, as the column does",
            )
        codes = {int(name): code for name, code in raw.items()}
    needed: tuple[Kind, ...] = ("whole",) if all(isinstance(r, int) for r in codes) else ("text",)
    _needs(category.column, {category.column: kind}, needed)
    if category.outside != "other":
        return Lookup(codes)
    return Lookup(codes, category.keys.index(category.other))


def _whole(name: Name) -> bool:
    return isinstance(name, int) or (name.isascii() and name.removeprefix("-").isdigit())


def _needs(
    column: str, kinds: Mapping[str, Kind], needed: Collection[str], otherwise: str = ""
) -> None:
    if kinds[column] not in needed:
        raise InvalidDeclaration(
            column,
            given=f"holds {WORDS[kinds[column]]}",
            needed=f"hold {' or '.join(WORDS[kind] for kind in needed)}{otherwise}",
        )
