"""Attacks are checked by multiplying fractions, output after output."""

from collections.abc import Sequence
from fractions import Fraction
from math import inf, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.finite import leakage
from takifugu.finite.nfc import (
    Attack,
    MechanismOutput,
    necessary_condition,
    output_table,
    search_attack,
)
from tests.finite.nfc_worlds import Problem, apart, problem, problems, twins
from tests.oracles import nfc as oracle


def _sides(given_: Problem, *, turned: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return (given_.right, given_.left) if turned else (given_.left, given_.right)


def _exact(given_: Problem, attack: Attack) -> float:
    """What the attack leaks, from the oracle alone."""
    answers = output_table(given_.world, given_.mechanisms).labels
    sequence = [answers.index(a) for a, count in attack.counts for _ in range(count)]
    left, right = _sides(given_, turned=attack.pair != given_.world.pairs[0])
    odds = oracle.composed_odds(given_.table, given_.prior, left, right, sequence)
    return inf if odds is None else _log(odds)


def _log(odds: Fraction) -> float:
    return log(odds.numerator) - log(odds.denominator)


def _leaks_more_than_claimed(given_: Problem, attack: Attack, claims: Sequence[float]) -> None:
    exact = _exact(given_, attack)
    claimed = sum(count * Fraction(claims[a.mechanism]) for a, count in attack.counts)
    assert attack.runs == sum(count for _, count in attack.counts)
    assert attack.claimed == pytest.approx(float(claimed)) and attack.claimed >= claimed
    assert attack.leakage > attack.claimed
    if exact == inf:
        assert attack.leakage == inf
    else:
        assert exact > claimed
        assert attack.leakage == pytest.approx(exact, abs=1e-9)
        assert attack.leakage <= exact + 1e-12 * (1 + abs(exact))


@given(given_=problems(zeros=True), share=st.floats(0.1, 0.9))
@settings(max_examples=30)
def test_claims_below_the_condition_are_beaten(given_: Problem, share: float) -> None:
    condition = necessary_condition(given_.world, given_.mechanisms)
    if condition.lower < 0.05:
        return
    claim = share * min(condition.lower, 5.0)
    claims = [claim] * len(given_.mechanisms)
    found = search_attack(given_.world, given_.mechanisms, claims, most_multisets=300)
    assert found.in_the_long_run == "fails"
    assert found.attack is not None
    _leaks_more_than_claimed(given_, found.attack, claims)


@given(given_=problems(left=2, right=2, outputs=2), share=st.floats(0.3, 1.2))
@settings(max_examples=25)
def test_no_shorter_attack_is_overlooked(given_: Problem, share: float) -> None:
    claims = [share * leakage(given_.world, m).epsilon for m in given_.mechanisms]
    found = search_attack(given_.world, given_.mechanisms, claims, most_multisets=60)
    one = len(given_.mechanisms) == 1
    shorter = min(found.tried if found.attack is None else found.tried - 1, 5)
    for runs in range(1, shorter + 1 if one else 0):
        for turned in range(2):
            left, right = _sides(given_, turned=bool(turned))
            worst = oracle.worst_composed(given_.table, given_.prior, left, right, runs)
            assert worst <= runs * claims[0] + 1e-9
    if found.attack is not None and found.attack.fewest:
        assert found.attack.runs == found.tried


@pytest.mark.parametrize(("below", "runs"), [(0.1, 3), (0.01, 740)])
def test_multiples_of_alpha_beat_claims_just_below_the_condition(below: float, runs: int) -> None:
    """Once it leaks 0.061 at most, but 0.338 a run are too few: the dataset to watch is rare."""
    table = [
        [0.4, 0.29, 0.31],
        [0.31, 0.34, 0.35],
        [0.44, 0.06, 0.5],
        [0.15, 0.34, 0.51],
        [0.31, 0.66, 0.03],
    ]
    given_ = problem([table], [0.0002, 0.3198, 0.2, 0.24, 0.24], 2, reverse=False)
    condition = necessary_condition(given_.world, given_.mechanisms)
    assert leakage(given_.world, given_.mechanisms[0]).epsilon < 0.061 < 0.339 < condition.lower
    claims = [condition.lower - below]
    found = search_attack(given_.world, given_.mechanisms, claims, most_multisets=0)
    assert found.tried == 0 and found.attack is not None and not found.attack.fewest
    assert found.attack.runs == runs
    _leaks_more_than_claimed(given_, found.attack, claims)
    short = search_attack(
        given_.world, given_.mechanisms, claims, most_multisets=0, most_runs=runs - 1
    )
    assert short.attack is None and short.in_the_long_run == "fails"


def test_harmless_once_and_not_twice() -> None:
    given_ = apart()
    assert leakage(given_.world, given_.mechanisms[0]).epsilon < 1e-12
    found = search_attack(given_.world, given_.mechanisms, [0.1])
    assert found.attack is not None and found.attack.runs == 2 and found.attack.fewest
    assert [(a.output, count) for a, count in found.attack.counts] == [(0, 1), (1, 1)]
    assert found.attack.leakage == pytest.approx(2 * log(5 / 3))


def test_claims_within_rounding_of_the_condition_are_left_undecided() -> None:
    given_ = apart()
    found = search_attack(given_.world, given_.mechanisms, [log(5 / 3)], most_multisets=0)
    assert found.condition.lower <= 0 < found.condition.upper < 1e-12
    assert found.in_the_long_run == "undecided" and found.attack is None


def test_the_condition_is_necessary_and_not_sufficient() -> None:
    """A mechanism that is ε-Pufferfish, passes every linear program at ε, and leaks more than 2ε.

    Once: 15/11. Twice: 25/13 > (15/11)² = 225/121. The condition is met with 0, since every
    dataset has a twin.
    """
    given_ = twins()
    epsilon = leakage(given_.world, given_.mechanisms[0]).epsilon
    assert epsilon == pytest.approx(log(15 / 11), abs=1e-12)
    assert necessary_condition(given_.world, given_.mechanisms).upper < 1e-12
    found = search_attack(given_.world, given_.mechanisms, [epsilon])
    assert found.in_the_long_run == "holds up to a constant"
    assert found.attack is not None and found.attack.runs == 2 and found.attack.fewest
    assert [(a.output, count) for a, count in found.attack.counts] == [(0, 2)]
    assert found.attack.leakage == pytest.approx(log(25 / 13), abs=1e-12)
    _leaks_more_than_claimed(given_, found.attack, [epsilon])
    odds = oracle.composed_odds(given_.table, given_.prior, (0, 1), (2, 3), [0, 0])
    assert odds is not None and float(odds) == pytest.approx(25 / 13) and 25 * 121 > 225 * 13


@given(given_=problems(left=2, right=2, outputs=2))
@settings(max_examples=25)
def test_claims_that_meet_the_condition_hold_up_to_a_constant(given_: Problem) -> None:
    claim = necessary_condition(given_.world, given_.mechanisms).upper + 1e-9
    claims = [claim] * len(given_.mechanisms)
    found = search_attack(given_.world, given_.mechanisms, claims, most_multisets=0)
    assert found.in_the_long_run == "holds up to a constant"
    assert found.attack is None and found.longest == 0
    for turned in range(2):
        left, right = _sides(given_, turned=bool(turned))
        total = sum(given_.prior[d] for d in right)
        constant = log(total / min(given_.prior[d] for d in right))
        for runs in (1, 2, 3):
            worst = oracle.worst_composed(given_.table, given_.prior, left, right, runs)
            assert worst <= runs * claim + constant + 1e-9


def test_everything_is_revealed_by_outputs_that_rule_out_all() -> None:
    table = [[0.4, 0.3, 0.3], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]
    given_ = problem([table], [0.5, 0.25, 0.25], 1, reverse=False)
    for most in (0, 1000):
        found = search_attack(given_.world, given_.mechanisms, [3.0], most_multisets=most)
        assert found.attack is not None and found.attack.leakage == inf
        assert [(a.output, count) for a, count in found.attack.counts] == [(0, 1), (1, 1)]
        assert found.attack.fewest == (most > 0)
        _leaks_more_than_claimed(given_, found.attack, [3.0])


def test_outputs_seen_once_open_the_way_for_alpha() -> None:
    """D2 would be a good place to hide; one sight of the rare output 2 rules it out."""
    table = [[0.495, 0.495, 0.01], [0.2, 0.79, 0.01], [0.5, 0.5, 0.0]]
    given_ = problem([table], [0.5, 0.25, 0.25], 1, reverse=False)
    (certificate,) = necessary_condition(given_.world, given_.mechanisms).certificates
    assert [answer.output for answer in certificate.once] == [2]
    assert certificate.lower == pytest.approx(log(0.495 / 0.2))
    claims = [0.8]
    found = search_attack(given_.world, given_.mechanisms, claims, most_multisets=0)
    assert found.attack is not None
    assert dict(found.attack.counts)[MechanismOutput(0, "M0", 2)] == 1
    _leaks_more_than_claimed(given_, found.attack, claims)
