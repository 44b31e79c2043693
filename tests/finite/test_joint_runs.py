"""Several runs: the loss is that of the k-fold product, found by other means."""

import math
from fractions import Fraction
from math import comb

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidMechanism, InvalidWorld, TooLarge
from takifugu.finite import FiniteMechanism, World, leakage
from takifugu.finite import joint_runs as branch
from takifugu.finite import joint_runs as composing
from takifugu.finite.evidence import (
    all_counts,
    counted_runs,
    distinct_outputs,
    multisets,
    reduce_evidence,
    revealing_multiset,
)
from takifugu.finite.joint_runs import joint_leakage, joint_mechanism, post_process, search
from takifugu.priors import Explicit, OneOf, SecretPair, Tables, Universe, both_ways, entry_pairs
from tests.oracles import finite as oracle
from tests.raising import raises
from tests.strategies import laws, mechanisms, worlds


def _masks(world: World) -> list[tuple[list[bool], list[bool]]]:
    return [(world.mask(p.left).tolist(), world.mask(p.right).tolist()) for p in world.pairs]


def _product(world: World, parts: list[tuple[FiniteMechanism, int]]) -> mpmath.mpf:
    probabilities = oracle.sequence([(m.likelihood.tolist(), k) for m, k in parts])
    return oracle.worst(world.weights.tolist(), _masks(world), probabilities)


@pytest.mark.nightly
@settings(max_examples=60)
@given(st.data())
def test_the_loss_of_a_composition_is_that_of_the_k_fold_product(data: st.DataObject) -> None:
    world = data.draw(worlds(max_datasets=5))
    one = data.draw(mechanisms(world.universe, max_outputs=3, name="one"))
    two = data.draw(mechanisms(world.universe, max_outputs=2, name="two"))
    parts = [(one, data.draw(st.integers(1, 3)))]
    if data.draw(st.booleans()):
        parts.append((two, data.draw(st.integers(1, 2))))
    exact = _product(world, parts)
    result = joint_leakage(world, parts)
    assert result.exact
    if mpmath.isinf(exact):
        assert result.epsilon == result.attained == math.inf
        assert result.method == "impossible on one side"
    else:
        with mpmath.workdps(50):
            assert mpmath.mpf(result.attained) <= exact <= mpmath.mpf(result.epsilon)
        assert result.epsilon - result.attained < 1e-11
    # the worst multiset does what is said of it
    probability = [Fraction(1)] * len(world.universe)
    seen = list(result.worst.output)  # type: ignore[call-overload]
    for mechanism, runs in parts:
        for _ in range(runs):
            column = oracle.column(
                mechanism.likelihood.tolist(), mechanism.outputs.index(seen.pop(0))
            )
            probability = [a * b for a, b in zip(probability, column, strict=True)]
    assert not seen
    pair = world.pairs.index(result.worst.pair)
    prior = [p.name for p in world.listed_priors].index(result.worst.prior)
    ratio = oracle.loss(world.weights.tolist()[prior], *_masks(world)[pair], probability)
    assert ratio is not None
    assert max(oracle.log(ratio), 0) == pytest.approx(result.attained, abs=1e-11)


@pytest.mark.costly
@settings(max_examples=40)
@given(st.data())
def test_the_mechanism_written_out_has_the_loss_of_the_composition(data: st.DataObject) -> None:
    world = data.draw(worlds(max_datasets=4, max_priors=1))
    one = data.draw(mechanisms(world.universe, max_outputs=3, name="one"))
    two = data.draw(mechanisms(world.universe, max_outputs=2, name="two"))
    parts = [(one, data.draw(st.integers(1, 3))), (two, 1)]
    whole = joint_mechanism(*parts)
    assert leakage(world, whole).epsilon == pytest.approx(float(_product(world, parts)), abs=1e-11)
    # the probability of a multiset is that of all its orders together
    rows = [(m.likelihood.tolist(), k) for m, k in parts]
    for d in range(len(world.universe)):
        total = sum((probability[d] for probability in oracle.sequence(rows)), Fraction(0))
        assert whole.likelihood[d].sum() == pytest.approx(float(total), rel=1e-12)


def test_the_probability_of_a_multiset_counts_its_orders() -> None:
    coin = FiniteMechanism(
        Universe(("a", "b")), np.array([[0.25, 0.75], [0.5, 0.5]]), ("H", "T"), "coin"
    )
    thrice = joint_mechanism((coin, 3))
    assert thrice.outputs == (("T", "T", "T"), ("H", "T", "T"), ("H", "H", "T"), ("H", "H", "H"))
    assert thrice.likelihood[0] == pytest.approx([27 / 64, 27 / 64, 9 / 64, 1 / 64])
    assert thrice.name == "3 × coin"
    die = FiniteMechanism(coin.universe, np.array([[1, 0], [0.5, 0.5]]), (1, 2), "die")
    assert joint_mechanism(coin, die).outputs == (("T", 2), ("T", 1), ("H", 2), ("H", 1))
    assert joint_mechanism(coin, die, coin) == joint_mechanism((coin, 2), die)


def _halves(seed: int, datasets: int) -> World:
    """The first half of the datasets against the second, both ways, under a random prior."""
    rng = np.random.default_rng(seed)
    universe = Universe(tuple(range(datasets)))
    low, high = universe.datasets[: datasets // 2], universe.datasets[datasets // 2 :]
    pairs = both_ways([SecretPair(OneOf("low", low), OneOf("high", high))])
    return World(universe, (Explicit(universe, rng.dirichlet(np.ones(datasets))),), pairs)


def _random(seed: int, datasets: int, outputs: int, *, never: float = 0.0) -> FiniteMechanism:
    """Any likelihoods, a share ``never`` of them 0; the first output is always possible."""
    rng = np.random.default_rng(1000 + seed)
    table = rng.dirichlet(np.ones(outputs), datasets) * (rng.random((datasets, outputs)) >= never)
    table[:, 0] += 1e-3
    table /= table.sum(axis=1, keepdims=True)
    return FiniteMechanism(Universe(tuple(range(datasets))), table, name=f"random {seed}")


@pytest.mark.nightly
@pytest.mark.parametrize("never", [0.0, 0.15, 0.4])
@pytest.mark.parametrize("seed", range(4))
def test_branch_and_bound_finds_what_listing_in_fractions_finds(
    seed: int, never: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(composing, "LISTED", 0)
    world, runs = _halves(seed, 10), 9
    mechanism = _random(seed, 10, 4, never=never)
    probabilities = oracle.unordered(mechanism.likelihood.tolist(), runs)
    exact = oracle.worst(world.weights.tolist(), _masks(world), probabilities)
    result = joint_leakage(world, [(mechanism, runs)], tolerance=0.0)
    assert result.exact
    if mpmath.isinf(exact):
        assert result.epsilon == math.inf
    else:
        assert result.method == "branch and bound"
        with mpmath.workdps(50):
            assert mpmath.mpf(result.attained) <= exact <= mpmath.mpf(result.epsilon)
        assert result.epsilon - result.attained < 1e-10


@pytest.mark.nightly
@settings(max_examples=20)
@given(st.data())
def test_branch_and_bound_agrees_with_listing_on_any_small_world(data: st.DataObject) -> None:
    world = data.draw(worlds())
    one = data.draw(mechanisms(world.universe, min_outputs=2, name="one"))
    two = data.draw(mechanisms(world.universe, max_outputs=3, name="two"))
    runs = (one, data.draw(st.integers(1, 6))), (two, data.draw(st.integers(1, 3)))
    evidence = reduce_evidence(world, counted_runs(runs))
    counts = all_counts(evidence.blocks).astype(float)
    for case in evidence.cases(world):
        listed = case.loss(counts)
        assert (revealing_multiset(case) is not None) == bool((listed == math.inf).any())
        if revealing_multiset(case) is None:
            found = search(case, floor=-math.inf, tolerance=0.0, boxes=100_000)
            assert found.counts is not None
            again = case.loss(found.counts[None].astype(float))[0]  # alone, not in a batch
            assert found.value == pytest.approx(again, abs=case.rounding)
            assert found.value == pytest.approx(listed.max(), abs=case.rounding)
            assert listed.max() <= found.upper + case.rounding
            assert found.upper - found.value <= 2 * case.rounding


@settings(max_examples=25)
@given(st.data())
def test_boxes_are_a_partition_and_their_bounds_hold_for_all_in_them(
    data: st.DataObject,
) -> None:
    world = data.draw(worlds(max_priors=1))
    one = data.draw(mechanisms(world.universe, min_outputs=2, name="one"))
    two = data.draw(mechanisms(world.universe, max_outputs=2, name="two"))
    evidence = reduce_evidence(world, counted_runs([(one, 5), (two, 2)]))
    counts = all_counts(evidence.blocks).astype(float)
    case = next(evidence.cases(world))
    losses = case.loss(counts)
    boxes = branch._box_of_everything(case)
    for _ in range(5):
        boxes, tried = branch._bounded(case, boxes, 3)
        assert (tried >= 0).all() and len(np.unique(tried, axis=0)) <= len(counts)
        inside = (boxes.low[:, None] <= counts).all(-1) & (counts <= boxes.high[:, None]).all(-1)
        assert (inside.sum(axis=0) == 1).all()  # every multiset is in one box
        most = np.where(inside, losses, -math.inf).max(axis=1)
        assert (most <= boxes.bound + case.rounding).all()
        wide = np.flatnonzero((boxes.high > boxes.low).any(axis=1))
        rest = np.flatnonzero((boxes.high == boxes.low).all(axis=1))
        if not len(wide):
            break
        boxes = boxes.pick(rest).join(branch._split(case, boxes.pick(wide)))


@pytest.mark.parametrize("seed", range(3))
def test_every_bound_met_on_the_way_is_a_bound(seed: int) -> None:
    world, mechanism = _halves(seed, 12), _random(seed, 12, 5)
    evidence = reduce_evidence(world, counted_runs([(mechanism, 10)]))
    counts = all_counts(evidence.blocks).astype(float)
    for case in evidence.cases(world):
        best, previous = float(case.loss(counts).max()), math.inf
        for boxes in (1, 3, 10, 30, 100, 300):
            found = search(case, floor=-math.inf, tolerance=0.0, boxes=boxes)
            assert found.value <= best + case.rounding
            assert best <= found.upper + case.rounding
            assert found.upper <= previous + 1e-12
            previous = found.upper


def test_a_search_cut_short_says_so_and_stays_between_its_bounds() -> None:
    world, mechanism = _halves(3, 32), _random(3, 32, 8)
    short = joint_leakage(world, [(mechanism, 30)], boxes=1)
    full = joint_leakage(world, [(mechanism, 30)])
    assert full.exact and not short.exact
    assert short.attained <= full.attained <= full.epsilon < short.epsilon
    assert full.epsilon - full.attained < 2e-9
    assert short.epsilon < math.inf


@pytest.mark.nightly
def test_fifty_runs_of_a_generic_mechanism_are_settled() -> None:
    universe = Tables.bits(6)
    rng = np.random.default_rng(7)
    world = World(
        universe, (Explicit(universe, rng.dirichlet(np.ones(64))),), entry_pairs(universe)
    )
    mechanism = FiniteMechanism(universe, rng.dirichlet(np.ones(10), 64))
    result = joint_leakage(world, [(mechanism, 50)])
    assert comb(59, 9) > 10**10  # too many to list
    assert result.exact and result.epsilon - result.attained < 2e-9
    # no multiset drawn at random, nor one run shifted from the best, does more
    output = [list(result.worst.output).count(o) for o in mechanism.outputs]  # type: ignore[call-overload]
    tried = rng.multinomial(50, rng.dirichlet(np.full(10, 0.3), 2000)).astype(float)
    near = np.array(output) + (np.eye(10)[:, None] - np.eye(10)[None]).reshape(-1, 10)
    near = near[(near >= 0).all(axis=1)]
    evidence = reduce_evidence(world, counted_runs([(mechanism, 50)]))
    for case in evidence.cases(world):
        for counts in (tried, near):
            assert case.loss(counts).max() <= result.epsilon


def test_many_runs_lose_at_most_the_odds_of_the_data() -> None:
    universe = Tables.bits(2)
    linked = Explicit(universe, np.array([0.45, 0.05, 0.05, 0.45]))
    coin = FiniteMechanism(
        universe, np.array([[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]])
    )
    own = World(universe, (linked,), entry_pairs(universe))
    assert joint_leakage(own, [(coin, 5)]).epsilon == pytest.approx(5 * math.log(3))
    # the pair of the other bit loses at most its prior odds, log 9
    other = World(universe, (linked,), entry_pairs(universe, entries=[1]))
    assert joint_leakage(other, [(coin, 50)]).epsilon == pytest.approx(math.log(9), abs=1e-6)


def test_two_runs_of_what_hides_one_bit_of_two_reveal_the_secret() -> None:
    universe = Universe(((0, 0), (0, 1), (1, 0), (1, 1)))
    secret = OneOf("0", ((0, 0), (0, 1))), OneOf("1", ((1, 0), (1, 1)))
    world = World(universe, (Explicit.uniform(universe),), both_ways([SecretPair(*secret)]))
    table = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5]])
    one, two = (
        joint_leakage(world, [(FiniteMechanism(universe, table), k)]).epsilon for k in (1, 2)
    )
    assert one < 1e-9 and two == math.inf


def test_outputs_that_say_the_same_are_merged() -> None:
    universe = Universe(("a", "b"))
    table = np.array([[0.1, 0.2, 0.3, 0.4, 0.0], [0.2, 0.4, 0.3, 0.1, 0.0]])
    assert distinct_outputs(FiniteMechanism(universe, table)) == [0, 2, 3]
    close = FiniteMechanism(universe, np.array([[0.1, 0.2, 0.7], [0.2, 0.4 + 1e-12, 0.4 - 1e-12]]))
    assert distinct_outputs(close) == [0, 1, 2]


def test_multisets_are_all_there_once() -> None:
    for outputs, runs in ((1, 4), (2, 5), (4, 3)):
        rows = [tuple(row) for row in multisets(outputs, runs).tolist()]
        assert sorted(rows) == sorted(oracle.multisets(outputs, runs))


@pytest.mark.costly
@settings(max_examples=40)
@given(st.data())
def test_post_processing_never_loses_more(data: st.DataObject) -> None:
    world = data.draw(worlds())
    mechanism = data.draw(mechanisms(world.universe))
    rows = len(mechanism.outputs)
    channel = data.draw(st.lists(laws(2), min_size=rows, max_size=rows))
    coarse = post_process(mechanism, channel, outputs=("yes", "no"))
    assert coarse.outputs == ("yes", "no")
    for d in range(len(world.universe)):
        exact = sum(
            Fraction(float(mechanism.likelihood[d, w])) * Fraction(channel[w][0])
            for w in range(rows)
        )
        assert coarse.likelihood[d, 0] == pytest.approx(float(exact), rel=1e-12)
    before = leakage(world, mechanism)
    assert leakage(world, coarse).epsilon <= before.epsilon + 1e-11


def test_what_cannot_be_written_out_is_refused_with_a_way_out() -> None:
    mechanism = _random(0, 8, 10)
    with raises(TooLarge, size=12565671261):
        joint_mechanism((mechanism, 50))
    rare = FiniteMechanism(Universe((0, 1)), np.array([[2.0**-300, 1 - 2.0**-300], [0.5, 0.5]]))
    with raises(TooLarge, reason="underflow"):
        joint_mechanism((rare, 2))
    rough = FiniteMechanism(Universe((0, 1)), np.array([[0.5, 0.5 + 9e-10], [0.5, 0.5]]))
    with raises(InvalidMechanism, field="likelihood"):
        joint_mechanism((rough, 4))


def test_bad_requests_get_one_clear_line() -> None:
    world, mechanism = _halves(0, 4), _random(0, 4, 2)
    other = FiniteMechanism(Universe(("x", "y")), np.eye(2), name="other")
    for runs in (0, -1, 1.5, True, "two"):
        with raises(InvalidMechanism, field="runs") as caught:
            joint_leakage(world, [(mechanism, runs)])  # type: ignore[list-item]
        assert mechanism.name in caught.value.given and repr(runs) in caught.value.given
    with raises(InvalidMechanism, field="runs"):
        joint_leakage(world, [])
    with raises(InvalidMechanism, field="runs"):
        joint_mechanism("mechanism")  # type: ignore[arg-type]
    with raises(InvalidWorld, field="mechanism") as elsewhere:
        joint_leakage(world, [mechanism, other])
    assert "'other'" in elsewhere.value.given
    with raises(InvalidMechanism, field="runs") as caught:
        joint_mechanism(mechanism, other)
    assert "'other'" in caught.value.given
    for tolerance in (-1.0, math.nan, math.inf):
        with raises(InvalidWorld, field="tolerance"):
            joint_leakage(world, [mechanism], tolerance=tolerance)
    with raises(InvalidWorld, field="boxes"):
        joint_leakage(world, [mechanism], boxes=0)
    with raises(InvalidMechanism, field="channel"):
        post_process(mechanism, np.full((3, 2), 0.5))
    with raises(InvalidMechanism, field="channel"):
        post_process(mechanism, [[0.5, 0.5], [0.25, 0.25]])
    with raises(InvalidMechanism, field="outputs"):
        post_process(mechanism, np.eye(2), outputs=("one",))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("outputs", "runs"), [(2, 1), (3, 2), (5, 8)])
def test_the_search_does_not_lean_on_its_local_search(
    seed: int, outputs: int, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branch, "_climb", lambda *given: (given[2], None))
    monkeypatch.setattr(branch, "_improved", lambda *given: (given[2], given[1]))
    world, mechanism = _halves(seed, 12), _random(seed, 12, outputs, never=0.1 * (seed % 2))
    evidence = reduce_evidence(world, counted_runs([(mechanism, runs)]))
    counts = all_counts(evidence.blocks).astype(float)
    for case in evidence.cases(world):
        listed = float(case.loss(counts).max())
        if listed < math.inf:
            found = search(case, floor=-math.inf, tolerance=0.0, boxes=100_000)
            assert found.value == pytest.approx(listed, abs=case.rounding)
            assert listed <= found.upper + case.rounding
