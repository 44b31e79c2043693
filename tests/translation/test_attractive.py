"""Attractive fields: the closed form against linear programs; pinning against the closed form."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import Malformed, TooLarge, UnsoundRequest
from takifugu.finite import World
from takifugu.finite.translation_exact import translation_exact
from takifugu.priors import EntryIs, SecretPair, Secrets
from takifugu.priors.contacts import contagion, read_contacts
from takifugu.priors.networks import BayesianNetwork, Factor, MarkovRandomField, NetworkPrior
from takifugu.priors.universe import Name
from takifugu.translation import network_losses
from takifugu.translation.certify.fields import pairwise_field
from takifugu.translation.search.products import product_witness
from tests.influence.strategies import attractive
from tests.oracles import translation as oracle
from tests.raising import raises
from tests.real_data import real
from tests.translation.rising_fields import attractive_losses, log_odds_rise

SPENT = st.sampled_from([0.0, 0.02, 0.1, 0.5, 1.3])


def values_of(pair: SecretPair) -> tuple[int, int]:
    assert isinstance(pair.left, EntryIs)
    entry, value = pair.left.entry, pair.left.values[0]
    assert isinstance(entry, int) and isinstance(value, int)
    return entry, value


def ising(seed: int, n: int, *, pull: float, density: float = 0.6) -> MarkovRandomField:
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < density]
    return MarkovRandomField.ising(
        {i: float(rng.normal(-1.5, 1)) for i in range(n)},
        {pair: float(rng.exponential(pull)) for pair in pairs},
    )


@pytest.mark.costly
@settings(max_examples=25)
@given(model=attractive(), data=st.data())
def test_no_mechanism_is_worse_than_the_one_that_counts(
    model: MarkovRandomField, data: st.DataObject
) -> None:
    spent = [data.draw(SPENT) for _ in model.entries]
    losses = attractive_losses(model, spent)
    assert losses.exact
    n = data.draw(st.integers(0, len(losses.pairs) - 1))
    law = model.explicit()
    exact = translation_exact(World(law.universe, (law,), (losses.pairs[n],)), spent)
    assert losses.upper[n] == pytest.approx(exact.upper, abs=1e-6)
    assert losses.lower[n] <= exact.upper and exact.lower <= losses.upper[n]


@pytest.mark.nightly
@settings(max_examples=25)
@given(model=attractive(most=8), data=st.data())
def test_the_closed_form_lies_between_the_bounds_by_sums_and_by_pinning(
    model: MarkovRandomField, data: st.DataObject
) -> None:
    spent = tuple(data.draw(SPENT) for _ in model.entries)
    law = model.explicit().probability
    exact = [
        float(oracle.attractive_loss(law, (2,) * len(spent), *values_of(pair), spent))
        for pair in attractive_losses(model, spent).pairs
    ]
    summed = attractive_losses(model, spent)
    assert (summed.lower <= np.array(exact) + 1e-12).all()
    assert (summed.upper >= np.array(exact) - 1e-12).all()
    assert (summed.upper - summed.lower <= 1e-11).all()
    for visits in (1, 300):
        pinned = attractive_losses(model, spent, largest=1, visits=visits)
        assert not pinned.exact and pinned.pairs == summed.pairs
        assert (pinned.lower <= summed.upper).all() and (summed.lower <= pinned.upper).all()


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(6))
def test_pinning_brackets_fields_of_twelve_and_is_close_where_contacts_are_weak(seed: int) -> None:
    for pull, density, share in ((0.1, 0.9, 0.02), (0.5, 0.4, 0.5)):
        model = ising(seed, 12, pull=pull, density=density)
        spent = np.random.default_rng(seed).uniform(0, 0.4, 12)
        exact = attractive_losses(model, spent)
        pinned = attractive_losses(model, spent, largest=1, visits=20_000)
        assert (pinned.lower <= exact.upper).all() and (exact.lower <= pinned.upper).all()
        assert pinned.gap <= share * exact.loss


def test_the_walk_is_exact_on_a_tree_and_on_a_short_cycle() -> None:
    tree: dict[tuple[Name, Name], float] = {(i, i // 2): 1.2 for i in range(2, 8)}
    ring: dict[tuple[Name, Name], float] = {(i, i % 5 + 1): 1.2 for i in range(1, 6)}
    for contacts in (tree, ring):
        model = MarkovRandomField.ising(dict.fromkeys(range(1, 8), -0.5), contacts)
        spent = np.linspace(0.1, 0.4, 7)
        lower, upper = log_odds_rise(pairwise_field(model), spent, [2], visits=10**4, close=0.0)
        truth = attractive_losses(model, spent, Secrets((3,))).upper[1]
        assert lower[0] == pytest.approx(truth, abs=1e-9) == upper[0]


def test_more_visits_never_widen_the_bounds() -> None:
    model = ising(3, 14, pull=0.4)
    gaps = [attractive_losses(model, 0.1, largest=1, visits=v).gap for v in (1, 100, 3000, 30_000)]
    assert all(later <= earlier for earlier, later in pairwise(gaps))
    assert gaps[-1] < gaps[0] / 2


@pytest.mark.nightly
def test_counting_is_a_mechanism_that_loses_it_and_the_junction_tree_never_says_less() -> None:
    model = ising(5, 9, pull=0.6)
    spent = [0.3, 0.0, 0.1, 0.2, 0.3, 0.4, 0.05, 0.3, 0.3]
    losses = attractive_losses(model, spent)
    general = network_losses(model, spent)
    assert sorted(map(str, general.pairs)) == sorted(map(str, losses.pairs))
    above = {str(p): float(v) for p, v in zip(general.pairs, general.upper, strict=True)}
    for pair, upper, lower in zip(losses.pairs, losses.upper, losses.lower, strict=True):
        assert above[str(pair)] >= lower
        assert product_witness(model, spent, pair).lower == pytest.approx(upper, abs=1e-9)
    assert losses.binding is not None and losses.loss == losses.by_entry.max()


def test_tables_of_three_entries_are_summed_but_not_pinned() -> None:
    rows = np.array([[[0.9, 0.1], [0.7, 0.3]], [[0.7, 0.3], [0.2, 0.8]]])
    network = BayesianNetwork(
        (0, 1, 2), ((0, 1),) * 3, ((), (), (0, 1)), (np.full(2, 0.5), np.full(2, 0.5), rows)
    )
    with raises(UnsoundRequest, reason="repelling"):
        attractive_losses(network, 0.1)  # given the effect, one cause explains the other away
    both = _Joint()
    losses = attractive_losses(both, 0.3)  # type: ignore[arg-type]
    law = NetworkPrior.explicit(both)  # type: ignore[arg-type]
    for pair, upper in zip(losses.pairs, losses.upper, strict=True):
        exact = oracle.attractive_loss(law.probability, (2, 2, 2), *values_of(pair), (0.3,) * 3)
        assert upper == pytest.approx(float(exact), abs=1e-12)
    with raises(TooLarge, size=3, limit=2):
        attractive_losses(both, 0.3, largest=1)  # type: ignore[arg-type]


class _Joint:
    """One table over three entries that favours agreement."""

    entries = (0, 1, 2)
    states = ((0, 1),) * 3
    name = "joint"
    fitted_on = ()

    def factors(self) -> tuple[Factor, ...]:
        return (Factor((0, 1, 2), np.array([[[5.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 4.0]]])),)


def test_what_is_not_attractive_is_refused() -> None:
    repelling = MarkovRandomField.ising({0: 0.0, 1: 0.0}, {(0, 1): -0.1})
    with raises(UnsoundRequest, reason="repelling"):
        attractive_losses(repelling, 0.1)
    three = MarkovRandomField((0,), ((0, 1, 2),), (np.ones(3),), (), ())
    with raises(UnsoundRequest, reason="values"):
        attractive_losses(three, 0.1)
    with raises(Malformed, field="epsilon"):
        attractive_losses(MarkovRandomField.ising({0: 0.0}, {}), float("nan"))


def test_strong_couplings_and_large_losses_stay_finite_and_sound() -> None:
    model = MarkovRandomField.ising(
        dict.fromkeys(range(6), -200.0), {(i, j): 150.0 for i in range(6) for j in range(i)}
    )
    pinned = attractive_losses(model, 0.1)
    assert not pinned.exact
    assert 0.1 - 1e-9 <= pinned.attained <= pinned.loss <= 0.6 + 1e-9
    dense = ising(1, 6, pull=1.0)
    exact, pinned = attractive_losses(dense, 20.0), attractive_losses(dense, 20.0, largest=1)
    assert exact.exact
    assert (pinned.lower <= exact.upper).all() and (exact.lower <= pinned.upper).all()
    for epsilon in (200.0, 2000.0):
        steep = attractive_losses(dense, epsilon)
        assert not steep.exact and epsilon * (1 - 1e-9) <= steep.attained <= steep.loss
        assert steep.loss <= 6 * epsilon * (1 + 1e-9)


@pytest.mark.real_data
def test_counts_of_a_ward_are_bounded_to_a_hundredth() -> None:
    ward = contagion(
        read_contacts(real("hospital_contacts.csv.gz")), background=0.02, odds_per_hour=1.5
    )
    losses = attractive_losses(ward, 0.1, visits=20_000)
    assert not losses.exact and len(losses.pairs) == 150
    assert 0.136 <= losses.attained <= losses.loss <= 0.138  # group DP: 7.5
