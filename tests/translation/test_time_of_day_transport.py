"""Chains by hour of the day: against linear programs over all sequences, for every first hour."""

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.costs.cost import Cost
from takifugu.costs.shapes import Membership
from takifugu.errors import InvalidPrior, InvalidWorld, UnsoundRequest
from takifugu.influence import influence_curve
from takifugu.priors import MarkovChain, Secrets, TimeOfDayChain
from takifugu.priors.documents import from_document
from takifugu.translation import Translation
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.models import time_of_day_transport
from tests.oracles.cost_programs import all_losses, any_value, chain_table, difference, largest
from tests.raising import raises

LOSSES = st.sampled_from([0.05, 0.3, 1.0, 3.0])


@st.composite
def chains(
    draw: st.DrawFn, states: int = 2, length: int = 3, given: bool = False
) -> TimeOfDayChain:
    hours = draw(st.integers(1, 3))
    size = hours * states * states
    weights = draw(st.lists(st.integers(0, 6), min_size=size, max_size=size))
    table = np.array(weights, dtype=np.float64).reshape(hours, states, states)
    table += 0.05 + 3 * np.eye(states)
    table /= table.sum(axis=-1, keepdims=True)
    start = None
    if given:
        law = draw(st.lists(st.integers(1, 9), min_size=states, max_size=states))
        start = np.array(law, dtype=np.float64) / sum(law)
    return TimeOfDayChain(table, start=start, length=length)


def tables(chain: TimeOfDayChain) -> list[Any]:
    """For each first hour the probability of every sequence: earlier entries are summed over."""
    found = []
    for hour in range(chain.hours):
        steps = [chain.transition[j % chain.hours] for j in range(hour + chain.entries - 1)]
        assert isinstance(chain.start, np.ndarray)
        found.append(chain_table(chain.start, steps).sum(axis=tuple(range(hour))))
    return found


def truth(chain: TimeOfDayChain, costs: Sequence[Any]) -> tuple[float, Any]:
    """The largest loss over all hours, and that of each entry."""
    by_hour = [all_losses(table, costs) for table in tables(chain)]
    by_entry = [
        max(solved.upper for losses in by_hour for (e, *_), solved in losses.items() if e == entry)
        for entry in range(chain.entries)
    ]
    return max(largest(losses).lower for losses in by_hour), np.array(by_entry)


@pytest.mark.nightly
@pytest.mark.parametrize("quick", [10**9, 0])  # each hour on its own, or all hours at once
@settings(deadline=None, max_examples=12)
@given(chain=chains(), epsilon=LOSSES)
def test_the_loss_of_two_states_is_that_of_the_worst_hour(
    quick: int, chain: TimeOfDayChain, epsilon: float
) -> None:
    true, by_entry = truth(chain, [any_value(2, epsilon)] * chain.entries)
    with patch.object(time_of_day_transport, "QUICK", quick):
        found = Translation(chain).explain(epsilon)
    assert found.pufferfish >= true - 1e-7
    assert found.lower <= true + 1e-7
    assert found.by_entry is not None and (found.by_entry >= by_entry - 1e-6).all()
    if quick:
        assert found.pufferfish == pytest.approx(true, rel=1e-5, abs=1e-7)


@pytest.mark.nightly
@pytest.mark.parametrize("quick", [10**9, 0])
@settings(deadline=None, max_examples=6)
@given(chain=chains(states=3, given=True), epsilon=LOSSES)
def test_the_loss_of_three_states_is_never_below_the_truth(
    quick: int, chain: TimeOfDayChain, epsilon: float
) -> None:
    true, _ = truth(chain, [any_value(3, epsilon)] * 3)
    with patch.object(time_of_day_transport, "QUICK", quick):
        found = Translation(chain).explain(epsilon)
    assert found.lower - 1e-7 <= true <= found.pufferfish + 1e-7
    if quick:
        assert found.pufferfish <= 1.2 * true + 1e-6


@pytest.mark.nightly
@pytest.mark.parametrize("quick", [10**9, 0])
@settings(deadline=None, max_examples=8)
@given(
    chain=chains(length=4),
    spent=st.lists(st.sampled_from([0.0, 0.2, 1.0]), min_size=4, max_size=4),
)
def test_a_profile_is_never_below_the_truth(
    quick: int, chain: TimeOfDayChain, spent: list[float]
) -> None:
    true, by_entry = truth(chain, [any_value(2, epsilon) for epsilon in spent])
    with patch.object(time_of_day_transport, "QUICK", quick):
        found = Translation(chain).explain(spent)
    assert found.lower - 1e-7 <= true <= found.pufferfish + 1e-7
    assert found.by_entry is not None and (found.by_entry >= by_entry - 1e-6).all()


@pytest.mark.nightly
@pytest.mark.parametrize("quick", [10**9, 0])
@settings(deadline=None, max_examples=6)
@given(chain=chains(states=3), entries=st.lists(st.booleans(), min_size=3, max_size=3))
def test_costs_by_value_are_never_below_the_truth(
    quick: int, chain: TimeOfDayChain, entries: list[bool]
) -> None:
    counted = Cost.of({Membership(frozenset([0])): 1})
    nothing = Cost.any(0)
    costs = [counted if asked else nothing for asked in entries]
    matrices = [difference([1, 0, 0]) * asked for asked in entries]
    true, _ = truth(chain, matrices)
    with patch.object(time_of_day_transport, "QUICK", quick):
        found = Translation(chain).explain_cost(EntryCosts.of(costs))
        both = Translation(chain).cost_bound(counted).value
    assert found.lower - 1e-7 <= true <= found.pufferfish + 1e-7
    assert both >= truth(chain, [difference([1, 0, 0])] * 3)[0] - 1e-7


def test_one_matrix_for_all_hours_is_a_stationary_chain() -> None:
    table = np.array([[0.9, 0.1], [0.1, 0.9]])
    by_hour = TimeOfDayChain(np.stack([table] * 5), length=7)
    assert Translation(by_hour).to_pufferfish(0.2) == pytest.approx(0.97324, abs=1e-5)
    assert Translation(by_hour).to_pufferfish(1.0) == pytest.approx(4.12131, abs=1e-5)
    plain = Translation(MarkovChain(table, length=7))
    assert Translation(by_hour).to_dp(1.0) == pytest.approx(plain.to_dp(1.0), rel=1e-3)


@pytest.mark.nightly
def test_all_hours_at_once_are_close_in_long_sequences() -> None:
    rng = np.random.default_rng(4)
    table = 0.5 * rng.dirichlet(np.ones(3), size=(6, 3)) + 0.5 * np.eye(3)
    found = []
    for quick in (10**9, 0):
        with patch.object(time_of_day_transport, "QUICK", quick):
            found.append(Translation(TimeOfDayChain(table, length=60)).explain(0.2))
    each, together = found
    assert each.pufferfish <= together.pufferfish * (1 + 1e-9) <= each.pufferfish * (1 + 1e-4)
    assert each.exact and together.lower >= 0.999 * together.pufferfish


@pytest.mark.nightly
def test_chosen_secrets_lose_less() -> None:
    rng = np.random.default_rng(5)
    table = 0.4 * rng.dirichlet(np.ones(3), size=(4, 3)) + 0.6 * np.eye(3)
    chain = TimeOfDayChain(table, states=("a", "b", "c"), length=5)
    for quick in (10**9, 0):
        with patch.object(time_of_day_transport, "QUICK", quick):
            every = Translation(chain).to_pufferfish(0.5)
            last = Translation(chain, Secrets(entries=(4,))).to_pufferfish(0.5)
            group = Translation(chain, Secrets(pairs=((("a",), ("b", "c")),))).to_pufferfish(0.5)
        assert last < every and group < every
    true = max(
        solved.upper
        for law in tables(chain)
        for (entry, *_), solved in all_losses(law, [any_value(3, 0.5)] * 5).items()
        if entry == 4
    )
    assert last >= true - 1e-7
    with raises(InvalidWorld, field="secrets"):
        Translation(chain, Secrets(entries=(5,))).bound(0.5)


def test_the_law_at_hour_0_is_the_same_every_day() -> None:
    rng = np.random.default_rng(6)
    table = rng.dirichlet(np.ones(4), size=(24, 4))
    chain = TimeOfDayChain(table, length=100)
    law = chain.days_of(100).marginals()
    assert law[0] == pytest.approx(law[24], rel=1e-12)
    assert law[5] == pytest.approx(law[77], rel=1e-12)
    again = from_document(chain.to_document())
    assert again == chain and again.fingerprint == chain.fingerprint


@pytest.mark.parametrize(
    ("how", "field"),
    [
        ({"length": None}, "length"),
        ({"length": 0}, "length"),
        ({"transition": np.eye(2)}, "transition"),
        ({"transition": np.ones((3, 2, 2))}, "transition"),
        ({"transition": np.stack([np.eye(2)] * 3)}, "start"),
        ({"start": [0.5, 0.4]}, "start"),
        ({"start": [1.0]}, "start"),
        ({"states": ("a",)}, "states"),
    ],
)
def test_what_is_no_such_chain_is_refused(how: dict[str, Any], field: str) -> None:
    whole: dict[str, Any] = {"transition": np.full((3, 2, 2), 0.5), "length": 4}
    with pytest.raises(InvalidPrior) as refused:
        TimeOfDayChain(**(whole | how))
    assert refused.value.field.startswith(field)


@pytest.mark.costly
@settings(deadline=None, max_examples=10)
@given(chain=chains(length=4), epsilon=LOSSES)
def test_the_curve_is_above_the_truth_and_no_translation_waits_for_it(
    chain: TimeOfDayChain, epsilon: float
) -> None:
    curve = influence_curve(chain)
    true, _ = truth(chain, [any_value(2, epsilon)] * 4)
    assert true - 1e-7 <= float(curve.to_pufferfish(epsilon)) <= 4 * epsilon + 1e-9
    assert curve.entries == 4 and not curve.exact.any()
    assert Translation(chain).explain(epsilon).by_method["curve"] is None
    last = influence_curve(chain, Secrets(entries=(3,)))
    assert (last.to_pufferfish(epsilon) <= curve.to_pufferfish(epsilon) + 1e-9).all()


def test_a_profile_of_another_length_is_refused() -> None:
    chain = TimeOfDayChain(np.full((3, 2, 2), 0.5), length=4)
    with raises(UnsoundRequest, field="profile"):
        Translation(chain).bound(np.full(5, 0.5))
