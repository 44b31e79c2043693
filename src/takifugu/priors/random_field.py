"""Markov random fields: weights on entries and on pairs of neighbours."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats
from takifugu.errors import InvalidPrior
from takifugu.priors.explicit import Explicit
from takifugu.priors.factors import (
    Factor,
    NetworkPrior,
    checked_names,
    checked_weights,
    listed_names,
    written_out,
)
from takifugu.priors.universe import Name

WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")  # a whole number of 64 bits, as it is written


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
        for one, other in edges:
            if one not in number or other not in number or one == other:
                raise InvalidPrior(
                    "edges", given=f"hold ({one!r}, {other!r})", needed="join two of the entries"
                )
        if len({frozenset(edge) for edge in edges}) != len(edges):
            raise InvalidPrior("edges", given="name a pair twice", needed="name each pair once")
        unary = tuple(
            self._weights(table, f"unary[{entry!r}]", (len(domain),))
            for entry, domain, table in zip(entries, states, self.unary, strict=True)
        )
        weights = tuple(
            self._weights(
                table, f"weights[{edge!r}]", tuple(len(states[number[end]]) for end in edge)
            )
            for edge, table in zip(edges, self.weights, strict=True)
        )
        for what, value in (
            ("entries", entries),
            ("states", states),
            ("unary", unary),
            ("edges", edges),
            ("weights", weights),
        ):
            object.__setattr__(self, what, value)

    @staticmethod
    def _weights(given: ArrayLike, field: str, shape: tuple[int, ...]) -> Floats:
        table = checked_weights(given, field)
        if table.shape != shape:
            raise InvalidPrior(
                field, given=f"has shape {table.shape}", needed=f"have shape {shape}"
            )
        return table

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
        for what, numbers in (("field", field.values()), ("coupling", coupling.values())):
            for number in numbers:
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
        numbers = {e: int(e) for e in self.entries if isinstance(e, str) and WHOLE.fullmatch(e)}
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
        number = {entry: i for i, entry in enumerate(self.entries)}
        alone = [Factor((i,), table) for i, table in enumerate(self.unary)]
        joint = [
            Factor((number[a], number[b]), table)
            for (a, b), table in zip(self.edges, self.weights, strict=True)
        ]
        return (*alone, *joint)

    def explicit(self) -> Explicit:
        """The same law with one probability for every dataset; for small fields only."""
        return written_out(self).also_fitted_on(*self.fitted_on)

    def _document(self) -> dict[str, Any]:
        """As JSON: ``kind``, ``name``, ``entries`` (name, states, weights) and ``edges``."""
        return {
            "kind": self.kind,
            "name": self.name,
            "entries": [
                {"name": e, "states": list(s), "weights": u.tolist()}
                for e, s, u in zip(self.entries, self.states, self.unary, strict=True)
            ],
            "edges": [
                {"between": list(edge), "weights": table.tolist()}
                for edge, table in zip(self.edges, self.weights, strict=True)
            ],
        }

    @classmethod
    def _of_document(cls, document: Mapping[str, Any]) -> "MarkovRandomField":
        """Read what ``to_document`` wrote."""
        try:
            kind, name = document["kind"], str(document["name"])
            nodes: Sequence[Mapping[str, Any]] = document["entries"]
            joints: Sequence[Mapping[str, Any]] = document["edges"]
            entries = tuple(node["name"] for node in nodes)
            states = tuple(node["states"] for node in nodes)
            unary = tuple(node["weights"] for node in nodes)
            edges = tuple(joint["between"] for joint in joints)
            weights = tuple(joint["weights"] for joint in joints)
        except (KeyError, TypeError) as error:
            raise InvalidPrior(
                "document",
                given="does not describe a Markov random field",
                needed="have kind, name, entries (name, states, weights), edges (between, weights)",
            ) from error
        if kind != cls.kind:
            raise InvalidPrior("kind", given=f"is {kind!r:.60}", needed=f"be {cls.kind!r}")
        return cls(entries, states, unary, edges, weights, name)
