"""The loops of networks at the edge of what floats can hold, and what their steps are told."""

from collections.abc import Iterator
from math import fsum
from typing import Any

import numpy as np
import pytest

from takifugu._rounding import up
from takifugu.numeric import Floats
from takifugu.translation.network import coupling_kernel, coupling_steps, pinning_kernel
from takifugu.translation.network.coupling_steps import CouplingSteps, PossibleStates, Term

pytestmark = pytest.mark.nightly

loops: Any = pinning_kernel  # what is compiled has lost its types


@pytest.fixture(autouse=True)
def _as_compiled() -> Iterator[None]:
    """Compiled loops do not warn of what they test for; nor shall they as plain Python."""
    with np.errstate(all="ignore"):
        yield


def path(low: float, high: float, levels: int) -> tuple[Floats, tuple[float, ...]]:
    """Three entries in a row, the first with odds in an interval, the middle without a field's ε.

    The boxes, and the box of the middle entry as it is explored one step.
    """
    near, back = np.array([[1, 1], [0, 2], [1, 1]]), np.array([[0, 0], [0, 0], [1, 1]])
    degree, own = np.array([1, 2, 1]), np.array([0.5, 0.0, 0.0])
    least, most = np.array([low, 1.0, 1.0]), np.array([high, 1.0, 1.0])
    pull = np.full((3, 2), 0.75)
    boxes = np.full((levels, 3, 2, 5), np.nan)
    pins = loops.pin_levels(near, back, degree, levels)
    loops.far_boxes(least, most, own, 9.0, near, back, degree, pull, pull, pins, boxes)
    found = loops.explore(
        *(1, 0, 1.0, 0.0, 10, least, most, own, near, degree, pull, pull, boxes),
        *(np.zeros(3, np.bool_), np.ones((2, 3)), np.zeros((2, 2, 2)), np.zeros(1, np.int64)),
    )
    return boxes, found


def test_a_gain_too_small_for_all_its_digits_is_none_from_below() -> None:
    """Of odds below 1e-290 the least gain is 0, however likely they are at most."""
    for low, high in ((1e-297, 1.0), (1e-297, 1e-296)):
        boxes, found = path(low, high, 2)
        assert boxes[0, 2, 0, 2] == 0.0 and found[2] == 0.0
    boxes, found = path(1e-200, 1.0, 2)
    exact = 0.75 * 0.5 * 1e-200
    assert boxes[0, 2, 0, 2] == pytest.approx(exact, rel=1e-12)
    assert found[2] == pytest.approx(exact, rel=1e-12)


def test_odds_without_an_end_gain_nothing_for_sure() -> None:
    for high in (1e61, np.inf):
        boxes, found = path(0.5, high, 2)
        assert boxes[0, 2, 0, 2] == 0.0 and found[2] == 0.0
        assert boxes[0, 2, 0, 3] > 0.05 and found[3] > 0.05


def test_the_rounding_of_the_longest_side_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """A law with two roundings, between lists of two, five and three states."""
    asked: list[int] = []

    def gamma(terms: int) -> float:
        asked.append(terms)
        return 0.125

    monkeypatch.setattr(coupling_steps, "gamma", gamma)
    monkeypatch.setattr(coupling_steps, "up", lambda value: np.asarray(value) + 2)  # and raised
    law = PossibleStates((0,), np.arange(10)[None], np.full(10, 0.1), 2)
    sides = [np.arange(2), np.arange(2, 7), np.arange(7, 10)]
    steps = CouplingSteps((10,))
    term = Term((0,), 0.5 * (1 - np.eye(10)))
    for pair, longest in (((0, 1), 5), ((0, 2), 3), ((2, 0), 3), ((2, 1), 5)):
        lefts, rights = (np.array([one]) for one in pair)
        found = steps.between(law, [term], sides, lefts, rights)
        assert asked[-1] == 2 + longest
        assert found[0] == pytest.approx(2 + 0.5 + 5 * 0.125, abs=1e-9)  # no state is on both sides


def test_what_no_move_exceeds_is_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of what all terms cost at most: for a message in parts, and where little is seen."""
    law = PossibleStates((0, 1), np.array([[0, 0, 1, 1], [0, 1, 0, 1]]), np.full(4, 0.25), 2)
    terms = [Term((0,), 0.1 * (1 - np.eye(2))), Term((1,), 0.7 * (1 - np.eye(2)))]
    steps, most = CouplingSteps((2, 2)), float(up(fsum([0.1, 0.7])))
    heard: list[float] = []
    monkeypatch.setattr(coupling_steps, "PAIRS", 0)
    monkeypatch.setattr(steps, "_in_parts", lambda *given: heard.append(given[-1]))
    steps.message(law, terms, (0,))
    assert heard == [most]
    steps.message(law, terms, (0,), most=0.5)
    assert heard == [most, 0.5]
    monkeypatch.setattr(coupling_steps, "LOOKED_AT", 0)
    monkeypatch.setattr(coupling_kernel, "nearly", lambda *given: heard.append(given[-1]))
    sides = [np.arange(2), np.arange(2, 4)]
    steps.between(law, terms, sides, np.array([0]), np.array([1]), simple=True)
    assert heard == [most, 0.5, most]
