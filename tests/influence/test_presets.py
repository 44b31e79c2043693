"""Older guarantees as curves; unions, uncertainty and mistakes about curves."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.errors import UnsoundRequest
from takifugu.influence import (
    InfluenceCurve,
    dependent,
    group,
    per_entry,
    presets,
    uncertain,
    union,
)
from tests.influence.test_curve import curves
from tests.raising import raises


def test_presets_are_multiples_of_the_dp_loss() -> None:
    assert per_entry(10).to_pufferfish(0.3) == pytest.approx(0.3)
    assert group(12).to_pufferfish(0.3) == pytest.approx(3.6)
    assert group(12, records=2, attributes=3).to_pufferfish(0.3) == pytest.approx(1.8)
    assert dependent(4).to_pufferfish(0.3) == pytest.approx(1.2)


@pytest.mark.parametrize("build", [lambda: group(3, records=4), lambda: dependent(0)])
def test_groups_that_cannot_be_are_refused(build: object) -> None:
    with pytest.raises(UnsoundRequest):
        build()  # type: ignore[operator]


def test_uncertainty_leaves_group_dp_alone() -> None:
    curve = InfluenceCurve(np.array([1, 2, 5]), np.array([[1.0, 0.25, 0.0]]), 5)
    unsure = uncertain(curve, relative=0.2)
    assert unsure.leak[0] == pytest.approx([1 + np.log(1.5), 0.25 + np.log(1.5), 0.0])
    assert unsure.leak[0, 2] == 0
    # below log 1.5 = 0.405 only group DP is left
    assert unsure.to_dp(0.4) == pytest.approx(0.4 / 5)
    assert uncertain(curve, relative=0.0) == curve


@pytest.mark.parametrize("relative", [-0.1, 1.0, float("nan")])
def test_uncertainty_must_be_a_fraction(relative: float) -> None:
    with raises(UnsoundRequest, field="relative"):
        uncertain(per_entry(3), relative=relative)


@given(first=curves(), second=curves(), epsilon=st.floats(0, 5))
def test_a_union_guarantees_the_worse_of_both(
    first: InfluenceCurve, second: InfluenceCurve, epsilon: float
) -> None:
    both = union({"one": first, "two": second})
    worse = max(float(first.to_pufferfish(epsilon)), float(second.to_pufferfish(epsilon)))
    # between its points a curve may only be used at the point before: never better than itself
    assert float(both.to_pufferfish(epsilon)) == pytest.approx(worse)


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


@pytest.mark.nightly
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


@pytest.mark.nightly
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
    for row, told in zip(found.leak.tolist(), leak, strict=True):
        for k, (a, before) in enumerate(zip(row, told, strict=True)):
            if relative == 0 or (entries == 3 and k == 2):
                assert a == before
            else:
                assert before + shift <= a <= before + shift + 1e-14
    if relative == 0:
        assert found.exact.tolist() == exact.tolist()
    else:
        assert found.exact.tolist() == [[False, False, entries == 3]] * 2


@pytest.mark.nightly
def test_uncertainty_of_all_or_more_is_refused() -> None:
    for bad in (-1e-9, 1.0, 1.5, math.nan):
        with raises(UnsoundRequest, field="relative"):
            presets.uncertain(presets.per_entry(3), relative=bad)


@pytest.mark.nightly
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
