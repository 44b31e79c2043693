"""Which mechanism answers a query, for what may be lost or for the error that is wanted."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import floor, prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from takifugu.engines import Engine, InvalidQuery
from takifugu.errors import UnsoundRequest
from takifugu.losses import Concentrated, Loss, Number, Pure, exactly
from takifugu.mechanisms import (
    BoundedMean,
    BoundedSum,
    Choice,
    Error,
    IntegerGaussian,
    IntegerLaplace,
    Mechanism,
    NoisyTopK,
    RankingError,
    plan_histogram,
    plan_top_k,
)
from takifugu.mechanisms.mechanism_plan import merit, name, once, price
from takifugu.session.quantiles import QuantileOf, picker, picker_within, ranks_of
from takifugu.session.queries import MeanOf, ProportionsOf, Query, SumOf, TopOf

C = TypeVar("C", bound=Choice[Any, Any])
Noise = IntegerLaplace | IntegerGaussian

# A selection is one call of OpenDP for each group, about .1 ms; noise is one call for them all.
MOST_SELECTIONS = 200_000


@dataclass(frozen=True)
class Wanted:
    """What an answer may lose, or how good it must be: one of the two.

    Attributes:
        allowed: The per-entry loss that is allowed, in ε or in ρ; None if the error decides.
        delta: The Pufferfish δ that a ρ is read at; None for a loss in ε.
        within: Every number is to be within this of the exact one (a quantile: in ranks) …
        chance: … with this chance. For a ranking: how often its places are to be right.
        reference: For a ranking: public or made-up counts to predict for.
        gap: For a ranking: instead of a reference, the lead of each place over the next.
    """

    allowed: Pure | Concentrated | None = None
    delta: float | None = None
    within: Number | None = None
    chance: float | None = None
    reference: ArrayLike | None = None
    gap: float | None = None

    @property
    def often(self) -> float:
        """The chance that a number is within reach."""
        return 0.95 if self.chance is None else self.chance


@dataclass(frozen=True)
class Chosen:
    """A mechanism for a query.

    Attributes:
        mechanism: It protects the exact answer.
        error: What is predicted of it, as JSON.
        reason: Why this one, in words.
    """

    mechanism: Mechanism
    error: Mapping[str, Any]
    reason: str


def choose(query: Query, engine: Engine, wanted: Wanted) -> Chosen:
    """The best mechanism that is known; reads nothing that is protected."""
    shape = [len(keys) for _, keys in query.axes(engine)]
    groups = prod(shape[: len(query.by)])
    if groups == 0:
        raise InvalidQuery("by", given="has no keys", needed="have at least one group")
    if wanted.allowed is not None and (wanted.within is not None or wanted.chance is not None):
        raise UnsoundRequest(
            "give what may be lost (`epsilon`) or how good the answer must be (`within`, `chance`),"
            " not both: the other is the answer"
        )
    if isinstance(query, TopOf):
        return _ranking(query, shape[-1], groups, wanted)
    if wanted.reference is not None or wanted.gap is not None:
        raise UnsoundRequest("`reference` and `gap` are for rankings; leave them out")
    if wanted.allowed is None and wanted.within is None:
        raise UnsoundRequest("say what may be lost (`epsilon`) or how near (`within`)")
    if isinstance(query, QuantileOf):
        return _quantile(query, engine, groups, wanted)
    return _numbers(query, engine, prod(shape) // groups, groups, wanted)


def _numbers(query: Query, engine: Engine, size: int, groups: int, wanted: Wanted) -> Chosen:
    """Integer noise on every number, counted in the unit of the answer."""
    moves = query.sensitivity(engine.declaration)
    unit = finest_unit(query, engine)
    if wanted.allowed is not None:
        found = plan_histogram(size, groups, loss=wanted.allowed, sensitivity=moves)
        aim = f"within {price(wanted.allowed)} per entry"
    else:
        near = exactly(wanted.within or 0, "within")
        steps = floor(near / unit)  # rounded down: nearer, if anything
        if steps < 1:
            raise UnsoundRequest(
                f"within is {float(near):g}, less than the unit of the answer, {float(unit):g};"
                " ask for that or more"
            )
        found = plan_histogram(
            size,
            groups,
            within=steps,
            confidence=wanted.often,
            sensitivity=moves,
            delta=wanted.delta,
        )
        aim = f"to keep each number within ±{float(near):g} with a chance of {wanted.often:.3g}"
    best = _in_currency(found.choices, wanted)
    noise: Noise = best.mechanism
    error = Error(best.error.deviation * float(unit), best.error.interval * float(unit))
    each = "number" if unit == 1 else f"number (one unit of noise is {float(unit):.6g})"
    reason = (
        f"{aim}, {name(noise)} has a standard deviation of {error.deviation:.4g} on each {each}"
        f" and costs {price(noise.loss)} per entry{once(groups)}"
    )
    return Chosen(wrapped(query, engine, noise), asdict(error), reason)


def _in_currency(choices: tuple[C, ...], wanted: Wanted) -> C:
    """The best choice whose own loss is in ε, or in ρ if a δ was given."""
    kind = Pure if wanted.delta is None else Concentrated
    return next(choice for choice in choices if isinstance(choice.mechanism.loss, kind))


def wrapped(query: Query, engine: Engine, noise: Noise) -> Mechanism:
    """Noise as the mechanism of a query: on counts, on sums, or on means."""
    if not isinstance(query, SumOf):
        return noise
    total = BoundedSum(query.bounds(engine.declaration), noise)
    if not isinstance(query, MeanOf):
        return total
    return BoundedMean(total, tuple(_filled(query, engine)))


def finest_unit(query: Query, engine: Engine) -> Fraction:
    """By how much one unit of noise moves the answer, in the group that it moves most."""
    unit = Fraction(1)
    if isinstance(query, SumOf):
        unit = engine.declaration.amount(query.column).step
    if isinstance(query, MeanOf | ProportionsOf):
        unit /= min(_filled(query, engine))
    return unit


def _filled(query: Query, engine: Engine) -> list[int]:
    """The sizes of the groups that have rows: public."""
    sizes = [int(n) for n in np.ravel(query.public_rows(engine)) if n > 0]
    if not sizes:
        raise InvalidQuery("window", given="holds no rows", needed="hold at least one")
    return sizes


def _ranking(query: TopOf, size: int, groups: int, wanted: Wanted) -> Chosen:
    if wanted.within is not None:
        raise UnsoundRequest(
            "a ranking has no distance to be within; give `chance` with a `gap` or a `reference`"
        )
    found = plan_top_k(
        size,
        query.k,
        groups,
        loss=wanted.allowed,
        delta=wanted.delta if wanted.allowed is None else None,
        reference=wanted.reference,
        gap=wanted.gap,
        confidence=wanted.chance,
    )
    choices = found.choices
    if groups > MOST_SELECTIONS:
        choices = tuple(c for c in choices if isinstance(c.mechanism, NoisyTopK))
    best: Choice[Any, RankingError] = _in_currency(choices, wanted)
    aim = (
        f"for places that are right with a chance of {wanted.often:.3g}"
        if wanted.allowed is None
        else f"within {price(wanted.allowed)} per entry"
    )
    reason = (
        f"{aim}, {name(best.mechanism)} {merit(best)} and costs {price(best.mechanism.loss)} per"
        f" entry{once(groups)}{_in_one_call(groups)}"
    )
    return Chosen(best.mechanism, asdict(best.error), reason)


def _in_one_call(groups: int) -> str:
    if groups <= MOST_SELECTIONS:
        return ""
    return f"; with more than {MOST_SELECTIONS:,} groups the noise of all is drawn at once"


def _quantile(query: QuantileOf, engine: Engine, groups: int, wanted: Wanted) -> Chosen:
    moves = query.sensitivity(engine.declaration).linf
    cells = engine.declaration.amount(query.column).cells(query.every)
    if not any(query.sizes(engine)):
        raise InvalidQuery("window", given="holds no rows", needed="hold at least one")
    if wanted.allowed is not None:
        mechanism = picker(wanted.allowed, moves)
    else:
        mechanism = picker_within(
            wanted.within or 0,
            wanted.often,
            cells,
            moves,
            concentrated=wanted.delta is not None,
        )
    ranks = ranks_of(mechanism, cells)
    spent: Loss = mechanism.loss
    reason = (
        f"{name(mechanism)} over {cells} numbers names one whose rank is within {ranks:.4g} of the"
        f" rank asked for, 95 % of the time and whatever the values, and costs {price(spent)} per"
        f" entry{once(groups)}"
    )
    return Chosen(mechanism, {"ranks": ranks, "chance": 0.95, "candidates": cells}, reason)
