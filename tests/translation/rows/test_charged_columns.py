"""Columns that were read with dozens of joint states: still one coupling of their laws."""

from math import log

import numpy as np
import pytest

from takifugu.costs import ANY, Column, Cost
from takifugu.priors import BayesianNetwork
from takifugu.translation.rows.charged_columns import ChargedColumns
from takifugu.translation.rows.row_spending import RowSpending

pytestmark = pytest.mark.nightly


def test_two_columns_of_eight_values_are_coupled_as_a_whole() -> None:
    """The second column is the first one in a quarter of the rows, and else anything."""
    values = tuple(map(str, range(8)))
    rows = 0.25 * np.eye(8) + 0.75 / 8
    prior = BayesianNetwork(("a", "b"), (values, values), ((), ("a",)), (np.full(8, 0.125), rows))
    both = RowSpending.of(Cost.of({Column(name, ANY): "0.5" for name in ("a", "b")}))
    found = ChargedColumns(prior).losses(both, "a", (((0,), (1,)),))
    assert found is not None
    gain = np.exp(0.5) - 1
    exact = 0.5 + log((1 + gain * rows[0, 0]) / (1 + gain * rows[1, 0]))
    assert found[0] == pytest.approx(exact, rel=1e-9) and found[0] >= exact
