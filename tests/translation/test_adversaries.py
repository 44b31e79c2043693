"""Chains with an unknown start, or of which entries are known, against the program over all data.

`tests.oracles.cost_programs` solves the linear program over all datasets for one law of the first
entry and given known entries, and shares no code with the recursions tested here.
"""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Floats, frozen
from takifugu.costs.cost import Cost, Distance, Matrix, Membership
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.priors import MarkovChain, Product, Secrets
from takifugu.translation import Translation
from takifugu.translation.entry_costs import EntryCosts
from tests.oracles.cost_programs import (
    chain_table,
    entry_is,
    known_losses,
    pair_loss,
    two_point_starts,
    worst_loss,
)
from tests.raising import raises
from tests.translation.transports import transport_of

STICKY = np.array([[0.9, 0.1], [0.1, 0.9]])
THREE = np.array([[0.62, 0.28, 0.10], [0.05, 0.75, 0.20], [0.33, 0.07, 0.60]])
ROUNDED = 1e-9
SOLVED = 1 + 1e-4  # how closely the worst pairs are solved


def loss(rows: Floats, epsilon: float, length: int | None, **adversary: str) -> float:
    chain = MarkovChain(rows, length=length, **adversary)  # type: ignore[arg-type]
    return float(Translation(chain).to_pufferfish(epsilon))


@pytest.mark.parametrize(
    ("rows", "epsilon", "length", "least", "most"),
    [
        (STICKY, 0.2, 7, 0.97560, 0.97562),
        (STICKY, 1.0, 7, 4.34571, 4.3465),
        (STICKY, 1.0, 3, 2.57014, 2.5703),
        (THREE, 0.7, 4, 1.99156, 1.9935),
        (STICKY, 1 / 8.6550, 100, 0.999, 1.0),
    ],
)
def test_an_unknown_start(
    rows: Floats, epsilon: float, length: int, least: float, most: float
) -> None:
    assert least <= loss(rows, epsilon, length, start="unknown") <= most


@pytest.mark.parametrize(
    ("length", "most"),
    [(7, 4.12131), (8, 4.28867), (10, 4.69298), (16, 5.22073), (100, 5.22073), (None, 5.22073)],
)
def test_known_entries(length: int | None, most: float) -> None:
    assert loss(STICKY, 1.0, length, known="any") == pytest.approx(most, abs=1e-5)


def test_known_entries_of_two_states_are_exact() -> None:
    found = Translation(MarkovChain(STICKY, length=16, known="any")).explain(1.0)
    assert found.exact
    first, last = (int(part.split()[1]) for part in found.witness.against.split(" and "))
    assert last - first == 12  # six entries away on both sides


@pytest.mark.nightly
@pytest.mark.parametrize("rows", [STICKY, THREE])
@pytest.mark.parametrize("length", [1, 2, 9, None])
def test_whoever_knows_more_learns_no_less(rows: Floats, length: int | None) -> None:
    plain = loss(rows, 0.6, length)
    free, known, both = (
        loss(rows, 0.6, length, **adversary)
        for adversary in (
            {"start": "unknown"},
            {"known": "any"},
            {"start": "unknown", "known": "any"},
        )
    )
    assert plain <= min(free, known) * SOLVED
    assert max(free, known) <= both * SOLVED
    assert both <= (np.inf if length is None else 0.6 * length) + ROUNDED


@pytest.mark.costly
@given(
    seed=st.integers(0, 2**32 - 1),
    states=st.sampled_from([2, 3]),
    zeros=st.booleans(),
    alike=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_no_start_and_no_known_entry_loses_more(
    seed: int, states: int, zeros: bool, alike: bool
) -> None:
    rng = np.random.default_rng(seed)
    length = 4 if states == 2 else 3
    matrices = [_matrix(rng, states, zeros)] * (length - 1)
    if not alike:
        matrices = [_matrix(rng, states, zeros) for _ in range(length - 1)]
    costs = [_cost(rng, states)] * length
    if rng.random() < 0.5:
        costs = [_cost(rng, states) for _ in range(length)]
    transition = matrices[0] if alike else np.stack(matrices)
    free = _by_entry(MarkovChain(transition, start="unknown", length=length), costs)
    shares = (0.03, 0.3, 0.6, 0.9, 1.0)
    tables = [cost.matrix(range(states)) for cost in costs]
    for law in two_point_starts(states, shares):
        world = chain_table(law, matrices)
        entry = int(rng.integers(length))
        for x, y in _possible(world, entry):
            assert pair_loss(world, tables, entry, x, y).lower <= free[entry] + ROUNDED
    law = rng.dirichlet(np.ones(states))
    known = _by_entry(MarkovChain(transition, start=law, length=length, known="any"), costs)
    both = _by_entry(MarkovChain(transition, start="unknown", length=length, known="any"), costs)
    world = chain_table(law, matrices)
    entry = int(rng.integers(length))
    assert (known <= both + ROUNDED).all()
    for x, y in _possible(world, entry):
        for solved in known_losses(world, tables, entry, x, y).values():
            assert solved.lower <= known[entry] + ROUNDED


@pytest.mark.nightly
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_no_start_loses_more_about_groups_of_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, cost = _matrix(rng, 3, bool(rng.integers(2))), _cost(rng, 3)
    secrets = Secrets(pairs=(((0,), (1, 2)), ((1, 2), (0,))))
    chain = MarkovChain(matrix, start="unknown", length=3)
    bound = transport_of(chain, secrets).valued(EntryCosts((cost,)))
    assert bound.by_entry is not None
    tables = [cost.matrix(range(3))] * 3
    for law in two_point_starts(3, (0.2, 0.7)):
        world = chain_table(law, [matrix] * 2)
        for entry in range(3):
            left, right = (entry_is(world.shape, entry, side) for side in ([0], [1, 2]))
            if (world * left).sum() > 0 and (world * right).sum() > 0:
                for sides in ((left, right), (right, left)):
                    truth = worst_loss(world, tables, *sides).lower
                    assert truth <= bound.by_entry[entry] + ROUNDED


def test_the_group_step_over_the_start_is_below_the_largest_pair() -> None:
    rows = frozen([[0.7, 0.1, 0.2], [0.1, 0.6, 0.3], [0.1, 0.4, 0.5]])
    chain = MarkovChain(rows, ("a", "b", "c"), start="unknown", length=6)
    group = Translation(chain, Secrets(pairs=((("a",), ("b", "c")),))).bound(0.5)
    pairs = ((("a",), ("b",)), (("a",), ("c",)))
    single = Translation(chain, Secrets(pairs=pairs)).bound(0.5)
    assert group.value < single.value * 0.99
    assert str(group.binding).endswith("b|c")


@pytest.mark.nightly
@pytest.mark.parametrize("adversary", [{"start": "unknown"}, {"known": "any"}])
def test_the_curve_of_one_law_is_never_used(adversary: dict[str, str]) -> None:
    chain = MarkovChain(THREE, length=6, **adversary)  # type: ignore[arg-type]
    for prior in (chain, Product({"ada": chain, "bob": MarkovChain(THREE, length=6)})):
        translation = Translation(prior)
        assert not translation.has_curve
        assert translation.explain(0.3).by_method["curve"] is None
        with raises(UnsoundRequest):
            _ = translation.curve
    with raises(UnsoundRequest):
        chain.explicit()


def test_a_chain_with_too_many_states_is_left_to_group_privacy() -> None:
    rows = np.full((300, 300), 1 / 300)
    with pytest.warns(UserWarning, match="states"):
        found = Translation(MarkovChain(rows, length=3, known="any")).explain(0.1)
    assert found.pufferfish == pytest.approx(0.3)
    assert found.method == "group"


@pytest.mark.nightly
@pytest.mark.parametrize("adversary", [{"start": "unknown"}, {"known": "any"}])
@pytest.mark.parametrize("epsilon", [1e-300, 1e-12, 5e3])
def test_extreme_losses_stay_between_one_entry_and_all(
    adversary: dict[str, str], epsilon: float
) -> None:
    for rows in (STICKY, THREE):
        found = loss(rows, epsilon, 5, **adversary)
        assert epsilon <= found <= 5 * epsilon * (1 + 1e-9) + 1e-14


def test_a_chain_that_stays_somewhere_for_ever() -> None:
    rows = np.array([[0.8, 0.2], [0.0, 1.0]])
    finite = [loss(rows, 0.1, length, start="unknown") for length in (3, 30, 2500)]
    assert finite == sorted(finite)
    assert finite[-1] <= loss(rows, 0.1, None, start="unknown") + ROUNDED
    assert loss(rows, 0.3, None, start="unknown") == np.inf


@pytest.mark.nightly
@pytest.mark.parametrize("adversary", [{"start": "unknown"}, {"known": "any"}])
def test_a_long_chain_loses_no_more_than_an_unbounded_one(adversary: dict[str, str]) -> None:
    for rows in (STICKY, THREE):
        unbounded = loss(rows, 0.2, None, **adversary)
        assert loss(rows, 0.2, 120, **adversary) <= unbounded * SOLVED
        assert loss(rows, 0.2, 10_000, **adversary) == pytest.approx(unbounded, rel=1e-3)


@pytest.mark.parametrize("adversary", [{"start": "unknown"}, {"known": "any"}])
def test_entries_that_are_not_charged_still_lose(adversary: dict[str, str]) -> None:
    chain = MarkovChain(THREE, length=None, **adversary)  # type: ignore[arg-type]
    transport = transport_of(chain, Secrets())
    short, long = (transport.profile(np.array([0.5] * n)) for n in (2, 6))
    assert short.by_entry is not None
    assert long.by_entry is not None
    assert len(short.by_entry) == 3
    assert short.by_entry[-1] > 0
    assert short.value < long.value


def test_a_witness_is_a_mechanism_of_the_chain_that_it_names() -> None:
    rows = frozen(THREE)
    found = Translation(MarkovChain(rows, length=4, start="unknown")).explain(0.7)
    assert 1.9915 <= found.lower <= found.pufferfish
    assert found.witness.factors is not None
    assert found.witness.against.startswith("entry 0 is")


def _matrix(rng: np.random.Generator, states: int, zeros: bool) -> Floats:
    rows = rng.dirichlet(np.full(states, float(rng.choice([0.4, 1.0, 3.0]))), states)
    if zeros:
        rows = np.where(rows < 0.15, 0.0, rows)
        rows = rows / rows.sum(axis=1, keepdims=True)
    kept = np.where(rows < 1e-9, 0.0, rows)
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))


def _cost(rng: np.random.Generator, states: int) -> Cost:
    size = str(rng.choice(["1/20", "3/10", "7/10", "3/2"]))
    match int(rng.integers(4)):
        case 0:
            return Cost.any(size)
        case 1:
            return Cost.of({Membership([int(rng.integers(states))]): size})
        case 2:
            return Cost.of({Distance(0, states - 1): size})
        case _:
            table = rng.integers(1, 20, (states, states)) * (1 - np.eye(states, dtype=np.int64))
            rows = [[f"{value}/20" for value in row] for row in table.tolist()]
            return Cost.of({Matrix(range(states), rows): size})


def _by_entry(chain: MarkovChain, costs: list[Cost]) -> Floats:
    found = transport_of(chain, Secrets()).valued(EntryCosts(by_entry=tuple(costs))).by_entry
    assert found is not None
    return found


def _possible(world: Floats, entry: int) -> list[tuple[int, int]]:
    law = world.sum(axis=tuple(j for j in range(world.ndim) if j != entry))
    return list(permutations(np.flatnonzero(law > 0).tolist(), 2))


@pytest.mark.parametrize("length", [12, 40])
def test_an_entry_known_nearby_counts_however_long_the_chain_is(length: int) -> None:
    """The second state is rare; seeing it two entries away makes the one between less certain.

    Three entries whose neighbours are known are a lower bound, wherever they are.
    """
    rows = np.array([[0.95, 0.05], [0.9, 0.1]])
    law = MarkovChain(rows).stationary
    world, any_one = chain_table(law, [rows] * 4), Cost.any(1).matrix(range(2))
    least = max(
        solved.lower
        for x, y in ((0, 1), (1, 0))
        for solved in known_losses(world, [any_one] * 5, 2, x, y).values()
    )
    found = Translation(MarkovChain(rows, length=length, known="any")).explain(1.0).by_entry
    assert found is not None
    assert (found[2:-2] >= least - ROUNDED).all() and (found[2:-2] <= 1.01 * least).all()


def test_a_chain_that_never_comes_to_rest_has_no_law_to_know_entries_of() -> None:
    with pytest.raises(InvalidPrior):
        Translation(MarkovChain(np.eye(3), length=5, known="any")).explain(0.1)
    assert loss(np.eye(3), 0.1, 5, start="unknown") == pytest.approx(0.5)
