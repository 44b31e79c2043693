"""Long stretches of a chain that are not walked one by one: no later step loses more than told."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from takifugu._rounding import UNIT
from takifugu.errors import InvalidPrior
from takifugu.numeric import Floats
from takifugu.translation.chain import chain_losses as module
from takifugu.translation.chain.chain_losses import _LawWalk, _Stretch
from takifugu.translation.chain.entry_laws import Law
from takifugu.translation.chain.transport_steps import Couplings, off_diagonal
from tests.raising import raises

pytestmark = pytest.mark.nightly


def stretch(count: int, *, slack: float = 0.0, rows: Floats | None = None) -> _Stretch:
    rows = np.array([[0.7, 0.3], [0.2, 0.8]]) if rows is None else rows
    return _Stretch(rows, off_diagonal(len(rows), 0.5), slack, count)


@pytest.mark.parametrize(
    ("size", "left", "pieces"), [(2, 5, 5), (2, 12_345, 5000), (15, 500, 88), (20, 1000, 64)]
)
def test_a_straight_line_bounds_every_later_step(size: int, left: int, pieces: int) -> None:
    rng = np.random.default_rng(size)
    value, rise = rng.uniform(0, 1, (size, size)) * off_diagonal(size), 0.37
    tables = module._remainder(
        stretch(left, rows=np.full((size, size), 1 / size)), value, None, rise, left
    )
    assert len(tables) == pieces
    # which table a step has, as `_walk` deals them out
    at = np.arange(left) * pieces // left
    for step in {1, 2, 3, left // 2, left - 1, left}:
        found = tables[at[step - 1]]
        for x, y in ((0, 1), (1, 0), (size - 1, 0)):
            true = Fraction(float(value[x, y])) + step * Fraction(rise)
            assert true <= Fraction(float(found[x, y]))
            assert found[x, y] <= float(true) + rise * left / pieces + 1e-9 * float(true)
    assert (np.diag(tables[-1]) < 1e-15).all()


@pytest.mark.parametrize("settled", [1.5, 3.0, 3.5])
def test_what_settles_below_the_line_bounds_the_rest(
    settled: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[Any]()

    def solved(rows: Any, cost: Floats, **given: Any) -> Any:
        asked.append((rows(cost), cost, given))
        return SimpleNamespace(upper=off_diagonal(2, settled))

    monkeypatch.setattr(module, "fixed_point", solved)
    value, known = off_diagonal(2, 1.0), object.__new__(Couplings)
    here = stretch(9, slack=0.125)
    tables = module._remainder(here, value, known, 0.25, 8)
    (rows, cost, given) = asked[0]
    assert rows == (here.rows, here.rows) and cost is here.cost
    assert given == {"slack": 0.125, "above": value, "known": known, "with_lower": False}
    if settled <= 3.0:
        assert len(tables) == 1 and tables[0].tolist() == off_diagonal(2, settled).tolist()
    else:
        ends = [float(table[0, 1]) for table in tables]
        assert ends == pytest.approx([1 + 0.25 * k for k in range(1, 9)], rel=1e-12)


Step = tuple[Floats, Floats]  # F becomes factor · F + added, entry by entry


def walked(
    steps: list[tuple[Step, int]], monkeypatch: pytest.MonkeyPatch
) -> tuple[Floats, Floats, int, int]:
    """``[i, x, y]``: what a walk gives and the truth; how many steps it took, and tables."""
    taken = list[object]()
    maps = {id(one): one for one, _ in steps}

    def step(here: Any, last: Floats, known: object) -> tuple[Floats, object]:
        assert known is (taken[-1] if taken else None)  # one step's couplings begin the next
        factor, added = maps[here.rows]
        taken.append(object())
        return factor * last + added, taken[-1]

    monkeypatch.setattr(module, "_step", step)
    monkeypatch.setattr(module, "_remainder", lambda s, v, _, r, n: REMAINDER(s, v, None, r, n))
    stretches: Any = [SimpleNamespace(rows=id(one), count=count) for one, count in steps]
    tables, at = module._walk(stretches, 2)
    true = [np.zeros((2, 2))]
    for (factor, added), count in steps:
        for _ in range(count):
            true.append(factor * true[-1] + added)
    assert len(at) == len(true)
    return np.array([tables[k] for k in at]), np.array(true), len(taken), len(tables)


REMAINDER = module._remainder
UNITED = off_diagonal(2)


def constant(factor: float, added: float) -> Step:
    return np.full((2, 2), factor), added * UNITED


def test_what_settles_is_bounded_by_its_last_step(monkeypatch: pytest.MonkeyPatch) -> None:
    found, true, taken, tables = walked([(constant(0.5, 1.0), 5000)], monkeypatch)
    assert (found >= true).all() and (found <= true * (1 + 1e-6) + 1e-9).all()
    assert 20 <= taken <= 60 and tables == taken + 2


def test_what_rises_for_ever_is_bounded_by_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [(constant(1.0, 0.25), 300), (constant(0.5, 0.0), 3), (constant(1.0, 0.5), 200)]
    found, true, taken, _ = walked(steps, monkeypatch)
    assert (found >= true).all() and found == pytest.approx(true, rel=1e-12, abs=1e-12)
    assert taken == 40 + 3 + 40


def test_short_stretches_are_walked_to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    found, true, taken, tables = walked([(constant(1.0, 0.25), 80)], monkeypatch)
    assert (found == true).all()
    assert taken == 80 and tables == 81


def test_what_falls_is_held_only_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [(constant(0.0, 1.0), 1), (constant(0.998, 0.0), 3000)]
    found, true, taken, _ = walked(steps, monkeypatch)
    assert (found >= true).all()
    assert (found[:401] == true[:401]).all()
    one = found[:, 0, 1]
    assert (np.diff(one[2:]) <= 1e-12).all()
    # each time held for an eighth of what was walked before, at most, then one step further
    same = np.flatnonzero(np.diff(one[1:]) < -1e-9)
    assert (np.diff(same) <= 2 + same[1:] / 8).all()
    assert 400 < taken < 450 and one[-1] == pytest.approx(0.998 ** (taken - 1))


def test_what_falls_for_one_pair_may_rise_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    factor = np.array([[0.0, 0.998], [0.999, 0.0]])
    rising = np.array([[0.0, 0.0], [0.004, 0.0]])
    steps = [(constant(0.0, 1.0), 1), ((factor, rising), 2000)]
    found, true, taken, _ = walked(steps, monkeypatch)
    assert (found >= true - 1e-12).all() and taken < 1000
    assert found[-1, 1, 0] <= 4.3  # the truth comes up to 3.6


def test_a_step_is_the_transport_and_its_rounding() -> None:
    """Two states: the transport is known, and the slack of the rows comes on top."""
    rows, last = np.array([[0.7, 0.3], [0.2, 0.8]]), np.array([[0.0, 0.25], [0.5, 0.0]])
    plain, couplings = module._step(stretch(1, rows=rows), last, None)
    assert couplings is not None
    for x, y in ((0, 1), (1, 0)):
        gain = np.expm1(0.5 + last[x, y])  # the worst mechanism counts x
        true = np.log1p(gain * rows[x, x]) - np.log1p(gain * rows[y, x])
        assert true <= plain[x, y] <= true + 1e-7
    wider, _ = module._step(stretch(1, slack=0.125, rows=rows), last, couplings)
    assert wider == pytest.approx(plain + 0.125 * UNITED, abs=1e-12)
    capped, _ = module._step(stretch(1, slack=9.0, rows=rows), last, couplings)
    assert capped == pytest.approx(UNITED, rel=1e-12)  # the dearest move, 0.5 + 0.5


def test_a_step_without_costs_or_with_large_ones_is_its_dearest_move() -> None:
    free = _Stretch(np.full((2, 2), 0.5), np.zeros((2, 2)), 0.1, 1)
    assert not module._step(free, np.zeros((2, 2)), None)[0].any()
    large = _Stretch(np.full((2, 2), 0.5), off_diagonal(2, 299.0), 0.1, 1)
    last = np.array([[0.0, 3.0], [0.0, 0.0]])
    value, couplings = module._step(large, last, None)
    assert value == pytest.approx(off_diagonal(2, 302.0)) and couplings is None


def test_equal_steps_at_equal_costs_are_one_run() -> None:
    a, b = np.eye(2), np.eye(2)
    levels = np.array([1, 1, 0, 0, 0, 1])
    runs = [(m is a, k, n) for m, k, n in module._runs([a] * 6, levels)]
    assert runs == [(True, 1, 2), (True, 0, 3), (True, 1, 1)]
    runs = [(m is a, k, n) for m, k, n in module._runs([a, b, b, b, a, a], levels)]
    assert runs == [(True, 1, 1), (False, 1, 1), (False, 0, 2), (True, 0, 1), (True, 1, 1)]
    assert not list(module._runs([a], np.zeros(0, dtype=np.int64)))


def test_matrices_are_one_or_one_for_each_step() -> None:
    one, other = [[0.5, 0.5], [0.25, 0.75]], [[1.0, 0.0], [0.5, 0.5]]
    alone = module._matrices(one, 3)
    assert len(alone) == 3 and all(matrix is alone[0] for matrix in alone)
    assert len(module._matrices(one, 0)) == 1
    each = module._matrices([one, other, one], 3)
    assert each[0] is each[2] and each[1].tolist() == other
    stacked = module._matrices(np.array([one, other]), 2)
    assert [matrix.tolist() for matrix in stacked] == [one, other]
    with raises(InvalidPrior, field="transitions"):
        module._matrices([np.array(one), np.eye(3)], 2)


def test_three_terms_are_added_up_and_rounded_up() -> None:
    rng = np.random.default_rng(4)
    own, ahead, behind = rng.uniform(0, 3, (3, 3, 3))
    table = module._combined(own, ahead, behind, np.array([True, False, True]))
    for x, y in ((0, 2), (2, 0)):
        true = sum(Fraction(float(part[x, y])) for part in (own, ahead, behind))
        assert true <= Fraction(float(table[x, y])) <= true * (1 + Fraction(2) ** -45)
    assert table[0, 0] == table[2, 2] == 0.0
    assert np.isneginf(table[1]).all() and np.isneginf(table[:, 1]).all()


def true_laws(rows: Floats, start: Floats, steps: int) -> list[Floats]:
    laws = [start]
    for _ in range(steps):
        laws.append(laws[-1] @ rows)
    return laws


def turned(rows: Floats, law: Floats) -> Floats:
    """``[x, u]``: the rows back in time, by Bayes."""
    joint = (law[:, None] * rows).T
    back: Floats = joint / joint.sum(axis=1, keepdims=True)
    return back


def needed(true: Floats, held: Floats) -> float:
    """By how much a log-ratio of two expectations may change from held rows to the true ones."""
    logs = np.log(true / held)
    return float(logs.max() - logs.min())


@pytest.mark.parametrize(("held", "still"), [(0.0, 0.0), (0.05, 0.0), (0.0, 0.02), (0.02, 0.02)])
def test_laws_that_are_held_pay_for_it(
    held: float, still: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held more loosely than ever otherwise, so that what is paid can be seen."""
    monkeypatch.setattr(module, "HELD", held)
    monkeypatch.setattr(module, "STILL_LAW", still)
    monkeypatch.setattr(module, "LASTING", 4)
    rows, start = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0.02, 0.98])
    other = np.array([[0.6, 0.4], [0.3, 0.7]])
    counts = (40, 40)
    walk = _LawWalk(Law.of(start), faint=0.0)
    for matrix, count in zip((rows, other), counts, strict=True):
        walk.along(matrix, off_diagonal(2), count)
    laws = true_laws(rows, start, counts[0])
    laws += true_laws(other, laws[-1], counts[1])[1:]
    matrices = [rows] * counts[0] + [other] * counts[1]
    assert sum(one.count for one in walk.stretches) == 80
    each = [one for one in walk.stretches for _ in range(one.count)]
    for time, one in enumerate(each):
        paid = one.slack
        assert needed(turned(matrices[time], laws[time]), one.rows) <= paid
        assert paid <= 3 * held * (1 + held) + 10 * still + 1e-11
    assert sum(walk.law_lasts) == 81 and sum(walk.lasts) == 81 and len(walk.sets) == 1
    listed = [one for one, n in zip(walk.laws, walk.law_lasts, strict=True) for _ in range(n)]
    for time, known in enumerate(listed):
        given = known.law.given(np.ones(2, dtype=np.bool_))
        logs = np.log(laws[time] / given)
        assert float(logs.max() - logs.min()) <= known.slack
        assert known.slack <= 10 * still + 1e-11
    if held == still == 0.0:
        assert len(walk.stretches) > 40 and len(walk.laws) == 81
    else:
        assert len(walk.stretches) < 40
    if still:
        assert len(walk.laws) < 40


def test_rows_are_alike_within_what_is_held_where_they_matter() -> None:
    held = np.array([[0.5, 0.5], [0.25, 0.75]])
    both = np.array([True, True])
    near = held * (1 + np.array([[0.4, -0.4], [0.0, 0.4]]) * module.HELD)
    far = held * (1 + np.array([[0.0, 0.0], [0.0, -0.7]]) * module.HELD)
    assert module._alike(near, held, both)
    assert not module._alike(far, held, both)
    assert module._alike(far, held, np.array([True, False]))


def test_probabilities_too_small_to_matter_are_taken_for_nothing() -> None:
    rows = np.array([[1.0 - 1e-9, 1e-9], [0.5, 0.5]])
    for faint, kept in ((1e-12, True), (1e-6, False)):
        walk = _LawWalk(Law.of(np.array([0.5, 0.5])), faint=faint)
        walk.along(rows, off_diagonal(2), 1)
        assert bool(walk.stretches[0].rows[1, 0] > 0) == kept
        assert walk.stretches[0].slack >= walk.laws[0].slack + UNIT / 2


def test_states_that_can_happen_are_listed_for_as_long_as_they_do() -> None:
    rows = np.array([[0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]])
    walk = _LawWalk(Law.of(np.array([1.0, 0.0, 0.0])), faint=0.0)
    walk.along(rows, off_diagonal(3), 5)
    assert [one.tolist() for one in walk.sets] == [
        [True, False, False],
        [False, True, False],
        [False, True, True],
    ]
    assert walk.lasts == [1, 1, 4]


def test_tables_that_are_held_are_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    found, true, taken, tables = walked([(constant(0.0, 0.7), 50)], monkeypatch)
    assert (found >= true).all() and taken == 2 and tables == 4
    assert (found[3:] > true[3:])[:, UNITED > 0].all() and found == pytest.approx(true, rel=1e-14)
    steps = [(constant(0.0, 1.0), 1), (constant(0.998, 0.0), 3000)]
    falling = walked(steps, monkeypatch)[0][:, 0, 1]
    held = np.abs(np.diff(falling)) < 1e-12
    assert held.sum() > 1000 and (np.diff(falling)[held] >= 0).all()


def test_rows_with_zeros_are_alike() -> None:
    held = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    assert module._alike(held.copy(), held, np.array([True, True]))
    assert not module._alike(held + np.array([0, 0, 1e-300]), held, np.array([True, True]))


def test_one_matrix_in_a_list_one_state_and_none() -> None:
    rows = np.array([[0.7, 0.3], [0.2, 0.8]])
    listed = module.chain_losses([rows], [0.5, 0.25], start=[0.5, 0.5])
    alone = module.chain_losses(rows, [0.5, 0.25], start=[0.5, 0.5])
    assert listed.by_entry.tolist() == alone.by_entry.tolist() and len(listed.by_entry) == 2
    single = module.chain_losses([[1.0]], [0.5, 0.25])
    assert single.by_entry.tolist() == [0.0, 0.0] and single.worst == (0, 0, 0)
    with raises(InvalidPrior, field="transition"):
        module.chain_losses([], [0.5, 0.25])
