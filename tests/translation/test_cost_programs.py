"""The linear programs over all datasets: worked examples, certificates, and slower ways."""

from itertools import combinations, product
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.oracles.cost_programs import (
    Array,
    Mask,
    Solved,
    all_losses,
    any_value,
    chain_table,
    difference,
    entry_is,
    factor_table,
    known_losses,
    largest,
    pair_loss,
    shortest,
    slope,
    two_point_starts,
    worst_loss,
)

FIVE = 5.1e-6  # half a unit in the fifth digit, and a little
THREE = np.array([[0.62, 0.28, 0.10], [0.05, 0.75, 0.20], [0.33, 0.07, 0.60]])
START = [0.5, 0.2, 0.3]
STICKY = np.array([[0.9, 0.1], [0.1, 0.9]])
FIRST, SECOND = difference([1, 0, 0], 0.5), difference([0, 1, 0], 0.5)


def worst(table: Array, costs: list[Array]) -> Solved:
    found = largest(all_losses(table, costs))
    assert found.width < 1e-10
    return found


def sides(shape: tuple[int, ...], entry: int, one: list[int], other: list[int]) -> list[Mask]:
    return [entry_is(shape, entry, values) for values in (one, other)]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("costs", "loss"),
    [
        ([FIRST] * 5, 1.22046),
        ([SECOND] * 5, 1.37373),
        ([difference([0, 0.5, 1], 0.5)] * 5, 1.08946),
        ([any_value(3, 0.5)] * 5, 1.47058),
        ([0.6 * (FIRST + SECOND) + any_value(3, 0.1)] * 5, 1.71512),
        ([FIRST, FIRST, FIRST + SECOND, SECOND, SECOND], 1.54467),
    ],
    ids=["count of 0", "count of 1", "sum", "per-entry DP", "three releases", "two windows"],
)
def test_costs_on_a_chain_of_three_states(costs: list[Array], loss: float) -> None:
    assert worst(chain_table(START, [THREE] * 4), costs).lower == pytest.approx(loss, abs=FIVE)


def test_a_count_of_one_of_two_states_is_per_entry_dp() -> None:
    table = chain_table([0.5, 0.5], [STICKY] * 6)
    assert worst(table, [difference([0, 1], 0.2)] * 7).lower == pytest.approx(0.97324, abs=FIVE)


@pytest.mark.nightly
@pytest.mark.parametrize(("weight", "loss"), [(0.5, 1.23711), (1.0, 2.40311)])
def test_a_sum_on_a_kernel_that_is_totally_positive(weight: float, loss: float) -> None:
    kernel = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]])
    table = chain_table([1 / 3] * 3, [kernel] * 4)
    found = worst(table, [difference([0, 0.5, 1], weight)] * 5)
    assert found.lower == pytest.approx(loss, abs=FIVE)


def test_a_cost_that_is_not_symmetric() -> None:
    table = chain_table([0.5, 0.5], [STICKY] * 4)
    losses = all_losses(table, [np.array([[0.0, 0.8], [0.1, 0.0]])] * 5)
    assert losses[2, 0, 1].lower == pytest.approx(2.94678, abs=FIVE)
    assert losses[2, 1, 0].lower == pytest.approx(0.38768, abs=FIVE)


JOINT = np.array(
    [
        [0.7, 0.1, 0.15, 0.05],
        [0.2, 0.55, 0.05, 0.2],
        [0.15, 0.05, 0.6, 0.2],
        [0.05, 0.1, 0.25, 0.6],
    ]
)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("first", "second", "loss", "by_pairs"),
    [
        (0.5, 0.0, 1.28734, 1.36818),
        (0.0, 0.5, 0.43615, 1.29823),
        (0.5, 0.5, 1.61006, 2.63410),
        (1.0, 1.0, 2.90360, 4.94952),
    ],
)
def test_secrets_about_one_of_two_columns(
    first: float, second: float, loss: float, by_pairs: float
) -> None:
    table = chain_table([0.4, 0.2, 0.1, 0.3], [JOINT] * 3)
    costs = [difference([0, 0, 1, 1], first) + difference([0, 1, 0, 1], second)] * 4
    found = [
        worst_loss(table, costs, *sides(table.shape, entry, one, other))
        for entry in range(4)
        for one, other in (([0, 1], [2, 3]), ([2, 3], [0, 1]))
    ]
    assert max(solved.width for solved in found) < 1e-10
    assert max(solved.lower for solved in found) == pytest.approx(loss, abs=FIVE)
    pairs = all_losses(table, costs)
    about = [pairs[i, x, y].lower for i, x, y in pairs if (x < 2) != (y < 2)]
    assert loss < max(about) < by_pairs + FIVE  # `by_pairs` is a bound on the largest pair


@pytest.mark.nightly
def test_two_people_who_infect_each_other() -> None:
    alone, from_other, recovery = 0.1, 0.2, 0.4
    states = list(product((0, 1), repeat=2))
    ill = [
        [1 - recovery if me else 1 - (1 - alone) * (1 - from_other * other) for me, other in order]
        for order in (states, [(b, a) for a, b in states])
    ]
    steps = np.array(
        [
            [np.prod([ill[k][s] if new[k] else 1 - ill[k][s] for k in range(2)]) for new in states]
            for s in range(4)
        ]
    )
    start = [np.prod([0.2 if one else 0.8 for one in state]) for state in states]
    table = chain_table(np.array(start), [steps] * 3)
    costs = [difference([0, 0, 1, 1], 0.5) + difference([0, 1, 0, 1], 0.5)] * 4
    for entry, loss in enumerate((1.14824, 1.32183, 1.35045, 1.16472)):
        both = [
            worst_loss(table, costs, *sides(table.shape, entry, one, other)).lower
            for one, other in (([0, 1], [2, 3]), ([2, 3], [0, 1]))
        ]
        assert max(both) == pytest.approx(loss, abs=FIVE)


# asia, tub, smoke, lung, bronc, either, xray, dysp; state 0 is "yes"
ASIA = (
    ((0,), [0.01, 0.99]),
    ((0, 1), [[0.05, 0.95], [0.01, 0.99]]),
    ((2,), [0.5, 0.5]),
    ((2, 3), [[0.1, 0.9], [0.01, 0.99]]),
    ((2, 4), [[0.6, 0.4], [0.3, 0.7]]),
    ((1, 3, 5), [[[1, 0], [1, 0]], [[1, 0], [0, 1]]]),
    ((5, 6), [[0.98, 0.02], [0.05, 0.95]]),
    ((4, 5, 7), [[[0.9, 0.1], [0.8, 0.2]], [[0.7, 0.3], [0.1, 0.9]]]),
)


@pytest.fixture(scope="module")
def asia() -> Array:
    return factor_table((2,) * 8, [(entries, np.array(t, float)) for entries, t in ASIA])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("asked", "secret", "loss"),
    [
        ((0,), 1, 0.02450),
        ((1,), 5, 0.09900),
        ((2,), 3, 0.23522),
        ((3,), 5, 0.43850),
        ((4,), 7, 0.33768),
        ((5,), 3, 0.49590),
        ((6,), 5, 0.46724),
        ((7,), 4, 0.33951),
    ],
)
def test_one_column_of_a_wide_table_tells_about_another(
    asia: Array, asked: tuple[int, ...], secret: int, loss: float
) -> None:
    costs = [any_value(2, 0.5 if j in asked else 0.0) for j in range(8)]
    others = {
        entry: max(pair_loss(asia, costs, entry, *pair).lower for pair in ((0, 1), (1, 0)))
        for entry in range(8)
        if entry not in asked
    }
    assert max(others, key=others.__getitem__) == secret
    assert others[secret] == pytest.approx(loss, abs=FIVE)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("asked", "loss"),
    [(range(8), 2.01371), ((2, 6), 0.69857), ((6, 7), 0.67543), ((3, 1, 5), 1.00571)],
)
def test_several_columns_of_a_wide_table(asia: Array, asked: tuple[int, ...], loss: float) -> None:
    costs = [any_value(2, 0.5 if j in asked else 0.0) for j in range(8)]
    assert worst(asia, costs).lower == pytest.approx(loss, abs=FIVE)


def grid(rows: int, columns: int, across: float, down: float) -> Array:
    node = {place: k for k, place in enumerate(product(range(rows), range(columns)))}
    coupling = [(i, j, across) for (r, c), i in node.items() if (j := node.get((r, c + 1)))]
    coupling += [(i, j, down) for (r, c), i in node.items() if (j := node.get((r + 1, c)))]
    return factor_table(
        (2,) * len(node),
        [((i, j), np.array([[exp(w), exp(-w)], [exp(-w), exp(w)]])) for i, j, w in coupling],
    )


@pytest.mark.parametrize(
    ("field", "node", "loss"),
    [
        ((3, 3, 0.1, 0.1), 4, 0.73511),
        ((3, 3, 0.2, 0.2), 4, 1.05640),
        ((3, 3, 0.6, 0.6), 4, 3.02587),
        ((2, 3, 0.2, 0.2), 1, 0.87432),
        ((3, 3, 0.8, 0.05), 4, 1.38310),
    ],
)
def test_fields(field: tuple[int, int, float, float], node: int, loss: float) -> None:
    table = grid(*field)
    costs = [any_value(2, 0.5)] * table.ndim
    found = [pair_loss(table, costs, node, *pair) for pair in ((0, 1), (1, 0))]
    assert max(solved.lower for solved in found) == pytest.approx(loss, abs=FIVE)


@pytest.mark.nightly
def test_the_worst_start_is_not_a_point() -> None:
    costs = [any_value(2, 1.0)] * 3
    at = {
        theta: pair_loss(chain_table([theta, 1 - theta], [STICKY] * 2), costs, 1, 0, 1).lower
        for theta in (0.0, 0.38, 1.0)
    }
    assert at[0.0] == pytest.approx(1.77614, abs=FIVE) == at[1.0]
    scan = [
        pair_loss(chain_table(start, [STICKY] * 2), costs, 1, 0, 1).lower
        for start in two_point_starts(2, np.linspace(0, 1, 101).tolist())
    ]
    assert max(scan) == pytest.approx(2.57014, abs=FIVE)
    assert at[0.38] == pytest.approx(max(scan), abs=1e-4)


@pytest.mark.nightly
@pytest.mark.parametrize(("epsilon", "loss"), [(0.2, 0.97561), (1.0, 4.34571)])
def test_an_unknown_start_of_two_states(epsilon: float, loss: float) -> None:
    costs = [any_value(2, epsilon)] * 7
    scan = [
        pair_loss(chain_table([share, 1 - share], [STICKY] * 6), costs, entry, 0, 1).lower
        for share in 1 / (1 + np.exp(np.linspace(-2, 2, 33)))
        for entry in (2, 3)
    ]
    assert max(scan) == pytest.approx(loss, abs=2e-5)  # of a finer scan


@pytest.mark.nightly
def test_an_unknown_start_of_three_states() -> None:
    costs = [any_value(3, 0.7)] * 4
    share = 1 / (1 + exp(1))
    table = chain_table([0, share, 1 - share], [THREE] * 3)
    assert pair_loss(table, costs, 1, 1, 2).lower == pytest.approx(1.99156, abs=FIVE)
    assert worst(table, costs).lower == pytest.approx(1.99156, abs=FIVE)
    for start in two_point_starts(3, [0.0, 0.1, 0.5, 0.9]):
        losses = all_losses(chain_table(start, [THREE] * 3), costs)
        assert largest(losses).upper < 1.99156


@pytest.mark.nightly
@pytest.mark.parametrize(("length", "loss", "unknowing"), [(6, None, None), (8, 4.28867, 4.23858)])
def test_an_adversary_who_knows_other_entries(
    length: int, loss: float | None, unknowing: float | None
) -> None:
    table = chain_table([0.5, 0.5], [STICKY] * (length - 1))
    costs = [any_value(2, 1.0)] * length
    plain = worst(table, costs).lower
    knowing = max(
        pair_loss(table, costs, entry, x, 1 - x, known).lower
        for entry in range(length)
        for x in range(2)
        for known in ends(length, entry)
    )
    if loss is None:
        assert knowing == pytest.approx(plain, abs=1e-9)
    else:
        assert (knowing, plain) == pytest.approx((loss, unknowing), abs=FIVE)


def ends(length: int, entry: int) -> list[dict[int, int]]:
    """What may be known: at most one entry on each side, since the nearest one decides."""
    left = [{}, *({j: b} for j in range(entry) for b in range(2))]
    right = [{}, *({j: b} for j in range(entry + 1, length) for b in range(2))]
    return [{**one, **other} for one in left for other in right]


@pytest.mark.nightly
def test_only_the_nearest_known_entry_on_each_side_matters() -> None:
    table = chain_table(START, [THREE] * 4)
    losses = known_losses(table, [FIRST] * 5, 2, 0, 1)
    assert len(losses) == 4**4
    for known, solved in losses.items():
        values = dict(known)
        nearest: list[int] = [j for j in (1, 3) if j in values]
        nearest += [0] if 1 not in values and 0 in values else []
        nearest += [4] if 3 not in values and 4 in values else []
        fewer = tuple((j, values[j]) for j in sorted(nearest))
        assert solved.lower == pytest.approx(losses[fewer].lower, abs=1e-9)


def spelled_out(table: Array, costs: list[Array], left: Mask, right: Mask) -> float:
    """The largest leak of any vertex: every spanning tree of tight constraints is tried."""
    datasets = list(product(*(range(n) for n in table.shape)))
    arcs = []
    for a, b in product(range(len(datasets)), repeat=2):
        differ = [j for j in range(table.ndim) if datasets[a][j] != datasets[b][j]]
        if len(differ) == 1:
            (j,) = differ
            arcs.append((a, b, costs[j][datasets[a][j], datasets[b][j]]))
    p, q = (table * left).ravel(), (table * right).ravel()
    best = 0.0
    for tree in combinations(arcs, len(datasets) - 1):
        level = {0: 0.0}
        for _ in datasets:
            for a, b, c in tree:
                if a in level and b not in level:
                    level[b] = level[a] - c
                elif b in level and a not in level:
                    level[a] = level[b] + c
        if len(level) == len(datasets) and all(level[a] - level[b] <= c + 1e-9 for a, b, c in arcs):
            g = np.exp([level[k] for k in range(len(datasets))])
            best = max(best, log((p @ g / p.sum()) / (q @ g / q.sum())))
    return best


@pytest.mark.costly
@settings(max_examples=25)
@given(
    weights=arrays(np.float64, (2, 3), elements=st.floats(0.01, 1)),
    first=st.tuples(st.floats(0, 2), st.floats(0, 2)),
    second=arrays(np.float64, (3, 3), elements=st.floats(0, 2)),
)
def test_it_is_what_enumeration_of_vertices_finds(
    weights: Array, first: tuple[float, float], second: Array
) -> None:
    costs = [np.array([[0.0, first[0]], [first[1], 0.0]]), shortest(second)]
    left, right = sides((2, 3), 1, [0], [1, 2])
    found = worst_loss(weights, costs, left, right)
    assert found.width < 1e-9
    assert found.lower == pytest.approx(spelled_out(weights, costs, left, right), abs=1e-9)


@pytest.mark.costly
@settings(max_examples=40)
@given(
    weights=arrays(np.float64, (3, 2, 3), elements=st.sampled_from([0.0, 1e-9, 0.1, 0.5, 1.0])),
    costs=st.tuples(
        arrays(np.float64, (3, 3), elements=st.sampled_from([0.0, 1e-9, 0.3, 1.0, 8.0])),
        arrays(np.float64, (2, 2), elements=st.floats(0, 3)),
        arrays(np.float64, (3, 3), elements=st.floats(0, 3)),
    ),
    x=st.integers(0, 2),
    y=st.integers(0, 2),
)
def test_the_smaller_program_is_the_same(
    weights: Array, costs: tuple[Array, ...], x: int, y: int
) -> None:
    left, right = sides(weights.shape, 0, [x], [y])
    if x == y or not (weights[x].sum() and weights[y].sum()):
        return
    whole = worst_loss(weights, list(costs), left, right)
    small = pair_loss(weights, list(costs), 0, x, y)
    assert max(whole.width, small.width) < 1e-8
    assert whole.lower <= small.upper + 1e-12
    assert small.lower <= whole.upper + 1e-12


@pytest.mark.costly
@settings(max_examples=40)
@given(
    weights=arrays(np.float64, (2, 3, 2), elements=st.floats(0, 1)),
    cost=arrays(np.float64, (3, 3), elements=st.floats(0, 3)),
)
def test_the_mechanism_that_is_found_has_these_costs(weights: Array, cost: Array) -> None:
    costs = [any_value(2, 0.4), shortest(cost), any_value(2, 0.9)]
    if not (weights[0].sum() and weights[1].sum()):
        return
    found = worst_loss(weights, costs, *sides(weights.shape, 0, [0], [1]))
    g = found.mechanism
    for a in product(range(2), range(3), range(2)):
        for b in product(range(2), range(3), range(2)):
            allowed = sum(c[u, v] for c, u, v in zip(costs, a, b, strict=True))
            assert g[a] <= allowed + g[b] + 1e-12


@pytest.mark.costly
@given(
    weights=arrays(np.float64, (2, 3, 2), elements=st.floats(0.01, 1)),
    cost=arrays(np.float64, (3, 3), elements=st.floats(0.1, 3)),
)
def test_the_slope_is_the_limit_of_small_costs(weights: Array, cost: Array) -> None:
    costs = [any_value(2, 0.4), shortest(cost), any_value(2, 0.9)]
    left, right = sides(weights.shape, 1, [0], [2])
    small = 1e-6
    found = worst_loss(weights, [small * c for c in costs], left, right)
    assert found.lower == pytest.approx(small * slope(weights, costs, left, right), rel=1e-4)
