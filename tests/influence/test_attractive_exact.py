"""What a curve calls exact is the least leak: not where sets were left out."""

import mpmath
import numpy as np
import pytest

from takifugu.errors import TooLarge
from takifugu.influence import attractive_curve, network_curve
from takifugu.priors.networks import MarkovRandomField
from takifugu.priors.secrets import Secrets
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
                if curve.exact[row, k] and curve.leak[row, k] > 5e-4:
                    assert curve.leak[row, k] <= float(truth[b - 1]) * (1 + 1e-6)


@pytest.mark.parametrize("weak", [2.02e-4, 6e-4])
def test_a_leak_beside_what_twenty_entries_add_by_rounding(weak: float) -> None:
    """Entry 0 hardly knows its only neighbour: the truth is log odds of two numbers."""
    count, strong = 20, np.array([[1000.0, 1.0], [1.0, 1000.0]])
    table = np.array([[1 + weak, 1.0], [1.0, 1 + weak]])
    field = MarkovRandomField(
        tuple(range(count)),
        ((0, 1),) * count,
        (np.ones(2),) * count,
        tuple((i, i + 1) for i in range(count - 1)),
        (table, *[strong] * (count - 2)),
    )
    curve = attractive_curve(field, Secrets(entries=(0,)), largest=2)
    truth = mpmath.log1p(mpmath.mpf(float(table[0, 0])) - 1)  # by symmetry the odds were even
    point = curve.points()[0]
    assert point.a >= truth
    assert not point.exact or point.a * (1 - 1e-6) <= truth
    assert point.exact == (weak > 5e-4)


@pytest.mark.filterwarnings("error")
def test_weights_that_underflow_are_refused_without_a_warning() -> None:
    strong = np.array([[1e145, 1e-145], [1e-145, 1e145]])
    edges = ((0, 1), (0, 2))
    field = MarkovRandomField((0, 1, 2), ((0, 1),) * 3, (np.ones(2),) * 3, edges, (strong,) * 2)
    with pytest.raises(TooLarge):
        attractive_curve(field)
