"""What a curve calls exact is the least leak: not where sets were left out."""

import numpy as np
import pytest

from takifugu.influence.network.attractive_curves import attractive_curve
from takifugu.influence.network.network_curves import network_curve
from tests.extremes import instances
from tests.oracles import extremes as oracle


@pytest.mark.parametrize("seed", [7049340415635981, *range(4)])
def test_a_point_that_is_called_exact_is(seed: int) -> None:
    """In the first field a set of two entries leaves float64, and would have been the best."""
    model = instances.attractive(np.random.default_rng(seed))
    sizes, tables = instances.tables(model)
    law = oracle.law(sizes, tables)
    for curve in (attractive_curve(model, largest=3), network_curve(model, largest=3)):
        for row in range(len(curve.pairs)):
            entry = next(
                k for k, name in enumerate(model.entries) if f"{name}=" in curve.pairs[row]
            )
            left = (int(curve.pairs[row].split(" / ")[0].split("=")[1]),)
            truth = oracle.leaks(law, len(sizes), entry, left, (1 - left[0],))
            assert truth is not None
            for k, b in enumerate(curve.exposed.tolist()):
                if curve.exact[row, k] and curve.leak[row, k] > 2e-4:
                    assert curve.leak[row, k] <= float(truth[b - 1]) * (1 + 1e-6)
