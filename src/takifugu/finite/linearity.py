"""Whether losses add up over runs: proofs, refutations and attacks, from the NfC theorem."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, isinf
from typing import Literal

import numpy as np

from takifugu._core.rounding import down, up
from takifugu.errors import TooLarge
from takifugu.finite import nfc
from takifugu.finite.joint_runs import joint_mechanism
from takifugu.finite.leakage import Leakage, leakage
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.world import World
from takifugu.priors.explicit import Explicit, Knowledge

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
