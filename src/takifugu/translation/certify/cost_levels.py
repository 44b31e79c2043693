"""What each entry of a chain was charged: a few different cost matrices, and which is whose."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats, Integers, frozen
from takifugu.costs.cost import Value
from takifugu.errors import Malformed
from takifugu.translation.certify.flow import off_diagonal
from takifugu.translation.entry_costs import EntryCosts

MOST = 1e300  # a larger total is refused: sums of it would not be floats


@dataclass(frozen=True, eq=False)
class CostLevels:
    """The cost of a change, entry by entry.

    A scalar loss ε is the matrix ε·[u≠v]. Every matrix is closed (no detour is cheaper), has 0 on
    its diagonal, and need neither be symmetric nor be positive elsewhere.

    Attributes:
        matrices: The different matrices ``[u, v]``.
        at: ``[entry]``: which of them is the entry's.
    """

    matrices: tuple[Floats, ...]
    at: Integers

    @classmethod
    def of_losses(cls, epsilon: ArrayLike, metric: Floats) -> "CostLevels":
        """ε of each entry times what a change costs as a multiple of it."""
        spent = np.asarray(epsilon, dtype=np.float64)
        if spent.ndim != 1 or not spent.size or not ((spent >= 0) & np.isfinite(spent)).all():
            raise Malformed(
                "epsilon", given="is not a list of finite losses", needed="be 0 or more"
            )
        levels, at = np.unique(spent, return_inverse=True)
        return cls(tuple(frozen(level * metric) for level in levels.tolist()), at).checked()

    @classmethod
    def of_costs(
        cls,
        costs: EntryCosts,
        states: Sequence[Value],
        columns: tuple[str, ...] | None,
        length: int | None,
    ) -> "CostLevels":
        """What ``costs`` says of a chain with these states.

        A uniform cost is repeated ``length`` times, or stated once if that is None.
        """
        matrices, at = costs.matrices(states, columns)
        places = at if not costs.uniform else [0] * (length or 1)
        return cls(tuple(matrices), np.array(places, dtype=np.int64)).checked()

    def checked(self) -> "CostLevels":
        """The same, unless it adds up to more than floats can hold."""
        with np.errstate(over="ignore"):
            total = float(self.dearest.sum())
        if not total < MOST:
            raise Malformed(
                "epsilon",
                given=f"sums to {total:g}",
                needed=f"sum to less than {MOST:g}",
                reason="sum",
            )
        return self

    def __len__(self) -> int:
        return len(self.at)

    @property
    def states(self) -> int:
        """How many values an entry has."""
        return len(self.matrices[0])

    def cost(self, entry: int) -> Floats:
        """``[u, v]``: what a change of ``entry`` from u to v costs."""
        return self.matrices[int(self.at[entry])]

    @cached_property
    def tops(self) -> Floats:
        """``[level]``: the dearest change of each matrix."""
        return np.array([float(matrix.max(initial=0.0)) for matrix in self.matrices])

    @property
    def dearest(self) -> Floats:
        """``[entry]``: the dearest change of each entry."""
        found: Floats = self.tops[self.at]
        return found

    def then_nothing(self, entries: int) -> "CostLevels":
        """The same with more entries after them, of which nothing was asked."""
        nothing = frozen(off_diagonal(self.states, 0.0))
        more = np.full(entries, len(self.matrices), dtype=np.int64)
        return CostLevels((*self.matrices, nothing), np.concatenate([self.at, more]))
