"""Steps along a junction tree, part by part: against linear programs and plain loops."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from takifugu._rounding import gamma
from takifugu.numeric import Floats
from takifugu.translation.network import coupling_steps
from takifugu.translation.network.coupling_steps import (
    AnyTerm,
    CappedTerms,
    CouplingSteps,
    PossibleStates,
    Term,
)
from takifugu.translation.network.partition_function import Weights
from tests.translation.test_coupling_loops import coupled

pytestmark = pytest.mark.nightly

SIZES = (2, 3, 2)


def law_of(scope: tuple[int, ...], seed: int, *, zeros: int = 0) -> PossibleStates:
    rng = np.random.default_rng(seed)
    table = rng.uniform(0.1, 1, tuple(SIZES[v] for v in scope))
    table.flat[rng.permutation(table.size)[:zeros]] = 0.0
    return PossibleStates.of(Weights(scope, table, 3, -9))


def costs(seed: int, size: int, scale: float = 1.0) -> Floats:
    cost = np.random.default_rng(seed).uniform(0.3, 1, (size, size)) * scale
    np.fill_diagonal(cost, 0.0)
    return cost


def moved(law: PossibleStates, terms: list[Any], sides: tuple[Any, Any]) -> float:
    """The least bound between two lists of states, by a linear program."""
    p, q = (law.weight[side] / law.weight[side].sum() for side in sides)
    cost = np.zeros((len(p), len(q)))
    for (a, u), (b, v) in product(enumerate(sides[0]), enumerate(sides[1])):
        for group in terms:
            total = 0.0
            for term in group.parts:
                numbers = law.number(term.scope, SIZES)
                rows = list(range(10**3)) if term.states is None else term.states.tolist()
                total += term.cost[rows.index(numbers[u]), rows.index(numbers[v])]
            cost[a, b] += min(total, group.most) if len(group.parts) > 1 else total
    return coupled(p, q, cost)


def test_terms_know_their_rows_their_parts_and_their_most() -> None:
    term = Term((4, 2), np.array([[0.0, 2.5], [1.0, 0.0]]), np.array([3, 7]))
    assert term.rows(np.array([7, 3, 7])).tolist() == [1, 0, 1]
    assert Term((1,), np.zeros((9, 9))).rows(np.array([5, 2])).tolist() == [5, 2]
    assert term.parts == (term,) and term.most == 2.5
    assert Term((1,), np.zeros((0, 0))).most == 0.0
    both = CappedTerms((Term((4,), np.ones((2, 2))), Term((1, 4), np.ones((2, 2)))), 0.5)
    assert both.scope == (1, 4) and both.most == 0.5


def test_possible_states_are_those_of_the_table_that_are_not_0() -> None:
    table = np.array([[0.5, 0.0, 1.0], [0.0, 0.25, 0.125]])
    law = PossibleStates.of(Weights((2, 1), table, 7, -9))
    assert law.scope == (2, 1) and law.roundings == 7
    assert law.weight.tolist() == [0.5, 1.0, 0.25, 0.125]
    assert law.values.tolist() == [[0, 0, 1, 1], [0, 2, 1, 2]]
    sizes = (9, 3, 2)
    assert law.number((1, 2), sizes).tolist() == [0, 4, 3, 5]
    assert law.number((2, 1), sizes).tolist() == [0, 2, 4, 5]
    assert law.number((), sizes).tolist() == [0, 0, 0, 0]
    onto = law.onto((1,), sizes)
    assert onto.scope == (1,) and onto.values.tolist() == [[0, 1, 2]]
    assert onto.weight.tolist() == [0.5, 0.25, 1.125] and onto.roundings == 7 + 2
    only = law.only((1,), sizes, np.array([2, 0]))
    assert only.weight.tolist() == [0.5, 1.0, 0.125] and only.roundings == 7
    assert only.values.tolist() == [[0, 0, 1], [0, 2, 2]] and only.scope == (2, 1)
    assert law.most((1,), sizes) == 2 and law.most((1, 2), sizes) == 1 and law.most((), sizes) == 4


@pytest.mark.parametrize(
    ("shape", "there"),
    [((5,), [1, 3]), ((2, 3), [4]), ((3, 3), [0, 5]), ((2, 2, 3), [3, 11]), ((2, 2), [0, 1, 2, 3])],
)
def test_every_state_has_a_possible_one_in_the_fewest_changes(
    shape: tuple[int, ...], there: list[int]
) -> None:
    near = coupling_steps._nearest_possible(shape, np.array(there))
    assert near.shape == shape
    possible = [np.unravel_index(one, shape) for one in there]
    for state in product(*map(range, shape)):
        away = [sum(a != b for a, b in zip(state, one, strict=True)) for one in possible]
        assert away[near[state]] == min(away)


def test_a_line_is_filled_from_its_nearest_states() -> None:
    near = coupling_steps._nearest_possible((6,), np.array([1, 3]))
    assert near.tolist() == [0, 0, 0, 1, 1, 1]
    assert coupling_steps._nearest_possible((3,), np.array([2])).tolist() == [0, 0, 0]


def test_weights_of_any_size_are_divided_by_their_sum() -> None:
    for scale in (2.0**-1000, 1.0, 2.0**1000):
        found = coupling_steps._normalised(np.array([3.0, 1.0, 4.0]) * scale)
        assert found.tolist() == [0.375, 0.125, 0.5]


@pytest.mark.parametrize("cores", [None, 1, 3, 50])
@pytest.mark.parametrize("each", [0.0, 1e9])
def test_work_is_shared_so_that_each_problem_is_done_once(
    cores: int | None, each: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    for count in (1, 2, 7, 40):
        done = np.zeros(count, dtype=int)

        def work(begin: int, end: int, done: Any = done) -> None:
            done[begin:end] += 1

        coupling_steps._share(work, count, each)
        assert (done == 1).all()


@pytest.mark.parametrize("simple", [False, True])
@pytest.mark.parametrize("looked", [0, 30_000_000])
def test_bounds_between_sides_are_never_below_the_best_coupling(
    simple: bool, looked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coupling_steps, "LOOKED_AT", looked)
    law = law_of((0, 1, 2), 3, zeros=3)
    capped = CappedTerms((Term((0,), costs(1, 2)), Term((2,), costs(2, 2))), 0.7)
    terms: list[AnyTerm] = [Term((1,), costs(3, 3)), capped, Term((0, 1), costs(5, 6, 0.1))]
    value = law.number((0,), SIZES)
    sides = [np.flatnonzero(value == 0), np.arange(2), np.flatnonzero(value == 1)]
    lefts, rights = np.array([0, 2, 2]), np.array([2, 0, 2])
    steps = CouplingSteps(SIZES)
    found = steps.between(law, terms, sides, lefts, rights, apart=(0,), simple=simple)
    for n in range(3):
        truth = moved(law, terms, (sides[lefts[n]], sides[rights[n]]))
        assert found[n] >= truth - 1e-9
        if not simple:
            assert found[n] == pytest.approx(truth, abs=1e-7)
    if simple:
        exact = steps.between(law, terms, sides, lefts, rights)
        assert (found >= exact - 1e-9).all() and found[0] < 0.7 + 1.0 + 0.1 + 1e-9
        # entries apart are not compared: the rest stays where it is, and pays for them alone
        alone = [Term((0,), costs(1, 2))]
        moving = steps.between(
            law_of((0, 1, 2), 4), alone, [np.arange(6), np.arange(6, 12)],
            np.array([0]), np.array([1]), apart=(0,), simple=True,
        )  # fmt: skip
        assert moving[0] == pytest.approx(costs(1, 2)[0, 1], rel=1e-9)


def test_what_is_moved_nowhere_or_at_no_cost_is_0() -> None:
    law, none = law_of((0, 1), 1), np.zeros(0, dtype=np.int64)
    steps, sides = CouplingSteps(SIZES), [np.arange(2), np.arange(2, 4)]
    assert steps.between(law, [Term((0,), costs(1, 2))], sides, none, none).tolist() == []
    assert steps.between(law, [], sides, np.array([0]), np.array([1])).tolist() == [0.0]
    assert steps.message(law, [], (0,)) == []
    assert steps.message(law, [Term((0,), costs(1, 2))], ()) == []


def test_the_roundings_of_a_law_are_added_to_every_bound() -> None:
    law = law_of((0, 1), 6)
    terms, sides = [Term((1,), costs(4, 3))], [np.arange(3), np.arange(3, 6)]
    steps, pair = CouplingSteps(SIZES), (np.array([0]), np.array([1]))
    many = PossibleStates(law.scope, law.values, law.weight, 2**40)
    rough = steps.between(many, terms, sides, *pair)[0]
    exact = steps.between(law, terms, sides, *pair)[0]
    assert rough - exact == pytest.approx(5 * gamma(2**40 + 3), rel=1e-9, abs=0)


@pytest.mark.parametrize("zeros", [0, 4])
def test_a_message_is_the_bound_between_all_states_that_are_kept(zeros: int) -> None:
    law = law_of((0, 1, 2), 8, zeros=zeros)
    terms = [Term((2,), costs(1, 2)), Term((1, 2), costs(2, 6, 0.3))]
    (found,) = CouplingSteps(SIZES).message(law, terms, (0, 1))
    assert isinstance(found, Term) and found.scope == (0, 1) and found.states is not None
    place = law.number((0, 1), SIZES)
    assert found.states.tolist() == sorted(set(place.tolist()))
    for (a, one), (b, other) in product(enumerate(found.states), repeat=2):
        if a == b:
            assert found.cost[a, b] == 0.0
            continue
        sides = np.flatnonzero(place == one), np.flatnonzero(place == other)
        assert found.cost[a, b] == pytest.approx(moved(law, terms, sides), abs=1e-7)
    # no message is above what it is said to be at most
    (cut,) = CouplingSteps(SIZES).message(law, terms, (0, 1), most=0.2)
    assert cut.cost == pytest.approx(np.minimum(found.cost, 0.2), rel=1e-12)  # type: ignore[union-attr]


def test_pairs_that_are_too_many_are_those_that_differ_in_few_entries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps, there = CouplingSteps(SIZES), np.arange(12)
    widths = [2] * 12

    def pairs() -> set[tuple[int, int]] | None:
        found = steps._chosen_pairs((0, 1, 2), there, widths)
        return None if found is None else set(zip(*(one.tolist() for one in found), strict=True))

    values = list(product(range(2), range(3), range(2)))
    away = {
        (a, b): sum(x != y for x, y in zip(values[a], values[b], strict=True))
        for a, b in product(range(12), repeat=2)
        if a != b
    }
    each = 4 + coupling_steps.EACH
    for most in (3, 2, 1):
        wanted = {pair for pair, many in away.items() if many <= most}
        monkeypatch.setattr(coupling_steps, "SOLVED", each * len(wanted))
        assert pairs() == wanted
        monkeypatch.setattr(coupling_steps, "SOLVED", each * len(wanted) - 1)
        assert pairs() == ({pair for pair, many in away.items() if many < most} or None)
    monkeypatch.setattr(coupling_steps, "SOLVED", each * len(away) - 1)
    monkeypatch.setattr(coupling_steps, "PATHS", 12)
    assert pairs() is not None
    monkeypatch.setattr(coupling_steps, "PATHS", 11)
    assert pairs() is None  # too many for shortest paths
    monkeypatch.setattr(coupling_steps, "SOLVED", each * len(away))
    assert pairs() == set(away)  # which need none
    monkeypatch.setattr(coupling_steps, "PAIRS", 144)
    assert pairs() == set(away)
    monkeypatch.setattr(coupling_steps, "PAIRS", 143)
    assert pairs() is None
    monkeypatch.setattr(coupling_steps, "PAIRS", 10**6)
    monkeypatch.setattr(coupling_steps, "SOLVED", 1)
    one = steps._chosen_pairs((1,), np.arange(3), [5, 5, 5])
    assert one is not None and len(one[0]) == 6  # of one entry always all


@pytest.mark.parametrize("zeros", [0, 3])
def test_a_message_by_way_of_others_is_a_shortest_path(
    zeros: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = law_of((0, 1, 2), 9, zeros=zeros)
    terms = [Term((2,), costs(1, 2)), Term((1, 2), costs(2, 6, 0.3))]
    steps = CouplingSteps(SIZES)
    (whole,) = steps.message(law, terms, (0, 1))
    assert isinstance(whole, Term) and whole.states is not None
    count = len(whole.states)
    values = np.array(np.unravel_index(whole.states, (2, 3)))
    away = (values[:, :, None] != values[:, None, :]).sum(axis=0)
    chosen = np.nonzero(away == 1)
    assert len(chosen[0]) < count * (count - 1)
    monkeypatch.setattr(steps, "_chosen_pairs", lambda *_: chosen)
    for most in (np.inf, 0.25):
        (found,) = steps.message(law, terms, (0, 1), most=most)
        lengths = np.full((count, count), most)
        np.fill_diagonal(lengths, 0.0)
        lengths[chosen] = np.minimum(whole.cost[chosen], most)
        for k in range(count):
            lengths = np.minimum(lengths, lengths[:, k : k + 1] + lengths[k : k + 1])
        finite = np.isfinite(lengths)
        assert found.cost[finite] == pytest.approx(lengths[finite], rel=1e-9)  # type: ignore[union-attr]
        assert (found.cost >= np.minimum(whole.cost, most) - 1e-9).all()  # type: ignore[union-attr]


def test_states_that_no_path_joins_are_coupled_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only (0, 0) and (1, 1) of two entries are possible: they differ in both."""
    table = np.zeros((2, 3, 2))
    table[0, 0], table[1, 1] = [0.25, 0.75], [0.5, 0.5]
    law = PossibleStates.of(Weights((0, 1, 2), table, 1, -9))
    terms = [Term((2,), costs(1, 2))]
    (whole,) = CouplingSteps(SIZES).message(law, terms, (0, 1))
    monkeypatch.setattr(coupling_steps, "SOLVED", coupling_steps.EACH)
    (found,) = CouplingSteps(SIZES).message(law, terms, (0, 1))
    assert isinstance(found, Term) and isinstance(whole, Term)
    assert found.cost == pytest.approx(whole.cost, rel=1e-12) and found.cost[0, 1] > 0.01


@pytest.mark.parametrize("zeros", [0, 4])
@pytest.mark.parametrize("solved", [0, 10**9])
def test_a_message_in_parts_is_the_largest_over_the_others(
    zeros: int, solved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = law_of((0, 1, 2), 12, zeros=zeros)
    terms = [Term((2,), costs(1, 2)), Term((1, 2), costs(2, 6, 0.3))]
    steps = CouplingSteps(SIZES)
    monkeypatch.setattr(coupling_steps, "PAIRS", 0)
    monkeypatch.setattr(coupling_steps, "SOLVED", solved)
    (found,) = steps.message(law, terms, (0, 1))
    assert isinstance(found, CappedTerms)
    assert found.most == pytest.approx(terms[0].most + terms[1].most, rel=1e-14)
    place = law.number((0, 1), SIZES)
    there = np.unique(place)
    sides = [np.flatnonzero(place == one) for one in there]
    near = coupling_steps._nearest_possible((2, 3), there)
    assert [term.scope for term in found.parts] == [(0,), (1,)]
    for axis, term in enumerate(found.parts):
        truth = np.zeros((SIZES[axis], SIZES[axis]))
        for a, b in product(range(SIZES[axis]), repeat=2):
            for context in range(SIZES[1 - axis]):
                one, other = (near[(x, context) if axis == 0 else (context, x)] for x in (a, b))
                if one != other:
                    bound = steps.between(
                        law, terms, sides, np.array([one]), np.array([other]),
                        apart=(0, 1), simple=not solved,
                    )  # fmt: skip
                    truth[a, b] = max(truth[a, b], bound[0])
        assert term.states is None
        assert term.cost == pytest.approx(np.minimum(truth, found.most), rel=1e-12)
    (cut,) = steps.message(law, terms, (0, 1), most=0.05)
    assert cut.most == 0.05 and max(term.most for term in cut.parts) == 0.05
    one = steps._in_parts(law, terms, (1,), np.arange(3), sides[:3], 9.0)
    assert len(one) == 1 and isinstance(one[0], Term) and one[0].scope == (1,)


def test_entries_are_coupled_ahead_until_few_states_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    law = law_of((0, 1, 2), 14)
    terms = [Term((1,), costs(1, 3)), Term((2,), costs(2, 2)), Term((0,), costs(3, 2))]
    steps = CouplingSteps(SIZES)
    for most in (6, 7):
        same, kept = steps.peeled(law, terms, (0,), most=most)
        assert same is law and kept is terms
    left, rest = steps.peeled(law, terms, (0,), most=5)  # both at once: 6 states are few enough
    assert left.scope == (0,) and [term.scope for term in rest] == [(0,), (0,)]
    monkeypatch.setattr(coupling_steps, "AT_ONCE", 5)
    left, rest = steps.peeled(law, terms, (0,), most=5)  # the larger first, then few are left
    assert left.scope == (0, 2) and [term.scope for term in rest] == [(2,), (0,), (0, 2)]
    assert left.weight == pytest.approx(law.onto((0, 2), SIZES).weight)
    (message,) = steps.message(law, terms[:1], (0, 2))
    assert rest[-1].cost.tolist() == message.cost.tolist()  # type: ignore[union-attr]
    # few possible states for each that is kept are few, whatever the sizes say
    table = np.zeros((2, 3, 2))
    table[:, 0, 0] = table[:, 1, 1] = 1.0
    sparse = PossibleStates.of(Weights((0, 1, 2), table, 1, -9))
    same, kept = steps.peeled(sparse, terms, (0,), most=2)
    assert same is sparse and kept is terms
    assert steps.peeled(sparse, terms, (0,), most=1)[0] is not sparse
