"""Chains within intervals that may begin anywhere: each step back, beside a general solver."""

from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from takifugu.numeric import Floats
from takifugu.priors import IntervalMarkovChain, MarkovChain, Secrets
from takifugu.translation.bounds import Bound
from takifugu.translation.chain import interval_transport as module
from takifugu.translation.chain.chain_transport import ChainTransport
from takifugu.translation.chain.interval_steps import (
    backward_boxes,
    box_rows,
    law_bounds,
    robust_rows,
)
from takifugu.translation.chain.interval_transport import IntervalTransport
from takifugu.translation.chain.transport_steps import closed, off_diagonal
from tests.oracles.transport import loss_by_potentials

pytestmark = pytest.mark.nightly

ROWS = np.array([[0.5, 0.375, 0.125], [0.125, 0.625, 0.25], [0.25, 0.25, 0.5]])
LOW, HIGH = ROWS - 0.02, ROWS + 0.02
COST = np.array([[0.0, 0.5, 0.9], [0.4, 0.0, 0.6], [0.8, 0.7, 0.0]])


def stepped(steps: int) -> list[Floats]:
    """What the entries before the second, third, … reveal: first the dearest move."""
    low, high = box_rows(LOW, HIGH)
    tables = [off_diagonal(3, 0.9)]
    for rounds in range(steps):
        boxes = backward_boxes(low, high, *law_bounds(low, high, rounds=rounds))
        cost = closed(COST + tables[-1])
        above, below = robust_rows(*boxes)(cost)
        value = np.zeros((3, 3))
        for x, y in permutations(range(3), 2):
            value[x, y] = min(loss_by_potentials(above[x], below[y], cost), float(cost.max()))
        tables.append(value)
    return tables


@pytest.mark.parametrize(
    ("length", "stages", "steps", "later"),
    [
        (1, 4, 0, False),
        (2, 4, 0, False),
        (3, 4, 1, False),
        (6, 4, 4, False),
        (7, 4, 4, True),
        (None, 3, 3, True),
    ],
)
def test_every_step_back_is_taken_with_the_law_that_it_has(
    length: int | None, stages: int, steps: int, later: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = IntervalMarkovChain(LOW, HIGH, start="any", length=length)
    transport = IntervalTransport(chain, Secrets())
    asked = list[dict[str, Any]]()

    def solved(_: Any, charged: Floats, **given: Any) -> Any:
        assert charged is COST
        asked.append(given)
        table = off_diagonal(3, 0.25) if len(asked) == 1 else np.arange(9.0).reshape(3, 3) / 4
        return SimpleNamespace(upper=table)

    monkeypatch.setattr(module, "STAGES", stages)
    monkeypatch.setattr(module, "fixed_point", solved)
    found = transport._from_any_start(COST)
    tables = stepped(steps)
    behind = np.max(tables, axis=0)
    assert len(asked) == (2 if later else 1)
    if later:
        assert asked[1]["above"] == pytest.approx(tables[-1], abs=1e-6)
        behind = np.maximum(behind, np.arange(9.0).reshape(3, 3) / 4)
    assert "above" not in asked[0]
    apart = ~np.eye(3, dtype=np.bool_)
    expected = COST + 0.25 + behind
    assert (found >= expected - 1e-8)[apart].all()
    assert found[apart] == pytest.approx(expected[apart], abs=1e-6)
    assert not np.diag(found).any()


def test_steps_back_pay_for_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    near = np.full((3, 3), 1 / 3)  # an entry hardly tells of the one before
    chain = IntervalMarkovChain(near - 0.001, near + 0.001, start="any")
    transport = IntervalTransport(chain, Secrets())
    last = list[Floats]()

    def solved(*_: Any, **given: Any) -> Any:
        if "above" in given:
            last.append(given["above"])
        return SimpleNamespace(upper=np.zeros((3, 3)))

    monkeypatch.setattr(module, "fixed_point", solved)
    for slack in (0.0, 2.0**-12):
        monkeypatch.setattr(module, "row_slack", lambda _, s=slack: s)
        transport._from_any_start(COST)
    assert last[1] - last[0] == pytest.approx(2 * 2.0**-12 * off_diagonal(3), rel=0.1)


@pytest.mark.parametrize("dear", [0.0, 299.0])
def test_without_costs_or_with_large_ones_steps_are_their_dearest_move(
    dear: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = IntervalMarkovChain(LOW, HIGH, start="any", length=4)
    transport = IntervalTransport(chain, Secrets())
    monkeypatch.setattr(
        module, "fixed_point", lambda *_, **__: SimpleNamespace(upper=np.zeros((3, 3)))
    )
    found = transport._from_any_start(off_diagonal(3, dear))
    assert found == pytest.approx(off_diagonal(3, 4 * dear), abs=1e-9)


def test_the_largest_pair_is_the_loss_and_groups_are_lowered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "interval_losses", lambda *_, **__: SimpleNamespace(upper=COST))
    monkeypatch.setattr(IntervalTransport, "_from_any_start", lambda *_: 2 * COST)
    pairs = (((0, 1), (2,)), ((0,), (1,)))
    for start, values in (("stationary", (0.4, 0.3, 0.5, 0.4)), ("any", (1.8, 1.6, 1.0, 0.8))):
        chain = IntervalMarkovChain(LOW, HIGH, start=start)  # type: ignore[arg-type]
        transport = IntervalTransport(chain, Secrets(pairs=pairs))
        groups = {((0, 1), (2,)): 0.4, ((2,), (0, 1)): 0.3}
        steps = np.array([groups.get(pair, np.inf) for pair in transport._sides])
        monkeypatch.setattr(IntervalTransport, "_group_steps", lambda *_, s=steps: s)
        found = transport.uniform(0.5)
        assert found.value == max(values) and found.binding is not None
        expected = ("0", "1") if start == "stationary" else ("0|1", "2")
        assert (found.binding.left, found.binding.right) == expected
        assert transport.profile(np.array([0.1, 0.5])).value == found.value


def test_a_witness_within_intervals_may_have_steps_that_cannot_be_taken() -> None:
    """Intervals that are points have the witness of the one chain that they hold."""
    rows = np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]])
    transport = IntervalTransport(IntervalMarkovChain(rows, rows, length=5), Secrets())
    bound = transport.uniform(0.5)
    found = transport.witness(0.5, bound)
    inside = ChainTransport(MarkovChain(rows, length=5), Secrets())
    assert found.leak == inside.witness(0.5, Bound(bound.value)).leak
    assert 0.5 < found.leak <= bound.value
