"""What network curves are made of: cones of rays, nearest sets, rounded sums; each in full."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations
from math import comb, log

import numpy as np
import pytest
from scipy.optimize import nnls

from takifugu.errors import TooLarge, UnsoundRequest
from takifugu.influence.network import attractive_curves, cones, elimination, network_curves
from takifugu.influence.network.attractive_curves import (
    AttractiveField,
    attractive_curve,
    check_attractive,
)
from takifugu.influence.network.elimination import Elimination, bits
from takifugu.numeric import Floats
from takifugu.priors.random_field import MarkovRandomField
from tests.raising import raises

pytestmark = pytest.mark.nightly

# ---- cones


@pytest.mark.parametrize(
    ("rays", "kept", "cost"),
    [
        ([[1.0, 2.0]], [0], 0),
        ([[1.0, 2.0], [2.0, 1.0]], [0, 1], 0),
        ([[0.0, 0.0], [2.0, 1.0]], [1], 0),
        ([[0.0, 0.0], [0.0, 0.0]], [], 0),
        ([[0.0, 0.0], [2.0, 1.0], [1.0, 1.0]], [1, 2], 0),
        ([[3.0], [1.0], [2.0]], [0], 0),
        ([[0.0], [1.0], [2.0]], [1], 0),
        ([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]], [0], 0),
        ([[1.0, 1.0], [3.0, 1.0], [2.0, 1.0]], [0, 1], 2),
        ([[3.0, 1.0], [2.0, 1.0], [1.0, 1.0]], [0, 2], 2),
        ([[2.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [1, 2], 2),
        ([[2.0, 2.0], [1.0, 1.0], [4.0, 4.0]], [0], 2),
        ([[2.0, 0.0, 2.0], [1.0, 0.0, 3.0], [4.0, 0.0, 1.0]], [1, 2], 2),
        ([[0.0, 0.0, 0.0], [1.0, 1.0, 3.0], [4.0, 2.0, 1.0], [1.0, 9.0, 1.0]], [1, 2, 3], 0),
    ],
)
def test_rays_that_span_a_small_cone(rays: list[list[float]], kept: list[int], cost: int) -> None:
    found, roundings = cones.extremes(np.array(rays))
    assert found.tolist() == kept and roundings == cost


def cone(rng: np.random.Generator, inside: int, columns: int) -> Floats:
    """Corners that span a cone, then rows well inside it, mixed up."""
    corners = np.full((columns, columns), 0.1) + np.eye(columns)
    mixed = rng.dirichlet(np.ones(columns), inside) @ corners
    rows = np.concatenate([corners, mixed * rng.uniform(0.5, 2, (inside, 1))])
    return np.ascontiguousarray(rows[rng.permutation(len(rows))])


@pytest.mark.parametrize("columns", [3, 4])
@pytest.mark.parametrize("inside", [cones.FEW, 30])
def test_rays_inside_a_cone_are_left_out(columns: int, inside: int) -> None:
    rng = np.random.default_rng(columns)
    rays = cone(rng, inside, columns)
    found, cost = cones.extremes(rays)
    assert cost == cones.COST and len(found) == columns
    for ray in rays:
        assert nnls(rays[found].T, ray)[1] < 1e-9
    twice = np.concatenate([rays, rays])
    again, cost = cones.extremes(twice)
    assert again.tolist() == found.tolist() and cost == cones.COST
    with_nothing = np.concatenate([np.zeros((2, columns)), rays])
    again, cost = cones.extremes(with_nothing)
    assert again.tolist() == (found + 2).tolist() and cost == cones.COST


@pytest.mark.parametrize("seed", range(4))
def test_a_ray_is_left_out_only_if_others_span_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rays = rng.uniform(0.05, 1, (25, 3 + seed % 2))
    found, _ = cones.extremes(rays)
    scaled = rays / rays.sum(axis=1, keepdims=True)
    for k in range(len(rays)):
        rest = np.delete(scaled, k, axis=0)
        apart = nnls(rest.T, scaled[k])[1] > 1e-7  # no cone of the others holds it
        if apart:
            assert k in found
        assert nnls(scaled[found].T, scaled[k])[1] < 1e-7


def test_how_many_rays_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    few = cone(rng, cones.FEW - 3, 3)
    assert cones.extremes(few)[0].tolist() == list(range(cones.FEW))
    assert cones.extremes(few)[1] == 0
    wide = cone(rng, 20, cones.WIDE + 1)
    assert len(cones.extremes(wide)[0]) == len(wide) and cones.extremes(wide)[1] == 0
    monkeypatch.setattr(cones, "MANY", 20)
    assert len(cones.extremes(cone(rng, 17, 3))[0]) == 3
    assert len(cones.extremes(cone(rng, 18, 3))[0]) == 21
    equal = np.repeat(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 1.0], [1.0, 1.0, 5.0]]), 4, axis=0)
    assert cones.extremes(equal)[0].tolist() == [0, 4, 8]
    assert cones._first_of_each(equal).tolist() == [0, 4, 8]
    flat = np.column_stack([rng.uniform(1, 2, 12), np.ones(12)])
    flat = np.column_stack([flat, flat.sum(axis=1)])  # in a plane: nothing is proved
    assert cones.extremes(flat)[0].tolist() == list(range(12))


# ---- sets of nearest entries


def field_of(
    count: int,
    tables: Mapping[tuple[int, int], list[list[float]]],
    unary: Mapping[int, list[float]] | None = None,
) -> MarkovRandomField:
    return MarkovRandomField(
        tuple(f"e{i}" for i in range(count)),
        ((0, 1),) * count,
        tuple(np.array((unary or {}).get(i, [1.0, 1.0])) for i in range(count)),
        tuple((f"e{i}", f"e{j}") for i, j in tables),
        tuple(np.array(table) for table in tables.values()),
    )


def ring(count: int, chords: tuple[tuple[int, int], ...] = ()) -> MarkovRandomField:
    """Entries in a ring, and chords."""
    pairs = [*((i, (i + 1) % count) for i in range(count)), *chords]
    return field_of(count, {pair: [[2.0, 1.0], [1.0, 3.0]] for pair in pairs})


def steps(full: Elimination, entry: int) -> dict[int, int]:
    far, front = {entry: 0}, [entry]
    for v in front:
        for u in bits(full.around[v]):
            if u not in far:
                far[u] = far[v] + 1
                front.append(u)
    return far


@pytest.mark.parametrize("b", [1, 2, 3, 4, 5, 6])
def test_sets_of_nearest_entries(b: int, monkeypatch: pytest.MonkeyPatch) -> None:
    full = Elimination(ring(7, ((0, 3),)))
    far = steps(full, 0)
    sets = []
    for more in combinations(sorted(set(range(7)) - {0}), b - 1):
        last = max((far[v] for v in more), default=0)
        if all(far[v] >= last for v in range(7) if v not in more and v != 0):
            sets.append(sum(1 << v for v in (0, *more)))
    found = list(network_curves._nearest(full, 0, b))
    assert sorted(found) == sorted(sets) and len(set(found)) == len(found)
    monkeypatch.setattr(network_curves, "CANDIDATES", len(found))
    assert list(network_curves._nearest(full, 0, b)) == found
    monkeypatch.setattr(network_curves, "CANDIDATES", len(found) - 1)
    with raises(TooLarge, field="largest", size=len(found), limit=len(found) - 1):
        list(network_curves._nearest(full, 0, b))


def test_ties_of_many_neighbours_are_counted() -> None:
    star = field_of(8, {(0, i): [[2.0, 1.0], [1.0, 3.0]] for i in range(1, 8)})
    full = Elimination(star)
    assert len(list(network_curves._nearest(full, 0, 4))) == comb(7, 3)


@pytest.mark.parametrize("b", [1, 3, 5])
def test_sets_that_are_drawn_are_connected(b: int) -> None:
    full = Elimination(ring(7))
    rng = np.random.default_rng(1)
    drawn = {network_curves._drawn(full, 2, b, rng) for _ in range(60)}
    windows = {
        sum(1 << (first + k) % 7 for k in range(b)) for first in range(2 - b + 1, 3)
    }  # of a ring: all windows that hold the entry
    assert drawn == windows


# ---- rounding of sums, and what is told


class _Known:
    """A search that has come to an end."""

    def __init__(self, best: list[list[float]], sets: list[list[int]], whole: int) -> None:
        self.best, self.sets, self.whole = [np.array(one) for one in best], sets, whole
        self.asked: list[tuple[int, int]] = []

    def exact(self, at: int, pair: int) -> bool:
        self.asked.append((at, pair))
        return True


def test_a_row_of_a_search_is_rounded_up() -> None:
    search = _Known([[9.0, 0.1], [9.0, -5.0]], [[1, 1], [1, 3]], 15)
    row, flags, masks = network_curves._row(search, 1, [1, 2, 3, 4, 5], 0.7, True)  # type: ignore[arg-type]
    assert Fraction(float(row[0])) > Fraction(0.1) + Fraction(0.7)
    assert row[0] == pytest.approx(0.8, rel=1e-13)
    assert row[1:].tolist() == [0.0] * 4
    assert flags.tolist() == [True, True, False, True, True] and masks == (1, 3, 3, 15, 15)
    assert search.asked == [(0, 1), (1, 1)]
    row, flags, _ = network_curves._row(search, 0, [1, 4], 0.5, False)  # type: ignore[arg-type]
    assert flags.tolist() == [False, True] and row[0] == pytest.approx(9.5)
    search.best[0][0] = np.inf
    assert network_curves._row(search, 0, [1], -np.inf, True)[0].tolist() == [np.inf]  # type: ignore[arg-type]


def test_leaks_of_an_attractive_field_are_sums_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AttractiveField, "evaluate", lambda *_: (0.1, 0.7))
    curve = attractive_curve(ring(4), largest=2)
    assert curve.exposed.tolist() == [1, 2, 4]
    assert all(
        Fraction(float(leak)) > Fraction(0.1) + Fraction(0.7) for leak in curve.leak[:, :2].ravel()
    )
    assert curve.leak[:, :2] == pytest.approx(0.8, rel=1e-13) and not curve.leak[:, 2].any()


def test_the_strength_of_a_contact_is_its_cross_ratio() -> None:
    field = AttractiveField(
        field_of(
            3,
            {(0, 1): [[6.0, 0.5], [2.0, 3.0]], (1, 2): [[7.0, 1.0], [1.0, 1.0]]},
            {1: [0.25, 3.0]},
        )
    )
    assert field.strength[0, 1] == pytest.approx(log(18.0)) == field.strength[1, 0]
    assert field.strength[1, 2] == pytest.approx(log(7.0)) and field.strength[0, 2] == 0
    assert field.alone.tolist() == [[1.0, 1.0], [0.25, 3.0], [1.0, 1.0]]
    assert field.pair[0, 1].tolist() == [[6.0, 0.5], [2.0, 3.0]]
    assert field.pair[1, 0].tolist() == [[6.0, 2.0], [0.5, 3.0]]
    assert field.reach[:, 0, 1] == pytest.approx([1.0, np.log2(6)])
    assert field.reach[:, 1, 0] == pytest.approx([1.0, np.log2(6)])
    assert field.reach[:, 1, 2] == pytest.approx([0.0, np.log2(7)])
    assert field.own_reach[:, 1] == pytest.approx([2.0, np.log2(3)])
    assert field.made_of.tolist() == [1, 1, 1] and field.repeats == 1


@pytest.mark.parametrize("low", [1.0, 1e-149, 1e150, 0.3])
def test_a_table_that_favours_agreement_by_a_hair(low: float) -> None:
    def field(corner: float) -> MarkovRandomField:
        return field_of(2, {(0, 1): [[low, low], [low, corner]]})

    check_attractive(field(low))
    check_attractive(field(float(np.nextafter(low, np.inf))))
    with raises(UnsoundRequest, reason="repelling"):
        check_attractive(field(float(np.nextafter(low, 0.0))))


def test_balls_and_growing_sets() -> None:
    field = AttractiveField(ring(7, ((0, 3),)))
    assert attractive_curves._edge(field, 1) == 0b1001010
    assert attractive_curves._whole(field, 2) == 0b1111111
    assert attractive_curves._ball(field, 0, 1) == 1
    assert attractive_curves._ball(field, 0, 3) == 0b1011
    assert attractive_curves._ball(field, 0, 4) == 0b1001011
    assert attractive_curves._ball(field, 0, 5) == 0b1001111
    assert attractive_curves._ball(field, 0, 99) == 0b1111111


def test_what_surrounds_a_set_counts_the_roundings_of_all_its_parts() -> None:
    full = Elimination(ring(6, ((0, 3),)))
    for inside in (0b1, 0b11, 0b100110):
        around = full.surroundings(inside)
        parts = [*around.cases.T.tolist(), *([k] for k in around.fixed.tolist())]
        own = [max(full._messages.roundings[k] for k in part) for part in parts]
        # one for the product with the others, one for the scale
        assert around.roundings >= sum(own) + 2 * len(own) > 0


def test_constraints_are_passed_on_one_entry_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    order = [[1.0, 1.0], [0.0, 1.0]]  # 1 is not followed by 0
    chain = field_of(6, {(i, i + 1): order for i in range(5)})
    monkeypatch.setattr(elimination, "SMALL", 8)  # three entries at once
    full = Elimination(chain)
    pieces, exact = full._allowed(full._with_zeros, 0b100001)
    assert exact and len(pieces) == 1
    assert pieces[0][0] == 0b100001 and pieces[0][1].tolist() == [[True, True], [False, True]]
    monkeypatch.setattr(elimination, "SMALL", 7)
    pieces, exact = full._allowed(full._with_zeros, 0b100001)
    assert not exact and pieces == ()
