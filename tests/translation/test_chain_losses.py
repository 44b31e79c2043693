"""Chains of finite length: against the program over the written-out chain, and known values."""

import numpy as np
import pytest

from takifugu._core.numeric import Floats
from takifugu.errors import InvalidPrior, Malformed
from takifugu.priors import MarkovChain
from takifugu.translation import Translation, chain_losses, unbounded_losses
from tests.oracles import transport as oracle
from tests.raising import raises


def binary(p: float, q: float) -> Floats:
    return np.array([[p, 1 - p], [1 - q, q]])


@pytest.mark.parametrize(
    ("p", "q", "epsilon", "expected"),
    [
        (0.9, 0.9, 0.2, 0.97324),
        (0.9, 0.9, 1.0, 4.12131),
        (0.6, 0.8, 0.5, 1.15846),
        (0.1, 0.3, 1.0, 3.14587),
    ],
)
def test_mid_node_of_seven(p: float, q: float, epsilon: float, expected: float) -> None:
    losses = chain_losses(binary(p, q), np.full(7, epsilon))
    assert losses.at(3).max() == pytest.approx(expected, abs=6e-6)


@pytest.mark.nightly
@pytest.mark.parametrize("length", [2, 5, 8])
def test_two_states_are_exact(length: int) -> None:
    rng = np.random.default_rng(length)
    matrices = [rng.dirichlet([1, 1], 2) for _ in range(length - 1)]
    start, epsilon = rng.dirichlet([1, 1]), rng.uniform(0, 1, length) * (rng.random(length) < 0.8)
    losses = chain_losses(matrices, epsilon, start=start)
    for entry in range(length):
        for x, y in ((0, 1), (1, 0)):
            exact = oracle.written_out_chain_loss(matrices, start, epsilon, entry, x, y)
            assert exact - 1e-8 <= losses.at(entry)[x, y] <= exact + 1e-6


@pytest.mark.nightly
def test_three_states_are_bounded_closely() -> None:
    rng = np.random.default_rng(7)
    excess = []
    for _ in range(12):
        length = int(rng.integers(3, 6))
        matrices = [rng.dirichlet(np.ones(3), 3) for _ in range(length - 1)]
        start, epsilon = rng.dirichlet(np.ones(3)), np.full(length, rng.choice([0.2, 0.5, 1.0]))
        losses = chain_losses(matrices, epsilon, start=start)
        entry = length // 2
        exact = oracle.written_out_chain_loss(matrices, start, epsilon, entry, 0, 1)
        bounded = losses.at(entry)[0, 1]
        assert exact <= bounded + 1e-8
        excess.append(bounded / exact - 1)
    assert np.mean(excess) < 0.03
    assert max(excess) < 0.10


def test_zeros_in_rows_and_an_impossible_state() -> None:
    matrix = np.array([[0.5, 0.5, 0.0], [0.0, 0.4, 0.6], [0.7, 0.0, 0.3]])
    start, epsilon = np.array([1.0, 0.0, 0.0]), np.full(4, 0.5)
    losses = chain_losses(matrix, epsilon, start=start)
    assert losses.by_entry[0] == 0.0  # the first state is known to everybody
    assert np.isneginf(losses.at(1)[0, 2]) and np.isneginf(losses.at(1)[2, 1])
    for entry, x, y in ((1, 0, 1), (3, 0, 1), (3, 1, 2), (3, 2, 0)):
        exact = oracle.written_out_chain_loss([matrix] * 3, start, epsilon, entry, x, y)
        # with zeros the recursion itself is up to 21 % above: each pair meets its own worst h
        assert exact - 1e-8 <= losses.at(entry)[x, y] <= exact * 1.22


def test_an_entry_that_was_not_queried_still_leaks_through_the_others() -> None:
    matrix = binary(0.8, 0.7)
    nothing = chain_losses(matrix, np.zeros(5))
    assert nothing.loss < 1e-12
    around = chain_losses(matrix, [0.5, 0.5, 0.0, 0.5, 0.5])
    law = MarkovChain(matrix).stationary
    exact = max(
        oracle.written_out_chain_loss(
            [matrix] * 4, law, np.array([0.5, 0.5, 0, 0.5, 0.5]), 2, *pair
        )
        for pair in ((0, 1), (1, 0))
    )
    assert around.by_entry[2] == pytest.approx(exact, abs=1e-6)
    assert around.by_entry[2] > 0.2


def test_more_epsilon_anywhere_never_loses_less() -> None:
    rng = np.random.default_rng(11)
    matrix, epsilon = rng.dirichlet(np.ones(4), 4), rng.uniform(0, 0.6, 9)
    before = chain_losses(matrix, epsilon)
    for entry in range(9):
        after = chain_losses(matrix, epsilon + 0.2 * (np.arange(9) == entry))
        assert (after.by_entry >= before.by_entry - 1e-7).all()


@pytest.mark.nightly
def test_a_million_entries_are_not_walked_one_by_one() -> None:
    rng = np.random.default_rng(2)
    matrix = rng.dirichlet(np.ones(3), 3)
    epsilon = np.full(1_000_000, 0.1)
    epsilon[400_000:400_010] = 0.5
    long = chain_losses(matrix, epsilon, start=[0.2, 0.3, 0.5])
    assert len(long.forward) < 500 and len(long.backward) < 500
    quiet = chain_losses(matrix, np.full(200, 0.1), start=[0.2, 0.3, 0.5])
    assert long.by_entry[:50] == pytest.approx(quiet.by_entry[:50], rel=1e-5)
    assert 400_000 <= long.worst[0] < 400_010
    busy = chain_losses(matrix, epsilon[399_900:400_110])
    assert long.loss == pytest.approx(busy.loss, rel=1e-5)
    unbounded = unbounded_losses(matrix, 0.1).loss
    assert long.by_entry[200_000] == pytest.approx(unbounded, rel=1e-3)


@pytest.mark.nightly
def test_what_was_queried_once_fades_away_from_there() -> None:
    epsilon = np.zeros(300_000)
    epsilon[150_000] = 1.0
    fast = chain_losses(binary(0.9, 0.8), epsilon)
    near = chain_losses(binary(0.9, 0.8), epsilon[149_980:150_021])
    assert fast.by_entry[149_980:150_021] == pytest.approx(near.by_entry, abs=1e-6)
    assert fast.by_entry[0] < 1e-6 and fast.by_entry[-1] < 1e-6
    slow = chain_losses(binary(0.999, 0.999), epsilon)
    assert len(slow.forward) < 2000
    assert (np.diff(slow.by_entry[150_000:]) <= 1e-9).all()
    for away in (1, 50, 2000):  # the pair (0, 1) at a distance sees the row of a power
        power = np.linalg.matrix_power(binary(0.999, 0.999), away)
        exact = np.log((1 + np.expm1(1.0) * power[0, 0]) / (1 + np.expm1(1.0) * power[0, 1]))
        assert slow.by_entry[150_000 + away] >= exact - 1e-12
        assert away == 2000 or slow.by_entry[150_000 + away] == pytest.approx(exact, abs=1e-6)


def test_a_slow_chain_is_bounded_for_the_rest_of_its_stretch() -> None:
    slow = chain_losses(binary(0.995, 0.995), np.full(20_000, 0.004))
    assert len(slow.forward) < 200
    exact = Translation(MarkovChain(binary(0.995, 0.995), length=20_000)).to_pufferfish(0.004)
    unbounded = unbounded_losses(binary(0.995, 0.995), 0.004)
    assert exact * (1 - 1e-9) <= slow.loss <= unbounded.loss * 1.002


def test_a_chain_that_never_forgets_loses_every_entry() -> None:
    losses = chain_losses(np.eye(2), np.full(1000, 0.1), start=[0.5, 0.5])
    assert 100.0 <= losses.loss <= 104.0
    huge = chain_losses(np.eye(2), np.full(60, 20.0), start=[0.5, 0.5])
    assert huge.loss >= 1200.0  # beyond what e^cost can hold: bounded by the cost itself
    assert huge.loss <= 1200.0 * 1.01


def test_what_has_no_meaning_is_refused_in_one_line() -> None:
    with raises(InvalidPrior, field="transition", reason="recurrence"):
        chain_losses(np.eye(2), [0.1, 0.1])
    with raises(InvalidPrior, field="transitions", reason="count"):
        chain_losses([binary(0.5, 0.5)] * 3, [0.1, 0.1], start=[0.5, 0.5])
    with raises(InvalidPrior, field="start", reason="missing"):
        chain_losses([binary(0.5, 0.5), binary(0.6, 0.5)], [0.1] * 3)
    with raises(InvalidPrior, field="transition", reason="shape"):
        chain_losses([[0.5, 0.5]], [0.1, 0.1])
    with raises(Malformed, field="epsilon"):
        chain_losses(binary(0.5, 0.5), [0.1, -0.1])
    with raises(InvalidPrior, field="start", reason="shape"):
        chain_losses(binary(0.5, 0.5), [0.1, 0.1], start=[0.2, 0.3, 0.5])


def test_what_can_happen_may_come_back() -> None:
    """Two states and a third one in turn: after it the two are possible again, and secret."""
    matrix = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.3, 0.7, 0.0]])
    losses = chain_losses(matrix, np.full(6, 0.5), start=[0.4, 0.6, 0.0])
    assert losses.by_entry.tolist() == pytest.approx([0.5, 0.0] * 3, abs=1e-9)
    for entry in range(6):
        table = losses.at(entry)
        possible = np.array([True, True, False] if entry % 2 == 0 else [False, False, True])
        both = possible[:, None] & possible[None]
        assert np.isneginf(table[~both]).all() and (table[both] > -1e-12).all()


ROWS = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.25, 0.35, 0.4]])


@pytest.mark.nightly
@pytest.mark.parametrize("start", [None, [0.5, 0.0, 0.5]])
def test_the_worst_entry_and_pair_are_named(start: list[float] | None) -> None:
    losses = chain_losses(ROWS, [0.2, 0.5, 0.1, 0.9, 0.3], start=start)
    entry, x, y = losses.worst
    tables = [losses.at(i) for i in range(5)]
    assert tables[entry][x, y] == max(table.max() for table in tables) == losses.loss
    assert losses.by_entry.tolist() == [table.max() for table in tables]
    assert x != y and entry == 3


@pytest.mark.nightly
def test_one_matrix_in_a_list_one_state_and_none() -> None:
    rows = np.array([[0.7, 0.3], [0.2, 0.8]])
    listed = chain_losses([rows], [0.5, 0.25], start=[0.5, 0.5])
    alone = chain_losses(rows, [0.5, 0.25], start=[0.5, 0.5])
    assert listed.by_entry.tolist() == alone.by_entry.tolist() and len(listed.by_entry) == 2
    single = chain_losses([[1.0]], [0.5, 0.25])
    assert single.by_entry.tolist() == [0.0, 0.0] and single.worst == (0, 0, 0)
    with raises(InvalidPrior, field="transition"):
        chain_losses([], [0.5, 0.25])
