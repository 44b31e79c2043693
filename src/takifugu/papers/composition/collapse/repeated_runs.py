"""Attacks by repetition: exact losses, exact waiting times, and adversaries who see the outputs.

Losses are rational numbers, so that a loss of 0 is a proof and not a rounding. The number of runs
until the secret is revealed (`WaitingTime`) has an exact law.

`trace_attack` attacks one dataset and keeps the exact posterior by Bayes' rule. `simulate` runs
many adversaries at once, each against its own dataset, and counts the runs that each needs. An
adversary sees nothing but outputs; the secret that it declares is checked afterwards.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from takifugu._core.numeric import Booleans, Integers
from takifugu._core.rounding import up
from takifugu.errors import InvalidPrior, InvalidWorld, TooLarge, UnsoundRequest

if TYPE_CHECKING:
    from takifugu.papers.composition.collapse import Collapse, Posterior, Stage

Number = int | float | str | Decimal | Fraction | np.integer[Any] | np.floating[Any]
Exact = Fraction | float  # a float only when it is infinite


def exact(value: Number, field: str) -> Fraction:
    """The rational number that ``value`` is: a float counts as the binary fraction it holds.

    Write ``"0.1"`` or ``Fraction(1, 10)`` for one tenth.
    """
    plain = value.item() if isinstance(value, np.generic) else value
    try:
        return Fraction(plain)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        raise InvalidPrior(
            field, given=f"holds {value!r}", needed="hold finite rational numbers"
        ) from error


def shares(weights: Sequence[Number], field: str) -> tuple[Fraction, ...]:
    """Positive ``weights`` as exact probabilities: divided by their total."""
    values = [exact(weight, field) for weight in weights]
    if not values:
        raise InvalidPrior(field, given="is empty", needed="hold at least one weight")
    if min(values) <= 0:
        raise InvalidPrior(
            field, given=f"holds {min(values)}", needed="hold weights above 0; leave out the rest"
        )
    total = sum(values)
    return tuple(value / total for value in values)


def open_probability(value: Number, field: str) -> Fraction:
    """A probability strictly between 0 and 1."""
    probability = exact(value, field)
    if not 0 < probability < 1:
        raise InvalidPrior(field, given=f"is {probability}", needed="be above 0 and below 1")
    return probability


@dataclass(frozen=True)
class ExactLoss:
    """A Pufferfish loss as the exact e^ε: the factor by which the odds can move.

    Attributes:
        ratio: e^ε, a rational number of at least 1, or infinity.
    """

    ratio: Exact

    def __post_init__(self) -> None:
        if not self.ratio >= 1:
            raise ValueError("a loss moves the odds by a factor of at least 1")

    @property
    def is_zero(self) -> bool:
        """Whether nothing at all is revealed. Exact, without rounding."""
        return self.ratio == 1

    @property
    def epsilon(self) -> float:
        """ε = log of `ratio`, rounded up; 0 only where the loss is exactly 0."""
        return log_up(self.ratio)


def log_up(ratio: Exact) -> float:
    """The logarithm of a positive rational number, rounded up; exactly 0 at 1."""
    if ratio == 1:
        return 0.0
    if isinstance(ratio, float):
        return math.inf
    shift = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    near_one = float(ratio / Fraction(2) ** shift)  # between 1/2 and 2: no overflow
    return float(up(math.log(near_one) + shift * math.log(2)))


def worst_of(left: Mapping[Any, Fraction], right: Mapping[Any, Fraction]) -> ExactLoss:
    """The loss between two exact laws of the output, in both directions."""
    worst: Exact = Fraction(1)
    for output in {**left, **right}:
        p, q = left.get(output, Fraction(0)), right.get(output, Fraction(0))
        if p != q:
            worst = max(worst, max(p, q) / min(p, q) if min(p, q) > 0 else math.inf)
    return ExactLoss(worst)


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


BATCH = 2**14  # adversaries that are simulated together


@dataclass(frozen=True)
class PrintedNumber:
    """A number that the paper prints, beside the exact one."""

    what: str
    printed: Fraction | float
    exact: Fraction | float


@dataclass(frozen=True)
class AttackStep:
    """The posterior after ``run`` runs; run 0 is the prior."""

    run: int
    output: Hashable
    posterior: tuple[Fraction, ...]
    bounds: tuple[tuple[Fraction, Fraction], ...]
    candidates: int

    @property
    def revealed(self) -> bool:
        """Whether every statement is certain, one way or the other, under every prior."""
        return all(low == high and low in (0, 1) for low, high in self.bounds)


@dataclass(frozen=True)
class AttackTrace:
    """One attack, run by run.

    Attributes:
        statements: What the probabilities of each step are about.
        truth: Whether each statement is true of the attacked dataset.
        exclusive: Whether exactly one of the statements is true of any dataset.
        steps: The prior, then one step for every run.
    """

    statements: tuple[str, ...]
    truth: tuple[bool, ...]
    exclusive: bool
    steps: tuple[AttackStep, ...]

    @property
    def revealed_at(self) -> int | None:
        """The first run after which every statement is certain; None if there was none."""
        return next((step.run for step in self.steps if step.revealed), None)


def trace_attack(example: "Collapse", runs: int, *, rng: np.random.Generator) -> AttackTrace:
    """Attack one dataset, drawn from the prior, with ``runs`` runs; the posterior is exact."""
    at_least_one("runs", runs)
    stage = example.stage
    dataset = stage.draw(1, rng=rng)
    posterior = example.initial_posterior()
    steps = [_step(0, None, posterior)]
    for run in range(1, runs + 1):
        output = stage.output(int(stage.answer(dataset, rng=rng)[0]))
        posterior = posterior.after(output)
        steps.append(_step(run, output, posterior))
    truth = stage.holds(int(dataset[0]))
    return AttackTrace(stage.statements, truth, stage.exclusive, tuple(steps))


def _step(run: int, output: Hashable, posterior: "Posterior") -> AttackStep:
    return AttackStep(run, output, posterior.probabilities, posterior.bounds, posterior.candidates)


@dataclass(frozen=True, eq=False)
class SimulatedAttacks:
    """Many attacks, each on its own dataset.

    Attributes:
        runs: ``[repetition]``: the run at which the adversary declared the secret; 0 if it had
            not by run ``limit``.
        right: ``[repetition]``: whether what it declared is true.
        limit: The number of runs after which an attack was given up.
    """

    runs: Integers
    right: Booleans
    limit: int

    @property
    def unrevealed(self) -> int:
        """How many attacks were given up."""
        return int((self.runs == 0).sum())

    @property
    def wrong(self) -> int:
        """How many adversaries declared a secret that is not the true one."""
        return int((~self.right & (self.runs > 0)).sum())

    @property
    def mean(self) -> float:
        """The mean number of runs; an error if some attacks were given up."""
        if self.unrevealed:
            raise UnsoundRequest(
                f"{self.unrevealed} of {len(self.runs)} attacks were given up after {self.limit}"
                " runs, so that a mean would be too small; raise `limit`, or use `runs`",
                field="limit",
                given=self.limit,
            )
        return float(self.runs.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of `mean`; infinite for a single repetition."""
        if len(self.runs) < 2:
            return math.inf
        return float(self.runs.std(ddof=1)) / math.sqrt(len(self.runs))

    def share(self, run: int) -> float:
        """The share of attacks that ended exactly at ``run``."""
        return float((self.runs == run).mean())

    def share_error(self, run: int) -> float:
        """The standard error of `share`."""
        share = self.share(run)
        return math.sqrt(share * (1 - share) / len(self.runs))


def simulate(
    example: "Collapse", repetitions: int, *, rng: np.random.Generator, limit: int = 10_000
) -> SimulatedAttacks:
    """Attack ``repetitions`` datasets, until each secret is declared or ``limit`` runs are over."""
    return join_batches(list(simulate_in_batches(example, repetitions, rng=rng, limit=limit)))


def join_batches(parts: list[SimulatedAttacks]) -> SimulatedAttacks:
    """Several batches as one."""
    runs = np.concatenate([part.runs for part in parts])
    right = np.concatenate([part.right for part in parts])
    return SimulatedAttacks(runs, right, parts[0].limit)


def simulate_in_batches(
    example: "Collapse", repetitions: int, *, rng: np.random.Generator, limit: int = 10_000
) -> Iterator[SimulatedAttacks]:
    """As `simulate`, a batch at a time, for callers that show progress."""
    at_least_one("repetitions", repetitions)
    at_least_one("limit", limit)
    stage = example.stage
    for start in range(0, repetitions, BATCH):
        yield _batch(stage, min(BATCH, repetitions - start), rng, limit)


def _batch(stage: "Stage", size: int, rng: np.random.Generator, limit: int) -> SimulatedAttacks:
    datasets = stage.draw(size, rng=rng)
    runs, right = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=bool)
    active, adversaries = np.arange(size), stage.adversaries(size)
    for run in range(1, limit + 1):
        adversaries = adversaries.see(stage.answer(datasets[active], rng=rng))
        declared = adversaries.declared
        done = declared >= 0
        ended = active[done]
        runs[ended] = run
        right[ended] = declared[done] == stage.secret(datasets[ended])
        active, adversaries = active[~done], adversaries.only(~done)
        if not len(active):
            break
    return SimulatedAttacks(runs, right, limit)


def at_least_one(field: str, value: int) -> None:
    """Refuse a count below 1."""
    if not value >= 1:
        raise InvalidWorld(field, given=f"is {value}", needed="be at least 1")
