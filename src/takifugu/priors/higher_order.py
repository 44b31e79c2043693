"""Priors in which each entry depends on several entries before it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from takifugu._core.numeric import Floats, Integers, distribution
from takifugu.errors import InvalidPrior, TooLarge, UnsoundRequest
from takifugu.priors.explicit import Explicit
from takifugu.priors.fitting import TAU, smooth, state_codes
from takifugu.priors.markov import MarkovChain, closed_class
from takifugu.priors.prior import (
    SequencePrior,
    checked_length,
    named_states,
    refuse_other_words,
)
from takifugu.priors.universe import Name, State, Tables

MAX_WINDOWS = 1024  # the matrix of the window chain is written out


@dataclass(frozen=True, eq=False)
class HigherOrderChain(SequencePrior):
    r"""The adversary knows how each entry depends on the k entries before it; stationary.

    **The window chain.** The windows :math:`Y_i = (X_{i-k+1}, \ldots, X_i)` of a chain of order k
    are a Markov chain, stationary if X is (values before entry 0 are those of the same process).
    A mechanism M on X is one on sequences of windows, overlapping or not: M reads the last value
    of each. If window i alone changes, then entry i alone changes, or nothing; so M loses as much
    per window as it does per entry. Hence whatever bounds the loss of all such mechanisms on Y,
    with secrets "the last value of :math:`Y_i` is x", bounds the loss of all per-entry DP
    mechanisms on X. ∎

    Windows that the stationary process never shows are left out. With ``start="unknown"`` the first
    window may have any law, and every window counts: values before entry 0 may be known.

    >>> weather = HigherOrderChain(
    ...     [[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]], states=("dry", "wet"), length=30
    ... )
    >>> weather.order, weather.windows.tolist()
    (2, [[0, 0], [0, 1], [1, 0], [1, 1]])

    Attributes:
        transition: ``[x_1, …, x_k, y]``: the probability that y follows x_1, …, x_k, the latest
            last. Rows that sum to 1 only up to rounding stand for themselves divided by their sums.
        states: The names of the states; 0, 1, … if none are given.
        length: The number of entries; None if it is unbounded.
        start: ``"unknown"`` if the guarantee must hold for every law of the first window.
    """

    kind: ClassVar[str] = "higher-order-chain"

    transition: Floats
    states: tuple[State, ...] = ()
    length: int | None = None
    start: Literal["stationary", "unknown"] = field(
        default="stationary", metadata={"unless_default": True}, kw_only=True
    )

    def __post_init__(self) -> None:
        table = distribution(self.transition, "transition", InvalidPrior)
        self._set(transition=table)
        if table.ndim < 3 or len(set(table.shape)) != 1:
            raise InvalidPrior(
                "transition",
                given=f"has shape {table.shape}",
                needed="have one axis for each of at least two entries before, and one for the"
                " next, all of the same size; order 1 is a markov-chain",
            )
        states, length = named_states(self.states, len(table)), checked_length(self.length)
        self._set(states=states, length=length)
        refuse_windows(len(table), self.order)
        refuse_other_words("start", self.start, ("stationary", "unknown"))
        if self.start == "stationary":
            _ = self.window_chain.stationary  # an error now rather than later

    @classmethod
    def fit(
        cls,
        sequences: Iterable[Iterable[Any]],
        *,
        order: int,
        states: Sequence[Name] | None = None,
        tau: float | None = TAU,
        length: int | None = None,
    ) -> "HigherOrderChain":
        """The relative frequencies of what followed each window, smoothed by ``tau``.

        Nothing is counted from one sequence to the next. After a window that nothing followed,
        every state is equally likely. ``states`` and ``tau`` are those of `Transitions`.
        """
        refuse_order(order)
        names, paths = state_codes(sequences, states)
        size = len(names)
        refuse_windows(size, order)
        counts = np.zeros((size,) * (order + 1), dtype=np.int64)
        for path in paths:
            if len(path) > order:
                runs = np.lib.stride_tricks.sliding_window_view(path, order + 1)
                np.add.at(counts, tuple(runs.T), 1)
        return cls.of_counts(counts, names, tau=tau, length=length)

    @classmethod
    def of_counts(
        cls,
        counts: Integers,
        states: Sequence[State] = (),
        *,
        tau: float | None = TAU,
        length: int | None = None,
    ) -> "HigherOrderChain":
        """The same from ``[x_1, …, x_k, y]``: how many times y followed x_1, …, x_k."""
        size = counts.shape[-1]
        table = counts.reshape(-1, size).astype(np.float64)
        seen = table.sum(axis=1, keepdims=True)
        table = np.where(seen > 0, table / np.maximum(seen, 1), 1 / size)
        if tau is not None:
            table = smooth(table, tau=tau)
        return cls(table.reshape(counts.shape), tuple(states), length)

    @property
    def order(self) -> int:
        """k: how many entries before it an entry depends on."""
        return self.transition.ndim - 1

    @property
    def breadth(self) -> int:
        """The number of windows."""
        return len(self.windows)

    @property
    def windows(self) -> Integers:
        """``[window, k]``: the states of each window that can happen, the latest last."""
        return self._window_chain[0]

    @property
    def window_chain(self) -> MarkovChain:
        """The chain of windows; its states are the numbers of `windows`."""
        return self._window_chain[1]

    @cached_property
    def _window_chain(self) -> tuple[Integers, MarkovChain]:
        size, k = len(self.states), self.order
        windows = np.indices((size,) * k).reshape(k, -1).T
        rows = np.zeros((size**k, size**k))
        following = (np.arange(size**k) % size ** (k - 1))[:, None] * size + np.arange(size)
        np.put_along_axis(rows, following, self.transition.reshape(-1, size), axis=1)
        if self.start == "unknown":
            return windows, MarkovChain(rows, start="unknown", length=self.length)
        try:
            recurrent = closed_class(rows)
        except InvalidPrior as error:
            raise InvalidPrior(
                "transition",
                given="has windows that never lead to one another, each kept for ever",
                needed="have one stationary law",
            ) from error
        windows = np.ascontiguousarray(windows[recurrent], dtype=np.int64)
        windows.setflags(write=False)
        return windows, MarkovChain(rows[np.ix_(recurrent, recurrent)], length=self.length)

    def explicit(self, length: int | None = None) -> Explicit:
        """The first ``length`` entries written out as a table, for small ones."""
        size = self._at_most(length)
        if self.start == "unknown":
            raise UnsoundRequest(
                "a table of datasets needs a law of the first window; this chain has"
                " start = 'unknown'",
                field="start",
                given=self.start,
            )
        k = self.order
        first = np.zeros(self.transition.shape[:k])
        first[tuple(self.windows.T)] = self.window_chain.stationary
        first = first.sum(axis=tuple(range(min(size, k), k)))
        kernel = self.transition / self.transition.sum(axis=-1, keepdims=True)
        universe = Tables.of(dict.fromkeys(range(size), self.states))
        codes = universe.codes
        parts = [first[tuple(codes[:, :k].T)]]
        parts += [kernel[tuple(codes[:, i - k : i + 1].T)] for i in range(k, size)]
        table = Explicit.multiplied(universe, parts, name=self.kind)
        return table.also_fitted_on(*self.fitted_on)

    def facts(self) -> dict[str, Any]:
        """What `takifugu prior show` prints, beside kind and fingerprint."""
        facts = super().facts() | {"order": self.order, "windows": len(self.windows)}
        return facts if self.start == "stationary" else facts | {"start": self.start}


def refuse_order(order: object) -> None:
    """Raise unless it is the order of such a chain."""
    if isinstance(order, bool) or not isinstance(order, int) or order < 2:
        raise InvalidPrior(
            "order", given=f"is {order!r}", needed="be 2 or more; order 1 is a markov-chain"
        )


def refuse_windows(states: int, order: int) -> None:
    """Raise if the windows are too many for a matrix."""
    if (windows := states**order) > MAX_WINDOWS:
        raise TooLarge(
            f"{states} states make {windows:,} windows of {order} entries, more than"
            f" {MAX_WINDOWS:,}; merge states, or take a lower order",
            size=windows,
            limit=MAX_WINDOWS,
        )
