"""The one type that every prior has: what it is about, where it comes from, and its file form."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from takifugu.errors import InvalidPrior
from takifugu.priors.provenance import KEY, FittedRows, Provenance
from takifugu.priors.universe import Name


@dataclass(frozen=True, eq=False)
class Prior(Provenance, ABC):
    """What an adversary may believe about the entries of a dataset.

    A prior is a frozen value. It is validated once, when it is made; equality and fingerprint come
    from its content. Beside the members below, each family has what its own algorithms need.

    Implementers, one module each:

    * `MarkovChain`, `IntervalMarkovChain`, `HigherOrderChain` (each is a `SequencePrior`)
    * `BayesianNetwork`, `MarkovRandomField` (both are a `FactorModel`)
    * `Gaussian`
    * `Explicit`, `IndependentEntries`
    * `Product`: independent people, each with a prior of their own

    (`Knowledge` is not one of them: a set of priors given by inequalities, for finite worlds only.)

    A new family is one module that defines a subclass, and one line in each of

    * `takifugu.priors`: its public name;
    * `takifugu.priors.documents`: its ``kind`` in a file (``KINDS``);
    * `takifugu.influence.families`: the ``case`` that computes its influence curve;
    * `takifugu.translation.transport_bound`: the ``case`` that bounds its loss by transport, or
      leaves that to the curve.

    Sessions, projects and commands need no line: they use the members below. A test goes through
    all subclasses and fails where a line is missing.

    Attributes:
        kind: What the family is called in files.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def entry_names(self) -> Sequence[Name] | None:
        """The names of the entries, in order; None if their number is unbounded."""

    @property
    @abstractmethod
    def entry_values(self) -> Sequence[tuple[Hashable, ...]]:
        """The values of each entry, or one item that all share; empty for real numbers."""

    @property
    def size(self) -> int | None:
        """The number of entries; None if it is unbounded."""
        names = self.entry_names
        return None if names is None else len(names)

    @property
    def person_size(self) -> int | None:
        """The largest number of entries that depend on one another; None if it is unbounded."""
        return self.size

    @property
    def name(self) -> str:
        """The name that its author gave it; empty if there is none."""
        return ""

    @property
    def breadth(self) -> int:
        """How wide the tables of a translation are: the states of a chain, the nodes of a network.

        Projects cache the translation of a broad prior. 0 if it is always quick.
        """
        return 0

    def facts(self) -> dict[str, Any]:
        """What `takifugu prior show` prints, beside kind and fingerprint."""
        return {"entries": self.size}

    def to_document(self) -> dict[str, Any]:
        """The prior as a JSON document, to the last bit."""
        fitted = [rule.document() for rule in self.fitted_on]
        return self._document() | ({KEY: fitted} if fitted else {})

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote, or a document written by hand."""
        own = {name: value for name, value in document.items() if name != KEY}
        return cls._of_document(own).also_fitted_on(*fitted_rules(document))

    @abstractmethod
    def _document(self) -> dict[str, Any]:
        """The document without the rows that the prior was fitted on."""

    @classmethod
    @abstractmethod
    def _of_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `_document` wrote; an error for a key that is missing or unknown."""


def fitted_rules(document: Mapping[str, Any]) -> tuple[FittedRows, ...]:
    """The rows that the prior of a document was fitted on."""
    listed = document.get(KEY, [])
    if not isinstance(listed, list):
        raise InvalidPrior(KEY, given="is not a list", needed="list the rows it was fitted on")
    return tuple(FittedRows.of_document(rule) for rule in listed)
