"""Attractive fields: two states of the boundary against all of them."""

import numpy as np
import pytest
from hypothesis import given, settings

from takifugu.errors import UnsoundRequest
from takifugu.influence import attractive_curve, network_curve
from takifugu.influence.network.attractive_curves import AttractiveField
from takifugu.priors import Secrets
from takifugu.priors.contacts import contagion, read_contacts
from takifugu.priors.networks import MarkovRandomField
from tests.influence.strategies import attractive, network
from tests.oracles import networks as oracle
from tests.raising import raises
from tests.real_data import real


@pytest.mark.nightly
@settings(max_examples=30)
@given(model=attractive())
def test_curve_is_never_below_all_splits_and_equal_where_it_says_so(
    model: MarkovRandomField,
) -> None:
    curve = attractive_curve(model, largest=len(model.entries))
    law = model.explicit()
    for k, pair in enumerate(curve.pairs):
        entry, value = int(pair.split("=")[0]), int(pair.split("=")[1][0])
        for point, b in enumerate(curve.exposed):
            truth = oracle.best_leak(law, int(b), entry, (value,), (1 - value,))
            assert curve.leak[k, point] >= truth - 1e-12
            if curve.exact[k, point]:
                assert curve.leak[k, point] <= truth + 1e-9
            exposed = curve.splits.describe(k, point)["exposed"]  # type: ignore[union-attr]
            shown = oracle.leak(law, exposed, entry, (value,), (1 - value,))
            assert curve.leak[k, point] == pytest.approx(shown, abs=1e-9)
    assert curve.exact[:, :2].all()
    assert np.all(np.diff(curve.leak, axis=1) <= 0)


@settings(max_examples=20)
@given(model=attractive())
def test_the_general_search_agrees(model: MarkovRandomField) -> None:
    general = network_curve(model, largest=3)
    special = attractive_curve(model, largest=min(3, len(model.entries)))
    assert sorted(general.pairs) == sorted(special.pairs)
    assert np.all(special.pooled() >= general.pooled() - 1e-9)
    assert special.pooled()[0] == pytest.approx(general.pooled()[0], abs=1e-9)


def test_prior_odds_out_of_reach_are_bounded_not_guessed() -> None:
    ring = MarkovRandomField.ising(
        dict.fromkeys(range(24), -1.0), {(i, (i + 1) % 24): 1.0 for i in range(24)}
    )
    bounded = attractive_curve(ring, Secrets(entries=(0,)), largest=7)
    exact = network_curve(ring, Secrets(entries=(0,)), largest=7)
    assert not bounded.exact[:, :7].any() and exact.exact[:, :7].all()
    assert np.all(bounded.leak >= exact.leak - 1e-12)
    assert np.all(bounded.leak[:, :7] <= exact.leak[:, :7] + 0.2)


def test_fields_that_are_not_attractive_are_refused() -> None:
    field = {0: 0.0, 1: 0.0}
    with raises(UnsoundRequest, reason="repelling"):
        attractive_curve(MarkovRandomField.ising(field, {(0, 1): -0.1}))
    attractive_curve(MarkovRandomField.ising(field, {(0, 1): 0.0}))
    with raises(UnsoundRequest, reason="values"):
        attractive_curve(network(("a",), ((0, 1, 2),), ((),), [0.2, 0.3, 0.5]))
    with raises(UnsoundRequest, reason="zero"):
        attractive_curve(network(("a",), ((0, 1),), ((),), [1.0, 0.0]))
    with raises(UnsoundRequest, field="largest"):
        attractive_curve(MarkovRandomField.ising(field, {}), largest=99)


def test_a_chain_with_p_plus_q_at_least_one_is_attractive() -> None:
    chain = network(
        (0, 1, 2),
        ((0, 1),) * 3,
        ((), (0,), (1,)),
        [0.5, 0.5],
        [[0.9, 0.1], [0.1, 0.9]],
        [[0.9, 0.1], [0.1, 0.9]],
    )
    assert attractive_curve(chain, largest=1).pooled()[0] == pytest.approx(2 * np.log(9))


@pytest.mark.real_data
def test_the_ward_has_a_curve() -> None:
    model = contagion(
        read_contacts(real("hospital_contacts.csv.gz")), background=0.05, odds_per_hour=1.5
    )
    curve = attractive_curve(model, Secrets(entries=model.entries[:3]), largest=5)
    assert curve.entries == 75 and curve.leak.shape == (6, 6)
    assert np.all(np.diff(curve.leak, axis=1) <= 0) and np.all(curve.leak[:, 0] > 0)
    field = AttractiveField(model)
    one, zero = field.evaluate(1, 0)
    assert one + zero >= curve.leak[0, 0] - 1e-9


def field(table: np.ndarray) -> MarkovRandomField:
    return MarkovRandomField((0, 1), ((0, 1),) * 2, (np.ones(2),) * 2, ((0, 1),), (table,))


@pytest.mark.parametrize("rising", [[0.1, 0.5, 0.6, 0.55], [0.1, 0.3, 0.3, 0.9]])
def test_a_table_of_three_that_favours_different_values_somewhere(rising: list[float]) -> None:
    """Every two of three entries are looked at, with each value of the third."""
    table = [[[1 - p, p] for p in rising[:2]], [[1 - p, p] for p in rising[2:]]]
    model = network(
        ("a", "b", "c"), ((0, 1),) * 3, ((), (), ("a", "b")), [0.5, 0.5], [0.5, 0.5], table
    )
    with raises(UnsoundRequest, reason="repelling"):
        attractive_curve(model)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "table", [[[3.0, 3.0], [3.0, 2.0]], [[1.0, 1.0], [1.0, 0.1]], [[3.0, 2.0], [5.0, 3.0]]]
)
def test_a_table_that_clearly_favours_different_values(table: list[list[float]]) -> None:
    with raises(UnsoundRequest, reason="repelling"):
        attractive_curve(field(np.array(table)))
    (w, x), (y, z) = table
    attractive_curve(field(np.array([[x, w], [z, y]])))


@pytest.mark.nightly
def test_points_beyond_the_sets_that_grew_keep_the_last() -> None:
    """Seven in a row, three exposed at the most: what holds for three holds for all seven less."""
    model = MarkovRandomField.ising(
        {k: 0.1 * k for k in range(9)},
        {**{(k, k + 1): 0.4 + 0.1 * k for k in range(5)}, (6, 7): 1.0},
    )
    curve = attractive_curve(model, largest=1)
    assert curve.exposed.tolist() == [1, 2, 6, 9]
    alone = attractive_curve(model, largest=2)
    for row, pair in enumerate(curve.pairs):
        entry = int(pair[0])
        if entry < 6:
            assert curve.leak[row, 1] == curve.leak[row, 0] == alone.leak[row, 0]
            assert curve.exact[row].tolist() == [True, False, True, True]
            assert curve.splits is not None
            assert curve.splits.describe(row, 1) == {"exposed": [entry]}
            assert alone.exact[row].tolist() == [True] * 4
        assert curve.leak[row, 2] == 0.0 == curve.leak[row, 3]
