"""A thousand meters: the mean by hour of the day under a fitted AR(1), and what else it could cost.

``python -m benchmarks meter_readings`` writes 1,000 homes × 1,080 hourly readings (ρ = 0.8), fits
on the first 21 days, and plans and releases the mean for each hour of the day at a Pufferfish ε of
1, for secrets 1 kWh apart. Beside it: group DP, which adds up all readings of a home, and readings
taken to be independent, with what that noise really leaks under the process.
"""

import argparse
import tempfile
from fractions import Fraction
from pathlib import Path
from time import process_time

import numpy as np

from takifugu.fitting import FitOptions
from takifugu.mechanisms import BoundedMean
from takifugu.priors import AR1, Gaussian, Secrets
from takifugu.project.project import init_project
from takifugu.synthetic import Meters, write_meter_readings
from takifugu.translation import LinearQuery, LinearReleases

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
            result = session.release(plan, accept_noise=True)
        seconds = process_time() - began
        rho = prior.kernel.rho
    assert isinstance(plan.mechanism, BoundedMean)
    scale = plan.mechanism.total.noise.scale / 1000
    smooth = (1 + rho) / (1 - rho) * APART / EPSILON
    print(f"plan and release in {seconds:.1f} s; Laplace scale {scale:.4f} kWh on each sum")
    print(f"  of which Σ|ρ^k| = {smooth:.4f}, and rounding to 1 Wh adds {scale - smooth:.4f}")
    widest = max((row[-1] - row[-2]) / 2 for row in result.rows)
    verdict = "reached" if widest < TARGET else "NOT reached"
    print(f"mean by hour: ±{widest:.6f} kWh at 95 %; target {TARGET}: {verdict}")
    released = hours - 24 * DAYS
    print(f"group DP, all {released} readings of a home at once: {released * APART / scale:.0f} ×")
    copy = LinearReleases(Gaussian(AR1(rho), COPY), Secrets(within=APART))
    leak = copy.laplace([(LinearQuery([1] * COPY), Fraction(APART, EPSILON))])
    print(
        f"readings taken as independent: {APART / scale:.2f} ×, and unsound: on a copy of {COPY}"
        f" readings the sum with that noise leaks {leak.pufferfish:.4f}, not {EPSILON}"
        f" (exact: {leak.exact})"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--homes", type=int, default=1_000)
    parser.add_argument("--hours", type=int, default=1_080)
    chosen = parser.parse_args()
    run(chosen.homes, chosen.hours)
