"""Examples 1 and 3 of the paper: two exclusive secrets, one prior (Theorem 1) or many (Theorem 3).

In Example 1 the answer is the true dataset and a decoy. In Example 3 many priors keep the loss of
one run finite, but not that of two.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import cast

from takifugu.errors import InvalidPrior, InvalidWorld
from takifugu.finite.world import World
from takifugu.papers.composition.collapse.rational_world import ExactPosterior, RationalWorld
from takifugu.papers.composition.collapse.repeated_runs import (
    Exact,
    ExactLoss,
    Number,
    PrintedNumber,
    WaitingTime,
    at_least_one,
    log_up,
    open_probability,
    shares,
)
from takifugu.priors.explicit import Between, Knowledge
from takifugu.priors.secrets import OneOf, SecretPair, both_ways
from takifugu.priors.universe import Universe


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


CASES = ("1a", "1b", "2a", "2b")


@dataclass(frozen=True)
class Interval:
    """A probability known to lie between ``low`` and ``high``, neither 0 nor 1."""

    low: Fraction
    high: Fraction

    @classmethod
    def of(cls, low: Number, high: Number) -> "Interval":
        """From any rational numbers."""
        return cls(open_probability(low, "low"), open_probability(high, "high"))

    def __post_init__(self) -> None:
        open_probability(self.low, "low")
        open_probability(self.high, "high")
        if self.low > self.high:
            raise InvalidPrior(
                "low", given=f"is {self.low} and `high` is {self.high}", needed="be at most high"
            )

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Both ends."""
        return self.low, self.high

    @property
    def middle(self) -> Fraction:
        """Half way between the ends."""
        return (self.low + self.high) / 2


@dataclass(frozen=True)
class ManyPriors:
    """The mechanism of Example 3, for all priors within two intervals.

    Every dataset belongs to one of four cases: 1a (s1 is true, within U_T), 1b (s1 is true,
    outside), 2a (s1 is false, within U_F), 2b (s1 is false, outside). The answer is a pair of
    cases, the true one and one of the other side's two, by a fair coin.

    Attributes:
        true_inside: P(U_T | s1) lies here under every prior.
        false_inside: P(U_F | not s1) lies here under every prior.
        size: How many datasets each case has.
        probability: P(s1) in the posteriors that are shown; the loss does not depend on it.
    """

    true_inside: Interval
    false_inside: Interval
    size: int = 1
    probability: Fraction = Fraction(1, 2)

    @classmethod
    def sized(cls, n: int) -> "ManyPriors":
        """The paper's own illustration, with ``n`` datasets in every case.

        A patient with cancer is female with probability .35 to .65, one without with .4 to .6.
        """
        return cls(Interval.of("0.35", "0.65"), Interval.of("0.4", "0.6"), n)

    def __post_init__(self) -> None:
        if not self.size >= 1:
            raise InvalidWorld("size", given=f"is {self.size}", needed="be at least 1")
        open_probability(self.probability, "probability")

    @property
    def title(self) -> str:
        """The example in one line."""
        return f"many priors: 4 cases of {self.size} datasets"

    @property
    def ratios(self) -> tuple[Fraction, ...]:
        """The ends of P(ω|s1)/P(ω|not s1) over all priors, for each of the four outputs.

        P(U_T|s1) and P(U_F|not s1) move freely in their intervals, so both ends are attained.
        These are the eight arguments of the maximum in Theorem 3.
        """
        (lt, ut), (lf, uf) = self.true_inside.ends, self.false_inside.ends
        return (
            *(ut / lf, lt / uf),
            *((1 - ut) / uf, (1 - lt) / lf),
            *(lt / (1 - lf), ut / (1 - uf)),
            *((1 - ut) / (1 - lf), (1 - lt) / (1 - uf)),
        )

    def loss(self, runs: int = 1) -> ExactLoss:
        """The exact loss of one run, max |log ·| over `ratios`; infinite for two or more."""
        at_least_one("runs", runs)
        if runs > 1:
            return self.stage.loss(runs)
        return ExactLoss(max(max(ratio, 1 / ratio) for ratio in self.ratios))

    def printed_epsilon(self) -> float:
        """ε as Theorem 3 prints it: max log|·|, which misses one direction. Not a bound."""
        return max(log_up(ratio) for ratio in self.ratios)

    @property
    def printed(self) -> tuple[PrintedNumber, ...]:
        """Theorem 3 beside the exact values."""
        return (
            PrintedNumber("epsilon of one run", self.printed_epsilon(), self.loss().epsilon),
            PrintedNumber("expected number of runs", Fraction(3), self.waiting().expectation),
        )

    def waiting(self) -> WaitingTime:
        """The law of the runs until two answers differ: P(T > k) = 2·(1/2)^k under every prior."""
        return WaitingTime.of([(2, Fraction(1, 2))])

    def under(self, true_inside: Fraction, false_inside: Fraction) -> RationalWorld:
        """The world under one prior, written out; datasets of a case are alike."""
        shares = {
            "1a": self.probability * true_inside,
            "1b": self.probability * (1 - true_inside),
            "2a": (1 - self.probability) * false_inside,
            "2b": (1 - self.probability) * (1 - false_inside),
        }
        half = Fraction(1, 2)
        rows = {
            case: {(case, other): half for other in ("2a", "2b")}
            if case[0] == "1"
            else {(other, case): half for other in ("1a", "1b")}
            for case in CASES
        }
        datasets = tuple((case, i) for case in CASES for i in range(1, self.size + 1))
        return RationalWorld(
            datasets=datasets,
            first=tuple(case[0] == "1" for case, _ in datasets),
            prior=tuple(shares[case] / self.size for case, _ in datasets),
            rows=tuple(rows[case] for case, _ in datasets),
            names=("s1", "not s1"),
        )

    @cached_property
    def stage(self) -> RationalWorld:
        """The world under the prior in the middle of both intervals."""
        return self.under(self.true_inside.middle, self.false_inside.middle)

    @cached_property
    def corners(self) -> tuple[RationalWorld, ...]:
        """The world under the four extreme priors."""
        return tuple(
            self.under(t, f) for t, f in product(self.true_inside.ends, self.false_inside.ends)
        )

    @cached_property
    def world(self) -> World:
        """All priors at once: Θ as linear knowledge of P(D | s)."""
        universe = Universe(self.stage.datasets)

        def within(name: str, *cases: str) -> OneOf:
            kept = (d for d in self.stage.datasets if cast("tuple[str, int]", d)[0] in cases)
            return OneOf(name, tuple(kept))

        left, right = within("s1", "1a", "1b"), within("not s1", "2a", "2b")
        about = tuple(
            (
                secret,
                (
                    Between.of_probability(
                        universe, event, low=float(known.low), high=float(known.high)
                    ),
                ),
            )
            for secret, event, known in (
                (left, within("U_T", "1a"), self.true_inside),
                (right, within("U_F", "2a"), self.false_inside),
            )
        )
        pairs = both_ways([SecretPair(left, right)])
        return World(universe, Knowledge(universe, about), pairs)

    def revealing_outputs(self) -> tuple[Hashable, ...]:
        """Two outputs that share a side."""
        return self.stage.revealing_outputs()

    def initial_posterior(self) -> "PosteriorRange":
        """The prior in the middle, with the extreme ones around it."""
        return PosteriorRange(
            self.stage.initial_posterior(), tuple(w.initial_posterior() for w in self.corners)
        )

    def show(self, output: Hashable) -> str:
        """An output as text."""
        return "({}, {})".format(*cast("tuple[str, str]", output))


@dataclass(frozen=True)
class PosteriorRange:
    """The posterior under one prior, and its range over all of them (for a fixed P(s1)).

    The odds of s1 after any outputs rise or fall with each of P(U_T|s1) and P(U_F|not s1), so
    that the extremes stand at the corners.
    """

    middle: ExactPosterior
    corners: tuple[ExactPosterior, ...]

    def after(self, output: Hashable) -> "PosteriorRange":
        """Bayes' rule under every prior that is kept."""
        return replace(
            self,
            middle=self.middle.after(output),
            corners=tuple(corner.after(output) for corner in self.corners),
        )

    @property
    def probabilities(self) -> tuple[Fraction, ...]:
        """The probabilities of the two secrets under the prior in the middle."""
        return self.middle.probabilities

    @property
    def bounds(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """The least and largest probabilities over all priors."""
        ranges = zip(*(corner.probabilities for corner in self.corners), strict=True)
        return tuple((min(values), max(values)) for values in ranges)

    @property
    def candidates(self) -> int:
        """How many datasets could have given these outputs."""
        return self.middle.candidates
