"""The largest ε whose loss stays within a target: by search, among ε that were evaluated."""

from collections.abc import Callable

import numpy as np

from takifugu.errors import UnsoundRequest

TRIALS = 40  # evaluations after which a search stops
TINIEST = 1e-300  # a smaller ε is not tried
ESTIMATES = 12  # between two evaluations
NEARLY = 1e-5  # a relative difference at which estimates stop
HOPELESS = 1e-9  # share of the target below which no ε is tried


def largest_within(
    loss: Callable[[float], float],
    target: float,
    *,
    tolerance: float = 1e-3,
    first: float | None = None,
    most: float | None = None,
    nearby: Callable[[float], Callable[[float], float] | None] | None = None,
) -> float:
    """The largest ε, to a relative ``tolerance``, with loss(ε) ≤ ``target``; 0 if none is found.

    ``loss`` rises with ε and is an upper bound; the ε returned was itself evaluated, so that
    its loss is at most ``target``. No ε above ``most`` is tried; by default that is ``target``,
    since spending ε on an entry loses at least ε. ``nearby`` gives, for an ε that was evaluated, a
    quick estimate of the loss of others: it says which ε to evaluate next.
    """
    if not 0 <= target < np.inf:  # also false for NaN
        raise UnsoundRequest(
            f"the target is {target}; it must be 0 or more, and finite",
            field="target",
            given=target,
        )
    if target == 0:
        return 0.0
    proven, above = 0.0, float(target if most is None else most)
    trial = min(above, above / 4 if first is None else first)
    before: tuple[float, float] | None = None
    slope = 1.0
    for _ in range(TRIALS):
        now = loss(trial)
        if now <= target:
            proven = trial
            if now >= target * (1 - tolerance / 2):
                break
        else:
            above = trial
        if above <= proven * (1 + tolerance) or above < target * HOPELESS:
            break
        aim = 0.0
        if np.isfinite(now) and now > 0:
            if before is not None and before[0] != trial and now != before[1]:
                slope = float(np.log(now / before[1]) / np.log(trial / before[0]))
            before = (trial, now)
            wanted = target * (1 - tolerance / 5)
            aim = trial * (wanted / now) ** (1 / min(max(slope, 0.2), 5.0))
            estimate = None if nearby is None else nearby(trial)
            if estimate is not None:
                aim = _estimated(estimate, trial, now, wanted, aim)
        middle = np.sqrt(proven * above) if proven else above / 4
        trial = float(aim if proven < aim < above else middle)
    return proven


def _estimated(
    estimate: Callable[[float], float], known: float, loss: float, wanted: float, first: float
) -> float:
    """Where the loss is ``wanted`` if it rises from that of ``known`` as the estimate does."""
    base = estimate(known)
    if not 0 < base < np.inf:
        return first
    before, trial = (known, loss), first
    for _ in range(ESTIMATES):
        now = loss * (estimate(trial) / base)
        if not 0 < now < np.inf or trial == before[0] or now == before[1]:
            break
        slope = float(np.log(now / before[1]) / np.log(trial / before[0]))
        before = (trial, now)
        trial *= (wanted / now) ** (1 / min(max(slope, 0.2), 5.0))
        if abs(now / wanted - 1) < NEARLY:
            break
    return float(trial)


def largest_by_bracket(
    loss: Callable[[float], float], target: float, *, tolerance: float = 1e-10
) -> float:
    """The largest ε, to a relative ``tolerance``, with loss(ε) ≤ ``target``; 0 if none is found.

    As `largest_within`, for a loss that is cheap and accurate: false position by the Illinois
    rule, and a bisection whenever three steps have not halved the bracket.
    """
    if not 0 <= target < np.inf:  # also false for NaN
        raise UnsoundRequest(
            f"the target is {target}; it must be 0 or more, and finite",
            field="target",
            given=target,
        )
    low, high = 0.0, float(target)
    below, above = -float(target), loss(high) - target
    if above <= 0:
        return high
    widths, side = [np.inf] * 3, 0
    while high - low > tolerance * high and high > TINIEST:
        width = high - low
        if width > widths[0] / 2 or not above < np.inf:
            trial = float(np.sqrt(low) * np.sqrt(high)) if low > 0 else high / 16
        else:
            trial = low + width * (below / (below - above))
        inside = tolerance / 4 * high  # so that neither end is tried again
        trial = min(max(trial, low + inside), high - inside)
        now = loss(trial) - target
        widths = [*widths[1:], width]
        if now <= 0:
            low, below = trial, now
            above = above / 2 if side < 0 else above
            side = -1
        else:
            high, above = trial, now
            below = below / 2 if side > 0 else below
            side = 1
    return low
