r"""The Markov Quilt Mechanism on a chain (Song, Wang and Chaudhuri, SIGMOD 2017).

**Few pairs of values at first.** With :math:`l_a(x,y)` what a node a steps back and
:math:`r_b(x,y)` what one b steps ahead tells of x against y, a quilt has the influence
:math:`e(a,b) = \max_{x,y} [l_a(x,y) + r_b(x,y)]`. Pairs that were the worst of some quilt bound
that of others from below, and cost a row of each power. Only a quilt that may be the best by them
is evaluated for all pairs. One side alone needs no pairs:

.. math:: \max_{x,y} r_b(x,y) = \max_z \Bigl[\max_x \log P^b_{xz} - \min_y \log P^b_{yz}\Bigr].

**Quilts.** A quilt :math:`\{X_{i-a}, X_{i+b}\}` of node i has c = a + b − 1 nodes nearby and the
max-influence :math:`e(a,b) = \max_{x,y} [l_a(x,y) + r_b(x,y)]`; it allows (ε − e)/c per entry. A
quilt on one side allows (ε − max l_a)/(n − 1 − i + a) or (ε − max r_b)/(i + b), none at all ε/n. A
node takes the best, the chain the least over its nodes. No quilt of c nodes allows more than ε/c,
so c rises only until ε/c is below the best so far. Times count from 0.

**Stationary chains.** There l does not depend on the node, and whether a quilt fits at its node
need not be checked. If a > i and b < n − i, then the quilt :math:`\{X_{i+b}\}` has i + b ≤ c nodes
nearby and no more influence; likewise on the other side; and if both ends are outside, then c ≥ n
and no quilt at all is as good. So with :math:`V = \max_{a,b} (ε - e(a,b))/c` a node allows the
largest of V, its one-sided quilts and ε/n.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats, frozen
from takifugu._core.rounding import UNIT, down, gamma, up
from takifugu.errors import InvalidPrior
from takifugu.influence.rounded_ratios import (
    IMPOSSIBLE,
    LogProduct,
    largest_ratios,
    products,
    turned,
)
from takifugu.papers.composition.baselines.chain_laws import (
    check_request,
    initial_law,
    laws_over_time,
    square,
    stationary,
    stationary_terms,
)
from takifugu.priors.markov import MarkovChain


class QuiltInfluence:
    """The powers of a stationary chain, as far as they were needed, and what they reveal.

    All numbers are upper bounds, except `least`'s own search, which compares lower ones.
    """

    def __init__(self, P: Floats, law: Floats, error: float) -> None:
        """``error`` is that of the law, relatively."""
        now = next(laws_over_time(law, error, P))
        self._law = now.log[0]
        self._odds = self._law[None, :] - self._law[:, None]  # [x, y]: log μ(y)/μ(x)
        self._odds_slack = 2 * now.error + 4 * UNIT * float(np.abs(self._law).max())
        self._powers = products(P, 0.0, repeat(P), 0.0)
        self._known: list[LogProduct] = []
        self._logs = np.zeros((0, *P.shape))  # [step − 1, x, z], with room for more
        self._slack = np.zeros(0)
        self._pairs: dict[tuple[int, int], tuple[Floats, Floats]] = {}
        self._tables: dict[tuple[int, bool], Floats] = {}

    def reach(self, steps: int) -> None:
        """Compute the powers up to ``steps``."""
        if steps > len(self._logs):
            more = max(steps, 2 * len(self._logs))
            logs, slack = np.zeros((more, *self._odds.shape)), np.zeros(more)
            logs[: len(self._logs)], slack[: len(self._slack)] = self._logs, self._slack
            self._logs, self._slack = logs, slack
        while len(self._known) < steps:
            power = next(self._powers)
            k = len(self._known)
            finite = np.abs(power.log[power.possible]).max(initial=0.0)
            self._logs[k] = power.log
            self._slack[k] = 2 * power.error + 8 * UNIT * float(finite)
            self._known.append(power)

    def ends(self, steps: int) -> tuple[Floats, Floats]:
        """``[step − 1]``: the influence of the quilts on one side, behind and ahead."""
        self.reach(steps)
        logs = self._logs[:steps]
        below = np.maximum(logs, IMPOSSIBLE)
        behind = (logs - self._law).max(axis=2) - (below - self._law).min(axis=2)  # [step − 1, z]
        ahead = logs.max(axis=1) - below.min(axis=1)
        slack = self._slack[:steps]
        odds = self._odds_slack + 8 * UNIT * float(np.abs(self._law).max(initial=0.0))
        return _bounded(behind.max(axis=1, initial=-inf) + slack + odds), _bounded(
            ahead.max(axis=1, initial=-inf) + slack
        )

    def least(self, nearby: int, below: float) -> tuple[int, float] | None:
        """The best a, with a + b = ``nearby`` + 1, and its influence; None if not ``below``."""
        self.reach(nearby)
        lower = np.full(nearby, -inf)  # [a − 1]
        for pair in self._pairs:
            np.maximum(lower, self._of_pair(pair, nearby), out=lower)
        best, least = 0, below
        while True:
            a = int(np.argmin(lower)) + 1
            if not lower[a - 1] < least:
                return (best, least) if best else None
            table = self._table(a, behind=True) + self._table(nearby + 1 - a, behind=False)
            pair = divmod(int(np.argmax(table)), len(self._law))
            if table[pair] < least:
                best, least = a, float(table[pair])
            lower[a - 1] = inf
            if pair not in self._pairs and table[pair] < inf:
                self._pairs[pair] = np.zeros(0), np.zeros(0)
                np.maximum(lower, self._of_pair(pair, nearby), out=lower)

    def _of_pair(self, pair: tuple[int, int], nearby: int) -> Floats:
        """``[a − 1]``: l_a + r_b of one pair, with a + b = ``nearby`` + 1."""
        behind, ahead = self._pairs[pair]
        if len(behind) < nearby:
            x, y = pair
            logs = self._logs[len(behind) : len(self._known)]
            slack = self._slack[len(behind) : len(self._known)]
            back = (logs[:, :, x] - np.maximum(logs[:, :, y], IMPOSSIBLE)).max(axis=1)
            front = (logs[:, x] - np.maximum(logs[:, y], IMPOSSIBLE)).max(axis=1)
            odds = self._odds[pair] + self._odds_slack
            behind = np.append(behind, _bounded(back + slack + odds))
            ahead = np.append(ahead, _bounded(front + slack))
            self._pairs[pair] = behind, ahead
        found: Floats = behind[:nearby] + ahead[:nearby][::-1]
        return found

    def _table(self, steps: int, *, behind: bool) -> Floats:
        """``[x, y]``: l or r of all pairs."""
        key = steps, behind
        if key not in self._tables:
            power = self._known[steps - 1]
            x, y = (grid.ravel() for grid in np.indices(self._odds.shape))
            found = largest_ratios(turned(power) if behind else power, x, y)
            found = found.reshape(self._odds.shape)
            self._tables[key] = found + self._odds + self._odds_slack if behind else found
        return self._tables[key]


def _bounded(values: Floats) -> Floats:
    """The same, with infinity for what is possible under one value alone."""
    return np.where(values > -IMPOSSIBLE / 2, inf, values)


FIRST_REACH = 256  # nodes nearby that MQMApprox looks at first
GUARD = 1e-9  # margin for the computed spectral gap and the least stationary probability

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
        return max(float(down(1 / self.noise)), 0.0)


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
    influence = QuiltInfluence(P, stationary(P), gamma(stationary_terms(len(P))))
    (found,) = _all_nodes(influence, length, np.array([epsilon]))
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
    influence = QuiltInfluence(chain.kernel(), chain.stationary, chain.stationary_error)
    found = _all_nodes(influence, length, np.asarray(epsilons, dtype=np.float64))
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
    if not np.exp(-gap * (length - 1) / 2) < least:  # Δ falls with d, and is below 1 nowhere
        none = np.zeros(0)
        return QuiltNoise.of(*_worst_node((none, none), length, epsilon, 0.0, (None, None)))
    reach = min(FIRST_REACH, length - 1)
    while True:
        ahead = _mixed(gap, least, reach)
        best, quilt = _best_of_convex(ahead, epsilon)
        if reach == length - 1 or epsilon / reach <= best:
            return QuiltNoise.of(*_worst_node((2 * ahead, ahead), length, epsilon, best, quilt))
        reach = min(2 * reach, length - 1)


def _mixed(gap: float, least: float, reach: int) -> Floats:
    """``[d − 1]``: log (1 + Δ_d)/(1 − Δ_d), rounded up; infinite where Δ_d is 1 or more."""
    delta = np.exp(-gap * np.arange(1, reach + 1) / 2) / least
    mixing = delta < 1
    delta = np.where(mixing, delta, 0.0)
    return np.where(mixing, up(np.log((1 + delta) / (1 - delta))), inf)


def _best_of_convex(ahead: Floats, epsilon: float) -> tuple[float, Quilt]:
    r"""What the best two-sided quilt allows if r = ``ahead`` and l = 2r; 0 if there is none.

    :math:`\log[(1 + Δ)/(1 - Δ)]` is convex in d. So with more nodes nearby the best quilt grows by
    one step, on the side where that lowers the influence most: of all drops on both sides those
    that are steepest come first. Whatever order rounding leaves them in, they make a quilt.
    """
    first = int(np.isinf(ahead).sum())  # Δ falls: these come first
    most = len(ahead) - 1 - 2 * first  # steps further that leave at most len(ahead) nodes nearby
    if most < 0:
        return 0.0, (None, None)
    drops = -np.diff(ahead[first:])
    behind_first = np.argsort(-np.concatenate([2 * drops, drops]), kind="stable") < len(drops)
    behind = np.append(0, np.cumsum(behind_first[:most]))
    a, b = first + 1 + behind, first + 1 + np.arange(len(behind)) - behind
    nearby = a + b - 1
    allowed = down(epsilon - up(2 * ahead[a - 1] + ahead[b - 1])) / nearby
    place = int(np.argmax(allowed))
    if not allowed[place] > 0:
        return 0.0, (None, None)
    return float(allowed[place]), (int(a[place]), int(b[place]))


def _all_nodes(
    influence: QuiltInfluence, length: int, epsilons: Floats
) -> list[tuple[float, int, Quilt]]:
    """For each ε what the worst node allows, that node and its quilt; l the same for all nodes."""
    best = np.maximum(down(epsilons / length), 0.0)
    quilts: list[Quilt] = [(None, None)] * len(epsilons)
    reach = 0
    for nearby in range(1, length):
        if (epsilons / nearby <= best).all():
            break
        reach = nearby
        found = influence.least(nearby, float(np.max(epsilons - best * nearby)))
        if found is None:
            continue
        a, least = found
        allowed = down(epsilons - float(up(least))) / nearby
        quilts = [
            (a, nearby + 1 - a) if more else known
            for more, known in zip(allowed > best, quilts, strict=True)
        ]
        best = np.maximum(best, allowed)
    ends = influence.ends(reach)
    return [
        _worst_node(ends, length, float(epsilon), float(two_sided), quilt)
        for epsilon, two_sided, quilt in zip(epsilons, best, quilts, strict=True)
    ]


def _worst_node(
    ends: tuple[Floats, Floats], length: int, epsilon: float, two_sided: float, quilt: Quilt
) -> tuple[float, int, Quilt]:
    """What the node that allows least does allow, that node and its quilt.

    ``ends`` are l and r of the quilts on one side, ``[step − 1]``; ``two_sided`` is what the best
    other quilt allows, at any node. What a quilt ahead allows falls from node to node, and what one
    behind allows rises, also as floats: the numerators stay, and the denominators are integers. So
    the least of the larger of both is found by bisection.
    """
    group = float(down(epsilon / length))
    if group >= two_sided:
        two_sided, quilt = group, (None, None)
    steps = np.arange(1, len(ends[0]) + 1)
    rooms = down(epsilon - ends[0]), down(epsilon - ends[1])

    def ahead(node: int) -> Floats:
        count = min(len(steps), length - 1 - node)
        return np.append(rooms[1][:count] / (node + steps[:count]), 0.0)

    def behind(node: int) -> Floats:
        count = min(len(steps), node)
        return np.append(rooms[0][:count] / (length - 1 - node + steps[:count]), 0.0)

    def first(end: int, holds: Callable[[int], bool]) -> int:
        return bisect_left(range(end), True, key=holds)

    meet = first(length - 1, lambda node: bool(behind(node).max() >= ahead(node).max()))
    level = max(two_sided, float(behind(meet).max()))
    if meet:
        level = max(two_sided, min(level, float(ahead(meet - 1).max())))
    node = first(meet, lambda node: bool(ahead(node).max() <= level))
    sides = ahead(node), behind(node)
    allowed = max(two_sided, float(sides[0].max()), float(sides[1].max()))
    if not allowed > 0:
        quilt = None, None
    elif sides[0].max() == allowed:
        quilt = None, int(np.argmax(sides[0])) + 1
    elif sides[1].max() == allowed:
        quilt = int(np.argmax(sides[1])) + 1, None
    return max(float(down(allowed)), 0.0), node, quilt


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
