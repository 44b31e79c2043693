"""A table at its points, between them and at its ends; and which points it gets."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.costs.cost import Cost, Membership
from takifugu.costs.losses import Total
from takifugu.errors import InvalidFile, UnsoundRequest
from takifugu.priors import MarkovChain
from takifugu.translation import TabledTranslation, Translation, TranslationTable, tabulate
from takifugu.translation.accounting.tables import tabulate_at
from takifugu.translation.bounds import Bound
from tests.raising import raises

TABLE = TranslationTable("that", np.array([1.0, 2.0, 4.0]), np.array([1.5, 3.0, 9.0]))
CHAIN = MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]]), length=3)


class Straight:
    """A translation whose methods are functions of ε."""

    fingerprint = "straight"
    uncertainty = 0.0

    def __init__(
        self,
        transport: Callable[[float], float] | None,
        curve: Callable[[float], float],
        group: Callable[[float], float],
        *,
        waits: bool = False,
    ) -> None:
        self.transport, self.curve_waits = transport, waits
        self.methods = {"transport": transport, "curve": curve, "group": group}
        self.asked: list[tuple[str, float]] = []

    def curve_may_help(self, loss: float) -> bool:
        """Whenever it does not wait."""
        return not self.curve_waits or not loss < np.inf

    def bound(self, epsilon: float, method: str = "best") -> Bound:
        """The loss by one method, or the least."""
        self.asked.append((method, epsilon))
        chosen = [f for name, f in self.methods.items() if f and method in ("best", name)]
        return Bound(min((f(epsilon) for f in chosen), default=np.inf))

    def to_dp(self, target: float, method: str = "best") -> float:
        """The largest power of 2 that fits."""
        fits = [2.0**-k for k in range(-4, 40) if self.bound(2.0**-k, method).value <= target]
        return max(fits, default=0.0)


def straight(*slopes: float | None, **more: Any) -> Any:
    lines = [None if a is None else (lambda epsilon, a=a: a * epsilon) for a in slopes]
    return Straight(*lines, **more)  # type: ignore[arg-type]


def test_a_loss_is_that_of_the_next_point() -> None:
    for dp, loss in ((0, 0), (1e-9, 1.5), (1, 1.5), (1.0001, 3), (2, 3), (2.1, 9), (4, 9)):
        assert TABLE.to_pufferfish(dp) == loss and TABLE.to_pufferfish(float(dp)) == loss
    assert TABLE.to_pufferfish([0.0, 1.0, 3.0]).tolist() == [0, 1.5, 9]  # type: ignore[union-attr]
    for wrong in (4.0001, -1.0, np.nan, np.inf):
        with raises(UnsoundRequest, field="table", needed=4.0):
            TABLE.to_pufferfish(wrong)


def test_an_allowance_is_the_last_point_that_fits() -> None:
    for target, dp in ((0, 0), (1.5, 1), (2.9, 1), (3, 2), (8.9, 2), (9, 4), (1e300, 4)):
        assert TABLE.to_dp(target) == dp and TABLE.to_dp(float(target)) == dp
    assert TABLE.to_dp([0.0, 3.0]).tolist() == [0, 2]  # type: ignore[union-attr]
    for wrong in (1.4999, -1.0, np.nan, np.inf):
        with raises(UnsoundRequest, field="table", needed=1.5):
            TABLE.to_dp(wrong)
    flat = TranslationTable("that", np.array([1.0, 2.0, 3.0]), np.array([3.0, 3.0, 3.0]))
    assert flat.to_dp(3.0) == 3 and flat.to_pufferfish(0.5) == 3
    unbounded = TranslationTable("that", np.array([1.0, 2.0]), np.array([3.0, np.inf]))
    assert unbounded.to_dp(1e300) == 1 and unbounded.to_pufferfish(2.0) == np.inf
    with raises(UnsoundRequest, field="table", needed=np.inf):
        TranslationTable("that", np.array([1.0]), np.array([np.inf])).to_dp(7.0)


@pytest.mark.parametrize(
    ("grid", "losses", "field"),
    [
        ([], [], "epsilon"),
        ([[1.0]], [[1.0]], "epsilon"),
        ([1.0, 2.0], [3.0], "epsilon"),
        ([0.0, 1.0], [1.0, 2.0], "epsilon"),
        ([1.0, 1.0], [1.0, 2.0], "epsilon"),
        ([2.0, 1.0], [2.0, 2.0], "epsilon"),
        ([1.0, np.nan], [2.0, 2.0], "epsilon"),
        ([1.0], [0.999], "loss"),
        ([1.0, 2.0], [1.0, np.nan], "loss"),
        ([1.0, 2.0], [1.0, 1.5], "loss"),
        ([1.0, 2.0], [3.0, 2.9], "loss"),
    ],
)
def test_what_is_no_table(grid: Any, losses: Any, field: str) -> None:
    with raises(UnsoundRequest, field=field):
        TranslationTable("that", np.array(grid), np.array(losses))


def test_a_table_comes_back_with_its_infinite_loss(tmp_path: Path) -> None:
    translation = Translation(CHAIN)
    grid, losses = np.array([1.0, 2.0]), np.array([2.0, np.inf])
    table = TranslationTable(translation.fingerprint, grid, losses)
    table.save(tmp_path / "table.json")
    again = TranslationTable.load(tmp_path / "table.json", translation)
    assert again.loss.tolist() == [2.0, np.inf] and again.epsilon.tolist() == [1.0, 2.0]
    assert again.fingerprint == table.fingerprint and again.about == table.about
    with pytest.raises(InvalidFile):
        TranslationTable.load(tmp_path / "table.json", Translation(CHAIN, uncertainty=0.1))
    large = json.loads((tmp_path / "table.json").read_text()) | {"epsilon": [1, 10**400]}
    for other in ([1], large):  # the second has a number that is no float
        (tmp_path / "other.json").write_text(json.dumps(other))
        with pytest.raises(InvalidFile):
            TranslationTable.load(tmp_path / "other.json", translation)


def test_where_the_loss_rises_faster_there_are_more_points() -> None:
    cubic: Any = Straight(lambda e: max(e, e**3), lambda e: 99 * e, lambda e: 99 * e)
    table = tabulate(cubic, losses=(0.5, 30.0), share=0.1)
    assert (table.loss[1:] / table.loss[:-1]).max() <= 1.1 * (1 + 1e-8)
    jump: Any = Straight(lambda e: e if e < 1 else 20 * e, lambda e: 99 * e, lambda e: 99 * e)
    table = tabulate(jump, losses=(0.5, 30.0), share=0.1)
    place = int(np.argmax(table.loss[1:] / table.loss[:-1]))
    assert table.epsilon[place] < 1 <= table.epsilon[place + 1]
    assert table.epsilon[place + 1] / table.epsilon[place] < 1.1 ** (1 / 16)
    assert (np.diff(table.epsilon) > 0).all()


def test_a_table_ends_where_the_bound_does() -> None:
    def ends(epsilon: float) -> float:
        return epsilon if epsilon <= 2 else np.inf

    finite: Any = Straight(ends, lambda _: np.inf, lambda _: np.inf)
    table = tabulate(finite, losses=(0.5, 10.0), share=0.5)
    assert table.epsilon[-1] <= 2 < 1.6 * table.epsilon[-1] and np.isfinite(table.loss).all()
    assert len(table.epsilon) == len(table.loss)
    with raises(UnsoundRequest, field="losses", reason="allowance"):
        tabulate(straight(None, np.inf, np.inf), losses=(0.5, 10.0))
    odd: Any = Straight(None, lambda e: e, lambda e: e)
    odd.to_dp = lambda *_: 0.25
    odd.bound = lambda *_: Bound(np.inf)
    with raises(UnsoundRequest, field="losses", reason="infinite"):
        tabulate(odd, losses=(0.5, 10.0))


@pytest.mark.parametrize("losses", [(0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (1.0, np.inf), (-1, 1)])
def test_losses_that_are_no_range_are_refused(losses: tuple[float, float]) -> None:
    with raises(UnsoundRequest, field="losses", given=losses):
        tabulate(straight(2.0, 3.0, 4.0), losses=losses)


@pytest.mark.parametrize("share", [0.0009, 1.001, np.nan, -1])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with raises(UnsoundRequest, field="share"):
        tabulate(straight(2.0, 3.0, 4.0), share=share)


def test_a_larger_epsilon_bounds_a_smaller_one() -> None:
    falls: Any = Straight(
        lambda e: {1.0: 5.0, 2.0: 4.0, 3.0: 6.0}[e], lambda e: 99 * e, lambda e: 99 * e
    )
    table = tabulate_at(falls, [1.0, 2.0, 3.0])
    assert table.loss.tolist() == [4, 4, 6] and table.epsilon.tolist() == [1, 2, 3]


def test_a_table_with_its_translation_behind_it() -> None:
    translation: Any = straight(1.0, 1.25, 1.5)
    translation.to_pufferfish = lambda dp: np.float64(100 * dp)
    translation.to_dp = lambda target: np.float64(target / 100)
    translation.total_to_pufferfish = lambda *_: 77.0
    translation.cost_to_pufferfish = lambda *_: 55.0
    translation.to_cost = lambda *_, **__: Fraction(33)
    translation.every_pair = True
    both = TabledTranslation(translation, TABLE)
    assert both.least == 1.5 and both.computed is translation and both.every_pair
    assert both.fingerprint == TABLE.fingerprint
    assert [both.to_pufferfish(dp) for dp in (0.5, 4.0, 5.0)] == [1.5, 9.0, 500.0]
    assert [both.to_dp(t) for t in (0.0, 1.4, 1.5, 3.0, 99.0)] == [0, 0, 1, 2, 4]
    deep = TabledTranslation(translation, TABLE, least=0.5)
    assert deep.least == 0.5
    assert [deep.to_dp(t) for t in (0.0, 0.4, 0.5, 1.4, 1.5)] == pytest.approx(
        [0, 0, 0.005, 0.014, 1]
    )
    assert TabledTranslation(translation, TABLE, least=0.0).to_dp(0.1) == 0.001
    with pytest.raises(UnsoundRequest):
        both.to_dp(-1.0)
    zero = Fraction(0)
    assert both.total_to_pufferfish(Total(epsilon=Fraction(2)), zero) == 3
    assert both.total_to_pufferfish(Total(epsilon=Fraction(5)), zero) == 77
    one, count = Cost.any(1), Cost.of({Membership(frozenset({"a"})): 1})
    assert both.cost_to_pufferfish(one, Cost.any(2)) == 3 and both.cost_to_pufferfish() == 0
    assert both.cost_to_pufferfish(one, count) == 55
    assert both.to_cost(one, 3.0) == 2 and both.to_cost(one, 3.0, spent=[one]) == 1
    assert both.to_cost(one, 3.0, beside=[Cost.any(3)]) == 0
    assert both.to_cost(count, 3.0) == both.to_cost(one, 3.0, spent=[count]) == 33
    assert both.to_cost(one, 3.0, beside=[count]) == 33
