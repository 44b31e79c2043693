r"""The Markov Quilt Mechanism on a chain (Song, Wang and Chaudhuri, SIGMOD 2017).

A quilt :math:`\{X_{i-a}, X_{i+b}\}` of node i has c = a + b − 1 nodes nearby and the max-influence
:math:`e(a,b) = \max_{x,y} [l_a(x,y) + r_b(x,y)]`; it allows (ε − e)/c per entry. A quilt on one
side allows (ε − max l_a)/(n − 1 − i + a) or (ε − max r_b)/(i + b), none at all ε/n. A node takes
the best, the chain the least over its nodes. No quilt of c nodes allows more than ε/c, so c rises
only until ε/c is below the best so far. Times count from 0.

**Stationary chains.** There l does not depend on the node, and whether a quilt fits at its node
need not be checked. If a > i and b < n − i, then the quilt :math:`\{X_{i+b}\}` has i + b ≤ c nodes
nearby and no more influence; likewise on the other side; and if both ends are outside, then c ≥ n
and no quilt at all is as good. So with :math:`V = \max_{a,b} (ε - e(a,b))/c` a node allows the
largest of V, its one-sided quilts and ε/n.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from math import exp, inf, log

import numpy as np
from numpy.typing import ArrayLike

from takifugu._rounding import UNIT, down, gamma, up
from takifugu.errors import InvalidPrior
from takifugu.influence.chain.powers import LogProduct, largest_ratios, products, turned
from takifugu.numeric import Floats, Integers, frozen
from takifugu.papers.composition.baselines.chain_laws import (
    check_request,
    initial_law,
    laws_over_time,
    square,
    stationary,
    stationary_terms,
)
from takifugu.priors.markov import MarkovChain

GUARD = 1e-9  # margin for the computed spectral gap and the least stationary probability

Sides = Callable[[int], tuple[Floats, Floats]]  # steps -> l and r: [steps, pair of values]
Quilt = tuple[int | None, int | None]  # how far back and ahead its nodes are; None if there is none


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

    @classmethod
    def of(cls, allowed: float, node: int, quilt: Quilt) -> "QuiltNoise":
        """The noise that a loss of ``allowed`` per entry takes."""
        return cls(float(up(1 / allowed)) if allowed > 0 else inf, node, *quilt)

    @property
    def to_dp(self) -> float:
        """The per-entry DP loss of a Laplace mechanism with this much noise, rounded down."""
        return float(down(1 / self.noise))


def mqm_exact(
    transition: ArrayLike, length: int, epsilon: float, *, start: ArrayLike | None = None
) -> QuiltNoise:
    r"""MQMExact: the max-influence of every quilt, computed from powers of the matrix.

    With :math:`\mu_t` the law at time t, e is the largest over values x, y possible at i of

    .. math:: \max_z \log\frac{\mu_{i-a}(z) P^a_{zx} / \mu_i(x)}{\mu_{i-a}(z) P^a_{zy} / \mu_i(y)}
            + \max_z \log\frac{P^b_{xz}}{P^b_{yz}}.

    Without ``start`` the chain is stationary.
    """
    check_request(length, epsilon)
    P = square(transition)
    if start is not None:
        return _node_by_node(P, initial_law(start, P), length, epsilon)
    sides = _stationary_sides(P, stationary(P), gamma(stationary_terms(len(P))))
    (found,) = _all_nodes(sides, length, np.array([epsilon]))
    return QuiltNoise.of(*found)


def quilt_allowances(chain: MarkovChain, epsilons: Sequence[float]) -> Floats:
    """``[ε]``: the loss per entry that MQMExact allows, rounded down."""
    length = chain.length
    if length is None or not chain.homogeneous:
        raise InvalidPrior(
            "chain", given="has no length or many matrices", needed="have a length and one matrix"
        )
    chain.refuse_unless_one_law("a baseline")
    if not chain.stationary_start:
        noises = (mqm_exact(chain.kernel(), length, e, start=chain.start_law) for e in epsilons)
        return frozen([noise.to_dp for noise in noises])
    sides = _stationary_sides(chain.kernel(), chain.stationary, chain.stationary_error)
    found = _all_nodes(sides, length, np.asarray(epsilons, dtype=np.float64))
    return frozen([allowed for allowed, _, _ in found])


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

    @cache
    def side(steps: int) -> float:
        delta = exp(-gap * steps / 2) / least
        return float(up(log((1 + delta) / (1 - delta)))) if delta < 1 else inf

    def sides(steps: int) -> tuple[Floats, Floats]:
        right = np.array([[side(d)] for d in range(1, steps + 1)])
        return 2 * right, right

    (found,) = _all_nodes(sides, length, np.array([epsilon]))
    return QuiltNoise.of(*found)


def _all_nodes(sides: Sides, length: int, epsilons: Floats) -> list[tuple[float, int, Quilt]]:
    """For each ε what the worst node allows, that node and its quilt; l the same for all nodes."""
    group = down(epsilons / length)
    best = np.maximum(group, 0.0)
    quilts: list[Quilt] = [(None, None)] * len(epsilons)
    reach = 0
    for nearby in range(1, length):
        if (epsilons / nearby <= best).all():
            break
        reach = nearby
        left, right = sides(nearby)
        by_left = np.max(left + right[::-1], axis=1)  # [a − 1], with a + b = nearby + 1
        a = int(np.argmin(by_left)) + 1
        allowed = down(epsilons - float(up(by_left[a - 1]))) / nearby
        quilts = [
            (a, nearby + 1 - a) if more else known
            for more, known in zip(allowed > best, quilts, strict=True)
        ]
        best = np.maximum(best, allowed)
    ends = _ends(sides, reach)
    found = []
    for epsilon, whole, two_sided, quilt in zip(epsilons, group, best, quilts, strict=True):
        one_sided, steps = _one_sided(ends, length, float(epsilon))
        by_node = np.maximum(one_sided, two_sided)
        node = int(np.argmin(by_node))
        if one_sided[node] >= two_sided:
            quilt = (-int(steps[node]), None) if steps[node] < 0 else (None, int(steps[node]))
        allowed_here = float(down(np.maximum(whole, by_node[node])))
        found.append((allowed_here, node, quilt))
    return found


def _ends(sides: Sides, reach: int) -> tuple[Floats, Floats]:
    """``[step − 1]``: the influence of the quilts on one side, behind and ahead."""
    if not reach:
        return np.zeros(0), np.zeros(0)
    left, right = sides(reach)
    return left.max(axis=1), right.max(axis=1)


def _one_sided(ends: tuple[Floats, Floats], length: int, epsilon: float) -> tuple[Floats, Integers]:
    """``[node]``: what the best quilt on one side allows, and how far it is; behind is negative."""
    reach = len(ends[0])
    if not reach:
        return np.zeros(length), np.zeros(length, dtype=np.int64)
    nodes = np.arange(length)[:, None]
    steps = np.arange(1, reach + 1)
    behind = down(epsilon - ends[0]) / (length - 1 - nodes + steps)
    ahead = down(epsilon - ends[1]) / (nodes + steps)
    behind = np.where(steps <= nodes, behind, 0.0)
    ahead = np.where(nodes + steps < length, ahead, 0.0)
    both = np.concatenate([ahead, behind], axis=1)
    place = np.argmax(both, axis=1)
    return both.max(axis=1), np.concatenate([steps, -steps])[place]


def _stationary_sides(P: Floats, law: Floats, error: float) -> Sides:
    """L and r of a stationary chain, rounded up; ``error`` is that of the law, relatively."""
    x, y = (grid.ravel() for grid in np.indices(P.shape))
    now = next(laws_over_time(law, error, P))
    slack = 2 * now.error + 4 * UNIT * np.abs(now.log).max()
    odds = (now.log - now.log.T).ravel() + slack  # log μ(y)/μ(x)
    powers = products(P, 0.0, repeat(P), 0.0)
    left, right = np.zeros((2, 0, len(x)))
    known = 0

    def sides(steps: int) -> tuple[Floats, Floats]:
        nonlocal left, right, known
        if steps > len(left):
            spare = np.zeros((steps, len(x)))  # doubles what there is room for
            left, right = np.concatenate([left, spare]), np.concatenate([right, spare])
        while known < steps:
            power = next(powers)
            left[known] = largest_ratios(turned(power), x, y) + odds
            right[known] = largest_ratios(power, x, y)
            known += 1
        return left[:steps], right[:steps]

    return sides


def _node_by_node(P: Floats, law: Floats, length: int, epsilon: float) -> QuiltNoise:
    """The same for a chain that is not stationary: every node has its own l."""
    states = len(P)
    x, y = (grid.ravel() for grid in np.indices((states, states)))
    powers = _CachedProducts(products(P, 0.0, repeat(P), 0.0))
    laws = _CachedProducts(laws_over_time(law, 0.0, P))

    @cache
    def ahead(steps: int) -> Floats:  # [x, y]
        return largest_ratios(powers.at(steps - 1), x, y).reshape(states, states)

    def behind(steps: int, node: int) -> Floats:  # [x, y]
        now, before = laws.at(node), laws.at(node - steps).possible[0]
        power = powers.at(steps - 1)
        back = LogProduct(power.log[before], power.error)
        table = largest_ratios(turned(back), x, y).reshape(states, states)
        odds = np.where(now.possible, now.log, 0.0)  # impossible values are left out below
        slack = 2 * now.error + 4 * UNIT * np.abs(odds).max()
        return np.asarray(table + (odds - odds.T) + slack)

    def best(node: int) -> tuple[float, Quilt]:
        before, after = node, length - 1 - node
        possible = np.ix_(laws.at(node).possible[0], laws.at(node).possible[0])
        behind_node = cache(lambda steps: behind(steps, node)[possible])
        allowed = float(down(epsilon / length))
        quilt: Quilt = (None, None)
        for nearby in range(1, length):
            if epsilon / nearby <= allowed:
                break
            for a, b in _quilts(nearby, before, after):
                influence = np.max(
                    (0.0 if a is None else behind_node(a))
                    + (0.0 if b is None else ahead(b)[possible])
                )
                here = float(down(down(epsilon - up(influence)) / nearby))
                if here > allowed:
                    allowed, quilt = here, (a, b)
        return allowed, quilt

    found = [(*best(node), node) for node in range(length)]
    allowed, quilt, node = min(found, key=lambda one: one[0])
    return QuiltNoise.of(allowed, node, quilt)


def _quilts(nearby: int, before: int, after: int) -> Iterator[Quilt]:
    """The quilts of a node with so many nodes nearby, ``before`` and ``after`` it in the chain."""
    for a in range(max(1, nearby + 1 - after), min(nearby, before) + 1):
        yield a, nearby + 1 - a
    if 1 <= nearby - before <= after:  # everything before the quilt is nearby
        yield None, nearby - before
    if 1 <= nearby - after <= before:  # everything after it
        yield nearby - after, None


class _CachedProducts:
    """The items of an iterator, by position."""

    def __init__(self, items: Iterator[LogProduct]) -> None:
        self._items, self._known = items, list[LogProduct]()

    def at(self, place: int) -> LogProduct:
        """The item at ``place``, counted from 0."""
        while len(self._known) <= place:
            self._known.append(next(self._items))
        return self._known[place]


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
