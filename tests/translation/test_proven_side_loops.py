"""What is put on top of a side's loss before it is a bound, and what is taken off a limit."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from takifugu.numeric import Floats
from takifugu.translation.chain import coalescing_loops

pytestmark = pytest.mark.nightly

UNIT = 2.0**-53

loops: Any = coalescing_loops  # what is compiled has lost its types


@pytest.fixture(autouse=True)
def _as_compiled() -> Iterator[None]:
    """Compiled loops do not warn of what they test for; nor shall they as plain Python."""
    with np.errstate(all="ignore"):
        yield


def walk(rows: Floats, steps: int, high: float, low: float) -> tuple[Any, ...]:
    """Steps that are all alike; every state is a class of its own."""
    k = len(rows)
    factors = np.full((1, k), high), np.full((1, k), low)
    at = np.zeros(steps, np.int64)
    return rows[None], at, *factors, np.arange(k)[None], np.ones((1, k), np.bool_), at


ROWS = np.array([[0.5, 0.375, 0.125], [0.125, 0.625, 0.25], [0.25, 0.25, 0.5]])


@pytest.mark.parametrize(
    ("steps", "unbounded", "error", "margin"),
    [
        (2, False, 1e-3, 0.2), (2, False, 0.02, 0.2), (1, True, 1e-3, 0.05), (1, True, 1e-9, 1e-6),
        (100, False, 1e-4, 0.05), (3, False, 1e-15, 1e-6),
    ],
)  # fmt: skip
def test_a_bound_is_the_first_that_is_certified(
    steps: int, unbounded: bool, error: float, margin: float
) -> None:
    """A share of the loss and four times the error, then three times as much until it is proven.

    The share is tiny where all steps of a finite side were walked.
    """
    side = walk(ROWS, steps, 1.5, 0.75)
    held = np.ones(steps, np.bool_)
    most = 200 if unbounded else steps
    pairs = np.argwhere(~np.eye(3, dtype=bool))
    below, above = np.zeros(6), np.zeros(6)
    proof = (*side, unbounded, most, held, error, 1e-230)
    loops.solve(*proof, margin, pairs, 0, 6, np.zeros(6), below, above)
    for (x, y), least, found in zip(pairs.tolist(), below.tolist(), above.tolist(), strict=True):
        share = 1e-12 if steps < 64 and not unbounded else margin
        added = share * least + 4 * error + 1e-15
        tried: list[bool] = []
        while not tried or not tried[-1]:
            t = math.exp(least + added)
            work = np.zeros((6, 3))
            tried.append(
                loops.certified(*side, x, y, t, most, unbounded, held, error, 1e-230, work)
            )
            added *= 3
            assert len(tried) < 14
        bound = least + added / 3
        assert bound * (1 + 6 * UNIT) + 6 * UNIT <= found <= bound * (1 + 12 * UNIT) + 12 * UNIT


def proven(rows: Floats, limit: float) -> bool:
    """Whether one step with factors of 1 and no margins is proven to lose no more of 0 and 1."""
    found = np.zeros(1, np.bool_)
    side = walk(rows, 1, 1.0, 1.0)
    loops.test(
        *(*side, False, 1, np.ones(1, np.bool_), 0.0, 0.0),
        *(np.array([[0, 1]]), 0, 1, np.array([limit]), found),
    )
    return bool(found[0])


def test_a_limit_is_lowered_before_it_is_proven() -> None:
    """Nothing is lost, yet a limit of a few roundings is not proven; one of more is."""
    alike = np.full((2, 2), 0.5)
    assert not proven(alike, 0.0) and not proven(alike, -1.0)
    assert not proven(alike, 7 * UNIT) and proven(alike, 16 * UNIT)
    # a loss of 100: not by as many roundings as its exponential may be off by
    lost = 100.0
    for units, expected in ((0, False), (400, False), (4000, True)):
        rows = np.array([[1.0, 0.0], [math.exp(-lost) * (1 + units * UNIT), 0.0]])
        assert proven(rows, lost) is expected
