"""The loops of self-avoiding walks: closed forms to many digits, walks listed one by one."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest

from takifugu.translation.network import walk_kernel

pytestmark = pytest.mark.nightly

loops: Any = walk_kernel  # what is compiled has lost its types


@pytest.fixture(autouse=True)
def _as_compiled() -> Iterator[None]:
    """Compiled loops do not warn of what they test for; nor shall they as plain Python."""
    with np.errstate(all="ignore"):
        yield


def beta(spread: Any, rise: Any) -> mpmath.mpf:
    """4 artanh(tanh(Δ/4) tanh(α/4)); at infinity the other."""
    if mpmath.inf in (spread, rise):
        return min(spread, rise)
    a, b = mpmath.mpf(spread) / 4, mpmath.mpf(rise) / 4
    return 2 * mpmath.log(mpmath.cosh(a + b) / mpmath.cosh(a - b))


SIZES = [0.0, 1e-320, 1e-200, 1e-9, 0.1, 1.0, 2.5, 3.5, 4.0, 10.0, 60.0, 800.0, 1e299, np.inf]


@pytest.mark.parametrize(("spread", "rise"), list(product(SIZES, repeat=2)))
def test_a_change_of_weights_is_rounded_up_and_no_more_than_either(
    spread: float, rise: float
) -> None:
    found = float(loops.reweighted(spread, rise))
    assert found <= min(spread, rise)
    if min(spread, rise) == 0:
        assert found == 0.0
        return
    if max(spread, rise) > 1e4:
        assert found == min(spread, rise)
        return
    with mpmath.workdps(700):
        truth = beta(spread, rise)
        assert found >= truth
        assert found <= truth * (1 + 1e-12) + 1e-300 + 64 * 2.0**-53 * (2 + max(spread, rise) / 2)
        if truth < 0.5:
            assert found <= truth * (1 + 2e-14) + 1e-300


def graph() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Five entries: a triangle with a tail and a chord; contacts, and each seen from its end."""
    pairs = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (1, 4)]
    near: list[list[int]] = [
        sorted({*(b for a, b in pairs if a == i), *(a for a, b in pairs if b == i)})
        for i in range(5)
    ]
    start = np.concatenate([[0], np.cumsum([len(one) for one in near])])
    flat = np.array([j for one in near for j in one])
    back = np.array(
        [start[j] + near[j].index(i) for i, one in enumerate(near) for j in one], dtype=np.int64
    )
    return start.astype(np.int64), flat, back


def by_hand(
    entry: int,
    depth: int,
    gone: frozenset[int],
    cost: np.ndarray,
    spread: np.ndarray,
    behind: np.ndarray,
) -> mpmath.mpf:
    start, near, _ = graph()
    total = mpmath.mpf(0)
    for k in range(start[entry], start[entry + 1]):
        j = int(near[k])
        if j in gone:
            continue
        below = mpmath.mpf(float(behind[k]))
        if depth > 0 and below > 0:
            below = min(below, by_hand(j, depth - 1, gone | {entry}, cost, spread, behind))
        total += beta(float(spread[k]), float(cost[j]) + below)
    return total


@pytest.mark.parametrize("depth", range(5))
@pytest.mark.parametrize("tall", [0.3, 50.0])
def test_walks_are_summed_with_everybody_once(depth: int, tall: float) -> None:
    rng = np.random.default_rng(depth)
    start, near, back = graph()
    cost, spread = rng.uniform(0, 1, 5), rng.uniform(0.1, 3, len(near))
    spread = (spread + spread[back]) / 2
    behind = np.full(len(near), tall)
    behind[3] = 0.0
    for entry in range(5):
        gone, visits = np.zeros(5, np.bool_), np.array([10**6])
        found = loops.walked(entry, depth, visits, cost, start, near, spread, behind, gone)
        assert not gone.any()
        with mpmath.workdps(40):
            truth = by_hand(entry, depth, frozenset([entry]), cost, spread, behind)
            assert truth <= found <= truth * (1 + 1e-12) + 1e-12
        if depth == 0:
            assert visits[0] == 10**6 - 1
    # with entries that are gone from the start, they are passed by
    gone = np.array([False, True, False, False, False])
    found = loops.walked(2, depth, np.array([10**6]), cost, start, near, spread, behind, gone)
    with mpmath.workdps(40):
        truth = by_hand(2, depth, frozenset([1, 2]), cost, spread, behind)
        assert truth <= found <= truth * (1 + 1e-12) + 1e-12
    assert gone.tolist() == [False, True, False, False, False]


def test_walks_end_when_the_visits_do() -> None:
    start, near, _ = graph()
    cost, spread, behind = np.full(5, 0.5), np.full(len(near), 1.0), np.full(len(near), 30.0)
    found = {}
    for visits in (1, 2, 3, 5, 100):
        left = np.array([visits])
        found[visits] = loops.walked(
            0, 9, left, cost, start, near, spread, behind, np.zeros(5, np.bool_)
        )
        assert left[0] >= 0 if visits < 100 else left[0] > 0
    with mpmath.workdps(30):
        assert found[1] == pytest.approx(float(2 * beta(1.0, 30.5)), rel=1e-12)  # as deep as 0
    assert found[1] > found[2] > found[5] > found[100]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_contacts_add_up_for_every_pair_of_values(size: int) -> None:
    rng = np.random.default_rng(size)
    near, cost = np.array([3, 1, 0, 2]), rng.uniform(0, 1, 4)
    offsets = np.arange(4) * size * size
    spreads, behind = rng.uniform(0, 4, 4 * size * size), rng.uniform(0, 2, 2)
    before = rng.uniform(0, 1, (size, size))
    total = before.copy()
    loops.summed(1, 3, offsets, near, spreads, cost, behind, total)
    with mpmath.workdps(40):
        for x, y in product(range(size), repeat=2):
            truth = mpmath.mpf(float(before[x, y])) + mpmath.fsum(
                beta(
                    float(spreads[offsets[k] + x * size + y]),
                    mpmath.mpf(float(cost[near[k]])) + mpmath.mpf(float(behind[k - 1])),
                )
                for k in (1, 2)
            )
            assert truth <= total[x, y] <= truth * (1 + 1e-13) + 1e-13


def rounds_by_hand(
    behind: list[mpmath.mpf], cost: np.ndarray, spread: np.ndarray
) -> list[mpmath.mpf]:
    """What i finds behind j: β over all contacts of j but i."""
    start, near, _ = graph()
    after = list(behind)
    for i in range(5):
        for k in range(start[i], start[i + 1]):
            j = int(near[k])
            after[k] = mpmath.fsum(
                beta(float(spread[m]), mpmath.mpf(float(cost[near[m]])) + behind[m])
                for m in range(start[j], start[j + 1])
                if near[m] != i
            )
    return after


@pytest.mark.parametrize("falling", [True, False])
@pytest.mark.parametrize("most", [0, 1, 2, 4])
def test_rounds_of_the_recursion(falling: bool, most: int) -> None:
    rng = np.random.default_rng(most)
    start, near, back = graph()
    cost, spread = rng.uniform(0, 1, 5), rng.uniform(0.1, 2, len(near))
    spread = (spread + spread[back]) / 2
    behind = np.full(len(near), 40.0 if falling else 0.0)
    with mpmath.workdps(40):
        truth = [mpmath.mpf(float(one)) for one in behind]
        for _ in range(most):
            after = rounds_by_hand(truth, cost, spread)
            truth = [min(a, b) for a, b in zip(after, truth, strict=True)] if falling else after
        loops.rounds(most, 0.0, cost, start, near, back, spread, behind, falling)
        for found, exact in zip(behind.tolist(), truth, strict=True):
            assert exact <= found <= exact * (1 + 1e-11) + 1e-12


def test_falling_rounds_end_when_little_changes_and_never_rise() -> None:
    start, near, back = graph()
    cost, spread = np.full(5, 0.4), np.full(len(near), 0.8)
    ends = []
    for close in (0.0, 0.01, 1.0):
        behind = np.full(len(near), 40.0)
        loops.rounds(500, close, cost, start, near, back, spread, behind, True)
        ends.append(behind.copy())
        before = behind.copy()
        loops.rounds(3, 0.0, cost, start, near, back, spread, behind, True)
        assert (behind <= before).all()
    assert (ends[0] <= ends[1]).all() and (ends[1] <= ends[2]).all()
    assert ends[1] == pytest.approx(ends[0], rel=0.1) and (ends[2] > ends[0]).any()
    once = np.full(len(near), 40.0)
    loops.rounds(1, 1.0, cost, start, near, back, spread, once, True)
    assert (ends[2] == once).all()  # nothing falls by all of itself: one round


def test_an_end_has_nothing_behind_it() -> None:
    """Two entries: what the one finds behind the other is exactly nothing."""
    for falling in (True, False):
        behind = np.full(2, 5.0 if falling else 0.0)
        loops.rounds(
            *(3, 0.0, np.ones(2), np.array([0, 1, 2]), np.array([1, 0]), np.array([1, 0])),
            *(np.ones(2), behind, falling),
        )
        assert behind.tolist() == [0.0, 0.0]
