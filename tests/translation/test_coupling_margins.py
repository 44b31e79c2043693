"""What a coupling between sides pays for the rounding of their laws."""

import numpy as np
import pytest

from takifugu.translation.network import coupling_steps
from takifugu.translation.network.coupling_steps import CouplingSteps, PossibleStates, Term

pytestmark = pytest.mark.nightly


def test_the_longer_of_two_sides_says_how_many_roundings_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    law = PossibleStates((0,), np.arange(4)[None], np.full(4, 0.25), 7)
    sides = [np.array([0]), np.array([1, 2, 3])]
    term = Term((0,), 1.0 - np.eye(4))
    monkeypatch.setattr(coupling_steps, "gamma", lambda n: n / 1024)
    ends = np.array([0, 1]), np.array([1, 0])
    found = CouplingSteps((4,)).between(law, [term], sides, *ends)
    assert found == pytest.approx(1.0 + 5 * (7 + 3) / 1024, rel=1e-9)
