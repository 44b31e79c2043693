"""Markov chains as priors: validation, laws, documents."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidPrior
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.markov import MarkovChain
from tests.oracles import chains as oracle
from tests.raising import raises


def markov(*arguments: Any, **named: Any) -> MarkovChain:
    """Lists as well as arrays, without the type checker's help."""
    return MarkovChain(*arguments, **named)


def interval(*arguments: Any, **named: Any) -> IntervalMarkovChain:
    """The same for a set of chains."""
    return IntervalMarkovChain(*arguments, **named)


WARD = markov([[0.9, 0.1], [0.3, 0.7]], states=("home", "ward"), length=4)


@st.composite
def positive_tables(draw: st.DrawFn) -> list[list[float]]:
    n = draw(st.integers(1, 5))
    exponents = st.floats(-30, 0)
    rows = [[10 ** draw(exponents) for _ in range(n)] for _ in range(n)]
    return [[v / sum(row) for v in row] for row in rows]


@settings(max_examples=60)
@given(table=positive_tables())
def test_the_stationary_law_is_right_in_every_entry(table: list[list[float]]) -> None:
    chain = markov(table)
    true = oracle.stationary(oracle.normalised(chain.transition.tolist()))
    for found, exact in zip(chain.stationary, true, strict=True):
        assert abs(Fraction(float(found)) - exact) <= exact * Fraction(chain.stationary_error)


def test_a_periodic_chain_has_a_stationary_law() -> None:
    cycle = markov([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    np.testing.assert_allclose(cycle.stationary, 1 / 3)


def test_transient_states_have_no_mass_at_rest() -> None:
    chain = markov([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.5, 0.25, 0.25]])
    np.testing.assert_allclose(chain.stationary, np.array([1, 2, 0]) / 3)
    assert chain.stationary[2] == 0


def test_a_chain_that_falls_apart_needs_a_start() -> None:
    parts = np.eye(2)
    with raises(InvalidPrior, field="start"):
        markov(parts)
    assert markov(parts, start=[0.5, 0.5]).start_law.tolist() == [0.5, 0.5]


def test_a_law_that_floats_cannot_hold_is_refused() -> None:
    tiny = 2.0**-499
    ladder = np.diag(np.full(3, tiny), 1) + np.diag(np.full(3, 0.5), -1)
    np.fill_diagonal(ladder, 1 - ladder.sum(axis=1))
    with raises(InvalidPrior, field="transition"):
        markov(ladder)


def test_marginals_follow_the_steps() -> None:
    moved = markov(WARD.transition, start=[1.0, 0.0], length=3)
    np.testing.assert_allclose(moved.marginals(), [[1.0, 0.0], [0.9, 0.1], [0.84, 0.16]])
    np.testing.assert_array_equal(WARD.marginals(), np.tile(WARD.stationary, (4, 1)))
    swap = [[[0.0, 1.0], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    np.testing.assert_allclose(markov(swap, start=[1, 0]).marginals()[2], [0, 1])


def test_a_chain_can_be_written_out() -> None:
    table = WARD.explicit()
    paths = oracle.law(
        oracle.stationary(oracle.normalised(WARD.transition.tolist())),
        [oracle.normalised(WARD.transition.tolist())] * 3,
    )
    found = dict(zip(table.universe.datasets, table.probability, strict=True))
    for path, probability in paths.items():
        assert found[tuple(WARD.states[x] for x in path)] == pytest.approx(probability, rel=1e-12)
    with raises(InvalidPrior, field="length"):
        WARD.explicit(5)
    with raises(InvalidPrior, field="length"):
        markov(WARD.transition).explicit()


@pytest.mark.parametrize(
    "prior",
    [
        WARD,
        markov([[0.1, 0.9], [1 / 3, 2 / 3]]),
        markov([[[0.5, 0.5], [0.1, 0.9]], [[0.2, 0.8], [1.0, 0.0]]], start=[0.25, 0.75]),
        IntervalMarkovChain.around(WARD, relative=0.2),
    ],
)
def test_documents_round_trip_to_the_last_bit(prior: MarkovChain | IntervalMarkovChain) -> None:
    text = json.dumps(prior.to_document())
    again = type(prior).from_document(json.loads(text))
    assert again == prior
    assert again.fingerprint == prior.fingerprint


def test_the_shortest_document_is_enough() -> None:
    chain = MarkovChain.from_document({"kind": "markov-chain", "transition": [[0.5, 0.5]] * 2})
    assert chain.states == (0, 1) and chain.start == "stationary" and chain.length is None


def test_content_is_identity() -> None:
    assert markov(WARD.transition.tolist(), WARD.states, length=4) == WARD
    assert markov(WARD.transition, WARD.states) != WARD


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"transitions": [[1.0]]}, "transitions"),
        ({"kind": "chain"}, "kind"),
        ({"states": "ab"}, "states"),
        ({"states": [["a"], "b"]}, "states"),
        ({"states": ["a", "a"]}, "states"),
        ({"length": 0}, "length"),
        ({"length": 2.5}, "length"),
        ({"length": True}, "length"),
        ({"start": "anywhere"}, "start"),
        ({"start": [1.0]}, "start"),
        ({"start": None}, "start"),
        ({"start": [0.5, 0.6]}, "start"),
        ({"transition": [[0.5, 0.5]]}, "transition"),
        ({"transition": [[0.5, 0.5], [1.0]]}, "transition"),
        ({"transition": [[0.5, 0.4], [0.5, 0.5]]}, "transition"),
        ({"transition": [[[0.5, 0.5], [0.5, 0.5]]]}, "start"),
        ({"transition": [[[0.5, 0.5]] * 2] * 3, "start": [1, 0], "length": 9}, "length"),
    ],
)
def test_malformed_documents_are_refused_in_one_line(changes: dict[str, Any], field: str) -> None:
    document = {"kind": "markov-chain", "transition": [[0.5, 0.5], [0.5, 0.5]], **changes}
    with raises(InvalidPrior, field=field) as caught:
        MarkovChain.from_document(document)
    assert "\n" not in str(caught.value)


def test_a_document_without_a_matrix_is_refused() -> None:
    with raises(InvalidPrior, field="transition"):
        MarkovChain.from_document({"kind": "markov-chain"})


@pytest.mark.parametrize(
    ("lower", "upper", "field"),
    [
        ([[0.6, 0.6], [0.1, 0.1]], [[0.7, 0.7], [0.9, 0.9]], "lower"),
        ([[0.1, 0.1], [0.1, 0.1]], [[0.2, 0.2], [0.9, 0.9]], "lower"),
        ([[0.5, 0.1], [0.1, 0.1]], [[0.4, 0.9], [0.9, 0.9]], "lower"),
        ([[0.5, -0.1], [0.1, 0.1]], [[0.4, 0.9], [0.9, 0.9]], "lower"),
        ([[0.5, 0.1]], [[0.4, 0.9]], "lower"),
        ([[0.5]], [[0.4, 0.9], [0.5, 0.5]], "upper"),
        ([["a"]], [[1.0]], "lower"),
    ],
)
def test_bounds_without_a_chain_between_them_are_refused(
    lower: Any, upper: Any, field: str
) -> None:
    with raises(InvalidPrior, field=field):
        interval(lower, upper)


def test_relative_errors_keep_zeros_and_the_chain_itself() -> None:
    chain = markov([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3]])
    none = IntervalMarkovChain.around(chain, relative=0.0)
    assert (none.lower <= chain.kernel()).all() and (chain.kernel() <= none.upper).all()
    some = IntervalMarkovChain.around(chain, relative=0.2)
    assert some.upper[0, 2] == 0 and some.start == "stationary"
    np.testing.assert_allclose(some.lower[1], [0.08, 0.16, 0.56])
    for wrong in (1.0, -0.1, float("nan")):
        with raises(InvalidPrior, field="relative"):
            IntervalMarkovChain.around(chain, relative=wrong)
