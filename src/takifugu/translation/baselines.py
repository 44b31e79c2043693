"""What others would allow on a Markov chain: kept beside ours, never used by default.

Each baseline turns a Pufferfish loss into the per-entry DP loss that it allows, rounded down:
group DP; the Markov Quilt Mechanism, exact and approximate (Song, Wang and Chaudhuri, SIGMOD
2017); temporal privacy leakage (Cao, Yoshikawa, Xiao and Xiong, ICDE 2017). Times count from 0.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, repeat
from math import exp, inf, log

import numpy as np
from numpy.typing import ArrayLike

from takifugu._rounding import UNIT, down, gamma, up
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.influence.chain.powers import LogProduct, largest_ratios, products, turned
from takifugu.numeric import Floats, distribution, frozen
from takifugu.translation.chain.laws import stationary_law

GUARD = 1e-9  # how far a computed spectral gap and the least stationary chance are trusted

Influence = Callable[[range, int | None, int | None], ArrayLike]
Prefixes = tuple[Floats, Floats]


@dataclass(frozen=True)
class QuiltNoise:
    """The noise of the Markov Quilt Mechanism, and the quilt that sets it.

    Attributes:
        noise: The scale of the Laplace noise for a 1-Lipschitz query; an upper bound.
        node: The node that needs the most noise.
        left: How far back the nearest quilt node of its best quilt is; None if there is none.
        right: How far ahead.
    """

    noise: float
    node: int
    left: int | None
    right: int | None

    @property
    def to_dp(self) -> float:
        """The per-entry DP loss of a Laplace mechanism with this much noise, rounded down."""
        return float(down(1 / self.noise))


def group_differential(length: int, epsilon: float) -> float:
    """Group DP: all ``length`` entries may follow from one, so each gets an equal share."""
    _check(length, epsilon)
    return float(down(epsilon / length))


def mqm_exact(
    transition: ArrayLike, length: int, epsilon: float, *, start: ArrayLike | None = None
) -> QuiltNoise:
    r"""MQMExact: the max-influence of every quilt, computed from powers of the matrix.

    A quilt :math:`\{X_{i-a}, X_{i+b}\}` (or one of the two, or none) has the score
    card(X_N)/(ε − e) if e < ε, else ∞; least over quilts, largest over nodes. With :math:`\mu_t`
    the law at time t, e is the largest over values x, y that are possible at i of

    .. math:: \max_z \log\frac{\mu_{i-a}(z) P^a_{zx} / \mu_i(x)}{\mu_{i-a}(z) P^a_{zy} / \mu_i(y)}
            + \max_z \log\frac{P^b_{xz}}{P^b_{yz}}.

    Without ``start`` the chain is at rest.
    """
    _check(length, epsilon)
    P = _square(transition)
    states, at_rest = len(P), start is None
    law = stationary(P) if start is None else _start(start, P)
    off = gamma(_rest_terms(states)) if at_rest else 0.0
    x, y = (grid.ravel() for grid in np.indices((states, states)))
    steps_ahead, steps_on = products(P, 0.0, repeat(P), 0.0), _laws(law, off, P)
    powers: list[LogProduct] = []
    laws: list[LogProduct] = []

    def power(steps: int) -> LogProduct:
        while len(powers) < steps:
            powers.append(next(steps_ahead))
        return powers[steps - 1]

    def law_at(time: int) -> LogProduct:
        while len(laws) <= (0 if at_rest else time):
            laws.append(next(steps_on))
        return laws[0 if at_rest else time]

    @cache
    def ahead(steps: int) -> Floats:  # [x, y]
        return largest_ratios(power(steps), x, y).reshape(states, states)

    @cache
    def behind(steps: int, node: int) -> Floats:  # [x, y]
        now, seen = law_at(node), law_at(node - steps).possible[0]
        back = LogProduct(power(steps).log[seen], power(steps).error)
        table = largest_ratios(turned(back), x, y).reshape(states, states)
        odds = np.where(now.possible, now.log, 0.0)  # impossible values are left out below
        slack = 2 * now.error + 4 * UNIT * np.abs(odds).max()
        return np.asarray(table + (odds - odds.T) + slack)

    @cache
    def one(node: int, a: int | None, b: int | None) -> float:
        possible = np.ix_(law_at(node).possible[0], law_at(node).possible[0])
        left = 0.0 if a is None else behind(a, node)[possible]
        right = 0.0 if b is None else ahead(b)[possible]
        return float(up(np.max(left + right)))

    def influence(nodes: range, a: int | None, b: int | None) -> ArrayLike:
        if at_rest:  # the same for every node that has this much room
            return one(0 if a is None else a, a, b)
        return [one(node, a, b) for node in nodes]

    return _worst_node(length, epsilon, influence)


def mqm_approx(transition: ArrayLike, length: int, epsilon: float) -> QuiltNoise:
    r"""MQMApprox: the influence bounded by how fast the chain mixes; any start.

    With π the stationary law, g the gap and :math:`\Delta_d = e^{-gd/2}/\pi_{min} < 1`, every
    :math:`P^d_{xy}/\pi_y` is within 1 ± Δ_d, hence

    .. math:: e \le \log\frac{1+\Delta_b}{1-\Delta_b} + 2\log\frac{1+\Delta_a}{1-\Delta_a}.

    g is 2(1 − |λ₂|) for a reversible chain, else 1 − σ₂², σ₂ the second singular value in
    L²(π). Twice the left term, as the law at the node itself may be off by as much.
    """
    _check(length, epsilon)
    P = _square(transition)
    law = stationary(P)
    least = float(law.min()) * (1 - GUARD)
    gap = max(spectral_gap(P, law) - GUARD, 0.0)

    def side(steps: int | None) -> float:
        if steps is None:
            return 0.0
        delta = exp(-gap * steps / 2) / least
        return log((1 + delta) / (1 - delta)) if delta < 1 else inf

    def influence(_: range, a: int | None, b: int | None) -> ArrayLike:
        return up(2 * side(a) + side(b))

    return _worst_node(length, epsilon, influence)


def _worst_node(length: int, epsilon: float, influence: Influence) -> QuiltNoise:
    """Least score over quilts, by growing number c of nearby nodes; largest over nodes.

    A score is at least c/ε, so the search ends when that passes every node's best.
    """
    best = np.full(length, float(up(length / epsilon)))
    left, right = np.zeros(length, dtype=int), np.zeros(length, dtype=int)  # 0 stands for none

    def offer(nodes: range, nearby: int, a: int | None, b: int | None) -> None:
        if not nodes:
            return
        room = down(epsilon - np.asarray(influence(nodes, a, b), dtype=np.float64))
        score = np.broadcast_to(up(nearby / np.where(room > 0, room, np.nan)), len(nodes))
        span = slice(nodes.start, nodes.stop)
        better = score < best[span]  # false for NaN: e ≥ ε
        best[span] = np.where(better, score, best[span])
        left[span] = np.where(better, a or 0, left[span])
        right[span] = np.where(better, b or 0, right[span])

    for nearby in range(1, length):
        if nearby / epsilon >= best.max():
            break
        for a in range(1, nearby + 1):
            b = nearby + 1 - a
            offer(range(a, length - b), nearby, a, b)
        for node in range(nearby):  # everything before the quilt is nearby
            offer(range(node, node + 1), nearby, None, nearby - node)
        for node in range(length - nearby, length):  # everything after it
            offer(range(node, node + 1), nearby, nearby - (length - 1 - node), None)
    node = int(np.argmax(best))
    return QuiltNoise(float(best[node]), node, int(left[node]) or None, int(right[node]) or None)


def stationary(transition: ArrayLike) -> Floats:
    """The stationary law of a chain that allows every state again and again."""
    return frozen(stationary_law(np.array(_square(transition))))


def spectral_gap(P: Floats, law: Floats) -> float:
    """The gap g of `mqm_approx`: P^d/π is within e^{−gd/2}/π_min of 1."""
    root = np.sqrt(law)
    S = P * root[:, None] / root[None, :]
    if len(P) == 1:
        return 2.0
    if np.abs(S - S.T).max() <= 1e-12:
        sizes = np.sort(np.abs(np.linalg.eigvalsh((S + S.T) / 2)))
        return 2 * (1 - float(sizes[-2]))
    return 1 - float(np.linalg.svd(S, compute_uv=False)[1]) ** 2


def tpl_step(kernel: ArrayLike, leak: ArrayLike) -> Floats:
    r"""One step of temporal privacy leakage: what a loss α on the next entry says of this one.

    .. math:: L(\alpha) = \max_{x,y}\max_A
        \log\frac{1 + (e^\alpha - 1) P_x(A)}{1 + (e^\alpha - 1) P_y(A)},

    the best A being a prefix of the states in order of falling P_x/P_y. Rounded up. Broadcasts.
    """
    return _step(_prefixes(_square(kernel)), leak)


def tpl_path(kernel: ArrayLike, epsilons: Sequence[float]) -> Floats:
    """``[time]``: the leakage from one end (BPL with the backward kernel, FPL with the forward)."""
    prefixes = _prefixes(_square(kernel))
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
    and :math:`e^ε q \ge 1` there is none, and the leakage grows without end.
    """
    _check(1, epsilon)
    q, d = _prefixes(_square(kernel))
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
    return _total(_steps(_square(transition), len(spent), start), spent)


def tpl_differential(
    transition: ArrayLike, length: int, epsilon: float, *, start: ArrayLike | None = None
) -> float:
    """The equal per-entry loss whose temporal privacy leakage is at most ``epsilon`` everywhere."""
    _check(length, epsilon)
    steps = _steps(_square(transition), length, start)
    low, high = 0.0, epsilon
    for _ in range(60):  # the leakage grows with the loss: bisect, and keep the side that fits
        middle = (low + high) / 2
        fits = _total(steps, np.full(length, middle)).max() <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    return max(low, group_differential(length, epsilon))


def _steps(
    P: Floats, length: int, start: ArrayLike | None
) -> tuple[list[Prefixes], list[Prefixes]]:
    """For every time but the first the step back, for every time but the last the step ahead."""
    if start is None:
        law = stationary(P)
        back = _prefixes(_reverse(P, law), _rest_terms(len(P)))
        return [back] * (length - 1), [_prefixes(P)] * (length - 1)
    laws = list(islice(_laws(_start(start, P), 0.0, P), length - 1))
    back_steps = [_prefixes(*_reverse_logs(P, law)) for law in laws]
    return back_steps, [_prefixes(P[law.possible[0]]) for law in laws]


def _laws(start: Floats, error: float, P: Floats) -> Iterator[LogProduct]:
    """The law of each entry, in logarithms: what is possible is never lost to underflow."""
    return products(start[None], error, repeat(P), 0.0)


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
    both is left out. ``terms`` says how many operations made the rows. A chance that was lost to
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


def _rest_terms(states: int) -> int:
    """Operations behind an entry of the stationary law, and of a quotient of two."""
    return 8 * states**3 + 24 * states**2


def _spent(epsilons: Sequence[float]) -> Floats:
    spent = np.asarray(epsilons, dtype=np.float64)
    if spent.ndim != 1 or not spent.size or not (np.isfinite(spent) & (spent >= 0)).all():
        raise UnsoundRequest("every entry needs an epsilon, 0 or more and finite")
    return spent


def _check(length: int, epsilon: float) -> None:
    if length < 1:
        raise InvalidPrior("length", given=f"is {length}", needed="be 1 or more")
    if not 0 < epsilon < inf:  # also false for NaN
        raise UnsoundRequest(f"epsilon is {epsilon}; it must be positive and finite")


def _square(transition: ArrayLike) -> Floats:
    P = distribution(transition, "transition", InvalidPrior)
    if P.ndim != 2 or P.shape[0] != P.shape[1]:
        raise InvalidPrior("transition", given=f"has shape {P.shape}", needed="be square")
    return P


def _start(start: ArrayLike, P: Floats) -> Floats:
    law = distribution(start, "start", InvalidPrior)
    if law.shape != (len(P),):
        raise InvalidPrior(
            "start", given=f"has shape {law.shape}", needed=f"hold one number for {len(P)} states"
        )
    return law
