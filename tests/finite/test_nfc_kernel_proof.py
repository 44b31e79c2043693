"""What kernels prove is never less than what plain enumeration of runs finds."""

from dataclasses import replace
from math import inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidWorld
from takifugu.finite import FiniteMechanism
from takifugu.finite.nfc import (
    KernelProof,
    best_couplings,
    necessary_condition,
    prove_with_certificates,
    prove_with_kernel,
)
from takifugu.priors import Explicit
from tests.finite.nfc_worlds import Problem, apart, laws, problem, problems, twins
from tests.oracles import nfc as oracle
from tests.raising import raises


def _sound(given_: Problem, proof: KernelProof, table: list[list[float]]) -> None:
    turned = proof.pair != given_.world.pairs[0]
    left, right = (given_.right, given_.left) if turned else (given_.left, given_.right)
    for runs in (1, 2, 3):
        worst = oracle.worst_composed(table, given_.prior, left, right, runs)
        assert worst <= proof.loss(runs) + 1e-12


@given(given_=problems(right=2, outputs=2, zeros=True), data=st.data())
@settings(max_examples=25)
def test_any_kernel_proves_a_bound_that_holds(given_: Problem, data: st.DataObject) -> None:
    pair, n = given_.world.pairs[0], len(given_.world.universe)
    kernel = np.zeros((n, n))
    for d in given_.left:
        kernel[d, list(given_.right)] = data.draw(laws(len(given_.right), zeros=True))
    (proof,) = prove_with_kernel(given_.world, given_.mechanisms, pair, kernel)
    assert proof.once >= 0
    _sound(given_, proof, given_.table)


@given(given_=problems(right=2, outputs=2, zeros=True))
@settings(max_examples=25)
def test_the_certificates_prove_linear_composition_up_to_a_constant(given_: Problem) -> None:
    condition = necessary_condition(given_.world, given_.mechanisms)
    proofs = prove_with_certificates(given_.world, condition)
    assert len(proofs) == 2
    assert max(proof.per_run for proof in proofs) == condition.upper
    for proof in proofs:
        _sound(given_, proof, given_.table)


@given(given_=problems(right=2, outputs=2, zeros=True), data=st.data())
@settings(max_examples=25)
def test_a_coupling_proves_linear_composition_also_of_what_is_post_processed(
    given_: Problem, data: st.DataObject
) -> None:
    best = best_couplings(given_.world, given_.mechanisms)
    assert len(best) == 2
    channels = [
        np.array([data.draw(laws(2, zeros=True)) for _ in m.outputs]) for m in given_.mechanisms
    ]
    processed = [
        row
        for m, channel in zip(given_.mechanisms, channels, strict=True)
        for row in (m.likelihood @ channel).T.tolist()
    ]
    condition = necessary_condition(given_.world, given_.mechanisms)
    assert condition.lower <= max(b.upper for b in best) + 1e-12
    for b in best:
        if b.proof is None:
            assert b.upper == b.lower == inf
            continue
        assert b.proof.couples and b.proof.once < 1e-7
        assert b.lower <= b.upper and b.upper - b.lower < 1e-6
        for table in (given_.table, processed):
            _sound(given_, b.proof, table)


@given(
    table=st.lists(laws(3), min_size=4, max_size=4),
    prior=laws(4),
)
@settings(max_examples=30)
def test_the_best_coupling_of_two_and_two_is_found(
    table: list[list[float]], prior: list[float]
) -> None:
    given_ = problem([table], prior, 2)
    p = [x / (prior[0] + prior[1]) for x in prior[:2]]
    q = [x / (prior[2] + prior[3]) for x in prior[2:]]
    forth, back = best_couplings(given_.world, given_.mechanisms)
    exact = oracle.best_two_by_two(given_.table, p, q, (0, 1), (2, 3))
    assert forth.upper == pytest.approx(exact, abs=1e-7) and forth.upper >= exact - 1e-12
    assert forth.lower == pytest.approx(exact, abs=1e-7) and forth.lower <= exact + 1e-12
    exact = oracle.best_two_by_two(given_.table, q, p, (2, 3), (0, 1))
    assert back.lower - 1e-12 <= exact <= back.upper + 1e-12


def test_twins_in_numbers() -> None:
    """The twins as kernel: no cost per run, log 5 once. The best coupling: log 2 · 4/5 per run."""
    given_ = twins()
    pair = given_.world.pairs[0]
    kernel = np.zeros((4, 4))
    kernel[0, 2] = kernel[1, 3] = 1
    (proof,) = prove_with_kernel(given_.world, given_.mechanisms, pair, kernel)
    assert proof.per_run == pytest.approx(0, abs=1e-12)
    assert proof.once == pytest.approx(log(5)) and not proof.couples
    assert proof.loss(1000) == pytest.approx(log(5))
    forth, _ = best_couplings(given_.world, given_.mechanisms)
    assert forth.upper == pytest.approx(0.8 * log(2), abs=1e-9)
    assert forth.lower == pytest.approx(0.8 * log(2), abs=1e-9)
    assert forth.proof is not None and forth.proof.couples
    again = prove_with_kernel(given_.world, given_.mechanisms, pair, forth.proof.kernel)
    assert again[0].couples and again[0].loss(1) == pytest.approx(forth.upper)


def test_the_constant_is_the_better_of_mass_and_divergence() -> None:
    """One dataset D0, β = (1/2, 1/2), q = (0.9, 0.1): mass log 5, divergence log 5/3."""
    table = [[0.5, 0.5], [0.1, 0.9], [0.9, 0.1]]
    given_ = problem([table], [0.5, 0.45, 0.05], 1, reverse=False)
    kernel = np.array([[0, 0.5, 0.5], [0, 0, 0], [0, 0, 0]])
    pair = given_.world.pairs[0]
    (proof,) = prove_with_kernel(given_.world, given_.mechanisms, pair, kernel)
    assert proof.once == pytest.approx(0.5 * log(0.5 / 0.9) + 0.5 * log(0.5 / 0.1))
    assert proof.once == pytest.approx(log(5 / 3))
    _sound(given_, proof, given_.table)


def test_a_coupling_that_zeros_forbid_is_refuted() -> None:
    """D0 may only go to D2, but weighs more than D2."""
    table = [[0.5, 0.5], [0.0, 1.0], [0.5, 0.5], [0.0, 1.0]]
    given_ = problem([table], [0.4, 0.1, 0.1, 0.4], 2, reverse=False)
    (best,) = best_couplings(given_.world, given_.mechanisms)
    assert best.proof is None and best.upper == best.lower == inf
    fair = problem([table], [0.1, 0.4, 0.1, 0.4], 2, reverse=False)
    (best,) = best_couplings(fair.world, fair.mechanisms)
    assert best.upper == pytest.approx(0, abs=1e-9)


def test_weight_where_a_prior_sees_nothing_proves_nothing() -> None:
    given_ = apart()
    universe = given_.world.universe
    narrow = Explicit(universe, np.array([0.5, 0.5, 0.0]), "narrow")
    world = replace(given_.world, priors=(*given_.world.listed_priors, narrow))
    kernel = np.array([[0, 0.5, 0.5], [0, 0, 0], [0, 0, 0]])
    wide, blind = prove_with_kernel(world, given_.mechanisms, world.pairs[0], kernel)
    assert wide.couples and wide.loss(2) == pytest.approx(2 * log(5 / 3))
    assert blind.prior == "narrow" and blind.loss(1) == inf


@pytest.mark.parametrize(
    "kernel",
    [
        np.zeros((2, 2)),
        np.array([[0.5, 0.5, 0], [0, 0, 0], [0, 0, 0]]),
        np.array([[0, 0.5, 0.4], [0, 0, 0], [0, 0, 0]]),
        np.array([[0, 1.5, -0.5], [0, 0, 0], [0, 0, 0]]),
        np.array([[0, np.nan, 1], [0, 0, 0], [0, 0, 0]]),
    ],
)
def test_what_is_no_kernel_is_refused(kernel: np.ndarray) -> None:
    given_ = apart()
    with raises(InvalidWorld, field="kernel"):
        prove_with_kernel(given_.world, given_.mechanisms, given_.world.pairs[0], kernel)


def test_a_mechanism_that_says_nothing_costs_nothing() -> None:
    given_ = apart()
    silent = FiniteMechanism(given_.world.universe, np.ones((3, 1)))
    (best,) = best_couplings(given_.world, [silent])
    assert best.upper == pytest.approx(0, abs=1e-9)
