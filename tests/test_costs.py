"""Costs are exact, canonical, and never less than what a release tells."""

import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu import costs
from takifugu.costs.cost import (
    ANY,
    NOTHING,
    AnyValue,
    Column,
    Cost,
    Distance,
    Jointly,
    Matrix,
    Membership,
    Shape,
    Steps,
    Value,
    largest_matrix,
    shape_of,
    shape_text,
)
from takifugu.costs.shapes import MAX_MATRIX_VALUES
from takifugu.errors import UnsoundRequest
from takifugu.translation.entry_costs import EntryCosts
from tests.raising import raises

anything: Any = costs  # as a caller without a type checker sees it
VALUES: tuple[str | int, ...] = ("a", "b", "1", 1, 2, "2.5", "-3e2")
COLUMNS = ("place", "mood")
STATES = tuple((one, other) for one in ("a", "b", 1) for other in ("a", "2.5"))
EXACT = st.one_of(
    st.fractions(0, 10),
    st.floats(0, 1e3),
    st.sampled_from([1e-300, 5e-324, 0.1, 1e100]),
).map(lambda number: Fraction(number))


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    values = draw(st.lists(st.sampled_from(VALUES), min_size=2, max_size=5, unique=True))
    size = range(len(values))
    rows = [[draw(EXACT) if u != v else Fraction(0) for v in size] for u in size]
    return Matrix(values, rows)


INNER: st.SearchStrategy[Any] = st.one_of(
    st.just(ANY),
    st.sets(st.sampled_from(VALUES), min_size=1).map(Membership),
    st.tuples(st.integers(-400, 1), st.integers(2, 400)).map(lambda ends: Distance(*ends)),
    st.tuples(st.integers(-400, 1), st.integers(2, 400)).map(lambda ends: Steps(*ends, "0.5")),
    st.tuples(st.integers(-40, 1), st.integers(2, 40)).map(
        lambda ends: Steps(3 * ends[0], 3 * ends[1], 3)
    ),
    matrices(),
)
COLUMN_SHAPES: st.SearchStrategy[Any] = st.one_of(
    st.just(ANY), st.just(Jointly(COLUMNS)), st.builds(Column, st.sampled_from(COLUMNS), INNER)
)


def costs_of(shapes: st.SearchStrategy[Any]) -> st.SearchStrategy[Cost]:
    return st.dictionaries(shapes, EXACT, max_size=5).map(Cost.of)


COSTS = costs_of(INNER)
JOINT = costs_of(COLUMN_SHAPES)


def number(value: Value, low: Fraction, high: Fraction) -> Fraction | None:
    """A value of these tests as a clamped number, spelled out."""
    known: dict[Value, float] = {"1": 1, 1: 1, 2: 2, "2.5": 2.5, "-3e2": -300}
    return None if value not in known else min(max(Fraction(known[value]), low), high)


def spelled_out(shape: Shape, u: Any, v: Any, columns: tuple[str, ...] | None) -> Fraction:
    """What each shape is defined to be, case by case."""
    if isinstance(shape, Column):
        assert columns is not None
        k = columns.index(shape.column)
        return spelled_out(shape.shape, u[k], v[k], None)
    if u == v:
        return Fraction(0)
    if isinstance(shape, AnyValue):
        return Fraction(1)
    if isinstance(shape, Membership):
        return Fraction(1) if (u in shape.labels) ^ (v in shape.labels) else Fraction(0)
    if isinstance(shape, Distance):
        one, other = number(u, shape.low, shape.high), number(v, shape.low, shape.high)
        if one is None or other is None:
            return Fraction(1)
        return abs(one - other) / (shape.high - shape.low)
    if isinstance(shape, Steps):
        one, other = number(u, shape.low, shape.high), number(v, shape.low, shape.high)
        if one is None or other is None:
            return Fraction(1)
        apart = abs(one - other) / shape.step
        whole = (one / shape.step).denominator == (other / shape.step).denominator == 1
        most = (shape.high - shape.low) / shape.step
        counted = apart if whole or not apart else Fraction(int(apart) + 1)
        return min(counted, most) / most
    if isinstance(shape, Jointly):
        assert columns is not None and isinstance(u, tuple) and isinstance(v, tuple)
        places = [k for k, name in enumerate(columns) if name in shape.columns]
        return Fraction(int(any(u[k] != v[k] for k in places)))
    at = {value: k for k, value in enumerate(shape.values)}
    if u in at and v in at:
        return shape.costs[at[u]][at[v]]
    return max(max(row) for row in shape.costs)


def total(cost: Cost, u: Value, v: Value, columns: tuple[str, ...] | None = None) -> Fraction:
    return sum((c * spelled_out(s, u, v, columns) for s, c in cost.terms), Fraction(0))


@given(cost=COSTS, u=st.sampled_from(VALUES), v=st.sampled_from(VALUES))
def test_a_cost_is_the_sum_of_what_its_shapes_are(cost: Cost, u: Value, v: Value) -> None:
    assert cost.between(u, v) == total(cost, u, v)


@given(cost=JOINT, u=st.sampled_from(STATES), v=st.sampled_from(STATES))
def test_a_column_looks_at_one_column_only(cost: Cost, u: Value, v: Value) -> None:
    assert cost.between(u, v, COLUMNS) == total(cost, u, v, COLUMNS)


CASES = st.one_of(
    st.tuples(COSTS, st.just(VALUES), st.none()),
    st.tuples(JOINT, st.just(STATES), st.just(COLUMNS)),
)
Case = tuple[Cost, tuple[Value, ...], tuple[str, ...] | None]


@given(cost=JOINT, u=st.sampled_from(STATES), v=st.sampled_from(STATES))
def test_the_cost_on_a_column_is_that_of_a_change_of_it_alone(cost: Cost, u: Any, v: Any) -> None:
    for k, column in enumerate(COLUMNS):
        moved = (*u[:k], v[k], *u[k + 1 :])
        assert cost.on_column(column).between(u[k], v[k]) == cost.between(u, moved, COLUMNS)


@given(cost=COSTS, u=st.sampled_from(STATES), v=st.sampled_from(STATES))
def test_a_cost_of_a_column_is_read_back_on_it(cost: Cost, u: Any, v: Any) -> None:
    named = cost.of_column(COLUMNS[0])
    assert named.between(u, v, COLUMNS) == cost.between(u[0], v[0])
    assert named.on_column(COLUMNS[0]) == cost and not named.on_column(COLUMNS[1])
    assert Cost.of_document(json.loads(json.dumps(named.document()))) == named


def test_a_joint_cost_names_columns() -> None:
    assert Jointly(("b", "a", "b")) == Jointly(("a", "b"))
    half = Cost.of({Jointly(("a", "b")): "1/2"})
    assert Cost.of_document([["1/2", ["jointly", ["b", "a"]]]]) == half
    for columns in ((), ("a",), "ab"):
        with raises(UnsoundRequest, field="columns"):
            Jointly(columns)
    with raises(UnsoundRequest, field="columns"):
        Jointly(("a", "b")).between(1, 2)
    with raises(UnsoundRequest, field="columns"):
        Cost.of({Membership({1}): 1}).on_column("a")
    with raises(UnsoundRequest, field="columns"):
        Cost.of({Jointly(("a", "b")): 1}).of_column("a")


@given(case=CASES)
def test_a_matrix_is_the_exact_cost_rounded_up(case: Case) -> None:
    cost, values, columns = case
    found = cost.matrix(values, columns)
    for i, u in enumerate(values):
        for j, v in enumerate(values):
            exact = total(cost, u, v, columns)
            assert Fraction(found[i, j]) >= exact
            assert Fraction(found[i, j]) <= exact * (1 + Fraction(1, 10**12)) + Fraction(1, 10**306)
            assert (found[i, j] == 0) == (exact == 0)


@pytest.mark.costly
@given(case=CASES)
def test_no_path_through_other_values_is_cheaper_than_the_exact_cost(case: Case) -> None:
    cost, values, columns = case
    short = cost.matrix(values, columns).copy()
    for w in range(len(values)):
        short = np.minimum(short, short[:, [w]] + short[[w], :])
    for i, u in enumerate(values):
        for j, v in enumerate(values):
            assert Fraction(short[i, j]) >= total(cost, u, v, columns)


@pytest.mark.costly
@given(case=CASES)
def test_costs_obey_the_triangle_inequality(case: Case) -> None:
    cost, values, columns = case
    for u, v, w in permutations(values, 3):
        direct = cost.between(u, w, columns)
        assert direct <= cost.between(u, v, columns) + cost.between(v, w, columns)


@given(case=CASES)
def test_the_scalar_covers_every_change_of_value(case: Case) -> None:
    cost, values, columns = case
    for u in values:
        for v in values:
            assert cost.between(u, v, columns) <= cost.scalar
    assert cost.scalar <= sum((c * s.diameter for s, c in cost.terms), Fraction(0)) * (
        1 + Fraction(1, 10**12)
    )
    assert (cost.scalar == 0) == (not cost)


@given(sets=st.lists(st.tuples(st.sets(st.sampled_from(VALUES), min_size=1), EXACT), max_size=5))
def test_the_scalar_of_counts_is_attained(sets: list[tuple[set[str | int], Fraction]]) -> None:
    cost = NOTHING
    for labels, value in sets:
        cost = cost + Cost.of({Membership(labels): value})
    everything = (*VALUES, "some other value")
    largest = max(cost.between(u, v) for u in everything for v in everything)
    assert largest <= cost.scalar <= largest * (1 + Fraction(1, 10**12))


def test_counts_of_disjoint_labels_count_twice_at_most() -> None:
    counts = Cost.of({Membership([f"label {k}"]): Fraction(k + 1, 7) for k in range(78)})
    assert counts.scalar == Fraction(78 + 77, 7)
    inside, other = (
        Cost.of({Column(name, Membership([f"label {k}"])): Fraction(k + 1, 7) for k in range(78)})
        for name in COLUMNS
    )
    assert inside.scalar == counts.scalar
    both = inside + other
    assert both.scalar == 2 * counts.scalar  # both columns may change


def test_seventy_eight_counts_as_one_matrix() -> None:
    labels = tuple(f"label {k}" for k in range(78))
    cost = NOTHING
    for k, label in enumerate(labels):
        cost = cost + Cost.of({Membership([label]): Fraction(1, k + 2)})
    assert len(cost.terms) == 78
    found = cost.matrix(labels)
    weights = 1 / np.arange(2, 80)
    expected = np.where(np.eye(78) > 0, 0.0, weights[:, None] + weights[None])
    assert found == pytest.approx(expected, rel=1e-12)
    assert Cost.of_document(json.loads(json.dumps(cost.document()))) == cost
    assert cost.matrix(labels) is found  # the same cost on the same values is cached


@pytest.mark.costly
@given(one=COSTS, other=COSTS, third=COSTS, factor=EXACT)
def test_costs_add_exactly_in_any_order(
    one: Cost, other: Cost, third: Cost, factor: Fraction
) -> None:
    assert one + other == other + one
    assert (one + other) + third == one + (other + third)
    assert (one + other) * factor == one * factor + factor * other
    assert one + NOTHING == one == one * 1
    assert one * 0 == NOTHING
    assert not one * 0
    assert hash(one + other) == hash(other + one)
    for u, v in permutations(VALUES, 2):
        assert (one + other).between(u, v) == total(one, u, v) + total(other, u, v)


@pytest.mark.costly
@given(one=COSTS, other=COSTS)
def test_joined_covers_both_and_is_covered_by_the_sum(one: Cost, other: Cost) -> None:
    joined = one.joined(other)
    assert joined.dominates(one)
    assert joined.dominates(other)
    assert (one + other).dominates(joined)
    assert one.dominates(other) == (joined == one)
    for u, v in permutations(VALUES, 2):
        assert joined.between(u, v) >= max(one.between(u, v), other.between(u, v))


@given(several=st.lists(COSTS, max_size=2))
def test_the_largest_matrix_covers_all(several: list[Cost]) -> None:
    found = largest_matrix(several, VALUES)
    for i, u in enumerate(VALUES):
        for j, v in enumerate(VALUES):
            exact = max((total(cost, u, v) for cost in several), default=Fraction(0))
            assert Fraction(found[i, j]) >= exact
            assert (found[i, j] == 0) == (exact == 0)


@given(case=CASES)
def test_documents_round_trip_and_are_canonical(case: Case) -> None:
    cost, _, _ = case
    text = json.dumps(cost.document())
    read = Cost.of_document(json.loads(text))
    assert read == cost
    assert hash(read) == hash(cost)
    assert json.dumps(read.document()) == text
    assert Cost.of_document(json.loads(text)[::-1]) == cost  # whatever order they come in
    for shape, _ in cost.terms:
        assert shape_of(json.loads(shape_text(shape))) == shape


def test_the_same_sum_is_the_same_text_however_it_is_written() -> None:
    one = Cost.of({Membership(["b", "a", 1]): "0.1", Distance("0.5", 2): "1/3", ANY: 0.25})
    other = Cost.of({ANY: "1/4", Distance(0.5, "2.0"): "2/6", Membership({1, "a", "b"}): "1/10"})
    assert one == other
    assert json.dumps(one.document()) == json.dumps(other.document())
    assert Cost.of_document([["1/5", ["any"]], ["0.05", ["any"]]]) == Cost.any("1/4")
    assert Cost.of_document([["0", ["any"]]]) == NOTHING


def test_a_number_and_its_text_are_two_labels() -> None:
    count = Cost.of({Membership([1]): 1})
    assert count.between(1, "1") == 1
    assert count.between("1", "x") == 0
    assert count != Cost.of({Membership(["1"]): 1})
    both = Membership([1, "1"])
    assert len(both.labels) == 2
    assert shape_of(both.document()) == both


@given(rows=st.lists(st.lists(EXACT, min_size=4, max_size=4), min_size=4, max_size=4))
def test_a_matrix_is_closed_once_and_exactly(rows: list[list[Fraction]]) -> None:
    for k in range(4):
        rows[k][k] = Fraction(0)
    names = ("d", "b", "c", "a")
    found = Matrix(names, rows)
    assert found.values == ("a", "b", "c", "d")
    for i, u in enumerate(names):
        for j, v in enumerate(names):
            if i == j:
                continue
            between = [k for k in range(4) if k not in (i, j)]
            ways = [rows[i][j]]
            ways += [rows[i][k] + rows[k][j] for k in between]
            ways += [rows[i][k] + rows[k][m] + rows[m][j] for k, m in permutations(between)]
            assert found.between(u, v) == min(ways)
    assert Matrix(found.values, found.costs) == found


def test_a_matrix_with_no_common_denominator_is_closed_too() -> None:
    size = 30
    primes = [p for p in range(2, 4000) if all(p % q for q in range(2, int(p**0.5) + 1))]
    rows = [[Fraction(0)] * size for _ in range(size)]
    for k, (i, j) in enumerate(permutations(range(size), 2)):
        rows[i][j] = Fraction(1, primes[k % len(primes)]) + abs(i - j)
    found = Matrix(range(size), rows)
    for w in range(size):
        for i in range(size):
            for j in range(size):
                rows[i][j] = min(rows[i][j], rows[i][w] + rows[w][j])
    for i, u in enumerate(found.values):
        for j, v in enumerate(found.values):
            assert found.costs[i][j] == rows[int(u)][int(v)]


def test_a_value_that_a_matrix_does_not_list_costs_as_much_as_the_dearest() -> None:
    found = Matrix(["a", "b"], [[0, 1], [3, 0]])
    assert found.between("a", "b") == 1
    assert found.between("a", "x") == found.between("x", "a") == found.between("x", "y") == 3
    assert found.between("x", "x") == 0


@pytest.mark.parametrize("value", ["x", "nan", "inf", "", "1/3", "1_0", "٣", None, float("nan")])
def test_what_is_no_number_may_be_anywhere(value: Value) -> None:
    distance = Distance(0, 4)
    assert distance.between(value, 1) == distance.between(1, value) == 1
    assert distance.between(value, "some other") == 1


@pytest.mark.parametrize(
    ("value", "share"),
    [
        ("1", "1/4"),
        (" 1.5 ", "3/8"),
        (np.int64(3), "3/4"),
        (np.float64(0.5), "1/8"),
        (True, "1/4"),
        (Decimal("0.1"), "1/40"),
        ("1e999", "1"),
        (-7, "0"),
        (10**400, "1"),
        (Fraction(1, 3), "1/12"),
    ],
)
def test_numbers_are_read_exactly_and_clamped(value: Value, share: str) -> None:
    assert Distance(0, 4).share(value) == Fraction(share)


def test_equal_numbers_cost_nothing_whatever_they_are_called() -> None:
    assert Distance(0, 4).between("1", "1.0") == 0
    assert Distance(0, 4).between("9", "8") == 0  # both are clamped to 4
    found = Cost.of({Distance(0, 4): 1}).matrix(["1", "1.0", "9", 8])
    assert found[0, 1] == found[2, 3] == 0
    assert found[0, 2] >= 0.75


@pytest.mark.nightly
@pytest.mark.parametrize(
    "make",
    [
        lambda: anything.Membership([]),
        lambda: anything.Membership("home"),  # a set of letters otherwise
        lambda: anything.Membership([True]),
        lambda: anything.Membership([1.5]),
        lambda: anything.Membership([float("nan")]),
        lambda: anything.Membership([["home"]]),
        lambda: anything.Membership([None]),
        lambda: anything.Membership([10**5000]),
        lambda: anything.Distance(1, 1),
        lambda: anything.Distance(2, 1),
        lambda: anything.Distance(float("nan"), 1),
        lambda: anything.Distance(0, float("inf")),
        lambda: anything.Distance(0, "1e999999999"),
        lambda: anything.Distance(False, True),
        lambda: anything.Matrix("ab", [[0, 1], [1, 0]]),
        lambda: anything.Matrix(["a"], [[0]]),
        lambda: anything.Matrix(["a", "a"], [[0, 1], [1, 0]]),
        lambda: anything.Matrix([True, 2], [[0, 1], [1, 0]]),
        lambda: anything.Matrix(["a", "b"], [[0, 1]]),
        lambda: anything.Matrix(["a", "b"], [[0, 1], [1]]),
        lambda: anything.Matrix(["a", "b"], [1, 2]),
        lambda: anything.Matrix(["a", "b"], ["01", "10"]),
        lambda: anything.Matrix(["a", "b"], None),
        lambda: anything.Matrix(["a", "b"], [[0, -1], [1, 0]]),
        lambda: anything.Matrix(["a", "b"], [[1, 1], [1, 0]]),
        lambda: anything.Matrix(["a", "b"], [[0, float("nan")], [1, 0]]),
        lambda: anything.Matrix(
            range(MAX_MATRIX_VALUES + 1), np.zeros((MAX_MATRIX_VALUES + 1,) * 2).tolist()
        ),
        lambda: anything.Column("a", Column("b", ANY)),
        lambda: anything.Column(1, ANY),
        lambda: anything.Column("a", "b"),
        lambda: anything.Cost.any(-1),
        lambda: anything.Cost.any(float("nan")),
        lambda: anything.Cost.any("1e1000000"),
        lambda: anything.Cost.any(True),
        lambda: anything.Cost.of({"home": 1}),
        lambda: anything.Cost.any(1) * -1,
        lambda: anything.Cost.any(1) * float("inf"),
        lambda: anything.Cost(((ANY, Fraction(-1)),)),
        lambda: anything.Cost(((ANY, 0.5),)),
        lambda: anything.Cost(((ANY, Fraction(1)), (ANY, Fraction(1)))),
    ],
)
def test_what_is_no_cost_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(UnsoundRequest):
        make()


def nested(depth: int) -> list[Any]:
    inner: list[Any] = ["any"]
    for _ in range(depth):
        inner = ["column", "a", inner]
    return inner


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        "any",
        [["1", "any"]],
        [["1"]],
        [[1, ["any"]]],
        [[0.5, ["any"]]],
        [["-1", ["any"]]],
        [["nan", ["any"]]],
        [["1e99999", ["any"]]],
        [["1" * 5000, ["any"]]],
        [["1", ["any", 1]]],
        [["1", ["all"]]],
        [["1", []]],
        [["1", ["member", []]]],
        [["1", ["member", "home"]]],
        [["1", ["member", [True]]]],
        [["1", ["member", [["a"]]]]],
        [["1", ["member", [None]]]],
        [["1", ["distance", 0, 1]]],
        [["1", ["distance", "1", "0"]]],
        [["1", ["matrix", ["a", "b"], [1, 2]]]],
        [["1", ["matrix", ["a", ["b"]], [["0", "1"], ["1", "0"]]]]],
        [["1", ["matrix", ["a", "b"], [["0", "x"], ["1", "0"]]]]],
        [["1", ["column", "a", ["column", "b", ["any"]]]]],
        [["1", ["column", "a", []]]],
        [["1", ["column", "a", [["any"]]]]],
        [["1", nested(100_000)]],
    ],
    ids=range(28),
)
def test_a_damaged_document_is_refused(document: Any) -> None:
    with pytest.raises(UnsoundRequest):
        Cost.of_document(document)


def test_joint_states_need_columns_and_columns_joint_states() -> None:
    place = Cost.of({Column("place", Membership(["a"])): 1})
    with raises(UnsoundRequest, field="columns", given=None, needed="place"):
        place.matrix(["a", "b"])
    with raises(UnsoundRequest, field="columns", given=("mood",), needed="place"):
        place.matrix([("a",), ("b",)], ("mood",))
    with raises(UnsoundRequest, field="values", needed=2):
        place.matrix([("a",), ("b",)], COLUMNS)
    with raises(UnsoundRequest, field="values", needed=2):
        place.matrix(["ab", "cd"], COLUMNS)
    shapes: tuple[Shape, ...] = (
        *(Membership(["a"]), Distance(0, 1)),
        Matrix(["a", "b"], [[0, 1], [1, 0]]),
    )
    for shape in shapes:
        cost = Cost.of({shape: 1})
        with raises(UnsoundRequest, field="columns", given=COLUMNS):
            cost.matrix(STATES, COLUMNS)
        with raises(UnsoundRequest, field="columns"):  # not 0: what a tuple tells is not known
            cost.matrix(STATES)
        with raises(UnsoundRequest, field="columns"):
            cost.between(STATES[0], STATES[1])
    assert Cost.any(1).matrix(STATES, COLUMNS)[0, 1] >= 1  # whatever changes


def test_extreme_coefficients() -> None:
    tiny, huge = Cost.any(5e-324) * "1e-300", Cost.of({Membership(["a"]): "1e400"})
    assert 0 < tiny.matrix(["a", "b"])[0, 1] < 1e-307
    assert huge.matrix(["a", "b", "c"])[0].tolist() == [0, np.inf, np.inf]
    assert huge.matrix(["a", "b", "c"])[1, 2] == 0
    assert huge.scalar == 10**400
    product = Cost.of({Matrix(["a", "b"], [[0, 1e200], [1, 0]]): 1e200})
    assert product.matrix(["a", "b"]).tolist()[0] == [0, np.inf]
    overlapping = huge + Cost.of({Membership(["a", "b"]): "1e400"})
    assert 2 * 10**400 <= overlapping.scalar <= 2 * 10**400 * (1 + Fraction(1, 10**12))
    assert (huge + tiny).between("b", "c") == Fraction(5e-324) / 10**300


def test_distances_of_many_numbers() -> None:
    grid = [f"{k / 100:.2f}" for k in range(200)]
    found = Cost.of({Distance(0, 1): 2}).matrix(grid)
    exact = [min(Fraction(text), Fraction(1)) for text in grid]
    assert all(
        Fraction(found[i, j]) >= 2 * abs(exact[i] - exact[j]) for i in range(200) for j in range(i)
    )
    assert (found == found.T).all()


# what every entry has lost


def test_costs_by_entry_or_anywhere() -> None:
    home, work = (Cost.of({Membership([label]): "1/2"}) for label in ("home", "work"))
    values = ("home", "work", "other")
    anywhere = EntryCosts((home, work))
    assert anywhere.uniform
    assert anywhere.size is None
    assert anywhere.scalars() == 0.5
    expected = [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]]
    assert anywhere.matrix(values) == pytest.approx(np.array(expected))
    profile = EntryCosts.of([home, work, home, NOTHING])
    assert not profile.uniform
    assert profile.size == 4
    assert np.asarray(profile.scalars()).tolist() == [0.5, 0.5, 0.5, 0]
    assert profile.listed == (home, work, NOTHING)
    found, places = profile.matrices(values)
    assert places == [0, 1, 0, 2]
    for entry, place in enumerate(places):
        assert (found[place] == profile.matrix(values, entry=entry)).all()
    assert profile.part(1, 3) == EntryCosts.of([work, home])
    assert anywhere.part(1, 3) == anywhere
    assert EntryCosts.of(home) == EntryCosts((home,))
    assert EntryCosts.of(profile) is profile
    assert EntryCosts().scalars() == 0.0
    assert EntryCosts.of([]).size == 0


def test_entry_costs_hold_costs_in_one_way() -> None:
    with raises(UnsoundRequest, field="costs"):
        EntryCosts.of([0.5, 0.5])  # type: ignore[list-item]
    with raises(UnsoundRequest, field="costs"):
        EntryCosts((Cost.any(1),), (Cost.any(1),))
