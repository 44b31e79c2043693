"""Stars: rays of a cost that is one, the least rays above one that is not, in exact numbers."""

from fractions import Fraction

import numpy as np
import pytest

from takifugu.numeric import Floats
from takifugu.translation.chain.stars import Star, _around, _rays, classes_of, star_of
from takifugu.translation.chain.transport_steps import closed, off_diagonal

pytestmark = pytest.mark.nightly


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


@pytest.mark.parametrize("seed", range(8))
def test_rays_begin_at_the_value_least_far_from_the_others(seed: int) -> None:
    """The longest are shortened first: leaving, then entering, as far as the others allow."""
    rng = np.random.default_rng(seed)
    size = 5
    cost = closed(off_diagonal(size) * rng.exponential(0.5, (size, size)))
    furthest = [max(max(cost[u, v], cost[v, u]) for v in range(size)) for u in range(size)]
    centre = furthest.index(min(furthest))
    up, down = [float(cost[u, centre]) for u in range(size)], [float(v) for v in cost[centre]]
    longest = sorted(range(size), key=lambda u: -(up[u] + down[u]))
    for u in longest:
        others = [v for v in range(size) if v != u]
        up[u] = max(*(float(cost[u, v]) - down[v] for v in others), -down[u])
        down[u] = max(*(float(cost[v, u]) - up[v] for v in others), -up[u])
    found = _around(cost)
    assert found[0] == pytest.approx(up, abs=1e-14) and found[1] == pytest.approx(down, abs=1e-14)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_a_cost_is_a_star_by_relative_rounding(scale: float) -> None:
    for off, tight in ((1e-13, True), (1e-11, False), (-1e-11, False)):
        cost = off_diagonal(4, scale)
        cost[2, 3] += off * scale
        assert star_of(cost).tight is tight


@pytest.mark.parametrize("seed", range(30))
def test_stars_cover_a_cost_at_every_scale(seed: int) -> None:
    """A hub of two values with one level, and rays of any length."""
    rng = np.random.default_rng(seed)
    rays = rng.random((2, 3)) * 10.0 ** rng.integers(-3, 4)
    up, down = (np.append([0.0, 0.0], part) for part in rays)
    apart = np.array([0, 0, 1, 2, 3])[:, None] != np.array([0, 0, 1, 2, 3])
    cost = apart * (up[:, None] + down)
    star = star_of(cost)
    assert star.tight and star.attained and covers(star, cost)
    assert (star.up[:2] == 0).all() and (star.down[:2] == 0).all()
    assert star.up == pytest.approx(up, rel=1e-12) and star.down == pytest.approx(down, rel=1e-12)


def test_the_smaller_class_may_come_last() -> None:
    cost = np.array([[0.0, 0.0, 0.5], [0.0, 0.0, 0.5], [0.25, 0.25, 0.0]])
    star = star_of(cost)
    assert star.up == pytest.approx([0.0, 0.0, 0.25]) and star.attained
    assert star.down == pytest.approx([0.0, 0.0, 0.5])


def test_a_negative_ray_is_no_star() -> None:
    """Rays of which one would be negative in all: the cost is not closed, the star covers it."""
    up, down = np.array([0.5, 0.6, 0.2, 0.4]), np.array([0.5, 0.6, -0.3, 0.4])
    cost = off_diagonal(4) * (up[:, None] + down)
    star = star_of(cost)
    assert not star.tight and covers(star, cost)
