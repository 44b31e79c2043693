"""What the necessary condition is about: all outputs, and which dataset must hide among which."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from takifugu._core.numeric import Floats, Integers, frozen
from takifugu.errors import InvalidMechanism, InvalidWorld, TooLarge
from takifugu.finite.leakage import same_world
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.world import World
from takifugu.priors.secrets import SecretPair

MOST_REQUIREMENTS = 20_000  # one linear program each, at one or two milliseconds


@dataclass(frozen=True)
class MechanismOutput:
    """One output of one of several mechanisms; ``mechanism`` is its place in their list."""

    mechanism: int
    name: str
    output: Hashable

    def __str__(self) -> str:
        return f"{self.name}#{self.mechanism}={self.output}"


@dataclass(frozen=True, eq=False)
class OutputTable:
    """Every output of every mechanism; the paper's likelihood vectors, one per row.

    Attributes:
        labels: What each row is.
        probability: ``[output, dataset]``: P(ω | D).
        log: ``[output, dataset]``: log P(ω | D), −∞ where it is 0.
    """

    labels: tuple[MechanismOutput, ...]
    probability: Floats
    log: Floats

    @property
    def mechanism(self) -> Integers:
        """``[output]``: the place of the mechanism it comes from."""
        return np.array([output.mechanism for output in self.labels], dtype=np.int64)

    def position(self, output: MechanismOutput) -> int:
        """The row of ``output``; an error if no mechanism gives it."""
        if output not in self.labels:
            raise InvalidMechanism(
                "output",
                given=f"{output} is not an output of the mechanisms",
                needed="be one of `OutputTable.labels`",
            )
        return self.labels.index(output)


@dataclass(frozen=True)
class Requirement:
    """A dataset with the left secret that must hide among datasets with the right one.

    Attributes:
        pair: The ordered secret pair (s, s′).
        dataset: The position of D*, a dataset with s that some prior allows.
        among: The positions of the datasets with s′ that the same prior allows.
        priors: The names of the priors that require exactly this.
    """

    pair: SecretPair
    dataset: int
    among: tuple[int, ...]
    priors: tuple[str, ...]


def output_table(world: World, mechanisms: Sequence[FiniteMechanism]) -> OutputTable:
    """All outputs of ``mechanisms``, which have to be over the datasets of ``world``."""
    for mechanism in mechanisms:
        same_world(world, mechanism)
    if not mechanisms:
        raise InvalidMechanism("mechanisms", given="is empty", needed="hold at least one mechanism")
    outputs = tuple(
        MechanismOutput(place, mechanism.name, output)
        for place, mechanism in enumerate(mechanisms)
        for output in mechanism.outputs
    )
    probability = frozen(np.concatenate([mechanism.likelihood.T for mechanism in mechanisms]))
    with np.errstate(divide="ignore"):
        return OutputTable(outputs, probability, frozen(np.log(probability)))


def supports(world: World, pair: SecretPair, prior: int) -> tuple[Integers, Integers]:
    """The datasets with either secret that a prior allows; both empty where it leaves one out."""
    possible = world.weights[prior] > 0
    left = np.flatnonzero(world.mask(pair.left) & possible)
    right = np.flatnonzero(world.mask(pair.right) & possible)
    if not left.size or not right.size:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing
    return left, right


def requirements(world: World) -> tuple[Requirement, ...]:
    """Every (pair, dataset, support) that the necessary condition covers, each once.

    A dataset of probability 0 under a prior does not count, neither as D* nor among the D_ℓ: in
    the proof of the theorem both maxima run over datasets of positive weight.
    """
    required: dict[tuple[int, int, tuple[int, ...]], list[str]] = {}
    for p, pair in enumerate(world.pairs):
        for t, prior in enumerate(world.listed_priors):
            left, right = supports(world, pair, t)
            among = tuple(int(i) for i in right)
            for dataset in left:
                required.setdefault((p, int(dataset), among), []).append(prior.name)
    if not required:
        raise InvalidWorld(
            "priors",
            given="leave every secret pair without support",
            needed="give both sides of some pair a positive probability",
        )
    if len(required) > MOST_REQUIREMENTS:
        raise TooLarge(
            f"the necessary condition is {len(required):,} linear programs here and at most"
            f" {MOST_REQUIREMENTS:,} are solved; use fewer pairs or a smaller world",
            size=len(required),
            limit=MOST_REQUIREMENTS,
        )
    return tuple(
        Requirement(world.pairs[p], dataset, among, tuple(names))
        for (p, dataset, among), names in required.items()
    )
