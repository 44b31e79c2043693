"""Networks along junction trees: never below the exact LP, equal to it where theory says so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.errors import InvalidPrior, Malformed, TooLarge
from takifugu.finite import World
from takifugu.finite.translation_exact import translation_exact
from takifugu.priors import EntryIs, SecretPair, Secrets
from takifugu.priors.bif import read_bif
from takifugu.priors.networks import BayesianNetwork, MarkovRandomField, NetworkPrior
from takifugu.translation import chain_losses, network_losses
from takifugu.translation.search.products import product_witness
from tests.influence.strategies import fields, networks
from tests.oracles import junction as oracle
from tests.priors.files import example
from tests.raising import raises

LP = 1e-6  # what a general solver's answer is trusted to
MODELS = st.one_of(networks(), fields(), networks(zeros=False))
SPENT = st.sampled_from([0.0, 0.02, 0.1, 0.5, 1.3])


def shape(model: NetworkPrior) -> tuple[int, ...]:
    return tuple(len(states) for states in model.states)


def ends(model: NetworkPrior, pair: SecretPair) -> tuple[int, list[int], list[int]]:
    assert isinstance(pair.left, EntryIs) and isinstance(pair.right, EntryIs)
    entry = model.entries.index(pair.left.entry)
    states = list(model.states[entry])
    left, right = ([states.index(v) for v in side.values] for side in (pair.left, pair.right))  # type: ignore[arg-type]
    return entry, left, right


def truth(model: NetworkPrior, epsilon: list[float], pair: SecretPair) -> float:
    return oracle.worst_loss(
        model.explicit().probability, shape(model), epsilon, *ends(model, pair)
    )


@st.composite
def binary_trees(draw: st.DrawFn) -> BayesianNetwork:
    """Every entry has two values and at most one parent."""
    n = draw(st.integers(2, 6))
    probability = st.floats(0.02, 0.98)
    parents: list[tuple[int, ...]] = [()]
    tables: list[object] = [[p := draw(probability), 1 - p]]
    for v in range(1, n):
        parents.append((draw(st.integers(0, v - 1)),))
        tables.append([[p := draw(probability), 1 - p], [p := draw(probability), 1 - p]])
    return BayesianNetwork(tuple(range(n)), ((0, 1),) * n, tuple(parents), tuple(tables))  # type: ignore[arg-type]


def test_costs_too_far_apart_are_bounded_not_exponentiated() -> None:
    couple = MarkovRandomField.ising({0: 0.0, 1: 0.0}, {(0, 1): 1.0})
    assert network_losses(couple, [1.0, 900.0]).loss == pytest.approx(901.0)
    assert network_losses(couple, [1.0, 290.0]).loss < 291.0


@pytest.mark.nightly
@settings(max_examples=40)
@given(model=MODELS, data=st.data())
def test_no_mechanism_loses_more_and_the_witness_loses_what_it_says(
    model: NetworkPrior, data: st.DataObject
) -> None:
    spent = [data.draw(SPENT) for _ in model.entries]
    losses = network_losses(model, spent)
    possible = np.flatnonzero(np.isfinite(losses.upper))
    if not possible.size:
        return
    n = data.draw(st.sampled_from(possible.tolist()))
    pair = losses.pairs[n]
    exact = truth(model, spent, pair)
    assert exact <= losses.upper[n] + LP
    witness = product_witness(model, spent, pair)
    law = model.explicit().probability
    shown = oracle.product_loss(law, shape(model), witness.factors, *ends(model, pair))
    assert witness.lower <= shown + 1e-12 and witness.lower == pytest.approx(shown, abs=1e-9)
    assert shown <= exact + LP
    for factor, epsilon in zip(witness.factors, spent, strict=True):
        assert factor.min() >= 1 and factor.max() <= np.exp(epsilon)


@pytest.mark.costly
@settings(max_examples=40)
@given(model=binary_trees(), data=st.data())
def test_trees_of_two_values_are_exact(model: BayesianNetwork, data: st.DataObject) -> None:
    spent = [data.draw(SPENT) for _ in model.entries]
    losses = network_losses(model, spent)
    n = data.draw(st.integers(0, len(losses.pairs) - 1))
    assert losses.upper[n] == pytest.approx(truth(model, spent, losses.pairs[n]), abs=LP)
    assert losses.upper[n] <= np.sum(spent) + 1e-9


@pytest.mark.costly
@settings(max_examples=20)
@given(model=networks(most=4), data=st.data())
def test_groups_of_values_can_be_asked_about(model: BayesianNetwork, data: st.DataObject) -> None:
    three = [e for e, states in zip(model.entries, model.states, strict=True) if len(states) == 3]
    if not three:
        return
    secrets = Secrets((data.draw(st.sampled_from(three)),), ((("s0",), ("s1", "s2")),))
    spent = [data.draw(SPENT) for _ in model.entries]
    losses = network_losses(model, spent, secrets)
    assert len(losses.pairs) == 2
    for pair, upper in zip(losses.pairs, losses.upper, strict=True):
        if np.isfinite(upper):
            assert truth(model, spent, pair) <= upper + LP


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_asia_equals_the_exact_translation_for_its_worst_secret(epsilon: float) -> None:
    asia = read_bif(example("asia"))
    losses = network_losses(asia, epsilon)
    assert losses.binding is not None
    law = asia.explicit()
    exact = translation_exact(World(law.universe, (law,), (losses.binding,)), epsilon)
    assert exact.upper - 1e-9 <= losses.loss <= exact.lower + 1e-6
    assert product_witness(asia, epsilon, losses.binding).lower >= exact.lower - 1e-6


@pytest.mark.nightly
def test_alarm_loses_a_third_of_what_group_privacy_says() -> None:
    alarm = read_bif(example("alarm"))
    losses = network_losses(alarm, 0.1)
    assert losses.loss <= 1.1  # group DP: 3.7
    assert losses.binding is not None
    assert 1.0 <= product_witness(alarm, 0.1, losses.binding).lower <= losses.loss
    assert np.isfinite(losses.upper).all() and (losses.by_entry >= 0.1).all()


@pytest.mark.nightly
def test_a_long_chain_agrees_with_the_recursion_for_chains() -> None:
    rows, start, length = np.array([[0.9, 0.1], [0.2, 0.8]]), [0.6, 0.4], 60
    chain = BayesianNetwork(
        tuple(range(length)),
        ((0, 1),) * length,
        ((), *((i,) for i in range(length - 1))),
        (start, *(rows,) * (length - 1)),  # type: ignore[arg-type]
    )
    spent = np.where(np.arange(length) % 7 == 3, 0.0, 0.1)
    other = chain_losses(rows, spent, start=start)
    assert network_losses(chain, spent).by_entry == pytest.approx(other.by_entry, rel=1e-4)


def test_what_cannot_happen_is_not_asked() -> None:
    model = BayesianNetwork(
        ("a", "b"),
        ((0, 1, 2), (0, 1)),
        ((), ("a",)),
        ([0.5, 0.5, 0.0], [[1, 0], [0, 1], [1, 0]]),  # type: ignore[arg-type]
    )
    losses = network_losses(model, {"a": 0.1, "b": 0.2})
    losses_of = {str(pair): float(v) for pair, v in zip(losses.pairs, losses.upper, strict=True)}
    assert losses_of["a=0 / a=1"] == pytest.approx(0.3) and losses_of["a=0 / a=2"] == -np.inf
    with raises(InvalidPrior, field="pair", reason="impossible"):
        product_witness(model, 0.1, SecretPair(EntryIs("a", (0,)), EntryIs("a", (2,))))
    certain = BayesianNetwork(("a",), ((0, 1),), ((),), ([1.0, 0.0],))  # type: ignore[arg-type]
    assert network_losses(certain, 0.1).binding is None and network_losses(certain, 0.1).loss == 0


def test_entries_that_nobody_queried_cost_nothing_and_independent_ones_only_themselves() -> None:
    apart = MarkovRandomField.ising({0: 0.3, 1: -1.0, 2: 0.0}, {(0, 1): 1.0})
    losses = network_losses(apart, [0.0, 0.0, 0.7])
    assert losses.by_entry == pytest.approx([0.0, 0.0, 0.7], abs=1e-12)


def grid(side: int) -> MarkovRandomField:
    places = [(i, j) for i in range(side) for j in range(side)]
    near = [
        (a, b) for a in places for b in places if a < b and abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1
    ]
    name = {place: f"{place}" for place in places}
    return MarkovRandomField.ising(
        {name[p]: 0.0 for p in places}, {(name[a], name[b]): 0.5 for a, b in near}, name="grid"
    )


def test_dense_models_are_refused_with_their_cliques_and_a_way_out() -> None:
    with raises(TooLarge, field="largest", limit=64) as refused:
        network_losses(grid(7), 0.1, largest=64)
    assert refused.value.size is not None and refused.value.size > 64


@pytest.mark.parametrize(
    "epsilon", [-0.1, float("nan"), float("inf"), [0.1], {"a": 0.1}, {"b": 1, "zz": 2}, "much"]
)
def test_bad_spendings_are_refused(epsilon: object) -> None:
    model = MarkovRandomField.ising({"a": 0.0, "b": 0.0}, {})
    with raises(Malformed, field="epsilon"):
        network_losses(model, epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (SecretPair(EntryIs("a", (0,)), EntryIs("b", (1,))), "entries"),
        (SecretPair(EntryIs("z", (0,)), EntryIs("z", (1,))), "entry"),
        (SecretPair(EntryIs("a", (0,)), EntryIs("a", (7,))), "value"),
        (SecretPair(EntryIs("a", (0,)), EntryIs("a", (0, 1))), "overlap"),
    ],
)
def test_pairs_that_make_no_sense_are_refused(pair: SecretPair, reason: str) -> None:
    model = MarkovRandomField.ising({"a": 0.0, "b": 0.0}, {})
    with raises(InvalidPrior, field="pair", reason=reason):
        product_witness(model, 0.1, pair)


def test_models_without_a_dataset_or_beyond_float64_are_refused() -> None:
    never = MarkovRandomField(
        ("a", "b"),
        ((0, 1),) * 2,
        tuple(np.eye(2)),
        (("a", "b"),),
        (np.eye(2),),
    )
    with raises(InvalidPrior, field="factors", reason="impossible"):
        network_losses(never, 0.1)
    tiny: Floats = np.array([[1.0, 2.0**-400], [2.0**-400, 1.0]])
    wide = MarkovRandomField(
        ("a", "b", "c"),
        ((0, 1),) * 3,
        (np.ones(2),) * 3,
        (("a", "b"), ("b", "c"), ("a", "c")),
        (tiny,) * 3,
    )
    with raises(TooLarge, field="factors", reason="range"):
        network_losses(wide, 0.1)
