"""The moments of a column of numbers: mean, variance and autocovariances, counted in the database.

Values are compared with what is usual for them: the mean of all rows, or of the rows with the same
key of a public column (a daily profile), and on request the mean of their own entity as well. What
is left over has covariances that depend on the lag alone, if a stationary process describes the
rows. A Gaussian prior protects alike whatever its means are, so that a profile costs nothing.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from takifugu._core.numeric import Floats, Integers, frozen
from takifugu.declarations.columns import Amount
from takifugu.declarations.table_errors import InvalidDeclaration, InvalidQuery
from takifugu.fitting.lag_products import MEASURES, Centre, Grid, lag_sums
from takifugu.priors import Name
from takifugu.tables.engine import Engine
from takifugu.tables.scope import EVERYTHING, Scope

MOST_LAGS = 240  # sums in one statement
MOST_KEYS = 1_000  # of a profile
FEWEST = 30  # products that an autocovariance rests on


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
    if isinstance(lags, bool) or not isinstance(lags, int) or not 1 <= lags <= MOST_LAGS:
        raise InvalidQuery(
            "lags", given=f"is {lags!r:.40}", needed=f"be a whole number from 1 to {MOST_LAGS}"
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
    engine: Engine, amount: Amount, scope: Scope, grid: Grid, profile: str | None, own: bool
) -> tuple[Centre, tuple[tuple[Name | None, float], ...]]:
    if profile is not None and profile not in [c.column for c in engine.declaration.public]:
        names = ", ".join(c.column for c in engine.declaration.public) or "there are none"
        raise InvalidQuery(
            "profile", given=f"is {profile!r:.60}", needed=f"be a public column: {names}"
        )
    if profile is not None and len(engine.keys(profile)) > MOST_KEYS:
        raise InvalidQuery(
            "profile",
            given=f"{profile} has {len(engine.keys(profile)):,} keys",
            needed=f"have at most {MOST_KEYS:,}",
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
    grid: Grid,
    named: dict[str, Any],
    sums: Any,
    means: tuple[tuple[Name | None, float], ...],
    profile: str | None,
    own: bool,
) -> LagMoments:
    column, rows = amount.column, int(named["rows"] or 0)
    if rows < FEWEST or int(sums[0][0]) < FEWEST:
        raise InvalidQuery(
            column,
            given="has too few rows to fit on",
            needed=f"have at least {FEWEST} rows that follow another one of the same entity",
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
    kept = [1 + k for k, line in enumerate(sums) if int(line[0]) >= FEWEST]
    last = next((k - 1 for k in range(1, len(sums) + 2) if k not in kept), len(sums))
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
