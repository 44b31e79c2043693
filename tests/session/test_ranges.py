"""Priors over ranges of a number: bound by their cuts, and sums are charged by range."""

from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.binding.protected_values import cost_by_range
from takifugu.costs.cost import ANY, Column, Cost, Matrix
from takifugu.declarations import Amount, Category
from takifugu.errors import UnsoundRequest
from takifugu.priors import BayesianNetwork, IndependentEntries, MarkovChain
from tests.raising import raises
from tests.session.tables import opened_table
from tests.session.world import said

KWH = Amount("kwh", Fraction(0), Fraction(2), Fraction(1, 2), "refuse")
NUMBERS = [0.0, 0.5, 1.0, 1.5, 2.0]
NAMES = ("[0, 0.5)", "[0.5, 1.5)", "[1.5, 2]")
INSIDE = ([0], [1, 2], [3, 4])  # places of the numbers of each range
P = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]])
START = np.array([0.3, 0.4, 0.3])
LENGTH = 3
CHAIN = MarkovChain(P, states=NAMES, start=START, length=LENGTH)
ROWS = [
    (who, step, NUMBERS[(2 * k + 3 * step) % 5]) for k, who in enumerate("ab") for step in (0, 1, 2)
]
TABLE: dict[str, Any] = {
    "protected": (KWH,), "rows": ROWS, "header": ("person", "step", "kwh"), "public": ()
}  # fmt: skip


def leak(scale: float, laws: list[list[float]]) -> float:
    """What a noisy sum of one person tells of a range, if numbers within have these laws."""
    outputs = np.arange(-60, 73)
    likelihood: dict[tuple[int, int], Any] = {}
    weight: dict[tuple[int, int], float] = {}
    for ranges in product(range(3), repeat=LENGTH):
        p = START[ranges[0]] * np.prod([P[a, b] for a, b in pairwise(ranges)])
        for inner in product(*(range(len(INSIDE[r])) for r in ranges)):
            q = p * np.prod([laws[r][k] for r, k in zip(ranges, inner, strict=True)])
            total = sum(INSIDE[r][k] for r, k in zip(ranges, inner, strict=True))
            for place, r in enumerate(ranges):
                seen = q * np.exp(-np.abs(outputs - total) / scale)
                likelihood[place, r] = likelihood.get((place, r), 0) + seen
                weight[place, r] = weight.get((place, r), 0) + q
    given = {key: value / weight[key] for key, value in likelihood.items()}
    return max(
        float(np.max(np.log(given[i, u] / given[i, v])))
        for i in range(LENGTH)
        for u, v in product(range(3), repeat=2)
    )


def test_a_sum_costs_how_far_ranges_can_be_apart() -> None:
    cost = cost_by_range(NAMES, KWH)
    assert cost is not None
    half, most = Fraction(1, 2), Fraction(1)
    assert [[cost.between(u, v) for v in NAMES] for u in NAMES] == [
        [0, half, most],
        [half, 0, Fraction(3, 4)],
        [most, Fraction(3, 4), 0],
    ]
    assert cost_by_range(("[0, 1)", "[1, 2]"), KWH) is None  # all or nothing: any value


@pytest.mark.nightly
@pytest.mark.parametrize(
    "laws",
    [
        [[1.0], [0.5, 0.5], [0.5, 0.5]],
        [[1.0], [1.0, 0.0], [0.0, 1.0]],
        [[1.0], [0.0, 1.0], [0.0, 1.0]],
        [[1.0], [0.9, 0.1], [0.2, 0.8]],
    ],
)
def test_a_noisy_sum_leaks_no_more_than_its_price(tmp_path: Path, laws: list[list[float]]) -> None:
    with opened_table(tmp_path, CHAIN, None, **TABLE) as (session, _):
        plan = session.plan.sum(epsilon=1)
        loss: Any = plan.charge.loss
        ((shape, _),) = loss.cost.terms
        assert isinstance(shape, Matrix) and set(shape.values) == set(NAMES)
        scale = float(plan.mechanism.describe()["scale"])
        assert leak(scale, laws) <= session.release(plan, accept_noise=True).cost.alone <= 1
        saved = plan.saving(plan.cost)
        assert saved is not None and saved.deviation < saved.deviation_without_values


def test_the_largest_leak_is_close_to_the_price(tmp_path: Path) -> None:
    with opened_table(tmp_path, CHAIN, None, **TABLE) as (session, _):
        plan = session.plan.sum(epsilon=1)
        scale = float(plan.mechanism.describe()["scale"])
    assert leak(scale, [[1.0], [0.5, 0.5], [0.0, 1.0]]) > 0.6


BAD = [
    (("low", "middle", "high"), "no-numbers"),
    (("[0, 0.5)", "[0.5, 1.5)", "[1.5, 3]"), "other-bounds"),
    (("[0, 0.5)", "[0.5, 1.25)", "[1.25, 2]"), "off-step"),
    (("[0, 1)", "[0.5, 1.5)", "[1.5, 2]"), "overlap"),
    (("[0, 0.5)", "[1, 1.5)", "[1.5, 2]"), "not-in-order"),
    (("[0, 0.5)", "[0.5, 1.5)", "high"), "no-numbers"),
]


@pytest.mark.parametrize(("names", "reason"), BAD)
def test_states_that_are_neither_numbers_nor_ranges_are_refused(
    tmp_path: Path, names: tuple[str, ...], reason: str
) -> None:
    prior = MarkovChain(P, states=names, start=START, length=LENGTH)
    with (
        raises(UnsoundRequest, field="prior", reason=reason),
        opened_table(tmp_path, prior, None, **TABLE),
    ):
        pass


def test_a_missing_number_is_in_no_range(tmp_path: Path) -> None:
    dropped = Amount("kwh", Fraction(0), Fraction(2), Fraction(1, 2), "drop")
    with (
        raises(UnsoundRequest, field="prior", reason="missing"),
        opened_table(tmp_path, CHAIN, None, **(TABLE | {"protected": (dropped,)})),
    ):
        pass


def test_numbered_states_are_ranges_that_nobody_wrote_down_and_tell_everything(
    tmp_path: Path,
) -> None:
    with opened_table(tmp_path, MarkovChain(P, length=LENGTH), None, **TABLE) as (session, _):
        plan = session.plan.sum(epsilon=1)
        assert plan.unit == Cost.any(1)
        assert "stand for ranges of `kwh`" in said(session)


def test_numbers_themselves_are_no_ranges(tmp_path: Path) -> None:
    numbers = tuple(map(str, NUMBERS))
    law: dict[Any, float] = dict.fromkeys(numbers, 0.2)
    prior = IndependentEntries({"0": law, "1": law, "2": law})
    with opened_table(tmp_path, prior, None, **TABLE) as (session, _):
        assert "stand for ranges" not in said(session)


def test_a_network_over_ranges_and_labels_charges_a_sum_by_range(tmp_path: Path) -> None:
    rows = [(f"p{k}", 0, NUMBERS[k % 5], ("on", "off")[k % 2]) for k in range(7)]
    table: dict[str, Any] = {
        "protected": (KWH, Category("heat", ("on", "off"), "refuse")),
        "rows": rows, "header": ("person", "step", "kwh", "heat"), "public": (),
    }  # fmt: skip
    prior = BayesianNetwork(
        entries=("kwh", "heat"),
        states=(NAMES, ("on", "off")),
        parents=((), ("kwh",)),
        tables=(START, np.array([[0.1, 0.9], [0.5, 0.5], [0.8, 0.2]])),
    )
    with opened_table(tmp_path, prior, "row", **table) as (session, _):
        plan = session.plan.sum("kwh", epsilon=1)
        loss: Any = plan.charge.loss
        ((shape, _),) = loss.cost.terms
        assert isinstance(shape, Column) and isinstance(shape.shape, Matrix)
        assert plan.cost.by_column is not None
        assert set(plan.cost.by_column) == {"kwh", "heat"}
        assert max(plan.cost.by_column.values()) == plan.cost.alone <= 1
        session.release(plan, accept_noise=True)
        heat = session.plan.histogram("heat", epsilon=1)
        loss = heat.charge.loss
        assert loss.cost == Cost.of({Column("heat", ANY): loss.epsilon})
        session.release(heat, accept_noise=True)
        assert session.spent() < 2.0001
        assert "stand for ranges of `kwh`" in said(session)
