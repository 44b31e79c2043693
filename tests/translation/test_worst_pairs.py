"""The worst of many pairs, with sides that know the truth; and how a side is made ready."""

from dataclasses import dataclass, field
from itertools import product
from typing import Any, cast

import numpy as np
import pytest

from takifugu.numeric import Booleans, Floats, Integers
from takifugu.translation.chain import coalescing
from takifugu.translation.chain.coalescing import StarSide, _bounded, _held, _split, worst_pair
from takifugu.translation.chain.stars import Star

pytestmark = pytest.mark.nightly

UNIT = 2.0**-53


@dataclass
class Known:
    """A side whose loss of every pair is known; guesses of it are some way off."""

    truth: Floats
    off: Floats
    solved: list[tuple[int, int]] = field(default_factory=list)
    proven: int = 0
    margins: set[float] = field(default_factory=set)

    def glance(self, pairs: Integers) -> Floats:
        """What pairs seem to lose."""
        found: Floats = (self.truth * self.off)[tuple(pairs.T)]
        return found

    def solve(self, pairs: Integers, guess: Floats, *, margin: float) -> tuple[Floats, Floats]:
        """A little less than the truth, and the truth."""
        assert guess.shape == (len(pairs),)
        self.solved += [(int(x), int(y)) for x, y in pairs]
        self.margins.add(margin)
        found = self.truth[tuple(pairs.T)]
        return found - 0.001, found

    def prove(self, pairs: Integers, limits: Floats) -> Booleans:
        """Whether the truth is within the limits."""
        found: Booleans = self.truth[tuple(pairs.T)] <= limits
        self.proven += len(pairs)
        return found


def known(rng: np.random.Generator, size: int, spread: float) -> Known:
    """A side of so many states with guesses that are off by up to ``spread``."""
    return Known(rng.random((size, size)), rng.uniform(1 - spread, 1 + spread, (size, size)))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("leeway", [1.0, 0.8])
def test_the_worst_pair_is_the_worst_of_all(seed: int, leeway: float) -> None:
    """Each pair is solved, or proven to lose no more than another that was."""
    rng = np.random.default_rng(seed)
    size = 16 if seed % 2 else 4
    sides = [known(rng, size, 0.4), known(rng, size, 0.4)]
    pairs = np.argwhere(~np.eye(size, dtype=bool))
    own = rng.random(len(pairs))
    ahead = None if seed == 2 else sides[0]
    behind = None if seed == 3 else sides[1]
    parts = [
        np.zeros(len(pairs)) if s is None else s.truth[tuple(pairs.T)] for s in (ahead, behind)
    ]
    total = own + parts[0] + parts[1]
    found = worst_pair(
        *(cast("Any", ahead), cast("Any", behind), own, pairs), margin=0.125, leeway=leeway
    )
    best = int(np.argmax(total))
    assert found.pair == best
    assert total[best] <= found.loss <= total[best] * (1 + 1e-14)
    assert found.sides == (parts[0][best], parts[1][best])
    for side in (s for s in (ahead, behind) if s is not None):
        assert side.margins == {0.125}
        assert len(side.solved) == len(set(side.solved))
        assert len(side.solved) < len(pairs) or size == 4
    if leeway == 1.0:
        assert found.others == 0.0 and found.rivals.tolist() == list(range(len(pairs)))
    else:
        assert 0 < found.others <= leeway * found.loss
        aside = np.setdiff1d(np.arange(len(pairs)), found.rivals)
        assert (total[aside] <= found.others).all() and len(aside)
        assert (np.diff(found.rivals) > 0).all() and best in found.rivals
        # the share is that of the first pair that was solved: the one that seemed worst
        glances = [np.zeros(len(pairs)) if s is None else s.glance(pairs) for s in (ahead, behind)]
        first = int(np.argmax(own + glances[0] + glances[1]))
        assert found.others == pytest.approx(leeway * total[first])


def test_rivals_are_all_that_may_lose_more() -> None:
    """Pairs that come in the order in which they seem to lose: the first is the worst of all."""
    rng = np.random.default_rng(11)
    side = known(rng, 20, 0.0)
    pairs = np.argwhere(~np.eye(20, dtype=bool))
    pairs = pairs[np.argsort(-side.truth[tuple(pairs.T)])]
    total = side.truth[tuple(pairs.T)]
    side.off[:] = rng.uniform(0.6, 1.0, (20, 20))
    side.off[tuple(pairs[0])] = 1.0
    found = worst_pair(cast("Any", side), None, np.zeros(len(pairs)), pairs, leeway=0.5)
    assert found.pair == 0 and found.others == pytest.approx(0.5 * total[0])
    aside = np.setdiff1d(np.arange(len(pairs)), found.rivals)
    assert len(aside) and (total[aside] <= found.others).all() and 0 in found.rivals


def test_guesses_that_are_given_are_not_made_again() -> None:
    rng = np.random.default_rng(5)
    side = known(rng, 3, 0.0)
    pairs = np.argwhere(~np.eye(3, dtype=bool))
    side.off[:] = np.nan
    guess = rng.random(len(pairs))
    found = worst_pair(cast("Any", side), None, np.zeros(6), pairs, guesses=(guess, np.zeros(6)))
    assert found.loss == pytest.approx(side.truth[tuple(pairs.T)].max())
    assert side.solved[0] == tuple(pairs[np.argmax(guess)])


def test_without_a_proof_nothing_is_bounded() -> None:
    """An infinite loss ends the search; without pairs there is none."""
    side = known(np.random.default_rng(1), 3, 0.0)
    side.truth[1, 2] = np.inf
    pairs = np.array([[0, 1], [1, 2], [2, 0]])
    found = worst_pair(cast("Any", side), None, np.zeros(3), pairs)
    assert (found.loss, found.pair) == (np.inf, 1) and side.proven == 0
    nothing = worst_pair(None, None, np.zeros(0), pairs[:0])
    assert (nothing.loss, nothing.pair, nothing.others) == (0.0, -1, 0.0)
    assert nothing.sides == (0.0, 0.0) and len(nothing.rivals) == 0
    alone = worst_pair(None, None, np.array([0.25, 0.5, 0.125]), pairs)
    assert alone.loss == pytest.approx(0.5) and alone.pair == 1 and alone.sides == (0.0, 0.0)


def test_room_is_split_by_what_each_side_seems_to_lose() -> None:
    """A limit of 1, 0.4 of it the pair's own: 0.6 are left, ¾ of which go to the first side."""
    pairs = np.array([[0, 1], [1, 0]])
    own = np.array([0.4, 0.4])
    glances = [np.array([0.3, 0.0]), np.array([0.1, 0.0])]
    for first, second, expected in (
        (0.449, 0.149, True), (0.451, 0.149, False), (0.449, 0.151, False), (0.0, 0.0, True),
    ):  # fmt: skip
        sides = [Known(np.full((2, 2), loss), np.ones((2, 2))) for loss in (first, second)]
        found = _bounded(cast("Any", sides), pairs, own, glances, 1.0)
        assert found[0] == expected
        # nothing seems to be lost: half each
        assert found[1] == (first <= 0.3 and second <= 0.3)
    assert sides[0].proven == 2
    none = [Known(np.zeros((2, 2)), np.ones((2, 2)))] * 2
    assert not _bounded(cast("Any", none), pairs, own, glances, 0.39).any()
    assert none[0].proven == 0  # those without room are not asked for


def test_a_limit_leaves_room_for_rounding() -> None:
    """A pair whose own loss is the limit is not proven, one a few units below it is."""
    pairs, nothing = np.array([[0, 1]] * 3), [np.zeros(3), np.zeros(3)]
    own = np.array([1.0, 1.0 - 24 * UNIT, 1.0 - 64 * UNIT])
    assert _bounded([None, None], pairs, own, nothing, 1.0).tolist() == [False, False, True]
    small = np.array([0.0, 2.0**-60, 0.0])
    found = _bounded([None, None], pairs, small, nothing, 12 * UNIT)
    assert found.tolist() == [False, False, False]
    assert _bounded([None, None], pairs, small, nothing, 32 * UNIT).all()


def test_from_where_on_all_is_the_same() -> None:
    """Rows from n on, costs from the one before n on: all short sequences."""
    for length in (1, 2, 3, 4):
        for rows in product((0, 1), repeat=length):
            for costs in product((0, 1), repeat=length):
                found = _held(np.array(rows), np.array(costs))
                wanted = [
                    len(set(rows[n:])) == 1 and len(set(costs[max(n - 1, 0) :])) == 1
                    for n in range(length)
                ]
                assert found.tolist() == wanted


def test_values_whose_factor_has_one_level_need_no_class() -> None:
    star = Star(np.array([0.5, 0.0, 0.25]), np.array([0.0, 0.0, -0.25]), np.zeros(3, int), True)
    assert _split(star).tolist() == [0, 4, 5]


def test_a_side_is_made_ready() -> None:
    """Rows and stars by number, their factors, what rounding costs; nearest and further ones."""
    one = np.array([[0.25, 0.75], [0.5, 0.5]])
    other = np.array([[1.0, 0.0], [0.125, 0.875]])
    dear = Star(np.array([1.0, 0.5]), np.array([0.25, 2.0]), np.array([0, 1]), True)
    cheap = Star(np.array([0.1, 0.0]), np.array([0.2, 0.0]), np.array([0, 0]), True)
    side = StarSide.of([one, other, one], [dear, cheap, cheap], slack=0.01)
    assert side is not None and side.states == 2 and side.most == 3 and not side.unbounded
    assert side.row_at.tolist() == [0, 1, 0] and side.cost_at.tolist() == [0, 1, 1]
    assert side.high == pytest.approx(np.exp([[1.0, 0.5], [0.1, 0.0]]))
    assert side.low == pytest.approx(np.exp([[-0.25, -2.0], [-0.2, 0.0]]))
    assert side.last.tolist() == [[True, True], [True, True]]  # the second has but one level
    assert 0.01 + 2 * 18 * UNIT * 0.99 <= side.error <= 0.01 + 1e-12
    assert side.floor * 0.125 / 1e-230 == pytest.approx(1.0)
    assert side.held.tolist() == [False, False, True]
    assert side.dearest == pytest.approx([3.0, 0.0])
    near, far = side.nearest(2), side.beyond(1)
    assert near is not None and far is not None
    assert near.row_at.tolist() == [0, 1] and near.cost_at.tolist() == [0, 1]
    assert far.row_at.tolist() == [1, 0] and far.cost_at.tolist() == [1, 1]
    assert near.held.tolist() == [False, False] and far.held.tolist() == [False, True]
    assert side.nearest(0) is None and side.beyond(3) is None and side.beyond(4) is None
    back = StarSide.of([one, one, other], [cheap, dear, dear], slack=0.0)
    assert back is not None and back.held.tolist() == [False, False, True]
    shorter = back.nearest(2)
    assert shorter is not None and shorter.held.tolist() == [False, False]
    endless = StarSide.of([one], [dear], slack=0.0, unbounded=True)
    assert endless is not None and endless.most == coalescing.LONGEST and endless.unbounded


def test_states_are_listed_class_by_class() -> None:
    rows = np.full((4, 4), 0.25)
    star = Star(np.array([0.5, 0.2, 0.5, 0.2]), np.full(4, 0.25), np.array([1, 0, 1, 0]), True)
    side = StarSide.of([rows], [star], slack=0.0)
    assert side is not None and side.order.tolist() == [[1, 3, 0, 2]]
    assert side.last.tolist() == [[False, True, False, True]]
    tall = Star(np.array([0.5, 0.2, 0.5, 101.0]), np.full(4, 0.25), np.arange(4), True)
    assert StarSide.of([rows, rows], [tall, star], slack=0.0) is None
    assert StarSide.of([rows, rows], [star, tall], slack=0.0) is None


def test_what_is_out_of_range_has_no_side() -> None:
    star = Star(np.array([1.0, 0.5]), np.array([0.25, 2.0]), np.array([0, 1]), True)
    for least, able in ((1e-149, True), (1e-151, False)):
        rows = np.array([[1.0, least], [0.5, 0.5]])
        assert (StarSide.of([rows], [star], slack=0.0) is not None) == able
    rows = np.array([[0.5, 0.5], [0.25, 0.75]])
    for height, able in ((99.0, True), (101.0, False), (-101.0, False), (np.nan, False)):
        for place in (0, 1):
            rays = [np.array([1.0, 0.5]), np.array([101.0, 2.0])]
            rays[1][0] = 0.0
            rays[place][1] = height
            tall = Star(rays[0], rays[1], np.array([0, 1]), True)
            assert (StarSide.of([rows], [tall], slack=0.0) is not None) == able
