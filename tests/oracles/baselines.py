"""Markov quilts and temporal leakage by enumeration, in plain Python, from the definitions."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import exp, inf, log
from typing import TypeVar

Row = tuple[int, ...]
Number = TypeVar("Number", float, Fraction)
Matrix = Sequence[Sequence[float]]


def chain_law(
    transition: Sequence[Sequence[Number]], start: Sequence[Number], length: int
) -> dict[Row, Number]:
    """The joint law of a Markov chain, path by path."""
    law = {}
    for path in product(range(len(start)), repeat=length):
        p = start[path[0]]
        for u, v in pairwise(path):
            p *= transition[u][v]
        if p > 0:
            law[path] = p
    return law


def influence(law: Mapping[Row, float], node: int, quilt: Sequence[int]) -> float:
    """e(X_Q | X_i): the largest log P(x_Q | X_i = x) / P(x_Q | X_i = y), over possible x, y."""
    mass: dict[int, float] = defaultdict(float)
    joint: dict[int, dict[Row, float]] = defaultdict(lambda: defaultdict(float))
    for path, p in law.items():
        mass[path[node]] += p
        joint[path[node]][tuple(path[j] for j in quilt)] += p
    worst = 0.0
    for x in mass:
        for y in mass:
            for part, p in joint[x].items():
                other = joint[y].get(part, 0.0) / mass[y]
                worst = max(worst, log(p / mass[x] / other) if other > 0 else inf)
    return worst


def quilt_noise(law: Mapping[Row, float], epsilon: float) -> float:
    """The noise scale of MQMExact, over every set of nodes as a quilt."""
    n = len(next(iter(law)))
    worst = 0.0
    for node in range(n):
        others = [j for j in range(n) if j != node]
        best = n / epsilon
        for size in range(1, n):
            for quilt in combinations(others, size):
                first = max((j for j in quilt if j < node), default=-1)
                last = min((j for j in quilt if j > node), default=n)
                e = influence(law, node, quilt)
                if e < epsilon:
                    best = min(best, (last - first - 1) / (epsilon - e))
        worst = max(worst, best)
    return worst


def leak_step(kernel: Matrix, alpha: float) -> float:
    """The loss function of temporal privacy leakage, over every set of states."""
    states = range(len(kernel[0]))
    worst = 0.0
    for x, y in product(kernel, repeat=2):
        for size in states:
            for chosen in combinations(states, size + 1):
                q, d = sum(x[u] for u in chosen), sum(y[u] for u in chosen)
                worst = max(worst, log((1 + (exp(alpha) - 1) * q) / (1 + (exp(alpha) - 1) * d)))
    return worst


def pufferfish_of_count(
    law: Mapping[Row, float], node: int, x: int, y: int, epsilon: float, states: Sequence[int]
) -> float:
    """The loss of one admissible g, e^{ε·(number of entries with a value in states)}."""
    total, mass = {x: 0.0, y: 0.0}, {x: 0.0, y: 0.0}
    for path, p in law.items():
        if path[node] in total:
            mass[path[node]] += p
            total[path[node]] += p * exp(epsilon * sum(v in states for v in path))
    return log(total[x] / mass[x]) - log(total[y] / mass[y])


def approximate_quilt_noise(gap: float, least: float, length: int, epsilon: float) -> float:
    """The noise scale of MQMApprox, over every quilt of every node."""

    def off(steps: int | None) -> float:
        if steps is None:
            return 0.0
        delta = exp(-gap * steps / 2) / least
        return log((1 + delta) / (1 - delta)) if delta < 1 else inf

    worst = 0.0
    for node in range(length):
        best = length / epsilon
        backs = [None, *range(1, node + 1)]
        aheads = [None, *range(1, length - node)]
        for a, b in product(backs, aheads):
            nearby = (node if a is None else a - 1) + (length - 1 - node if b is None else b - 1)
            e = 2 * off(a) + off(b)
            if e < epsilon and (a, b) != (None, None):
                best = min(best, (nearby + 1) / (epsilon - e))
        worst = max(worst, best)
    return worst


def published_leak_step(kernel: Matrix, alpha: float) -> float:
    """The loss function of temporal privacy leakage, as Cao et al. (2017) compute it.

    For a pair of rows q, d begin with the states in which q is larger; as long as there is one
    whose ratio q_j/d_j is not above (1 + (e^α − 1)·Σq)/(1 + (e^α − 1)·Σd) leave those out. The
    value of every set on the way counts: rounding may leave out states that are exactly as good.
    """
    grown = exp(alpha) - 1
    worst = 0.0
    for x, y in product(kernel, repeat=2):
        chosen = [u for u in range(len(x)) if x[u] > y[u]]
        while True:
            ratio = (1 + grown * sum(x[u] for u in chosen)) / (
                1 + grown * sum(y[u] for u in chosen)
            )
            worst = max(worst, log(ratio))
            left = [u for u in chosen if x[u] > ratio * y[u]]
            if len(left) == len(chosen):
                break
            chosen = left
    return worst
