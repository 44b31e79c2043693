"""Two states, and entities that begin at any hour: what a witness and a binding say where."""

from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from takifugu.cost_shapes import Membership
from takifugu.costs import NOTHING, Cost
from takifugu.priors import MarkovChain, Secrets, TimeOfDayChain
from takifugu.translation.bounds import Binding, Bound, Witness
from takifugu.translation.chain import binary_transport, time_of_day_transport
from takifugu.translation.chain.binary_closed_form import BinaryStep, stationary_losses
from takifugu.translation.chain.binary_transport import BinaryTransport
from takifugu.translation.chain.time_of_day_transport import TimeOfDayTransport, _earlier, _later
from takifugu.translation.entry_costs import EntryCosts

pytestmark = pytest.mark.nightly

TWO = np.array([[0.7, 0.3], [0.2, 0.8]])
SWAP = np.array([[0.0, 1.0], [1.0, 0.0]])


def of(rows: Any, length: int | None, **secrets: Any) -> BinaryTransport:
    return BinaryTransport(MarkovChain(rows, length=length), Secrets(**secrets))


@pytest.mark.parametrize("length", [None, 5, 100_000])
def test_a_total_beyond_all_exponents_leaks_one_entry(length: int | None) -> None:
    spent = np.array([3e15, 2e15])
    found = of(TWO, length)._counting(spent)
    assert 2e15 * (1 - 1e-14) <= found.leak < 2e15
    assert found.binding is not None and (found.binding.left, found.binding.right) == ("1", "0")
    if length:
        listed = of(TWO, 5)._counting(np.full((2, 5), 3e14))
        assert 3e14 * (1 - 1e-14) <= listed.leak < 3e14 and listed.factors is None


def test_an_unbounded_loss_is_shown_as_far_as_entries_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(binary_transport, "LONG", 50)
    found = of(SWAP, None)._counting(np.array([0.25, 0.25]))
    expected = stationary_losses(BinaryStep.of(SWAP), 0.25, 50, 50)[1]
    assert found.leak == expected[0] == pytest.approx(101 * 0.25)
    monkeypatch.setattr(binary_transport, "MOST", 1.0)
    fewer = of(SWAP, None)._counting(np.array([0.25, 0.125]))
    assert fewer.leak == pytest.approx(5 * 0.25 + 4 * 0.125)  # four on each side, in turn


def test_an_entry_beyond_those_listed_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary_transport, "LISTED", 3)
    transport = of(TWO, None, entries=(100,))
    spent = np.array([[0.5, 0.5], [0.5, 0.5]])
    assert transport._checked(spent).shape == (2, 5)
    found = transport._counting(spent)
    assert found.leak == 0.0 and found.binding is not None and found.binding.entry == 100
    bound = transport.profile(spent[0])
    assert bound.by_entry is not None and len(bound.by_entry) == 3
    assert bound.binding is not None and bound.binding.entry == 100
    true = of(TWO, 101, entries=(100,)).profile(np.r_[0.5, 0.5, np.zeros(99)])
    assert bound.value >= true.value
    inside = of(TWO, None, entries=(4,))
    last = inside.profile(spent[0])
    same = of(TWO, 5, entries=(4,)).profile(np.r_[0.5, 0.5, np.zeros(3)])
    assert last.value == same.value and last.binding == same.binding
    assert inside._counting(spent).leak == pytest.approx(same.value, rel=1e-14)


def test_factors_are_written_down_as_long_as_they_are_floats() -> None:
    for epsilon, written in ((600.0, True), (600.5, False)):
        transport = of(TWO, 3)
        found = transport.witness(epsilon, transport.uniform(epsilon))
        assert (found.factors is not None) == written and found.entries == (0, 1, 2)
        assert found.leak == pytest.approx(transport.uniform(epsilon).value, rel=1e-14)
    mixed = of(TWO, 3)
    assert mixed.witness(np.array([0.1, 700.0, 0.1]), Bound(0.0)).factors is None


def test_nothing_is_shown_where_no_pair_can_happen() -> None:
    chain = MarkovChain(np.eye(2), length=3, start=np.array([1.0, 0.0]))
    transport = BinaryTransport(chain, Secrets())
    found = transport.witness(0.5, transport.uniform(0.5))
    assert found.leak == 0.0 and found.binding is None
    bound = transport.uniform(0.5)
    assert bound.value == 0.0 and bound.binding is None


def test_a_mechanism_tells_nothing_one_way_only() -> None:
    """Costs are rounded down for a witness, and what is free one way is free the other way."""
    transport = BinaryTransport(MarkovChain(TWO, ("a", "b"), length=3), Secrets())
    third = Cost.any(Fraction(1, 3))
    one = Cost.of({Membership(("a",)): Fraction(1, 7)})
    told = transport._attainable(EntryCosts(by_entry=(third, NOTHING, one)))
    assert told.shape == (2, 3)
    for value, exact in zip(told[0], (Fraction(1, 3), Fraction(0), Fraction(1, 7)), strict=True):
        assert Fraction(float(value)) <= exact <= Fraction(float(value)) * (1 + Fraction(1, 2**50))
    anywhere = transport._attainable(EntryCosts(anywhere=(one, third)))
    assert anywhere.tolist() == told[:, 0].tolist()
    assert transport._attainable(EntryCosts()).tolist() == [0.0, 0.0]


def test_pairs_are_numbered_as_in_the_closed_form() -> None:
    table = binary_transport._table(np.array([0.5, 0.25]))
    assert table[1, 0] == 0.5 and table[0, 1] == 0.25 and np.isneginf(np.diag(table)).all()
    assert [binary_transport._larger(np.array(u)) for u in ([1, 0], [0, 1], [1, 1])] == [0, 1, 0]
    assert binary_transport._twice(np.array([0.5])).tolist() == [[0.5], [0.5]]


def test_group_privacy_bounds_what_is_not_exponentiated() -> None:
    spent = np.random.default_rng(1).uniform(1e15, 2e15, 7)
    found = of(TWO, 7).profile(spent)
    exact = sum((Fraction(float(one)) for one in spent), Fraction(0))
    assert exact <= Fraction(found.value) <= exact * (1 + Fraction(1, 2**45))
    assert np.isinf(of(TWO, None).uniform(2e15).value)
    assert of(TWO, None).uniform(1e15).value < np.inf


# entities that begin at any hour

HOURS = np.stack([TWO, [[0.4, 0.6], [0.5, 0.5]], [[0.9, 0.1], [0.1, 0.9]]])


def day(length: int, quick: int = 10**9, **secrets: Any) -> TimeOfDayTransport:
    with patch.object(time_of_day_transport, "QUICK", quick):
        return TimeOfDayTransport(TimeOfDayChain(HOURS, length=length), Secrets(**secrets))


def test_the_loss_of_an_entry_is_that_of_its_worst_hour() -> None:
    spent = np.array([0.5, 0.1, 0.4, 0.2])
    transport = day(4)
    found = transport.profile(spent)
    each = [transport._beginning(h).profile(_later(spent, h)) for h in range(3)]
    by_entry = np.max([one.by_entry[h:] for h, one in enumerate(each)], axis=0)  # type: ignore[index]
    assert found.by_entry is not None and found.by_entry.tolist() == by_entry.tolist()
    assert found.value == by_entry.max()
    worst = int(np.argmax([one.value for one in each]))
    inner = each[worst].binding
    assert found.binding is not None and inner is not None and isinstance(inner.entry, int)
    assert found.binding == Binding(inner.left, inner.right, entry=inner.entry - worst)
    assert transport._hour_of(found) == worst
    witness = transport.witness(spent, found)
    assert witness.leak == pytest.approx(found.value, rel=1e-12)
    assert witness.against == f"of an entity whose first row is at hour {worst}"
    assert transport.uniform(0.3).value == transport.profile(np.full(4, 0.3)).value


def test_all_hours_at_once_have_the_largest_cost_of_any_hour() -> None:
    spent = np.array([0.5, 0.1, 0.4, 0.2])
    transport = day(4, quick=0)
    found = transport.profile(spent)
    together = transport._together.profile(np.array([0.5, 0.5, 0.5, 0.4, 0.4, 0.2]))
    assert together.by_entry is not None and found.by_entry is not None
    assert found.value == together.value
    assert found.by_entry.tolist() == [together.by_entry[i : i + 3].max() for i in range(4)]
    assert found.value >= day(4).profile(spent).value
    a, b, c, d = (Cost.any(Fraction(n, 10)) for n in (5, 1, 4, 2))
    costs = transport._largest_costs(EntryCosts(by_entry=(a, b, c, d)))
    assert costs.by_entry == (a, a, a, c, c, d)
    same = EntryCosts(anywhere=(a, b))
    assert transport._largest_costs(same) is same
    assert transport.valued(EntryCosts(by_entry=(a, b, c, d))).value == pytest.approx(found.value)


@pytest.mark.parametrize(
    ("place", "entry", "hour"), [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 2, 1), (4, 2, 2), (5, 3, 2)]
)
def test_an_entry_is_named_near_the_middle(place: int, entry: int, hour: int) -> None:
    transport = day(4)
    found = transport._named(Binding("a", "b", entry=place), None)
    assert found == Binding("a", "b", entry=entry)
    assert transport._hour_of(Bound(1.0, found)) == hour
    assert transport._named(None, 1) is None
    anywhere = Binding("a", "b")
    assert transport._named(anywhere, 1) is anywhere and transport._hour_of(Bound(1.0)) == 0


def test_secrets_of_an_entity_are_those_of_the_chain_later() -> None:
    transport = day(4, entries=(1, 3))
    assert transport._beginning(2)._secret_entries.tolist() == [3, 5]  # type: ignore[attr-defined]
    assert transport._beginning(2).size == 6 and transport._beginning(2) is transport._known[2]
    assert transport._together._secret_entries.tolist() == [1, 2, 3, 4, 5]  # type: ignore[attr-defined]
    assert transport._together.size == 6
    every = day(4)._beginning(1)._secret_entries  # type: ignore[attr-defined]
    assert every.tolist() == [1, 2, 3, 4]


def test_a_witness_of_the_chain_is_one_of_the_entity() -> None:
    factors = np.arange(10.0).reshape(5, 2)
    given = Witness(0.5, Binding("a", "b", entry=3), (0, 1, 2, 3, 4), factors)
    found = _earlier(given, 2)
    assert found.leak == 0.5 and found.entries == (0, 1, 2)
    assert found.binding == Binding("a", "b", entry=1)
    assert found.factors is not None and found.factors.tolist() == factors[2:].tolist()
    bare = _earlier(Witness(0.0, None), 1)
    assert bare.binding is None and bare.factors is None and bare.entries == ()
    assert _later(np.array([0.5]), 2).tolist() == [0.0, 0.0, 0.5]


def test_costs_of_an_entity_are_those_of_the_chain_later() -> None:
    transport, a = day(2), Cost.any(Fraction(1, 2))
    assert transport._shifted(EntryCosts(anywhere=(a,)), 1).by_entry == (NOTHING, a, a)
    assert transport._shifted(EntryCosts(), 1).by_entry == (NOTHING,) * 3
    assert transport._shifted(EntryCosts(by_entry=(NOTHING, a)), 0).by_entry == (NOTHING, a)
    unknown = EntryCosts(anywhere=(a, Cost.any(Fraction(1, 4))))
    bound = transport.valued(unknown)
    shown = transport.valued_witness(unknown, bound)
    assert shown.leak == 0.0 and shown.binding is bound.binding
    assert bound.value >= transport.valued(EntryCosts(anywhere=(a,))).value


@pytest.mark.parametrize("quick", [10**9, 0])
def test_the_largest_loss_of_an_entry_is_within_its_target(quick: int) -> None:
    transport = day(5, quick=quick)
    allowed = transport.largest(1.0)
    assert 0.98 <= transport.uniform(allowed).value <= 1.0
