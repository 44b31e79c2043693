"""Laws and backward rows of chains, against exact fractions and at the limits of floats."""

from fractions import Fraction
from math import log

import numpy as np
import pytest

from takifugu.translation.certify.laws import Law, backward_rows


def test_laws_are_walked_below_the_smallest_float() -> None:
    rows = np.array([[0.25, 0.75, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    law, exact = Law.from_floats(np.array([1.0, 0.0, 0.0])), [Fraction(1), Fraction(0), Fraction(0)]
    steps = [[Fraction(v) for v in row] for row in rows.tolist()]
    for _ in range(1_500):
        back, after = law.back(rows)
        moved = [sum((exact[u] * steps[u][x] for u in range(3)), Fraction(0)) for x in range(3)]
        for x in range(3):
            assert after.possible[x] == (moved[x] > 0)
            for u in range(3):
                if moved[x] > 0:
                    true = exact[u] * steps[u][x] / moved[x]
                    assert back[x, u] == pytest.approx(float(true), rel=law.slack, abs=2.0**-959)
        law, exact = after, moved
    assert exact[0] < Fraction(1, 2**2_000)


def test_backward_rows_of_a_faint_stationary_law_are_right_in_every_entry() -> None:
    """A law of 1e-180 times a step of 1e-140 is no normal float, yet its share in a row is one."""
    law = np.array([1.0, 1.1e-180, 1e-265])
    rows = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.3e-140], [0.0, 0.0, 1.0]])
    back, _ = backward_rows(rows, law)
    assert back[2, 1] == pytest.approx(1.43e-55, rel=1e-12, abs=0)


def test_a_law_that_fades_is_not_stationary() -> None:
    rows = np.array([[1.0, 0.0], [0.5, 0.5]])
    law = Law.from_floats(np.array([1.0, 1e-100]))
    assert law.drift(law.back(rows)[1]) == pytest.approx(log(2), abs=1e-9)
    assert law.drift(Law.from_floats(np.array([1.0, 0.0]))) == np.inf
