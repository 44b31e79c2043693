"""What a multiset of outputs reveals about one pair of secrets under one prior.

The runs of a mechanism on the same data are independent given the data, so only the number of
times each output was seen matters. With counts c and L[D, ω] = log P(M(D) = ω), the loss of the
pair is

    f(c) = log Σ_{D∈s} P(D|s) e^{c·L_D}  −  log Σ_{D∈s′} P(D|s′) e^{c·L_D}.

A mixture of likelihoods is summed exactly in fractions, or by logarithms.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations
from math import comb, prod

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu._core.rounding import UNIT
from takifugu.errors import InvalidMechanism, TooLarge
from takifugu.finite.leakage import possible, same_world
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.world import World


def exact_mixture(
    weights: Sequence[float], likelihood: Floats, counts: Sequence[int] | Integers
) -> Fraction:
    """Σ_D w_D · Π_ω likelihood[D, ω]^counts[ω], with every float taken as the fraction it is."""
    seen = [(w, int(c)) for w, c in enumerate(counts) if c]
    terms: list[tuple[int, int]] = []  # mantissa · 2^exponent
    for weight, row in zip(weights, likelihood, strict=True):
        mantissa, exponent = _binary(float(weight))
        for w, c in seen:
            factor, power = _binary(float(row[w]))
            mantissa *= factor**c
            exponent += power * c
        if mantissa:
            terms.append((mantissa, exponent))
    if not terms:
        return Fraction(0)
    least = min(exponent for _, exponent in terms)
    total = sum(mantissa << (exponent - least) for mantissa, exponent in terms)
    return Fraction(total) * Fraction(2) ** least


def _binary(value: float) -> tuple[int, int]:
    """``value`` as an integer times a power of two."""
    numerator, denominator = value.as_integer_ratio()
    return numerator, 1 - denominator.bit_length()


def log_sum(terms: Floats) -> Floats:
    """The logarithm of Σ exp over the last axis; −∞ where every term is −∞."""
    top = terms.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total: Floats = np.log(np.exp(terms - top).sum(axis=-1)) + top[..., 0]
    return total


Runs = tuple[tuple[FiniteMechanism, int], ...]
Blocks = tuple[tuple[int, int, int], ...]  # (first column, last + 1, runs) of every mechanism


@dataclass(frozen=True, eq=False)
class SecretMixture:
    """A secret under a prior: a mixture of distributions of outputs, one for each dataset."""

    weight: Floats  # [dataset]: log P(D | s)
    log: Floats  # [dataset, output]: log P(ω | D); 0 where that is impossible
    never: Booleans  # [dataset, output]: where it is impossible

    def evidence(self, counts: Floats) -> Floats:
        """``[multiset]``: log P(multiset | s), but for how many orders it has."""
        terms = self.weight + counts @ self.log.T
        if self.never.any():
            terms = np.where(counts @ self.never.T > 0, -np.inf, terms)
        return log_sum(terms)


@dataclass(frozen=True, eq=False)
class PairUnderPrior:
    """One ordered pair (by position) under one prior, and the outputs that can be seen."""

    pair: int
    prior: int
    left: SecretMixture
    right: SecretMixture
    blocks: Blocks

    def loss(self, counts: Floats) -> Floats:
        """``[multiset]``: f(c), within `rounding`; −∞ where the left side makes c impossible."""
        left, right = self.left.evidence(counts), self.right.evidence(counts)
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(left), -np.inf, left - right)

    def some(self) -> Integers:
        """``[output]``: the counts of a multiset that is possible on the left side."""
        return _fill(frozenset(), ~self.left.never[0], self.blocks)

    @property
    def rounding(self) -> float:
        """How far f(c), or a bound on it by `branch.search`, may be off by rounding.

        Each is made of sums of at most n + W terms, none larger than the logarithm of the
        smallest prior probability plus that of the smallest likelihood of a multiset (Higham, 3.1).
        The factor 8 covers the few sums that follow one another, and logarithms and merged
        outputs that are off by some units in the last place.
        """
        datasets = max(len(self.left.weight), len(self.right.weight))
        outputs = self.left.log.shape[1]
        largest = max(float(np.abs(side.log).max()) for side in (self.left, self.right))
        weights = max(float(np.abs(side.weight).max()) for side in (self.left, self.right))
        runs = sum(k for _, _, k in self.blocks)
        return float(8 * UNIT * (datasets + outputs + 16) * (2 + weights + runs * (1 + largest)))


@dataclass(frozen=True, eq=False)
class Evidence:
    """Several mechanisms and their numbers of runs, reduced to distinct evidence.

    Outputs whose likelihoods are proportional are equivalent and are merged into the first of
    them; outputs that never happen are dropped.
    """

    runs: Runs
    blocks: Blocks
    likelihood: Floats  # [dataset, output], of one output of every kind
    outputs: tuple[Hashable, ...]

    @property
    def size(self) -> int:
        """How many multisets there are."""
        return prod(comb(k + end - start - 1, k) for start, end, k in self.blocks)

    def named(self, counts: Sequence[int] | Integers) -> tuple[Hashable, ...]:
        """The multiset with these counts, as a tuple of outputs, mechanism by mechanism."""
        return tuple(
            chain.from_iterable([o] * int(c) for o, c in zip(self.outputs, counts, strict=True))
        )

    def cases(self, world: World) -> Iterator[PairUnderPrior]:
        """Every ordered pair under every prior for which both sides are possible."""
        for pair, prior in np.argwhere(possible(world)):
            yield self.case(world, int(pair), int(prior))

    def case(self, world: World, pair: int, prior: int) -> PairUnderPrior:
        """One ordered pair under one prior, by their positions in the world."""
        left, right = (self._side(world, prior, secret) for secret in world.sides[pair])
        return PairUnderPrior(pair, prior, left, right, self.blocks)

    def exact_odds(
        self, world: World, case: PairUnderPrior, counts: Integers
    ) -> tuple[Fraction, Fraction]:
        """P(multiset | s) and P(multiset | s′), in fractions, up to one common factor."""
        sides = world.pairs[case.pair]
        weights = world.weights[case.prior]
        rows = [np.flatnonzero(world.mask(s) & (weights > 0)) for s in (sides.left, sides.right)]
        seen = [exact_mixture(weights[r].tolist(), self.likelihood[r], counts) for r in rows]
        total = [sum(map(Fraction, weights[r].tolist()), Fraction(0)) for r in rows]
        return seen[0] * total[1], seen[1] * total[0]

    def _side(self, world: World, prior: int, secret: int) -> SecretMixture:
        """The datasets of a secret, those with identical likelihoods merged."""
        table, log, member = self._distinct
        weight = np.bincount(
            member, weights=world.weights[prior] * world.masks[secret], minlength=len(table)
        )
        kept = np.flatnonzero(weight)
        probability = np.log(weight[kept]) - np.log(weight[kept].sum())
        return SecretMixture(probability, log[kept], table[kept] == 0)

    @cached_property
    def _distinct(self) -> tuple[Floats, Floats, Integers]:
        """The different rows of the likelihood, their logs, and which of them each dataset has."""
        table, member = np.unique(self.likelihood, axis=0, return_inverse=True)
        log = np.log(np.where(table > 0, table, 1.0))
        return table, log, member.ravel().astype(np.int64)


def reduce_evidence(world: World, runs: Runs) -> Evidence:
    """Reduce the mechanisms that are run to the distinct evidence they can give."""
    for mechanism, _ in runs:
        same_world(world, mechanism)
    blocks, columns, outputs, start = [], [], [], 0
    for mechanism, k in runs:
        kept = distinct_outputs(mechanism)
        columns.append(mechanism.likelihood[:, kept])
        outputs += [mechanism.outputs[w] for w in kept]
        blocks.append((start, start + len(kept), k))
        start += len(kept)
    return Evidence(runs, tuple(blocks), np.concatenate(columns, axis=1), tuple(outputs))


def counted_runs(parts: Sequence[FiniteMechanism | tuple[FiniteMechanism, int]]) -> Runs:
    """Mechanisms with their numbers of runs, the runs of equal mechanisms added."""
    total: dict[FiniteMechanism, int] = {}
    for part in parts:
        match part:
            case FiniteMechanism():
                mechanism, runs = part, 1
            case (FiniteMechanism() as mechanism, runs):
                pass
            case _:
                raise InvalidMechanism(
                    "runs",
                    given=f"holds a {type(part).__name__}",
                    needed="hold mechanisms, or pairs of a mechanism and a number of runs",
                )
        if isinstance(runs, bool) or not (isinstance(runs, int | np.integer) and runs >= 1):
            raise InvalidMechanism(
                "runs", given=f"of {mechanism.name!r} is {runs!r}", needed="be a whole number, 1 up"
            )
        total[mechanism] = total.get(mechanism, 0) + int(runs)
    if not total:
        raise InvalidMechanism("runs", given="is empty", needed="name at least one mechanism")
    return tuple(total.items())


def distinct_outputs(mechanism: FiniteMechanism) -> list[int]:
    """The first output of every kind; outputs are of one kind if their columns are proportional.

    Proportional means within 8 units in the last place, which `PairUnderPrior.rounding` allows for.
    """
    table = mechanism.likelihood
    largest = table.max(axis=0)
    kinds: dict[bytes, list[int]] = {}
    for w in np.flatnonzero(largest):
        shape = table[:, w] / largest[w]
        alike = kinds.setdefault(np.round(shape, 10).tobytes(), [])
        if not any(_proportional(shape, table[:, v] / largest[v]) for v in alike):
            alike.append(int(w))
    return sorted(chain.from_iterable(kinds.values()))


def _proportional(a: Floats, b: Floats) -> bool:
    return bool((np.abs(a - b) <= 8 * UNIT * np.minimum(a, b)).all())


def multisets(outputs: int, runs: int) -> Integers:
    """``[multiset, output]``: every way to see ``runs`` outputs, as counts."""
    size = comb(runs + outputs - 1, runs)
    bars = chain.from_iterable(combinations(range(runs + outputs - 1), outputs - 1))
    placed = np.fromiter(bars, dtype=np.int64, count=size * (outputs - 1))
    placed = placed.reshape(size, outputs - 1)
    edges = np.pad(placed, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, runs + outputs - 1)))
    return np.diff(edges, axis=1) - 1


def all_counts(blocks: Blocks) -> Integers:
    """``[multiset, output]``: every combination of the multisets of every mechanism."""
    counts = np.zeros((1, 0), dtype=np.int64)
    for start, end, runs in blocks:
        block = multisets(end - start, runs)
        left = np.repeat(counts, len(block), axis=0)
        counts = np.concatenate([left, np.tile(block, (len(counts), 1))], axis=1)
    return counts


def revealing_multiset(case: PairUnderPrior, *, limit: int = 100_000) -> Integers | None:
    """``[output]``: a multiset that is possible on the left and impossible on the right, if any.

    The outputs seen must all be possible under one dataset D of the left side, and for every
    dataset of the right side one of them must be impossible. So look for at most k outputs of D
    that hit every set "outputs of D that D′ never gives": a depth-first search, smallest set
    first. Only the largest supports on the left need a look.
    """
    if not case.right.never.any():
        return None
    spent = 0
    for support in _maximal(~case.left.never):
        targets = ~_maximal(~(case.right.never & support))  # the smallest sets suffice
        minimal = [frozenset(int(w) for w in np.flatnonzero(row)) for row in targets]
        stack: list[frozenset[int]] = [frozenset()]
        while stack:
            seen = stack.pop()
            spent += 1
            if spent > limit:
                raise TooLarge(
                    f"whether some multiset of outputs is impossible on one side of a pair was not"
                    f" settled within {limit:,} steps; ask for fewer runs or fewer outputs",
                    limit=limit,
                )
            missing = [t for t in minimal if not t & seen]
            if not missing:
                return _fill(seen, support, case.blocks)
            smallest = missing[int(np.argmin([len(t) for t in missing]))]
            wider = [seen | {output} for output in sorted(smallest, reverse=True)]
            stack += [more for more in wider if _affordable(more, case.blocks)]
    return None


def _affordable(seen: frozenset[int], blocks: Blocks) -> bool:
    return all(sum(start <= w < end for w in seen) <= runs for start, end, runs in blocks)


def _fill(seen: frozenset[int], support: Booleans, blocks: Blocks) -> Integers:
    """See every output of ``seen`` once, and spend the other runs on possible outputs."""
    counts = np.zeros(len(support), dtype=np.int64)
    counts[sorted(seen)] = 1
    for start, end, runs in blocks:
        first = start + int(np.argmax(support[start:end]))
        counts[first] += runs - counts[start:end].sum()
    return counts


def _maximal(sets: Booleans) -> Booleans:
    """The rows of ``sets`` that are contained in no other row."""
    rows = np.unique(sets, axis=0)
    outside = rows.astype(np.int64) @ (~rows).T.astype(np.int64)  # [row, other]
    kept: Booleans = rows[(outside == 0).sum(axis=1) == 1]  # in itself alone
    return kept
