"""The exact law of the number of runs until the secret is revealed."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from takifugu.errors import InvalidPrior, TooLarge
from takifugu.papers.composition.collapse.exact_loss import Exact

LONGEST = 2**14  # runs; powers of fractions beyond this take too long


@dataclass(frozen=True)
class WaitingTime:
    r"""The law of T, the run at which the secret is revealed, as a sum of geometric tails.

    .. math:: P(T > k) = \sum_j c_j r_j^k \quad (k \ge 1), \qquad P(T > 0) = 1.

    All three examples of the paper have this form: the secret is still hidden after k runs if
    all k answers fell into one of a few uninformative classes, and r is the probability of a
    class. A rate of 1 is a class that is never left: there the secret is never revealed.

    >>> WaitingTime.of([(2, Fraction(1, 2))]).expectation
    Fraction(3, 1)
    """

    terms: tuple[tuple[Fraction, Fraction], ...]  # (coefficient c, rate r), 0 < r <= 1

    @classmethod
    def of(cls, terms: Iterable[tuple[Fraction | int, Fraction]]) -> "WaitingTime":
        """Collect ``(coefficient, rate)`` terms: equal rates are added, empty ones dropped."""
        total: defaultdict[Fraction, Fraction] = defaultdict(Fraction)
        for coefficient, rate in terms:
            total[rate] += coefficient
        kept = sorted((rate, c) for rate, c in total.items() if c != 0 and rate != 0)
        return cls(tuple((c, rate) for rate, c in kept))

    @classmethod
    def mixed(cls, parts: Iterable[tuple[Fraction, "WaitingTime"]]) -> "WaitingTime":
        """A mixture of several laws."""
        return cls.of((share * c, rate) for share, law in parts for c, rate in law.terms)

    def __post_init__(self) -> None:
        if any(not 0 < rate <= 1 for _, rate in self.terms):
            raise InvalidPrior(
                "terms",
                given="hold a rate outside (0, 1]",
                needed="hold probabilities of staying hidden",
            )
        if not 0 <= self.tail(1) <= 1:
            raise InvalidPrior(
                "terms", given=f"make P(T > 1) = {self.tail(1)}", needed="be a law of waiting"
            )

    def tail(self, k: int) -> Fraction:
        """P(T > k): the probability that ``k`` runs have not revealed the secret."""
        if k > LONGEST:
            raise TooLarge(
                f"the exact probability after {k:,} runs is out of reach; ask for at most"
                f" {LONGEST:,} runs",
                size=k,
                limit=LONGEST,
            )
        if k <= 0:
            return Fraction(1)
        return sum((c * rate**k for c, rate in self.terms), Fraction(0))

    def within(self, k: int) -> Fraction:
        """P(T ≤ k): the probability that ``k`` runs reveal the secret."""
        return 1 - self.tail(k)

    def probability(self, k: int) -> Fraction:
        """P(T = k): the probability that exactly the ``k``-th run reveals the secret."""
        return self.tail(k - 1) - self.tail(k) if k >= 1 else Fraction(0)

    @property
    def never(self) -> Fraction:
        """The probability that no number of runs reveals the secret."""
        return sum((c for c, rate in self.terms if rate == 1), Fraction(0))

    @property
    def expectation(self) -> Exact:
        """E[T] = Σ_k P(T > k), exact; infinite if the secret may never be revealed."""
        if self.never > 0:
            return math.inf
        return 1 + sum((c * rate / (1 - rate) for c, rate in self.terms), Fraction(0))

    @property
    def variance(self) -> Exact:
        """Var[T] from E[T²] = Σ_k (2k + 1)·P(T > k), exact; infinite like `expectation`."""
        mean = self.expectation
        if isinstance(mean, float):
            return math.inf
        second = 1 + sum(
            (c * (2 * r / (1 - r) ** 2 + r / (1 - r)) for c, r in self.terms), Fraction(0)
        )
        return second - mean**2

    def quantile(self, level: Fraction) -> int | float:
        """The least k with P(T ≤ k) ≥ ``level``; infinite if there is none."""
        if not 0 < level < 1:
            raise InvalidPrior("level", given=f"is {level}", needed="be above 0 and below 1")
        room = 1 - level
        if self.never > room or (self.never == room and any(r < 1 for _, r in self.terms)):
            return math.inf
        high = 1
        while self.tail(high) > room:
            high *= 2
        low = high // 2  # tail(low) > room >= tail(high)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.tail(middle) > room else (low, middle)
        return high
