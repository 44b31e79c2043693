"""Bounds stay as tight as they were, and sound: answers that are kept, beside kept truths.

An oracle finds a bound that is too small. It does not find one that became looser: a search that
ends early, a worse start, a method that is no longer asked. Here every answer is compared with
what it was, and with what an oracle said of the truth when `kept_bounds.json.gz` was made. One
prior in thirty is asked each time, all of them at night.
`python -m tests.extremes.kept_bounds` renews the file.
"""

from math import inf
from pathlib import Path
from typing import Any

import pytest

from tests.extremes.kept_bounds import (
    EVERY,
    Answer,
    Kept,
    by_family,
    read,
    secrets_document,
    secrets_of,
    worse,
    write,
)

FAMILIES = by_family(read())
KEPT: Answer = {"upper": 2.0, "lower": 1.9, "exact": False, "transport": 2.1, "curve": 3.0}
ALL = {"loss", "cost", "costs", "allowed", "factor", "total", "curve", "composed", "approximate"}
ALL |= {"concentrated", "levelled", "advised", "table", "linear"}


def faults(listed: list[Kept]) -> list[str]:
    """What is worse than it was, of some priors."""
    return [fault for one in listed for fault in one.faults()]


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_as_tight_as_they_were(family: str) -> None:
    assert not faults(FAMILIES[family][::EVERY])


@pytest.mark.nightly
@pytest.mark.parametrize("family", FAMILIES)
def test_all_answers_are_as_tight_as_they_were(family: str) -> None:
    rest = [one for k, one in enumerate(FAMILIES[family]) if k % EVERY]
    assert not faults(rest)


def test_everything_is_asked_and_truths_are_known() -> None:
    listed = [one for family in FAMILIES.values() for one in family]
    assert {ask[0] for one in listed for ask, _ in one.asked} == ALL
    assert sum("truth" in answer for one in listed for _, answer in one.asked) > 500
    priors = {str(prior["kind"]) for one in listed for prior in _listed(one.prior)}
    assert len(priors) == 11
    assert {one.over for one in listed} == {None, "row", "sequence", "household"}
    assert any(one.off for one in listed)


def _listed(prior: Any) -> list[Any]:
    return prior if isinstance(prior, list) else [prior]


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    some = FAMILIES["joint columns"][:3]
    write(some, tmp_path / "some.gz")
    write(read(tmp_path / "some.gz"), tmp_path / "again.gz")
    assert (tmp_path / "some.gz").read_bytes() == (tmp_path / "again.gz").read_bytes()
    kept = [secrets_of(one.secrets) for one in some if one.over is None]
    assert all(secrets_of(secrets_document(one)) == one for one in kept)


@pytest.mark.parametrize(
    "now",
    [
        KEPT,
        {**KEPT, "upper": 1.97, "lower": 1.93, "transport": 1.97, "exact": True},
        {**KEPT, "upper": 2.0 * (1 + 1e-13), "lower": 1.9 * (1 - 1e-7), "more": 9.0},
    ],
)
def test_the_same_or_tighter_is_no_fault(now: Answer) -> None:
    assert not list(worse({**KEPT, "truth": [1.95, 1.97]}, now))


@pytest.mark.parametrize(
    "changed",
    [
        {"upper": 2.0 * (1 + 1e-11)},
        {"upper": inf},
        {"upper": None},
        {"lower": 1.9 * (1 - 1e-5)},
        {"transport": 2.2},
        {"curve": None},
    ],
)
def test_what_is_looser_is_found(changed: Answer) -> None:
    assert len(list(worse(KEPT, {**KEPT, **changed}))) == 1


def test_an_allowance_may_grow_and_not_shrink() -> None:
    assert not list(worse({"allowed": 0.5}, {"allowed": 0.6}))
    assert not list(worse({"allowed": 0.5}, {"allowed": 0.5 * (1 - 1e-6)}))
    assert list(worse({"allowed": 0.5}, {"allowed": 0.5 * (1 - 1e-5)}))
    assert list(worse({"exact": True}, {"exact": False}))


@pytest.mark.parametrize(
    ("now", "truth"),
    [
        ({"upper": 1.95}, [1.9500001, 1.96]),
        ({"lower": 1.9}, [1.8, 1.89]),
        ({"exact": True}, [1.9, 1.9]),
    ],
)
def test_what_the_truth_contradicts_is_found(now: Answer, truth: list[float]) -> None:
    found = {"upper": 2.0, "lower": 1.0, "exact": False, **now}
    assert len(list(worse({"truth": truth}, found))) == 1
