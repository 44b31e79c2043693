"""Synthetic electricity meters: an hourly reading of every home, around a daily profile.

Readings of a home are an AR(1) process around the profile, clamped to bounds and rounded to watt
hours: x_{t+1} = ρ·x_t + √(1 − ρ²)·z_t. Homes are independent of each other.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from takifugu._core.atomic import write_whole
from takifugu._core.numeric import Floats, Integers
from takifugu.errors import Malformed
from takifugu.synthetic.parquet_files import Block, write_parquet

BOUNDS = (0, 5)  # kWh
BLOCK = 2_000_000  # readings in memory at a time

DECLARATION = """title = "Hourly readings of synthetic meters"

[source]
kind = "parquet"
path = {path}

[entity]
column = "home"

[order]
column = "at"
kind = "time"
zone = "UTC"
ties = "refuse"

[protected.kwh]
bounds = [0, 5]
step = 0.001
missing = "refuse"

[public.hour_of_day]
values = [{hours}]
"""


@dataclass(frozen=True)
class Meters:
    """How synthetic meters are read.

    Attributes:
        homes: How many there are.
        hours: How many readings each has, one an hour.
        rho: The correlation of two readings that follow each other.
        deviation: How far readings are from their profile, in kWh.
    """

    homes: int = 1_000
    hours: int = 1_080
    rho: float = 0.8
    deviation: float = 0.2

    def __post_init__(self) -> None:
        for name in ("homes", "hours"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise Malformed(name, given=f"is {value!r:.40}", needed="be a whole number, ≥ 1")
        if not -1 < self.rho < 1:
            raise Malformed("rho", given=f"is {self.rho}", needed="be above -1 and below 1")
        if not 0 < self.deviation < np.inf:
            raise Malformed("deviation", given=f"is {self.deviation}", needed="be positive")

    @property
    def profile(self) -> Floats:
        """``[hour of the day]``: the mean reading in kWh, low at night, high in the evening."""
        hour = np.arange(24)
        found: Floats = (
            1.1
            - 0.25 * np.cos((hour - 3) / 24 * 2 * np.pi)
            + 0.4 * np.exp(-(((hour - 19) / 2.5) ** 2))
        )
        return found

    def readings(self, homes: int, *, rng: np.random.Generator) -> Integers:
        """``[home, hour]`` in watt hours, of so many homes."""
        drawn = rng.standard_normal((homes, self.hours))
        own = np.sqrt(1 - self.rho**2)
        for hour in range(1, self.hours):
            drawn[:, hour] = self.rho * drawn[:, hour - 1] + own * drawn[:, hour]
        kwh = self.profile[np.arange(self.hours) % 24] + self.deviation * drawn
        found: Integers = np.rint(1000 * np.clip(kwh, *BOUNDS)).astype(np.int64)
        return found


def write_meter_readings(path: Path, meters: Meters, *, rng: np.random.Generator) -> Path:
    """Write readings to a Parquet file, and a declaration beside it; where that is."""
    write_parquet(
        path,
        _blocks(meters, rng=rng),
        "home, TIMESTAMP '2024-01-01' + to_hours(hour) AS at, hour % 24 AS hour_of_day,"
        " watts / 1000 AS kwh",
        {},
    )
    declaration = path.with_suffix(".toml")
    hours = ", ".join(map(str, range(24)))
    write_whole(declaration, DECLARATION.format(path=json.dumps(path.name), hours=hours))
    return declaration


def _blocks(meters: Meters, *, rng: np.random.Generator) -> Iterator[Block]:
    at_once = max(BLOCK // meters.hours, 1)
    for first in range(0, meters.homes, at_once):
        homes = min(at_once, meters.homes - first)
        yield {
            "home": np.repeat(np.arange(first, first + homes), meters.hours),
            "hour": np.tile(np.arange(meters.hours), homes),
            "watts": meters.readings(homes, rng=rng).ravel(),
        }
