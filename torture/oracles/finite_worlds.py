"""Mechanisms that are tables: losses of one run and of several, beside exact fractions."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from takifugu.finite import FiniteMechanism, World, leakage
from takifugu.finite.dp_loss import per_entry
from takifugu.finite.joint_runs import joint_leakage
from takifugu.priors import Explicit, Tables, entry_pairs
from tests.oracles import finite as oracle
from torture.oracles.comparison import Compared, Family, Instance, Rng
from torture.oracles.extreme_draws import law


def _draw(rng: Rng) -> Instance:
    bits, outputs = int(rng.integers(1, 4)), int(rng.integers(2, 4))
    priors = [law(rng, 2**bits) for _ in range(int(rng.integers(1, 3)))]
    return {
        "bits": bits,
        "priors": priors,
        "likelihood": [law(rng, outputs) for _ in range(2**bits)],
        "runs": int(rng.integers(1, 6)),
    }


def _compare(instance: Instance) -> Iterator[Compared]:
    universe = Tables.bits(instance["bits"])
    listed = tuple(
        Explicit(universe, np.array(prior), f"prior {k}")
        for k, prior in enumerate(instance["priors"])
    )
    world = World(universe, listed, entry_pairs(universe), unsupported="skip")
    mechanism = FiniteMechanism(universe, np.array(instance["likelihood"]))
    once, several = leakage(world, mechanism), joint_leakage(world, [(mechanism, instance["runs"])])
    cells = list(product((0, 1), repeat=instance["bits"]))
    pairs = [
        ([cell[j] == x for cell in cells], [cell[j] == 1 - x for cell in cells])
        for j in range(instance["bits"])
        for x in (0, 1)
    ]
    rows = _rows(instance["likelihood"])
    columns = [[row[w] for row in rows] for w in range(len(rows[0]))]
    truth = oracle.worst(instance["priors"], pairs, columns)
    yield Compared(
        *("one run", once.epsilon, truth, truth),
        exact=once.kind == "exact" if _clear(once.epsilon, once.slack) else None,
        bounded=True,
    )
    truth = oracle.worst(instance["priors"], pairs, oracle.unordered(rows, instance["runs"]))
    yield Compared(
        *("several runs", several.epsilon, truth, truth, several.attained),
        exact=several.exact if several.epsilon > 1e-5 else None,
    )
    neighbours = oracle.to_dp(cells, rows, lambda a, b: len(oracle.differ(a, b)) == 1)
    dp = per_entry(mechanism)
    yield Compared("its DP loss", dp.epsilon, neighbours, neighbours, counted=False)


def _clear(epsilon: float, slack: float) -> bool:
    """Whether a loss is not all rounding: its slack is stated, and is said apart."""
    return epsilon == np.inf or slack <= 1e-7 * epsilon


def _rows(likelihood: list[list[float]]) -> Any:
    """Laws of outputs divided by their exact sums."""
    exact = [[Fraction(v) for v in row] for row in likelihood]
    return [[v / sum(row) for v in row] for row in exact]


FAMILIES = (
    Family("finite mechanisms", "all outputs and sequences of them, in fractions", _draw, _compare),
)
