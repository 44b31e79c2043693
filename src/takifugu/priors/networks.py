"""Laws that are products of small tables: Bayesian networks and random fields alike.

Markov random fields: weights on entries and on pairs of neighbours.

Bayesian networks: every entry is drawn given a few others.
"""

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from takifugu._core.fingerprint import ByContent
from takifugu._core.numeric import (
    LEAST,
    Floats,
    Integers,
    distribution,
    frozen,
    multiplied,
    numbers,
    vanished,
)
from takifugu.errors import InvalidPrior, TooLarge
from takifugu.priors.explicit import Explicit, refuse_vanishing
from takifugu.priors.prior import Prior, document_value
from takifugu.priors.secrets import EntryIs, SecretPair, Secrets
from takifugu.priors.universe import Name, Tables, distinct

Side = tuple[int, ...]  # a set of values of an entry, by number
Sides = tuple[tuple[Side, Side], ...]
MAX_DATASETS = 2**20  # datasets that `written_out` makes at most


@dataclass(frozen=True, eq=False)
class Factor(ByContent):
    """A non-negative table over a few entries, given by their numbers: one axis for each."""

    scope: tuple[int, ...]
    table: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", frozen(self.table))


class NetworkPrior(Prior):
    """A prior over named nodes whose law is proportional to a product of tables.

    The law is the product divided by its total over all datasets. So a row of a Bayesian network
    that sums to 1 only up to rounding still makes one definite law. Implementers:
    `BayesianNetwork`, `MarkovRandomField`.

    Attributes:
        lists: What a document lists: for each list the keys of its objects, and their fields.
    """

    lists: ClassVar[Mapping[str, Mapping[str, str]]]

    entries: tuple[Name, ...]
    states: tuple[tuple[Name, ...], ...]

    @abstractmethod
    def factors(self) -> tuple[Factor, ...]:
        """The tables whose product is the law."""

    @cached_property
    def numbers(self) -> Mapping[Name, int]:
        """The number of each entry."""
        return {entry: number for number, entry in enumerate(self.entries)}

    @property
    def entry_names(self) -> tuple[Name, ...]:
        """The nodes."""
        return self.entries

    @property
    def entry_values(self) -> tuple[tuple[Name, ...], ...]:
        """The values of each node."""
        return self.states

    @property
    def breadth(self) -> int:
        """The number of nodes."""
        return len(self.entries)

    def explicit(self) -> Explicit:
        """The same law with one probability for every dataset; for small models only.

        A dataset that is possible but less likely than 2⁻⁵⁰⁰ is refused, never rounded to 0.
        """
        shape = tuple(len(states) for states in self.states)
        if prod(shape) > MAX_DATASETS:
            raise TooLarge(
                f"{self.name!r} has {prod(shape):,} datasets; at most {MAX_DATASETS:,} are written"
                " out. Use the network itself, or fewer entries.",
                size=prod(shape),
                limit=MAX_DATASETS,
            )
        parts = [np.ones(shape)]
        for factor in self.factors():
            axes = [1] * len(shape)
            for entry in factor.scope:
                axes[entry] = shape[entry]
            ordered = np.transpose(factor.table, np.argsort(factor.scope))
            parts.append(ordered.reshape(axes))
        weight, _, possible = multiplied(parts)
        if not possible.any():
            raise InvalidPrior(
                "factors", given="allow no dataset at all", needed="leave at least one possible"
            )
        values = dict(zip(self.entries, self.states, strict=True))
        law = weight.ravel() / float(weight.sum())
        refuse_vanishing(law, possible.ravel(), self.name)
        return Explicit(Tables.of(values), law, self.name).also_fitted_on(*self.fitted_on)

    def _document(self) -> dict[str, Any]:
        """As JSON: ``kind``, ``name`` and the `lists`, an object for each entry or edge."""
        document: dict[str, Any] = {"kind": self.kind, "name": self.name}
        for listed, keys in self.lists.items():
            rows = zip(*(getattr(self, field) for field in keys.values()), strict=True)
            document[listed] = [
                dict(zip(keys, map(document_value, row), strict=True)) for row in rows
            ]
        return document

    @classmethod
    def _of_document(cls, document: Mapping[str, Any]) -> Self:
        try:
            kind, name = document["kind"], str(document["name"])
            fields: dict[str, Any] = {
                field: tuple(row[key] for row in document[listed])
                for listed, keys in cls.lists.items()
                for key, field in keys.items()
            }
        except (KeyError, TypeError) as error:
            lists = ", ".join(f"{name} ({', '.join(keys)})" for name, keys in cls.lists.items())
            raise InvalidPrior(
                "document",
                given=f"does not describe a {cls.kind}",
                needed=f"have kind, name, {lists}",
            ) from error
        if kind != cls.kind:
            raise InvalidPrior("kind", given=f"is {kind!r:.60}", needed=f"be {cls.kind!r}")
        return cls(**fields | {"name": name})


def neighbours(model: NetworkPrior) -> tuple[frozenset[int], ...]:
    """For every entry, the entries it shares a table with (the moral graph)."""
    around: list[set[int]] = [set() for _ in model.entries]
    for factor in model.factors():
        for entry in factor.scope:
            around[entry].update(factor.scope)
    return tuple(frozenset(others - {entry}) for entry, others in enumerate(around))


def secret_sides(model: NetworkPrior, secrets: Secrets) -> dict[int, Sides]:
    """The ordered secret pairs of each entry that has some; entries and values by number."""
    chosen = range(len(model.entries)) if secrets.entries is None else secrets.entries
    sides: dict[int, Sides] = {}
    known: dict[tuple[Name, ...], Sides] = {}
    for named in chosen:
        if secrets.entries is not None and named not in model.entries:
            raise InvalidPrior(
                "secrets", given=f"name the entry {named!r}", needed=f"use those of {model.name!r}"
            )
        entry = int(named) if secrets.entries is None else model.entries.index(named)
        states = model.states[entry]
        if states not in known:
            known[states] = secrets.sides(states)
        sides[entry] = known[states]
    return {entry: pairs for entry, pairs in sides.items() if pairs}


def secret_pair(model: NetworkPrior, entry: int, sides: tuple[Side, Side]) -> SecretPair:
    """Two sets of values of an entry as statements about it."""
    name, states = model.entries[entry], model.states[entry]
    left, right = (EntryIs(name, tuple(states[v] for v in side)) for side in sides)
    return SecretPair(left, right)


def checked_names(
    entries: Sequence[Name], states: Sequence[Sequence[Name]]
) -> tuple[tuple[Name, ...], tuple[tuple[Name, ...], ...]]:
    """Entries and their values as tuples, after checking that none is missing or named twice."""
    names = listed_names(entries, "entries")
    values = tuple(listed_names(given, "states") for given in _listed(states, "states"))
    if not names or not distinct(names, "entries", InvalidPrior):
        raise InvalidPrior("entries", given="are empty or repeat a name", needed="name each once")
    if len(values) != len(names):
        raise InvalidPrior(
            "states",
            given=f"are given for {len(values)} entries",
            needed=f"be given for each of the {len(names)} entries",
        )
    for name, domain in zip(names, values, strict=True):
        if not domain or not distinct(domain, "states", InvalidPrior):
            raise InvalidPrior(
                "states",
                given=f"of entry {name!r} are empty or repeat themselves",
                needed="list each value of the entry once",
            )
    return names, values


def _listed(given: object, field: str) -> tuple[object, ...]:
    """A list as a tuple; a text is not a list of letters."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidPrior(field, given="is not a list", needed="be a list of names")
    return tuple(given)


def listed_names(given: object, field: str) -> tuple[Name, ...]:
    """Names, each a text or a whole number, as a tuple."""
    names: list[Name] = []
    for name in _listed(given, field):
        if isinstance(name, np.generic):
            name = name.item()
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise InvalidPrior(
                field,
                given=f"holds a {type(name).__name__}",
                needed="hold texts or whole numbers",
            )
        names.append(name)
    return tuple(names)


def _checked_weights(values: object, field: str, shape: tuple[int, ...]) -> Floats:
    """A frozen table of weights: finite, 0 or at least 2⁻⁵⁰⁰, and not all 0."""
    table = numbers(values, field, InvalidPrior)
    fits = (table == 0) | ((table >= LEAST) & (table <= 1 / LEAST))  # false for NaN
    if not fits.all() or vanished(values, table):
        raise InvalidPrior(
            field,
            given="holds a number that is not 0 but too small for float64"
            if fits.all()
            else f"holds {table[~fits].ravel()[0]:g}",
            needed=f"hold weights that are 0 or between {LEAST:.3g} and {1 / LEAST:.3g}",
        )
    if not (table > 0).any():
        raise InvalidPrior(field, given="is 0 everywhere", needed="allow at least one state")
    if table.shape != shape:
        raise InvalidPrior(field, given=f"has shape {table.shape}", needed=f"have shape {shape}")
    return table


WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # a whole number of 64 bits, as it is written


def _ends(edge: object) -> tuple[Name, Name]:
    """The two entries that an edge joins."""
    ends = listed_names(edge, "edges")
    if len(ends) != 2:
        raise InvalidPrior("edges", given=f"join {len(ends)} entries", needed="join two each")
    return ends[0], ends[1]


@dataclass(frozen=True, eq=False)
class MarkovRandomField(NetworkPrior):
    """The adversary knows which entries are neighbours, and the weight of each pair of values.

    The law is proportional to the product of ``unary[i][x_i]`` over the entries and of
    ``weights[e][x_i, x_j]`` over the edges e = (i, j). A weight of 0 says what cannot happen.

    >>> couple = MarkovRandomField(
    ...     entries=("ada", "bob"),
    ...     states=((0, 1), (0, 1)),
    ...     unary=([3, 1], [1, 1]),
    ...     edges=(("ada", "bob"),),
    ...     weights=([[1, 1], [1, 3]],),
    ... )
    >>> couple.explicit().probability
    array([0.3, 0.3, 0.1, 0.3])

    Attributes:
        entries: The nodes.
        states: The values of each node.
        unary: For each node, a weight for each of its values.
        edges: Pairs of neighbours, each pair once.
        weights: For each edge ``[value of the first, value of the second]``.
        name: What the field is called.
    """

    kind: ClassVar[str] = "markov-random-field"
    lists: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "entries": {"name": "entries", "states": "states", "weights": "unary"},
        "edges": {"between": "edges", "weights": "weights"},
    }

    entries: tuple[Name, ...]
    states: tuple[tuple[Name, ...], ...]
    unary: tuple[Floats, ...]
    edges: tuple[tuple[Name, Name], ...]
    weights: tuple[Floats, ...]
    name: str = "field"

    def __post_init__(self) -> None:
        entries, states = checked_names(self.entries, self.states)
        number = {entry: i for i, entry in enumerate(entries)}
        edges = tuple(_ends(edge) for edge in self.edges)
        if len(self.unary) != len(entries) or len(self.weights) != len(edges):
            raise InvalidPrior(
                "unary",
                given=f"and `weights` hold {len(self.unary)} and {len(self.weights)} tables",
                needed=f"hold one for each of {len(entries)} entries and {len(edges)} edges",
            )
        for first, second in edges:
            if first not in number or second not in number or first == second:
                raise InvalidPrior(
                    "edges", given=f"hold ({first!r}, {second!r})", needed="join two of the entries"
                )
        if len({frozenset(edge) for edge in edges}) != len(edges):
            raise InvalidPrior("edges", given="name a pair twice", needed="name each pair once")
        unary = tuple(
            _checked_weights(table, f"unary[{entry!r}]", (len(domain),))
            for entry, domain, table in zip(entries, states, self.unary, strict=True)
        )
        weights = tuple(
            _checked_weights(
                table, f"weights[{edge!r}]", tuple(len(states[number[end]]) for end in edge)
            )
            for edge, table in zip(edges, self.weights, strict=True)
        )
        self._set(entries=entries, states=states, unary=unary, edges=edges, weights=weights)

    @classmethod
    def ising(
        cls,
        field: Mapping[Any, float],
        coupling: Mapping[tuple[Any, Any], float],
        *,
        name: str = "ising",
    ) -> "MarkovRandomField":
        r"""Zeros and ones with law :math:`\propto \exp(\sum_i h_i x_i + \sum_{ij} J_{ij} x_i x_j)`.

        ``field`` holds h for every entry, ``coupling`` J for every pair of neighbours. The weights
        kept are the float64 numbers nearest to e^h and e^J: they are the prior.
        """
        for what, given in (("field", field.values()), ("coupling", coupling.values())):
            for number in given:
                if not -300 <= number <= 300:  # also false for NaN
                    raise InvalidPrior(what, given=f"holds {number:g}", needed="be within ±300")
        return cls(
            tuple(field),
            ((0, 1),) * len(field),
            tuple(np.exp([0.0, h]) for h in field.values()),
            tuple(coupling),
            tuple(np.exp([[0.0, 0.0], [0.0, J]]) for J in coupling.values()),
            name,
        )

    def with_whole_names(self) -> "MarkovRandomField":
        """The same field with whole numbers for names that are written so, if all of them are."""
        numbers = {
            e: int(e) for e in self.entries if isinstance(e, str) and WHOLE_NUMBER.fullmatch(e)
        }
        if len(numbers) < len(self.entries):
            return self
        return replace(
            self,
            entries=tuple(numbers[e] for e in self.entries),  # type: ignore[index]
            edges=tuple((numbers[a], numbers[b]) for a, b in self.edges),  # type: ignore[index]
        )

    def factors(self) -> tuple[Factor, ...]:
        """One table for each entry, then one for each edge."""
        return self._factors

    @cached_property
    def _factors(self) -> tuple[Factor, ...]:
        alone = [Factor((i,), table) for i, table in enumerate(self.unary)]
        joint = [
            Factor((self.numbers[a], self.numbers[b]), table)
            for (a, b), table in zip(self.edges, self.weights, strict=True)
        ]
        return (*alone, *joint)


@dataclass(frozen=True, eq=False)
class BayesianNetwork(NetworkPrior):
    """The adversary knows which entries each entry depends on, and how.

    The law is proportional to the product of the tables, each taken as the float64 numbers it
    holds. Zeros are allowed: they say what cannot happen.

    >>> rain = BayesianNetwork(
    ...     entries=("rain", "wet"),
    ...     states=(("no", "yes"), ("no", "yes")),
    ...     parents=((), ("rain",)),
    ...     tables=([0.75, 0.25], [[1.0, 0.0], [0.5, 0.5]]),
    ... )
    >>> rain.explicit().probability
    array([0.75 , 0.   , 0.125, 0.125])

    Attributes:
        entries: The nodes.
        states: The values of each node.
        parents: For each node, the nodes it depends on.
        tables: For each node ``[parent, …, parent, own value]``: P(own value | parents).
        name: What the network is called.
        rescaled_rows: How many rows of a file were divided by their sum when it was read.
    """

    kind: ClassVar[str] = "bayesian-network"
    lists: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "entries": {"name": "entries", "states": "states", "parents": "parents", "table": "tables"}
    }

    entries: tuple[Name, ...]
    states: tuple[tuple[Name, ...], ...]
    parents: tuple[tuple[Name, ...], ...]
    tables: tuple[Floats, ...]
    name: str = "network"
    rescaled_rows: int = field(default=0, metadata={"identity": False})

    def __post_init__(self) -> None:
        entries, states = checked_names(self.entries, self.states)
        parents = tuple(listed_names(given, "parents") for given in self.parents)
        for what, given in (("parents", parents), ("tables", tuple(self.tables))):
            if len(given) != len(entries):
                raise InvalidPrior(
                    what,
                    given=f"are given for {len(given)} entries",
                    needed=f"be given for each of the {len(entries)} entries",
                )
        number = {entry: i for i, entry in enumerate(entries)}
        tables = []
        for entry, above, table in zip(entries, parents, self.tables, strict=True):
            if len(set(above)) != len(above) or any(p not in number or p == entry for p in above):
                raise InvalidPrior(
                    "parents",
                    given=f"of {entry!r} are {', '.join(map(repr, above))}",
                    needed="be other entries, each named once",
                )
            shape = tuple(len(states[number[e]]) for e in (*above, entry))
            each = f"a table of shape {shape}: the values of each parent, then its own"
            tables.append(
                distribution(table, f"tables[{entry!r}]", InvalidPrior, shape=shape, each=each)
            )
        self._set(entries=entries, states=states, parents=parents, tables=tuple(tables))
        self._set(_order=self._parents_first())

    def _parents_first(self) -> tuple[int, ...]:
        """The entries in an order in which no entry stands before its parents."""
        missing = [len(above) for above in self.parents]
        children: list[list[int]] = [[] for _ in self.entries]
        for child, above in enumerate(self.parents):
            for parent in above:
                children[self.numbers[parent]].append(child)
        ready = [entry for entry, count in enumerate(missing) if count == 0]
        order: list[int] = []
        while ready:
            entry = ready.pop()
            order.append(entry)
            for child in children[entry]:
                missing[child] -= 1
                if missing[child] == 0:
                    ready.append(child)
        if len(order) != len(self.entries):
            stuck = [repr(e) for e, count in zip(self.entries, missing, strict=True) if count]
            raise InvalidPrior(
                "parents", given=f"form a cycle at {stuck[0]}", needed="be free of cycles"
            )
        return tuple(order)

    def factors(self) -> tuple[Factor, ...]:
        """One table for each entry, over its parents and itself."""
        return tuple(
            Factor((*(self.numbers[p] for p in above), entry), table)
            for entry, (above, table) in enumerate(zip(self.parents, self.tables, strict=True))
        )

    def sample(self, draws: int, *, rng: "np.random.Generator") -> Integers:
        """``[draw, entry]``: the number of the value of each entry, parents drawn first."""
        drawn = np.zeros((draws, len(self.entries)), dtype=np.int64)
        order: tuple[int, ...] = self.__dict__["_order"]
        for entry in order:
            above = tuple(drawn[:, self.numbers[p]] for p in self.parents[entry])
            law = np.broadcast_to(self.tables[entry][above], (draws, len(self.states[entry])))
            heights = np.cumsum(law, axis=1)
            mark = rng.random(draws) * heights[:, -1]
            drawn[:, entry] = (mark[:, None] >= heights).sum(axis=1)
        return drawn

    def facts(self) -> dict[str, Any]:
        """What `takifugu prior show` prints, beside kind and fingerprint."""
        rescaled = {"rescaled_rows": self.rescaled_rows} if self.rescaled_rows else {}
        return super().facts() | rescaled
