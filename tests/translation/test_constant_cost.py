"""One step with a constant cost, also where the gain is beyond all floats."""

import numpy as np

from takifugu.translation.chain.fixed_point import constant_cost

ROWS = np.array([[0.9, 0.1], [0.2, 0.8]])


def test_a_step_never_costs_more_than_its_moves() -> None:
    for alpha in (0.1, 1.0, 699.0, 701.0, 5000.0):
        found = constant_cost(ROWS, alpha)
        assert np.isfinite(found).all() and (np.diag(found) == 0).all()
        assert (found <= alpha * (1 + 1e-9)).all() and found[0, 1] > 0 and found[1, 0] > 0


def test_two_states_have_the_closed_form() -> None:
    alpha = 0.7
    gain = np.expm1(alpha)
    want = np.log((1 + gain * 0.9) / (1 + gain * 0.2))
    found = constant_cost(ROWS, alpha)[0, 1]
    assert want <= found <= want + 1e-12
