"""A state that is never reached has no weight on a side: nothing is divided by it."""

import math
from typing import Any

import numpy as np
import pytest

from takifugu.translation.chain import coalescing_loops

pytestmark = pytest.mark.nightly

loops: Any = coalescing_loops  # what is compiled has lost its types


@pytest.mark.parametrize(("loss", "proven"), [(0.05, False), (0.9, True)])
def test_a_side_without_end_on_which_a_state_is_never_reached(loss: float, proven: bool) -> None:
    rows = np.array([[[0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.5, 0.5, 0.0]]])
    high, low = np.full((1, 3), math.exp(0.2)), np.ones((1, 3))
    one = np.zeros(1, dtype=np.int64)
    order, last = np.arange(3)[None], np.ones((1, 3), dtype=np.bool_)
    work = np.zeros((6, 3))
    with np.errstate(divide="raise", invalid="raise"):
        found = loops.certified(
            *(rows, one, high, low, order, last, one, 0, 1, math.exp(loss), 60, True),
            *(np.ones(1, dtype=np.bool_), 1e-12, 1e-230, work),
        )
    assert bool(found) == proven
    plain = np.zeros((6, 2))  # the same without that state
    same = loops.certified(
        *(np.ascontiguousarray(rows[:, :2, :2]), one, high[:, :2], low[:, :2], order[:, :2]),
        *(last[:, :2], one, 0, 1, math.exp(loss), 60, True),
        *(np.ones(1, dtype=np.bool_), 1e-12, 1e-230, plain),
    )
    assert bool(same) == proven
