"""The largest ε whose loss stays within a target: by search, among ε that were evaluated."""

from collections.abc import Callable, Sequence

import numpy as np

from takifugu._core.exact import require_finite

MAX_EVALUATIONS = 40  # evaluations after which a search stops
LEAST_TRIED_EPSILON = 1e-300  # a smaller ε is not tried
MAX_ESTIMATES = 16  # between two evaluations
HALVING_PATIENCE = 3  # evaluations in which the bracket must be halved
ESTIMATE_PRECISION = 1e-9  # a relative difference at which estimates stop
LEAST_TARGET_SHARE = 1e-9  # share of the target below which no ε is tried
UNUSED_SHARE = 1e-6  # the share of a target that may be left unused
JUMP_SHARES = (1.0, 0.75, 0.5)  # of what is missing, in logarithms, where a jump may be passed
MAX_GUIDED_EVALUATIONS = (
    2  # evaluations around the last one up to which an estimate says where to go
)
MAX_EPSILON_QUOTIENT = 4.0  # the largest quotient of ε through whose losses a polynomial is drawn
CLOSE, FINER = (
    1e-3,
    5,
)  # evaluations once this share is left: a bound may jump by more than UNUSED_SHARE


def largest_within(
    loss: Callable[[float], float],
    target: float,
    *,
    tolerance: float = UNUSED_SHARE,
    first: float | None = None,
    most: float | None = None,
    nearby: Callable[[float], Callable[[float], float] | None] | None = None,
) -> float:
    """The largest ε, to a relative ``tolerance``, with loss(ε) ≤ ``target``; 0 if none is found.

    ``loss`` rises with ε and is an upper bound; the ε returned was itself evaluated, so that
    its loss is at most ``target``. No ε above ``most`` is tried; by default that is ``target``,
    since spending ε on an entry loses at least ε. ``nearby`` gives, for an ε that was evaluated, a
    quick estimate of the loss of others: it says which ε to evaluate next. Without it that is where
    a polynomial through the last points meets the target: three or four evaluations are enough for
    a smooth loss. One that jumps is left after a few more, and some ε beyond the jump.
    """
    require_finite(target, "target")
    if (
        target * LEAST_TARGET_SHARE < np.finfo(np.float64).tiny
    ):  # so small that quotients are not exact
        return 0.0
    top = float(target if most is None else most)
    proven, lost, above = 0.0, target, top
    trial = min(above, above / 4 if first is None else first)
    wanted = target * (1 - tolerance / 2)
    points: list[tuple[float, float]] = []  # ε and loss
    widths: list[float] = []  # of the bracket, in logarithms
    finer = FINER
    for _ in range(MAX_EVALUATIONS):
        now = loss(trial)
        if now <= target:
            proven, lost = trial, now
            if now >= target * (1 - tolerance):
                break
        else:
            above = trial
        if abs(now - target) <= CLOSE * target or above <= proven * (1 + CLOSE):
            finer -= 1
        if above <= proven * (1 + tolerance) or above < target * LEAST_TARGET_SHARE:
            break
        if proven and finer <= 0:
            break
        aim = 0.0
        if np.isfinite(now) and now > 0:
            points.append((trial, now))
            aim = _interpolated(points, wanted)
            around = sum(
                1 / MAX_EPSILON_QUOTIENT < epsilon / trial < MAX_EPSILON_QUOTIENT
                for epsilon, _ in points
            )
            estimate = None if nearby is None or around > MAX_GUIDED_EVALUATIONS else nearby(trial)
            if estimate is not None:
                aim = _estimated(estimate, trial, now, wanted, aim)
        middle = np.sqrt(proven) * np.sqrt(above) if proven else above / 4
        widths.append(float(np.log(above / max(proven, target * LEAST_TARGET_SHARE))))
        stuck = len(widths) > HALVING_PATIENCE and widths[-1] > widths[-1 - HALVING_PATIENCE] / 2
        trial = float(aim if proven < aim < above and not stuck else middle)
    if 0 < lost < target * (1 - CLOSE):  # a bound that jumps may be lower again further up
        for share in JUMP_SHARES:
            trial = min(float(proven * (target / lost) ** share), top)
            if loss(trial) <= target:
                return trial
    return proven


def _interpolated(points: Sequence[tuple[float, float]], wanted: float) -> float:
    """Where a loss is ``wanted`` by the points next to it.

    From one point the loss is proportional to ε; from two it is a power, with a slope from 0.2 to
    5, or where they are not far apart loss/ε is a polynomial in ε, through up to four of them.
    """
    near = sorted(points, key=lambda point: abs(np.log(point[1] / wanted)))
    (epsilon, now), *others = near
    others = [(e, value) for e, value in others if e != epsilon and value != now]
    if not others:
        return epsilon * (wanted / now)
    slope = float(np.log(others[0][1] / now) / np.log(others[0][0] / epsilon))
    straight = float(epsilon * (wanted / now) ** (1 / min(max(slope, 0.2), 5.0)))
    used = [
        (epsilon, now),
        *(p for p in others if 1 / MAX_EPSILON_QUOTIENT < p[0] / epsilon < MAX_EPSILON_QUOTIENT),
    ][:4]
    if len(used) == 1:
        return straight
    at = [e for e, _ in used]
    differences = [value / e for e, value in used]  # Newton's, of loss/ε
    for order in range(1, len(used)):
        for k in range(len(used) - 1, order - 1, -1):
            gap = at[k] - at[k - order]
            differences[k] = (differences[k] - differences[k - 1]) / gap if gap else 0.0

    def ratio(trial: float) -> float:
        value = differences[-1]
        for k in range(len(used) - 2, -1, -1):
            value = value * (trial - at[k]) + differences[k]
        return value

    bent = straight
    power = 1 / min(max(slope, 0.5), 2.0)
    for _ in range(MAX_ESTIMATES):
        value = ratio(bent)
        if not value > 0:
            return straight
        change = min(max(wanted / bent / value, 0.1), 10.0)
        bent, before = float(bent * change**power), bent
        if abs(bent - before) <= 1e-13 * before:
            break
    close = abs(bent - straight) <= 0.5 * abs(straight - epsilon) + CLOSE * epsilon
    return bent if close else straight


def _estimated(
    estimate: Callable[[float], float], known: float, loss: float, wanted: float, first: float
) -> float:
    """Where the loss is ``wanted`` if it rises from that of ``known`` as the estimate does."""
    base = estimate(known)
    if not 0 < base < np.inf:
        return first
    points = [(known, loss)]
    trial = first
    for _ in range(MAX_ESTIMATES):
        now = loss * (estimate(trial) / base)
        if not 0 < now < np.inf or abs(now / wanted - 1) < ESTIMATE_PRECISION:
            break
        if any(trial == e or now == value for e, value in points):
            break
        points.append((trial, now))
        trial = _interpolated(points[-3:], wanted)
    return float(trial)


def largest_by_bracket(
    loss: Callable[[float], float], target: float, *, tolerance: float = 1e-10
) -> float:
    """The largest ε, to a relative ``tolerance``, with loss(ε) ≤ ``target``; 0 if none is found.

    As `largest_within`, for a loss that is cheap and accurate: false position by the Illinois
    rule, and a bisection whenever three steps have not halved the bracket.
    """
    require_finite(target, "target")
    low, high = 0.0, float(target)
    below, above = -float(target), loss(high) - target
    if above <= 0:
        return high
    widths, side = [np.inf] * 3, 0
    while high - low > tolerance * high and high > LEAST_TRIED_EPSILON:
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
