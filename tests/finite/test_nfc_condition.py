"""The linear programs of the necessary condition against vertices, grids and exact sums."""

from itertools import product
from math import inf, log

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidMechanism, InvalidWorld, TooLarge
from takifugu.finite import FiniteMechanism, World
from takifugu.finite.nfc import condition as outputs_module
from takifugu.finite.nfc import (
    condition_on_claims,
    constraint_values,
    dp_costs,
    dp_epsilon,
    necessary_condition,
    requirements,
)
from takifugu.priors import Explicit, Knowledge, OneOf, SecretPair, Universe, both_ways
from tests.finite.nfc_worlds import Problem, apart, laws, problem, problems, twins
from tests.oracles import nfc as oracle
from tests.raising import raises


@given(given_=problems())
@settings(max_examples=40)
def test_the_bounds_enclose_what_vertex_enumeration_finds(given_: Problem) -> None:
    _compare(given_)


@given(given_=problems(zeros=True))
@settings(max_examples=60)
def test_zeros_are_treated_as_vertex_enumeration_treats_them(given_: Problem) -> None:
    _compare(given_)


def _compare(given_: Problem) -> None:
    condition = necessary_condition(given_.world, given_.mechanisms)
    assert len(condition.certificates) == len(given_.left) + len(given_.right)
    for certificate in condition.certificates:
        requirement = certificate.requirement
        exact = oracle.least_epsilon(given_.table, requirement.dataset, requirement.among)
        assert certificate.lower <= exact + 1e-12
        assert certificate.upper >= exact - 1e-12
        assert certificate.gap <= 1e-9
        assert (certificate.upper == inf) == (exact == inf)
        assert certificate.upper >= 0  # the mixture P(.|D*) is a divergence


@given(given_=problems(right=3))
@settings(max_examples=15)
def test_no_point_of_a_grid_beats_the_lower_bound(given_: Problem) -> None:
    for certificate in necessary_condition(given_.world, given_.mechanisms).certificates:
        requirement = certificate.requirement
        grid = oracle.least_epsilon_on_grid(
            given_.table, requirement.dataset, requirement.among, 20
        )
        assert certificate.lower <= grid + 1e-12


@given(given_=problems(zeros=True))
@settings(max_examples=40)
def test_alpha_and_beta_prove_the_bounds_by_plain_sums(given_: Problem) -> None:
    table = given_.table
    condition = necessary_condition(given_.world, given_.mechanisms)
    for c in condition.certificates:
        star, among = c.requirement.dataset, c.requirement.among
        assert not np.delete(c.beta, list(among)).any()
        seen = [i for i, a in enumerate(c.alpha) if a > 0]
        once = [condition.outputs.position(answer) for answer in c.once]
        assert all(table[i][star] > 0 for i in [*seen, *once])
        if c.upper == inf:
            assert all(any(table[i][d] == 0 for i in once) for d in among)
            continue
        upper = max(
            log(row[star]) - sum(b * log(row[d]) for d, b in enumerate(c.beta) if b > 0)
            for row in table
            if row[star] > 0
        )
        alive = [d for d in among if all(table[i][d] > 0 for i in [*seen, *once])]
        lower = min(
            sum(c.alpha[i] * (log(table[i][star]) - log(table[i][d])) for i in seen) for d in alive
        )
        assert upper <= c.upper + 1e-15 and c.upper <= upper + 1e-12
        assert lower >= c.lower - 1e-15 and c.lower >= lower - 1e-12


def test_a_known_value_and_its_attack() -> None:
    known = apart()
    worst = necessary_condition(known.world, known.mechanisms).worst
    assert worst.upper == pytest.approx(log(5 / 3), abs=1e-12)
    assert worst.lower == pytest.approx(log(5 / 3), abs=1e-12)
    assert worst.beta == pytest.approx([0, 0.5, 0.5])
    assert worst.alpha == pytest.approx([0.5, 0.5])


def test_beta_is_shared_by_all_mechanisms() -> None:
    first = [[0.5, 0.5], [0.5, 0.5], [0.1, 0.9]]
    second = [[0.5, 0.5], [0.1, 0.9], [0.5, 0.5]]
    prior = [0.5, 0.25, 0.25]
    alone = [problem([table], prior, 1, reverse=False) for table in (first, second)]
    for one in alone:
        assert necessary_condition(one.world, one.mechanisms).upper <= 1e-12
    both = problem([first, second], prior, 1, reverse=False)
    assert necessary_condition(both.world, both.mechanisms).lower == pytest.approx(log(5) / 2)


def test_a_dataset_of_probability_0_does_not_count() -> None:
    table = [[0.5, 0.5], [0.1, 0.9], [0.9, 0.1], [0.5, 0.5]]  # the last would hide D0 for free
    universe = Universe(("D0", "D1", "D2", "D3"))
    pair = SecretPair(OneOf("s", ("D0",)), OneOf("t", ("D1", "D2", "D3")))
    without = Explicit(universe, np.array([0.5, 0.25, 0.25, 0]), "without")
    having = Explicit(universe, np.array([0.25, 0.25, 0.25, 0.25]), "having")
    mechanism = FiniteMechanism(universe, np.array(table))
    for priors, epsilon in (((without,), log(5 / 3)), ((having,), 0.0)):
        condition = necessary_condition(World(universe, priors, (pair,)), [mechanism])
        assert condition.upper == pytest.approx(epsilon, abs=1e-12)
    both = World(universe, (without, having), both_ways([pair]))
    condition = necessary_condition(both, [mechanism])
    required = [c.requirement for c in condition.certificates if c.requirement.pair == pair]
    assert [(r.among, r.priors) for r in required] == [
        ((1, 2), ("without",)),
        ((1, 2, 3), ("having",)),
    ]
    assert condition.lower == pytest.approx(log(9 / 5))  # D1 and D2 have only D0 to hide behind
    reverse = [c.requirement for c in condition.certificates if c.requirement.pair != pair]
    assert [(r.dataset, r.priors) for r in reverse] == [
        (1, ("without", "having")),
        (2, ("without", "having")),
        (3, ("having",)),
    ]


def test_infinite_when_every_dataset_is_ruled_out_and_by_which_outputs() -> None:
    table = [[0.4, 0.3, 0.3], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]
    bad = problem([table], [0.5, 0.25, 0.25], 1, reverse=False)
    (certificate,) = necessary_condition(bad.world, bad.mechanisms).certificates
    assert certificate.upper == certificate.lower == inf and certificate.gap == 0
    assert [answer.output for answer in certificate.once] == [0, 1]
    assert not certificate.beta.any() and not certificate.alpha.any()


@given(given_=problems(), claim=st.floats(0, 2))
@settings(max_examples=25)
def test_equal_claims_shift_the_condition(given_: Problem, claim: float) -> None:
    plain = necessary_condition(given_.world, given_.mechanisms)
    claimed = condition_on_claims(given_.world, given_.mechanisms, [claim] * len(given_.mechanisms))
    assert claimed.upper == pytest.approx(plain.upper - claim, abs=1e-9)
    assert claimed.lower == pytest.approx(plain.lower - claim, abs=1e-9)


def test_each_mechanism_may_have_a_claim_of_its_own() -> None:
    cheap = [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    dear = [[0.5, 0.5], [0.1, 0.9], [0.9, 0.1]]
    given_ = problem([cheap, dear], [0.5, 0.25, 0.25], 1, reverse=False)
    fair = condition_on_claims(given_.world, given_.mechanisms, [1e-6, log(5 / 3) + 1e-6])
    assert fair.upper <= 0
    swapped = condition_on_claims(given_.world, given_.mechanisms, [log(5 / 3), 0.0])
    assert swapped.lower == pytest.approx(log(5 / 3))


@given(
    rows=st.lists(laws(3, zeros=True, most=10**6), min_size=3, max_size=3), beta=laws(2, zeros=True)
)
@settings(max_examples=40)
def test_constraint_values_are_rounded_up_and_by_little(
    rows: list[list[float]], beta: list[float]
) -> None:
    probability = np.array(rows).T  # [output, dataset]
    found = constraint_values(probability, 0, np.array([0.0, *beta]))
    total = mpmath.mpf(beta[0]) + mpmath.mpf(beta[1])
    for value, row in zip(found, probability.tolist(), strict=True):
        if row[0] == 0:
            assert value == -inf
        elif any(b > 0 and x == 0 for b, x in zip(beta, row[1:], strict=True)):
            assert value == inf
        else:
            with mpmath.workdps(50):
                exact = mpmath.log(row[0]) - sum(
                    mpmath.mpf(b) / total * mpmath.log(x)
                    for b, x in zip(beta, row[1:], strict=True)
                    if b > 0
                )
                assert exact <= mpmath.mpf(float(value)) <= exact + mpmath.mpf(1e-12)


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    known = apart()
    with raises(InvalidMechanism, field="mechanisms"):
        necessary_condition(known.world, [])
    for claims in ([], [0.1, 0.1], [-0.1], [float("nan")], [inf]):
        with raises(InvalidMechanism, field="claims"):
            condition_on_claims(known.world, known.mechanisms, claims)
    other = Universe(("x", "y", "z"))
    with raises(InvalidWorld, field="mechanism"):
        necessary_condition(known.world, [FiniteMechanism(other, np.full((3, 1), 1.0))])
    universe = known.world.universe
    vague = World(universe, Knowledge(universe), known.world.pairs)
    with raises(InvalidWorld, field="priors"):
        requirements(vague)
    sure = Explicit(universe, np.array([1.0, 0, 0]))
    nothing = World(universe, (sure,), known.world.pairs, unsupported="skip")
    with raises(InvalidWorld, field="priors"):
        requirements(nothing)
    monkeypatch.setattr(outputs_module, "MOST_REQUIREMENTS", 0)
    with raises(TooLarge, size=1, limit=0):
        requirements(known.world)


@given(given_=problems(zeros=True))
@settings(max_examples=40)
def test_hiding_behind_one_dataset_costs_what_plain_ratios_say(given_: Problem) -> None:
    datasets, found = range(len(given_.world.universe)), dp_costs(given_.world, given_.mechanisms)
    for d, e in product(datasets, datasets):
        plain = max(row[0] for row in oracle.log_ratios(given_.table, d, [e]))
        assert found[d, e] == plain or 0 <= found[d, e] - plain + 1e-15 < 1e-12


def test_a_mixture_may_be_cheaper_than_one_dataset_and_need_not_be() -> None:
    given_ = apart()
    assert dp_epsilon(given_.world, given_.mechanisms) == pytest.approx(log(5))
    assert necessary_condition(given_.world, given_.mechanisms).upper == pytest.approx(log(5 / 3))
    given_ = twins()
    assert dp_epsilon(given_.world, given_.mechanisms) == pytest.approx(0, abs=1e-12)
