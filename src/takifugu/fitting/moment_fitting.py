"""Fit a Gaussian process to a column of numbers, by its moments.

A fitter of `fitting.fit_kinds`: the database adds up products on the fitted rows (`lag_moments`), a
kernel is fitted to their correlations (`kernel_fitting`), and what was estimated, from how much,
and where it does not describe the rows is said beside it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf
from typing import Any

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.declarations.table_errors import InvalidQuery
from takifugu.drafting.declared_table import Table
from takifugu.fitting.fit_kinds import Estimate, fit_table
from takifugu.fitting.fit_options import FitOptions, share_of_entities
from takifugu.fitting.goodness import (
    FitTest,
    GoodnessOfFit,
    Panel,
    conclude,
    log_tail,
    p_words,
    parts_of,
)
from takifugu.fitting.kernel_fitting import KernelFit, best_kernel, correlations_of, fit_kernel
from takifugu.fitting.lag_moments import LagMoments, lag_moments
from takifugu.priors import Gaussian
from takifugu.priors.kernels import Covariance, StationaryKernel
from takifugu.tables.engine import Engine
from takifugu.tables.scope import EVERYTHING, Scope
from takifugu.visible import four_digits

LAGS = 24  # a day of hours
MEAN_CORRECTION_ROUNDS = 30  # of correcting for means that were estimated
DIFFERS = 3.0  # standard errors that a correlation may be above the fitted one
MATERIAL_EXCESS = 0.01  # and by how much
LONG_MEMORY = 100.0  # a sum of correlations: such a process hardly forgets
RANDOM_WALK_LIMIT = 8.0  # T·(1 − ρ) below which one is possible (Dickey & Fuller, 1979, 5 %)
CLAMPED = 0.01  # a share of values at a bound that a Gaussian does not describe


GAUSSIAN = FitOptions(kind="gaussian")


@dataclass(frozen=True, eq=False)
class FittedProcess:
    """A Gaussian process, and what it was estimated from.

    Attributes:
        prior: The process; its kernel is raised by the margin.
        moments: What was counted.
        fit: The kernel before the margin, with the correlations that it was fitted to.
        margin: By how many standard errors its parameter was raised.
    """

    prior: Gaussian
    moments: LagMoments
    fit: KernelFit
    margin: float

    @property
    def kernel(self) -> StationaryKernel:
        """The kernel of the prior."""
        kernel = self.prior.kernel
        assert not isinstance(kernel, Covariance)  # noqa: S101
        return kernel

    @property
    def rests(self) -> tuple[str, ...]:
        """What it rests on, for the statement of the policy."""
        moments, fit = self.moments, self.fit
        usual = "the mean of all rows"
        if moments.profile is not None:
            usual = f"the mean of the rows with the same {moments.profile}"
        if moments.own:
            usual += " and from the mean of its own entity, which count as known to the adversary"
        raised = ""
        if self.margin:
            raised = f", raised by {four_digits(self.margin)} standard errors"
        size = f"{moments.rows:,} rows of {moments.entities:,} entities"
        return (
            f"Its kernel is {fit.family.word} with {fit.family.parameter}"
            f" {four_digits(fit.parameter)} ± {four_digits(fit.error, 'up')} (standard error by"
            f" Bartlett's formula){raised}, by moments of {size} at lags 0 to {moments.longest};"
            f" each value is taken by how far it is from {usual}.",
            "Means do not matter to the loss: it holds whatever they are, if the adversary knows"
            " them.",
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the owner should see: where the process does not describe the rows."""
        return tuple(_notes(self))

    def document(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        moments, fit = self.moments, self.fit
        low, high = moments.at_bounds
        return {
            "kernel": fit.kernel.word,
            "parameter": fit.family.parameter,
            "estimate": fit.parameter,
            "standard_error": fit.error,
            "margin": self.margin,
            "sum_of_correlations": self.kernel.total(),
            "variance": moments.variance,
            "profile": moments.profile,
            "own_levels": moments.own,
            "rows": moments.rows,
            "entities": moments.entities,
            "at_bounds": [low, high],
            "spacing": None if moments.spacing is None else list(moments.spacing),
            "lags": [
                {
                    "lag": lag,
                    "products": int(moments.products[lag]),
                    "empirical": float(fit.empirical[lag]),
                    "standard_error": float(fit.errors[lag]),
                    "fitted": float(fitted),
                }
                for lag, fitted in enumerate(correlations_of(self.kernel, moments.longest))
            ],
        }


def fit_process(
    engine: Engine, column: str, scope: Scope = EVERYTHING, options: FitOptions = GAUSSIAN
) -> FittedProcess:
    """Fit a Gaussian process to ``column`` on the rows of ``scope``.

    On rows before some time a smooth kernel is refused (`takifugu.priors.adversaries`), and the
    default is AR(1). Where entities have means of their own (``own_levels``), the adversary knows
    them.
    """
    margin = 0.0 if options.margin is None else options.margin
    if not 0 <= margin < inf:
        raise InvalidQuery("margin", given=f"is {margin}", needed="be 0 or more, and finite")
    lags = LAGS if options.lags is None else options.lags
    moments = lag_moments(
        engine, column, scope, lags=lags, profile=options.profile, own=options.own_levels
    )
    kernel = "ar1" if options.kernel is None and scope.end is not None else options.kernel
    if kernel is None:
        fit = best_kernel(moments.correlations, moments.products)
    else:
        fit = fit_kernel(kernel, moments.correlations, moments.products)
    if options.own_levels:
        for _ in range(MEAN_CORRECTION_ROUNDS):
            corrected = _with_means(moments, fit.kernel)
            fit = fit_kernel(fit.family.word, corrected, moments.products)
    if not fit.error < inf:
        raise InvalidQuery(
            "kernel",
            given=f"{fit.family.word} does not determine its parameter from these rows",
            needed="be another, as ar1",
            reason="undetermined",
        )
    prior = Gaussian(
        fit.raised(margin),  # type: ignore[arg-type]
        options.length,
        moments.mean,
        moments.variance,
    )
    return FittedProcess(prior, moments, fit, margin)


def fit_gaussian_process(
    engine: Engine, columns: tuple[str, ...], train: Scope, options: FitOptions
) -> Estimate:
    """A Gaussian process of one column of numbers: the fitter of the kind ``gaussian``."""
    if len(columns) != 1:
        raise InvalidQuery(
            "columns",
            given=f"are {', '.join(columns)}",
            needed="be one column of numbers: a Gaussian process is fitted to one",
        )
    process = fit_process(engine, columns[0], train, options)

    def goodness() -> GoodnessOfFit:

        return process_goodness(engine, columns[0], process, train)

    return Estimate(
        process.prior,
        int(process.moments.products[1:].sum()),
        "products",
        process.rests,
        process.notes,
        process.document(),
        "sequence",
        goodness,
    )


def fit_gaussian(
    table: Table | Engine,
    column: str,
    *,
    first_days: int | None = None,
    share: Fraction | float | str | None = None,
    kernel: str | None = None,
    lags: int | None = None,
    profile: str | None = None,
    own_levels: bool = False,
    margin: float | None = None,
    length: int | None = None,
) -> Gaussian:
    """Fit a Gaussian process to a column of numbers, as a prior, by moments.

    The database adds up products of the fitted rows. As for `fit_markov`: fit on some rows and
    release from the others. `fit_prior` also says how well it fits.

    Args:
        table: The table.
        column: A column of numbers, none of which is missing.
        first_days: Fit on so many days, and release from the days after them.
        share: Fit on such a share of the entities, 0.2 or "1/5", and release from the others.
            With neither, all rows are fitted on, and none is left to release from.
        kernel: "ar1", "matern-1/2", "matern-3/2", "matern-5/2" or "squared-exponential"; None for
            the one that is nearest to all lags.
        lags: How many lags it is fitted to; by default 24.
        profile: A public column: each of its keys has a mean of its own.
        own_levels: Whether each entity has a mean of its own too, known to the adversary.
        margin: By how many standard errors the parameter of the kernel is raised.
        length: How many entries the process has; None for an unbounded one.
    """
    options = FitOptions(
        kind="gaussian",
        first_days=first_days,
        share=share_of_entities(share),
        kernel=kernel,
        lags=lags,
        profile=profile,
        own_levels=own_levels,
        margin=margin,
        length=length,
    )
    prior = fit_table(table, column, options)
    assert isinstance(prior, Gaussian)  # noqa: S101
    return prior


def _with_means(moments: LagMoments, kernel: StationaryKernel) -> Floats:
    """Correlations corrected for the means of entities, which are themselves estimates.

    The mean of T values varies by about v = γ₀·Σρ/T, and subtracting it lowers every covariance by
    that much. The sum of the sizes is taken, which is no less: that errs to more dependence.
    """
    length = moments.rows / moments.entities
    lowered = moments.variance * min(kernel.total() / length, 0.5)
    found: Floats = (moments.covariances + lowered) / (moments.covariances[0] + lowered)
    return found


def _notes(found: FittedProcess) -> Iterator[str]:
    moments, fit = found.moments, found.fit
    spacing = moments.spacing
    if spacing is not None and spacing[0] != spacing[1]:
        unit = " (seconds, where the order is time)"
        yield (
            f"The rows are not evenly spaced: from {four_digits(spacing[0])} to"
            f" {four_digits(spacing[1])} apart{unit}. A lag counts rows, so that the prior is about"
            " rows and not about time."
        )
    total = found.kernel.total()
    if total > LONG_MEMORY:
        yield (
            f"The correlations add up to {four_digits(total, 'up')}: the process hardly forgets,"
            " and one value tells much about many others. Noise grows with that sum."
        )
    rest = (1 - abs(float(fit.empirical[1]))) * moments.rows / moments.entities
    if rest < RANDOM_WALK_LIMIT:
        yield (
            "A random walk, whose correlation is 1, is not ruled out by entities of this length"
            f" (length × (1 − correlation at lag 1) is {four_digits(rest)}, and"
            f" {RANDOM_WALK_LIMIT:g} is the critical value of Dickey and Fuller at 5 %): no finite"
            " loss protects its values."
        )
    yield from excess_dependence(found)
    if moments.own and moments.entities and total * moments.entities > 0.2 * moments.rows:
        yield (
            "Entities have few rows for a mean of their own: the correction for that is as large as"
            " what is corrected."
        )
    at = sum(moments.at_bounds)
    if at > CLAMPED * moments.rows:
        share = four_digits(100 * at / moments.rows)
        yield (
            f"{share} % of the values are at the bounds: clamped values vary less than the numbers"
            " behind them, and their correlations may be underestimated. Declare wider bounds."
        )


def excess_dependence(found: FittedProcess) -> Iterator[str]:
    """Whether rows depend on each other more than the prior says."""
    fit = found.fit
    fitted = np.abs(correlations_of(found.kernel, found.moments.longest))
    above = np.abs(fit.empirical) - fitted
    bad = np.flatnonzero((above > DIFFERS * fit.errors) & (above > MATERIAL_EXCESS))
    if not bad.size:
        return
    worst = int(bad[np.argmax(above[bad])])
    far = worst > found.moments.longest / 2 and float(np.abs(fit.empirical[-1])) > MATERIAL_EXCESS
    remedy = "another --kernel, or more --margin"
    if far and not found.moments.own:
        remedy = (
            "--profile with a public column if values repeat daily, or --own-levels if entities"
            " differ in level"
        )
    yield (
        f"The rows depend on each other more than the prior says at {bad.size} of"
        f" {found.moments.longest} lags, most at lag {worst}: correlation"
        f" {four_digits(float(fit.empirical[worst]))}, by the prior"
        f" {four_digits(float(fitted[worst]))}. Its guarantee is about rows that depend less; try"
        f" {remedy}."
    )


MAX_PREDICTORS = 8  # values that the next one is predicted from
PREDICTED = 1e-3  # a share of the variance: what is left over below it is rounding
MATERIAL_CORRELATION = 0.05  # a correlation
SKEWED, HEAVY = 0.25, 0.5  # a skewness, and a kurtosis off 3, that matter
MAX_POWER_LAG = 5_000  # lags of the sums of powers


def process_goodness(
    engine: Engine, column: str, found: FittedProcess, scope: Scope = EVERYTHING
) -> GoodnessOfFit:
    r"""Residuals, normality, and whether the dependence stays the same over the fitted rows.

    **Residuals.** The process predicts each value linearly from the p before it, with the
    coefficients that solve the Yule-Walker equations of its kernel. What is left over, :math:`e_t =
    \sum_i a_i x_{t-i}` with a₀ = 1, would be uncorrelated, and its autocovariances follow from
    those of x alone: :math:`\sum_{ij} a_i a_j γ(k + i - j)`. So no row is read again. The sum of
    their squared correlations, each times the number of products (Box & Pierce, 1970; Ljung & Box,
    1978), is about chi-square.

    **Normality.** The skewness of n correlated normal numbers has the variance
    :math:`6\sum_kρ_k^3/n`, and their kurtosis :math:`24\sum_kρ_k^4/n` (Lobato & Velasco, 2004): the
    test of Jarque and Bera with these is about chi-square on 2 degrees of freedom.

    **Stationarity.** The correlation at lag 1 in each part of the days is compared with that of
    all, by its standard error.
    """
    return GoodnessOfFit(
        (residual_test(found), normality_test(found), _steady(engine, column, found, scope))
    )


def residual_test(found: FittedProcess) -> FitTest:
    """Whether what the fitted kernel does not predict is uncorrelated."""
    moments, kernel = found.moments, found.fit.kernel
    panel = Panel(
        "Autocorrelation, and that of the fitted kernel",
        "correlation",
        tuple(map(str, range(moments.longest + 1))),
        tuple(map(float, found.fit.empirical)),
        tuple(map(float, found.fit.errors)),
        tuple(map(float, found.fit.fitted)),
    )
    markov = found.fit.family.word in ("ar1", "matern-1/2")
    before = 1 if markov else min(MAX_PREDICTORS, moments.longest // 2)
    left = None if before < 1 else predictor(correlations_of(kernel, before))
    if left is None or moments.longest - before < 2:
        above = tuple(excess_dependence(found))
        sentence = (
            "What the kernel does not predict was not tested: the kernel is too smooth, or there"
            " are too few lags."
        )
        if above:
            return FitTest("residuals", "does not fit", f"{above[0]} {sentence}", {}, panel)
        return FitTest("residuals", "not tested", sentence, {}, panel)
    scaled = found.fit.empirical  # corrected for estimated means, where there are any
    covariances = np.array(
        [
            sum(
                left[i] * left[j] * scaled[abs(k + i - j)]
                for i in range(before + 1)
                for j in range(before + 1)
            )
            for k in range(moments.longest - before + 1)
        ]
    )
    correlations = covariances[1:] / covariances[0]
    products = moments.products[1 : len(correlations) + 1]
    statistic = float(np.sum(products * correlations**2))
    degrees = len(correlations) - 1
    log_p = log_tail(statistic, degrees)
    worst = int(np.argmax(np.abs(correlations)))
    largest = float(correlations[worst])
    numbers = {
        "statistic": statistic, "degrees": degrees, "log_p": log_p, "p": exp(log_p),
        "largest": largest, "lag": worst + 1,
    }  # fmt: skip
    facts = f" ({p_words(log_p)}; largest correlation {four_digits(largest)}, at lag {worst + 1})"
    return conclude(
        *("residuals", log_p, abs(largest) >= MATERIAL_CORRELATION, numbers, panel),
        fits=f"What the kernel does not predict is uncorrelated{facts}.",
        little=f"What the kernel does not predict is nearly uncorrelated{facts}.",
        not_at_all=f"The kernel does not describe how these rows depend on each other{facts}. Take"
        " another --kernel, or --profile and --own-levels where values differ by hour or entity.",
    )


def predictor(correlations: Floats) -> Floats | None:
    """``[lag]`` from 0 on: 1 and minus the coefficients of the best linear prediction.

    None if hardly anything is left over, as for very smooth kernels: what is left is rounding.
    """
    size = len(correlations) - 1
    at = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    try:
        weights = np.linalg.solve(correlations[at], correlations[1:])
    except np.linalg.LinAlgError:
        return None
    if not 1 - float(weights @ correlations[1:]) > PREDICTED:
        return None
    return np.concatenate([[1.0], -weights])


def normality_test(found: FittedProcess) -> FitTest:
    """Whether the numbers, less their means, have the skewness and the kurtosis of a normal law."""
    moments = found.moments
    every = correlations_of(found.fit.kernel, MAX_POWER_LAG)
    cubes, fourths = (float(1 + 2 * np.sum(every[1:] ** k)) for k in (3, 4))
    skewness, heavy = moments.skewness, moments.kurtosis - 3
    statistic = moments.rows * (skewness**2 / (6 * cubes) + heavy**2 / (24 * fourths))
    log_p = log_tail(statistic, 2)
    numbers = {
        "statistic": statistic, "degrees": 2, "log_p": log_p, "p": exp(log_p),
        "skewness": skewness, "kurtosis": moments.kurtosis,
    }  # fmt: skip
    facts = (
        f" ({p_words(log_p)}; skewness {four_digits(skewness)}, kurtosis"
        f" {four_digits(moments.kurtosis)}, where a normal law has 0 and 3)"
    )
    matters = abs(skewness) >= SKEWED or abs(heavy) >= HEAVY
    return conclude(
        *("normality", log_p, matters, numbers, None),
        fits=f"The numbers look normal{facts}.",
        little=f"The numbers are nearly normal{facts}.",
        not_at_all=f"The numbers are not normal{facts}: a Gaussian process is a prior about other"
        " numbers. A chain over ranges of them (--kind markov --cuts …) assumes no law.",
    )


def _steady(engine: Engine, column: str, found: FittedProcess, scope: Scope) -> FitTest:
    """The correlation at lag 1 in each part of the days."""
    moments = found.moments
    firsts, counts, names = [], [], []
    for name, part in parts_of(engine, scope):
        try:
            own = lag_moments(
                engine, column, part, lags=1, profile=moments.profile, own=moments.own
            )
        except InvalidQuery:  # too few rows, or hardly varying ones
            continue
        firsts.append(float(own.correlations[1]))
        counts.append(int(own.products[1]))
        names.append(name)
    if len(firsts) < 2:
        sentence = "Whether the dependence stays the same was not tested: too few rows."
        return FitTest("stationarity", "not tested", sentence, {})
    return steady_test(names, np.array(firsts), np.array(counts, dtype=np.float64))


def steady_test(names: list[str], correlations: Floats, products: Floats) -> FitTest:
    """Whether correlations at lag 1, each of so many products, are all the same."""
    usual = float(np.average(correlations, weights=products))
    errors = np.sqrt(max(1 - usual**2, 1e-12) / products)
    statistic = float(np.sum(((correlations - usual) / errors) ** 2))
    log_p = log_tail(statistic, len(names) - 1)
    low, high = float(correlations.min()), float(correlations.max())
    numbers: dict[str, Any] = {
        "statistic": statistic, "degrees": len(names) - 1, "log_p": log_p, "p": exp(log_p),
        "parts": names, "correlations": [float(c) for c in correlations],
    }  # fmt: skip
    panel = Panel(
        "Correlation at lag 1, by part of the rows", "correlation", tuple(names),
        tuple(map(float, correlations)), tuple(map(float, errors)), (usual,) * len(names),
    )  # fmt: skip
    facts = f" (at lag 1 from {four_digits(low)} to {four_digits(high)}; {p_words(log_p)})"
    return conclude(
        *("stationarity", log_p, high - low >= MATERIAL_CORRELATION, numbers, panel),
        fits=f"The dependence stays the same over {len(names)} parts of these rows{facts}.",
        little=f"The dependence changes little over these rows{facts}.",
        not_at_all=f"The dependence changes over these rows{facts}: fit on days that are like those"
        " to be released, or raise it with --margin.",
    )
