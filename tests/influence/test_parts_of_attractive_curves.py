"""Attractive fields: which tables are taken, what may leave float64, which sets are tried."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from takifugu.errors import TooLarge, UnsoundRequest
from takifugu.influence.network import attractive_curves as attractive
from takifugu.influence.network.attractive_curves import (
    AttractiveField,
    attractive_curve,
    check_attractive,
)
from takifugu.influence.network.elimination import bits
from takifugu.priors.random_field import MarkovRandomField
from takifugu.priors.secrets import Secrets
from tests.influence.test_parts_of_elimination import Model
from tests.raising import raises

pytestmark = pytest.mark.nightly

# ---- tables


@pytest.mark.parametrize(("i", "j"), [(0, 1), (0, 2), (1, 2)])
@pytest.mark.parametrize("other", [0, 1])
def test_a_single_face_that_favours_different_values(i: int, j: int, other: int) -> None:
    """Of a table of three entries every two are looked at, with each value of the third."""
    rest = ({0, 1, 2} - {i, j}).pop()

    def table(corner: float) -> np.ndarray:
        found = np.ones((2, 2, 2))
        at = {i: 0, j: 0, rest: other}
        found[at[0], at[1], at[2]] = corner
        return found

    sizes = (2, 2, 2)
    with raises(UnsoundRequest, reason="repelling"):
        check_attractive(Model(sizes, ((0, 1, 2), table(0.9))))
    spread = np.array([1.0, 2.0, 2.0, 4.5, 3.0, 7.0, 8.0, 29.0]).reshape(2, 2, 2)
    check_attractive(Model(sizes, ((0, 1, 2), spread)))  # every face favours agreement
    spread[1 if i == 0 else other, 1 if 1 in (i, j) else other, 1 if j == 2 else other] *= 0.3
    with raises(UnsoundRequest, reason="repelling"):
        check_attractive(Model(sizes, ((0, 1, 2), spread)))


@pytest.mark.parametrize(
    "table", [[[3.0, 3.0], [3.0, 2.0]], [[1.0, 1.0], [1.0, 0.1]], [[3.0, 2.0], [5.0, 3.0]]]
)
def test_a_table_that_clearly_favours_different_values(table: list[list[float]]) -> None:
    with raises(UnsoundRequest, reason="repelling"):
        check_attractive(Model((2, 2), ((0, 1), table)))
    (w, x), (y, z) = table
    check_attractive(Model((2, 2), ((0, 1), [[x, w], [z, y]])))


def test_tables_of_three_entries_have_no_sums() -> None:
    with raises(UnsoundRequest):
        AttractiveField(Model((2, 2, 2), ((0, 1, 2), np.ones((2, 2, 2)))))


def repeated() -> Model:
    """Three tables on one pair, one of them turned, and two on an entry."""
    return Model(
        (2, 2, 2),
        ((0, 1), [[4.0, 1.0], [0.5, 2.0]]),
        ((1, 0), [[3.0, 0.25], [1.0, 5.0]]),
        ((0, 1), [[8.0, 1.0], [1.0, 1.0]]),
        ((1, 2), [[1.0, 1.0], [1.0, 16.0]]),
        ((2,), [0.125, 3.0]),
        ((2,), [5.0, 0.5]),
    )


def test_tables_on_the_same_entries_are_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[float]] = []
    monkeypatch.setattr(
        attractive, "_stays", lambda *given: asked.append([float(x) for x in given])
    )
    field = AttractiveField(repeated())
    assert field.pair[0, 1].tolist() == [[4.0 * 3 * 8, 1.0], [0.5 * 0.25, 2.0 * 5]]
    assert field.pair[1, 0].tolist() == field.pair[0, 1].T.tolist()
    assert field.pair[1, 2].tolist() == field.pair[2, 1].tolist() == [[1.0, 1.0], [1.0, 16.0]]
    assert field.pair[0, 2].tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert field.alone.tolist() == [[1.0, 1.0], [1.0, 1.0], [0.625, 1.5]]
    falls, rises = 1 + 2 + 0, 2 + math.log2(5) + 3
    assert field.reach[:, 0, 1] == pytest.approx([falls, rises]) == field.reach[:, 1, 0]
    assert field.reach[:, 1, 2] == pytest.approx([0, 4]) == field.reach[:, 2, 1]
    assert not field.reach[:, 0, 2].any() and not field.own_reach[:, :2].any()
    assert field.own_reach[:, 2] == pytest.approx([3 + 1, math.log2(3) + math.log2(5)])
    pull = math.log(16.0) + math.log(60.0) + math.log(8.0)
    assert field.strength[0, 1] == pytest.approx(pull) == field.strength[1, 0]
    assert field.strength[1, 2] == pytest.approx(math.log(16.0)) == field.strength[2, 1]
    assert field.made_of.tolist() == [0, 0, 2] and field.repeats == 3
    assert field.around == (0b010, 0b101, 0b010)
    assert asked == [[pytest.approx(rises), pytest.approx(4.0)]]
    many = Model((2,), *(((0,), [1.0, 2.0]),) * 4)
    assert AttractiveField(many).repeats == 4
    turned = Model((2, 2), *(((1, 0), [[2.0, 1.0], [1.0, 2.0]]),) * 5)
    assert AttractiveField(turned).repeats == 5
    assert AttractiveField(Model((2, 2))).repeats == 1 and asked[-1] == [0.0, 0.0]


# ---- sums


def uneven() -> MarkovRandomField:
    """Five entries; every table has its own falls and rises."""
    rng = np.random.default_rng(2)
    edges = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3))
    weights = []
    for _ in edges:
        a, b, c = rng.uniform(0.05, 2.0, 3)
        weights.append(np.array([[a, b], [c, 1.5 * b * c / a]]))
    return MarkovRandomField(
        tuple(range(5)),
        ((0, 1),) * 5,
        tuple(rng.uniform(0.05, 4.0, 2) for _ in range(5)),
        edges,
        tuple(weights),
    )


@pytest.mark.parametrize("scale", [1.0, 2.0**200, 2.0**-200])
def test_logarithms_of_a_set_are_added_up_before_anything_is_multiplied(
    scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First for each entry with what lies around it; then for all of the set."""
    model = uneven()
    model = MarkovRandomField(
        model.entries,
        model.states,
        tuple(table * scale for table in model.unary),
        model.edges,
        model.weights,
    )
    field = AttractiveField(model)
    asked: list[np.ndarray] = []
    monkeypatch.setattr(attractive, "_stays", lambda given: asked.append(np.asarray(given)))
    inside, entry = 0b01110, 2
    order, around = [2, 1, 3], [0, 4]
    one, zero = field.evaluate(inside, entry)
    tables = {
        **dict(zip(model.edges, model.weights, strict=True)),
        **{(b, a): table.T for (a, b), table in zip(model.edges, model.weights, strict=True)},
    }

    def ends(table: np.ndarray) -> np.ndarray:
        return np.maximum([-np.log2(table).min(), np.log2(table).max()], 0.0)

    first = np.array(
        [
            ends(model.unary[v]) + sum(ends(tables[v, u]) for u in around if (v, u) in tables)
            for v in order
        ]
    ).T
    assert asked[0] == pytest.approx(first, rel=1e-12)
    total = np.zeros(2)
    for v in order:
        alone = np.array(
            [
                [
                    model.unary[v][own]
                    * math.prod(tables[v, u][own, value] for u in around if (v, u) in tables)
                    for value in (0, 1)
                ]
                for own in (0, 1)
            ]
        )
        if scale != 1:
            alone = alone / 2.0 ** np.frexp(alone.max())[1]
        total += ends(alone)
    total += ends(tables[2, 1]) + ends(tables[2, 3]) + ends(tables[1, 3])
    assert len(asked) == 2 and asked[1] == pytest.approx(total, rel=1e-12)
    for found, value, way in ((one, 1, 1), (zero, 0, -1)):
        sums = [0.0, 0.0]
        for x in product((0, 1), repeat=3):
            at = {**dict(zip(order, x, strict=True)), **dict.fromkeys(around, value)}
            weight = math.prod(float(model.unary[v][at[v]] / scale) for v in order)
            for a, b in ((int(a), int(b)) for a, b in model.edges):
                if a in order or b in order:
                    weight *= float(tables[a, b][at[a], at[b]])
            sums[x[0]] += weight
        true = way * math.log(sums[1] / sums[0])
        assert true - 1e-14 <= found <= true + 1e-11


@pytest.mark.parametrize(
    "weights", [(2.0**300, 2.0**301), (2.0**-300, 2.0**-301), (2.0**-300, 2.0**20)]
)
def test_large_and_small_weights_of_entries_do_not_add_up(weights: tuple[float, float]) -> None:
    """Only ratios matter: each entry is put on a scale of its own."""
    field = AttractiveField(Model((2,) * 4, *(((v,), weights) for v in range(4))))
    if weights[1] / weights[0] > 2.0**100:
        with raises(TooLarge):
            field.evaluate(0b1111, 2)
        weights = (2.0**-200, 1.0)
        field = AttractiveField(Model((2,) * 4, *(((v,), weights) for v in range(4))))
    one, zero = field.evaluate(0b1111, 2)
    true = math.log(weights[1] / weights[0])
    assert true <= one <= true + 1e-12 and -true <= zero <= -true + 1e-12


def test_steps_that_round_are_counted_for_each_set(monkeypatch: pytest.MonkeyPatch) -> None:
    field = AttractiveField(uneven())
    counted: list[int] = []

    def gamma(steps: int) -> float:
        counted.append(steps)
        return 0.01

    monkeypatch.setattr(attractive, "gamma", gamma)
    for inside in (0b00100, 0b01110, 0b11111):
        field.evaluate(inside, 2)
    assert counted == [1 * (2 + 1 + 4) + 2, 3 * (2 + 3 + 4) + 2**3, 5 * (0 + 5 + 4) + 2**5]


def test_how_many_entries_are_summed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    field = AttractiveField(uneven())
    monkeypatch.setattr(attractive, "LARGEST", 3)
    field.evaluate(0b01110, 2)
    with raises(TooLarge, size=4, limit=3):
        field.evaluate(0b11110, 2)
    with raises(UnsoundRequest, field="largest", given=4, needed=3):
        attractive_curve(uneven(), largest=4)
    apart = MarkovRandomField.ising(dict.fromkeys(range(14), 0.5), {})
    monkeypatch.setattr(attractive, "LARGEST", 20)
    curve = attractive_curve(apart)
    assert curve.exposed.tolist() == [*range(1, 13), 14]  # up to twelve unless told
    assert not curve.leak.any() and curve.exact.all() and curve.leak.shape == (28, 13)


# ---- growing sets


class Scripted:
    """A field whose sets are worth what a table says; a set may be too large."""

    def __init__(self, seed: int, count: int, large: tuple[int, ...] = ()) -> None:
        rng = np.random.default_rng(seed)
        edges = {(i, (i + 1) % count) for i in range(count)} | {(0, 3), (1, 4)}
        self.around = tuple(
            sum(1 << u for u in range(count) if (u, v) in edges or (v, u) in edges)
            for v in range(count)
        )
        pull = rng.uniform(0.1, 2, (count, count))
        joined = np.array(
            [[bool(self.around[v] >> u & 1) for u in range(count)] for v in range(count)]
        )
        self.strength = (pull + pull.T) * joined
        noise = rng.uniform(0, 1.5, (2**count, 2))
        self.value = {
            mask: tuple((9 - mask.bit_count() + noise[mask]).tolist()) for mask in range(2**count)
        }
        self.large = large
        self.asked: list[int] = []

    def evaluate(self, inside: int, entry: int) -> tuple[float, float]:
        """What the table says."""
        assert inside >> entry & 1
        self.asked.append(inside)
        if inside in self.large:
            raise TooLarge("too many")
        one, zero = self.value[inside]
        return one, zero


def grown(
    field: Scripted, entry: int, largest: int
) -> tuple[list[list[float]], list[list[int]], list[int]]:
    """Best values, their sets, and the sets tried: in plain steps."""
    count = len(field.around)

    def edge(inside: set[int]) -> list[int]:
        near = {u for v in inside for u in range(count) if field.around[v] >> u & 1}
        return sorted(near - inside)

    def mask(inside: set[int]) -> int:
        return sum(1 << v for v in inside)

    lines = [{entry}, {entry}]
    chosen = [{entry}, {entry}]
    best = [math.inf, math.inf]
    rows: list[list[float]] = []
    sets: list[list[int]] = []
    tried: list[int] = []

    def pull(way: int, line: set[int], u: int) -> float:
        felt = float(field.strength[entry, u])
        return felt if way == 0 else 3 * felt + sum(float(field.strength[v, u]) for v in line)

    for b in range(1, min(largest, count - 1) + 1):
        candidates = [{entry}]
        if b > 1:
            lines = [
                line | {max(edge(line), key=lambda u: pull(way, line, u))}
                for way, line in enumerate(lines)
            ]
            candidates = [*lines]
            if b <= 4:
                candidates += [start | {v} for start in chosen for v in edge(start)]
        kept = [set(one) for one in chosen]
        for inside in sorted(candidates, key=mask):
            if mask(inside) in tried[-1:]:
                continue
            tried.append(mask(inside))
            if mask(inside) in field.large:
                continue
            for way in (0, 1):
                if field.value[mask(inside)][way] < best[way]:
                    best[way], kept[way] = field.value[mask(inside)][way], inside
        chosen = kept
        rows.append(list(best))
        sets.append([mask(one) for one in chosen])
    return rows, sets, tried


@pytest.mark.parametrize("entry", [0, 2, 5])
@pytest.mark.parametrize("largest", [1, 2, 3, 6, 99])
def test_sets_grow_by_every_neighbour_then_by_the_strongest(entry: int, largest: int) -> None:
    for seed in range(4):
        field = Scripted(seed, 8)
        best, sets, seen, tried = attractive._grow(field, entry, 255, largest)  # type: ignore[arg-type]
        expected = grown(field, entry, largest)
        assert (best, sets, field.asked) == expected
        assert seen == [field.value[mask] for mask in expected[2]] and tried == 2


def test_an_entry_alone_is_one_set() -> None:
    field = Scripted(1, 8)
    best, sets, seen, tried = attractive._grow(field, 2, 0b100, 5)  # type: ignore[arg-type]
    value = field.value[0b100]
    assert best == [list(value)] and sets == [[0b100, 0b100]] and seen == [value] and tried == 2


@pytest.mark.parametrize(("size", "tried"), [(2, 1), (3, 2), (4, 2)])
def test_sets_out_of_reach_are_passed_over(size: int, tried: int) -> None:
    """Up to where all sets were evaluated is told: those of one entry, or of two at the most."""
    field = Scripted(3, 8)
    large = next(mask for mask in grown(field, 2, 6)[2] if mask.bit_count() == size)
    field = Scripted(3, 8, (large,))
    found = attractive._grow(field, 2, 255, 6)  # type: ignore[arg-type]
    best, sets, asked = grown(field, 2, 6)
    assert found[0] == best and found[1] == sets and found[3] == tried
    assert found[2] == [field.value[mask] for mask in asked if mask != large]
    with raises(TooLarge):
        attractive._grow(Scripted(3, 8, (0b100,)), 2, 255, 6)  # type: ignore[arg-type]


# ---- whole curves


@pytest.mark.parametrize(("tried", "sure"), [(2, True), (1, True), (2, False)])
def test_a_curve_is_what_grew_and_the_least_bound_on_the_odds(
    tried: int, sure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path of four entries and a pair; every number is made up."""
    model = MarkovRandomField.ising(
        dict.fromkeys("abcdef", 0.1),
        {("a", "b"): 1.0, ("b", "c"): 0.5, ("c", "d"): 0.3, ("e", "f"): 2.0},
    )
    monkeypatch.setattr(attractive, "BALL", 3)
    if not sure:
        monkeypatch.setattr(attractive, "LARGEST", 3)
    grew: list[tuple[int, int, int]] = []
    asked: list[tuple[int, int]] = []

    def grow(_: Any, entry: int, whole: int, largest: int) -> Any:
        grew.append((entry, whole, largest))
        best = [[3.0, 2.5], [1.5, -9.0]]
        near = 1 << entry | 64
        return best, [[1 << entry] * 2, [near, near | 128]], [(4.0, 4.5), (3.9, 4.4)], tried

    def evaluate(_: Any, inside: int, entry: int) -> tuple[float, float]:
        asked.append((inside, entry))
        return (2.1, 1.75) if inside.bit_count() < 4 else (1.25, 2.3)

    monkeypatch.setattr(attractive, "_grow", grow)
    monkeypatch.setattr(AttractiveField, "evaluate", evaluate)
    named: list[Any] = []
    monkeypatch.setattr(attractive, "named_sets", lambda _, masks: named.extend(masks))
    curve = attractive_curve(model, Secrets(entries=("b", "f")), largest=2)
    assert grew == [(1, 0b001111, 2), (5, 0b110000, 2)]
    assert asked == [(0b000111, 1), *[(0b001111, 1)][:sure], *[(0b110000, 5)] * 2]
    assert curve.exposed.tolist() == [1, 2, 4, 6] and curve.entries == 6
    assert curve.pairs == ("b=0 / b=1", "b=1 / b=0", "f=0 / f=1", "f=1 / f=0")
    one, zero = (1.25 if sure else 2.1), 1.75
    rows = [
        [2.5 + one, max(-9.0 + one, 0.0), 0.0, 0.0],
        [3.0 + zero, 1.5 + zero, 0.0, 0.0],
        [2.5 + 2.1, 0.0, 0.0, 0.0],
        [3.0 + 1.75, 0.0, 0.0, 0.0],
    ]
    assert curve.leak == pytest.approx(np.array(rows), rel=1e-13)
    assert curve.exact.tolist() == [
        [sure, sure and tried == 2, True, True],
        [sure, sure and tried == 2, True, True],
        [True, True, True, True],
        [True, True, True, True],
    ]
    near, far = 0b000010, 0b100000
    assert named == [
        (near, near | 64 | 128, 0b001111, 0b001111),
        (near, near | 64, 0b001111, 0b001111),
        (far, 0b110000, 0b110000, 0b110000),
        (far, 0b110000, 0b110000, 0b110000),
    ]


def test_points_beyond_the_sets_that_grew_keep_the_last() -> None:
    """Seven in a row, three exposed at the most: what holds for three holds for all seven less."""
    model = MarkovRandomField.ising(
        {k: 0.1 * k for k in range(9)},
        {**{(k, k + 1): 0.4 + 0.1 * k for k in range(5)}, (6, 7): 1.0},
    )
    curve = attractive_curve(model, largest=1)
    assert curve.exposed.tolist() == [1, 2, 6, 9]
    alone = attractive_curve(model, largest=2)
    for row, pair in enumerate(curve.pairs):
        entry = int(pair[0])
        if entry < 6:
            assert curve.leak[row, 1] == curve.leak[row, 0] == alone.leak[row, 0]
            assert curve.exact[row].tolist() == [True, False, True, True]
            assert curve.splits is not None
            assert curve.splits.describe(row, 1) == {"exposed": [entry]}
            assert alone.exact[row].tolist() == [True] * 4
        assert curve.leak[row, 2] == 0.0 == curve.leak[row, 3]


def test_parts_of_a_field() -> None:
    field = AttractiveField(uneven())
    assert bits(attractive._edge(field, 0b00110)) == [0, 3]
    assert bits(attractive._whole(field, 3)) == [0, 1, 2, 3, 4]
