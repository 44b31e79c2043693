"""Proofs and witnesses of Gaussian processes: what is wrong with them only loosens a bound."""

import json
from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.costs.cost import Cost, Distance, Steps
from takifugu.priors import AR1, Covariance, Gaussian, Matern
from takifugu.translation.certify.closed import (
    gdp_delta,
    gdp_epsilon,
    group_allowance,
    group_loss,
    profile_group_loss,
    with_uncertainty,
    without_uncertainty,
    zcdp_epsilon_at,
)
from takifugu.translation.certify.gaussian import (
    ClampedSum,
    Shift,
    ShiftProblem,
    lower,
    upper,
)
from takifugu.translation.entry_costs import EntryCosts

NUMBERS = Cost.of({Distance(-50, 50): 3})
ROUNDED = Cost.of({Steps(-50, 50, Fraction(1, 10)): 3})
PROCESSES = [
    Gaussian(AR1(-0.6), 9),
    Gaussian(AR1(0.7), None),
    Gaussian(Matern(1.5, 2.0), 12),
    Gaussian(Covariance(np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 1.5]]))),
]


def problem(
    prior: Gaussian, costs: EntryCosts | Floats, secret: tuple[int, ...] | None = None
) -> ShiftProblem:
    return ShiftProblem(prior, Fraction(4), secret, costs)


@settings(max_examples=60)
@given(
    prior=st.sampled_from(PROCESSES),
    cost=st.sampled_from([NUMBERS, ROUNDED, Cost.any("0.2"), NUMBERS + Cost.any("0.1")]),
    entry=st.integers(-1, 12),
    middle=st.fractions(-60, 60),
    beside=st.lists(st.integers(-2, 14), max_size=6).map(tuple),
    choice=st.integers(-3, 3),
    smoothed=st.booleans(),
)
def test_no_witness_leaks_more_than_any_proof_allows(
    prior: Gaussian,
    cost: Cost,
    entry: int,
    middle: Fraction,
    beside: tuple[int, ...],
    choice: int,
    smoothed: bool,
) -> None:
    given = problem(prior, EntryCosts((cost,)))
    leak = lower(given, ClampedSum(entry, middle, beside, choice))
    assert 0 <= leak <= upper(given, Shift(smoothed)).value
    size = inf if prior.length is None else prior.length
    if entry in beside or len({*beside}) < len(beside) or not 0 <= entry < size:
        assert leak == 0


def test_a_witness_about_an_entry_that_is_no_secret_shows_nothing() -> None:
    given = problem(PROCESSES[0], EntryCosts((NUMBERS,)), secret=(2,))
    assert lower(given, ClampedSum(2, Fraction(0), (1, 3))) > 0
    assert lower(given, ClampedSum(3, Fraction(0), (2,))) == 0


def test_a_proof_that_does_not_apply_proves_nothing() -> None:
    for costs in (EntryCosts((Cost.any(1),)), EntryCosts((NUMBERS + Cost.any(1),)), np.ones(9)):
        assert upper(problem(PROCESSES[0], costs), Shift(smoothed=True)).value == inf
    coarse = Cost.of({Steps(-50, 50, 25): 3})
    assert upper(problem(PROCESSES[0], EntryCosts((coarse,))), Shift(smoothed=True)).value == inf


def test_what_is_charged_by_numbers_is_charged_by_costs() -> None:
    spent = np.linspace(0, 1, 9)
    costs = EntryCosts(by_entry=tuple(Cost.any(float(e)) for e in spent))
    plain, exact = (upper(problem(PROCESSES[0], c), Shift()).value for c in (spent, costs))
    assert plain == pytest.approx(exact, rel=1e-13)
    one = ClampedSum(4, Fraction(1), ())
    assert lower(problem(PROCESSES[0], spent), one) == lower(problem(PROCESSES[0], costs), one) > 0


@pytest.mark.parametrize("smoothed", [False, True])
def test_proofs_and_witnesses_can_be_written(smoothed: bool) -> None:
    proof = Shift(smoothed)
    assert Shift.from_document(json.loads(json.dumps(proof.to_document()))) == proof
    witness = ClampedSum(3, Fraction(1, 3), (1, 2, 7), 1)
    assert ClampedSum.from_document(json.loads(json.dumps(witness.to_document()))) == witness


def test_closed_forms_survive_numbers_that_make_no_sense() -> None:
    assert zcdp_epsilon_at(0.1, 1e-6, nan) == zcdp_epsilon_at(0.1, 1e-6, -1.0) == inf
    assert group_loss(None, 0.1) == inf and group_allowance(None, 1.0) == 0
    assert gdp_epsilon(1e200, 1e-6) == inf and gdp_delta(1e200, 1.0) == 1


@given(parts=st.lists(st.floats(0, 1e3), min_size=1, max_size=9), shift=st.floats(1e-6, 2))
def test_closed_forms_are_rounded_to_the_safe_side(parts: list[float], shift: float) -> None:
    exact = sum(map(Fraction, parts), Fraction(0))
    assert Fraction(profile_group_loss(parts)) >= exact
    assert Fraction(group_loss(len(parts), parts[0])) >= len(parts) * Fraction(parts[0])
    assert len(parts) * Fraction(group_allowance(len(parts), parts[0])) <= Fraction(parts[0])
    loss = parts[0]
    assert Fraction(float(with_uncertainty(loss, shift))) >= Fraction(loss) + Fraction(shift)
    target = loss + 3
    room = without_uncertainty(target, shift)
    assert float(with_uncertainty(room, shift)) <= target
