"""What every cell has lost, added up one release after another. Nothing here knows the ledger.

A cell is one entry: one person at one time, in one column. An account is whose sum it is: that of
everybody, or of one analyst. For each cell there is a sum for every ordered pair of values (what
all releases together tell about u against v), one of δ and one of ρ.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Generic, TypeVar

Account = TypeVar("Account", bound=Hashable)
Cell = TypeVar("Cell", bound=Hashable)
Pair = tuple[int, int]  # of values, by their place


@dataclass
class CellSum:
    """What one cell has lost."""

    pairs: dict[Pair, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    @property
    def most(self) -> Fraction:
        """What was told about some pair of values."""
        return max(self.pairs.values(), default=Fraction(0))


class CellSums(Generic[Account, Cell]):
    """The sums of every account, cell by cell."""

    def __init__(self) -> None:
        self._accounts: dict[Account, dict[Cell, CellSum]] = {}

    def add(
        self,
        account: Account,
        cells: Iterable[Cell],
        pairs: Mapping[Pair, Fraction],
        delta: Fraction = Fraction(0),
        rho: Fraction = Fraction(0),
    ) -> None:
        """Every one of ``cells`` has lost this, too."""
        kept = self._accounts.setdefault(account, {})
        for cell in cells:
            found = kept.setdefault(cell, CellSum())
            for pair, told in pairs.items():
                found.pairs[pair] += told
            found.delta += delta
            found.rho += rho

    def of(self, account: Account) -> Mapping[Cell, CellSum]:
        """The cells of an account that lost anything."""
        return self._accounts.get(account, {})

    def most(self, account: Account) -> Fraction:
        """What was told about some pair of values of some cell."""
        return max((one.most for one in self.of(account).values()), default=Fraction(0))

    def __iter__(self) -> Iterator[Account]:
        return iter(self._accounts)
