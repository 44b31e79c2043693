"""Profiles of ε with a large sum, found without any code of the package."""

from collections.abc import Callable
from math import exp, expm1, log

import numpy as np

from tests.oracles.transport import Floats, written_out_chain_loss

Losses = Callable[
    [Floats], Floats
]  # [entry]: ε of each -> every loss that must be within the target


def published_profile(stay: float, length: int, target: float) -> list[float]:
    """Cao et al. (2017): the first and the last entry get α, those between α − L(α).

    For two states that stay with the same probability. Then what the past and what the future
    reveal is α everywhere, and the loss is α + L(α), the target.
    """

    def leaks(alpha: float) -> float:
        return log((1 + expm1(alpha) * stay) / (1 + expm1(alpha) * (1 - stay)))

    low, high = 0.0, target
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if middle + leaks(middle) <= target else (low, middle)
    if length == 1:
        return [target]
    return [low, *[low - leaks(low)] * (length - 2), low]


def count_losses(matrices: list[Floats], start: Floats) -> Losses:
    """``[entry]``: the loss of counting ones, or zeros, over every path; for chains that stay."""

    def losses(epsilon: Floats) -> Floats:
        length = len(epsilon)
        found = np.full((2, length), -np.inf)
        for counted in (0, 1):
            # forward sums of e^{Σ ε} given the state of each entry, before it and after it
            after = np.ones((length, 2))
            for t in range(length - 2, -1, -1):
                gain = np.array([exp(epsilon[t + 1] * (v == counted)) for v in (0, 1)])
                after[t] = matrices[t] @ (gain * after[t + 1])
            law, before = start, np.ones((length, 2))
            for t in range(length - 1):
                gain = np.array([exp(epsilon[t] * (v == counted)) for v in (0, 1)])
                joint = (law * gain * before[t])[:, None] * matrices[t]
                law_after = law @ matrices[t]
                before[t + 1] = joint.sum(axis=0) / law_after
                law = law_after
            total = np.log(before * after)
            found[counted] = epsilon + total[:, counted] - total[:, 1 - counted]
        return found.ravel()

    return losses


def program_losses(matrices: list[Floats], start: Floats) -> Losses:
    """The worst loss of every entry and pair of values over all mechanisms, datasets listed."""
    states = range(len(start))

    def losses(epsilon: Floats) -> Floats:
        return np.array(
            [
                written_out_chain_loss(matrices, start, np.maximum(epsilon, 0.0), entry, x, y)
                for entry in range(len(epsilon))
                for x in states
                for y in states
                if x != y
            ]
        )

    return losses


def largest_sum(losses: Losses, target: float, first: Floats, tries: int, seed: int) -> float:
    """The largest sum that SLSQP finds from several profiles, scaled to the target."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(seed)
    best = 0.0
    for attempt in range(tries):
        begin = first * (rng.uniform(0.3, 1.2, len(first)) if attempt else 1.0)
        found = minimize(
            lambda x: -x.sum(),
            begin,
            jac=lambda x: -np.ones(len(x)),
            constraints=[{"type": "ineq", "fun": lambda x: target - losses(x)}],
            bounds=[(0.0, target)] * len(first),
            method="SLSQP",
            options={"maxiter": 100, "ftol": 1e-11},
        )
        profile = np.clip(found.x, 0.0, target)
        best = max(best, float(profile.sum()) * min(1.0, target / float(losses(profile).max())))
    return best
