"""The translation of every family: between a mechanism that leaks and what no mechanism exceeds."""

import os
import warnings
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidWorld, UnsoundRequest
from takifugu.priors import (
    IndependentEntries,
    IntervalMarkovChain,
    MarkovChain,
    Product,
    Secrets,
    TruncatedGaussian,
)
from takifugu.priors.networks import BayesianNetwork, MarkovRandomField
from takifugu.translation import LooserTranslation, Translation, chain_losses
from takifugu.translation.translation import Method
from tests.oracles import binary_chains as binary
from tests.oracles import transport as oracle
from tests.raising import raises

INSTANCES = 2000 if os.environ.get("DEEP") else 110


def sticky(p: float, q: float, length: int | None = 7) -> MarkovChain:
    return MarkovChain(np.array([[p, 1 - p], [1 - q, q]]), length=length)


@pytest.mark.parametrize(
    ("p", "q", "epsilon", "loss"),
    [
        (0.9, 0.9, 0.2, 0.97324),
        (0.9, 0.9, 1, 4.12131),
        (0.6, 0.8, 0.5, 1.15846),
        (0.1, 0.3, 1, 3.14587),
    ],
)
def test_known_values_of_short_chains(p: float, q: float, epsilon: float, loss: float) -> None:
    answer = Translation(sticky(p, q)).explain(epsilon)
    assert answer.method == "transport" and answer.pufferfish == pytest.approx(loss, abs=6e-6)
    assert answer.lower == pytest.approx(answer.pufferfish, abs=1e-7)
    assert answer.binding is not None and answer.binding.entry == 3


@pytest.mark.parametrize(("p", "curve", "exact"), [(0.8, 0.0765, 0.2598), (0.9, 0.0315, 0.1157)])
def test_known_allowances_of_long_chains(p: float, curve: float, exact: float) -> None:
    translation = Translation(sticky(p, p, 1000))
    assert translation.to_dp(1.0, "curve") == pytest.approx(curve, abs=6e-5)
    assert translation.to_dp(1.0) == pytest.approx(exact, abs=2e-4)
    unbounded = Translation(sticky(p, p, None))
    assert unbounded.to_dp(1.0) == pytest.approx(exact, abs=2e-4)
    assert unbounded.to_pufferfish(unbounded.to_dp(1.0)) <= 1.0


@pytest.mark.nightly
def test_random_chains_lie_between_the_witness_and_the_transport() -> None:
    rng = np.random.default_rng(20261115)
    over: list[float] = []
    short: list[float] = []
    for k in range(INSTANCES):
        states = 2 + k % 2
        length = int(rng.integers(2, 9 if k % 20 == 0 else 7)) if states == 2 else 2 + k % 3
        if k % 40 == 1:
            length = 5
        chain = MarkovChain(
            rng.dirichlet(np.ones(states), states),
            start="stationary" if rng.random() < 0.5 else rng.dirichlet(np.ones(states)),
            length=length,
        )
        x, y = rng.permutation(states)[:2].tolist()
        secrets = Secrets(entries=(int(rng.integers(length)),), pairs=(((x,), (y,)),))
        epsilon = float(rng.choice([0.05, 0.3, 1.0, 2.0]))
        translation = Translation(chain, secrets)
        answer = translation.explain(epsilon)
        exact = Translation(chain.explicit(), secrets).bound(epsilon, "transport").value
        transport, curve, group = (answer.by_method[m] for m in ("transport", "curve", "group"))
        assert transport is not None and curve is not None and group is not None
        assert answer.lower <= exact + 1e-9 and exact <= transport + 2e-6
        assert answer.pufferfish == min(transport, curve, group)
        if states == 2:
            assert answer.lower == pytest.approx(exact, abs=1e-6)
            assert transport == pytest.approx(exact, abs=2e-6)
        else:
            over.append(transport / exact - 1)
            short.append(1 - answer.lower / exact)
    assert max(over) <= 0.02 and np.mean(over) <= 0.001
    assert max(short) <= 0.02 and np.mean(short) <= 0.001


def test_with_zeros_the_recursion_is_loose_and_blocks_are_not() -> None:
    rows = np.array([[0.5, 0.5, 0], [0, 0.4, 0.6], [0.7, 0, 0.3]])
    chain = MarkovChain(rows, start=np.array([1.0, 0, 0]), length=4)
    spent = np.full(4, 0.5)
    truth = oracle.written_out_chain_loss([rows] * 3, chain.start_law, spent, 3, 2, 0)
    assert truth == pytest.approx(0.94188, abs=1e-5)
    entry_by_entry = chain_losses(rows, spent, start=chain.start_law).at(3)[2, 0]
    assert entry_by_entry == pytest.approx(1.13799, abs=1e-5)
    secrets = Secrets(entries=(3,), pairs=(((2,), (0,)),))
    answer = Translation(chain, secrets).explain(0.5)
    assert answer.pufferfish == pytest.approx(truth, abs=1e-6)
    assert answer.lower == pytest.approx(truth, abs=1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize("length", [None, 100])
def test_long_chains_of_three_states_are_nearly_exact(length: int | None) -> None:
    rng = np.random.default_rng(8)
    gaps = []
    for _ in range(12):
        chain = MarkovChain(rng.dirichlet(np.ones(3), 3), length=length)
        answer = Translation(chain).explain(float(rng.choice([0.1, 0.5, 1.0])))
        gaps.append(answer.gap / answer.pufferfish)
        assert answer.gap >= 0
    assert np.mean(gaps) <= 0.01 and max(gaps) <= 0.05


@pytest.mark.costly
@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(["best", "transport", "curve", "group"]))
def test_an_allowance_keeps_its_target(seed: int, method: Method) -> None:
    rng = np.random.default_rng(seed)
    states = int(rng.integers(2, 4))
    length = None if seed % 3 == 0 else int(rng.integers(1, 9))
    chain = MarkovChain(rng.dirichlet(np.ones(states), states), length=length)
    translation = Translation(chain, uncertainty=0.1 * (seed % 2))
    targets = np.array([0.01, 0.3, 1.0, 4.0])
    allowed = translation.to_dp(targets, method)
    assert (translation.to_pufferfish(allowed, method) <= targets).all()
    assert (np.diff(allowed) >= 0).all()
    if method in ("best", "transport") and not translation.uncertainty:
        assert (translation.to_pufferfish(allowed * 1.02, method) > targets * 0.99).all()
    assert translation.to_pufferfish(0.0, method) == 0 and translation.to_dp(0.0, method) == 0


@pytest.mark.nightly
def test_a_profile_counts_each_entry_as_charged() -> None:
    rng = np.random.default_rng(5)
    rows = rng.dirichlet(np.ones(3), 3)
    chain = MarkovChain(rows, start=rng.dirichlet(np.ones(3)), length=4)
    spent = np.array([0.3, 0.0, 1.0, 0.2])
    answer = Translation(chain).explain(spent)
    assert answer.by_entry is not None and answer.by_entry.shape == (4,)
    assert answer.by_entry.max() == answer.by_method["transport"]
    for entry in range(4):
        true = max(
            oracle.written_out_chain_loss([rows] * 3, chain.start_law, spent, entry, x, y)
            for x, y in product(range(3), repeat=2)
            if x != y
        )
        assert true - 1e-7 <= answer.by_entry[entry] <= 1.1 * true
    assert answer.lower <= answer.pufferfish <= spent.sum() * (1 + 1e-12)
    with raises(UnsoundRequest, field="profile", given=3, needed=4):
        Translation(chain).explain(spent[:3])


def test_what_was_never_asked_beyond_a_window_is_still_covered() -> None:
    unbounded = Translation(sticky(0.9, 0.9, None)).explain(np.array([0.5, 0.5]))
    finite = Translation(sticky(0.9, 0.9, 40)).explain(np.r_[0.5, 0.5, np.zeros(38)])
    assert unbounded.pufferfish == pytest.approx(finite.pufferfish, abs=1e-9)


def test_groups_lose_no_more_than_their_worst_pair() -> None:
    rng = np.random.default_rng(11)
    chain = MarkovChain(rng.dirichlet(np.ones(3), 3), length=4)
    secrets = Secrets(entries=(1,), pairs=(((0, 1), (2,)),))
    exact = Translation(chain.explicit(), secrets).bound(0.7, "transport").value
    answer = Translation(chain, secrets).explain(0.7)
    transport = answer.by_method["transport"]
    assert transport is not None and exact <= transport + 1e-9
    assert 0.9 * exact <= answer.lower <= exact + 1e-9
    everything = Translation(chain).bound(0.7, "transport").value
    assert transport <= everything
    with pytest.raises(InvalidWorld):
        Translation(chain, Secrets(entries=(9,))).to_pufferfish(0.1)


def test_uncertainty_costs_the_logarithm_or_nothing() -> None:
    shift = np.log(1.2 / 0.8)
    plain, unsure = (Translation(sticky(0.9, 0.9), uncertainty=r) for r in (0.0, 0.2))
    for epsilon in (0.01, 1.0):
        bounds = unsure.explain(epsilon).by_method
        transport = plain.bound(epsilon, "transport").value
        assert bounds["transport"] == pytest.approx(transport + shift, abs=1e-12)
        assert bounds["group"] == plain.bound(epsilon, "group").value
    assert unsure.explain(0.01).method in ("group", "curve")  # ε·|I| < log 1.5
    assert unsure.to_pufferfish(0.01) == pytest.approx(0.07)


@pytest.mark.costly
@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_no_joint_law_within_the_uncertainty_loses_more(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain = MarkovChain(rng.dirichlet(np.ones(2), 2), length=3)
    written = chain.explicit()
    secrets = Secrets(entries=(1,), pairs=(((0,), (1,)),))
    r, epsilon = 0.2, float(rng.choice([0.1, 0.5]))
    states = written.universe.codes[:, 1]  # type: ignore[attr-defined]
    law = np.asarray(written.probability).copy()
    for value in (0, 1):  # each conditional P(D|s) moves by less than r, and still sums to 1
        here = states == value
        noise = 1 + rng.uniform(-0.09, 0.09, here.sum())
        moved = law[here] * noise
        law[here] = moved * law[here].sum() / moved.sum()
    shifted = type(written)(written.universe, law)
    exact = Translation(shifted, secrets).bound(epsilon, "transport").value
    assert exact <= float(Translation(chain, secrets, uncertainty=r).to_pufferfish(epsilon)) + 1e-9


def test_independent_entries_lose_what_they_were_charged() -> None:
    prior = IndependentEntries({"a": {"x": 0.5, "y": 0.5}, "b": {"x": 1.0}})
    translation = Translation(prior)
    assert translation.to_pufferfish(0.7) == 0.7 and translation.to_dp(0.7) == 0.7
    answer = translation.explain(np.array([0.1, 0.9]))  # b has no secrets
    assert answer.pufferfish == 0.1 and answer.lower == pytest.approx(0.1)


def test_a_product_loses_what_its_worst_person_does() -> None:
    people = Product({"ann": sticky(0.9, 0.9, 3), "bob": sticky(0.6, 0.6, 4)})
    translation = Translation(people)
    each = [float(Translation(part).to_pufferfish(0.5)) for part in people.parts.values()]
    assert translation.to_pufferfish(0.5) == max(each)
    assert translation.to_pufferfish(0.5, "group") == pytest.approx(4 * 0.5)
    answer = translation.explain(np.array([0, 0, 0, 0.1, 0.1, 0.1, 0.1]))
    assert answer.binding is not None and answer.binding.prior == "bob"
    assert answer.pufferfish == pytest.approx(Translation(people.parts["bob"]).to_pufferfish(0.1))


def test_the_group_bound_of_a_profile_is_no_less_than_its_exact_sum() -> None:
    """Half units in the last place vanish one by one in a float64 sum; all together they count."""
    spent = np.full(128, 0.999999 * 2.0**-53)
    spent[:8] = 1.0
    exact = sum(map(Fraction, spent.tolist()), Fraction(0))
    entries = IndependentEntries({k: {0: 0.5, 1: 0.5} for k in range(128)})
    priors = (sticky(0.9, 0.9, 128), Product({"ann": entries}))
    for prior, uncertainty in ((priors[0], 0.0), (priors[0], 0.1), (priors[1], 0.0)):
        group = Translation(prior, uncertainty=uncertainty).bound(spent, "group").value
        assert exact <= Fraction(group) <= exact * (1 + Fraction(1, 10**14))


def test_several_priors_lose_what_the_worst_does() -> None:
    priors = {"slow": sticky(0.95, 0.95), "fast": sticky(0.6, 0.6)}
    both = Translation(priors).explain(0.3)
    assert both.pufferfish == Translation(priors["slow"]).to_pufferfish(0.3)
    assert both.binding is not None and both.binding.prior == "slow"
    assert both.lower == pytest.approx(both.pufferfish, abs=1e-6)
    with raises(UnsoundRequest, field="prior"):
        Translation([])


@pytest.mark.nightly
def test_networks_and_fields_agree_with_the_world_written_out() -> None:
    rows = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    chain = MarkovChain(rows, start=np.array([0.2, 0.5, 0.3]), length=3)
    network = BayesianNetwork(
        ("a", "b", "c"), ((0, 1, 2),) * 3, ((), ("a",), ("b",)), (chain.start_law, rows, rows)
    )
    exact = Translation(chain.explicit()).bound(0.5, "transport").value
    answer = Translation(network).explain(0.5)
    assert answer.lower - 1e-9 <= exact <= answer.pufferfish + 1e-9
    assert answer.pufferfish <= 1.1 * exact
    ising = MarkovRandomField.ising({0: -1.0, 1: 0.2, 2: 0.0}, {(0, 1): 0.8, (1, 2): 1.1})
    found = Translation(ising).explain(0.4)
    exact = Translation(ising.explicit()).bound(0.4, "transport").value
    assert found.pufferfish == pytest.approx(exact, abs=1e-6) == found.lower
    target = float(Translation(ising).to_dp(1.0))
    assert Translation(ising).to_pufferfish(target) <= 1.0


@pytest.mark.nightly
@pytest.mark.parametrize("start", ["any", "stationary"])
def test_no_chain_within_intervals_loses_more(start: str) -> None:
    rng = np.random.default_rng(3)
    low = np.array([[0.69, 0.29], [0.19, 0.79]])
    high = np.array([[0.71, 0.31], [0.21, 0.81]])
    prior = IntervalMarkovChain(low, high, start=start, length=4)  # type: ignore[arg-type]
    answer = Translation(prior).explain(0.4)
    transport = answer.by_method["transport"]
    assert transport is not None and answer.lower <= answer.pufferfish
    worst = 0.0
    for _ in range(30):
        rows = []
        for _ in range(8):
            share = rng.integers(0, 2, 2)
            first = np.array([low[x, 0] + share[x] * 0.02 for x in range(2)])
            rows.append(np.stack([first, 1 - first], axis=1))
        law = rng.dirichlet([1, 1])
        for matrix in rows[:5]:
            law = law @ matrix
        if start == "any":
            law = rng.dirichlet([0.3, 0.3])
        for entry in range(4):
            loss = oracle.written_out_chain_loss(
                rows[5:8], law, np.full(4, 0.4), entry, *rng.permutation(2).tolist()
            )
            worst = max(worst, loss)
    assert worst <= transport <= 2 * worst  # it is not vacuous either


def test_a_gaussian_is_translated_by_its_curve() -> None:
    translation = Translation(TruncatedGaussian.process(5, length=0.5, bound=5.0, width=0.1))
    answer = translation.explain(0.1)
    assert answer.by_method["transport"] is None and answer.method in ("curve", "group")
    assert answer.pufferfish == translation.curve.to_pufferfish(0.1)
    assert answer.lower == pytest.approx(0.1)


@pytest.mark.nightly
def test_it_says_when_the_answer_is_looser() -> None:
    begins = MarkovChain(np.array([[0.9, 0.1], [0.1, 0.9]]), start=np.array([1.0, 0.0]))
    with pytest.warns(LooserTranslation):
        answer = Translation(begins).explain(0.1)
    assert answer.method == "curve"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Translation(sticky(0.9, 0.9)).explain(0.1)


@pytest.mark.parametrize("wrong", [-0.1, np.inf, np.nan, "much"])
def test_a_loss_that_is_no_number_is_refused(wrong: object) -> None:
    translation = Translation(sticky(0.9, 0.9))
    for translate in (translation.to_pufferfish, translation.to_dp, translation.explain):
        with pytest.raises(UnsoundRequest):
            translate(wrong)  # type: ignore[arg-type]
    with raises(UnsoundRequest, field="method", given="exact"):
        translation.to_pufferfish(0.1, "exact")  # type: ignore[arg-type]
    with raises(UnsoundRequest, field="uncertainty", given=1.0):
        Translation(sticky(0.9, 0.9), uncertainty=1.0)


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [1e-300, 1e-12, 1e-8, 1e-3, 0.5, 20.0, 90.0])
@pytest.mark.parametrize("family", ["two states", "unbounded", "field", "explicit", "independent"])
def test_what_is_called_exact_is_so_to_a_millionth(family: str, epsilon: float) -> None:
    chain = sticky(0.3, 0.9, 3)
    field = MarkovRandomField.ising({0: -1.0, 1: 0.2, 2: 0.0}, {(0, 1): 0.8, (1, 2): 1.1})
    prior = {
        "two states": chain,
        "unbounded": sticky(0.3, 0.9, None),
        "field": field,
        "explicit": chain.explicit(),
        "independent": IndependentEntries({"a": {"x": 0.5, "y": 0.5}, "b": {"x": 0.2, "y": 0.8}}),
    }[family]
    answer = Translation(prior).explain(epsilon)
    assert answer.exact or (family in ("field", "explicit", "independent") and epsilon < 1e-6)
    rows = np.array([[0.3, 0.7], [1 - 0.9, 0.9]])
    if family in ("two states", "explicit"):
        listed = binary.counting_losses([rows] * 2, chain.stationary.tolist(), [epsilon] * 3)
        true = max(loss for entry in listed for loss in entry.values())
    elif family == "unbounded":
        true = max(binary.unbounded_counting_losses(rows, epsilon).values())
    elif family == "field":
        true = binary.counting_field_loss(np.asarray(field.explicit().probability), epsilon)
    else:
        true = epsilon
    assert answer.pufferfish >= true * (1 - 1e-15) >= answer.lower * (1 - 1e-14)
    if answer.exact:
        assert answer.pufferfish == pytest.approx(true, rel=1e-6, abs=0)
