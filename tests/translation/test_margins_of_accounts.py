"""How wide margins for rounding are where losses are converted and added up.

As in `test_margins_of_numbers`, a module is given a unit of roundoff so large that margins show.
"""

from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from takifugu._rounding import UNIT
from takifugu.losses import Pure
from takifugu.translation.accounting import approximate, composition, totals
from takifugu.translation.accounting.approximate import zcdp_epsilon
from takifugu.translation.accounting.composition import Release
from takifugu.translation.accounting.totals import extra
from takifugu.translation.bounds import Bound

pytestmark = pytest.mark.nightly

LARGE = 2.0**-20


def units(found: Any, true: Any) -> Any:
    """How many large units a number is above what it would be exactly."""
    return (np.asarray(found) / np.asarray(true) - 1) / LARGE


def counted(number: Any) -> Any:
    return pytest.approx(number, abs=1e-3)


@pytest.mark.parametrize("order", totals.ORDERS)
def test_what_an_order_adds(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the exact number whatever δ is; and by the margin of each of its terms."""
    assert 64 * UNIT <= totals.MARGIN <= 1e-12
    rng = np.random.default_rng(order)
    with mpmath.workdps(40):
        for delta in (10 ** rng.uniform(-300, 0, 60)).tolist():
            logs = -mpmath.log(mpmath.mpf(delta)), -mpmath.log(order)
            true = sum(logs) / (order - 1) + mpmath.log1p(-1 / mpmath.mpf(order))
            assert true <= extra(order, delta)
    monkeypatch.setattr(totals, "MARGIN", LARGE)
    for delta in (1e-12, 0.25):
        logs = -np.log(delta), np.log(order)
        true = (logs[0] - logs[1]) / (order - 1) + np.log1p(-1 / order)
        margin = (extra(order, delta) - true) / LARGE
        assert margin == pytest.approx(1 + sum(logs) / (order - 1), abs=1e-6)


def test_the_share_of_delta_is_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "MARGIN", LARGE)
    found = float(totals.share(1.0, 2.0, 0.125))
    assert units(found, 0.125 * np.expm1(1) / np.expm1(2)) == counted(-1)
    assert totals.share(1e-9, 700.0, 0.125) > 0  # beyond, e^ε is not a float


@pytest.mark.parametrize(("rho", "delta"), [(0.01, 1e-6), (0.5, 1e-3), (2.0, 0.25)])
def test_a_converted_rho(rho: float, delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """16 units of each of its terms, of the logarithm that they share, and of 2."""

    def parts(above: float) -> list[float]:
        grown = np.log1p(above)
        return [rho, above * rho, -np.log(delta) / above, -grown / above, np.log(above) - grown]

    def value(log: float) -> float:
        return sum(parts(np.exp(log)))

    guess = 0.5 * np.log(-np.log(delta) / rho)
    log = minimize_scalar(value, bracket=(guess - 1, guess + 1), tol=1e-10).x
    plain = zcdp_epsilon(rho, delta)
    monkeypatch.setattr(approximate, "UNIT", LARGE)
    margin = (zcdp_epsilon(rho, delta) - plain) / LARGE
    terms = sum(map(abs, parts(float(np.exp(log)))))
    assert margin == pytest.approx(16 * (terms + abs(log) + 2), rel=2e-3)


def line(slope: float) -> Any:
    """A translation of which only the transport is asked, a straight line."""
    return SimpleNamespace(bound=lambda dp, _: Bound(slope * float(np.max(dp))))


@pytest.mark.parametrize("slope", [1.0, 3.0])
def test_the_delta_of_an_approximate_loss(slope: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """κ·(e^E − 1): 8 units for κ, 32 for the product, and 2 for each unit of E."""
    monkeypatch.setattr(approximate, "UNIT", LARGE)
    found = approximate.approximate(line(slope), [0.5, 1.0], [1e-9, 1e-9], method="transport")
    true = 1e-9 / np.expm1(0.5) * np.expm1(slope)
    assert units(found.delta, true) == counted(8 + 32 + 2 * slope)
    assert found.epsilon == slope and found.dp_delta == 1e-9 and found.method == "transport"
    assert np.asarray(found.dp).tolist() == [0.5, 1.0]


def test_a_delta_is_neither_rounded_to_nothing_nor_above_one() -> None:
    tiny = approximate.approximate(line(1.0), 600.0, 1e-200, method="transport")
    assert tiny.delta == pytest.approx(1e-200)
    hardly = approximate.approximate(line(1e-9), 600.0, 1e-200, method="transport")
    assert hardly.delta == approximate.SMALLEST
    for loss in (650.0, 700.0, 700.5, 1e300, np.inf):
        most = approximate.approximate(line(loss), 1.0, 0.5, method="transport")
        assert most.delta == 1.0 and most.epsilon == loss
    nothing = approximate.approximate(line(0.0), 1.0, 0.5, method="transport")
    assert nothing.delta == 0.0 and nothing.epsilon == 0.0


@pytest.mark.parametrize(
    ("epsilon", "exposed"), [(0.1, 3), (2.0, 1)], ids=["all are exposed", "one is"]
)
def test_the_curve_counts_what_it_exposes(epsilon: float, exposed: int) -> None:
    """Of two pairs the one whose best point exposes more counts."""
    translation: Any = SimpleNamespace(
        curve=SimpleNamespace(
            exposed=np.array([1, 3]), leak=np.array([[0.25, 0.0], [0.375, 0.0], [0.01, 0.0]])
        ),
        bound=lambda dp, _: Bound(9.0 * float(dp)),
    )
    found = approximate.approximate(translation, epsilon, 1e-9, method="curve")
    kappa = 1e-9 / np.expm1(epsilon)
    assert found.delta == pytest.approx(kappa * np.expm1(exposed * epsilon), rel=1e-9)
    assert found.method == "curve"
    assert approximate._exposed(translation, 700.0) == pytest.approx(np.expm1(700.0))
    assert approximate._exposed(translation, 702.0) == np.inf
    by_transport = approximate.approximate(translation, epsilon, 1e-9, method="transport")
    assert by_transport.delta == pytest.approx(kappa * np.expm1(9 * epsilon), rel=1e-9)


def recorded(monkeypatch: pytest.MonkeyPatch, deltas: list[float]) -> list[tuple[Any, Any, str]]:
    """What is asked of `approximate`, which answers with these δ one after the other."""
    asked: list[tuple[Any, Any, str]] = []

    def answer(_: Any, epsilon: Any, delta: Any, *, method: str) -> Any:
        asked.append((epsilon, delta, method))
        return SimpleNamespace(delta=deltas[len(asked) - 1])

    monkeypatch.setattr(approximate, "approximate", answer)
    return asked


def test_all_currencies_are_added_before_they_are_translated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(approximate, "UNIT", LARGE)
    asked = recorded(monkeypatch, [2e-5, 1e-5])
    spent, deltas, rhos = [0.5, 0.25, 1.0], [1e-6, 0.0, 0.0], [0.0, 0.125, 0.0]
    found = approximate.mixed(line(1.0), spent, deltas, rhos, delta=1e-5, method="group")
    assert found.delta == 1e-5  # the first that fits, also if it just does
    share = 1e-5
    for epsilon, delta, method in asked:
        converted = zcdp_epsilon(0.125, share)
        assert units(epsilon, [0.5, 0.25 + converted, 1.0]) == counted([2, 2, 2])
        assert units(delta[:2], [1e-6, share]) == counted([2, 2]) and delta[2] == 0
        assert method == "group"
        share *= 0.9 * 1e-5 / 2e-5
    assert len(asked) == 2


def test_a_release_of_epsilon_alone_is_translated_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = recorded(monkeypatch, [0.5])
    approximate.mixed(line(1.0), [0.5, 0.25], 1e-6, 0.0, delta=0.25, method="curve")
    assert asked[0][0].tolist() == [0.5, 0.25] and float(asked[0][1]) == 1e-6
    assert asked[0][2] == "curve" and len(asked) == 1


def theorem_7(losses: list[Fraction], lift: Callable[[float], float], monkey: Any) -> float | None:
    """Of a curve with the points (1 exposed, leak 3/8) and (4 exposed, no leak)."""
    curve = SimpleNamespace(pooled=lambda: np.array([0.375, 0.0]), exposed=np.array([1, 4]))
    translation: Any = SimpleNamespace(has_curve=True, curve=curve)
    monkey.setattr(composition, "up", lift)
    return composition._theorem_7(translation, [Release(Pure(loss)) for loss in losses])


def test_theorem_7_adds_what_each_release_exposes_to_the_largest_leak(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small, large = Fraction(1, 16), Fraction(1, 2)  # 4·ε; ε + 3/8
    only = theorem_7([small] * 3, lambda value: value, monkeypatch)
    assert only is not None and only == 0.75 * (1 + 3 * 2.0**-52) > 0.75
    both = theorem_7([small, large, large, small], lambda value: value, monkeypatch)
    assert both == pytest.approx(0.5 + 1.0 + 0.375, rel=1e-14) and (both or 0) > 1.875
    lifted = theorem_7([small, large, large, small], lambda value: value + 1, monkeypatch)
    assert lifted == pytest.approx(1.875 + 2)
