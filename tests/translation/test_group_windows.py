"""Groups of values coupled with the entries around them, beside all sequences written out."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from takifugu.errors import InvalidWorld
from takifugu.numeric import Floats
from takifugu.translation.chain import group_window
from takifugu.translation.chain.chain_losses import HeldLaw, chain_losses
from takifugu.translation.chain.entry_laws import Law
from takifugu.translation.chain.group_step import SecretSides, pair_mask
from takifugu.translation.chain.group_window import Window, window_reach
from takifugu.translation.chain.stars import classes_of
from takifugu.translation.chain.transport_steps import off_diagonal
from tests.oracles.transport import loss_by_potentials

pytestmark = pytest.mark.nightly

ROWS = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
LAW = np.array([0.5, 0.2, 0.3])
SIDES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((0, 1), (2,)), ((2,), (0, 1))]


def held(law: Floats, slack: float = 0.0) -> HeldLaw:
    return HeldLaw(Law.of(law), slack)


def test_windows_of_a_chain_beside_the_program_over_it() -> None:
    """A whole chain in the window is the linear program itself, so both are the same number."""
    epsilon = np.array([0.4, 0.9, 0.6])
    losses = chain_losses(ROWS, epsilon, start=LAW)
    second = LAW @ ROWS
    cost = [off_diagonal(3, e) for e in epsilon]
    back = (LAW[:, None] * ROWS / second).T
    window = Window(
        held(second), cost[1], [(ROWS, cost[2])], [(back, cost[0])],
        np.zeros((3, 3)), np.zeros((3, 3)), 0.0,
    )  # fmt: skip
    proven = window.losses(SecretSides(SIDES, 3))
    paths = list(product(range(3), repeat=3))
    weight = np.array([LAW[a] * ROWS[a, b] * ROWS[b, c] for a, b, c in paths])
    for loss, (left, right) in zip(proven, SIDES, strict=True):
        p, q = (np.array([w * (b in side) for w, (_, b, _) in zip(weight, paths, strict=True)])
                for side in (left, right))  # fmt: skip
        apart = np.array(
            [[sum(e * (u != v) for e, u, v in zip(epsilon, one, other, strict=True))
              for other in paths] for one in paths]
        )  # fmt: skip
        true = loss_by_potentials(p / p.sum(), q / q.sum(), apart)
        assert true - 1e-8 <= loss <= true + 1e-6
    assert losses.by_entry[1] >= proven.max() - 1e-9


def test_what_rounding_may_do_comes_on_top_of_a_window() -> None:
    cost, none = off_diagonal(3, 0.5), np.zeros((3, 3))
    secret = SecretSides(SIDES, 3)

    def lost(law: float, step: float) -> Floats:
        steps = [(ROWS, cost)]
        return Window(held(LAW, law), cost, steps * 2, steps, none, none, step).losses(secret)

    plain = lost(0.0, 0.0)
    assert lost(0.125, 0.0) == pytest.approx(plain + 0.125, abs=1e-12)
    assert lost(0.0, 0.125) == pytest.approx(plain + 6 * 0.125, abs=1e-12)  # of three steps, twice


def test_what_a_window_does_not_know_is_infinite() -> None:
    secret = SecretSides([((0, 1), (2,)), ((0, 2), (1,)), ((0,), (1,))], 3)
    cost, none = off_diagonal(3, 0.5), np.zeros((3, 3))
    here = Window(held(np.array([0.5, 0.5, 0.0])), cost, [(ROWS, cost)], [], none, none, 0.0)
    found = here.losses(secret)
    assert len(found) == 2 and np.isinf(found[0]) and 0 < found[1] < 1.0
    alone = Window(held(np.array([1.0, 0.0, 0.0])), cost, [(ROWS, cost)], [], none, none, 0.0)
    assert np.isinf(alone.losses(secret)).all()
    for dear in (0.0, 300.0):
        much = off_diagonal(3, dear)
        large = Window(held(LAW), much, [(ROWS, much)], [], none, none, 0.0)
        assert np.isinf(large.losses(secret)).all()


CLASSED = np.array([[0.0, 0.0, 0.5], [0.0, 0.0, 0.5], [0.75, 0.75, 0.0]])


def test_classes_are_values_between_which_nothing_is_charged() -> None:
    classes = group_window._Classes(CLASSED)
    assert classes.cost.tolist() == [[0.0, 0.5], [0.75, 0.0]]
    assert classes.member.tolist() == [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("ends", [0.0, 0.25])
def test_the_law_and_cost_of_a_window_by_classes(ends: float) -> None:
    """Every sequence of values written out, then those that nobody tells apart put together."""
    full = off_diagonal(3, 0.5)
    beyond = off_diagonal(3, ends)
    after, before = ROWS, np.array([[0.1, 0.8, 0.1], [0.5, 0.2, 0.3], [0.25, 0.25, 0.5]])
    window = Window(
        held(LAW), CLASSED, [(after, CLASSED), (before, full)], [(before, CLASSED)],
        beyond, beyond, 0.0,
    )  # fmt: skip
    laws = np.array([[0.25, 0.75, 0.0], [0.0, 0.0, 1.0]])
    law, cost = window._joint(laws)
    assert law.sum(axis=1) == pytest.approx([1.0, 1.0])
    total = dict[Any, Floats]()
    paths = list(product(range(3), repeat=4))  # before, here, next, last
    apart = [(CLASSED + beyond), CLASSED, CLASSED, full + beyond]

    def key(path: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(int(classes_of(c)[v]) for c, v in zip(apart, path, strict=True))

    price = dict[Any, float]()
    for one in paths:
        weight = laws[:, one[1]] * before[one[1], one[0]]
        weight = weight * after[one[1], one[2]] * before[one[2], one[3]]
        total[key(one)] = total.get(key(one), np.zeros(2)) + weight
        for other in paths:
            price[key(one), key(other)] = sum(
                c[u, v] for c, u, v in zip(apart, one, other, strict=True)
            )
    assert law.shape[1] == len(total) == len(cost)
    found = sorted((round(a, 12), round(b, 12)) for a, b in law.T.tolist())
    assert found == sorted((round(a, 12), round(b, 12)) for a, b in total.values())
    ordered = sorted(total, key=lambda k: (k[1], k[0], k[2], k[3]))
    assert law == pytest.approx(np.array([total[k] for k in ordered]).T)
    assert cost == pytest.approx(np.array([[price[a, b] for b in ordered] for a in ordered]))


@pytest.mark.parametrize("forward", [True, False])
def test_without_entries_on_a_side_its_table_is_added_here(forward: bool) -> None:
    beyond, none = np.arange(9.0).reshape(3, 3) * off_diagonal(3) / 8, np.zeros((3, 3))
    steps = [(ROWS, off_diagonal(3, 0.5))]
    ahead, behind = ([], steps) if forward else (steps, [])
    ends = (beyond, none) if forward else (none, beyond)
    _, cost = Window(held(LAW), CLASSED, ahead, behind, ends[0], ends[1], 0.0)._joint(np.eye(3))
    own = cost[::3, ::3]  # the other entry counts faster
    assert own == pytest.approx(CLASSED + beyond)


def best_reach(cost: Floats, sides: Any, ends: tuple[bool, bool]) -> Callable[[int, int], int]:
    """How many states a window has, written out."""

    def states(*taken: int) -> int:
        total, whole = 1, False
        for side, n, end in zip(sides, taken, ends, strict=True):
            beyond = not (end and n == len(side))
            for k in range(n):
                full = beyond and k == n - 1
                total *= 3 if full else len(set(classes_of(side[k]).tolist()))
            whole = whole or (beyond and n == 0)
        return total * (3 if whole else len(set(classes_of(cost).tolist())))

    return states


@pytest.mark.parametrize("ends", list(product((True, False), repeat=2)))
@pytest.mark.parametrize("lengths", [(0, 0), (2, 2), (1, 6), (16, 5), (16, 16)])
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_a_window_has_as_many_entries_as_states_allow(
    ends: tuple[bool, bool], lengths: tuple[int, int], kind: int
) -> None:
    full, free = off_diagonal(3, 0.5), np.zeros((3, 3))
    pattern = [[full], [CLASSED], [CLASSED, free, full]][kind]
    sides = [[pattern[k % len(pattern)] for k in range(n)] for n in lengths]
    after, before = window_reach(pattern[0], sides[0], sides[1], ends)
    states = best_reach(pattern[0], sides, ends)
    assert states(after, before) <= 256 or (after, before) == (0, 0)
    for more in ((after + 1, before), (after, before + 1)):
        if more[0] <= lengths[0] and more[1] <= lengths[1]:
            assert states(*more) > 256
    assert 0 <= after <= lengths[0] and 0 <= before <= lengths[1]
    if lengths == (16, 16) and ends == (False, False):
        assert abs(after - before) <= 1  # as far on one side as on the other


def test_a_window_may_have_all_states_that_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    full = off_diagonal(3, 0.5)
    for most, taken in ((27, (1, 1)), (26, (1, 0)), (81, (2, 1)), (80, (1, 1))):
        monkeypatch.setattr(group_window, "STATES", most)
        assert window_reach(full, [full] * 4, [full] * 4, (False, False)) == taken


def test_windows_go_sixteen_entries_far_at_most() -> None:
    free, full = np.zeros((3, 3)), off_diagonal(3, 0.5)
    assert window_reach(full, [free] * 20, [free] * 20, (False, False)) == (16, 16)
    assert window_reach(full, [free] * 20, [], (False, True)) == (16, 0)


def test_a_group_loses_the_transport_between_its_laws_and_their_rounding() -> None:
    secret = SecretSides(SIDES, 3)
    table = np.array([[0.0, 0.5, 0.9], [0.4, 0.0, 0.7], [0.8, 0.6, 0.0]])
    plain = secret.losses(table, held(LAW))
    laws = [np.array([5 / 7, 2 / 7, 0.0]), np.array([0.0, 0.0, 1.0])]
    true = [
        loss_by_potentials(laws[0], laws[1], table),
        loss_by_potentials(laws[1], laws[0], table),
    ]
    losses = [plain.by_values[0, 2], plain.by_values[2, 0]]
    assert losses == pytest.approx(true, abs=1e-6)
    assert plain.value == max(losses) and plain.pair == int(np.argmax(losses))
    wider = secret.losses(table, held(LAW, 0.0078125))
    assert wider.value == pytest.approx(plain.value + 0.0078125, abs=1e-12)
    widest = secret.losses(table, held(LAW, 9.0))
    assert widest.by_values[0, 2] == 0.9 and widest.by_values[2, 1] == 0.8
    within = secret.losses(table, held(LAW), np.array([0.1, 9.0]))
    assert within.by_values[0, 2] == 0.1 and within.pair == 1
    assert within.by_values[2, 0] == losses[1]


def test_groups_that_cannot_happen_lose_nothing() -> None:
    secret = SecretSides([((0, 1), (2,)), ((0, 2), (1,))], 3)
    table = off_diagonal(3, 0.5)
    table[2] = table[:, 2] = -np.inf
    found = secret.losses(table, held(np.array([0.25, 0.75, 0.0])))
    assert found.pair == 1 and 0.4 < found.value <= 0.5
    assert np.isneginf(found.by_values[0, 2])
    none = secret.losses(np.full((3, 3), -np.inf), held(np.array([0.0, 0.0, 1.0])))
    assert none.pair == -1 and none.value == 0.0
    free = secret.losses(np.zeros((3, 3)), held(LAW))
    assert free.value == 0.0
    large = secret.losses(off_diagonal(3, 300.0), held(LAW))
    assert large.value == 300.0


def test_pairs_of_values_and_of_groups_are_told_apart() -> None:
    mixed: Any = [((0,), (1,)), ((0, 1), (2,)), ((1,), (0,)), ((2,), (0, 1)), ((0,), (1,))]
    secret = SecretSides(mixed, 3)
    assert secret.grouped and list(secret.groups) == [1, 3]
    assert secret.number(0, 1) == 0 and secret.number(1, 0) == 2
    assert not secret.all_values
    singles: Any = [((x,), (y,)) for x, y in product(range(3), repeat=2) if x != y]
    plain = SecretSides(singles, 3)
    assert plain.all_values and not plain.grouped
    assert not SecretSides(singles[:-1], 3).all_values
    assert secret.mask.tolist() == [
        [False, True, True],
        [True, False, True],
        [True, True, False],
    ]
    table = np.array([[0.0, 0.5, -np.inf], [0.75, 0.0, -np.inf], [-np.inf, -np.inf, 0.0]])
    found = secret.losses(table, held(np.array([0.5, 0.5, 0.0])))
    assert found.value == 0.75 and found.pair == 2
    with pytest.raises(InvalidWorld):
        pair_mask([], 3)


def test_an_infinite_loss_has_a_pair() -> None:
    secret = SecretSides([((0,), (1,)), ((1,), (0,))], 2)
    table = np.array([[0.0, np.inf], [0.5, 0.0]])
    assert secret.losses(table, held(np.array([0.5, 0.5]))).pair == 0
    nothing = secret.losses(np.full((2, 2), -np.inf), held(np.array([1.0, 0.0])))
    assert nothing.pair == -1 and nothing.value == 0.0
