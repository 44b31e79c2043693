"""Trees, sums and spendings of networks, part by part: exact numbers and every field."""

from fractions import Fraction
from itertools import product
from math import fsum, inf, nextafter, prod

import numpy as np
import pytest

from takifugu.costs import Cost
from takifugu.errors import InvalidPrior, Malformed, TooLarge, UnsoundRequest
from takifugu.numeric import Floats
from takifugu.priors.factors import Factor
from takifugu.priors.random_field import MarkovRandomField
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.network import junction_tree as trees
from takifugu.translation.network import spending
from takifugu.translation.network.junction_tree import JunctionTree, junction_tree, least_width
from takifugu.translation.network.partition_function import (
    PartitionSums,
    Weights,
    positions,
)
from takifugu.translation.network.partition_function import (
    product as product_of,
)

pytestmark = pytest.mark.nightly


def field(sizes: tuple[int, ...], edges: list[tuple[int, int]], seed: int = 1) -> MarkovRandomField:
    rng = np.random.default_rng(seed)
    return MarkovRandomField(
        tuple(range(len(sizes))),
        tuple(tuple(range(n)) for n in sizes),
        tuple(rng.uniform(0.5, 2, n) for n in sizes),
        tuple(edges),
        tuple(rng.uniform(0.5, 2, (sizes[i], sizes[j])) for i, j in edges),
    )


def graph(count: int, edges: list[tuple[int, int]]) -> list[set[int]]:
    around: list[set[int]] = [set() for _ in range(count)]
    for i, j in edges:
        around[i].add(j)
        around[j].add(i)
    return around


TREE = JunctionTree((2, 3, 2, 5), ((0, 1), (1, 2), (1, 3)), (-1, 0, 0))


def test_a_tree_knows_its_neighbours_separators_and_states() -> None:
    assert TREE.separator(1, 0) == (1,) and TREE.separator(0, 2) == (1,)
    assert [TREE.around(c) for c in range(3)] == [(1, 2), (0,), (0,)]
    assert TREE.shape((3, 0)) == (5, 2)
    assert [TREE.states(c) for c in range(3)] == [6, 6, 15]
    assert [TREE.holding(v) for v in range(4)] == [(0,), (0, 1, 2), (1,), (2,)]
    chain = JunctionTree((2, 2, 2, 2), ((0, 1), (1, 2), (2, 3)), (-1, 0, 1))
    assert [chain.around(c) for c in range(3)] == [(1,), (0, 2), (1,)]
    small = JunctionTree((9, 2, 2), ((0, 1), (1, 2)), (-1, 0))
    assert small.holding(1) == (1, 0)  # the one with the fewest states first


GRID = [(a, a + 1) for a in (0, 1, 3, 4, 6, 7)] + [(a, a + 3) for a in range(6)]


@pytest.mark.parametrize(
    ("count", "edges", "width"),
    [
        (1, [], 0),
        (3, [], 0),
        (3, [(0, 1), (1, 2)], 1),
        (4, [(0, 1), (1, 2), (2, 3), (3, 0)], 2),
        (5, [(i, j) for i in range(5) for j in range(i)], 4),
        (6, [(i, j) for i in range(4) for j in range(i)] + [(4, 0), (5, 4)], 3),
        (9, GRID, 3),
    ],
)
def test_the_least_width_of_graphs_that_are_known(
    count: int, edges: list[tuple[int, int]], width: int
) -> None:
    given = graph(count, edges)
    before = [set(near) for near in given]
    assert least_width(given) == width
    assert given == before  # what is given is left as it is


def test_badness_counts_what_would_have_to_be_joined() -> None:
    around = graph(5, [(0, 1), (0, 2), (0, 3), (1, 2), (3, 4)])
    sizes = (2, 3, 5, 7, 11)
    # neighbours of 0 are 1, 2, 3: 1-3 and 2-3 are missing
    assert trees._fill(0, around, sizes) == (2, 2 * 3 * 5 * 7)
    assert trees._weight(0, around, sizes) == (2 * 3 * 5 * 7, 2)
    assert trees._fill(1, around, sizes) == (0, 2 * 3 * 5)
    assert trees._fill(3, around, sizes) == (1, 2 * 7 * 11)


def test_cliques_of_graphs_that_are_known() -> None:
    square = graph(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    before = [set(near) for near in square]
    for badness in (trees._fill, trees._weight):
        found = trees._cliques(square, (2, 2, 2, 2), badness, 10**9)
        assert found == [frozenset({0, 1, 3}), frozenset({1, 2, 3})]
        # a clique beyond the limit is the last; one at the limit is not
        assert trees._cliques(square, (2, 2, 2, 2), badness, 7) == found[:1]
        assert trees._cliques(square, (2, 2, 2, 2), badness, 8) == found
    assert square == before
    # 1 is the middle of a large star that the states say to eliminate last
    star = graph(4, [(0, 1), (1, 2), (1, 3)])
    found = trees._cliques(star, (2, 2, 2, 2), trees._fill, 10**9)
    assert {tuple(sorted(one)) for one in found} == {(0, 1), (1, 2), (1, 3)}
    # by weight, the entry with the fewest states in its clique goes first
    chain = graph(3, [(0, 1), (1, 2)])
    assert trees._cliques(chain, (9, 2, 3), trees._weight, 10**9)[0] == frozenset({1, 2})
    assert trees._cliques(chain, (9, 2, 3), trees._fill, 10**9)[0] == frozenset({1, 2})
    assert trees._most(found, (2, 3, 5, 7)) == 21


def test_cliques_are_joined_by_the_largest_separators() -> None:
    cliques = [frozenset({0, 1, 2}), frozenset({2, 3}), frozenset({1, 2, 3, 4}), frozenset({5})]
    joined = trees._joined((2,) * 6, cliques)
    assert joined.cliques == ((0, 1, 2), (1, 2, 3, 4), (2, 3), (5,))
    assert joined.parents == (-1, 0, 1, 0)
    assert joined.sizes == (2,) * 6


def test_trees_of_the_fewest_cells_are_kept_and_groups_are_within_a_clique() -> None:
    model = field((2, 2, 2, 2), [(0, 1), (1, 2), (2, 3)])
    tree = junction_tree(model, largest=4)
    assert sorted(tree.cliques) == [(0, 1), (1, 2), (2, 3)]
    wider = junction_tree(model, largest=8, together=((0, 3),))
    assert any({0, 3} <= set(clique) for clique in wider.cliques)
    assert max(map(len, wider.cliques)) == 3
    with pytest.raises(TooLarge) as caught:
        junction_tree(model, largest=3)
    assert (caught.value.size, caught.value.limit, caught.value.field) == (4, 3, "largest")
    assert "2 entries or more" in str(caught.value) and "4 states" in str(caught.value)
    # the least sizes are counted for the width, so that the first test passes and the tries fail
    uneven = field((2, 2, 9, 9), [(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
    with pytest.raises(TooLarge) as caught:
        junction_tree(uneven, largest=40)
    assert (caught.value.size, caught.value.limit, caught.value.field) == (162, 40, "largest")
    assert "cliques of 3 entries and 162 states" in str(caught.value)
    assert sorted(junction_tree(uneven, largest=162).cliques) == [(0, 2, 3), (1, 2, 3)]


def test_weights_are_rescaled_by_powers_of_two() -> None:
    made = Weights.of((3,), np.array([3.0, 0.0, 0.375]), 5)
    assert made.scope == (3,) and made.roundings == 5
    assert made.table.tolist() == [0.75, 0.0, 0.09375]
    assert made.least == -4  # 0.09375 = 0.75 · 2⁻³, and one below
    assert Weights.of((0,), np.array([1.0, 1.0]), 0).least == -1
    with pytest.raises(InvalidPrior) as caught:
        Weights.of((0,), np.zeros(2), 0)
    assert caught.value.reason == "impossible" and caught.value.field == "factors"


def test_sums_onto_some_entries_count_their_roundings() -> None:
    table = np.arange(1.0, 25.0).reshape(2, 3, 4) / 64
    made = Weights.of((4, 2, 7), table, 3)
    onto = made.onto((7, 4))
    assert onto.scope == (7, 4) and onto.roundings == 3 + 3
    sums = table.sum(axis=1).T
    assert (onto.table / onto.table[0, 0] == sums / sums[0, 0]).all()
    assert 0.5 <= onto.table.max() <= 1
    assert made.onto((4, 2, 7)).roundings == 3 + 1


def test_products_put_axes_in_their_place() -> None:
    sizes = (2, 3, 4)
    one = Weights.of((1, 0), np.arange(1.0, 7.0).reshape(3, 2), 1)
    other = Weights.of((2,), np.arange(1.0, 5.0), 2)
    found = product_of((0, 2, 1), sizes, [one, other])
    assert found.scope == (0, 2, 1) and found.roundings == (1 + 1) + (2 + 1)
    truth = one.table.T[:, None, :] * other.table[None, :, None]
    assert (found.table / found.table.max() == truth / truth.max()).all()
    assert product_of((0,), sizes, []).roundings == 0
    low = Weights((0,), np.array([1.0, 1.0]), 0, -480)
    assert product_of((0,), sizes, [low, low]).table.tolist() == [0.5, 0.5]
    with pytest.raises(TooLarge) as caught:
        product_of((0,), sizes, [low, low, Weights((0,), np.ones(2), 0, -1)])
    assert (caught.value.field, caught.value.reason) == ("factors", "range")


def everything(
    model: MarkovRandomField, extra: dict[int, Floats]
) -> dict[tuple[int, ...], Fraction]:
    found = {}
    for x in product(*(range(len(states)) for states in model.states)):
        cells = [
            float(factor.table[tuple(x[v] for v in factor.scope)]) for factor in model.factors()
        ]
        cells += [float(table[x[v]]) for v, table in extra.items()]
        found[x] = prod((Fraction(one) for one in cells), start=Fraction(1))
    return found


@pytest.mark.parametrize("tilted", [False, True])
def test_sums_are_within_their_roundings_of_the_exact_ones(tilted: bool) -> None:
    model = field((2, 3, 2, 2), [(0, 1), (1, 2), (2, 3), (3, 0)], seed=4)
    extra = {1: np.array([1.0, 3.0, 0.5])} if tilted else {}
    tree = junction_tree(model, largest=10**6)
    sums = PartitionSums(tree, model.factors(), extra)
    exact = everything(model, extra)
    for v in range(4):
        found = sums.entry(v)
        assert found.scope == (v,)
        truth = [sum(w for x, w in exact.items() if x[v] == k) for k in range(len(found.table))]
        off = 2 * found.roundings * Fraction(1, 2**53)
        for k, weight in enumerate(found.table.tolist()):
            ratio = Fraction(weight) / Fraction(float(found.table[0])) * truth[0] / truth[k]
            assert 1 - off <= ratio <= 1 + off
        assert 4 * tilted < found.roundings < 80
    for c, scope in enumerate(tree.cliques):
        whole = sums.clique(c)
        assert whole.scope == scope
        for x in product(*(range(n) for n in tree.shape(scope))):
            truth_of = sum(w for y, w in exact.items() if tuple(y[v] for v in scope) == x)
            first = sum(w for y, w in exact.items() if not any(y[v] for v in scope))
            ratio = whole.table[x] / whole.table[(0,) * len(scope)]
            assert ratio == pytest.approx(float(truth_of / first), rel=1e-13)


def test_a_clique_without_one_side_leaves_that_side_out() -> None:
    model = field((2, 2, 2), [(0, 1), (1, 2)], seed=7)
    tree = junction_tree(model, largest=100)
    sums = PartitionSums(tree, model.factors())
    (one, other) = range(2)
    for c, d in ((one, other), (other, one)):
        inside = sums.clique(c, but=d)
        sent = sums.sent(c, d)
        assert sent.scope == (1,)
        onto = inside.onto((1,))
        assert sent.table.tolist() == onto.table.tolist() and sent.roundings == onto.roundings
        both = inside.onto((1,)).table * sums.sent(d, c).table
        assert both / both.sum() == pytest.approx(
            sums.entry(1).table / sums.entry(1).table.sum(), rel=1e-14
        )
    # one table after another: the rounding of each is counted, and of the product
    assert sums.clique(0).roundings == sums._own[0].roundings + sums.sent(1, 0).roundings + 2


def test_a_table_goes_to_the_smallest_clique_that_holds_it() -> None:
    tree = JunctionTree((2, 2, 2), ((0, 1, 2), (1, 2)), (-1, 0))
    factors = (
        Factor((1,), np.array([0.5, 1.0])),
        Factor((2, 1), np.array([[1.0, 0.5], [0.25, 1.0]])),
        Factor((0, 1, 2), np.ones((2, 2, 2))),
    )
    sums = PartitionSums(tree, factors)
    assert [own.roundings for own in sums._own] == [1, 2]


def test_states_are_numbered_in_the_order_of_the_part() -> None:
    assert positions((4, 1), (1, 4), (0, 2, 0, 0, 3)).tolist() == [0, 3, 1, 4, 2, 5]
    assert positions((4, 1), (4,), (0, 2, 0, 0, 3)).tolist() == [0, 0, 1, 1, 2, 2]


def test_spendings_are_one_number_a_list_or_a_mapping() -> None:
    names = ("a", "b", "c")
    assert spending.spent_per_entry(names, 0.5).tolist() == [0.5, 0.5, 0.5]
    assert spending.spent_per_entry(names, [1, 0, 2]).tolist() == [1.0, 0.0, 2.0]
    given: dict[str | int, float] = {"c": 3.0, "a": 1.0, "b": 0.0}
    assert spending.spent_per_entry(names, given).tolist() == [1.0, 0.0, 3.0]
    for bad, said in (
        ({"a": 1.0, "b": 1.0}, "leaves out entry 'c'"),
        ({"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}, "names 'd'"),
        ([1.0, 2.0], "has shape (2,)"),
        ([1.0, -1e-9, 0.0], "negative"),
        ([1.0, inf, 0.0], "infinite"),
        ([1.0, float("nan"), 0.0], "negative"),
        ("much", "not a number"),
        ([1.0, None, "x"], "not a number"),
    ):
        with pytest.raises(Malformed) as caught:
            spending.spent_per_entry(names, bad)  # type: ignore[arg-type]
        assert caught.value.field == "epsilon" and said in str(caught.value)


def test_costs_of_entries_are_matrices_no_larger_than_their_scalars() -> None:
    model = field((2, 3), [(0, 1)])
    first, second = spending.cost_matrices(model, [0.5, 0.25])
    assert first.tolist() == [[0.0, 0.5], [0.5, 0.0]]
    assert second.tolist() == (0.25 * (1 - np.eye(3))).tolist()
    third = Fraction(1, 3)
    costs = EntryCosts(by_entry=(Cost.any(third), Cost()))
    first, second = spending.cost_matrices(model, costs)
    assert Fraction(float(first[0, 1])) >= third and first[0, 1] <= nextafter(1 / 3, 1)
    assert first[0, 0] == 0.0 and not second.any()
    same = spending.cost_matrices(field((2, 2), [(0, 1)]), EntryCosts((Cost.any(1),)))
    assert same[0] is same[1]
    with pytest.raises(UnsoundRequest) as caught:
        spending.cost_matrices(model, EntryCosts(by_entry=(Cost.any(1),)))
    assert (caught.value.given, caught.value.needed, caught.value.field) == (1, 2, "profile")
    assert spending.largest_costs([first, second, np.zeros((0, 0))]).tolist() == [
        first[0, 1],
        0.0,
        0.0,
    ]
    nothing = spending.cost_matrices(model, EntryCosts(()))
    assert not nothing[0].any()


def test_losses_of_a_group_add_up_and_a_single_one_is_itself() -> None:
    assert spending.group_loss([]) == 0.0 and spending.group_loss([0.0, 0.0]) == 0.0
    assert spending.group_loss([0.0, 0.1, 0.0]) == 0.1
    assert spending.group_loss([0.1, 0.0, 0.2]) == nextafter(fsum([0.1, 0.2]), inf)


def test_an_attainable_cost_is_0_both_ways_or_neither() -> None:
    plain = np.array([[0.0, 1.0], [2.0, 0.0]])
    assert spending.attainable_cost(plain) is plain
    one_way = np.array([[0.0, 0.0, 5.0], [1.0, 0.0, 3.0], [4.0, 9.0, 0.0]])
    # 0 and 1 cannot be told apart: either way to 2 is the shorter
    assert spending.attainable_cost(one_way).tolist() == [
        [0.0, 0.0, 3.0],
        [0.0, 0.0, 3.0],
        [4.0, 4.0, 0.0],
    ]
