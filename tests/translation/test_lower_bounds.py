"""Lower bounds at the edges: never above the truth, never about what cannot happen."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

from takifugu.costs.cost import Cost, Distance, Matrix, Membership
from takifugu.priors import BayesianNetwork, Explicit, MarkovChain, Tables
from takifugu.priors.secrets import Secrets
from takifugu.translation import LooserTranslation, Translation
from takifugu.translation.entry_costs import EntryCosts

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("epsilon", [0.5197313377987105, 500.0, 1e-300])
def test_of_one_entry_the_cost_itself_is_not_exceeded(epsilon: float) -> None:
    """A matrix of costs is rounded up; a mechanism has to keep to the exact cost."""
    alone = MarkovChain(np.full((2, 2), 0.5), ("0", "1"), start=np.array([0.4, 0.6]), length=1)
    cost = Cost.of({Distance(0, 3): 3 * Fraction(epsilon)})
    found = Translation(alone).explain_cost(cost)
    assert found.witness.leak <= epsilon <= found.pufferfish


def test_nor_in_an_attractive_network() -> None:
    tables = ([0.96, 0.04], [[0.53, 0.47], [0.39, 0.61]], [0.52, 0.48])
    network = BayesianNetwork(
        ("a", "b", "c"),
        (("0", "1"),) * 3,
        ((), ("a",), ()),
        tuple(np.array(table) for table in tables),
    )
    steep = Cost.of({Distance(0, 3): Fraction(1500)})
    costs = EntryCosts(by_entry=(steep, Cost(), steep))
    found = Translation(network).explain_cost(costs)
    assert found.witness.leak <= 500 <= found.pufferfish


def test_what_costs_nothing_one_way_tells_nothing() -> None:
    """If no output is likelier for 1 than for 0, both have the same law."""
    coupled = np.array([[0.7, 0.3], [0.3, 0.7]])
    network = BayesianNetwork(
        ("a", "b"), (("0", "1"),) * 2, ((), ("a",)), (np.array([0.5, 0.5]), coupled)
    )
    cost = Cost.of({Matrix(("0", "1"), [[0, 1], [0, 0]]): 1})
    assert Translation(network).explain_cost(cost).witness.leak == 0


def test_nobody_knows_what_never_happens() -> None:
    """State 1 is left for ever: no entry is known to be there, and nothing is secret."""
    rows = np.array([[1.0, 0.0], [0.5348810260365395, 0.4651189739634605]])
    chain = MarkovChain(rows, length=3, known="any")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LooserTranslation)
        assert Translation(chain).explain(500.0).witness.leak == 0
    begun = MarkovChain(rows, start=np.array([1.0, 0.0]), length=3, known="any")
    assert Translation(begun).explain(1.0).witness.leak == 0


def test_a_side_that_never_happens_has_no_witness() -> None:
    certain = np.zeros(9)
    certain[0] = 1.0
    universe = Tables.of({0: ("0", "1", "3"), 1: ("0", "1", "3")})
    cost = Cost.of({Membership(["0"]): 1, Distance(0, 3): 1})
    found = Translation(Explicit(universe, certain)).explain_cost(cost)
    assert found.witness.leak == 0


def test_weights_that_would_vanish_are_scaled() -> None:
    rows = [
        [0.0, 1.0, 0.0],
        [1.0, 1.6103026063115726e-149, 1.6103026063115726e-149],
        [0.6315547549116363, 0.35238170601250174, 0.016063539075862013],
    ]
    chain = MarkovChain(np.array(rows), ("0", "1", "3"), length=2)
    table = Matrix(("0", "1", "3"), [[0, 2, 1], [1, 0, 1], [2, 1, 0]])
    for unit in (500, 1000):
        found = Translation(chain).explain_cost(Cost.of({table: unit}))
        assert 0 <= found.witness.leak <= found.pufferfish


def test_group_privacy_serves_the_smallest_losses() -> None:
    rows = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
    chain = MarkovChain(rows, length=3)
    translation = Translation(chain)
    assert translation.to_pufferfish(1e-300, "group") <= 3.0000000000000004e-300
    allowed = translation.to_dp(1e-300, "group")
    assert Fraction(float(allowed)) * 3 <= Fraction(1e-300)
    assert allowed > 0.33e-300


def halves() -> Translation:
    """After 0 comes 0 or 1, after 2 only 2; the first entry is the secret."""
    rows = np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.0, 1.0]])
    chain = MarkovChain(rows, ("0", "1", "2"), start=np.array([0.4, 0.3, 0.3]), length=2)
    return Translation(chain, Secrets(entries=(0,), pairs=((("0",), ("2",)),)))


def test_a_mechanism_has_one_of_several_costs_and_not_the_largest_of_them() -> None:
    """The largest of both, value by value, would tell 2 from 0 and 1 alike, by 3 on each entry."""
    zero, one = (Cost.of({Membership([label]): 3}) for label in "01")
    found = halves().explain_cost(EntryCosts((zero, one)))
    truth = 3 + math.log((math.exp(3) + 1) / 2)  # the first entry tells 0, the second one 0 too
    assert truth - 1e-9 <= found.witness.leak <= truth <= found.pufferfish
    assert not found.exact


@pytest.mark.parametrize("smaller", [Cost(), Cost.of({Membership(["0"]): 1})])
def test_a_cost_that_is_least_changes_nothing(smaller: Cost) -> None:
    largest = Cost.of({Membership(["0"]): 3})
    alone = halves().explain_cost(largest)
    for costs in ((largest, smaller), (smaller, largest), (largest, largest)):
        found = halves().explain_cost(EntryCosts(costs))
        assert found.witness.leak == alone.witness.leak
        assert found.exact and found.pufferfish == alone.pufferfish
