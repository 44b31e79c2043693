"""Sides with one kernel and one cost: every choice of factors written out."""

import math
from itertools import pairwise, product

import numpy as np
import pytest

from takifugu.numeric import Floats
from takifugu.translation.chain.block_steps import block_length
from takifugu.translation.chain.solved_chains import _pieces
from takifugu.translation.chain.star_sides import StarWalk
from takifugu.translation.chain.stars import Star

pytestmark = pytest.mark.nightly

STAR = Star(np.array([0.5, 0.3]), np.array([0.2, 0.6]), np.array([0, 1]), True)
KERNELS = [
    np.array([[0.8, 0.2], [0.3, 0.7]]),
    np.array([[0.5, 0.5], [0.05, 0.95]]),
]


def by_hand(kernel: Floats, star: Star, x: int, y: int, n: int, end: Floats) -> float:
    """The largest log E[Πg | x] / E[Πg | y] over factors of n entries, the last weighed."""
    k = len(kernel)
    best = -math.inf
    for choice in product((0, 1), repeat=k * n):
        sums = []
        for begin in (x, y):
            weighed = float((np.linalg.matrix_power(kernel, n) @ end)[begin])
            law = kernel[begin].copy()
            for m in range(n):
                chosen = choice[k * m : k * m + k]
                factor = np.where(chosen, np.exp(star.up), np.exp(-star.down))
                law = law * factor
                if m < n - 1:
                    law = law @ kernel
            sums.append(float(law @ end) / weighed)
        best = max(best, math.log(sums[0] / sums[1]))
    return max(best, 0.0)


@pytest.mark.parametrize("end", [(1.0, 1.0), (0.2, 0.8)])
@pytest.mark.parametrize("kernel", range(2))
def test_the_loss_of_each_number_of_entries(kernel: int, end: tuple[float, float]) -> None:
    walk = StarWalk.of(KERNELS[kernel], STAR, 4, known=False, start=np.array(end))
    assert walk.usable and walk.steps == 4 and walk.whole
    for x, y in ((0, 1), (1, 0)):
        found = walk.search(x, y, 5.0).losses(1e-6)
        assert found[0] == 0.0 and len(found) == 5
        for n in range(1, 5):
            truth = by_hand(KERNELS[kernel], STAR, x, y, n, np.array(end))
            assert truth - 1e-12 <= found[n] <= truth + 2e-6
        capped = walk.search(x, y, 0.01).losses(1e-6)
        assert capped.max() <= 0.01
        rough = walk.search(x, y, 5.0).losses(0.5)
        assert (rough >= found - 1e-9).all()
        near = np.array([False, False, True, False, False])
        some = walk.search(x, y, 5.0).losses(1e-6, near)
        assert some[2] == pytest.approx(found[2], abs=2e-6) and (some >= found - 2e-6).all()


def test_an_end_that_is_known_reveals_no_less() -> None:
    """The other end known: the worst of its states, for it and for all that are nearer."""
    kernel = KERNELS[0]
    walk = StarWalk.of(kernel, STAR, 3, known=True, start=np.ones(2))
    for x, y in ((0, 1), (1, 0)):
        found = walk.search(x, y, 5.0).losses(1e-6)
        truth = 0.0
        for n in range(1, 4):
            truth = max(truth, by_hand(kernel, STAR, x, y, n, np.ones(2)))
            for b in range(2) if n > 1 else ():
                # n − 1 entries lie between, and the n-th is seen as it is
                known = -math.inf
                for choice in product((0, 1), repeat=2 * (n - 1)):
                    sums = []
                    for begin in (x, y):
                        law = kernel[begin].copy()
                        for m in range(n - 1):
                            chosen = choice[2 * m : 2 * m + 2]
                            law = (
                                law * np.where(chosen, np.exp(STAR.up), np.exp(-STAR.down))
                            ) @ kernel
                        sums.append(float(law[b] / np.linalg.matrix_power(kernel, n)[begin, b]))
                    known = max(known, math.log(sums[0] / sums[1]))
                truth = max(truth, known)
            assert found[n] >= truth - 1e-9
        assert found[3] <= 5.0


def test_long_sides_are_walked_until_those_left_are_alike() -> None:
    for length in (1, 2, 24, 600, None):
        walk = StarWalk.of(KERNELS[0], STAR, length, known=False, start=np.ones(2))
        assert walk.whole == (walk.steps == length)
        assert walk.steps <= 600 and (length is None or walk.steps <= length)
        if length is not None and length <= 24:
            assert walk.steps == length
        else:
            power = np.linalg.matrix_power(KERNELS[0], walk.steps)
            assert walk.steps >= 24 and np.ptp(np.log(power), axis=0).max() <= 1e-6
    logs = StarWalk.of(KERNELS[0], STAR, 5, known=False, start=np.ones(2)).powers
    for n in range(5):
        assert np.exp(logs[n]) == pytest.approx(np.linalg.matrix_power(KERNELS[0], n + 1))
    unbounded = StarWalk.of(KERNELS[0], STAR, None, known=False, start=np.ones(2))
    finite = StarWalk.of(KERNELS[0], STAR, 20, known=False, start=np.ones(2))
    one, other = (walk.search(0, 1, 9.0).losses(1e-6) for walk in (unbounded, finite))
    assert one[-1] >= other.max() - 1e-9 and one[-1] <= other[-1] + 1e-3


def test_walks_beyond_the_range_of_floats_are_not_used() -> None:
    ones = np.ones(2)

    def made(kernel: Floats, star: Star, start: Floats | None = ones) -> bool:
        return StarWalk.of(kernel, star, 3, known=False, start=start).usable

    assert made(KERNELS[0], STAR)
    assert not made(np.array([[1.0, 1e-160], [0.5, 0.5]]), STAR)
    for size in (1e-4, 200.0):
        apart = Star(np.full(2, size), np.full(2, size), np.array([0, 1]), True)
        assert not made(KERNELS[0], apart)
    assert not made(np.array([[1.0, 0.0], [0.5, 0.5]]), STAR, None)  # not every law leads there
    assert made(np.array([[1.0, 0.0], [0.5, 0.5]]), STAR)
    assert not StarWalk.of(KERNELS[0], STAR, 0, known=False, start=ones).usable


def test_blocks_and_pieces() -> None:
    assert [block_length(k) for k in (1, 2, 3, 4, 5, 8, 9, 10, 81, 300)] == [
        1,
        6,
        4,
        3,
        2,
        2,
        2,
        1,
        1,
        1,
    ]
    for count in (1, 2, 3, 7, 50, 1000):
        pieces = _pieces(count)
        assert pieces[0][0] == 0 and pieces[-1][1] == count
        assert all(a[1] == b[0] and a[0] < a[1] for a, b in pairwise(pieces))
        sizes = [end - begin for begin, end in pieces]
        assert sizes[0] == sizes[-1] == 1 or count < 3


def test_what_may_be_positive_counts_as_positive() -> None:
    """At the very τ at which a measure or a sum vanishes its sign is that of rounding up."""
    kernel = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.375, 0.375, 0.25]])
    free = Star(np.zeros(3), np.zeros(3), np.arange(3), True)
    walk = StarWalk(kernel, free, 3, True, True, np.ones(3))
    search = walk.search(0, 1, 2.0)
    points = np.array([math.log(2.0), 0.0, math.log(2.0) + 1e-12, 1e-12, -1e-12])
    signs, sums, best, some = search._evaluate(points)
    assert signs.shape == (3, 5, 3) and best.shape == (3, 5)
    # one entry away: ½ − τ ¼ vanishes at 2, ¼ − τ ½ at ½, and ¼ − τ ¼ at 1
    assert signs[0].tolist() == [
        [True, False, False], [True, False, True], [False, False, False],
        [True, False, False], [True, False, True],
    ]  # fmt: skip
    # further away the third state has a quarter of the sum, which vanishes at 1
    assert signs[1:, :, 2].tolist() == [[False, True, False, False, True]] * 2
    assert sums.tolist() == [[False, True, False, False, True]] * 3
    assert some[0].tolist() == [True, True, False, True, True]
    assert (best == -np.inf).all()
    for e, after in search._walked(points, 3):
        assert np.abs(e).max(axis=1) == pytest.approx(1.0)
        assert after == pytest.approx(e, rel=1e-14)


def test_a_shift_moves_where_a_sign_changes() -> None:
    """Bounds of log τ plus a shift: the points around the change, or the cap; none without."""
    walk = StarWalk.of(KERNELS[0], STAR, 2, known=False, start=np.ones(2))
    search = walk.search(0, 1, 3.0)
    search.points = np.array([-1.0, 0.0, 1.0, 2.0])
    positive = np.array([[[1, 0, 1], [1, 0, 1], [0, 0, 1], [0, 0, 1]]], dtype=bool)
    upper, below, place = search._between(positive, np.array([[0.25, 0.5, np.nan]]))
    assert upper.tolist() == [[1.25, -0.5, -np.inf]]
    assert below.tolist() == [[0.25, -np.inf, -np.inf]] and place.tolist() == [[1, -1, 3]]
    upper, below, _ = search._between(positive, np.array([[5.0, 0.0, 0.0]]))
    assert upper.tolist() == [[3.0, -1.0, 3.0]] and below.tolist() == [[5.0, -np.inf, 2.0]]


def test_the_grid_is_split_in_order() -> None:
    """New points lie inside of the intervals, and all that is known stays with its point."""
    walk = StarWalk.of(KERNELS[1], STAR, 3, known=True, start=np.array([0.2, 0.8]))
    search = walk.search(0, 1, 2.0)
    before = search.points.copy()
    search.split(np.array([0, 5]))
    assert len(search.points) == len(before) + 6 and (np.diff(search.points) > 0).all()
    assert np.isin(before, search.points).all()
    fresh = np.setdiff1d(search.points, before)
    assert ((fresh[:3] > before[0]) & (fresh[:3] < before[1])).all()
    assert ((fresh[3:] > before[5]) & (fresh[3:] < before[6])).all()
    again = search._evaluate(search.points)
    for kept, wanted in zip(
        (search.signs, search.sums, search.best, search.some), again, strict=True
    ):
        assert (kept == wanted).all()
