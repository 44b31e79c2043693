"""How right a ranking is: as the definitions say, with every rule for ties and empty places."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import Malformed
from takifugu.papers.composition.experiments.metrics import (
    LESS_IS_BETTER,
    METRICS,
    K,
    groups_counted,
    least_mistakes,
    majority,
    scores,
)
from tests.oracles import rankings as oracle
from tests.raising import raises

FULL = [9, 7, 5, 1, 0]  # a group that counts for every metric


def one(counts: list[int], named: list[int]) -> dict[str, float]:
    """The metrics of one ranking of one group."""
    found = scores(np.array([counts]), np.array([[named]]))
    return {name: float(values[0, 0]) for name, values in found.items()}


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[list[int]], list[list[list[int]]]]:
    """Counts [group, label], one group of which is full, and rankings [repetition, group]."""
    labels = draw(st.integers(3, 5))
    row = st.lists(st.integers(0, 4), min_size=labels, max_size=labels)
    counts = [*draw(st.lists(row, max_size=3)), FULL[:labels]]
    ranking = st.permutations(range(labels)).map(lambda order: order[:K])
    group = st.lists(ranking, min_size=len(counts), max_size=len(counts))
    return counts, draw(st.lists(group, min_size=1, max_size=3))


@pytest.mark.costly
@settings(max_examples=150)
@given(worlds())
def test_metrics_are_what_the_definitions_say(
    world: tuple[list[list[int]], list[list[list[int]]]],
) -> None:
    counts, named = world
    found = scores(np.array(counts), np.array(named))
    counted = groups_counted(np.array(counts))
    assert tuple(found) == METRICS
    for name, values in found.items():
        slow = [
            [oracle.metrics(row, ranking)[name] for row, ranking in zip(counts, said, strict=True)]
            for said in named
        ]
        assert counted[name].tolist() == [value is not None for value in slow[0]]
        kept = [[value for value in row if value is not None] for row in slow]
        assert values.tolist() == [pytest.approx(row) for row in kept]


@settings(max_examples=40)
@given(worlds())
def test_the_mildest_mistake_is_the_least_change_of_any_wrong_ranking(
    world: tuple[list[list[int]], list[list[list[int]]]],
) -> None:
    counts, _ = world
    found = least_mistakes(np.array(counts))
    slow = [oracle.mildest(row, K) for row in counts]
    for name in METRICS:
        assert found[name] == pytest.approx(max(one[name] for one in slow)), name


def test_equal_counts_are_equally_right_in_their_place() -> None:
    assert one([5, 3, 3, 0], [0, 2, 1]) == {
        **{f"acc@{k}": 1.0 for k in (1, 2, 3)},
        "hit": 1.0,
        "ndcg": 1.0,
        "l1": 0.0,
    }


def test_a_tie_at_the_end_has_as_many_seats_as_are_left() -> None:
    tied = [5, 3, 3, 3, 0]
    assert one(tied, [0, 1, 3])["hit"] == 1.0
    assert one(tied, [1, 2, 3])["hit"] == pytest.approx(2 / 3)  # label 0 belongs and is missing


def test_a_place_that_no_label_earned_does_not_count() -> None:
    counts = np.array([[4, 2, 0, 0, 0], FULL])
    counted = groups_counted(counts)
    assert counted["acc@2"].tolist() == [True, True]
    assert counted["acc@3"].tolist() == [False, True]
    found = scores(counts, np.array([[[0, 3, 1], [0, 1, 2]]]))
    assert found["acc@3"].shape == (1, 1)
    assert found["hit"][0].tolist() == [1.0, 1.0]  # both labels that were seen are named
    assert found["acc@2"][0].tolist() == [0.0, 1.0]


def test_a_group_without_entries_is_left_out() -> None:
    counts = np.array([[0, 0, 0, 0, 0], FULL])
    found = scores(counts, np.array([[[0, 1, 2], [0, 1, 2]]]))
    assert all(values.shape == (1, 1) for values in found.values())


def test_ndcg_and_l1_of_a_swap_by_hand() -> None:
    found = one([9, 7, 5, 1, 0], [1, 0, 2])
    best = 9 + 7 / np.log2(3) + 5 / 2
    assert found["ndcg"] == pytest.approx((7 + 9 / np.log2(3) + 5 / 2) / best)
    assert found["l1"] == 4.0
    assert (found["acc@1"], found["acc@2"], found["acc@3"]) == (0.0, 0.0, 1.0)
    assert frozenset({"l1"}) == LESS_IS_BETTER


def test_majority_names_the_same_labels_everywhere() -> None:
    named = majority(np.array([1, 8, 3, 8, 0]), groups=2)
    assert named.tolist() == [[[1, 3, 2], [1, 3, 2]]]


@pytest.mark.parametrize(
    ("counts", "field"),
    [
        ([1, 2, 3], "counts"),
        ([[1.5, 2, 3]], "counts"),
        ([[1, -2, 3]], "counts"),
        ([[1, 2]], "counts"),
        ([[1, 2, 0]], "counts"),
    ],
)
def test_counts_that_cannot_be_ranked_are_refused(counts: list[object], field: str) -> None:
    with raises(Malformed, field=field):
        scores(np.array(counts), np.zeros((1, 1, 3), dtype=np.int64))


def test_other_bad_input_is_one_line() -> None:
    with raises(Malformed, field="named"):
        scores(np.array([FULL]), np.zeros((1, 2, 3), dtype=np.int64))
    with raises(Malformed, field="train"):
        majority(np.array([1, 2]), groups=1)
