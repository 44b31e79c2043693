"""The exact translation against vertices, dense transports, closed forms and real mechanisms."""

from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Booleans, Floats
from takifugu.errors import InvalidWorld, TooLarge, UnsoundRequest
from takifugu.finite import FiniteMechanism, World, leakage
from takifugu.finite.translation_exact import ExactTranslation, translation_exact
from takifugu.finite.translation_exact.exact_translation import admissible, route, witness
from takifugu.finite.translation_exact.transport_problem import TransportProblem, network
from takifugu.priors import EntryIs, Explicit, Holds, Knowledge, SecretPair, Tables, Universe
from takifugu.priors.secrets import entry_pairs
from tests.oracles import translation as oracle
from tests.raising import raises

NOISE = 1e-9  # of the oracles, which solve and sum in plain floats

PARITY = SecretPair(
    Holds("even", lambda d: sum(d) % 2 == 0), Holds("odd", lambda d: sum(d) % 2 == 1)
)
FIRST = SecretPair(EntryIs(0, (0,)), EntryIs(0, (1,)))
ALLOWANCES: dict[tuple[int, ...], list[tuple[float, ...]]] = {
    (2, 2): [(1.0, 1.0), (0.3, 2.0)],
    (3, 2): [(0.5, 0.5), (1.0, 0.3)],
    (2, 2, 2): [(1.0, 1.0, 1.0), (0.2, 0.7, 1.5)],
    (4, 2): [(1.0, 1.0)],
}


def tables(shape: tuple[int, ...]) -> Tables:
    return Tables.of({j: range(n) for j, n in enumerate(shape)})


def masks(world: World) -> tuple[Booleans, Booleans]:
    return world.mask(world.pairs[0].left), world.mask(world.pairs[0].right)


@st.composite
def worlds(draw: st.DrawFn, shapes: list[tuple[int, ...]]) -> World:
    """A random prior, with zeros, and a secret about one entry or about all of them."""
    shape = draw(st.sampled_from(shapes))
    universe = tables(shape)
    pair = draw(st.sampled_from([FIRST, FIRST.reversed, PARITY]))
    weight = np.array(
        draw(
            st.lists(
                st.one_of(st.just(0.0), st.floats(1e-3, 1.0)),
                min_size=len(universe),
                max_size=len(universe),
            )
        )
    )
    for secret in (pair.left, pair.right):  # each side must be possible
        if not (weight * secret.mask(universe)).any():
            weight[int(np.argmax(secret.mask(universe)))] = 0.5
    return World(universe, (Explicit(universe, weight / weight.sum()),), (pair,))


def chain(p: float, q: float, length: int) -> Explicit:
    """A stationary binary Markov chain; p and q are the probabilities of staying in 1 and in 0."""
    universe = Tables.bits(length)
    step = np.array([[q, 1 - q], [1 - p, p]])
    weight = np.array([1 - p, 1 - q])[universe.codes[:, 0]] / (2 - p - q)
    for i in range(length - 1):
        weight = weight * step[universe.codes[:, i], universe.codes[:, i + 1]]
    return Explicit(universe, weight)


def shape_of(world: World) -> tuple[int, ...]:
    assert isinstance(world.universe, Tables)
    return world.universe.shape


@pytest.mark.costly
@given(world=worlds(list(ALLOWANCES)), data=st.data())
@settings(max_examples=40)
def test_the_bounds_enclose_the_best_vertex(world: World, data: st.DataObject) -> None:
    epsilon = data.draw(st.sampled_from(ALLOWANCES[shape_of(world)]))
    found = translation_exact(world, epsilon)
    truth = oracle.worst_loss_by_vertices(world.weights[0], *masks(world), shape_of(world), epsilon)
    assert found.lower <= truth + NOISE
    assert truth <= found.upper + NOISE
    assert found.gap <= 1e-9


@given(world=worlds([(5, 2), (3, 2, 2), (6, 3)]), data=st.data())
@settings(max_examples=25)
def test_the_bounds_enclose_the_dense_transport(world: World, data: st.DataObject) -> None:
    shape = shape_of(world)
    epsilon = tuple(data.draw(st.floats(0.01, 2.0)) for _ in shape)
    found = translation_exact(world, epsilon)
    truth = oracle.worst_loss_by_transport(world.weights[0], *masks(world), shape, epsilon)
    assert found.lower - 1e-7 <= truth <= found.upper + 1e-7  # the dense solver's own tolerance
    assert found.gap <= 1e-9


@pytest.mark.parametrize(
    ("p", "q", "epsilon", "loss"),
    [
        (0.9, 0.9, 0.2, 0.97324),
        (0.9, 0.9, 1.0, 4.12131),
        (0.6, 0.8, 0.5, 1.15846),
        (0.1, 0.3, 1.0, 3.14587),
    ],
)
def test_chain_of_seven_at_its_middle(p: float, q: float, epsilon: float, loss: float) -> None:
    prior = chain(p, q, 7)
    assert isinstance(prior.universe, Tables)
    world = World(prior.universe, (prior,), entry_pairs(prior.universe, entries=[3]))
    found = translation_exact(world, epsilon)
    assert found.upper == pytest.approx(loss, abs=6e-6)
    assert found.gap <= 1e-10


@given(
    n=st.sampled_from([5, 6]),
    seed=st.integers(0, 2**32 - 1),
    value=st.sampled_from([0, 1]),
)
@settings(max_examples=20)
def test_in_an_attractive_model_the_worst_mechanism_counts(n: int, seed: int, value: int) -> None:
    rng = np.random.default_rng(seed)
    universe = Tables.bits(n)
    spin = 2.0 * universe.codes - 1
    pull = np.triu(rng.uniform(0, 0.6, (n, n)), 1)
    weight = np.exp(np.einsum("di,ij,dj->d", spin, pull, spin) + spin @ rng.normal(0, 0.5, n))
    prior = Explicit(universe, weight / weight.sum())
    epsilon = tuple(float(e) for e in rng.uniform(0.05, 1.5, n))
    pair = SecretPair(EntryIs(2, (value,)), EntryIs(2, (1 - value,)))
    found = translation_exact(World(universe, (prior,), (pair,)), epsilon)
    truth = oracle.attractive_loss(prior.probability, universe.shape, 2, value, epsilon)
    assert found.lower <= truth <= found.upper  # in 60 digits: rounding went outwards
    assert found.gap <= 1e-9


@pytest.mark.parametrize("epsilon", [6.0, 9.0, 15.0, 40.0])
def test_a_large_allowance_is_bounded_rightly_or_refused(epsilon: float) -> None:
    prior = chain(0.9, 0.9, 7)
    world = World(prior.universe, (prior,), (SecretPair(EntryIs(3, (1,)), EntryIs(3, (0,))),))
    truth = oracle.attractive_loss(prior.probability, (2,) * 7, 3, 1, (epsilon,) * 7)
    try:
        found = translation_exact(world, epsilon)
    except UnsoundRequest:
        assert epsilon > 6
    else:
        assert found.lower <= truth <= found.upper


@given(world=worlds([(2, 2, 2), (3, 2, 2)]), data=st.data())
@settings(max_examples=30)
def test_no_private_mechanism_leaks_more(world: World, data: st.DataObject) -> None:
    shape = shape_of(world)
    epsilon = tuple(data.draw(st.floats(0.05, 2.0)) for _ in shape)
    wild = data.draw(
        st.lists(st.floats(-4, 0), min_size=len(world.universe), max_size=len(world.universe))
    )
    g = np.exp(oracle.closure(np.array(wild), shape, epsilon)) / 4
    drawn = FiniteMechanism(world.universe, np.stack([g, 1 - g], axis=1))
    noisy = randomised_response(tables(shape), epsilon)
    bound = translation_exact(world, epsilon).upper
    for mechanism in (drawn, noisy):
        loss = leakage(world, mechanism)
        assert loss.epsilon - loss.slack <= bound + 1e-12


def randomised_response(universe: Tables, epsilon: tuple[float, ...]) -> FiniteMechanism:
    """Every entry is reported truthfully with odds e^ε against each of its other values."""
    outputs = list(product(*(range(n) for n in universe.shape)))
    table = np.ones((len(universe), len(outputs)))
    for j, (n, e) in enumerate(zip(universe.shape, epsilon, strict=True)):
        same = universe.codes[:, j][:, None] == np.array(outputs)[:, j][None, :]
        table *= np.where(same, np.exp(e), 1.0) / (np.exp(e) + n - 1)
    return FiniteMechanism(universe, table, tuple(outputs))


@given(world=worlds([(2, 2, 2), (3, 2), (6, 2)]), data=st.data())
@settings(max_examples=30)
def test_the_worst_mechanism_is_private_and_leaks_the_lower_bound(
    world: World, data: st.DataObject
) -> None:
    shape = shape_of(world)
    epsilon = tuple(data.draw(st.sampled_from([1e-13, 1e-6, 0.1, 0.5, 4.0])) for _ in shape)
    found = translation_exact(world, epsilon)
    loss = leakage(world, found.mechanism)
    assert found.lower <= loss.epsilon <= found.upper + loss.slack
    assert_private_in_exact_arithmetic(found, shape)
    left, right = (world.weights[0] * mask for mask in masks(world))
    assert mpmath.mpf(found.lower) <= exact_loss(found.mechanism.likelihood[:, 0], left, right)


def assert_private_in_exact_arithmetic(found: ExactTranslation, shape: tuple[int, ...]) -> None:
    """The floats of the mechanism obey the inequalities themselves, not only about."""
    with mpmath.workdps(60):
        limits = [mpmath.exp(mpmath.mpf(float(e))) for e in found.epsilon]
        for column in found.mechanism.likelihood.T:
            cells = column.reshape(shape)
            for j, limit in enumerate(limits):
                for low, high in zip(
                    cells.min(axis=j).ravel(), cells.max(axis=j).ravel(), strict=True
                ):
                    assert mpmath.mpf(float(high)) <= limit * mpmath.mpf(float(low))


def exact_loss(g: Floats, left: Floats, right: Floats) -> Any:
    """The loss log E[g|s]/E[g|s′] with 60 digits; weights need not sum to 1."""
    with mpmath.workdps(60):

        def mean(weight: Floats) -> Any:
            w = [mpmath.mpf(float(x)) for x in weight]
            return mpmath.fdot(w, [mpmath.mpf(float(x)) for x in g]) / mpmath.fsum(w)

        return mpmath.log(mean(left) / mean(right))


@given(
    world=worlds([(2, 2, 2), (3, 2), (5, 2)]),
    seed=st.integers(0, 2**32 - 1),
    epsilon=st.floats(0.01, 3.0),
)
@settings(max_examples=60)
def test_a_solver_that_errs_cannot_break_a_bound(world: World, seed: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    shape = shape_of(world)
    allowance = np.full(len(shape), epsilon)
    mu, nu = (world.conditional(0, s) for s in (world.pairs[0].left, world.pairs[0].right))
    truth = oracle.worst_loss_by_transport(world.weights[0], *masks(world), shape, tuple(allowance))
    problem = TransportProblem.between(mu, nu, allowance, shape)
    log_g = rng.normal(0, 2, len(mu))
    g = witness(log_g, allowance, shape)
    assert admissible(g, allowance, shape)
    bound = 0.0
    if problem.shape:
        net = network(problem)
        flow = rng.exponential(0.3, len(net.tail)) * (rng.random(len(net.tail)) < 0.5)
        bound = np.log(route(net, problem, rng.normal(0, 2, net.datasets), flow))
    assert truth <= problem.settled + bound + 1e-7
    assert float(exact_loss(g, mu, nu)) <= truth + 1e-7


def test_copies_cost_a_group_and_independent_entries_cost_one() -> None:
    universe = Tables.bits(5)
    same = np.zeros(32)
    same[[0, 31]] = 0.3, 0.7  # zeros elsewhere do no harm
    world = World(universe, (Explicit(universe, same, "copies"),), entry_pairs(universe))
    assert translation_exact(world, 0.3).upper == pytest.approx(1.5, abs=1e-12)
    lone = Explicit.independent(universe, {j: [0.2, 0.8] for j in range(5)}, name="independent")
    world = World(universe, (lone,), entry_pairs(universe))
    found = translation_exact(world, np.array([0.1, 0.2, 0.3, 0.4, 0.5]))
    assert found.upper == pytest.approx(0.5, abs=1e-12)
    assert found.binding.pair.left.entry == 4  # type: ignore[union-attr]


def test_entries_that_nobody_touches_do_not_count() -> None:
    prior = chain(0.9, 0.8, 5)
    world = World(prior.universe, (prior,), (SecretPair(EntryIs(2, (1,)), EntryIs(2, (0,))),))
    silent = translation_exact(world, 0.0)
    assert (silent.upper, silent.lower) == (0.0, 0.0)
    only = translation_exact(world, {0: 0.0, 1: 0.0, 2: 0.7, 3: 0.0, 4: 0.0})
    assert only.upper == pytest.approx(0.7, abs=1e-12)
    ends = translation_exact(world, [1.0, 0.0, 0.0, 0.0, 0.0])
    law = prior.probability.reshape(2, 2, 2, 2, 2).sum(axis=(1, 3, 4))  # [first, secret]
    split = [law[:, 1] / law[:, 1].sum(), law[:, 0] / law[:, 0].sum()]
    g = np.exp([0.0, 1.0])
    assert ends.upper == pytest.approx(float(np.log(split[0] @ g / (split[1] @ g))), abs=1e-12)


def test_all_pairs_and_priors_are_compared() -> None:
    sticky, loose = chain(0.9, 0.9, 4), chain(0.6, 0.6, 4)
    universe = sticky.universe
    assert isinstance(universe, Tables)
    priors = tuple(
        Explicit(universe, prior.probability, name)
        for prior, name in [(loose, "loose"), (sticky, "sticky")]
    )
    world = World(universe, priors, entry_pairs(universe))
    found = translation_exact(world, 0.5)
    assert found.binding.prior == found.attacked.prior == "sticky"
    assert found.uppers.shape == (8, 2)
    assert found.upper == found.uppers.max()
    assert found.lower == found.lowers.max()
    for p, pair in enumerate(world.pairs):
        alone = translation_exact(world, 0.5, pairs=[pair])
        assert alone.upper == found.uppers[p].max()


def test_a_pair_that_a_prior_rules_out_is_left_out() -> None:
    universe = Tables.bits(2)
    sure = Explicit(universe, np.array([0.5, 0.5, 0.0, 0.0]), "first is 0")
    even = Explicit.uniform(universe)
    world = World(universe, (sure, even), (FIRST,), unsupported="skip")
    found = translation_exact(world, 1.0)
    assert found.uppers[0, 0] == -np.inf
    assert found.upper == pytest.approx(1.0, abs=1e-12)
    with raises(InvalidWorld, field="world"):
        translation_exact(World(universe, (sure,), (FIRST,), unsupported="skip"), 1.0)


@pytest.mark.parametrize(
    ("epsilon", "problem", "field", "facts"),
    [
        (float("inf"), UnsoundRequest, "epsilon", ()),
        (float("nan"), UnsoundRequest, "epsilon", ()),
        (-0.1, UnsoundRequest, "epsilon", ("0",)),
        ([1.0, 1.0], InvalidWorld, "epsilon", ("3",)),
        ({0: 1.0, 1: 1.0}, InvalidWorld, "epsilon", ("2",)),
        ({0: 1.0, 1: 1.0, 2: 1.0, "x": 1.0}, InvalidWorld, "entry", ("'x'",)),
        ("abc", InvalidWorld, "epsilon", ()),
        (150.0, TooLarge, "epsilon", ("300",)),
    ],
)
def test_an_allowance_without_meaning_is_refused(
    epsilon: Any, problem: type[Exception], field: str, facts: tuple[str, ...]
) -> None:
    universe = Tables.bits(3)
    world = World(universe, (Explicit.uniform(universe),), (FIRST,))
    with raises(problem, field=field) as caught:
        translation_exact(world, epsilon)
    assert all(fact in str(caught.value) for fact in facts)


def test_what_cannot_be_certified_is_not_returned() -> None:
    prior = chain(0.9, 0.9, 5)
    world = World(prior.universe, (prior,), (SecretPair(EntryIs(2, (1,)), EntryIs(2, (0,))),))
    with raises(UnsoundRequest, field="tolerance", given=1e-17):
        translation_exact(world, 1.0, tolerance=1e-17)
    with raises(UnsoundRequest, field="tolerance", given=0.0):
        translation_exact(world, 1.0, tolerance=0.0)


def test_worlds_without_tables_or_listed_priors_are_refused() -> None:
    weather = Universe((0, 1))
    pair = SecretPair(Holds("zero", lambda d: d == 0), Holds("one", lambda d: d == 1))
    with raises(InvalidWorld, field="world"):
        translation_exact(World(weather, (Explicit.uniform(weather),), (pair,)), 1.0)
    bits = Tables.bits(2)
    with raises(InvalidWorld, field="priors"):
        translation_exact(World(bits, Knowledge(bits), (FIRST,)), 1.0)
