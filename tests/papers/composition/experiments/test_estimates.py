"""Intervals keep their 95 % where shares are near 0 and 1, and are Student's where they are not."""

import numpy as np
import pytest

from takifugu.errors import Malformed
from takifugu.papers.composition.experiments.metrics import difference, estimate, interval, known
from tests.oracles import rankings as oracle
from tests.raising import raises

DRAWS = 120


def halves(draws: int) -> dict[int, float]:
    """The half-width after so many hits in one group."""
    return {
        hits: estimate((np.arange(draws) < hits).astype(float)[:, None], least=1.0).half
        for hits in range(draws + 1)
    }


def test_an_interval_holds_the_true_share_as_often_as_it_says() -> None:
    """Exact, by the binomial law: no share from 0 to 1 is missed more often than 1 time in 20."""
    widths = halves(DRAWS)
    probabilities = np.concatenate([np.geomspace(1e-5, 0.01, 40), np.linspace(0.01, 0.5, 99)])
    held = [oracle.coverage(DRAWS, p, widths) for p in (*probabilities, *(1 - probabilities))]
    assert min(held) >= 0.95
    assert np.mean(held) < 0.995  # and it is not just wide


def test_students_interval_alone_would_not() -> None:
    values = {hits: (np.arange(DRAWS) < hits).astype(float) for hits in range(DRAWS + 1)}
    student = {hits: 1.98 * v.std(ddof=1) / np.sqrt(DRAWS) for hits, v in values.items()}
    assert oracle.coverage(DRAWS, 0.999, student) < 0.15


def test_nothing_wrong_in_n_draws_leaves_a_little_more_than_the_rule_of_three() -> None:
    found = estimate(np.ones((200, 50)), least=1.0)
    assert found.mean == 1.0
    assert 3.69 / 10_000 < found.half < 3.92 / 10_000


def test_where_much_varies_it_is_students_interval() -> None:
    values = np.random.default_rng(5).random((400, 30))
    found = estimate(values, least=1.0)
    student = 1.9659 * values.mean(axis=1).std(ddof=1) / 20
    assert found.mean == pytest.approx(values.mean())
    assert student < found.half < student * 1.02 + 4 / values.size


def test_what_differs_between_groups_but_not_between_draws_does_not_widen_it() -> None:
    values = np.tile([0.0, 1.0, 0.5], (100, 1))
    assert estimate(values, least=0.1).half == pytest.approx(estimate(0 * values, least=0.1).half)
    assert estimate(values, least=0.0).half == 0.0  # nothing can vary


def test_the_largest_change_that_was_seen_counts_if_it_is_more_than_the_least() -> None:
    values = np.zeros((100, 10))
    values[0, 0] = 1.0
    assert estimate(values, least=0.01).half == pytest.approx(estimate(values, least=1.0).half)


def test_intervals_that_hold_together_are_wider_as_bonferroni_says() -> None:
    values = np.random.default_rng(6).random((200, 30))
    found = difference(values, least=0.0)
    assert interval(found) == estimate(values, least=0.0)
    error = values.mean(axis=1).std(ddof=1) / np.sqrt(200)
    assert found.error == pytest.approx(error) and found.repetitions == 200
    # the quantiles of Student's law with 199 degrees of freedom at 1 - 0.025/n
    for together, t in ((1, 1.97196), (12, 2.89877), (72, 3.44581), (288, 3.82704)):
        step = np.ptp(values, axis=0).max() / values.size
        half = t * t * step / 2 + t * np.sqrt(error**2 + t * t * step * step / 4)
        assert interval(found, together=together).half == pytest.approx(half, rel=1e-5)
    wider = [interval(found, together=n).half for n in (1, 2, 72, 10_000)]
    assert wider == sorted(wider) and len(set(wider)) == 4
    with raises(Malformed, field="together"):
        interval(found, together=0)


def test_a_deterministic_answer_is_known() -> None:
    assert known(np.array([[0.0, 1.0]])).half == 0.0
    assert known(np.array([[0.0, 1.0]])).mean == 0.5


@pytest.mark.parametrize(
    ("values", "least"), [(np.ones(4), 1.0), (np.ones((1, 4)), 1.0), (np.ones((3, 4)), np.nan)]
)
def test_bad_input_is_one_line(values: np.ndarray, least: float) -> None:
    with raises(Malformed, field="values"):
        estimate(values, least=least)
