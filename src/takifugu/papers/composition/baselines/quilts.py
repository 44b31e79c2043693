"""The Markov Quilt Mechanism on a chain (Song, Wang and Chaudhuri, SIGMOD 2017).

`mqm_exact` and `mqm_approx` turn a Pufferfish loss into the noise that a 1-Lipschitz query needs.
Times count from 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from math import exp, inf, log

import numpy as np
from numpy.typing import ArrayLike

from takifugu._rounding import UNIT, down, gamma, up
from takifugu.influence.chain.powers import LogProduct, largest_ratios, products, turned
from takifugu.numeric import Floats
from takifugu.papers.composition.baselines.chain_laws import (
    check_request,
    initial_law,
    laws_over_time,
    square,
    stationary,
    stationary_terms,
)

GUARD = 1e-9  # how far a computed spectral gap and the least stationary chance are trusted

Influence = Callable[[range, int | None, int | None], ArrayLike]


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
    check_request(length, epsilon)
    P = square(transition)
    states, at_rest = len(P), start is None
    law = stationary(P) if start is None else initial_law(start, P)
    off = gamma(stationary_terms(states)) if at_rest else 0.0
    x, y = (grid.ravel() for grid in np.indices((states, states)))
    steps_ahead, steps_on = products(P, 0.0, repeat(P), 0.0), laws_over_time(law, off, P)
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
    check_request(length, epsilon)
    P = square(transition)
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
