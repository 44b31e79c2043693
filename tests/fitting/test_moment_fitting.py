"""Gaussian processes fitted by moments, against simulations whose truth is known."""

from math import log, sqrt

import numpy as np
import pytest

import takifugu as tf
from takifugu._core.numeric import Floats
from takifugu.declarations import InvalidQuery
from takifugu.drafting import Table
from takifugu.fitting.fit_kinds import fit_prior
from takifugu.fitting.fit_options import FitOptions
from takifugu.fitting.kernel_fitting import (
    FAMILIES,
    bartlett,
    best_kernel,
    correlations_of,
    fit_kernel,
)
from takifugu.fitting.lag_moments import MAX_PRODUCT_SUM, Grid
from takifugu.fitting.moment_fitting import FittedProcess, fit_process
from takifugu.priors import AR1, Gaussian, Matern, SquaredExponential
from tests.raising import raises

pa = pytest.importorskip("pyarrow", reason="tables in memory need PyArrow")
HOURS = 480
FALSE_ALARM = 1e-6  # of a statistical test; a red build means a bug
SPAN = np.full(41, 5_000)


def drawn(prior: Gaussian, homes: int, hours: int, rng: np.random.Generator) -> Floats:
    """``[home, hour]``: independent draws of a process."""
    root = np.linalg.cholesky(prior.covariance(range(hours)) + 1e-9 * np.eye(hours))
    found: Floats = rng.standard_normal((homes, hours)) @ root.T
    return found


def table(values: Floats, *, step: float = 0.001, skip: int | None = None) -> Table:
    homes, hours = values.shape
    hour = np.tile(np.arange(hours), homes)
    kept = np.ones(len(hour), dtype=bool) if skip is None else hour // 24 != skip
    columns = {
        "home": np.repeat(np.arange(homes), hours),
        "at": np.datetime64("2024-01-01", "us") + hour * np.timedelta64(1, "h"),
        "hour": hour % 24,
        "kwh": values.ravel(),
    }
    return tf.table(
        pa.table({name: values[kept] for name, values in columns.items()}),
        name="meters",
        entity="home",
        order="at",
        protected={"kwh": {"bounds": [-20, 20], "step": step, "missing": "refuse"}},
        public=["hour"],
    )


def fitted(values: Floats, step: float = 0.001, **options: object) -> FittedProcess:
    with table(values, step=step).open() as engine:
        return fit_process(engine, "kwh", options=FitOptions(kind="gaussian", **options))  # type: ignore[arg-type]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("word", "kernel"),
    [
        ("ar1", AR1(0.8)),
        ("ar1", AR1(-0.6)),
        ("matern-1/2", Matern("1/2", 3.0)),
        ("matern-3/2", Matern("3/2", 3.0)),
        ("matern-5/2", Matern("5/2", 2.5)),
        ("squared-exponential", SquaredExponential(8.0)),
    ],
)
def test_exact_correlations_give_the_kernel_back(
    word: str, kernel: AR1 | Matern | SquaredExponential
) -> None:
    found = fit_kernel(word, correlations_of(kernel, 40), SPAN)
    truth = kernel.rho if isinstance(kernel, AR1) else kernel.scale
    assert found.parameter == pytest.approx(truth, rel=1e-6)
    assert found.misfit < 1e-14
    near = best_kernel(correlations_of(kernel, 40), SPAN)
    assert near.kernel.total() == pytest.approx(kernel.total(), rel=1e-5)


def test_bartletts_formula_at_lag_one_is_the_textbooks() -> None:
    for rho in (-0.9, 0.0, 0.3, 0.95):
        errors = bartlett(AR1(rho), np.array([1000, 1000, 990]))
        assert errors[0, 0] == pytest.approx((1 - rho**2) / 1000, rel=1e-6, abs=1e-12)
    white = bartlett(AR1(0.0), np.full(6, 500))
    assert white == pytest.approx(np.eye(5) / 500)


@pytest.mark.nightly
@pytest.mark.parametrize("word", ["ar1", "matern-3/2", "squared-exponential"])
def test_standard_errors_cover_the_truth(word: str) -> None:
    """Of R simulations about 95 % are within 1.96 standard errors of the truth.

    Hoeffding: that fewer than 95 % − s of them are has probability at most exp(−2Rs²). Errors that
    were wrong by a third would have scores with a deviation of 1.5 or 0.75, and be found.
    """
    kernels: dict[str, AR1 | Matern | SquaredExponential] = {
        "ar1": AR1(0.8), "matern-3/2": Matern("3/2", 2.0),
        "squared-exponential": SquaredExponential(4.0),
    }  # fmt: skip
    kernel = kernels[word]
    truth = kernel.rho if isinstance(kernel, AR1) else kernel.scale
    rng, runs, lags = np.random.default_rng(7), 300, 8
    values = drawn(Gaussian(kernel), 40 * runs, 120, rng).reshape(runs, 40, 120)
    inside, scores = 0, []
    for one in values:
        covariances = [np.mean(one[:, k:] * one[:, : 120 - k]) for k in range(lags + 1)]
        products = np.array([40 * (120 - k) for k in range(lags + 1)])
        found = fit_kernel(word, np.array(covariances) / covariances[0], products)
        scores.append((found.parameter - truth) / found.error)
        inside += abs(scores[-1]) <= 1.96
    slack = sqrt(log(1 / FALSE_ALARM) / (2 * runs))
    assert inside / runs >= 0.95 - slack
    assert 0.85 < float(np.std(scores)) < 1.15  # and they are not simply large


@pytest.mark.nightly
def test_a_daily_profile_is_no_dependence() -> None:
    rng = np.random.default_rng(3)
    noise = drawn(Gaussian(AR1(0.7)), 60, HOURS, rng)
    day = 3 * np.sin(np.arange(HOURS) / 24 * 2 * np.pi)
    found = fitted(noise + day, profile="hour")
    assert isinstance(found.prior.kernel, AR1)
    assert found.prior.kernel.rho == pytest.approx(0.7, abs=6 * found.fit.error)
    assert found.prior.variance == pytest.approx(1.0, rel=0.1)
    assert not found.notes
    without = fitted(noise + day)
    assert any("--profile" in note for note in without.notes)


def test_levels_of_entities_are_found_and_subtracted() -> None:
    rng = np.random.default_rng(4)
    noise = drawn(Gaussian(AR1(0.7)), 80, 240, rng)
    levels = 2 * rng.standard_normal((80, 1))
    shared = fitted(noise + levels)
    assert any("--own-levels" in note for note in shared.notes)
    own = fitted(noise + levels, own_levels=True, kernel="ar1")
    # not corrected for the estimated means, rho would be 0.6932 on average
    assert own.fit.parameter == pytest.approx(0.7, abs=5 * own.fit.error)
    assert not own.notes


def test_rounding_to_coarse_steps_does_not_hide_dependence() -> None:
    rng = np.random.default_rng(5)
    values = drawn(Gaussian(AR1(0.9)), 100, 240, rng)
    coarse = fitted(values, step=1.0, kernel="ar1")
    assert coarse.fit.parameter == pytest.approx(0.9, abs=0.01)  # 0.833 without Sheppard


def test_a_margin_raises_what_a_clamped_sum_loses() -> None:
    rng = np.random.default_rng(6)
    values = drawn(Gaussian(AR1(0.5)), 30, 120, rng)
    plain, safe = fitted(values, kernel="ar1"), fitted(values, kernel="ar1", margin=2)
    assert isinstance(safe.prior.kernel, AR1)
    assert safe.prior.kernel.rho == pytest.approx(plain.fit.parameter + 2 * plain.fit.error)
    for word in FAMILIES:
        raised = fit_kernel(word, correlations_of(AR1(0.5), 24), SPAN[:25]).raised(1)
        kernel = fit_kernel(word, correlations_of(AR1(0.5), 24), SPAN[:25]).kernel
        assert (raised.most(np.arange(200)) >= kernel.least(np.arange(200))).all()
        assert raised.total() > kernel.total()
    with raises(InvalidQuery, field="margin"):
        fitted(values, margin=-1.0)
    with raises(InvalidQuery, field="margin", reason="unit-root"):
        fitted(values, kernel="ar1", margin=1000)


def test_what_does_not_describe_the_rows_is_said() -> None:
    rng = np.random.default_rng(8)
    slow = np.cumsum(0.02 * rng.standard_normal((20, HOURS)), axis=1)
    assert any("random walk" in note for note in fitted(slow, kernel="ar1").notes)
    values = drawn(Gaussian(AR1(0.5)), 20, HOURS, rng)
    with table(values, skip=4).open() as engine:
        notes = fit_process(engine, "kwh").notes
    assert any("evenly spaced" in note for note in notes)
    rough = fitted(values, kernel="squared-exponential")
    assert any("more than the prior says" in note for note in rough.notes)
    clamped = fitted(20 * values, kernel="ar1")
    assert any("bounds" in note for note in clamped.notes)


def test_kernels_that_cannot_be_are_refused() -> None:
    down = correlations_of(AR1(-0.4), 5)
    with raises(InvalidQuery, field="kernel", reason="negative"):
        fit_kernel("matern-3/2", down, SPAN[:6])
    with raises(InvalidQuery, field="kernel", reason="indefinite"):
        fit_kernel("ar1", np.array([1.0, 1.01, 1.0]), SPAN[:3])
    with raises(InvalidQuery, field="kernel"):
        fit_kernel("periodic", down, SPAN[:6])
    assert isinstance(best_kernel(down, SPAN[:6]).kernel, AR1)


def test_the_registry_fits_on_the_first_days_alone() -> None:
    rng = np.random.default_rng(9)
    values = drawn(Gaussian(AR1(0.6)), 20, HOURS, rng)
    options = FitOptions(kind="gaussian", first_days=10, profile="hour", kernel="ar1", lags=5)
    with table(values).open() as engine:
        found = fit_prior(engine, ["kwh"], options)
    with table(values[:, :240]).open() as engine:
        options = FitOptions(kind="gaussian", profile="hour", kernel="ar1", lags=5)
        alone = fit_process(engine, "kwh", options=options)
    assert found.prior == alone.prior and found.prior.fitted_on and found.remaining == 20 * 240
    assert "Bartlett" in found.statement and found.estimate.facts["rows"] == 20 * 240
    assert [line["lag"] for line in found.estimate.facts["lags"]] == list(range(6))


@pytest.mark.parametrize("rows", [1, 10**6, 10**9, 10**13])
@pytest.mark.parametrize("step", ["0.001", "1", "1e-7"])
def test_no_sum_leaves_64_bits(rows: int, step: str) -> None:
    amount = tf.table(
        pa.table({"home": [1], "at": [0], "kwh": [0.0]}), name="m", entity="home", order="at",
        protected={"kwh": {"bounds": [-100, 100], "step": float(step), "missing": "refuse"}},
    ).declaration.amount("kwh")  # fmt: skip
    grid = Grid.of(amount, rows)
    most = 2 * amount.width * grid.fine // grid.coarse + 2
    assert grid.fine == 1 or grid.coarse == 1
    assert (
        most**2 * rows < MAX_PRODUCT_SUM * 2
        and (most // grid.powers + 1) ** 4 * rows < MAX_PRODUCT_SUM * 2
    )
    if rows <= 10**6 and step == "0.001":
        assert grid.fine >= 2
