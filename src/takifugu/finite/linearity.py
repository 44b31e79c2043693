"""Does the loss add up over runs? Proofs, refutations and attacks, from the NfC theorem."""

from collections.abc import Hashable
from dataclasses import dataclass
from math import comb, isinf
from typing import Literal

import numpy as np

from takifugu._rounding import down
from takifugu.errors import TooLarge
from takifugu.finite import nfc
from takifugu.finite.leakage import Leakage
from takifugu.finite.mechanism import Mechanism
from takifugu.finite.world import World
from takifugu.priors.explicit import Explicit, Knowledge
from takifugu.priors.secrets import SecretPair

MOST_NFC = 2**22  # numbers in the linear programs of the NfC theorem: some 10 seconds
MOST_COUPLED = 2**20  # numbers in those of the coupling kernels: about as long
LISTED_RUNS = 12  # all multisets of at most so many outputs are tried as attacks
TOUCHING = 1e-9  # two bounds this close are taken for the same number in words, never in figures


@dataclass(frozen=True)
class Attack:
    """Outputs that, seen so often, leak more than as many times the loss of one run.

    Attributes:
        counts: How often each output is seen.
        pair: The pair that is told apart.
        prior: The prior under which it is.
        leaked: The loss: a lower bound, infinite if the secret is revealed.
        linear: What linear composition would allow: an upper bound.
        fewest: Whether it is proven that fewer runs do not suffice.
    """

    counts: tuple[tuple[Hashable, int], ...]
    pair: SecretPair
    prior: str
    leaked: float
    linear: float
    fewest: bool

    @property
    def runs(self) -> int:
        """How many runs it takes."""
        return sum(count for _, count in self.counts)


@dataclass(frozen=True)
class Composition:
    """Whether k runs leak at most k times what one run leaks.

    Attributes:
        linear: ``"yes"``: proven for every k. ``"almost"``: refuted by ``attack``, but k runs
            leak at most k times the loss of one run plus a constant. ``"no"``: refuted, and
            with listed priors no constant helps either. ``"open"``: neither proven nor refuted.
            ``"void"``: one run already reveals everything.
        fails_below: No constant saves linear composition at an ε below this (the paper's NfC
            theorem): a lower bound.
        line: (ε, κ) such that k runs leak at most kε + κ, for every k, proven by the certificates
            of the NfC theorem: an upper bound.
        proven_at: k runs leak at most k times this, for every k, also after post-processing,
            proven by coupling kernels: an upper bound, infinite if there is no such kernel.
        dp_style: The least ε at which every dataset hides behind a single other one,
            P(ω|D) ≤ e^ε P(ω|D′): an upper bound.
        attack: Outputs whose repetition beats linear composition, if some were found.
        note: What was left out and why; empty if nothing was.

    What was not computed, or does not exist, is None.
    """

    linear: Literal["yes", "almost", "no", "open", "void"]
    fails_below: float | None = None
    line: tuple[float, float] | None = None
    proven_at: float | None = None
    dp_style: float | None = None
    attack: Attack | None = None
    note: str = ""


def linearity(world: World, mechanism: Mechanism, once: Leakage) -> Composition:
    """Whether the loss of ``mechanism`` adds up over runs; ``once`` is the loss of one run."""
    if isinf(once.epsilon):
        return Composition("void")
    if isinstance(world.priors, Knowledge):
        return _against_knowledge(world, mechanism, once)
    size = _programmed(world, mechanism)
    try:
        search = _search(world, mechanism, once.epsilon, size)
    except TooLarge as error:
        return Composition("open", note=str(error))
    attack = None if search.attack is None else _attack(search.attack)
    proven_at, note = None, f"a proof was not tried: {size:,} numbers, at most {MOST_COUPLED:,}"
    if size <= MOST_COUPLED:
        kernels = nfc.best_couplings(world, [mechanism])
        proven_at, note = max(kernel.upper for kernel in kernels), ""
    if search.in_the_long_run == "fails":
        answer: Literal["yes", "almost", "no", "open"] = "no"
    elif attack is not None:
        answer = "almost"
    else:
        answer = "open" if proven_at is None or proven_at > once.epsilon + TOUCHING else "yes"
    return Composition(
        answer,
        _fails_below(search, once),
        _line(world, search.condition),
        proven_at,
        nfc.dp_epsilon(world, [mechanism]),
        attack,
        note,
    )


def _against_knowledge(world: World, mechanism: Mechanism, once: Leakage) -> Composition:
    """Look at one prior that the knowledge allows, the worst for one run: what fails there fails.

    It is known to the accuracy of a linear solver, so a chance or an excess as small as its error
    is not taken as a proof.
    """
    left, right = once.beliefs
    left = np.where(left > TOUCHING, left, 0.0)
    both = left / left.sum() + right / right.sum()
    prior = Explicit(world.universe, both / both.sum(), once.worst.prior)
    pair = once.worst.pair
    witness = World(world.universe, (prior,), (pair, pair.reversed))
    try:
        search = _search(witness, mechanism, once.epsilon, _programmed(witness, mechanism))
    except TooLarge as error:
        return Composition("open", note=str(error))
    attack = None if search.attack is None else _attack(search.attack)
    if attack is not None and not attack.leaked > attack.linear + attack.runs * TOUCHING:
        attack = None
    missed = search.condition.lower
    if attack is not None or missed > TOUCHING:
        fails_below = _fails_below(search, once) if missed > TOUCHING else None
        return Composition("no", fails_below, attack=attack)
    note = "with knowledge by inequalities, linear composition can be refuted but not proven"
    return Composition("open", note=note)


def _fails_below(search: nfc.Search, once: Leakage) -> float:
    """The condition was solved relative to ε(1): it asks for that much, and ``lower`` more."""
    missed = search.condition.lower
    return missed if isinf(missed) else max(0.0, float(down(once.epsilon + missed)))


def _line(world: World, condition: nfc.Condition) -> tuple[float, float] | None:
    proofs = nfc.prove_with_certificates(world, condition)
    slope = max(proof.per_run for proof in proofs)
    constant = max(proof.once for proof in proofs)
    return None if isinf(slope) or isinf(constant) else (max(0.0, slope), constant)


def _search(world: World, mechanism: Mechanism, epsilon: float, size: int) -> nfc.Search:
    """Look for an attack: all multisets of few runs, then repetitions of the certificate's."""
    if size > MOST_NFC:
        raise TooLarge(f"composition was not looked into: {size:,} numbers, at most {MOST_NFC:,}")
    most = min(20_000, comb(len(mechanism.outputs) + LISTED_RUNS, LISTED_RUNS))
    return nfc.search_attack(world, [mechanism], [epsilon], most_multisets=most)


def _attack(found: nfc.Attack) -> Attack:
    counts = tuple((answer.output, count) for answer, count in found.counts)
    return Attack(counts, found.pair, found.prior, found.leakage, found.claimed, found.fewest)


def _programmed(world: World, mechanism: Mechanism) -> int:
    """How many numbers stand in the linear programs: left × right × outputs, pair by pair."""
    cells = 0
    for pair in world.pairs:
        left, right = (world.weights[:, world.mask(s)] > 0 for s in (pair.left, pair.right))
        cells += int(np.sum(left.sum(axis=1) * right.sum(axis=1)))
    return cells * len(mechanism.outputs)
