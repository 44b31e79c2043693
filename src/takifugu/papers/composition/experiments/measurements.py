"""The values of the reproduction: prepared data, and what was measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from takifugu.numeric import Integers
from takifugu.priors.markov import MarkovChain

Family = Literal["foursquare", "capture24"]


@dataclass(frozen=True, eq=False)
class Prepared:
    """Data ready for an experiment: a prior fitted on one part of it, counts of the other part.

    Attributes:
        key: A short name for files, as ``nyc``.
        title: What it is, for people.
        family: The experiment of the paper that it is for, or stands in for.
        origin: The paper's own data, other real data, or simulated data.
        chain: The prior, as long as the longest sequence that is released from.
        group_by: What the groups are, as ``country``.
        groups: Their names.
        counts: ``[group, label]``, of the part that is released from; labels are the states.
        train: ``[label]``, of the part that the prior was fitted on: the Majority baseline.
        facts: Public numbers: rows, entities, the longest sequence, of which part.
        notes: What differs from the paper's preparation, and why; a sentence each.
        fingerprint: The identity of the data.
    """

    key: str
    title: str
    family: Family
    origin: Literal["paper", "real", "simulated"]
    chain: MarkovChain
    group_by: str
    groups: tuple[str, ...]
    counts: Integers
    train: Integers
    facts: Mapping[str, int | str]
    notes: tuple[str, ...]
    fingerprint: str


@dataclass(frozen=True)
class Estimate:
    """A mean over repetitions; with 95 % confidence the true one is within ``half`` of it."""

    mean: float
    half: float


@dataclass(frozen=True)
class Difference:
    """By how much one mechanism is better than another, from repetitions of the same randomness.

    It holds what an interval of any confidence needs, so that many can be judged together
    (`estimates.interval`).

    Attributes:
        mean: The mean over repetitions; positive where the first is better.
        error: The standard error of the mean.
        step: By how much a single draw can move the mean; 0 if none can.
        repetitions: How many there are.
    """

    mean: float
    error: float
    step: float
    repetitions: int

    @property
    def exactly_zero(self) -> bool:
        """Whether there is nothing to estimate: two mechanisms of one law, or no way to differ."""
        return self.mean == self.error == self.step == 0


@dataclass(frozen=True)
class Cell:
    """One mechanism at one Pufferfish ε on one dataset.

    Attributes:
        data: The key of the dataset.
        mechanism: Its name, as in `takifugu.papers.composition.experiments.contenders`.
        uncertain: Whether the prior is only known to 20 %.
        epsilon: The Pufferfish ε that it keeps to.
        epsilon_dp: The per-entry ε that it may spend; 0 if none is left.
        noise: The standard deviation of the noise on one count; infinite if nothing is left.
        measured: For each metric its estimate.
        lead: For each metric by how much takifugu is better, over the same groups; positive is
            better for every metric, also where less is better. Empty for takifugu itself.
        exp_lead: For each metric by how much Ours-Exp is better, in the same way. Only for the
            mechanisms that the paper compares with it; empty for the others.
    """

    data: str
    mechanism: str
    uncertain: bool
    epsilon: float
    epsilon_dp: float
    noise: float
    measured: Mapping[str, Estimate]
    lead: Mapping[str, Difference]
    exp_lead: Mapping[str, Difference]
