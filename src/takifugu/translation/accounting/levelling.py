r"""A profile of ε whose losses are all at a target, from few evaluations of the losses.

Let :math:`ℓ(ε)` be the losses of all entries. In a Markov chain what an entry reveals of another
passes through those in between, so that :math:`∂ℓ_t/∂ε_s` is a product of a factor for each step
from s to t: about :math:`ρ^{|t-s|}`, with ρ from how fast the largest loss rises if all ε do. The
inverse of that matrix is tridiagonal. It takes the place of the inverse Jacobian in Newton's
method for ℓ(ε) = target, and the differences of ε and of ℓ between the steps before correct it
(Anderson's method; Walker and Ni, 2011): about ten evaluations make all losses level to ten digits.

Nothing here is a proof: whoever uses a profile evaluates its loss.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from takifugu.numeric import Floats

Losses = Callable[[Floats], Floats]  # [entry]: ε of each -> the loss of each
ROUNDS = 40
LEVEL = 1e-10  # relative: losses this close to the target are level
EVEN = 1e-14  # and closer than this they need not be
PROBE = 1e-4  # by how much of itself every ε is changed to see what that does
MEMORY = 12  # steps that correct the next one
PATIENCE = 6  # rounds without a better profile after which there is none
STEEPEST = 0.999  # the largest ρ


@dataclass(frozen=True, eq=False)
class Levelled:
    """A profile and whether it is level.

    Attributes:
        epsilon: ``[entry]``: ε of each, scaled to the target if a loss is above it.
        level: Whether every loss is at the target, except where ε is at an end of its range.
    """

    epsilon: Floats
    level: bool


def levelled(losses: Losses, target: float, first: Floats, most: float) -> Levelled:
    """The best profile on the way from ``first`` to level losses; every ε from 0 to ``most``."""
    epsilon, now = first, losses(first)
    rises = (losses(first * (1 + PROBE)) - now) / (PROBE * first)
    rate = float(np.clip((rises.max() - 1) / (rises.max() + 1), 0.0, STEEPEST))
    moves: list[Floats] = []
    changes: list[Floats] = []
    best, best_sum, waited = first, 0.0, 0
    furthest = np.inf
    for _ in range(ROUNDS):
        share = fitting_share(now, target)
        waited += 1
        if share * epsilon.sum() > best_sum:
            best, best_sum, waited = share * epsilon, share * float(epsilon.sum()), 0
        missing = _missing(epsilon, now, target, most)
        before, furthest = furthest, float(np.abs(missing).max())
        if furthest <= EVEN * target or (before <= LEVEL * target and furthest > before / 2):
            return Levelled(best, level=True)
        if waited > PATIENCE:
            break
        step = _corrected(rate, missing, moves, changes)
        low = np.where(epsilon < 1e-3 * first, 0.0, 0.2 * epsilon)
        then = np.clip(epsilon + step, low, np.minimum(5 * epsilon + 0.1 * first, most))
        later = losses(then)
        moves, changes = [*moves, then - epsilon][-MEMORY:], [*changes, later - now][-MEMORY:]
        epsilon, now = then, later
    return Levelled(best, level=furthest <= LEVEL * target)


def relaxed(losses: Losses, target: float, first: Floats, most: float) -> Floats:
    """A profile closer to level losses, by small steps alone: each ε by its own loss."""
    epsilon = best = first
    best_sum, waited = 0.0, 0
    for _ in range(ROUNDS):
        now = losses(epsilon)
        share = fitting_share(now, target)
        waited += 1
        if share * epsilon.sum() > best_sum * (1 + 1e-6):
            best, best_sum, waited = share * epsilon, share * float(epsilon.sum()), 0
        if waited > PATIENCE:
            break
        factor = (target / np.maximum(now, 1e-3 * target)) ** 0.7
        epsilon = np.minimum(epsilon * np.clip(factor, 0.5, 2.0), most)
    return best


def fitting_share(now: Floats, target: float) -> float:
    """What part of a profile with these losses is about within the target; all of it if it is."""
    largest = float(now.max())
    return target / largest if largest > target else 1.0


def _missing(epsilon: Floats, now: Floats, target: float, most: float) -> Floats:
    """``[entry]``: what each loss is short of the target; 0 where ε cannot move that way."""
    missing = target - now
    held = ((epsilon >= most) & (missing > 0)) | ((epsilon <= 0) & (missing < 0))
    return np.where(held, 0.0, missing)


def _corrected(rate: float, missing: Floats, moves: list[Floats], changes: list[Floats]) -> Floats:
    """The step that ρ says, with what earlier steps did in place of what ρ says of them."""
    step = _inverse(rate, missing)
    if moves:
        weights = np.linalg.lstsq(np.array(changes).T, missing, rcond=1e-8)[0]
        foreseen = np.array([_inverse(rate, change) for change in changes]).T
        step = step + (np.array(moves).T - foreseen) @ weights
    return step


def _inverse(rate: float, vector: Floats) -> Floats:
    """The inverse of the matrix ρ^|t−s|, times a vector."""
    padded = np.pad(vector, 1)
    inner = np.full(len(vector), 1 + rate**2)
    inner[[0, -1]] = 1.0
    found: Floats = (inner * vector - rate * (padded[:-2] + padded[2:])) / (1 - rate**2)
    return found
