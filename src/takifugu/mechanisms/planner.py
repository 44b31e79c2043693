"""Which mechanism to use for a histogram or a top-k query, and why, before anything is spent.

The planner never looks at protected data. It compares every mechanism that keeps the allowance by
the error of its noise: for a histogram by the standard deviation; for a ranking by the probability
that its places are right for *reference* counts (a public table, last year's release, a stated
gap), or without any by the least gap that is resolved.

Groups over public keys touch disjoint entries. They are released by one call and cost one loss.

The plan of a mechanism: its price, its error, the alternatives, and the reason.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from math import pi, sqrt
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.exact import Number
from takifugu._core.numeric import Floats
from takifugu._core.rounding import float_up
from takifugu.costs.losses import Approximate, Concentrated, Loss, Metric, Pure
from takifugu.errors import InvalidMechanism, TooLarge, UnsoundRequest
from takifugu.mechanisms.calibration import certify
from takifugu.mechanisms.candidates import (
    Additive,
    Priced,
    Selection,
    additive,
    additive_within,
    allowed_loss,
    ranked_right,
    selections,
)
from takifugu.mechanisms.mechanism_protocol import (
    HISTOGRAM,
    Error,
    Sensitivity,
    loss_document,
    positive,
    probability,
    whole,
)
from takifugu.mechanisms.noise import IntegerGaussian, IntegerLaplace
from takifugu.mechanisms.prediction import (
    Shape,
    different_groups,
    predicted,
    prediction_terms,
    resolution,
    staircase,
)
from takifugu.mechanisms.selection import Exponential, PermuteAndFlip
from takifugu.translation.protocol import LossTranslation
from takifugu.visible import four_digits

M = TypeVar("M", bound=Additive | Selection)
E = TypeVar("E", bound="Error | RankingError")


@dataclass(frozen=True)
class RankingError:
    """What noise does to a ranking.

    Attributes:
        deviation: The standard deviation of the noise on one score.
        gap: Leads of this much are resolved: if each of the first k leads the next by it, every
            place is right with a probability of at least 0.95.
        right: For the reference: the mean probability that each place is right; None without one.
        hits: For the reference: the share of those named that belong there; None without one.
    """

    deviation: float
    gap: float
    right: tuple[float, ...] | None = None
    hits: float | None = None

    @property
    def mean_right(self) -> float | None:
        """The mean over the places of the probability that they are right."""
        return None if self.right is None else sum(self.right) / len(self.right)


@dataclass(frozen=True)
class Choice(Generic[M, E]):
    """A mechanism, what one release costs, and the error it is predicted to make."""

    mechanism: M
    loss: Loss
    error: E

    def describe(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        return {
            "mechanism": self.mechanism.describe(),
            "charge": loss_document(self.loss),
            "error": asdict(self.error),
        }


@dataclass(frozen=True)
class MechanismPlan(Generic[M, E]):
    """The mechanism to use, and why.

    Attributes:
        mechanism: The best of all that were tried.
        loss: What one release costs every entry, in the currency of the allowance; all groups
            together cost this once.
        error: What it is predicted to do.
        alternatives: The others, best first.
        reason: Why, in one sentence.
        groups: How many groups are released.
        pufferfish: The Pufferfish ε of the loss, if a translation was given.
    """

    mechanism: M
    loss: Loss
    error: E
    alternatives: tuple[Choice[M, E], ...]
    reason: str
    groups: int = 1
    pufferfish: float | None = None

    @property
    def choices(self) -> tuple[Choice[M, E], ...]:
        """All that were tried, best first."""
        return (Choice(self.mechanism, self.loss, self.error), *self.alternatives)

    def describe(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        return {
            **self.choices[0].describe(),
            "groups": self.groups,
            "pufferfish": self.pufferfish,
            "reason": self.reason,
            "alternatives": [choice.describe() for choice in self.alternatives],
        }


def name(mechanism: Additive | Selection) -> str:
    """What a mechanism is called."""
    if isinstance(mechanism, IntegerLaplace):
        return "integer Laplace noise"
    if isinstance(mechanism, IntegerGaussian):
        return "integer Gaussian noise"
    if isinstance(mechanism, PermuteAndFlip | Exponential):
        kind = mechanism.kind.replace("exponential", "the exponential mechanism")
        rounds = "" if mechanism.k == 1 else f" in {mechanism.k} rounds"
        added = isinstance(mechanism, Exponential) and mechanism.currency == "concentrated"
        return f"{kind}{rounds}{' (a concentrated loss)' if added else ''}"
    return f"{name(mechanism.noise)} on all counts, then sorting"


def merit(choice: Choice[Selection, RankingError]) -> str:
    """What a ranking is worth."""
    gap = f"resolves leads of {choice.error.gap:.4g}"
    right = choice.error.mean_right
    if right is None:
        return gap
    return f"{gap} and gets {right:.1%} of the places right for the leads given"


def other_choices(choices: Sequence[Choice[M, E]], describe: Callable[[Choice[M, E]], str]) -> str:
    """The choices that were not the best, in words."""
    if len(choices) < 2:
        return ""
    return ". The others: " + "; ".join(f"{name(c.mechanism)} {describe(c)}" for c in choices[1:])


def once(groups: int) -> str:
    """The end of a reason: that groups cost nothing more, where there are several."""
    if groups == 1:
        return "."
    return f". The {groups} groups have public keys and disjoint entries: one charge for all."


def price(loss: Loss) -> str:
    """A loss in a few letters."""
    match loss:
        case Pure(epsilon=e) | Metric(epsilon=e):
            return f"ε = {four_digits(float(e), 'up')}"
        case Approximate(epsilon=e, delta=d):
            return f"(ε, δ) = ({four_digits(float(e), 'up')}, {four_digits(float(d), 'up')})"
    return f"ρ = {four_digits(float(loss.rho), 'up')}"


MAX_TERMS = 10_000_000  # of a plan's predictions: seconds of work
PREDICTIONS, SEARCHED_PREDICTIONS = 5, 100  # of a plan: for what may be lost; for a confidence
EQUAL_PROBABILITIES = (
    1e-4  # probabilities closer than this are compared by the gap that is resolved
)


def plan_histogram(
    categories: int | Sequence[object],
    groups: int = 1,
    *,
    loss: Loss | None = None,
    translation: LossTranslation | None = None,
    epsilon: Number | None = None,
    delta: float | None = None,
    within: float | None = None,
    confidence: float = 0.95,
    sensitivity: Sensitivity = HISTOGRAM,
) -> MechanismPlan[Additive, Error]:
    """The least noise on every count for what may be lost; or the least loss for an error.

    Give ``loss`` per entry, or a Pufferfish ``epsilon`` (and ``delta``) with a ``translation``.
    Or give ``within`` and ``confidence``, ±50 at 0.95, and no ``epsilon``: the answer is the
    smallest per-entry ε that keeps every single count within it; ``delta`` is then per entry.
    """
    size, parts = _size(categories), whole(groups, "groups")
    if within is None:
        allowed = allowed_loss(loss, translation, epsilon, delta)
        choices = [_noise(priced) for priced in additive(allowed, sensitivity)]
        choices.sort(key=lambda choice: choice.error.deviation)
        aim = f"within {price(allowed)} per entry"
    else:
        _no_allowance(loss, epsilon, delta, translation)
        meeting = additive_within(positive(within, "within"), confidence, delta, sensitivity)
        choices = _cheapest(_noise(priced) for priced in meeting)
        aim = f"to keep each count within ±{within:.4g} with a confidence of {confidence:.4g}"
    best = choices[0]
    reason = (
        f"{aim}, {name(best.mechanism)} has a standard deviation of {best.error.deviation:.4g}"
        f" on each of the {size} counts and costs {price(best.loss)}"
        + other_choices(choices, lambda c: f"{c.error.deviation:.4g}, {price(c.loss)}")
        + once(parts)
    )
    return _plan(choices, reason, parts, translation, epsilon)


def plan_top_k(
    categories: int | Sequence[object],
    k: int,
    groups: int = 1,
    *,
    loss: Loss | None = None,
    translation: LossTranslation | None = None,
    epsilon: Number | None = None,
    delta: float | None = None,
    reference: ArrayLike | None = None,
    gap: float | None = None,
    confidence: float | None = None,
    sensitivity: Sensitivity = HISTOGRAM,
) -> MechanismPlan[Selection, RankingError]:
    """The mechanism that gets most of a ranking right for what may be lost; or the least loss.

    Give ``loss`` per entry, or a Pufferfish ``epsilon`` (and ``delta``) with a ``translation``.
    Or give ``confidence`` and no ``epsilon``: the answer is the smallest per-entry ε with which
    places are right with that probability, on average, for the ``reference`` or ``gap``;
    ``delta`` is then per entry.

    Args:
        categories: How many, or which, categories are ranked.
        k: How many are named, best first.
        groups: Over how many public groups. Their entries are disjoint: one charge for all.
        loss: What every entry may lose.
        translation: From a Pufferfish loss to a loss per entry.
        epsilon: The Pufferfish loss.
        delta: The Pufferfish δ.
        reference: ``[category]`` or ``[group, category]``: counts that are public or synthetic.
            Never the protected ones: a choice made by them would itself reveal them.
        gap: Instead of a reference: by how much each of the first k leads the next.
        confidence: The probability with which places are to be right.
        sensitivity: How far one replaced entry moves the scores; by default one count down and
            another up.
    """
    size, parts, places = _size(categories), whole(groups, "groups"), whole(k, "k")
    if places > size:
        raise InvalidMechanism("k", given=f"is {k}", needed=f"be at most the {size} categories")
    known, weights = _references(reference, gap, size, parts, places), None
    if known is not None:
        known, weights = different_groups(known)
        _refuse_long_predictions(known, places, searched=confidence is not None)
    if confidence is None:
        allowed = allowed_loss(loss, translation, epsilon, delta)
        offered = selections(allowed, places, sensitivity)
        choices = sorted(
            (_ranking(priced, size, places, known, weights) for priced in offered), key=_worse
        )
        aim = f"within {price(allowed)} per entry"
    else:
        _no_allowance(loss, epsilon, delta, translation)
        if known is None:
            raise UnsoundRequest(
                "whether places are right depends on the gaps between counts; give a public"
                " `reference` or a `gap`",
                field="reference",
                reason="missing",
            )
        target = probability(confidence, "confidence")
        meeting = ranked_right(known, places, target, delta, sensitivity, weights)
        choices = _cheapest(_ranking(priced, size, places, known, weights) for priced in meeting)
        aim = f"for places that are right with a probability of {target:.4g}"
    best = choices[0]
    reason = (
        f"{aim}, {name(best.mechanism)} {merit(best)}"
        + (f" and costs {price(best.loss)}" if confidence is not None else "")
        + other_choices(choices, lambda c: price(c.loss) if confidence is not None else merit(c))
        + once(parts)
    )
    return _plan(choices, reason, parts, translation, epsilon)


def noise_of(mechanism: Selection) -> tuple[Shape, float, float]:
    """The shape, the scale and the standard deviation of the noise behind a ranking."""
    if isinstance(mechanism, PermuteAndFlip):  # exponential noise (Ding et al., 2021)
        return "flips", mechanism.scale, mechanism.scale
    if isinstance(mechanism, Exponential):
        return "gumbel", mechanism.scale, mechanism.scale * pi / sqrt(6)
    shape: Shape = "laplace" if isinstance(mechanism.noise, IntegerLaplace) else "gaussian"
    return shape, mechanism.noise.scale, mechanism.noise.deviation


def _ranking(
    priced: Priced[Selection], size: int, k: int, known: Floats | None, weights: Floats | None
) -> Choice[Selection, RankingError]:
    shape, scale, deviation = noise_of(priced.mechanism)
    gap = resolution(size, k, shape) * scale
    if known is None:
        return Choice(priced.mechanism, priced.loss, RankingError(deviation, gap))
    right = predicted(known, k, shape, scale, weights)
    places = tuple(float(x) for x in right.places)
    return Choice(priced.mechanism, priced.loss, RankingError(deviation, gap, places, right.hits))


def _refuse_long_predictions(known: Floats, k: int, *, searched: bool) -> None:
    """Raise if what the plan is to predict takes too long: before any of it is computed."""
    terms = prediction_terms(known, k) * (SEARCHED_PREDICTIONS if searched else PREDICTIONS)
    if terms > MAX_TERMS:
        groups, size = known.shape
        what = "for a confidence" if searched else "for what may be lost"
        raise TooLarge(
            f"a plan of the first k = {k} {what}, by a reference of {groups:,} different groups ×"
            f" {size:,} labels, adds up {terms:,} terms; at most {MAX_TERMS:,} are: give one"
            " reference for all groups, or fewer groups, or counts that are rounded more, or ask"
            " for a smaller k",
            field="reference",
            reason="terms",
            size=terms,
            limit=MAX_TERMS,
        )


def _worse(choice: Choice[Selection, RankingError]) -> tuple[float, float]:
    error = choice.error
    right = error.mean_right
    return (0.0 if right is None else round((1 - right) / EQUAL_PROBABILITIES), error.gap)


def _noise(priced: Priced[Additive]) -> Choice[Additive, Error]:
    return Choice(priced.mechanism, priced.loss, priced.mechanism.error())


def _cheapest(choices: Iterable[Choice[M, E]]) -> list[Choice[M, E]]:
    return sorted(choices, key=lambda choice: _with_epsilon(choice.loss).epsilon)


def _with_epsilon(loss: Loss) -> Pure | Approximate:
    if isinstance(loss, Concentrated):
        raise UnsoundRequest(
            "a concentrated loss has no ε of its own; give a delta to read it at", field="delta"
        )
    return Pure(loss.epsilon) if isinstance(loss, Metric) else loss


def _plan(
    choices: list[Choice[M, E]],
    reason: str,
    groups: int,
    translation: LossTranslation | None,
    epsilon: Number | None,
) -> MechanismPlan[M, E]:
    best, *rest = choices
    pufferfish = None
    if translation is not None:
        spent = _with_epsilon(best.loss)
        if epsilon is not None:
            certify(spent, epsilon, translation)
        pufferfish = float(translation.to_pufferfish(float_up(spent.epsilon)))
    return MechanismPlan(
        best.mechanism, best.loss, best.error, tuple(rest), reason, groups, pufferfish
    )


def _no_allowance(
    loss: Loss | None,
    epsilon: Number | None,
    delta: float | None,
    translation: LossTranslation | None,
) -> None:
    if loss is not None or epsilon is not None:
        raise UnsoundRequest(
            "give what may be lost or a target for the error, not both: the other is the answer",
            field="loss",
            reason="both",
        )
    if delta is not None and translation is not None:
        raise UnsoundRequest(
            "with a target for the error `delta` is per entry and is not translated; leave"
            " `delta` or `translation` out",
            field="delta",
        )


def _size(categories: int | Sequence[object]) -> int:
    if isinstance(categories, int | np.integer):
        return whole(int(categories), "categories")
    return whole(len(categories), "categories")


def _references(
    reference: ArrayLike | None, gap: float | None, size: int, groups: int, k: int
) -> Floats | None:
    """``[group, category]``: what the ranking is predicted for, or nothing."""
    if gap is not None:
        if reference is not None:
            raise UnsoundRequest(
                "give a `reference` or a `gap`, not both", field="reference", reason="both"
            )
        return staircase(size, k)[None, :] * positive(gap, "gap")
    if reference is None:
        return None
    try:
        table = np.atleast_2d(np.asarray(reference, dtype=np.float64))
    except (OverflowError, TypeError, ValueError) as error:
        raise InvalidMechanism(
            "reference", given="is not an array of numbers", needed="hold counts"
        ) from error
    if table.ndim != 2 or table.shape[1] != size or table.shape[0] not in (1, groups):
        raise InvalidMechanism(
            "reference",
            given=f"has shape {table.shape}",
            needed=f"hold {size} counts, for one group or for each of {groups}",
        )
    if not np.isfinite(table).all():
        raise InvalidMechanism("reference", given="holds NaN or infinity", needed="hold counts")
    return table
