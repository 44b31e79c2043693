"""Synthetic meters have the dependence that they are made with, and are read as declared."""

from pathlib import Path

import numpy as np
import pytest

from takifugu.costs.cost import Cost, Distance
from takifugu.declarations import read_declaration
from takifugu.errors import Malformed
from takifugu.priors import AR1, Gaussian, Secrets
from takifugu.synthetic import Meters, write_meter_readings
from takifugu.tables import check, open_engine
from takifugu.translation import LinearQuery, LinearReleases, Translation
from tests.oracles.laplace_of_sums import true_leak
from tests.raising import raises


def test_readings_are_what_they_are_made_to_be(tmp_path: Path) -> None:
    meters = Meters(60, 240)
    declaration = write_meter_readings(
        tmp_path / "meters.parquet", meters, rng=np.random.default_rng(1)
    )
    with open_engine(read_declaration(declaration)) as engine:
        assert check(engine).rows == 60 * 240
        sums = engine.sums("kwh", ["hour_of_day"])
    means = sums.values / sums.counts
    assert np.abs(means - meters.profile).max() < 0.05
    readings = meters.readings(2000, rng=np.random.default_rng(2)) / 1000
    left = readings - meters.profile[np.arange(240) % 24]
    assert np.mean(left[:, 1:] * left[:, :-1]) / np.mean(left**2) == pytest.approx(0.8, abs=0.01)
    assert left.std() == pytest.approx(0.2, abs=0.005)
    again = meters.readings(2000, rng=np.random.default_rng(2)) / 1000
    assert np.array_equal(readings, again)


@pytest.mark.parametrize(
    ("field", "value"), [("homes", 0), ("hours", 1.5), ("rho", 1.0), ("deviation", float("nan"))]
)
def test_meters_that_cannot_be_are_refused(field: str, value: float) -> None:
    with raises(Malformed, field=field):
        Meters(**{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(("rho", "size"), [(0.8, 25), (0.5, 3), (0.0, 4)])
def test_noise_for_independent_readings_leaks_the_sum_of_correlations(
    rho: float, size: int
) -> None:
    """By the exact law of the outputs, which is what the translation says of a wide sum."""
    process = Gaussian(AR1(rho), size)
    leak = true_leak(process.covariance(range(size)), size // 2, 1.0, 1.0)
    assert leak == pytest.approx(sum(rho ** abs(k - size // 2) for k in range(size)), rel=1e-6)
    wide = Cost.of({Distance(-1000, 1000): 2000})
    bound = Translation(process, Secrets(within=1)).cost_to_pufferfish(wide)
    assert leak <= bound * (1 + 1e-9) and leak == pytest.approx(bound, rel=1e-6)
    declared = LinearReleases(process, Secrets(within=1)).laplace([(LinearQuery([1] * size), 1)])
    assert declared.exact and declared.pufferfish == pytest.approx(leak, rel=1e-6)
