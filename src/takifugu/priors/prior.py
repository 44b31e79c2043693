"""The one type that every prior has: what it is about, where it comes from, and its file form.

Which rows a prior was fitted on: a record that stays with the prior, beside its content.

A fitted prior is published with the policy, and no loss is accounted for what it reveals about the
rows that it was fitted on. A release must therefore use other rows, and must know which they are
also after the prior was smoothed, widened, written to a file or combined with others. Two priors
with the same content are equal and have the same fingerprint, whatever they were fitted on.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from datetime import datetime
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from takifugu._core.exact import exactly, is_finite
from takifugu._core.fingerprint import ByContent
from takifugu._core.numeric import Floats, distribution
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.priors.secrets import Secrets
from takifugu.priors.universe import Name, State, is_name

FITTED_ON_KEY = "fitted_on"  # in documents
PUBLIC_STATEMENT = (
    "A fitted prior is part of the published policy: what it reveals about the rows it was "
    "fitted on is not charged to the budget. The people whose rows it was fitted on are not "
    "protected from what the prior shows."
)


@dataclass(frozen=True)
class FittedRows:
    """The rows of a table that a prior was fitted on; all of them, if neither limit is given.

    Attributes:
        source: The table: its kind and names without folders, so that a folder can be moved.
        entity: The column that says whose row it is.
        order: The column that puts rows in order.
        zone: The zone of ``before``, for times.
        before: Only rows before this position in the order: a local time, or a number.
        days: The number of days until then, for the statement.
        share: Only entities whose hash lies below this: see `takifugu.tables.Share`.
        salt: What the hash begins with.
        words: A statement for readers of the policy, instead of the default one.
    """

    source: str
    entity: str
    order: str
    zone: str | None = None
    before: datetime | float | None = None
    days: int | None = None
    share: Fraction | None = None
    salt: str | None = None
    words: str | None = None

    def __post_init__(self) -> None:
        for name in ("source", "entity", "order"):
            if not isinstance(getattr(self, name), str):
                raise _wrong(name, "be text")
        for name in ("zone", "salt", "words"):
            if not isinstance(getattr(self, name), str | None):
                raise _wrong(name, "be text, or be left out")
        if self.words is not None and not self.words.isprintable():
            raise _wrong("words", "be printable, on one line")
        if (self.share is None) != (self.salt is None):
            raise _wrong("salt", "come with `share`, and only then")
        if self.share is not None and not (isinstance(self.share, Fraction) and 0 < self.share < 1):
            raise _wrong("share", "be between 0 and 1")
        if not _whole(self.days) or (self.days is not None and self.before is None):
            raise _wrong("days", "be a whole number that comes with `before`, or be left out")
        place = self.before
        number = isinstance(place, int | float) and not isinstance(place, bool) and is_finite(place)
        local = isinstance(place, datetime) and place.tzinfo is None
        if not (place is None or number or local):
            raise _wrong("before", "be a local time or a finite number")

    @property
    def everything(self) -> bool:
        """Whether no row is known to be left out."""
        return self.before is None and self.share is None

    @property
    def statement(self) -> str:
        """A statement for readers of the policy."""
        if self.words is not None:
            return self.words
        if self.everything:
            return (
                f"{PUBLIC_STATEMENT} This one was fitted on the very rows that it is to protect."
                " The stated loss covers what is released on top of it, not the prior itself. Fit "
                "on other rows where there are any: first days, or a share of the entities."
            )
        parts = []
        if self.before is not None:
            which = f"rows before {self.before}" if self.days is None else self._first
            parts.append(
                f"This one was fitted on the {which}; release from the rows "
                f"after them only (from {self.before} on). The same entities may have rows "
                "on both sides: a loss is what a release reveals to somebody who knows the rows "
                "before, and what these alone reveal about later ones is not charged."
            )
        if self.share is not None:
            parts.append(
                f"This one was fitted on about {float(self.share):.0%} of the entities; "
                "release from the rows of the others only. No row of theirs is in it."
            )
        return " ".join((PUBLIC_STATEMENT, *parts))

    @property
    def short(self) -> str:
        """The same in one line."""
        if self.everything:
            return (
                "fitted on the very rows that it is to protect: what it reveals about them is not"
                " charged"
            )
        which = []
        if self.before is not None:
            place = f"{self.before:g}" if isinstance(self.before, float) else str(self.before)
            first = f"rows before {place}" if self.days is None else self._first
            which.append(f"fitted on the {first}: release from {place} on only")
        if self.share is not None:
            which.append(
                f"fitted on about {float(self.share):.0%} of the entities: release from the"
                " others only"
            )
        return "; ".join(which)

    @property
    def _first(self) -> str:
        """The first part of a table: so many days, or steps where the order is a number."""
        unit = "days" if isinstance(self.before, datetime) else f"steps of {self.order!r}"
        return f"first {self.days} {unit}"

    def same_limits(self, other: "FittedRows") -> bool:
        """Whether both leave out the same rows of a table."""
        mine = (self.before, self.share, self.salt)
        return mine == (other.before, other.share, other.salt)

    def document(self) -> dict[str, Any]:
        """As JSON; what is not known is left out."""
        content: dict[str, Any] = {
            "source": self.source,
            "entity": self.entity,
            "order": self.order,
        }
        before = self.before
        content["before"] = before.isoformat() if isinstance(before, datetime) else before
        content["share"] = None if self.share is None else str(self.share)
        content |= {name: getattr(self, name) for name in ("zone", "days", "salt", "words")}
        return {name: value for name, value in content.items() if value is not None}

    @classmethod
    def of_document(cls, document: Any) -> "FittedRows":
        """Read what `document` wrote."""
        known = tuple(cls.__dataclass_fields__)
        if not isinstance(document, Mapping):
            raise InvalidPrior(FITTED_ON_KEY, given="holds something else", needed="list objects")
        for name in document:
            if name not in known:
                raise InvalidPrior(
                    f"{FITTED_ON_KEY}, {name}",
                    given="is not a key here",
                    needed=f"be of {', '.join(known)}",
                )
        for name in ("source", "entity", "order"):
            if name not in document:
                raise InvalidPrior(
                    f"{FITTED_ON_KEY}, {name}", given="is missing", needed="be given"
                )
        given = dict(document)
        try:
            if isinstance(given.get("before"), str):
                given["before"] = datetime.fromisoformat(given["before"])
            if given.get("share") is not None:
                if not isinstance(given["share"], str):
                    raise ValueError
                given["share"] = exactly(given["share"], "share")
        except (ValueError, UnsoundRequest):
            raise InvalidPrior(
                FITTED_ON_KEY,
                given="has a `before` or a `share` that cannot be read",
                needed="have a local time or a number, and a share as '1/5'",
            ) from None
        return cls(**given)


def _wrong(name: str, needed: str) -> InvalidPrior:
    return InvalidPrior(f"{FITTED_ON_KEY}, {name}", given="is something else", needed=needed)


def _whole(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


@dataclass(frozen=True, eq=False)
class Provenance(ByContent):
    """What priors and counts have in common: the rows they were fitted on, if any.

    Attributes:
        fitted_on: Every set of rows that had a part in it; empty if it was written down.
    """

    fitted_on: tuple[FittedRows, ...] = field(
        default=(), kw_only=True, repr=False, metadata={"identity": False}
    )

    def also_fitted_on(self, *rules: FittedRows) -> Self:
        """The same, known to have been fitted on these rows too."""
        new = tuple(dict.fromkeys((*self.fitted_on, *rules)))
        return self if new == self.fitted_on else replace(self, fitted_on=new)


@dataclass(frozen=True, eq=False)
class Prior(Provenance, ABC):
    """What an adversary may believe about the entries of a dataset.

    A prior is a frozen value. It is validated once, when it is made; equality and fingerprint come
    from its content. Beside the members below, each family has what its own algorithms need.

    Implementers, one module each:

    * `MarkovChain`, `IntervalMarkovChain`, `HigherOrderChain`, `TimeOfDayChain` (each is a
      `SequencePrior`)
    * `BayesianNetwork`, `MarkovRandomField` (both are a `NetworkPrior`)
    * `Gaussian`, and `TruncatedGaussian`, the paper's
    * `Explicit`, `IndependentEntries`
    * `Product`: independent people, each with a prior of their own

    (`Knowledge` is not one of them: a set of priors given by inequalities, for finite worlds only.)

    A new family is one module that defines a subclass, and one line in each of

    * `takifugu.priors`: its public name;
    * `takifugu.priors.documents`: its ``kind`` in a file (``KINDS``);
    * `takifugu.influence.families`: the ``case`` that computes its influence curve (of a sequence,
      a line of ``SEQUENCE_CURVES``);
    * `takifugu.translation.transport_bound`: the ``case`` that bounds its loss by transport, or
      leaves that to the curve.

    A test goes through all subclasses and fails where a line is missing. Sessions, projects and
    commands use the members below. Reports describe a family, and earlier rows of the same people
    can be given up under it, once it has a ``case`` in the places that
    ``docs/how-to/add-a-prior.md`` lists.

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

    @property
    def period(self) -> int | None:
        """After how many steps its law repeats, if what follows depends on the time of a row.

        None if it does not. Sessions know the hours of a day alone: they refuse other periods, and
        rows that are not one an hour.
        """
        return None

    def check_secrets(self, secrets: Secrets) -> None:
        """Refuse secrets that cannot be about the entries: a distance needs numbers."""
        if secrets.within is not None:
            raise UnsoundRequest(
                f"secrets within a distance of {float(secrets.within):.4g} are about numbers, and"
                f" the entries of a {self.kind} are not numbers without bounds; leave `within` out"
                " (`--secrets-within`), or use a Gaussian",
                field="secrets",
                reason="within",
                given=secrets.within,
            )

    def facts(self) -> dict[str, Any]:
        """What `takifugu prior show` prints, beside kind and fingerprint."""
        return {"entries": self.size}

    def to_document(self) -> dict[str, Any]:
        """The prior as a JSON document, to the last bit."""
        fitted = [rule.document() for rule in self.fitted_on]
        return self._document() | ({FITTED_ON_KEY: fitted} if fitted else {})

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote, or a document written by hand."""
        own = {name: value for name, value in document.items() if name != FITTED_ON_KEY}
        return cls._of_document(own).also_fitted_on(*fitted_rules(document))

    def _document(self) -> dict[str, Any]:
        """The document without the rows that the prior was fitted on: every field by its name.

        What names the states comes first; a field that was added later is left out while it has its
        default.
        """
        first = {"columns": 0, "states": 1}
        listed = {
            part.name: document_value(getattr(self, part.name))
            for part in sorted(_document_fields(type(self)), key=lambda p: first.get(p.name, 2))
            if not (
                part.metadata.get("unless_default")
                and bool(getattr(self, part.name) == part.default)
            )
        }
        return {"kind": self.kind, **listed}

    @classmethod
    def _of_document(cls, document: Mapping[str, Any]) -> Self:
        """Read ``kind``, the fields without a default, and any others; no unknown key."""
        own = _document_fields(cls)
        needed = [part.name for part in own if part.default is MISSING]
        known_keys(document, cls.kind, needed, [part.name for part in own])
        return cls(**{name: value for name, value in document.items() if name != "kind"})


def fitted_rules(document: Mapping[str, Any]) -> tuple[FittedRows, ...]:
    """The rows that the prior of a document was fitted on."""
    listed = document.get(FITTED_ON_KEY, [])
    if not isinstance(listed, list):
        raise InvalidPrior(
            FITTED_ON_KEY, given="is not a list", needed="list the rows it was fitted on"
        )
    return tuple(FittedRows.of_document(rule) for rule in listed)


MAX_LENGTH = 2**53  # entries of a sequence: beyond it float64 skips whole numbers


class SequencePrior(Prior):
    """A prior over a sequence: its entries are the times 0, 1, …, all with the same states.

    Implementers are dataclasses with the fields ``states`` and ``length``: `MarkovChain`,
    `IntervalMarkovChain`, `HigherOrderChain`, `TimeOfDayChain`.

    Attributes:
        states: The names of the states.
        length: The number of entries; None if it is unbounded.
    """

    states: tuple[State, ...]
    length: int | None

    @abstractmethod
    def __post_init__(self) -> None:
        """Check the fields, and keep arrays that nobody can change."""

    @classmethod
    def _of_document(cls, document: Mapping[str, Any]) -> Self:
        states = document.get("states", [])
        if not isinstance(states, list | tuple):
            raise InvalidPrior(
                "states", given="is not a list", needed="list the names of the states"
            )
        return super()._of_document({**document, "states": tuple(states)})

    @property
    def entry_names(self) -> Sequence[Name] | None:
        """The times 0, 1, …; None if their number is unbounded."""
        return None if self.length is None else range(self.length)

    def _at_most(self, length: int | None) -> int:
        """A number of entries that the sequence has; by default all."""
        size = checked_length(self.length if length is None else length)
        if size is None or (self.length is not None and size > self.length):
            raise InvalidPrior(
                "length",
                given=f"is {size} of a chain of length {self.length}",
                needed="be a number of entries that the chain has",
            )
        return size

    @property
    def entry_values(self) -> Sequence[tuple[State, ...]]:
        """The states, once for all entries."""
        return (self.states,)

    @property
    def breadth(self) -> int:
        """The number of states."""
        return len(self.states)

    def facts(self) -> dict[str, Any]:
        """What `takifugu prior show` prints, beside kind and fingerprint."""
        names = [state_text(state) for state in self.states]
        return {"states": len(names), "names": names, "length": self.length}


def named_states(states: Sequence[State], size: int) -> tuple[Name, ...]:
    """The names given, once each, or 0, 1, … if none were."""
    given = tuple(states) or tuple(range(size))
    if not all(map(is_name, given)):
        raise InvalidPrior(
            "states", given="holds something else", needed="hold strings or whole numbers"
        )
    _refuse_repeated(given, size, "names")
    return given  # type: ignore[return-value]  # all are names


def _refuse_repeated(states: Sequence[State], size: int, what: str) -> None:
    """Raise unless there are ``size`` states, all different."""
    if len(states) != size or len(set(states)) != size:
        raise InvalidPrior(
            "states",
            given=f"has {len(set(states))} different {what}",
            needed=f"name each of the {size} states once",
        )


def checked_states(
    states: Any, size: int, columns: Any
) -> tuple[tuple[State, ...], tuple[str, ...] | None]:
    """The names of ``size`` states, each once; with ``columns`` tuples of their values."""
    if columns is None:
        return named_states(states, size), None
    given = tuple(columns) if isinstance(columns, list | tuple) else ()
    if (
        not given
        or len(set(given)) < len(given)
        or not all(isinstance(name, str) and name for name in given)
    ):
        raise InvalidPrior(
            "columns", given="is not a list of names", needed="name each column of a state once"
        )
    names = tuple(tuple(s) if isinstance(s, list | tuple) else (s,) for s in states)
    if not all(len(name) == len(given) and all(map(is_name, name)) for name in names):
        raise InvalidPrior(
            "states",
            given="holds something else than joint states",
            needed=f"hold a list of {len(given)} strings or whole numbers each, one for each of"
            f" {', '.join(given)}",
        )
    _refuse_repeated(names, size, "joint states")
    return names, given


def state_text(state: object) -> str:
    """A state in words: of a joint state the values of its columns."""
    return f"({', '.join(map(str, state))})" if isinstance(state, tuple) else str(state)


def checked_length(length: object) -> int | None:
    """A number of entries, at least 1, or None for an unbounded sequence."""
    if length is None:
        return None
    if isinstance(length, bool) or not isinstance(length, int | np.integer) or length < 1:
        raise InvalidPrior(
            "length", given=f"is {length!r}", needed="be a whole number of at least 1, or null"
        )
    if length > MAX_LENGTH:
        raise InvalidPrior(
            "length", given="is beyond 2^53", needed="be smaller, or null for an unbounded sequence"
        )
    return int(length)


def _document_fields(family: type[Prior]) -> list[Field[Any]]:
    """The fields of a family that its documents have, but for what it was fitted on."""
    return [part for part in fields(family) if part.init and part.name != FITTED_ON_KEY]


def document_value(value: Any) -> Any:
    """A field as JSON has it: arrays and tuples are lists."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [document_value(part) for part in value] if isinstance(value, tuple) else value


def refuse_other_words(field: str, given: object, words: Sequence[str], *, more: str = "") -> None:
    """Raise unless a field is one of a few words; ``more`` says what else it may be."""
    if given not in words:
        listed = ", ".join(map(repr, words)) + more if more else " or ".join(map(repr, words))
        raise InvalidPrior(field, given=f"is {given!r}", needed=f"be {listed}")


def checked_law(values: Any, size: int) -> Floats:
    """The law of a first entry that has ``size`` states."""
    return distribution(values, "start", InvalidPrior, shape=(size,), each="states")


def known_keys(
    document: Mapping[str, Any], kind: str, needed: Sequence[str], optional: Sequence[str]
) -> None:
    """Refuse a document of another kind, with a key missing, or with an unknown key."""
    if document.get("kind") != kind:
        raise InvalidPrior("kind", given=f"is {document.get('kind')!r:.60}", needed=f"be {kind!r}")
    known = tuple(dict.fromkeys(("kind", *needed, *optional)))
    for key in document:
        if key not in known:
            near = get_close_matches(str(key), known, n=1, cutoff=0.0)
            raise InvalidPrior(
                str(key),
                given=f"is not a key of a {kind}",
                needed=f"be one of {', '.join(known)}; did you mean {near[0]!r}?",
            )
    for key in needed:
        if key not in document:
            raise InvalidPrior(key, given="is missing", needed=f"be given for a {kind}")
