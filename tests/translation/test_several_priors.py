"""Several priors or people put together, each with a transport bound that is written out."""

import warnings
from typing import Any

import numpy as np
import pytest

from takifugu.costs import ANY, Column, Cost, Distance, Membership
from takifugu.errors import TooLarge, UnsoundRequest
from takifugu.numeric import Floats
from takifugu.priors import (
    AR1,
    Gaussian,
    HigherOrderChain,
    IndependentEntries,
    MarkovChain,
    Product,
    Secrets,
)
from takifugu.priors.random_field import MarkovRandomField
from takifugu.priors.secrets import EntryIs, SecretPair
from takifugu.translation import transport_bound as module
from takifugu.translation.bounds import (
    Binding,
    Bound,
    LooserTranslation,
    TransportBound,
    Witness,
    of_pair,
    worst,
)
from takifugu.translation.entry_costs import EntryCosts, check_labels, labels_of
from takifugu.translation.transport_bound import (
    AlternativePriors,
    IndependentPeople,
    transport_bound,
    transport_bound_of_any,
)
from takifugu.translation.witness_of_costs import leaking_with
from tests.raising import raises

ROWS = np.array([[0.9, 0.1], [0.2, 0.8]])


class Line(TransportBound):
    """A loss of ``slope`` times the sum of what its entries have lost."""

    def __init__(
        self, slope: float, size: int | None = 2, *, solved: bool = True, listed: bool = True
    ) -> None:
        self.slope, self._size, self.solved, self.listed = slope, size, solved, listed

    @property
    def size(self) -> int | None:
        """As it was made."""
        return self._size

    def _bound(self, losses: Floats) -> Bound:
        by_entry = self.slope * losses if self.listed else None
        at = Binding("x", "y", entry=int(np.argmax(losses)))
        table = np.array([[self.slope]])
        return Bound(float(self.slope * losses.max()), at, by_entry, table, self.solved)

    def uniform(self, epsilon: float) -> Bound:
        """Of two entries that have lost the same."""
        return self._bound(np.array([epsilon, epsilon]))

    def profile(self, epsilon: Floats) -> Bound:
        """Of each of them."""
        return self._bound(np.asarray(epsilon))

    def valued(self, costs: EntryCosts) -> Bound:
        """By what covers each cost."""
        spent = costs.scalars()
        return self._bound(np.array([spent, spent]) if isinstance(spent, float) else spent)

    def largest(self, target: float) -> float:
        """Its inverse."""
        return target / self.slope

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:
        """As much as the last of its own entries."""
        return Witness(self.slope * float(np.max(epsilon)), bound.binding)

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """As much as the largest of its own costs."""
        return Witness(self.slope * float(costs.scalar), bound.binding)


def numbers(values: Floats | None) -> list[float] | None:
    return None if values is None else values.tolist()


def test_of_alternatives_the_largest_loss_counts() -> None:
    both = AlternativePriors({"low": Line(1.0, 2), "high": Line(3.0, 4)})
    assert both.size == 4 and AlternativePriors({"a": Line(1.0), "b": Line(1, None)}).size is None
    found = both.uniform(0.5)
    assert found.value == 1.5 and found.by_entry is None and found.solved
    assert found.binding == Binding("x", "y", entry=0, prior="high")
    assert found.by_values is not None and found.by_values.tolist() == [[3.0]]
    partly = AlternativePriors({"low": Line(1.0, solved=False), "high": Line(3.0)})
    assert not partly.uniform(0.5).solved
    assert both.largest(3.0) == 1.0
    profile = both.profile(np.array([0.5, 0.25]))
    assert profile.value == 1.5 and numbers(profile.by_entry) == [1.5, 0.75]
    assert profile.by_values is not None and profile.by_values.tolist() == [[3.0]]
    unlisted = AlternativePriors({"low": Line(1.0, listed=False), "high": Line(3.0)})
    assert unlisted.profile(np.array([0.5, 0.25])).by_entry is None
    each = EntryCosts(by_entry=(Cost.any("1/2"), Cost.any("1/4")))
    valued = both.valued(each)
    assert valued.value == 1.5 and numbers(valued.by_entry) == [1.5, 0.75]
    assert valued.binding == Binding("x", "y", entry=0, prior="high")
    assert unlisted.valued(each).by_entry is None
    assert both.valued(EntryCosts((Cost.any("1/2"),))).by_entry is None


def test_the_witness_is_that_of_the_prior_that_binds() -> None:
    both = AlternativePriors({"low": Line(1.0), "high": Line(3.0)})
    cost = EntryCosts((Cost.any("1/2"),))
    for name, leak in (("low", 0.5), ("high", 1.5)):
        at = Bound(9.0, Binding("x", "y", prior=name))
        for found in (both.witness(0.5, at), both.valued_witness(cost, at)):
            assert found.leak == leak
            assert found.binding is not None and found.binding.prior == name
    for unknown in (Bound(9.0), Bound(9.0, Binding("x", "y", prior="other"))):
        assert both.witness(0.5, unknown).leak == 0.5  # the first of them
        assert both.valued_witness(cost, unknown).leak == 0.5


def test_people_are_each_bounded_by_their_own_entries() -> None:
    both = IndependentPeople({"ann": Line(1.0, 2), "bob": Line(3.0, 1)})
    assert both.size == 3
    assert IndependentPeople({"ann": Line(1.0, 2), "bob": Line(3.0, None)}).size is None
    spent = np.array([0.5, 2.0, 0.25])
    found = both.profile(spent)
    assert found.value == 2.0 and numbers(found.by_entry) == [0.5, 2.0, 0.75]
    assert found.binding == Binding("x", "y", entry=1, prior="ann")
    costs = EntryCosts(by_entry=(Cost.any("1/2"), Cost.any(2), Cost.any("1/4")))
    valued = both.valued(costs)
    assert valued.value == 2.0 and numbers(valued.by_entry) == [0.5, 2.0, 0.75]
    assert both.valued(EntryCosts((Cost.any("1/2"),))).value == 1.5
    for name, leak in (("ann", 2.0), ("bob", 0.75)):
        at = Bound(9.0, Binding("x", "y", prior=name))
        for witness in (both.witness(spent, at), both.valued_witness(costs, at)):
            assert witness.leak == leak
            assert witness.binding is not None and witness.binding.prior == name
    assert both.witness(spent, Bound(9.0)).leak == 2.0
    assert both.witness(0.5, Bound(9.0, Binding("x", "y", prior="bob"))).leak == 1.5
    for wrong in (np.ones(2), np.ones(4)):
        with raises(UnsoundRequest, field="profile", given=len(wrong), needed=3):
            both.profile(wrong)
    with raises(UnsoundRequest, field="profile", given=2, needed=3):
        both.valued(EntryCosts(by_entry=(Cost.any(1), Cost.any(1))))
    unbounded = IndependentPeople({"ann": Line(1.0, 2), "bob": Line(3.0, None)})
    with raises(UnsoundRequest, field="profile"):
        unbounded.profile(np.ones(3))
    with raises(UnsoundRequest, field="profile"):
        unbounded.valued(costs)
    with pytest.raises(KeyError):
        both._part_of(costs, "eve")


def test_the_worst_of_several_bounds() -> None:
    at = Binding("x", "y")
    one = Bound(1.0, at, np.array([1.0]), np.array([[1.0]]), solved=True)
    two = Bound(2.0, None, np.array([2.0, 0.5]), np.array([[2.0]]), solved=True)
    alone = worst({"one": one})
    assert alone.binding == at and numbers(alone.by_entry) == [1.0] and alone.solved
    both = worst({"two": two, "one": one})
    assert both.value == 2.0 and both.binding is None and numbers(both.by_entry) == [2, 0.5, 1]
    assert both.by_values is two.by_values and both.solved
    assert worst({"one": one, "none": Bound(0.5)}).by_entry is None
    assert not worst({"one": one, "none": Bound(0.5)}).solved
    assert worst({"one": one, "none": Bound(0.5)}).binding == Binding("x", "y", prior="one")


def test_how_pairs_are_named() -> None:
    assert Binding.of_pair("3=a / 3=b") == Binding("a", "b", entry=3)
    assert Binding.of_pair("mon=a / mon=b") == Binding("a", "b", entry="mon")
    assert Binding.of_pair("3=a / 4=b") == Binding("3=a", "4=b")
    assert Binding.of_pair("anything") == Binding("anything", "anything")
    assert str(Binding("a", "b", entry=3, prior="ann")) == "ann: 3=a / 3=b"
    assert str(Binding("a", "b")) == "a / b"
    assert Binding("a", "b", entry=0).document() == {"entry": 0, "left": "a", "right": "b"}
    pair = SecretPair(EntryIs(3, ("a", "b")), EntryIs(3, ("c",)))
    assert of_pair(pair) == Binding("a|b", "c", entry=3)
    assert Witness(1.0, Binding("a", "b")).named("p").binding == Binding("a", "b", prior="p")
    assert Witness(1.0, None).named("p").binding is None
    assert Bound(1.0).named("p").binding is None


def test_a_transport_that_knows_no_values_takes_what_covers_them() -> None:
    class Plain(Line):
        """A bound by scalars alone."""

        valued = TransportBound.valued
        valued_witness = TransportBound.valued_witness

    plain = Plain(2.0)
    each = EntryCosts(by_entry=(Cost.any("1/2"), Cost.any("1/4")))
    assert numbers(plain.valued(each).by_entry) == [1.0, 0.5]
    assert plain.valued(EntryCosts((Cost.any("1/2"),))).value == 1.0
    witness = plain.valued_witness(each, Bound(1.0, Binding("x", "y")))
    assert witness.leak == 0.0 and witness.binding == Binding("x", "y")
    assert plain.nearby(Bound(1.0)) is None


def looser(prior: Any) -> str:
    """Why a prior has no transport bound."""
    with pytest.warns(LooserTranslation) as caught:
        assert transport_bound(prior, Secrets()) is None
    return str(caught[0].message)


def test_what_has_no_transport_bound_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: Any, **__: Any) -> Any:
        raise TooLarge("too many parents")

    chain = MarkovChain(ROWS, length=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert transport_bound(chain, Secrets()) is not None
    monkeypatch.setattr("takifugu.translation.chain.binary_transport.BinaryTransport", refuses)
    monkeypatch.setattr(
        "takifugu.translation.network.network_transport.NetworkTransport", refuses
    )  # fmt: skip
    network = MarkovRandomField.ising({0: 0.0, 1: 0.0}, {(0, 1): 0.5})
    for prior in (chain, network):
        assert "too many parents" in looser(prior)
    monkeypatch.setattr(module, "MOST_STATES", 2)
    three = MarkovChain(np.full((3, 3), 1 / 3), length=3)
    assert "3 states are more than the 2" in looser(three)
    monkeypatch.setattr(module, "MOST_STATES", 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert transport_bound(three, Secrets()) is not None
        several = transport_bound_of_any({"a": three, "b": three}, Secrets())
        assert isinstance(several, AlternativePriors)
    with pytest.warns(LooserTranslation):
        assert transport_bound_of_any({"a": three, "b": chain}, Secrets()) is None
    with pytest.warns(LooserTranslation):
        assert transport_bound(Product({"a": three, "b": chain}), Secrets()) is None
    people = transport_bound(Product({"a": three, "b": three}), Secrets())
    assert isinstance(people, IndependentPeople) and people.size == 6
    unknown: Any = object()
    monkeypatch.setattr(module, "check_distance", lambda *_: None)
    with raises(UnsoundRequest, field="prior"):
        transport_bound(unknown, Secrets())


@pytest.mark.parametrize(
    ("prior", "home"),
    [
        (MarkovChain(np.full((3, 3), 1 / 3), length=3), "chain.chain_transport.ChainTransport"),
        (MarkovChain(ROWS, known="any"), "chain.adversary_transport.AdversaryTransport"),
        (HigherOrderChain(np.full((2, 2, 2), 0.5), length=3),
         "chain.higher_order_transport.HigherOrderTransport"),
    ],
    ids=["chain", "adversary", "higher order"],
)  # fmt: skip
def test_the_tolerance_is_handed_on(prior: Any, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def made(given: Any, secrets: Secrets, *, tolerance: float) -> Any:
        asked.append((given, secrets, tolerance))
        return Line(1.0)

    monkeypatch.setattr(f"takifugu.translation.{home}", made)
    near = Secrets(entries=(0,))
    transport_bound(prior, near, tolerance=0.01)
    transport_bound_of_any({"a": prior, "b": prior}, near, tolerance=0.02)
    transport_bound(Product({"a": prior}), near, tolerance=0.03)
    assert asked == [(prior, near, t) for t in (0.01, 0.02, 0.02, 0.03)]
    transport_bound(prior, near)
    transport_bound_of_any({"a": prior}, near)
    assert [tolerance for *_, tolerance in asked[-2:]] == [1e-3, 1e-3]


def test_secrets_of_numbers_need_a_distance() -> None:
    with raises(UnsoundRequest, field="secrets"):
        transport_bound(Gaussian(AR1(0.5)), Secrets())


# ---- what each entry has lost

A, B = Cost.of({Membership(["a"]): 1}), Cost.of({Membership(["b"]): 2})


def test_costs_of_every_entry_or_of_each() -> None:
    every, each = EntryCosts((A, B, A)), EntryCosts(by_entry=(A, B, A))
    assert every.uniform and not each.uniform
    assert every.size is None and each.size == 3
    assert every.at(1) == (A, B, A) and each.at(1) == (B,)
    assert every.listed == each.listed == (A, B)
    assert EntryCosts.of(every) is every and EntryCosts.of(A) == EntryCosts((A,))
    assert EntryCosts.of([A, B]) == EntryCosts(by_entry=(A, B))
    assert every.scalar == each.scalar == 2 and EntryCosts(()).scalar == 0
    scalars = each.scalars()
    assert every.scalars() == 2.0 and not isinstance(scalars, float)
    assert scalars.tolist() == [1.0, 2.0, 1.0]
    assert each.part(1, 3) == EntryCosts(by_entry=(B, A)) and every.part(1, 3) is every
    wrong: Any = (A, 0.5)
    for given in ({"anywhere": wrong}, {"by_entry": wrong}, {"anywhere": (A,), "by_entry": (A,)}):
        with raises(UnsoundRequest, field="costs"):
            EntryCosts(**given)


def test_matrices_of_costs() -> None:
    every, each = EntryCosts((A, B)), EntryCosts(by_entry=(A, B, A))
    largest = [[0, 2, 1], [2, 0, 2], [1, 2, 0]]
    values = ("a", "b", "c")
    assert every.matrix(values) == pytest.approx(np.array(largest))
    found, places = every.matrices(values)
    assert len(found) == 1 and found[0] == pytest.approx(np.array(largest)) and places == []
    found, places = each.matrices(values)
    assert places == [0, 1, 0] and len(found) == 2
    assert found[0].tolist() == A.matrix(values).tolist()
    assert found[1].tolist() == B.matrix(values).tolist() == each.matrix(values, entry=1).tolist()
    assert each.matrix(values).tolist() == A.matrix(values).tolist()


def test_what_one_mechanism_may_have_lost() -> None:
    """Of costs that any entry may have lost, those that no other one covers, the largest first."""
    small, large = Cost.any(1), Cost.any(2)
    assert EntryCosts((small, large, small)).alone == (EntryCosts((large,)),)
    assert EntryCosts((A, B)).alone == (EntryCosts((B,)), EntryCosts((A,)))
    assert EntryCosts((A, A)).alone == (EntryCosts((A,)),)
    for one in (EntryCosts(()), EntryCosts(by_entry=(A, B))):
        assert one.alone == (one,)


def test_the_witness_of_one_of_several_costs() -> None:
    far = [Cost.of({Membership([name]): 1 + k}) for k, name in enumerate("abcde")]
    found = leaking_with(Line(2.0), EntryCosts(tuple(far)), Bound(99.0))
    assert found.leak == 10.0 and found.binding == Binding("x", "y", entry=0)
    one = leaking_with(Line(2.0), EntryCosts((A,)), Bound(99.0, Binding("p", "q")))
    assert one.leak == 2.0 and one.binding == Binding("p", "q")


def test_labels_that_a_prior_has() -> None:
    chain = MarkovChain(ROWS, states=("in", "out"), length=2)
    assert set(labels_of(chain)) == {(None, "in"), (None, "out")}
    coins = IndependentEntries({"coin": {"head": 0.5, "tail": 0.5}})
    people = Product({"ann": chain, "bob": coins})
    assert set(labels_of(people)) == {(None, name) for name in ("in", "out", "head", "tail")}
    pairs = tuple((x, y) for x in (0, 1) for y in ("p", "q"))
    joint = MarkovChain(np.full((4, 4), 0.25), states=pairs, columns=("x", "y"), length=1)
    assert set(labels_of(joint)) == {("x", 0), ("x", 1), ("y", "p"), ("y", "q")}
    check_labels(EntryCosts((Cost.of({ANY: 1, Distance(0, 1): 1}),)), [])
    check_labels(EntryCosts((A,)), [(None, "a")])
    about = Cost.of({Column("x", Membership(["a"])): 1})
    check_labels(EntryCosts((about,)), [("x", "a")])
    for cost, known in ((A, [(None, "b")]), (about, [(None, "a")]), (about, [("y", "a")])):
        with raises(UnsoundRequest, field="cost", reason="unknown label", given="a"):
            check_labels(EntryCosts((cost,)), known)
