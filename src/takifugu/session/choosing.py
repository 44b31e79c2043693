"""Which mechanism answers a question, for what may be lost or for the error that is wanted."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import floor, prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from takifugu.engines import Engine, InvalidQuery
from takifugu.errors import UnsoundRequest
from takifugu.losses import Number, Pure, exactly
from takifugu.mechanisms import (
    BoundedMean,
    BoundedSum,
    Error,
    IntegerLaplace,
    Mechanism,
    plan_histogram,
    plan_top_k,
)
from takifugu.numeric import Floats, Integers
from takifugu.session.questions import MeanOf, ProportionsOf, Question, SumOf, TopOf


@dataclass(frozen=True)
class Wanted:
    """What an answer may lose, or how good it must be: one of the two.

    Attributes:
        allowed: The per-entry loss that is allowed; None if the error decides.
        within: Every number is to be within this of the exact one …
        chance: … with this chance. For a ranking: how often its places are to be right.
        reference: For a ranking: public or made-up counts to predict for.
        gap: For a ranking: instead of a reference, the lead of each place over the next.
    """

    allowed: Pure | None = None
    within: Number | None = None
    chance: float | None = None
    reference: ArrayLike | None = None
    gap: float | None = None


@dataclass(frozen=True)
class Chosen:
    """A mechanism for a question.

    Attributes:
        mechanism: It protects the exact answer.
        loss: What one release costs every entry that is read.
        error: What is predicted of it, as JSON.
        reason: Why this one, in words.
    """

    mechanism: Mechanism
    loss: Pure
    error: Mapping[str, Any]
    reason: str


def choose(question: Question, engine: Engine, wanted: Wanted) -> Chosen:
    """The best mechanism that is known; reads nothing that is protected."""
    shape = [len(keys) for _, keys in question.axes(engine)]
    groups = prod(shape[: len(question.by)])
    if groups == 0:
        raise InvalidQuery("by", given="has no keys", needed="have at least one group")
    if isinstance(question, TopOf):
        return _ranking(question, shape[-1], groups, wanted)
    if wanted.reference is not None or wanted.gap is not None:
        raise UnsoundRequest("`reference` and `gap` are for rankings; leave them out")
    return _numbers(question, engine, prod(shape) // groups, groups, wanted)


def _numbers(question: Question, engine: Engine, size: int, groups: int, wanted: Wanted) -> Chosen:
    """Integer noise on every number, counted in the unit of the answer."""
    moves = question.sensitivity(engine.declaration)
    unit = finest_unit(question, engine)
    if wanted.allowed is not None:
        plan = plan_histogram(size, groups, loss=wanted.allowed, sensitivity=moves)
    else:
        if wanted.within is None:
            raise UnsoundRequest("say what may be lost (`epsilon`) or how near (`within`)")
        reach = floor(exactly(wanted.within, "within") / unit)  # rounded down: nearer, if anything
        if reach < 1:
            raise UnsoundRequest(
                f"within is {float(exactly(wanted.within, 'within')):g}, less than the unit of the"
                f" answer, {float(unit):g}; ask for that or more"
            )
        chance = 0.95 if wanted.chance is None else wanted.chance
        plan = plan_histogram(size, groups, within=reach, chance=chance, sensitivity=moves)
    noise = plan.mechanism
    if not isinstance(noise, IntegerLaplace) or not isinstance(plan.loss, Pure):
        raise UnsoundRequest("only pure losses are planned for; none of the mechanisms has one")
    mechanism = _wrapped(question, engine, noise)
    units = noise.error()
    error = Error(units.deviation * float(unit), units.interval * float(unit))
    reason = plan.reason
    if unit != 1:
        reason += f" One unit is {float(unit):.6g} here."
    return Chosen(mechanism, plan.loss, asdict(error), reason)


def _wrapped(question: Question, engine: Engine, noise: IntegerLaplace) -> Mechanism:
    if not isinstance(question, SumOf):
        return noise
    total = BoundedSum(question.bounds(engine.declaration), noise)
    if not isinstance(question, MeanOf):
        return total
    return BoundedMean(total, tuple(_filled(question, engine)))


def finest_unit(question: Question, engine: Engine) -> Fraction:
    """By how much one unit of noise moves the answer, in the group that it moves most."""
    unit = Fraction(1)
    if isinstance(question, SumOf):
        unit = engine.declaration.amount(question.column).step
    if isinstance(question, MeanOf | ProportionsOf):
        unit /= min(_filled(question, engine))
    return unit


def _filled(question: Question, engine: Engine) -> list[int]:
    """The sizes of the groups that have rows: public."""
    sizes = [int(n) for n in np.ravel(question.public_rows(engine)) if n > 0]
    if not sizes:
        raise InvalidQuery("window", given="holds no rows", needed="hold at least one")
    return sizes


def _ranking(question: TopOf, size: int, groups: int, wanted: Wanted) -> Chosen:
    if wanted.within is not None:
        raise UnsoundRequest(
            "a ranking has no distance to be within; give `chance` with a `gap` or a `reference`"
        )
    if wanted.allowed is not None and wanted.chance is not None:
        raise UnsoundRequest("give `epsilon` or `chance`, not both: the other is the answer")
    plan = plan_top_k(
        size,
        question.k,
        groups,
        loss=wanted.allowed,
        reference=wanted.reference,
        gap=wanted.gap,
        chance=wanted.chance,
    )
    if not isinstance(plan.loss, Pure):
        raise UnsoundRequest("only pure losses are planned for; none of the mechanisms has one")
    return Chosen(plan.mechanism, plan.loss, asdict(plan.error), plan.reason)


def released(question: Question, mechanism: Mechanism, engine: Engine) -> list[Any]:
    """The protected answer as a list of JSON numbers. It is drawn here, once: pay first."""
    exact = question.exact(engine)
    if isinstance(question, MeanOf):
        filled = np.ravel(question.public_rows(engine)) > 0
        drawn = iter(mechanism.release(np.ravel(exact)[filled]).tolist())
        return [next(drawn) if has_rows else None for has_rows in filled.tolist()]
    flat: list[Any] = np.ravel(mechanism.release(np.atleast_1d(exact))).tolist()
    return flat


def spread(question: Question, mechanism: Mechanism, engine: Engine) -> Floats:
    """``[cell]``: half the width of a 95 % interval around each number that is shown."""
    sizes: Integers = np.maximum(np.ravel(question.public_rows(engine)), 1)  # no rows: not shown
    if isinstance(mechanism, BoundedMean):
        return np.asarray(mechanism.total.error().interval / sizes, dtype=np.float64)
    half: float = mechanism.error().interval
    cells = prod(len(keys) for _, keys in question.axes(engine))
    if isinstance(question, ProportionsOf):
        return np.asarray(np.repeat(half / sizes, cells // len(sizes)), dtype=np.float64)
    return np.full(cells, half)


def shown(question: Question, drawn: list[Any], engine: Engine) -> list[Any]:
    """The numbers that are shown: what was drawn, or its share of a public number of rows."""
    if not isinstance(question, ProportionsOf):
        return drawn
    sizes: Integers = np.ravel(question.public_rows(engine))
    every = np.repeat(sizes, len(drawn) // len(sizes)).tolist()
    return [None if n == 0 else count / n for count, n in zip(drawn, every, strict=True)]
