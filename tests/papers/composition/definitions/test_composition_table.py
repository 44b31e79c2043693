"""Which definitions compose: every verdict proven or refuted, and checked by other code."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import inf, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import TooLarge, UnsoundRequest
from takifugu.finite import FiniteMechanism, World, leakage
from takifugu.finite.joint_runs import joint_leakage
from takifugu.papers.composition.composition_attack import (
    ComparedLaws,
    FunctionPair,
    RepeatedMechanism,
    compared_laws,
    function_name,
    hidden_functions,
    search_composition_attack,
    search_deterministic_attack,
)
from takifugu.papers.composition.composition_table import (
    DEFINED,
    CompositionRow,
    DefinitionOnWorld,
    composition_rows,
    coupling,
    coupling_proof,
    examined,
    odds_of_runs,
    odds_together,
    recheck,
    shown,
)
from takifugu.papers.composition.definitions import (
    blowfish_privacy,
    dependent_privacy,
    differential_privacy,
    group_privacy,
    inferential_privacy,
    noiseless_privacy,
    per_entry_privacy,
)
from takifugu.priors import Explicit, Tables
from takifugu.priors.universe import Name
from tests.oracles import finite as oracle
from tests.raising import raises

ROWS = {row.about.key: row for row in composition_rows()}
NO = sorted(key for key, row in ROWS.items() if row.composes == "no")
REPEATED = sorted(key for key in NO if key != "noiseless")
YES = sorted(key for key, row in ROWS.items() if row.composes == "yes")
SEEDS = st.integers(0, 2**32 - 1)


def oracle_odds(world: World, rows: list[list[Fraction]], runs: int) -> float:
    """The loss by the oracle of finite worlds."""
    masks = {s: world.mask(s).tolist() for s in world.secrets}
    pairs = [(masks[pair.left], masks[pair.right]) for pair in world.pairs]
    priors = [prior.probability.tolist() for prior in world.listed_priors]
    each: Any = rows  # fractions, which it takes as they are
    return float(oracle.worst(priors, pairs, oracle.sequence([(each, runs)])))


def test_the_verdicts() -> None:
    assert {key: row.composes for key, row in ROWS.items()} == {
        "differential": "yes",
        "per-entry": "yes",
        "group": "yes",
        "dependent": "yes",
        "dependent-known": "no",
        "noiseless": "no",
        "blowfish": "yes",
        "blowfish-constraints": "yes",
        "pufferfish": "no",
        "inferential": "no",
        "conditional": "no",
        "partial-knowledge": "no",
        "bayesian": "no",
        "bayesian-independent": "yes",
        "distributional": "no",
    }


def test_the_paper_prints_the_same_but_for_noiseless_privacy() -> None:
    assert [key for key, row in ROWS.items() if row.differs] == ["noiseless"]
    printed = [one.printed for one in DEFINED]
    assert printed.count("yes") == 5  # 4 rows; Blowfish with and without constraints
    assert printed.count("no") == 6


@pytest.mark.parametrize("key", REPEATED)
def test_a_counterexample_leaks_more_than_the_sum(key: str) -> None:
    attack, world = ROWS[key].attack, ROWS[key].about.world()
    assert isinstance(attack, RepeatedMechanism)
    rows = [list(row) for row in attack.rows]
    once, together = (oracle_odds(world, rows, runs) for runs in (1, attack.runs))
    assert once == pytest.approx(0.0 if attack.once == 1 else log(attack.once), abs=1e-15)
    assert together > attack.runs * once + 1e-3
    assert odds_of_runs(world, attack.rows, 1) == attack.once
    assert odds_of_runs(world, attack.rows, attack.runs) == attack.together
    floats = FiniteMechanism(world.universe, np.array(attack.rows, dtype=float), attack.outputs)
    found = joint_leakage(world, [(floats, attack.runs)])
    assert found.epsilon == pytest.approx(together, abs=1e-9) or together == inf
    if together < inf:
        assert found.attained > attack.runs * leakage(world, floats).epsilon + 1e-3


def test_the_losses_of_the_bayesian_counterexample() -> None:
    attack = ROWS["bayesian"].attack
    assert isinstance(attack, RepeatedMechanism)
    assert (attack.runs, attack.once, attack.together) == (2, 9, Fraction(441, 5))
    assert 441 / 5 > 9**2


@pytest.mark.nightly
@pytest.mark.parametrize("key", YES)
def test_where_the_theorem_applies_no_attack_is_found(key: str) -> None:
    assert search_composition_attack(ROWS[key].about.world(), most_runs=2) is None


@settings(max_examples=12, deadline=None)
@given(seed=SEEDS, runs=st.integers(2, 3))
@pytest.mark.parametrize("key", YES)
def test_where_the_theorem_applies_every_mechanism_composes(key: str, seed: int, runs: int) -> None:
    proof, world = ROWS[key].proof, ROWS[key].about.world()
    assert proof is not None
    table = np.random.default_rng(seed).dirichlet(np.ones(3), len(world.universe))
    mechanism = FiniteMechanism(world.universe, table)
    once = leakage(world, mechanism).epsilon
    by_edges = max(float(np.log(table[d] / table[e]).max()) for d, e in proof.edges)
    assert once == pytest.approx(by_edges, abs=1e-9)
    assert joint_leakage(world, [(mechanism, runs)]).attained <= runs * once + 1e-9


@st.composite
def comparisons(draw: st.DrawFn) -> tuple[ComparedLaws, frozenset[tuple[int, int]]]:
    """Two laws with small denominators, and some edges between their datasets."""
    sizes = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    laws = []
    for place, size in enumerate(sizes):
        weights = draw(st.lists(st.integers(1, 4), min_size=size, max_size=size))
        laws.append({10 * place + k: Fraction(w, sum(weights)) for k, w in enumerate(weights)})
    every = [(d, e) for d in laws[0] for e in laws[1]]
    edges = frozenset(e for e in every if draw(st.booleans()))
    return ComparedLaws(0, 0, laws[0], laws[1]), edges


@pytest.mark.costly
@settings(max_examples=150, deadline=None)
@given(drawn=comparisons())
def test_a_coupling_is_found_where_a_linear_program_finds_one(
    drawn: tuple[ComparedLaws, frozenset[tuple[int, int]]],
) -> None:
    from scipy.optimize import linprog

    laws, edges = drawn
    found = coupling(laws, edges)
    listed = sorted(edges)
    sums = [[1.0 if e[0] == d else 0.0 for e in listed] for d in laws.left]
    sums += [[1.0 if e[1] == d else 0.0 for e in listed] for d in laws.right]
    masses = [float(p) for p in (*laws.left.values(), *laws.right.values())]
    feasible = bool(listed) and (
        linprog(np.zeros(len(listed)), A_eq=sums, b_eq=masses, method="highs").status == 0
    )
    assert (found is not None) == feasible
    if found is not None:
        assert all(edge in edges and share >= 0 for edge, share in found.items())
        for side, law in enumerate((laws.left, laws.right)):
            for d, p in law.items():
                assert sum((s for e, s in found.items() if e[side] == d), Fraction(0)) == p


@pytest.mark.parametrize("key", sorted(ROWS))
def test_hidden_functions_are_all_that_one_run_may_show(key: str) -> None:
    """Their means agree on both sides of every pair, exactly; and there are as many as can be."""
    world = ROWS[key].about.world()
    basis = hidden_functions(world)
    laws = compared_laws(world)
    for w, one in product(basis, laws):
        left, right = (sum(p * w[d] for d, p in law.items()) for law in (one.left, one.right))
        assert left == right
    rows = np.zeros((len(laws), len(world.universe)))
    for k, one in enumerate(laws):
        rows[k, list(one.left)] += [float(p) for p in one.left.values()]
        rows[k, list(one.right)] -= [float(p) for p in one.right.values()]
    assert len(basis) == len(world.universe) - np.linalg.matrix_rank(rows, tol=1e-9)


def test_without_a_product_that_leaves_the_space_nothing_silent_leaks() -> None:
    """Two fair bits, both secret: parity is all that is hidden, and its square is constant."""
    world = noiseless_privacy(Explicit.uniform(Tables.of({"a": (0, 1), "b": (0, 1)})))
    assert len(hidden_functions(world)) == 2
    assert search_composition_attack(world) is None
    assert coupling_proof(world) is None
    row = examined(DefinitionOnWorld("two", "two bits", "two bits", None, lambda: world))
    assert (row.composes, row.proof, row.attack) == ("open", None, None)
    assert "neither" in row.witness


def test_deterministic_answers_do_not_compose_under_noiseless_privacy() -> None:
    """A ⊕ b and a ⊕ b ⊕ c: each says nothing of any bit, both give c away; by three codes."""
    row = ROWS["noiseless"]
    attack, world = row.attack, row.about.world()
    assert isinstance(attack, FunctionPair)
    assert attack.names == ("a ⊕ b", "a ⊕ b ⊕ c")
    bits = list(product((0, 1), repeat=3))
    assert attack.functions == (
        tuple(a ^ b for a, b, _ in bits),
        tuple(a ^ b ^ c for a, b, c in bits),
    )
    assert (attack.once, attack.together) == ((1, 1), inf)
    for rows in attack.rows:
        assert {value for line in rows for value in line} == {0, 1}  # no noise
        assert oracle_odds(world, [list(line) for line in rows], 1) == 0
        assert odds_of_runs(world, rows, 1) == 1
    assert odds_together(world, attack.rows) == inf
    answers = [
        FiniteMechanism(world.universe, np.array(rows, dtype=float), (0, 1), name)
        for name, rows in zip(attack.names, attack.rows, strict=True)
    ]
    assert all(leakage(world, one).epsilon <= 1e-12 for one in answers)
    assert joint_leakage(world, answers).attained == inf
    for c, other in ((0, 1), (1, 0)):  # by hand: the outputs that are seen leave one value of c
        left = [one for one, f, g in zip(bits, *attack.functions, strict=True)
                if (f, g) == attack.seen and one[2] == c]  # fmt: skip
        assert bool(left) == (str(attack.pair) == f"c={c} / c={other}")


def test_a_function_run_twice_reveals_no_more_than_once() -> None:
    attack, world = ROWS["noiseless"].attack, ROWS["noiseless"].about.world()
    assert isinstance(attack, FunctionPair)
    for rows in attack.rows:
        assert [odds_of_runs(world, rows, runs) for runs in (1, 2, 3)] == [1, 1, 1]


def test_a_pair_of_functions_that_is_not_what_it_says_is_refused() -> None:
    attack, world = ROWS["noiseless"].attack, ROWS["noiseless"].about.world()
    assert isinstance(attack, FunctionPair)
    recheck(world, attack)
    for wrong in (
        replace(attack, once=(Fraction(2), Fraction(1))),
        replace(attack, together=Fraction(2)),
        replace(attack, functions=attack.functions[:1] * 2),  # the same function twice
        replace(attack, functions=attack.functions[:1] * 2, together=Fraction(1)),
    ):
        with raises(UnsoundRequest, reason="recheck"):
            recheck(world, wrong)


@pytest.mark.nightly
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_functions_that_are_found_are_what_they_say_on_any_prior(seed: int) -> None:
    """Priors of few values, so that some functions reveal nothing; the oracle agrees."""
    rng = np.random.default_rng(seed)
    sizes = ((0, 1), (0, 1), (0, 1)) if seed % 2 else ((0, 1, 2), (0, 1))
    tables = Tables.of(dict(zip("abc", sizes, strict=False)))
    shares = rng.integers(1, 3, len(tables)).astype(float)
    world = inferential_privacy([Explicit(tables, shares / shares.sum())])
    silent = [
        [[Fraction(1 - value), Fraction(value)] for value in (0, *rest)]
        for rest in product((0, 1), repeat=len(tables) - 1)
        if any(rest)
    ]
    silent = [rows for rows in silent if abs(oracle_odds(world, rows, 1)) < 1e-12]
    most = max((odds_together(world, pair) for pair in combinations(silent, 2)), default=1)
    attack = search_deterministic_attack(world)
    assert (1 if attack is None else attack.together) == most
    if attack is not None:
        recheck(world, attack)


def test_functions_are_named_by_what_they_compute() -> None:
    """Other than parities by the datasets on which they are 1; too many are not listed."""
    places = Tables.of({"a": (0, 1, 2), "b": (0, 1)})
    world = noiseless_privacy(Explicit.uniform(places))
    assert function_name(world, (0, 1, 0, 0, 1, 0)) == "whether it is (0, 1) or (2, 0)"
    many = noiseless_privacy(Explicit.uniform(Tables.of(dict.fromkeys("abcd", (0, 1)))))
    with raises(TooLarge, size=16, limit=12):
        search_deterministic_attack(many)
    two = noiseless_privacy(Explicit.uniform(Tables.of(dict.fromkeys("ab", (0, 1)))))
    assert search_deterministic_attack(two) is None


@pytest.mark.parametrize("key", REPEATED)
def test_an_attack_that_is_not_what_it_says_is_refused(key: str) -> None:
    attack, world = ROWS[key].attack, ROWS[key].about.world()
    assert isinstance(attack, RepeatedMechanism)
    recheck(world, attack)
    for wrong in (
        replace(attack, once=attack.once + 1),
        replace(attack, together=Fraction(3, 2)),
        replace(attack, rows=tuple((Fraction(1),) for _ in attack.rows)),
        replace(attack, runs=1, together=attack.once),
    ):
        with raises(UnsoundRequest, reason="recheck"):
            recheck(world, wrong)


def test_a_mechanism_that_is_none_is_refused() -> None:
    world = ROWS["pufferfish"].about.world()
    with pytest.raises(ValueError, match="distribution"):
        odds_of_runs(world, [[Fraction(1, 2)]] * 4, 1)


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_what_is_found_on_any_prior_survives_the_oracle(seed: int) -> None:
    """Random priors over two or three bits: attacks are what they say, proofs leave none."""
    rng = np.random.default_rng(seed)
    tables = Tables.of(dict.fromkeys("abc"[: int(rng.integers(2, 4))], (0, 1)))
    shares = rng.multinomial(64 - len(tables), np.full(len(tables), 1 / len(tables))) + 1
    world = inferential_privacy([Explicit(tables, shares / 64)])
    attack = search_composition_attack(world)
    assert attack is not None  # one prior leaves room for many hidden functions
    assert coupling_proof(world) is None
    rows = [list(row) for row in attack.rows]
    assert oracle_odds(world, rows, 1) == pytest.approx(0, abs=1e-15)
    assert oracle_odds(world, rows, attack.runs) > 1e-6


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.integers(2, 3), min_size=2, max_size=3),
    owners=st.lists(st.integers(0, 1), min_size=3, max_size=3),
    size=st.integers(1, 2),
    seed=SEEDS,
)
def test_the_theorem_applies_to_all_worlds_that_compare_datasets(
    sizes: list[int], owners: list[int], size: int, seed: int
) -> None:
    """Not only to the worlds of the table: any shape, any owners, any public constraint."""
    names = "abc"[: len(sizes)]
    values: dict[Name, tuple[int, ...]] = {
        name: tuple(range(n)) for name, n in zip(names, sizes, strict=True)
    }
    owned: dict[Name, Name] = {
        name: f"p{owner}" for name, owner in zip(names, owners, strict=False)
    }
    tables = Tables.of(values, records=owned)
    kept = np.random.default_rng(seed).random(len(tables)) < 0.7
    kept[:2] = True
    allowed = {data for data, keep in zip(tables.datasets, kept, strict=True) if keep}
    for world in (
        differential_privacy(tables),
        per_entry_privacy(tables),
        group_privacy(tables, size=size),
        dependent_privacy(tables, size=size),
        blowfish_privacy(tables, allowed=allowed.__contains__),
    ):
        assert coupling_proof(world) is not None


def test_losses_are_shown_with_their_exact_ratio() -> None:
    assert shown(Fraction(1)) == "0"
    assert shown(inf) == "infinite"
    assert shown(Fraction(9)) == "log 9 = 2.197"
    row: CompositionRow = ROWS["bayesian"]
    assert "one run loses log 9 = 2.197, 2 runs log 441/5 = 4.48 (seen: 00 twice)" in row.witness
    assert ROWS["differential"].witness.startswith("theorem; 18 of 18")
    assert ROWS["noiseless"].witness == (
        "functions without noise: a ⊕ b loses 0 and a ⊕ b ⊕ c loses 0, both together infinite"
        " (seen: 0 and 0, which rules out c=1)"
    )


def test_outputs_are_not_named_as_verdicts_are() -> None:
    for row in ROWS.values():
        assert not {"yes", "no"} & set(row.witness.replace("(", " ").replace(")", " ").split())
