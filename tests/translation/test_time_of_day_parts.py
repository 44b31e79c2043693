"""Chains by hour of the day, part by part: what is asked of which chain, and what is made of it."""

from typing import Any

import numpy as np
import pytest

from takifugu.costs import NOTHING, Cost, Membership
from takifugu.errors import UnsoundRequest
from takifugu.numeric import Floats
from takifugu.priors import Secrets, TimeOfDayChain
from takifugu.translation.bounds import Binding, Bound, Witness
from takifugu.translation.chain import time_of_day_transport
from takifugu.translation.chain.binary_transport import BinaryTransport
from takifugu.translation.chain.chain_transport import ChainTransport
from takifugu.translation.chain.time_of_day_transport import (
    TimeOfDayTransport,
    _earlier,
    _later,
)
from takifugu.translation.entry_costs import EntryCosts
from tests.raising import raises

pytestmark = pytest.mark.nightly

HOURS, LENGTH = 3, 5
ONE, TWO = Cost.of({Membership(frozenset(["a"])): 1}), Cost.of({Membership(frozenset(["b"])): 2})


def prior(states: int = 3, hours: int = HOURS, length: int = LENGTH) -> TimeOfDayChain:
    rng = np.random.default_rng(2)
    table = rng.dirichlet(np.ones(states), size=(hours, states))
    return TimeOfDayChain(table, states=tuple("abc"[:states]), length=length)


class Told:
    """Stands for the bound of a chain: keeps what it is asked, and answers what it was given."""

    def __init__(self, size: int, entries: tuple[int, ...] | None) -> None:
        self.size, self.entries = size, entries
        self.asked: list[Any] = []
        place = size - 2
        self.answer = Bound(
            float(size), Binding("a", "b", entry=place), np.arange(size) / size, np.eye(3)
        )

    def uniform(self, epsilon: float) -> Bound:
        """One cost everywhere."""
        self.asked.append(("uniform", epsilon))
        return self.answer

    def profile(self, spent: Floats) -> Bound:
        """A cost for each entry."""
        self.asked.append(("profile", spent.tolist()))
        return self.answer

    def valued(self, costs: EntryCosts) -> Bound:
        """Costs by value."""
        self.asked.append(("valued", costs))
        return self.answer

    def witness(self, spent: Floats, bound: Bound) -> Witness:
        """A mechanism for these costs."""
        self.asked.append(("witness", spent.tolist(), bound))
        return Witness(0.25, bound.binding, tuple(range(self.size)))

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """The same by value."""
        self.asked.append(("valued witness", costs, bound))
        return Witness(0.5, bound.binding, tuple(range(self.size)))

    def largest(self, target: float) -> float:
        """A quarter."""
        return target / 4


def told(monkeypatch: pytest.MonkeyPatch, *, quick: bool, **given: Any) -> Any:
    """A transport whose chains only keep what they are asked."""
    monkeypatch.setattr(time_of_day_transport, "QUICK", 10**9 if quick else 0)
    monkeypatch.setattr(TimeOfDayTransport, "_transport", lambda _, *args: Told(*args))
    return TimeOfDayTransport(prior(), Secrets(**given))


def test_each_hour_has_a_chain_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins at hour 0 and reads nothing before the entity's own entries."""
    transport = told(monkeypatch, quick=True)
    spent = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    found = transport.profile(spent)
    chains = [transport._beginning(hour) for hour in range(HOURS)]
    assert [(one.size, one.entries) for one in chains] == [
        (5, (0, 1, 2, 3, 4)), (6, (1, 2, 3, 4, 5)), (7, (2, 3, 4, 5, 6)),
    ]  # fmt: skip
    for hour, one in enumerate(chains):
        assert one.asked == [("profile", [0.0] * hour + spent.tolist())]
    # the largest of each entry, and the pair of the worst hour as one of the entity's entries
    by_entry = [max((i + h) / (5 + h) for h in range(3)) for i in range(5)]
    assert found.by_entry is not None and found.by_entry.tolist() == by_entry
    assert found.value == max(by_entry) and found.binding == Binding("a", "b", entry=3)
    assert found.by_values is chains[2].answer.by_values
    assert transport.uniform(0.25).value == found.value
    assert chains[1].asked[-1] == ("profile", [0.0] + [0.25] * 5)
    costs = EntryCosts(by_entry=(ONE, TWO, NOTHING, ONE, TWO))
    transport.valued(costs)
    assert chains[2].asked[-1][1].by_entry == (NOTHING, NOTHING, ONE, TWO, NOTHING, ONE, TWO)
    transport.valued(EntryCosts(anywhere=(TWO,)))
    assert chains[1].asked[-1][1].by_entry == (NOTHING, *[TWO] * 5)
    transport.valued(EntryCosts())
    assert chains[1].asked[-1][1].by_entry == (NOTHING,) * 6


def test_the_first_of_equal_hours_is_the_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = told(monkeypatch, quick=True)
    for hour in range(HOURS):
        one = transport._beginning(hour)
        names = Binding(f"left {hour}", "right", entry=hour + 1)
        one.answer = Bound(1.0, names, np.zeros(one.size))
    assert transport.profile(np.zeros(5)).binding == Binding("left 0", "right", entry=1)


def test_all_hours_at_once_are_one_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every entry has the largest cost of all that it may be to an entity."""
    transport = told(monkeypatch, quick=False)
    whole = transport._together
    assert (whole.size, whole.entries) == (7, None)
    found = transport.uniform(0.25)
    assert whole.asked == [("uniform", 0.25)]
    assert found.value == 7.0 and found.by_values is whole.answer.by_values
    assert found.by_entry is not None
    assert found.by_entry.tolist() == [(i + 2) / 7 for i in range(5)]
    spent = [0.1, 0.5, 0.2, 0.3, 0.4]
    transport.profile(np.array(spent))
    largest = [max(spent[max(0, j - 2) : j + 1]) for j in range(7)]
    assert whole.asked[-1] == ("profile", largest)
    transport.valued(EntryCosts(by_entry=(ONE, TWO, NOTHING, NOTHING, ONE)))
    asked = whole.asked[-1][1].by_entry
    both = ONE.joined(TWO)
    assert asked == (ONE, both, both, TWO, ONE, ONE, ONE)
    anywhere = EntryCosts(anywhere=(ONE, TWO))
    transport.valued(anywhere)
    assert whole.asked[-1][1] is anywhere
    whole.answer = Bound(2.0, None, None)
    assert transport.uniform(0.1).by_entry is None


def test_secrets_of_some_entries_are_those_of_every_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = told(monkeypatch, quick=False, entries=(1, 4))
    assert transport._together.entries == (1, 2, 3, 4, 5, 6)
    assert transport._beginning(2).entries == (3, 6)
    assert told(monkeypatch, quick=False, entries=(4,))._together.entries == (4, 5, 6)


def test_costs_of_which_one_holds_are_not_shifted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several costs that hold anywhere are asked of all hours at once, and have no witness."""
    transport = told(monkeypatch, quick=True)
    several = EntryCosts(anywhere=(ONE, TWO))
    assert transport.valued(several).value == 7.0
    assert transport._together.asked == [("valued", several)]
    bound = Bound(1.0, Binding("a", "c", entry=2))
    nothing = transport.valued_witness(several, bound)
    assert nothing.leak == 0.0 and nothing.binding is bound.binding


@pytest.mark.parametrize(
    ("place", "entry", "hour"), [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 2, 1), (4, 2, 2), (6, 4, 2)]
)
def test_a_pair_of_all_hours_is_named_near_the_middle(
    monkeypatch: pytest.MonkeyPatch, place: int, entry: int, hour: int
) -> None:
    transport = told(monkeypatch, quick=False)
    found = transport._named(Binding("a", "b", entry=place), None)
    assert found == Binding("a", "b", entry=entry)
    assert transport._hour_of(Bound(1.0, found)) == hour
    assert transport._hour_of(Bound(1.0, Binding("b", "a", entry=entry))) == 0
    assert transport._hour_of(Bound(1.0)) == 0
    for other in (None, Binding("a", "b"), Binding("a", "b", entry="noon")):
        assert transport._named(other, 1) is other


def test_a_witness_is_about_the_hour_of_its_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = told(monkeypatch, quick=True)
    bound = transport.profile(np.full(5, 0.25))  # the last hour loses most
    chain = transport._beginning(2)
    found = transport.witness(0.25, bound)
    assert chain.asked[-1] == ("witness", [0.0, 0.0] + [0.25] * 5, chain.answer)
    assert found.leak == 0.25 and found.binding == Binding("a", "b", entry=3)
    assert found.entries == (0, 1, 2, 3, 4) and found.factors is None
    assert found.against == "of an entity whose first row is at hour 2"
    costs = EntryCosts(anywhere=(ONE,))
    found = transport.valued_witness(costs, bound)
    (words, asked, answer) = chain.asked[-1]
    assert (words, answer) == ("valued witness", chain.answer) and found.leak == 0.5
    assert asked.by_entry == (NOTHING, NOTHING, *[ONE] * 5)
    transport.witness(np.array([0.1, 0.2, 0.3, 0.4, 0.5]), bound)
    assert chain.asked[-1][1] == [0.0, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5]


def test_a_mechanism_of_later_entries_is_one_of_the_entity() -> None:
    factors = np.arange(8.0).reshape(4, 2)
    found = _earlier(Witness(0.5, Binding("a", "b", entry=2), (0, 1, 2, 3), factors), 1)
    assert found.leak == 0.5 and found.binding == Binding("a", "b", entry=1)
    assert found.entries == (0, 1, 2)
    assert found.factors is not None and found.factors.tolist() == factors[1:].tolist()
    unnamed = _earlier(Witness(0.5, None, (3, "noon")), 2)
    assert unnamed.binding is None and unnamed.entries == (1,) and unnamed.factors is None
    named = Binding("a", "b", entry="noon")
    assert _earlier(Witness(0.5, named, ()), 2).binding is named
    assert _later(np.array([0.5, 0.25]), 2).tolist() == [0.0, 0.0, 0.5, 0.25]


def test_the_search_begins_at_what_one_hour_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []

    def within(loss: Any, target: float, *, first: float | None) -> float:
        begun.append((loss(0.5), target, first))
        return 0.125

    monkeypatch.setattr(time_of_day_transport, "largest_within", within)
    transport = told(monkeypatch, quick=True)
    loss = transport.uniform(0.5).value
    assert transport.largest(2.0) == 0.125 and begun == [(loss, 2.0, None)]
    monkeypatch.setattr(time_of_day_transport, "MANY", HOURS)
    assert transport.largest(2.0) == 0.125 and begun[-1] == (loss, 2.0, 0.5)
    assert transport.largest(0.0) == 0.125 and begun[-1] == (loss, 0.0, None)
    told(monkeypatch, quick=False).largest(2.0)
    assert begun[-1] == (7.0, 2.0, None)


def test_chains_and_limits() -> None:
    two = TimeOfDayTransport(prior(2), Secrets(), tolerance=0.5)
    assert two.size == LENGTH and isinstance(two._beginning(1), BinaryTransport)
    three = TimeOfDayTransport(prior(3), Secrets(pairs=((("a",), ("b", "c")),)), tolerance=0.5)
    chain = three._beginning(1)
    assert isinstance(chain, ChainTransport) and chain._tolerance == 0.5
    assert three._beginning(1) is chain
    assert TimeOfDayTransport(prior(3), Secrets())._tolerance == 1e-3
    for wrong in (4, 6):
        with raises(UnsoundRequest, field="profile", given=wrong, needed=5):
            three.profile(np.full(wrong, 0.1))
        with raises(UnsoundRequest, field="profile", given=wrong, needed=5):
            three.valued(EntryCosts(by_entry=(ONE,) * wrong))


@pytest.mark.parametrize(("more", "each"), [(-1, False), (0, True)])
def test_hours_are_translated_one_by_one_while_it_is_quick(
    monkeypatch: pytest.MonkeyPatch, more: int, each: bool
) -> None:
    monkeypatch.setattr(time_of_day_transport, "QUICK", 3 * (5 + 3) * 3**2 + more)
    assert TimeOfDayTransport(prior(), Secrets())._each is each
