r"""Every mechanism that could answer a query within an allowance, at its least noise.

An allowance is a loss per entry: pure, approximate or concentrated. Each candidate is charged in
the currency of the allowance: an ε-DP release costs ρ = ε²/2 (Bun and Steinke, 2016,
Proposition 1.4); a ρ-zCDP release costs the (ε, δ) of OpenDP's conversion.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, log, sqrt
from typing import Generic, TypeVar

from takifugu._core.exact import Number
from takifugu._core.rounding import float_down
from takifugu.costs.losses import Approximate, Concentrated, Loss, Pure
from takifugu.errors import UnsoundRequest
from takifugu.mechanisms import opendp_measurements as measurements
from takifugu.mechanisms.calibration import (
    allowance,
    approximate_allowance,
    least_scale,
    searched_scale,
)
from takifugu.mechanisms.checks import WIDEST, probability
from takifugu.mechanisms.mechanism_protocol import Sensitivity
from takifugu.mechanisms.noise import IntegerGaussian, IntegerLaplace
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
    gaussian = _gaussian(allowed, sensitivity)
    return (priced,) if gaussian is None else (priced, gaussian)


def selections(allowed: Loss, k: int, sensitivity: Sensitivity) -> tuple[Priced[Selection], ...]:
    """Top-k: noise on all counts and sort, or k rounds of a selection."""
    return tuple(_selections(allowed, k, sensitivity))


def _selections(allowed: Loss, k: int, sensitivity: Sensitivity) -> Iterator[Priced[Selection]]:
    for one in additive(allowed, sensitivity):
        yield Priced(NoisyTopK(one.mechanism, k), one.loss)
    for kind in (PermuteAndFlip, Exponential):
        peeled = kind.within(_pure_part(allowed), k=k, sensitivity=sensitivity.linf)
        yield Priced(peeled, as_charged(peeled.pure, allowed))
    if isinstance(allowed, Concentrated) or (isinstance(allowed, Approximate) and allowed.delta):
        yield _exponential(allowed, k, sensitivity.linf)


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


def _gaussian(allowed: Loss, sensitivity: Sensitivity) -> Priced[IntegerGaussian] | None:
    def made(scale: float) -> IntegerGaussian:
        return IntegerGaussian(scale, sensitivity)

    if isinstance(allowed, Concentrated):
        noise = made(_for_rho(allowed.rho, sensitivity.l2, lambda s: made(s).loss.rho))
        return Priced(noise, noise.loss)
    if isinstance(allowed, Approximate) and allowed.delta > 0:
        room = probability(float_down(allowed.delta), "delta")
        noise = made(
            _for_delta(allowed, room, sensitivity.l2, lambda s: made(s).approximate(room).epsilon)
        )
        return Priced(noise, noise.approximate(room))
    return None


def _exponential(allowed: Approximate | Concentrated, k: int, moves: int) -> Priced[Exponential]:
    """Peeled rounds of the exponential mechanism, added up as concentrated losses."""

    def made(scale: float) -> Exponential:
        return Exponential(scale, k, moves, currency="concentrated")

    def charged(scale: float, room: float) -> Approximate:
        return measurements.approximate(
            measurements.noisy_top(k, scale, concentrated=True), moves, room
        )

    distance = moves * sqrt(k)  # ρ = k (2·moves / scale)² / 8 = (distance / scale)² / 2
    if isinstance(allowed, Concentrated):
        scale = _for_rho(allowed.rho, distance, lambda s: made(s).concentrated.rho)
        return Priced(made(scale), made(scale).concentrated)
    room = probability(float_down(allowed.delta), "delta")
    scale = _for_delta(allowed, room, distance, lambda s: charged(s, room).epsilon)
    return Priced(made(scale), charged(scale, room))


def _for_rho(rho: Fraction, distance: float, loss_at: Callable[[float], Fraction]) -> float:
    """The least scale of noise with ρ = (distance / scale)² / 2."""
    most = float_down(rho)
    return least_scale(distance / sqrt(2 * most), loss_at, most)


def _for_delta(
    allowed: Approximate, room: float, distance: float, loss_at: Callable[[float], Fraction]
) -> float:
    """The least scale whose ρ converts to at most ε at δ = ``room``."""
    most = float_down(allowed.epsilon)
    root = most / (sqrt(log(1 / room) + most) + sqrt(log(1 / room)))  # √ρ: ε = ρ + 2√(ρ log(1/δ))
    return searched_scale(min(distance / (sqrt(2) * root), WIDEST / 2), loss_at, most)
