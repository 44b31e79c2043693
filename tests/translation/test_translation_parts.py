"""How a translation puts its methods together, with a transport and a curve written out."""

from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest

from takifugu._rounding import down, float_down, up
from takifugu.costs import NOTHING, Cost, Distance, Membership
from takifugu.errors import UnsoundRequest
from takifugu.losses import Total
from takifugu.numeric import Floats
from takifugu.priors import AR1, Gaussian, IndependentEntries, MarkovChain, Product, Secrets
from takifugu.priors.random_field import MarkovRandomField
from takifugu.translation.bounds import EXACT, Binding, Bound, TransportBound, Witness
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.translation import (
    ALL,
    LARGEST,
    METHODS,
    ROUNDED,
    TranslatedLoss,
    Translation,
    _least,
    max_size,
    uncertainty_shift,
)
from tests.raising import raises

pytestmark = pytest.mark.nightly

CHAIN = MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]]), length=3)
AT = Binding("0", "1", entry=1)
CURVED = Binding("a", "b", entry=2)


class Written(TransportBound):
    """A loss of ``slope`` times ε, of a profile times the mean; and what it was asked."""

    def __init__(self, slope: float, *, solved: bool = False, listed: bool = True) -> None:
        self.slope, self.solved, self.listed = slope, solved, listed
        self.asked: list[str] = []

    @property
    def size(self) -> int | None:
        """Of the chain above."""
        return 3

    def _bound(self, epsilon: float) -> Bound:
        value = self.slope * epsilon
        parts = np.array([value / 2, value, value / 4]) if self.listed else None
        return Bound(value, AT, parts, np.array([[-np.inf, value]]), self.solved)

    def uniform(self, epsilon: float) -> Bound:
        """A straight line."""
        self.asked.append("uniform")
        return self._bound(epsilon)

    def profile(self, epsilon: Floats) -> Bound:
        """The same of the mean."""
        self.asked.append("profile")
        return self._bound(float(np.mean(epsilon)))

    def largest(self, target: float) -> float:
        """Its inverse."""
        self.asked.append("largest")
        return target / self.slope

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:  # noqa: ARG002
        """Three quarters of the bound."""
        return Witness(0.75 * bound.value, bound.binding)

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:  # noqa: ARG002
        """Half of the bound."""
        return Witness(0.5 * bound.value, bound.binding)


def made(
    slope: float | None = 2.0,
    curve: float | None = 2.5,
    prior: Any = CHAIN,
    *,
    solved: bool = False,
    listed: bool = True,
    waits: bool = False,
    **more: Any,
) -> Any:
    """A translation whose transport and curve are straight lines."""
    translation = Translation(prior, **more)
    transport = None if slope is None else Written(slope, solved=solved, listed=listed)
    translation.__dict__["transport"] = transport
    translation.__dict__["has_curve"] = curve is not None
    translation.__dict__["curve_waits"] = waits
    if curve is not None:
        line = curve
        translation.__dict__["curve"] = SimpleNamespace(
            pufferfish_by_pair=lambda top: np.array([line * top / 2, line * top, line * top / 4]),
            pairs=("2=x / 2=y", "2=a / 2=b", "0=x / 0=y"),
            to_dp=lambda target: np.float64(target / line),
        )
    return translation


@pytest.mark.parametrize(
    ("slope", "curve", "options", "value", "method"),
    [
        (2.0, 2.5, {}, 2.0, "transport"),
        (2.5, 2.0, {}, 2.0, "curve"),
        (2.5, 2.5, {}, 2.5, "transport"),
        (5.0, 4.0, {}, 3.0, "group"),
        (2.5, 2.0, {"solved": True}, 2.5, "transport"),
        (2.5, 2.0, {"waits": True}, 2.5, "transport"),
        (np.inf, 2.0, {"waits": True}, 2.0, "curve"),
        (None, 2.0, {}, 2.0, "curve"),
        (None, None, {}, 3.0, "group"),
        (2.0, None, {}, 2.0, "transport"),
    ],
)
def test_the_best_bound_is_the_least_of_those_that_are_asked(
    slope: float | None, curve: float | None, options: Any, value: float, method: str
) -> None:
    translation = made(slope, curve, **options)
    best = translation.bound(0.5)
    assert best.value == value / 2
    assert best.binding == {"transport": AT, "curve": CURVED, "group": None}[method]
    assert translation.to_pufferfish([0.5, 0, 0.5]).tolist() == [value / 2, 0, value / 2]
    for name, line in (("transport", slope), ("curve", curve), ("group", 3.0)):
        found = np.inf if line is None else line / 2
        assert translation.bound(0.5, name).value == found
        assert translation.to_pufferfish(0.5, name) == found


def test_a_bound_that_is_the_groups_but_for_rounding_says_where_it_binds() -> None:
    group = Bound(3.0)
    near, far = Bound(3 * (1 + ROUNDED), AT), Bound(3 * (1 + 3 * ROUNDED), CURVED)
    name, found = _least({"transport": far, "group": group})
    assert name == "group" and found.value == 3.0 and found.binding is None
    name, found = _least({"curve": far, "transport": near, "group": group})
    assert name == "transport" and found.value == 3.0 and found.binding == AT
    same, least = Bound(2.0, AT), Bound(2.0, CURVED)
    name, found = _least({"transport": same, "curve": least, "group": group})
    assert name == "transport" and found is same


def test_every_method_is_explained() -> None:
    answer = made(2.0, 2.5).explain(0.5)
    assert answer.by_method == {"transport": 1.0, "curve": 1.25, "group": 1.5}
    assert (answer.dp, answer.pufferfish, answer.method) == (0.5, 1.0, "transport")
    assert answer.binding == AT and answer.witness.leak == 0.75 == answer.lower
    assert answer.by_entry.tolist() == [0.5, 1.0, 0.25] and answer.costs is None
    assert answer.gap == 0.25 and not answer.exact
    curve = made(2.5, 2.0).explain(0.5, "curve")
    assert (curve.pufferfish, curve.method, curve.binding) == (1.0, "curve", CURVED)
    none = made(None, 2.0).explain(0.5, "transport")
    assert none.pufferfish == np.inf and none.binding is None and none.by_entry is None
    assert none.by_method == {"transport": None, "curve": 1.0, "group": 1.5}
    assert none.witness.leak == down(0.5) and none.witness.binding == CURVED
    waits = made(2.0, 2.5, waits=True)
    assert waits.explain(0.5).by_method == {"transport": 1.0, "curve": None, "group": 1.5}
    assert waits.explain(0.5, "curve").by_method["curve"] == 1.25
    assert made(np.inf, 2.5, waits=True).explain(0.5).by_method["curve"] == 1.25
    alone = made(None, None).explain(0.5)
    assert alone.witness.leak == 0 and alone.witness.binding is None and alone.method == "group"


def test_a_profile_is_bounded_by_its_own_numbers() -> None:
    translation = made(2.0, 2.5)
    spent = np.array([0.1, 0.5, 0.0])
    assert translation.bound(spent, "transport").value == pytest.approx(0.4)
    assert translation.transport.asked == ["profile"]
    assert translation.bound(spent, "curve").value == pytest.approx(1.25)
    assert translation.bound(spent, "group").value == pytest.approx(0.6)
    assert translation.bound(spent).value == pytest.approx(0.4)
    assert translation.witness(spent).leak == pytest.approx(0.3)
    assert made(None, 2.5).witness(spent).leak == 0
    assert made(None, 2.5).witness(spent + 0.2).leak == down(0.2)
    answer = translation.explain([0.1, 0.5, 0.0])
    assert answer.dp.tolist() == spent.tolist() and answer.pufferfish == pytest.approx(0.4)


@pytest.mark.parametrize("dp", [0.0, np.zeros(3)])
def test_nothing_that_was_released_loses_nothing(dp: Any) -> None:
    translation = made(2.0, 2.5, uncertainty=0.2)
    for method in METHODS:
        assert translation.bound(dp, method).value == 0
    found = translation.bound(dp, "transport")
    assert found.binding == AT and found.by_entry.tolist() == [0, 0, 0]
    assert made(2.0, listed=False).bound(0.0, "transport").by_entry is None
    translation.__dict__["curve"].pufferfish_by_pair = lambda _: np.ones(3)
    assert translation.bound(0.0, "curve").value == 0
    assert translation.explain_cost(NOTHING).pufferfish == 0


def test_uncertainty_is_added_to_the_transport() -> None:
    translation, shift = made(2.0, 2.5, uncertainty=0.2), uncertainty_shift(0.2)
    found = translation.bound(0.5, "transport")
    assert found.value == up(1.0 + shift) and found.binding == AT
    assert found.by_entry.tolist() == up(np.array([0.5, 1.0, 0.25]) + shift).tolist()
    assert found.by_values.tolist() == [[-np.inf, 1.0]]
    assert made(2.0, listed=False, uncertainty=0.2).bound(0.5, "transport").by_entry is None
    plain = made(2.0).bound(0.5, "transport")
    assert plain.value == 1.0
    costed = translation.cost_bound(Cost.any(Fraction(1, 2)), "transport")
    assert costed.value == up(1.0 + shift)
    allowed = translation.to_dp(1.0, "transport")
    assert allowed == pytest.approx((1 - shift) / 2, rel=1e-14) and allowed < (1 - shift) / 2
    assert translation.to_dp(shift, "transport") == translation.to_dp(0.3, "transport") == 0


@pytest.mark.parametrize("r", [0.0, 1e-9, 0.1, 0.5, 0.99])
def test_the_shift_is_a_logarithm_rounded_up(r: float) -> None:
    with mpmath.workdps(40):
        true = mpmath.log1p(r) - mpmath.log1p(-mpmath.mpf(r))
        assert true <= uncertainty_shift(r) <= true * (1 + 1e-14) + (2e-15 if r else 0)


@pytest.mark.parametrize(
    ("slope", "curve", "options", "allowed"),
    [
        (2.0, 2.5, {}, 0.5),
        (2.5, 2.0, {}, 0.5),
        (2.5, 2.0, {"solved": True}, 0.4),
        (2.5, 2.0, {"waits": True}, 0.4),
        (np.inf, 2.0, {"waits": True}, 0.5),
        (None, 2.0, {"waits": True}, 0.5),
        (None, 2.0, {}, 0.5),
        (2.5, None, {}, 0.4),
        (5.0, 4.0, {}, float_down(Fraction(1, 3))),
        (None, None, {}, float_down(Fraction(1, 3))),
    ],
)
def test_the_largest_allowance_of_those_that_are_asked(
    slope: float | None, curve: float | None, options: Any, allowed: float
) -> None:
    translation = made(slope, curve, **options)
    assert translation.to_dp(1.0) == allowed
    assert translation.to_dp([1.0, 0.0]).tolist() == [allowed, 0.0]
    assert translation.to_dp(1.0, "transport") == (0 if slope is None else 1 / slope)
    assert translation.to_dp(1.0, "curve") == (0 if curve is None else 1 / curve)
    assert translation.to_dp(1.0, "group") == float_down(Fraction(1, 3))


def test_unbounded_entries_have_no_group() -> None:
    translation = made(2.0, None, MarkovChain(CHAIN.transition))
    assert translation.bound(0.5, "group").value == np.inf and translation.size is None
    assert translation.to_dp(1.0, "group") == 0 and translation.entries is None
    assert translation.bound(np.ones(7) / 8, "group").value == pytest.approx(0.875)
    assert translation.bound(np.ones(7) / 8, "transport").value == 0.25


def people(*lengths: int | None) -> Product:
    return Product(
        {f"p{k}": MarkovChain(CHAIN.transition, length=n) for k, n in enumerate(lengths)}
    )


def test_a_group_is_one_person_or_everybody_under_uncertainty() -> None:
    spent = np.array([0.5, 0.25, 0.125, 0.125, 0.5])
    assert made(None, None, people(2, 3)).bound(spent, "group").value == pytest.approx(0.75)
    assert made(None, None, people(2, 3), uncertainty=0.1).bound(
        spent, "group"
    ).value == pytest.approx(1.5)
    assert made(None, None, people(2, 3)).bound(0.5, "group").value == 1.5
    assert made(None, None, people(2, 3), uncertainty=0.1).bound(0.5, "group").value == 2.5
    assert made(None, None, people(2, None)).bound(spent, "group").value == np.inf
    assert made(None, None, people(2, 3)).to_dp(1.5, "group") == 0.5
    several = made(None, None, [CHAIN, MarkovChain(CHAIN.transition, length=5)])
    assert several.bound(0.5, "group").value == 2.5 and several.to_dp(2.5, "group") == 0.5


def test_sizes() -> None:
    assert max_size([1, 3, 2]) == 3 and max_size([1, None, 2]) is None
    translation = Translation({"a": CHAIN, 7: MarkovChain(CHAIN.transition, length=5)})  # type: ignore[dict-item]
    assert translation.size == 5 and list(translation.priors) == ["a", "7"]
    assert list(Translation([CHAIN, CHAIN]).priors) == ["prior 0", "prior 1"]
    assert Translation(CHAIN).priors == {"prior": CHAIN}
    assert Translation(CHAIN).entries == (0, 1, 2)


def test_what_a_translation_is() -> None:
    plain = Translation(CHAIN)
    assert plain.identity() == ("Translation", {"prior": CHAIN}, ALL, 0.0)
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
    (lambda: made().bound([[0.1] * 3]), "profile"),
    (lambda: made().bound(np.ones(4)), "profile"),
    (lambda: made().bound(np.ones(2), "group"), "profile"),
    (lambda: made().explain_cost([Cost.any(1)] * 2), "profile"),
    (lambda: made().explain([1, -1, 0]), "dp"),
    (lambda: made().to_pufferfish(np.nextafter(LARGEST, np.inf)), "dp"),
    (lambda: made().to_dp("much"), "pufferfish"),
    (lambda: made().to_dp(1.0, "most"), "method"),
    (lambda: made().cost_bound(Cost.any(1), "most"), "method"),
    (lambda: made().cost_bound(Cost.any(10**301)), "cost"),
]


@pytest.mark.parametrize(("make", "field"), REFUSED)
def test_what_is_refused(make: Callable[[], Any], field: str) -> None:
    with raises(UnsoundRequest, field=field):
        make()


def test_what_is_just_accepted() -> None:
    Translation(CHAIN, uncertainty=0, tolerance=0.499)
    Translation(CHAIN, uncertainty=0.999, tolerance=1e-300)
    assert made().to_pufferfish(LARGEST, "transport") == 2 * LARGEST
    assert made().to_pufferfish(0) == 0 and made().to_dp([]).tolist() == []


def test_numbers_are_computed_once() -> None:
    translation = made(2.0)
    for _ in range(3):
        assert translation.to_pufferfish(0.5) == 1 and translation.to_dp(1.0) == 0.5
        translation.bound(0.5)
        translation.total_to_pufferfish(Total(epsilon=Fraction(1, 2)), Fraction(0))
        translation.cost_bound(Cost.any(Fraction(1, 2)))
    assert translation.transport.asked.count("largest") == 1
    assert translation.transport.asked.count("uniform") == 2  # ε, and the cost of ε


def test_costs_by_every_method() -> None:
    half = Cost.any(Fraction(1, 2))
    assert made(2.0).cost_to_pufferfish() == made(2.0).cost_to_pufferfish(NOTHING) == 0
    assert made(2.0).cost_to_pufferfish(half, NOTHING, half) == 1.0
    assert made(5.0, 2.0).cost_bound(half).value == 1.5  # a curve knows no values
    assert made(np.inf, 2.0).cost_bound(half).value == 1.0
    assert made(None, 2.0).cost_bound(half).value == 1.0
    assert made(5.0, 2.0).cost_bound(half, "curve").value == 1.0
    assert made(5.0, 2.0).cost_bound(half, "group").value == 1.5
    assert made(5.0, 2.0).cost_bound(half, "transport").value == 2.5
    assert made(None, 2.0).cost_bound(half, "transport").value == np.inf
    answer = made(2.0, 2.5).explain_cost(half)
    assert answer.by_method == {"transport": 1.0, "curve": None, "group": 1.5}
    assert (answer.dp, answer.pufferfish, answer.method) == (0.5, 1.0, "transport")
    assert answer.binding == AT and answer.witness.leak == 0.5
    assert answer.by_entry is not None and answer.by_entry.tolist() == [0.5, 1.0, 0.25]
    assert answer.costs == EntryCosts((half,))
    chosen = made(2.0, 2.5).explain_cost(half, "group")
    assert (chosen.pufferfish, chosen.method, chosen.binding) == (1.5, "group", None)
    none = made(None, 2.5).explain_cost([half, NOTHING, half], "transport")
    assert none.pufferfish == np.inf and none.witness.leak == 0
    assert none.by_method == {"transport": None, "curve": 1.25, "group": pytest.approx(1.0)}
    with raises(UnsoundRequest, reason="unknown label"):
        made(2.0).cost_bound(Cost.of({Membership(frozenset({"z"})): 1}))


def test_how_much_more_of_a_cost_fits() -> None:
    one, half = Cost.any(1), Cost.any(Fraction(1, 2))
    translation = made(2.0, None)
    assert translation.to_cost(one, 3.0) == 1.5 and translation.to_cost(half, 3.0) == 3
    assert translation.to_cost(one, 3.0, spent=[half, NOTHING]) == 1
    assert translation.to_cost(one, 3.0, spent=[half], beside=[one]) == 1
    assert translation.to_cost(one, 3.0, beside=[Cost.any(2)]) == 0
    assert translation.to_cost(one, 0.9, spent=[half]) == 0
    assert translation.to_cost(NOTHING, 3.0) == 0
    count = Cost.of({Membership(frozenset({0})): 2})
    found = translation.to_cost(count, 3.0, spent=[half])
    assert 1 - 1e-6 <= 2 * found <= 1
    found = made(2.0, None, uncertainty=0.1).to_cost(count, 3.0)
    assert 2 * found == pytest.approx((3 - uncertainty_shift(0.1)) / 2, rel=2e-6)


def test_how_much_of_a_cost_fits_into_numbers() -> None:
    numbers = Translation(Gaussian(AR1(0.0), 4), Secrets(within=1))
    mean = Cost.of({Distance(0, 2): 4})  # 2 for a change by 1
    assert float(numbers.to_cost(mean, 3.0)) == pytest.approx(1.5, rel=1e-8)
    found = numbers.to_cost(mean, 3.0, spent=[Cost.any(1)], beside=[Cost.any(2)])
    assert float(found) == pytest.approx(1.0, rel=1e-8)
    assert numbers.cost_to_pufferfish(mean * found + Cost.any(1)) <= 3.0
    unbounded = Translation(Gaussian(AR1(0.5)), Secrets(within=1))
    assert unbounded.to_cost(mean + Cost.any(1), 3.0) == 0
    assert float(unbounded.to_cost(mean, 3.0)) == pytest.approx(0.5, rel=1e-8)


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


def test_independent_entries_and_several_priors_have_their_own_transport() -> None:
    one = IndependentEntries({"a": {"x": 0.5, "y": 0.5}})
    assert Translation(one).transport is not None and Translation(one).entries == ("a",)
    several = Translation([CHAIN, MarkovChain(np.full((2, 2), 0.5), length=3)])
    alone = Translation(CHAIN).bound(0.5, "transport")
    assert several.bound(0.5, "transport").value == pytest.approx(alone.value)
    assert several.curve.to_pufferfish(0.5) >= Translation(CHAIN).curve.to_pufferfish(0.5)
    for epsilon in (0.05, 4.0):  # all entries are exposed, or some are not
        lifted = Translation(CHAIN, uncertainty=0.1).curve.to_pufferfish(epsilon)
        plain = Translation(CHAIN).curve.to_pufferfish(epsilon)
        more = 0.0 if epsilon < 1 else uncertainty_shift(0.1)
        assert lifted == pytest.approx(plain + more)
