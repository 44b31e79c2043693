"""Two secrets, one prior and one mechanism, written out in rational numbers."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, combinations_with_replacement, product
from math import comb, prod
from typing import Any

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu.errors import InvalidMechanism, TooLarge
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.world import World
from takifugu.papers.composition.collapse.repeated_runs import ExactLoss, at_least_one, worst_of
from takifugu.priors.explicit import Explicit
from takifugu.priors.secrets import OneOf, SecretPair, both_ways
from takifugu.priors.universe import Universe

ROOM = 2**22  # table cells, and output sequences, that are written out


@dataclass(frozen=True, eq=False)
class RationalWorld:
    """A world of two exclusive secrets, exactly.

    Attributes:
        datasets: The possible datasets.
        first: For every dataset whether the first secret is true; if not, the second is.
        prior: For every dataset its exact probability.
        rows: For every dataset the exact law of the output.
        names: The two secrets.
    """

    datasets: tuple[Hashable, ...]
    first: tuple[bool, ...]
    prior: tuple[Fraction, ...]
    rows: tuple[Mapping[Any, Fraction], ...]
    names: tuple[str, str]

    def __post_init__(self) -> None:
        for law in (self.prior, *(tuple(row.values()) for row in self.rows)):
            if sum(law) != 1 or min(law) <= 0:
                raise InvalidMechanism(
                    "rows",
                    given="or `prior` are not distributions",
                    needed="hold positive probabilities that sum to exactly 1",
                )

    @property
    def statements(self) -> tuple[str, ...]:
        """The two secrets."""
        return self.names

    @property
    def exclusive(self) -> bool:
        """Exactly one of the two secrets is true."""
        return True

    @cached_property
    def outputs(self) -> tuple[Hashable, ...]:
        """Every output that some dataset can give, in order of appearance."""
        return tuple(dict.fromkeys(output for row in self.rows for output in row))

    @cached_property
    def world(self) -> World:
        """The same in floating point, as an instance of Pufferfish privacy."""
        universe = Universe(self.datasets)
        left, right = (
            OneOf(
                name, tuple(d for d, f in zip(self.datasets, self.first, strict=True) if f is side)
            )
            for name, side in zip(self.names, (True, False), strict=True)
        )
        prior = Explicit(universe, np.array([float(p) for p in self.prior]))
        return World(universe, (prior,), both_ways([SecretPair(left, right)]))

    @cached_property
    def mechanism(self) -> FiniteMechanism:
        """The mechanism in floating point, as a table."""
        room_for(len(self.datasets) * len(self.outputs), "table cells")
        rows = dict(zip(self.datasets, self.rows, strict=True))
        return FiniteMechanism.from_function(self.world.universe, rows.__getitem__)

    def given(self, first: bool, runs: tuple[Hashable, ...]) -> Fraction:
        """P(these outputs in this order | the first, or the second, secret), exactly."""
        joint = probability = Fraction(0)
        for f, p, row in zip(self.first, self.prior, self.rows, strict=True):
            if f is first:
                probability += p
                joint += p * prod((row.get(o, Fraction(0)) for o in runs), start=Fraction(1))
        return joint / probability

    def loss(self, runs: int = 1) -> ExactLoss:
        """The exact loss of ``runs`` runs, over all outputs and both directions.

        The probability of outputs does not depend on their order, so every multiset is listed once.
        """
        at_least_one("runs", runs)
        if runs >= 2 and self.revealing_outputs():
            return ExactLoss(math.inf)
        room_for(comb(len(self.outputs) + runs - 1, runs), "output sequences")
        seen = list(combinations_with_replacement(self.outputs, runs))
        left, right = ({o: self.given(side, o) for o in seen} for side in (True, False))
        return worst_of(left, right)

    def revealing_outputs(self) -> tuple[Hashable, ...]:
        """Two outputs of one dataset that no dataset of the other secret can give; () if none."""
        for f, row in zip(self.first, self.rows, strict=True):
            others = [r for g, r in zip(self.first, self.rows, strict=True) if g is not f]
            for a, b in combinations(row, 2):
                if not any(a in r and b in r for r in others):
                    return a, b
        return ()

    def initial_posterior(self) -> "ExactPosterior":
        """The prior, before the first run."""
        return ExactPosterior(self, self.prior)

    # --- many at once: datasets and outputs as positions ---

    def draw(self, size: int, *, rng: np.random.Generator) -> Integers:
        """``[size]``: positions of datasets drawn from the prior."""
        p = np.array([float(probability) for probability in self.prior])
        return rng.choice(len(p), size=size, p=p / p.sum())

    def answer(self, datasets: Integers, *, rng: np.random.Generator) -> Integers:
        """``[size]``: positions of outputs, one drawn for each dataset."""
        steps, places = self._inverse
        which = (rng.random(len(datasets))[:, None] >= steps[datasets]).sum(axis=1)
        outputs: Integers = places[datasets, which]
        return outputs

    def secret(self, datasets: Integers) -> Integers:
        """``[size]``: 0 where the first secret is true, 1 where the second is."""
        return np.where(np.array(self.first)[datasets], 0, 1)

    def holds(self, dataset: int) -> tuple[bool, ...]:
        """Which of the two secrets is true."""
        return self.first[dataset], not self.first[dataset]

    def output(self, code: int) -> Hashable:
        """The output at a position."""
        return self.outputs[code]

    def adversaries(self, size: int) -> "ExplicitAdversaries":
        """Adversaries to whom every dataset is possible."""
        return ExplicitAdversaries(self, np.ones((size, len(self.datasets)), dtype=bool))

    @cached_property
    def _inverse(self) -> tuple[Floats, Integers]:
        """``[dataset, step]``: where the law of the output steps up, and to which output.

        The last step stands at infinity: a draw above all others takes the last output.
        """
        widest = max(len(row) for row in self.rows)
        steps = np.full((len(self.rows), widest), np.inf)
        places = np.zeros((len(self.rows), widest), dtype=np.int64)
        position = {output: i for i, output in enumerate(self.outputs)}
        for d, row in enumerate(self.rows):
            probabilities = np.array([float(probability) for probability in row.values()])
            steps[d, : len(row) - 1] = np.cumsum(probabilities)[:-1]
            places[d, : len(row)] = [position[output] for output in row]
        return steps, places

    @cached_property
    def possible(self) -> Booleans:
        """``[output, dataset]``: whether the dataset can give the output."""
        room_for(len(self.datasets) * len(self.outputs), "table cells")
        return np.array([[output in row for row in self.rows] for output in self.outputs])


@dataclass(frozen=True, eq=False)
class ExactPosterior:
    """The exact posterior over the datasets of a `RationalWorld`."""

    world: RationalWorld
    weights: tuple[Fraction, ...]

    def after(self, output: Hashable) -> "ExactPosterior":
        """Bayes' rule: every dataset weighted by its probability of this output."""
        rows = self.world.rows
        joint = [w * row.get(output, 0) for w, row in zip(self.weights, rows, strict=True)]
        total = sum(joint)
        if total == 0:
            raise InvalidMechanism(
                "output",
                given=f"{output!r} cannot follow the outputs before it",
                needed="be one that some dataset still possible can give",
            )
        return replace(self, weights=tuple(w / total for w in joint))

    @property
    def probabilities(self) -> tuple[Fraction, ...]:
        """The probabilities of the two secrets."""
        pairs = zip(self.weights, self.world.first, strict=True)
        first = sum((w for w, f in pairs if f), Fraction(0))
        return first, 1 - first

    @property
    def bounds(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """The same probabilities twice: there is one prior."""
        return tuple((p, p) for p in self.probabilities)

    @property
    def candidates(self) -> int:
        """How many datasets could have given these outputs."""
        return sum(w > 0 for w in self.weights)


@dataclass(frozen=True, eq=False)
class ExplicitAdversaries:
    """Many adversaries, each with the datasets that are still possible given its outputs."""

    world: RationalWorld
    left: Booleans  # [adversary, dataset]

    def see(self, outputs: Integers) -> "ExplicitAdversaries":
        """Remove the datasets that cannot give the output."""
        return replace(self, left=self.left & self.world.possible[outputs])

    def only(self, kept: Booleans) -> "ExplicitAdversaries":
        """The adversaries at ``kept``, who continue."""
        return replace(self, left=self.left[kept])

    @property
    def declared(self) -> Integers:
        """``[adversary]``: 0 or 1 once the possible datasets agree on the secret, else −1."""
        first = np.array(self.world.first)
        some_first, some_second = self.left[:, first].any(axis=1), self.left[:, ~first].any(axis=1)
        return np.where(some_first & some_second, -1, np.where(some_first, 0, 1))


def repeated(mechanism: FiniteMechanism, runs: int) -> FiniteMechanism:
    """``runs`` independent runs of a mechanism on the same data as one mechanism."""
    at_least_one("runs", runs)
    size = len(mechanism.outputs) ** runs
    room_for(size * len(mechanism.universe), "table cells")
    table = mechanism.likelihood
    for _ in range(runs - 1):
        table = (table[:, :, None] * mechanism.likelihood[:, None, :]).reshape(len(table), -1)
    outputs = tuple(product(mechanism.outputs, repeat=runs))
    return FiniteMechanism(mechanism.universe, table, outputs, f"{runs} runs of {mechanism.name}")


def room_for(size: int, what: str) -> None:
    """Refuse to write out more than `ROOM`."""
    if size > ROOM:
        raise TooLarge(
            f"this would write out {size:,} {what}, more than {ROOM:,}; use a smaller world",
            size=size,
            limit=ROOM,
        )
