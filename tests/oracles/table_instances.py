"""Random tables under each reading of a prior, each beside the same written out.

Both sides are made from the same draws and share nothing else: what a translation of the package
says of costs as a ledger names them, and linear programs over all values of a small table.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from unittest.mock import patch

import numpy as np

from takifugu.costs.cost import ANY, NOTHING, Column, Cost, Jointly
from takifugu.priors import BayesianNetwork, MarkovChain, MarkovRandomField, Secrets
from takifugu.translation import Translation
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.rows import columns_of_row
from takifugu.translation.rows.columns_of_row import ColumnsOfRow, JointColumns
from takifugu.translation.rows.household import Household
from tests.oracles.cost_instances import NAMES, epsilon, one_cost
from tests.oracles.cost_programs import Array, chain_table, factor_table
from tests.oracles.table_programs import (
    Pair,
    RowTerm,
    all_pairs,
    any_change,
    cells_of_steps,
    column_losses,
    independent_rows,
    row_matrix,
    row_values,
)

Rng = np.random.Generator
COLUMNS = ("a", "b", "c")


@dataclass(frozen=True)
class ColumnCompared:
    """The secrets of one column of an instance: a bound, and the truth between two certificates.

    If not ``complete``, rows have lost one of two costs, and only one assignment is written out.
    """

    seed: int
    family: str
    column: str
    upper: float
    least: float
    most: float
    complete: bool

    @property
    def below(self) -> bool:
        """Whether the bound is below the truth."""
        return not self.upper >= self.least * (1 - 1e-9) - 1e-9


def table_instance(seed: int, family: str | None = None) -> list[ColumnCompared]:
    """The instance of this number, translated and solved; of one family, or of any."""
    name, found = drawn_table(seed, family)
    return [ColumnCompared(seed, name, *column) for column in found.solved()]


def drawn_table(seed: int, family: str | None = None) -> tuple[str, "Drawn"]:
    """The instance of this number, translated only, and its family."""
    rng = np.random.default_rng([14, seed])
    name = str(rng.choice(list(FAMILIES))) if family is None else family
    return name, FAMILIES[name](rng)


def law(rng: Rng, size: int) -> Array:
    """A distribution: plain, with zeros, with tiny numbers, or all on one value."""
    kind = rng.choice(["plain", "skew", "zeros", "tiny", "sure"], p=[0.5, 0.2, 0.12, 0.1, 0.08])
    drawn = rng.dirichlet(np.ones(size))
    if kind == "skew":
        drawn = rng.dirichlet(np.full(size, 0.2)) + 1e-6
    elif kind == "zeros":
        drawn = drawn * (rng.random(size) < 0.6)
    elif kind == "tiny":
        drawn = drawn * 10.0 ** -rng.choice([0, 0, 12, 60, 140], size)
    elif kind == "sure":
        drawn = np.zeros(size)
    if not drawn.any():
        drawn[rng.integers(size)] = 1.0
    return np.asarray(drawn / drawn.sum())


def row_cost(rng: Rng, sizes: Sequence[int], *, whole: bool = True) -> tuple[Cost, Array]:
    """Some columns by themselves, perhaps a cross-tabulation, perhaps any change of the row."""
    total, terms = NOTHING, list[RowTerm]()
    count = len(sizes)
    for column in rng.choice(count, int(rng.integers(0, count + 1)), replace=False).tolist():
        cost, (matrix,) = one_cost(rng, [sizes[column]])
        total = total + cost.of_column(COLUMNS[column])
        terms.append(RowTerm((column,), matrix))
    if rng.random() < 0.4:
        some = sorted(rng.choice(count, int(rng.integers(2, count + 1)), replace=False).tolist())
        size = epsilon(rng)
        total = total + Cost.of({Jointly([COLUMNS[c] for c in some]): size})
        terms.append(any_change(sizes, some, float(size)))
    if whole and rng.random() < 0.2:
        size = epsilon(rng)
        total = total + Cost.of({ANY: size})
        terms.append(any_change(sizes, range(count), float(size)))
    if not terms:
        size = epsilon(rng)
        total = Cost.of({Column(COLUMNS[0], ANY): size})
        terms.append(any_change(sizes, (0,), float(size)))
    return total, row_matrix(sizes, terms)


def secrets_of(rng: Rng, sizes: Sequence[int]) -> tuple[dict[str, Secrets], list[list[Pair]]]:
    """All pairs of each column, or a pair of groups of values."""
    kept: dict[str, Secrets] = {}
    pairs: list[list[Pair]] = []
    for name, size in zip(COLUMNS, sizes, strict=False):
        if size > 2 and rng.random() < 0.3:
            order = rng.permutation(size).tolist()
            cut = int(rng.integers(1, size))
            sides = tuple(sorted(order[:cut])), tuple(sorted(order[cut:]))
            names = tuple(tuple(NAMES[v] for v in side) for side in sides)
            kept[name] = Secrets(pairs=(names,))  # type: ignore[arg-type]
            pairs.append([sides, sides[::-1]])
        else:
            kept[name] = Secrets()
            pairs.append(all_pairs(size))
    return kept, pairs


@dataclass(frozen=True, eq=False)
class Drawn:
    """The bound of each column, and the table that the programs are about.

    If not ``complete``, rows have lost one of two costs, and only one assignment is written out.
    """

    table: Array
    sizes: Sequence[int]
    matrices: Sequence[Array]
    pairs: Sequence[list[Pair]]
    upper: dict[str, float]
    complete: bool = True

    def solved(self) -> Iterator[tuple[str, float, float, float, bool]]:
        """Each column's bound beside the programs of all its secrets."""
        for column in range(len(self.sizes)):
            asked = self.table, self.sizes, self.matrices, column, self.pairs[column]
            losses = list(column_losses(*asked))
            least = max((one.lower for one in losses), default=0.0)
            most = max((one.upper for one in losses), default=0.0)
            name = COLUMNS[column]
            yield name, self.upper[name], least, most, self.complete


def network(rng: Rng, sizes: Sequence[int]) -> tuple[BayesianNetwork, Array]:
    """Every column given some of those before it; and the law of a row."""
    parents: list[list[int]] = []
    tables: list[Array] = []
    for k, size in enumerate(sizes):
        above = [j for j in range(k) if rng.random() < 0.75]
        shape = [sizes[j] for j in above]
        table = np.array([law(rng, size) for _ in range(int(np.prod(shape, dtype=int)))])
        parents.append(above)
        tables.append(table.reshape(*shape, size))
    prior = BayesianNetwork(
        COLUMNS[: len(sizes)],
        tuple(NAMES[:size] for size in sizes),
        tuple(tuple(COLUMNS[j] for j in above) for above in parents),
        tuple(tables),
    )
    factors = [((*above, k), tables[k]) for k, above in enumerate(parents)]
    return prior, factor_table(sizes, factors)


def row(rng: Rng, most: int = columns_of_row.MAX_READ_STATES) -> Drawn:
    """``over = "row"``: two rows, each with a cost of its own."""
    sizes = [(2, 2), (2, 3), (3, 2), (2, 2, 2), (3, 3), (2, 4), (2, 3, 2)][int(rng.integers(7))]
    prior, row_law = network(rng, sizes)
    count = 1 if len(row_law.ravel()) > 9 else 2
    drawn = [row_cost(rng, sizes) for _ in range(count)]
    kept, pairs = secrets_of(rng, sizes)
    with patch.object(columns_of_row, "MAX_READ_STATES", most):
        upper = ColumnsOfRow({"prior": prior}, kept).losses(*(cost for cost, _ in drawn))
    table = independent_rows([row_law] * count)
    return Drawn(table, sizes, [matrix for _, matrix in drawn], pairs, dict(upper))


def row_by_network(rng: Rng) -> Drawn:
    """The same without the exact route: as if the columns that were read had too many states."""
    return row(rng, 0)


def sequence(rng: Rng) -> Drawn:
    """``over = "sequence"`` of two columns: three or four rows, each with one of two costs."""
    sizes, length = ((2, 2), 4) if rng.random() < 0.6 else ((2, 3), 3)
    count = len(row_values(sizes))
    start = law(rng, count)
    rows = np.array([law(rng, count) for _ in range(count)])
    values = tuple(tuple(NAMES[v] for v in value) for value in row_values(sizes))
    prior = MarkovChain(rows, values, start=start, length=length, columns=COLUMNS[: len(sizes)])
    drawn = [row_cost(rng, sizes) for _ in range(int(rng.choice([1, 2], p=[0.8, 0.2])))]
    kept, pairs = secrets_of(rng, sizes)
    upper = JointColumns({"prior": prior}, kept).losses(*(cost for cost, _ in drawn))
    whose = rng.integers(len(drawn), size=length).tolist()
    table = chain_table(start, [rows] * (length - 1))
    matrices = [drawn[k][1] for k in whose]
    return Drawn(table, sizes, matrices, pairs, dict(upper), complete=len(drawn) == 1)


def household(rng: Rng) -> Drawn:
    """``over = "household"``: two people, three or four steps, each row with one of two costs."""
    length = int(rng.integers(2, 5))
    start, rows = law(rng, 4), np.array([law(rng, 4) for _ in range(4)])
    if rng.random() < 0.4:  # the same whichever of them is first
        turned = [0, 2, 1, 3]
        start, rows = start + start[turned], rows + rows[np.ix_(turned, turned)]
        start, rows = start / start.sum(), rows / rows.sum(axis=1, keepdims=True)
    states = tuple(tuple(NAMES[v] for v in value) for value in row_values((2, 2)))
    chain = MarkovChain(rows, states, start=start, length=length, columns=("one", "other"))
    drawn = [one_cost(rng, [2]) for _ in range(int(rng.choice([1, 2], p=[0.8, 0.2])))]
    upper = Household({"prior": chain}, {"a": Secrets()}).losses(*(cost for cost, _ in drawn))
    table = cells_of_steps(chain_table(start, [rows] * (length - 1)), (2, 2))
    matrices = [drawn[int(rng.integers(len(drawn)))][1][0] for _ in range(2 * length)]
    complete = len(drawn) == 1
    return Drawn(table, (2,), matrices, [all_pairs(2)], dict(upper), complete=complete)


def people(rng: Rng, names: Sequence[str], edges: Sequence[tuple[int, int]]) -> Drawn:
    """A field over people, or people and times: one column, a row a node."""
    size = int(rng.integers(2, 4)) if len(names) < 5 else 2
    nodes = [law(rng, size) + 1e-9 for _ in names]
    couplings = [np.exp(rng.normal(0, 1.2, (size, size))) for _ in edges]
    if rng.random() < 0.2:
        couplings = [c * (rng.random(c.shape) < 0.8) + np.eye(size) for c in couplings]
    prior = MarkovRandomField(
        tuple(names),
        tuple(NAMES[:size] for _ in names),
        tuple(nodes),
        tuple((names[i], names[j]) for i, j in edges),
        tuple(couplings),
    )
    drawn = [one_cost(rng, [size]) for _ in range(int(rng.integers(1, 3)))]
    drawn.append((NOTHING, [np.zeros((size, size))]))
    whose = [int(rng.integers(len(drawn))) for _ in names]
    costs = EntryCosts(by_entry=tuple(drawn[k][0] for k in whose))
    bound = Translation(prior).cost_bound(costs)
    table = factor_table(
        [size] * len(names),
        [((k,), weights) for k, weights in enumerate(nodes)]
        + list(zip(edges, couplings, strict=True)),
    )
    matrices = [drawn[k][1][0] for k in whose]
    return Drawn(table, (size,), matrices, [all_pairs(size)], {"a": bound.value})


def entities(rng: Rng) -> Drawn:
    """``over = "entities"``: four people, some of them in contact."""
    edges = [(i, j) for i in range(4) for j in range(i + 1, 4) if rng.random() < 0.6]
    return people(rng, ("ann", "bob", "cyd", "dan"), edges or [(0, 1)])


def entities_and_sequence(rng: Rng) -> Drawn:
    """``over = "entities × sequence"``: two or three people at two or three times."""
    shape = [(2, 3), (3, 2), (2, 2)][int(rng.integers(3))]
    cells = list(product(range(shape[0]), range(shape[1])))
    place = {cell: k for k, cell in enumerate(cells)}
    edges = [(place[p, t], place[p, t + 1]) for p, t in cells if t + 1 < shape[1]]
    edges += [(place[p, t], place[p + 1, t]) for p, t in cells if p + 1 < shape[0]]
    return people(rng, [f"{'abc'[p]}: {t}" for p, t in cells], edges)


FAMILIES: dict[str, Callable[[Rng], Drawn]] = {
    "row": row,
    "row by network": row_by_network,
    "sequence": sequence,
    "household": household,
    "entities": entities,
    "entities × sequence": entities_and_sequence,
}
