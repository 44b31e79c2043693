"""What was compared in each family: counts, and how close the bounds are to the truth."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from torture.oracles.comparison import Allowance, Compared, Family
from torture.part_report import Cell

COLUMNS = (
    *("family", "instances", "refused", "statements", "violations", "wrong exact", "exact"),
    *("upper/true min", "median", "90 %", "99 %", "max", "truth known"),
    *("lower/true min", "10 %", "median ", "max "),
    *("allowances", "nothing allowed"),
)
ENOUGH = 30  # instances, or allowances, of a family before their shares say something
MOST_REFUSED = 0.4  # of the instances of a family; 0.11 were, where that was most
MOST_NOTHING = 0.5  # of the allowances of a family; 0.1 were, of an unbounded chain, else none


@dataclass
class Tally:
    """The results of one family so far."""

    family: Family
    instances: int = 0
    refused: int = 0
    skipped: int = 0
    faulty: int = 0
    allowances: int = 0
    nothing: int = 0
    statements: int = 0
    violations: int = 0
    wrongly_exact: int = 0
    called_exact: int = 0
    asked_exact: int = 0
    known: int = 0
    counted: int = 0
    seconds: float = 0.0
    above: list[float] = field(default_factory=list)
    below: list[float] = field(default_factory=list)

    def add(self, one: Compared | Allowance) -> list[str]:
        """Count what was compared; what must not be, in words."""
        if isinstance(one, Allowance):
            self.allowances += 1
            self.nothing += one.nothing
            return []
        self.statements += 1
        faults = list(one.faults(self.family.off))
        self.violations += len(faults)
        self.wrongly_exact += sum("called exact" in fault for fault in faults)
        if not one.counted:
            return faults
        self.counted += 1
        if one.exact is not None:
            self.asked_exact += 1
            self.called_exact += one.exact
        self.known += one.known
        if one.above is not None:
            self.above.append(one.above)
        if one.below is not None:
            self.below.append(one.below)
        return faults

    def blind(self) -> list[str]:
        """What was asked so often in vain that nothing can be found in it, in words."""
        wrong = []
        if self.instances >= ENOUGH and self.refused > MOST_REFUSED * self.instances:
            wrong.append(f"{self.refused} of {self.instances} instances were refused")
        if self.instances >= ENOUGH and not self.statements:
            wrong.append(f"nothing was compared in {self.instances} instances")
        if self.allowances >= ENOUGH and self.nothing > MOST_NOTHING * self.allowances:
            wrong.append(f"{self.nothing} of {self.allowances} allowances were 0")
        return wrong

    def row(self) -> tuple[Cell, ...]:
        """As a line of the report's table."""
        return (
            *(self.family.name, self.instances, self.refused, self.statements),
            *(self.violations, self.wrongly_exact, _share(self.called_exact, self.asked_exact)),
            *_points(self.above, (0, 50, 90, 99, 100)),
            _share(self.known, self.counted),
            *_points(self.below, (0, 10, 50, 100)),
            *(self.allowances, self.nothing),
        )


def _points(ratios: Sequence[float], points: Sequence[int]) -> list[Cell]:
    """Percentiles of ratios with five digits; nothing where there are none."""
    if not ratios:
        return ["" for _ in points]
    return [f"{np.percentile(ratios, point, method='nearest'):.5g}" for point in points]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""
