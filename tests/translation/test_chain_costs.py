"""Costs on chains: the numbers of the theory, and the program over all datasets."""

from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.costs.cost import ANY, Cost, Distance, Matrix, Membership, Shape
from takifugu.errors import UnsoundRequest
from takifugu.priors import MarkovChain
from takifugu.priors.secrets import Secrets
from takifugu.translation import Translation, chain_losses, unbounded_losses
from takifugu.translation.entry_costs import CostLevels, EntryCosts
from takifugu.translation.search.groups import SecretSides
from tests.oracles import cost_programs as oracle
from tests.raising import raises

A = np.array([[0.62, 0.28, 0.10], [0.05, 0.75, 0.20], [0.33, 0.07, 0.60]])
START = np.array([0.5, 0.2, 0.3])
SORTED = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]])  # all its minors are ≥ 0
ZERO, ONE = (Cost.of({Membership([label]): "1/2"}) for label in (0, 1))
SUM = Cost.of({Distance(0, 2): "1/2"})
THREE = Cost.of({Membership([0]): "3/10", Membership([1]): "3/10", ANY: "1/10"})
JOINT = np.array(
    [[0.7, 0.1, 0.15, 0.05], [0.2, 0.55, 0.05, 0.2], [0.15, 0.05, 0.6, 0.2], [0.05, 0.1, 0.25, 0.6]]
)


def levels(costs: EntryCosts | Cost | list[Cost], states: int, length: int) -> CostLevels:
    return CostLevels.of_costs(EntryCosts.of(costs), tuple(range(states)), None, length)


@pytest.mark.parametrize(
    ("costs", "exact", "recursion"),
    [
        (ZERO, 1.22046, 1.24308),
        (ONE, 1.37373, 1.37598),
        (SUM, 1.08946, 1.13497),
        (Cost.any("1/2"), 1.47058, 1.49859),
        (THREE, 1.71512, 1.78119),
        ([ZERO, ZERO, ZERO + ONE, ONE, ONE], 1.54467, 1.62524),
    ],
)
def test_known_values_of_three_states(
    costs: Cost | list[Cost], exact: float, recursion: float
) -> None:
    charged = levels(costs, 3, 5)
    assert chain_losses(A, charged, start=START).loss == pytest.approx(recursion, abs=6e-6)
    chain = MarkovChain(A, start=START, length=5)
    found = Translation(chain).cost_bound(costs)
    assert exact - 6e-6 <= found.value <= recursion + 6e-6
    assert found.by_entry is not None and found.by_entry.max() == found.value


@pytest.mark.parametrize(("scale", "loss"), [("1/2", 1.23711), (1, 2.40311)])
def test_a_sum_over_a_totally_positive_kernel_is_exact(scale: str | int, loss: float) -> None:
    charged = levels(Cost.of({Distance(0, 2): scale}), 3, 5)
    start = np.full(3, 1 / 3)
    assert chain_losses(SORTED, charged, start=start).loss == pytest.approx(loss, abs=6e-6)


@pytest.mark.parametrize(
    ("of_a", "of_b", "exact", "step", "pair"),
    [
        (0.5, 0.0, 1.28734, 1.28734, 1.36818),
        (0.0, 0.5, 0.43615, 0.46124, 1.29823),
        (0.5, 0.5, 1.61006, 1.62675, 2.63410),
        (1.0, 1.0, 2.90360, 2.96634, 4.94952),
    ],
)
def test_known_values_of_groups(
    of_a: float, of_b: float, exact: float, step: float, pair: float
) -> None:
    cost = Cost.of({Membership([2, 3]): of_a, Membership([1, 3]): of_b})
    losses = chain_losses(JOINT, levels(cost, 4, 4), start=[0.4, 0.2, 0.1, 0.3])
    groups = SecretSides(Secrets(pairs=(((0, 1), (2, 3)),)).sides(range(4)), 4)
    steps = [groups.losses(losses.at(i), losses.laws[losses.law_at[i]]) for i in range(4)]
    assert max(found.value for found in steps) == pytest.approx(step, abs=6e-6)
    pairs = [losses.at(i)[np.where(groups.mask, True, False)].max() for i in range(4)]
    assert max(pairs) == pytest.approx(pair, abs=6e-6)
    chain = MarkovChain(JOINT, start=np.array([0.4, 0.2, 0.1, 0.3]), length=4)
    found = Translation(chain, Secrets(pairs=(((0, 1), (2, 3)),))).cost_bound(cost)
    assert exact - 6e-6 <= found.value <= step + 6e-6
    assert found.binding is not None
    assert {found.binding.left, found.binding.right} == {"0|1", "2|3"}


def household(infect: float, catch: float, recover: float) -> tuple[Floats, Floats]:
    """Two people, each ill or not: the kernel of both, and their start."""
    kernel = np.zeros((4, 4))
    for state in range(4):
        ill = (state >> 1, state & 1)
        up = [
            1 - recover if ill[k] else 1 - (1 - infect) * (1 - catch * ill[1 - k]) for k in (0, 1)
        ]
        for after in range(4):
            chance = [up[k] if after >> (1 - k) & 1 else 1 - up[k] for k in (0, 1)]
            kernel[state, after] = chance[0] * chance[1]
    return kernel, np.array([0.64, 0.16, 0.16, 0.04])


def test_known_values_of_a_household() -> None:
    kernel, start = household(0.1, 0.2, 0.4)
    cost = Cost.of({Membership([2, 3]): "1/2", Membership([1, 3]): "1/2"})
    losses = chain_losses(kernel, levels(cost, 4, 4), start=start)
    groups = SecretSides(Secrets(pairs=(((0, 1), (2, 3)),)).sides(range(4)), 4)
    found = [groups.losses(losses.at(i), losses.laws[losses.law_at[i]]).value for i in range(4)]
    assert found == pytest.approx([1.18618, 1.33141, 1.35045, 1.16472], abs=6e-6)


def random_shape(rng: np.random.Generator, states: int) -> Shape:
    match int(rng.integers(5)):
        case 0:
            return ANY
        case 1:
            return Membership([int(rng.integers(states))])
        case 2:
            size = int(rng.integers(1, states))
            return Membership(rng.choice(states, size, replace=False).tolist())
        case 3:
            return Distance(0, states - 1)
        case _:
            table = rng.uniform(0, 1, (states, states)) * (rng.random((states, states)) < 0.8)
            np.fill_diagonal(table, 0.0)
            return Matrix(range(states), table.tolist())


def random_cost(rng: np.random.Generator, states: int) -> Cost:
    terms: dict[Any, Fraction] = {}
    for _ in range(int(rng.integers(1, 4))):
        scale = Fraction(float(rng.choice([0.05, 0.3, 1.0, 2.5])))
        terms[random_shape(rng, states)] = scale
    return Cost.of(terms)


def random_chain(rng: np.random.Generator) -> MarkovChain:
    states, length = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    kernels = rng.dirichlet(np.full(states, 0.7), (length - 1, states))
    kernels *= rng.random(kernels.shape) < 0.85
    kernels += 0.01 * np.eye(states)
    kernels /= kernels.sum(axis=-1, keepdims=True)
    start = rng.dirichlet(np.ones(states))
    if rng.random() < 0.3:
        start = np.where(np.arange(states) == rng.integers(states), 0.0, start)
        start /= start.sum()
    if rng.random() < 0.5:
        return MarkovChain(kernels, start=start)
    if rng.random() < 0.5:
        return MarkovChain(kernels[0], start=start, length=length)
    return MarkovChain(kernels[0] * 0.95 + 0.05 / states, length=length)


def random_secrets(rng: np.random.Generator, states: int) -> Secrets:
    if states == 2 or rng.random() < 0.5:
        return Secrets()
    side = rng.permutation(states).tolist()
    cut, end = int(rng.integers(1, states)), int(rng.integers(states - 1, states + 1))
    if cut >= end:
        return Secrets()
    return Secrets(pairs=((tuple(side[:cut]), tuple(side[cut:end])),))


def truth(chain: MarkovChain, secrets: Secrets, matrices: list[Floats]) -> float:
    """The largest loss of any secret pair: what some mechanism leaks, from below."""
    size = len(chain.states)
    length = chain.length or 1
    table = oracle.chain_table(chain.start_law, [chain.kernel(t) for t in range(length - 1)])
    best = 0.0
    for entry in range(length):
        for a, b in secrets.sides(range(size)):
            sides = [oracle.entry_is(table.shape, entry, side) for side in (a, b)]
            if all(table[side].sum() > 0 for side in sides):
                best = max(best, oracle.worst_loss(table, matrices, *sides).lower)
    return best


@pytest.mark.costly
@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_no_mechanism_leaks_more(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain = random_chain(rng)
    size, length = len(chain.states), chain.length or 1
    secrets = random_secrets(rng, size)
    costs: Cost | list[Cost] = random_cost(rng, size)
    if rng.random() < 0.5:
        listed = [random_cost(rng, size), random_cost(rng, size), Cost()]
        costs = [listed[k] for k in rng.integers(0, 3, length)]
    matrices = [
        cost.matrix(range(size))
        for cost in (costs if isinstance(costs, list) else [costs] * length)
    ]
    found = Translation(chain, secrets).cost_bound(costs, "transport").value
    true = truth(chain, secrets, matrices)
    assert true <= found * (1 + 1e-9) + 1e-9
    assert found <= true * 1.3 + 1e-9


@pytest.mark.nightly
@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_a_bound_for_every_length_covers_every_length(seed: int) -> None:
    rng = np.random.default_rng(seed)
    states = int(rng.integers(3, 6))
    kernel = rng.dirichlet(np.ones(states), states)
    cost = random_cost(rng, states)
    unbounded = Translation(MarkovChain(kernel)).cost_bound(cost)
    limit = unbounded_losses(kernel, cost.matrix(range(states))).upper
    for length in (1, 2, 7, 40):
        assert (
            chain_losses(kernel, levels(cost, states, length)).at(length // 2) <= limit + 1e-9
        ).all()
        finite = Translation(MarkovChain(kernel, length=length)).cost_bound(cost)
        assert finite.value <= unbounded.value * (1 + 1e-3) + 1e-9


@pytest.mark.costly
@given(st.integers(0, 10**6))
@settings(max_examples=15)
def test_any_change_alike_is_the_scalar_loss(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel = rng.dirichlet(np.ones(4), 4)
    epsilon = float(rng.choice([1e-300, 1e-9, 0.1, 2.0, 500.0]))
    for length in (None, 6):
        translation = Translation(MarkovChain(kernel, length=length))
        assert translation.cost_bound(Cost.any(epsilon), "transport").value == pytest.approx(
            translation.bound(epsilon, "transport").value, rel=1e-9, abs=1e-9
        )
    profile = rng.choice([0.0, 0.2, 1.0], 6)
    assert translation.cost_bound(
        [Cost.any(e) for e in profile.tolist()], "transport"
    ).value == pytest.approx(translation.bound(profile, "transport").value, rel=1e-9, abs=1e-9)


def test_entries_of_an_unbounded_chain_that_are_not_listed_were_not_asked() -> None:
    translation = Translation(MarkovChain(A))
    costs = [ZERO, ZERO + ONE, ONE]
    found = translation.cost_bound(costs)
    longer = translation.cost_bound([*costs, Cost(), Cost()])
    assert found.value == pytest.approx(longer.value, rel=1e-9)
    assert found.by_entry is not None and len(found.by_entry) == 4
    everywhere = translation.cost_bound(EntryCosts((ZERO, ZERO + ONE, ONE)))
    assert found.value <= everywhere.value


def test_a_profile_has_one_cost_for_each_entry() -> None:
    transport = Translation(MarkovChain(A, length=4)).transport
    assert transport is not None
    with raises(UnsoundRequest, field="profile", given=2, needed=4):
        transport.valued(EntryCosts.of([ZERO, ONE]))


@pytest.mark.nightly
@pytest.mark.parametrize("scale", ["1e-300", "1e-12", "400"])
def test_extreme_costs_stay_finite_and_above_the_own_cost(scale: str) -> None:
    cost = Cost.of({Membership([0]): scale, Distance(0, 2): scale})
    for length in (None, 4, 10_000):
        found = Translation(MarkovChain(A, length=length)).cost_bound(cost, "transport").value
        own = float(cost.between(0, 2))
        assert own <= found
        if length is not None:
            assert found <= 2 * length * own * (1 + 1e-9) + 1e-9


def test_pairs_of_single_values_need_no_group_step() -> None:
    sides = Secrets(pairs=(((0,), (1,)), ((0, 2), (1,)))).sides(range(3))
    secret = SecretSides(sides, 3)
    assert secret.grouped
    losses = chain_losses(A, levels(ZERO, 3, 3))
    found = secret.losses(losses.at(1), losses.laws[0])
    assert found.by_values[0, 1] == losses.at(1)[0, 1]  # the pair itself, which is larger
    assert not np.isfinite([found.by_values[x, y] for x, y in permutations((0, 2), 2)]).any()


ONE_WAY = Cost.of({Matrix([0, 1], [[0, "8/10"], ["1/10", 0]]): 1})


def test_a_cost_of_two_values_may_depend_on_their_order() -> None:
    chain = MarkovChain(np.array([[0.9, 0.1], [0.1, 0.9]]), length=5)
    found = Translation(chain, Secrets(entries=(2,))).explain_cost(ONE_WAY)
    assert found.exact and found.pufferfish == pytest.approx(2.94678, abs=6e-6)
    table = Translation(chain, Secrets(entries=(2,))).cost_bound(ONE_WAY).by_values
    assert table is not None and table[1, 0] == pytest.approx(0.38768, abs=6e-6)


def test_counting_ones_costs_two_states_what_a_histogram_does() -> None:
    chain = MarkovChain(np.array([[0.9, 0.1], [0.1, 0.9]]), length=7)
    count = Cost.of({Membership([1]): "1/5"})
    assert Translation(chain).cost_to_pufferfish(count) == pytest.approx(0.97324, abs=6e-6)


@pytest.mark.nightly
@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_two_states_are_exact_whatever_the_cost(seed: int) -> None:
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, 6))
    kernels = rng.dirichlet(np.ones(2), (max(length - 1, 1), 2))
    if length > 1 and rng.random() < 0.5:
        chain = MarkovChain(kernels, start=rng.dirichlet(np.ones(2)))
    else:
        chain = MarkovChain(kernels[0], length=length)
    listed = [random_cost(rng, 2) for _ in range(length)]
    costs: Cost | list[Cost] = listed[0] if rng.random() < 0.4 else listed
    matrices = [
        c.matrix(range(2)) for c in ([costs] * length if isinstance(costs, Cost) else costs)
    ]
    found = Translation(chain).explain_cost(costs, "transport")
    true = truth(chain, Secrets(), matrices)
    assert true - 1e-8 <= found.pufferfish <= true * (1 + 1e-7) + 1e-8
    assert found.lower <= true + 1e-8
    if all((matrix > 0).sum() != 1 for matrix in matrices):  # else no complete mechanism has it
        assert found.exact or found.gap < 1e-12


@pytest.mark.parametrize("second", [0.3, 0.8])
def test_an_unbounded_chain_of_two_states_is_the_limit_of_long_ones(second: float) -> None:
    kernel = np.array([[0.2, 0.8], [second, 1 - second]])
    limit = Translation(MarkovChain(kernel)).explain_cost(ONE_WAY)
    long = Translation(MarkovChain(kernel, length=400)).explain_cost(ONE_WAY)
    huge = Translation(MarkovChain(kernel, length=10**9)).explain_cost(ONE_WAY)
    assert limit.exact and long.exact and huge.exact
    assert long.pufferfish == pytest.approx(limit.pufferfish, rel=1e-9)
    assert huge.pufferfish == pytest.approx(limit.pufferfish, rel=1e-12)


def test_what_costs_nothing_in_one_order_settles_too() -> None:
    kernel = np.array([[0.7, 0.3], [0.4, 0.6]])
    free = Cost.of({Matrix([0, 1], [[0, 1], [0, 0]]): 1})
    found = Translation(MarkovChain(kernel, length=60_000)).cost_bound(free)
    assert found.value == pytest.approx(Translation(MarkovChain(kernel)).cost_bound(free).value)
    assert found.by_values is not None and found.by_values[1, 0] == 0


@pytest.mark.nightly
@settings(max_examples=12)
@given(st.integers(0, 10**6))
def test_groups_of_values_lose_what_the_program_says(seed: int) -> None:
    """Three states and five entries fit into one window: the bound is the program itself."""
    rng = np.random.default_rng(seed)
    length = int(rng.integers(2, 6))
    kernel = rng.dirichlet(np.full(3, 0.7), 3)
    start = rng.dirichlet(np.ones(3)) if rng.random() < 0.5 else None
    chain = MarkovChain(kernel, start="stationary" if start is None else start, length=length)
    secrets = Secrets(pairs=(((0,), (1, 2)),))
    cost = Cost.of({random_shape(rng, 3): "1/2"})
    found = Translation(chain, secrets).cost_bound(cost, "transport")
    true = truth(chain, secrets, [cost.matrix(range(3))] * length)
    assert true - 1e-8 <= found.value <= true * 1.02 + 1e-8


@pytest.mark.nightly
@pytest.mark.parametrize("length", [9, 100, None])
def test_groups_lose_less_than_their_worst_pair_and_no_less_than_the_witness(
    length: int | None,
) -> None:
    rng = np.random.default_rng(5)
    kernel = 0.5 * np.eye(5) + 0.5 * rng.dirichlet(np.ones(5), 5)
    chain = MarkovChain(kernel, length=length)
    grouped = Translation(chain, Secrets(pairs=(((0, 1), (2, 3, 4)),)))
    for costs in (Cost.any("3/10"), Cost.of({Membership([0, 2]): "1/2"})):
        found = grouped.explain_cost(costs, "transport")
        single = Translation(chain).cost_bound(costs, "transport")
        assert found.lower <= found.pufferfish < single.value
        assert found.pufferfish <= 1.15 * found.lower
        assert found.binding is not None
        assert {found.binding.left, found.binding.right} == {"0|1", "2|3|4"}


@pytest.mark.nightly
def test_a_group_beside_single_values_counts_beside_them() -> None:
    chain = MarkovChain(A, length=6)
    pairs = Translation(chain, Secrets(pairs=(((0,), (1,)),))).bound(0.5)
    both = Translation(chain, Secrets(pairs=(((0,), (1,)), ((0, 1), (2,))))).bound(0.5)
    group = Translation(chain, Secrets(pairs=(((0, 1), (2,)),))).bound(0.5)
    assert both.value == pytest.approx(max(pairs.value, group.value), rel=1e-6)


def test_one_entry_alone_loses_what_it_costs_between_groups() -> None:
    found = Translation(MarkovChain(A, length=1), Secrets(pairs=(((0, 1), (2,)),))).bound(0.5)
    assert found.value == pytest.approx(0.5)
