"""What one side of an entry reveals to whoever knows other entries, or not the first one's law."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from takifugu.numeric import Floats
from takifugu.translation.chain import known_entries, unknown_start
from takifugu.translation.chain.known_entries import KnownSide, _Known
from takifugu.translation.chain.start_hull import StartHull, hull_step
from takifugu.translation.chain.transport_steps import off_diagonal
from tests.oracles.transport import loss_by_potentials

pytestmark = pytest.mark.nightly

UNIT = 2.0**-53
ROWS = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
SPARSE = np.array([[0.5, 0.5, 0.0], [0.0, 0.4, 0.6], [0.7, 0.0, 0.3]])
COST = np.array([[0.0, 0.5, 0.9], [0.4, 0.0, 0.6], [0.8, 0.7, 0.0]])


def bridge(kernels: list[Floats], x: int, b: int) -> dict[tuple[int, ...], float]:
    """The law of the entries between x and b, which is known, nearest first."""
    size = len(kernels[0])
    weights = dict[tuple[int, ...], float]()
    for path in product(range(size), repeat=len(kernels) - 1):
        whole, weight = (x, *path, b), 1.0
        for kernel, u, v in zip(kernels, whole[:-1], whole[1:], strict=True):
            weight *= kernel[u, v]
        weights[path] = weight
    total = sum(weights.values())
    return {path: weight / total for path, weight in weights.items()} if total else {}


@pytest.mark.parametrize("kernel", [ROWS, SPARSE])
def test_one_entry_between_reveals_its_program(kernel: Floats) -> None:
    """At a distance of two there is one entry between, so that the step is the whole truth."""
    other = np.array([[0.2, 0.2, 0.6], [0.5, 0.5, 0.0], [0.1, 0.8, 0.1]])
    known = _Known.next_to(other).further(kernel, COST)
    assert known.distance == 2
    for b, x, y in product(range(3), repeat=3):
        laws = [bridge([kernel, other], z, b) for z in (x, y)]
        assert known.able[b, x] == bool(laws[0])
        if not all(laws):
            assert np.isneginf(known.tables[b, x, y])
        elif x == y:
            assert known.tables[b, x, y] == 0.0
        else:
            inside = [v for v in range(3) if other[v, b] > 0]
            p, q = (np.array([law[v,] for v in inside]) for law in laws)
            true = loss_by_potentials(p, q, COST[np.ix_(inside, inside)])
            assert true - 1e-8 <= known.tables[b, x, y] <= true + 1e-6
    joint = (kernel @ other).T
    assert known.weights == pytest.approx(joint / joint.max(axis=1, keepdims=True))
    assert (known.best == np.maximum(known.tables.max(axis=0), 0.0)).all()


@pytest.mark.parametrize("kernel", [ROWS, SPARSE])
def test_two_entries_between_reveal_at_least_the_truth(kernel: Floats) -> None:
    known = _Known.next_to(kernel).further(kernel, COST).further(kernel, COST / 2)
    pairs = list(product(range(3), repeat=2))
    apart = np.array(
        [[(COST / 2)[a, c] + COST[b, d] for c, d in pairs] for a, b in pairs]  # nearest first
    )
    for b, x, y in product(range(3), repeat=3):
        laws = [bridge([kernel] * 3, z, b) for z in (x, y)]
        if x == y or not all(laws):
            continue
        kept = [k for k, path in enumerate(pairs) if laws[0][path] or laws[1][path]]
        p, q = (np.array([law[pairs[k]] for k in kept]) for law in laws)
        true = loss_by_potentials(p, q, apart[np.ix_(kept, kept)])
        assert true - 1e-8 <= known.tables[b, x, y] <= true * 2 + 1e-6


def test_known_entries_are_stepped_to_once_for_each_kernel_and_cost() -> None:
    known = _Known.next_to(ROWS)
    assert known.further(ROWS, COST) is known.further(ROWS, COST)
    assert known.further(ROWS, COST) is not known.further(ROWS, COST / 2)
    assert known.further(ROWS, COST) is not known.further(SPARSE, COST)


def test_what_rounding_may_do_to_known_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    known = _Known.next_to(ROWS)
    for distance in range(1, 4):  # as in `entry_laws`, with a step more
        assert known.slack >= (8 * 3 * distance + 6 * 3 + 4) * UNIT
        assert known.slack <= 8 * (8 * 3 * distance + 6 * 3 + 4) * UNIT
        known = known.further(ROWS, COST)
    plain = _Known.next_to(ROWS).further(ROWS, COST).tables
    monkeypatch.setattr(_Known, "slack", 0.0625)
    wider = _Known.next_to(ROWS).further(ROWS, COST).tables
    assert wider == pytest.approx(plain + 0.0625 * off_diagonal(3), abs=1e-12)
    monkeypatch.setattr(_Known, "slack", 9.0)
    capped = _Known.next_to(ROWS).further(ROWS, COST).tables
    assert capped == pytest.approx(np.broadcast_to(off_diagonal(3, 0.9), (3, 3, 3)))


def test_a_step_over_large_or_no_costs_is_its_dearest_move() -> None:
    large = _Known.next_to(ROWS).further(ROWS, off_diagonal(3, 301.0)).tables
    assert large == pytest.approx(np.broadcast_to(off_diagonal(3, 301.0), (3, 3, 3)))
    assert not _Known.next_to(ROWS).further(ROWS, np.zeros((3, 3))).tables.any()
    rare = np.array([[1.0, 1e-300], [0.5, 0.5]])
    faint = _Known.next_to(rare).further(rare, off_diagonal(2, 0.5)).tables
    assert faint[1, 0, 1] == pytest.approx(0.5)  # too small to be computed with


def test_weights_are_divided_by_the_largest_of_their_row() -> None:
    found = known_entries._scaled(np.array([[0.25, 0.5], [0.0, 0.0], [3.0, 1.5]]))
    assert found.tolist() == [[0.5, 1.0], [0.0, 0.0], [1.0, 0.5]]


@pytest.mark.parametrize("distance", [3, 5])
def test_boxes_hold_the_rows_of_every_known_entry_further_away(
    distance: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = dict[str, Floats]()

    def rows(low: Floats, high: Floats) -> Any:
        kept.update(low=low, high=high)
        return "boxes"

    monkeypatch.setattr(known_entries, "robust_rows", rows)
    side = KnownSide((ROWS,), (COST,), ahead=True)
    known = _Known.next_to(ROWS)
    while known.distance < distance:
        known = known.further(ROWS, COST)
    power = np.linalg.matrix_power(ROWS, distance)
    spread = float(np.log(power.max(axis=0) / power.min(axis=0)).max())
    assert side._boxes(known, spread - 1e-9) is None
    answer: Any = side._boxes(known, spread + 1e-9)
    assert answer == "boxes"
    for later in range(distance + 1, distance + 6):
        before, after = (np.linalg.matrix_power(ROWS, n) for n in (later - 1, later))
        for b in range(3):
            true = ROWS * before[None, :, b] / after[:, b, None]
            assert (kept["low"] <= true).all() and (true <= kept["high"]).all()
    assert kept["low"] == pytest.approx(ROWS * np.exp(-spread))
    assert kept["high"] == pytest.approx(np.minimum(ROWS * np.exp(spread), 1.0))


def test_boxes_back_in_time_are_those_of_the_hull(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = list[Any]()
    monkeypatch.setattr(known_entries, "hull_boxes", lambda hull, rows: kept.append((hull, rows)))
    turned = np.ascontiguousarray(ROWS.T)
    side = KnownSide((turned,), (COST,), ahead=False)
    known = _Known.next_to(turned).further(turned, COST)
    side._boxes(known, 5.0)
    ((hull, rows),) = kept
    assert hull.laws == pytest.approx(ROWS @ ROWS) and rows is turned and hull.able.all()
    side._boxes(known, hull.width)
    assert len(kept) == 2
    side._boxes(known, hull.width * 0.999)
    assert len(kept) == 2


@pytest.mark.parametrize("ahead", [True, False])
def test_there_are_no_boxes_where_something_is_excluded(ahead: bool) -> None:
    side = KnownSide((SPARSE,), (COST,), ahead=ahead)
    assert side._boxes(_Known.next_to(SPARSE), np.inf) is None
    rare = np.array([[1.0 - 2.0**-40, 2.0**-40], [0.5, 0.5]])
    known = _Known.next_to(rare)
    assert KnownSide((rare,), (COST[:2, :2],), ahead=ahead)._boxes(known, np.inf) is not None


@pytest.mark.parametrize("ahead", [True, False])
def test_many_entries_far_away_are_bounded_together_from_above(
    ahead: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Put together much sooner than otherwise: no less is told, and not much more."""
    kernels, costs = [ROWS] * 12, [COST] * 13
    make = KnownSide.after if ahead else KnownSide.before
    monkeypatch.setattr(known_entries, "NARROW", -1.0)
    each = make(kernels, costs).tables()
    monkeypatch.setattr(known_entries, "NARROW", 0.05)
    together = make(kernels, costs).tables()
    assert len(each.at) == len(together.at) == 13
    for entry in range(13):
        one, other = each.table(entry), together.table(entry)
        assert (one - 1e-12 <= other).all() and (other <= one * 1.25 + 1e-12).all()
    assert not each.table(12 if ahead else 0).any()
    assert not (together.table(6) == each.table(6)).all()
    far = make([ROWS] * 300, [COST] * 301).tables()
    assert len(far.tables) <= 300
    assert far.table(150) == pytest.approx(each.table(1 if ahead else 11), rel=0.2)


def test_a_step_for_all_boxes_is_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes: Any = lambda _cost: (ROWS, ROWS)  # noqa: E731
    plain, known = known_entries._robust(boxes, COST, None)
    for x, y in product(range(3), repeat=2):
        true = loss_by_potentials(ROWS[x], ROWS[y], COST) if x != y else 0.0
        assert true - 1e-9 <= plain[x, y] <= true + 1e-6
    monkeypatch.setattr(known_entries, "row_slack", lambda states: states / 64)
    wider, _ = known_entries._robust(boxes, COST, known)
    assert wider == pytest.approx(plain + 2 * 3 / 64 * off_diagonal(3), abs=1e-9)
    monkeypatch.setattr(known_entries, "row_slack", lambda states: states * 2.0)
    assert known_entries._robust(boxes, COST, known)[0] == pytest.approx(off_diagonal(3, 0.9))
    large, none = known_entries._robust(boxes, off_diagonal(3, 301.0), None)
    assert large == pytest.approx(off_diagonal(3, 301.0)) and none is None
    assert not known_entries._robust(boxes, np.zeros((3, 3)), None)[0].any()


@pytest.mark.parametrize("ahead", [True, False])
def test_however_many_entries_there_are_no_more_is_revealed(ahead: bool) -> None:
    kernel = ROWS if ahead else np.ascontiguousarray(ROWS.T)
    found = KnownSide((kernel,), (COST,), ahead=ahead).unbounded()
    make = KnownSide.after if ahead else KnownSide.before
    long = make([ROWS] * 60, [COST] * 61).tables().table(0 if ahead else 60)
    assert (found >= long - 1e-12).all() and (found <= long * 1.01 + 1e-6).all()


def test_entries_that_are_never_alike_have_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_entries, "FURTHEST", 12)
    stay = np.array([[0.9999, 0.0001], [0.0001, 0.9999]])
    cost = off_diagonal(2, 0.1)
    found = KnownSide((stay,), (cost,), ahead=True).unbounded()
    assert np.isinf(found[0, 1]) and found[0, 0] == 0.0
    slow = np.array([[0.9, 0.1], [0.1, 0.9]])  # alike enough after twelve, though not narrow
    assert np.isfinite(KnownSide((slow,), (cost,), ahead=True).unbounded()).all()


# the law of the first entry is not known


def slowly(
    kernels: list[Floats], costs: list[Floats], close: float | None
) -> tuple[list[Floats], list[StartHull]]:
    """Step by step, with the hull of each entry."""
    size = len(costs[0])
    hull, tables, hulls = StartHull.whole(size), [np.zeros((size, size))], [StartHull.whole(size)]
    for kernel, cost in zip(kernels, costs, strict=False):
        tables.append(hull_step(hull, kernel.T.copy(), cost + tables[-1], close=close))
        hull = hull.after(kernel)
        hulls.append(hull)
    return tables, hulls


TWO = np.array([[0.7, 0.3], [0.2, 0.8]])
FREE, LITTLE, MUCH = off_diagonal(2, 0.0), off_diagonal(2, 0.25), off_diagonal(2, 1.0)


@pytest.mark.parametrize(
    ("costs", "off"),
    [
        ([LITTLE] * 150, 1e-5),
        ([MUCH] * 60 + [LITTLE] * 90, 1e-5),
        ([MUCH] + [FREE] * 149, 1e-5),
        ([LITTLE, MUCH] * 30, 1e-5),
        ([FREE] * 70 + [MUCH] * 3 + [FREE] * 77, 0.12),  # by the hull of the second entry
    ],
)
@pytest.mark.parametrize("alike", [True, False])
def test_stretches_before_an_entry_are_bounded_as_if_they_were_walked(
    costs: list[Floats], off: float, alike: bool
) -> None:
    other = np.array([[0.4, 0.6], [0.5, 0.5]])
    kernels = [TWO if alike or k % 3 else other for k in range(len(costs) - 1)]
    true, hulls = slowly(kernels, costs, 1e-3)
    found = unknown_start.unknown_start(kernels, costs)
    assert len(found.before.at) == len(found.hull_at) == len(costs)
    for entry in range(len(costs)):
        table = found.before.table(entry)
        assert (table >= true[entry] - 1e-9).all()
        assert (table <= true[entry] * (1 + off) + 1e-6).all()
        hull = found.hulls[int(found.hull_at[entry])]
        assert (hull.laws.min(axis=0) <= hulls[entry].laws.min(axis=0) + 1e-14).all()
        assert (hull.laws.max(axis=0) >= hulls[entry].laws.max(axis=0) - 1e-14).all()
        assert found.possible(entry).all()
    if alike and all(cost is LITTLE for cost in costs):
        assert len(found.before.tables) < 80 and len(found.hulls) < 60


def test_what_rises_for_long_is_bounded_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = np.array([[0.995, 0.005], [0.3, 0.7]])
    monkeypatch.setattr(unknown_start, "PATIENCE", 5)
    monkeypatch.setattr(unknown_start, "NARROW", 0.5)
    costs = [off_diagonal(2, 0.02)] * 120
    true, _ = slowly([lazy] * 119, costs, 1e-3)
    found = unknown_start.unknown_start([lazy] * 119, costs)
    tables = np.array([found.before.table(i) for i in range(120)])
    assert (tables >= np.array(true) - 1e-9).all()
    assert len(found.before.tables) < 40
    assert tables.max() <= np.max(true) * 1.5


def test_the_rest_of_a_stretch_is_the_lesser_of_two_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hull, value = StartHull.whole(2).after(TWO), np.array([[0.0, 0.5], [0.75, 0.0]])
    asked = list[Any]()

    def settled(*given: Any) -> Floats:
        asked.append(given)
        return off_diagonal(2, 1.0)

    monkeypatch.setattr(unknown_start, "_for_ever", settled)
    little = unknown_start._remaining(hull, TWO, LITTLE, value, 1e-11)
    assert (little >= value + 1e-11 * off_diagonal(2)).all() and not asked
    assert little == pytest.approx(value, abs=1e-10)
    some = unknown_start._remaining(hull, TWO, LITTLE, value, 0.125)
    assert some == pytest.approx(value + 0.125 * off_diagonal(2)) and some[0, 1] > 0.625
    assert asked == [(hull, TWO, LITTLE, value, 1e-3)]
    much = unknown_start._remaining(hull, TWO, LITTLE, value, 0.5)
    assert (much == off_diagonal(2, 1.0)).all()


@pytest.mark.parametrize("steps", [1, 2, 30])
def test_what_holds_for_ever_is_not_raised_by_a_step(steps: int) -> None:
    hull = StartHull.whole(2)
    for _ in range(steps):
        hull = hull.after(TWO)
    value = np.array([[0.0, 0.01], [0.02, 0.0]])
    found = unknown_start._for_ever(hull, TWO, LITTLE, value, 1e-3)
    assert np.isfinite(found).all() and (found >= value).all()
    after = hull_step(hull, TWO.T.copy(), LITTLE + found)
    assert (after <= found + 1e-9).all() and (after >= 0.5 * found).all()


def test_nothing_holds_for_ever_where_nothing_is_forgotten() -> None:
    stays = np.eye(2)
    found = unknown_start._for_ever(
        StartHull.whole(2).after(stays), stays, MUCH, np.zeros((2, 2)), 1e-3
    )
    assert np.isinf(found[0, 1]) and np.isinf(found[1, 0]) and found[0, 0] == found[1, 1] == 0.0


@pytest.mark.parametrize("cost", [LITTLE, MUCH])
def test_an_unbounded_past_reveals_as_much_as_a_long_one(cost: Floats) -> None:
    true, _ = slowly([TWO] * 60, [cost] * 61, 1e-3)
    found = unknown_start.unbounded_start(TWO, cost)
    assert (found >= np.max(true, axis=0) - 1e-12).all()
    assert (found <= np.max(true, axis=0) * 1.01).all()


def test_runs_of_the_same_cost_are_counted_from_a_time_on() -> None:
    costs = [LITTLE, LITTLE, MUCH, MUCH, MUCH, LITTLE]
    runs = [unknown_start._run(costs, time, 5) for time in range(6)]
    assert runs == [2, 1, 3, 2, 1, 0]
