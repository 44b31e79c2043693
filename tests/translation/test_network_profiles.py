"""Profiles of networks: what one column tells of itself and of the others, and a person of many."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.costs.cost import Cost
from takifugu.priors import Secrets
from takifugu.priors.bif import read_bif
from takifugu.translation.certify.closed import profile_group_loss
from takifugu.translation.entry_costs import EntryCosts
from tests.priors.files import example
from tests.translation.transports import transport_of

NEXT = (  # one node at .5, and the next worst secret
    ("asia", "tub", 0.02450),
    ("tub", "either", 0.09900),
    ("smoke", "lung", 0.23522),
    ("lung", "either", 0.43850),
    ("bronc", "dysp", 0.33768),
    ("either", "lung", 0.49590),
    ("xray", "either", 0.46724),
    ("dysp", "bronc", 0.33951),
)


@pytest.mark.parametrize(("asked", "near", "loss"), NEXT)
def test_one_node_of_asia_costs_itself_exactly_and_its_neighbour_less(
    asked: str, near: str, loss: float
) -> None:
    asia = read_bif(example("asia"))
    transport = transport_of(asia, Secrets())
    spent = np.array([0.5 * (entry == asked) for entry in asia.entries])
    bound = transport.profile(spent)
    assert bound.by_entry is not None
    losses = dict(zip(asia.entries, bound.by_entry.tolist(), strict=True))
    assert losses.pop(asked) == bound.value == 0.5
    assert max(losses, key=lambda entry: losses[entry]) == near
    assert losses[near] == pytest.approx(loss, abs=5.1e-6)
    assert transport.witness(spent, bound).leak == pytest.approx(0.5, abs=1e-9)
    half = Cost.any(Fraction(1, 2))
    costs = EntryCosts(by_entry=tuple(half if e == asked else Cost() for e in asia.entries))
    assert transport.valued(costs).value == 0.5


@pytest.mark.parametrize(
    ("asked", "loss"),
    [
        (("smoke", "xray"), 0.69857),
        (("xray", "dysp"), 0.67543),
        (("lung", "tub", "either"), 1.00571),
        (("asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp"), 2.01371),
    ],
)
def test_several_nodes_of_asia(asked: tuple[str, ...], loss: float) -> None:
    asia = read_bif(example("asia"))
    spent = np.array([0.5 * (entry in asked) for entry in asia.entries])
    found = transport_of(asia, Secrets()).profile(spent).value
    assert found == pytest.approx(loss, abs=5.1e-6)


@pytest.mark.nightly
def test_every_column_of_alarm_costs_itself_and_all_at_once_about_ten() -> None:
    alarm = read_bif(example("alarm"))
    transport = transport_of(alarm, Secrets())
    for k in range(0, len(alarm.entries), 6):
        bound = transport.profile(np.where(np.arange(len(alarm.entries)) == k, 0.1, 0.0))
        assert bound.by_entry is not None and bound.by_entry[k] == bound.value == 0.1
        others = np.delete(bound.by_entry, k)
        assert others.max() < 0.1 and others.min() >= 0
    together = transport.uniform(0.1)
    assert 1.03 < transport.witness(0.1, together).leak <= together.value < 1.085
    assert transport.uniform(transport.largest(1.0)).value <= 1.0


@given(st.lists(st.floats(0, 1e300), max_size=6))
def test_group_privacy_is_the_sum_and_no_more_than_a_float_above(spent: list[float]) -> None:
    found = profile_group_loss(spent)
    exact = sum(map(Fraction, spent), Fraction(0))
    assert Fraction(found) >= exact
    assert float(Fraction(found) - exact) <= 4e-16 * found + 1e-323
    if sum(loss > 0 for loss in spent) == 1:
        assert Fraction(found) == exact
