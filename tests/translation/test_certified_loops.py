"""What the loop `certified` decides, beside the same rule in exact numbers, with wide margins."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from takifugu.translation.chain import coalescing_loops

pytestmark = pytest.mark.nightly

UNIT = 2.0**-53

loops: Any = coalescing_loops  # what is compiled has lost its types


@pytest.fixture(autouse=True)
def _as_compiled() -> Iterator[None]:
    """Compiled loops do not warn of what they test for; nor shall they as plain Python."""
    with np.errstate(all="ignore"):
        yield


@dataclass
class Case:
    """A side in exact numbers, whose floats hold them without rounding.

    Attributes:
        rows: ``[kind][x][u]``.
        row_at: ``[step]``.
        high: ``[level][u]``.
        low: ``[level][u]``.
        classes: ``[level]``: lists of states, each list a class.
        cost_at: ``[step]``.
        held: ``[step]``: whether all is the same from there on.
    """

    rows: list[list[list[Fraction]]]
    row_at: list[int]
    high: list[list[Fraction]]
    low: list[list[Fraction]]
    classes: list[list[list[int]]]
    cost_at: list[int]
    held: list[bool]

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.rows[0])

    def walk(self) -> tuple[Any, ...]:
        """The arguments of the loops."""
        order = [[u for part in level for u in part] for level in self.classes]
        last = [[u == part[-1] for part in level for u in part] for level in self.classes]
        return (
            np.array(self.rows, np.float64), np.array(self.row_at), np.array(self.high, np.float64),
            np.array(self.low, np.float64), np.array(order), np.array(last),
            np.array(self.cost_at),
        )  # fmt: skip


def balance(values: list[Fraction], error: Fraction) -> Fraction:
    """A sum in which what is positive counts more, and what is negative less."""
    return sum((v * (1 + error if v > 0 else 1 - error) for v in values), Fraction(0))


def stretched(value: Fraction, high: Fraction, low: Fraction) -> Fraction:
    """The largest multiple of a number by a factor between the two."""
    return value * (high if value > 0 else low)


def normal(values: list[Fraction]) -> list[Fraction]:
    """Multiplied by the power of two that takes the largest size to at least ½, below 1."""
    most, scale = max(abs(v) for v in values), Fraction(1)
    while most and most * scale >= 1:
        scale /= 2
    while most and most * scale < Fraction(1, 2):
        scale *= 2
    return [v * scale for v in values]


def later(one: Case, e: list[Fraction], n: int, error: Fraction, floor: Fraction) -> list[Fraction]:
    """The measure one entry later: a factor for each class and next state."""
    level = one.cost_at[min(n, len(one.cost_at)) - 1]
    matrix = one.rows[one.row_at[min(n, len(one.row_at) - 1)]]
    found = []
    for v in range(one.states):
        alone, shared = [], []
        for part in one.classes[level]:
            high, low = one.high[level][part[0]], one.low[level][part[0]]
            if len(part) == 1:
                moved = stretched(e[part[0]], high, low)
                moved = max(moved, floor) if moved > 0 else moved
                alone.append(moved * matrix[part[0]][v])
            else:
                raised = [max(e[u], floor) if e[u] > 0 else e[u] for u in part]
                terms = [w * matrix[u][v] for w, u in zip(raised, part, strict=True)]
                shared.append(
                    stretched(balance(terms, error), high * (1 + error), low * (1 - error))
                )
        found.append(balance(alone, error) + sum(shared, Fraction(0)))
    return normal(found)


def decided(
    one: Case, x: int, y: int, t: Fraction, steps: int, unbounded: bool,
    error: Fraction, floor: Fraction,
) -> tuple[bool, str, list[Fraction]]:  # fmt: skip
    """Whether t is proven, why, and the measure at which that was seen."""
    first = one.rows[one.row_at[0]]
    e = [balance([first[x][v], -t * first[y][v]], error) for v in range(one.states)]
    before: list[Fraction] | None = None
    for n in range(1, steps + 1):
        level = one.cost_at[min(n, len(one.cost_at)) - 1]
        if max(e) <= 0:
            return True, "nowhere positive", e
        sums = [
            stretched(
                balance([e[u] for u in part], error),
                one.high[level][part[0]], one.low[level][part[0]],
            )
            for part in one.classes[level]
        ]  # fmt: skip
        if balance(sums, error) > 0:
            return False, "positive sum", e
        if n == steps and not unbounded:
            return True, "end", e
        if before is not None and one.held[min(n, len(one.held)) - 1]:
            # r·before is at least e: r from the positive ones, and not above the negative ones
            pairs = list(zip(e, before, strict=True))
            most = max([a / b for a, b in pairs if b > 0], default=Fraction(0))
            most = max(most, Fraction(0))
            least = min([a / b for a, b in pairs if b < 0], default=None)
            if not any(a > 0 for a, b in pairs if b == 0) and (
                least is None or most * (1 + error) < least * (1 - error)
            ):
                return True, "falling", e
        if n == steps:
            return False, "too long", e
        before, e = e, later(one, e, n, error, floor)
    raise AssertionError("a walk has steps")


def made(seed: int) -> Case:
    """A random side whose numbers are odd multiples of a power of two, and some of its rows' 0.

    Their rows have any sum: the loop does not ask for it.
    """
    rng = np.random.default_rng(seed)
    k, kinds = int(rng.integers(2, 5)), int(rng.integers(1, 3))
    levels, steps = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    odd = 2 * rng.integers(20, 400, (kinds, k, k)) + 1
    rows = [
        [[Fraction(int(p), 1024) for p in row] for row in matrix]
        for matrix in odd * (rng.random(odd.shape) < 0.8)
    ]
    high, low, classes = [], [], []
    for _ in range(levels):
        names = rng.integers(0, k, k)
        parts = [np.flatnonzero(names == name).tolist() for name in np.unique(names)]
        ups, downs = [Fraction(1)] * k, [Fraction(1)] * k
        for part in parts:
            factors = 2 * int(rng.integers(32, 50)) + 1, 2 * int(rng.integers(20, 32)) + 1
            for u in part:
                ups[u], downs[u] = Fraction(factors[0], 64), Fraction(factors[1], 64)
        high.append(ups)
        low.append(downs)
        classes.append(parts)
    row_at, cost_at = rng.integers(0, kinds, steps).tolist(), rng.integers(0, levels, steps)
    held = (np.arange(steps) >= steps - 1 - rng.integers(0, 2)).tolist()
    return Case(rows, row_at, high, low, classes, cost_at.tolist(), held)


MARGINS = ((0, 0), (Fraction(1, 64), 0), (Fraction(1, 16), Fraction(1, 8)), (0, Fraction(1, 4)))


@pytest.mark.parametrize("seed", range(40))
def test_what_is_certified_is_what_the_rule_says(seed: int) -> None:
    """Decisions, and the measures at which they were made, around the t at which they change."""
    one = made(seed)
    rng = np.random.default_rng(1000 + seed)
    for error, floor in MARGINS:
        x, y = (int(v) for v in rng.choice(one.states, 2, replace=False))
        for unbounded, steps in ((False, len(one.row_at)), (True, int(rng.integers(1, 9)))):
            given = steps, unbounded, Fraction(error), Fraction(floor)
            low, high = Fraction(1), Fraction(8)
            for _ in range(6):  # towards the least t that is proven
                t = (low + high) / 2
                proven, why, e = decided(one, x, y, t, *given)
                work = np.full((6, one.states), 1000.0 if unbounded else np.nan)  # of other pairs
                found = loops.certified(
                    *(*one.walk(), x, y, float(t), steps, unbounded, np.array(one.held)),
                    *(float(error), float(floor), work),
                )
                assert bool(found) == proven, why
                assert work[0] == pytest.approx([float(v) for v in e], rel=1e-12, abs=1e-13)
                low, high = (low, t) if proven else (t, high)


def plainly(
    rows: list[list[list[float]]],
    factors: tuple[float, float],
    classes: list[list[int]],
    steps: int,
) -> tuple[bool, list[float]]:
    """Whether 0 and 1 are proven to be alike, t = 1, no margins; and the last measure."""
    k = len(rows[0])
    exact = [[[Fraction(v) for v in row] for row in matrix] for matrix in rows]
    high, low = ([[Fraction(factor)] * k] for factor in factors)
    one = Case(exact, list(range(steps)), high, low, [classes], [0] * steps, [False] * steps)
    work = np.full((6, k), np.nan)
    held = np.array(one.held)
    found = loops.certified(*one.walk(), 0, 1, 1.0, steps, False, held, 0.0, 0.0, work)
    return bool(found), work[0].tolist()


def test_a_sum_of_nothing_is_proven() -> None:
    """At the very t that is attained there is no excess: 1/8 on one side, 1/8 on the other."""
    rows = [[[0.375, 0.625], [0.25, 0.75]]]
    assert plainly(rows, (1.0, 1.0), [[0], [1]], 1) == (True, [0.125, -0.125])
    assert not plainly(rows, (1.0 + 2**-52, 1.0), [[0], [1]], 1)[0]


def test_what_classes_add_is_rounded_up() -> None:
    """1 of one class and 1 + 2^-52 of another are 2 + 2^-52, which is no float."""
    more = 1 + 2.0**-52
    first = [[1.0, 1.0, -5.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    then = [[1.0, 0.0, 0.0], [more, 0.0, 0.0], [0.0, 1.0, 0.0]]
    found, e = plainly([first, then], (1.0, 1.0), [[0], [1, 2]], 2)
    assert found
    wanted = (1 + Fraction(more)) / 8
    assert wanted <= Fraction(e[0]) <= wanted * (1 + Fraction(16 * UNIT))
    assert e[1:] == pytest.approx([-0.625, 0.0])


@pytest.mark.parametrize("side", [0, 1])
def test_what_no_float_holds_is_not_proven(side: int) -> None:
    """A factor by which a number leaves float64, on what is positive or on what is negative."""
    first = [[1.0, -4.0], [0.0, 0.0]]
    then = [[0.5, 0.0], [0.0, 1.0]]
    assert plainly([first, then], (1.0, 1.0), [[0], [1]], 2)[0]
    then = [[0.5, 0.0], [0.0, 1e3]] if side else [[1e3, 0.0], [0.0, 1.0]]
    assert not plainly([first, then], (1e307, 1e307), [[0], [1]], 2)[0]
