"""Bayesian networks: every entry is drawn given a few others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from takifugu._core.numeric import Floats, Integers, distribution
from takifugu.errors import InvalidPrior
from takifugu.priors.explicit import Explicit
from takifugu.priors.factors import (
    Factor,
    NetworkPrior,
    checked_names,
    listed_names,
    written_out,
)
from takifugu.priors.universe import Name


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
            law = distribution(table, f"tables[{entry!r}]", InvalidPrior)
            shape = tuple(len(states[number[e]]) for e in (*above, entry))
            if law.shape != shape:
                raise InvalidPrior(
                    f"tables[{entry!r}]",
                    given=f"has shape {law.shape}",
                    needed=f"have shape {shape}: the values of each parent, then its own",
                )
            tables.append(law)
        for what, value in (
            ("entries", entries),
            ("states", states),
            ("parents", parents),
            ("tables", tuple(tables)),
        ):
            object.__setattr__(self, what, value)
        object.__setattr__(self, "_order", self._parents_first(number))

    def _parents_first(self, number: Mapping[Name, int]) -> tuple[int, ...]:
        """The entries in an order in which no entry stands before its parents."""
        missing = [len(above) for above in self.parents]
        children: list[list[int]] = [[] for _ in self.entries]
        for child, above in enumerate(self.parents):
            for parent in above:
                children[number[parent]].append(child)
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
        number = {entry: i for i, entry in enumerate(self.entries)}
        return tuple(
            Factor((*(number[p] for p in above), entry), table)
            for entry, (above, table) in enumerate(zip(self.parents, self.tables, strict=True))
        )

    def explicit(self) -> Explicit:
        """The same law with one probability for every dataset; for small networks only."""
        return written_out(self).also_fitted_on(*self.fitted_on)

    def sample(self, draws: int, *, rng: "np.random.Generator") -> Integers:
        """``[draw, entry]``: the number of the value of each entry, parents drawn first."""
        number = {entry: i for i, entry in enumerate(self.entries)}
        drawn = np.zeros((draws, len(self.entries)), dtype=np.int64)
        order: tuple[int, ...] = self.__dict__["_order"]
        for entry in order:
            above = tuple(drawn[:, number[p]] for p in self.parents[entry])
            law = np.broadcast_to(self.tables[entry][above], (draws, len(self.states[entry])))
            heights = np.cumsum(law, axis=1)
            mark = rng.random(draws) * heights[:, -1]
            drawn[:, entry] = (mark[:, None] >= heights).sum(axis=1)
        return drawn

    def facts(self) -> dict[str, Any]:
        """What `takifugu prior show` prints, beside kind and fingerprint."""
        rescaled = {"rescaled_rows": self.rescaled_rows} if self.rescaled_rows else {}
        return super().facts() | rescaled

    def _document(self) -> dict[str, Any]:
        """As JSON: ``kind``, ``name`` and ``entries``, each with name, states, parents, table."""
        return {
            "kind": self.kind,
            "name": self.name,
            "entries": [
                {"name": e, "states": list(s), "parents": list(p), "table": t.tolist()}
                for e, s, p, t in zip(
                    self.entries, self.states, self.parents, self.tables, strict=True
                )
            ],
        }

    @classmethod
    def _of_document(cls, document: Mapping[str, Any]) -> "BayesianNetwork":
        """Read what ``to_document`` wrote."""
        try:
            rows = [
                (row["name"], row["states"], row["parents"], row["table"])
                for row in document["entries"]
            ]
            kind, name = document["kind"], str(document["name"])
        except (KeyError, TypeError) as error:
            raise InvalidPrior(
                "document",
                given="does not describe a Bayesian network",
                needed="have kind, name and entries, each with name, states, parents and table",
            ) from error
        if kind != cls.kind:
            raise InvalidPrior("kind", given=f"is {kind!r:.60}", needed=f"be {cls.kind!r}")
        entries, states, parents, tables = zip(*rows, strict=True) if rows else ((), (), (), ())
        return cls(entries, states, parents, tables, name)
