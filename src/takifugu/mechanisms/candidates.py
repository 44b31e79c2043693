r"""Every mechanism that could answer a query: within an allowance, or for a target of its error.

An allowance is a loss per entry: pure, approximate or concentrated. Each candidate is charged in
the currency of the allowance: an ε-DP release costs ρ = ε²/2 (Bun and Steinke, 2016,
Proposition 1.4); a ρ-zCDP release costs the (ε, δ) of OpenDP's conversion.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, sqrt
from typing import Generic, TypeVar

import numpy as np

from takifugu._core.exact import Number
from takifugu._core.numeric import Floats
from takifugu._core.rounding import float_down
from takifugu.costs.losses import Approximate, Concentrated, Loss, Pure
from takifugu.errors import UnsoundRequest
from takifugu.mechanisms import noise_laws
from takifugu.mechanisms.calibration import (
    allowance,
    approximate_allowance,
    least_scale,
    scale_at_delta,
)
from takifugu.mechanisms.mechanism_protocol import MAX_SCALE, Sensitivity, probability
from takifugu.mechanisms.noise import IntegerGaussian, IntegerLaplace
from takifugu.mechanisms.prediction import Shape, predicted
from takifugu.mechanisms.selection import Exponential, NoisyTopK, PermuteAndFlip
from takifugu.translation.protocol import LossTranslation

Additive = IntegerLaplace | IntegerGaussian
Selection = NoisyTopK | PermuteAndFlip | Exponential
M = TypeVar("M", bound=Additive | Selection, covariant=True)


@dataclass(frozen=True)
class Priced(Generic[M]):
    """A mechanism and what one release of it costs, in the currency of the allowance."""

    mechanism: M
    loss: Loss


def allowed_loss(
    loss: Loss | None,
    translation: LossTranslation | None,
    epsilon: Number | None,
    delta: float | None,
) -> Loss:
    """The per-entry allowance: as given, or what a Pufferfish loss leaves of it."""
    if loss is not None:
        if translation is not None or epsilon is not None or delta is not None:
            raise UnsoundRequest(
                "`loss` says all; leave `translation`, `epsilon` and `delta` out, or `loss`",
                field="loss",
                reason="both",
            )
        most = loss.rho if isinstance(loss, Concentrated) else loss.epsilon
        if not float(most) > 0:
            raise UnsoundRequest(
                "nothing may be lost (ε or ρ is 0); a release always loses some",
                field="loss",
                reason="zero",
            )
        return loss
    if translation is None or epsilon is None:
        raise UnsoundRequest(
            "give what may be lost: `loss` per entry, or an `epsilon` with a `translation`",
            field="loss",
            reason="missing",
        )
    if delta is None:
        return Pure(allowance(epsilon, translation))
    return Approximate(*approximate_allowance(epsilon, delta, translation))


def additive(allowed: Loss, sensitivity: Sensitivity) -> tuple[Priced[Additive], ...]:
    """Noise on every number: Laplace, and Gaussian where the allowance has room for it."""
    laplace = IntegerLaplace.within(_pure_part(allowed), sensitivity=sensitivity)
    priced = Priced(laplace, as_charged(laplace.loss, allowed))
    gaussian = _concentrated(allowed, sensitivity.l2, lambda s: IntegerGaussian(s, sensitivity))
    return (priced,) if gaussian is None else (priced, gaussian)


def selections(allowed: Loss, k: int, sensitivity: Sensitivity) -> tuple[Priced[Selection], ...]:
    """Top-k: noise on all counts and sort, or k rounds of a selection."""
    return tuple(_selections(allowed, k, sensitivity))


def _selections(allowed: Loss, k: int, sensitivity: Sensitivity) -> Iterator[Priced[Selection]]:
    for noise in additive(allowed, sensitivity):
        yield Priced(NoisyTopK(noise.mechanism, k), noise.loss)
    for kind in (PermuteAndFlip, Exponential):
        peeled = kind.within(_pure_part(allowed), k=k, sensitivity=sensitivity.linf)
        yield Priced(peeled, as_charged(peeled.pure, allowed))
    moves = sensitivity.linf
    added = _concentrated(  # ρ = k (2·moves / scale)² / 8
        allowed,
        moves * sqrt(k),
        lambda s: Exponential(s, k, moves, currency="concentrated"),
    )
    if added is not None:
        yield added


def as_charged(loss: Pure, allowed: Loss) -> Loss:
    """A pure loss in the currency of an allowance."""
    if isinstance(allowed, Concentrated):
        return Concentrated(loss.epsilon**2 / 2)
    return loss


def _pure_part(allowed: Loss) -> Fraction:
    """The largest pure ε within an allowance, rounded down."""
    if isinstance(allowed, Concentrated):
        digits = 10**24
        return Fraction(isqrt(int(2 * allowed.rho * digits**2)), digits)  # √(2ρ), cut off
    return allowed.epsilon


C = TypeVar("C", IntegerGaussian, Exponential)


def _concentrated(allowed: Loss, distance: float, build: Callable[[float], C]) -> Priced[C] | None:
    """The least noise of a ρ-zCDP mechanism within what is allowed; None within a pure loss.

    ρ is (``distance`` / scale)² / 2.
    """
    if isinstance(allowed, Concentrated):
        most = float_down(allowed.rho)
        scale = least_scale(distance / sqrt(2 * most), lambda s: _rho(build(s)).rho, most)
        return Priced(build(scale), _rho(build(scale)))
    if isinstance(allowed, Approximate) and allowed.delta > 0:
        room, most = probability(float_down(allowed.delta), "delta"), float_down(allowed.epsilon)
        scale = scale_at_delta(distance, lambda s: build(s).approximate(room).epsilon, most, room)
        return Priced(build(scale), build(scale).approximate(room))
    return None


def _rho(mechanism: IntegerGaussian | Exponential) -> Concentrated:
    if isinstance(mechanism, Exponential):
        return mechanism.concentrated
    return mechanism.loss


# --- for a target of the error: the most noise that still meets it, hence the least loss ---


def additive_within(
    distance: float, confidence: float, delta: float | None, sensitivity: Sensitivity
) -> Iterator[Priced[Additive]]:
    """The most noise within ±``distance`` with ``confidence``; Gaussian if a δ is allowed."""
    if not distance >= 1:  # also false for NaN
        raise UnsoundRequest(
            f"within is {distance:.4g}; counts are whole and noise on them too: ask for 1 or more",
            field="within",
            given=distance,
            needed=1,
        )
    reach, miss = int(min(distance, MAX_SCALE)), 1 - probability(confidence, "confidence")
    scale = _largest(lambda s: laplace_beyond(s, reach) <= miss, reach)
    laplace = IntegerLaplace(scale, sensitivity)
    yield Priced(laplace, laplace.loss)
    if delta is not None:
        scale = _largest(lambda s: gaussian_beyond(s, reach) <= miss, reach)
        gaussian = IntegerGaussian(scale, sensitivity)
        yield Priced(gaussian, gaussian.approximate(delta))


def ranked_right(
    references: Floats,
    k: int,
    confidence: float,
    delta: float | None,
    sensitivity: Sensitivity,
    weights: Floats | None = None,
) -> Iterator[Priced[Selection]]:
    """The most noise with which the places are right, on average, with ``confidence``.

    ``references[group, category]`` are public or synthetic; ``weights[group]`` count in the mean.
    """
    target = probability(confidence, "confidence")

    def scale(shape: Shape) -> float:
        return _largest(lambda s: mean_right(references, k, shape, s, weights) >= target, 1.0)

    laplace = IntegerLaplace(scale("laplace"), sensitivity)
    yield Priced(NoisyTopK(laplace, k), laplace.loss)
    flips = PermuteAndFlip(scale("flips"), k, sensitivity.linf)
    yield Priced(flips, flips.pure)
    width = scale("gumbel")
    peeled = Exponential(width, k, sensitivity.linf)
    yield Priced(peeled, peeled.pure)
    if delta is not None:
        gaussian = IntegerGaussian(scale("gaussian"), sensitivity)
        yield Priced(NoisyTopK(gaussian, k), gaussian.approximate(delta))
        rounds = Exponential(width, k, sensitivity.linf, currency="concentrated")
        yield Priced(rounds, rounds.approximate(delta))


def mean_right(
    references: Floats, k: int, shape: Shape, scale: float, weights: Floats | None = None
) -> float:
    """The mean probability, over groups and places, that a place is right."""
    return predicted(references, k, shape, scale, weights).mean


def laplace_beyond(scale: float, reach: int) -> float:
    """P(|Z| > ``reach``) of integer Laplace noise."""
    return 2 * float(noise_laws.laplace_above(scale, np.array(float(reach))))


def gaussian_beyond(scale: float, reach: int) -> float:
    """P(|Z| > ``reach``) of integer Gaussian noise."""
    return 2 * float(noise_laws.gaussian_above(scale)(np.array(float(reach))))


def _largest(good: Callable[[float], bool], guess: float) -> float:
    """The largest scale, to one part in 10⁴ and from below, that is good; the narrower the better.

    Noise much narrower than 1 changes no count, so the search ends there.
    """
    low = guess
    while not good(low):
        low /= 2
        if low < 2.0**-6:
            raise UnsoundRequest("no noise keeps this target; ask for less", reason="too strict")
    high = 2 * low
    while good(high):
        low, high = high, 2 * high
        if high > MAX_SCALE:
            raise UnsoundRequest(
                "any noise keeps this target; nothing needs to be released", reason="too loose"
            )
    while high - low > 1e-4 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if good(middle) else (low, middle)
    return low
