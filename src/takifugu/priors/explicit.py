"""Priors over finite universes, written out."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.fingerprint import ByContent
from takifugu._core.numeric import LEAST, Booleans, Floats, distribution, frozen, multiplied
from takifugu.errors import InvalidPrior, TooLarge
from takifugu.priors.prior import Prior, known_keys
from takifugu.priors.secrets import Secret
from takifugu.priors.universe import Name, Tables, Universe, is_name


@dataclass(frozen=True, eq=False)
class Explicit(Prior):
    """A table: one probability for every dataset of a universe.

    >>> Explicit(Universe(("rain", "shine")), [0.25, 0.75]).probability[1]
    np.float64(0.75)
    """

    kind: ClassVar[str] = "explicit"

    universe: Universe
    probability: Floats
    name: str = "prior"

    def __post_init__(self) -> None:
        shape = (len(self.universe),)
        self._set(
            probability=distribution(
                self.probability, "probability", InvalidPrior, shape=shape, each="datasets"
            )
        )

    @classmethod
    def uniform(cls, universe: Universe, *, name: str = "uniform") -> "Explicit":
        """Every dataset with the same probability."""
        return cls(universe, np.full(len(universe), 1 / len(universe)), name)

    @classmethod
    def independent(
        cls, universe: Tables, marginals: Mapping[Name, ArrayLike], *, name: str = "independent"
    ) -> "Explicit":
        """Every entry drawn on its own, entry ``e`` from ``marginals[e]``."""
        _tables(universe)
        parts = [np.ones(len(universe))]
        for column, entry in enumerate(universe.entries):
            if entry not in marginals:
                raise InvalidPrior(
                    "marginals", given=f"leaves out entry {entry!r}", needed="cover every entry"
                )
            law = distribution(
                marginals[entry],
                f"marginals[{entry!r}]",
                InvalidPrior,
                shape=(universe.shape[column],),
                each="values",
            )
            parts.append(law[universe.codes[:, column]])
        return cls.multiplied(universe, parts, name=name)

    @classmethod
    def multiplied(
        cls, universe: Universe, parts: Sequence[Floats], *, name: str = "prior"
    ) -> "Explicit":
        """The law that is the product of ``parts``, ``[dataset]`` each.

        A dataset that is possible but less likely than 2⁻⁵⁰⁰ is refused, never rounded to 0.
        """
        scaled, top, possible = multiplied(parts)
        law = np.ldexp(scaled, top)
        refuse_vanishing(law, possible, name)
        return cls(universe, law, name)

    @property
    def tables(self) -> Tables:
        """The universe, if it is made of tables; an error otherwise."""
        return _tables(self.universe)

    @property
    def entry_names(self) -> tuple[Name, ...]:
        """The entries of the tables."""
        return self.tables.entries

    @property
    def entry_values(self) -> tuple[tuple[Hashable, ...], ...]:
        """The values of each entry of the tables."""
        return self.tables.values

    def _document(self) -> dict[str, Any]:
        """The prior as a JSON document; for tables whose names and values JSON can hold."""
        cells = zip(self.entry_names, self.entry_values, strict=True)
        return {
            "kind": self.kind,
            "entries": [[entry, list(values)] for entry, values in cells],
            "probability": self.probability.tolist(),
            "name": self.name,
        }

    @classmethod
    def _of_document(cls, document: Mapping[str, Any]) -> "Explicit":
        """Read ``entries`` as [name, values] pairs and ``probability``, last entry fastest."""
        known_keys(document, cls.kind, (), ("entries", "probability", "name"))
        entries = document.get("entries")
        if not isinstance(entries, list) or not all(
            isinstance(e, list) and len(e) == 2 and isinstance(e[1], list) for e in entries
        ):
            raise InvalidPrior(
                "entries", given="is missing or malformed", needed="list [name, values] pairs"
            )
        names = [name for name, _ in entries]
        if not all(map(is_name, names)):
            raise InvalidPrior(
                "entries", given="has a name that is none", needed="be named by texts or numbers"
            )
        if len(set(names)) != len(names):
            raise InvalidPrior("entries", given="names one twice", needed="name each entry once")
        tables = Tables.of({name: tuple(values) for name, values in entries})
        return cls(tables, document.get("probability", ()), str(document.get("name", "prior")))


def _tables(universe: Universe) -> Tables:
    if not isinstance(universe, Tables):
        raise InvalidPrior(
            "universe", given="is not made of tables", needed="have entries and values"
        )
    return universe


def refuse_vanishing(law: Floats, possible: Booleans, name: str) -> None:
    """Refuse a law in which a dataset that can happen would have probability 0, or nearly."""
    if (possible & (law < LEAST)).any():
        raise TooLarge(
            f"{name!r} allows datasets with a probability below {LEAST:.3g}, too small to be"
            " written out; nothing was rounded to 0. Use the prior itself, or fewer entries",
            reason="faint",
            limit=LEAST,
        )


@dataclass(frozen=True, eq=False)
class Between(ByContent):
    """One line of knowledge: ``low`` ≤ Σ c(D)·P(D | secret) ≤ ``high``.

    With c the indicator of an event this bounds the probability of the event, given the secret.
    """

    coefficients: Floats
    low: float
    high: float

    def __post_init__(self) -> None:
        try:
            self._set(
                coefficients=frozen(self.coefficients), low=float(self.low), high=float(self.high)
            )
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidPrior(
                "coefficients", given="or bounds are not numbers", needed="be numbers"
            ) from error
        if not np.isfinite(self.coefficients).all():
            raise InvalidPrior(
                "coefficients", given="hold NaN or infinity", needed="hold finite numbers"
            )
        if not self.low <= self.high:  # also false for NaN
            raise InvalidPrior(
                "low",
                given=f"is {self.low:g} and `high` is {self.high:g}",
                needed="be at most high",
            )

    @classmethod
    def of_probability(
        cls, universe: Universe, event: Secret, *, low: float, high: float
    ) -> "Between":
        """P(``event`` | secret) lies between ``low`` and ``high``."""
        return cls(event.mask(universe).astype(np.float64), low, high)


@dataclass(frozen=True, eq=False)
class Knowledge(ByContent):
    """All priors whose conditionals P(D | s) obey linear inequalities (the paper, Example 3).

    A secret that is not mentioned may have any conditional distribution on its datasets.
    """

    universe: Universe
    about: tuple[tuple[Secret, tuple[Between, ...]], ...] = ()

    def __post_init__(self) -> None:
        about = tuple((secret, tuple(lines)) for secret, lines in self.about)
        object.__setattr__(self, "about", about)
        for secret, lines in about:
            for line in lines:
                if line.coefficients.shape != (len(self.universe),):
                    raise InvalidPrior(
                        "coefficients",
                        given=f"of the knowledge about {secret} have shape"
                        f" {line.coefficients.shape}",
                        needed=f"hold one number for each of the {len(self.universe)} datasets",
                    )

    def identity(self) -> Any:
        """A secret counts by where it is true, so that a predicate need not have a name."""
        about = [(str(s), s.mask(self.universe), lines) for s, lines in self.about]
        return ("Knowledge", self.universe, about)

    def lines(self, secret: Secret) -> tuple[Between, ...]:
        """All that is known about ``secret``."""
        return tuple(line for about, lines in self.about if about == secret for line in lines)


def stack(priors: Sequence[Explicit]) -> Floats:
    """``[prior, dataset]``: several priors over one universe as one array."""
    return frozen(np.stack([prior.probability for prior in priors]))


def same_universe(universe: Universe, *others: Any) -> bool:
    """Whether all are over the same universe."""
    return all(other.universe is universe or other.universe == universe for other in others)
