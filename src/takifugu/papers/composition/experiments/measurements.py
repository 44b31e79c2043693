"""The values of the reproduction: prepared data, and what was measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from takifugu._core.numeric import Integers
from takifugu.priors.markov import MarkovChain

Family = Literal["foursquare", "capture24"]


@dataclass(frozen=True)
class PrintedColumn:
    """A column of the paper's tables: one metric of one mechanism, at every ε.

    Attributes:
        mechanism: Its name, as in `takifugu.papers.composition.experiments.contenders`.
        uncertain: Whether the prior is only known to 20 %.
        metric: What is measured, as in `takifugu.papers.composition.experiments.metrics`.
    """

    mechanism: str
    uncertain: bool
    metric: str

    def to_document(self) -> list[str | bool]:
        """As JSON."""
        return [self.mechanism, self.uncertain, self.metric]

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """What `to_document` wrote; anything else is a `ValueError`."""
        mechanism, uncertain, metric = document
        kinds = (type(mechanism), type(uncertain), type(metric))
        if kinds != (str, bool, str):
            raise ValueError(f"a column is a name, true or false, and a metric, not {kinds}")
        return cls(mechanism, uncertain, metric)


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
        calibrated: The printed columns that a simulated world was calibrated to, so that agreement
            with them shows nothing; every other column is a prediction. Empty for real data.
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
    calibrated: tuple[PrintedColumn, ...] = ()


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
