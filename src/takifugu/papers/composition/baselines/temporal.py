"""Temporal privacy leakage (Cao, Yoshikawa, Xiao and Xiong, ICDE 2017). Times count from 0."""

from collections.abc import Sequence
from itertools import islice
from math import exp, inf

import numpy as np
from numpy.typing import ArrayLike

from takifugu._rounding import UNIT, gamma, up
from takifugu.errors import UnsoundRequest
from takifugu.influence.chain.powers import LogProduct
from takifugu.numeric import Floats, frozen
from takifugu.papers.composition.baselines.chain_laws import (
    check_request,
    group_to_dp,
    initial_law,
    laws_over_time,
    square,
    stationary,
    stationary_terms,
)

Prefixes = tuple[Floats, Floats]


def tpl_step(kernel: ArrayLike, leak: ArrayLike) -> Floats:
    r"""One step of temporal privacy leakage: what a loss α on the next entry says of this one.

    .. math:: L(\alpha) = \max_{x,y}\max_A
        \log\frac{1 + (e^\alpha - 1) P_x(A)}{1 + (e^\alpha - 1) P_y(A)},

    the best A being a prefix of the states in order of falling P_x/P_y. Rounded up. Broadcasts.
    """
    return _step(_prefixes(square(kernel)), leak)


def tpl_path(kernel: ArrayLike, epsilons: Sequence[float]) -> Floats:
    """``[time]``: the leakage from one end (BPL with the backward kernel, FPL with the forward)."""
    prefixes = _prefixes(square(kernel))
    path: list[float] = []
    for epsilon in _spent(epsilons):
        before = float(_step(prefixes, path[-1])) if path else 0.0
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
    q, d = _prefixes(square(kernel))
    grown = exp(float(up(epsilon)))
    slope = 1 - d - grown * q - 8 * UNIT * (1 + grown)  # a smaller slope means a larger root
    rest = grown * (1 - q)
    root = np.sqrt(slope**2 + 4 * d * rest)
    with np.errstate(divide="ignore", invalid="ignore"):
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
    low, high = 0.0, epsilon
    for _ in range(60):  # the leakage grows with the loss: bisect, and keep the side that fits
        middle = (low + high) / 2
        fits = _total(steps, np.full(length, middle)).max() <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    return max(low, group_to_dp(length, epsilon))


def _steps(
    P: Floats, length: int, start: ArrayLike | None
) -> tuple[list[Prefixes], list[Prefixes]]:
    """For every time but the first the step back, for every time but the last the step ahead."""
    if start is None:
        law = stationary(P)
        back = _prefixes(_reverse(P, law), stationary_terms(len(P)))
        return [back] * (length - 1), [_prefixes(P)] * (length - 1)
    laws = list(islice(laws_over_time(initial_law(start, P), 0.0, P), length - 1))
    back_steps = [_prefixes(*_reverse_logs(P, law)) for law in laws]
    return back_steps, [_prefixes(P[law.possible[0]]) for law in laws]


def _total(steps: tuple[list[Prefixes], list[Prefixes]], spent: Floats) -> Floats:
    back, ahead = np.zeros(len(spent)), np.zeros(len(spent))
    for t in range(1, len(spent)):
        back[t] = _step(steps[0][t - 1], up(back[t - 1] + spent[t - 1]))
    for t in range(len(spent) - 2, -1, -1):
        ahead[t] = _step(steps[1][t], up(ahead[t + 1] + spent[t + 1]))
    return frozen(up(back + ahead + spent))


def _prefixes(rows: Floats, terms: int = 0) -> Prefixes:
    """P_x(A) rounded up and P_y(A) rounded down, for rows x ≠ y and prefixes A; the best only.

    The step grows with the first and falls with the second, so a pair that another one beats in
    both is left out. ``terms`` is how many operations made the rows. A probability lost to
    underflow adds less than 2⁻¹⁰²² to the first, which is added.
    """
    n, states = rows.shape
    x, y = np.nonzero(~np.eye(n, dtype=bool))
    upper, lower = rows[x], rows[y]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(upper > 0, np.log(upper) - np.log(lower), -np.inf)
    order = np.argsort(-ratio, axis=1, kind="stable")
    error = gamma(states + terms)
    q = np.cumsum(np.take_along_axis(upper, order, 1), axis=1) * (1 + error)
    q = np.minimum(q + states * 2.0**-1022, 1.0)
    d = np.minimum(np.cumsum(np.take_along_axis(lower, order, 1), axis=1), 1.0) * (1 - error)
    q, d = np.append(q, 0.0), np.append(d, 0.0)  # the empty set: one row alone leaks nothing
    by_d = np.lexsort((-q, d))
    q, d = q[by_d], d[by_d]
    kept = np.append(True, q[1:] > np.maximum.accumulate(q)[:-1])
    return q[kept], d[kept]


def _step(prefixes: Prefixes, leak: ArrayLike) -> Floats:
    q, d = prefixes
    alpha = np.asarray(leak, dtype=np.float64)
    grown = np.expm1(np.minimum(alpha, 700.0))[..., None]
    value = np.maximum((np.log1p(grown * q) - np.log1p(grown * d)).max(axis=-1), 0.0)
    return up(np.where(alpha > 700, alpha, value))  # never more than α; e^α would overflow


def _reverse_logs(P: Floats, before: LogProduct) -> tuple[Floats, int]:
    """`_reverse` from a law in logarithms, and the roundings that went into it.

    Each row is scaled by its largest term. A share below all floats reads 0, which `_prefixes`
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
