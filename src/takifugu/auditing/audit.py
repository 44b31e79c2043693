"""Testing a privacy claim on outputs: how large must ε be, given what was seen?

An audit refutes or does not; it never proves. It draws outputs of a mechanism under the two sides
of a question (two neighbouring datasets; two secrets), picks one event on half of them, and counts
the event on the other half.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from takifugu.auditing.bounds import Claim, checked_confidence, epsilon_below
from takifugu.auditing.events import Chosen, Event, choose
from takifugu.auditing.outputs import checked
from takifugu.errors import UnsoundRequest

Sampler = Callable[[int], Any]
"""How many → that many independent outputs: a list, or an array with one output per row."""

LEAST_SAMPLES = 100


@dataclass(frozen=True)
class Question:
    """Two sides that a mechanism claims to keep apart by no more than ε.

    Attributes:
        first: Draws outputs under one neighbour, or given one secret.
        second: Draws outputs under the other.
        name: What is asked, in words that may be printed.
        both_ways: Whether the claim also bounds P(second) ≤ e^ε·P(first) + δ, as DP does.
    """

    first: Sampler
    second: Sampler
    name: str = "first or second"
    both_ways: bool = True


@dataclass(frozen=True)
class Audit:
    """What the outputs say about a claim.

    Attributes:
        claim: The (ε, δ) that was claimed.
        lower: A lower bound on the true ε at the claimed δ.
        confidence: At least how likely it is that ``lower`` holds, whatever the mechanism.
        question: Which two sides were told apart.
        words: The event that told them apart, without any value that was released.
        samples: How many outputs were drawn, for choosing and for testing.
        tests: How many outputs of either side the event was counted on.
        event: The event itself.
    """

    claim: Claim
    lower: float
    confidence: float
    question: str
    words: str
    samples: int
    tests: int
    event: Event = field(repr=False, compare=False)

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
        return (
            f"{self.verdict}: claimed {claimed}; ε ≥ {self.lower:.4f} with confidence"
            f" {self.confidence:.12g}, from {self.samples:,} outputs; {self.question};"
            f" event: {self.words}"
        )


def audit(
    questions: Question | Sequence[Question],
    claim: Claim | float,
    *,
    samples: int,
    confidence: float = 0.99,
) -> Audit:
    """Try to refute ``claim`` with ``samples`` outputs of either side of the best question.

    With several questions, each is given half of ``samples`` to choose an event on; the most
    promising one alone is tested, on outputs drawn afresh. So one event is tested in all, and no
    correction for many tests is needed: P(`Audit.lower` > the true ε) ≤ 1 − ``confidence``.
    """
    asked = [questions] if isinstance(questions, Question) else list(questions)
    stated = claim if isinstance(claim, Claim) else Claim(float(claim))
    checked_confidence(confidence)
    if not asked:
        raise UnsoundRequest("there is no question to audit; give at least one")
    if samples < LEAST_SAMPLES:
        raise UnsoundRequest(f"samples is {samples}; give at least {LEAST_SAMPLES}")
    tests = samples // 2
    chosen = [_choose(question, stated, samples - tests, confidence) for question in asked]
    best = max(range(len(asked)), key=lambda i: chosen[i].hope)
    event = chosen[best].event
    sides = (asked[best].first, asked[best].second)
    hits = int(event.contains(checked(sides[event.swapped](tests), tests)).sum())
    other = int(event.contains(checked(sides[not event.swapped](tests), tests)).sum())
    lower = epsilon_below(hits, tests, other, tests, delta=stated.delta, confidence=confidence)
    return Audit(
        claim=stated,
        lower=float(lower),
        confidence=confidence,
        question=asked[best].name,
        words=event.words,
        samples=2 * (len(asked) * (samples - tests) + tests),
        tests=tests,
        event=event,
    )


def _choose(question: Question, claim: Claim, size: int, confidence: float) -> Chosen:
    """Two fifths of the outputs to learn events on, the rest to pick one."""
    first, second = (checked(side(size), size) for side in (question.first, question.second))
    cut = 2 * size // 5
    return choose(
        (first[:cut], second[:cut]),
        (first[cut:], second[cut:]),
        delta=claim.delta,
        confidence=confidence,
        both_ways=question.both_ways,
    )
