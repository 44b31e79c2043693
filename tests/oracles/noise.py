"""The laws of noise and selection, slowly and from their definitions; and exact binomial tests."""

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations, product
from math import exp, factorial, inf, log
from typing import Any

Law = dict[tuple[int, ...], float]


def laplace(scale: float, z: int) -> float:
    """P(Z = z) ∝ exp(−|z| / scale) over all whole z."""
    r = exp(-1 / scale)
    return (1 - r) / (1 + r) * r ** abs(z)


def gaussian(scale: float, z: int, *, reach: int = 400) -> float:
    """P(Z = z) ∝ exp(−z² / 2 scale²) over whole z, for a scale of at most reach / 12."""
    total = sum(exp(-(t**2) / (2 * scale**2)) for t in range(-reach, reach + 1))
    return exp(-(z**2) / (2 * scale**2)) / total


def softmax(scores: Sequence[float], scale: float) -> list[float]:
    """The exponential mechanism."""
    weights = [exp((x - max(scores)) / scale) for x in scores]
    return [w / sum(weights) for w in weights]


def permute_and_flip(scores: Sequence[float], scale: float) -> list[float]:
    """Every order of the candidates, every run of flips."""
    accept = [exp((x - max(scores)) / scale) for x in scores]
    probabilities = [0.0] * len(scores)
    for order in permutations(range(len(scores))):
        reached = 1.0
        for candidate in order:
            probabilities[candidate] += reached * accept[candidate]
            reached *= 1 - accept[candidate]
    return [c / factorial(len(scores)) for c in probabilities]


def peeled(
    scores: Sequence[float],
    k: int,
    scale: float,
    law: Callable[[Sequence[float], float], list[float]],
) -> Law:
    """P(named in this order): k rounds of ``law``, each over what is left."""
    found: Law = {}
    for order in permutations(range(len(scores)), k):
        left, probability = list(range(len(scores))), 1.0
        for candidate in order:
            probability *= law([scores[i] for i in left], scale)[left.index(candidate)]
            left.remove(candidate)
        found[order] = probability
    return found


def noisy_order(scores: Sequence[int], k: int, scale: float, *, reach: int) -> Law:
    """P(named in this order): integer Laplace noise on each score, all outcomes of the noise."""
    found: Law = {}
    for noise in product(range(-reach, reach + 1), repeat=len(scores)):
        probability = 1.0
        for z in noise:
            probability *= laplace(scale, z)
        noisy = [x + z for x, z in zip(scores, noise, strict=True)]
        order = tuple(sorted(range(len(scores)), key=lambda i: (-noisy[i], i))[:k])
        found[order] = found.get(order, 0.0) + probability
    return found


def pure_loss(left: Mapping[Any, float], right: Mapping[Any, float]) -> float:
    """The largest log ratio of two laws, one way."""
    worst = -inf
    for outcome, p in left.items():
        if p > 0:
            q = right.get(outcome, 0.0)
            worst = max(worst, log(p / q) if q > 0 else inf)
    return worst


def hockey_stick(left: Mapping[Any, float], right: Mapping[Any, float], epsilon: float) -> float:
    """δ(ε) = Σ max(P − e^ε Q, 0): the least δ for which (ε, δ) holds, one way."""
    return sum(max(p - exp(epsilon) * right.get(o, 0.0), 0.0) for o, p in left.items())


def renyi(left: Mapping[Any, float], right: Mapping[Any, float], order: float) -> float:
    """D_α(P ‖ Q) of two laws with the same support."""
    total = sum(exp(order * log(p) + (1 - order) * log(right[o])) for o, p in left.items() if p > 0)
    return log(total) / (order - 1)


def plausible(hits: int, draws: int, probability: float, *, alarm: float) -> bool:
    """Whether ``hits`` of ``draws`` agree with ``probability``; false alarm rate ``alarm``."""
    from scipy.stats import binom

    low, high = binom.cdf(hits, draws, probability), binom.sf(hits - 1, draws, probability)
    return bool(min(low, high) >= alarm / 2)


def power(draws: int, probability: float, other: float, *, alarm: float) -> float:
    """How often `plausible` says no when the probability is ``other`` instead."""
    from scipy.stats import binom

    low = int(binom.ppf(alarm / 2, draws, probability))  # the least count whose cdf reaches alarm/2
    high = int(binom.isf(alarm / 2, draws, probability))
    while binom.sf(high - 1, draws, probability) < alarm / 2:
        high -= 1
    while binom.sf(high, draws, probability) >= alarm / 2:
        high += 1
    return float(binom.cdf(low - 1, draws, other) + binom.sf(high, draws, other))
