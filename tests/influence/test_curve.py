"""Curves translate soundly in both directions."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.errors import UnsoundRequest
from takifugu.influence import InfluenceCurve
from takifugu.influence.curve import ExposedSets
from tests.raising import raises


@st.composite
def curves(draw: st.DrawFn) -> InfluenceCurve:
    points = draw(st.integers(1, 6))
    pairs = draw(st.integers(1, 4))
    steps = draw(st.lists(st.integers(1, 9), min_size=points, max_size=points))
    leaks = st.one_of(st.floats(0, 30), st.just(float("inf")), st.just(0.0))
    leak = draw(st.lists(leaks, min_size=points * pairs, max_size=points * pairs))
    return InfluenceCurve(
        exposed=np.cumsum(steps),
        leak=np.array(leak).reshape(pairs, points),
        entries=None,
        pairs=tuple(map(str, range(pairs))),
    )


def exact(curve: InfluenceCurve, epsilon: float) -> Fraction | float:
    """Theorem 6 in rational arithmetic, pair by pair."""
    worst: Fraction | float = Fraction(0)
    for row in curve.leak:
        values = [
            Fraction(int(b)) * Fraction(epsilon) + Fraction(float(a))
            for b, a in zip(curve.exposed, row, strict=True)
            if np.isfinite(a)
        ]
        worst = max(worst, min(values)) if values else float("inf")
    return worst


@given(curve=curves(), epsilon=st.floats(0, 20))
def test_losses_are_rounded_up_and_hardly(curve: InfluenceCurve, epsilon: float) -> None:
    guaranteed, truth = float(curve.to_pufferfish(epsilon)), exact(curve, epsilon)
    if truth == float("inf"):
        assert guaranteed == float("inf")
    else:
        assert Fraction(guaranteed) >= truth
        assert guaranteed <= float(truth) * (1 + 1e-14) + 1e-14


@given(curve=curves(), target=st.floats(0, 20))
def test_an_allowance_never_overspends(curve: InfluenceCurve, target: float) -> None:
    allowed = float(curve.to_dp(target))
    assert allowed == 0 or exact(curve, allowed) <= Fraction(target)
    assert allowed == 0 or float(curve.to_pufferfish(allowed)) <= target


@given(curve=curves(), target=st.floats(0.1, 20))
def test_an_allowance_is_not_wasted(curve: InfluenceCurve, target: float) -> None:
    allowed = float(curve.to_dp(target))
    more = allowed * (1 + 1e-9) + 1e-9
    assert exact(curve, more) >= target * (1 - 1e-9)


@given(curve=curves(), epsilons=st.lists(st.floats(0, 5), min_size=1, max_size=5))
def test_arrays_are_scalars_side_by_side(curve: InfluenceCurve, epsilons: list[float]) -> None:
    assert curve.to_pufferfish(epsilons).tolist() == [
        float(curve.to_pufferfish(e)) for e in epsilons
    ]
    assert curve.to_dp(epsilons).tolist() == [float(curve.to_dp(e)) for e in epsilons]


@given(curve=curves(), epsilon=st.floats(0, 20))
def test_pairs_kept_apart_are_never_worse_than_pooled(
    curve: InfluenceCurve, epsilon: float
) -> None:
    pooled = InfluenceCurve(curve.exposed, curve.pooled()[None, :], None)
    assert curve.to_pufferfish(epsilon) <= pooled.to_pufferfish(epsilon)


@pytest.mark.parametrize("epsilon", [-1.0, float("nan"), float("inf")])
def test_a_bad_epsilon_is_refused(epsilon: float) -> None:
    curve = InfluenceCurve(np.array([1]), np.array([[0.5]]), 1)
    with raises(UnsoundRequest, field="epsilon"):
        curve.to_pufferfish(epsilon)
    with raises(UnsoundRequest, field="epsilon"):
        curve.to_dp(epsilon)


@pytest.mark.parametrize(
    ("exposed", "leak", "entries", "field"),
    [
        ([1, 2], [[0.5]], 2, "leak"),
        ([0], [[0.5]], 2, "exposed"),
        ([2, 1], [[0.5, 0.1]], 2, "exposed"),
        ([1], [[-0.1]], 2, "leak"),
        ([1], [[float("nan")]], 2, "leak"),
        ([3], [[0.1]], 2, "entries"),
    ],
)
def test_a_malformed_curve_is_refused(
    exposed: list[int], leak: list[list[float]], entries: int, field: str
) -> None:
    with raises(UnsoundRequest, field=field):
        InfluenceCurve(np.array(exposed), np.array(leak), entries)


def test_what_is_given_as_lists_is_kept_as_arrays_that_cannot_be_written() -> None:
    curve = InfluenceCurve(exposed=[1, 3], leak=[[2.0, 0.5]], entries=None)  # type: ignore[arg-type]
    for array, values in ((curve.exposed, [1, 3]), (curve.leak[0], [2.0, 0.5])):
        assert array.tolist() == values and not array.flags.writeable
    assert curve.exact.tolist() == [[True, True]] and not curve.exact.flags.writeable


MOST = 2.0**1000


class Spoken:
    """Splits that say what they were asked."""

    def describe(self, pair: int, point: int) -> Mapping[str, Any]:
        """The numbers that were given."""
        return {"pair": pair, "point": point}


def made(
    exposed: list[int], leak: list[list[float]], entries: int | None = None, **more: Any
) -> InfluenceCurve:
    names = tuple("abcdefg"[: len(leak)])
    given = {"pairs": names, **more}
    return InfluenceCurve(np.array(exposed), np.array(leak), entries, **given)


@pytest.mark.nightly
def test_a_curve_keeps_what_it_is_given_and_lets_nobody_change_it() -> None:
    found = InfluenceCurve([1, 3, 9], [[2.0, 0.5, 0.0]], 9)  # type: ignore[arg-type]
    assert found.exposed.tolist() == [1, 3, 9] and found.exposed.dtype == np.int64
    assert found.leak.tolist() == [[2.0, 0.5, 0.0]] and found.entries == 9
    assert found.pairs == ("any secret pair",) and found.splits is None
    assert found.exact.tolist() == [[True, True, True]]
    for array in (found.exposed, found.leak, found.exact):
        assert not array.flags.writeable
    part = made([1, 2], [[1.0, 0.0], [2.0, 1.0]], exact=np.array([True, False]))
    assert part.exact.tolist() == [[True, False], [True, False]]
    assert made([1], [[1.0]], splits=Spoken()) == made([1], [[1.0]])
    assert made([1], [[1.0]]) != made([1], [[2.0]])
    assert ExposedSets([[["x", "y"]], [["z"]]]).describe(1, 0) == {"exposed": ["z"]}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("exposed", "leak", "entries", "field"),
    [
        ([[1, 2]], [[0.5]], None, "leak"),
        ([1], [[0.5], [0.25]], None, "leak"),
        ([1, 2], [[0.5]], None, "leak"),
        ([], [[]], None, "leak"),
        ("x", [[0.5]], None, "exposed"),
        ([1], "x", None, "exposed"),
        ([0, 1], [[0.5, 0.25]], None, "exposed"),
        ([1, 1], [[0.5, 0.25]], None, "exposed"),
        ([1, 2, 2], [[0.5, 0.25, 0.0]], None, "exposed"),
        ([2, 1], [[0.5, 0.25]], None, "exposed"),
        ([1, 2], [[0.5, -0.25]], None, "leak"),
        ([1, 2], [[math.nan, 0.5]], None, "leak"),
        ([1, 4], [[0.5, 0.0]], 3, "entries"),
    ],
)
def test_what_is_no_curve_is_refused(
    exposed: Any, leak: Any, entries: int | None, field: str
) -> None:
    with raises(UnsoundRequest, field=field):
        InfluenceCurve(exposed, leak, entries)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("exposed", "leak", "entries"),
    [
        ([1], [[0.0]], 1),
        ([1, 2], [[0.0, 0.5]], 2),
        ([2, 3], [[math.inf, 0.0]], 7),
        ([5], [[0.25]], None),
    ],
)
def test_what_is_a_curve_is_taken(exposed: Any, leak: Any, entries: int | None) -> None:
    assert InfluenceCurve(exposed, leak, entries).leak.tolist() == leak


@pytest.mark.nightly
def test_losses_are_the_least_over_the_points_and_the_largest_over_the_pairs() -> None:
    found = made([1, 4], [[2.0, 0.5], [math.inf, 1.0], [0.0, 0.0]])
    each = found.pufferfish_by_pair([0.0, 0.25, 3.0])
    truth = np.array([[0.5, 1.0, 0.0], [1.5, 2.0, 0.25], [5.0, 13.0, 3.0]])
    assert each.shape == (3, 3)
    assert (each >= truth).all() and (each <= truth + 1e-14 * (1 + truth)).all()
    assert (found.to_pufferfish([0.0, 0.25, 3.0]) == each.max(axis=1)).all()
    assert found.to_pufferfish(0.25).shape == () and found.pooled().tolist() == [math.inf, 1.0]
    never = made([1], [[math.inf]])
    assert never.to_pufferfish(0.5) == math.inf and never.to_dp(0.5) == 0.0


@pytest.mark.nightly
@pytest.mark.parametrize("bad", [-1e-300, math.inf, math.nan, [0.5, -1.0], [math.inf, 0.5]])
def test_losses_below_nothing_or_beyond_all_are_refused(bad: Any) -> None:
    for ask in (made([1], [[0.5]]).to_pufferfish, made([1], [[0.5]]).to_dp):
        with raises(UnsoundRequest, field="epsilon"):
            ask(bad)


@pytest.mark.nightly
def test_losses_beyond_all_measure_are_infinite() -> None:
    one, four = made([1], [[0.0]]), made([4], [[0.0]])
    assert one.to_pufferfish(MOST) == four.to_pufferfish(MOST / 4) == math.inf
    for found, least in ((one, MOST), (four, MOST / 4)):
        below = np.nextafter(least, 0.0)
        assert MOST * (1 - 1e-15) <= found.to_pufferfish(below) < math.inf
    assert four.to_pufferfish(1e308) == math.inf
    assert one.to_dp(2.0**1010) == MOST / 2 and four.to_dp(2.0**1010) == MOST / 8


@pytest.mark.nightly
@pytest.mark.parametrize("target", [0.0, 0.125, 0.5, 1.0, 7.5, 1024.0])
def test_allowances_leave_a_little_room_and_no_more(target: float) -> None:
    found = made([1, 4], [[2.0, 0.5], [0.25, 0.0]])
    room = Fraction(1, 2**48)
    truth = [
        max(
            max(Fraction(target) - leak - (Fraction(target) + 1) * room, Fraction(0)) / b
            for b, leak in points
        )
        for points in (
            ((1, Fraction(2)), (4, Fraction(1, 2))),
            ((1, Fraction(1, 4)), (4, Fraction(0))),
        )
    ]
    allowed = float(found.to_dp(target))
    assert allowed == pytest.approx(float(min(truth)), rel=4e-16, abs=0.0)
    assert found.to_dp([target, 0.0]).tolist() == [allowed, 0.0]


@pytest.mark.nightly
def test_points_say_which_pair_and_split_attain_them_and_whether_exactly() -> None:
    least = 5e-4
    leak = [[3.0, least, math.nextafter(least, 0.0), 0.0], [2.0, 0.0, 0.0, 0.0]]
    found = made([1, 2, 3, 4], leak, 4, splits=Spoken())
    points = found.points()
    assert [point.b for point in points] == [1, 2, 3, 4]
    assert [point.a for point in points] == leak[0]
    assert [point.exact for point in points] == [True, True, False, True]
    assert [point.secret for point in points] == ["a"] * 4
    assert points[1].split == {"pair": 0, "point": 1}
    other = made([1, 2], [[0.0, 1.0], [1.0, 2.0]], exact=np.array([[True, True], [False, True]]))
    assert [(p.secret, p.exact, p.split) for p in other.points()] == [
        ("b", False, {}),
        ("b", True, {}),
    ]
    assert type(points[0].b) is int and type(points[0].exact) is bool
