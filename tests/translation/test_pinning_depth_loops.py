"""The margins of boxes that are explored some steps away, with a unit of roundoff that shows."""

import numpy as np
import pytest

from tests.translation.test_margins_of_networks_loops import (
    PINS,
    U,
    _coarse,  # noqa: F401 - the same coarse unit, used by every test here
    units,
)

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_boxes_are_widened_by_how_deep_they_are(depth: int) -> None:
    """32 units for each contact, for each step and for four more, each end on its own side."""
    near, back = np.array([[1], [0]]), np.zeros((2, 1), dtype=np.int64)
    degree, pull = np.ones(2, dtype=np.int64), np.full((2, 1), 0.5)
    low, high, own = np.full(2, 2.0), np.full(2, 3.0), np.array([0.25, 0.125])
    boxes = np.full((2, 2, 1, 5), np.nan)
    PINS.far_boxes(
        *(low, high, own, 9.0, near, back, degree, pull, pull),
        *(np.full((2, 1), 5), boxes),
    )
    visits = np.zeros(1, dtype=np.int64)
    bottom, top, least, most = PINS.explore(
        *(0, depth, 1.0, 9.0, 9, low, high, own, near, degree, pull, pull, boxes),
        *(np.zeros(2, np.bool_), np.ones((2, 2)), np.zeros((depth + 1, 2, 1)), visits),
    )
    down, pinned, grown, more, free = (float(one) for one in boxes[min(depth, 1), 0, 0])
    up = min(pinned, free)  # nobody is pinned
    little = PINS.least_gain(down, up, grown, 0.5)
    much = PINS.most_gain(down, up, more, 0.5)
    margin = 32 * (1 + depth + 4)
    assert -units(bottom, 2 * (1 + PINS.felt(down, 0.5))) == pytest.approx(margin, rel=1e-6)
    assert units(top, 3 * (1 + PINS.felt(up, 0.5))) == pytest.approx(margin, rel=1e-6)
    assert -units(least, PINS.together(0.25, little)) == pytest.approx(margin, rel=1e-6)
    assert units(most, PINS.together(0.25, much)) == pytest.approx(margin, rel=1e-6)
    assert visits[0] == 1 and margin * U < 0.01
