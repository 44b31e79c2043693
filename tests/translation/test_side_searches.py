"""Bounds of a side on a grid of ratios: interval by interval, in plain loops."""

import math
from typing import Any

import numpy as np
import pytest

from takifugu.translation.chain import star_sides
from takifugu.translation.chain.star_sides import SideSearch, StarWalk
from takifugu.translation.chain.stars import Star

pytestmark = pytest.mark.nightly

UNIT = 2.0**-20
K, STEPS, GRID = 3, 4, 6
CLOSE, CAP = 0.3, 2.5


def made_up(
    rng: np.random.Generator, *, known: bool, whole: bool, free: bool, steady: bool = False
) -> SideSearch:
    """A search whose signs and ratios are drawn, as they fall on a grid of rising points."""
    star = Star(np.full(K, 0.5), np.full(K, 0.25), np.arange(K), True)
    start = None if free else np.array([0.5, 0.25, 0.25])
    kernel = np.full((K, K), 1 / K)
    walk = StarWalk(kernel, star, STEPS, whole, known, start, steady, 0.01)
    search: Any = SideSearch(walk, 0, 1, CAP)
    search.points = np.cumsum(rng.choice([0.05, 0.4, 0.9], GRID)) - 1.0
    falling = np.arange(GRID)
    search.signs = falling[:, None] < rng.integers(0, GRID + 1, (STEPS, 1, K))
    search.sums = falling < rng.integers(0, GRID + 1, (STEPS, 1))
    search.some = falling < rng.integers(0, GRID + 1, (STEPS, 1))
    search.best = np.where(rng.random((STEPS, GRID)) < 0.4, -np.inf, rng.normal(size=(STEPS, GRID)))
    search._ratio = np.where(rng.random((STEPS, K)) < 0.2, np.nan, rng.normal(size=(STEPS, K)))
    search._never = rng.random(STEPS) < 0.2
    search._shift = rng.normal(size=STEPS)
    found: SideSearch = search
    return found


def in_loops(search: Any, near: list[bool]) -> tuple[list[float], list[int]]:
    """Both bounds of every adversary, one at a time."""
    walk, points = search._walk, search.points.tolist()
    last, tops, lowers, cells = GRID - 1, [], [], set()
    intervals: list[list[tuple[float, float, int]]] = []

    def crossing(positive: list[bool], shift: float) -> tuple[float, float, int]:
        above = sum(positive)
        upper = points[above] + shift if above <= last else CAP
        below = points[above - 1] + shift if above > 0 else -math.inf
        return min(upper, CAP), below, above - 1

    for n in range(STEPS):
        one: list[tuple[float, float, int]] = []
        if walk.known and n > 0:
            one += [
                crossing(search.signs[n, :, b].tolist(), ratio)
                for b, ratio in enumerate(search._ratio[n].tolist())
                if not math.isnan(ratio)
            ]
        if walk.start is not None and not search._never[n]:
            one.append(crossing(search.sums[n].tolist(), search._shift[n]))
        if walk.start is None:
            for place, best in enumerate(search.best[n].tolist()):
                if math.isfinite(best):
                    end = points[place + 1] if place < last else math.inf
                    one.append((min(best + end, CAP), best + points[place], place))
        intervals.append(one)
        tops.append(max([0.0, *(upper for upper, _, _ in one)]))
        lowers.append(max([0.0, *(min(below, CAP) for _, below, _ in one)]))
        if walk.known and n:
            lowers[n] = max(lowers[n - 1 : n + 1])
    for n in range(STEPS):
        for upper, _, place in intervals[n]:
            if near[n] and upper > lowers[n] + CLOSE and 0 <= place < last:
                cells.add(place)
    if not walk.whole:
        first = sum(search.some[-1].tolist())
        tail = min(points[first] + search._latest, CAP) if first <= last else math.inf
        tops[-1] = max(tops[-1], min(tail, CAP))
        if near[-1] and 0 < first <= last and tail > lowers[-1] + CLOSE:
            cells.add(first - 1)
    tops = [
        top + 64 * (K + 4) * (n + 3) * UNIT + walk.slack if top > 0 else top
        for n, top in enumerate(tops)
    ]
    if walk.known:
        tops = [max(tops[: n + 1]) for n in range(STEPS)]
    wide = [cell for cell in sorted(cells) if points[cell + 1] - points[cell] > 0.25 * CLOSE]
    return tops, wide


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_bounds_are_those_of_every_adversary(
    known: bool, whole: bool, free: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(star_sides, "UNIT", UNIT)
    rng = np.random.default_rng(11)
    for _ in range(60):
        search = made_up(rng, known=known, whole=whole, free=free, steady=bool(rng.random() < 0.5))
        near = rng.random(STEPS) < 0.7
        top, cells = search.bounds(CLOSE, near)
        tops, wide = in_loops(search, near.tolist())
        assert top.tolist() == pytest.approx(tops, rel=1e-12) and cells.tolist() == wide


def test_entries_further_away_than_was_walked_are_bounded_by_the_last_ratio() -> None:
    """By that of the law where it stays the same and no entry is known, else by the largest."""
    search: Any = made_up(np.random.default_rng(3), known=False, whole=False, free=False)
    search._ratio[-1], search._shift[-1] = [0.25, 0.75, -1.0], 0.125
    assert search._latest == 0.75
    search._ratio[-1, 0] = np.nan
    assert search._latest == np.inf
    steady: Any = made_up(
        np.random.default_rng(3), known=False, whole=False, free=False, steady=True
    )
    steady._ratio[-1], steady._shift[-1] = [0.25, np.nan, -1.0], 0.125
    assert steady._latest == 0.125
    known: Any = made_up(np.random.default_rng(3), known=True, whole=False, free=False, steady=True)
    known._ratio[-1], known._shift[-1] = [0.25, 0.75, -1.0], 0.125
    assert known._latest == 0.75
