"""Everything that `takifugu check` reports about the mechanisms of a world, as one value.

Whether losses add up over runs is proven, refuted or attacked by the NfC theorem (`linearity`).
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import comb, fsum, isinf
from typing import Literal

import numpy as np

from takifugu._core.rounding import down, up
from takifugu.errors import TooLarge
from takifugu.finite import nfc
from takifugu.finite.dp_loss import by_entry, per_record
from takifugu.finite.files import WorldFile
from takifugu.finite.joint_runs import JointLeakage, joint_leakage, joint_mechanism
from takifugu.finite.leakage import Leakage, leakage
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.world import World
from takifugu.priors.explicit import Explicit, Knowledge
from takifugu.priors.secrets import SecretPair
from takifugu.priors.universe import Name, Tables

MOST_NFC = 2**22  # numbers in the linear programs of the NfC theorem: some 10 seconds
MOST_COUPLED = 2**20  # numbers in those of the coupling kernels: about as long
LISTED_RUNS = 12  # all multisets of at most so many outputs are tried as attacks
TOUCHING = 1e-9  # two bounds this close are taken for the same number in words, never in figures


@dataclass(frozen=True)
class Composition:
    """Whether k runs leak at most what the losses of single runs add up to.

    The runs are of one mechanism, or of several in any mixture: then every run counts with the
    loss of its own mechanism. Mechanisms that each compose with themselves need not compose with
    each other: the theorem asks for one convex combination β that serves all of them.

    Attributes:
        linear: ``"yes"``: proven for every k. ``"almost"``: refuted by ``attack``, but k runs
            leak at most the sum of their losses plus a constant. ``"no"``: refuted, and with
            listed priors no constant helps either. ``"open"``: neither proven nor refuted.
            ``"void"``: one run already reveals everything.
        fails_below: No constant saves linear composition at an ε below this (the paper's NfC
            theorem): a lower bound.
        line: (ε, κ) such that k runs leak at most kε + κ, for every k, proven by the certificates
            of the NfC theorem: an upper bound.
        proven_at: k runs leak at most k times this, for every k, also after post-processing,
            proven by coupling kernels: an upper bound, infinite if there is no such kernel.
        dp_style: The least ε at which every dataset hides behind a single other one,
            P(ω|D) ≤ e^ε P(ω|D′): an upper bound.
        attack: Outputs whose repetition leaks more than linear composition allows; its claims are
            the losses of one run of each mechanism.
        note: What was left out and why; empty if nothing was.

    What was not computed, or does not exist, is None.
    """

    linear: Literal["yes", "almost", "no", "open", "void"]
    fails_below: float | None = None
    line: tuple[float, float] | None = None
    proven_at: float | None = None
    dp_style: float | None = None
    attack: nfc.Attack | None = None
    note: str = ""


def linearity(
    world: World, mechanisms: Sequence[FiniteMechanism], once: Sequence[Leakage]
) -> Composition:
    """Whether the losses of ``mechanisms`` add up over runs; ``once`` has those of one run each."""
    claims = [loss.epsilon for loss in once]
    if any(map(isinf, claims)):
        return Composition("void")
    if isinstance(world.priors, Knowledge):
        return _against_knowledge(world, mechanisms, once)
    size = _programmed(world, mechanisms)
    try:
        search = _search(world, mechanisms, claims, size)
    except TooLarge as error:
        return Composition("open", note=str(error))
    attack = search.attack
    excess, note = None, f"a proof was not tried: {size:,} numbers, at most {MOST_COUPLED:,}"
    if size <= MOST_COUPLED:
        kernels = nfc.best_couplings(world, mechanisms, claims)
        excess, note = max(kernel.upper for kernel in kernels), ""
    if search.in_the_long_run == "fails":
        linear: Literal["yes", "almost", "no", "open"] = "no"
    elif attack is not None:
        linear = "almost"
    else:
        linear = "open" if excess is None or excess > TOUCHING else "yes"
    return Composition(
        linear,
        _fails_below(search, claims),
        _line(world, search.condition),
        None if excess is None else float(up(max(claims) + max(excess, 0.0))),
        nfc.dp_epsilon(world, mechanisms),
        attack,
        note,
    )


def _against_knowledge(
    world: World, mechanisms: Sequence[FiniteMechanism], once: Sequence[Leakage]
) -> Composition:
    """Check a few priors that the knowledge allows: a failure under one of them is one.

    They are the worst for one run of each mechanism, and for one run of all of them. Each is known
    to the accuracy of a linear solver, so a probability or an excess as small as its error is not
    taken as a proof.
    """
    claims, notes = [loss.epsilon for loss in once], []
    for worst in (*once, *_worst_together(world, mechanisms)):
        left, right = worst.conditionals
        left = np.where(left > TOUCHING, left, 0.0)
        both = left / left.sum() + right / right.sum()
        prior = Explicit(world.universe, both / both.sum(), worst.worst.prior)
        pair = worst.worst.pair
        witness = World(world.universe, (prior,), (pair, pair.reversed))
        try:
            search = _search(witness, mechanisms, claims, _programmed(witness, mechanisms))
        except TooLarge as error:
            notes.append(str(error))
            continue
        attack = search.attack
        if attack is not None and not attack.leakage > attack.claimed + attack.runs * TOUCHING:
            attack = None
        missed = search.condition.lower
        if attack is not None or missed > TOUCHING:
            fails_below = _fails_below(search, claims) if missed > TOUCHING else None
            return Composition("no", fails_below, attack=attack)
    note = "with knowledge by inequalities, linear composition can be refuted but not proven"
    return Composition("open", note=notes[0] if notes else note)


def _worst_together(world: World, mechanisms: Sequence[FiniteMechanism]) -> tuple[Leakage, ...]:
    """What one run of each of several mechanisms leaks, if they can be written out together."""
    if len(mechanisms) == 1:
        return ()
    try:
        return (leakage(world, joint_mechanism(*mechanisms, limit=MOST_COUPLED)),)
    except TooLarge:
        return ()


def _fails_below(search: nfc.AttackSearch, claims: Sequence[float]) -> float:
    """The condition was solved relative to the claims: it asks for those, and ``lower`` more."""
    missed = search.condition.lower
    return missed if isinf(missed) else max(0.0, float(down(min(claims) + missed)))


def _line(world: World, condition: nfc.Condition) -> tuple[float, float] | None:
    proofs = nfc.prove_with_certificates(world, condition)
    slope = max(proof.per_run for proof in proofs)
    constant = max(proof.once for proof in proofs)
    return None if isinf(slope) or isinf(constant) else (max(0.0, slope), constant)


def _search(
    world: World, mechanisms: Sequence[FiniteMechanism], claims: Sequence[float], size: int
) -> nfc.AttackSearch:
    """Look for an attack: all multisets of few runs, then repetitions of the certificate's."""
    if size > MOST_NFC:
        raise TooLarge(
            f"composition was not examined: {size:,} numbers, at most {MOST_NFC:,}",
            size=size,
            limit=MOST_NFC,
        )
    outputs = sum(len(mechanism.outputs) for mechanism in mechanisms)
    most = min(20_000, comb(outputs + LISTED_RUNS, LISTED_RUNS))
    return nfc.search_attack(world, mechanisms, claims, most_multisets=most)


def _programmed(world: World, mechanisms: Sequence[FiniteMechanism]) -> int:
    """How many numbers stand in the linear programs: left × right × outputs, pair by pair."""
    cells = 0
    for pair in world.pairs:
        left, right = (world.weights[:, world.mask(s)] > 0 for s in (pair.left, pair.right))
        cells += int(np.sum(left.sum(axis=1) * right.sum(axis=1)))
    return cells * sum(len(mechanism.outputs) for mechanism in mechanisms)


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
