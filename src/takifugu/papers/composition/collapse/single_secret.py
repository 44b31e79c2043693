"""Example 1 (the paper, Theorem 1): one secret, one prior; the true dataset and a decoy."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import cast

from takifugu.errors import InvalidPrior
from takifugu.papers.composition.collapse.exact_loss import (
    Exact,
    ExactLoss,
    Number,
    open_probability,
    shares,
)
from takifugu.papers.composition.collapse.rational_world import ExactPosterior, RationalWorld
from takifugu.papers.composition.collapse.repeated_runs import PrintedNumber
from takifugu.papers.composition.collapse.waiting_time import WaitingTime


@dataclass(frozen=True)
class SingleSecret:
    """The mechanism of Example 1 for any prior.

    The datasets a1, a2, … are those of secret s1, and b1, b2, … those of s2. The answer to an
    a-dataset D is (D, D′) with D′ drawn from P(·|s2), to a b-dataset D it is (D′, D) with D′ drawn
    from P(·|s1). Either way P((a, b) | secret) = P(a|s1)·P(b|s2): one run reveals nothing. Two
    different answers share the true dataset only.

    Attributes:
        first: P(D | s1), exact, all above 0.
        second: P(D | s2), exact, all above 0.
        probability: P(s1), above 0 and below 1.
    """

    first: tuple[Fraction, ...]
    second: tuple[Fraction, ...]
    probability: Fraction

    @classmethod
    def of(
        cls,
        first: Sequence[Number],
        second: Sequence[Number],
        *,
        probability: Number = Fraction(1, 2),
    ) -> "SingleSecret":
        """From weights of the datasets of each secret, divided by their totals.

        >>> SingleSecret.of([1, 1], [1, 1]).waiting().expectation
        Fraction(3, 1)
        """
        return cls(
            shares(first, "first"),
            shares(second, "second"),
            open_probability(probability, "probability"),
        )

    @classmethod
    def sized(cls, n: int) -> "SingleSecret":
        """``n`` datasets for each secret, all different: 1 : 2 : … : n and 1 : 2 : 4 : …."""
        return cls.of(range(1, n + 1), [2**i for i in range(n)], probability=Fraction(2, 5))

    def __post_init__(self) -> None:
        for field, law in (("first", self.first), ("second", self.second)):
            if not law or min(law) <= 0 or sum(law) != 1:
                raise InvalidPrior(
                    field,
                    given="is not a distribution",
                    needed="hold probabilities that sum to 1; see `of`",
                )
        open_probability(self.probability, "probability")

    @property
    def title(self) -> str:
        """The example in one line."""
        return f"single secret: {len(self.first)} datasets of s1, {len(self.second)} of s2"

    @cached_property
    def stage(self) -> RationalWorld:
        """The world and the mechanism, written out in rational numbers."""
        a = dict(zip((f"a{i}" for i in range(1, len(self.first) + 1)), self.first, strict=True))
        b = dict(zip((f"b{i}" for i in range(1, len(self.second) + 1)), self.second, strict=True))
        return RationalWorld(
            datasets=(*a, *b),
            first=(True,) * len(a) + (False,) * len(b),
            prior=(
                *(self.probability * p for p in a.values()),
                *((1 - self.probability) * p for p in b.values()),
            ),
            rows=(
                *({(d, decoy): p for decoy, p in b.items()} for d in a),
                *({(decoy, d): p for decoy, p in a.items()} for d in b),
            ),
            names=("s1", "s2"),
        )

    def loss(self, runs: int = 1) -> ExactLoss:
        """The exact loss: every output's probabilities under s1 and s2, compared as fractions."""
        return self.stage.loss(runs)

    def waiting(self, secret: int | None = None) -> WaitingTime:
        """The law of the runs until the dataset is revealed, if s1 (1) or s2 (2) is true.

        The decoys come from the *other* secret's datasets, and k equal decoys reveal nothing:
        P(T > k | s1) = Σ P(D′|s2)^k, so that E = 1 + Σ p/(1 − p). If the other secret has a
        single dataset all decoys are equal, and no number of runs reveals the secret. Without
        ``secret``: averaged over the prior.
        """
        if secret is None:
            laws = self.waiting(1), self.waiting(2)
            return WaitingTime.mixed(
                zip((self.probability, 1 - self.probability), laws, strict=True)
            )
        if secret not in (1, 2):
            raise InvalidPrior("secret", given=f"is {secret}", needed="be 1 or 2")
        return WaitingTime.of((1, p) for p in (self.second if secret == 1 else self.first))

    def bound(self) -> Exact:
        """The paper's bound on the expected number of runs: 1 + 1/(1 − max P(D|s))."""
        largest = max(*self.first, *self.second)
        return math.inf if largest == 1 else 1 + 1 / (1 - largest)

    @property
    def printed(self) -> tuple[PrintedNumber, ...]:
        """Theorem 1's bound beside the exact expectations."""
        return (
            PrintedNumber(
                "bound on the runs if s1 is true", self.bound(), self.waiting(1).expectation
            ),
            PrintedNumber(
                "bound on the runs if s2 is true", self.bound(), self.waiting(2).expectation
            ),
        )

    def revealing_outputs(self) -> tuple[Hashable, ...]:
        """Two outputs with the same left (or right) side."""
        return self.stage.revealing_outputs()

    def initial_posterior(self) -> ExactPosterior:
        """The prior."""
        return self.stage.initial_posterior()

    def show(self, output: Hashable) -> str:
        """An output as text."""
        return "({}, {})".format(*cast("tuple[str, str]", output))
