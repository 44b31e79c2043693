"""The entries, laws and powers that a chain curve unrolls; how far it goes; what it refuses."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from takifugu._rounding import UNIT
from takifugu.errors import TooLarge, UnsoundRequest
from takifugu.influence.chain import chain_walk, curve_request, higher_order_curves, powers
from takifugu.influence.chain.chain_curves import chain_curve
from takifugu.influence.chain.chain_walk import Walk
from takifugu.influence.chain.higher_order_curves import higher_order_curve
from takifugu.influence.chain.interval_curves import _Spread
from takifugu.influence.chain.powers import LogProduct
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from tests.raising import raises

pytestmark = pytest.mark.nightly

STEP = np.array([[0.75, 0.25], [0.125, 0.875]])


def walk(
    length: int | None,
    most: int | None,
    *,
    start: Any = "stationary",
    entries: tuple[int, ...] | None = None,
    by_entry: bool | None = None,
    transition: Any = STEP,
) -> Walk:
    chain = MarkovChain(transition, start=start, length=length)
    request = curve_request.curve_request(
        chain.states,
        chain.length,
        Secrets(entries=entries),
        max_exposed=most,
        symmetric=False,
        by_entry=by_entry,
    )
    return Walk(chain, request)


def names(found: Walk) -> list[str]:
    return [parts[0].entry for parts in found.entry_leaks()]


@pytest.mark.parametrize(
    ("length", "most", "start", "entries", "expected"),
    [
        (None, 3, "stationary", None, ["3+"]),
        (7, 3, "stationary", None, ["3+"]),
        (6, 3, "stationary", None, ["0", "1", "2", "3", "4", "5"]),
        (8, 3, "stationary", (3,), ["3+"]),
        (8, 3, "stationary", (4,), ["3+"]),
        (8, 3, "stationary", (2,), ["2"]),
        (8, 3, "stationary", (5,), ["5"]),
        (8, 3, "stationary", (5, 2), ["5", "2"]),
        (8, 3, "stationary", (5, 2, 3), ["3+"]),
        (None, 3, "stationary", (2,), ["2"]),
        (None, 3, "stationary", (3,), ["3+"]),
        (None, 2, [0.5, 0.5], None, ["0", "1", "2+"]),
        (4, 2, [0.5, 0.5], None, ["0", "1", "2", "3"]),
        (5, 2, [0.5, 0.5], None, ["0", "1", "2+"]),
        (None, 2, [1.0, 0.0], None, ["0", "1", "2", "3+"]),
        (5, 2, [1.0, 0.0], None, ["0", "1", "2", "3", "4"]),
        (6, 2, [1.0, 0.0], None, ["0", "1", "2", "3+"]),
        (9, 2, [0.5, 0.5], (7, 1), ["7", "1"]),
        (None, 2, [0.5, 0.5], (7, 1), ["7", "1"]),
    ],
)
def test_which_entries_have_rows(
    length: int | None, most: int, start: Any, entries: Any, expected: list[str]
) -> None:
    assert names(walk(length, most, start=start, entries=entries)) == expected


def test_far_entries_of_a_given_start_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_walk, "STEPS", 5)
    assert names(walk(None, 2, start=[0.5, 0.5], entries=(6, 0))) == ["6", "0"]
    assert names(walk(None, 2, start=[0.5, 0.5], entries=(7, 0))) == ["0", "2+"]
    assert names(walk(None, 2, entries=(1,))) == ["1"]


@pytest.mark.parametrize(("length", "most"), [(None, 3), (7, 3), (8, 3), (6, 3), (9, 2), (3, 1)])
def test_an_entry_is_interior_with_as_many_on_both_sides(length: int | None, most: int) -> None:
    found = walk(length, most)
    for entry in range(length or 9):
        right = math.inf if length is None else length - 1 - entry
        assert found._interior(entry) == (entry >= most and right >= most)


def test_rows_that_do_not_fit_are_refused_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve_request, "ROOM", 40)
    worked: list[int] = []
    monkeypatch.setattr(Walk, "at", lambda _, entry: worked.append(entry))
    with raises(TooLarge, field="by_entry", size=6 * 2 * 4, limit=40):
        walk(6, 3, by_entry=True).entry_leaks()
    assert not worked
    walk(6, 3, by_entry=False).entry_leaks()
    assert worked == list(range(6))
    # nor is more than half of a chain exposed unless asked for, but one entry always
    assert [walk(length, None).request.most for length in (2, 3, 4, 5)] == [2, 1, 1, 2]


@pytest.mark.parametrize(("room", "apart"), [(6 * 2 * 4, True), (6 * 2 * 4 - 1, False)])
def test_rows_are_kept_apart_by_default_if_all_of_them_fit(
    room: int, apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curve_request, "ROOM", room)
    assert walk(6, 3).request.apart(6) == apart
    if apart:
        assert walk(6, 3, by_entry=True).request.apart(6)
    assert not walk(6, 3, by_entry=False).request.apart(6)


def test_a_walk_needs_one_law_and_room_for_a_matrix_of_every_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chain = MarkovChain(STEP, length=6)
    with raises(UnsoundRequest, field="start"):
        chain_curve(chain.against(start="unknown"))
    with raises(UnsoundRequest, field="known"):
        chain_curve(chain.against(known="any"))
    kernels = np.stack([STEP] * 5)
    monkeypatch.setattr(chain_walk, "ROOM", 5 * 3 * 4 // 2)
    assert walk(6, 3, start=[0.5, 0.5], transition=kernels).far == 3
    monkeypatch.setattr(chain_walk, "ROOM", 5 * 3 * 4 // 2 - 1)
    with raises(TooLarge, field="max_exposed", size=60, limit=58):
        walk(6, 3, start=[0.5, 0.5], transition=kernels)
    assert walk(6, 3).far == 3  # one matrix for all


@pytest.mark.parametrize(
    ("length", "most", "far"), [(None, 5, 5), (4, 5, 3), (1, 5, 1), (2, 2, 1), (9, 2, 2)]
)
def test_how_far_a_walk_goes(length: int | None, most: int, far: int) -> None:
    assert walk(length, most).far == far


def test_laws_and_powers_of_every_entry() -> None:
    rng = np.random.default_rng(2)
    kernels = rng.dirichlet(np.ones(3), (5, 3))
    start = np.array([0.5, 0.5, 0.0])
    for transition in (kernels, kernels[0]):
        found = walk(6, 5, start=start, transition=transition)
        steps = list(kernels) if transition.ndim == 3 else [kernels[0]] * 5
        law = start
        for entry in range(6):
            assert np.exp(found.law(entry).log[0]) == pytest.approx(law, abs=1e-14)
            assert found.support(entry).tolist() == (law > 0).tolist()
            power = np.eye(3)
            for d in range(1, 6 - entry):
                power = power @ steps[entry + d - 1]
                assert np.exp(found.power(entry, d).log) == pytest.approx(power, rel=1e-12)
                x, y = found.request.left, found.request.right
                ratio = np.log(power[x] / power[y]).max(axis=1)
                assert found.after(entry, d) == pytest.approx(ratio, abs=1e-12)
                back = np.log(power[:, x] / power[:, y])
                for some in ([True, True, True], [True, False, True]):
                    seen = back[np.array(some)].max(axis=0)
                    assert found.before(entry + d, d, np.array(some)) == pytest.approx(
                        seen, abs=1e-12
                    )
            if entry < 5:
                law = law @ steps[entry]


@pytest.mark.parametrize(
    ("transition", "start", "settled"),
    [
        (STEP, [0.5, 0.5], 0),
        (STEP, [1.0, 0.0], 1),
        (STEP, "stationary", 0),
        ([[0.0, 1.0], [1.0, 0.0]], [1.0, 0.0], None),
        ([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], 0),
        ([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]], [1.0, 0.0, 0.0], 2),
    ],
)
def test_when_the_same_states_are_possible_for_ever(
    transition: Any, start: Any, settled: int | None
) -> None:
    found = walk(None, 2, start=start, transition=transition)
    assert found._settles() == settled
    ever = {0, 1, 2} if len(transition) == 3 else {0, 1}
    assert set(np.flatnonzero(found._ever()).tolist()) == ever


def test_the_odds_of_an_entry() -> None:
    found = walk(None, 2, start=[0.25, 0.75])
    law = LogProduct(np.log([[0.25, 0.75]]), 1e-6)
    keep, offset = found._offset(law, (((0,), (1,)), ((1,), (0,))))
    assert keep.tolist() == [True, True]
    assert offset == pytest.approx([math.log(3) + 2e-6, -math.log(3) + 2e-6], abs=1e-12)
    none = LogProduct(np.array([[0.0, -np.inf]]), 0.0)
    keep, offset = found._offset(none, (((0,), (1,)), ((1,), (0,)), ((0,), (0,))))
    assert keep.tolist() == [False, False, True] and offset.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("length", [None, 40, 5])
def test_the_largest_odds_of_later_entries(length: int | None) -> None:
    found = walk(length, 2, start=[0.9, 0.1])
    pairs = (((0,), (1,)), ((1,), (0,)))
    keep, offset, exact, _ = found._later_offset(2, 0, pairs)
    law, odds = np.array([0.9, 0.1]), []
    for entry in range(length or 400):
        if entry >= 2:
            odds.append([math.log(law[1] / law[0]), math.log(law[0] / law[1])])
        law = law @ STEP
    highest = np.max(odds, axis=0)
    assert keep.all()
    assert (offset >= highest - 1e-15).all() and offset == pytest.approx(highest, abs=1e-8)
    if length is None:
        assert exact.all()
    if length == 5:  # the last entries have too few others to their right
        assert exact.tolist() == [False, True]


# ---- margins


@pytest.mark.parametrize(("left", "right"), [(-1.0, -3e5), (-3e5, -1.0), (-2e5, -2e5), (0.0, 0.0)])
def test_a_step_in_logarithms_is_off_by_units_of_all_of_them(left: float, right: float) -> None:
    one, other = LogProduct(np.full((1, 1), left), 1e-9), LogProduct(np.full((1, 1), right), 1e-8)
    found = powers._log_step(one, other)
    assert found.log[0, 0] == left + right
    sizes = abs(left) + abs(right) + abs(left + right)
    own = Fraction(found.error) - Fraction(1e-9) - Fraction(1e-8)
    assert 2 * UNIT * (sizes + 1) < own < 20 * UNIT * (sizes + 20)


def test_what_rows_lack_is_rounded_down() -> None:
    rng = np.random.default_rng(1)
    n = 120
    upper = rng.uniform(0.5, 1.0, (n, n))
    chain = IntervalMarkovChain(np.zeros((n, n)), upper)
    (_, _, none, zero), (_, _, _, lack), (_, _, room, _), _ = _Spread(chain).ways
    assert not none.any() and not zero.any()
    for k in range(n):
        total = sum((Fraction(float(one)) for one in chain.upper[k]), Fraction(0))
        gap = 1 - total - Fraction(float(lack[k]))
        assert 0 < gap < Fraction(1, 10**10)
        assert 1 <= room[k] < 1 + 1e-12
        assert gap > n * Fraction(UNIT) * total / 2  # what adding up so many may be off by


# ---- how far


@pytest.mark.parametrize("work", [1.0, 200.0, 600.0, 5000.0])
def test_a_higher_order_curve_goes_as_far_as_it_is_quick(
    work: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(higher_order_curves, "WORK", work)
    chain = HigherOrderChain(
        np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.6, 0.4], [0.1, 0.9]]]), length=60
    )
    curve = higher_order_curve(chain)
    # two pairs, four windows, sides of two windows each: 2 · 16 · 4 a split, b² / 2 splits
    most = max(1, min(29, math.isqrt(int(2 * work / 128))))
    assert curve.exposed.tolist() == [*range(1, most + 1), 60]
    assert higher_order_curve(chain, max_exposed=7).exposed.tolist() == [*range(1, 8), 60]
