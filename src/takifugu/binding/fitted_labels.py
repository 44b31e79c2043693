"""The labels of columns that have those of the rows which a prior was fitted on.

They are the states of the prior, which is published: no other list is kept anywhere. With several
priors the first one says them, and the others must have the same, as they must for any column.
"""

from collections.abc import Mapping

from takifugu.binding.entries import of_several_columns, stated_entries
from takifugu.binding.prior_reading import OverOption, protected_column
from takifugu.binding.protected_values import values_by_column
from takifugu.declarations import Declaration
from takifugu.errors import UnsoundRequest
from takifugu.priors import Name
from takifugu.priors.independent import people_of
from takifugu.priors.prior import Prior

Labels = dict[str, tuple[Name, ...]]  # by column


def labels_of(
    priors: Mapping[str, Prior], declaration: Declaration, *, over: OverOption, about: str | None
) -> Labels:
    """The labels that the priors say of the columns of ``declaration`` that have none yet."""
    if not declaration.unfitted or not priors:
        return {}
    name, prior = next(iter(priors.items()))
    read = stated_entries(priors, over, entity=declaration.entity)[name]
    if of_several_columns(prior, read):
        states = {str(column): values for column, values in values_by_column(prior).items()}
    elif read.over == "household":
        from takifugu.translation.rows.household import household_chain

        members = values_by_column(household_chain(name, prior))
        states = {protected_column(declaration, about): next(iter(members.values()))}
    else:
        one = next(iter(people_of((prior,))))
        named = tuple(value for value in one.entry_values[0] if isinstance(value, str | int))
        states = {protected_column(declaration, about): named}
    found = {column: states[column] for column in declaration.unfitted if column in states}
    for column, labels in found.items():
        _refuse_nameless(name, column, labels, declaration)
    return found


def _refuse_nameless(
    name: str, column: str, labels: tuple[Name, ...], declaration: Declaration
) -> None:
    """Raise if states are only numbered, or lack the one that stands for everything else."""
    other = declaration.category(column).other
    if other in labels:
        return
    raise UnsoundRequest(
        f"{name} has no state {other!r}; the labels of `{column}` are its states, and one of them"
        f" must be {other!r}, for values that it does not list. `takifugu prior fit` makes such a"
        " prior",
        field=name,
        reason="no-other",
        needed=other,
    )
