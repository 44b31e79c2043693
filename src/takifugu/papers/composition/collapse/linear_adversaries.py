"""Adversaries who solve linear equations over GF(2) instead of listing datasets."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import cast

import numpy as np

from takifugu._core.numeric import Booleans, Integers
from takifugu.errors import InvalidMechanism
from takifugu.papers.composition.collapse.gf2 import Span, parity

ANSWER_BITS = 32  # an output as one integer: the number of the map above so many answer bits


@dataclass(frozen=True)
class AffinePosterior:
    """The exact posterior over n fair bits after linear answers: uniform on an affine space.

    The probability of drawing a map does not depend on the data, so all datasets that solve the
    equations seen are equally likely. A bit is then known, or still a fair coin.

    Attributes:
        n: The number of bits.
        maps: For every map its name and its rows as integers.
        secrets: The bits of interest.
        equations: The left sides of the equations seen.
        values: Their right sides: bit k belongs to the k-th equation.
    """

    n: int
    maps: tuple[tuple[str, tuple[int, ...]], ...]
    secrets: tuple[int, ...]
    equations: Span = field(default_factory=Span)
    values: int = 0

    def after(self, output: Hashable) -> "AffinePosterior":
        """Add the equations of one answer; an answer that no dataset gives is an error."""
        name, bits = cast("tuple[str, tuple[int, ...]]", output)
        equations, values = self.equations, self.values
        for row, bit in zip(dict(self.maps)[name], bits, strict=True):
            known = equations.sum_for(row)
            if known is None:
                values |= bit << equations.given
                equations = equations.plus([row])
            elif parity(known & values) != bit:
                raise InvalidMechanism(
                    "output",
                    given=f"{output!r} contradicts the outputs before it",
                    needed="be one that some dataset still possible can give",
                )
        return replace(self, equations=equations, values=values)

    @property
    def probabilities(self) -> tuple[Fraction, ...]:
        """For every secret bit the probability that it is 1: 0, 1/2 or 1."""
        sums = (self.equations.sum_for(1 << bit) for bit in self.secrets)
        return tuple(
            Fraction(1, 2) if known is None else Fraction(parity(known & self.values))
            for known in sums
        )

    @property
    def bounds(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """The same probabilities twice: there is one prior."""
        return tuple((p, p) for p in self.probabilities)

    @property
    def candidates(self) -> int:
        """How many datasets solve all equations."""
        return 1 << self.n - self.equations.rank


@dataclass(frozen=True, eq=False)
class LinearAdversaries:
    """Many adversaries, each with the maps it has seen and what they answered.

    Attributes:
        spans: For every set of maps, as a bit mask, its joint row space.
        lengths: How many rows each map has.
        secrets: The bits of interest.
        seen: ``[adversary]``: the set of maps seen.
        answers: ``[adversary, map]``: the answer of each map seen, as an integer.
    """

    spans: tuple[Span, ...]
    lengths: tuple[int, ...]
    secrets: tuple[int, ...]
    seen: Integers
    answers: Integers

    @classmethod
    def of(
        cls, size: int, spans: tuple[Span, ...], lengths: tuple[int, ...], secrets: tuple[int, ...]
    ) -> "LinearAdversaries":
        """Adversaries without an answer yet."""
        nothing = np.zeros((size, len(lengths)), dtype=np.int64)
        return cls(spans, lengths, secrets, np.zeros(size, dtype=np.int64), nothing)

    def see(self, outputs: Integers) -> "LinearAdversaries":
        """Keep the answer beside those of the other maps."""
        number, bits = outputs >> ANSWER_BITS, outputs & (2**ANSWER_BITS - 1)
        answers = self.answers.copy()
        answers[np.arange(len(outputs)), number] = bits
        return replace(self, seen=self.seen | 1 << number, answers=answers)

    def only(self, kept: Booleans) -> "LinearAdversaries":
        """The adversaries at ``kept``, who continue."""
        return replace(self, seen=self.seen[kept], answers=self.answers[kept])

    @property
    def declared(self) -> Integers:
        """``[adversary]``: the secret bits, solved from the answers; −1 while one is open."""
        declared = np.full(len(self.seen), -1, dtype=np.int64)
        for subset in np.unique(self.seen).tolist():
            here = self.seen == subset
            declared[here] = self._solve(subset, self.answers[here])
        return declared

    def _solve(self, subset: int, answers: Integers) -> Integers:
        """The secret bits of adversaries who have all seen the same maps."""
        solved = np.zeros(len(answers), dtype=np.int64)
        for bit in self.secrets:
            sum_of_rows = self.spans[subset].sum_for(1 << bit)
            if sum_of_rows is None:
                return np.full(len(answers), -1, dtype=np.int64)
            ones = np.zeros(len(answers), dtype=np.int64)
            for number, length in enumerate(self.lengths):
                if subset >> number & 1:  # the rows of the set are numbered map by map
                    wanted = sum_of_rows & (2**length - 1)
                    ones += np.bitwise_count(answers[:, number] & wanted)
                    sum_of_rows >>= length
            solved |= (ones & 1) << bit
        return solved
