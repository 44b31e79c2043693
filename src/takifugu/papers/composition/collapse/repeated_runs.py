"""Attacks by repetition: an adversary sees outputs, run by run, until the secret is certain.

`trace_attack` attacks one dataset and keeps the exact posterior by Bayes' rule. `simulate` runs
many adversaries at once, each against its own dataset, and counts the runs that each needs. An
adversary sees nothing but outputs; the secret that it declares is checked afterwards.
"""

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, Self

import numpy as np

from takifugu._core.numeric import Booleans, Integers
from takifugu.errors import InvalidWorld, UnsoundRequest
from takifugu.papers.composition.collapse.exact_loss import ExactLoss
from takifugu.papers.composition.collapse.waiting_time import WaitingTime

BATCH = 2**14  # adversaries that are simulated together


class Posterior(Protocol):
    """The exact posterior after some outputs; immutable."""

    def after(self, output: Hashable) -> "Posterior":
        """The posterior after one more output, by Bayes' rule."""
        ...

    @property
    def probabilities(self) -> tuple[Fraction, ...]:
        """The probability of each statement, given the outputs so far."""
        ...

    @property
    def bounds(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """The least and largest probability over all priors; equal when there is one prior."""
        ...

    @property
    def candidates(self) -> int:
        """How many datasets could have given these outputs."""
        ...


class Adversaries(Protocol):
    """Many adversaries, each with its own outputs."""

    def see(self, outputs: Integers) -> Self:
        """After one more output each."""
        ...

    def only(self, kept: Booleans) -> Self:
        """The adversaries at ``kept``, who continue."""
        ...

    @property
    def declared(self) -> Integers:
        """``[adversary]``: the secret that each declares, as a code; −1 while it is open."""
        ...


class Stage(Protocol):
    """A mechanism with a prior, ready to be run many times; datasets and outputs as codes."""

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements whose probabilities the adversary updates."""
        ...

    @property
    def exclusive(self) -> bool:
        """Whether exactly one of the statements is true."""
        ...

    def draw(self, size: int, *, rng: np.random.Generator) -> Integers:
        """``[size]``: datasets drawn from the prior."""
        ...

    def answer(self, datasets: Integers, *, rng: np.random.Generator) -> Integers:
        """``[size]``: one output of the mechanism for each dataset."""
        ...

    def secret(self, datasets: Integers) -> Integers:
        """``[size]``: the code of the true secret, to check what was declared."""
        ...

    def holds(self, dataset: int) -> tuple[bool, ...]:
        """Which statements are true."""
        ...

    def output(self, code: int) -> Hashable:
        """The output that a code stands for."""
        ...

    def adversaries(self, size: int) -> Adversaries:
        """Adversaries that have seen nothing yet."""
        ...


@dataclass(frozen=True)
class PrintedNumber:
    """A number that the paper prints, beside the exact one."""

    what: str
    printed: Fraction | float
    exact: Fraction | float


class Collapse(Protocol):
    """A mechanism that leaks little in one run and everything in two."""

    @property
    def title(self) -> str:
        """The example in one line."""
        ...

    @property
    def stage(self) -> Stage:
        """The mechanism and the prior that the simulation uses."""
        ...

    @property
    def printed(self) -> tuple[PrintedNumber, ...]:
        """What the paper prints about it, beside the exact numbers."""
        ...

    def loss(self, runs: int = 1) -> ExactLoss:
        """The exact loss of so many runs together."""
        ...

    def waiting(self) -> WaitingTime:
        """The exact law of the number of runs until the secret is revealed."""
        ...

    def revealing_outputs(self) -> tuple[Hashable, ...]:
        """Outputs that together are possible under one side of a secret pair only."""
        ...

    def initial_posterior(self) -> Posterior:
        """The prior, before the first run."""
        ...

    def show(self, output: Hashable) -> str:
        """An output as text."""
        ...


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


def trace_attack(example: Collapse, runs: int, *, rng: np.random.Generator) -> AttackTrace:
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


def _step(run: int, output: Hashable, posterior: Posterior) -> AttackStep:
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
    example: Collapse, repetitions: int, *, rng: np.random.Generator, limit: int = 10_000
) -> SimulatedAttacks:
    """Attack ``repetitions`` datasets, until each secret is declared or ``limit`` runs are over."""
    return join_batches(list(simulate_in_batches(example, repetitions, rng=rng, limit=limit)))


def join_batches(parts: list[SimulatedAttacks]) -> SimulatedAttacks:
    """Several batches as one."""
    runs = np.concatenate([part.runs for part in parts])
    right = np.concatenate([part.right for part in parts])
    return SimulatedAttacks(runs, right, parts[0].limit)


def simulate_in_batches(
    example: Collapse, repetitions: int, *, rng: np.random.Generator, limit: int = 10_000
) -> Iterator[SimulatedAttacks]:
    """As `simulate`, a batch at a time, for callers that show progress."""
    at_least_one("repetitions", repetitions)
    at_least_one("limit", limit)
    stage = example.stage
    for start in range(0, repetitions, BATCH):
        yield _batch(stage, min(BATCH, repetitions - start), rng, limit)


def _batch(stage: Stage, size: int, rng: np.random.Generator, limit: int) -> SimulatedAttacks:
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
