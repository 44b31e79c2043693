"""DP-style certificates: what they cost and how few constraints do."""

from math import inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import UnsoundRequest
from takifugu.finite import FiniteMechanism, World
from takifugu.finite.nfc import dp_costs, dp_epsilon, necessary_condition, requirements
from takifugu.papers.composition import dp_constraints
from takifugu.papers.composition.dp_constraints import dp_styles, least_dp_constraints
from takifugu.papers.composition.nfc_constraints import Constraint, non_redundant
from takifugu.priors import Explicit, OneOf, SecretPair, Tables, Universe, entry_pairs
from tests.finite.nfc_worlds import Problem, apart, problems, twins
from tests.oracles import nfc as oracle
from tests.raising import raises


def _costs(given_: Problem) -> list[list[float]]:
    n = len(given_.world.universe)
    return [
        [max(row[0] for row in oracle.log_ratios(given_.table, d, [e])) for e in range(n)]
        for d in range(n)
    ]


@given(given_=problems(zeros=True))
@settings(max_examples=40)
def test_dp_style_costs_what_plain_ratios_say(given_: Problem) -> None:
    exact, found = _costs(given_), dp_costs(given_.world, given_.mechanisms)
    for d, row in enumerate(exact):
        for e, value in enumerate(row):
            assert found[d, e] >= value - 1e-15
            assert found[d, e] == value or found[d, e] - value < 1e-12
    condition = necessary_condition(given_.world, given_.mechanisms)
    for style in dp_styles(given_.world, given_.mechanisms, condition):
        requirement = style.certificate.requirement
        best = min(exact[requirement.dataset][e] for e in requirement.among)
        assert style.epsilon == pytest.approx(best, abs=1e-12)
        assert style.epsilon >= style.certificate.lower
        assert style.behind in requirement.among
        assert style.same == (best <= style.certificate.lower + 1e-9)
        if style.one_hot:
            assert style.same


def test_a_mixture_may_be_cheaper_and_need_not_be() -> None:
    given_ = apart()
    condition = necessary_condition(given_.world, given_.mechanisms)
    (style,) = dp_styles(given_.world, given_.mechanisms, condition)
    assert not style.one_hot and not style.same
    assert style.epsilon == pytest.approx(log(5)) and condition.upper == pytest.approx(log(5 / 3))
    given_ = twins()
    condition = necessary_condition(given_.world, given_.mechanisms)
    assert all(s.same for s in dp_styles(given_.world, given_.mechanisms, condition))
    assert dp_epsilon(given_.world, given_.mechanisms) == pytest.approx(0, abs=1e-12)


@given(given_=problems(right=2, zeros=True), more=st.floats(0, 1))
@settings(max_examples=40)
def test_the_fewest_constraints_are_found(given_: Problem, more: float) -> None:
    epsilon = dp_epsilon(given_.world, given_.mechanisms) + more
    if epsilon == inf:
        with raises(UnsoundRequest, field="epsilon", given=100.0):
            least_dp_constraints(given_.world, given_.mechanisms, 100.0)
        return
    found = least_dp_constraints(given_.world, given_.mechanisms, epsilon)
    requirement = [(r.dataset, r.among) for r in requirements(given_.world)]
    cost = dp_costs(given_.world, given_.mechanisms).tolist()
    assert found.minimum
    assert len(found.constraints) == oracle.fewest_constraints(cost, requirement, epsilon)
    for d, among in requirement:
        assert any(c == (d, e) for c in found.constraints for e in among)
    assert all(cost[d][e] <= epsilon for d, e in found.constraints)


def _hide(sets: list[str]) -> tuple[World, FiniteMechanism]:
    """One dataset must hide in every one of ``sets``; a mechanism that allows all."""
    universe = Universe(("hidden", *sorted(set("".join(sets)))))
    pairs = tuple(
        SecretPair(OneOf("hidden", ("hidden",)), OneOf(f"in {members}", tuple(members)))
        for members in sets
    )
    world = World(universe, (Explicit.uniform(universe),), pairs)
    return world, FiniteMechanism(universe, np.ones((len(universe), 1)))


def test_greed_alone_would_take_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """A meets 7 sets and B the other 7; greed takes x (4 + 4), then y (2 + 2), then z (1 + 1)."""
    sets = [
        f"{side}{'xxxxyyz'[i]}{mark}"
        for side, marks in (("A", "0123456"), ("B", "789efgh"))
        for i, mark in enumerate(marks)
    ]
    world, mechanism = _hide(sets)
    found = least_dp_constraints(world, [mechanism], 0.5)
    assert found.minimum and len(found.constraints) == 2
    targets = {str(world.universe.datasets[e]) for _, e in found.constraints}
    assert all(targets & set(members) for members in sets)
    monkeypatch.setattr(dp_constraints, "MOST_SETS", 0)
    rough = least_dp_constraints(world, [mechanism], 0.5)
    assert len(rough.constraints) == 3 and rough.at_least == 2 and not rough.minimum


def test_complements_serve_all_bits_at_once() -> None:
    universe = Tables.bits(3)
    world = World(universe, (Explicit.uniform(universe),), entry_pairs(universe))
    silent = FiniteMechanism(universe, np.ones((8, 1)))
    found = least_dp_constraints(world, [silent], 0.1)
    assert found.constraints == tuple((d, 7 - d) for d in range(8)) and found.minimum


def test_chains_are_not_free_so_dp_style_constraints_are_never_redundant() -> None:
    universe = Universe(("a", "b", "c"))
    steps = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "a")]
    constraints = []
    for left, right in steps:
        beta = np.zeros(3)
        beta[universe.position(right)] = 1
        constraints.append(Constraint(universe, left, beta))
    assert non_redundant(constraints).kept == (0, 1, 2, 3)


def test_too_small_an_epsilon_is_refused_with_the_one_needed() -> None:
    given_ = apart()
    for epsilon in (1.6, float("nan")):
        with raises(UnsoundRequest, field="epsilon"):
            least_dp_constraints(given_.world, given_.mechanisms, epsilon)
    assert least_dp_constraints(given_.world, given_.mechanisms, 1.61).constraints == ((0, 1),)
