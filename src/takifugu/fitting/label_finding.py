"""Find the labels of a column on the rows that a prior is fitted on, and on no others.

The list is published with the prior. A label that one person alone has had then says that somebody
among the fitted rows had it: with ``at_least``, labels of fewer entities count as ``other``. One
aggregate finds the list where the rows are; the labels that are not kept do not leave the database.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from takifugu.declarations.columns import FROM_THE_FITTED_ROWS
from takifugu.declarations.table_errors import InvalidQuery
from takifugu.priors import Name
from takifugu.tables import relations as rel
from takifugu.tables.engine import Engine
from takifugu.tables.label_lookup import refuse_many_labels
from takifugu.tables.relations import Relation
from takifugu.tables.scope import Scope

AT_LEAST = 1  # entities, unless more are asked for


@dataclass(frozen=True)
class FoundLabels:
    """The labels of a column on the rows that a prior is fitted on.

    Attributes:
        column: The column.
        labels: The labels, sorted, without ``other``.
        left_out: How many labels too few entities had.
        at_least: How many entities a label needed.
        other: What everything else counts as.
    """

    column: str
    labels: tuple[Name, ...]
    left_out: int
    at_least: int
    other: Name

    @property
    def statement(self) -> str:
        """What readers of the policy should know about the list."""
        each = ", also those of one entity alone"
        if self.at_least > 1:
            each = f", each of at least {self.at_least} entities"
        rest = ""
        if self.left_out:
            labels = "label" if self.left_out == 1 else "labels"
            rest = f" {self.left_out:,} {labels} of fewer entities left out."
        return (
            f"The {len(self.labels):,} labels of {self.column!r} were found on the same"
            f" rows{each}, and are published; everything else counts as {self.other!r}.{rest}"
        )

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "column": self.column,
            "labels": len(self.labels),
            "left_out": self.left_out,
            "at_least": self.at_least,
            "other": self.other,
        }


def find_labels(
    engine: Engine,
    columns: Sequence[str],
    scope: Scope,
    at_least: int | None,
    *,
    every_pair: bool = False,
    otherwise: int = AT_LEAST,
) -> tuple[FoundLabels, ...]:
    """The labels of those ``columns`` that have none yet, on the rows of ``scope``.

    ``every_pair``: whether which of any two labels a cell holds is to be kept secret.
    ``otherwise``: how many entities a label needs if ``at_least`` is None.
    """
    wanted = [column for column in columns if column in engine.declaration.unfitted]
    if at_least is not None:
        if isinstance(at_least, bool) or not isinstance(at_least, int) or at_least < 1:
            raise InvalidQuery(
                "at least", given=f"is {at_least!r:.40}", needed="be a whole number, ≥ 1"
            )
        if not wanted:
            raise InvalidQuery(
                "at least",
                given="is given, and the labels are declared",
                needed=f'be left out, or declare values = "{FROM_THE_FITTED_ROWS}"',
                reason="superfluous",
            )
    least = otherwise if at_least is None else at_least
    found = tuple(_found(engine, column, scope, least) for column in wanted)
    for each in found:
        refuse_many_labels(each.column, len(each.labels) + 1, every_pair=every_pair, found=True)
    return found


def _found(engine: Engine, column: str, scope: Scope, at_least: int) -> FoundLabels:
    entity = engine.declaration.entity
    rows = engine.collect(lambda rows: kept_labels(rows, column, entity, at_least), scope)
    other = engine.declaration.category(column).other
    left_out = sum(int(many) for label, many in rows if label is None)
    labels = tuple(sorted(label for label, _ in rows if label is not None and label != other))
    if not labels:
        raise InvalidQuery(
            "at least" if left_out else "split",
            given=f"leaves no label of {column!r}",
            needed="be fewer entities" if left_out else "fit on rows that have some",
            reason="no-labels",
        )
    return FoundLabels(column, labels, left_out, at_least, other)


def kept_labels(rows: Relation, column: str, entity: str, at_least: int) -> Relation:
    """Rows of: a label that enough entities have, or NULL for all others; how many labels it is."""
    owned = rows.filter(rows[column].notnull())
    owned = owned.select(label=owned[column], who=owned[entity]).distinct()
    each = owned.group_by("label").aggregate(entities=owned.who.count())
    enough = each.entities >= at_least
    labels = each.select(label=rel.ifelse(enough, each.label, rel.null(each.label.type)))
    return labels.group_by("label").aggregate(many=labels.count()).select("label", "many")
