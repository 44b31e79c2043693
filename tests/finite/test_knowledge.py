"""Linear knowledge: the worst prior it allows, against corners found in fractions."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidPrior, InvalidWorld
from takifugu.finite import FiniteMechanism, World, leakage
from takifugu.finite.joint_runs import joint_leakage
from takifugu.finite.leakage import odds
from takifugu.priors import (
    Between,
    Explicit,
    Knowledge,
    OneOf,
    Secret,
    SecretPair,
    Universe,
    both_ways,
)
from tests.oracles import finite as oracle
from tests.raising import raises
from tests.strategies import laws, mechanisms

SIX = Universe(tuple("abcdef"))
TRUE, FALSE = OneOf("true", tuple("abc")), OneOf("false", tuple("def"))
PAIRS = both_ways([SecretPair(TRUE, FALSE)])


@st.composite
def lines(draw: st.DrawFn, mask: list[bool]) -> list[Between]:
    """Up to two inequalities that some distribution on the secret's datasets obeys."""
    law = draw(laws(3))
    inside = np.zeros(6)
    inside[np.flatnonzero(mask)] = law
    found = []
    for _ in range(draw(st.integers(0, 2))):
        coefficients = draw(st.lists(st.integers(-3, 3), min_size=6, max_size=6))
        value = float(np.array(coefficients) @ inside)
        below, above = draw(st.sampled_from([(0.25, 0.125), (0.5, math.inf), (math.inf, 0.0625)]))
        found.append(Between(np.array(coefficients, dtype=float), value - below, value + above))
    return found


def _corners(known: list[Between], mask: list[bool]) -> list[list[Fraction]]:
    rows = [i for i, true in enumerate(mask) if true]
    sides: list[tuple[list[float], float]] = []
    for line in known:
        row = [float(line.coefficients[i]) for i in rows]
        if line.high < math.inf:
            sides.append((row, line.high))
        if line.low > -math.inf:
            sides.append(([-x for x in row], -line.low))
    return oracle.corners(len(rows), sides)


@pytest.mark.nightly
@settings(max_examples=50)
@given(st.data())
def test_the_loss_is_that_of_the_worst_corners(data: st.DataObject) -> None:
    masks: dict[Secret, list[bool]] = {s: s.mask(SIX).tolist() for s in (TRUE, FALSE)}
    about = {s: data.draw(lines(mask)) for s, mask in masks.items()}
    world = World(SIX, Knowledge(SIX, tuple((s, tuple(k)) for s, k in about.items())), PAIRS)
    mechanism = data.draw(mechanisms(SIX, max_outputs=3))
    result = leakage(world, mechanism)
    table = mechanism.likelihood.tolist()
    worst = mpmath.mpf(0)
    for p, pair in enumerate(PAIRS):
        ends = {s: _corners(about[s], masks[s]) for s in (pair.left, pair.right)}
        for w in range(len(mechanism.outputs)):
            column = oracle.column(table, w)

            def probabilities(s: Secret, column: list[Fraction] = column) -> list[Fraction]:
                rows = [c for c, true in zip(column, masks[s], strict=True) if true]
                return [
                    sum((q * c for q, c in zip(corner, rows, strict=True)), Fraction(0))
                    for corner in ends[s]  # noqa: B023
                ]

            exact = oracle.log((max(probabilities(pair.left)), min(probabilities(pair.right))))
            guaranteed = mpmath.mpf(float(result.table[p, 0, w]))
            with mpmath.workdps(50):
                assert guaranteed >= exact
                if mpmath.isfinite(guaranteed):
                    assert guaranteed - exact < 1e-9
                elif mpmath.isfinite(exact):  # a probability too small to distinguish from 0
                    assert min(probabilities(pair.right)) < Fraction(1, 10**12)
            worst = max(worst, exact)
    assert result.kind == "exact"
    if math.isfinite(result.epsilon):
        with mpmath.workdps(50):
            assert mpmath.mpf(result.epsilon) >= worst
            assert worst >= mpmath.mpf(result.epsilon) - mpmath.mpf(result.slack)


def test_the_example_of_the_paper_with_its_absolute_value_in_the_right_place() -> None:
    # Example 3 with L_T = U_T = .1, L_F = U_F = .5: the loss is log(.5/.1), not .588
    universe = Universe(("T", "not T", "F", "not F"))
    true, false = OneOf("s", ("T", "not T")), OneOf("not s", ("F", "not F"))
    known = Knowledge(
        universe,
        (
            (true, (Between.of_probability(universe, OneOf("T", ("T",)), low=0.1, high=0.1),)),
            (false, (Between.of_probability(universe, OneOf("F", ("F",)), low=0.5, high=0.5),)),
        ),
    )
    half = 0.5
    table = np.array(
        [[half, half, 0, 0], [0, 0, half, half], [half, 0, half, 0], [0, half, 0, half]]
    )
    world = World(universe, known, both_ways([SecretPair(true, false)]))
    result = leakage(world, FiniteMechanism(universe, table))
    assert result.epsilon == pytest.approx(math.log(5), abs=1e-12)
    assert result.epsilon >= math.log(5) and result.slack < 1e-12
    assert result.worst.pair == SecretPair(false, true)
    assert result.conditionals[1] == pytest.approx([0.1, 0.9, 0, 0], abs=1e-9)
    # and twice is the end of it
    twice = joint_leakage(world, [(FiniteMechanism(universe, table), 2)])
    assert twice.epsilon == math.inf and twice.exact


def test_secrets_that_are_not_mentioned_may_have_any_conditional() -> None:
    world = World(SIX, Knowledge(SIX), PAIRS)
    table = np.full((6, 2), 0.5)
    table[0], table[4] = [0.9, 0.1], [0.2, 0.8]
    result = leakage(world, FiniteMechanism(SIX, table))
    assert result.epsilon == pytest.approx(math.log(8), abs=1e-14)  # e against a
    assert result.slack < 1e-14
    table[4] = [0.0, 1.0]
    assert leakage(world, FiniteMechanism(SIX, table)).epsilon == math.inf


def test_composition_against_knowledge_is_that_of_the_product() -> None:
    event = Between.of_probability(SIX, OneOf("a or d", ("a", "d")), low=0.25, high=0.5)
    world = World(SIX, Knowledge(SIX, ((TRUE, (event,)), (FALSE, (event,)))), PAIRS)
    rows = [[0.5, 0.5], [0.25, 0.75], [0.375, 0.625], [0.75, 0.25], [0.625, 0.375], [0.5, 0.5]]
    result = joint_leakage(world, [(FiniteMechanism(SIX, np.array(rows)), 3)])
    masks = {s: s.mask(SIX).tolist() for s in (TRUE, FALSE)}
    exact = mpmath.mpf(0)
    for probability in oracle.sequence([(rows, 3)]):
        value = {}
        for s, mask in masks.items():
            inside = [c for c, true in zip(probability, mask, strict=True) if true]
            value[s] = [
                sum((q * c for q, c in zip(corner, inside, strict=True)), Fraction(0))
                for corner in _corners([event], mask)
            ]
        for a, b in ((TRUE, FALSE), (FALSE, TRUE)):
            exact = max(exact, oracle.log((max(value[a]), min(value[b]))))
    assert result.attained <= exact <= result.epsilon < exact + 1e-12
    assert result.exact and result.method == "linear programs"


def test_knowledge_about_a_third_secret_makes_the_loss_an_upper_bound() -> None:
    third = OneOf("third", ("c", "d"))
    line = Between.of_probability(SIX, OneOf("c", ("c",)), low=0.0, high=0.5)
    mechanism = FiniteMechanism(SIX, np.full((6, 2), 0.5))
    loose = World(SIX, Knowledge(SIX, ((third, (line,)),)), PAIRS)
    assert leakage(loose, mechanism).kind == "upper"
    free = World(SIX, Knowledge(SIX, ((third, ()),)), PAIRS)
    assert leakage(free, mechanism).kind == "exact"


@pytest.mark.parametrize(
    "line",
    [
        Between(np.ones(6), 0.25, 0.75),
        Between(np.array([1.0, 0, 0, 0, 0, 0]), 1.5, 2.0),
        Between(np.ones(6), math.inf, math.inf),
    ],
)
def test_knowledge_that_contradicts_itself_is_refused_by_name(line: Between) -> None:
    world = World(SIX, Knowledge(SIX, ((FALSE, (line,)),)), PAIRS)
    with raises(InvalidPrior, field="knowledge") as caught:
        leakage(world, FiniteMechanism(SIX, np.full((6, 2), 0.5)))
    assert "'false'" in caught.value.given


def test_functions_that_need_a_list_of_priors_say_so() -> None:
    world = World(SIX, Knowledge(SIX), PAIRS)
    with raises(InvalidWorld, field="priors"):
        odds(world, FiniteMechanism(SIX, np.full((6, 2), 0.5)))


def test_a_listed_prior_never_loses_more_than_the_knowledge_it_obeys() -> None:
    line = Between.of_probability(SIX, OneOf("a", ("a",)), low=0.2, high=0.6)
    mechanism = FiniteMechanism(
        SIX, np.linspace(1, 12, 12).reshape(6, 2) / [[3], [7], [11], [15], [19], [23]]
    )
    known = leakage(World(SIX, Knowledge(SIX, ((TRUE, (line,)),)), PAIRS), mechanism)
    prior = Explicit(SIX, np.array([0.2, 0.2, 0.1, 0.1, 0.2, 0.2]))
    assert leakage(World(SIX, (prior,), PAIRS), mechanism).epsilon <= known.epsilon
