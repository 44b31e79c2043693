"""What the entries of a prior are: rows in order, columns of a row, people, households.

A network over ann and bob means one thing for two people and another for the first two rows of
every person. The number of rows does not settle which is meant, so the owner states it as ``over``,
once: when the session is opened, or in the policy of a project. Names are then matched by name:

* ``sequence``: each entity's rows, in order, are a draw from the prior or the beginning of one, and
  entities are independent. Entries are called 0, 1, 2, …, or listed in order (``positions``).
  Chains and stationary Gaussian processes are sequences, and so are independent entries by
  default. A chain with ``columns`` has joint states: the values of all protected columns of a row.
* ``row``: the protected columns of each row are one draw, and rows are independent. Entries are
  called as the columns are.
* ``entities``: all rows together are one draw. Every entry is an entity with exactly one row, and
  every entity is an entry. The parts of a product are entities too, each with its own sequence.
* ``household``: a public column groups a few entities, and their joint states, in order, are a
  draw from a chain whose ``columns`` are the members. Households are independent.
* ``entities × sequence``: all rows together are one draw. An entry is called ``ann: 0``: an entity
  and a position in its rows.

They differ in whom the guarantee is about, and in what a loss on rows means. Entities and how many
rows each has are public by declaration, so a message may name them.

Names are compared with their types: 1 is not "1", since a whole number and its text may name
different rows.
"""

import json
import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from takifugu.errors import UnsoundRequest
from takifugu.priors import Name
from takifugu.priors.explicit import Explicit
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.independent import IndependentEntries, Product
from takifugu.priors.markov import MarkovChain
from takifugu.priors.networks import NetworkPrior
from takifugu.priors.prior import Prior, SequencePrior
from takifugu.priors.universe import Tables

N = TypeVar("N", bound=Hashable)
MAX_LISTED_NAMES = 10  # names that a message lists
WHOLE, LONG = re.compile(r"0|-?[1-9][0-9]*"), 20  # how a whole number of 64 bits is written


def listed(names: Collection[object]) -> str:
    """The first names; what cannot be printed is escaped."""
    shown = ", ".join(repr(name)[:80] for name in list(names)[:MAX_LISTED_NAMES])
    return shown + (", …" if len(names) > MAX_LISTED_NAMES else "") if names else "nothing"


def both_lists(
    names: tuple[Hashable, ...], what: str, others: tuple[Hashable, ...], *, more: bool = False
) -> str:
    """Two lists side by side, and what is in one of them alone; there may be ``more`` others."""
    lists = [f"Prior: {listed(names)}", f"{what}: {listed(others)}"]
    if not more and (alone := only_here(names, others)):
        lists.append(f"only in the prior: {listed(alone)}")
    if alone := only_here(others, names):
        lists.append(f"only in {what}: {listed(alone)}")
    return "; ".join(lists)


def only_here(here: tuple[N, ...], there: tuple[Hashable, ...]) -> tuple[N, ...]:
    """What is in the first list alone."""
    others = typed(there)
    return tuple(name for name in here if (type(name), name) not in others)


def typed(names: Iterable[object]) -> frozenset[tuple[type, object]]:
    """Names with their types: 1 is not "1"."""
    return frozenset((type(name), name) for name in names)


def types_alone(names: Collection[Hashable], others: Collection[Hashable]) -> bool:
    """Whether two lists differ in nothing but types: whole numbers here and text there."""
    return typed(names) != typed(others) and set(map(str, names)) == set(map(str, others))


TYPES_DIFFER = (
    " They are whole numbers on one side and text, in quotes, on the other: write those of the"
    " prior as the table has them."
)


def numbers(names: tuple[Name, ...]) -> tuple[Name, ...]:
    """Names that are written as whole numbers are whole numbers."""
    return tuple(_number(name) for name in names)


def _number(name: Name) -> Name:
    if isinstance(name, str) and len(name) < LONG and WHOLE.fullmatch(name):
        return int(name)
    return name


Over = Literal["sequence", "row", "entities", "household", "entities × sequence"]
KINDS: tuple[Over, ...] = ("sequence", "row", "entities", "household", "entities × sequence")
SPELLINGS: Mapping[str, Over] = {"entities x sequence": "entities × sequence"}


def canonical(over: str) -> str:
    """A reading as it is stored: × may be typed as x."""
    return SPELLINGS.get(over, over)


@dataclass(frozen=True)
class Entries:
    """What the entries of one prior are.

    Attributes:
        over: What they are: see `takifugu.binding.entries`.
        positions: For a sequence, the names of the entries in its order; none if they are called
            0, 1, 2, …
        household: For households, the public column whose keys group the entities.
        member: For households, the public column whose keys are the members that the prior names;
            None if the prior is the same whoever is which.
    """

    over: Over
    positions: tuple[Name, ...] = ()
    household: str | None = None
    member: str | None = None

    def __post_init__(self) -> None:
        over = canonical(self.over) if isinstance(self.over, str) else self.over
        object.__setattr__(self, "over", over)
        if over not in KINDS:
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
        for field in ("household", "member"):
            value = getattr(self, field)
            if value is not None and self.over != "household":
                raise UnsoundRequest(
                    f'{field} belongs to over = "household" alone; leave it out', field=field
                )
            if not isinstance(value, str | None):
                raise UnsoundRequest(
                    f"{field} is a {type(value).__name__}; name a public column", field=field
                )
        if self.over == "household" and not self.household:
            raise UnsoundRequest(
                'over = "household" needs the public column that groups entities; give it as'
                " `household`",
                field="household",
                reason="missing",
            )


EntriesOption = Entries | str | None  # of one prior


def stated_entries(
    priors: Mapping[str, Prior],
    over: EntriesOption | Mapping[str, EntriesOption],
    *,
    entity: str,
    where: str = "",
) -> dict[str, Entries]:
    """What the entries of every prior are; an error where ``over`` is missing or wrong.

    ``where`` is added to the advice on what is missing.
    """
    if isinstance(over, Mapping):
        unknown = [name for name in over if name not in priors]
        if unknown:
            raise UnsoundRequest(
                f"over names {unknown[0]!r:.80}; the priors are {', '.join(map(repr, priors))}",
                field="over",
                given=unknown[0],
                needed=tuple(priors),
            )
    entries = {}
    for name, prior in priors.items():
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
    _refuse_mixed(priors, entries)
    return entries


def of_several_columns(prior: Prior, read: Entries) -> bool:
    """Whether a prior, read so, is about all protected columns of a row at once."""
    joint = isinstance(prior, MarkovChain) and prior.columns is not None
    return read.over == "row" or (read.over == "sequence" and joint)


def _refuse_mixed(priors: Mapping[str, Prior], read: Mapping[str, Entries]) -> None:
    """Priors of one dataset that are about different things have no loss in common."""
    found = {
        name: ("several columns" if of_several_columns(priors[name], one) else "", one)
        for name, one in read.items()
        if of_several_columns(priors[name], one) or one.over == "household"
    }
    if not found:
        return
    name, first = next(iter(found.items()))
    for other, one in read.items():
        if found.get(other) != first:
            raise UnsoundRequest(
                f"{name} is over {_said(priors[name], read[name])}, and {other} is over"
                f" {_said(priors[other], one)}; the priors of a dataset must be about the same:"
                " make two datasets, or give both the same `over`",
                field="over",
                reason="mixed",
                given=(read[name].over, one.over),
            )


def _said(prior: Prior, read: Entries) -> str:
    if read.over == "sequence" and of_several_columns(prior, read):
        return "the sequence of several columns"
    words = f"the {read.over}" if read.over in ("sequence", "row", "household") else read.over
    return words if read.household is None else f"{words} of {read.household}"


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
    if isinstance(prior, MarkovChain) and prior.columns is not None:
        return _joint(name, prior, stated, where)
    by_lags = isinstance(prior, Gaussian) and prior.stationary
    if by_lags or isinstance(prior, SequencePrior):
        if stated not in (None, Entries("sequence")):
            why = " whose kernel goes by lags, so that its" if by_lags else ", whose"
            household = (
                "; a household needs a chain whose `columns` name its members"
                if stated is not None and stated.over == "household"
                else ""
            )
            raise UnsoundRequest(
                f"{name} is a {prior.kind}{why} entries follow one another; leave `over` out or"
                f' give "sequence"{household}',
                field=name,
                reason="over",
                needed="sequence",
            )
        return Entries("sequence")
    if stated is None and isinstance(prior, IndependentEntries):
        return Entries("sequence")  # they are independent, whichever they are
    if stated is None:
        named = listed(tuple(prior.entry_names or ()))
        raise UnsoundRequest(
            f"{name} is a {prior.kind} over {named}, and it is not stated what these are; give"
            f' over = "entities" if each is one `{entity}` with one row, over = "sequence" if'
            f' they are the positions in the rows of each `{entity}`, over = "row" if they are'
            f' the protected columns of a row, or over = "entities × sequence" if each is a'
            f" position of one `{entity}`{where}",
            field=name,
            reason="over-missing",
            needed=KINDS,
        )
    _refuse_family(name, prior, stated)
    _refuse_records(name, prior, stated)
    if stated.over == "sequence":
        _refuse_positions(name, prior, stated.positions)
    return stated


def _joint(name: str, prior: MarkovChain, stated: Entries | None, where: str) -> Entries:
    """A chain on joint states: of the columns of a row, or of the members of a household."""
    columns = prior.columns or ()
    if stated is None:
        raise UnsoundRequest(
            f"{name} is a {prior.kind} on joint states of {listed(columns)}, and it is not stated"
            ' what these are; give over = "sequence" if they are the protected columns of each'
            ' row, or over = "household", with the public column that groups people, if they are'
            f" the members of a household{where}",
            field=name,
            reason="over-missing",
            needed=("sequence", "household"),
        )
    if stated.over not in ("sequence", "household") or stated.positions:
        given = f"over = {stated.over!r}" if not stated.positions else "`positions`"
        raise UnsoundRequest(
            f"{name} is a {prior.kind} on joint states, whose entries follow one another, and"
            f' {given} is given; give over = "sequence" or "household", without positions',
            field=name,
            reason="over",
            needed=("sequence", "household"),
        )
    return stated


def _refuse_family(name: str, prior: Prior, stated: Entries) -> None:
    """A household is a chain, and a row is a network of labels: no other family has both."""
    if stated.over == "household":
        raise UnsoundRequest(
            f"{name} is a {prior.kind}; a household needs a markov-chain whose `columns` name its"
            " members",
            field=name,
            reason="over",
            needed=("sequence", "row", "entities", "entities × sequence"),
        )
    networks = NetworkPrior | IndependentEntries | Explicit
    if stated.over in ("row", "entities × sequence") and not isinstance(prior, networks):
        raise UnsoundRequest(
            f'{name} is a {prior.kind}; over = "{stated.over}" needs a prior over named entries:'
            " a bayesian-network, a markov-random-field, independent-entries or an explicit"
            " table",
            field=name,
            reason="over",
            needed=("sequence", "entities"),
        )


def _refuse_part(name: str, part: Prior) -> None:
    """A part is about one entity, so that its entries can only be positions of a sequence."""
    if isinstance(part, Product):
        raise UnsoundRequest(
            f"{name} is a product within a product; give each entity one prior",
            field=name,
            reason="nested-product",
        )
    if isinstance(part, MarkovChain) and part.columns is not None:
        raise UnsoundRequest(
            f"{name} has joint states, and the parts of a product are about one column; give one"
            " chain on joint states for everybody",
            field=name,
            reason="joint-part",
        )
    sequence = isinstance(part, Gaussian) and part.stationary
    if not sequence and not isinstance(part, SequencePrior | IndependentEntries):
        _entries(name, part, Entries("sequence"), "", "")


def _refuse_records(name: str, prior: Prior, stated: Entries) -> None:
    """Raise if a table that states whose its entries are would be read as something else."""
    if not isinstance(prior, Explicit) or not isinstance(prior.universe, Tables):
        return
    entries, records = prior.universe.entries, prior.universe.records
    one = stated.over in ("sequence", "row") and len(set(records)) == 1
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
        if typed(positions) != typed(names) or len(positions) != len(names):
            raise UnsoundRequest(
                f"{name} and its positions differ in names."
                f" {both_lists(names, 'positions', positions)}; list each entry once",
                field=name,
                reason="positions-differ",
                given=only_here(names, positions),
                needed=only_here(positions, names),
            )
        return
    if typed(numbers(names)) != typed(range(len(names))):
        first = ", ".join(map(json.dumps, names[:MAX_LISTED_NAMES]))
        more = ", …" if len(names) > MAX_LISTED_NAMES else ""
        raise UnsoundRequest(
            f"{name} has the entries {listed(names)}, which are no positions of a sequence: those"
            f" are called 0 to {len(names) - 1}. Rename them, or list them in order: positions ="
            f" [{first}{more}]",
            field=name,
            reason="no-positions",
            given=names,
        )
