"""The moments of a column of numbers: mean, variance and autocovariances, counted in the database.

Values are compared with what is usual for them: the mean of all rows, or of the rows with the same
key of a public column (a daily profile), and on request the mean of their own entity as well. What
is left over has covariances that depend on the lag alone, if a stationary process describes the
rows. A Gaussian prior protects alike whatever its means are, so that a profile costs nothing.

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

import numpy as np

from takifugu._core.numeric import Floats, Integers, frozen
from takifugu.declarations.columns import Amount
from takifugu.declarations.declaration import Declaration
from takifugu.declarations.table_errors import InvalidDeclaration, InvalidQuery
from takifugu.priors import Name
from takifugu.tables import relations as rel
from takifugu.tables.backends.backend import Kind
from takifugu.tables.engine import Engine
from takifugu.tables.expressions import by_entity, clamped, flag, with_earlier
from takifugu.tables.label_lookup import OUTSIDE, Lookup
from takifugu.tables.scope import EVERYTHING, Scope

MAX_LAGS = 240  # sums in one statement
MAX_PROFILE_KEYS = 1_000  # of a profile
MAX_PRODUCT_SUM = 2**62  # in 64 bits
MAX_FINENESS = 2**10  # points of the grid in one declared step
MIN_PRODUCTS = 30  # products that an autocovariance rests on


@dataclass(frozen=True, eq=False)
class LagMoments:
    """Moments of a column of numbers, within the rows of an entity.

    Attributes:
        amount: The column, with its bounds and its step.
        rows: How many rows were read.
        entities: How many entities they are of.
        profile: The public column by whose keys means differ; None for one mean.
        means: The mean of each key with rows, to the nearest float; of all under None without a
            profile.
        own: Whether each entity's own mean was subtracted too.
        covariances: ``[lag]`` from 0 on, without what rounding to steps adds to the variance.
        products: ``[lag]``: how many products each is the mean of.
        skewness: Of what is left over after means are subtracted.
        kurtosis: The same; 3 for a normal law.
        at_bounds: How many values are at the lower, and how many at the upper bound.
        spacing: How far apart in the order consecutive rows are, from and to: seconds for times.
    """

    amount: Amount
    rows: int
    entities: int
    profile: str | None
    means: tuple[tuple[Name | None, float], ...]
    own: bool
    covariances: Floats
    products: Integers
    skewness: float
    kurtosis: float
    at_bounds: tuple[int, int]
    spacing: tuple[float, float] | None

    @property
    def mean(self) -> float:
        """The mean of the means: of every row's, it does not matter to the guarantee."""
        return float(np.mean([mean for _, mean in self.means]))

    @property
    def variance(self) -> float:
        """Of what is left over after means are subtracted, before rounding."""
        return float(self.covariances[0])

    @property
    def correlations(self) -> Floats:
        """``[lag]`` from 0 on."""
        return frozen(self.covariances / self.covariances[0])

    @property
    def longest(self) -> int:
        """The last lag."""
        return len(self.covariances) - 1


def lag_moments(
    engine: Engine,
    column: str,
    scope: Scope = EVERYTHING,
    *,
    lags: int = 24,
    profile: str | None = None,
    own: bool = False,
) -> LagMoments:
    """Count the moments of ``column`` on some rows; lags with few products are left out.

    Args:
        engine: The table.
        column: A column of numbers that has no missing values.
        scope: The rows.
        lags: The last lag.
        profile: A public column: each of its keys has a mean of its own.
        own: Whether each entity has a mean of its own too, which the adversary then knows.
    """
    if isinstance(lags, bool) or not isinstance(lags, int) or not 1 <= lags <= MAX_LAGS:
        raise InvalidQuery(
            "lags", given=f"is {lags!r:.40}", needed=f"be a whole number from 1 to {MAX_LAGS}"
        )
    amount = engine.declaration.amount(column)
    if amount.missing != "refuse":
        raise InvalidDeclaration(
            column,
            given="may be missing",
            needed='have missing = "refuse": a Gaussian prior is about numbers, each of which is'
            " there",
            reason="numbers",
        )
    grid = Grid.of(amount, engine.count(scope))
    centre, means = _centre(engine, amount, scope, grid, profile, own)
    ((*found,),) = engine.collect(
        lambda rows: lag_sums(rows, engine.declaration, amount, engine.kinds, grid, centre, lags),
        scope,
    )
    named = dict(zip(MEASURES, found, strict=False))
    sums = np.array([[int(x or 0) for x in found[len(MEASURES) :]]], dtype=object).reshape(lags, 4)
    engine.refuse_flags(named["tie"], named["gap"])
    return _moments(amount, grid, named, sums, means, profile, own)


def _centre(
    engine: Engine, amount: Amount, scope: Scope, grid: "Grid", profile: str | None, own: bool
) -> tuple["Centre", tuple[tuple[Name | None, float], ...]]:
    if profile is not None and profile not in [c.column for c in engine.declaration.public]:
        names = ", ".join(c.column for c in engine.declaration.public) or "there are none"
        raise InvalidQuery(
            "profile", given=f"is {profile!r:.60}", needed=f"be a public column: {names}"
        )
    if profile is not None and len(engine.keys(profile)) > MAX_PROFILE_KEYS:
        raise InvalidQuery(
            "profile",
            given=f"{profile} has {len(engine.keys(profile)):,} keys",
            needed=f"have at most {MAX_PROFILE_KEYS:,}",
        )
    sums = engine.sums(amount.column, () if profile is None else (profile,), scope)
    counts, units = np.ravel(sums.counts), np.ravel(sums.units)
    in_steps = [
        Fraction(int(total), int(count)) if count else Fraction(grid.low)
        for count, total in zip(counts, units, strict=True)
    ]
    keys: tuple[Name | None, ...] = (None,) if profile is None else engine.keys(profile)
    means = tuple(
        (key, float(mean * amount.step))
        for key, mean, count in zip(keys, in_steps, counts, strict=True)
        if count
    )
    codes = None if profile is None else engine.lookup(profile)
    return Centre(profile, codes, tuple(map(grid.place, in_steps)), own), means


def _moments(
    amount: Amount,
    grid: "Grid",
    named: dict[str, Any],
    sums: Any,
    means: tuple[tuple[Name | None, float], ...],
    profile: str | None,
    own: bool,
) -> LagMoments:
    column, rows = amount.column, int(named["rows"] or 0)
    if rows < MIN_PRODUCTS or int(sums[0][0]) < MIN_PRODUCTS:
        raise InvalidQuery(
            column,
            given="has too few rows to fit on",
            needed=f"have at least {MIN_PRODUCTS} rows that follow another one of the same entity",
            reason="few-rows",
        )
    unit = float(grid.unit(amount.step))
    variance = _covariance(rows, *(int(named[name]) for name in ("sum", "sum", "squares")))
    rounding = Fraction(grid.fine**2, 12)  # Sheppard: of a value rounded to a step, or to the grid
    if not variance > 2 * rounding:
        raise InvalidQuery(
            column,
            given="hardly varies in these rows: by less than its step",
            needed="vary; declare a finer step, or fit on other rows",
            reason="constant",
        )
    rich_lags = [1 + k for k, line in enumerate(sums) if int(line[0]) >= MIN_PRODUCTS]
    last = next((k - 1 for k in range(1, len(sums) + 2) if k not in rich_lags), len(sums))
    covariances = [variance - rounding]
    covariances += [_covariance(*map(int, line)) for line in sums[:last]]
    moments = _standardised([Fraction(int(named[f"powers_{k}"]), rows) for k in range(1, 5)])
    spacing = None
    if named["closest"] is not None:
        spacing = float(named["closest"]), float(named["farthest"])
    return LagMoments(
        amount=amount,
        rows=rows,
        entities=int(named["entities"]),
        profile=profile,
        means=means,
        own=own,
        covariances=frozen([float(c) * unit**2 for c in covariances]),
        products=np.array([rows, *(int(line[0]) for line in sums[:last])], dtype=np.int64),
        skewness=moments[0],
        kurtosis=moments[1],
        at_bounds=(int(named["at_low"] or 0), int(named["at_high"] or 0)),
        spacing=spacing,
    )


def _covariance(count: int, first: int, second: int, products: int) -> Fraction:
    """The mean of products less the product of means, exactly."""
    return Fraction(products, count) - Fraction(first, count) * Fraction(second, count)


def _standardised(powers: list[Fraction]) -> tuple[float, float]:
    """Skewness and kurtosis from the means of the first four powers."""
    mean, squares, cubes, fourths = powers
    variance = squares - mean**2
    if not variance > 0:
        return 0.0, 3.0
    central_3 = cubes - 3 * mean * squares + 2 * mean**3
    central_4 = fourths - 4 * mean * cubes + 6 * mean**2 * squares - 3 * mean**4
    return float(central_3) / float(variance) ** 1.5, float(central_4 / variance**2)


# --- sums of products of numbers that are some rows apart, as one relation ---


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
        most = isqrt(MAX_PRODUCT_SUM // max(rows, 1))  # of a centred value, on the grid
        fine = coarse = 1
        while fine < MAX_FINENESS and 4 * fine * amount.width + 4 <= most:
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
    units, missing = clamped(rows[amount.column], amount, kinds[amount.column])
    order = declaration.order
    at = rows[order.column]
    if kinds[order.column] in ("time", "zoned"):
        at = at.epoch_seconds()
    width = int((amount.high - amount.low) / amount.step)
    steps = units - grid.low  # 0 or more, so that any division rounds down
    on_grid = steps * grid.fine if grid.coarse == 1 else steps // grid.coarse
    base = by_entity(
        rows,
        declaration,
        value=on_grid - _subtracted(rows, centre),
        at=at,
        at_low=flag(steps == 0),
        at_high=flag(steps == width),
        missing=flag(missing),
    )
    if centre.own:
        own = rel.Window(base.who)
        mean = base.value.sum().over(own).cast("real") / base.value.count().over(own)
        base = base.mutate(value=base.value - (mean + 0.5).floor().cast("whole"))
    before = {f"before_{k}": ("value", k) for k in range(1, lags + 1)}
    rowed = with_earlier(base, **before, at_before=("at", 1))
    apart = rowed.at - rowed.at_before
    offset = 2**31 * grid.powers  # so that any division rounds down
    power = (rowed.value + offset) // grid.powers - 2**31 if grid.powers > 1 else rowed.value
    measures: dict[str, Any] = {
        "rows": rowed.value.count(),
        "entities": rowed["first"].sum(),
        "missing": rowed.missing.sum(),
        "tie": rowed.tie.max(),
        "gap": rowed.gap.max(),
        "closest": apart.min(),
        "farthest": apart.max(),
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
            f"count_{k}": flag(both).sum(),
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
