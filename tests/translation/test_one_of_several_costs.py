"""Lower bounds where entries have lost one of several costs, or a cost of many terms."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from takifugu.costs.cost import Cost, Distance, Matrix
from takifugu.priors.markov import MarkovChain
from takifugu.priors.networks import MarkovRandomField
from takifugu.priors.secrets import EntryIs
from takifugu.translation import Translation
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.search.products import best_witness, product_witness
from tests.translation.rising_fields import attractive_losses

pytestmark = pytest.mark.nightly

DOWN = Cost.of({Matrix([0, 1], [[0, 0], [1, 0]]): 1})  # only the change from 1 to 0 costs
UP = Cost.of({Matrix([0, 1], [[0, 1], [0, 0]]): 1})
SMALL = Cost.any("0.5")


def field(count: int) -> MarkovRandomField:
    return MarkovRandomField(
        tuple(range(count)),
        ((0, 1),) * count,
        (np.array([1.0, 0.7]),) * count,
        tuple((i, i + 1) for i in range(count - 1)),
        (np.array([[2.0, 1.0], [1.0, 2.0]]),) * (count - 1),
    )


def test_no_mechanism_has_one_of_two_costs_that_are_0_one_way() -> None:
    both = EntryCosts((DOWN, UP))
    found = attractive_losses(field(4), both)
    assert found.attained == 0 and not found.exact and found.loss > 1
    assert best_witness(field(4), both, found.pairs, found.upper.tolist()).lower == 0
    assert product_witness(field(4), both, found.pairs[0]).lower == 0


def test_of_several_costs_the_one_that_mechanisms_can_have_is_attained() -> None:
    several = attractive_losses(field(4), EntryCosts((DOWN, UP, SMALL)))
    alone = attractive_losses(field(4), EntryCosts((SMALL,)))
    assert several.attained == alone.attained > 0.5
    assert alone.exact and not several.exact


@pytest.mark.parametrize("count", [5, 200, 1000])
def test_costs_of_many_terms_are_not_exceeded(count: int) -> None:
    states = ("a", "b", "c")
    share = Fraction(1, count)
    alike = Cost.of(
        {
            Matrix(
                list(states),
                [[0 if x == y else Fraction(10**6 - i, 10**6) for y in states] for x in states],
            ): share
            for i in range(count)
        }
    )
    sums = Cost.of({Distance(0, 10 + i): share for i in range(count)})
    for cost, values in ((alike, states), (sums, (0, 5, 10))):
        chain = MarkovChain(np.full((3, 3), 1 / 3), values, start=np.full(3, 1 / 3), length=1)
        most = max(cost.between(u, v) for u, v in permutations(values, 2))
        leak = Fraction(Translation(chain).explain_cost(cost).witness.leak)
        assert most * (1 - Fraction(1, 10**10)) < leak <= most
        matrix = cost.matrix(values)
        for u, v in permutations(range(3), 2):
            truth = cost.between(values[u], values[v])
            assert truth <= Fraction(matrix[u, v]) <= truth * (1 + Fraction(64, 2**53))


def test_an_attractive_field_with_a_cost_of_many_terms() -> None:
    count = 4000
    cost = Cost.of(
        {
            Matrix([0, 1], [[0, Fraction(1, 2)], [Fraction(10**6 - i, 10**6), 0]]): Fraction(
                1, count
            )
            for i in range(count)
        }
    )
    alone = MarkovRandomField((0,), ((0, 1),), (np.ones(2),), (), ())
    found = attractive_losses(alone, EntryCosts((cost,)))
    for pair, lower in zip(found.pairs, found.lower, strict=True):
        assert isinstance(pair.left, EntryIs) and isinstance(pair.right, EntryIs)
        truth = cost.between(pair.left.values[0], pair.right.values[0])
        assert truth * (1 - Fraction(1, 10**10)) < Fraction(float(lower)) <= truth
