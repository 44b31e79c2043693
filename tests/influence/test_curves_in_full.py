"""Curves and what is made of them, field by field, at every boundary."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from takifugu.errors import UnsoundRequest
from takifugu.influence import curve as curves
from takifugu.influence import presets
from takifugu.influence.curve import ExposedSets, InfluenceCurve
from tests.raising import raises

pytestmark = pytest.mark.nightly

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


@pytest.mark.parametrize("bad", [-1e-300, math.inf, math.nan, [0.5, -1.0], [math.inf, 0.5]])
def test_losses_below_nothing_or_beyond_all_are_refused(bad: Any) -> None:
    for ask in (made([1], [[0.5]]).to_pufferfish, made([1], [[0.5]]).to_dp):
        with raises(UnsoundRequest, field="epsilon"):
            ask(bad)


def test_losses_beyond_all_measure_are_infinite() -> None:
    assert curves.MOST == MOST
    one, four = made([1], [[0.0]]), made([4], [[0.0]])
    assert one.to_pufferfish(MOST) == four.to_pufferfish(MOST / 4) == math.inf
    for found, least in ((one, MOST), (four, MOST / 4)):
        below = np.nextafter(least, 0.0)
        assert MOST * (1 - 1e-15) <= found.to_pufferfish(below) < math.inf
    assert four.to_pufferfish(1e308) == math.inf
    assert one.to_dp(2.0**1010) == MOST / 2 and four.to_dp(2.0**1010) == MOST / 8


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


# ---- presets


def test_older_guarantees_are_one_point_without_a_leak() -> None:
    for found, b, entries, name in (
        (presets.per_entry(), 1, None, "independent"),
        (presets.per_entry(7), 1, 7, "independent"),
        (presets.group(12), 12, 12, "groups of 12"),
        (presets.group(12, records=3), 3, 12, "groups of 3"),
        (presets.group(12, records=3, attributes=4), 12, 12, "groups of 12"),
        (presets.group(12, records=1), 1, 12, "groups of 1"),
        (presets.dependent(1), 1, None, "dependent"),
        (presets.dependent(4, entries=9), 4, 9, "dependent"),
    ):
        assert found.exposed.tolist() == [b] and found.leak.tolist() == [[0.0]]
        assert found.entries == entries and found.pairs == (name,)
        assert found.exact.tolist() == [[True]]


@pytest.mark.parametrize(
    ("entries", "records", "attributes"), [(12, 0, 1), (12, 13, 1), (12, 4, 4), (0, None, 1)]
)
def test_groups_of_none_or_of_more_than_there_are(
    entries: int, records: int | None, attributes: int
) -> None:
    size = entries if records is None else records * attributes
    with raises(UnsoundRequest, field="records", given=size, needed=entries):
        presets.group(entries, records=records, attributes=attributes)
    with raises(UnsoundRequest, field="most", given=0, needed=1):
        presets.dependent(0)


@pytest.mark.parametrize("entries", [3, None])
@pytest.mark.parametrize("relative", [0.0, 0.2, 0.875])
def test_uncertainty_adds_its_logarithm_where_anything_is_hidden(
    entries: int | None, relative: float
) -> None:
    exact = np.array([[True, False, True], [False, True, True]])
    leak = [[1.0, 0.25, 0.125], [2.0, 1.0, 0.0]]
    plain = made([1, 2, 3], leak, entries, exact=exact, splits=Spoken())
    found = presets.uncertain(plain, relative=relative)
    assert found.exposed.tolist() == [1, 2, 3] and found.entries == entries
    assert found.pairs == plain.pairs and found.splits is plain.splits
    shift = math.log((1 + relative) / (1 - relative))
    for row, given in zip(found.leak.tolist(), leak, strict=True):
        for k, (a, before) in enumerate(zip(row, given, strict=True)):
            if relative == 0 or (entries == 3 and k == 2):
                assert a == before
            else:
                assert before + shift <= a <= before + shift + 1e-14
    if relative == 0:
        assert found.exact.tolist() == exact.tolist()
    else:
        assert found.exact.tolist() == [[False, False, entries == 3]] * 2


def test_uncertainty_of_all_or_more_is_refused() -> None:
    for bad in (-1e-9, 1.0, 1.5, math.nan):
        with raises(UnsoundRequest, field="relative"):
            presets.uncertain(presets.per_entry(3), relative=bad)


def test_a_union_has_the_rows_of_all_at_the_points_of_all() -> None:
    first = made([1, 4], [[3.0, 1.0], [2.0, 0.5]], 9, exact=np.array([True, False]))
    second = made([2, 9], [[5.0, 0.0]], 9, splits=Spoken(), pairs=("x",))
    found = presets.union({"one": first, "two": second})
    assert found.exposed.tolist() == [1, 2, 4, 9] and found.entries == 9
    assert found.pairs == ("one: a", "one: b", "two: x")
    assert found.leak.tolist() == [
        [3.0, 3.0, 1.0, 1.0],
        [2.0, 2.0, 0.5, 0.5],
        [math.inf, 5.0, 5.0, 0.0],
    ]
    assert found.exact.tolist() == [
        [True, False, False, False],
        [True, False, False, False],
        [False, True, False, True],
    ]
    assert found.splits is not None
    said = [[found.splits.describe(row, k) for k in range(4)] for row in range(3)]
    assert said[0] == said[1] == [{}] * 4
    assert said[2] == [
        {},
        {"pair": 0, "point": 0},
        {"pair": 0, "point": 0},
        {"pair": 0, "point": 1},
    ]
    alone = presets.union({"one": first})
    assert alone.leak.tolist() == first.leak.tolist()
    with raises(UnsoundRequest, field="curves"):
        presets.union({})
    for entries in (8, None):
        other = made([1], [[1.0]], entries)
        with raises(UnsoundRequest, field="curves", given={9, entries}):
            presets.union({"one": first, "two": other})
