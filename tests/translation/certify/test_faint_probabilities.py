"""Probabilities whose products are below all floats, against exact fractions."""

import decimal
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from takifugu._core.numeric import Floats
from takifugu.priors import MarkovChain, Secrets
from takifugu.priors.networks import Factor
from takifugu.translation import Translation
from takifugu.translation.certify.fields import contacts_of
from takifugu.translation.certify.flow import Flows, Settle, off_diagonal
from takifugu.translation.certify.hulls import HullStep, StartHull
from takifugu.translation.certify.known import KnownSide
from takifugu.translation.certify.laws import transition_rows
from takifugu.translation.entry_costs import CostLevels
from takifugu.translation.models.chain import Chain, upper
from takifugu.translation.search.couplings import solve_step

Law = list[Fraction]


@dataclass(frozen=True)
class TablesOfPair:
    """Two entries of two values, and tables on both."""

    tables: tuple[Floats, ...]
    name: str = "pair"
    entries: tuple[str, ...] = ("0", "1")
    states: tuple[tuple[str, ...], ...] = (("0", "1"), ("0", "1"))

    def factors(self) -> tuple[Factor, ...]:
        """The tables."""
        return tuple(Factor((0, 1), table) for table in self.tables)


def fractions(matrix: Floats) -> list[Law]:
    """The rows, each divided by its exact sum."""
    return [normalised([Fraction(float(p)) for p in row]) for row in matrix]


def normalised(weights: Sequence[Fraction]) -> Law:
    return [w / sum(weights) for w in weights]


def after(law: Law, rows: list[Law]) -> Law:
    columns = zip(*rows, strict=True)
    return [sum(map(operator.mul, law, column), Fraction(0)) for column in columns]


def log(value: Fraction) -> float:
    """The logarithm, of fractions near 1 as well."""
    near = float(value - 1)
    return math.log1p(near) if abs(near) < 0.5 else math.log(float(value))


def uniform_loss(left: Law, right: Law, epsilon: float) -> float:
    """The loss if any change of value costs ε: some set of values is told as likely as can be."""
    gain = Fraction(math.exp(epsilon)) - 1
    states = range(len(left))
    sets = [[u for u in states if code >> u & 1] for code in range(2 ** len(left))]
    return max(
        log((1 + gain * sum(left[u] for u in told)) / (1 + gain * sum(right[u] for u in told)))
        for told in sets
    )


def loss_of_earlier(rows: list[Law], start: Law, told: int, entry: int, epsilon: float) -> Floats:
    """``[x, y]``: the loss of ``entry`` if only the earlier ``told`` costs ε; −∞ if impossible."""
    law = start
    for _ in range(told):
        law = after(law, rows)
    ahead = vertices(len(rows))
    for _ in range(entry - told):
        ahead = [after(row, rows) for row in ahead]
    joint = [[m * row[x] for m, row in zip(law, ahead, strict=True)] for x in range(len(rows))]
    losses = np.full((len(rows), len(rows)), -np.inf)
    for x, y in permutations(range(len(rows)), 2):
        if sum(joint[x]) and sum(joint[y]):
            losses[x, y] = uniform_loss(normalised(joint[x]), normalised(joint[y]), epsilon)
    return losses


def vertices(size: int) -> list[Law]:
    return [[Fraction(int(u == v)) for v in range(size)] for u in range(size)]


def test_a_state_reached_with_less_than_any_float_is_possible() -> None:
    matrix = np.array([[2.19e-20, 0, 1], [1, 4.41e-116, 0], [3.8e-77, 0, 1]])
    chain = MarkovChain(matrix, states=("0", "1", "2"), start="unknown", length=4)
    secrets = Secrets(entries=(3,), pairs=((("0",), ("1",)),))
    bound = Translation(chain, secrets).bound(np.array([0, 5.0, 0, 0]), "transport")
    truth = max(
        loss_of_earlier(fractions(matrix), start, 1, 3, 5.0)[[0, 1], [1, 0]].max()
        for start in vertices(3)
    )
    assert truth > 4.9
    assert bound.value >= truth


@pytest.mark.parametrize("seed", range(12))
def test_unknown_starts_of_chains_with_tiny_probabilities(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, entries, epsilon = int(rng.integers(2, 5)), 5, float(rng.choice([0.5, 5.0, 60.0]))
    matrix = 10.0 ** -rng.uniform(0, 140, (size, size))
    matrix[rng.random((size, size)) < 0.35] = 0
    matrix[np.arange(size), rng.integers(size, size=size)] = 1.0
    matrix = transition_rows(matrix / matrix.sum(axis=1, keepdims=True))
    told = int(rng.integers(0, 3))
    epsilons = np.zeros(entries)
    epsilons[told] = epsilon
    states = tuple(map(str, range(size)))
    chain = MarkovChain(matrix, states=states, start="unknown", length=entries)
    bound = Translation(chain, Secrets()).bound(epsilons, "transport")
    assert bound.by_entry is not None
    for entry in range(told + 1, entries):
        for start in vertices(size):
            truth = loss_of_earlier(fractions(matrix), start, told, entry, epsilon)
            assert truth.max() <= bound.by_entry[entry] + 1e-13


def test_an_entry_known_at_a_distance_with_less_than_any_float() -> None:
    names = ["A", "B", "C", "s", "t", "b", "v", "V", "w"]
    number = {name: k for k, name in enumerate(names)}
    arcs = {
        "AA": 1, "As": 1e-80, "BC": 1, "Bv": 1e-150, "BV": 1e-150, "CC": 1, "sC": 0.5, "st": 0.5,
        "tb": 0.5, "tC": 0.5, "bC": 1, "vC": 1, "vw": 1e-87, "VC": 1, "Vw": 1.49e-86, "wC": 1,
        "wb": 0.5e-86,
    }  # fmt: skip
    matrix = np.zeros((len(names), len(names)))
    for arc, probability in arcs.items():
        matrix[number[arc[0]], number[arc[1]]] = probability
    matrix = transition_rows(matrix)
    nothing = np.zeros_like(matrix)
    only_v = np.arange(len(names)) == number["v"]
    cost = (only_v[:, None] != only_v[None]).astype(np.float64)
    tables = KnownSide.after([matrix] * 3, [nothing, cost, nothing, nothing], solve_step).tables()
    rows, known = fractions(matrix), number["b"]
    onwards = [after(row, rows)[known] for row in rows]
    near = [normalised(list(map(operator.mul, rows[number[x]], onwards))) for x in "AB"]
    one, other = ([p[number["v"]], 1 - p[number["v"]]] for p in near)
    for x, y, left, right in ((0, 1, one, other), (1, 0, other, one)):
        truth = uniform_loss(left, right, 1.0)
        assert truth > 0
        assert tables.table(0)[x, y] >= truth


@pytest.mark.parametrize("homogeneous", [True, False])
def test_a_table_that_settles_nothing_is_infinite_over_hulls(homogeneous: bool) -> None:
    matrix = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
    levels = CostLevels((off_diagonal(3, 0.5),), np.zeros(4, dtype=np.int64))
    matrices = matrix if homogeneous else [matrix, matrix.copy(), matrix[::-1].copy()]
    chain = Chain.from_priors(matrices, levels, "unknown")
    losses = upper(chain, Flows(()), Flows((Settle(np.zeros((3, 3)), None),)))
    assert losses.loss == np.inf
    assert not np.isnan(losses.at(3)).any()


@pytest.mark.parametrize("table", [np.full((2, 2), np.nan), np.array(-1.0), np.zeros((2, 2))])
@pytest.mark.parametrize("charge", [0.0, 1.0])
def test_a_settled_table_without_flows_proves_nothing(table: Floats, charge: float) -> None:
    side = KnownSide(
        [np.array([[0.7, 0.3], [0.4, 0.6]])], [off_diagonal(2, charge)], True, solve_step
    )
    proven = side.unbounded(lambda _step, _least: (table, None))
    assert np.array_equal(proven, off_diagonal(2, np.inf if charge else 0.0))


@pytest.mark.parametrize("ulps", range(1, 400, 9))
def test_weights_that_are_one_logarithm_apart_in_floats(ulps: int) -> None:
    tiny = 1e-149
    more = tiny * (1 + ulps * 2.0**-52)
    weights = np.array([[0.5, 0.5, tiny], [0.5, 0.5, more], [0.5, 0.5, tiny]]).T
    step = HullStep(StartHull.whole(3), np.ascontiguousarray(weights), off_diagonal(3, 250.0))
    truth = float(np.log1p(float(Fraction(more) / Fraction(tiny) - 1)))
    assert step.upper(None)[2, 0] >= truth
    assert step.upper(None)[0, 2] >= truth


@pytest.mark.parametrize("seed", range(40))
def test_two_states_with_large_logarithms(seed: int) -> None:
    """Against the closed form in decimals: nothing but the rounding is in doubt."""
    rng = np.random.default_rng(seed)
    a, b = 10.0 ** -rng.uniform(1, 120, 2)
    matrix = np.array([[1, a], [b, 1]] if seed % 2 else [[1, a], [1, b]])
    matrix = transition_rows(matrix / matrix.sum(axis=1, keepdims=True))
    epsilon = float(rng.choice([0.5, 5.0, 50.0, 200.0, 290.0]))
    proven = HullStep(
        StartHull.whole(2).after(matrix), np.ascontiguousarray(matrix.T), off_diagonal(2, epsilon)
    ).upper(None)
    with decimal.localcontext(prec=400):
        exact = [[Decimal(float(p)) for p in row] for row in matrix]
        gain = Decimal(epsilon).exp()
        low, high = sorted(row[1] / row[0] for row in exact)
        ratios = [exact[1][x] / exact[0][x] for x in range(2)]
        for x, y in ((0, 1), (1, 0)):
            one, other, ends = ratios[x], ratios[y], (low, high)
            if one < other:
                one, other, ends = 1 / one, 1 / other, (1 / high, 1 / low)
            odds = min(max(1 / (gain * one * other).sqrt(), ends[0]), ends[1])
            told = (1 + gain * odds * one) * (1 + odds * other)
            truth = (told / ((1 + odds * one) * (1 + gain * odds * other))).ln()
            assert Decimal(float(proven[x, y])) >= truth


@pytest.mark.parametrize("ulps", [1, 3, 40])
def test_tables_of_fields_that_are_one_logarithm_apart_in_floats(ulps: int) -> None:
    tiny = 1e-149
    table = np.array([[tiny, tiny], [tiny, tiny * (1 + ulps * 2.0**-52)]])
    truth = float(Fraction(float(table[1, 1])) / Fraction(tiny) - 1)
    contacts = contacts_of(TablesOfPair((table,)))  # type: ignore[arg-type]
    assert contacts.spread.min() >= math.log1p(truth)


def test_tables_of_fields_that_cancel() -> None:
    table = np.array([[1e-140, 1.0], [1.0, 0.3]])
    inverse = 1 / table
    pairs = zip(table.ravel().tolist(), inverse.ravel().tolist(), strict=True)
    a, b, c, d = (Fraction(one) * Fraction(other) for one, other in pairs)
    contacts = contacts_of(TablesOfPair((table, inverse)))  # type: ignore[arg-type]
    assert contacts.spread.min() >= abs(log(a * d / (b * c)))
