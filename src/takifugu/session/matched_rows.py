"""Whether the rows of a table are what the entries of its priors are stated to be.

For an engine that is limited to a share of the entities, the whole table is compared.
"""

from collections.abc import Mapping

from takifugu.engines import Engine
from takifugu.errors import UnsoundRequest
from takifugu.priors import Name
from takifugu.priors.independent import IndependentEntries, Product
from takifugu.priors.prior import Prior
from takifugu.session.entries import Entries
from takifugu.session.name_lists import (
    SHOWN,
    TYPES_DIFFER,
    both_lists,
    listed,
    numbers,
    only_here,
    typed,
    types_alone,
)


def refuse_unmatched(
    priors: Mapping[str, Prior], read: Mapping[str, Entries], engine: Engine
) -> None:
    """Raise unless the rows of the table are what the entries of every prior are stated to be."""
    entity = engine.declaration.entity
    longest: int | None = None
    for name, prior in priors.items():
        over = read[name].over
        if isinstance(prior, Product):
            _refuse_parts(name, prior, engine)
        elif over == "entities":
            _refuse_entities(name, prior, engine)
        elif over in ("household", "entities × sequence"):
            raise UnsoundRequest(
                f'over = "{over}" is not supported yet', field=name, reason="unsupported"
            )
        elif over == "row":
            continue  # every row is a draw, and columns are matched by `columns_read`
        elif (size := prior.size) is not None:
            longest = engine.whole.lengths().longest if longest is None else longest
            if longest > size:
                raise UnsoundRequest(
                    f"{name} has {size} entries but some {entity} has {longest} rows; use a prior"
                    " that is as long, or an unbounded one",
                    field=name,
                    reason="too-short",
                    given=size,
                    needed=longest,
                )


def _refuse_entities(name: str, prior: Prior, engine: Engine) -> None:
    names = tuple(prior.entry_names or ())
    if isinstance(prior, IndependentEntries):
        names = as_keys(names, engine)
    rows = _matched(name, names, engine)
    many = [who for who, count in rows.items() if count != 1]
    if many:
        raise UnsoundRequest(
            f"{name} has one entry for each {engine.declaration.entity}, but {listed(many)} have"
            ' more rows than one; over = "entities" needs exactly one row for each',
            field=name,
            reason="several-rows",
            given=tuple(many),
        )


def _refuse_parts(name: str, prior: Product, engine: Engine) -> None:
    parts = dict(zip(as_keys(tuple(prior.parts), engine), prior.parts.values(), strict=True))
    for who, count in _matched(name, tuple(parts), engine).items():
        size = parts[who].size
        if size is not None and count > size:
            raise UnsoundRequest(
                f"{name}, {who} has {size} entries but that {engine.declaration.entity} has"
                f" {count} rows; use a prior that is as long, or an unbounded one",
                field=f"{name}, {who}",
                reason="too-short",
                given=size,
                needed=count,
            )


def _matched(name: str, names: tuple[Name, ...], engine: Engine) -> Mapping[Name, int]:
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
    """Names that JSON holds as keys of an object, and so as text, as the column has them."""
    keys = numbers(names) if engine.whole_entities else names
    return keys if len(set(keys)) == len(names) else names
