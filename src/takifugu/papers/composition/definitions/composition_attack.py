r"""Mechanisms whose runs leak more than the sum: searched for in fractions.

**Mechanisms that reveal nothing.** One run of a mechanism reveals nothing if for every output the
likelihood :math:`v(D) = P(ω|D)` has the same mean on both sides of every pair: :math:`E[v|s] =
E[v|s']`. Those v are a linear space N, which holds the constants. For :math:`w \in N`, scaled
to between 0 and 1, "B with probability w(D), else A" reveals nothing; two runs reveal something
iff :math:`w^2 \notin N`. As :math:`(b+c)^2 - (b-c)^2 = 4bc`, it is enough to try the vectors b of
a basis and b ± c: if none of their squares leaves N, then N is closed under products, and
mechanisms that reveal nothing alone reveal nothing together, in any number.

**Randomized response.** Where only the constants are in N, every entry is kept with a
probability of its own or replaced (uniformly among the other values), and all entries are released;
the probabilities are tried on a grid.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from math import inf, prod

from takifugu.finite.world import World
from takifugu.papers.composition.collapse.exact_loss import Exact
from takifugu.papers.composition.definitions.compared_laws import ComparedLaws, compared_laws
from takifugu.priors.universe import Tables

Rows = tuple[tuple[Fraction, ...], ...]  # [dataset][output]
KEPT = (Fraction(5, 8), Fraction(3, 4), Fraction(7, 8))  # of randomized response
MOST_RUNS = 3
LETTERS = ("A", "B")  # outputs that mean nothing


@dataclass(frozen=True)
class RepeatedMechanism:
    """A mechanism that is run several times, and what the runs lose; exact.

    Attributes:
        name: What it does, in words.
        rows: P(ω|D), dataset by dataset.
        outputs: The names of the outputs.
        runs: How many runs there are.
        once: e^ε of one run.
        together: e^ε of all runs.
        seen: The outputs that are worst together.
    """

    name: str
    rows: Rows
    outputs: tuple[Hashable, ...]
    runs: int
    once: Exact
    together: Exact
    seen: tuple[Hashable, ...]

    @property
    def excess(self) -> Exact:
        """By what factor the odds move beyond what linear composition allows."""
        if isinstance(self.together, float) or isinstance(self.once, float):
            return inf
        return self.together / self.once**self.runs


def search_composition_attack(
    world: World, *, most_runs: int = MOST_RUNS
) -> RepeatedMechanism | None:
    """A mechanism whose runs leak more than the sum of their losses; None if none was found.

    Of those with the fewest runs, the one that leaks most beyond the sum; at most ``most_runs``
    are tried. None is no proof: see `composition_proof`.
    """
    laws = compared_laws(world)
    found = max(_silent(world, laws), key=lambda one: one.excess, default=None)
    for runs in range(2, most_runs + 1):
        if found is None:
            found = max(_responses(world, laws, runs), key=lambda one: one.excess, default=None)
    return found


def hidden_functions(world: World) -> tuple[tuple[Fraction, ...], ...]:
    """A basis of N: functions of the data whose mean is the same on both sides of every pair."""
    return _null_space(_differences(compared_laws(world), len(world.universe)))


def _silent(world: World, laws: Sequence[ComparedLaws]) -> Iterator[RepeatedMechanism]:
    """Two runs of "B with probability w(D), else A", w in N, where they reveal something."""
    basis = _null_space(_differences(laws, len(world.universe)))
    trials = list(basis)
    for b, c in combinations(basis, 2):
        trials += [tuple(x + y for x, y in zip(b, c, strict=True))]
        trials += [tuple(x - y for x, y in zip(b, c, strict=True))]
    tried = set()
    for w in trials:
        low, high = min(w), max(w)
        if low == high:
            continue
        scaled = tuple((x - low) / (high - low) for x in w)
        if scaled in tried:
            continue
        tried.add(scaled)
        rows = tuple((1 - v, v) for v in scaled)
        together, seen = _worst(laws, rows, 2)
        if together > 1:
            yield RepeatedMechanism(
                "A or B, by itself revealing nothing", rows, LETTERS, 2, Fraction(1), together,
                tuple(LETTERS[o] for o in seen),
            )  # fmt: skip


def _responses(
    world: World, laws: Sequence[ComparedLaws], runs: int
) -> Iterator[RepeatedMechanism]:
    """Randomized response with a probability for each entry, where its runs leak too much."""
    tables = world.universe
    if not isinstance(tables, Tables):
        return
    names = tuple(tables.datasets)
    for kept in product(KEPT, repeat=len(tables.entries)):
        rows = tuple(
            tuple(_answered(tables, kept, d, o) for o in range(len(tables)))
            for d in range(len(tables))
        )
        once, _ = _worst(laws, rows, 1)
        together, seen = _worst(laws, rows, runs)
        shares = ", ".join(f"{name} with {p}" for name, p in zip(tables.entries, kept, strict=True))
        found = RepeatedMechanism(
            f"randomized response that keeps {shares}", rows, names, runs, once, together,
            tuple(names[o] for o in seen),
        )  # fmt: skip
        if not isinstance(once, float) and found.excess > 1:
            yield found


def _answered(tables: Tables, kept: Sequence[Fraction], dataset: int, output: int) -> Fraction:
    """The probability to answer one dataset where another is true."""
    pairs = zip(tables.codes[dataset].tolist(), tables.codes[output].tolist(), strict=True)
    return prod(
        (
            p if a == b else (1 - p) / (size - 1)
            for (a, b), p, size in zip(pairs, kept, tables.shape, strict=True)
        ),
        start=Fraction(1),
    )


def _worst(laws: Sequence[ComparedLaws], rows: Rows, runs: int) -> tuple[Exact, tuple[int, ...]]:
    """The largest ratio of probabilities of outputs seen together, and those outputs."""
    worst: Exact = Fraction(1)
    seen: tuple[int, ...] = (0,) * runs
    for outputs in combinations_with_replacement(range(len(rows[0])), runs):
        joint = [prod((row[o] for o in outputs), start=Fraction(1)) for row in rows]
        for one in laws:
            left = sum((p * joint[d] for d, p in one.left.items()), Fraction(0))
            right = sum((p * joint[d] for d, p in one.right.items()), Fraction(0))
            if left == 0:
                continue
            ratio: Exact = left / right if right else inf
            if ratio > worst:
                worst, seen = ratio, outputs
    return worst, seen


def _differences(laws: Sequence[ComparedLaws], size: int) -> list[list[Fraction]]:
    """P(D|s) − P(D|s′) as rows, one for each pair and prior."""
    rows = []
    for one in laws:
        row = [Fraction(0)] * size
        for d, p in one.left.items():
            row[d] += p
        for d, p in one.right.items():
            row[d] -= p
        rows.append(row)
    return rows


def _null_space(rows: Sequence[Sequence[Fraction]]) -> tuple[tuple[Fraction, ...], ...]:
    """A basis of the vectors that every row is orthogonal to, by elimination."""
    size = len(rows[0])
    reduced: list[list[Fraction]] = []
    pivots: list[int] = []
    for given in rows:
        row = list(given)
        for pivot, known in zip(pivots, reduced, strict=True):
            if row[pivot]:
                row = [a - row[pivot] * b for a, b in zip(row, known, strict=True)]
        place = next((j for j, a in enumerate(row) if a), None)
        if place is None:
            continue
        row = [a / row[place] for a in row]
        reduced = [
            [a - known[place] * b for a, b in zip(known, row, strict=True)] for known in reduced
        ]
        reduced.append(row)
        pivots.append(place)
    basis = []
    for free in (j for j in range(size) if j not in pivots):
        vector = [Fraction(0)] * size
        vector[free] = Fraction(1)
        for pivot, row in zip(pivots, reduced, strict=True):
            vector[pivot] = -row[free]
        basis.append(tuple(vector))
    return tuple(basis)
