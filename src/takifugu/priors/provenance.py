"""Which rows a prior was fitted on: a record that stays with the prior, beside its content.

A fitted prior is published with the policy, and no loss is accounted for what it reveals about the
rows that it was fitted on. A release must therefore use other rows, and must know which they are
also after the prior was smoothed, widened, written to a file or combined with others. Two priors
with the same content are equal and have the same fingerprint, whatever they were fitted on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from typing import Any, Self

from takifugu._core.exact import exactly, is_finite
from takifugu._core.fingerprint import ByContent
from takifugu.errors import InvalidPrior, UnsoundRequest

KEY = "fitted_on"  # in documents
PUBLIC = (
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
                f"{PUBLIC} This one was fitted on the very rows that it is to protect. The "
                "stated loss covers what is released on top of it, not the prior itself. Fit "
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
        return " ".join((PUBLIC, *parts))

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
            raise InvalidPrior(KEY, given="holds something else", needed="list objects")
        for name in document:
            if name not in known:
                raise InvalidPrior(
                    f"{KEY}, {name}", given="is not a key here", needed=f"be of {', '.join(known)}"
                )
        for name in ("source", "entity", "order"):
            if name not in document:
                raise InvalidPrior(f"{KEY}, {name}", given="is missing", needed="be given")
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
                KEY,
                given="has a `before` or a `share` that cannot be read",
                needed="have a local time or a number, and a share as '1/5'",
            ) from None
        return cls(**given)


def _wrong(name: str, needed: str) -> InvalidPrior:
    return InvalidPrior(f"{KEY}, {name}", given="is something else", needed=needed)


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
