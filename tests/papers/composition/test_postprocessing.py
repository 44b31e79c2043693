"""NfC constraints survive post-processing: Hölder over many draws, and the paper's construction."""

import doctest
from math import inf, log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.errors import InvalidMechanism, InvalidWorld, UnsoundRequest
from takifugu.finite import FiniteMechanism
from takifugu.finite.joint_runs import post_process
from takifugu.finite.nfc import constraint_values, necessary_condition
from takifugu.papers.composition.postprocessing import (
    Constraint,
    constraints_of,
    needed_epsilons,
    non_redundant,
    paper_construction,
)
from takifugu.priors import Universe
from tests.finite.nfc_worlds import apart, laws, problem, random_laws
from tests.oracles import nfc as oracle
from tests.raising import raises

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "post-processing.md"
DRAWS = 25_000
LETTERS = Universe(tuple("abcd"))


def _draws(rng: np.random.Generator, draws: int) -> tuple[Floats, Floats]:
    """Mechanisms ``[draw, output, dataset]`` on four datasets, and the same post-processed."""
    before = np.swapaxes(random_laws(rng, draws, 4, 5), 1, 2)
    channel = np.swapaxes(random_laws(rng, draws, 5, 3), 1, 2)
    return before, channel @ before


def test_no_post_processing_breaks_a_constraint() -> None:
    """DRAWS mechanisms and channels, 250 β; by Hölder nothing may exceed what M itself needs."""
    rng = np.random.default_rng(20)
    least = inf
    for _ in range(250):
        beta = np.append(0.0, random_laws(rng, 3))
        before, after = _draws(rng, DRAWS // 250)
        needed = constraint_values(before, 0, beta).max(axis=-1)
        after_needed = constraint_values(after, 0, beta).max(axis=-1)
        least = min(least, float((needed - after_needed).min()))
    assert least > -1e-11


def test_the_same_draws_break_a_constraint_that_is_not_of_this_form() -> None:
    """√(P(ω|a) P(ω|b)) ≤ e^ε P(ω|c) has two positive weights, and Hölder points the other way."""
    rng = np.random.default_rng(20)
    w = np.array([0.5, 0.5, -1.0, 0.0])
    before, after = _draws(rng, DRAWS)
    needed, after_needed = ((np.log(x) @ w).max(axis=-1) for x in (before, after))
    assert (after_needed > needed + 1e-3).sum() > 100


@given(
    rows=st.lists(laws(4, zeros=True), min_size=4, max_size=4),
    channel=st.lists(laws(3, zeros=True), min_size=4, max_size=4),
    beta=laws(3, zeros=True),
)
@settings(max_examples=35)
def test_zeros_change_nothing(
    rows: list[list[float]], channel: list[list[float]], beta: list[float]
) -> None:
    constraint = Constraint(LETTERS, "a", np.array([0.0, *beta]))
    mechanism = FiniteMechanism(LETTERS, np.array(rows))
    needed = needed_epsilons([constraint], mechanism).max()
    assert needed_epsilons([constraint], post_process(mechanism, channel)).max() <= needed + 1e-9


@st.composite
def constraint_sets(draw: st.DrawFn) -> list[Constraint]:
    """One to four constraints on four datasets; weights are multiples of 1/4 or so."""
    constraints = []
    for _ in range(draw(st.integers(1, 4))):
        t = draw(st.integers(0, 3))
        beta = draw(laws(3, zeros=True, most=4))
        constraints.append(
            Constraint(LETTERS, LETTERS.datasets[t], np.insert(np.array(beta), t, 0.0))
        )
    return constraints


@given(constraints=constraint_sets(), epsilon=st.floats(0.05, 3))
@settings(max_examples=35)
def test_the_construction_breaks_nothing(constraints: list[Constraint], epsilon: float) -> None:
    kept = [constraints[i] for i in non_redundant(constraints).kept]
    mixed = [i for i, c in enumerate(kept) if np.count_nonzero(c.beta) >= 2]
    for which in mixed:
        built = paper_construction(kept, epsilon, which=which)
        # M̂ is what the proof asks for: it obeys every constraint, and 0 and 2 use one up
        assert built.before.max() <= epsilon + 1e-9
        assert built.before[which, [0, 2]] == pytest.approx(epsilon, abs=1e-9)
        assert built.before[np.arange(len(kept)) != which][:, [0, 2]].max(initial=-inf) < epsilon
        # A∘M̂ does not do what the proof says
        assert not built.broken
        assert built.after[which, 1] < epsilon
        # because the step by arithmetic and geometric means goes down, and nowhere up
        t = LETTERS.position(kept[which].dataset)
        assert built.weights @ built.roots == pytest.approx(epsilon, abs=1e-9)
        assert built.weights @ built.sums == pytest.approx(built.after[which, 1], abs=1e-9)
        assert built.steps[t] == pytest.approx(0, abs=1e-15)
        assert (built.sums >= built.roots - 1e-12).all()
        assert (built.steps <= 1e-12).all() and built.steps.sum() < 0


def test_the_construction_on_two_datasets_of_equal_weight() -> None:
    universe = Universe(("D", "D1", "D2"))
    built = paper_construction([Constraint(universe, "D", np.array([0, 0.5, 0.5]))], 1.0)
    merged = (np.exp(-2) + np.exp(-4)) / (2 * np.exp(-2))
    assert built.after[0, 1] == pytest.approx(-log(merged), abs=1e-12)
    assert built.mechanism.outputs == (0, 1, 2, 3) and built.processed.outputs == (0, 1)


@given(constraints=constraint_sets())
@settings(max_examples=35)
def test_redundancy_is_what_the_oracle_says(constraints: list[Constraint]) -> None:
    rows = [c.weights.tolist() for c in constraints]
    found = non_redundant(constraints)
    kept = [rows[i] for i in found.kept]
    for place, i in enumerate(found.kept):
        others = kept[:place] + kept[place + 1 :]
        assert not oracle.implied(rows[i], others)
        v = found.witnesses[place]
        assert v.max() <= 0 and v @ rows[i] > 1
        assert all(v @ np.array(w) <= 1 + 1e-12 for w in others)
    assert sorted([*found.kept, *(i for i, _ in found.removed)]) == list(range(len(rows)))
    for i, combination in found.removed:
        assert oracle.implied(rows[i], kept)
        assert combination.min() >= 0 and combination.sum() <= 1 + 1e-9
        assert combination @ np.array(rows) == pytest.approx(rows[i], abs=1e-9)
        assert not np.delete(combination, list(found.kept)).any()


@given(
    constraints=constraint_sets(),
    rows=st.lists(laws(4, zeros=True), min_size=4, max_size=4),
)
@settings(max_examples=35)
def test_what_is_kept_implies_what_is_removed_also_with_zeros(
    constraints: list[Constraint], rows: list[list[float]]
) -> None:
    found = non_redundant(constraints)
    table = needed_epsilons(constraints, FiniteMechanism(LETTERS, np.array(rows)))
    needed = np.maximum(table[list(found.kept)].max(axis=0), 0.0)
    for i, _ in found.removed:
        assert (table[i] <= needed + 1e-9).all()


def test_the_redundant_constraint_of_the_paper() -> None:
    betas = [[0, 1, 0, 0], [0, 0, 0.5, 0.5], [0, 0.3, 0.35, 0.35], [0, 1, 0, 0]]
    found = non_redundant([Constraint(LETTERS, "a", np.array(b)) for b in betas])
    assert found.kept == (0, 1)
    assert found.removed[0][0] == 2 and found.removed[0][1] == pytest.approx([0.3, 0.7, 0, 0])
    assert found.removed[1][0] == 3


def test_the_certificates_of_a_condition_become_constraints() -> None:
    given_ = apart()
    condition = necessary_condition(given_.world, given_.mechanisms)
    (constraint,) = constraints_of(given_.world.universe, condition)
    needed = needed_epsilons([constraint], given_.mechanisms[0])
    assert needed.max() == pytest.approx(log(5 / 3)) and needed.max() <= condition.upper
    sure = problem([[[1.0, 0.0], [0.0, 1.0]]], [0.5, 0.5], 1)
    with raises(UnsoundRequest, reason="no certificate"):
        constraints_of(sure.world.universe, necessary_condition(sure.world, sure.mechanisms))


def test_what_is_refused() -> None:
    one_hot = Constraint(LETTERS, "a", np.array([0, 1.0, 0, 0]))
    mixed = Constraint(LETTERS, "a", np.array([0, 0.5, 0.5, 0]))
    parts = [one_hot, Constraint(LETTERS, "a", np.array([0, 0, 1.0, 0]))]
    for epsilon in (0.0, 1e-300, -1.0, inf, float("nan")):
        with raises(UnsoundRequest, field="epsilon"):
            paper_construction([mixed], epsilon)
    with raises(UnsoundRequest, field="which"):
        paper_construction(parts, 1.0)
    with raises(UnsoundRequest, field="which", given=0):
        paper_construction([one_hot, mixed], 1.0, which=0)
    with raises(UnsoundRequest, field="constraints", given=2):
        paper_construction([*parts, mixed], 1.0)
    for beta in ([0.5, 0.5, 0, 0], [0, 1.0], [0, 0.5, 0.4, 0]):
        with raises(InvalidWorld, field="beta"):
            Constraint(LETTERS, "a", np.array(beta))
    with raises(InvalidWorld, field="constraints"):
        non_redundant([])
    other = Constraint(Universe(("a", "b")), "a", np.array([0, 1.0]))
    with raises(InvalidWorld, field="constraints"):
        non_redundant([mixed, other])
    silent = FiniteMechanism(LETTERS, np.ones((4, 1)))
    with raises(InvalidWorld, field="mechanism"):
        needed_epsilons([other], silent)
    with raises(InvalidMechanism, field="channel"):
        post_process(silent, [[0.5, 0.5], [0.5, 0.5]])


def test_the_page_says_what_the_code_does() -> None:
    example = doctest.DocTestParser().get_doctest(
        PAGE.read_text(encoding="utf-8"), {}, PAGE.name, str(PAGE), 0
    )
    assert len(example.examples) > 20
    runner = doctest.DocTestRunner()
    runner.run(example)
    assert runner.failures == 0


def test_chains_are_not_free_so_dp_style_constraints_are_never_redundant() -> None:
    universe = Universe(("a", "b", "c"))
    steps = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "a")]
    behind = np.eye(3)
    constraints = [Constraint(universe, a, behind[universe.position(b)]) for a, b in steps]
    assert non_redundant(constraints).kept == (0, 1, 2, 3)
