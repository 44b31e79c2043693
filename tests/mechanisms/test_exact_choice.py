"""Choices have exact probabilities, and their work does not depend on the data."""

import sys
from collections.abc import Callable
from fractions import Fraction
from types import FrameType
from typing import Any

import numpy as np
import pytest

from takifugu.finite import FiniteMechanism
from takifugu.mechanisms import Exponential, FiniteChannel, PermuteAndFlip
from takifugu.mechanisms.opendp_measurements import pick, pick_by_gap
from takifugu.priors.universe import Tables

CANDIDATES = 301
FAR = 4000
WORLDS = {
    "one far ahead": [FAR, *[0] * (CANDIDATES - 1)],
    "all alike": [7] * CANDIDATES,
    "one far behind": [-FAR, *[0] * (CANDIDATES - 1)],
    "a staircase": list(range(CANDIDATES)),
}


def handed_to_opendp(release: Callable[[Any], Any], values: Any) -> list[Any]:
    """Everything that OpenDP's samplers are given while ``values`` are released, call by call."""
    given = []

    def watch(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name == "measurement_invoke":
            given.append(frame.f_locals["arg"])

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        release(values)
    finally:
        sys.setprofile(before)
    return given


@pytest.mark.parametrize(
    "mechanism",
    [
        PermuteAndFlip(40.0),
        PermuteAndFlip(40.0, 3),
        Exponential(40.0),
        Exponential(40.0, 3, currency="concentrated"),
    ],
    ids=lambda mechanism: f"{mechanism.kind}, k = {mechanism.k}",
)
def test_a_selection_draws_alike_whatever_the_scores_are(mechanism: Any) -> None:
    """OpenDP's samplers are given the same for all scores, so their time tells nothing."""
    draws = [handed_to_opendp(mechanism.release, scores) for scores in WORLDS.values()]
    assert draws[0]
    assert all(other == draws[0] for other in draws)


def test_a_channel_draws_alike_whatever_the_dataset_is() -> None:
    table = np.array([[1.0, 0.0, 0.0], [0.3, 0.3, 0.4]])
    channel = FiniteChannel(FiniteMechanism(Tables.bits(1), table, (0, 1, 2)))
    certain, uncertain = (handed_to_opendp(channel.release, (d,)) for d in (0, 1))
    assert certain == uncertain
    assert certain


def reading(*chunks: bytes) -> tuple[Callable[[int], bytes], list[bytes]]:
    """Random bytes that are known: a reader of ``chunks``, and those that it has not read yet."""
    left = list(chunks)

    def read(_: int) -> bytes:
        return left.pop(0)

    return read, left


@pytest.mark.parametrize("weights", [[1], [0, 3], [3, 1, 12], [1, 2], [1, 1, 1], [5, 0, 2, 4]])
def test_every_part_of_the_unit_interval_has_its_index(weights: list[int]) -> None:
    """Feed all of the first two bytes, each once: every index has its share of them."""
    hits = [0] * len(weights)
    for start in range(2**16):
        read, _ = reading(start.to_bytes(2) + b"\x09" * 14)
        hits[pick(weights, read)] += 1
    for number, weight in zip(hits, weights, strict=True):
        assert abs(number - Fraction(2**16 * weight, sum(weights))) <= 1


def test_a_choice_at_the_edge_of_two_parts_reads_on() -> None:
    """One of three: the real 1/3 = .5555…₁₆ is decided by the first digit that is another one."""
    for last, index in ((0x54, 0), (0x56, 1)):
        read, left = reading(b"\x55" * 16, b"\x55" * 15 + bytes([last]))
        assert pick([1, 1, 1], read) == index
        assert not left


@pytest.mark.parametrize("scale", [0.3, 40.0, 1e6])
def test_a_choice_by_gap_is_that_of_weights_with_many_digits(scale: float) -> None:
    """The real is moved over the unit interval; the index is the one that 80 digits give."""
    from mpmath import mp, mpf

    gaps = np.array([3, 0, 0, 50, 1, 700, 2], dtype=np.uint64)
    with mp.workdps(80):
        weights = [mp.exp(-mpf(int(gap)) / mpf(scale)) for gap in gaps]
        ends = [sum(weights[: i + 1]) / sum(weights) for i in range(len(weights))]
        for start in range(0, 2**16, 97):
            real = mpf(start) / 2**16
            truth = next(i for i, end in enumerate(ends) if real < end)
            read, _ = reading(start.to_bytes(2) + bytes(14), bytes(16))
            assert pick_by_gap(gaps, scale, read) == truth


def test_a_choice_by_gap_at_the_edge_reads_on_and_is_exact() -> None:
    """Two alike: just below a half is the first, a half and above is the second."""
    alike = np.zeros(2, dtype=np.uint64)
    for first, second, index in ((b"\x7f", b"\xff", 0), (b"\x80", b"\x00", 1)):
        read, left = reading(first + second * 15, b"\x40" * 16)
        assert pick_by_gap(alike, 2.0, read) == index
        assert not left


def test_scores_at_both_ends_of_their_range_are_told_apart() -> None:
    for mechanism in (PermuteAndFlip(2.0**50), Exponential(1e-3)):
        assert mechanism.release([2**62, -(2**62)]) == 0
