r"""Chains from sequences of states: counts, smoothing, and confidence intervals.

The chain that follows from another one if two states count as one.

It is the chain that a fit would give on changed labels. Let :math:`F_{xy}` be how often y follows
x: counts, or :math:`\pi_x P_{xy}` of a chain with the stationary law :math:`\pi`. A step of either
is a step of both, so that rows and columns add up.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.errors import InvalidPrior
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.markov import MarkovChain, Start
from takifugu.priors.prior import Provenance, checked_states
from takifugu.priors.secrets import Secrets
from takifugu.priors.universe import Name, State

TAU = 1e-5  # the paper's tolerance, appendix "Smoothing and Stability"


@dataclass(frozen=True, eq=False)
class Transitions(Provenance):
    """Counts of the steps from each state to each other, or to itself.

    >>> Transitions.of(["aab", "ba"], states=("a", "b")).counts
    array([[1, 1],
           [1, 0]])

    Attributes:
        counts: ``[x, y]``: how many times y followed x.
        states: The names of the states; with ``columns`` a state is the tuple of their values.
        columns: The columns whose values a joint state lists; None if there is one.
    """

    counts: Integers
    states: tuple[State, ...] = ()
    columns: tuple[str, ...] | None = field(
        default=None, metadata={"unless_default": True}, kw_only=True
    )

    def __post_init__(self) -> None:
        counts = np.array(self.counts)
        whole = counts.dtype.kind in "iu" and counts.ndim == 2
        if not whole or counts.shape[0] != counts.shape[1] or not counts.size or counts.min() < 0:
            raise InvalidPrior(
                "counts",
                given=f"has shape {counts.shape} and type {counts.dtype}",
                needed="be a square matrix of whole numbers, 0 or more",
            )
        counts = counts.astype(np.int64)
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)
        names, columns = checked_states(self.states, len(counts), self.columns)
        object.__setattr__(self, "states", names)
        object.__setattr__(self, "columns", columns)

    @classmethod
    def of(
        cls, sequences: Iterable[Iterable[Any]], *, states: Sequence[Name] | None = None
    ) -> "Transitions":
        """Count the steps within each sequence; nothing is counted from one to the next.

        ``states`` fixes the states and their order; without it they are those seen, sorted.
        """
        names, paths = state_codes(sequences, states)
        counts = np.zeros((len(names), len(names)), dtype=np.int64)
        for path in paths:
            np.add.at(counts, (path[:-1], path[1:]), 1)
        return cls(counts, names)

    @property
    def exits(self) -> Integers:
        """``[x]``: the number of steps from x."""
        total: Integers = self.counts.sum(axis=1)
        return total

    def chain(
        self,
        *,
        unseen: Literal["refuse", "uniform"] = "refuse",
        other: Name | None = None,
        tau: float | None = None,
        length: int | None = None,
    ) -> MarkovChain:
        """The stationary chain of relative frequencies.

        A state that nothing ever followed has no frequencies: that is an error, or, with
        ``unseen="uniform"``, every other state follows it equally likely. ``other`` adds a state
        of that name (see `with_other`). Zeros stay zeros unless ``tau`` is given (see `smoothed`).
        """
        exits = self.exits
        if (exits == 0).any() and unseen == "refuse":
            raise InvalidPrior(
                "counts",
                given=f"have nothing that followed state {self.states[int(np.argmin(exits))]!r}",
                needed="have a step from every state, or say unseen='uniform'",
            )
        table = np.where(exits[:, None] > 0, self.counts / np.maximum(exits, 1)[:, None], 0.0)
        for x in np.flatnonzero(exits == 0):
            table[x] = elsewhere(len(exits), int(x))
        states = self.states
        if other is not None:
            table, states = _grown(table), (*states, other)
        if tau is not None:
            table = smooth(table, tau=tau)
        return MarkovChain(
            table, states, columns=self.columns, length=length, fitted_on=self.fitted_on
        )

    def intervals(
        self,
        *,
        confidence: float,
        simultaneous: bool = True,
        start: Literal["any", "stationary"] = "stationary",
        length: int | None = None,
    ) -> IntervalMarkovChain:
        """Every chain that the counts do not rule out (Clopper & Pearson, 1934).

        Each probability gets the exact two-sided interval of a binomial proportion. With
        ``simultaneous`` the error is divided among all n² of them (Bonferroni), so that *all*
        hold at once with ``confidence``; without, each one does on its own. A state that nothing
        followed is not known at all: its probabilities may be anything from 0 to 1.

        The intervals are exact when the number of exits of each state was fixed beforehand. In
        counts from paths of fixed length that number is itself random, and the coverage is then
        the usual approximation, which improves with the counts.
        """
        if not 0 < confidence < 1:  # also false for NaN
            raise InvalidPrior("confidence", given=f"is {confidence}", needed="be between 0 and 1")
        if self.columns is not None:
            raise InvalidPrior(
                "columns",
                given=f"are {', '.join(self.columns)}",
                needed="be one column: chains within intervals have no joint states",
            )
        from scipy.special import betaincinv

        miss = (1 - confidence) / (self.counts.size if simultaneous else 1) / 2
        k, n = self.counts.astype(np.float64), self.exits[:, None].astype(np.float64)
        wide = 1e-9  # relative; well past the accuracy of the quantiles
        low = betaincinv(np.maximum(k, 1), n - k + 1, miss) * (1 - wide)
        # the upper end by its complement, so that probabilities near 1 keep their accuracy
        above = betaincinv(np.maximum(n - k, 1), k + 1, miss) * (1 - wide)
        return IntervalMarkovChain(
            np.where(k > 0, low, 0.0),
            np.where(k < n, 1 - above, 1.0),
            self.states,
            start,
            length,
            fitted_on=self.fitted_on,
        )


def state_codes(
    sequences: Iterable[Iterable[Any]], states: Sequence[Name] | None
) -> tuple[tuple[Name, ...], list[Integers]]:
    """The states, and each sequence as their numbers.

    ``states`` fixes the states and their order; without it they are those seen, sorted.
    """
    parts = [np.asarray(list(sequence)) for sequence in sequences]
    if states is None:
        states = sorted(
            {value for part in parts for value in part.tolist()},
            key=lambda value: (str(type(value)), value),
        )
    number: dict[Hashable, int] = {state: i for i, state in enumerate(states)}
    if not number:
        raise InvalidPrior("sequences", given="are empty", needed="hold at least one state")
    paths: list[Integers] = []
    for part in parts:
        values, codes = np.unique(part, return_inverse=True)
        unknown = sum(value not in number for value in values.tolist())
        if unknown:
            raise InvalidPrior(
                "sequences",
                given=f"hold {unknown} values that are not among the {len(number)} states",
                needed="hold known states only; map rare ones to one of them first",
            )
        path = np.array([number[value] for value in values.tolist()], dtype=np.int64)[codes]
        paths.append(path)
    return tuple(states), paths


def with_other(chain: MarkovChain, *, name: Name = "other") -> MarkovChain:
    """Add a state that every old state follows equally likely and that nothing leads to yet.

    The paper's step before smoothing, to make room for states that were never seen.
    """
    start = chain.start if isinstance(chain.start, str) else np.append(chain.start, 0.0)
    grown = _grown(_one_matrix(chain))
    return replace(chain, transition=grown, states=(*chain.states, name), start=start)


def smoothed(chain: MarkovChain, *, tau: float = TAU) -> MarkovChain:
    """The chain with every zero raised to ``tau``: see `smooth`."""
    return replace(chain, transition=smooth(_one_matrix(chain), tau=tau))


def smooth(table: Floats, *, tau: float = TAU) -> Floats:
    """Raise every zero to ``tau``, and lower the rest of its row in proportion.

    A row with z zeros keeps (1 − zτ) of each positive probability (the paper, appendix "Smoothing
    and Stability"). This makes another prior, by choice: with zeros the curve may be infinite.
    """
    zeros = table == 0
    taken = zeros.sum(axis=1) * (tau if 0 < tau < inf else 1.0)  # infinity times 0 is no number
    if not (0 < tau < inf and (taken < 1).all()):  # also false for NaN
        raise InvalidPrior(
            "tau",
            given=f"is {tau} for rows with up to {int(zeros.sum(axis=1).max())} zeros",
            needed="be positive and leave something of each row",
        )
    return np.where(zeros, tau, table * (1 - taken)[:, None])


def _one_matrix(chain: MarkovChain) -> Floats:
    if not chain.homogeneous:
        raise InvalidPrior(
            "transition", given="changes from step to step", needed="be one matrix here"
        )
    return chain.transition


def _grown(table: Floats) -> Floats:
    n = len(table)
    grown = np.zeros((n + 1, n + 1))
    grown[:n, :n] = table
    grown[n] = elsewhere(n + 1, n)
    return grown


def elsewhere(size: int, here: int) -> Floats:
    """A row for a state that nothing ever followed: every other state equally likely."""
    row = np.full(size, 1 / max(size - 1, 1))
    row[here] = 0.0 if size > 1 else 1.0
    return row


LEAST_LAW = 1e-200  # what counts as a state that never occurs in the long run


@dataclass(frozen=True, eq=False)
class ChainSteps:
    """A chain of one matrix, and how often each of its states follows each other one.

    Attributes:
        chain: The chain.
        flow: ``[x, y]``: how often y follows x.
        tau: What zeros of a changed chain are smoothed to, as they were in this one; None if the
            flow is that of the chain itself.
        weighed: Whether it is known how often a state occurs compared with another one.
    """

    chain: MarkovChain
    flow: Floats = field(repr=False)
    tau: float | None = None
    weighed: bool = True

    @classmethod
    def of(
        cls, chain: MarkovChain, counts: Integers | None = None, tau: float | None = None
    ) -> "ChainSteps":
        """By the counts that a chain was fitted to; without them by its stationary law."""
        if counts is not None:
            return cls(chain, counts.astype(np.float64), tau or None)
        try:
            # a state that is left for good has a row too
            law = np.maximum(chain.stationary, LEAST_LAW)
        except InvalidPrior:  # several stationary laws
            return cls(chain, chain.kernel(), weighed=False)
        return cls(chain, law[:, None] * chain.kernel())

    @property
    def weights(self) -> Floats:
        """``[x]``: how often x is left, itself included."""
        total: Floats = self.flow.sum(axis=1)
        return total

    def merged(self, kept: int, gone: int) -> MarkovChain:
        """The chain in which ``gone`` counts as ``kept``."""
        rest = np.arange(len(self.flow)) != gone
        flow = self.flow.copy()
        flow[kept] += flow[gone]
        flow[:, kept] += flow[:, gone]
        law = self.chain.start
        if not isinstance(law, str):
            law = law.copy()
            law[kept] += law[gone]
            law = law[rest]
        names = tuple(name for name, stays in zip(self.chain.states, rest, strict=True) if stays)
        return self._made(flow[np.ix_(rest, rest)], names, law)

    def _made(self, flow: Floats, names: tuple[State, ...], start: Start) -> MarkovChain:
        total = flow.sum(axis=1, keepdims=True)
        table = np.divide(flow, total, out=np.zeros_like(flow), where=total > 0)
        for x in np.flatnonzero(total[:, 0] == 0):
            table[x] = elsewhere(len(flow), int(x))
        if self.tau is not None:
            table = smooth(table, tau=self.tau)
        table = table / table.sum(axis=1, keepdims=True)
        return replace(self.chain, transition=table, states=names, start=start)


def secrets_merged(secrets: Secrets, kept: State, gone: State) -> Secrets | None:
    """The secrets if ``gone`` counts as ``kept``: a pair that had one on each side is none."""
    if secrets.pairs is None:
        return secrets
    pairs = []
    for pair in secrets.pairs:
        left, right = (
            tuple(dict.fromkeys(kept if _same(value, gone) else value for value in side))
            for side in pair
        )
        if not {*map(str, left)} & {*map(str, right)}:
            pairs.append((left, right))
    return _kept(secrets, pairs)


def _kept(secrets: Secrets, pairs: Sequence[Any]) -> Secrets | None:
    whole = tuple((left, right) for left, right in pairs if left and right)
    return replace(secrets, pairs=whole) if whole else None


def _same(first: object, second: object) -> bool:
    """Whether two values are one: secrets may name a whole number as text."""
    return first == second or str(first) == str(second)
