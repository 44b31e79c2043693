"""Everything that `takifugu check` reports about the mechanisms of a world, as one value."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

from takifugu._core.rounding import up
from takifugu.errors import TooLarge
from takifugu.finite.dp_loss import by_entry, per_record
from takifugu.finite.files import WorldFile
from takifugu.finite.joint_runs import JointLeakage, joint_leakage
from takifugu.finite.leakage import Leakage, leakage
from takifugu.finite.linearity import Composition, linearity
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.world import World
from takifugu.priors.explicit import Knowledge
from takifugu.priors.secrets import SecretPair
from takifugu.priors.universe import Name, Tables

MOST_CELLS = 2**22  # pairs × priors × outputs checked for one mechanism
JOINT_BOXES = 2_000  # boxes searched for each pair and prior when all mechanisms run once


@dataclass(frozen=True)
class SeenOutputs:
    """Outputs that, seen together, distinguish a pair under a prior."""

    pair: SecretPair
    prior: str
    outputs: tuple[Hashable, ...]


@dataclass(frozen=True)
class Step:
    """The loss of some number of runs.

    Attributes:
        runs: How many runs on the same data.
        epsilon: Their loss together: an upper bound.
        attained: The loss of ``worst``: a lower bound.
        linear: What the losses of the single runs add up to.
        worst: What is seen in the worst case.
    """

    runs: int
    epsilon: float
    attained: float
    linear: float
    worst: SeenOutputs


@dataclass(frozen=True)
class DpLosses:
    """Differential privacy by replacement, of one cell or of one record: upper bounds."""

    entries: tuple[tuple[Name, float], ...]
    record: float

    @property
    def entry(self) -> float:
        """The per-entry loss: the worst of all entries."""
        return max(epsilon for _, epsilon in self.entries)


@dataclass(frozen=True)
class MechanismVerdict:
    """The verdict on one mechanism.

    Attributes:
        name: Its name in the file.
        once: The loss of one run; ``once.kind`` says whether it is exact or an upper bound.
        claim: What its author claims for one run, or None.
        kept: Whether the claim is true: ``"unclear"`` if it lies between the bounds on the loss.
        dp: Its DP losses; None if the datasets are not tables.
        composition: Whether the loss adds up over runs.
        growth: The loss of 1, 2, … runs, as far as it could be computed.
    """

    name: str
    once: Leakage
    claim: float | None
    kept: Literal["yes", "no", "unclear"] | None
    dp: DpLosses | None
    composition: Composition
    growth: tuple[Step, ...]


@dataclass(frozen=True)
class SetVerdict:
    """The verdict on several mechanisms that run on the same data.

    Attributes:
        once: The loss of one run of each, all seen together; its ``linear`` is the sum of their
            losses. None if it is out of reach.
        composition: Whether their losses add up, over any runs of any of them.
    """

    once: Step | None
    composition: Composition


@dataclass(frozen=True)
class Verdict:
    """What a world file is, and the verdict on its mechanisms.

    Attributes:
        file: The file.
        mechanisms: The verdict on each mechanism alone.
        together: The verdict on all of them together; None if there is only one.
    """

    file: WorldFile
    mechanisms: tuple[MechanismVerdict, ...]
    together: SetVerdict | None

    @property
    def claims_kept(self) -> bool:
        """Whether no mechanism breaks what it claims."""
        return all(one.kept != "no" for one in self.mechanisms)


def judge(file: WorldFile, *, runs: int = 4) -> Verdict:
    """Measure every mechanism of ``file``, over up to ``runs`` runs, and all of them together."""
    verdicts = [
        _judge(file.world, mechanism, claim, runs)
        for mechanism, claim in zip(file.mechanisms, file.claims, strict=True)
    ]
    return Verdict(file, tuple(verdicts), _together(file, [found.once for found in verdicts]))


def _together(file: WorldFile, once: Sequence[Leakage]) -> SetVerdict | None:
    """Whether the mechanisms compose with each other, each composing with itself or not."""
    if len(once) == 1:
        return None
    world, mechanisms = file.world, file.mechanisms
    linear = float(up(fsum(loss.epsilon for loss in once)))
    try:
        joint = joint_leakage(world, mechanisms, boxes=JOINT_BOXES)
    except TooLarge:
        step = None
    else:
        step = _step(len(once), joint, linear)
    return SetVerdict(step, linearity(world, mechanisms, once))


def _judge(
    world: World, mechanism: FiniteMechanism, claim: float | None, runs: int
) -> MechanismVerdict:
    priors = 1 if isinstance(world.priors, Knowledge) else len(world.priors)
    cells = len(world.pairs) * priors * len(mechanism.outputs)
    if cells > MOST_CELLS:
        raise TooLarge(
            f"mechanism {mechanism.name!r} has {cells:,} combinations of pair, prior and output and"
            f" at most {MOST_CELLS:,} are checked; use fewer pairs or priors",
            size=cells,
            limit=MOST_CELLS,
        )
    once = leakage(world, mechanism)
    return MechanismVerdict(
        mechanism.name,
        once,
        claim,
        None if claim is None else _kept(once, claim),
        _dp_losses(mechanism),
        linearity(world, [mechanism], [once]),
        _growth(world, mechanism, once, runs),
    )


def _kept(once: Leakage, claim: float) -> Literal["yes", "no", "unclear"]:
    if once.epsilon <= claim:
        return "yes"
    return "no" if lower_bound(once) > claim else "unclear"


def lower_bound(once: Leakage) -> float:
    """A lower bound on the loss of one run."""
    if once.kind == "upper":
        return 0.0
    return max(0.0, once.epsilon - once.slack)


def _dp_losses(mechanism: FiniteMechanism) -> DpLosses | None:
    if not isinstance(mechanism.universe, Tables):
        return None
    losses = by_entry(mechanism).tolist()
    entries = tuple(zip(mechanism.universe.entries, losses, strict=True))
    return DpLosses(entries, per_record(mechanism).epsilon)


def _growth(world: World, mechanism: FiniteMechanism, once: Leakage, runs: int) -> tuple[Step, ...]:
    """The loss of 1, 2, … runs; ends early where the exact loss is out of reach."""
    worst = SeenOutputs(once.worst.pair, once.worst.prior, (once.worst.output,))
    steps = [Step(1, once.epsilon, lower_bound(once), once.epsilon, worst)]
    for k in range(2, runs + 1):
        try:
            joint = joint_leakage(world, [(mechanism, k)])
        except TooLarge:
            break
        steps.append(_step(k, joint, float(up(k * once.epsilon))))
    return tuple(steps)


def _step(runs: int, joint: JointLeakage, linear: float) -> Step:
    seen = joint.worst.output
    outputs = seen if isinstance(seen, tuple) else (seen,)
    worst = SeenOutputs(joint.worst.pair, joint.worst.prior, outputs)
    return Step(runs, joint.epsilon, joint.attained, linear, worst)
