"""Temporal privacy leakage (Cao, Yoshikawa, Xiao and Xiong, ICDE 2017). Times count from 0."""

from collections.abc import Sequence
from itertools import islice
from math import exp, inf

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats, frozen
from takifugu._core.rounding import UNIT, up
from takifugu.errors import UnsoundRequest
from takifugu.influence.rounded_ratios import LogProduct
from takifugu.papers.composition.baselines.chain_laws import (
    check_request,
    group_to_dp,
    initial_law,
    laws_over_time,
    square,
    stationary,
    stationary_terms,
)
from takifugu.papers.composition.baselines.ratio_front import Front, ratio_front
from takifugu.translation.accounting.largest_epsilon import largest_by_bracket

LARGE = 600.0  # a loss whose exponential is above 1 over every probability
EVEN = 1e-12  # relative: how close the loss that is allowed comes to the largest


def tpl_step(kernel: ArrayLike, leak: ArrayLike) -> Floats:
    r"""One step of temporal privacy leakage: what a loss α on the next entry says of this one.

    .. math:: L(\alpha) = \max_{x,y}\max_A
        \log\frac{1 + (e^\alpha - 1) P_x(A)}{1 + (e^\alpha - 1) P_y(A)},

    the best A being a prefix of the states in order of falling P_x/P_y. Rounded up. Broadcasts.
    """
    return _step(ratio_front(square(kernel)), leak)


def tpl_path(kernel: ArrayLike, epsilons: Sequence[float]) -> Floats:
    """``[time]``: the leakage from one end (BPL with the backward kernel, FPL with the forward)."""
    front = ratio_front(square(kernel))
    path: list[float] = []
    for epsilon in _spent(epsilons):
        before = float(_step(front, path[-1])) if path else 0.0
        path.append(float(up(before + epsilon)))
    return frozen(path)


def tpl_supremum(kernel: ArrayLike, epsilon: float) -> float:
    r"""Where the leakage from one end ends up when every entry costs ``epsilon``; rounded up.

    The fixed point of :math:`\alpha = ε + L(\alpha)`. For a prefix with q = P_x(A) and d = P_y(A)
    and :math:`z = e^\alpha` it is the positive root of
    :math:`d z^2 + (1 - d - e^ε q) z - e^ε (1 - q) = 0`; the leakage ends at the largest. If d = 0
    and :math:`e^ε q \ge 1` there is none, and the leakage is unbounded.
    """
    check_request(1, epsilon)
    q, d = ratio_front(square(kernel))
    if epsilon > LARGE:  # then e^ε q ≥ 1 for every q > 0, and L is at most its limit
        q, d = q[q > 0], d[q > 0]
        with np.errstate(divide="ignore"):
            return float(up(epsilon + np.max(np.log(q) - np.log(d), initial=0.0)))
    grown = exp(float(up(epsilon)))
    slope = 1 - d - grown * q
    slope -= 8 * UNIT * (1 + d + grown * q)  # a smaller slope means a larger root
    rest = grown * np.maximum(1 - q, 0.0)  # q was rounded up; a larger rest means a larger root
    root = np.hypot(slope, 2 * np.sqrt(d * rest))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = np.where(slope < 0, (root - slope) / (2 * d), 2 * rest / (root + slope))
    return float(up(np.log(np.where((d == 0) & (slope <= 0), inf, z).max())))


def tpl_total(
    transition: ArrayLike, epsilons: Sequence[float], *, start: ArrayLike | None = None
) -> Floats:
    """``[time]``: BPL + FPL − ε, a bound on the Pufferfish loss of the entry at that time."""
    spent = _spent(epsilons)
    return _total(_steps(square(transition), len(spent), start), spent)


def tpl_to_dp(
    transition: ArrayLike, length: int, epsilon: float, *, start: ArrayLike | None = None
) -> float:
    """The equal per-entry loss whose temporal privacy leakage is at most ``epsilon`` everywhere."""
    check_request(length, epsilon)
    steps = _steps(square(transition), length, start)
    found = largest_by_bracket(
        lambda each: float(_total(steps, np.full(length, each)).max()), epsilon, tolerance=EVEN
    )
    return max(found, group_to_dp(length, epsilon))


def _steps(P: Floats, length: int, start: ArrayLike | None) -> tuple[list[Front], list[Front]]:
    """For every time but the first the step back, for every time but the last the step ahead."""
    if start is None:
        law = stationary(P)
        back = ratio_front(_reverse(P, law), stationary_terms(len(P)))
        return [back] * (length - 1), [ratio_front(P)] * (length - 1)
    laws = list(islice(laws_over_time(initial_law(start, P), 0.0, P), length - 1))
    back_steps = [ratio_front(*_reverse_logs(P, law)) for law in laws]
    return back_steps, [ratio_front(P[law.possible[0]]) for law in laws]


def _total(steps: tuple[list[Front], list[Front]], spent: Floats) -> Floats:
    back, ahead = np.zeros(len(spent)), np.zeros(len(spent))
    step = _OneStep()
    for t in range(1, len(spent)):
        back[t] = step(steps[0][t - 1], float(up(back[t - 1] + spent[t - 1])))
    for t in range(len(spent) - 2, -1, -1):
        ahead[t] = step(steps[1][t], float(up(ahead[t + 1] + spent[t + 1])))
    return frozen(up(back + ahead + spent))


class _OneStep:
    """`_step` of one number; the one before is kept, which far from the ends is the same."""

    def __init__(self) -> None:
        self._front: Front | None = None
        self._leak, self._value = -1.0, 0.0

    def __call__(self, front: Front, leak: float) -> float:
        if front is not self._front or leak != self._leak:
            self._front, self._leak, self._value = front, leak, float(_step(front, leak))
        return self._value


def _step(front: Front, leak: ArrayLike) -> Floats:
    q, d = front
    alpha = np.asarray(leak, dtype=np.float64)
    grown = np.expm1(np.minimum(alpha, 700.0))[..., None]
    more = np.log1p(grown * (q - d) / (1 + grown * d))  # of two logarithms digits would cancel
    value = np.maximum(more.max(axis=-1), 0.0)
    value = np.where(alpha > 700, alpha, np.minimum(value, alpha))  # e^α would overflow
    return up(value)  # never more than α: q was rounded up, and may be above 1


def _reverse_logs(P: Floats, before: LogProduct) -> tuple[Floats, int]:
    """`_reverse` from a law in logarithms, and the roundings that went into it.

    Each row is scaled by its largest term. A share below all floats reads 0, which `ratio_front`
    allows for.
    """
    with np.errstate(divide="ignore"):
        joint = before.log[0] + np.log(P).T  # [now, before]
    top = joint.max(axis=1)
    rows = np.exp(joint[top > -np.inf] - top[top > -np.inf, None])
    finite = np.abs(joint[joint > -np.inf]).max(initial=0.0)
    off = 2 * (before.error + 8 * UNIT * (1 + finite))
    return rows / rows.sum(axis=1, keepdims=True), int(np.ceil(off / UNIT)) + 2 * len(P)


def _reverse(P: Floats, before: Floats) -> Floats:
    """``[now, before]``: P(X_{t−1} | X_t), for the states that are possible at t."""
    joint = (before[:, None] * P).T
    total = joint.sum(axis=1)
    rows: Floats = joint[total > 0] / total[total > 0, None]
    return rows


def _spent(epsilons: Sequence[float]) -> Floats:
    spent = np.asarray(epsilons, dtype=np.float64)
    if spent.ndim != 1 or not spent.size or not (np.isfinite(spent) & (spent >= 0)).all():
        raise UnsoundRequest("every entry needs an epsilon, 0 or more and finite", field="epsilons")
    return spent
