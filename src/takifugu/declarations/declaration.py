"""What a table is, as declared by the person who is responsible for it.

Only what is declared exists: no query can be about a column that is not named here. The declaration
is checked against the data when an engine opens it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from takifugu._core.fingerprint import ByContent
from takifugu.declarations.columns import Amount, Category, FittedLabels, Order, Source
from takifugu.declarations.table_errors import InvalidDeclaration, InvalidQuery
from takifugu.errors import one_of
from takifugu.priors import Name

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
