"""Costs under priors that are listed or independent: linear programs, closed forms and edges."""

import math

import mpmath
import numpy as np
import pytest

from takifugu._core.numeric import Floats
from takifugu.costs.cost import NOTHING, Cost, Matrix, Membership
from takifugu.priors import Explicit, Tables
from takifugu.priors.independent import IndependentEntries
from takifugu.priors.secrets import Secrets
from takifugu.translation.bounds import Binding, Bound
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.models import small_priors
from takifugu.translation.search import junction
from tests.oracles.transport import loss_by_potentials
from tests.translation.transports import transport_of

pytestmark = pytest.mark.nightly


def worst(p: Floats, q: Floats, cost: Floats) -> float:
    """The largest log E_p[g] / E_q[g] that a cost allows, of weights divided by their sums."""
    return loss_by_potentials(p / p.sum(), q / q.sum(), cost)


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
    transport = transport_of(PRIOR, GROUPS)
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
    assert 0 <= best - found.leak <= 1e-10
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
    transport = transport_of(PRIOR, GROUPS)
    for cost in (near, far):
        costs = EntryCosts(by_entry=(of_matrix(cost.tolist()), NOTHING))
        found = transport.valued_witness(costs, Bound(1.0, Binding("0|1", "2|3", entry="a")))
        assert found.leak == pytest.approx(float(max(leaks(law, cost))), abs=1e-10)


def test_one_value_against_another_costs_what_the_matrix_says_and_no_more() -> None:
    transport = transport_of(PRIOR, Secrets(pairs=(((0, 2), (1,)),), entries=("b",)))
    cost = of_matrix([[0, 0.375, 1], [0.25, 0, 1], [1, 1, 0]])
    bound = transport.valued(EntryCosts(by_entry=(NOTHING, cost)))
    assert 0.375 <= bound.value <= 0.375 + 1e-14  # the value 2 of b cannot happen
    assert bound.binding == Binding("0|2", "1", entry="b")
    found = transport.valued_witness(EntryCosts(by_entry=(Cost.any(9), cost)), bound)
    assert 0.375 - 1e-10 < found.leak < 0.375 and found.entries == ("b",)
    free = transport.valued(EntryCosts(by_entry=(NOTHING, NOTHING)))
    assert free.value == 0.0 and free.binding == Binding("0|2", "1", entry="b")


# --- many listed datasets ---


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_many_listed_datasets_cost_no_more_by_value_than_by_scalars(
    monkeypatch: pytest.MonkeyPatch, epsilon: float
) -> None:
    """Coupled one group after another they may; the linear program of the scalars is exact."""
    monkeypatch.setattr(small_priors, "MAX_COUPLED_DATASETS", 4)
    monkeypatch.setattr(junction, "MAX_COUPLED_STATES", 4)
    law = np.random.default_rng(3).dirichlet(np.full(64, 0.5))
    listed = Explicit(Tables.of(dict.fromkeys(range(6), ("0", "1"))), law)
    bound = transport_of(listed, Secrets())
    charged = Cost.any(epsilon), Cost.of({Membership(["1"]): epsilon})
    most = bound.uniform(epsilon)
    for costs in (
        EntryCosts(charged[:1]),
        EntryCosts(charged[1:]),
        EntryCosts(by_entry=charged * 3),
    ):
        found = bound.valued(costs)
        assert found.value <= most.value and found.by_entry is not None
        assert found.value == found.by_entry.max()
    nothing = Cost.of({Membership(["2"]): epsilon})  # as one dataset: no program is needed
    monkeypatch.setattr(small_priors, "translation_exact", None)
    assert bound.valued(EntryCosts((nothing,))).value == 0


def test_a_few_listed_datasets_are_coupled_at_once_however_many_pairs_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = tuple(map(str, range(5)))
    law = np.random.default_rng(1).dirichlet(np.full(5 * 16, 0.5))
    listed = Explicit(Tables.of({0: values, **dict.fromkeys(range(1, 5), ("0", "1"))}), law)
    costs, secrets = EntryCosts((Cost.any(0.5),)), Secrets(entries=(0,))
    best = transport_of(listed, secrets).valued(costs).value
    monkeypatch.setattr(junction, "MAX_LAST_CELLS", 100)
    monkeypatch.setattr(junction, "MAX_COUPLED_STATES", 4)
    assert transport_of(listed, secrets).valued(costs).value == best
