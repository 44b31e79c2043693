"""Random small priors."""

import numpy as np
from hypothesis import strategies as st

from takifugu.priors import HigherOrderChain


@st.composite
def higher_order_chains(
    draw: st.DrawFn, *, length: int | None = None, zeros: bool = False
) -> HigherOrderChain:
    """Chains of order 2 or 3 with 2 states, or of order 2 with 3; with zeros or without.

    With zeros the first state can always follow, and the second one often, so that there is one
    stationary law of at least two values.
    """
    n, k = draw(st.sampled_from([(2, 2), (2, 3), (3, 2)]))
    cells = n ** (k + 1)
    least = 0 if zeros else 1
    weights = draw(st.lists(st.integers(least, 9), min_size=cells, max_size=cells))
    table = np.array(weights, dtype=np.float64).reshape((n,) * (k + 1))
    table[..., 0] += 1
    table[(0,) * k][1] += 1
    return HigherOrderChain(table / table.sum(axis=-1, keepdims=True), length=length)
