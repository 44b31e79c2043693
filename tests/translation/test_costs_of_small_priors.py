"""Costs under priors that are listed or independent: linear programs, closed forms and edges."""

import math
from itertools import product
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest

from takifugu.costs import NOTHING, Cost, Matrix
from takifugu.errors import UnsoundRequest
from takifugu.numeric import Floats
from takifugu.priors.explicit import Explicit
from takifugu.priors.independent import IndependentEntries
from takifugu.priors.secrets import Secrets
from takifugu.priors.universe import Tables
from takifugu.translation import explicit_transport
from takifugu.translation.bounds import Binding, Bound
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.explicit_transport import ExplicitTransport
from takifugu.translation.independent_transport import IndependentTransport
from tests.oracles.transport import loss_by_potentials

pytestmark = pytest.mark.nightly

SHAPE = (2, 3, 2)


def metric(rng: np.random.Generator, size: int, scale: float = 1.0) -> Floats:
    """Costs that no detour makes cheaper."""
    cost = rng.uniform(0.2, 1.0, (size, size)) * scale
    np.fill_diagonal(cost, 0.0)
    for k in range(size):
        cost = np.minimum(cost, cost[:, k : k + 1] + cost[k : k + 1])
    return cost


def worst(p: Floats, q: Floats, cost: Floats) -> float:
    """The largest log E_p[g] / E_q[g] that a cost allows, of weights divided by their sums."""
    return loss_by_potentials(p / p.sum(), q / q.sum(), cost)


def between(matrices: list[Floats]) -> Floats:
    """The costs between all datasets: sums over entries."""
    rows = list(product(*(range(len(one)) for one in matrices)))
    return np.array(
        [[sum(m[a, b] for m, a, b in zip(matrices, x, y, strict=True)) for y in rows] for x in rows]
    )


def datasets(seed: int) -> tuple[Floats, list[Floats], Any, Any]:
    """A law with zeros, costs, and the two sides of a secret about the middle entry."""
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.ones(12))
    law[rng.permutation(12)[:2]] = 0.0
    law /= law.sum()
    matrices = [metric(rng, n) for n in SHAPE]
    middle = np.indices(SHAPE)[1].ravel()
    return law, matrices, middle == 0, middle == 2


@pytest.mark.parametrize("seed", range(4))
def test_datasets_are_coupled_and_told_apart_as_a_linear_program_says(seed: int) -> None:
    law, matrices, left, right = datasets(seed)
    if seed % 2:  # nothing is charged between two values: they count as one
        matrices[2][:] = 0.0
        matrices[1][0, 1] = matrices[1][1, 0] = 0.0
        matrices[1][0, 2] = matrices[1][1, 2] = 0.7
        matrices[1][2, 0] = matrices[1][2, 1] = 0.4
    merged = explicit_transport._MergedDatasets(law, SHAPE, matrices)
    truth = worst(np.where(left, law, 0), np.where(right, law, 0), between(matrices))
    upper = merged.upper(left, right)
    assert upper is not None
    assert truth - 1e-9 <= upper <= truth + 1e-6
    lower = merged.lower(left, right)
    assert truth - 1e-6 <= lower <= min(truth + 1e-9, upper)
    if seed % 2:
        assert merged._sizes == (2, 2, 1)


def test_values_that_cost_nothing_both_ways_are_one_class() -> None:
    matrix = np.ones((4, 4)) - np.eye(4)
    matrix[1, 3] = matrix[3, 1] = 0.0
    matrix[0, 2] = 0.0  # one way only
    assert explicit_transport._classes(matrix).tolist() == [0, 1, 2, 1]


def test_a_side_that_cannot_happen_and_sides_of_too_many_datasets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    law, matrices, left, right = datasets(7)
    merged = explicit_transport._MergedDatasets(law, SHAPE, matrices)
    nobody = np.zeros(12, dtype=np.bool_)
    assert merged.upper(left, nobody) == merged.upper(nobody, right) == 0.0
    assert merged.lower(left, nobody) == merged.lower(nobody, right) == 0.0
    many = max(int((law[left] > 0).sum()), int((law[right] > 0).sum()))
    monkeypatch.setattr(explicit_transport, "MOST_COUPLED", many)
    assert merged.upper(left, right) is not None
    monkeypatch.setattr(explicit_transport, "MOST_COUPLED", many - 1)
    assert merged.upper(left, right) is None
    total = sum(float(one.max()) for one in matrices)
    for name, least in (("MOST_SOLVED", 12.0), ("STEEPEST", total)):
        monkeypatch.setattr(explicit_transport, name, least)
        assert merged.lower(left, right) > 0.1
        monkeypatch.setattr(explicit_transport, name, least - 1e-9)
        assert merged.lower(left, right) == 0.0
        monkeypatch.setattr(explicit_transport, name, 10.0**6)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_a_solver_says_its_mechanism_is_made_admissible(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers at random instead of a solution: lowered until no change costs too much."""
    law, matrices, left, right = datasets(seed)
    said = np.random.default_rng(seed).exponential(1.0, 12) ** 3
    said[0] = 0.0
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: SimpleNamespace(x=said))
    merged = explicit_transport._MergedDatasets(law, SHAPE, matrices)
    cost = between(matrices)
    g = np.array([min(max(said[y], 1e-300) * math.exp(cost[y, x]) for y in range(12))
                  for x in range(12)])  # fmt: skip
    swapped = np.array([min(max(said[y], 1e-300) * math.exp(cost[x, y]) for y in range(12))
                        for x in range(12)])  # fmt: skip
    leaks = []
    for one in (g, swapped):
        p, q = np.where(left, law, 0), np.where(right, law, 0)
        leaks.append(math.log((p @ one) / p.sum()) - math.log((q @ one) / q.sum()))
    found = merged.lower(left, right)
    assert found == pytest.approx(max(leaks[1], 0.0), abs=1e-9)
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: SimpleNamespace(x=None))
    assert merged.lower(left, right) == 0.0


@pytest.mark.parametrize("cost", [0.25, 1.0, 20.0])
def test_what_is_leaked_is_said_to_be_less_by_the_error_of_costs(cost: float) -> None:
    """One entry of two values: what leaks is its cost, less a part in 10¹²."""
    matrix = np.array([[0.0, cost], [cost, 0.0]])
    merged = explicit_transport._MergedDatasets(np.array([0.25, 0.75]), (2,), [matrix])
    found = merged.lower(np.array([True, False]), np.array([False, True]))
    assert 3e-12 * (1 + cost) <= cost - found <= 1e-10 * (1 + cost)


def listed() -> ExplicitTransport:
    universe = Tables.of({"a": ("x", "y"), "b": ("u", "v", "w")})
    return ExplicitTransport(
        Explicit(universe, np.array([0.1, 0.2, 0.1, 0.2, 0.1, 0.3])), Secrets()
    )


def test_a_listed_prior_says_where_a_cost_binds_and_what_each_entry_loses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    transport = listed()
    assert transport.size == 2
    costs = EntryCosts(by_entry=(Cost.any("0.25"), Cost.any("0.75")))
    bound = transport.valued(costs)
    law = np.array([0.1, 0.2, 0.1, 0.2, 0.1, 0.3])
    cost = between([0.25 * (1 - np.eye(2)), 0.75 * (1 - np.eye(3))])
    rows = np.indices((2, 3)).reshape(2, -1)
    losses: dict[tuple[str, str, str], float] = {}
    for k, (entry, values) in enumerate((("a", "xy"), ("b", "uvw"))):
        for (i, one), (j, other) in product(enumerate(values), repeat=2):
            if i != j:
                p, q = np.where(rows[k] == i, law, 0), np.where(rows[k] == j, law, 0)
                losses[entry, one, other] = worst(p, q, cost)
    truth = [max(v for key, v in losses.items() if key[0] == entry) for entry in "ab"]
    assert bound.by_entry == pytest.approx(truth, abs=1e-6)
    assert bound.value == pytest.approx(max(truth), abs=1e-6)
    assert bound.binding is not None and bound.binding.entry == "b"
    key = "b", bound.binding.left, bound.binding.right
    assert losses[key] == pytest.approx(max(truth), abs=1e-6)
    found = transport.valued_witness(costs, bound)
    assert found.binding == bound.binding
    assert max(truth) - 1e-5 <= found.leak <= bound.value
    assert transport.valued_witness(costs, Bound(1.0, Binding("u", "z", entry="b"))).leak == 0.0
    with pytest.raises(UnsoundRequest) as caught:
        transport.valued(EntryCosts(by_entry=(NOTHING,)))
    assert (caught.value.field, caught.value.given, caught.value.needed) == ("profile", 1, 2)
    monkeypatch.setattr(explicit_transport, "MOST_COUPLED", 1)
    scalars = transport.valued(costs)  # too many: costs count as the scalars that cover them
    assert scalars.value == pytest.approx(transport.profile(np.array([0.25, 0.75])).value)
    assert scalars.value >= bound.value - 1e-6


def test_a_listed_prior_under_a_number_for_each_entry() -> None:
    transport = listed()
    bound = transport.profile(np.array([0.25, 0.75]))
    costs = EntryCosts(by_entry=(Cost.any("0.25"), Cost.any("0.75")))
    assert bound.by_entry == pytest.approx(transport.valued(costs).by_entry, abs=1e-6)
    assert bound.value == max(bound.by_entry)
    assert bound.binding is not None and bound.binding.entry == "b"
    found = transport.witness(np.array([0.25, 0.75]), bound)
    assert bound.value - 1e-6 <= found.leak <= bound.value and found.mechanism is not None
    same = transport.uniform(0.5)
    assert same.value == transport.profile(np.full(2, 0.5)).value
    assert transport.largest(same.value) == pytest.approx(0.5, rel=1e-6)


PRIOR = IndependentEntries(
    {"a": {0: 0.25, 1: 0.5, 2: 0.125, 3: 0.125}, "b": {0: 0.5, 1: 0.5, 2: 0.0}}
)
GROUPS = Secrets(pairs=(((0, 1), (2, 3)),), entries=("a",))


def of_matrix(matrix: list[list[float]]) -> Cost:
    return Cost.of({Matrix(list(range(len(matrix))), matrix): 1})


def leaks(law: Floats, cost: Floats) -> list[mpmath.mpf]:
    """Of {0, 1} against {2, 3}: by the cost to the right side, and by that from the left."""
    found = []
    for signs in (1, -1):
        way = [min(cost[u, v] for v in (2, 3)) for u in range(4)]
        if signs < 0:
            way = [-min(cost[v, u] for v in (0, 1)) for u in range(4)]
        g = [mpmath.exp(mpmath.mpf(float(one))) for one in way]
        sides = [
            mpmath.fsum(g[v] * mpmath.mpf(float(law[v])) for v in side)
            / mpmath.fsum(mpmath.mpf(float(law[v])) for v in side)
            for side in ((0, 1), (2, 3))
        ]
        found.append(mpmath.log(sides[0] / sides[1]))
    return found


@pytest.mark.parametrize(
    "matrix",
    [
        [[0, 1, 2, 2], [1, 0, 1, 1], [2, 1, 0, 1], [2, 1, 1, 0]],
        [[0, 0.5, 0.5, 2], [0.5, 0, 1, 2.5], [0.5, 1, 0, 1.5], [2, 2.5, 1.5, 0]],
        [[0, 0.25, 3, 3.25], [0.5, 0, 3.5, 3], [1, 1, 0, 0.25], [2, 2, 1, 0]],
    ],
)
def test_groups_of_values_of_an_independent_entry(matrix: list[list[float]]) -> None:
    transport = IndependentTransport(PRIOR, GROUPS)
    assert transport.size == 2
    costs = EntryCosts(by_entry=(of_matrix(matrix), Cost.any(9)))
    bound = transport.valued(costs)
    cost, law = np.array(matrix, dtype=float), PRIOR.law("a")
    halves = np.array([True, True, False, False])
    one, other = (np.where(half, law, 0) for half in (halves, ~halves))
    truths = worst(one, other, cost), worst(other, one, cost)
    assert bound.value == pytest.approx(max(truths), abs=1e-7)
    assert bound.by_entry == pytest.approx([max(truths), 0.0], abs=1e-7)
    first = truths[0] > truths[1]
    sides = ("0|1", "2|3") if first or truths[0] == pytest.approx(truths[1]) else ("2|3", "0|1")
    assert bound.binding == Binding(*sides, entry="a")
    asked = Bound(bound.value, Binding("0|1", "2|3", entry="a"))
    found = transport.valued_witness(costs, asked)
    best = float(max(leaks(law, cost)))
    assert 3e-12 <= best - found.leak <= 1e-10
    assert found.binding == asked.binding and found.entries == ("a",)
    assert found.factors is not None
    g = found.factors[0]
    assert g.min() == 1.0
    assert (g[:, None] <= np.exp(cost) * g[None] * (1 + 1e-12)).all()
    told = math.log(g[:2] @ law[:2] / law[:2].sum()) - math.log(g[2:] @ law[2:] / law[2:].sum())
    assert told == pytest.approx(found.leak, abs=1e-10)


def test_each_way_to_tell_groups_apart_is_the_better_one_somewhere() -> None:
    law = PRIOR.law("a")
    near = np.array([[0, 1, 1, 3], [1, 0, 1, 3], [1, 1, 0, 2], [3, 3, 2, 0.0]])
    far = near[::-1, ::-1].copy()
    assert leaks(law, near)[0] < leaks(law, near)[1] and leaks(law, far)[0] > leaks(law, far)[1]
    transport = IndependentTransport(PRIOR, GROUPS)
    for cost in (near, far):
        costs = EntryCosts(by_entry=(of_matrix(cost.tolist()), NOTHING))
        found = transport.valued_witness(costs, Bound(1.0, Binding("0|1", "2|3", entry="a")))
        assert found.leak == pytest.approx(float(max(leaks(law, cost))), abs=1e-10)


def test_costs_beyond_exponentials_are_spent_in_part() -> None:
    transport = IndependentTransport(PRIOR, Secrets())
    for spent, told in ((500, 500.0), (700, 600.0)):
        bound = transport.valued(EntryCosts((Cost.any(spent),)))
        assert spent <= bound.value <= spent * (1 + 1e-14)
        found = transport.valued_witness(EntryCosts((Cost.any(spent),)), bound)
        assert told - 1e-8 < found.leak < told
        plain = transport.witness(float(spent), transport.uniform(float(spent)))
        assert told * (1 - 1e-15) <= plain.leak <= told and plain.factors is not None
        assert math.log(plain.factors.max()) == pytest.approx(told, rel=1e-14)
        assert plain.factors.max() < math.exp(told)


def test_an_entry_without_a_secret_or_a_possible_pair_loses_nothing() -> None:
    transport = IndependentTransport(PRIOR, Secrets(entries=("b",), pairs=(((0,), (1,)),)))
    bound = transport.profile(np.array([5.0, 0.5]))
    assert bound.value == 0.5 and bound.by_entry is not None
    assert bound.by_entry.tolist() == [0.0, 0.5]
    assert bound.binding == Binding("0", "1", entry="b")
    found = transport.witness(np.array([5.0, 0.5]), bound)
    assert 0.5 * (1 - 1e-15) < found.leak < 0.5 and found.entries == ("b",)
    assert found.factors is not None
    assert found.factors[0] == pytest.approx([math.exp(0.5), 1.0, 1.0])
    assert transport.largest(0.75) == 0.75
    impossible = IndependentTransport(PRIOR, Secrets(entries=("b",), pairs=(((0,), (2,)),)))
    none = impossible.profile(np.array([5.0, 0.5]))
    assert none.value == 0.0 and none.binding is None
    told = impossible.witness(1.0, none)
    assert told.leak == 0.0 and told.binding is None
    costs = EntryCosts((Cost.any(1),))
    nothing = impossible.valued(costs)
    assert nothing.value == 0.0 and nothing.binding is None
    assert impossible.valued_witness(costs, nothing).leak == 0.0
    assert impossible.valued_witness(costs, Bound(1.0, Binding("0", "2", entry="b"))).leak == 0.0
    every = IndependentTransport(PRIOR, Secrets())
    assert {s.left + s.right for s in every._pairs["b"]} == {"01", "10"}
    assert len(every._pairs["a"]) == 12
    with pytest.raises(UnsoundRequest) as caught:
        IndependentTransport(PRIOR, Secrets(entries=("c",)))
    assert (caught.value.field, caught.value.given) == ("secrets", "c")
    with pytest.raises(UnsoundRequest) as caught:
        every.valued(EntryCosts(by_entry=(NOTHING,)))
    assert (caught.value.field, caught.value.given, caught.value.needed) == ("profile", 1, 2)


def test_one_value_against_another_costs_what_the_matrix_says_and_no_more() -> None:
    transport = IndependentTransport(PRIOR, Secrets(pairs=(((0, 2), (1,)),), entries=("b",)))
    cost = of_matrix([[0, 0.375, 1], [0.25, 0, 1], [1, 1, 0]])
    bound = transport.valued(EntryCosts(by_entry=(NOTHING, cost)))
    assert 0.375 <= bound.value <= 0.375 + 1e-14  # the value 2 of b cannot happen
    assert bound.binding == Binding("0|2", "1", entry="b")
    found = transport.valued_witness(EntryCosts(by_entry=(Cost.any(9), cost)), bound)
    assert 0.375 - 1e-10 < found.leak < 0.375 and found.entries == ("b",)
    free = transport.valued(EntryCosts(by_entry=(NOTHING, NOTHING)))
    assert free.value == 0.0 and free.binding == Binding("0|2", "1", entry="b")
