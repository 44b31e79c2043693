"""What each entry of a chain tells, field by field, and which way round."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from takifugu.errors import InvalidWorld, TooLarge
from takifugu.influence.chain import chain_walk, higher_order_curves
from takifugu.influence.chain.chain_curves import chain_curve, chains_curve
from takifugu.influence.chain.chain_groups import GroupLeaks
from takifugu.influence.chain.chain_walk import Walk
from takifugu.influence.chain.curve_request import curve_request
from takifugu.influence.chain.higher_order_curves import higher_order_curve
from takifugu.influence.chain.powers import products
from takifugu.influence.chain.splitting import (
    EntryLeaks,
    PairLeaks,
    SequenceSplits,
    best_leaks,
)
from takifugu.numeric import Floats
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from tests.raising import raises

pytestmark = pytest.mark.nightly

MOST = 3
STEPS = np.random.default_rng(11).dirichlet(np.ones(3), (5, 3))
START = np.array([0.2, 0.3, 0.5])
GROUPS = (((0,), (1, 2)), ((1, 2), (0,)))
PAIRS = (((0,), (1,)), ((1,), (0,)), ((2,), (1,)), ((1,), (2,)))


def walk(transition: Floats, start: Any, length: int | None, shift: int = 0) -> Walk:
    chain = MarkovChain(transition, start=start, length=length)
    request = curve_request(
        chain.states,
        length,
        Secrets(pairs=(*PAIRS, *GROUPS)),
        max_exposed=MOST,
        symmetric=False,
        by_entry=None,
    )
    return Walk(chain, request, shift=shift)


def between(steps: list[Floats], first: int, last: int) -> Floats:
    """From an entry to a later one."""
    found = np.eye(3)
    for one in steps[first:last]:
        found = found @ one
    return found


def told(left: Floats, x: int, y: int) -> float:
    """The largest log-ratio of two columns."""
    return float(np.log(left[:, x] / left[:, y]).max())


@pytest.mark.parametrize("entry", range(6))
def test_an_entry_of_a_chain_with_a_matrix_for_each_step(entry: int) -> None:
    found = walk(STEPS, START, 6)
    single, group = found.at(entry)
    assert isinstance(single, PairLeaks) and isinstance(group, GroupLeaks)
    steps = list(STEPS)
    law = START @ between(steps, 0, entry)
    ahead, back = min(5 - entry, MOST), min(entry, MOST)
    pairs = [(a[0], b[0]) for a, b in found.request.single]
    assert sorted(pairs) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    for part in (single, group):
        assert part.entry == str(entry) and part.reach == (entry, 5 - entry)
        assert part.keep.all() and part.exact.all() and 0 < part.error < 1e-10
        assert len(part.before) == back and len(part.after) == ahead
    assert single.offset == pytest.approx([math.log(law[y] / law[x]) for x, y in pairs])
    for d in range(1, back + 1):
        past = between(steps, entry - d, entry)
        assert single.before[d - 1] == pytest.approx([told(past, x, y) for x, y in pairs])
        assert np.exp(group.before[d - 1].log) == pytest.approx(past)
    for d in range(1, ahead + 1):
        future = between(steps, entry, entry + d)
        assert single.after[d - 1] == pytest.approx([told(future.T, x, y) for x, y in pairs])
        assert np.exp(group.after[d - 1].log) == pytest.approx(future)
    assert np.exp(group.law.log[0]) == pytest.approx(law) and group.pairs == GROUPS
    odds = math.log((law[1] + law[2]) / law[0])
    assert group.offset == pytest.approx([odds, -odds])


def test_matrices_of_every_step_need_room_and_one_for_all_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chain_walk, "ROOM", 68)
    assert walk(STEPS, START, 6).far == MOST
    monkeypatch.setattr(chain_walk, "ROOM", 67)
    with raises(TooLarge, field="max_exposed", size=5 * 3 * 3**2, limit=134):
        walk(STEPS, START, 6)
    monkeypatch.setattr(chain_walk, "ROOM", 1)
    assert walk(STEPS[0], START, 6).far == MOST


@pytest.mark.parametrize("shift", [0, 2])
@pytest.mark.parametrize("start", ["stationary", (0.5, 0.25, 0.25), (0.0, 1.0, 0.0)])
def test_later_entries_look_back_and_ahead(start: Any, shift: int) -> None:
    """The past is told by columns and the future by rows, which are not the same numbers."""
    given = start if isinstance(start, str) else np.array(start)
    found = walk(STEPS[0], given, None, shift)
    settled = found._settles()
    assert settled == (0 if start != (0.0, 1.0, 0.0) else 1)
    single, group = found.later(4, settled)
    assert isinstance(single, PairLeaks) and isinstance(group, GroupLeaks)
    steps = [STEPS[0]] * 400
    laws = [START @ between(steps, 0, 400)]
    if start != "stationary":
        laws += [np.array(start) @ between(steps, 0, entry) for entry in range(4, 60)]
    pairs = [(a[0], b[0]) for a, b in found.request.single]
    for part in (single, group):
        assert part.entry == "4+" and part.reach == (None, None) and part.keep.all()
        assert 0 < part.error < 1e-8
        assert len(part.before) == len(part.after) == MOST
    assert single.exact.all() and group.exact.all() == group.exact.any() == (shift == 0)
    for d in range(1, MOST + 1):
        power = between(steps, 0, d)
        assert single.before[d - 1] == pytest.approx([told(power, x, y) for x, y in pairs])
        assert single.after[d - 1] == pytest.approx([told(power.T, x, y) for x, y in pairs])
        assert np.exp(group.before[d - 1].log) == pytest.approx(power)
        assert np.exp(group.after[d - 1].log) == pytest.approx(between(steps, 0, d + shift))
    worst = [max(math.log(law[y] / law[x]) for law in laws) for x, y in pairs]
    assert single.offset == pytest.approx(worst, abs=1e-8)
    odds = [math.log((law[1] + law[2]) / law[0]) for law in laws]
    assert group.offset == pytest.approx([max(odds), max(-one for one in odds)], abs=1e-8)


def test_the_split_of_a_later_entry_says_which_side_is_left() -> None:
    """Nearly all of the past is known at once, the future tells little: more is exposed before."""
    steps = np.array([[0.98, 0.01, 0.01], [0.01, 0.98, 0.01], [0.3, 0.3, 0.4]])
    found = walk(steps, "stationary", None)
    (single, _) = found.later(3, 0)
    k = 0
    splits = SequenceSplits([([single], k)], np.array([1, 2, 3]), None, [None])
    x, y = (int(side[k]) for side in (found.request.left, found.request.right))
    powers = [between([steps] * 3, 0, d) for d in (1, 2, 3)]
    sums = {
        (left, right): told(powers[left], x, y) + told(powers[right].T, x, y)
        for left, right in product(range(3), repeat=2)
        if left + right == 2
    }
    left, right = min(sums, key=lambda one: sums[one])
    assert splits.describe(0, 2) == {"entry": "3+", "left": left, "right": right}


# ---- later entries

TURNS = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.25, 0.25, 0.5]])
BOTH = (((0,), (1,)), ((1,), (0,)))


def test_states_that_never_come_are_no_past_of_later_entries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first two states take turns; the last one leads to them and is never reached."""
    monkeypatch.setattr(chain_walk, "STEPS", 4)
    found = walk(TURNS, np.array([1.0, 0.0, 0.0]), None)
    assert found._settles() is None and found._ever().tolist() == [True, True, False]
    single, group = found.later(3, None)
    assert isinstance(single, PairLeaks) and isinstance(group, GroupLeaks)
    assert not single.exact.any() and not group.exact.any()
    assert [one.log.shape for one in group.before] == [(2, 3)] * 3
    assert single.keep.tolist() == [2 not in (*a, *b) for a, b in found.request.single]
    assert group.keep.tolist() == [True, True]


def test_states_possible_at_some_entry_are_those_that_any_first_state_leads_to() -> None:
    found = walk(np.eye(3), np.array([0.5, 0.5, 0.0]), None)
    assert found._ever().tolist() == [True, True, False]


def test_a_chain_at_rest_has_the_same_odds_at_every_entry_though_it_turns_round() -> None:
    found = walk(np.roll(np.eye(3), 1, axis=1), "stationary", None)
    keep, offset, exact, law = found._later_offset(3, 0, BOTH)
    assert keep.all() and exact.all() and offset == pytest.approx([0.0, 0.0], abs=1e-12)
    assert law is found.law(0)


def test_odds_of_a_chain_that_turns_round_for_ever_are_not_called_exact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last state comes at every other entry, and one of the first two between."""
    monkeypatch.setattr(chain_walk, "STEPS", 5)
    steps = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.25, 0.75, 0.0]])
    found = walk(steps, np.array([0.0, 0.0, 1.0]), None)
    assert found._settles() is None
    keep, offset, exact, _ = found._later_offset(3, None, BOTH)
    assert keep.all() and offset == pytest.approx([math.log(3), -math.log(3)])
    assert not exact.any()


def test_what_cannot_happen_later_has_no_odds(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = np.array([[0.0, 0.25, 0.75], [0.0, 0.75, 0.25], [0.0, 0.5, 0.5]])
    found = walk(steps, np.array([1.0, 0.0, 0.0]), None)
    keep, offset, _, _ = found._later_offset(2, 1, (((0,), (1,)), ((1,), (0,)), ((1,), (2,))))
    assert keep.tolist() == [False, False, True]
    assert offset[:2].tolist() == [0.0, 0.0] and offset[2] == pytest.approx(math.log(7 / 9))
    single, group = found.later(2, 1)  # the first state is no past of theirs either
    assert isinstance(single, PairLeaks) and isinstance(group, GroupLeaks)
    k = found.request.single.index(((2,), (1,)))
    power = steps
    for d in range(MOST):
        assert group.before[d].log.shape == (2, 3)
        assert single.before[d][k] == pytest.approx(told(power[1:], 2, 1))
        power = power @ steps
    monkeypatch.setattr(chain_walk, "STEPS", 0)  # two steps after the law had its states
    _, offset, _, _ = found._later_offset(3, 1, (((1,), (2,)),), (50,))
    assert offset == pytest.approx([told((steps @ steps)[1:], 2, 1)])


@pytest.mark.parametrize("far", [(), (900,)])
def test_the_error_of_later_laws_is_the_largest_that_was_met(
    far: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the laws of the entries, unless only far ones are asked about, and of the last rows."""
    monkeypatch.setattr(chain_walk, "SETTLED", 1e-3)
    monkeypatch.setattr(MarkovChain, "row_error", property(lambda _: 1e-12))
    monkeypatch.setattr(MarkovChain, "start_error", property(lambda _: 5e-12))
    found = walk(STEPS[0], START, None)
    _, _, _, law = found._later_offset(2, 0, BOTH, far)
    steps = [STEPS[0]] * 60
    last = next(
        entry
        for entry in range(2, 60)
        if np.ptp(np.log(between(steps, 0, entry)), axis=0).max() <= 1e-3
    )
    assert last > 3 and np.exp(law.log) == pytest.approx(between(steps, 0, last))
    rows = list(products(STEPS[0], 1e-12, [STEPS[0]] * (last - 1), 1e-12))[-1].error
    met = max(found.law(entry).error for entry in range(2, last + 1))
    assert found.law(0).error < rows < met
    assert law.error == (rows if far else met)


@pytest.mark.parametrize(("share", "known"), [(3.5, True), (4.5, False)])
def test_odds_of_an_entry_with_enough_to_its_right_count_as_attained(
    share: float, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of entry 2 are below those of entry 4 by so many times what counts as nothing."""
    steps = np.array([[0.75, 0.25], [0.125, 0.875]])
    laws = [np.array([0.9, 0.1]) @ np.linalg.matrix_power(steps, entry) for entry in (2, 4)]
    gap = math.log(laws[1][1] / laws[1][0]) - math.log(laws[0][1] / laws[0][0])
    monkeypatch.setattr(chain_walk, "SETTLED", gap / share)
    chain = MarkovChain(steps, start=np.array([0.9, 0.1]), length=5)
    request = curve_request(
        chain.states, 5, Secrets(), max_exposed=2, symmetric=False, by_entry=None
    )
    _, offset, exact, _ = Walk(chain, request)._later_offset(2, 0, BOTH)
    assert offset[0] == pytest.approx(math.log(laws[1][1] / laws[1][0]))
    assert exact.tolist() == [known, True]


# ---- splits


def parted(reach: Any, before: list[float], after: list[float], keep: bool = True) -> EntryLeaks:
    """One pair, and what it shows at each distance."""
    return PairLeaks(
        "7",
        reach,
        np.array([keep]),
        np.array([True]),
        [np.array([one]) for one in before],
        [np.array([one]) for one in after],
        np.zeros(1),
    )


def test_where_nothing_helps_the_entry_alone_is_exposed() -> None:
    never = parted((None, None), [math.inf] * 3, [0.5, 0.25, 0.125])
    splits = SequenceSplits([([never], 0)], np.array([1, 2, 3]), None, [None])
    for point in range(3):
        assert splits.describe(0, point) == {"entry": "7", "left": 0, "right": 0}


def test_what_exposes_fewer_is_a_split_for_more() -> None:
    part = parted((None, None), [2.0, 3.0, 2.0], [1.0, 5.0, 0.5])
    assert best_leaks(part, 3, None)[:, 0] == pytest.approx([3.0, 3.0, 2.5])


def test_the_split_that_is_described_serves_both_directions_if_it_has_to() -> None:
    before = [np.array([4.0, 0.0]), np.array([0.0, 3.5])]
    nothing = [np.zeros(2)] * 2
    both = np.ones(2, bool)
    part = PairLeaks("7", (None, None), both, both, before, nothing, np.zeros(2))
    turned = np.array([1, 0])
    rows = [([part], 0), ([part], 1)]
    splits = SequenceSplits(rows, np.array([1, 2]), None, [turned, turned])
    assert [splits.describe(k, 1)["left"] for k in (0, 1)] == [1, 1]
    alone = SequenceSplits(rows, np.array([1, 2]), None, [None, None])
    assert [alone.describe(k, 1)["left"] for k in (0, 1)] == [1, 0]


def test_entries_where_a_pair_cannot_happen_are_not_described() -> None:
    gone = parted((None, None), [9.0] * 2, [9.0] * 2, keep=False)
    there = parted((None, None), [-3.0, -4.0], [0.5, 0.25])
    splits = SequenceSplits([([gone, there], 0)], np.array([1, 2]), None, [None])
    assert splits.describe(0, 1) == {"entry": "7", "left": 1, "right": 0}


@pytest.mark.parametrize("reach", [(0, 0), (1, 0), (0, 2), (2, 1), (1, 2)])
def test_all_of_a_sequence_is_exposed_from_its_size_on(reach: tuple[int, int]) -> None:
    most = 4
    size = sum(reach) + 1
    part = parted(reach, [2.0] * reach[0], [3.0] * reach[1])
    found = best_leaks(part, most, None)[:, 0]
    assert (found[: size - 1] > 1).all()
    assert found[size - 1 :].tolist() == [0.0] * (most - size + 1)


# ---- sets of chains, and windows


def test_a_set_of_chains_has_one_row_for_each_pair_of_all_entries() -> None:
    chains = [MarkovChain(table, start=START, length=4) for table in STEPS[:3]]
    secrets = Secrets(entries=(0, 2), pairs=PAIRS)
    found = chains_curve(chains, secrets, max_exposed=2)
    alone = [chain_curve(one, secrets, max_exposed=2, by_entry=False) for one in chains]
    assert found.pairs == alone[0].pairs == ("0 / 1", "1 / 0", "2 / 1", "1 / 2")
    assert found.exposed.tolist() == [1, 2, 4] and found.entries == 4
    assert found.leak.tolist() == np.max([one.leak for one in alone], axis=0).tolist()
    assert found.exact.all() and found.splits is None
    one = chains_curve(chains[:1], secrets, max_exposed=2)
    assert one.leak.tolist() == alone[0].leak.tolist()
    other = MarkovChain(STEPS[0], start=START, length=5)
    named = MarkovChain(STEPS[0], ("a", "b", "c"), start=START, length=4)
    for bad in ([], [chains[0], other], [chains[0], named]):
        with raises(InvalidWorld, field="chains"):
            chains_curve(bad)


def test_the_largest_sides_say_how_far_a_curve_of_windows_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four pairs of nine windows, the largest with all nine of them on its two sides."""
    monkeypatch.setattr(higher_order_curves, "WORK", 4 * 9**2 * 9 * 12.5)
    table = np.random.default_rng(4).dirichlet(np.ones(3), (3, 3))
    secrets = Secrets(pairs=(PAIRS[0], PAIRS[1], *GROUPS))
    found = higher_order_curve(HigherOrderChain(table, length=60), secrets)
    assert found.exposed.tolist() == [1, 2, 3, 4, 5, 60]
    assert set(found.pairs) == {"0 / 1", "1 / 0", "0 / 1|2", "1|2 / 0"}


def test_values_are_the_windows_that_end_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three values the last never happens: its pairs are left out, or refused alone."""
    table = np.array([[[0.25, 0.75, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]] * 3)
    chain = HigherOrderChain(table, ("a", "b", "c"), length=9)
    asked: list[tuple[Any, ...]] = []

    class Asked(Walk):
        def __init__(self, given: MarkovChain, request: Any, *, shift: int = 0) -> None:
            asked.append((given, request, shift))
            super().__init__(given, request, shift=shift)

    monkeypatch.setattr(higher_order_curves, "Walk", Asked)
    found = higher_order_curve(chain, max_exposed=2)
    assert found.pairs == ("a / b", "b / a") and found.exposed.tolist() == [1, 2, 9]
    ((given, request, shift),) = asked
    assert given is chain.window_chain and shift == 1 and request.single == ()
    ends = [tuple(np.flatnonzero(chain.windows[:, 1] == value).tolist()) for value in (0, 1)]
    assert request.grouped == ((ends[0], ends[1]), (ends[1], ends[0])) and request.most == 2
    assert request.states == given.states and not request.symmetric
    assert [request.side_name(side) for side in ends] == ["a", "b"]
    with raises(InvalidWorld, field="secrets"):
        higher_order_curve(chain, Secrets(pairs=((("a",), ("c",)),)))
    assert len(asked) == 1
