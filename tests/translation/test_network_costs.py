"""Value-aware losses of networks, tables and independent entries, beside linear programs."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.costs.cost import NOTHING, Cost, Distance, Matrix, Membership
from takifugu.errors import UnsoundRequest
from takifugu.priors import Explicit, IndependentEntries, SecretPair, Secrets
from takifugu.priors.bif import read_bif
from takifugu.priors.networks import MarkovRandomField, NetworkPrior
from takifugu.priors.universe import Tables
from takifugu.translation import Translation, network_losses
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.search import junction
from takifugu.translation.search.products import best_witness, product_witness
from tests.influence.strategies import fields, networks
from tests.oracles import cost_programs as oracle
from tests.priors.files import example
from tests.raising import raises
from tests.translation.rising_fields import attractive_losses
from tests.translation.transports import transport_of

LP = 1e-7
MODELS = st.one_of(networks(most=4), fields(most=4), networks(zeros=False, most=4))


def law_of(model: NetworkPrior) -> Floats:
    shape = tuple(len(states) for states in model.states)
    return model.explicit().probability.reshape(shape)


@st.composite
def costs_of(draw: st.DrawFn, model: NetworkPrior) -> EntryCosts:
    """A cost for each entry: nothing, any value, counts, numbers, or a matrix that is lopsided."""
    found = []
    for states in model.states:
        kind = draw(st.sampled_from(["nothing", "any", "count", "both", "distance", "matrix"]))
        size = draw(st.sampled_from(["0.05", "0.3", "1"]))
        cost = NOTHING
        if kind == "any":
            cost = Cost.any(size)
        elif kind in ("count", "both"):
            cost = Cost.of({Membership([draw(st.sampled_from(list(states)))]): size})
            cost = cost + Cost.any("0.1") if kind == "both" else cost
        elif kind == "distance" and len(states) > 1:
            cost = Cost.of({Distance(0, len(states) - 1): size})
        elif kind == "matrix" and len(states) > 1:
            rows = [
                [0 if u == v else draw(st.integers(1, 9)) for v in range(len(states))]
                for u in range(len(states))
            ]
            cost = Cost.of({Matrix(states, rows): "0.1"})
        found.append(cost)
    return EntryCosts(by_entry=tuple(found))


def truth(model: NetworkPrior, costs: EntryCosts, pair: SecretPair) -> oracle.Solved:
    law = model.explicit()
    shape = tuple(len(states) for states in model.states)
    matrices = [
        [[float(cost.between(u, v)) for v in states] for u in states]
        for cost, states in zip(costs.by_entry or (), model.states, strict=True)
    ]
    masks = [side.mask(law.universe).reshape(shape) for side in (pair.left, pair.right)]
    return oracle.worst_loss(law_of(model), [np.array(m) for m in matrices], masks[0], masks[1])


def check(model: NetworkPrior, costs: EntryCosts, secrets: Secrets | None = None) -> None:
    losses = network_losses(model, costs, secrets)
    chosen = [k for k in range(len(losses.pairs)) if np.isfinite(losses.upper[k])]
    for k in sorted(chosen, key=lambda k: -losses.upper[k])[:2]:
        solved = truth(model, costs, losses.pairs[k])
        assert losses.upper[k] >= solved.lower - 1e-9
        assert product_witness(model, costs, losses.pairs[k]).lower <= solved.upper + LP


@pytest.mark.costly
@settings(max_examples=15)
@given(model=MODELS, data=st.data())
def test_no_admissible_function_loses_more_and_the_witness_is_one(
    model: NetworkPrior, data: st.DataObject
) -> None:
    check(model, data.draw(costs_of(model)))


@pytest.mark.nightly
@pytest.mark.parametrize("limits", [(0, 10**9, 1), (200, 10**9, 1), (0, 0, 10**9), (0, 0, 0)])
@settings(max_examples=10)
@given(model=MODELS, data=st.data())
def test_shortened_messages_are_sound_too(
    limits: tuple[int, int, int], model: NetworkPrior, data: st.DataObject
) -> None:
    """By way of other states, in parts with transport problems, in parts with simple couplings.

    At last what a simple coupling moves is not looked up, and secrets are coupled state by state.
    """
    costs = data.draw(costs_of(model))
    whole = network_losses(model, costs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(junction, "MAX_SOLVED_CELLS", limits[0])
        patch.setattr(junction, "MAX_PATH_STATES", limits[1])
        patch.setattr(junction, "MAX_SCANNED_CELLS", limits[2])
        patch.setattr(junction, "MAX_COUPLED_STATES", 4)
        if not limits[2]:
            patch.setattr(junction, "MAX_LAST_CELLS", 0)
        check(model, costs)
        assert (network_losses(model, costs).upper >= whole.upper - 1e-8).all()


@pytest.mark.costly
@settings(max_examples=15)
@given(model=networks(zeros=False, most=4), data=st.data())
def test_groups_of_values_are_coupled_by_their_laws(
    model: NetworkPrior, data: st.DataObject
) -> None:
    wide = [k for k, states in enumerate(model.states) if len(states) > 2]
    if not wide:
        return
    states = model.states[wide[0]]
    secrets = Secrets(pairs=(((states[0],), tuple(states[1:])),), entries=(model.entries[wide[0]],))
    costs = data.draw(costs_of(model))
    check(model, costs, secrets)
    largest = network_losses(model, costs, Secrets(entries=(model.entries[wide[0]],)))
    assert network_losses(model, costs, secrets).loss <= largest.loss + 1e-8


def asia_profile(**spent: str) -> list[Cost]:
    asia = read_bif(example("asia"))
    return [Cost.any(spent.get(str(name), "0")) for name in asia.entries]


@pytest.mark.parametrize(
    ("asked", "other", "loss"),
    [
        ("asia", "tub", 0.02450),
        ("tub", "either", 0.09900),
        ("smoke", "lung", 0.23522),
        ("lung", "either", 0.43850),
        ("bronc", "dysp", 0.33768),
        ("either", "lung", 0.49590),
        ("xray", "either", 0.46724),
        ("dysp", "bronc", 0.33951),
    ],
)
def test_one_column_of_asia_tells_this_much_of_the_next(
    asked: str, other: str, loss: float
) -> None:
    translation = Translation(read_bif(example("asia")))
    found = translation.cost_bound(asia_profile(**{asked: "0.5"}), "transport").by_entry
    assert found is not None and translation.entries is not None
    by_name = dict(zip(translation.entries, found.tolist(), strict=True))
    assert by_name.pop(asked) == pytest.approx(0.5, abs=1e-9)
    assert max(by_name, key=lambda name: by_name[name]) == other
    assert by_name[other] == pytest.approx(loss, abs=5.1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("asked", "loss"),
    [
        (("smoke", "xray"), 0.69857),
        (("xray", "dysp"), 0.67543),
        (("lung", "tub", "either"), 1.00571),
        (("asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp"), 2.01371),
    ],
)
def test_several_columns_of_asia(asked: Sequence[str], loss: float) -> None:
    translation = Translation(read_bif(example("asia")))
    answer = translation.explain_cost(asia_profile(**dict.fromkeys(asked, "0.5")))
    assert answer.pufferfish == pytest.approx(loss, abs=5.1e-6)
    assert answer.lower <= answer.pufferfish


@pytest.mark.nightly
def test_a_count_costs_less_than_a_histogram_on_a_real_network() -> None:
    alarm = Translation(read_bif(example("alarm")))
    count = alarm.explain_cost(Cost.of({Membership(["LOW"]): "0.1"}))
    everything = alarm.explain_cost(Cost.any("0.1"))
    assert count.pufferfish < 0.9 * everything.pufferfish
    assert 0 < count.lower <= count.pufferfish <= 1.1 * count.lower


def ising(rng: np.random.Generator, entries: int) -> MarkovRandomField:
    pairs = [(i, j) for i in range(entries) for j in range(i)]
    return MarkovRandomField.ising(
        {i: float(rng.normal()) for i in range(entries)},
        {pair: float(rng.uniform(0, 1.5)) for pair in pairs if rng.random() < 0.6},
    )


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(6))
def test_attractive_fields_are_exact_for_costs_that_differ_by_direction(seed: int) -> None:
    rng = np.random.default_rng(seed)
    field = ising(rng, 5)
    matrices = [
        Cost.of({Matrix((0, 1), [[0, int(a)], [int(b), 0]]): "0.1"})
        for a, b in rng.integers(1, 10, (5, 2))
    ]
    costs = EntryCosts(by_entry=tuple(matrices))
    losses = attractive_losses(field, costs)
    for k in range(len(losses.pairs)):
        solved = truth(field, costs, losses.pairs[k])
        assert losses.upper[k] == pytest.approx(solved.lower, abs=1e-6)
        assert losses.lower[k] <= solved.upper + 1e-9
    pinned = attractive_losses(field, costs, largest=1)
    assert (pinned.upper >= losses.lower - 1e-9).all()
    assert (pinned.lower <= losses.upper + 1e-9).all()


@pytest.mark.costly
@settings(max_examples=10)
@given(model=networks(zeros=False, most=4), data=st.data())
def test_a_written_out_prior_is_exact(model: NetworkPrior, data: st.DataObject) -> None:
    costs = data.draw(costs_of(model))
    answer = Translation(model.explicit()).explain_cost(costs)
    own = transport_of(model, Secrets()).valued(costs)
    assert answer.pufferfish <= own.value + 1e-8
    assert answer.lower == pytest.approx(answer.pufferfish, abs=1e-5) or not answer.pufferfish


def test_independent_entries_lose_what_each_was_charged() -> None:
    prior = IndependentEntries({"a": {0: 0.2, 1: 0.3, 2: 0.5}, "b": {0: 0.5, 1: 0.5}})
    count = Cost.of({Membership([0]): "0.4"})
    answer = Translation(prior).explain_cost([count, Cost.any("0.1")])
    assert answer.pufferfish == pytest.approx(0.4) and answer.exact
    assert answer.by_entry == pytest.approx([0.4, 0.1])
    grouped = Secrets(pairs=(((0, 1), (2,)),), entries=("a",))
    mixed = Translation(prior, grouped).explain_cost([count, NOTHING])
    law = np.array([0.2, 0.3, 0.5])
    matrix = oracle.difference([1, 0, 0], 0.4)
    solved = oracle.worst_loss(law, [matrix], law < 0.4, law > 0.4)
    assert solved.lower - 1e-9 <= mixed.pufferfish <= solved.upper + 1e-6
    assert mixed.lower == pytest.approx(solved.lower, abs=1e-6)


@pytest.mark.nightly
def test_tiny_and_huge_costs() -> None:
    asia = read_bif(example("asia"))
    tiny = network_losses(asia, EntryCosts.of(Cost.any("1e-300")))
    assert 0 < tiny.loss < 1e-12
    huge = network_losses(asia, EntryCosts.of(Cost.any(10**6)))
    assert huge.loss == pytest.approx(8 * 10**6, rel=1e-6) or huge.loss <= 8 * 10**6 * (1 + 1e-9)
    assert best_witness(asia, 1e6, huge.pairs, huge.upper.tolist()).lower <= huge.loss


def test_a_profile_of_the_wrong_length_is_refused() -> None:
    asia = transport_of(read_bif(example("asia")), Secrets())
    with raises(UnsoundRequest, field="profile", given=2, needed=8):
        asia.valued(EntryCosts(by_entry=(NOTHING, NOTHING)))
    table = Explicit.uniform(Tables.of({"a": (0, 1), "b": (0, 1)}))
    with raises(UnsoundRequest, field="profile"):
        Translation(table).cost_bound([NOTHING])
