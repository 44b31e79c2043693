"""Whether an answer is worth having, in words: one sentence for each case, as it is printed."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pytest

from takifugu.session.usefulness import (
    MAX_SEARCHED_LOSS,
    AnswerScales,
    GroupAccuracy,
    Remedy,
    Usefulness,
    candidates_above,
    judged,
    least_useful,
    most_noise,
    rows_factor,
)

pytestmark = pytest.mark.nightly

HERE = GroupAccuracy("useful", 2.0, 0.0, 100.0, 25.0, 100, {})
A = replace(HERE, group={"zone": "a", "floor": 1})


def useful(accuracy: GroupAccuracy = HERE, **changes: Any) -> Usefulness:
    given: dict[str, Any] = {"one": "a count", "many": "counts", "groups": 1, "alike": True}
    return Usefulness(accuracy, **(given | changes))


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (useful(), "useful: about ±2 on counts around 25"),
        (
            useful(guessed=True),
            "useful: about ±2 on counts around 25 (if labels were equally common)",
        ),
        (
            useful(replace(HERE, half_width=0.0)),
            "useful: off by less than one unit on counts around 25",
        ),
        (useful(many=""), "useful: about ±2 on a count between 0 and 100"),
        (
            useful(replace(HERE, low=-1.5, size=2.25), many=""),
            "useful: about ±2 on a count between -1.5 and 100",
        ),
        (
            useful(replace(HERE, half_width=100.0, verdict="mostly noise")),
            "mostly noise: about ±100 on a count between 0 and 100",
        ),
        (
            useful(replace(HERE, half_width=99.0, verdict="mostly noise")),
            "mostly noise: about ±99 on counts around 25",
        ),
        (
            useful(replace(HERE, half_width=50.0, verdict="rough")),
            "rough: about ±50 on counts around 25",
        ),
        (
            useful(replace(HERE, half_width=50.5, verdict="rough")),
            "rough: about ±50.5 on counts around 25: single numbers will mostly be noise",
        ),
        (
            useful(replace(HERE, half_width=30.0, size=10.0, verdict="rough")),
            "rough: about ±30 on counts around 10: single numbers will mostly be noise",
        ),
        (
            useful(replace(HERE, half_width=29.0, size=10.0, verdict="rough")),
            "rough: about ±29 on counts around 10",
        ),
        (useful(replace(HERE, size=1234567.0)), "useful: about ±2 on counts around 1,234,567"),
        (useful(replace(HERE, size=12.34567)), "useful: about ±2 on counts around 12.35"),
        (useful(replace(HERE, size=1e15)), "useful: about ±2 on counts around 1e+15"),
        (
            useful(replace(HERE, rows=1000), one="a rank"),
            "useful: a rank within ±2 of the requested one, among 1,000 rows",
        ),
        (useful(one="a lead"), "useful: leads of 2 are resolved, on counts around 25"),
        (
            useful(replace(HERE, half_width=100.0, verdict="mostly noise"), one="a lead"),
            "mostly noise: only leads of 100 are resolved, among 100 rows",
        ),
        (
            useful(replace(HERE, half_width=75.0, verdict="rough"), one="a lead"),
            "rough: leads of 75 are resolved, on counts around 25: places will mostly be left to"
            " chance",
        ),
        (useful(A, groups=1200), "useful: about ±2 on counts around 25 in each of 1,200 groups"),
        (
            useful(A, groups=1200, alike=False),
            "useful: about ±2 on counts around 25 in the smallest of 1,200 groups (zone a, floor 1,"
            " 100 rows)",
        ),
        (
            useful(replace(A, rows=1), groups=2, alike=False),
            "useful: about ±2 on counts around 25 in the smallest of 2 groups (zone a, floor 1, 1"
            " row)",
        ),
        (
            useful(A, groups=2, alike=False, one="a rank"),
            "useful: a rank within ±2 of the requested one, among 100 rows in the smallest of 2"
            " groups (zone a, floor 1)",
        ),
        (
            useful(A, groups=2, alike=False, one="a lead"),
            "useful: leads of 2 are resolved, on counts around 25 in the smallest of 2 groups (zone"
            " a, floor 1)",
        ),
        (
            useful(replace(A, half_width=75.0, verdict="rough"), groups=2, alike=False),
            "rough: about ±75 on counts around 25 in the smallest of 2 groups (zone a, floor 1, 100"
            " rows): single numbers will mostly be noise there",
        ),
        (
            useful(replace(A, half_width=75.0, verdict="rough"), groups=2),
            "rough: about ±75 on counts around 25 in each of 2 groups: single numbers will mostly"
            " be noise",
        ),
        (
            useful(A, groups=9, alike=False, worse=1, worst=replace(A, verdict="rough", rows=3)),
            "useful: about ±2 on counts around 25 in zone a, floor 1, 100 rows; rough in 1 smaller"
            " group, the smallest being zone a, floor 1, 3 rows",
        ),
        (
            useful(A, groups=9, alike=False, worse=1234, worst=replace(A, verdict="rough", rows=3)),
            "useful: about ±2 on counts around 25 in zone a, floor 1, 100 rows; rough in 1,234"
            " smaller groups, the smallest being zone a, floor 1, 3 rows",
        ),
    ],
)
def test_a_verdict_in_words(found: Usefulness, text: str) -> None:
    assert found.words == text
    remedy = Remedy(Decimal("0.5"), admitted=True, rows=2)
    assert replace(found, remedy=remedy).words == f"{text}; {remedy.words}"


@pytest.mark.parametrize(
    ("remedy", "text"),
    [
        (
            Remedy(None, admitted=False, rows=2),
            "needs twice as many rows: no ε makes it useful under this prior",
        ),
        (
            Remedy(None, admitted=False, rows=3),
            "needs 3 times as many rows: no ε makes it useful under this prior",
        ),
        (
            Remedy(Decimal("0.12345"), admitted=True, rows=1500),
            "needs ε ≥ 0.1235 or 1,500 times as many rows",
        ),
        (
            Remedy(Decimal(2), admitted=False, rows=2),
            "needs ε ≥ 2, more than the budget admits now, or twice as many rows",
        ),
    ],
)
def test_a_remedy_in_words(remedy: Remedy, text: str) -> None:
    assert remedy.words == text


def scales(rows: list[int], *, noise: float = 5.0, per_row: bool = False) -> AnswerScales:
    """Counts of two labels in groups of so many rows."""
    many: Any = np.array(rows)
    size: Any = many / 2
    return AnswerScales(
        one="a count",
        many="counts",
        rows=many,
        low=np.zeros(len(rows)),
        high=many.astype(float),
        size=size,
        noise=np.minimum(noise * size, many),
        error="interval",
        per_row=per_row,
        name=lambda group: {"group": group},
        guessed=True,
    )


def test_the_smallest_group_decides_and_says_so() -> None:
    found = judged(scales([40, 20, 40]), {"interval": 5.0})
    assert found.accuracy == GroupAccuracy("useful", 5.0, 0.0, 20.0, 10.0, 20, {"group": 1})
    assert (found.one, found.many, found.groups, found.alike) == ("a count", "counts", 3, False)
    assert found.guessed and found.worst is None and found.worse == 0 and found.remedy is None
    assert judged(scales([40, 40]), {"interval": 5.0}).alike
    assert judged(scales([40, 20]), {"interval": 10.0}).verdict == "rough"
    assert judged(scales([40, 20]), {"interval": 20.0}).verdict == "mostly noise"
    assert judged(scales([40, 20]), {"interval": 19.9}).verdict == "rough"


def test_small_groups_that_are_worse_are_counted() -> None:
    groups = scales([2, 400, 2, 300, 1])
    found = judged(groups, {"interval": 1.0})
    assert found.accuracy.rows == 300 and found.verdict == "useful" and found.guessed
    assert (
        found.worst is not None and found.worst.rows == 1 and found.worst.verdict == "mostly noise"
    )
    assert found.worse == 3  # 1.0 is the size of two of them
    rough = judged(groups, {"interval": 160.0})
    assert rough.verdict == "rough" and rough.worse == 3 and rough.worst is not None
    assert most_noise(groups) == 150.0
    shares = scales([10, 20], per_row=True)
    assert shares.half_widths.tolist() == [1.0, 0.5]
    assert judged(shares, {"interval": 4.0}).accuracy.half_width == 4.0
    assert most_noise(shares) == 5.0


@pytest.mark.parametrize(
    ("noise", "most", "times"),
    [
        (1.0, 1.0, 2),
        (0.5, 1.0, 1),
        (1.5, 1.0, 2),
        (8.5, 1.0, 9),
        (98.5, 1.0, 99),
        (99.5, 1.0, 100),
        (100.5, 1.0, 110),
        (120.0, 2.0, 61),
        (1999.0, 1.0, 2000),
        (2000.0, 1.0, 2100),
        (5.0, 0.0, 10**15),
        (inf, 1.0, 10**15),
    ],
)
def test_rows_are_multiplied_by_two_digits_rounded_up(
    noise: float, most: float, times: int
) -> None:
    assert rows_factor(noise, most) == times


@pytest.mark.parametrize("limit", [Fraction(3), Fraction(17, 5), Fraction(100), Fraction(8000)])
def test_the_least_that_is_useful_is_found_to_a_hundredth(limit: Fraction) -> None:
    tried: list[Fraction] = []

    def enough(amount: Fraction) -> Fraction | None:
        tried.append(amount)
        return amount if amount >= limit else None

    found = least_useful(Fraction(1), enough)
    assert found is not None and limit <= found <= limit * Fraction(103, 100)
    assert tried[0] == 2 and max(tried) <= MAX_SEARCHED_LOSS and len(tried) < 25


def test_prices_to_try_have_two_digits_and_go_up() -> None:
    listed = [Decimal(text) for text in ("0.13", "0.13", "0.14", "0.16", "0.25")]
    assert list(candidates_above(0.123)) == listed
    assert next(candidates_above(2.0)) == 2 and next(candidates_above(2.001)) == Decimal("2.1")
    assert list(candidates_above(0.0)) == list(candidates_above(inf)) == []
    assert list(candidates_above(float("nan"))) == []
