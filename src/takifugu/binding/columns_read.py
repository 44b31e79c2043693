"""Whether a prior over several columns is about the protected columns of a table, by name.

Every protected column must be in the prior, and nothing else: the guarantee keeps the secrets of
each, so that none may be left out. The values of a column in the prior must be the labels that the
table declares for it. Where the prior has joint states, every combination must be one: a row whose
values make none would be outside of the prior, and nothing would be guaranteed for it.
"""

from itertools import islice, product
from math import prod

from takifugu.binding.name_lists import (
    TYPES_DIFFER,
    both_lists,
    listed,
    only_here,
    typed,
    types_alone,
)
from takifugu.binding.number_states import refuse_other_numbers
from takifugu.binding.protected_values import are_labels, values_by_column
from takifugu.declarations import Amount, Category, Declaration
from takifugu.errors import UnsoundRequest
from takifugu.priors import Name
from takifugu.priors.markov import MarkovChain
from takifugu.priors.prior import Prior

SHOWN = 3  # combinations of labels that a message lists


def refuse_other_columns(name: str, prior: Prior, declaration: Declaration) -> None:
    """Raise unless a prior is over all protected columns, each with the declared values."""
    values = values_by_column(prior)
    names, protected = tuple(values), tuple(c.column for c in declaration.protected)
    if typed(names) != typed(protected):
        public = [c.column for c in declaration.public if c.column in only_here(names, protected)]
        hint = (
            f" {listed(public)} is public: it is known to everybody, and belongs in no prior of"
            " what is protected."
            if public
            else ""
        )
        raise UnsoundRequest(
            f"{name} and the table differ in columns."
            f" {both_lists(names, 'protected columns', protected)}.{hint} Every protected column"
            " must be in the prior, by its name, and no other",
            field=name,
            reason="columns-differ",
            given=only_here(names, protected),
            needed=only_here(protected, names),
        )
    for column in declaration.protected:
        refuse_values(name, column, values[column.column])
    if isinstance(prior, MarkovChain):
        refuse_missing_states(name, prior)


def refuse_values(name: str, column: Category | Amount, values: tuple[Name, ...]) -> None:
    """Raise unless ``values`` are those that the table declares for a column, by name."""
    if isinstance(column, Amount):
        refuse_other_numbers(name, values, column)
        return
    if are_labels(values, column) and len(values) == len(column.keys) + (column.outside == "drop"):
        return
    differ = types_alone(values, column.keys)
    dropped = (
        " One more value must stand for what is left out, which is protected too."
        if column.outside == "drop"
        else ""
    )
    raise UnsoundRequest(
        f"{name} and the table differ in the labels of `{column.column}`."
        f" {both_lists(values, 'declared labels', column.keys)}."
        f"{TYPES_DIFFER if differ else ''}{dropped} The values of a column in a prior must be its"
        " labels, by the same names",
        field=name,
        reason="types-differ" if differ else "states-differ",
        given=values,
        needed=column.keys,
    )


def refuse_missing_states(name: str, prior: MarkovChain) -> None:
    """Raise unless every combination of the values of a joint state is a state."""
    values = values_by_column(prior)
    every = prod(len(labels) for labels in values.values())
    if len(prior.states) == every:  # each once, and none of others: by its own checks
        return
    known = frozenset(prior.states)
    missing = tuple(
        islice((state for state in product(*values.values()) if state not in known), SHOWN)
    )
    shown = ", ".join(map(repr, missing))
    raise UnsoundRequest(
        f"{name} has {len(prior.states)} joint states of {listed(tuple(values))}, and their labels"
        f" make {every}: {shown}{', …' if every - len(known) > SHOWN else ''} is left out. A row"
        " with such values would be outside of the prior; list every combination, with"
        " probabilities of 0 where it never happens",
        field=name,
        reason="joint-states",
        given=len(prior.states),
        needed=every,
    )
