"""Sets of laws, larger fields, and numbers within bounds: worlds that are not one small table.

* A chain whose start is unknown, and one within intervals: some of the laws are written out, and
  the loss of each is exact. The truth may be larger, so that these look for bounds that are too
  small, and their ratios are upper estimates.
* Attractive fields of up to ten people: the worst mechanism counts, and the sum over all datasets
  is taken by how many ones they have.
* A truncated Gaussian with two entries: quadrature.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations, product
from math import fsum
from typing import Any

import mpmath
import numpy as np

from takifugu._core.numeric import Floats
from takifugu.influence import gaussian_curve
from takifugu.priors import IntervalMarkovChain, MarkovRandomField, TruncatedGaussian
from takifugu.translation import Translation
from tests.oracles.all_vertices import (
    Law,
    asked_pairs,
    chain_law,
    exact_rows,
    known_laws,
    normalised,
    pair_loss,
)
from torture.oracles.comparison import Allowance, Compared, Family, Instance, Rng
from torture.oracles.extreme_draws import epsilon, law, rows
from torture.oracles.small_priors import Said, prior_of, said_by
from torture.oracles.spending import NAMES, draw_spending, matrices

PIECES = 6  # ends of the pieces of an integral
SHARES = (1e-12, 0.02, 0.1, 0.27, 0.5, 0.73, 0.9, 0.98)


def _worst(
    said: Said, spent: Instance, sizes: list[int], laws: Iterator[Law], *, known: bool = False
) -> Iterator[Compared]:
    """The bound beside the largest loss under any of some laws."""
    costs, worst = matrices(spent, sizes), mpmath.mpf(0)
    for whole in laws:
        for entry, size in enumerate(sizes):
            for left, right in asked_pairs(size, None):
                for given in known_laws(whole, entry) if known else (whole,):
                    loss = pair_loss(given, costs, said.unit, entry, left, right)
                    worst = worst if loss is None else max(worst, loss)
    yield Compared(str(spent["kind"]), said.upper, worst, mpmath.inf, said.lower)


def _draw_unknown(rng: Rng) -> Instance:
    size = int(rng.choice([2, 3], p=[0.75, 0.25]))
    entries = int(rng.integers(2, {2: 5, 3: 3}[size]))
    kind = str(rng.choice(["unknown", "both"], p=[0.75, 0.25]))
    world = {"kind": kind, "rows": rows(rng, size), "start": "unknown", "length": entries}
    return {"world": world, "spent": draw_spending(rng, [size] * entries), "unit": epsilon(rng)}


def _compare_unknown(instance: Instance) -> Iterator[Compared | Allowance]:
    world, spent = instance["world"], instance["spent"]
    said = said_by(Translation(prior_of(world)), spent, instance["unit"])
    yield from said.asked()
    if not said.unit:
        return
    size = len(world["rows"])
    steps = [exact_rows(world["rows"])] * (world["length"] - 1)
    laws = (
        chain_law(_on_two(size, x, y, Fraction(share)), steps)
        for x, y in permutations(range(size), 2)
        for share in SHARES
    )
    both = world["kind"] == "both"
    yield from _worst(said, spent, [size] * world["length"], laws, known=both)


def _on_two(size: int, x: int, y: int, share: Fraction) -> list[Fraction]:
    """A law on two states: the supremum over all laws is attained by one of these."""
    found = [Fraction(0)] * size
    found[x], found[y] = share, 1 - share
    return found


def _fits(table: Floats) -> bool:
    """Whether every row has a sum that is 1 as a float, so that it may be its own bounds."""
    return all(fsum(row) == 1 for row in table)


def _draw_intervals(rng: Rng) -> Instance:
    size = int(rng.choice([2, 3], p=[0.7, 0.3]))
    entries = int(rng.integers(1, {2: 5, 3: 3}[size]))
    middle = np.array(rows(rng, size))
    loose = float(rng.choice([0.0, 0.01, 0.1, 0.5, 1.0]))
    low = np.where(rng.random(middle.shape) < 0.2, 0.0, middle * (1 - loose))
    room = 1e-15 * float(rng.integers(2)) if _fits(middle) else 1e-15
    high = np.minimum(middle * (1 + loose) + room * (middle > 0), 1.0)
    members = [
        [[rng.permutation(size).tolist() for _ in range(size)] for _ in range(entries - 1)]
        for _ in range(4)
    ]
    return {
        "low": low.tolist(),
        "high": high.tolist(),
        "length": entries,
        "members": members,
        "starts": [law(rng, size) for _ in members],
        "spent": draw_spending(rng, [size] * entries),
        "unit": epsilon(rng),
    }


def _filled(low: list[float], high: list[float], order: list[int]) -> list[Fraction]:
    """The row that gives as much as it may to one value after the other.

    Bounds whose sums are 1 only as floats have no such row: theirs is divided by its sum.
    """
    row, left = [Fraction(v) for v in low], max(1 - sum(map(Fraction, low)), Fraction(0))
    for v in order:
        more = min(left, Fraction(high[v]) - row[v])
        row[v] += more
        left -= more
    return [part / sum(row) for part in row]


def interval_chain(instance: Instance) -> IntervalMarkovChain:
    """The chain within intervals of an instance."""
    low, high = np.array(instance["low"]), np.array(instance["high"])
    return IntervalMarkovChain(low, high, NAMES[: len(low)], "any", instance["length"])


def _compare_intervals(instance: Instance) -> Iterator[Compared | Allowance]:
    low, high, size = instance["low"], instance["high"], len(instance["low"])
    said = said_by(Translation(interval_chain(instance)), instance["spent"], instance["unit"])
    yield from said.asked()
    if not said.unit:
        return
    laws = (
        chain_law(
            normalised(start),
            [[_filled(low[x], high[x], orders[x]) for x in range(size)] for orders in steps],
        )
        for steps, start in zip(instance["members"], instance["starts"], strict=True)
    )
    yield from _worst(said, instance["spent"], [size] * instance["length"], laws)


def _draw_attractive(rng: Rng) -> Instance:
    count = int(rng.integers(2, 9))
    size = float(rng.choice([0.1, 1.0, 10.0, 100.0], p=[0.4, 0.4, 0.1, 0.1]))
    edges = [[i, j] for j in range(count) for i in range(j) if rng.random() < 0.5] or [[0, 1]]
    return {
        "unary": np.exp(rng.uniform(-size, size, (count, 2))).tolist(),
        "edges": edges,
        "favours": np.exp(rng.exponential(size, len(edges))).tolist(),
        "unit": epsilon(rng),
        "kind": str(rng.choice(["dp", "allowance"], p=[0.8, 0.2])),
    }


def attractive_field(instance: Instance) -> MarkovRandomField:
    """The field of an instance."""
    names = tuple(f"n{k}" for k in range(len(instance["unary"])))
    return MarkovRandomField(
        names,
        (("0", "1"),) * len(names),
        tuple(np.array(weights) for weights in instance["unary"]),
        tuple((names[i], names[j]) for i, j in instance["edges"]),
        tuple(np.array([[f, 1.0], [1.0, f]]) for f in instance["favours"]),
    )


def _compare_attractive(instance: Instance) -> Iterator[Compared | Allowance]:
    unary, favours = instance["unary"], instance["favours"]
    translation = Translation(attractive_field(instance))
    said = said_by(translation, {"kind": instance["kind"]}, instance["unit"])
    yield from said.asked()
    if not said.unit:
        return
    exact = [[Fraction(w) for w in weights] for weights in unary]
    couplings = [(i, j, Fraction(f)) for (i, j), f in zip(instance["edges"], favours, strict=True)]
    count = len(unary)
    # sums[i][x][k]: of all datasets with entry i = x and k ones
    sums = [[[Fraction(0)] * (count + 1) for _ in (0, 1)] for _ in unary]
    for state in product((0, 1), repeat=count):
        weight = Fraction(1)
        for x, weights in zip(state, exact, strict=True):
            weight *= weights[x]
        for i, j, favour in couplings:
            if state[i] == state[j]:
                weight *= favour
        ones = sum(state)
        for i, x in enumerate(state):
            sums[i][x][ones] += weight
    worst = [_counting(part, said.unit) for part in sums]
    most = max(worst)
    yield Compared("all secrets", said.upper, most, most, said.lower, said.exact)
    if said.by_entry is not None:
        for entry, bound in enumerate(said.by_entry.tolist()):
            yield Compared(f"entry {entry}", bound, worst[entry], worst[entry], counted=False)


def _counting(sums: list[list[Fraction]], unit: Fraction) -> Any:
    """The larger loss of a count of ones and of a count of zeros."""
    small = max(unit.denominator.bit_length() - unit.numerator.bit_length(), 0)
    sizes = [p.numerator.bit_length() - p.denominator.bit_length() for s in sums for p in s]
    spread = max(map(abs, sizes))
    with mpmath.workdps(60 + int(0.61 * small + 0.61 * spread)):
        gain = mpmath.exp(mpmath.mpf(unit.numerator) / unit.denominator)
        best = mpmath.mpf(0)
        for counted in (0, 1):
            told = []
            for part in sums:
                weights = part if counted else part[::-1]
                numbers = [mpmath.mpf(w.numerator) / w.denominator for w in weights]
                tilted = mpmath.fsum(w * gain**k for k, w in enumerate(numbers))
                told.append(tilted / mpmath.fsum(numbers))
            ratio = told[counted] / told[1 - counted]
            best = max(best, mpmath.log(ratio))
    return +best


def _draw_truncated(rng: Rng) -> Instance:
    variances = (10.0 ** rng.uniform(-1, 1, 2)).tolist()
    share = float(rng.choice([0.0, 0.5, 0.99, -0.9, rng.uniform(-1, 1)]))
    bound = float(10.0 ** rng.uniform(-1, 1))
    width = bound * float(rng.choice([1e-6, 0.01, 0.3, 1.0]))
    return {"variances": variances, "share": share, "bound": bound, "width": width}


def truncated_gaussian(instance: Instance) -> TruncatedGaussian:
    """The prior of an instance."""
    one, other = instance["variances"]
    cross = instance["share"] * float(np.sqrt(one * other))
    table = np.array([[one, cross], [cross, other]])
    return TruncatedGaussian(table, instance["bound"], instance["width"])


def _compare_truncated(instance: Instance) -> Iterator[Compared]:
    one, other = instance["variances"]
    cross = instance["share"] * float(np.sqrt(one * other))
    curve = gaussian_curve(truncated_gaussian(instance))
    for entry, (own, rest) in enumerate(((one, other), (other, one))):
        with mpmath.workdps(25):
            truth = _truncated_leak(own, rest, cross, instance["bound"], instance["width"])
        yield Compared(f"entry {entry}", float(curve.leak[entry, 0]), truth, mpmath.inf)


def _truncated_leak(own: float, rest: float, cross: float, bound: float, width: float) -> Any:
    """The largest log-ratio of the other entry's density given the outermost regions.

    That density at an end, together with the region, is a normal law's: a closed form. The
    region's own probability is an integral over it, piece by piece.
    """
    a, b, c = mpmath.mpf(own), mpmath.mpf(rest), mpmath.mpf(cross)
    gamma, delta = mpmath.mpf(bound), mpmath.mpf(width)
    spread, narrow = mpmath.sqrt(b - c * c / a), mpmath.sqrt(a - c * c / b)

    def within(low: Any, high: Any) -> Any:
        """Φ(high) − Φ(low), without a difference of numbers near 1."""
        low, high = (-high, -low) if low > 0 else (low, high)
        return mpmath.ncdf(high) - mpmath.ncdf(low)

    def mass(low: Any) -> Any:
        def inside(u: Any) -> Any:
            ends = [(end - c / a * u) / spread for end in (-gamma, gamma)]
            return mpmath.exp(-u * u / a / 2) * within(*ends)

        return mpmath.quad(inside, mpmath.linspace(low, low + delta, PIECES))

    def joint(low: Any, seen: Any) -> Any:
        mean = c / b * seen
        return within((low - mean) / narrow, (low + delta - mean) / narrow)

    places = (-gamma, gamma - delta)
    masses = {low: mass(low) for low in places}
    return max(
        mpmath.log(joint(one, seen) / joint(other, seen) * masses[other] / masses[one])
        for one, other in permutations(places, 2)
        for seen in (-gamma, gamma)
    )


MEMBERS = "all extreme mechanisms, for some of the laws"
FAMILIES = (
    Family("chain with an unknown start", MEMBERS, _draw_unknown, _compare_unknown),
    Family("chain within intervals", MEMBERS, _draw_intervals, _compare_intervals),
    Family("attractive field", "the worst mechanism counts", _draw_attractive, _compare_attractive),
    Family("curve: truncated Gaussian", "quadrature", _draw_truncated, _compare_truncated, 1e-9),
)
