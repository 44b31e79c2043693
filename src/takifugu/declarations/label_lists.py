"""Labels that are those of the rows which a prior is fitted on.

A fitted prior is published with the policy, and so are its states: a list of labels that is found
on the same rows reveals nothing about any others. The states of the prior are the one place where
the list is kept, and every other value of the column counts as ``other``.

What a list is taken from must be public. So no list is ever read from rows that are released from.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from takifugu.declarations.columns import Category, Outside, refuse_half_characters
from takifugu.declarations.table_errors import InvalidDeclaration
from takifugu.priors import Name

FROM_THE_FITTED_ROWS = "from the fitted rows"


@dataclass(frozen=True)
class FittedLabels(Category):
    """A column whose labels are those of the rows that its prior is fitted on.

    Until a prior is there, nothing can be asked about the column. `with_labels` makes a `Category`
    of it, which is then like any other: the ledger pins its labels.
    """

    values: tuple[Name, ...] | None = None
    outside: Outside = "other"

    def __post_init__(self) -> None:
        if self.outside != "other":
            raise InvalidDeclaration(
                f"{self.column}, outside",
                given=f"is {self.outside!r:.40}, and its values are {FROM_THE_FITTED_ROWS}",
                needed="be 'other': rows that are released may hold labels that those do not have",
            )
        if self.values is not None or self.labels:
            raise InvalidDeclaration(
                f"{self.column}, labels",
                given=f"are given, and its values are {FROM_THE_FITTED_ROWS}",
                needed="be left out; or list the values in a codebook with `raw`",
            )
        refuse_half_characters(self.column, (self.other,))

    @property
    def keys(self) -> tuple[Name, ...]:
        """There are none yet."""
        raise labels_missing(self.column)

    def codes(self) -> dict[Name, int]:
        """There are none yet."""
        raise labels_missing(self.column)

    def with_labels(self, labels: Iterable[Name]) -> Category:
        """The column with these labels; ``other``, which may be among them, stands for the rest."""
        values = tuple(label for label in labels if label != self.other)
        return Category(self.column, values, "other", self.other)


def labels_missing(column: str) -> InvalidDeclaration:
    """The error for a column whose labels are not known yet."""
    return InvalidDeclaration(
        f"{column}, values",
        given=f"are {FROM_THE_FITTED_ROWS}, and no prior is fitted yet",
        needed="be found first: `takifugu prior fit NAME --share 1/5` (or --first-days N) finds"
        " them, and a session needs the fitted prior",
        reason="labels-not-fitted",
    )
