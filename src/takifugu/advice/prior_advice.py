"""Whether a prior suits: what a budget allows under it, what makes it expensive, what would help.

Every number is a translation of the prior as it is or as it would be: nothing is estimated but
which changes to try first (`takifugu.advice.remedies`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from takifugu.advice.remedies import Remedy, quoted, remedies_of
from takifugu.errors import TakifuguError, UnsoundRequest
from takifugu.influence.rounded_ratios import uncertainty_shift
from takifugu.priors.fitting import ChainSteps
from takifugu.priors.markov import MarkovChain
from takifugu.priors.networks import NetworkPrior
from takifugu.priors.prior import Prior, SequencePrior, state_text
from takifugu.priors.secrets import Secrets
from takifugu.translation.accounting.tables import TabledTranslation
from takifugu.translation.bounds import Binding, LooserTranslation
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.rows.row_translation import RowTranslation
from takifugu.translation.translation import Translation
from takifugu.visible import four_digits

SLOW_LEAVING_PROBABILITY = 0.01  # a state that is left less often, in one step, is slow
MAX_LISTED_NAMES = 3  # states that a paragraph lists
MAX_PRICED_NODES = 12  # of a network
MAX_SEARCH_SECONDS = 4.0  # after which no further change of a prior of many states is tried
MAX_ERROR_SECONDS = 3.0  # that are spent on remedies before an error
FEW_PEOPLE = 5  # below which a row of a matrix shows what these did
FEW_STATES = 12  # there are few changes of so few, each of them quick
GENERAL_ADVICE = "ask for a larger epsilon or a weaker prior"


@dataclass(frozen=True)
class FitEvidence:
    """What a fitted prior rests on.

    Attributes:
        counted: How many things.
        unit: What they are: "steps", "rows", "products".
        people: How many entities they are of; None if that was not counted.
        rows: How many rows those have.
        rare: The states that were left fewer than ten times, and how often, the rarest first.
        unseen: The states that were never left for another one, in rows that have them.
        few: The states that fewer than five people have left, and how many, the fewest first; None
            if that was not counted.
        at_least: How many people a label needed, where labels were found on the same rows; else
            None.
    """

    counted: int
    unit: str
    people: int | None = None
    rows: int | None = None
    rare: tuple[tuple[str, int], ...] = ()
    unseen: tuple[str, ...] = ()
    few: tuple[tuple[str, int], ...] | None = None
    at_least: int | None = None

    @property
    def words(self) -> str:
        """One sentence, or up to three."""
        of = "" if self.people is None else f" of {self.people:,} people"
        rows = "" if self.rows is None or self.unit == "rows" else f" ({self.rows:,} rows)"
        sentences = [f"It rests on {self.counted:,} {self.unit}{of}{rows}."]
        if self.rare:
            sentences.append(f"It hardly saw {_listed(self.rare, '×')}.")
        return " ".join([*sentences, self.few_words] if self.few else sentences)

    @property
    def few_words(self) -> str:
        """The states that rest on few people, and what to do; empty if there are none."""
        if not self.few:
            return ""
        single = len(self.few) == 1
        states = "1 state rests" if single else f"{len(self.few)} states rest"
        rows = "its row of the matrix shows" if single else "their rows of the matrix show"
        remedy = "count rare labels as one (a map in the declaration)"
        if self.at_least is not None:
            remedy += f" or fit with --at-least {max(FEW_PEOPLE, self.at_least + 1)}"
        return (
            f"{states} on fewer than {FEW_PEOPLE} people: {_listed(self.few)}; {rows} what these"
            f" did, and it is published: {remedy}."
        )

    def document(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        return {
            "counted": self.counted,
            "unit": self.unit,
            "people": self.people,
            "rows": self.rows,
            "hardly_seen": dict(self.rare),
            "never_left": list(self.unseen),
            "few_people": None if self.few is None else dict(self.few),
        }


@dataclass(frozen=True)
class PriorAdvice:
    """What a Pufferfish loss allows under a prior, and what would allow more.

    Attributes:
        epsilon: The Pufferfish loss.
        allowed: What it allows each entry to lose, rounded down; None if it was not computed.
        pair: The secret pair that loses most; None if it is not known.
        slow: States that are hardly ever left, with the probability of leaving them in a step.
        remedies: What would allow more, the most first, but a bound that all sequences keep to
            before all; each is computed.
        tried: How many changes were computed.
        untried: How many more were left out, for the time they take.
        evidence: What the prior rests on; None if it was not fitted here.
        without: What the prices leave out, in words; empty if nothing.
    """

    epsilon: float
    allowed: float | None
    pair: Binding | None = None
    slow: tuple[tuple[str, float], ...] = ()
    remedies: tuple[Remedy, ...] = ()
    tried: int = 0
    untried: int = 0
    evidence: FitEvidence | None = None
    without: str = ""

    @property
    def words(self) -> str:
        """One short paragraph."""
        sentences = [] if self.evidence is None else [self.evidence.words]
        if self.allowed is not None:
            sentences += [self._price, *self._help]
        return " ".join(sentences)

    @property
    def _price(self) -> str:
        allows = f"allows {four_digits(self.allowed or 0.0, 'down')} per row"
        sentence = f"A Pufferfish ε of {four_digits(self.epsilon)}"
        sentence += f" {allows if self.allowed else 'allows nothing'}{self.without}."
        if self.pair is None:
            return sentence
        entry = "" if self.pair.entry is None else f" in entry {self.pair.entry}"
        pair = f"{quoted(self.pair.left)} and {quoted(self.pair.right)}"
        return f"{sentence} The expensive pair is {pair}{entry}{self._slowness(self.pair)}."

    def _slowness(self, pair: Binding) -> str:
        """How slowly some states are left, those of the expensive pair first."""
        leaving = dict(self.slow)
        names = [n for n in dict.fromkeys((pair.left, pair.right, *leaving)) if n in leaving]
        never = () if self.evidence is None else self.evidence.unseen
        return "".join(
            f"; {quoted(name)} is left with probability {four_digits(leaving[name])} per step"
            + (" (never in the rows that were counted)" if name in never else "")
            for name in names[:MAX_LISTED_NAMES]
        )

    @property
    def _help(self) -> list[str]:
        tried = f"{self.tried} {'change' if self.tried == 1 else 'changes'}"
        left = f", {self.untried} more would take too long" if self.untried else ""
        if not self.tried:
            return []
        if not self.remedies:
            return [f"None of {tried} that were computed would allow much more{left}."]
        listed = "; ".join(remedy.words for remedy in best_of_each_kind(self.remedies))
        return [f"What would allow more ({tried} computed{left}): {listed}."]

    def document(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        return {
            "epsilon": self.epsilon,
            "allowed": self.allowed,
            "pair": None if self.pair is None else self.pair.document(),
            "hardly_left": dict(self.slow),
            "remedies": [remedy.document() for remedy in self.remedies],
            "tried": self.tried,
            "untried": self.untried,
            "rests_on": None if self.evidence is None else self.evidence.document(),
            "words": self.words,
        }


def best_of_each_kind(remedies: Sequence[Remedy]) -> list[Remedy]:
    """The best remedy of each kind, the best kinds first."""
    best: dict[str, Remedy] = {}
    for remedy in remedies:
        best.setdefault(remedy.kind, remedy)
    return list(best.values())


def advise(
    prior: Prior | LossTranslation,
    epsilon: float = 1.0,
    *,
    secrets: Secrets | None = None,
    steps: ChainSteps | None = None,
    evidence: FitEvidence | None = None,
    lengths: Sequence[int] = (),
    seconds: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> PriorAdvice:
    """What ``epsilon`` allows under a prior, the pair that costs most, and what would allow more.

    >>> ward = MarkovChain([[0.9, 0.1, 0], [0.1, 0.8, 0.1], [0, 1e-4, 0.9999]], states="ABC")
    >>> best = advise(ward, lengths=(30,)).remedies[0]
    >>> best.kind, best.length
    ('length', 30)

    Args:
        prior: A prior, or a translation of one. Of several the price is told, and no change is
            tried.
        epsilon: The Pufferfish loss that is compared: a budget.
        secrets: What is kept secret under a prior; by default every pair of values.
        steps: The counts that a chain was fitted to: changed chains are then those that a fit
            on changed labels would give. Without them they follow from the chain.
        evidence: What a fitted prior rests on.
        lengths: How long the longest sequence is, where that is known: a prior may be as short.
            By default 100 and 10 are tried, which suit if no sequence is longer.
        seconds: Of the processor, after which no further change is tried; what was begun is
            finished. By default four, and five times that for few states.
        progress: Is told what is computed.
    """
    if not 0 < epsilon < inf:  # also false for NaN
        raise UnsoundRequest(
            f"epsilon is {epsilon}; it must be above 0 and finite", field="epsilon", given=epsilon
        )
    if isinstance(prior, Prior):
        translation: LossTranslation = Translation(prior, secrets or Secrets())
    elif secrets is None:
        translation = prior
    else:
        raise UnsoundRequest(
            "secrets are given beside a translation, which has its own; give one of both",
            field="secrets",
        )
    with catch_warnings():
        simplefilter("ignore", LooserTranslation)  # said where a release is planned
        return _advice(
            translation, epsilon, steps, evidence, lengths, seconds, progress or (lambda _: None)
        )


def _advice(
    translation: LossTranslation,
    epsilon: float,
    steps: ChainSteps | None,
    evidence: FitEvidence | None,
    lengths: Sequence[int],
    seconds: float | None,
    say: Callable[[str], None],
) -> PriorAdvice:
    single = _the_prior(translation)
    if not _is_priced(translation, single):
        return PriorAdvice(epsilon, None, evidence=evidence)
    without = ""
    if (
        isinstance(single, MarkovChain)
        and not single.one_law
        and isinstance(translation, Translation)
    ):
        single = single.against(start="stationary", known="none")
        without = ", against somebody who knows no entry and takes the chain to be stationary"
        translation = Translation(single, translation.secrets, translation.uncertainty)
    say("pricing the prior")
    allowed = float(translation.to_dp(epsilon))
    allowed = allowed if 0 < allowed < inf else 0.0
    pair = None
    if isinstance(translation, Translation):
        pair = translation.bound(allowed or epsilon).binding
    slow = () if single is None else slow_states(single)
    if not isinstance(translation, Translation) or single is None:
        return PriorAdvice(epsilon, allowed, pair, slow, evidence=evidence, without=without)
    if seconds is None:
        seconds = MAX_SEARCH_SECONDS * (1 if single.breadth > FEW_STATES else 5)
    remedies, tried, untried = remedies_of(
        translation,
        epsilon,
        allowed,
        steps=_steps(single, steps),
        sticky=[name for name, _ in slow],
        pair=pair,
        lengths=lengths,
        seconds=seconds,
        progress=say,
    )
    return PriorAdvice(epsilon, allowed, pair, slow, remedies, tried, untried, evidence, without)


def slow_states(prior: Prior) -> tuple[tuple[str, float], ...]:
    """States that are hardly ever left, the stickiest first, and how likely one step leaves them.

    >>> slow_states(MarkovChain([[0.9, 0.1], [0.001, 0.999]], states=("home", "ward")))
    (('ward', 0.001),)
    """
    if not isinstance(prior, MarkovChain) or not prior.homogeneous:
        return ()
    leaving = prior.kernel().copy()
    np.fill_diagonal(leaving, 0.0)  # summed, and not 1 - stay, which rounds small ones away
    slow = sorted(
        (float(p), state_text(state))
        for p, state in zip(leaving.sum(axis=1), prior.states, strict=True)
        if p < SLOW_LEAVING_PROBABILITY
    )
    return tuple((name, p) for p, name in slow) if len(prior.states) > 1 else ()


def _the_prior(translation: LossTranslation) -> Prior | None:
    """The one prior of a translation; None if there are several, or it is of another kind."""
    priors = getattr(translation, "priors", {})
    return next(iter(priors.values())) if len(priors) == 1 else None


def _is_priced(translation: LossTranslation, prior: Prior | None) -> bool:
    """Whether a price is computed in seconds."""
    if isinstance(translation, RowTranslation):
        return prior is not None and not isinstance(prior, NetworkPrior) and prior.breadth < 30
    if isinstance(prior, NetworkPrior):
        return prior.breadth <= MAX_PRICED_NODES
    return isinstance(prior, SequencePrior)  # of numbers a price goes by how far apart they are


def _steps(prior: Prior, given: ChainSteps | None) -> ChainSteps | None:
    """How often states follow one another; None where chains of other labels make no sense."""
    if not isinstance(prior, MarkovChain) or not prior.homogeneous or prior.columns is not None:
        return None
    if given is not None and given.chain.states == prior.states:
        return given
    return ChainSteps.of(prior)


def why_nothing(
    translation: LossTranslation, epsilon: float
) -> tuple[str, float | PriorAdvice | None]:
    """Why ``epsilon`` leaves nothing for a release and what would, in words; and for programs.

    For programs: the ε that must be exceeded, or the advice with its remedies; None if neither is
    known.
    """
    if isinstance(translation, TabledTranslation):
        translation = translation.computed
    uncertainty = float(getattr(translation, "uncertainty", 0.0))
    shift = uncertainty_shift(uncertainty) if uncertainty else 0.0
    if uncertainty and epsilon <= shift:
        return (
            f"an uncertainty of {four_digits(uncertainty)} alone counts {four_digits(shift, 'up')}:"
            " ask for an epsilon well above that, or lower the uncertainty",
            shift,
        )
    if not 0 < epsilon < inf:
        return GENERAL_ADVICE, None
    try:
        advice = advise(translation, epsilon, seconds=MAX_ERROR_SECONDS)
    except TakifuguError:  # nothing can be computed of such a prior
        return GENERAL_ADVICE, None
    reasons = []
    for name, p in advice.slow[:MAX_LISTED_NAMES]:
        leaving = f"is left with probability {four_digits(p)} per step" if p else "is never left"
        reasons.append(f"state {quoted(name)} {leaving}")
    if advice.remedies:
        remedies = "; or ".join(remedy.words for remedy in best_of_each_kind(advice.remedies))
        reasons.append(f"what would leave some, computed: {remedies}")
    return ("; ".join(reasons), advice) if reasons else (GENERAL_ADVICE, None)


def _listed(names: Sequence[tuple[str, int]], unit: str = "") -> str:
    """The first names, each with its number, and how many more there are."""
    listed = [f"{quoted(name)} ({number}{unit})" for name, number in names[:MAX_LISTED_NAMES]]
    more = len(names) - MAX_LISTED_NAMES
    return ", ".join([*listed, f"{more} more"] if more > 0 else listed)
