"""Every definition against its own meaning, computed another way."""

from itertools import permutations, product
from math import comb, inf, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidPrior, InvalidWorld, TooLarge
from takifugu.finite import FiniteMechanism, leakage
from takifugu.finite.world import World
from takifugu.papers.composition.definitions import (
    ABSENT,
    bayesian_privacy,
    blowfish_privacy,
    conditional_inference_privacy,
    dependent_privacy,
    differential_privacy,
    distributional_privacy,
    group_privacy,
    inferential_privacy,
    noiseless_privacy,
    per_entry_privacy,
)
from takifugu.priors import Explicit, Tables, Universe
from takifugu.priors.secrets import entry_pairs
from tests.raising import raises

SMALL = Tables.of({"a": (0, 1), "b": (0, 1, 2), "c": (0, 1)})
SEEDS = st.integers(0, 2**32 - 1)
FEW = settings(max_examples=25)


def mechanism(universe: Universe, seed: int, *, outputs: int = 3) -> FiniteMechanism:
    rng = np.random.default_rng(seed)
    return FiniteMechanism(universe, rng.dirichlet(np.ones(outputs), len(universe)))


def random_prior(tables: Tables, rng: np.random.Generator) -> Explicit:
    return Explicit(tables, rng.dirichlet(np.ones(len(tables))))


def largest_ratio(table: Any, tables: Tables, comparable: Any) -> float:
    """The largest log P(ω|D)/P(ω|D′) over datasets for which ``comparable`` says yes."""
    return max(
        log(table[i, w] / table[k, w])
        for (i, a), (k, b) in permutations(enumerate(tables.datasets), 2)
        if comparable(a, b)
        for w in range(table.shape[1])
    )


def differ(a: Any, b: Any) -> list[int]:
    return [j for j, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]


def loss(world: World, m: FiniteMechanism) -> float:
    return leakage(world, m).epsilon


@given(seed=SEEDS)
@FEW
def test_per_entry_privacy_compares_tables_that_differ_in_one_cell(seed: int) -> None:
    m = mechanism(SMALL, seed)
    truth = largest_ratio(m.likelihood, SMALL, lambda a, b: len(differ(a, b)) == 1)
    assert loss(per_entry_privacy(SMALL), m) == pytest.approx(truth, abs=1e-12)
    assert loss(differential_privacy(SMALL), m) == pytest.approx(truth, abs=1e-12)


@given(seed=SEEDS)
@FEW
def test_differential_privacy_replaces_whole_records(seed: int) -> None:
    owned = Tables.of(
        {"a": (0, 1), "b": (0, 1, 2), "c": (0, 1)}, records={"a": "ann", "b": "bob", "c": "ann"}
    )
    m = mechanism(owned, seed)
    truth = largest_ratio(m.likelihood, owned, lambda a, b: differ(a, b) in ([0], [1], [2], [0, 2]))
    assert loss(differential_privacy(owned), m) == pytest.approx(truth, abs=1e-12)


@given(seed=SEEDS)
@FEW
def test_no_product_prior_sees_more_than_the_listed_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = mechanism(SMALL, seed)
    law: dict[str | int, Any] = {
        name: rng.dirichlet(np.full(n, 0.5)) for name, n in zip("abc", SMALL.shape, strict=True)
    }
    seen = loss(inferential_privacy([Explicit.independent(SMALL, law)]), m)
    assert seen <= loss(differential_privacy(SMALL), m) + 1e-12


@pytest.mark.parametrize("size", [1, 2, 3])
@given(seed=SEEDS)
@settings(max_examples=8)
def test_group_privacy_replaces_that_many_cells(size: int, seed: int) -> None:
    m = mechanism(SMALL, seed)
    truth = largest_ratio(m.likelihood, SMALL, lambda a, b: len(differ(a, b)) <= size)
    assert loss(group_privacy(SMALL, size=size), m) == pytest.approx(truth, abs=1e-12)
    assert loss(dependent_privacy(SMALL, size=size), m) == pytest.approx(truth, abs=1e-12)


@given(seed=SEEDS)
@FEW
def test_dependence_within_blocks_is_group_privacy_for_the_blocks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = mechanism(SMALL, seed)
    world = dependent_privacy(SMALL, blocks=[("a", "b"), ("c",)])
    truth = largest_ratio(
        m.likelihood, SMALL, lambda a, b: set(differ(a, b)) in ({0}, {1}, {0, 1}, {2})
    )
    assert loss(world, m) == pytest.approx(truth, abs=1e-12)
    inside = rng.dirichlet(np.full(6, 0.3))
    outside = rng.dirichlet(np.ones(2))
    assumed = Explicit(SMALL, np.outer(inside, outside).ravel())
    assert loss(inferential_privacy([assumed]), m) <= truth + 1e-12


def coins(n: int) -> Explicit:
    return Explicit.uniform(Tables.bits(n))


def test_under_fair_coins_parity_is_private_and_a_count_is_not() -> None:
    prior = coins(5)
    parity = FiniteMechanism.from_function(prior.universe, lambda d: sum(d) % 2)
    assert loss(noiseless_privacy(prior), parity) <= 1e-12
    count = FiniteMechanism.from_function(prior.universe, lambda d: sum(d))
    assert loss(noiseless_privacy(prior), count) == inf  # all ones gives everybody away


@pytest.mark.parametrize("n", [4, 7])
def test_a_clipped_count_under_fair_coins_leaks_what_binomials_say(n: int) -> None:
    prior = coins(n)
    clipped = FiniteMechanism.from_function(prior.universe, lambda d: min(max(sum(d), 1), n - 1))
    worst = 0.0
    for k in range(1, n):
        merged = [0, 1] if k == 1 else [n - 1, n] if k == n - 1 else [k]
        one = sum(comb(n - 1, j - 1) for j in merged if j >= 1)
        zero = sum(comb(n - 1, j) for j in merged)
        worst = max(worst, abs(log(one / zero)))
    assert loss(noiseless_privacy(prior), clipped) == pytest.approx(worst, abs=1e-12)


@given(seed=SEEDS)
@FEW
def test_inferential_privacy_bounds_how_far_odds_move(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = mechanism(SMALL, seed)
    priors = [random_prior(SMALL, rng), random_prior(SMALL, rng)]
    worst = 0.0
    for prior, w in product(priors, range(3)):
        after = prior.probability * m.likelihood[:, w]
        for j, n in enumerate(SMALL.shape):
            before_j = [prior.probability[SMALL.codes[:, j] == x].sum() for x in range(n)]
            after_j = [after[SMALL.codes[:, j] == x].sum() for x in range(n)]
            for x, y in permutations(range(n), 2):
                moved = log(after_j[x] / after_j[y]) - log(before_j[x] / before_j[y])
                worst = max(worst, moved)
    assert loss(inferential_privacy(priors), m) == pytest.approx(worst, abs=1e-12)


@given(seed=SEEDS)
@FEW
def test_bayesian_privacy_runs_from_inferential_to_differential(seed: int) -> None:
    prior = random_prior(SMALL, np.random.default_rng(seed))
    m = mechanism(SMALL, seed)
    nobody = loss(bayesian_privacy([prior], known=[()]), m)
    assert nobody == pytest.approx(loss(inferential_privacy([prior]), m), abs=1e-12)
    most = [("b", "c"), ("a", "c"), ("a", "b")]
    everybody = loss(bayesian_privacy([prior], known=most), m)
    assert everybody == pytest.approx(loss(per_entry_privacy(SMALL), m), abs=1e-12)
    anybody = loss(bayesian_privacy([prior]), m)
    assert anybody >= max(nobody, everybody) - 1e-12


@given(seed=SEEDS)
@FEW
def test_bayesian_privacy_conditions_on_what_is_known(seed: int) -> None:
    prior = random_prior(SMALL, np.random.default_rng(seed))
    m = mechanism(SMALL, seed)
    worst = 0.0
    p = prior.probability.reshape(SMALL.shape)
    table = m.likelihood.reshape(*SMALL.shape, -1)
    for c in range(2):  # the adversary knows c; secrets are a and b
        joint = p[:, :, c, None] * table[:, :, c]
        for axis in (0, 1):
            given_value = joint.sum(axis=1 - axis) / p[:, :, c].sum(axis=1 - axis)[:, None]
            for x, y in permutations(range(len(given_value)), 2):
                worst = max(worst, float(np.log(given_value[x] / given_value[y]).max()))
    assert loss(bayesian_privacy([prior], known=[("c",)]), m) == pytest.approx(worst, abs=1e-12)


@given(seed=SEEDS)
@FEW
def test_blowfish_without_constraints_compares_along_the_graph(seed: int) -> None:
    m = mechanism(SMALL, seed)
    assert loss(blowfish_privacy(SMALL), m) == pytest.approx(
        loss(differential_privacy(SMALL), m), abs=1e-12
    )

    def along(a: Any, b: Any) -> bool:
        return len(differ(a, b)) == 1 and abs(a[1] - b[1]) <= 1

    path = blowfish_privacy(SMALL, graph={"b": [(0, 1), (1, 2)]})
    assert loss(path, m) == pytest.approx(largest_ratio(m.likelihood, SMALL, along), abs=1e-12)


def blowfish_neighbours(datasets: list[Any], secret: Any) -> set[tuple[Any, Any]]:
    """Definition 4.1 of He et al., word for word, over all triples."""

    def secrets(a: Any, b: Any) -> frozenset[Any]:
        return frozenset((j, a[j], b[j]) for j in differ(a, b) if secret(j, a[j], b[j]))

    def apart(a: Any, b: Any) -> set[Any]:
        return set(enumerate(a)) ^ set(enumerate(b))

    def beaten(a: Any, b: Any, c: Any) -> bool:
        t, u = secrets(a, c), secrets(a, b)
        return bool(t) and (t < u or (t == u and apart(a, c) < apart(a, b)))

    return {
        (a, b)
        for a, b in permutations(datasets, 2)
        if secrets(a, b) and not any(beaten(a, b, c) for c in datasets)
    }


@given(seed=SEEDS)
@FEW
def test_blowfish_with_constraints_compares_least_changes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keep = {d for d in SMALL.datasets if rng.random() < 0.6} | {(0, 0, 0), (1, 2, 1)}
    m = mechanism(SMALL, seed)
    near = blowfish_neighbours(
        [d for d in SMALL.datasets if d in keep], lambda j, x, y: j != 1 or abs(x - y) == 1
    )
    truth = largest_ratio(m.likelihood, SMALL, lambda a, b: (a, b) in near or (b, a) in near)
    world = blowfish_privacy(SMALL, graph={"b": [(0, 1), (1, 2)]}, allowed=lambda d: d in keep)
    assert loss(world, m) == pytest.approx(truth, abs=1e-12)


@given(seed=SEEDS)
@FEW
def test_a_public_total_makes_swaps_the_neighbours(seed: int) -> None:
    bits = Tables.bits(4)
    m = mechanism(bits, seed)
    world = blowfish_privacy(bits, allowed=lambda d: sum(d) == 2)
    truth = largest_ratio(
        m.likelihood, bits, lambda a, b: sum(a) == sum(b) == 2 and len(differ(a, b)) == 2
    )
    assert loss(world, m) == pytest.approx(truth, abs=1e-12)


@given(seed=SEEDS)
@FEW
def test_distributional_privacy_compares_with_an_erased_entry(seed: int) -> None:
    tables = Tables.of({"a": (0, 1), "b": (0, 1, 2)})
    prior = random_prior(tables, np.random.default_rng(seed))
    world = distributional_privacy([prior])
    m = mechanism(world.universe, seed)
    worst = 0.0
    for j in (0, 1):
        for x in tables.values[j]:
            cases: list[tuple[float, Any]] = list(
                zip(prior.probability, tables.datasets, strict=True)
            )
            here = [(p, d) for p, d in cases if d[j] == x]
            with_it = sum(p * m.likelihood[world.universe.position(d)] for p, d in here)
            without = sum(
                p * m.likelihood[world.universe.position((*d[:j], ABSENT, *d[j + 1 :]))]
                for p, d in here
            )
            worst = max(worst, float(np.abs(np.log(with_it / without)).max()))
    assert loss(world, m) == pytest.approx(worst, abs=1e-12)


def test_what_others_reveal_counts_for_inference_but_not_for_participation() -> None:
    tables = Tables.bits(2)
    twins = Explicit(tables, np.array([0.5, 0.0, 0.0, 0.5]))
    world = distributional_privacy([twins])
    ask_second = FiniteMechanism.from_function(world.universe, lambda d: d[1])
    table = leakage(world, ask_second)
    about_first = [i for i, pair in enumerate(world.pairs) if pair.left.entry == 0]  # type: ignore[union-attr]
    assert max(table.by_pair()[about_first]) <= 1e-12
    reveals = FiniteMechanism.from_function(tables, lambda d: d[1])
    about = inferential_privacy([twins], entries=[0])
    assert loss(about, reveals) == inf


@given(seed=SEEDS)
@FEW
def test_conditional_inference_keeps_near_places_only(seed: int) -> None:
    places = Tables.of(dict.fromkeys(range(2), (0, 1, 2, 3)))
    prior = random_prior(places, np.random.default_rng(seed))
    m = mechanism(places, seed)
    world = conditional_inference_privacy([prior], near=lambda x, y: abs(x - y) <= 1)
    everything = World(places, (prior,), entry_pairs(places))
    by_pair = leakage(everything, m).by_pair()
    near = [
        by_pair[i]
        for i, pair in enumerate(everything.pairs)
        if abs(pair.left.values[0] - pair.right.values[0]) <= 1  # type: ignore[union-attr, operator]
    ]
    assert loss(world, m) == pytest.approx(max(near), abs=1e-12)


def test_requests_without_meaning_are_refused() -> None:
    with raises(InvalidWorld, field="size"):
        group_privacy(SMALL, size=4)
    with raises(InvalidWorld, field="size"):
        dependent_privacy(SMALL, size=0)
    with raises(InvalidWorld, field="size"):
        dependent_privacy(SMALL)
    with raises(InvalidWorld, field="size"):
        dependent_privacy(SMALL, size=1, blocks=[("a",)])
    with raises(InvalidWorld, field="entry"):
        dependent_privacy(SMALL, blocks=[("z",)])
    with raises(InvalidWorld, field="allowed"):
        blowfish_privacy(SMALL, allowed=lambda d: d == (0, 0, 0))
    with raises(InvalidPrior, field="priors"):
        inferential_privacy([])
    with raises(InvalidPrior, field="priors"):
        noiseless_privacy(Explicit.uniform(Universe(("rain", "shine"))))
    with raises(InvalidPrior, field="priors"):
        inferential_privacy([coins(2), coins(3)])
    with raises(InvalidWorld, field="absent"):
        distributional_privacy([coins(2)], absent=1)


def test_what_does_not_fit_is_refused() -> None:
    with raises(TooLarge, size=100663296):
        per_entry_privacy(Tables.bits(12))
    with raises(TooLarge, size=1024):
        blowfish_privacy(Tables.bits(10))
    with raises(TooLarge, size=59417600):
        bayesian_privacy([coins(10)])
