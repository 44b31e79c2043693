"""Priors in which what follows depends on the hour of the day as well."""

from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Literal

import numpy as np

from takifugu._core.numeric import Floats, distribution, frozen
from takifugu._core.rounding import gamma
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.priors.markov import MarkovChain, stationary_law
from takifugu.priors.prior import (
    SequencePrior,
    checked_law,
    checked_length,
    named_states,
)
from takifugu.priors.universe import State

HOURS = 24  # of a day; fewer, for tests and other cycles


@dataclass(frozen=True, eq=False)
class TimeOfDayChain(SequencePrior):
    r"""The adversary knows how one state follows another at each hour of the day.

    **The law.** Let :math:`Z_0, Z_1, \ldots` be the Markov chain that begins at hour 0 with the law
    ``start`` and goes from hour h to the next by the matrix of h, day after day. Rows are one an
    hour. Of an entity whose first row is at hour h of a day, the rows are distributed as
    :math:`Z_h, Z_{h+1}, \ldots`. Entities may begin at different hours, and the guarantee holds
    for each of these hours. By default ``start`` is the law that is the same at hour 0 of every
    day, so that which day an entity begins at makes no difference; it is then stored as a number,
    and that number is the prior. With ``start="unknown"`` the first row of an entity may have any
    law, at whichever hour it is.

    >>> lamp = TimeOfDayChain(
    ...     [[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.1, 0.9]]], states=("off", "on"), length=6
    ... )
    >>> lamp.hours, lamp.start.round(4)
    (2, array([0.1562, 0.8438]))

    Attributes:
        transition: ``[hour, x, y]``: the probability that y follows x, if x is at that hour.
        states: The names of the states; 0, 1, … if none are given.
        start: The law at hour 0; None for the one that is the same every day; ``"unknown"`` if the
            guarantee must hold for every law of an entity's first entry.
        length: The number of entries, of the entity with most of them.
    """

    kind: ClassVar[str] = "time-of-day-chain"

    transition: Floats
    states: tuple[State, ...] = ()
    start: Floats | Literal["unknown"] | None = None
    length: int | None = None

    def __post_init__(self) -> None:
        table = distribution(self.transition, "transition", InvalidPrior)
        if table.ndim != 3 or table.shape[1] != table.shape[2]:
            raise InvalidPrior(
                "transition",
                given=f"has shape {table.shape}",
                needed="be a list of square matrices, one for each hour of the day",
            )
        states = named_states(self.states, table.shape[-1])
        self._set(transition=table, states=states, length=checked_length(self.length))
        if self.length is None:
            raise InvalidPrior(
                "length",
                given="is missing",
                needed="be given: the number of rows of the entity with most of them",
            )
        if self.unknown_start:
            return
        law = _daily_law(table) if self.start is None else self.start
        self._set(start=checked_law(law, len(self.states)))

    @property
    def unknown_start(self) -> bool:
        """Whether the first entry may have any law."""
        return isinstance(self.start, str) and self.start == "unknown"

    @property
    def hours(self) -> int:
        """The number of hours of a day."""
        return len(self.transition)

    @property
    def period(self) -> int:
        """The number of hours of a day."""
        return self.hours

    @property
    def entries(self) -> int:
        """The number of entries."""
        return int(self.length or 1)

    def days_of(self, size: int) -> MarkovChain:
        """Z: the first ``size`` entries of the chain that begins at hour 0."""
        if size == 1:
            return MarkovChain(self.transition[0], self.states, start=self._law, length=1)
        steps = self.transition[np.arange(size - 1) % self.hours]
        return MarkovChain(steps, self.states, start=self._law, length=size)

    def beginning(self, hour: int) -> MarkovChain:
        """The entries of an entity whose first row is at ``hour``, and may have any law."""
        if self.entries == 1:
            return MarkovChain(self.transition[hour], self.states, start="unknown", length=1)
        steps = self.transition[(hour + np.arange(self.entries - 1)) % self.hours]
        return MarkovChain(steps, self.states, start="unknown", length=self.entries)

    @property
    def _law(self) -> Floats:
        if isinstance(self.start, str):
            raise UnsoundRequest(
                "the law of the first entry is unknown; give `start` as a law at hour 0",
                field="start",
                given=self.start,
            )
        if self.start is None:
            raise TypeError("the law at hour 0 is set when the prior is made")
        return self.start

    def facts(self) -> dict[str, Any]:
        """What `takifugu prior show` prints, beside kind and fingerprint."""
        facts = {"hours": self.hours, "zeros": int((self.transition == 0).sum())}
        return super().facts() | facts | ({"start": "unknown"} if self.unknown_start else {})


def _daily_law(table: Floats) -> Floats:
    """The law at hour 0 that a whole day leaves as it is, to the accuracy of floats."""
    kernels = table / table.sum(axis=-1, keepdims=True)
    day = reduce(np.matmul, list(kernels))
    day = day / day.sum(axis=-1, keepdims=True)
    try:
        law, _ = stationary_law(day, entry_error=gamma(len(table) * table.shape[-1]))
    except InvalidPrior as error:
        raise InvalidPrior(
            "start",
            given="is left out, and several laws are the same every day",
            needed="be given: one probability for each state at hour 0",
            reason="start",
        ) from error
    return frozen(law / law.sum())
