"""Counts drawn without rows have the law of counts of rows."""

from collections import Counter
from itertools import pairwise, product
from math import prod
from pathlib import Path

import duckdb
import numpy as np
import pytest
from scipy.stats import chi2

from takifugu.errors import InvalidWorld
from takifugu.synthetic import write_check_ins
from takifugu.synthetic.check_in_counts import check_rows, draw_check_in_counts
from takifugu.synthetic.counted_walks import GuidedLaws, walk_and_count
from tests.raising import raises
from tests.synthetic.transition_counts import FALSE_ALARM, Floats, Integers

START = np.array([[0.5, 0.3, 0.2], [0.1, 0.0, 0.9]])
MOVES = np.array(
    [
        [[0.5, 0.25, 0.25], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]],
        [[0.2, 0.3, 0.5], [1 / 3, 1 / 3, 1 / 3], [0.01, 0.98, 0.01]],
    ]
)


def counted(
    group: list[int], before: list[int], after: list[int], rng: np.random.Generator, moves: Floats
) -> tuple[Integers, Integers, Integers]:
    """Steps, states before and states after of the loop that is tested."""
    first, following = GuidedLaws(START), GuidedLaws(moves)
    steps, seen, released = (np.zeros(shape, np.int64) for shape in ((3, 3), (3,), (2, 3)))
    walkers = [np.array(given, dtype=np.int64) for given in (group, before, after)]
    walk_and_count(
        first.ends,
        first.begins,
        following.ends,
        following.begins,
        walkers[0],
        walkers[1],
        walkers[2],
        rng,
        steps,
        seen,
        released,
    )
    return steps, seen, released


def drawn(law: Floats, u: float) -> int:
    """The first state whose cumulative probability exceeds u."""
    total = 0.0
    for state, probability in enumerate(law.tolist()):
        total += probability
        if total > u:
            return state
    return len(law) - 1


def test_the_loop_counts_what_a_plain_walk_with_the_same_numbers_visits() -> None:
    group, before, after = [0, 1, 1, 0, 1], [40, 0, 700, 1, 0], [3, 60, 0, 0, 1]
    steps, seen, released = counted(group, before, after, np.random.default_rng(7), MOVES)
    rng = np.random.default_rng(7)
    expected = np.zeros((3, 3), int), np.zeros(3, int), np.zeros((2, 3), int)
    for home, first, then in zip(group, before, after, strict=True):
        path: list[int] = []
        for place in range(first + then):
            law = START[home] if place == 0 else MOVES[home, path[-1]]
            path.append(drawn(law, rng.random()))
        for here, there in pairwise(path[:first]):
            expected[0][here, there] += 1
        for state in path[:first]:
            expected[1][state] += 1
        for state in path[first:]:
            expected[2][home, state] += 1
    for ours, theirs in zip((steps, seen, released), expected, strict=True):
        assert (ours == theirs).all()


def outcomes(moves: Floats) -> dict[tuple[int, ...], float]:
    """Every outcome of two walkers, 2 + 1 and 1 + 2 states, with its probability; enumerated."""
    law: Counter[tuple[int, ...]] = Counter()
    for one, other in product(product(range(3), repeat=3), repeat=2):
        probability = prod(
            START[home, path[0]] * moves[home, path[0], path[1]] * moves[home, path[1], path[2]]
            for home, path in ((0, one), (1, other))
        )
        step = 3 * one[0] + one[1]
        fitted = np.bincount([one[0], one[1], other[0]], minlength=3)
        after = np.bincount([3 * 0 + one[2], 3 + other[1], 3 + other[2]], minlength=6)
        law[(step, *fitted.tolist(), *after.tolist())] += probability
    return {outcome: p for outcome, p in law.items() if p > 0}


def p_value(seen: Counter[tuple[int, ...]], law: dict[tuple[int, ...], float]) -> float:
    """Pearson's chi-square; outcomes expected fewer than 20 times are taken together."""
    draws = seen.total()
    if any(outcome not in law for outcome in seen):
        return 0.0
    expected = {outcome: draws * p for outcome, p in law.items()}
    common = [outcome for outcome, count in expected.items() if count >= 20]
    rare = [outcome for outcome in law if outcome not in set(common)]
    pairs = [(seen[outcome], expected[outcome]) for outcome in common]
    pairs.append((sum(seen[o] for o in rare), sum(expected[o] for o in rare)))
    statistic = sum((count - mean) ** 2 / mean for count, mean in pairs if mean > 0)
    return float(chi2.sf(statistic, len(pairs) - 1))


@pytest.mark.nightly
@pytest.mark.statistical
def test_the_joint_law_of_the_counts_is_what_enumeration_finds() -> None:
    rng = np.random.default_rng(11)
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(20_000):
        steps, fitted, after = counted([0, 1], [2, 1], [1, 2], rng, MOVES)
        outcome = (int(steps.argmax()), *fitted.tolist(), *after.ravel().tolist())
        seen[outcome] += 1
    assert p_value(seen, outcomes(MOVES)) > FALSE_ALARM
    forgetful = np.broadcast_to(START[:, None, :], MOVES.shape)
    tilted = 0.9 * MOVES + 0.1 / 3
    for wrong in (forgetful, tilted):  # both would be caught
        assert p_value(seen, outcomes(wrong)) < FALSE_ALARM


def test_the_users_are_those_of_the_rows(tmp_path: Path) -> None:
    written = write_check_ins(tmp_path, rows=20_000, rng=np.random.default_rng(3))
    found = draw_check_in_counts(rows=20_000, rng=np.random.default_rng(3))
    with duckdb.connect() as connection:
        query = 'SELECT count(DISTINCT "user") FROM read_parquet(?)'
        path = str(written.with_suffix(".parquet"))
        assert connection.execute(query, [path]).fetchall() == [(found.users,)]
    assert found.fitted.sum() + found.released.sum() == 20_000
    assert found.steps.sum() == found.fitted.sum() - found.users_fitted
    assert found.users_fitted <= found.users and found.longest >= 1


@pytest.mark.parametrize("rows", [9_999, 1_000_000_001, 0, -1, 2e4, True, "many", None])
def test_other_numbers_of_rows_are_refused(rows: object) -> None:
    with raises(InvalidWorld, field="rows"):
        check_rows(rows)
    with raises(InvalidWorld, field="rows"):
        draw_check_in_counts(rows=rows, rng=np.random.default_rng(0))  # type: ignore[arg-type]
