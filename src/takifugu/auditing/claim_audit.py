"""Test a privacy claim on outputs: a lower bound on ε from what was drawn.

An audit refutes a claim or does not; it proves none. It draws outputs of a mechanism under the two
sides of a comparison (two neighbouring datasets, or two secrets), picks one event on half of them,
and counts the event on the other half.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from takifugu.auditing.events import ChosenEvent, OutputEvent, choose
from takifugu.auditing.loss_bounds import Claim, checked_confidence, epsilon_below
from takifugu.auditing.output_rows import of_size
from takifugu.errors import UnsoundRequest
from takifugu.visible import four_digits

Sampler = Callable[[int], Any]
"""Takes a number, returns that many independent outputs: a list, or an array with one per row."""

LEAST_SAMPLES = 100


@dataclass(frozen=True)
class Comparison:
    """Two sides whose outputs a mechanism claims to be within a factor e^ε of one another.

    Attributes:
        first: Draws outputs under one neighbour, or given one secret.
        second: Draws outputs under the other.
        name: The comparison in words that may be printed.
        both_ways: Whether the claim also bounds P(second) ≤ e^ε·P(first) + δ, as DP does.
    """

    first: Sampler
    second: Sampler
    name: str = "first or second"
    both_ways: bool = True


@dataclass(frozen=True)
class Audit:
    """The result of an audit of a claim.

    Attributes:
        claim: The (ε, δ) that was claimed.
        lower: A lower bound on the true ε at the claimed δ.
        confidence: The probability that ``lower`` holds is at least this, whatever the mechanism.
        comparison: The name of the comparison.
        words: The event that distinguishes the sides, without any released value.
        samples: How many outputs were drawn, for choosing and for testing.
        tests: How many outputs of either side the event was counted on.
        event: The event itself.
    """

    claim: Claim
    lower: float
    confidence: float
    comparison: str
    words: str
    samples: int
    tests: int
    event: OutputEvent = field(repr=False, compare=False)

    @property
    def refuted(self) -> bool:
        """Whether the claim is false, with the stated confidence."""
        return self.lower > self.claim.epsilon

    @property
    def verdict(self) -> Literal["refuted", "not refuted"]:
        """The outcome; "not refuted" is not a proof of privacy."""
        return "refuted" if self.refuted else "not refuted"

    def __str__(self) -> str:
        claimed = f"ε = {self.claim.epsilon:g}"
        if self.claim.delta:
            claimed = f"(ε, δ) = ({self.claim.epsilon:g}, {self.claim.delta:g})"
        lower = four_digits(self.lower, "down")
        return (
            f"{self.verdict}: claimed {claimed}; ε ≥ {lower} with confidence"
            f" {self.confidence:.12g}, from {self.samples:,} outputs; {self.comparison};"
            f" event: {self.words}"
        )


def audit(
    comparisons: Comparison | Sequence[Comparison],
    claim: Claim | float,
    *,
    samples: int,
    confidence: float = 0.99,
) -> Audit:
    """Try to refute ``claim`` with ``samples`` outputs of either side of the best comparison.

    With several comparisons, each has half of ``samples`` to choose an event on; only the one with
    the best expected bound is tested, on fresh outputs. So one event is tested in all, and no
    correction for multiple tests is needed: P(`Audit.lower` > the true ε) ≤ 1 − ``confidence``.
    """
    requested = [comparisons] if isinstance(comparisons, Comparison) else list(comparisons)
    stated = claim if isinstance(claim, Claim) else Claim(float(claim))
    checked_confidence(confidence)
    if not requested:
        raise UnsoundRequest(
            "there is nothing to audit; give at least one comparison", field="comparisons"
        )
    if samples < LEAST_SAMPLES:
        raise UnsoundRequest(
            f"samples is {samples}; give at least {LEAST_SAMPLES}",
            field="samples",
            given=samples,
            needed=LEAST_SAMPLES,
        )
    tests = samples // 2
    chosen = [_choose(comparison, stated, samples - tests, confidence) for comparison in requested]
    best = max(range(len(requested)), key=lambda i: chosen[i].expected_bound)
    event = chosen[best].event
    sides = (requested[best].first, requested[best].second)
    hits = int(event.contains(of_size(sides[event.swapped](tests), tests)).sum())
    other = int(event.contains(of_size(sides[not event.swapped](tests), tests)).sum())
    lower = epsilon_below(hits, tests, other, tests, delta=stated.delta, confidence=confidence)
    return Audit(
        claim=stated,
        lower=float(lower),
        confidence=confidence,
        comparison=requested[best].name,
        words=event.words,
        samples=2 * (len(requested) * (samples - tests) + tests),
        tests=tests,
        event=event,
    )


def _choose(comparison: Comparison, claim: Claim, size: int, confidence: float) -> ChosenEvent:
    """Two fifths of the outputs to learn events on, the rest to pick one."""
    first, second = (of_size(side(size), size) for side in (comparison.first, comparison.second))
    cut = 2 * size // 5
    return choose(
        (first[:cut], second[:cut]),
        (first[cut:], second[cut:]),
        delta=claim.delta,
        confidence=confidence,
        both_ways=comparison.both_ways,
    )
