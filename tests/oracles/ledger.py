"""What every entry has lost, by going through all charges again for every entry. Slow and plain."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

OTHER = "a group that nobody ever named"
Loss = tuple[Fraction, Fraction, Fraction]  # ε, δ, ρ


@dataclass(frozen=True)
class Paid:
    """One charge: its loss, the steps [start, end) and the groups it read (None: all)."""

    loss: Loss
    start: int | None
    end: int | None
    groups: frozenset[str] | None
    analyst: str | None

    def reads(self, group: str, step: int) -> bool:
        """Whether the entry of ``group`` at ``step`` was read."""
        if self.start is not None and step < self.start:
            return False
        if self.end is not None and step >= self.end:
            return False
        return self.groups is None or group in self.groups


def totals(
    charges: Iterable[Paid], groups: Iterable[str], steps: Iterable[int], analyst: str | None = None
) -> dict[tuple[str, int], Loss]:
    """The total of every entry; of one analyst's charges if ``analyst`` is given."""
    counted = [c for c in charges if analyst is None or c.analyst == analyst]
    found = {}
    times = list(steps)
    for group in [*groups, OTHER]:
        for step in times:
            read = [c.loss for c in counted if c.reads(group, step)]
            found[group, step] = (
                sum((loss[0] for loss in read), Fraction(0)),
                sum((loss[1] for loss in read), Fraction(0)),
                sum((loss[2] for loss in read), Fraction(0)),
            )
    return found
