"""Lower bounds come close: what a witness leaks is nearly what the bound says may be lost."""

from typing import Any

import numpy as np
import pytest

from takifugu._core.numeric import Floats
from takifugu.priors import MarkovChain
from takifugu.translation import Translation

PROFILE = np.array([0.1, 0.6, 0.3, 0.9])


def rows_of(k: int) -> Floats:
    rng = np.random.default_rng(k)
    return rng.dirichlet(np.ones(k), k) * 0.6 + 0.4 * np.eye(k)


@pytest.mark.nightly
@pytest.mark.parametrize("spent", [0.1, 1.0, PROFILE, PROFILE[::-1].copy()])
@pytest.mark.parametrize(
    ("given", "share"),
    [
        ({}, 1 - 1e-6),
        ({"start": np.array([0.7, 0.2, 0.1])}, 1 - 1e-6),
        ({"known": "any"}, 1 - 1e-6),
        ({"start": "unknown"}, 0.99),
        ({"start": "unknown", "known": "any"}, 0.99),
    ],
)
@pytest.mark.parametrize("k", [2, 3])
def test_a_short_chain_is_known_to_both_sides(
    k: int, given: dict[str, Any], share: float, spent: float | Floats
) -> None:
    if isinstance(given.get("start"), np.ndarray):
        law = given["start"][:k]
        given = {**given, "start": law / law.sum()}
    found = Translation(MarkovChain(rows_of(k), length=4, **given)).explain(spent, "transport")
    assert share * found.pufferfish <= found.lower <= found.pufferfish
    assert found.witness.binding is not None and 0 <= int(str(found.witness.binding.entry)) < 4


@pytest.mark.nightly
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("known", [None, "any"])
def test_a_chain_without_end_is_known_to_both_sides(k: int, known: str | None) -> None:
    given: dict[str, Any] = {} if known is None else {"known": known}
    for spent in (0.1, 1.0):
        found = Translation(MarkovChain(rows_of(k), **given)).explain(spent, "transport")
        assert 0.999 * found.pufferfish <= found.lower <= found.pufferfish
