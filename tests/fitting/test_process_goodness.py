"""Whether a Gaussian process describes numbers: simulations that it does and does not."""

from math import log, sqrt

import numpy as np
import pytest

from takifugu._core.numeric import Floats
from takifugu.fitting import FitOptions
from takifugu.fitting.kernel_fitting import correlations_of
from takifugu.fitting.moment_fitting import (
    FittedProcess,
    fit_process,
    normality_test,
    predictor,
    process_goodness,
    residual_test,
    steady_test,
)
from takifugu.priors import AR1, Gaussian, Matern, SquaredExponential
from takifugu.tables import Engine

pytest.importorskip("pyarrow", reason="tables in memory need PyArrow")
from tests.fitting.test_moment_fitting import drawn, table

FALSE_ALARM = 1e-6


def process(engine: Engine, **options: object) -> FittedProcess:
    return fit_process(engine, "kwh", options=FitOptions(kind="gaussian", **options))  # type: ignore[arg-type]


def fitted(values: Floats, kernel: str = "ar1") -> FittedProcess:
    with table(values).open() as engine:
        return fit_process(
            engine, "kwh", options=FitOptions(kind="gaussian", kernel=kernel, lags=12)
        )


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("word", "kernel"), [("ar1", AR1(0.7)), ("matern-3/2", Matern("3/2", 1.5))]
)
def test_what_is_true_is_rarely_rejected(word: str, kernel: AR1 | Matern) -> None:
    """R simulations; at 5 % about one in twenty is rejected, with Hoeffding's slack for R."""
    rng, runs = np.random.default_rng(11), 30
    residual = normal = 0
    for _ in range(runs):
        found = fitted(drawn(Gaussian(kernel), 20, 150, rng), word)
        residual += residual_test(found).numbers["p"] < 0.05
        normal += normality_test(found).numbers["p"] < 0.05
    slack = sqrt(log(1 / FALSE_ALARM) / (2 * runs))
    assert residual / runs < 0.05 + slack and normal / runs < 0.05 + slack


def test_a_wrong_kernel_leaves_correlated_residuals() -> None:
    rng = np.random.default_rng(12)
    smooth = drawn(Gaussian(Matern("5/2", 3.0)), 60, 200, rng)
    found = residual_test(fitted(smooth, "ar1"))
    assert found.verdict == "does not fit" and found.numbers["lag"] == 1
    assert found.panel is not None and len(found.panel.values) == 13


def test_a_kernel_that_is_too_smooth_to_predict_is_compared_by_its_lags() -> None:
    rng = np.random.default_rng(16)
    day = 2 * np.sin(np.arange(240) / 24 * 2 * np.pi)  # as like after 24 hours as after none
    with table(0.3 * drawn(Gaussian(AR1(0.8)), 60, 240, rng) + day).open() as engine:
        daily = fit_process(
            engine,
            "kwh",
            options=FitOptions(kind="gaussian", kernel="squared-exponential", lags=24),
        )
    found = residual_test(daily)
    assert found.verdict == "does not fit" and found.numbers == {}
    smooth = drawn(Gaussian(SquaredExponential(40.0)), 60, 200, rng)
    assert residual_test(fitted(smooth, "squared-exponential")).verdict == "not tested"


def test_residuals_are_those_of_the_rows_themselves() -> None:
    """The autocovariances of residuals from moments, against residuals that are computed."""
    rng = np.random.default_rng(13)
    values = drawn(Gaussian(AR1(0.6)), 200, 200, rng)
    values += 0.5 * np.roll(values, 3, axis=1)
    found = fitted(values)
    test = residual_test(found)
    centred = values - values.mean()
    left = centred[:, 1:] - found.fit.parameter * centred[:, :-1]
    lag = test.numbers["lag"]
    truth = np.mean(left[:, lag:] * left[:, :-lag]) / np.mean(left**2)
    assert test.numbers["largest"] == pytest.approx(truth, abs=0.01) and abs(truth) > 0.1


def test_numbers_that_are_not_normal_are_found() -> None:
    rng = np.random.default_rng(14)
    values = np.exp(0.5 * drawn(Gaussian(AR1(0.5)), 40, 200, rng))
    found = normality_test(fitted(values))
    assert found.verdict == "does not fit" and found.numbers["skewness"] > 0.5


def test_a_dependence_that_changes_is_found() -> None:
    rng = np.random.default_rng(15)
    values = np.hstack([drawn(Gaussian(AR1(rho)), 40, 240, rng) for rho in (0.8, 0.3)])
    with table(values).open() as engine:
        found = fit_process(
            engine, "kwh", options=FitOptions(kind="gaussian", kernel="ar1", lags=6)
        )
        whole = process_goodness(engine, "kwh", found)
    assert [test.about for test in whole.tests] == ["residuals", "normality", "stationarity"]
    assert whole.tests[2].verdict == "does not fit" and not whole.fits
    steady = steady_test(["a", "b"], np.array([0.5, 0.51]), np.array([1000.0, 1000.0]))
    assert steady.verdict == "fits"


def test_a_predictor_solves_the_equations_of_its_kernel() -> None:
    found = predictor(correlations_of(AR1(0.6), 4))
    assert found == pytest.approx([1, -0.6, 0, 0, 0])
    assert predictor(correlations_of(SquaredExponential(60.0), 8)) is None
