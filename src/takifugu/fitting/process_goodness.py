r"""Whether a fitted Gaussian process describes the numbers that it was fitted to.

**Residuals.** The process predicts each value linearly from the p before it, with the coefficients
that solve the Yule-Walker equations of its kernel. What is left over, :math:`e_t = \sum_i a_i
x_{t-i}` with a₀ = 1, would be uncorrelated, and its autocovariances follow from those of x alone:
:math:`\sum_{ij} a_i a_j γ(k + i - j)`. So no row is read again. The sum of their squared
correlations, each times the number of products (Box & Pierce, 1970; Ljung & Box, 1978), is about
chi-square.

**Normality.** The skewness of n correlated normal numbers has the variance :math:`6\sum_kρ_k^3/n`,
and their kurtosis :math:`24\sum_kρ_k^4/n` (Lobato & Velasco, 2004): the test of Jarque and Bera
with these is about chi-square on 2 degrees of freedom.

**Stationarity.** The correlation at lag 1 in each part of the days is compared with that of all, by
its standard error.
"""

from math import exp
from typing import Any

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.declarations.table_errors import InvalidQuery
from takifugu.fitting.count_tests import log_tail, p_words
from takifugu.fitting.goodness import FitTest, GoodnessOfFit, Panel, conclude, parts_of
from takifugu.fitting.kernel_fitting import correlations_of
from takifugu.fitting.lag_moments import lag_moments
from takifugu.fitting.moment_fitting import FittedProcess, excess_dependence
from takifugu.tables.engine import Engine
from takifugu.tables.scope import EVERYTHING, Scope
from takifugu.visible import four_digits

MAX_PREDICTORS = 8  # values that the next one is predicted from
PREDICTED = 1e-3  # a share of the variance: what is left over below it is rounding
MATERIAL_CORRELATION = 0.05  # a correlation
SKEWED, HEAVY = 0.25, 0.5  # a skewness, and a kurtosis off 3, that matter
MAX_POWER_LAG = 5_000  # lags of the sums of powers


def process_goodness(
    engine: Engine, column: str, found: FittedProcess, scope: Scope = EVERYTHING
) -> GoodnessOfFit:
    """Residuals, normality, and whether the dependence stays the same over the fitted rows."""
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
