"""The names of a prior beside the entities of a table."""

from collections.abc import Mapping

from takifugu.binding.name_lists import (
    SHOWN,
    TYPES_DIFFER,
    both_lists,
    numbers,
    only_here,
    typed,
    types_alone,
)
from takifugu.errors import UnsoundRequest
from takifugu.priors import Name
from takifugu.tables import Engine


def matched_entities(name: str, names: tuple[Name, ...], engine: Engine) -> Mapping[Name, int]:
    """The rows of each entity, if entities and names are the same, in any order."""
    entity = engine.declaration.entity
    most = len(names) + SHOWN + 1
    rows = engine.whole.entities(most)
    if typed(rows) == typed(names):
        return rows
    differ = types_alone(tuple(rows), names)
    more = len(rows) == most  # than are listed
    raise UnsoundRequest(
        f"{name} and the table differ in names."
        f" {both_lists(names, entity, tuple(rows), more=more)}.{TYPES_DIFFER if differ else ''}"
        f" Every entry must be a {entity} of the table and every {entity} an entry, by the same"
        " name",
        field=name,
        reason="types-differ" if differ else "names-differ",
        given=() if more else only_here(names, tuple(rows)),
        needed=only_here(tuple(rows), names),
    )


def as_keys(names: tuple[Name, ...], engine: Engine) -> tuple[Name, ...]:
    """Names that a file holds as text, as the entities of the table have them."""
    keys = numbers(names) if engine.whole_entities else names
    return keys if len(set(keys)) == len(names) else names
