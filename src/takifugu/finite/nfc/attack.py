r"""From the mixture α to an attack: how many times to see which output, and what that reveals.

Seeing output i :math:`c_i` times from independent runs on the same data leaks

.. math:: \log \frac{\sum_D P(D|s) \prod_i P(ω_i|D)^{c_i}}{\sum_D P(D|s′) \prod_i P(ω_i|D)^{c_i}}.

Linear composition says that this is at most :math:`\sum_i c_i ε_i`. Where the claims miss the
necessary condition by t > 0, counts near kα exceed them from some k on: with D* the dataset of
the certificate, the leak is at least :math:`\log P(D^*|s) + k(ε + t)`, up to rounding kα.

Where they meet it, no repetition gains more than a constant. Proof: for g = ∏ P(ω_i|D)^{c_i},
every D with s has g(D) ≤ e^{Σcε} ∏ g(D_ℓ)^{β_ℓ} ≤ e^{Σcε} max_ℓ g(D_ℓ), and
E[g|s′] ≥ min_ℓ P(D_ℓ|s′) · max_ℓ g(D_ℓ); so the leak is at most
:math:`\sum_i c_i ε_i + \log 1/\min_ℓ P(D_ℓ|s′)`. (`takifugu.finite.nfc.kernel_proof` has better
constants.) The constant may still be positive: the condition is necessary, not sufficient.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from typing import Literal

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu._core.rounding import gamma, up
from takifugu.finite.evidence import log_sum
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.nfc.condition import (
    Certificate,
    Condition,
    MechanismOutput,
    OutputTable,
    claims_by_output,
    condition_on_claims,
)
from takifugu.finite.world import World
from takifugu.priors.secrets import SecretPair


@dataclass(frozen=True)
class Attack:
    """Outputs which, seen together, leak more than the mechanisms' claims add up to.

    Attributes:
        counts: How many times each output is seen.
        runs: How many runs that takes.
        pair: The secret pair that is distinguished.
        prior: The prior under which it is.
        leakage: What is leaked; a lower bound.
        claimed: What the claims add up to; an upper bound.
        fewest: Whether no multiset of fewer runs exceeds its claims (all were tried).
    """

    counts: tuple[tuple[MechanismOutput, int], ...]
    runs: int
    pair: SecretPair
    prior: str
    leakage: float
    claimed: float
    fewest: bool


@dataclass(frozen=True, eq=False)
class AttackSearch:
    """The result of a search for an attack.

    Attributes:
        attack: The attack, or None.
        condition: The necessary condition relative to the claims.
        tried: Every multiset of up to this many runs was tried.
        longest: Multiples of α were tried up to this many runs.
    """

    attack: Attack | None
    condition: Condition
    tried: int
    longest: int

    @property
    def in_the_long_run(self) -> Literal["fails", "holds up to a constant", "undecided"]:
        """What the necessary condition implies for a growing number of runs at these claims.

        ``"fails"``: some repetition exceeds the claims by any amount. ``"holds up to a
        constant"``: none does; a small ``attack`` may exist all the same.
        """
        if self.condition.lower > 0:
            return "fails"
        return "holds up to a constant" if self.condition.upper <= 0 else "undecided"


def search_attack(
    world: World,
    mechanisms: Sequence[FiniteMechanism],
    claims: Sequence[float],
    *,
    most_multisets: int = 20_000,
    most_runs: int = 20_000,
) -> AttackSearch:
    """Look for runs that leak more than ``claims`` (the cost per run of each mechanism) add up to.

    First all multisets of 1, 2, 3, … outputs while they number at most ``most_multisets``; what
    this finds has the fewest runs. Then, if the necessary condition is missed, roundings of kα
    for growing k up to ``most_runs``; what this finds is an attack, perhaps not the shortest.
    """
    condition = condition_on_claims(world, mechanisms, claims)
    outputs = condition.outputs
    price = claims_by_output(outputs, mechanisms, claims)
    size, runs, spent = len(outputs.labels), 0, 0
    while (spent := spent + comb(size + runs, runs + 1)) <= most_multisets:
        runs += 1
        if found := _best(world, outputs, price, _multisets(size, runs), fewest=True):
            return AttackSearch(found, condition, runs, 0)
    missed = sorted((c for c in condition.certificates if c.lower > 0), key=lambda c: -c.lower)
    attacks = []
    longest = most_runs
    for certificate in missed[:8]:
        for counts in _multiples(outputs, certificate, longest):
            if found := _best(world, outputs, price, counts, fewest=False):
                attacks.append(found)
                longest = min(longest, found.runs)
                break
    best = min(attacks, key=lambda attack: attack.runs, default=None)
    return AttackSearch(best, condition, runs, most_runs if missed else 0)


def _multisets(size: int, runs: int) -> Integers:
    """``[multiset, output]``: every way to see ``runs`` outputs."""
    picks = np.array(list(combinations_with_replacement(range(size), runs)), dtype=np.int64)
    counts = np.zeros((len(picks), size), dtype=np.int64)
    np.add.at(counts, (np.arange(len(picks))[:, None], picks), 1)
    return counts


def _multiples(outputs: OutputTable, certificate: Certificate, most: int) -> Iterator[Integers]:
    """Blocks of counts: the outputs to see once, and kα rounded by largest remainders."""
    once = np.zeros(len(outputs.labels), dtype=np.int64)
    once[[outputs.position(output) for output in certificate.once]] = 1
    if not certificate.alpha.any():
        if once.sum() <= most:
            yield once[None, :]
        return
    start, room = 1, most - int(once.sum())
    while start <= room:
        k = np.arange(start, min(2 * start, room + 1))
        ideal = k[:, None] * certificate.alpha
        counts = np.floor(ideal).astype(np.int64)
        order = np.argsort(np.argsort(counts - ideal, axis=1), axis=1)  # largest remainder first
        yield once + counts + (order < (k - counts.sum(axis=1))[:, None])
        start *= 2


def _best(
    world: World, outputs: OutputTable, price: Floats, counts: Integers, *, fewest: bool
) -> Attack | None:
    """The counts of fewest runs, then largest excess, that leak more than their claims; or None."""
    runs = counts.sum(axis=1)
    claimed = up(up(counts @ price) + gamma(len(price)) * (counts @ price))
    best: tuple[int, float, int, int, float] | None = None
    block = max(1, 2_000_000 // (counts.shape[1] + outputs.probability.shape[1]))
    for start in range(0, len(counts), block):
        value, error = _losses(world, outputs, counts[start : start + block])
        lower = value.max(axis=(1, 2)) - error
        excess = lower - claimed[start : start + block]
        for i in np.flatnonzero(excess > 0):
            rank = (int(runs[start + i]), -float(excess[i]))
            if best is None or rank < best[:2]:
                best = (*rank, start + int(i), int(np.argmax(value[i])), float(lower[i]))
    if best is None:
        return None
    _, _, row, place, leakage = best
    p, t = divmod(place, len(world.listed_priors))
    seen = np.flatnonzero(counts[row])
    return Attack(
        counts=tuple((outputs.labels[i], int(counts[row, i])) for i in seen),
        runs=int(runs[row]),
        pair=world.pairs[p],
        prior=world.listed_priors[t].name,
        leakage=leakage,
        claimed=float(claimed[row]),
        fewest=fewest,
    )


def _losses(world: World, outputs: OutputTable, counts: Integers) -> tuple[Floats, Floats]:
    """``[multiset, pair, prior]``: the composed leakage, and ``[multiset]``: a bound on its error.

    −∞ where the outputs cannot be seen together under s, or the prior leaves the pair out.
    """
    n = len(world.universe)
    known = np.where(outputs.probability > 0, outputs.log, 0.0)
    score = counts @ known  # [multiset, dataset]
    size = (counts @ np.abs(known)).max(axis=1)
    score = np.where(counts @ (outputs.probability == 0) > 0, -np.inf, score)
    with np.errstate(divide="ignore"):
        prior = np.log(world.weights)  # [prior, dataset]
    total = np.empty((len(counts), len(world.secrets), len(prior)))
    for s, secret in enumerate(world.secrets):
        rows = np.flatnonzero(world.mask(secret))
        for t in range(len(prior)):
            total[:, s, t] = log_sum(score[:, rows] + prior[t, rows])
            total[:, s, t] -= (
                log_sum(prior[t, rows][None, :])[0] if world.secret_probabilities[t, s] else 0.0
            )
    left, right = (list(side) for side in zip(*world.sides, strict=True))
    with np.errstate(invalid="ignore"):
        value = total[:, left] - total[:, right]
    possible = (world.secret_probabilities.T[left] > 0) & (world.secret_probabilities.T[right] > 0)
    value = np.where((total[:, left] == -np.inf) | ~possible, -np.inf, value)
    weight = float(np.abs(prior[np.isfinite(prior)]).max())
    # every term is off by γ times its size, every sum by γ(n); both sides, and their division
    error = 4 * gamma(counts.shape[1] + n + 32) * (1 + size + weight)
    return value, error
