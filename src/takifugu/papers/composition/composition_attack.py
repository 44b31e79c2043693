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

**Functions without noise.** Where a definition is about answers that are computed without
randomness (noiseless privacy), a randomised counterexample would miss the point; and the same
function run twice says nothing that it did not say once. So *two different* functions are searched
for, each with two outputs: all those that reveal nothing by themselves, in pairs, everything in
fractions.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from math import inf, prod

from takifugu.errors import TooLarge
from takifugu.finite.world import World
from takifugu.papers.composition.collapse.repeated_runs import Exact
from takifugu.priors.secrets import SecretPair
from takifugu.priors.universe import Tables

Law = Mapping[int, Fraction]  # dataset -> probability, without those that are impossible


@dataclass(frozen=True)
class ComparedLaws:
    """The law of the data given either side of a pair, under one prior.

    Attributes:
        pair: The position of the pair in its world.
        prior: The position of the prior.
        left: P(D | left side).
        right: P(D | right side).
    """

    pair: int
    prior: int
    left: Law
    right: Law

    @property
    def single(self) -> tuple[int, int] | None:
        """The two datasets, if there is one on either side; else None."""
        if len(self.left) == len(self.right) == 1:
            return next(iter(self.left)), next(iter(self.right))
        return None


def compared_laws(world: World) -> tuple[ComparedLaws, ...]:
    """Every pair under every prior that allows both of its sides, in order.

    The probabilities of a prior count as the fractions that their floats are.
    """
    found = []
    for k, prior in enumerate(world.listed_priors):
        weights = [Fraction(p) for p in prior.probability.tolist()]
        laws = {}
        for secret in world.secrets:
            inside = {int(d): weights[d] for d in world.mask(secret).nonzero()[0] if weights[d]}
            total = sum(inside.values(), Fraction(0))
            laws[secret] = {d: w / total for d, w in inside.items()}
        for p, pair in enumerate(world.pairs):
            left, right = laws[pair.left], laws[pair.right]
            if left and right:
                found.append(ComparedLaws(p, k, left, right))
    return tuple(found)


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
        together, seen = _worst_of_runs(laws, rows, 2)
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
        once, _ = _worst_of_runs(laws, rows, 1)
        together, seen = _worst_of_runs(laws, rows, runs)
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


def _worst_of_runs(
    laws: Sequence[ComparedLaws], rows: Rows, runs: int
) -> tuple[Exact, tuple[int, ...]]:
    """The largest ratio of probabilities of outputs of several runs, and those outputs."""
    outputs = combinations_with_replacement(range(len(rows[0])), runs)
    return _worst_outputs(laws, [rows] * runs, outputs)[:2]


def _worst_outputs(
    laws: Sequence[ComparedLaws], mechanisms: Sequence[Rows], listed: Iterable[tuple[int, ...]]
) -> tuple[Exact, tuple[int, ...], ComparedLaws | None]:
    """The largest ratio of probabilities of ``listed`` outputs seen together, these, and where."""
    worst: Exact = Fraction(1)
    seen: tuple[int, ...] = (0,) * len(mechanisms)
    where = None
    for outputs in listed:
        each = [[row[o] for row in rows] for rows, o in zip(mechanisms, outputs, strict=True)]
        joint = [prod(factors, start=Fraction(1)) for factors in zip(*each, strict=True)]
        for law in laws:
            left, right = (
                sum((p * joint[d] for d, p in side.items() if joint[d]), Fraction(0))
                for side in (law.left, law.right)
            )
            ratio: Exact = left / right if right else inf
            if left and ratio > worst:
                worst, seen, where = ratio, outputs, law
    return worst, seen, where


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


MOST_DATASETS = 12  # all functions with two outputs are listed: 2¹¹ of them, up to renaming

Function = tuple[int, ...]  # [dataset]: its output, 0 or 1


@dataclass(frozen=True)
class FunctionPair:
    """Two functions of the data, and what they lose alone and together; exact.

    Attributes:
        names: What each computes.
        functions: Their outputs, dataset by dataset.
        once: e^ε of each by itself.
        together: e^ε of both.
        seen: The outputs that are worst together.
        pair: The secret pair that they distinguish.
    """

    names: tuple[str, str]
    functions: tuple[Function, Function]
    once: tuple[Exact, Exact]
    together: Exact
    seen: tuple[int, int]
    pair: SecretPair

    @property
    def rows(self) -> tuple[tuple[tuple[Fraction, ...], ...], ...]:
        """``[function][dataset][output]``: their likelihoods, which are all 0 or 1."""
        return tuple(map(_likelihood, self.functions))


def search_deterministic_attack(world: World) -> FunctionPair | None:
    """Two functions that reveal nothing one by one, and most together; None if there are none.

    Of equals the pair that comes first: parities of entries before other functions, of fewer
    entries before more. None is no proof that functions compose: some reveal a little.
    """
    size = len(world.universe)
    if size > MOST_DATASETS:
        raise TooLarge(
            f"the functions of {size:,} datasets are too many to be listed; at most"
            f" {MOST_DATASETS:,} datasets are. Use fewer entries or values",
            size=size,
            limit=MOST_DATASETS,
        )
    laws = compared_laws(world)
    silent = [f for f in _functions(world) if _worst_of_runs(laws, _likelihood(f), 1)[0] == 1]
    found: FunctionPair | None = None
    for one, other in combinations(silent, 2):
        both = [_likelihood(one), _likelihood(other)]
        together, seen, law = _worst_outputs(laws, both, product((0, 1), repeat=2))
        if together > (1 if found is None else found.together) and law is not None:
            found = FunctionPair(
                (function_name(world, one), function_name(world, other)), (one, other),
                (Fraction(1), Fraction(1)), together, (seen[0], seen[1]), world.pairs[law.pair],
            )  # fmt: skip
    return found


def _likelihood(function: Function) -> Rows:
    """``[dataset][output]``: all 0 or 1."""
    return tuple((Fraction(1 - output), Fraction(output)) for output in function)


def function_name(world: World, function: Function) -> str:
    """A parity of entries by their names; else the datasets on which the function is 1."""
    for names, parity in _parities(world):
        if function == parity:
            return " ⊕ ".join(map(str, names))
    datasets = world.universe.datasets
    ones = [str(data) for data, output in zip(datasets, function, strict=True) if output]
    return f"whether it is {' or '.join(ones)}"


def _functions(world: World) -> Iterator[Function]:
    """All that are not constant, each once up to the names of its outputs; parities first."""
    first = list(dict.fromkeys(parity for _, parity in _parities(world)))
    yield from first
    known = set(first)
    for rest in product((0, 1), repeat=len(world.universe) - 1):
        if any(rest) and (0, *rest) not in known:
            yield (0, *rest)


def _parities(world: World) -> Iterator[tuple[tuple[object, ...], Function]]:
    """The parity of every set of entries, if all entries are bits; few entries first."""
    tables = world.universe
    if not isinstance(tables, Tables) or any(values != (0, 1) for values in tables.values):
        return
    for size in range(1, len(tables.entries) + 1):
        for columns in combinations(range(len(tables.entries)), size):
            parity = tables.codes[:, list(columns)].sum(axis=1) % 2
            yield tuple(tables.entries[j] for j in columns), tuple(parity.tolist())
