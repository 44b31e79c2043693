"""What the entries of a prior are: the positions of a sequence, or the entities of the table.

A network over ann and bob means one thing for two people and another for the first two rows of
every person. The number of rows does not settle which is meant, so the owner states it as ``over``,
once: when the session is opened, or in the policy of a project. Names are then matched by name:

* ``sequence``: each entity's rows, in order, are a draw from the prior or the beginning of one, and
  entities are independent. Entries are called 0, 1, 2, …, or listed in order (``positions``).
  Chains and stationary Gaussian processes are always sequences, and so are independent entries by
  default.
* ``entities``: all rows together are one draw. Every entry is an entity with exactly one row, and
  every entity is an entry. The parts of a product are entities too, each with its own sequence.

A loss per entry is translated alike under both; they differ in whom the guarantee is about.
Entities and how many rows each has are public by declaration, so a message may name them.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from takifugu.engines import Engine
from takifugu.errors import UnsoundRequest
from takifugu.priors import Name
from takifugu.priors.explicit import Explicit
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.independent import IndependentEntries, Product
from takifugu.priors.prior import Prior, SequencePrior
from takifugu.priors.universe import Tables
from takifugu.translation.translation import Translation

Over = Literal["sequence", "entities"]
KINDS: tuple[str, ...] = ("sequence", "entities")
SHOWN = 10  # names that a message lists
WHOLE, LONG = re.compile(r"0|-?[1-9][0-9]*"), 20  # how a whole number of 64 bits is written


@dataclass(frozen=True)
class Entries:
    """What the entries of one prior are.

    Attributes:
        over: Positions of a sequence, or entities.
        positions: For a sequence, the names of the entries in its order; none if they are called
            0, 1, 2, …
    """

    over: Over
    positions: tuple[Name, ...] = ()

    def __post_init__(self) -> None:
        if self.over == "columns":  # type: ignore[comparison-overlap]
            raise UnsoundRequest(
                'over = "columns" is not supported yet: a session is about one protected column;'
                ' use over = "sequence" or over = "entities"',
                field="over",
                given=self.over,
                needed=KINDS,
            )
        if self.over not in KINDS:
            raise UnsoundRequest(
                f"over is {self.over!r:.80}; it must be one of {', '.join(KINDS)}",
                field="over",
                given=self.over,
                needed=KINDS,
            )
        if isinstance(self.positions, str) or not isinstance(self.positions, Sequence):
            raise UnsoundRequest(
                "positions is not a list; list the entries of the prior in order", field="positions"
            )
        object.__setattr__(self, "positions", tuple(self.positions))
        if self.positions and self.over != "sequence":
            raise UnsoundRequest(
                'positions belong to over = "sequence" alone; leave them out', field="positions"
            )


EntriesOption = Entries | str | None  # of one prior


def stated_entries(
    translation: Translation,
    over: EntriesOption | Mapping[str, EntriesOption],
    *,
    entity: str,
    where: str = "",
) -> dict[str, Entries]:
    """What the entries of every prior are; an error where ``over`` is missing or wrong.

    ``where`` is added to the advice on what is missing.
    """
    if isinstance(over, Mapping):
        unknown = [name for name in over if name not in translation.priors]
        if unknown:
            raise UnsoundRequest(
                f"over names {unknown[0]!r:.80}; the priors are"
                f" {', '.join(map(repr, translation.priors))}",
                field="over",
                given=unknown[0],
                needed=tuple(translation.priors),
            )
    entries = {}
    for name, prior in translation.priors.items():
        given = over.get(name) if isinstance(over, Mapping) else over
        stated = Entries(given) if isinstance(given, str) else given  # type: ignore[arg-type]
        if not isinstance(stated, Entries | None):
            raise UnsoundRequest(
                f"over is a {type(given).__name__}; give one of {', '.join(KINDS)}",
                field="over",
                given=given,
                needed=KINDS,
            )
        entries[name] = _entries(name, prior, stated, entity, where)
    return entries


def _entries(name: str, prior: Prior, stated: Entries | None, entity: str, where: str) -> Entries:
    if isinstance(prior, Explicit) and not isinstance(prior.universe, Tables):
        raise UnsoundRequest(
            f"{name} is about datasets as a whole; a session needs a prior over entries, such"
            " as one over `Tables`",
            field=name,
            reason="no-entries",
        )
    if isinstance(prior, Product):
        if stated not in (None, Entries("entities")):
            raise UnsoundRequest(
                f"{name} is a product, whose parts are entities; leave `over` out or give"
                ' "entities"',
                field=name,
                reason="over",
                needed="entities",
            )
        for part, each in prior.parts.items():
            _refuse_part(f"{name}, {part}", each)
        return Entries("entities")
    if isinstance(prior, SequencePrior):
        if stated not in (None, Entries("sequence")):
            raise UnsoundRequest(
                f"{name} is a {prior.kind}, whose entries follow one another; leave `over` out or"
                ' give "sequence"',
                field=name,
                reason="over",
                needed="sequence",
            )
        return Entries("sequence")
    if isinstance(prior, Gaussian) and prior.stationary:
        if stated not in (None, Entries("sequence")):
            raise UnsoundRequest(
                f"{name} is a {prior.kind} whose kernel goes by lags, so that its entries follow"
                ' one another; leave `over` out or give "sequence"',
                field=name,
                reason="over",
                needed="sequence",
            )
        return Entries("sequence")
    if stated is None and isinstance(prior, IndependentEntries):
        return Entries("sequence")  # they are independent, whichever they are
    if stated is None:
        named = _listed(tuple(prior.entry_names or ()))
        raise UnsoundRequest(
            f"{name} is a {prior.kind} over {named}, and it is not stated what these are; give"
            f' over = "entities" if each is one `{entity}` with one row, or over = "sequence" if'
            f" they are the positions in the rows of each `{entity}`{where}",
            field=name,
            reason="over-missing",
            needed=KINDS,
        )
    _refuse_records(name, prior, stated)
    if stated.over == "sequence":
        _refuse_positions(name, prior, stated.positions)
    return stated


def _refuse_part(name: str, part: Prior) -> None:
    """A part is about one entity, so that its entries can only be positions of a sequence."""
    if isinstance(part, Product):
        raise UnsoundRequest(
            f"{name} is a product within a product; give each entity one prior",
            field=name,
            reason="nested-product",
        )
    sequence = isinstance(part, Gaussian) and part.stationary
    if not sequence and not isinstance(part, SequencePrior | IndependentEntries):
        _entries(name, part, Entries("sequence"), "", "")


def _refuse_records(name: str, prior: Prior, stated: Entries) -> None:
    """Raise if a table that states whose its entries are would be read as something else."""
    if not isinstance(prior, Explicit) or not isinstance(prior.universe, Tables):
        return
    entries, records = prior.universe.entries, prior.universe.records
    one = stated.over == "sequence" and len(set(records)) == 1
    if records != entries and not one:
        raise UnsoundRequest(
            f"the {len(entries)} entries of {name} belong to {len(set(records))} records by its own"
            f' statement; over = "{stated.over}" contradicts that',
            field=name,
            reason="records",
        )


def _refuse_positions(name: str, prior: Prior, positions: tuple[Name, ...]) -> None:
    names = tuple(prior.entry_names or ())
    if positions:
        if _typed(positions) != _typed(names) or len(positions) != len(names):
            raise UnsoundRequest(
                f"{name} and its positions differ in names. {_both(names, 'positions', positions)};"
                " list each entry once",
                field=name,
                reason="positions-differ",
                given=_only(names, positions),
                needed=_only(positions, names),
            )
        return
    if _typed(_numbers(names)) != _typed(range(len(names))):
        raise UnsoundRequest(
            f"{name} has the entries {_listed(names)}, which are no positions of a sequence: those"
            f" are called 0 to {len(names) - 1}. Rename them, or list them in order: positions ="
            f" [{', '.join(map(json.dumps, names[:SHOWN]))}{', …' if len(names) > SHOWN else ''}]",
            field=name,
            reason="no-positions",
            given=names,
        )


def refuse_unmatched(
    priors: Mapping[str, Prior], read: Mapping[str, Entries], engine: Engine
) -> None:
    """Raise unless the rows of the table are what the entries of every prior are stated to be.

    For an engine that is limited to a share of the entities, the whole table is compared.
    """
    entity = engine.declaration.entity
    longest: int | None = None
    for name, prior in priors.items():
        if isinstance(prior, Product):
            _refuse_parts(name, prior, engine)
        elif read[name].over == "entities":
            _refuse_entities(name, prior, engine)
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
        names = _as_keys(names, engine)
    rows = _matched(name, names, engine)
    many = [who for who, count in rows.items() if count != 1]
    if many:
        raise UnsoundRequest(
            f"{name} has one entry for each {engine.declaration.entity}, but {_listed(many)} have"
            ' more rows than one; over = "entities" needs exactly one row for each',
            field=name,
            reason="several-rows",
            given=tuple(many),
        )


def _refuse_parts(name: str, prior: Product, engine: Engine) -> None:
    parts = dict(zip(_as_keys(tuple(prior.parts), engine), prior.parts.values(), strict=True))
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
    if _typed(rows) == _typed(names):
        return rows
    typed = ""
    if {str(who) for who in rows} == {str(who) for who in names}:
        typed = " They are whole numbers on one side and text on the other."
    more = len(rows) == most  # than are listed
    raise UnsoundRequest(
        f"{name} and the table differ in names."
        f" {_both(names, entity, tuple(rows), more=more)}.{typed} Every"
        f" entry must be a {entity} of the table and every {entity} an entry, by the same name",
        field=name,
        reason="types-differ" if typed else "names-differ",
        given=() if more else _only(names, tuple(rows)),
        needed=_only(tuple(rows), names),
    )


def _both(
    names: tuple[Name, ...], what: str, others: tuple[Name, ...], *, more: bool = False
) -> str:
    """Two lists side by side, and what is in one of them alone; there may be ``more`` others."""
    lists = [f"Prior: {_listed(names)}", f"{what}: {_listed(others)}"]
    if not more and (alone := _only(names, others)):
        lists.append(f"only in the prior: {_listed(alone)}")
    if alone := _only(others, names):
        lists.append(f"only in {what}: {_listed(alone)}")
    return "; ".join(lists)


def _only(here: tuple[Name, ...], there: tuple[Name, ...]) -> tuple[Name, ...]:
    """What is in the first list alone."""
    others = _typed(there)
    return tuple(name for name in here if (type(name), name) not in others)


def _typed(names: Iterable[Name]) -> frozenset[tuple[type, Name]]:
    """Names with their types: 1 is not "1"."""
    return frozenset((type(name), name) for name in names)


def _as_keys(names: tuple[Name, ...], engine: Engine) -> tuple[Name, ...]:
    """Names that JSON holds as keys of an object, and so as text, as the column has them."""
    keys = _numbers(names) if engine.whole_entities else names
    return keys if len(set(keys)) == len(names) else names


def _numbers(names: tuple[Name, ...]) -> tuple[Name, ...]:
    """Names that are written as whole numbers are whole numbers."""
    return tuple(_number(name) for name in names)


def _number(name: Name) -> Name:
    if isinstance(name, str) and len(name) < LONG and WHOLE.fullmatch(name):
        return int(name)
    return name


def _listed(names: Collection[Name]) -> str:
    """The first names; what cannot be printed is escaped."""
    shown = ", ".join(repr(name)[:80] for name in list(names)[:SHOWN])
    return shown + (", …" if len(names) > SHOWN else "") if names else "nobody"
