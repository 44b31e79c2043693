"""From a Pufferfish loss that is allowed to the parameters of a mechanism that keeps it."""

from collections.abc import Callable
from fractions import Fraction
from math import expm1, inf, log, sqrt

from takifugu._core.exact import Number, exactly
from takifugu._core.rounding import float_down, float_up
from takifugu.costs.losses import Approximate, Pure
from takifugu.errors import UnsoundRequest
from takifugu.mechanisms.mechanism_protocol import MAX_SCALE, positive, probability
from takifugu.translation.protocol import LossTranslation
from takifugu.visible import four_digits

MARGIN = 2.0**-45  # more than the rounding of the few operations that it covers


def target_of(epsilon: Number, name: str = "epsilon") -> float:
    """The largest float that is not above a requested loss; positive and finite."""
    return positive(float_down(exactly(epsilon, name)), name)


def allowance(epsilon: Number, translation: LossTranslation) -> float:
    """The per-entry loss that a Pufferfish loss of ``epsilon`` leaves, rounded down."""
    target = target_of(epsilon)
    allowed = float(translation.to_dp(target))
    if not 0 < allowed < inf:  # also false for NaN
        raise no_allowance(target, allowed, translation)
    return allowed


def no_allowance(
    target: float, allowed: Fraction | float, translation: LossTranslation
) -> UnsoundRequest:
    """The error for a Pufferfish loss that leaves nothing for a release: why, and what would."""
    from takifugu.advice.prior_advice import why_nothing

    words, needed = why_nothing(translation, target)
    return UnsoundRequest(
        f"a Pufferfish loss of {four_digits(target)} leaves no per-entry loss under this prior (the"
        f" translation allows {four_digits(allowed, 'down')}): {words}",
        field="epsilon",
        reason="no allowance",
        given=target,
        needed=needed,
    )


def approximate_allowance(
    epsilon: Number, delta: float, translation: LossTranslation
) -> tuple[float, float]:
    r"""The per-entry (ε, δ) that a Pufferfish loss of (``epsilon``, ``delta``) leaves.

    A per-entry :math:`(\varepsilon, \delta)`-DP mechanism is
    :math:`(\varepsilon_P, \delta (e^{\varepsilon_P} - 1)/(e^\varepsilon - 1))`-Pufferfish
    private, with :math:`\varepsilon_P` the translation of :math:`\varepsilon`. For the exact
    translation that is the dual of the transport; for a curve the factor is at most this one, as
    :math:`b \varepsilon \le \varepsilon_P` at the point that is used. Rounded down.
    """
    target, room = target_of(epsilon), probability(delta, "delta")
    allowed = allowance(target, translation)
    if target > 700:
        raise UnsoundRequest(
            f"epsilon is {four_digits(target, 'up')}; with a delta it must be at most 700",
            field="epsilon",
            given=target,
            needed=700,
        )
    allowed_delta = room * (expm1(allowed) / expm1(target)) * (1 - MARGIN)
    return allowed, positive(min(allowed_delta, room), "the delta that is left for one entry")


def certify(loss: Pure | Approximate, epsilon: Number, translation: LossTranslation) -> None:
    """Refuse a loss whose Pufferfish loss is more than ``epsilon``."""
    total = float(translation.to_pufferfish(float_up(loss.epsilon)))
    if not total <= target_of(epsilon):  # also false for NaN
        raise UnsoundRequest(
            f"the calibrated mechanism would lose {total!r}, more than the requested {epsilon!r};"
            " the translation's two directions contradict each other, and nothing can be built",
            field="translation",
            given=total,
            needed=epsilon,
        )


def least_scale(guess: float, loss_at: Callable[[float], Fraction], allowed: float) -> float:
    """The noise scale at or just above ``guess`` whose proven loss is within ``allowed``."""
    scale, step = guess, 2.0**-52
    while not loss_at(scale) <= allowed:
        scale, step = scale * (1 + step), 2 * step
        if not scale <= MAX_SCALE:
            raise _no_scale(allowed)
    return scale


def searched_scale(guess: float, loss_at: Callable[[float], Fraction], allowed: float) -> float:
    """The least noise scale, to one part in 10⁷, whose proven loss is within ``allowed``."""
    high = guess
    while not loss_at(high) <= allowed:
        high *= 2
        if not high <= MAX_SCALE:
            raise _no_scale(allowed)
    low = high / 2
    while loss_at(low) <= allowed and low > guess * 2.0**-20:
        low, high = low / 2, low
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if loss_at(middle) <= allowed else (middle, high)
    return high


def scale_at_delta(
    distance: float, loss_at: Callable[[float], Fraction], allowed: float, room: float
) -> float:
    """The least scale at which a ρ-zCDP mechanism, read at δ = ``room``, loses ``allowed``.

    ρ = (``distance`` / scale)² / 2, and ε = ρ + 2√(ρ log(1/δ)) begins the search.
    """
    digits = log(1 / room)
    root = allowed / (sqrt(digits + allowed) + sqrt(digits))  # √ρ
    guess = min(distance / (sqrt(2) * root), MAX_SCALE / 2)
    return searched_scale(guess, loss_at, allowed)


def _no_scale(allowed: float) -> UnsoundRequest:
    return UnsoundRequest(
        f"no noise scale up to 2^50 loses only {four_digits(allowed, 'down')} per entry;"
        " ask for more",
        field="epsilon",
        reason="too small",
        given=allowed,
    )
