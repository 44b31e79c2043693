"""Whether a prior suits: what a budget allows under it, what makes it expensive, what would help.

Every number is a translation of the prior as it is or as it would be: nothing is estimated but
which changes to try first (`takifugu.translation.remedies`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from takifugu.errors import UnsoundRequest
from takifugu.priors.chain_changes import ChainSteps
from takifugu.priors.factors import NetworkPrior
from takifugu.priors.markov import MarkovChain
from takifugu.priors.prior import Prior, SequencePrior, state_text
from takifugu.priors.secrets import Secrets
from takifugu.translation.bounds import Binding, LooserTranslation
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.remedies import Remedy, found_remedies
from takifugu.translation.rows.row_translation import RowTranslation
from takifugu.translation.translation import Translation
from takifugu.visible import four_digits, visible

SLOW = 0.01  # a state that is left less often, in one step, is hardly ever left
SHOWN = 3  # states, or remedies, that a paragraph lists
MOST_NODES = 12  # of a network that is priced
SECONDS = 4.0  # after which no further change of a prior of many states is tried
FEW_PEOPLE = 5  # below which a row of a matrix shows what these did
FEW = 12  # states; there are few changes of so few, each of them quick


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
        said = f"It rests on {self.counted:,} {self.unit}{of}{rows}."
        if self.rare:
            named = [f"{_quoted(name)} ({times}×)" for name, times in self.rare[:SHOWN]]
            more = len(self.rare) - SHOWN
            named += [f"{more} more"] if more > 0 else []
            said += f" It hardly saw {', '.join(named)}."
        return f"{said} {self.few_words}" if self.few else said

    @property
    def few_words(self) -> str:
        """The states that rest on few people, and what to do; empty if there are none."""
        if not self.few:
            return ""
        named = [f"{_quoted(name)} ({people})" for name, people in self.few[:SHOWN]]
        more = len(self.few) - SHOWN
        named += [f"{more} more"] if more > 0 else []
        many = "1 state rests" if len(self.few) == 1 else f"{len(self.few)} states rest"
        rows = (
            "its row of the matrix shows" if len(self.few) == 1 else "their rows of the matrix show"
        )
        remedy = "count rare labels as one (a map in the declaration)"
        if self.at_least is not None:
            remedy += f" or fit with --at-least {max(FEW_PEOPLE, self.at_least + 1)}"
        return (
            f"{many} on fewer than {FEW_PEOPLE} people: {', '.join(named)}; {rows} what these did,"
            f" and it is published: {remedy}."
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
        said = [] if self.evidence is None else [self.evidence.words]
        if self.allowed is not None:
            said += [self._price, *self._help]
        return " ".join(said)

    @property
    def _price(self) -> str:
        epsilon = four_digits(self.epsilon)
        allows = f"allows {four_digits(self.allowed or 0.0, 'down')} per row"
        said = f"A Pufferfish ε of {epsilon} {allows if self.allowed else 'allows nothing'}"
        said += f"{self.without}."
        if self.pair is not None:
            where = "" if self.pair.entry is None else f" in entry {self.pair.entry}"
            pair = f"{_quoted(self.pair.left)} and {_quoted(self.pair.right)}"
            said += f" The expensive pair is {pair}{where}"
            said += "".join(self._slowness) + "."
        return said

    @property
    def _slowness(self) -> list[str]:
        named = dict(self.slow)
        pair = () if self.pair is None else (self.pair.left, self.pair.right)
        of = [name for name in dict.fromkeys((*pair, *named)) if name in named][:SHOWN]
        never = () if self.evidence is None else self.evidence.unseen
        return [
            f"; {_quoted(name)} is left with probability {four_digits(named[name])} per step"
            + (" (never in the rows that were counted)" if name in never else "")
            for name in of
        ]

    @property
    def _help(self) -> list[str]:
        tried = f"{self.tried} {'change' if self.tried == 1 else 'changes'}"
        left = f", {self.untried} more would take too long" if self.untried else ""
        if not self.tried:
            return []
        if not self.remedies:
            return [f"None of {tried} that were computed would allow much more{left}."]
        listed = "; ".join(remedy.words for remedy in shown(self.remedies))
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


def shown(remedies: Sequence[Remedy]) -> list[Remedy]:
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
        return _advice(translation, epsilon, steps, evidence, lengths, seconds, progress or _nobody)


def _advice(
    translation: LossTranslation,
    epsilon: float,
    steps: ChainSteps | None,
    evidence: FitEvidence | None,
    lengths: Sequence[int],
    seconds: float | None,
    say: Callable[[str], None],
) -> PriorAdvice:
    one = _the_prior(translation)
    if not _priced(translation, one):
        return PriorAdvice(epsilon, None, evidence=evidence)
    without = ""
    if isinstance(one, MarkovChain) and not one.one_law and isinstance(translation, Translation):
        one = one.against(start="stationary", known="none")
        without = ", against somebody who knows no entry and takes the chain to be stationary"
        translation = Translation(one, translation.secrets, translation.uncertainty)
    say("pricing the prior")
    allowed = float(translation.to_dp(epsilon))
    allowed = allowed if 0 < allowed < inf else 0.0
    pair = None
    if isinstance(translation, Translation):
        pair = translation.bound(allowed or epsilon).binding
    slow = () if one is None else slow_states(one)
    if not isinstance(translation, Translation) or one is None:
        return PriorAdvice(epsilon, allowed, pair, slow, evidence=evidence, without=without)
    found, tried, untried = found_remedies(
        translation,
        epsilon,
        allowed,
        steps=_steps(one, steps),
        sticky=[name for name, _ in slow],
        pair=pair,
        lengths=lengths,
        seconds=seconds if seconds is not None else (1 if one.breadth > FEW else 5) * SECONDS,
        progress=say,
    )
    return PriorAdvice(epsilon, allowed, pair, slow, found, tried, untried, evidence, without)


def slow_states(prior: Prior) -> tuple[tuple[str, float], ...]:
    """States that are hardly ever left, the stickiest first, and how likely one step leaves them.

    >>> slow_states(MarkovChain([[0.9, 0.1], [0.001, 0.999]], states=("home", "ward")))
    (('ward', 0.001),)
    """
    if not isinstance(prior, MarkovChain) or not prior.homogeneous:
        return ()
    leaving = prior.kernel().copy()
    np.fill_diagonal(leaving, 0.0)  # summed, and not 1 - stay, which rounds small ones away
    found = sorted(
        (float(p), state_text(state))
        for p, state in zip(leaving.sum(axis=1), prior.states, strict=True)
        if p < SLOW
    )
    return tuple((name, p) for p, name in found) if len(prior.states) > 1 else ()


def _the_prior(translation: LossTranslation) -> Prior | None:
    """The one prior of a translation; None if there are several, or it is of another kind."""
    priors = getattr(translation, "priors", {})
    return next(iter(priors.values())) if len(priors) == 1 else None


def _priced(translation: LossTranslation, prior: Prior | None) -> bool:
    """Whether a price is computed in seconds."""
    if isinstance(translation, RowTranslation):
        return prior is not None and not isinstance(prior, NetworkPrior) and prior.breadth < 30
    if isinstance(prior, NetworkPrior):
        return prior.breadth <= MOST_NODES
    return isinstance(prior, SequencePrior)  # of numbers a price goes by how far apart they are


def _steps(prior: Prior, given: ChainSteps | None) -> ChainSteps | None:
    """How often states follow one another; None where chains of other labels make no sense."""
    if not isinstance(prior, MarkovChain) or not prior.homogeneous or prior.columns is not None:
        return None
    if given is not None and given.chain.states == prior.states:
        return given
    return ChainSteps.of(prior)


def _quoted(name: object) -> str:
    return visible(repr(str(name)))


def _nobody(_: str) -> None:
    return None
