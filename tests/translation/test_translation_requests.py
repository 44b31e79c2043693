"""What a translation asks of its parts: every argument, at the edges and where nothing is found."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from takifugu._rounding import down, float_down, float_up
from takifugu.costs import NOTHING, Cost, Distance, Membership
from takifugu.errors import UnsoundRequest
from takifugu.losses import Total
from takifugu.priors import AR1, Gaussian, MarkovChain, Secrets
from takifugu.translation import translation as translation_module
from takifugu.translation.accounting.largest_epsilon import UNUSED
from takifugu.translation.bounds import Bound, Witness
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.translation import (
    LARGEST,
    METHODS,
    Translation,
    _least,
    uncertainty_shift,
)
from tests.raising import raises
from tests.translation.test_translation_parts import AT, CHAIN, Written, made, people

pytestmark = pytest.mark.nightly

HALF, ONE = Cost.any(Fraction(1, 2)), Cost.any(1)
COUNT = Cost.of({Membership(frozenset({0})): 2})
NUMBERS = Gaussian(AR1(0.0), 3)
NEAR = Secrets(within=1)
LARGE = 2.0**-20  # a unit of roundoff so large that margins show


class Heard:
    """Stands for the search of a factor: keeps what it was given, and finds ``answer``."""

    def __init__(self, answer: float) -> None:
        self.answer = answer
        self.loss: Callable[[float], float] = lambda _: np.nan
        self.target = np.nan
        self.given: dict[str, Any] = {}
        self.calls = 0

    def __call__(self, loss: Callable[[float], float], target: float, **given: Any) -> float:
        """Find nothing but the answer."""
        self.loss, self.target, self.given = loss, target, given
        self.calls += 1
        return self.answer


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    """The search of a factor, which is not made."""
    search = Heard(0.375)
    monkeypatch.setattr(translation_module, "largest_within", search)
    return search


def test_what_is_searched_for_a_cost(heard: Heard) -> None:
    translation = made(2.0, None)
    beside = Cost.any(Fraction(3, 4))
    assert translation.to_cost(COUNT, 3.0, spent=[HALF], beside=[beside]) == Fraction(3, 8)
    assert heard.target == 3.0 and set(heard.given) == {"tolerance", "first", "most", "nearby"}
    assert heard.given["tolerance"] == UNUSED
    assert heard.given["first"] == (3.0 - 1.5) / (2 * 2)  # half of what is left
    assert heard.given["most"] == 64 * 3.0 / 2
    assert heard.loss(0.25) == 2.0  # (1/2 + 2/4)·2
    assert heard.loss(0.01) == 1.5  # what lies beside
    third = Cost.of({Membership(frozenset({0})): Fraction(1, 3)})
    assert translation.to_cost(third, 3.0) == Fraction(3, 8)
    assert heard.given["first"] == 3.0 / (2 * float_up(Fraction(1, 3)))
    assert heard.given["most"] == 64 * 3.0 / float_down(Fraction(1, 3))


def test_a_search_where_nothing_is_left_begins_where_it_likes(heard: Heard) -> None:
    """What lies beside may be all that is allowed: entries that are read may lose as much."""
    translation = made(2.0, None)
    assert translation.to_cost(COUNT, 3.0, beside=[Cost.any(Fraction(3, 2))]) == Fraction(3, 8)
    assert heard.given["first"] is None and heard.given["most"] == 96
    assert translation.to_cost(COUNT, 3.0, beside=[Cost.any(Fraction(25, 16))]) == 0
    assert heard.calls == 1


def test_only_costs_that_are_scalars_are_not_searched(heard: Heard) -> None:
    translation = made(2.0, None)
    quarter = COUNT * Fraction(1, 8)
    assert translation.to_cost(ONE, 3.0, spent=[HALF, NOTHING], beside=[ONE]) == 1
    assert heard.calls == 0
    for spent, beside in (([quarter], []), ([HALF, quarter], [ONE]), ([HALF], [ONE, quarter])):
        assert translation.to_cost(ONE, 3.0, spent=spent, beside=beside) == Fraction(3, 8)
    assert heard.calls == 3


def test_where_the_search_finds_nothing_scalars_count(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Value by value costs lose half as much here as the scalars that cover them."""
    heard.answer = 0.0
    monkeypatch.setattr(
        Written, "valued", lambda self, costs: self._bound(float(costs.scalars()) / 2)
    )
    translation = made(2.0, None)
    assert translation.to_cost(COUNT, 3.0, spent=[HALF]) == Fraction(1, 2)
    assert translation.to_cost(COUNT, 3.0) == Fraction(3, 4)
    assert translation.to_cost(COUNT, 3.0, spent=[HALF], beside=[Cost.any(2)]) == 0
    assert heard.calls == 3


def test_a_quick_estimate_is_that_of_the_transport(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def nearby(_: Written, bound: Bound) -> Any:
        asked.append(bound.value)
        return (lambda costs: 7 * costs.scalars()) if bound.value < 3 else None

    monkeypatch.setattr(Written, "nearby", nearby)
    made(2.0, None).to_cost(COUNT, 3.0, spent=[HALF])
    estimate = heard.given["nearby"](0.25)
    assert asked == [2.0] and estimate(0.5) == 7 * 1.5
    assert heard.given["nearby"](0.75) is None and asked == [2.0, 4.0]
    for without in (made(2.0, None, uncertainty=0.1), made(None, 2.0)):
        without.to_cost(COUNT, 3.0, spent=[HALF])
        assert heard.given["nearby"](0.25) is None
    assert len(asked) == 2


def test_what_is_searched_for_a_cost_of_numbers(heard: Heard) -> None:
    far = Cost.of({Distance(0, 2): 4})
    translation = made(2.0, None, NUMBERS, secrets=NEAR)
    assert translation.to_cost(far, 3.0, spent=[HALF], beside=[ONE]) == Fraction(3, 8)
    assert heard.given["first"] == (3.0 - 1.0) / 8 * (1 - 1e-10)
    assert heard.given["most"] == 2 * 3.0 / 8 and heard.given["tolerance"] == 1e-9
    assert heard.target == 3.0 and heard.loss(0.25) == 3.0
    tiny = made(1e-300, None, NUMBERS, secrets=NEAR)
    assert tiny.to_cost(far, 1e3) == Fraction(3, 8) and heard.given["most"] == LARGEST
    heard.calls = 0
    for slope in (0.0, np.inf):
        alone = made(slope, None, Gaussian(AR1(0.5)), secrets=NEAR)
        assert alone.to_cost(far, 3.0) == 0
    assert heard.calls == 0


def test_several_priors_of_which_one_is_of_numbers() -> None:
    assert made(2.0, None, [NUMBERS, NUMBERS], secrets=NEAR)._numbers and not made()._numbers


def test_a_target_of_nothing_is_not_asked_about() -> None:
    translation = made(2.0, 2.5)
    for method in METHODS:
        assert translation.to_dp(0.0, method) == 0
    assert translation.transport.asked == []


def test_what_uncertainty_takes_from_a_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its logarithm, and 32 units of the target and one more."""
    monkeypatch.setattr(translation_module, "UNIT", LARGE)
    shift = uncertainty_shift(0.2)
    for target in (1.0, 3.0):
        allowed = made(2.0, None, uncertainty=0.2).to_dp(target, "transport")
        assert allowed == pytest.approx((target - shift - (target + 1) * 32 * LARGE) / 2, abs=1e-12)


@pytest.mark.parametrize("dp", [0.0, np.zeros(3)])
def test_nothing_released_loses_nothing_also_where_a_method_has_no_bound(dp: Any) -> None:
    unbounded = made(np.inf, None, MarkovChain(CHAIN.transition))
    assert unbounded.bound(dp, "group").value == 0 and unbounded.explain(dp).pufferfish == 0
    assert made(2.0, None, people(2, None)).bound(dp, "group").value == 0
    translation = made(2.0, 2.5, uncertainty=0.2)
    found = translation.cost_bound(NOTHING, "transport")
    assert found.value == 0 and found.binding == AT
    answer = translation.explain_cost([NOTHING] * 3)
    assert answer.by_method == {"transport": 0, "curve": None, "group": 0}
    assert translation.transport is not None and answer.binding == AT


REFUSED: list[tuple[Callable[[], Any], dict[str, object]]] = [
    (lambda: made().to_pufferfish([0.5, np.inf]), {"field": "dp", "needed": None}),
    (lambda: made().to_pufferfish(np.nan), {"field": "dp", "needed": None}),
    (lambda: made().to_dp(2e300), {"field": "pufferfish", "needed": LARGEST}),
    (lambda: made().to_dp([1.0, 2e300]), {"field": "pufferfish", "needed": LARGEST}),
    (lambda: made().to_dp([[1.0], [1.0, 2.0]]), {"field": "pufferfish"}),
    (lambda: made().to_dp(10**400), {"field": "pufferfish"}),
    (lambda: made().to_cost(ONE, -1.0), {"field": "pufferfish"}),
    (lambda: made().bound(np.full((3, 3), 0.1)), {"field": "profile", "given": (3, 3)}),
    (lambda: made().bound(np.full((3, 1), 0.1)), {"field": "profile", "given": (3, 1)}),
    (lambda: made().bound(np.ones(4)), {"field": "profile", "given": 4, "needed": 3}),
    (lambda: made().explain([0.5]), {"field": "profile", "given": 1, "needed": 3}),
    (lambda: made().bound(0.5, "most"), {"field": "method", "given": "most", "needed": METHODS}),
    (lambda: Translation(CHAIN, uncertainty=1.5), {"field": "uncertainty", "given": 1.5}),
    (lambda: Translation(CHAIN, tolerance=-1.0), {"field": "tolerance", "given": -1.0}),
]


@pytest.mark.parametrize(("make", "fields"), REFUSED)
def test_what_is_refused_and_what_is_said_of_it(
    make: Callable[[], Any], fields: dict[str, object]
) -> None:
    with raises(UnsoundRequest, **fields):
        make()


def test_a_profile_of_an_unbounded_prior_may_end_anywhere() -> None:
    unbounded = made(2.0, 2.5, MarkovChain(CHAIN.transition))
    for count in (1, 2, 7):
        assert unbounded.bound(np.full(count, 0.25), "transport").value == 0.5
        assert unbounded.bound(np.full(count, 0.25), "curve").value == 0.625


def test_the_curve_is_asked_for_with_all_that_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def curve_of(prior: Any, secrets: Any, *, max_exposed: int | None = None) -> Any:
        asked.append((prior, secrets, max_exposed))
        return ("curve", prior.length)

    monkeypatch.setattr(translation_module, "influence_curve", curve_of)
    monkeypatch.setattr(translation_module, "union", lambda curves: ("union", dict(curves)))
    monkeypatch.setattr(
        translation_module, "uncertain", lambda curve, *, relative: (curve, relative)
    )
    longer, first = MarkovChain(CHAIN.transition, length=5), Secrets(entries=(0,))
    assert Translation(CHAIN, first, max_exposed=2).curve == ("curve", 3)
    both = Translation({"a": CHAIN, "b": longer}, first, 0.25, max_exposed=1)
    assert both.curve == (("union", {"a": ("curve", 3), "b": ("curve", 5)}), 0.25)
    assert asked == [(CHAIN, first, 2), (CHAIN, first, 1), (longer, first, 1)]


def test_the_transport_is_asked_for_with_all_that_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("transport_bound", "transport_bound_of_any"):
        monkeypatch.setattr(
            translation_module,
            name,
            lambda *given, tolerance=None, name=name: (name, given, tolerance),
        )
    first = Secrets(entries=(0,))
    one: Any = Translation({"a": CHAIN}, first, tolerance=0.125).transport
    assert one == ("transport_bound", (CHAIN, first), 0.125)
    two: Any = Translation([CHAIN, CHAIN], first, tolerance=0.25).transport
    priors = {"prior 0": CHAIN, "prior 1": CHAIN}
    assert two == ("transport_bound_of_any", (priors, first), 0.25)


def test_whether_there_is_a_curve_of_all_priors() -> None:
    known = MarkovChain(CHAIN.transition, length=3, known="any")
    assert Translation([CHAIN, CHAIN]).has_curve
    assert not Translation([CHAIN, known]).has_curve and not Translation(known).has_curve


def test_the_witness_is_of_what_was_spent_and_bounded() -> None:
    asked: list[tuple[Any, float]] = []

    class Watched(Written):
        """Keeps what its witness is asked for."""

        def witness(self, epsilon: Any, bound: Bound) -> Witness:
            """Of the bound."""
            asked.append((epsilon, bound.value))
            return super().witness(epsilon, bound)

        def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
            """Of the bound."""
            asked.append((costs, bound.value))
            return super().valued_witness(costs, bound)

    translation = made(2.0, 2.5)
    translation.__dict__["transport"] = Watched(2.0)
    assert translation.explain(0.25).witness.leak == 0.375
    assert translation.witness(0.75).leak == 1.125
    assert translation.explain_cost(COUNT, "group").witness.leak == 2.0
    assert asked == [(0.25, 0.5), (0.75, 1.5), (EntryCosts((COUNT,)), 4.0)]
    curve = made(None, 2.5)
    assert curve.witness(0.75).leak == down(0.75) and curve.witness(0.0).leak == 0


def test_what_is_remembered_is_forgotten_when_it_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each memory holds three numbers at most, and all of them until the fourth comes."""
    monkeypatch.setattr(translation_module, "KEPT", 3)
    monkeypatch.setattr(translation_module, "KEPT_BOUNDS", 3)
    translation = made(2.0, None)
    sizes: dict[str, list[int]] = {}
    for k in range(1, 8):
        translation.to_pufferfish(k / 8, "group")
        translation.to_dp(k / 8, "group")
        translation.cost_bound(Cost.any(Fraction(k, 8)), "group")
        for name in ("_values", "_allowances", "_bounds", "_cost_bounds"):
            sizes.setdefault(name, []).append(len(getattr(translation, name)))
    for k in range(1, 8):
        translation.total_to_pufferfish(Total(epsilon=Fraction(k, 8)), Fraction(0))
        sizes.setdefault("_totals", []).append(len(translation._totals))
    assert sizes == {name: [1, 2, 3, 1, 2, 3, 1] for name in sizes}


def test_a_bound_that_differs_from_the_groups_by_more_than_rounding_is_another() -> None:
    for value, name in ((3.0001, "group"), (3 * (1 + 1e-11), "group"), (3 + 1e-15, "transport")):
        found, bound = _least({"transport": Bound(value, AT), "group": Bound(3.0)})
        assert found == name and bound.value == 3.0
