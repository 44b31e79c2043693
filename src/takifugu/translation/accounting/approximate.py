r"""Approximate and concentrated DP: what (ε, δ) or ρ per entry say of Pufferfish privacy.

**Lemma.** Let a mechanism be (ε_j, δ_j)-DP for changes of entry j, g(D) = P(M(D) ∈ S), and
:math:`κ = \max_j δ_j / (e^{ε_j} − 1)`. Then h = g + κ obeys h(D) ≤ e^{ε_j} h(D′) for neighbours in
entry j. *Proof.* g(D) ≤ e^{ε_j} g(D′) + δ_j ≤ e^{ε_j} g(D′) + κ (e^{ε_j} − 1). ∎

So h is admissible for pure DP with the same ε_j, and whatever bounds that by t bounds
E[g|s] + κ ≤ t (E[g|s′] + κ): the mechanism is (log t, κ·(t − 1))-Pufferfish private. This holds for
every method. By the curve κ·(e^{bε} − 1) is enough, since only the b exposed entries are changed.

Concentrated losses add up first and are converted once. For ρ-zCDP and any α > 1,

.. math:: ε = αρ + \frac{\log(1/δ) − \log α}{α − 1} + \log(1 − 1/α)

(Canonne, Kamath & Steinke, 2020, Proposition 12). *Proof.* With Z the privacy loss,
δ(ε) = E[(1 − e^{ε−Z})₊] and (1 − e^{−u}) ≤ c e^{(α−1)u} for u ≥ 0, where c is the largest value of
(1 − e^{−u}) e^{−(α−1)u}, at e^{−u} = 1 − 1/α: c = (1 − 1/α)^{α−1}/α. Hence
δ(ε) ≤ c e^{−(α−1)ε} E[e^{(α−1)Z}] ≤ c e^{(α−1)(αρ−ε)}; solve for ε. ∎ Any α is sound; a
search finds a good one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from takifugu._rounding import UNIT, up
from takifugu.errors import UnsoundRequest
from takifugu.numeric import Floats
from takifugu.translation.bounds import Bound
from takifugu.translation.translation import METHODS, Method, Translation

ROUNDS = 60  # of fitting δ per entry to a δ of Pufferfish privacy
SMALLEST = 2.0**-1000  # a δ that is not 0 is never rounded below this
RAISED = 0.1  # an entry with δ > 0 gets at least this share of the largest ε


@dataclass(frozen=True, eq=False)
class ApproximateLoss:
    """A Pufferfish guarantee (ε, δ), both rounded up.

    Attributes:
        epsilon: An upper bound on the loss.
        delta: The δ beside it.
        method: Which method proves it.
        bound: The bound, and where it binds.
        dp: ε per entry that was translated.
        dp_delta: The largest δ of any entry that was translated.
    """

    epsilon: float
    delta: float
    method: Method
    bound: Bound
    dp: float | Floats
    dp_delta: float


def approximate(
    translation: Translation, epsilon: ArrayLike, delta: ArrayLike, *, method: Method = "best"
) -> ApproximateLoss:
    """What (ε, δ)-DP per entry gives; one number for all entries, or one for each.

    An entry with δ > 0 needs ε > 0 for the proof: a smaller ε is raised to a tenth of the largest,
    which is also true of the mechanism. ``best`` is the method with the least ε.
    """
    spent = _losses(epsilon, "epsilon", np.inf)
    deltas = _losses(delta, "delta", 1.0)
    raised = _raised(spent, deltas)
    one: float | Floats = float(raised) if raised.ndim == 0 else raised
    names = _methods(translation, one) if method == "best" else (method,)
    found = {name: translation.bound(one, name) for name in names}
    name = min(found, key=lambda key: found[key].value)
    bound = found[name]
    top = float(deltas.max(initial=0.0))
    if top == 0:
        return ApproximateLoss(bound.value, 0.0, name, bound, one, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # where e^ε − 1 overflows, what is left of δ is tiny but not 0
        ratio = np.where(deltas > 0, np.maximum(deltas / np.expm1(raised), SMALLEST), 0.0)
    kappa = float(np.max(ratio)) * (1 + 8 * UNIT)
    grown = float(np.expm1(min(bound.value, 700.0))) if bound.value <= 700 else np.inf
    if name == "curve":
        grown = min(grown, _exposed(translation, float(np.max(raised))))
    spare = kappa * grown * (1 + 32 * UNIT) * (1 + 2 * UNIT * min(bound.value, 700.0))
    spare = min(1.0, max(spare, SMALLEST)) if grown > 0 else 0.0
    return ApproximateLoss(bound.value, spare, name, bound, one, top)


def _methods(translation: Translation, dp: float | Floats) -> tuple[Method, ...]:
    """All methods; without the curve if that waits to be asked for and another bound is finite."""
    if translation.curve_waits and translation.bound(dp, "transport").value < np.inf:
        return tuple(name for name in METHODS[1:] if name != "curve")
    return METHODS[1:]


def zcdp_epsilon(rho: float, delta: float) -> float:
    """An ε such that ρ-zCDP is (ε, δ)-DP, rounded up."""
    if not 0 <= rho < np.inf:  # also false for NaN
        raise UnsoundRequest(
            f"rho is {rho}; it must be 0 or more, and finite", field="rho", given=rho
        )
    if not 0 < delta < 1:
        raise UnsoundRequest(
            f"delta is {delta}; it must be above 0 and below 1", field="delta", given=delta
        )
    if rho == 0:
        return 0.0
    digits = -float(np.log(delta))  # log(1/δ)
    above = np.sqrt(max(digits, 1e-3) / max(rho, 1e-300)) * np.geomspace(1e-3, 1e3, 601)
    for _ in range(3):  # zoom in on the best order, 1 + one of ``above``
        k = int(np.argmin(_converted(rho, digits, above)))
        above = np.geomspace(above[max(k - 1, 0)], above[min(k + 1, len(above) - 1)], 101)
    best = float(above[int(np.argmin(_converted(rho, digits, above)))])
    # five terms, each within a few units in its own last place
    parts = (rho, best * rho, digits / best, -np.log1p(best) / best, np.log(best) - np.log1p(best))
    value = sum(parts)
    slack = 16 * UNIT * (sum(abs(part) for part in parts) + abs(np.log(best)) + 2)
    return max(float(up(value + slack)), 0.0)


def concentrated(
    translation: Translation, rho: ArrayLike, delta: float, *, method: Method = "best"
) -> ApproximateLoss:
    """What ρ-zCDP per entry gives: a Pufferfish (ε, δ) with at most this ``delta``."""
    return mixed(translation, 0.0, 0.0, rho, delta=delta, method=method)


def mixed(
    translation: Translation,
    epsilon: ArrayLike,
    delta_spent: ArrayLike,
    rho: ArrayLike,
    *,
    delta: float,
    method: Method = "best",
) -> ApproximateLoss:
    """Pure, approximate and concentrated losses of the same entries, each summed up before.

    ρ is converted with a δ per entry that is made smaller until the Pufferfish δ fits ``delta``.
    """
    spent, deltas = _losses(epsilon, "epsilon", np.inf), _losses(delta_spent, "delta", 1.0)
    rhos = _losses(rho, "rho", np.inf)
    if not rhos.any():
        return approximate(translation, spent, deltas, method=method)
    if not 0 < delta < 1:  # also false for NaN
        raise UnsoundRequest(
            f"delta is {delta}; concentrated losses need one above 0 and below 1",
            field="delta",
            given=delta,
        )
    kinds, place = np.unique(rhos, return_inverse=True)
    share = delta
    for _ in range(ROUNDS):
        converted = np.array([zcdp_epsilon(float(r), share) for r in kinds])[place]
        total = (spent + converted.reshape(rhos.shape)) * (1 + 2 * UNIT)  # 0 stays 0
        extra = np.where(rhos > 0, share, 0.0)
        found = approximate(translation, total, (deltas + extra) * (1 + 2 * UNIT), method=method)
        if found.delta <= delta:
            return found
        share *= min(0.9, 0.9 * delta / found.delta)
        if share < 1e-200:
            break
    raise UnsoundRequest(
        f"no δ per entry keeps the Pufferfish δ within {delta:g}: the approximate losses alone"
        " may need more; ask for a larger delta",
        field="delta",
        reason="allowance",
    )


def _converted(rho: float, digits: float, above: Floats) -> Floats:
    """ε at the orders 1 + ``above``, written so that an order close to 1 loses no digits."""
    grown = np.log1p(above)
    values: Floats = rho + above * rho + (digits - grown) / above + np.log(above) - grown
    return values


def _raised(spent: Floats, deltas: Floats) -> Floats:
    """ε, raised where δ > 0 to a share of the largest; to 0.01 if nothing else was spent."""
    top = float(spent.max(initial=0.0))
    least = RAISED * top if top > 0 else 0.01
    return np.where((deltas > 0) & (spent < least), least, spent)


def _exposed(translation: Translation, epsilon: float) -> float:
    """e^{bε} − 1 with the largest b that any pair's best point exposes."""
    curve = translation.curve
    totals = up(curve.exposed * epsilon + curve.leak)  # [pair, point]
    b = int(curve.exposed[np.argmin(totals, axis=1)].max())
    return float(np.expm1(b * epsilon)) if b * epsilon <= 700 else np.inf


def _losses(given: ArrayLike, name: str, below: float) -> Floats:
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise UnsoundRequest(f"{name} is not a number or a list of numbers", field=name) from error
    if not ((numbers >= 0) & (numbers < below)).all():  # also false for NaN
        raise UnsoundRequest(
            f"{name} holds a number that is not from 0 to below {below:g}", field=name
        )
    return numbers
