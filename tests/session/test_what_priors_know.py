"""What priors know of values, which values they may have, and what documents say of them."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from takifugu.binding.prior_reading import _refuse_values, terms_of
from takifugu.binding.protected_values import WHOLLY, ProtectedValues, are_labels
from takifugu.costs.cost import Cost, Membership, Steps
from takifugu.declarations import Amount, Category, Declaration, Order, Source
from takifugu.documents.reading import InvalidDocument, converted
from takifugu.errors import UnsoundRequest
from takifugu.priors import AR1, Gaussian, MarkovChain, Secrets, TruncatedGaussian
from takifugu.translation.translation import Translation
from tests.raising import raises
from tests.session.test_guarantee_words import ONE
from tests.session.world import CHAIN

pytestmark = pytest.mark.nightly

ABC = frozenset("abc")
LOW, HIGH, STEP = Fraction(0), Fraction(4), Fraction(1, 2)
WEIGHT = Amount("weight", LOW, HIGH, STEP, "refuse")


def declared(*protected: Any) -> Declaration:
    return Declaration(
        Source("csv", path="s.csv"), "person", Order("step", "number"), protected, ()
    )


def chain(*states: Any) -> MarkovChain:
    size = len(states)
    return MarkovChain(np.full((size, size), 1 / size), states=states, length=3)


# --- what a query tells ---


@pytest.mark.parametrize(
    ("known", "asked", "cost"),
    [
        (ABC, "a", Cost.of({Membership([*"a"]): 1})),
        (ABC, "ab", Cost.of({Membership([*"ab"]): 1})),
        (ABC, "abc", WHOLLY),
        (ABC, "x", WHOLLY),
        (ABC, "ax", WHOLLY),
        (frozenset("ab"), "a", WHOLLY),  # of one label in two, that is everything
        (None, "a", WHOLLY),
    ],
)
def test_a_count_tells_whether_a_value_is_one_of_its_labels(
    known: frozenset[str] | None, asked: str, cost: Cost
) -> None:
    assert ProtectedValues(labels=known).count(asked) == cost


@pytest.mark.parametrize(
    ("known", "asked", "cost"),
    [
        (ABC, "a", Cost.of({Membership([*"a"]): 1})),
        (ABC, "ab", Cost.of({Membership([*one]): Fraction(1, 2) for one in "ab"})),
        (ABC, "abc", WHOLLY),
        (ABC, "ax", WHOLLY),
        (frozenset("ab"), "a", WHOLLY),
        (None, "ab", WHOLLY),
    ],
)
def test_counts_tell_half_of_each_of_their_labels(
    known: frozenset[str] | None, asked: str, cost: Cost
) -> None:
    assert ProtectedValues(labels=known).counts(asked) == cost


def test_a_sum_tells_how_far_numbers_are_apart() -> None:
    by_range = Cost.of({Membership([*"a"]): Fraction(1, 3)})
    assert ProtectedValues().sum() == WHOLLY
    stepped = Cost.of({Steps(LOW, HIGH, STEP): 1})
    assert ProtectedValues(bounds=(LOW, HIGH), step=STEP).sum() == stepped
    assert ProtectedValues(bounds=(LOW, HIGH), by_range=by_range).sum() == by_range


def test_costs_name_their_column_where_there_are_several() -> None:
    known = ProtectedValues(labels=ABC, bounds=(LOW, HIGH), step=STEP, column="state")
    assert known.wholly == WHOLLY.of_column("state") != WHOLLY
    assert known.count("a") == Cost.of({Membership([*"a"]): 1}).of_column("state")
    assert known.counts("ab") == ProtectedValues(labels=ABC).counts("ab").of_column("state")
    assert known.sum() == Cost.of({Steps(LOW, HIGH, STEP): 1}).of_column("state")


# --- what priors know ---


def known(prior: Any, column: Any) -> ProtectedValues:
    return ProtectedValues.of(
        Translation(prior, Secrets(within=1) if isinstance(prior, Gaussian) else Secrets()),
        declared(Category("other", ("x", "y"), "refuse"), column),
        column.column,
    )


def test_processes_know_numbers_in_steps_and_truncated_ones_nothing() -> None:
    found = known(Gaussian(AR1(0.5), 4), WEIGHT)
    assert found == ProtectedValues(bounds=(LOW, HIGH), step=STEP)
    wave = TruncatedGaussian(np.eye(3) + 0.1, bound=4.0, width=1.0)
    assert known(wave, WEIGHT) == ProtectedValues()


def test_states_that_are_the_numbers_of_a_column_are_known() -> None:
    whole = Amount("weight", Fraction(0), Fraction(2), Fraction(1), "refuse")
    bounds = (Fraction(0), Fraction(2))
    numbers = chain("0", "1", "2")
    for missing in ("refuse", Fraction(1)):
        column = Amount("weight", *bounds, Fraction(1), missing)
        assert known(numbers, column) == ProtectedValues(bounds=bounds, step=Fraction(1))
    dropped = Amount("weight", *bounds, Fraction(1), "drop")
    assert known(numbers, dropped) == ProtectedValues()
    assert known(chain("0", "1", "5"), whole) == ProtectedValues()


@pytest.mark.parametrize(
    ("states", "labels", "outside", "mapped", "are"),
    [
        (("a", "b"), ("a", "b"), "refuse", (), True),
        (("b", "a"), ("a", "b"), "refuse", (), True),
        (("a",), ("a", "b"), "refuse", (), False),
        (("a", "b", "c"), ("a", "b"), "refuse", (), False),
        (("a", "b", "c"), ("a", "b"), "drop", (), True),
        (("a", "b", "c"), ("a", "b"), "drop", (("c", "a"),), False),
        (("a", "b"), ("a", "b"), "drop", (("c", "a"),), True),
        ((0, 1), ("a", "b"), "refuse", (), False),
        ((0, 1), (0, 1), "refuse", (), True),
        ((0, 1), (1, 0), "refuse", (), False),  # numbered states may count in another order
        ((1, 2), (1, 2), "refuse", (), True),
        (("1", "2"), (1, 2), "refuse", (), False),
    ],
)
def test_states_are_labels_by_their_names(
    states: Any, labels: Any, outside: Any, mapped: Any, are: bool
) -> None:
    column = Category("state", labels, outside, labels=mapped)
    assert are_labels(states, column) == are


# --- what priors may be about ---


@pytest.mark.parametrize(
    ("low", "high", "fits"),
    [(-4, 4, True), (-4, 1, True), (-1, 4, True), (-5, 4, False), (-4, 5, False), (-4.5, 1, False)],
)
def test_numbers_are_within_the_bound_of_a_truncated_prior(
    low: float, high: float, fits: bool
) -> None:
    column = Amount("weight", Fraction(low), Fraction(high), Fraction(1, 2), "refuse")
    wave = TruncatedGaussian(np.eye(3) + 0.1, bound=4.0, width=1.0)
    for other in (declared(column), declared(Category("zone", ("a", "b"), "refuse"), column)):
        if fits:
            _refuse_values("wave", wave, other, "weight")
            continue
        with raises(UnsoundRequest, field="wave", reason="bounds", given=4.0):
            _refuse_values("wave", wave, other, "weight")


def test_terms_change_with_prior_uncertainty_and_secrets() -> None:
    pair = Secrets(entries=(0,))
    plain, unsure, fewer = (
        terms_of(one)
        for one in (ONE, Translation(CHAIN, uncertainty=0.1), Translation(CHAIN, pair))
    )
    assert plain == terms_of(Translation(CHAIN))
    assert plain.prior == fewer.prior != unsure.prior
    assert plain.secrets == unsure.secrets != fewer.secrets


# --- documents ---


def test_only_our_own_words_are_repeated_in_an_error() -> None:
    """What Python says of a document may hold what stands in it."""
    for error, repeated in ((UnsoundRequest("be a walrus"), True), (ValueError("a walrus"), False)):

        def broken(*_: object, error: Exception = error) -> Any:
            raise error

        with raises(InvalidDocument, field="a") as caught:
            converted(1, "a", broken)
        assert ("walrus" in str(caught.value)) == repeated
