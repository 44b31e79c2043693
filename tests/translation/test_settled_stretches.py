"""A long stretch of equal steps ends as soon as nothing changes any more."""

from decimal import Decimal

import numpy as np
import pytest

from takifugu.translation.chain import binary_closed_form
from takifugu.translation.chain.binary_closed_form import BinaryStep, _law_runs, _walk

pytestmark = pytest.mark.nightly

LONG = 16 * 256


def test_laws_that_have_settled_are_one_run() -> None:
    step = BinaryStep.of(np.array([[0.875, 0.125], [0.25, 0.75]]))
    spent = np.full((2, LONG), 0.5)
    possible = np.ones(LONG + 1, dtype=np.bool_)
    runs = list(_law_runs([step] * LONG, spent, np.array([0.5, 0.5]), {}, possible))
    assert sum(count for *_, count in runs) == LONG and len(runs) < LONG / 8


def test_losses_that_have_settled_are_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    logarithm = binary_closed_form._log1p

    def counted(u: Decimal) -> float:
        asked.append(u)
        return logarithm(u)

    monkeypatch.setattr(binary_closed_form, "_log1p", counted)
    share, gain = Decimal("0.25"), Decimal("0.5")
    found = _walk(iter([(True, share, share, share, (gain, gain), LONG)]), LONG + 1)
    assert found.shape == (2, LONG + 1) and len(asked) < LONG / 8
    assert (found[:, -1] == found[:, LONG // 2]).all() and (found[:, 1:] > 0).all()
