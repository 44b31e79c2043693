"""Plans, every field of them, against the mechanisms and predictions that they are made of."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from takifugu._core.rounding import float_up
from takifugu.costs.losses import Approximate, Concentrated, Pure
from takifugu.errors import InvalidMechanism, UnsoundRequest
from takifugu.mechanisms import (
    COUNT,
    IntegerLaplace,
    candidates,
    plan_histogram,
    plan_top_k,
    planner,
)
from takifugu.mechanisms.mechanism_protocol import HISTOGRAM
from takifugu.mechanisms.planner import Choice, RankingError, name, price
from takifugu.mechanisms.prediction import predicted, resolution, staircase
from takifugu.translation.protocol import LossTranslation
from takifugu.visible import four_digits
from tests.raising import raises

pytestmark = pytest.mark.nightly


class Half(LossTranslation):
    """A Pufferfish loss is twice the loss per entry."""

    def to_pufferfish(self, dp: float, /) -> float:
        """Twice as much."""
        return 2 * dp

    def to_dp(self, pufferfish: float, /) -> float:
        """Half as much."""
        return pufferfish / 2


class Wrong(Half):
    """Loses more than it says."""

    def to_pufferfish(self, dp: float, /) -> float:
        """Three times as much."""
        return 3 * dp


def test_a_histogram_for_a_pure_loss() -> None:
    plan = plan_histogram(3, 2, loss=Pure("0.5"))
    assert plan.mechanism == IntegerLaplace.within("0.5")
    assert (plan.loss, plan.error) == (plan.mechanism.loss, plan.mechanism.error())
    assert (plan.alternatives, plan.groups, plan.pufferfish) == ((), 2, None)
    assert plan.reason == (
        "within ε = 0.5 per entry, integer Laplace noise has a standard deviation of 5.642 on each"
        " of the 3 counts and costs ε = 0.5. The 2 groups have public keys and disjoint entries:"
        " one charge for all."
    )
    assert plan_histogram(["a", "b"], loss=Pure(1), sensitivity=COUNT).mechanism.scale == 1.0
    assert "each of the 2 counts" in plan_histogram(["a", "b"], loss=Pure(1)).reason
    assert "each of the 4 counts" in plan_histogram(np.int64(4), loss=Pure(1)).reason  # type: ignore[arg-type]
    assert plan_histogram(3, loss=Pure(1)).groups == 1


@pytest.mark.parametrize("allowed", [Approximate("0.5", 0.2), Concentrated("0.05")])
def test_a_histogram_with_two_kinds_of_noise_takes_the_narrower(allowed: Any) -> None:
    offered = candidates.additive(allowed, HISTOGRAM)
    assert len(offered) == 2
    best, other = sorted(offered, key=lambda one: one.mechanism.error().deviation)
    plan = plan_histogram(3, loss=allowed)
    assert (plan.mechanism, plan.loss) == (best.mechanism, best.loss)
    [choice] = plan.alternatives
    assert (choice.mechanism, choice.loss) == (other.mechanism, other.loss)
    assert choice.error == other.mechanism.error()
    said = f"The others: integer {'Laplace' if 'laplace' in other.mechanism.kind else 'Gaussian'}"
    assert said in plan.reason
    assert f"noise {choice.error.deviation:.4g}, " in plan.reason


@pytest.mark.parametrize("delta", [Fraction(1, 3), Fraction(2, 3), Fraction(1, 7)])
def test_a_delta_that_no_float_holds_is_never_exceeded(delta: Fraction) -> None:
    """One third and two thirds are rounded to either side by the nearest float."""
    allowed = Approximate("0.5", delta)
    for offered in (
        candidates._gaussian(allowed, HISTOGRAM),
        candidates._exponential(allowed, 2, 1),
    ):
        assert offered is not None and isinstance(offered.loss, Approximate)
        assert delta * Fraction(999, 1000) < offered.loss.delta <= delta
        assert Fraction(49, 100) < offered.loss.epsilon <= Fraction(1, 2)


def test_a_histogram_for_a_pufferfish_loss() -> None:
    plan = plan_histogram(3, translation=Half(), epsilon=1)
    assert plan.mechanism == IntegerLaplace.within("0.5")
    assert isinstance(plan.loss, Pure)
    assert plan.pufferfish == 2 * float_up(plan.loss.epsilon)
    with raises(UnsoundRequest, field="translation"):
        plan_histogram(3, translation=Wrong(), epsilon=1)
    target = plan_histogram(3, translation=Wrong(), within=9)  # no ε that it could exceed
    assert isinstance(target.loss, Pure)
    assert target.pufferfish == 3 * float_up(target.loss.epsilon)


def test_a_histogram_for_an_error() -> None:
    plan = plan_histogram(3, within=9, confidence=0.9, delta=0.2, sensitivity=COUNT)
    meeting = list(candidates.additive_within(9, 0.9, 0.2, COUNT))
    cheapest = sorted(meeting, key=lambda one: one.loss.epsilon)  # type: ignore[union-attr]
    assert [(c.mechanism, c.loss) for c in plan.choices] == [
        (one.mechanism, one.loss) for one in cheapest
    ]
    assert "to keep each count within ±9 with a confidence of 0.9, " in plan.reason
    usual = plan_histogram(3, within=9)
    assert usual.mechanism == next(candidates.additive_within(9, 0.95, None, HISTOGRAM)).mechanism
    assert "confidence of 0.95," in usual.reason


@pytest.mark.parametrize(
    ("options", "field", "reason"),
    [
        ({"loss": Pure(1)}, "loss", "both"),
        ({"epsilon": 1}, "loss", "both"),
        ({"delta": 0.1, "translation": Half()}, "delta", ""),
    ],
)
def test_a_target_stands_alone(options: dict[str, Any], field: str, reason: str) -> None:
    with raises(UnsoundRequest, field=field, reason=reason):
        plan_histogram(3, within=9, **options)
    with raises(UnsoundRequest, field=field, reason=reason):
        plan_top_k(3, 1, confidence=0.9, gap=5, **options)


def test_a_ranking_without_a_reference_is_by_its_gap() -> None:
    allowed = Concentrated("0.05")
    plan = plan_top_k(4, 2, 3, loss=allowed)
    offered = candidates.selections(allowed, 2, HISTOGRAM)
    assert len(offered) == len(plan.choices) == 5
    by_gap = []
    for one in offered:
        shape, scale, deviation = planner.noise_of(one.mechanism)
        error = RankingError(deviation, resolution(4, 2, shape) * scale)
        by_gap.append(Choice(one.mechanism, one.loss, error))
    by_gap.sort(key=lambda choice: choice.error.gap)
    assert list(plan.choices) == by_gap
    assert (plan.groups, plan.pufferfish) == (3, None)
    assert plan.reason.startswith("within ρ = 0.05 per entry, ")
    assert f" resolves leads of {by_gap[0].error.gap:.4g}. The others: " in plan.reason
    assert "costs" not in plan.reason


@pytest.mark.parametrize(
    ("options", "known"),
    [
        ({"gap": 5}, 5 * staircase(4, 2)[None, :]),
        ({"reference": [9, 1, 4, 2]}, np.array([[9.0, 1, 4, 2]])),
        ({"reference": [[9, 1, 4, 2]]}, np.array([[9.0, 1, 4, 2]])),
        (
            {"reference": [[9, 1, 4, 2], [3, 1, 0, 0]]},
            np.array([[9.0, 1, 4, 2], [3, 1, 0, 0]]),
        ),
    ],
)
def test_a_ranking_for_a_reference_is_by_what_is_right(options: Any, known: Any) -> None:
    plan = plan_top_k(4, 2, 2, loss=Pure(1), **options)
    for choice in plan.choices:
        shape, scale, _ = planner.noise_of(choice.mechanism)
        seen = [predicted(row, 2, shape, scale) for row in known]
        assert choice.error.right == pytest.approx(np.mean([one.places for one in seen], axis=0))
        assert choice.error.hits == pytest.approx(np.mean([one.hits for one in seen]))
    rights = [choice.error.mean_right or 0.0 for choice in plan.choices]
    assert rights == sorted(rights, reverse=True)
    assert f"gets {rights[0]:.1%} of the places right" in plan.reason


def test_a_ranking_for_a_target_is_the_cheapest() -> None:
    plan = plan_top_k(4, 2, gap=5, confidence=0.8, delta=0.1, translation=None)
    known = 5 * staircase(4, 2)[None, :]
    meeting = list(candidates.ranked_right(known, 2, 0.8, 0.1, HISTOGRAM))
    assert len(plan.choices) == len(meeting) == 5
    losses = [choice.loss.epsilon for choice in plan.choices]  # type: ignore[union-attr]
    assert losses == sorted(one.loss.epsilon for one in meeting)  # type: ignore[union-attr]
    assert plan.reason.startswith("for places that are right with a probability of 0.8, ")
    assert f" and costs (ε, δ) = ({four_digits(float(losses[0]), 'up')}, 0.1). " in plan.reason
    _, rest = plan.reason.removesuffix(".").split(". The others: ")
    told = [f"{name(one.mechanism)} {price(one.loss)}" for one in plan.alternatives]
    assert rest.split("; ") == told  # what each of them would cost
    with raises(UnsoundRequest, field="reference", reason="missing"):
        plan_top_k(4, 2, confidence=0.8)


def test_as_many_places_as_categories_are_the_most() -> None:
    assert plan_top_k(2, 2, loss=Pure(1)).mechanism.k == 2
    with raises(InvalidMechanism, field="k"):
        plan_top_k(2, 3, loss=Pure(1))


@pytest.mark.parametrize(
    "reference",
    [[[1, 2]] * 3, [[1, 2, 3]], [[[1, 2]]], [1, float("inf")], [[1], [1, 2]], "ab"],
    ids=str,
)
def test_a_reference_has_a_row_for_all_groups_or_for_each(reference: Any) -> None:
    with raises(InvalidMechanism, field="reference"):
        plan_top_k(2, 1, 2, loss=Pure(1), reference=reference)
