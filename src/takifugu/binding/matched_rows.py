"""Whether the rows of a table are what the entries of its priors are stated to be.

For an engine that is limited to a share of the entities, the whole table is compared.
"""

from collections.abc import Mapping

from takifugu.binding.entity_names import as_keys, matched_entities
from takifugu.binding.entries import Entries
from takifugu.binding.households import refuse_households
from takifugu.binding.name_lists import listed
from takifugu.binding.people_over_time import refuse_people_over_time
from takifugu.errors import UnsoundRequest
from takifugu.priors.independent import IndependentEntries, Product
from takifugu.priors.prior import Prior
from takifugu.priors.time_of_day import HOURS, TimeOfDayChain
from takifugu.tables import Engine
from takifugu.tables.run_counting import refuse_irregular
from takifugu.tables.scope import EVERYTHING


def refuse_unmatched(
    priors: Mapping[str, Prior], read: Mapping[str, Entries], engine: Engine
) -> None:
    """Raise unless the rows of the table are what the entries of every prior are stated to be."""
    entity = engine.declaration.entity
    longest: int | None = None
    for name, prior in priors.items():
        over = read[name].over
        parts = prior.parts.values() if isinstance(prior, Product) else (prior,)
        for chain in parts:
            if isinstance(chain, TimeOfDayChain):
                _refuse_hours(name, chain, engine)
        if isinstance(prior, Product):
            _refuse_parts(name, prior, engine)
        elif over == "entities":
            _refuse_entities(name, prior, engine)
        elif over == "household":
            refuse_households(name, prior, read[name], engine)
        elif over == "entities × sequence":
            refuse_people_over_time(name, prior, engine)
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


def _refuse_hours(name: str, chain: TimeOfDayChain, engine: Engine) -> None:
    """Raise unless rows are one an hour, of days that have as many hours as the prior's."""
    if chain.hours != HOURS:
        raise UnsoundRequest(
            f"{name} has a day of {chain.hours} hours; rows have days of {HOURS}: give a matrix for"
            " each hour",
            field=name,
            reason="hours",
            given=chain.hours,
            needed=HOURS,
        )
    refuse_irregular(engine.whole, EVERYTHING)


def _refuse_entities(name: str, prior: Prior, engine: Engine) -> None:
    names = tuple(prior.entry_names or ())
    if isinstance(prior, IndependentEntries):
        names = as_keys(names, engine)
    rows = matched_entities(name, names, engine)
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
    for who, count in matched_entities(name, tuple(parts), engine).items():
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
