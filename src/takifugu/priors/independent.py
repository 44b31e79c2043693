"""Priors with independence: between entries, or between people."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from takifugu._core.numeric import Floats, distribution
from takifugu.errors import InvalidPrior
from takifugu.priors.documents import from_document
from takifugu.priors.explicit import Explicit
from takifugu.priors.prior import Prior, known_keys
from takifugu.priors.secrets import Secrets
from takifugu.priors.universe import Name, Tables

MAX_NESTED_PRODUCTS = 16  # products inside one another


@dataclass(frozen=True, eq=False)
class IndependentEntries(Prior):
    """Independent entries: each has a law of its own.

    >>> IndependentEntries({"age": {"young": 0.25, "old": 0.75}}).states["age"]
    ('young', 'old')
    """

    kind: ClassVar[str] = "independent-entries"

    marginals: Mapping[Name, Mapping[Name, float]]

    def __post_init__(self) -> None:
        if not isinstance(self.marginals, Mapping) or not self.marginals:
            raise InvalidPrior(
                "marginals",
                given="is empty or not a mapping",
                needed="map entries to probabilities",
            )
        laws: dict[Name, dict[Name, float]] = {}
        for entry, law in self.marginals.items():
            if not isinstance(law, Mapping) or not law:
                raise InvalidPrior(
                    "marginals",
                    given=f"of entry {entry!r} is empty or not a mapping",
                    needed="map each value to its probability",
                )
            checked = distribution(list(law.values()), f"marginals of {entry!r}", InvalidPrior)
            laws[entry] = dict(zip(law, checked.tolist(), strict=True))
        object.__setattr__(self, "marginals", laws)

    @property
    def states(self) -> dict[Name, tuple[Name, ...]]:
        """The values of every entry."""
        return {entry: tuple(law) for entry, law in self.marginals.items()}

    @property
    def entry_names(self) -> tuple[Name, ...]:
        """The entries."""
        return tuple(self.marginals)

    @property
    def entry_values(self) -> tuple[tuple[Name, ...], ...]:
        """The values of each entry."""
        return tuple(self.states.values())

    @property
    def breadth(self) -> int:
        """The number of entries."""
        return len(self.marginals)

    def law(self, entry: Name) -> Floats:
        """The probabilities of one entry, in the order of its states."""
        return distribution(list(self.marginals[entry].values()), "marginals", InvalidPrior)

    def explicit(self) -> Explicit:
        """The same prior, written out."""
        laws = {entry: list(law.values()) for entry, law in self.marginals.items()}
        table = Explicit.independent(Tables.of(self.states), laws)
        return table.also_fitted_on(*self.fitted_on)

    def _document(self) -> dict[str, Any]:
        laws = {
            str(entry): {str(value): p for value, p in law.items()}
            for entry, law in self.marginals.items()
        }
        return {"kind": self.kind, "marginals": laws}


def too_deep() -> InvalidPrior:
    """The error of products that are nested too deeply."""
    return InvalidPrior(
        "parts",
        given=f"nest more than {MAX_NESTED_PRODUCTS} products inside one another",
        needed="be flatter: a product of products is a product of all their parts",
    )


@dataclass(frozen=True, eq=False)
class Product(Prior):
    """Independent people, each with a prior of their own: nobody's data says anything of another.

    Attributes:
        parts: Who, and the prior over that person's entries.
    """

    kind: ClassVar[str] = "product"

    parts: Mapping[str, Prior]

    def __post_init__(self) -> None:
        if not isinstance(self.parts, Mapping) or not self.parts:
            raise InvalidPrior(
                "parts", given="is empty or not a mapping", needed="map names to priors"
            )
        depth = 1 + max(
            part.depth if isinstance(part, Product) else 0 for part in self.parts.values()
        )
        if depth > MAX_NESTED_PRODUCTS:
            raise too_deep()
        object.__setattr__(self, "_depth", depth)
        for name, part in self.parts.items():
            if not isinstance(part, Prior):
                raise InvalidPrior(
                    "parts", given=f"has no prior for {name!r}", needed="map every name to a prior"
                )
        object.__setattr__(self, "parts", dict(self.parts))

    @property
    def depth(self) -> int:
        """How many products lie inside one another, this one included."""
        depth: int = self.__dict__["_depth"]
        return depth

    @property
    def entry_names(self) -> tuple[str, ...] | None:
        """The entries person by person, as ``"ada: 0"``; None if their number is unbounded."""
        if self.size is None:
            return None
        parts = self.parts.items()
        return tuple(f"{name}: {entry}" for name, part in parts for entry in part.entry_names or ())

    @property
    def entry_values(self) -> tuple[tuple[Hashable, ...], ...]:
        """The values of each part, in order."""
        return tuple(values for part in self.parts.values() for values in part.entry_values)

    @property
    def size(self) -> int | None:
        """The number of entries of all people; None if it is unbounded."""
        sizes = [part.size for part in self.parts.values()]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def person_size(self) -> int | None:
        """The largest number of entries of one person; None if it is unbounded."""
        sizes = [part.person_size for part in self.parts.values()]
        return None if None in sizes else max(size for size in sizes if size is not None)

    def check_secrets(self, secrets: Secrets) -> None:
        """Refuse secrets that cannot be about the entries of somebody."""
        for part in self.parts.values():
            part.check_secrets(secrets)

    def facts(self) -> dict[str, Any]:
        """What `takifugu prior show` prints, beside kind and fingerprint."""
        return {"people": len(self.parts)}

    def _document(self) -> dict[str, Any]:
        parts = {name: part.to_document() for name, part in self.parts.items()}
        return {"kind": self.kind, "parts": parts}

    @classmethod
    def _of_document(cls, document: Mapping[str, Any]) -> "Product":
        """Read ``{"kind": "product", "parts": {person: prior}}``."""
        if _depth(document) > MAX_NESTED_PRODUCTS:
            raise too_deep()
        known_keys(document, cls.kind, (), ("parts",))
        parts = document.get("parts")
        if not isinstance(parts, Mapping):
            raise InvalidPrior("parts", given="is missing", needed="map names to priors")
        return cls({str(name): from_document(part) for name, part in parts.items()})


def people_of(priors: Iterable[Prior]) -> Iterator[Prior]:
    """Every prior that somebody may follow: each part of a product is one."""
    for prior in priors:
        if isinstance(prior, Product):
            yield from people_of(prior.parts.values())
        else:
            yield prior


def _depth(document: object) -> int:
    """How many products lie inside one another, as far as it matters."""
    depth, layer = 0, [document]
    while layer and depth <= MAX_NESTED_PRODUCTS:
        parts = [d.get("parts") for d in layer if isinstance(d, Mapping)]
        layer = [part for given in parts if isinstance(given, Mapping) for part in given.values()]
        depth += bool(layer)
    return depth
