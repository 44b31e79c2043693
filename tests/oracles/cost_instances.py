"""Random priors with random costs, each beside the same written out for the linear programs.

An instance has two sides that are made from the same draws and share nothing else: the prior,
secrets and costs as a user states them, and a world of plain arrays: tables of probabilities, a
cost matrix for each entry, and the pairs of sets of values that are secret, with what is known.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np

from takifugu.costs.cost import (
    NOTHING,
    AnyValue,
    Cost,
    Distance,
    Matrix,
    Membership,
)
from takifugu.priors import (
    BayesianNetwork,
    Explicit,
    HigherOrderChain,
    IndependentEntries,
    IntervalMarkovChain,
    MarkovChain,
    MarkovRandomField,
    Prior,
    Product,
    Secrets,
    Tables,
)
from takifugu.translation.entry_costs import EntryCosts
from tests.oracles.cost_programs import (
    Array,
    Solved,
    chain_table,
    entry_is,
    factor_table,
    pair_loss,
    shortest,
    two_point_starts,
    worst_loss,
)

Rng = np.random.Generator
NAMES = ("0", "1", "3", "10")  # labels that are numbers too
NUMBERS = (0.0, 1.0, 3.0, 10.0)
SHARES = (0.02, 0.1, 0.27, 0.5, 0.73, 0.9, 0.98)


@dataclass(frozen=True)
class SecretSides:
    """X_entry in ``left`` against ``right``, by number, to somebody who knows other entries."""

    entry: int
    left: tuple[int, ...]
    right: tuple[int, ...]
    known: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, eq=False)
class Instance:
    """A prior with costs, and the same written out.

    Attributes:
        family: What kind of instance it is.
        prior: The prior.
        secrets: The secrets.
        costs: What every entry has lost.
        tables: Laws of the datasets that the guarantee is about.
        matrices: ``[entry]``: what every entry has lost, as a matrix.
        asked: The secret pairs.
        complete: Whether ``tables`` are all laws; otherwise the truth may be larger.
    """

    family: str
    prior: Prior
    secrets: Secrets
    costs: EntryCosts
    tables: list[Array]
    matrices: list[Array]
    asked: list[SecretSides]
    complete: bool = True
    note: dict[str, Any] = field(default_factory=dict)

    def losses(self) -> list[tuple[SecretSides, Solved]]:
        """The loss of each pair under each table in which both sides are possible."""
        found = []
        for table in self.tables:
            for pair in self.asked:
                sides = [
                    entry_is(table.shape, pair.entry, values, dict(pair.known))
                    for values in (pair.left, pair.right)
                ]
                if any((table * side).sum() == 0 for side in sides):
                    continue
                if len(pair.left) == len(pair.right) == 1:
                    ends = pair.left[0], pair.right[0]
                    solved = pair_loss(table, self.matrices, pair.entry, *ends, dict(pair.known))
                else:
                    solved = worst_loss(table, self.matrices, *sides)
                found.append((pair, solved))
        return found


def instance(seed: int, family: str | None = None) -> Instance:
    """The instance of this number; of one family, or of any."""
    rng = np.random.default_rng([13, seed])
    names = list(FAMILIES)
    weights = np.array([share for _, share in FAMILIES.values()])
    name = str(rng.choice(names, p=weights / weights.sum())) if family is None else family
    return FAMILIES[name][0](rng, name)


# costs


def epsilon(rng: Rng) -> Fraction:
    """Mostly between .02 and 2."""
    kind = rng.integers(12)
    if kind == 0:
        return Fraction(10) ** -int(rng.integers(4, 9))
    if kind == 1:
        return Fraction(float(rng.uniform(2, 5)))
    return Fraction(float(np.exp(rng.uniform(np.log(0.02), np.log(2)))))


def term(rng: Rng, sizes: Sequence[int]) -> tuple[Cost, list[Array]]:
    """One shape, and its matrix on the first so many values of `NAMES`, for each size."""
    weight = epsilon(rng)
    w, most = float(weight), max(sizes)
    kind = rng.choice(
        ["any", "member", "members", "distance", "matrix"], p=[0.2, 0.3, 0.1, 0.2, 0.2]
    )
    match kind:
        case "any":
            return Cost.of({AnyValue(): weight}), [w * (1 - np.eye(size)) for size in sizes]
        case "member" | "members":
            count = 1 if kind == "member" else int(rng.integers(1, most + 1))
            chosen = set(rng.choice(most, count, replace=False).tolist())
            inside = [float(k in chosen) for k in range(most)]
            cost = Cost.of({Membership([NAMES[k] for k in chosen]): weight})
            return cost, [_levels(inside[:size], w) for size in sizes]
        case "distance":
            low, high = sorted(rng.choice([-1, 0, 1, 2, 3, 5, 12], 2, replace=False).tolist())
            levels = [(min(max(v, low), high) - low) / (high - low) for v in NUMBERS]
            cost = Cost.of({Distance(low, high): weight})
            return cost, [_levels(levels[:size], w) for size in sizes]
    drawn = np.where(rng.random((most, most)) < 0.15, 0.0, rng.uniform(0, 1.5, (most, most)))
    if rng.random() < 0.5:
        drawn = np.maximum(drawn, drawn.T)
    np.fill_diagonal(drawn, 0.0)
    if most < 2:
        return NOTHING, [np.zeros((size, size)) for size in sizes]
    closed = shortest(drawn)
    return (
        Cost.of({Matrix(NAMES[:most], drawn.tolist()): weight}),
        [w * closed[:size, :size] for size in sizes],
    )


def _levels(levels: Sequence[float], weight: float) -> Array:
    return np.asarray(weight * np.abs(np.subtract.outer(np.array(levels), np.array(levels))))


def one_cost(rng: Rng, sizes: Sequence[int]) -> tuple[Cost, list[Array]]:
    """A sum of one to three shapes."""
    total, matrices = NOTHING, [np.zeros((size, size)) for size in sizes]
    for _ in range(int(rng.choice([1, 2, 3], p=[0.6, 0.25, 0.15]))):
        cost, parts = term(rng, sizes)
        total = total + cost
        matrices = [one + part for one, part in zip(matrices, parts, strict=True)]
    return total, matrices


def entry_costs(
    rng: Rng, sizes: Sequence[int], *, profile: bool = True
) -> tuple[EntryCosts, list[Array]]:
    """A cost on every entry, one of two on every entry, or a cost for each."""
    kind = rng.choice(["one", "one of two", "profile"], p=[0.5, 0.1, 0.4])
    if kind == "one" or (kind == "profile" and not profile):
        cost, matrices = one_cost(rng, sizes)
        return EntryCosts((cost,)), matrices
    if kind == "one of two":
        (one, first), (other, second) = one_cost(rng, sizes), one_cost(rng, sizes)
        larger = [np.maximum(a, b) for a, b in zip(first, second, strict=True)]
        return EntryCosts((one, other)), larger
    some = [one_cost(rng, sizes) for _ in range(int(rng.integers(1, 3)))]
    some.append((NOTHING, [np.zeros((size, size)) for size in sizes]))
    drawn = rng.integers(len(some), size=len(sizes)).tolist()
    costs = tuple(some[k][0] for k in drawn)
    return EntryCosts(by_entry=costs), [some[k][1][j] for j, k in enumerate(drawn)]


# secrets


def secret_pairs(
    rng: Rng, sizes: Sequence[int], *, groups: float = 0.2
) -> tuple[Secrets, list[SecretSides]]:
    """All pairs of values, or two groups of values."""
    least = min(sizes)
    if least >= 3 and rng.random() < groups:
        order = rng.permutation(least).tolist()
        cut = int(rng.integers(1, least))
        end = int(rng.integers(cut + 1, least + 1))
        left, right = tuple(sorted(order[:cut])), tuple(sorted(order[cut:end]))
        named = tuple(tuple(NAMES[k] for k in side) for side in (left, right))
        asked = [
            SecretSides(j, *sides)
            for j in range(len(sizes))
            for sides in ((left, right), (right, left))
        ]
        return Secrets(pairs=(named,)), asked  # type: ignore[arg-type]
    asked = [
        SecretSides(j, (x,), (y,))
        for j, size in enumerate(sizes)
        for x, y in permutations(range(size), 2)
    ]
    return Secrets(), asked


# chains


def kernel(rng: Rng, size: int) -> tuple[Array, bool]:
    """A transition matrix, and whether each state leads to each."""
    kind = rng.choice(["dense", "sticky", "zeros", "rare", "alike"], p=[0.4, 0.2, 0.15, 0.15, 0.1])
    rows = rng.dirichlet(np.ones(size), size)
    match kind:
        case "sticky":
            stay = rng.uniform(0.7, 0.99)
            rows = stay * np.eye(size) + (1 - stay) * rows
        case "zeros":
            rows = np.where(rng.random((size, size)) < 0.35, 0.0, rows)
            rows[np.arange(size), rng.integers(size, size=size)] += 0.2
            rows /= rows.sum(axis=1, keepdims=True)
        case "rare":
            rows = rng.dirichlet(np.full(size, 0.2), size) + 10.0 ** -rng.integers(3, 10)
            rows /= rows.sum(axis=1, keepdims=True)
        case "alike":
            rows = 0.9 * rows[[0] * size] + 0.1 * rows
    return rows, bool((rows > 0).all())


def stationary_law(rows: Array) -> Array:
    """The law that the rows, each divided by its sum, leave unchanged: in fractions.

    A probability of 1e-5 would be off by 1e-11 of itself if it were solved for in floats.
    """
    size = len(rows)
    exact = [[Fraction(x) for x in row] for row in rows.tolist()]
    exact = [[x / sum(row) for x in row] for row in exact]
    # πP = π but for the last column, and a sum of 1 in its place; one column for the right side
    system = [
        [exact[i][j] - (i == j) for i in range(size)] + [Fraction(0)] for j in range(size - 1)
    ]
    system.append([Fraction(1)] * (size + 1))
    pivots: list[int] = []  # of each row, the column that it is solved for
    for k in range(size):
        row = len(pivots)
        pivot = next((n for n in range(row, size) if system[n][k]), None)
        if pivot is None:
            continue  # several laws are unchanged: one of them, without this state
        system[row], system[pivot] = system[pivot], system[row]
        pivots.append(k)
        for n in range(size):
            if n != row and system[n][k]:
                share = system[n][k] / system[row][k]
                system[n] = [x - share * y for x, y in zip(system[n], system[row], strict=True)]
    law = np.zeros(size)
    law[pivots] = [float(system[row][-1] / system[row][k]) for row, k in enumerate(pivots)]
    return law


def lengths(rng: Rng) -> tuple[int, int]:
    """How many states, how many entries: seldom as many as 4 and 5."""
    size = int(rng.choice([2, 3, 4], p=[0.35, 0.45, 0.2]))
    often = {2: (1, 2, 3, 4, 5), 3: (1, 3, 5, 4, 3), 4: (1, 3, 4, 2, 0.4)}
    shares = np.array(often[size], dtype=np.float64)
    return size, int(rng.choice([1, 2, 3, 4, 5], p=shares / shares.sum()))


def chain(rng: Rng, family: str) -> Instance:
    """A chain with a given or stationary start, perhaps with a matrix for each step."""
    size, length = lengths(rng)
    rows, positive = kernel(rng, size)
    states = NAMES[:size]
    steps = [rows] * (length - 1)
    if positive and rng.random() < 0.5:
        prior = MarkovChain(rows, states, length=length)
        law = stationary_law(rows)
    else:
        law = rng.dirichlet(np.ones(size))
        if rng.random() < 0.3:
            law = np.where(np.arange(size) == rng.integers(size), law, 0.0) + 0.0
            law[rng.integers(size)] += 0.3
            law /= law.sum()
        table: Array = rows
        if length > 1 and rng.random() < 0.2:
            steps = [kernel(rng, size)[0] for _ in range(length - 1)]
            table = np.array(steps)
        prior = MarkovChain(table, states, start=law, length=length)
    sizes = [size] * length
    costs, matrices = entry_costs(rng, sizes)
    secrets, asked = secret_pairs(rng, sizes)
    name = f"{family} of {size}" + ("" if secrets.pairs is None else ", groups")
    return Instance(name, prior, secrets, costs, [chain_table(law, steps)], matrices, asked)


def unbounded(rng: Rng, family: str) -> Instance:
    """An unbounded stationary chain: what a few entries of it lose."""
    size, length = lengths(rng)
    rows = rng.dirichlet(np.ones(size), size)
    costs, matrices = entry_costs(rng, [size] * length, profile=False)
    secrets, asked = secret_pairs(rng, [size] * length)
    prior = MarkovChain(rows, NAMES[:size])
    table = chain_table(stationary_law(rows), [rows] * (length - 1))
    return Instance(family, prior, secrets, costs, [table], matrices, asked, complete=False)


def intervals(rng: Rng, family: str) -> Instance:
    """A chain known up to intervals; some of the chains within."""
    size = int(rng.integers(2, 4))
    length = int(rng.integers(2, 5))
    rows = rng.dirichlet(np.ones(size), size)
    width = rng.uniform(0, 0.15)
    low, high = np.maximum(rows - width, 0.0), np.minimum(rows + width, 1.0)
    costs, matrices = entry_costs(rng, [size] * length)
    secrets, asked = secret_pairs(rng, [size] * length)
    prior = IntervalMarkovChain(low, high, NAMES[:size], "any", length)
    tables = [
        chain_table(
            rng.dirichlet(np.ones(size)), [_within(rng, low, high) for _ in range(length - 1)]
        )
        for _ in range(3)
    ]
    return Instance(family, prior, secrets, costs, tables, matrices, asked, complete=False)


def _within(rng: Rng, low: Array, high: Array) -> Array:
    """A matrix between two, at the ends of most intervals."""
    rows = low.copy()
    for row, most in zip(rows, high, strict=True):
        left = 1 - row.sum()
        for v in rng.permutation(len(row)):
            more = min(left, most[v] - row[v])
            row[v] += more
            left -= more
    return rows


def second_order(rng: Rng, family: str) -> Instance:
    """A chain of order 2."""
    size, length = 2, int(rng.integers(2, 6))
    if rng.random() < 0.25:
        size, length = 3, int(rng.integers(2, 5))
    follow = rng.dirichlet(np.ones(size), (size, size))
    windows = list(product(range(size), repeat=2))
    rows = np.array([[follow[a][b, d] if b == c else 0.0 for c, d in windows] for a, b in windows])
    law = stationary_law(rows).reshape(size, size)
    table = law
    for _ in range(length - 2):
        table = table[..., None] * follow
    costs, matrices = entry_costs(rng, [size] * length)
    secrets, asked = secret_pairs(rng, [size] * length)
    prior = HigherOrderChain(follow, NAMES[:size], length)
    return Instance(family, prior, secrets, costs, [table], matrices, asked)


# adversaries who know more


def adversaries(rng: Rng, family: str) -> Instance:
    """A chain whose start is unknown, of which any other entries may be known, or both."""
    size = int(rng.choice([2, 3], p=[0.6, 0.4]))
    length = int(rng.integers(2, 6 if size == 2 else 5))
    rows, _ = kernel(rng, size)
    if family == "known entries":
        rows = 0.999 * rows + 0.001 / size
    costs, matrices = entry_costs(rng, [size] * length)
    entry = int(rng.integers(length))
    asked = [SecretSides(entry, (x,), (y,)) for x, y in permutations(range(size), 2)]
    tables = [chain_table(stationary_law(rows), [rows] * (length - 1))]
    if family != "known entries":
        starts = two_point_starts(size, SHARES)
        tables = [chain_table(start, [rows] * (length - 1)) for start in starts]
        if family == "both":
            tables = [tables[k] for k in rng.choice(len(tables), 4, replace=False)]
    complete = family == "known entries"
    if family != "unknown start":
        left = [(), *(((j, b),) for j in range(entry) for b in range(size))]
        right = [(), *(((j, b),) for j in range(entry + 1, length) for b in range(size))]
        asked = [
            SecretSides(pair.entry, pair.left, pair.right, one + other)
            for pair in asked
            for one in left
            for other in right
        ]
        if family == "both" or len(asked) > 100:
            complete = False
            asked = [asked[k] for k in rng.choice(len(asked), min(len(asked), 40), replace=False)]
    start: Any = "stationary" if family == "known entries" else "unknown"
    known: dict[str, Any] = {} if family == "unknown start" else {"known": "any"}
    prior = MarkovChain(rows, NAMES[:size], start=start, length=length, **known)
    return Instance(
        *(family, prior, Secrets(entries=(entry,)), costs, tables, matrices, asked),
        complete=complete,
    )


# tables, networks and fields


def shapes(rng: Rng, nodes: int, most: int) -> list[int]:
    """Two or three values for each node, and not too many datasets."""
    sizes = [int(rng.choice([2, 3], p=[0.7, 0.3])) for _ in range(nodes)]
    while np.prod(sizes) > most:
        sizes[int(np.argmax(sizes))] = 2 if max(sizes) > 2 else 1
        sizes = [size for size in sizes if size > 1]
    return sizes


def network(rng: Rng, family: str) -> Instance:
    """A Bayesian network with at most two parents for each node."""
    sizes = shapes(rng, int(rng.integers(2, 7)), 72)
    parents, tables, factors = [], [], []
    for j, size in enumerate(sizes):
        above = sorted(rng.choice(j, min(j, int(rng.integers(0, 3))), replace=False).tolist())
        wide = tuple(sizes[k] for k in above)
        law = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0])), wide) + 1e-6
        if rng.random() < 0.2:
            law = np.where(rng.random(law.shape) < 0.25, 0.0, law)
            law[..., 0] += 0.05
        law = law / law.sum(axis=-1, keepdims=True)
        parents.append(tuple(f"n{k}" for k in above))
        tables.append(law)
        factors.append(([*above, j], law))
    names = tuple(f"n{j}" for j in range(len(sizes)))
    states = tuple(NAMES[:size] for size in sizes)
    prior = BayesianNetwork(names, states, tuple(parents), tuple(tables))
    costs, matrices = entry_costs(rng, sizes)
    secrets, asked = secret_pairs(rng, sizes)
    table = factor_table(sizes, factors)
    return Instance(family, prior, secrets, costs, [table], matrices, asked)


def random_field(rng: Rng, family: str) -> Instance:
    """A pairwise field: signs and numbers of values vary; or binary and attractive."""
    attractive = family == "attractive field"
    sizes = (
        [2] * int(rng.integers(2, 7)) if attractive else shapes(rng, int(rng.integers(2, 7)), 72)
    )
    pairs = [(i, j) for j in range(len(sizes)) for i in range(j)]
    keep = rng.random(len(pairs)) < rng.uniform(0.3, 0.9)
    edges = [pair for pair, kept in zip(pairs, keep, strict=True) if kept] or pairs[:1]
    strength = rng.choice([0.1, 0.4, 1.0])
    weights = []
    for i, j in edges:
        if attractive:
            coupling = np.exp(rng.exponential(strength))
            weights.append(np.array([[coupling, 1.0], [1.0, coupling]]))
        else:
            weights.append(np.exp(strength * rng.normal(size=(sizes[i], sizes[j]))))
    unary = [np.exp(0.5 * rng.normal(size=size)) for size in sizes]
    names = tuple(f"n{j}" for j in range(len(sizes)))
    prior = MarkovRandomField(
        *(names, tuple(NAMES[:size] for size in sizes), tuple(unary)),
        *(tuple((names[i], names[j]) for i, j in edges), tuple(weights)),
    )
    factors: list[Any] = [((j,), weight) for j, weight in enumerate(unary)]
    factors += list(zip(edges, weights, strict=True))
    costs, matrices = entry_costs(rng, sizes)
    secrets, asked = secret_pairs(rng, sizes)
    return Instance(family, prior, secrets, costs, [factor_table(sizes, factors)], matrices, asked)


def written_out(rng: Rng, family: str) -> Instance:
    """A table of probabilities, with zeros."""
    sizes = shapes(rng, int(rng.integers(1, 5)), 36)
    table = rng.dirichlet(np.full(int(np.prod(sizes)), 0.5)).reshape(sizes)
    if rng.random() < 0.5:
        table = np.where(rng.random(table.shape) < 0.3, 0.0, table)
    table = np.where(table < 1e-100, 0.0, table)
    for value in range(min(sizes)):  # so that there is something to tell
        table[(value,) * len(sizes)] += 0.05
    table /= table.sum()
    universe = Tables.of({j: NAMES[:size] for j, size in enumerate(sizes)})
    costs, matrices = entry_costs(rng, sizes)
    secrets, asked = secret_pairs(rng, sizes)
    prior = Explicit(universe, table.ravel())
    return Instance(family, prior, secrets, costs, [table], matrices, asked)


def independent(rng: Rng, family: str) -> Instance:
    """Entries that say nothing of one another."""
    sizes = shapes(rng, int(rng.integers(1, 4)), 27)
    laws = [rng.dirichlet(np.ones(size)) for size in sizes]
    table = np.ones(())
    for law in laws:
        table = table[..., None] * law
    prior = IndependentEntries(
        {f"n{j}": dict(zip(NAMES, law.tolist(), strict=False)) for j, law in enumerate(laws)}
    )
    costs, matrices = entry_costs(rng, sizes)
    secrets, asked = secret_pairs(rng, sizes)
    return Instance(family, prior, secrets, costs, [table], matrices, asked)


def people(rng: Rng, family: str) -> Instance:
    """Two independent people, a chain each."""
    size, parts, table, count = int(rng.integers(2, 4)), {}, np.ones(()), 0
    for person in ("ada", "bob"):
        rows = rng.dirichlet(np.ones(size), size)
        law = rng.dirichlet(np.ones(size))
        length = int(rng.integers(1, 4 if size == 2 else 3))
        parts[person] = MarkovChain(rows, NAMES[:size], start=law, length=length)
        own = chain_table(law, [rows] * (length - 1))
        table = np.multiply.outer(table, own)
        count += length
    costs, matrices = entry_costs(rng, [size] * count)
    secrets, asked = secret_pairs(rng, [size] * count)
    return Instance(family, Product(parts), secrets, costs, [table], matrices, asked)


Family = Callable[[Rng, str], Instance]
FAMILIES: dict[str, tuple[Family, float]] = {
    "chain": (chain, 0.5),
    "unbounded": (unbounded, 0.05),
    "intervals": (intervals, 0.04),
    "second order": (second_order, 0.04),
    "unknown start": (adversaries, 0.04),
    "known entries": (adversaries, 0.04),
    "both": (adversaries, 0.02),
    "network": (network, 0.09),
    "field": (random_field, 0.05),
    "attractive field": (random_field, 0.03),
    "table": (written_out, 0.05),
    "independent": (independent, 0.02),
    "people": (people, 0.03),
}
