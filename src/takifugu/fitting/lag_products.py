"""Sums of products of numbers that are some rows apart, as one relation.

Everything that is added is a whole number, so that the sums do not depend on the order of the rows
or on the database. A value is clamped and rounded to the declared steps, then put on a `Grid` that
is fine enough for its mean to be a point of it (nearly) and coarse enough that no sum of so many
products leaves 64 bits, which not every database would report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

from takifugu.declarations.columns import Amount
from takifugu.declarations.declaration import Declaration
from takifugu.priors import Name
from takifugu.tables import relations as rel
from takifugu.tables.backends.backend import Kind
from takifugu.tables.expressions import clamped
from takifugu.tables.label_lookup import OUTSIDE, Lookup

MOST_SUM = 2**62  # of products, in 64 bits
FINEST = 2**10  # points of the grid in one declared step


@dataclass(frozen=True)
class Grid:
    """Whole numbers that stand for a column's values: ``fine`` in a step, or ``coarse`` steps each.

    Attributes:
        low: The lower bound of the column, in steps.
        fine: How many points of the grid one step has; a power of 2.
        coarse: How many steps one point of the grid stands for; a power of 2. One of both is 1.
        powers: How many points are taken together for the third and fourth powers.
    """

    low: int
    fine: int
    coarse: int
    powers: int

    @classmethod
    def of(cls, amount: Amount, rows: int) -> "Grid":
        """The finest grid on which no sum over so many rows can overflow.

        A value less a mean of its group is at most the width of the bounds from 0, and at most
        twice that less a mean of its entity; a product of two is at most the square.
        """
        most = isqrt(MOST_SUM // max(rows, 1))  # of a centred value, on the grid
        fine = coarse = 1
        while fine < FINEST and 4 * fine * amount.width + 4 <= most:
            fine *= 2
        while 2 * (amount.width // coarse) + 4 > most:
            coarse *= 2
        reach, powers = 2 * (fine * amount.width // coarse) + 4, 1
        while reach // powers + 2 > isqrt(most):
            powers *= 2
        return cls(int(amount.low / amount.step), fine, coarse, powers)

    def unit(self, step: Fraction) -> Fraction:
        """How far two neighbours of the grid are apart, as numbers of the column."""
        return step * self.coarse / self.fine

    def place(self, steps: Fraction) -> int:
        """The point of the grid nearest to a number that is given in steps."""
        return round((steps - self.low) * self.fine / self.coarse)


@dataclass(frozen=True)
class Centre:
    """What is subtracted from every value, on the grid.

    Attributes:
        column: The public column by whose key it differs; None if it does not.
        codes: The place of each raw value of that column.
        points: By place, what is subtracted; a single one without a column.
        own: Whether each entity's own mean is subtracted too.
    """

    column: str | None
    codes: Lookup | None
    points: tuple[int, ...]
    own: bool


MEASURES = (
    "rows", "entities", "missing", "tie", "gap", "closest", "farthest", "at_low", "at_high",
    "sum", "squares", "powers_1", "powers_2", "powers_3", "powers_4",
)  # fmt: skip


def lag_sums(
    rows: Any,
    declaration: Declaration,
    amount: Amount,
    kinds: Mapping[str, Kind],
    grid: Grid,
    centre: Centre,
    lags: int,
) -> Any:
    """One row: `MEASURES`, then for each lag the number of products and three sums.

    Those are the sums of the earlier values, of the later ones, and of their products. ``closest``
    and ``farthest`` say how far apart in the order consecutive rows of an entity are: seconds for
    times. ``tie`` and ``gap`` are as in `expressions.transitions`.
    """
    order = declaration.order
    places = (order.column, *order.ties)
    units, missing = clamped(rows[amount.column], amount, kinds[amount.column])
    gap = rows[declaration.entity].isnull()
    for name in places:
        gap = gap | rows[name].isnull()
    at = rows[order.column]
    if kinds[order.column] in ("time", "zoned"):
        at = at.epoch_seconds()
    width = int((amount.high - amount.low) / amount.step)
    steps = units - grid.low  # 0 or more, so that any division rounds down
    on_grid = steps * grid.fine if grid.coarse == 1 else steps // grid.coarse
    base = rows.select(
        **{f"place_{i}": rows[name] for i, name in enumerate(places)},
        who=rows[declaration.entity],
        value=on_grid - _subtracted(rows, centre),
        at=at,
        at_low=_one(steps == 0),
        at_high=_one(steps == width),
        missing=_one(missing),
        gap=_one(gap),
    )
    if centre.own:
        own = rel.Window(base.who)
        mean = base.value.sum().over(own).cast("real") / base.value.count().over(own)
        base = base.mutate(value=base.value - (mean + 0.5).floor().cast("whole"))
    ordered = [base[f"place_{i}"] for i in range(len(places))]
    window = rel.Window(base.who, tuple(ordered))
    before = {f"before_{k}": base.value.lag(k).over(window) for k in range(1, lags + 1)}
    rowed = base.select(
        "value", "at_low", "at_high", "missing", "gap",
        first=_one(rel.row_number().over(window) == 0),
        apart=base.at - base.at.lag(1).over(window),
        **{f"place_{i}": place for i, place in enumerate(ordered)},
        **{f"place_before_{i}": place.lag(1).over(window) for i, place in enumerate(ordered)},
        **before,
    )  # fmt: skip
    tie = rowed.place_0 == rowed.place_before_0
    for i in range(1, len(places)):
        tie = tie & (rowed[f"place_{i}"] == rowed[f"place_before_{i}"])
    offset = 2**31 * grid.powers  # so that any division rounds down
    power = (rowed.value + offset) // grid.powers - 2**31 if grid.powers > 1 else rowed.value
    measures: dict[str, Any] = {
        "rows": rowed.value.count(),
        "entities": rowed["first"].sum(),
        "missing": rowed.missing.sum(),
        "tie": _one(tie).max(),
        "gap": rowed.gap.max(),
        "closest": rowed.apart.min(),
        "farthest": rowed.apart.max(),
        "at_low": rowed.at_low.sum(),
        "at_high": rowed.at_high.sum(),
        "sum": rowed.value.sum(),
        "squares": (rowed.value * rowed.value).sum(),
        "powers_1": power.sum(),
        "powers_2": (power * power).sum(),
        "powers_3": (power * power * power).sum(),
        "powers_4": (power * power * power * power).sum(),
    }
    for k in range(1, lags + 1):
        earlier, later = rowed[f"before_{k}"], rowed.value
        both = earlier.notnull() & later.notnull()
        measures |= {
            f"count_{k}": _one(both).sum(),
            f"earlier_{k}": rel.ifelse(both, earlier, 0).sum(),
            f"later_{k}": rel.ifelse(both, later, 0).sum(),
            f"products_{k}": rel.ifelse(both, earlier * later, 0).sum(),
        }
    return rowed.aggregate(**measures)


def _subtracted(rows: Any, centre: Centre) -> Any:
    """What is subtracted from the value of each row before its entity's own mean."""
    if centre.column is None or centre.codes is None:
        return rel.literal(centre.points[0], "whole")
    by_raw: dict[int, list[Name]] = {}
    for raw, code in centre.codes.codes.items():
        by_raw.setdefault(code, []).append(raw)
    column = rows[centre.column]
    cases: Sequence[tuple[Any, Any]] = [
        (column.isin(raws), rel.literal(centre.points[code], "whole"))
        for code, raws in by_raw.items()
    ]
    other = centre.codes.otherwise
    rest = rel.null("whole") if other == OUTSIDE else rel.literal(centre.points[other], "whole")
    return rel.cases(*cases, otherwise=rest)


def _one(condition: Any) -> Any:
    """1 or 0; PostgreSQL does not cast one to the other."""
    return rel.ifelse(condition, 1, 0)
