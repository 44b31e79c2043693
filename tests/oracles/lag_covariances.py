"""Means, variances and autocovariances by plain loops over rows; nothing of the package."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

Row = Mapping[str, Any]


def rounded(value: float, low: Fraction, high: Fraction, step: Fraction) -> Fraction:
    """The value clamped to bounds, then rounded to steps."""
    held = (
        min(max(Fraction(value), low), high)
        if math.isfinite(value)
        else (high if value > 0 else low)
    )
    return math.floor(held / step + Fraction(1, 2)) * step


def left_over(
    rows: Sequence[Row],
    *,
    value: str,
    entity: str,
    order: Sequence[str],
    bounds: tuple[Fraction, Fraction],
    step: Fraction,
    profile: str | None,
    own: bool,
) -> list[list[Fraction]]:
    """The values of each entity in order, less the mean of their group, less their own mean."""
    held = [(row, rounded(row[value], *bounds, step)) for row in rows]
    groups = defaultdict(list)
    for row, number in held:
        groups[None if profile is None else row[profile]].append(number)
    means = {key: sum(numbers, Fraction(0)) / len(numbers) for key, numbers in groups.items()}
    people = defaultdict(list)
    for row, number in sorted(held, key=lambda pair: tuple(pair[0][name] for name in order)):
        people[row[entity]].append(number - means[None if profile is None else row[profile]])
    paths = list(people.values())
    if own:
        paths = [[number - sum(path, Fraction(0)) / len(path) for number in path] for path in paths]
    return paths


def covariance(paths: Sequence[Sequence[Fraction]], lag: int) -> tuple[int, float]:
    """How many products there are at a lag, and their mean less the product of means."""
    pairs = [(path[t], path[t + lag]) for path in paths for t in range(len(path) - lag)]
    count = len(pairs)
    first, second = sum(a for a, _ in pairs), sum(b for _, b in pairs)
    return count, float(Fraction(sum(a * b for a, b in pairs), count) - first * second / count**2)


def moments(paths: Sequence[Sequence[Fraction]]) -> tuple[float, float]:
    """Skewness and kurtosis of all values."""
    values = [float(number) for path in paths for number in path]
    mean = math.fsum(values) / len(values)
    second, third, fourth = (
        math.fsum((v - mean) ** k for v in values) / len(values) for k in (2, 3, 4)
    )
    return third / second**1.5, fourth / second**2
