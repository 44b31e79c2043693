"""Stars: rays of a cost that is one, the least rays above one that is not, in exact numbers."""

from fractions import Fraction

import numpy as np
import pytest

from takifugu.numeric import Floats
from takifugu.translation.chain.stars import Star, _around, _rays, classes_of, star_of
from takifugu.translation.chain.transport_steps import closed, off_diagonal


def made(rng: np.random.Generator, size: int) -> tuple[Floats, Floats, Floats]:
    """Random rays, some of them negative, and the cost that they make."""
    up = rng.random(size)
    down = rng.random(size) - np.minimum(up, 0.3)
    up -= up[0] * 0.5
    down += up[0]
    return up, down, off_diagonal(size) * (up[:, None] + down[None, :])


def covers(star: Star, cost: Floats) -> bool:
    """Whether leaving one class and entering another costs enough, and a ray is never negative."""
    rays = [[Fraction(float(v)) for v in part] for part in (star.up, star.down)]
    size = range(len(cost))
    return all(
        rays[0][u] + rays[1][v] >= Fraction(float(cost[u, v]))
        for u in size
        for v in size
        if star.classes[u] != star.classes[v]
    ) and all(rays[0][u] + rays[1][u] >= 0 for u in size)


@pytest.mark.parametrize("size", [3, 4, 6])
@pytest.mark.parametrize("seed", range(4))
def test_a_star_is_its_rays(seed: int, size: int) -> None:
    up, down, cost = made(np.random.default_rng(seed), size)
    found = _rays(cost)
    assert found[0][:, None] + found[1] == pytest.approx(up[:, None] + down)
    assert found[0].min() == pytest.approx(found[1].min())  # both are shifted alike
    star = star_of(cost)
    assert star.tight and star.attained and covers(star, cost)
    assert star.up[:, None] + star.down == pytest.approx(up[:, None] + down, rel=1e-12, abs=1e-12)
    hub = int(np.argmin(up + down))
    assert star.up[hub] == 0.0 and star.classes.tolist() == list(range(size))
    assert star.dearest == pytest.approx(cost.max())


@pytest.mark.parametrize("seed", range(8))
def test_rays_around_a_cost_cannot_be_shortened(seed: int) -> None:
    """Any other cost is below a star of which no single ray could be shorter."""
    rng = np.random.default_rng(seed)
    size = 3 + seed % 3
    cost = closed(off_diagonal(size) * rng.exponential(0.5, (size, size)))
    up, down = _around(cost)
    away = off_diagonal(size) > 0
    room = (up[:, None] + down - cost)[away]
    assert room.min() >= -1e-12 and (up + down).min() >= -1e-12
    for u in range(size):
        entering = (up + down[u] - cost[:, u])[away[u]].min()
        assert min(entering, up[u] + down[u]) == pytest.approx(0.0, abs=1e-12)
    star = star_of(cost)
    assert covers(star, cost) and not (star.tight and seed)
    above = (star.up[:, None] + star.down)[away]
    assert above == pytest.approx((up[:, None] + down)[away], abs=1e-12)


def test_values_alike_are_one_class() -> None:
    """Free both ways, not one way; numbered by their first value."""
    cost = np.array(
        [[0.0, 0.5, 0.0, 0.2], [0.0, 0.0, 0.0, 0.2], [0.0, 0.5, 0.0, 0.2], [0.1, 0.6, 0.1, 0.0]]
    )
    assert classes_of(cost).tolist() == [0, 1, 0, 2]
    assert classes_of(np.zeros((3, 3))).tolist() == [0, 0, 0]


def test_two_classes_have_all_of_the_cost_on_the_smaller_one() -> None:
    cost = np.where(np.array([0, 1, 1])[:, None] < np.array([0, 1, 1]), 0.5, 0.0)
    cost += np.where(np.array([0, 1, 1])[:, None] > np.array([0, 1, 1]), 0.25, 0.0)
    star = star_of(cost)
    assert star.tight and star.attained and star.classes.tolist() == [0, 1, 1]
    assert star.up == pytest.approx([0.5, 0.0, 0.0]) and star.down == pytest.approx(
        [0.25, 0.0, 0.0]
    )
    assert (star.up[1:] == 0).all() and (star.down[1:] == 0).all() and covers(star, cost)
    assert star.dearest == pytest.approx(0.5)
    nothing = star_of(np.zeros((3, 3)))
    assert nothing.tight and nothing.attained and nothing.dearest == 0.0
    assert (nothing.up == 0).all() and (nothing.down == 0).all()


def test_a_class_of_several_values_is_attained_only_with_one_level() -> None:
    classes = np.array([0, 0, 1])
    for up, down, tight, attained in (
        ([0.0, 0.0, 1.0], [0.0, 0.0, 0.5], True, True),
        ([0.0, 0.0, 1.0], [0.0, 0.0, 0.5], False, False),
        ([0.25, 0.25, 1.0], [0.0, 0.0, 0.5], True, False),
        ([0.25, 0.25, 1.0], [-0.25, -0.25, 0.5], True, True),
    ):
        assert Star(np.array(up), np.array(down), classes, tight).attained is attained


def test_a_cost_off_by_more_than_rounding_is_no_star() -> None:
    for off, tight in ((1e-13, True), (-1e-13, True), (1e-9, False), (-1e-9, False)):
        cost = off_diagonal(4, 1.0)
        cost[2, 3] += off
        star = star_of(cost)
        assert star.tight is tight and covers(star, cost)
        above = star.up[:, None] + star.down
        assert above.min() >= -1e-12 and (above.max() <= 1.0 + 1e-11 or not tight)
