"""Two functions of the data, without any noise, that reveal more together than one by one.

Where a definition is about answers that are computed without randomness (noiseless privacy), a
randomised counterexample would miss the point; and the same function run twice says nothing that
it did not say once. So *two different* functions are searched for, each with two outputs: all those
that reveal nothing by themselves, in pairs, everything in fractions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import inf

from takifugu.errors import TooLarge
from takifugu.finite.world import World
from takifugu.papers.composition.collapse.exact_loss import Exact
from takifugu.papers.composition.definitions.compared_laws import (
    ComparedLaws,
    Law,
    compared_laws,
)
from takifugu.priors.secrets import SecretPair
from takifugu.priors.universe import Tables

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
        return tuple(
            tuple((Fraction(1 - output), Fraction(output)) for output in function)
            for function in self.functions
        )


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
    silent = [f for f in _functions(world) if _worst(laws, (f,))[0] == 1]
    found: FunctionPair | None = None
    for one, other in combinations(silent, 2):
        together, seen, law = _worst(laws, (one, other))
        if together > (1 if found is None else found.together) and law is not None:
            found = FunctionPair(
                (function_name(world, one), function_name(world, other)), (one, other),
                (Fraction(1), Fraction(1)), together, (seen[0], seen[1]), world.pairs[law.pair],
            )  # fmt: skip
    return found


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


def _worst(
    laws: Sequence[ComparedLaws], functions: Sequence[Function]
) -> tuple[Exact, tuple[int, ...], ComparedLaws | None]:
    """The largest ratio of probabilities of outputs seen together, those outputs, and where."""
    worst: Exact = Fraction(1)
    seen: tuple[int, ...] = (0,) * len(functions)
    where = None
    for outputs in product((0, 1), repeat=len(functions)):
        agrees = _agreeing(functions, outputs)
        for law in laws:
            left, right = _mass(law.left, agrees), _mass(law.right, agrees)
            if left == 0:
                continue
            ratio: Exact = left / right if right else inf
            if ratio > worst:
                worst, seen, where = ratio, outputs, law
    return worst, seen, where


def _agreeing(functions: Sequence[Function], outputs: Sequence[int]) -> Callable[[int], bool]:
    return lambda d: all(f[d] == output for f, output in zip(functions, outputs, strict=True))


def _mass(law: Law, agrees: Callable[[int], bool]) -> Fraction:
    return sum((p for d, p in law.items() if agrees(d)), Fraction(0))
