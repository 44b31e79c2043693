"""Priors written out, and knowledge in inequalities."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidPrior
from takifugu.priors import Between, Explicit, Holds, Knowledge, OneOf, Tables, Universe
from takifugu.priors.explicit import same_universe, stack
from tests.raising import raises
from tests.strategies import laws, tables

TWO = Universe(("rain", "shine"))


def test_a_prior_keeps_what_it_was_given() -> None:
    given = np.array([0.25, 0.75])
    prior = Explicit(TWO, given)
    given[0] = 9
    assert prior.probability.tolist() == [0.25, 0.75]
    assert Explicit.uniform(Tables.bits(3)).probability.tolist() == [0.125] * 8


@settings(max_examples=30)
@given(st.data())
def test_independent_entries_multiply(data: st.DataObject) -> None:
    universe = data.draw(tables())
    marginals = {
        e: data.draw(laws(n)) for e, n in zip(universe.entries, universe.shape, strict=True)
    }
    prior = Explicit.independent(universe, marginals)
    for row, probability in zip(universe.codes.tolist(), prior.probability.tolist(), strict=True):
        each = [marginals[e][c] for e, c in zip(universe.entries, row, strict=True)]
        assert probability == pytest.approx(math.prod(each))


def test_priors_are_stacked_and_universes_compared_by_content() -> None:
    both = stack([Explicit(TWO, np.array([0.25, 0.75])), Explicit.uniform(TWO)])
    assert both.tolist() == [[0.25, 0.75], [0.5, 0.5]]
    again = Explicit.uniform(Universe(("rain", "shine")))
    assert same_universe(TWO, again)
    assert not same_universe(TWO, again, Explicit.uniform(Universe(("shine", "rain"))))


def test_knowledge_collects_the_lines_about_a_secret() -> None:
    rain = OneOf("rain", ("rain",))
    low = Between.of_probability(TWO, Holds("wet", lambda d: d == "rain"), low=0.25, high=0.5)
    high = Between(np.array([0.0, 1.0]), 0.5, math.inf)
    known = Knowledge(TWO, ((rain, (low,)), (OneOf("other", ("shine",)), ()), (rain, (high,))))
    assert known.lines(rain) == (low, high)
    assert known.lines(OneOf("nobody", ())) == ()
    assert low.coefficients.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Explicit(TWO, [0.5, 0.4]), "probability"),  # type: ignore[arg-type]
        (lambda: Explicit(TWO, [1.0]), "probability"),  # type: ignore[arg-type]
        (lambda: Explicit(TWO, [[0.5, 0.5]]), "probability"),  # type: ignore[arg-type]
        (lambda: Explicit(TWO, [math.nan, 1]), "probability"),  # type: ignore[arg-type]
        (lambda: Explicit(TWO, [-0.5, 1.5]), "probability"),  # type: ignore[arg-type]
        (
            lambda: Explicit.independent(Tables.bits(2), {0: [0.5, 0.5]}),
            "marginals",
        ),
        (
            lambda: Explicit.independent(Tables.bits(1), {0: [1.0]}),
            "marginals[0]",
        ),
        (
            lambda: Explicit.independent(Tables.bits(1), {0: [0.5, 0.6]}),
            "marginals[0]",
        ),
        (lambda: Between(np.array([math.nan, 1]), 0, 1), "coefficients"),
        (lambda: Between(np.ones(2), 1, 0), "low"),
        (lambda: Between(np.ones(2), math.nan, 1), "low"),
        (
            lambda: Knowledge(TWO, ((OneOf("r", ("rain",)), (Between(np.ones(1), 0, 1),)),)),
            "coefficients",
        ),
    ],
)
def test_what_is_no_prior_is_refused_in_one_line(make: object, field: str) -> None:
    with raises(InvalidPrior, field=field) as caught:
        make()  # type: ignore[operator]
    assert "\n" not in str(caught.value)
