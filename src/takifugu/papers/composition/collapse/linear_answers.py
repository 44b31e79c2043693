"""Mechanisms that answer with GF(2)-linear maps: Example 2 of the paper, and all like it.

The data are n fair bits; the mechanism draws one of several linear maps and answers with its
value. One run reveals nothing about bit i if and only if the unit vector e_i is in the row space of
no map, for then some v with v_i = 1 has A v = 0, and x ↦ x ⊕ v is a
bijection between the datasets with x_i = 0 and with x_i = 1 that give the same answer. Bit i is
known as soon as e_i is in the joint row space of the maps seen.

In GF(2) bits are added without carry; a vector is an integer. Adversaries solve linear equations
instead of listing datasets. In Example 2 (Theorem 2) every bit is a secret, and two runs reveal
all.
"""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import cast

import numpy as np

from takifugu._core.numeric import Booleans, Integers
from takifugu.errors import InvalidMechanism, InvalidWorld, TooLarge
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.world import World
from takifugu.papers.composition.collapse.rational_world import room_for
from takifugu.papers.composition.collapse.repeated_runs import (
    ExactLoss,
    Number,
    PrintedNumber,
    WaitingTime,
    at_least_one,
    shares,
)
from takifugu.priors.explicit import Explicit
from takifugu.priors.secrets import entry_pairs
from takifugu.priors.universe import Tables


def parity(bits: int) -> int:
    """The sum of the bits, modulo 2."""
    return bits.bit_count() & 1


@dataclass(frozen=True)
class Span:
    """All sums of some given vectors, with the way to write each as such a sum.

    Attributes:
        rows: ``(vector, sum)`` in echelon form, largest first. Bit k of ``sum`` says that the k-th
            given vector takes part.
        given: How many vectors were given.
    """

    rows: tuple[tuple[int, int], ...] = ()
    given: int = 0

    @classmethod
    def of(cls, vectors: Iterable[int]) -> "Span":
        """The span of ``vectors``."""
        return cls().plus(vectors)

    def plus(self, vectors: Iterable[int]) -> "Span":
        """The span of the vectors so far and these; they are numbered on."""
        rows, given = list(self.rows), self.given
        for vector in vectors:
            rest, made = _reduce(rows, vector)
            if rest:
                rows.append((rest, made | 1 << given))
                rows.sort(reverse=True)
            given += 1
        return Span(tuple(rows), given)

    @property
    def rank(self) -> int:
        """How many of the given vectors are independent."""
        return len(self.rows)

    def sum_for(self, vector: int) -> int | None:
        """Which given vectors add up to ``vector``; None if none do."""
        rest, made = _reduce(self.rows, vector)
        return None if rest else made

    def __contains__(self, vector: int) -> bool:
        return self.sum_for(vector) is not None


def _reduce(rows: Sequence[tuple[int, int]], vector: int) -> tuple[int, int]:
    """Subtract rows until nothing more fits: what is left, and the sum of what was taken."""
    made = 0
    for row, sum_of_given in rows:
        if vector ^ row < vector:  # the leading bit of the row is in the vector
            vector ^= row
            made ^= sum_of_given
    return vector, made


def kernel(vectors: Sequence[int], width: int) -> tuple[int, ...]:
    """A basis of the ``width``-bit vectors v with parity(r & v) = 0 for every given r."""
    pivots: dict[int, int] = {}  # leading bit -> row, cleared in all others
    for vector in vectors:
        for pivot, row in pivots.items():
            if vector >> pivot & 1:
                vector ^= row
        if vector:
            lead = vector.bit_length() - 1
            pivots = {p: r ^ vector if r >> lead & 1 else r for p, r in pivots.items()}
            pivots[lead] = vector
    free = [column for column in range(width) if column not in pivots]
    return tuple(
        1 << column | sum(1 << pivot for pivot, row in pivots.items() if row >> column & 1)
        for column in free
    )


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


MAPS = 12  # the exact law of waiting looks at every subset of the maps

Output = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class LinearAnswers:
    """A mechanism that answers with one of several linear maps of n fair bits.

    Attributes:
        n: The number of bits, counted from 0 as in `Tables.bits`.
        maps: 0/1 matrices with n columns: for every map its rows.
        probabilities: The probability of drawing each map; exact.
        names: What each map is called in the output.
        secrets: The bits to protect; all of them by default.
        title: The example in one line.
        printed: Numbers that the paper prints about it.
    """

    n: int
    maps: tuple[tuple[tuple[int, ...], ...], ...]
    probabilities: tuple[Fraction, ...]
    names: tuple[str, ...]
    secrets: tuple[int, ...]
    title: str = "linear answers"
    printed: tuple[PrintedNumber, ...] = ()

    @classmethod
    def of(
        cls,
        maps: Sequence[Sequence[Sequence[int]]],
        *,
        probabilities: Sequence[Number] | None = None,
        names: Sequence[str] | None = None,
        secrets: Sequence[int] | None = None,
        title: str = "linear answers",
    ) -> "LinearAnswers":
        """From 0/1 matrices; ``probabilities`` are weights, equal by default.

        >>> LinearAnswers.of([[[1, 1]], [[0, 1]]], secrets=[0]).waiting().expectation
        Fraction(3, 1)
        """
        if not maps or not all(maps):
            raise InvalidMechanism(
                "maps",
                given="is empty or has a map without rows",
                needed="hold at least one row each",
            )
        n = len(maps[0][0])
        weights = shares(
            [1] * len(maps) if probabilities is None else probabilities, "probabilities"
        )
        called = tuple(f"map{j}" for j in range(len(maps))) if names is None else tuple(names)
        kept = tuple(tuple(tuple(int(bit) for bit in row) for row in rows) for rows in maps)
        bits = tuple(range(n)) if secrets is None else tuple(secrets)
        return cls(n, kept, weights, called, bits, title)

    def __post_init__(self) -> None:
        if not 1 <= self.n <= ANSWER_BITS:
            raise InvalidWorld("n", given=f"is {self.n}", needed=f"be from 1 to {ANSWER_BITS} bits")
        rows = [row for rows in self.maps for row in rows]
        if any(len(row) != self.n or not set(row) <= {0, 1} for row in rows):
            raise InvalidMechanism(
                "maps", given="hold another row", needed=f"hold rows of {self.n} zeros and ones"
            )
        if max(map(len, self.maps)) > ANSWER_BITS:
            raise InvalidMechanism(
                "maps", given="hold a longer map", needed=f"have at most {ANSWER_BITS} rows each"
            )
        if len(self.maps) > MAPS:
            raise TooLarge(
                f"{len(self.maps)} maps have too many subsets; use at most {MAPS}",
                size=len(self.maps),
                limit=MAPS,
            )
        if not len(self.maps) == len(self.probabilities) == len(set(self.names)) == len(self.names):
            raise InvalidMechanism(
                "names",
                given="or `probabilities` do not match the maps",
                needed="hold one for each map, each name once",
            )
        if not self.secrets or not set(self.secrets) <= set(range(self.n)):
            raise InvalidWorld(
                "secrets", given=f"is {self.secrets}", needed=f"name bits from 0 to {self.n - 1}"
            )

    def noting(self, *printed: PrintedNumber) -> "LinearAnswers":
        """The same mechanism with the numbers that the paper prints."""
        return replace(self, printed=printed)

    # --- exact ---

    @cached_property
    def masks(self) -> tuple[tuple[int, ...], ...]:
        """The rows of every map as integers: bit i is column i."""
        return tuple(tuple(_pack(row) for row in rows) for rows in self.maps)

    def flip(self, bit: int, number: int) -> int | None:
        """A change of the data that flips ``bit`` and leaves the answer of a map; None if none.

        It proves that the answer of map ``number`` reveals nothing about the bit.
        """
        return next((v for v in kernel(self.masks[number], self.n) if v >> bit & 1), None)

    def loss(self, runs: int = 1) -> ExactLoss:
        """The exact loss of ``runs`` runs for the secret bits: nothing, or everything.

        Each set of maps that the runs may draw is one stacked map, whose kernel decides.
        """
        at_least_one("runs", runs)
        drawn = combinations(range(len(self.maps)), min(runs, len(self.maps)))
        stacked = ([row for j in which for row in self.masks[j]] for which in drawn)
        safe = all(
            any(v >> bit & 1 for v in directions)
            for directions in (kernel(rows, self.n) for rows in stacked)
            for bit in self.secrets
        )
        return ExactLoss(Fraction(1) if safe else math.inf)

    def probability(self, number: int) -> Fraction:
        """P(one particular possible answer of a map | a bit it does not reveal) = c·2^−rank.

        Half of the 2^(n−rank) datasets with that answer have the bit at either value.
        """
        return self.probabilities[number] / (1 << Span.of(self.masks[number]).rank)

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """For every set of maps, as a bit mask, the joint row space; rows numbered map by map."""
        spans = []
        for subset in range(2 ** len(self.maps)):
            rows = [r for j, m in enumerate(self.masks) if subset >> j & 1 for r in m]
            spans.append(Span.of(rows))
        return tuple(spans)

    def reveals(self, subset: int) -> bool:
        """Whether a set of maps determines every secret bit."""
        return all(1 << bit in self.spans[subset] for bit in self.secrets)

    def waiting(self) -> WaitingTime:
        r"""The law of the runs until every secret bit is known: a coupon collector's.

        The maps seen after k runs lie within R with probability w(R)^k. Summing over the sets that
        do not reveal, with inclusion and exclusion, P(T > k) = Σ_R c_R·w(R)^k where
        c_R = Σ_{S ⊇ R, S hides} (−1)^{|S∖R|}.
        """
        coefficients = [int(not self.reveals(subset)) for subset in range(2 ** len(self.maps))]
        for j in range(len(self.maps)):
            for subset in range(len(coefficients)):
                if not subset >> j & 1:
                    coefficients[subset] -= coefficients[subset | 1 << j]
        return WaitingTime.of((c, self._drawn_within(s)) for s, c in enumerate(coefficients))

    def _drawn_within(self, subset: int) -> Fraction:
        return sum((c for j, c in enumerate(self.probabilities) if subset >> j & 1), Fraction(0))

    def revealing_outputs(self) -> tuple[Hashable, ...]:
        """Answers to the dataset of zeros that reveal a secret bit, as few as possible."""
        for size in range(1, len(self.maps) + 1):
            for which in combinations(range(len(self.maps)), size):
                span = self.spans[sum(1 << j for j in which)]
                if any(1 << bit in span for bit in self.secrets):
                    return tuple((self.names[j], (0,) * len(self.maps[j])) for j in which)
        return ()

    def initial_posterior(self) -> AffinePosterior:
        """Uniform over all datasets."""
        rows = tuple(zip(self.names, self.masks, strict=True))
        return AffinePosterior(self.n, rows, self.secrets)

    @property
    def stage(self) -> "LinearAnswers":
        """The mechanism itself, not written out."""
        return self

    @property
    def statements(self) -> tuple[str, ...]:
        """For every secret bit that it is 1; the first bit is x1, as in the paper."""
        return tuple(f"x{bit + 1}=1" for bit in self.secrets)

    @property
    def exclusive(self) -> bool:
        """Any number of bits may be 1."""
        return False

    def show(self, output: Hashable) -> str:
        """An output as text."""
        name, bits = cast("Output", output)
        return f"{name} {''.join(map(str, bits))}"

    # --- written out ---

    @cached_property
    def world(self) -> World:
        """The datasets, the prior and the secrets, written out."""
        room_for(sum(1 << self.n + Span.of(rows).rank for rows in self.masks), "table cells")
        universe = Tables.bits(self.n)
        pairs = entry_pairs(universe, entries=self.secrets)
        return World(universe, (Explicit.uniform(universe),), pairs)

    @cached_property
    def mechanism(self) -> FiniteMechanism:
        """The mechanism as a table."""

        def answer(dataset: tuple[int, ...]) -> dict[Hashable, Fraction]:
            x = _pack(dataset)
            return {
                (name, tuple(parity(row & x) for row in rows)): probability
                for name, rows, probability in zip(
                    self.names, self.masks, self.probabilities, strict=True
                )
            }

        return FiniteMechanism.from_function(self.world.universe, answer, name=self.title)

    # --- many at once: a dataset is an integer, an answer is its bits and the map above them ---

    def draw(self, size: int, *, rng: np.random.Generator) -> Integers:
        """``[size]``: datasets of fair bits."""
        return rng.integers(0, 2**self.n, size=size, dtype=np.int64)

    def answer(self, datasets: Integers, *, rng: np.random.Generator) -> Integers:
        """``[size]``: for each dataset the value of a map drawn for it."""
        p = np.array([float(probability) for probability in self.probabilities])
        drawn = rng.choice(len(p), size=len(datasets), p=p / p.sum())
        bits = np.zeros_like(datasets)
        for j, rows in enumerate(self.masks):
            x = datasets[drawn == j]
            value = np.zeros_like(x)
            for place, row in enumerate(rows):
                value |= (np.bitwise_count(x & row).astype(np.int64) & 1) << place
            bits[drawn == j] = value
        codes: Integers = drawn << ANSWER_BITS | bits
        return codes

    def secret(self, datasets: Integers) -> Integers:
        """``[size]``: the secret bits of each dataset."""
        return datasets & sum(1 << bit for bit in set(self.secrets))

    def holds(self, dataset: int) -> tuple[bool, ...]:
        """Which secret bits are 1."""
        return tuple(bool(dataset >> bit & 1) for bit in self.secrets)

    def output(self, code: int) -> Output:
        """The output that a code stands for."""
        number = code >> ANSWER_BITS
        return self.names[number], tuple(code >> i & 1 for i in range(len(self.maps[number])))

    def adversaries(self, size: int) -> LinearAdversaries:
        """Adversaries without an answer yet."""
        lengths = tuple(len(rows) for rows in self.maps)
        return LinearAdversaries.of(size, self.spans, lengths, self.secrets)


def _pack(bits: Sequence[int]) -> int:
    """Bits as an integer, the first one lowest."""
    return sum(bit << i for i, bit in enumerate(bits))


def many_secrets(n: int) -> LinearAnswers:
    """The mechanism of Example 2 on ``n`` fair bits.

    Type A is (x2⊕x1, …, xn⊕x1): it leaves a dataset and its complement. Type B is the parity of
    all bits if n is odd, of all but the first if n is even: always an odd number of bits, and at
    least three. The rows of type A span the vectors of even weight, type B is one of odd weight:
    neither holds a unit vector, and together they span everything.

    >>> example = many_secrets(5)
    >>> example.loss(1).epsilon, example.loss(2).epsilon, example.waiting().expectation
    (0.0, inf, Fraction(3, 1))
    """
    if not n >= 3:
        raise InvalidWorld("n", given=f"is {n}", needed="be at least 3 bits")
    differences = [[1 if i in (0, k) else 0 for i in range(n)] for k in range(1, n)]
    parity = [[1 if i > 0 or n % 2 else 0 for i in range(n)]]
    example = LinearAnswers.of(
        [differences, parity],
        names=["A", "B"],
        title=f"many secrets: each of {n} fair bits",
    )
    return example.noting(
        PrintedNumber("P(a type-A output | secret)", printed_type_a(n), example.probability(0)),
        PrintedNumber("expected number of runs", Fraction(3), example.waiting().expectation),
    )


def printed_type_a(n: int) -> Fraction:
    """P(a type-A output | a secret) as the proof of Theorem 2 prints it: 2^(1−n).

    The right value is 2^−n: with the printed one the 2^(n−1) outputs of type A would have
    probability 1 in all, and nothing would be left for type B. The theorem needs only that the
    value is the same for both secrets, and it is.
    """
    return Fraction(2, 2**n)
