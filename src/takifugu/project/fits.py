"""Fit a prior on a declared dataset, in the database, and say what that means for releases."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from takifugu.engines import (
    ByEntity,
    Declaration,
    Engine,
    FirstDays,
    Fitted,
    InvalidQuery,
    fit,
)
from takifugu.priors import Name
from takifugu.priors.fitting import TAU
from takifugu.priors.prior import Prior
from takifugu.session.held_out import first_kept


@dataclass(frozen=True)
class Wish:
    """What to fit, and on which rows: the first days, a share of the entities, or all.

    Attributes:
        first_days: Fit on so many days and release from those after them.
        share: Fit on such a share of the entities and release from the others.
        other: The state for what was never seen; it must be a label of the column.
        tau: What zeros are smoothed to, as in the paper; 0 leaves them.
        length: How many entries the chain has; None if there is no end to them.
        confidence: Instead of one chain, all that the counts do not rule out at this level.
    """

    first_days: int | None = None
    share: Fraction | None = None
    other: Name | None = None
    tau: float | None = None
    length: int | None = None
    confidence: float | None = None


def fitted_prior(engine: Engine, column: str, wish: Wish) -> tuple[Any, Fitted]:
    """The prior that was wished for, and how it was fitted."""
    if wish.first_days is not None and wish.share is not None:
        raise InvalidQuery(
            "first days", given="come with a share", needed="be given alone: one split is enough"
        )
    if wish.confidence is not None and (wish.tau is not None or wish.other is not None):
        raise InvalidQuery("confidence", given="comes with tau or other", needed="be given alone")
    labels = engine.declaration.category(column).keys
    if wish.other is not None and wish.other not in labels:
        raise InvalidQuery(
            "other",
            given=f"{wish.other!r} is no label of {column}",
            needed="be one, since the states of a prior are the labels of its column; declare"
            f" outside = 'other' for {column}",
        )
    split: FirstDays | ByEntity | None = None
    if wish.first_days is not None:
        split = FirstDays(wish.first_days)
    elif wish.share is not None:
        split = ByEntity(wish.share)
    tau = TAU if wish.tau is None else wish.tau
    found = fit(engine, column, split=split, unseen="uniform", tau=tau or None, length=wish.length)
    if found.test is not None and not engine.count(found.test):
        raise InvalidQuery(
            "split", given="leaves no rows to release from", needed="fit on fewer rows"
        )
    if wish.confidence is None:
        return found.chain, found
    return found.counts.intervals(confidence=wish.confidence, length=wish.length), found


def policy_of(file: str, prior: Prior, found: Fitted, declaration: Declaration) -> dict[str, Any]:
    """The section of a project file for a fitted prior."""
    section: dict[str, Any] = {"file": file, "fingerprint": prior.fingerprint}
    match found.split:
        case None:
            section["fitted"] = "all-rows"
        case FirstDays():
            section |= {"fitted": "first-days"}
            section["released_from"] = first_kept(found.train.end, declaration)
        case ByEntity(share, salt):
            section |= {"fitted": "share", "share": str(share), "salt": salt}
    return section | {"statement": found.statement}
