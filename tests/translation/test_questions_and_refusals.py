"""What a translation is, what it is asked and what it refuses."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from takifugu.costs.cost import Cost
from takifugu.errors import UnsoundRequest
from takifugu.influence.rounded_ratios import uncertainty_shift
from takifugu.priors import AR1, Gaussian, MarkovChain, Product, Secrets
from takifugu.priors.networks import MarkovRandomField
from takifugu.translation import TranslatedLoss, Translation
from takifugu.translation.bounds import EXACT, Witness
from takifugu.translation.translation import ALL_SECRETS, MAX_LOSS
from tests.raising import raises

pytestmark = pytest.mark.nightly

CHAIN = MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]]), length=3)


@pytest.mark.parametrize("r", [0.0, 1e-9, 0.1, 0.5, 0.99])
def test_the_shift_is_a_logarithm_rounded_up(r: float) -> None:
    with mpmath.workdps(40):
        true = mpmath.log1p(r) - mpmath.log1p(-mpmath.mpf(r))
        assert true <= uncertainty_shift(r) <= true * (1 + 1e-14) + (2e-15 if r else 0)


def test_priors_are_named_and_counted() -> None:
    translation = Translation({"a": CHAIN, 7: MarkovChain(CHAIN.transition, length=5)})  # type: ignore[dict-item]
    assert translation.size == 5 and list(translation.priors) == ["a", "7"]
    assert list(Translation([CHAIN, CHAIN]).priors) == ["prior 0", "prior 1"]
    assert Translation(CHAIN).priors == {"prior": CHAIN}
    assert Translation(CHAIN).entries == (0, 1, 2)


def test_what_a_translation_is() -> None:
    plain = Translation(CHAIN)
    assert plain.identity() == ("Translation", {"prior": CHAIN}, ALL_SECRETS, 0.0)
    assert plain.every_pair and not Translation(CHAIN, Secrets(entries=(0,))).every_pair
    same = Translation(CHAIN, tolerance=0.01, max_exposed=2)
    assert plain.fingerprint == same.fingerprint
    assert plain.fingerprint != Translation(CHAIN, uncertainty=0.1).fingerprint
    assert plain.fingerprint != Translation(CHAIN, Secrets(entries=(0,))).fingerprint
    assert plain.tolerance == 1e-3 and plain.max_exposed is None and plain.uncertainty == 0


def ising(nodes: int) -> MarkovRandomField:
    return MarkovRandomField.ising(dict.fromkeys(range(nodes), 0.0), {(0, 1): 0.5})


def test_the_curve_of_a_large_network_waits() -> None:
    assert not Translation(ising(24)).curve_waits and Translation(ising(25)).curve_waits
    assert Translation([CHAIN, ising(25)]).curve_waits
    assert Translation(Product({"a": CHAIN, "b": ising(25)})).curve_waits
    assert not Translation(CHAIN).curve_waits


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: Translation(CHAIN, uncertainty=1), "uncertainty"),
    (lambda: Translation(CHAIN, uncertainty=-0.1), "uncertainty"),
    (lambda: Translation(CHAIN, uncertainty="0.1"), "uncertainty"),  # type: ignore[arg-type]
    (lambda: Translation(CHAIN, uncertainty=np.nan), "uncertainty"),
    (lambda: Translation(CHAIN, tolerance=0), "tolerance"),
    (lambda: Translation(CHAIN, tolerance=0.5), "tolerance"),
    (lambda: Translation(CHAIN, tolerance=np.nan), "tolerance"),
    (lambda: Translation([]), "prior"),
    (lambda: Translation({}), "prior"),
    (lambda: Translation("chain"), "prior"),  # type: ignore[arg-type]
    (lambda: Translation([CHAIN, 1]), "prior 1"),  # type: ignore[list-item]
    (lambda: Translation(CHAIN, "all"), "secrets"),  # type: ignore[arg-type]
    (lambda: Translation(Gaussian(AR1(0.5))), "secrets"),
    (lambda: Translation(CHAIN).bound(np.full((1, 3), 0.1)), "profile"),
    (lambda: Translation(CHAIN).bound(np.ones(4)), "profile"),
    (lambda: Translation(CHAIN).bound(np.ones(2), "group"), "profile"),
    (lambda: Translation(CHAIN).explain_cost([Cost.any(1)] * 2), "profile"),
    (lambda: Translation(CHAIN).explain([1, -1, 0]), "dp"),
    (lambda: Translation(CHAIN).to_pufferfish(np.nextafter(MAX_LOSS, np.inf)), "dp"),
    (lambda: Translation(CHAIN).to_dp("much"), "pufferfish"),
    (lambda: Translation(CHAIN).to_dp(1.0, "most"), "method"),  # type: ignore[arg-type]
    (lambda: Translation(CHAIN).cost_bound(Cost.any(1), "most"), "method"),  # type: ignore[arg-type]
    (lambda: Translation(CHAIN).cost_bound(Cost.any(10**301)), "cost"),
]


@pytest.mark.parametrize(("make", "field"), REFUSED)
def test_what_is_refused(make: Callable[[], Any], field: str) -> None:
    with raises(UnsoundRequest, field=field):
        make()


def test_what_is_just_accepted() -> None:
    Translation(CHAIN, uncertainty=0, tolerance=0.499)
    Translation(CHAIN, uncertainty=0.999, tolerance=1e-300)
    assert MAX_LOSS <= Translation(CHAIN).to_pufferfish(MAX_LOSS, "transport") < np.inf
    assert Translation(CHAIN).to_pufferfish(0) == 0 and Translation(CHAIN).to_dp([]).tolist() == []


@pytest.mark.parametrize(
    ("upper", "leak", "exact"),
    [
        (1.0, 1.0, True),
        (1.0, 1 - EXACT, True),
        (1.0, 1 - 2 * EXACT, False),
        (1.0, 2.0, True),
        (0.0, 0.0, True),
        (np.inf, np.inf, False),
    ],
)
def test_what_counts_as_exact(upper: float, leak: float, exact: bool) -> None:
    answer = TranslatedLoss(1.0, upper, "group", {}, None, Witness(leak, None))
    assert answer.exact == exact and answer.lower == min(upper, leak)
    if upper < np.inf:
        assert answer.gap == upper - min(upper, leak)
