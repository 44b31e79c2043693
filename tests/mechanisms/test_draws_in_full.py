"""Draws for planning, with the random numbers given: each draw is the one of its definition."""

from collections.abc import Callable
from itertools import product
from math import exp, expm1
from typing import Any

import numpy as np
import pytest

from takifugu.errors import InvalidMechanism
from takifugu.mechanisms import (
    Exponential,
    IntegerGaussian,
    IntegerLaplace,
    NoisyTopK,
    PermuteAndFlip,
    RandomisedResponse,
    ThresholdedHistogram,
    noise_laws,
    simulation,
)

pytestmark = pytest.mark.nightly


class Given:
    """A generator whose numbers are given in advance; it keeps what it was asked for."""

    def __init__(self, *numbers: Any) -> None:
        self.numbers = [np.asarray(one) for one in numbers]
        self.asked: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def draw(*arguments: Any) -> Any:
            self.asked.append((name, *arguments))
            given = self.numbers.pop(0)
            return np.broadcast_to(given, arguments[-1]).copy()

        return draw


def test_laplace_noise_is_the_difference_of_two_geometric_numbers() -> None:
    rng: Any = Given([[4, 1, 9]], [[1, 3, 9]])
    assert simulation.laplace(rng, 2.5, (1, 3)).tolist() == [[3, -2, 0]]
    p = pytest.approx(-expm1(-1 / 2.5))
    assert rng.asked == [("geometric", p, (1, 3))] * 2


def test_gaussian_noise_is_read_from_its_table() -> None:
    weights = [exp(-((z / 1.5) ** 2) / 2) for z in range(-20, 21)]
    ends = np.cumsum(weights) / sum(weights)
    shares = [0.0, 0.001, 0.3, 0.49, 0.51, 0.7, 0.999]
    rng: Any = Given(shares, [1.0])
    expected = [int(np.searchsorted(ends, u, side="right")) - 20 for u in shares]
    expected[0] = -20  # the end of the table of twelve scales and two
    assert simulation.gaussian(rng, 1.5, (7,)).tolist() == expected
    assert simulation.gaussian(rng, 1.5, (1,)).tolist() == [20]
    assert rng.asked == [("random", (7,)), ("random", (1,))]


def test_a_number_on_the_end_of_a_step_belongs_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = np.arange(-1, 2), np.array([0.25, 0.5, 0.25])
    monkeypatch.setattr(simulation, "gaussian_table", lambda _: table)
    rng: Any = Given([0.0, 0.25, 0.5, 0.75])
    assert simulation.gaussian(rng, 1.0, (4,)).tolist() == [-1, 0, 0, 1]


def test_very_wide_gaussian_noise_is_a_rounded_normal() -> None:
    rng: Any = Given([1.4, -2.6])
    drawn = simulation.gaussian(rng, 6000.0, (2,))
    assert drawn.tolist() == [1, -3] and drawn.dtype == np.int64
    assert rng.asked == [("normal", 0.0, 6000.0, (2,))]
    narrow: Any = Given([0.5])
    simulation.gaussian(narrow, 4000.0, (1,))
    assert narrow.asked == [("random", (1,))]


SCORES = np.array([[5, 3, 0, 3], [-2, -2, 7, 6]])


def by_hand(k: int, noise: Any, scale: float, *, peel: bool) -> list[Any]:
    """``[repetition][group][place]``: the largest of scores in scales and noise, by loops."""
    shape = (3, 2)
    found: Any = np.empty((*shape, k), dtype=int)
    for i, j in product(range(3), range(2)):
        left = list(range(4))
        for place in range(k):
            drawn = noise[place if peel else 0][i][j]
            best = max(left, key=lambda c: (SCORES[j][c] / scale + drawn[c], -c))
            found[i, j, place] = best
            left.remove(best)
    result: list[Any] = found.tolist()
    return result


def numbers(count: int) -> list[Any]:
    source = np.random.default_rng(5)
    return [source.exponential(1.0, (3, 2, 4)) for _ in range(count)]


@pytest.mark.parametrize("k", [1, 2, 4])
def test_rounds_by_given_noise(k: int) -> None:
    clocks = numbers(1)
    rng: Any = Given(*clocks)
    drawn = simulation.top_gumbel(rng, SCORES, k, 2.0, 3)
    assert drawn.tolist() == by_hand(k, [-np.log(clocks[0])], 2.0, peel=False)
    assert rng.asked == [("standard_exponential", (3, 2, 4))]
    flips = numbers(k)
    rng = Given(*flips)
    drawn = simulation.top_flips(rng, SCORES, k, 2.0, 3)
    assert drawn.tolist() == by_hand(k, flips, 2.0, peel=True)
    assert rng.asked == [("standard_exponential", (3, 2, 4))] * k
    whole = [np.rint(3 * one) for one in numbers(1)]
    drawn = simulation.top_noisy(SCORES, k, 3, lambda shape: np.broadcast_to(whole[0], shape))
    assert drawn.tolist() == by_hand(k, whole, 1.0, peel=False)
    assert drawn.dtype == np.int64


def test_selections_draw_their_own_law() -> None:
    for made, draw in (
        (PermuteAndFlip(2.0, 2), simulation.top_flips),
        (Exponential(2.0, 2), simulation.top_gumbel),
    ):
        one: Any = made.simulate(SCORES, 3, rng=Given(*numbers(2)))  # type: ignore[arg-type]
        two: Any = draw(Given(*numbers(2)), SCORES, 2, 2.0, 3)  # type: ignore[arg-type]
        assert one.tolist() == two.tolist()
    one = PermuteAndFlip(2.0).simulate(SCORES, 3, rng=Given(*numbers(1)))  # type: ignore[arg-type]
    assert one.shape == (3, 2)
    for large in (PermuteAndFlip(2.0, 5), Exponential(2.0, 5), NoisyTopK(IntegerLaplace(2.0), 5)):
        with pytest.raises(InvalidMechanism, match="is 5 with 4 candidates"):
            large.simulate(SCORES, 3, rng=np.random.default_rng(0))
    steps = np.arange(24).reshape(3, 2, 4)
    drawn = NoisyTopK(IntegerLaplace(2.0), 2).simulate(
        SCORES,
        3,
        rng=Given(steps % 5 + 1, steps % 3 + 1),  # type: ignore[arg-type]
    )
    assert drawn.tolist() == by_hand(2, [steps % 5 - steps % 3], 1.0, peel=False)


@pytest.mark.parametrize("cells", [1, 8, 16, 2**22])
def test_blocks_of_repetitions_are_all_of_them(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "CELLS", cells)
    shapes: list[tuple[int, ...]] = []

    def draw(part: Any, shape: tuple[int, ...]) -> Any:
        shapes.append(shape)
        assert part.tolist() == [[0, -2, -5, -2], [-9, -9, 0, -1]]
        return np.full((*shape[:-1], 2), sum(s[0] for s in shapes))

    found = simulation._blocks(SCORES, 5, 2, draw)
    step = max(cells // 8, 1)
    assert [shape[0] for shape in shapes] == [min(step, 5 - start) for start in range(0, 5, step)]
    assert all(shape[1:] == (2, 4) for shape in shapes)
    ends = [min((i // step + 1) * step, 5) for i in range(5)]
    assert found[:, 0, 0].tolist() == ends
    assert found.shape == (5, 2, 2)


def test_spans_are_next_to_each_other() -> None:
    assert list(simulation._spans(7, 3)) == [(0, 3), (3, 6), (6, 7)]
    assert list(simulation._spans(6, 3)) == [(0, 3), (3, 6)]
    assert list(simulation._spans(2, 3)) == [(0, 2)]


def test_noise_is_added_to_every_repetition() -> None:
    rng: Any = Given([[4, 1], [2, 2]], [[1, 3], [2, 5]])
    assert IntegerLaplace(2.0).simulate([10, 20], 2, rng=rng).tolist() == [[13, 18], [10, 17]]
    assert rng.asked[0][2] == (2, 2)
    wide: Any = Given([3.0, -4.0])
    assert IntegerGaussian(6000.0).simulate([1, 2], 1, rng=wide).tolist() == [[4, -2]]


def test_responses_are_true_below_the_probability_of_the_truth() -> None:
    made = RandomisedResponse(("a", "b", "c"), 0.6)
    rng: Any = Given([[0.59, 0.61], [0.0, 0.99]], [[1, 2], [1, 1]])
    assert made.simulate(["c", "b"], 2, rng=rng).tolist() == [[2, 0], [2, 2]]
    assert rng.asked == [("random", (2, 2)), ("integers", 1, 3, (2, 2))]


def test_keys_are_shown_from_the_threshold_on() -> None:
    made = ThresholdedHistogram(2.0, 5)
    rng: Any = Given([[4, 1], [1, 9]], [[1, 1], [1, 1]])
    drawn = made.simulate({"b": 5, "a": 2}, 2, rng=rng)
    assert np.array_equal(drawn, [[5.0, 5.0], [np.nan, 13.0]], equal_nan=True)
    assert [name for name, *_ in rng.asked] == ["geometric"] * 2
    for count in (1, 4, 5, 9):
        law = noise_laws.laplace_pmf(2.0, np.arange(5 - count, 200))
        assert made.shown(count) == pytest.approx(law.sum())
