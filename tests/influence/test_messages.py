"""Messages: how rows are scaled and counted, and how they lie in flat arrays."""

import numpy as np
import pytest

from takifugu.errors import TooLarge
from takifugu.influence.network import cones
from takifugu.influence.network.messages import DEEPEST, Message, Messages, _room, message
from tests.raising import raises

pytestmark = pytest.mark.nightly


def test_a_message_counts_its_roundings_and_its_exponents() -> None:
    table = np.array([[1.0, 1024.0], [8.0, 4.0]])
    made = message(table, roundings=5, least=-3)
    assert made.rows == pytest.approx(np.array([[2.0**-5, 2.0**5], [2**0.5, 2**-0.5]]), rel=1e-15)
    assert made.roundings == 5 + 1 and made.depth == 10 // 2 + 2
    more = message(np.array([[1.0, 4.0], [1.0, 2.0], [8.0, 1.0]]), roundings=4, least=-3)
    assert len(more.rows) == 2 and more.roundings == 4 + 2 + 1 and more.depth == 3 // 2 + 2
    zeros = message(np.array([[0.0, 0.0], [0.0, 6.0], [32.0, 2.0]]), roundings=1, least=0)
    assert zeros.rows == pytest.approx(np.array([[0.0, 1.0], [4.0, 0.25]]), rel=1e-15)
    assert zeros.depth == 4 // 2 + 2


@pytest.mark.parametrize("shift", [-700, -300, 300, 700])
def test_the_scale_of_a_table_does_not_matter(shift: int) -> None:
    rng = np.random.default_rng(1)
    table = 2.0 ** rng.uniform(-200, 0, (12, 3))
    plain = message(table, roundings=2, least=-200)
    moved = message(np.ldexp(table, shift), roundings=2, least=-900)
    assert moved.rows == pytest.approx(plain.rows, rel=1e-13)
    assert (moved.roundings, moved.depth) == (plain.roundings, plain.depth)


def test_a_message_of_one_cell() -> None:
    made = message(np.array([[0.25]]), roundings=3, least=-2)
    assert made.rows.tolist() == [[1.0]] and (made.roundings, made.depth) == (4, 2)


def test_messages_of_nothing() -> None:
    for table in (np.zeros((0, 3)), np.zeros((4, 0))):
        made = message(table, roundings=7, least=DEEPEST)
        assert made.rows is table and (made.roundings, made.depth) == (7, 0)
    made = message(np.zeros((4, 2)), roundings=7, least=DEEPEST)
    assert made.rows.shape == (0, 2) and (made.roundings, made.depth) == (7, 0)
    with raises(TooLarge):
        message(np.zeros((0, 3)), roundings=7, least=DEEPEST - 1)


def test_many_messages_lie_one_after_another() -> None:
    """More than there is room for to begin with, of cells, of limits and of messages."""
    rng = np.random.default_rng(2)
    store, made = Messages(), []
    for k in range(150):
        rows = rng.uniform(0.1, 1, (1 + k % 4, 2 + k % 7))
        made.append(Message(rows, 3 * k, 2 * k + 1))
        assert store.keep(made[k]) == k
    assert store.roundings == [3 * k for k in range(150)]
    assert store.depth == [2 * k + 1 for k in range(150)]
    cells, start, count, width, limits, edge = store.arrays()
    used = bounded = 0
    for k, one in enumerate(made):
        assert (start[k], count[k], width[k]) == (used, *one.rows.shape)
        assert edge[k].tolist() == [bounded, bounded + one.rows.shape[1]]
        assert cells[used : used + one.rows.size].tolist() == one.rows.ravel().tolist()
        ends = [*one.rows.max(axis=0), *one.rows.min(axis=0)]
        assert limits[bounded : bounded + len(ends)].tolist() == ends
        used, bounded = used + one.rows.size, bounded + len(ends)
    assert used > 1024 and bounded > 1024
    assert store.several(np.array([0, 1, 4, 7])).tolist() == [False, True, False, True]


def test_arrays_grow_when_they_are_full() -> None:
    array = np.arange(4.0)
    assert _room(array, 4) is array and _room(array, 3) is array
    for needed, room in ((5, 8), (8, 8), (11, 11)):
        longer = _room(array, needed)
        assert len(longer) == room and longer[:4].tolist() == [0.0, 1.0, 2.0, 3.0]


# ---- cones


def test_the_slack_is_counted_as_roundings() -> None:
    assert cones.SLACK == 2.0**-40 and cones.COST == 2**13  # of 2⁻⁵³ each


@pytest.mark.parametrize(("off", "kept"), [(0.0, 3), (0.6, 3), (-0.6, 3), (0.7, 15), (-0.7, 15)])
def test_a_ray_is_left_out_only_if_its_shares_add_up_to_it(
    off: float, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To two thirds of the slack: shares that are found too large or too small prove nothing."""
    corners = np.array([[0.2, 1.0, 1.0], [1.0, 0.2, 1.0], [1.0, 1.0, 0.2]])
    shares = np.random.default_rng(4).dirichlet(np.ones(3), 12)
    rows = np.concatenate([corners, shares @ corners])
    inverse = np.linalg.inv
    monkeypatch.setattr(np.linalg, "inv", lambda one: inverse(one) * (1 + off * cones.SLACK))
    assert len(cones.extremes(rows)[0]) == kept


def test_rays_with_zeros_span_the_rest() -> None:
    shares = np.random.default_rng(4).dirichlet(np.ones(3), 12)
    found, cost = cones.extremes(np.concatenate([np.eye(3), shares]))
    assert found.tolist() == [0, 1, 2] and cost == cones.COST


def test_corners_that_cannot_be_told_apart_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    corners = np.array([[0.2, 1.0, 1.0], [1.0, 0.2, 1.0], [1.0, 1.0, 0.2]])
    shares = np.random.default_rng(4).dirichlet(np.ones(3), 12)
    rows = np.concatenate([corners, shares @ corners])

    def singular(_: object) -> None:
        raise np.linalg.LinAlgError

    monkeypatch.setattr(np.linalg, "inv", singular)
    assert cones.extremes(rows)[0].tolist() == list(range(15))


def test_rays_are_told_apart_bit_by_bit() -> None:
    rows = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0 + 5e-16]])
    assert cones._first_of_each(rows).tolist() == [0, 1, 3]
    assert cones._first_of_each(np.asfortranarray(rows)).tolist() == [0, 1, 3]
