"""Bounds stay as tight as they were, and sound: answers that are kept, beside kept truths.

An oracle finds a bound that is too small. It does not find one that became looser: a search that
ends early, a worse start, a method that is no longer asked. Here every answer is compared with
what it was, and with what an oracle said of the truth when `kept_bounds.json` was made; a few
truths (all with ``DEEP=1``) are computed again. `python -m tests.extremes.kept_bounds` renews it.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from tests.extremes.kept_answers import Answer
from tests.extremes.kept_bounds import NAMES, Kept, read, same_truth, truths, unsound, worse
from tests.extremes.kept_questions import FURTHER, OWN, QUESTIONS, asked_of

ALL = read()
GROUP = 4  # questions in one test
AGAIN = len(ALL) if os.environ.get("DEEP") else 12


def _groups() -> Iterator[tuple[str, list[Kept]]]:
    for name in NAMES:
        for question in asked_of(name):
            listed = [one for one in ALL if (one.family, one.question) == (name, question)]
            for start in range(0, len(listed), GROUP):
                yield f"{name}: {question} {start // GROUP}", listed[start : start + GROUP]


GROUPS = dict(_groups())


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(group, marks=[pytest.mark.nightly] * (not group.endswith(" 0")))
        for group in GROUPS
    ],
)
def test_answers_are_as_tight_as_they_were(group: str) -> None:
    for kept in GROUPS[group]:
        found = kept.now()
        assert found
        assert not list(kept.faults(found)), kept.instance


def test_truths_are_what_the_oracles_say() -> None:
    own = [one for one in ALL if one.truths]
    rng = np.random.default_rng(7)
    for k in rng.permutation(len(own))[:AGAIN].tolist():
        found = truths(own[k])
        for claim, kept in own[k].truths.items():
            assert same_truth(kept, found[claim]), (own[k].name, claim)


def test_truths_that_differ_are_told_apart() -> None:
    assert same_truth(("1.5", "1.6"), ("1.6", "inf"))
    assert not same_truth(("1.5", "1.6"), ("1.6000001", "inf"))
    assert not same_truth(("inf", "inf"), ("1.6", "1.7"))


def test_every_family_is_kept_with_truths() -> None:
    with_truths = {one.family for one in ALL if one.truths}
    assert with_truths == set(NAMES)
    assert {one.question for one in ALL} == {OWN, FURTHER, *QUESTIONS}


LOSS = Answer("loss", 2.0, 1.9, False, method="transport")
KEPT = {"upper": 2.0, "lower": 1.9, "exact": False, "method": "transport"}


def test_the_same_is_no_fault() -> None:
    assert not list(worse(LOSS, KEPT, certain=False))
    assert not list(unsound(LOSS, ("1.95", "1.95")))


@pytest.mark.parametrize(
    "changed",
    [
        replace(LOSS, upper=2.0 * (1 + 1e-8)),
        replace(LOSS, upper=inf),
        replace(LOSS, upper=None),
        replace(LOSS, lower=1.9 * (1 - 1e-8)),
        replace(LOSS, method="curve"),
    ],
)
def test_what_is_looser_is_found(changed: Answer) -> None:
    assert list(worse(changed, KEPT, certain=True))


def test_what_is_tighter_is_found_only_without_a_truth() -> None:
    changed = replace(LOSS, upper=1.97, lower=1.93)
    assert not list(worse(changed, KEPT, certain=True))
    assert len(list(worse(changed, KEPT, certain=False))) == 2


def test_an_allowance_stays() -> None:
    kept = {"allowed": 0.5}
    assert not list(worse(Answer("a", allowed=0.5), kept, certain=True))
    assert list(worse(Answer("a", allowed=0.5 * (1 - 1e-5)), kept, certain=True))
    assert list(worse(Answer("a", allowed=0.5 * (1 + 1e-8)), kept, certain=True))


def test_exact_stays_exact_and_a_pair_binds() -> None:
    assert list(worse(LOSS, {**KEPT, "exact": True}, certain=True))
    assert list(worse(LOSS, {**KEPT, "binding": ["entry", "entry 3"]}, certain=True))


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        (replace(LOSS, upper=1.95), ("1.9500000000000001", "1.96")),
        (replace(LOSS, lower=1.9), ("1.89", "1.8999999999")),
        (replace(LOSS, exact=True), ("1.9", "1.9")),
        (LOSS, ("+inf", "+inf")),
    ],
)
def test_what_the_truth_contradicts_is_found(answer: Answer, truth: tuple[str, str]) -> None:
    assert len(list(unsound(answer, truth))) == 1
