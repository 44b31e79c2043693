"""Elimination with zeros and thresholds: what can happen on a boundary, and what a set is worth."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from takifugu.influence.network import elimination
from takifugu.influence.network.elimination import Elimination, Surroundings, bits
from takifugu.influence.network.ratios import BEATEN, PROVED
from takifugu.numeric import Booleans, Floats
from tests.influence.test_parts_of_elimination import LOOP, SIZES, Model, random_model

pytestmark = pytest.mark.nightly

# ---- what can happen


def truth_of(pieces: Sequence[tuple[int, Booleans]], keep: Sequence[int], sizes: Any) -> Booleans:
    """Which states of the entries kept satisfy every piece."""
    found = np.ones([sizes[v] for v in keep], np.bool_)
    for x in product(*(range(sizes[v]) for v in keep)):
        value = dict(zip(keep, x, strict=True))
        found[x] = all(table[tuple(value[v] for v in bits(mask))] for mask, table in pieces)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_states_of_a_boundary_that_the_tables_beyond_it_allow(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes, scopes = (2, 3, 2, 3, 2), [(1, 0), (2, 1), (3, 2), (4, 3), (1, 4)]
    tables = [
        (
            scope,
            (rng.random([sizes[v] for v in scope]) < 0.55) * 1.0
            + np.eye(3)[: sizes[scope[0]], : sizes[scope[1]]],
        )
        for scope in scopes
    ]
    full = Elimination(Model(sizes, *tables))
    law = np.ones(sizes, np.bool_)
    for x in product(*map(range, sizes)):
        law[x] = all(table[x[a], x[b]] > 0 for (a, b), table in tables)
    for keep in (0b00011, 0b10001, 0b01110, 0b00100):
        kept = bits(keep)
        pieces, exact = full._allowed(list(range(5)), keep)
        true = law.any(axis=tuple(v for v in range(5) if v not in kept))
        assert exact and all(not mask & ~keep for mask, _ in pieces)
        assert (truth_of(pieces, kept, sizes) == true).all()
        assert all(not truth.all() for _, truth in pieces)


def test_constraints_on_the_boundary_and_whether_all_were_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A path with the set in the middle; beyond it each side has constraints of its own."""
    order = [[1.0, 1.0], [0.0, 1.0]]
    wide = np.ones((2, 3, 3))
    wide[1, :, 1:] = wide[1, 1] = 0.0
    narrow = [(0, 1), (1, 2), (2, 3)]
    sizes = (2, 2, 2, 2, 3, 3)
    model = Model(
        sizes, *((scope, order) for scope in narrow), ((3, 4, 5), wide), ((4,), [1.0, 0.0, 2.0])
    )
    full = Elimination(model)
    assert full._with_zeros == [0, 1, 2, 3, 4]
    pieces, exact = full._possible(0b000100)  # between entries 1 and 3
    assert exact
    # nothing is known of 1 (0 may be 0 or 1), and 3 may be both
    assert truth_of(pieces, [1, 3], sizes).all() and pieces == ()
    full = Elimination(
        Model(sizes, *((s, order) for s in narrow), ((3, 4), [[0.0] * 3, [1.0] * 3]))
    )
    pieces, exact = full._possible(0b000100)
    assert exact and len(pieces) == 1
    assert pieces[0][0] == 0b1000 and pieces[0][1].tolist() == [False, True]
    assert full._possible(0b000100)[0] == pieces  # kept
    # of two constraints one is too large to be worked out, whichever comes first
    for first, last in (((0, 1), (3, 4, 5)), ((0, 4, 5), (3, 1))):
        tables = [
            (
                scope,
                np.where(np.arange(prod(sizes[v] for v in scope)) % 2, 1.0, 0.0).reshape(
                    [sizes[v] for v in scope]
                ),
            )
            for scope in (first, last)
        ]
        full = Elimination(Model(sizes, tables[0], tables[1], ((0, 2), order), ((2, 3), order)))
        assert full._possible(0b000100)[1]
        monkeypatch.setattr(elimination, "SMALL", 4)
        full = Elimination(Model(sizes, tables[0], tables[1], ((0, 2), order), ((2, 3), order)))
        pieces, exact = full._possible(0b000100)
        assert not exact and len(pieces) <= 1
        monkeypatch.undo()


def test_constraints_that_do_not_reach_the_boundary_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However large they are, nothing is lost by it."""
    monkeypatch.setattr(elimination, "SMALL", 4)
    far = np.ones((2, 3, 3))
    far[1, 2, 0] = 0.0
    full = Elimination(Model((2, 2, 2, 3, 3), ((0, 1), np.ones((2, 2))), ((2, 3, 4), far)))
    assert full._possible(0b00001) == ((), True)


def test_constraints_are_those_of_the_boundary_that_is_asked_for() -> None:
    """Entry 0 lies beside 1 and 3, entry 4 beside 1, 2 and 3; 1 and 2 cannot both be 1."""
    free, never = np.ones((2, 2)), [[1.0, 1.0], [1.0, 0.0]]
    pairs = [(0, 1), (0, 3), (4, 1), (4, 2), (4, 3)]
    full = Elimination(Model((2,) * 5, *((pair, free) for pair in pairs), ((1, 2), never)))
    assert full._possible(0b00001) == ((), True)
    pieces, exact = full._possible(0b10000)
    assert exact and [mask for mask, _ in pieces] == [0b00110]
    assert pieces[0][1].tolist() == [[True, True], [True, False]]


def test_the_entry_that_joins_the_fewest_cells_is_eliminated_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A star: its leaves one by one, and never all of it at once."""
    monkeypatch.setattr(elimination, "SMALL", 8)
    order = [[1.0, 1.0], [0.0, 1.0]]
    pairs = [(0, 1), (1, 2), (1, 3), (1, 4), (1, 5)]
    full = Elimination(Model((2,) * 6, *((pair, order) for pair in pairs), ((5,), [1.0, 0.0])))
    pieces, exact = full._allowed(list(range(6)), 0b000001)
    assert exact and [(mask, truth.tolist()) for mask, truth in pieces] == [(1, [True, False])]


def test_constraints_of_more_than_a_hundred_cells_are_worked_out() -> None:
    order = np.triu(np.ones((5, 5)))
    full = Elimination(Model((5, 5, 5), ((0, 1), order), ((1, 2), order)))
    pieces, exact = full._allowed([0, 1], 0b101)
    assert exact and [mask for mask, _ in pieces] == [0b101]
    assert (pieces[0][1] == (order > 0)).all()
    assert full.marginal(0b111, 0b101)[0].shape == (5, 5)


def test_a_boundary_without_a_possible_state(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Elimination(random_model(4, SIZES, *LOOP))
    full._with_zeros.append(3)
    never = (0b00001, np.zeros(2, np.bool_))
    monkeypatch.setattr(full, "_possible", lambda _: ((never,), True))
    around, sides = problem(full, 0b00010, 2, 3)
    assert around.cases.shape == (0, 2) and not len(around.fixed) and around.exact
    found, _ = full.evaluate(around, 1, sides, np.full(2, np.inf))
    assert found.tolist() == [-np.inf] * 2


# ---- what a set is worth


def problem(
    full: Elimination, inside: int, pairs: int, values: int
) -> tuple[Surroundings, Booleans]:
    sides = np.zeros((pairs, 2, values), np.bool_)
    for k in range(pairs):
        sides[k, 0, k] = sides[k, 1, (k + 1) % values] = True
    return full.surroundings(inside), sides


def test_what_is_beaten_and_what_is_proved_side_by_side() -> None:
    full = Elimination(random_model(4, SIZES, *LOOP))
    around, sides = problem(full, 0b00010, 3, 3)
    true, verdict = full.evaluate(around, 1, sides, np.full(3, np.inf))
    assert verdict.tolist() == [PROVED] * 3
    known = np.array([np.inf, true[1] - 0.5, np.inf])
    found, verdict = full.evaluate(around, 1, sides, known)
    assert verdict.tolist() == [PROVED, BEATEN, PROVED]
    assert found[[0, 2]].tolist() == true[[0, 2]].tolist()
    assert known[1] <= found[1] <= true[1]
    known = true - np.array([0.5, 0.25, 0.125])
    found, verdict = full.evaluate(around, 1, sides, known)
    assert found.tolist() == known.tolist() and verdict.tolist() == [BEATEN] * 3


def test_nothing_is_possible_on_the_boundary() -> None:
    full = Elimination(random_model(4, SIZES, *LOOP))
    around, sides = problem(full, 0b00010, 2, 3)
    none: Floats = np.zeros((0, around.cases.shape[1]))
    empty = Surroundings(
        around.inside,
        around.within,
        around.sizes,
        none.astype(np.int64),
        around.fixed,
        around.strides,
        around.roundings,
        True,
    )
    found, verdict = full.evaluate(empty, 1, sides, np.full(2, np.inf))
    assert found.tolist() == [-np.inf] * 2 and verdict.tolist() == [PROVED] * 2
