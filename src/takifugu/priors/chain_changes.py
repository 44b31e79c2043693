r"""The chain that follows from another one if two states count as one.

It is the chain that a fit would give on changed labels. Let :math:`F_{xy}` be how often y follows
x: counts, or :math:`\pi_x P_{xy}` of a chain with the stationary law :math:`\pi`. A step of either
is a step of both, so that rows and columns add up.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.errors import InvalidPrior
from takifugu.priors.fitting import elsewhere, smooth
from takifugu.priors.markov import MarkovChain, Start
from takifugu.priors.secrets import Secrets
from takifugu.priors.universe import State

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


def _same(one: object, other: object) -> bool:
    """Whether two values are one: secrets may name a whole number as text."""
    return one == other or str(one) == str(other)
