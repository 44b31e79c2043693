"""What elimination is made of: tables, orders, groups, slices and constraints, each in full."""

from collections.abc import Sequence
from functools import reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from takifugu.errors import TooLarge
from takifugu.influence.network import elimination
from takifugu.influence.network.elimination import Elimination, bits
from takifugu.influence.network.messages import DEEPEST, Message, Messages
from takifugu.priors.factors import Factor
from tests.raising import raises

pytestmark = pytest.mark.nightly


class Model:
    """Tables over entries of different sizes; scopes need not be in order."""

    name = "model"

    def __init__(self, sizes: Sequence[int], *tables: tuple[tuple[int, ...], Any]) -> None:
        self.entries = tuple(f"e{k}" for k in range(len(sizes)))
        self.states = tuple(tuple(range(size)) for size in sizes)
        self._factors = tuple(Factor(scope, np.array(table, float)) for scope, table in tables)

    def factors(self) -> tuple[Factor, ...]:
        """The tables."""
        return self._factors


def random_model(seed: int, sizes: Sequence[int], *scopes: tuple[int, ...]) -> Model:
    rng = np.random.default_rng(seed)
    shapes = [tuple(sizes[v] for v in scope) for scope in scopes]
    return Model(
        sizes,
        *((scope, rng.uniform(0.2, 1, shape)) for scope, shape in zip(scopes, shapes, strict=True)),
    )


LOOP = ((0,), (1, 0), (2, 1, 3), (3,), (4, 3), (0, 4))
SIZES = (2, 3, 2, 4, 3)


def test_a_model_is_kept_as_scaled_tables_and_masks() -> None:
    """Cells are below 1 and at least a half where largest: no product of them overflows."""
    model = Model(
        (2, 3, 2, 2),
        ((1, 0), [[12.0, 3.0], [0.0, 5.0], [1.0, 7.0]]),
        ((2,), [0.001, 0.0004]),
        ((2, 1), [[1.0, 2.0, 4.0], [0.5, 0.25, 3.0]]),
    )
    full = Elimination(model)
    assert full.sizes == (2, 3, 2, 2) and full.around == (0b010, 0b101, 0b010, 0)
    assert full._masks == [0b011, 0b100, 0b110] and full._touching == [0b001, 0b101, 0b110, 0]
    assert full._with_zeros == [0]
    for factor, table, scale in zip(model.factors(), full._tables, (16, 2.0**-9, 8), strict=True):
        assert 0.5 <= table.max() < 1 and (table * scale == factor.table).all()
    ready = full._ready
    assert [(mask, off, low) for mask, _, off, low in ready] == [
        (0b011, 0, -4),
        (0b100, 0, -3),
        (0b110, 0, -5),
    ]
    assert (ready[0][1] == full._tables[0].T).all() and (ready[2][1] == full._tables[2].T).all()


@pytest.mark.parametrize(("least", "exponent"), [(1.0, 0), (0.99, -1), (0.5, -1), (0.3, -2)])
def test_the_exponent_of_the_least_cell(least: float, exponent: int) -> None:
    assert elimination._lowest(np.array([[4.0, 0.0], [least, 9.0]])) == exponent


def test_axes_are_put_in_their_places() -> None:
    table = np.arange(24.0).reshape(2, 3, 4)
    found = elimination._spread(table, (7, 2, 5), (1, 2, 5, 6, 7))
    assert found.shape == (1, 3, 4, 1, 2)
    for a, b, c in product(range(2), range(3), range(4)):
        assert found[0, b, c, 0, a] == table[a, b, c]


def test_axes_of_a_table_are_turned_wherever_it_is_used() -> None:
    """Its entries are neither in order nor in the reverse of it."""
    table = np.random.default_rng(1).uniform(0.5, 0.99, (4, 2, 3))
    table[2, 1, 0] = 0.0
    full = Elimination(Model((2, 3, 4), ((2, 0, 1), table)))
    turned = table.transpose(1, 2, 0)
    assert (full._ready[0][1] == turned).all()
    pieces, exact = full._allowed([0], 0b111)
    assert exact and len(pieces) == 1 and (pieces[0][1] == (turned > 0)).all()
    made = full._table(0b110, 0b001, [0], [])
    odds = (turned[0] / np.where(turned[1] > 0, turned[1], 1.0))[turned[1] > 0]
    assert (made.rows[:, 1] == 0).sum() == 1  # the last row where entry 0 cannot be 1
    rest = made.rows[made.rows[:, 1] > 0]
    assert (rest[:, 0] / rest[:, 1]).tolist() == pytest.approx([odds.min()], rel=1e-13)


def test_groups_that_a_table_connects_become_one() -> None:
    truth = [(1, np.array([True])), (2, np.array([False])), (4, np.array([True]))]
    groups: list[Any] = []
    elimination._join(groups, 0b00011, [4], [])
    elimination._join(groups, 0b01100, [2], [truth[0]])
    elimination._join(groups, 0b10000, [9], [truth[1]])
    assert groups == [(0b11, [4], []), (0b1100, [2], [truth[0]]), (0b10000, [9], [truth[1]])]
    elimination._join(groups, 0b1000010, [3], [truth[2]])
    assert [one[:2] for one in groups] == [
        (0b1100, [2]),
        (0b10000, [9]),
        (0b1000011, [3, 4]),
    ]
    elimination._join(groups, 0b1000100, [], [])
    assert [one[:2] for one in groups] == [(0b10000, [9]), (0b1001111, [2, 3, 4])]
    assert groups[1][2][0] is truth[2] and groups[1][2][1] is truth[0]


# ---- elimination of everything


def test_the_entry_whose_removal_makes_the_smallest_table_is_next() -> None:
    full = Elimination(random_model(1, (*SIZES, 2, 3), *LOOP, (6, 5), (5,)))
    assert [full._cells(mask) for mask in (0, 0b1, 0b1010, 0b11111)] == [1.0, 2.0, 12.0, 144.0]
    for whole in (0b0011111, 0b1100000):
        left, scopes = set(bits(whole)), [set(scope) for scope in (*LOOP, (6, 5), (5,))]
        scopes = [scope for scope in scopes if scope & left]
        expected = []
        while left:
            union = {v: reduce(set.union, (s for s in scopes if v in s), set[int]()) for v in left}
            v = min(left, key=lambda v: (prod(full.sizes[u] for u in union[v]), v))
            left.remove(v)
            expected.append(v)
            scopes = [s for s in scopes if v not in s] + [union[v] - {v}]
        assert full._order(whole) == expected
        assert full._order(whole) is full._order(whole)  # found once
    weight, _ = full.marginal(0b1100000, 0b0100000)  # the other part is left alone
    pair, own = full._tables[6], full._tables[7]
    law = pair.sum(axis=0) * own
    assert weight / weight.sum() == pytest.approx(law / law.sum(), rel=1e-13)


def test_a_product_of_tables_with_an_entry_summed_out() -> None:
    full = Elimination(random_model(1, (2, 3, 2)))
    rng = np.random.default_rng(2)
    one, other = rng.uniform(1, 3, (2, 3)), rng.uniform(5, 9, (3, 2))
    near = [(0b011, one, 4, -20), (0b110, other, 7, -30)]
    total = np.einsum("ab,bc->ac", one, other)
    shift = int(np.frexp(total.max())[1])
    mask, table, roundings, least = full._joined(near, 1)
    assert (mask, roundings, least) == (0b101, 4 + 1 + 7 + 1 + 3, -50 - shift)
    assert table == pytest.approx(total / 2.0**shift, rel=1e-14) and 0.5 <= table.max() < 1
    whole = one[:, :, None] * other[None, :, :]
    shift = int(np.frexp(whole.max())[1])
    mask, table, roundings, least = full._joined(near, None)
    assert (mask, roundings, least) == (0b111, 4 + 1 + 7 + 1, -50 - shift)
    assert table == pytest.approx(whole / 2.0**shift, rel=1e-14)


def test_products_that_leave_float64_or_the_room_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Elimination(random_model(1, (2, 3, 2)))
    ones = np.ones((2, 3))
    for low, fits in ((DEEPEST + 5, True), (DEEPEST + 4, False)):
        near = [(0b011, ones, 0, -5), (0b001, np.ones(2), 0, low)]
        if fits:
            assert full._joined(near, 0)[0] == 0b010
        else:
            with raises(TooLarge):
                full._joined(near, 0)
    near = [(0b011, ones, 0, 0), (0b110, np.ones((3, 2)), 0, 0)]
    monkeypatch.setattr(elimination, "ROOM", 12)
    assert full._joined(near, 1)[0] == 0b101
    monkeypatch.setattr(elimination, "ROOM", 11)
    with raises(TooLarge):
        full._joined(near, 1)


# ---- what surrounds a set


@pytest.mark.parametrize("flat", [0, 1024])
@pytest.mark.parametrize("inside", [0b00010, 0b01010, 0b11001])
def test_parts_and_strides_give_the_weight_of_every_state(
    inside: int, flat: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every state of the boundary is a ray that the choices hold, or lies between theirs.

    So for any two states of the set the largest ratio of their weights is that of a choice.
    """
    monkeypatch.setattr(elimination, "FLAT", flat)
    model = random_model(4, SIZES, *LOOP)
    full = Elimination(model)
    around = full.surroundings(inside)
    within = bits(inside)
    assert around.inside == inside and around.within == within and around.exact
    assert around.sizes.tolist() == [SIZES[v] for v in within]
    assert around.states == prod(SIZES[v] for v in within)
    states = list(product(*(range(SIZES[v]) for v in within)))
    edge = bits(full.boundary(inside))
    true = []
    for outside in product(*(range(SIZES[v]) for v in edge)):
        row = []
        for state in states:
            x = {**dict(zip(within, state, strict=True)), **dict(zip(edge, outside, strict=True))}
            row.append(
                prod(
                    float(f.table[tuple(x[v] for v in f.scope)])
                    for f in model.factors()
                    if any(v in within for v in f.scope)
                )
            )
        true.append(row)
    cells, start, rows, width, _, _ = full._messages.arrays()
    found = []
    assert all(rows[k] == 1 for k in around.fixed)
    for case in around.cases:
        numbers = [*case, *around.fixed]
        for chosen in product(*(range(int(rows[k])) for k in numbers)):
            weights = np.ones(len(states))
            for p, (number, which) in enumerate(zip(numbers, chosen, strict=True)):
                first = int(start[number] + which * width[number])
                at = [int(np.dot(around.strides[p], state)) for state in states]
                assert sorted(set(at)) == list(range(int(width[number])))
                weights *= cells[[first + place for place in at]]
            found.append(weights)
    for a, b in product(range(len(states)), repeat=2):
        largest = max(row[a] / row[b] for row in true)
        assert max(row[a] / row[b] for row in found) == pytest.approx(largest, rel=1e-12)


def test_messages_without_a_choice_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one row that every case shares are fixed; one is always left to choose."""
    full = Elimination(random_model(4, SIZES, *LOOP))
    around = full.surroundings(0b00001)  # between entries 1 and 4, with a table of its own
    store = full._messages
    assert [len(around.cases), len(around.fixed)] == [1, 1]
    assert store.several(around.cases[0]).all() and not store.several(around.fixed).any()
    whole = full.surroundings(0b11111)  # nothing around: each table has one row
    found = full.surroundings(0b11001).strides.tolist()  # entries of 2, 4 and 3 values
    assert sorted(found) == [[0, 1, 0], [0, 3, 1], [1, 0, 0], [3, 0, 1], [4, 1, 0]]
    assert full.surroundings(0b01000).strides.tolist() == [[1]] * 3  # no other table touches it
    assert whole.cases.shape == (1, 1) and len(whole.fixed) == len(LOOP) - 1
    assert not store.several(whole.cases[0]).any()
    monkeypatch.setattr(elimination, "FLAT", 0)
    cased = Elimination(random_model(4, (2, 3, 2, 2), (0, 1), (0, 1, 2), (0, 3), (0,)))
    around = cased.surroundings(0b0001)
    assert around.cases.shape == (3, 3)  # a case for each value of entry 1, which two tables share
    assert len(around.fixed) == 1 and len({*around.cases[:, 0], *around.cases[:, 1]}) == 6
    assert len(set(around.cases[:, 2])) == 1


def test_the_worst_message_of_each_part_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of roundings as of exponents: whichever case is chosen, no part is off by more."""
    monkeypatch.setattr(elimination, "FLAT", 0)
    full = Elimination(random_model(4, (2, 3, 2, 2), (0, 1), (0, 1, 2), (0, 3), (0,)))
    around = full.surroundings(0b0001)
    store = full._messages
    columns = [*around.cases.T.tolist(), *([k] for k in around.fixed.tolist())]
    for k in range(len(store.roundings)):
        store.roundings[k] = 10 + 7 * k % 11
        store.depth[k] = 5 + 3 * k % 7
    assert any(len({store.roundings[k] for k in one}) > 1 for one in columns)
    again = full.surroundings(0b0001)
    assert again.cases.tolist() == around.cases.tolist()
    assert again.roundings == sum(max(store.roundings[k] for k in one) + 2 for one in columns)
    deepest = sum(max(store.depth[k] for k in one) for one in columns)
    monkeypatch.setattr(elimination, "DEEPEST", -2 * deepest)
    full.surroundings(0b0001)
    monkeypatch.setattr(elimination, "DEEPEST", -2 * deepest + 1)
    with raises(TooLarge):
        full.surroundings(0b0001)


def test_how_many_states_and_cases_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(4, (2, 3, 2, 4, 2), (0, 1), (0, 1, 2), (0, 3), (4, 0, 3))
    monkeypatch.setattr(elimination, "STATES", 6)
    assert Elimination(model).surroundings(0b00011).states == 6
    monkeypatch.setattr(elimination, "STATES", 5)
    with raises(TooLarge):
        Elimination(model).surroundings(0b00011)
    monkeypatch.setattr(elimination, "FLAT", 0)
    monkeypatch.setattr(elimination, "CASES", 12)  # three values times four
    assert len(Elimination(model).surroundings(0b00001).cases) == 12
    monkeypatch.setattr(elimination, "CASES", 11)
    with raises(TooLarge):
        Elimination(model).surroundings(0b00001)
    full = Elimination(model)
    monkeypatch.setattr(elimination, "CASES", 4)
    assert len(full._group(0b11000, 0b00001, [2, 3], [])[0]) == 4
    monkeypatch.setattr(elimination, "CASES", 3)
    with raises(TooLarge):
        full._group(0b11000, 0b00001, [2, 3], [])
    monkeypatch.setattr(elimination, "FLAT", 16)  # as many cells as the group has
    assert len(full._group(0b11000, 0b00001, [2, 3], [])[0]) == 1
    monkeypatch.setattr(elimination, "FLAT", 15)
    with raises(TooLarge):
        full._group(0b11000, 0b00001, [2, 3], [])
    monkeypatch.setattr(elimination, "ROOM", 16)
    full._table(0b11000, 0b00001, [2, 3], [])
    monkeypatch.setattr(elimination, "ROOM", 15)
    with raises(TooLarge):
        full._table(0b11000, 0b00001, [2, 3], [])


class _Kept(Messages):
    """Messages as they were made."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Message] = []

    def keep(self, made: Message) -> int:
        """Keep it twice."""
        self.made.append(made)
        return super().keep(made)


def slices(model: Model) -> tuple[Elimination, _Kept]:
    full, kept = Elimination(model), _Kept()
    full.__dict__["_messages"] = kept
    return full, kept


def test_a_slice_of_a_table_where_entries_are_known() -> None:
    table = np.random.default_rng(3).uniform(0.2, 1, (2, 3, 2, 2))
    table[1, :, 0] = 0.0
    full, kept = slices(Model((2, 3, 2, 2), ((3, 1, 0, 2), table)))
    # entries 0 and 2 are inside, 1 is around, and 3 is known
    found = full._slice(0, {3: 0}, 0b0101)
    rows = table[0].reshape(3, 4)
    assert found == 0 and kept.made[0].rows.shape == (3, 4)
    assert kept.made[0].rows / kept.made[0].rows.sum(axis=1, keepdims=True) == pytest.approx(
        rows / rows.sum(axis=1, keepdims=True), rel=1e-13
    )
    # the same, turned: entry 0 alone is inside
    assert full._slice(0, {3: 0}, 0b0001) == 1
    rows = kept.made[1].rows
    odds = (table[0, :, 0] / table[0, :, 1]).ravel()
    assert sorted(rows[:, 0] / rows[:, 1]) == pytest.approx([odds.min(), odds.max()])
    # one more entry known, with the value 0: another slice
    assert full._slice(0, {3: 0, 1: 0}, 0b0101) == 2
    row = kept.made[2].rows
    assert row / row.sum() == pytest.approx(table[0, 0].reshape(1, 4) / table[0, 0].sum())
    assert full._slice(0, {3: 0}, 0b0101) == 0 and len(kept.made) == 3  # made once
    # entry 0 cannot be 0 where entry 3 is 1
    assert full._slice(0, {3: 1, 0: 0}, 0b0100) == full._slice(0, {3: 1, 0: 0}, 0b0100) == -1
    assert len(kept.made) == 3


def test_a_table_of_all_states_of_a_group() -> None:
    rng = np.random.default_rng(6)
    one, other = rng.uniform(0.2, 1, (3, 2)), rng.uniform(0.2, 1, (2, 3, 2))
    full = Elimination(Model((2, 3, 2), ((1, 0), one), ((2, 1, 0), other)))
    rows = np.einsum("ba,cba->bca", one, other).reshape(6, 2)
    odds = rows[:, 0] / rows[:, 1]
    made = full._table(0b110, 0b001, [0, 1], [])
    ends = made.rows[:, 0] / made.rows[:, 1]
    assert sorted(ends) == pytest.approx([odds.min(), odds.max()], rel=1e-13)
    possible = np.array([[True, False], [False, True], [True, False]])
    made = full._table(0b110, 0b001, [0, 1], [(0b110, possible), (0b100, np.array([True, False]))])
    left = odds[[0, 4]]
    ends = made.rows[:, 0] / made.rows[:, 1]
    assert sorted(ends) == pytest.approx(sorted(left), rel=1e-13)
    none = full._table(0b110, 0b001, [0, 1], [(0b100, np.array([False, False]))])
    assert not len(none.rows)
    truth = [(0b110, np.zeros((3, 2), np.bool_))]
    assert full._group(0b110, 0b001, [0, 1], truth) == ([], [0b001])


def test_tables_too_deep_to_multiply_are_refused() -> None:
    """The exponents of all the tables of a group add up."""
    for second, fits in ((-479, True), (-480, False)):
        deep, more = ([[1.0, 1.0], [2.0**low, 1.0]] for low in (-479, second))
        full = Elimination(Model((2, 2, 2), ((0, 1), deep), ((0, 2), more)))
        if fits:
            assert len(full._table(0b110, 0b001, [0, 1], []).rows) == 2
        else:
            with raises(TooLarge):
                full._table(0b110, 0b001, [0, 1], [])


def test_cases_of_a_group_are_the_possible_values_of_what_its_tables_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(elimination, "FLAT", 0)
    rng = np.random.default_rng(8)
    one, other = rng.uniform(0.2, 1, (3, 4)), rng.uniform(0.2, 1, (3, 4, 2))
    tables = ((1, 2), one), ((1, 2, 0), other)
    full = Elimination(Model((2, 3, 4), *tables))
    cases, scopes = full._group(0b101, 0b010, [0, 1], [])
    assert len(cases) == 4 and len(set(cases)) == 4 and scopes == [0b010, 0b010]
    # entry 0 is shared with a constraint; one value of each is ruled out
    allowed = [(0b100, np.array([True, False, True, True])), (0b001, np.array([False, True]))]
    assert len(full._group(0b101, 0b010, [0, 1], allowed)[0]) == 3
    one[:, 2] = 0.0
    full = Elimination(Model((2, 3, 4), *tables))
    assert len(full._group(0b101, 0b010, [0, 1], [])[0]) == 3
