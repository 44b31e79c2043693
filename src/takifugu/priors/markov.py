"""Priors in which each entry depends on the one before it.

The stationary law of a chain, accurate in every single entry.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers, distribution, frozen
from takifugu._core.rounding import UNIT, gamma
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.priors.explicit import Explicit
from takifugu.priors.prior import (
    SequencePrior,
    checked_law,
    checked_length,
    checked_states,
    refuse_other_words,
)
from takifugu.priors.universe import State, Tables

LEAST_STATIONARY = 2.0**-900  # below this a sum of products may have lost terms to underflow


def reachable(possible: Booleans) -> Booleans:
    """``[x, y]``: whether y can be reached from x in any number of steps, 0 included."""
    reach = possible | np.eye(len(possible), dtype=bool)
    while True:
        further = (reach.astype(np.float64) @ reach.astype(np.float64)) > 0
        if (further == reach).all():
            return reach
        reach = further


def closed_class(transition: Floats) -> Integers:
    """The one closed class: states that are never left once reached; an error if there are two.

    A chain has exactly one stationary law if and only if it has exactly one such set. The chain
    may still be periodic: the law exists all the same.
    """
    reach = reachable(transition > 0)
    final = ~(reach & ~reach.T).any(axis=1)  # every state reached from here leads back here
    members = np.flatnonzero(final)
    if not reach[np.ix_(members, members)].all():
        raise InvalidPrior(
            "start",
            given="is stationary, but the chain has several closed classes",
            needed="be given as a law, as there is more than one stationary law",
        )
    return members


def stationary_law(transition: Floats, *, entry_error: float) -> tuple[Floats, float]:
    r"""The stationary law, and a bound on the relative error of every positive entry.

    Elimination after Grassmann, Taksar & Heyman (1985): states are censored one by one, and no
    two numbers are ever subtracted. By the Markov chain tree theorem :math:`\pi_x` is
    proportional to a sum of products of k − 1 off-diagonal entries, so an entrywise relative
    change η of a k-state matrix moves the law by a factor of at most
    :math:`((1+\eta)/(1-\eta))^{k-1}` (O'Cinneide, 1993). Censoring the state j rounds the entries
    that are left by at most γ(j + 3); summed over all states and with the substitution back this
    is at most k²(k + 4)·u, to which 2k·``entry_error`` is added for the entries as they came in.
    """
    members = closed_class(transition)
    k = len(members)
    work = transition[np.ix_(members, members)].copy()
    law = np.ones(k)
    try:
        with np.errstate(under="raise", over="raise"):
            for j in range(k - 1, 0, -1):
                work[:j, j] /= work[j, :j].sum()
                work[:j, :j] += np.multiply.outer(work[:j, j], work[j, :j])
            for j in range(1, k):
                law[j] = (law[:j] * work[:j, j]).sum()
            law /= law.sum()
        fits = bool(law.min() >= LEAST_STATIONARY)
    except FloatingPointError:
        fits = False
    if not fits:
        raise InvalidPrior(
            "transition",
            given="has a stationary law whose entries differ by more than float64 can hold",
            needed="have less extreme probabilities, or `start` be given as a law",
        )
    full = np.zeros(len(transition))
    full[members] = law
    return full, k * k * (k + 4) * UNIT + 2 * k * entry_error


Start = Floats | Literal["stationary", "unknown"]
Known = Literal["none", "any"]


@dataclass(frozen=True, eq=False)
class MarkovChain(SequencePrior):
    """The adversary knows how one state follows another, and where the chain starts, or more.

    Entries are the times 0, 1, …; the entry at time t + 1 depends on the one at time t alone.
    Rows that sum to 1 only up to rounding (1e-9) stand for themselves divided by their exact
    sums: that chain is the prior, and everything computed is a bound for it.

    >>> chain = MarkovChain([[0.9, 0.1], [0.3, 0.7]], states=("home", "ward"), length=7)
    >>> chain.stationary.round(3)
    array([0.75, 0.25])

    Attributes:
        transition: ``[x, y]``: the probability that y follows x; or ``[t, x, y]``, a matrix for
            each step from time t to t + 1.
        states: The names of the states; 0, 1, … if none are given. With ``columns`` a state is
            the tuple of their values.
        columns: The names of the columns whose values a joint state lists; None if there is one.
        start: The law of the first entry; ``"stationary"`` for a stationary chain; ``"unknown"``
            if the guarantee must hold for every law of the first entry.
        length: The number of entries; None if it is unbounded.
        known: ``"any"`` if the guarantee must also hold against somebody who knows any other
            entries exactly; by default no entry is known.
    """

    kind: ClassVar[str] = "markov-chain"

    transition: Floats
    states: tuple[State, ...] = ()
    columns: tuple[str, ...] | None = field(
        default=None, metadata={"unless_default": True}, kw_only=True
    )
    start: Start = "stationary"
    length: int | None = None
    known: Known = field(default="none", metadata={"unless_default": True}, kw_only=True)

    def __post_init__(self) -> None:
        table = distribution(self.transition, "transition", InvalidPrior)
        self._set(transition=table)
        if table.ndim not in (2, 3) or table.shape[-1] != table.shape[-2]:
            raise InvalidPrior(
                "transition",
                given=f"has shape {table.shape}",
                needed="be square, or a list of square matrices, one for each step",
            )
        names, columns = checked_states(self.states, table.shape[-1], self.columns)
        self._set(states=names, columns=columns, length=self._checked_length())
        refuse_other_words("known", self.known, ("none", "any"))
        if not isinstance(self.start, str):
            self._set(start=checked_law(self.start, len(self.states)))
            return
        refuse_other_words("start", self.start, ("stationary", "unknown"), more=" or a law")
        if self.start == "stationary":
            if not self.homogeneous:
                raise InvalidPrior(
                    "start",
                    given="is stationary, but each step has a matrix of its own",
                    needed="be given as a law: one probability for each state",
                )
            _ = self._stationary_law  # an error now rather than later

    def _checked_length(self) -> int | None:
        length = checked_length(self.length)
        if self.homogeneous:
            return length
        implied = len(self.transition) + 1
        if length not in (None, implied):
            raise InvalidPrior(
                "length",
                given=f"is {length}, but `transition` has {implied - 1} steps",
                needed=f"be {implied}, or be left out",
            )
        return implied

    @property
    def homogeneous(self) -> bool:
        """Whether every step has the same matrix."""
        return self.transition.ndim == 2

    @property
    def row_error(self) -> float:
        """How far an entry of `kernel` may be, relatively, from the exactly normalised one."""
        return gamma(len(self.states))

    def kernel(self, time: int = 0) -> Floats:
        """``[x, y]``: the matrix of the step from ``time``, its rows divided by their sums."""
        if self.homogeneous:
            return self._kernels
        kernel: Floats = self._kernels[time]
        return kernel

    @cached_property
    def _kernels(self) -> Floats:
        return frozen(self.transition / self.transition.sum(axis=-1, keepdims=True))

    @cached_property
    def _stationary_law(self) -> tuple[Floats, float]:
        if not self.homogeneous:
            raise InvalidPrior(
                "transition",
                given="changes from step to step",
                needed="be one matrix to have a stationary law",
            )
        law, error = stationary_law(self.kernel(), entry_error=self.row_error)
        return frozen(law), error

    @property
    def stationary(self) -> Floats:
        """``[x]``: the stationary law, each entry within `stationary_error`."""
        return self._stationary_law[0]

    @property
    def stationary_error(self) -> float:
        """A bound on the relative error of every entry of `stationary`."""
        return self._stationary_law[1]

    @property
    def stationary_start(self) -> bool:
        """Whether the first entry has the stationary law."""
        return isinstance(self.start, str) and self.start == "stationary"

    @property
    def unknown_start(self) -> bool:
        """Whether the first entry may have any law."""
        return isinstance(self.start, str) and self.start == "unknown"

    @property
    def one_law(self) -> bool:
        """Whether it is a single law, and no more is known than that."""
        return not self.unknown_start and self.known == "none"

    def refuse_unless_one_law(self, what: str) -> None:
        """Raise unless the chain is a single law: ``what`` would not hold for the others."""
        if not self.one_law:
            given = "start = 'unknown'" if self.unknown_start else "known = 'any'"
            raise UnsoundRequest(
                f"{what} needs a chain with a law of the first entry, of which no entry is known;"
                f" this one has {given}",
                field="start" if self.unknown_start else "known",
                given=given,
            )

    def against(self, *, start: Start | None = None, known: Known | None = None) -> "MarkovChain":
        """The same chain against another adversary."""
        return replace(
            self,
            start=self.start if start is None else start,
            known=self.known if known is None else known,
        )

    @property
    def start_law(self) -> Floats:
        """``[x]``: the law of the first entry."""
        if isinstance(self.start, str):
            if self.unknown_start:
                raise UnsoundRequest(
                    "the law of the first entry is unknown; give `start` as a law, or 'stationary'",
                    field="start",
                    given="unknown",
                )
            return self.stationary
        return self.start

    @property
    def start_error(self) -> float:
        """A bound on the relative error of `start_law`, up to a factor shared by all entries."""
        return self.stationary_error if self.stationary_start else 0.0

    def marginals(self, length: int | None = None) -> Floats:
        """``[t, x]``: the law of each of the first ``length`` entries, up to rounding.

        It is 0 for what cannot happen, and only there: what is smaller than any float is given as
        the smallest.
        """
        law, able = self.start_law, self.start_law > 0
        laws = [law]
        for time in range(self._at_most(length) - 1):
            if not self.stationary_start:
                kernel = self.kernel(time)
                able = np.logical_or.reduce(able[:, None] & (kernel > 0), axis=0)
                law = np.where(able, np.maximum(law @ kernel, np.finfo(np.float64).tiny), 0.0)
            laws.append(law)
        return np.stack(laws)

    def explicit(self, length: int | None = None) -> Explicit:
        """The first ``length`` entries written out as a table, for small ones."""
        self.refuse_unless_one_law("a table of datasets")
        size = self._at_most(length)
        universe = Tables.of(dict.fromkeys(range(size), self.states))
        codes = universe.codes
        steps = [self.kernel(t)[codes[:, t], codes[:, t + 1]] for t in range(size - 1)]
        parts = [self.start_law[codes[:, 0]], *steps]
        table = Explicit.multiplied(universe, parts, name=self.kind)
        return table.also_fitted_on(*self.fitted_on)

    def facts(self) -> dict[str, Any]:
        """What `takifugu prior show` prints, beside kind and fingerprint."""
        start = self.start if isinstance(self.start, str) else "given"
        facts = super().facts() | {"zeros": int((self.transition == 0).sum()), "start": start}
        if self.columns is not None:
            facts["columns"] = list(self.columns)
        return facts if self.known == "none" else facts | {"known": self.known}
