"""Thousands of priors at the edge of float64: no bound is below what high precision finds.

A prior may be refused (`TooLarge`, and clear errors of the family); a bound that is given holds.
``DEEP=1`` makes 100,000 instances of it.
"""

import os
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from takifugu.errors import Malformed, TooLarge, UnsoundRequest
from takifugu.finite import FiniteMechanism, World, leakage
from takifugu.finite.joint_runs import joint_leakage
from takifugu.influence import attractive_curve, interval_chain_curve, network_curve
from takifugu.priors import Explicit, MarkovChain, Secrets
from takifugu.priors.secrets import EntryIs, SecretPair, entry_pairs
from takifugu.priors.universe import Tables
from takifugu.translation import network_losses
from tests.extremes import instances
from tests.extremes.chain_points import chain_points
from tests.oracles import extremes as oracle
from tests.translation.rising_fields import attractive_losses

COUNT = 14_000 if os.environ.get("DEEP") else 40
EPSILONS = (0.01, 0.5, 3.0)

Check = Callable[[np.random.Generator], bool]
mpf = oracle.mp.mpf


def at_least(bound: float, truth: Any) -> None:
    """The bound is no less than the truth, not even by rounding (of 60 digits, 10 are spare)."""
    assert mpf(float(bound)) >= truth - mpf("1e-50"), (
        f"{bound} is below {oracle.mp.nstr(truth, 20)}"
    )


def pairs_of(model: Any, entry: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return list(Secrets().sides(model.states[entry]))


def label(model: Any, entry: int, left: tuple[int, ...], right: tuple[int, ...]) -> str:
    one, other = (
        EntryIs(model.entries[entry], tuple(model.states[entry][v] for v in side))
        for side in (left, right)
    )
    return str(SecretPair(one, other))


def check_curve(model: Any, curve: Any) -> None:
    """Every row of a network's curve against a*(b) over all sets; no possible pair is missing."""
    sizes, tables = instances.tables(model)
    law = oracle.law(sizes, tables)
    rows = dict(zip(curve.pairs, curve.leak, strict=True))
    for entry in range(len(sizes)):
        for left, right in pairs_of(model, entry):
            truth = oracle.leaks(law, len(sizes), entry, left, right)
            if truth is None:
                continue
            row = rows[label(model, entry, left, right)]
            for b, bound in zip(curve.exposed, row, strict=True):
                at_least(bound, truth[b - 1])


def check_losses(model: Any, losses: Any, epsilon: float) -> None:
    """Every pair's loss against the worst product mechanism."""
    sizes, tables = instances.tables(model)
    law = oracle.law(sizes, tables)
    rows = dict(zip(map(str, losses.pairs), losses.upper, strict=True))
    for entry in range(len(sizes)):
        for left, right in pairs_of(model, entry):
            truth = oracle.product_loss(law, sizes, epsilon, entry, left, right)
            at_least(rows[label(model, entry, left, right)], truth)


def network_curves(rng: np.random.Generator) -> bool:
    model = instances.network(rng) if rng.integers(2) else instances.field(rng)
    check_curve(model, network_curve(model, largest=3))
    return True


def network_translations(rng: np.random.Generator) -> bool:
    model = instances.network(rng) if rng.integers(2) else instances.field(rng)
    epsilon = float(rng.choice(EPSILONS))
    check_losses(model, network_losses(model, epsilon), epsilon)
    return True


def attractive_fields(rng: np.random.Generator) -> bool:
    model = instances.attractive(rng)
    epsilon = float(rng.choice(EPSILONS))
    sizes, tables = instances.tables(model)
    law = oracle.law(sizes, tables)
    largest = 2**20 if rng.integers(2) else 1  # by sums, or by pinning
    losses = attractive_losses(model, epsilon, largest=largest)
    both = zip(losses.upper, losses.lower, strict=True)
    rows = dict(zip(map(str, losses.pairs), both, strict=True))
    for entry in range(len(sizes)):
        for left, right in (((1,), (0,)), ((0,), (1,))):
            upper, lower = rows[label(model, entry, left, right)]
            truth = oracle.counting_loss(law, epsilon, entry, left, right)
            at_least(upper, truth)
            assert mpf(float(lower)) <= max(truth, 0)
    check_curve(model, attractive_curve(model, largest=3))
    return True


def short_chains(rng: np.random.Generator) -> bool:
    """Groups of values too, in chains of up to five entries."""
    size, length = int(rng.integers(2, 4)), int(rng.integers(2, 6))
    chain = MarkovChain(instances.matrix(size, rng), start=instances.row(size, rng), length=length)
    sides: list[Any] = [((x,), (y,)) for x, y in permutations(range(size), 2)]
    if size == 3:
        sides += [((0, 1), (2,)), ((2,), (0, 1))]
    return check_chain(chain, range(length), sides, most=length)


def long_chains(rng: np.random.Generator) -> bool:
    """Entries far from the start of chains of up to 10,000 entries."""
    size = int(rng.integers(2, 4))
    length = int(rng.choice([50, 500, 2000] + [10_000] * bool(os.environ.get("DEEP"))))
    chain = MarkovChain(instances.matrix(size, rng), start=instances.row(size, rng), length=length)
    sides = [((x,), (y,)) for x, y in permutations(range(size), 2)]
    entries = sorted({length // 2, length - 1, int(rng.integers(length))})
    return check_chain(chain, entries, sides, most=3)


def check_chain(chain: MarkovChain, entries: Any, sides: Any, *, most: int) -> bool:
    for _, curve, row, truths in chain_points(chain, entries, sides, most):
        for bound, truth in zip(curve.leak[row], truths, strict=False):
            at_least(bound, truth)
    return True


def interval_chains(rng: np.random.Generator) -> bool:
    """A member of the set, started anywhere, leaks no more than the bound for all of them."""
    most = 5
    box, member = instances.interval_chain(rng)
    size = len(member)
    curve = interval_chain_curve(box, max_exposed=most)
    length = 12
    steps = oracle.powers(member, most + 1)
    laws = oracle.chain_laws(instances.row(size, rng), member, length)
    rows = dict(zip(curve.pairs, curve.leak, strict=True))
    for x, y in permutations(range(size), 2):
        for entry in (0, 1, 6, 7):
            truths = oracle.interval_leaks(steps, laws, entry, ((x,), (y,)), most, 100)
            for bound, truth in zip(rows[f"{x} / {y}"], truths, strict=True):
                at_least(bound, truth)
    return True


def finite_worlds(rng: np.random.Generator) -> bool:
    """One run, and several, of a mechanism with tiny probabilities under tiny priors."""
    tables = Tables.bits(int(rng.integers(1, 3)))
    prior = instances.row(len(tables), rng, zeros=bool(rng.integers(2)))
    outputs = int(rng.integers(2, 4))
    likelihoods = np.stack([instances.row(outputs, rng) for _ in range(len(tables))])
    world = World(tables, (Explicit(tables, prior),), entry_pairs(tables), unsupported="skip")
    mechanism = FiniteMechanism(tables, likelihoods)
    runs = int(rng.integers(1, 6))
    once, several = leakage(world, mechanism), joint_leakage(world, [(mechanism, runs)])
    for pair in world.pairs:
        left, right = (np.flatnonzero(world.mask(s)) for s in (pair.left, pair.right))
        for _ in range(12):
            counts = rng.multinomial(runs, np.ones(outputs) / outputs)
            truth = oracle.mixture_loss(prior, likelihoods, counts, left, right)
            if truth is not None:
                at_least(several.epsilon, truth)
        for output in range(outputs):
            seen = np.eye(outputs, dtype=int)[output]
            truth = oracle.mixture_loss(prior, likelihoods, seen, left, right)
            if truth is not None and prior[left].sum() > 0:
                at_least(once.epsilon, truth)
    return True


def written_out(rng: np.random.Generator) -> bool:
    """A model written out says 0 of exactly the datasets that cannot happen."""
    model = instances.network(rng) if rng.integers(2) else instances.field(rng)
    sizes, tables = instances.tables(model)
    law = oracle.law(sizes, tables)
    table = model.explicit().probability.reshape(sizes)
    assert {tuple(map(int, state)) for state in np.argwhere(table)} == set(law)
    for state, probability in law.items():
        assert abs(mpf(float(table[state])) / probability - 1) < 1e-12
    return True


CHECKS: tuple[Check, ...] = (
    network_curves,
    network_translations,
    attractive_fields,
    short_chains,
    long_chains,
    interval_chains,
    finite_worlds,
    written_out,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_no_bound_is_below_high_precision(check: Check) -> None:
    refused = 0
    count = COUNT // 5 if check is long_chains else COUNT
    for seed in range(count):
        try:
            check(np.random.default_rng([seed, CHECKS.index(check)]))
        except (TooLarge, UnsoundRequest, Malformed):
            refused += 1  # clearly, and not answered
        except AssertionError as error:
            raise AssertionError(f"{check.__name__}, seed {seed}: {error}") from error
    assert refused <= 0.7 * count
