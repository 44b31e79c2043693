"""A thousand meters: the mean by hour of the day under a fitted AR(1), and what else it could cost.

``python -m benchmarks meter_readings`` writes 1,000 homes × 1,080 hourly readings (ρ = 0.8), fits
on the first 21 days, and plans and releases the mean for each hour of the day at a Pufferfish ε of
1, for secrets 1 kWh apart. Beside it: group DP, which adds up all readings of a home, and readings
taken to be independent, with what that noise really leaks under the process.
"""

import argparse
import tempfile
from math import log, sqrt
from pathlib import Path
from time import process_time

import numpy as np

from takifugu.engines import FitOptions
from takifugu.mechanisms import BoundedMean
from takifugu.numeric import Floats
from takifugu.priors import AR1, Gaussian
from takifugu.project.project import init_project
from takifugu.synthetic import Meters, write_meter_readings

EPSILON, APART, DAYS, TARGET = 1, 1, 21, 0.005
COPY = 25  # readings of a small copy whose leak is computed exactly


def run(homes: int = 1_000, hours: int = 1_080) -> None:
    """Print the fit, the noise, the error and the alternatives."""
    meters = Meters(homes, hours)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "meters.parquet"
        declaration = write_meter_readings(path, meters, rng=np.random.default_rng(14))
        project = init_project(folder).add_dataset("meters", declaration, within=APART)
        began = process_time()
        options = FitOptions(kind="gaussian", kernel="ar1", first_days=DAYS, profile="hour_of_day")
        project, _, prior, found = project.fit("meters", options)
        facts = found.estimate.facts
        print(
            f"fitted ρ = {facts['estimate']:.4f} ± {facts['standard_error']:.4f}"
            f" (true {meters.rho}) on {facts['rows']:,} rows in {process_time() - began:.1f} s"
        )
        project.set_budget("meters", str(EPSILON))
        began = process_time()
        with project.session("meters") as session:
            plan = session.plan.mean(by="hour_of_day", epsilon=EPSILON)
            result = session.release(plan)
        seconds = process_time() - began
        rho = prior.kernel.rho
    assert isinstance(plan.mechanism, BoundedMean)  # noqa: S101
    scale = plan.mechanism.total.noise.scale / 1000
    smooth = (1 + rho) / (1 - rho) * APART / EPSILON
    print(f"plan and release in {seconds:.1f} s; Laplace scale {scale:.4f} kWh on each sum")
    print(f"  of which Σ|ρ^k| = {smooth:.4f}, and rounding to 1 Wh adds {scale - smooth:.4f}")
    widest = max((row[-1] - row[-2]) / 2 for row in result.rows)
    verdict = "reached" if widest < TARGET else "NOT reached"
    print(f"mean by hour: ±{widest:.6f} kWh at 95 %; target {TARGET}: {verdict}")
    released = hours - 24 * DAYS
    print(f"group DP, all {released} readings of a home at once: {released * APART / scale:.0f} ×")
    leak = true_leak(Gaussian(AR1(rho), COPY), APART / EPSILON)
    print(
        f"readings taken as independent: {APART / scale:.2f} ×, and unsound: on a copy of {COPY}"
        f" readings that noise leaks {leak:.4f}, not {EPSILON}"
    )


def true_leak(process: Gaussian, scale: float, *, entry: int | None = None) -> float:
    """The exact loss of Laplace noise of ``scale`` on the sum of all entries, APART kWh apart.

    Given X_i the sum is normal, and so is its convolution with Laplace noise known in closed form:
    the ratio of the densities of an output, largest far out, where it is e^(shift/scale).
    """
    size = process.length or 0
    at = size // 2 if entry is None else entry
    law = process.covariance(range(size))
    shift = float(law[at].sum() / law[at, at]) * APART
    variance = float(law.sum() - law[at].sum() ** 2 / law[at, at])
    outputs = np.linspace(-50, 50, 2001) * (sqrt(variance) + scale)
    with_x, with_y = (_log_density(outputs, m, variance, scale) for m in (shift / 2, -shift / 2))
    return float(np.max(np.abs(with_x - with_y)))


def _log_density(outputs: Floats, mean: float, variance: float, scale: float) -> Floats:
    """Of a normal number plus Laplace noise."""
    from scipy.special import log_ndtr

    root, apart = sqrt(variance), outputs - mean
    parts = [
        variance / (2 * scale**2) - sign * apart / scale
        + log_ndtr(sign * apart / root - root / scale)
        for sign in (1, -1)
    ]  # fmt: skip
    found: Floats = np.logaddexp(*parts) - log(2 * scale)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--homes", type=int, default=1_000)
    parser.add_argument("--hours", type=int, default=1_080)
    chosen = parser.parse_args()
    run(chosen.homes, chosen.hours)
