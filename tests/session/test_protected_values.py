"""A query is charged by value only where names settle which state a cell is counted with."""

import numpy as np
import pytest

from takifugu.binding.protected_values import WHOLLY, ProtectedValues
from takifugu.costs.cost import Cost, Matrix
from takifugu.declarations import Category, Declaration, Order, Source
from takifugu.priors import MarkovChain
from takifugu.priors.universe import Name
from takifugu.translation import Translation

STAYS = np.array(
    [[0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.1, 0.1, 0.7, 0.1], [0.1, 0.1, 0.1, 0.7]]
)


def values(states: tuple[Name, ...], column: Category) -> ProtectedValues:
    declared = Declaration(
        Source("csv", path="s.csv"), "person", Order("step", "number"), (column,), ()
    )
    chain = MarkovChain(STAYS, states=states, length=3)
    return ProtectedValues.of(Translation(chain), declared, "state")


@pytest.mark.parametrize(
    ("labels", "mapped", "states", "outside"),
    [
        (("home", "ward", "clinic"), (("flat", "home"),), ("home", "ward", "clinic", "flat"), 1),
        ((0, 1, 2), ((3, 0),), (0, 1, 2, 3), 1),
        ((0, 1, 2), (("3", 0),), (0, 1, 2, 3), 1),
        (("home", "ward", "clinic"), (), ("home", "ward", "clinic", "away"), 0),
    ],
)
def test_a_state_that_is_counted_with_a_label_is_not_outside_it(
    labels: tuple[Name, ...],
    mapped: tuple[tuple[Name, Name], ...],
    states: tuple[Name, ...],
    outside: int,
) -> None:
    found = values(states, Category("state", labels, "drop", labels=mapped))
    assert (found.count(labels[:1]) == WHOLLY) == bool(outside)


def test_a_state_that_is_folded_into_other_is_not_outside_it() -> None:
    column = Category("state", ("home", "ward"), "other")
    found = values(("home", "ward", "other", "flat"), column)
    assert found.count(["other"]) == found.count(["home"]) == WHOLLY


def test_a_unit_that_costs_nothing_has_no_factor() -> None:
    nothing = Cost.of({Matrix((0, 1, 2, 3), [[0] * 4] * 4): 1})
    assert Translation(MarkovChain(STAYS, length=3)).to_cost(nothing, 1.0) == 0
