"""Translated costs are never below what linear programs over all datasets find.

Random chains, networks, fields, tables and products with costs of every shape; more of them in
`benchmarks/cost_oracle.py`.
"""

from collections import defaultdict
from fractions import Fraction
from math import log

import numpy as np
import pytest

from takifugu.costs.cost import NOTHING, AnyValue, Cost, Distance, Matrix, Membership
from takifugu.priors import MarkovChain, Secrets
from takifugu.translation import Translation
from takifugu.translation.bounds import Witness
from takifugu.translation.entry_costs import EntryCosts
from tests.oracles.cost_comparison import SLACK, Compared, compared
from tests.oracles.cost_instances import (
    FAMILIES,
    NAMES,
    Instance,
    instance,
    one_cost,
    stationary_law,
)
from tests.oracles.cost_programs import (
    all_losses,
    any_value,
    chain_table,
    entry_is,
    largest,
    slope,
)
from tests.oracles.extreme_chains import product_loss

SEEDS, BLOCK = 160, 20


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_no_bound_is_below_the_truth_and_no_witness_above_it(first: int) -> None:
    for seed in range(first, first + BLOCK):
        found = compared(seed, instance(seed))
        assert not found.below, found
        assert not found.above, found


@pytest.mark.nightly
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_held_to_its_programs(family: str) -> None:
    for seed in range(SEEDS, SEEDS + 5):
        found = compared(seed, instance(seed, family))
        assert not found.below, found
        assert not found.above, found


@pytest.mark.nightly
def test_bounds_on_chains_are_close_to_the_truth() -> None:
    found: dict[str, list[Compared]] = defaultdict(list)
    for seed in range(1000, 1060):
        one = compared(seed, instance(seed, "chain"))
        if one.least > 1e-6:
            found["groups" if "groups" in one.family else "values"].append(one)
    for results in found.values():
        ratios = [one.upper / one.least for one in results]
        assert np.median(ratios) <= 1.02
        assert max(ratios) <= 1.10
        assert np.median([one.witness / one.least for one in results]) >= 0.98


@pytest.mark.parametrize("seed", range(2000, 2040))
def test_a_witness_has_the_costs_and_leaks_what_it_says(seed: int) -> None:
    drawn = instance(seed, "chain")
    witness = Translation(drawn.prior, drawn.secrets).explain_cost(drawn.costs).witness
    if witness.factors is None or witness.binding is None:
        assert witness.leak <= 0  # there is no pair, or nothing can be told
        return
    with np.errstate(divide="ignore"):
        logs = np.log(witness.factors)
    for entry, row in zip(witness.entries, logs, strict=True):
        allowed = drawn.matrices[int(entry)]
        assert (row[:, None] - row[None] <= allowed + 1e-9).all()
    assert leak_of(drawn, witness) == pytest.approx(witness.leak, abs=1e-9)


def leak_of(drawn: Instance, witness: Witness) -> float:
    """What a product g leaks, log E[g|left]/E[g|right], by a sum over all datasets."""
    (table,) = drawn.tables
    assert witness.factors is not None
    assert witness.binding is not None
    g = np.ones(table.shape)
    for entry, row in zip(witness.entries, witness.factors, strict=True):
        g = g * row.reshape([-1 if j == entry else 1 for j in range(table.ndim)])
    where = witness.binding.entry
    assert isinstance(where, int)
    sides = [
        entry_is(table.shape, where, [NAMES.index(value) for value in text.split("|")])
        for text in (witness.binding.left, witness.binding.right)
    ]
    one, other = (float((table * g * side).sum() / (table * side).sum()) for side in sides)
    return log(one) - log(other)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3000, 3012))
@pytest.mark.parametrize("target", [0.05, 1.0])
def test_what_is_allowed_loses_no_more_than_the_target(seed: int, target: float) -> None:
    drawn = instance(seed, "chain")
    if not drawn.costs.uniform or len(drawn.costs.anywhere) != 1:
        return
    (unit,) = drawn.costs.anywhere
    factor = Translation(drawn.prior, drawn.secrets).to_cost(unit, target)
    scaled = [float(factor) * matrix for matrix in drawn.matrices]
    truth = Instance(
        *(drawn.family, drawn.prior, drawn.secrets, drawn.costs, drawn.tables, scaled, drawn.asked)
    )
    losses = [solved.lower for _, solved in truth.losses()]
    assert max(losses, default=0.0) <= target + SLACK


@pytest.mark.nightly
@pytest.mark.parametrize("power", [-300, -30, -12, -6])
def test_tiny_costs_lose_their_slope(power: int) -> None:
    """As costs become small the loss becomes linear in them; nothing is rounded to 0."""
    rows = np.array([[0.62, 0.28, 0.10], [0.05, 0.75, 0.20], [0.33, 0.07, 0.60]])
    chain = MarkovChain(rows, NAMES[:3], start=np.array([0.5, 0.2, 0.3]), length=4)
    weight = Fraction(10) ** power
    cost = Cost.of({Membership(["0"]): weight, Distance(0, 3): weight / 2})
    matrix = np.array([[0, 1 + 1 / 6, 1.5], [1 + 1 / 6, 0, 1 / 3], [1.5, 1 / 3, 0]])
    table = chain_table([0.5, 0.2, 0.3], [rows] * 3)
    steepest = max(
        slope(table, [matrix] * 4, *(entry_is(table.shape, i, [k]) for k in (x, y)))
        for i in range(4)
        for x in range(3)
        for y in range(3)
        if x != y
    )
    found = Translation(chain).cost_to_pufferfish(cost)
    assert found >= steepest * float(weight) * (1 - 1e-9)
    assert found <= 1.2 * steepest * float(weight) + 1e-9


@pytest.mark.nightly
def test_ten_thousand_entries_of_which_three_are_charged() -> None:
    """Later and earlier entries that lost nothing tell nothing: a short chain has the same loss."""
    rows = np.array([[0.62, 0.28, 0.10], [0.05, 0.75, 0.20], [0.33, 0.07, 0.60]])
    law = np.linalg.matrix_power(rows, 2000)[0]
    count = Cost.of({Membership(["0"]): "1/2", AnyValue(): "1/10"})
    profile = [NOTHING] * 5000 + [count, NOTHING, count, count] + [NOTHING] * 4996
    chain = MarkovChain(rows, NAMES[:3], start=law / law.sum(), length=10_000)
    found = Translation(chain).cost_bound(EntryCosts.of(profile), "transport")
    matrix = 0.5 * np.abs(np.subtract.outer([1, 0, 0], [1, 0, 0])) + any_value(3, 0.1)
    table = chain_table(law / law.sum(), [rows] * 3)
    truth = largest(all_losses(table, [matrix, 0 * matrix, matrix, matrix]))
    assert truth.lower - SLACK <= found.value <= 1.1 * truth.upper


def test_a_cost_that_is_nothing_loses_nothing() -> None:
    chain = MarkovChain(np.array([[0.9, 0.1], [0.3, 0.7]]), ("0", "1"), length=3)
    everything = Cost.of({Membership(["0", "1"]): 5, Distance(2, 3): 1})
    for costs in (EntryCosts(), EntryCosts.of([NOTHING] * 3), EntryCosts.of(everything)):
        assert Translation(chain).cost_bound(costs).value <= 1e-9


@pytest.mark.nightly
def test_losses_of_separate_releases_do_not_add_up_to_the_loss_of_both() -> None:
    """Costs add; losses of pairs do not: one pair loses more than its parts together."""
    rows = np.array([[0.62, 0.28, 0.10], [0.05, 0.75, 0.20], [0.33, 0.07, 0.60]])
    start = np.array([0.5, 0.2, 0.3])
    table = chain_table(start, [rows] * 4)
    weights = [("0", 0.3), ("1", 0.3)]
    parts = [
        [w * np.abs(np.subtract.outer(*[[float(n == name) for n in NAMES[:3]]] * 2))] * 5
        for name, w in weights
    ]
    parts.append([any_value(3, 0.1)] * 5)
    together = [sum(one[j] for one in parts) for j in range(5)]
    whole = all_losses(table, together)  # type: ignore[arg-type]
    apart = [all_losses(table, part) for part in parts]
    assert any(whole[key].lower > sum(one[key].upper for one in apart) + 1e-6 for key in whole)
    cost = Cost.of({Membership(["0"]): 0.3, Membership(["1"]): 0.3, AnyValue(): 0.1})
    chain = MarkovChain(rows, NAMES[:3], start=start, length=5)
    truth = largest(whole).lower
    assert truth == pytest.approx(1.71512, abs=5e-6)
    assert truth - SLACK <= Translation(chain).cost_to_pufferfish(cost) <= 1.78119 + 1e-5


@pytest.mark.nightly
def test_a_channel_given_as_a_matrix_is_closed_before_it_is_added() -> None:
    rows = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]])
    chain = MarkovChain(rows, NAMES[:3], length=3)
    loose = [[0, 3, 0.5], [0.5, 0, 3], [3, 0.5, 0]]
    channel = Cost.of({Matrix(NAMES[:3], loose): 1})
    found = Translation(chain, Secrets(entries=(1,))).cost_to_pufferfish(channel)
    closed = np.array([[0, 1, 0.5], [0.5, 0, 1], [1, 0.5, 0]])
    table = chain_table([1 / 3] * 3, [rows] * 2)
    losses = all_losses(table, [closed] * 3)
    truth = max(solved.lower for (entry, _, _), solved in losses.items() if entry == 1)
    assert truth - SLACK <= found <= 1.1 * truth


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(60))
def test_extreme_chains_lose_at_least_what_products_leak(seed: int) -> None:
    """Probabilities down to 1e-120 and costs from 1e-300 to 100, against 40 digits.

    e^{c(u, v)} and e^{−c(v, u)} are admissible in u for every v, by the triangle inequality.
    """
    rng = np.random.default_rng([17, seed])
    size, length = int(rng.integers(2, 5)), int(rng.integers(2, 8))
    rows = 10.0 ** -rng.choice([0, 1, 3, 30, 120], (size, size)) * rng.uniform(0.1, 1, (size, size))
    rows /= rows.sum(axis=1, keepdims=True)
    start = 10.0 ** -rng.choice([0, 1, 30], size)
    start /= start.sum()
    powers = [10.0**power for power in (-300, -12, -3, -1, 0, 1, 2)]
    levels = [
        float(rng.choice(powers)) * np.abs(np.subtract.outer(level, level))
        for level in (rng.integers(0, 2, size), np.arange(size) / max(size - 1, 1))
    ]
    matrix = levels[0] + levels[1] + float(rng.choice(powers)) * (1 - np.eye(size))
    profile = [matrix * float(rng.choice([0, 1, 1])) for _ in range(length)]
    chain = MarkovChain(rows, NAMES[:size], start=start, length=length)
    costs = EntryCosts.of(
        [
            Cost.of({Matrix(NAMES[:size], one.tolist()): 1}) if one.any() else NOTHING
            for one in profile
        ]
    )
    found = Translation(chain).cost_bound(costs, "transport")
    assert np.isfinite(found.value)
    for _ in range(12):
        factors = []
        for one in profile:
            v = int(rng.integers(size))
            factors.append(np.exp(one[:, v] if rng.random() < 0.5 else -one[v]).tolist())
        entry = int(rng.integers(length))
        x, y = rng.choice(size, 2, replace=False).tolist()
        leak = product_loss(
            [rows.tolist()] * (length - 1), start.tolist(), factors, entry, [x], [y]
        )
        assert found.value >= leak * (1 - 1e-12) - 1e-15


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(12))
def test_room_beside_what_was_spent_is_not_too_large_and_not_too_small(seed: int) -> None:
    rng = np.random.default_rng([19, seed])
    size, length = int(rng.integers(2, 4)), 3
    rows, start = rng.dirichlet(np.ones(size), size), rng.dirichlet(np.ones(size))
    translation = Translation(MarkovChain(rows, NAMES[:size], start=start, length=length))
    table = chain_table(start, [rows] * (length - 1))
    (unit, own), (first, one), (second, two), (beside, other) = (
        one_cost(rng, [size]) for _ in range(4)
    )

    def loss(factor: float) -> float:
        larger = np.max([one[0] + factor * own[0], two[0] + factor * own[0], other[0]], axis=0)
        return largest(all_losses(table, [larger] * length)).lower

    target = loss(0.0) + 0.5
    factor = translation.to_cost(unit, target, spent=(first, second), beside=(beside,))
    assert loss(float(factor)) <= target + SLACK
    if own[0].any():
        assert loss(1.2 * float(factor)) > target * 0.98 or float(factor) * own[0].max() > 30


@pytest.mark.parametrize(
    "rows",
    [
        [[0.9, 0.1], [1e-5, 1 - 1e-5]],
        [[0.5, 0.25, 0.25], [0.125, 0.5, 0.375], [0.0, 0.75, 0.25]],
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]],  # several laws: one of them
    ],
)
def test_the_law_of_the_oracle_is_left_unchanged(rows: list[list[float]]) -> None:
    law = stationary_law(np.array(rows))
    exact = [[Fraction(x) / sum(map(Fraction, row)) for x in row] for row in rows]
    for j, found in enumerate(law.tolist()):
        after = sum((Fraction(p) * row[j] for p, row in zip(law, exact, strict=True)), Fraction(0))
        assert float(after) == pytest.approx(found, rel=1e-14, abs=0)
    assert law.sum() == pytest.approx(1.0)
