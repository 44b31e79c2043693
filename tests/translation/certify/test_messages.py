"""What flows prove along a junction tree is never below the truth, whatever was proposed."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

from takifugu._core.numeric import Floats
from takifugu.priors.networks import Factor
from takifugu.translation.certify.flow import off_diagonal
from takifugu.translation.certify.messages import (
    CouplingSteps,
    Flows,
    Messages,
    NoProof,
    PossibleStates,
    Term,
    Thresholds,
    Transports,
    upper,
)
from takifugu.translation.models.tree import JunctionTree, Tree
from takifugu.translation.search.junction import (
    CouplingSearch,
    RecordingSearch,
    messages_from_document,
    messages_to_document,
)
from tests.translation.certify.networks import SolvedNetwork, solved_network

SEEDS = (3, 5, 11, 18)


@cache
def recorded(seed: int) -> tuple[SolvedNetwork, dict[int, Floats], Messages]:
    network = solved_network(seed)
    search = RecordingSearch(network.tree)
    return network, upper(network.problem, search, network.secrets), search.messages


def all_infinite(bounds: dict[int, Floats]) -> bool:
    return all(np.isinf(each).all() for each in bounds.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_lie_above_the_programs_over_all_datasets(seed: int) -> None:
    network, bounds, _ = recorded(seed)
    assert not network.below(bounds)
    merging = CouplingSearch(network.tree, merges=True)
    assert not network.below(upper(network.problem, merging, network.secrets))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_proof_that_was_written_down_proves_the_same(seed: int) -> None:
    network, bounds, proof = recorded(seed)
    text = json.dumps(messages_to_document(proof))
    for again in (proof, proof, messages_from_document(json.loads(text))):
        replayed = upper(network.problem, again, network.secrets)
        assert {v: each.tolist() for v, each in replayed.items()} == {
            v: each.tolist() for v, each in bounds.items()
        }


def changed(proof: Messages, change: Callable[[Any], Any], *kinds: type) -> Messages:
    return replace(
        proof, choices=tuple(change(c) if isinstance(c, kinds) else c for c in proof.choices)
    )


def masses(change: Callable[[Floats], Any]) -> Callable[[Messages], Messages]:
    return lambda proof: changed(proof, lambda c: replace(c, mass=change(c.mass)), Flows)


SOFT: dict[str, Callable[[Messages], Messages]] = {
    "NaN": masses(lambda m: np.full(len(m), np.nan)),
    "infinite": masses(lambda m: np.where(np.arange(len(m)) % 2 == 0, np.inf, m)),
    "negative": masses(lambda m: -m),
    "none": masses(np.zeros_like),
    "tiny": masses(lambda m: m * 1e-310),
    "huge": masses(lambda m: m * 1e199 + 1e199),
    "equal": masses(np.ones_like),
    "reversed": masses(lambda m: m[::-1].copy()),
    "elsewhere": lambda proof: changed(
        proof, lambda c: replace(c, sink=c.sink + 1, source=c.source - 1), Flows
    ),
    "thresholds": lambda proof: changed(
        proof, lambda c: Thresholds(np.full(len(c.first) - 1, 1.0), True), Flows
    ),
    "high thresholds": lambda proof: changed(
        proof, lambda c: Thresholds(np.full(len(c.first) - 1, np.nan), False), Flows
    ),
}


@pytest.mark.parametrize("name", SOFT)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_wrong_flow_only_loosens_the_bound(name: str, seed: int) -> None:
    network, _, proof = recorded(seed)
    assert not network.below(upper(network.problem, SOFT[name](proof), network.secrets))


MALFORMED: dict[str, Callable[[Messages], Messages]] = {
    "cut off": lambda proof: replace(proof, choices=proof.choices[: len(proof.choices) // 2]),
    "empty": lambda proof: replace(proof, choices=()),
    "short masses": masses(lambda m: m[:-1]),
    "text": masses(lambda m: ["a"] * len(m)),
    "a table": masses(lambda m: np.stack([m, m])),
    "no arcs": lambda proof: changed(proof, lambda c: replace(c, first=c.first[:-1]), Flows),
    "falling": lambda proof: changed(proof, lambda c: replace(c, first=c.first[::-1]), Flows),
    "no choices": lambda proof: replace(proof, choices=(None,) * len(proof.choices)),
    "numbers": lambda proof: replace(proof, choices=(7,) * len(proof.choices)),
    "no tree": lambda proof: replace(proof, tree=JunctionTree(proof.tree.sizes, (), ())),
    "lost entries": lambda proof: replace(
        proof, tree=replace(proof.tree, cliques=((0,),) * len(proof.tree.cliques))
    ),
    "loop": lambda proof: replace(
        proof, tree=replace(proof.tree, parents=tuple(range(len(proof.tree.parents))))
    ),
    "other sizes": lambda proof: replace(
        proof, tree=replace(proof.tree, sizes=tuple(n + 1 for n in proof.tree.sizes))
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_proof_proves_nothing(name: str) -> None:
    network, _, proof = recorded(SEEDS[0])
    assert all_infinite(upper(network.problem, MALFORMED[name](proof), network.secrets))


def test_the_proof_of_another_problem_proves_nothing_or_an_upper_bound() -> None:
    for seed in SEEDS:
        network = recorded(seed)[0]
        for other in SEEDS:
            proof = recorded(other)[2]
            for tree in (proof.tree, network.tree):
                bounds = upper(network.problem, replace(proof, tree=tree), network.secrets)
                assert not network.below(bounds)


def test_cliques_that_break_the_running_intersection_are_refused() -> None:
    network, _, proof = recorded(SEEDS[0])
    sizes = network.problem.sizes
    everything = tuple(range(len(sizes)))
    broken = JunctionTree(sizes, (everything, (), (0,)), (-1, 0, 1))
    assert all_infinite(upper(network.problem, replace(proof, tree=broken), network.secrets))


def one_step(p: Floats, q: Floats, cost: Floats) -> float:
    """The bound between two sides with these weights, at these costs."""
    k, w = cost.shape
    full = np.zeros((k + w, k + w))
    full[:k, k:] = cost
    law = PossibleStates((0,), np.arange(k + w)[None], np.concatenate([p, q]), 0)
    tree = JunctionTree((k + w,), ((0,),), (-1,))
    steps = CouplingSteps((k + w,), CouplingSearch(tree))
    sides = [np.arange(k), np.arange(k, k + w)]
    return float(steps.between(law, [Term((0,), full)], sides, np.array([0]), np.array([1]))[0])


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 0.1, 3.0, 250.0])
@pytest.mark.parametrize("rare", [1.0, 1e-8, 1e-140])
def test_steps_from_or_to_a_single_state_are_what_exact_arithmetic_says(
    scale: float, rare: float
) -> None:
    rng = np.random.default_rng(5)
    with mpmath.workdps(60):
        for _ in range(10):
            n = int(rng.integers(1, 6))
            weight = rng.uniform(0.1, 1, n) * np.where(np.arange(n) % 2 == 1, rare, 1.0)
            cost = scale * rng.uniform(0, 1, n)
            law = [mpmath.mpf(float(v)) / mpmath.fsum(map(float, weight)) for v in weight]
            to_many = -mpmath.log(
                mpmath.fsum(m * mpmath.exp(-float(c)) for m, c in zip(law, cost, strict=True))
            )
            from_many = mpmath.log(
                mpmath.fsum(m * mpmath.exp(float(c)) for m, c in zip(law, cost, strict=True))
            )
            for exact, bound in (
                (to_many, one_step(np.ones(1), weight, cost[None])),
                (from_many, one_step(weight, np.ones(1), cost[:, None])),
            ):
                assert exact <= bound <= exact * (1 + mpmath.mpf(1e-12)) + 1e-13


def mismatched(lefts: list[int], rights: list[int]) -> Messages:
    """A proof for `two_entries` whose pairs of states are these."""
    message = {"lefts": lefts, "rights": rights}
    flow = {"first": [0, 3], "source": [0, 1, 2], "sink": [0, 1, 2], "mass": [1.0, 1.0, 1.0]}
    last = {"first": [0, 0], "source": [], "sink": [], "mass": []}
    choices = [{"numbers": []}, message, flow, {"numbers": [0]}, {"numbers": []}, last]
    cliques = {"sizes": [3, 3], "cliques": [[0], [0, 1]], "parents": [-1, 0]}
    return messages_from_document({**cliques, "choices": choices})


def two_entries() -> Tree:
    """A free entry, of which the next, which costs 1, reveals value 2 but not 0 from 1."""
    rows = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.01, 0.01, 0.98]])
    costs = np.zeros((3, 3)), off_diagonal(3)
    return Tree((3, 3), (Factor((0,), np.full(3, 1 / 3)), Factor((0, 1), rows)), costs, {})


@pytest.mark.parametrize(
    ("lefts", "rights"),
    [([0], [1, 2]), ([0, 0], [1]), ([0], []), ([], [1]), ([0], [3]), ([-1], [1]), ([3], [1])],
)
def test_pairs_that_do_not_match_prove_nothing(lefts: list[int], rights: list[int]) -> None:
    bounds = upper(two_entries(), mismatched(lefts, rights), {0: (((0,), (2,)),)})
    assert all_infinite(bounds)


def test_arcs_that_begin_beyond_all_integers_prove_nothing() -> None:
    far = 2**63 - 1
    numbers = np.zeros(4, dtype=np.int64)
    flows = Flows(np.array([0, far, -far - 1, -1, 0]), numbers[:0], numbers[:0], np.zeros(0))
    problems = Transports(None, numbers, numbers + 1, numbers, 1.0)
    with pytest.raises(NoProof):
        flows.prove(problems)


def test_couplings_do_not_vouch_for_themselves() -> None:
    class Boast(Thresholds):
        def prove(self, problems: Transports) -> Floats:
            return np.zeros(len(problems.lefts))

    problem = two_entries()
    tree = JunctionTree((3, 3), ((0, 1),), (-1,))
    proof = Messages(tree, ((0,), (), Boast(np.ones(1), looked_up=True)))
    assert all_infinite(upper(problem, proof, {0: (((0,), (2,)),)}))
