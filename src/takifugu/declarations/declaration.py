"""What a table is, as declared by the person who is responsible for it, and what is open yet.

Only what is declared exists: no query can be about a column that is not named here. The declaration
is checked against the data when an engine opens it.

Open points are what a draft could not know, written as ``"?"``. They are all found at once, each
with the line that it stands on, so that a person can fill them in from top to bottom.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from takifugu._core.fingerprint import ByContent
from takifugu.declarations.columns import Amount, Category, FittedLabels, Order, Source
from takifugu.declarations.table_errors import InvalidDeclaration, InvalidQuery
from takifugu.errors import one_of
from takifugu.priors import Name
from takifugu.visible import visible

ORDER_IS_PUBLIC = (
    "everyone may know the order already: --window A..B reads a part of it and a schedule each part"
    " in turn; to count by its values, copy the column in the table under another name and make the"
    " copy public"
)


@dataclass(frozen=True, eq=False)
class Declaration(ByContent):
    """A table: where it is, whose rows they are, what in them is protected and what is public.

    Attributes:
        source: Where the rows are.
        entity: The column that says whose sequence a row belongs to.
        order: The column that puts the rows of an entity in order.
        protected: The columns whose cells are protected.
        public: The columns that anyone may know, with their keys.
        title: One line for people.
        folder: What relative paths start from; no part of the identity.
    """

    source: Source
    entity: str
    order: Order
    protected: tuple[Category | Amount, ...]
    public: tuple[Category, ...] = ()
    title: str = ""
    folder: Path = field(default=Path(), metadata={"identity": False})

    def __post_init__(self) -> None:
        if not self.protected:
            raise InvalidDeclaration("protected", given="is empty", needed="name a column")
        for column in self.protected:
            if isinstance(column, FittedLabels) or not isinstance(column, Category):
                continue
            if column.values is None:
                raise InvalidDeclaration(
                    f"{column.column}, values",
                    given="are read from the data",
                    needed="be listed: the values of a protected column must be public beforehand",
                )
        seen = set[str]()
        for name in (self.entity, self.order.column, *self.described, *self.order.ties):
            again = name in seen and not (name in self.order.ties and name in self._open)
            if not name or again:
                if name == self.order.column and name in self._open:
                    raise InvalidDeclaration(
                        name,
                        given="is the order, and declared public too",
                        needed=f"have one part to play: {ORDER_IS_PUBLIC}",
                        reason="order",
                    )
                raise InvalidDeclaration(
                    name or "column", given="is declared twice", needed="have one part to play"
                )
            seen.add(name)

    @property
    def _open(self) -> frozenset[str]:
        return frozenset(column.column for column in self.public)

    @property
    def described(self) -> tuple[str, ...]:
        """The names of the protected and the public columns."""
        return tuple(column.column for column in (*self.protected, *self.public))

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that exists for queries, once each."""
        every = (self.entity, self.order.column, *self.order.ties, *self.described)
        return tuple(dict.fromkeys(every))

    @property
    def unfitted(self) -> tuple[str, ...]:
        """The protected columns whose labels are still to be found on the rows of a fit."""
        return tuple(c.column for c in self.protected if isinstance(c, FittedLabels))

    def with_labels(self, labels: Mapping[str, Iterable[Name]]) -> "Declaration":
        """The declaration in which the columns of ``labels`` that have none yet have these."""
        protected = tuple(
            column.with_labels(labels[column.column])
            if isinstance(column, FittedLabels) and column.column in labels
            else column
            for column in self.protected
        )
        return self if protected == self.protected else replace(self, protected=protected)

    def category(self, name: str) -> Category:
        """The column of labels called ``name``."""
        for column in (*self.protected, *self.public):
            if column.column == name and isinstance(column, Category):
                return column
        labels = [c.column for c in (*self.protected, *self.public) if isinstance(c, Category)]
        raise InvalidQuery(
            name,
            given="is not a declared column of labels",
            needed=one_of(labels, name) if labels else "be declared with labels",
        )

    def amount(self, name: str) -> Amount:
        """The column of bounded numbers called ``name``."""
        for column in self.protected:
            if column.column == name and isinstance(column, Amount):
                return column
        amounts = [c.column for c in self.protected if isinstance(c, Amount)]
        raise InvalidQuery(
            name,
            given="is not a declared column of numbers",
            needed=one_of(amounts, name) if amounts else "be declared with bounds",
        )

    def guarantee(self) -> str:
        """What is protected and what is not, for people."""
        secrets = "\n".join(f"  - {_secret(column)}" for column in self.protected)
        public = ", ".join(f"`{c.column}`" for c in self.public) or "none declared"
        ties = "".join(f", `{name}`" for name in self.order.ties)
        place = f"its place in the order (`{self.order.column}`{ties})"
        if self.order.absent:
            place = "that each of them has one row, in no order"
        return f"""\
Protected: the value of each cell of these columns, one cell for each row.
{secrets}
The protection is against the secrets and the priors that the policy states: an adversary who
believes one of those priors learns no more than the stated loss about which of two values a cell
holds. It says nothing about an adversary who believes something else.

Not protected, and to be taken as known to everyone:
  - that a row exists, and how many rows there are;
  - who it belongs to (`{self.entity}`), and so how many rows each of them has;
  - {place};
  - its public columns: {public};
  - this declaration: the lists of values, the bounds, the labels and the rules.
Columns that are not declared are not read, and nothing is guaranteed about them.
"""


LEFT_OUT = "that it is so is protected only where the prior has a state for it"


def _secret(column: Category | Amount) -> str:
    if isinstance(column, Amount):
        gaps = {
            "drop": f"a missing value counts as nothing; {LEFT_OUT}",
            "refuse": "a missing value is refused",
        }
        rule = (
            gaps[column.missing]
            if isinstance(column.missing, str)
            else f"a missing value counts as {float(column.missing):g}"
        )
        return (
            f"`{column.column}`: a number, clamped to {float(column.low):g} … "
            f"{float(column.high):g} in steps of {float(column.step):g}; {rule}"
        )
    if isinstance(column, FittedLabels):
        return (
            f"`{column.column}`: a label that is found on the rows which the prior is fitted on;"
            f" anything else, or nothing, counts as {column.other!r}"
        )
    rules = {
        "other": f"anything else, or nothing, counts as {column.other!r}",
        "drop": f"a cell with anything else, or nothing, is left out; {LEFT_OUT}",
        "refuse": "anything else, or nothing, is refused, so it is public that there is none",
    }
    return f"`{column.column}`: one of {len(column.keys)} labels; {rules[column.outside]}"


OPEN = "?"
NEEDED = {
    "separator": "what stands between fields: ',', ';', '|' or '\\t'",
    "encoding": "'utf-8' or 'latin-1'",
    "decimal": "',' or '.'",
    "column": "the name of a column",
    "kind": "time, unix or number",
    "zone": "a time zone, as 'Europe/Berlin'",
    "ties": "'refuse', or a list of columns",
    "format": "how times are written, as '%d/%m/%Y %H:%M'",
    "values": "a list of labels, as ['home', 'work']",
    "outside": "'other', 'drop' or 'refuse'",
    "bounds": "the lower and the upper bound, as [0, 100]",
    "missing": "'drop', 'refuse' or a number",
    "step": "a number",
    "labels": "a file",
}
_HEADER = re.compile(r"\s*\[(?P<name>[^\[\]].*?)\]\s*(#.*)?$")
_KEY = re.compile(r"\s*(?P<key>[\w-]+)\s*=")


@dataclass(frozen=True)
class OpenPoint:
    """What a person has to decide.

    Attributes:
        key: Where it stands, as ``protected.place.values``.
        question: What is to be decided.
        needed: What to write.
        option: The option of ``takifugu dataset new`` that answers it.
        choices: The answers that are possible, if they are few.
    """

    key: str
    question: str
    needed: str
    option: str
    choices: tuple[str, ...] = ()

    def describe(self) -> dict[str, Any]:
        """The point as JSON."""
        return {
            "key": self.key,
            "question": self.question,
            "needed": self.needed,
            "option": self.option,
            "choices": list(self.choices),
        }


class OpenDeclaration(InvalidDeclaration):
    """A declaration has open points.

    Attributes:
        points: Where they stand, each with its line; 0 if that was not found.
    """

    def __init__(self, points: tuple[tuple[str, int], ...]) -> None:
        self.points = points
        listed = "; ".join(
            f"{f'line {line}, ' if line else ''}{visible(key)}: {_needed(key)}"
            for key, line in points
        )
        super().__init__(
            ", ".join(visible(key) for key, _ in points),
            given=f"{'is' if len(points) == 1 else 'are'} open, written as '?'",
            needed=f"be filled in: {listed}",
            reason="open",
        )


def refuse_open_points(document: Mapping[str, Any], content: str) -> None:
    """Raise if a document has open points, with all of them."""
    keys = [key for key in _open(document) if key]
    if not keys:
        return
    lines = _lines(content)
    points = tuple((".".join(key), lines.get(key, 0)) for key in keys)
    raise OpenDeclaration(points)


def line_of(content: str, key: str) -> int:
    """The line that a key of a declaration stands on; 0 if it is on none of its own."""
    return {".".join(place): line for place, line in _lines(content).items()}.get(key, 0)


def _open(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where ``"?"`` stands for a whole value: as a label in a list it is a label."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _open(part, (*place, key))
    elif value == OPEN and place and place[-1] in NEEDED:
        yield place


def _needed(key: str) -> str:
    return NEEDED[key.rpartition(".")[2]]


def _lines(content: str) -> dict[tuple[str, ...], int]:
    """The line of every key that stands on one of its own."""
    found: dict[tuple[str, ...], int] = {}
    section: tuple[str, ...] = ()
    for number, line in enumerate(content.splitlines(), 1):
        if header := _HEADER.match(line):
            section = tuple(_names(header["name"]))
        elif key := _KEY.match(line):
            found.setdefault((*section, key["key"]), number)
    return found


def _names(header: str) -> Iterator[str]:
    """The parts of a header, without their quotes."""
    for bare, double, single in re.findall(r"""([\w-]+)|"((?:[^"\\]|\\.)*)"|'([^']*)'""", header):
        yield bare or single or re.sub(r"\\(.)", r"\1", double)
