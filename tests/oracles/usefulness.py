"""How useful answers are, written out group by group in plain Python."""

from collections.abc import Sequence

COUNTED = ("histogram", "count", "counts", "marginals", "transitions", "proportions")


def of_a_group(kind: str, half: float, low: float, high: float, size: float) -> str:
    """A group: excludes nothing or drowns what is counted, is not told from nothing, or useful."""
    if half >= high - low or (kind in COUNTED and half >= 5 * size):
        return "mostly noise"
    return "rough" if half >= size else "useful"


def single_numbers_are_noise(kind: str, half: float, low: float, high: float, size: float) -> bool:
    """Whether the words must say so: the noise is three times the size, or half of the range."""
    found = of_a_group(kind, half, low, high, size)
    if found == "rough":
        return half >= 3 * size or half > (high - low) / 2
    return found == "mostly noise"


def scale(
    kind: str, rows: int, labels: int, low: float = 0, high: float = 1, level: float = 0.5
) -> tuple[float, float, float]:
    """The least and the greatest possible answer in a group of ``rows``, and its usual size."""
    if kind in ("histogram", "counts", "top_k"):
        return 0, rows, rows / labels
    if kind == "transitions":
        return 0, rows, rows / labels / labels
    if kind == "proportions":
        return 0, 1, 1 / labels
    if kind == "sum":
        return rows * low, rows * high, rows * (high - low) / 4
    if kind == "mean":
        return low, high, (high - low) / 4
    assert kind == "quantile"
    return 0, max(level * rows, rows - level * rows), min(level * rows, rows - level * rows) / 2


def half_of_a_group(kind: str, noise: float, rows: int) -> float:
    """The half width in a group, of noise with this half width on counts, sums, ranks and leads."""
    return noise / rows if kind in ("proportions", "mean") else noise


def verdict(kind: str, noise: float, groups: Sequence[int], labels: int, **how: float) -> str:
    """Of all groups: the smallest are left out while they hold less than 5 % of the rows."""
    left = sorted(rows for rows in groups if rows)
    out = 0
    while (out + left[0]) * 20 < sum(groups):
        out += left.pop(0)
    half = half_of_a_group(kind, noise, left[0])
    return of_a_group(kind, half, *scale(kind, left[0], labels, **how))
