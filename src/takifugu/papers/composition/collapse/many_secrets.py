"""Example 2 of the paper (Theorem 2): n fair bits, each of them secret, and two types of answers.

An answer is (x2⊕x1, …, xn⊕x1), type A, or a parity of an odd number of bits, type B: a fair coin
decides. One run reveals nothing about bit i: some change of the data flips it and leaves the answer
as it is (`ManySecrets.flip`), so that the datasets with either value of the bit are matched one to
one. Both types together reveal all: type A leaves a dataset and its complement, whose parities
differ.

A dataset is an integer: bit i is ``x >> i & 1``. Adversaries solve two equations instead of listing
datasets.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import cast

import numpy as np

from takifugu._core.numeric import Booleans, Integers
from takifugu.errors import InvalidMechanism, InvalidWorld
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.world import World
from takifugu.papers.composition.collapse.rational_world import room_for
from takifugu.papers.composition.collapse.repeated_runs import (
    ExactLoss,
    PrintedNumber,
    WaitingTime,
    at_least_one,
)
from takifugu.priors.explicit import Explicit
from takifugu.priors.secrets import entry_pairs
from takifugu.priors.universe import Tables

TYPES = ("A", "B")
MAX_BITS = 32
HALF = Fraction(1, 2)

Output = tuple[str, tuple[int, ...]]  # its type, and the answer bit by bit


@dataclass(frozen=True)
class ManySecrets:
    """The mechanism of Example 2 on ``n`` fair bits, at least three.

    Type B is the parity of all bits if n is odd, of all but the first if n is even: always an odd
    number of bits, and at least three.

    >>> example = ManySecrets(5)
    >>> example.loss(1).epsilon, example.loss(2).epsilon, example.waiting().expectation
    (0.0, inf, Fraction(3, 1))
    """

    n: int

    def __post_init__(self) -> None:
        if not 3 <= self.n <= MAX_BITS:
            raise InvalidWorld("n", given=f"is {self.n}", needed=f"be from 3 to {MAX_BITS} bits")

    @property
    def title(self) -> str:
        """The example in one line."""
        return f"many secrets: each of {self.n} fair bits"

    # --- exact ---

    @cached_property
    def parities(self) -> tuple[tuple[int, ...], ...]:
        """For each type the bits that are added up for each bit of its answer."""
        everything = (1 << self.n) - 1
        return (
            tuple(1 | 1 << k for k in range(1, self.n)),
            (everything if self.n % 2 else everything - 1,),
        )

    def flip(self, bit: int, kind: int) -> int:
        """A change of the data that flips ``bit`` and leaves answers of a type: all bits, or two.

        Type B does not read the first bit where n is even, so that this one may flip alone.
        """
        if kind == 0:
            return (1 << self.n) - 1
        (read,) = self.parities[1]
        return 1 << bit | (1 << (1 if bit != 1 else 2) if read >> bit & 1 else 0)

    def loss(self, runs: int = 1) -> ExactLoss:
        """The exact loss of ``runs`` runs: nothing, which the flips prove, or everything."""
        at_least_one("runs", runs)
        hidden = all(
            self.flip(bit, kind) >> bit & 1
            and all(
                (row & self.flip(bit, kind)).bit_count() % 2 == 0 for row in self.parities[kind]
            )
            for bit, kind in product(range(self.n), range(len(TYPES)))
        )
        return ExactLoss(Fraction(1) if runs == 1 and hidden else math.inf)

    def probability(self, kind: int) -> Fraction:
        """P(one particular answer of a type | a bit): half of its datasets have either value."""
        return HALF / (1 << len(self.parities[kind]))

    def waiting(self) -> WaitingTime:
        """The law of the runs until both types were seen: P(T > k) = 2·(1/2)^k."""
        return WaitingTime.of([(2, HALF)])

    @property
    def printed(self) -> tuple[PrintedNumber, ...]:
        """Theorem 2 beside the exact values."""
        return (
            PrintedNumber(
                "P(a type-A output | secret)", printed_type_a(self.n), self.probability(0)
            ),
            PrintedNumber("expected number of runs", Fraction(3), self.waiting().expectation),
        )

    def revealing_outputs(self) -> tuple[Hashable, ...]:
        """Answers of both types to the dataset of zeros."""
        return tuple(
            (kind, (0,) * len(rows)) for kind, rows in zip(TYPES, self.parities, strict=True)
        )

    def initial_posterior(self) -> "BitsPosterior":
        """Uniform over all datasets."""
        return BitsPosterior(self)

    @property
    def stage(self) -> "ManySecrets":
        """The mechanism itself, not written out."""
        return self

    @property
    def statements(self) -> tuple[str, ...]:
        """For every bit that it is 1; the first bit is x1, as in the paper."""
        return tuple(f"x{bit + 1}=1" for bit in range(self.n))

    @property
    def exclusive(self) -> bool:
        """Any number of bits may be 1."""
        return False

    def show(self, output: Hashable) -> str:
        """An output as text."""
        kind, bits = cast("Output", output)
        return f"{kind} {''.join(map(str, bits))}"

    # --- written out ---

    @cached_property
    def world(self) -> World:
        """The datasets, the prior and the secrets, written out."""
        room_for((1 << self.n - 1) + 2 << self.n, "table cells")
        universe = Tables.bits(self.n)
        return World(universe, (Explicit.uniform(universe),), entry_pairs(universe))

    @cached_property
    def mechanism(self) -> FiniteMechanism:
        """The mechanism as a table."""

        def answer(dataset: tuple[int, ...]) -> dict[Hashable, Fraction]:
            x = sum(bit << i for i, bit in enumerate(dataset))
            return {
                (kind, tuple((row & x).bit_count() & 1 for row in rows)): HALF
                for kind, rows in zip(TYPES, self.parities, strict=True)
            }

        return FiniteMechanism.from_function(self.world.universe, answer, name=self.title)

    # --- many at once: a dataset is an integer, an answer is its bits and the type above them ---

    def draw(self, size: int, *, rng: np.random.Generator) -> Integers:
        """``[size]``: datasets of fair bits."""
        return rng.integers(0, 2**self.n, size=size, dtype=np.int64)

    def answer(self, datasets: Integers, *, rng: np.random.Generator) -> Integers:
        """``[size]``: for each dataset an answer of a type drawn for it."""
        drawn = rng.choice(len(TYPES), size=len(datasets), p=[0.5, 0.5])
        bits = np.zeros_like(datasets)
        for kind, rows in enumerate(self.parities):
            x = datasets[drawn == kind]
            values = [
                (np.bitwise_count(x & r).astype(np.int64) & 1) << i for i, r in enumerate(rows)
            ]
            bits[drawn == kind] = np.sum(values, axis=0)
        codes: Integers = drawn << MAX_BITS | bits
        return codes

    def solve(self, differences: Integers, parity: Integers) -> Integers:
        """The datasets that give both answers: of one and its complement that with the parity."""
        x = differences << 1  # if the first bit is 0
        wrong = (np.bitwise_count(x & self.parities[1][0]) & 1) != parity
        return np.where(wrong, x ^ (1 << self.n) - 1, x)

    def secret(self, datasets: Integers) -> Integers:
        """``[size]``: all bits of each dataset."""
        return datasets

    def holds(self, dataset: int) -> tuple[bool, ...]:
        """Which bits are 1."""
        return tuple(bool(dataset >> bit & 1) for bit in range(self.n))

    def output(self, code: int) -> Output:
        """The output that a code stands for."""
        kind = code >> MAX_BITS
        return TYPES[kind], tuple(code >> i & 1 for i in range(len(self.parities[kind])))

    def adversaries(self, size: int) -> "SolvingAdversaries":
        """Adversaries without an answer yet."""
        return SolvingAdversaries(self, np.full((size, len(TYPES)), -1, dtype=np.int64))


@dataclass(frozen=True)
class BitsPosterior:
    """The exact posterior over n fair bits: each is a fair coin until both types were seen.

    Attributes:
        example: The mechanism.
        seen: By type the answer that was seen.
    """

    example: ManySecrets
    seen: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def after(self, output: Hashable) -> "BitsPosterior":
        """Add one answer; one that contradicts another of its type is an error."""
        kind, bits = cast("Output", output)
        if self.seen.get(kind, bits) != bits:
            raise InvalidMechanism(
                "output",
                given=f"{output!r} contradicts the outputs before it",
                needed="be one that some dataset still possible can give",
            )
        return replace(self, seen={**self.seen, kind: bits})

    @property
    def probabilities(self) -> tuple[Fraction, ...]:
        """For every bit the probability that it is 1: 0, 1/2 or 1."""
        if len(self.seen) < len(TYPES):
            return (HALF,) * self.example.n
        answers = (
            np.array(sum(bit << i for i, bit in enumerate(self.seen[kind]))) for kind in TYPES
        )
        return tuple(map(Fraction, map(int, self.example.holds(int(self.example.solve(*answers))))))

    @property
    def bounds(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """The same probabilities twice: there is one prior."""
        return tuple((p, p) for p in self.probabilities)

    @property
    def candidates(self) -> int:
        """How many datasets give all answers seen."""
        known = sum(len(bits) for bits in self.seen.values())
        return 1 << self.example.n - known


@dataclass(frozen=True, eq=False)
class SolvingAdversaries:
    """Many adversaries, each with the answer of either type that it has seen.

    Attributes:
        example: The mechanism.
        answers: ``[adversary, type]``: as an integer; −1 while none was seen.
    """

    example: ManySecrets
    answers: Integers

    def see(self, outputs: Integers) -> "SolvingAdversaries":
        """Keep the answer beside that of the other type."""
        answers = self.answers.copy()
        answers[np.arange(len(outputs)), outputs >> MAX_BITS] = outputs & (2**MAX_BITS - 1)
        return replace(self, answers=answers)

    def only(self, kept: Booleans) -> "SolvingAdversaries":
        """The adversaries at ``kept``, who continue."""
        return replace(self, answers=self.answers[kept])

    @property
    def declared(self) -> Integers:
        """``[adversary]``: the bits, solved from both answers; −1 while one is missing."""
        solved = self.example.solve(self.answers[:, 0], self.answers[:, 1])
        return np.where((self.answers >= 0).all(axis=1), solved, -1)


def printed_type_a(n: int) -> Fraction:
    """P(a type-A output | a secret) as the proof of Theorem 2 prints it: 2^(1−n).

    The right value is 2^−n: with the printed one the 2^(n−1) outputs of type A would have
    probability 1 in all, and nothing would be left for type B. The theorem needs only that the
    value is the same for both secrets, and it is.
    """
    return Fraction(2, 2**n)
