"""Secret pairs of groups of values in a chain: every distance, and sums too small for a float."""

import math
from itertools import product

import numpy as np
import pytest

from takifugu.influence.chain import chain_groups
from takifugu.influence.chain.chain_groups import GroupLeaks, _worst_ratio
from takifugu.influence.chain.powers import LogProduct
from takifugu.numeric import Floats

pytestmark = pytest.mark.nightly


def test_only_sums_too_small_for_a_float_are_measured_by_their_logarithms() -> None:
    """The size of the logarithms is that of the rounding where they were used, and else 0."""
    past = np.array([[0.0, -1.0, -np.inf], [-2.0, 0.0, -1.0]])
    future = np.array([[-0.5], [0.0], [-3.0]])
    value, deep = _worst_ratio(past, future, 1)
    assert value == pytest.approx(0.5) and deep == 0.0
    nothing = np.array([[-np.inf, 0.0, -1.0], [-2.0, 0.0, -1.0]])
    value, deep = _worst_ratio(nothing, future, 1)  # the first row cannot happen under A
    base = math.log(math.exp(0.0) + math.exp(-4.0))
    assert value == pytest.approx(-2.5 - base) and deep == 0.0
    small = np.array([[-900.0, 0.0, -1.0], [-2.0, 0.0, -np.inf], [-np.inf, 0.0, -5.0]])
    value, deep = _worst_ratio(small, future, 1)
    assert value == pytest.approx(-2.5) and deep == 3 * 900.5
    other = np.array([[-2.0, 0.0, -np.inf], [-900.0, 0.0, -1.0]])
    assert _worst_ratio(other, future, 1) == (value, deep)


def test_rows_of_a_group_are_scaled_by_their_largest_and_none_is_lost() -> None:
    law = LogProduct(np.log([[0.5, 0.25, 0.25]]), 0.125)
    with np.errstate(divide="ignore"):
        rows = np.log([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.125, 0.375, 0.5]])
    before, after = LogProduct(rows, 0.25), LogProduct(rows.T, 0.5)
    part = GroupLeaks(
        "0",
        (None, None),
        np.ones(1, bool),
        np.ones(1, bool),
        (((0,), (1,)),),
        [before],
        [after],
        law,
        np.zeros(1),
    )
    for which in ("before", "after"):
        found, error = part._side(0, which, 1)
        # the second row, or column, reaches neither side
        assert found == pytest.approx(np.log([[1.0, 1.0], [1 / 3, 1.0]]))
        assert error == pytest.approx(0.25 if which == "before" else 0.5, abs=1e-12)
    found, error = part._side(0, "before", 0)
    assert found == pytest.approx(np.log([[1.0, 0.5]])) and error == pytest.approx(0.125)
    found, error = part._side(0, "after", 0)
    assert found.tolist() == [[0.0, 0.0]] and 0 < error < 1e-14
    assert part.error == 0.0


def test_what_happens_under_one_side_only_is_not_measured() -> None:
    future = np.array([[-1.0], [0.0]])
    alone = np.array([[-1.0, -np.inf]])
    assert _worst_ratio(alone, future, 1) == (np.inf, 0.0)
    beside = np.array([[-1.0, -1.0], [-1.0, -np.inf], [-np.inf, -1.0]])
    assert _worst_ratio(beside, future, 1) == (np.inf, 0.0)


def test_a_sum_too_small_below_is_taken_in_logarithms() -> None:
    past = np.array([[0.0, -800.0], [0.0, 0.0], [-np.inf, 0.0]])
    value, deep = _worst_ratio(past, np.zeros((2, 1)), 1)
    assert value == pytest.approx(800.0) and deep == 2 * 800.0


def leaks_of(offset: float = 0.5) -> tuple[GroupLeaks, list[Floats], list[Floats]]:
    """Two distances to either side, all different; one value cannot follow another."""
    rng = np.random.default_rng(12)
    before, after = (list(rng.dirichlet(np.ones(3), (2, 3))) for _ in range(2))
    before[1][0] = [0.5, 0.5, 0.0]
    after[0][:, 2] = [0.5, 0.125, 0.0]
    with np.errstate(divide="ignore"):
        tables = [
            [LogProduct(np.log(one), 0.125 * k) for k, one in enumerate(some, start=first)]
            for some, first in ((before, 1), (after, 5))
        ]
    law = LogProduct(np.log([[0.5, 0.25, 0.25]]), 0.03125)
    part = GroupLeaks(
        "0",
        (2, 2),
        np.ones(1, bool),
        np.ones(1, bool),
        (((0,), (1, 2)),),
        tables[0],
        tables[1],
        law,
        np.array([offset]),
    )
    return part, before, after


@pytest.mark.parametrize("left", [1, 2, 3])
@pytest.mark.parametrize("right", [1, 2, 3])
def test_each_distance_has_its_own_table(left: int, right: int) -> None:
    part, before, after = leaks_of()
    rows = before[left - 1] if left < 3 else np.array([[0.5, 0.25, 0.25]])
    columns = after[right - 1].T if right < 3 else np.ones((1, 3))
    ratios = [a[0] * z[0] / (a[1:] @ z[1:]) for a, z in product(rows, columns) if a[0] * z[0] > 0]
    errors = (0.125 * left if left < 3 else 0.03125) + (0.125 * (right + 4) if right < 3 else 0.0)
    (found,) = part.leaks(left, range(right, right + 1))
    if left == right == 3:
        assert found.tolist() == [0.0]
    else:
        assert found == pytest.approx([math.log(max(ratios)) + 0.5 + 2 * errors], abs=1e-11)


def test_a_margin_grows_with_the_logarithms_that_were_met(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = 2.0**-10
    monkeypatch.setattr(chain_groups, "UNIT", unit)
    monkeypatch.setattr(chain_groups, "gamma", lambda terms: terms * 0.25)
    monkeypatch.setattr(chain_groups, "_worst_ratio", lambda *_: (2.0, 8.0))
    part, _, _ = leaks_of(-0.5)
    monkeypatch.setattr(
        GroupLeaks, "_side", lambda _, *asked: (np.zeros((2, 3)), 0.25 * len(asked[1]))
    )
    (found,) = part.leaks(1, range(1, 2))
    error = 0.25 * 6 + 0.25 * 5 + 3 * 0.25  # "before", "after", three values
    assert found == pytest.approx([2.0 - 0.5 + 2 * error + 16 * unit * (1 + 8.0 + 0.5)])
