"""Likelihood-ratio tests of counts, against likelihoods written out and against simulation."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu._core.numeric import Floats, Integers
from takifugu.fitting.goodness import (
    GoodnessOfFit,
    independence_given,
    order_test,
    stationarity_test,
)
from tests.oracles import likelihood_ratio

FALSE_ALARM = 1e-6


def triples(paths: list[list[int]], states: int) -> Integers:
    counts = np.zeros((states,) * 3, dtype=np.int64)
    for path in paths:
        for t in range(len(path) - 2):
            counts[path[t], path[t + 1], path[t + 2]] += 1
    return counts


def walks(law: Floats, runs: int, length: int, rng: np.random.Generator) -> list[list[int]]:
    """Paths of a law ``[before last, last, next]``, or ``[last, next]``."""
    size = law.shape[-1]
    wide = np.broadcast_to(law, (size, size, size)) if law.ndim == 2 else law
    ends = np.cumsum(wide, axis=-1)
    found = []
    for _ in range(runs):
        path = list(rng.integers(0, size, 2))
        for point in rng.random(length - 2):
            row = ends[path[-2], path[-1]]
            path.append(min(int(np.searchsorted(row, point, side="right")), size - 1))
        found.append([int(x) for x in path])
    return found


@pytest.mark.nightly
@given(paths=st.lists(st.lists(st.integers(0, 3), max_size=9), max_size=12))
def test_the_statistic_is_twice_the_difference_of_likelihoods(paths: list[list[int]]) -> None:
    found = independence_given(triples(paths, 4))
    statistic, degrees = likelihood_ratio.orders(paths)
    assert found.statistic == pytest.approx(statistic, abs=1e-8)
    assert found.degrees == degrees
    assert 0 <= found.p <= 1 and 0 <= found.share <= 1 + 1e-9 and 0 <= found.small <= 1


CHAIN = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])


@pytest.mark.nightly
def test_rejections_of_what_is_true_are_as_rare_as_they_should_be() -> None:
    """At 5 % about one in twenty; Hoeffding bounds how far that may be off in R simulations."""
    rng, runs = np.random.default_rng(1), 250
    small = sum(
        independence_given(triples(walks(CHAIN, 20, 60, rng), 3)).p < 0.05 for _ in range(runs)
    )
    slack = sqrt(log(2 / FALSE_ALARM) / (2 * runs))
    assert small / runs < 0.05 + slack
    assert small > 0  # so that it is no test that never rejects


def test_order_two_is_found_and_named() -> None:
    rng = np.random.default_rng(2)
    law = np.array(np.broadcast_to(CHAIN, (3, 3, 3)))
    law[0, 1] = [0.6, 0.2, 0.2]  # after 0, 1 things are different
    found = order_test(triples(walks(law, 60, 200, rng), 3), ("N1", "N2", "N3"), 1)
    assert found.verdict == "does not fit"
    assert "N2" in found.sentence and "--order 2" in found.sentence
    assert found.panel is not None and found.panel.names[0] == "N2"
    plain = order_test(triples(walks(CHAIN, 60, 200, rng), 3), ("N1", "N2", "N3"), 1)
    assert plain.verdict in ("fits", "differs little")


def test_a_difference_that_hardly_matters_is_said_to_be_one() -> None:
    counts = (1e7 * np.broadcast_to(CHAIN, (3, 3, 3))).astype(np.int64)
    counts[0, 1] += np.array([40_000, -40_000, 0])
    found = order_test(counts, "abc", 1)
    assert found.verdict == "differs little" and found.numbers["p"] < 1e-12
    assert GoodnessOfFit((found,)).fits


def test_small_counts_are_said_to_be_small() -> None:
    rng = np.random.default_rng(3)
    found = order_test(triples(walks(CHAIN, 2, 12, rng), 3), "abc", 1)
    assert "fewer than 5" in found.sentence
    empty = order_test(np.zeros((3, 3, 3), dtype=np.int64), "abc", 1)
    assert empty.verdict == "not tested"


def test_transitions_that_change_are_found() -> None:
    rng = np.random.default_rng(4)
    other = CHAIN.copy()
    other[2] = [0.1, 0.1, 0.8]
    parts = []
    for law in (CHAIN, CHAIN, other):
        steps = np.zeros((3, 3), dtype=np.int64)
        for path in walks(law, 50, 100, rng):
            np.add.at(steps, (path[:-1], path[1:]), 1)
        parts.append(steps)
    found = stationarity_test(np.array(parts), ("Mon", "Tue", "Wed"), "abc")
    assert found.verdict == "does not fit" and "Wed" in found.sentence
    assert "after c" in found.sentence
    same = stationarity_test(np.array([parts[0], parts[1]]), ("Mon", "Tue"), "abc")
    assert same.verdict in ("fits", "differs little")
    document = GoodnessOfFit((found, same)).document()
    assert document["fits"] is False and len(document["tests"]) == 2
    one = stationarity_test(np.array(parts[:1]), ("Mon",), "abc")
    assert one.verdict == "not tested"
