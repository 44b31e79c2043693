"""Random chains at the edge of what floats can hold, each checked against the oracle.

Run ``python -m tests.translation.extremes 100000 [first seed]`` for as many instances: it prints
how many held, how many were refused, and stops at the first bound below what a mechanism leaks.
"""

import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from takifugu._core.numeric import LEAST, Floats
from takifugu.errors import TakifuguError
from takifugu.priors import IntervalMarkovChain, MarkovChain, Secrets
from takifugu.priors.universe import Name
from takifugu.translation import LooserTranslation, chain_losses, unbounded_losses
from takifugu.translation.bounds import Binding
from tests.oracles import extreme_chains as oracle
from tests.translation.transports import transport_of

TINY = (3.1e-151, 1e-150, 1e-100, 1e-60, 1e-30, 1e-17, 1e-16, 3e-16, 1e-12, 1e-9, 1e-4)
SPENT = (0.0, 1e-300, 1e-12, 1e-3, 0.01, 0.1, 0.405, 1.0, 3.0, 30.0, 250.0, 800.0)


class Below(AssertionError):
    """A bound that is below what a mechanism leaks, or a leak that no mechanism has."""


@dataclass(frozen=True)
class Case:
    """A chain and what was spent on it.

    Attributes:
        matrices: One for each step.
        start: The law of the first entry; None for a stationary chain.
        epsilon: ``[entry]``.
    """

    matrices: list[Floats]
    start: Floats | None
    epsilon: Floats

    @property
    def law(self) -> list[Decimal] | list[float]:
        """Where the chain begins."""
        if self.start is None:
            return oracle.at_rest(self.matrices[0].tolist())
        return [float(v) for v in self.start]

    @property
    def single(self) -> bool:
        """Whether all steps are alike."""
        return all(matrix is self.matrices[0] for matrix in self.matrices)


def row(rng: np.random.Generator, size: int) -> Floats:
    """A distribution: deterministic, with tiny or nearly full entries, or ordinary."""
    kind = rng.integers(5)
    if kind == 0:
        found = np.eye(size)[rng.integers(size)]
    elif kind == 1:  # all but one of them tiny, or 0
        found = rng.choice(TINY, size) * (rng.random(size) < 0.6)
        found[rng.integers(size)] = 1.0
    elif kind == 2:  # any order of magnitude
        found = 10.0 ** -rng.uniform(0, 150, size) * (rng.random(size) < 0.8)
        found[rng.integers(size)] = 1.0
    elif kind == 3:
        found = rng.dirichlet(np.ones(size)) + 1e-6
    else:
        found = rng.choice([0.1, 0.5, 0.9, 1.0, 1e-16], size) * (rng.random(size) < 0.7)
        found[rng.integers(size)] = 0.5
    found = found / found.sum()
    return np.where(found < LEAST, 0.0, found)


def matrix(rng: np.random.Generator, size: int) -> Floats:
    """Rows of all kinds; sometimes a cycle, an absorbing state, or rows that are nearly equal."""
    rows = np.array([row(rng, size) for _ in range(size)])
    kind = rng.integers(8)
    if kind == 0:
        rows = np.roll(np.eye(size), 1, axis=1)
        if rng.random() < 0.5:
            tiny = float(rng.choice(TINY))
            rows = (1 - tiny) * rows + tiny * np.eye(size)
    elif kind == 1:
        rows[-1] = np.eye(size)[-1]
    elif kind == 2:
        rows = np.triu(rows) + np.diag(np.where(np.triu(rows).sum(axis=1) == 0, 1.0, 0.0))
    elif kind == 3:
        rows[1] = rows[0] * (1 + 1e-15 * rng.standard_normal(size))
    rows = rows / rows.sum(axis=1, keepdims=True)
    return np.where(rows < LEAST, 0.0, rows)


def case(rng: np.random.Generator, *, long: bool = True) -> Case:
    """A chain of two to four states; most are short, few are very long."""
    size = int(rng.choice([2, 3, 3, 4]))
    length = int(rng.choice([2, 3, 4, 6, 10, 30, 120]))
    if not long:
        length = min(length, 30)
    elif rng.random() < 0.01:
        size, length = min(size, 3), int(rng.choice([700, 2_000, 10_000]))
    spent = float(rng.choice(SPENT))
    epsilon = np.full(length, spent)
    if length <= 30 and rng.random() < 0.4:
        epsilon = rng.choice(SPENT, length)
    elif spent > 3 and length > 30:
        epsilon = np.full(length, 0.1)
    if rng.random() < 0.25 and length <= 30:
        matrices = [matrix(rng, size) for _ in range(length - 1)]
        return Case(matrices, row(rng, size), epsilon)
    rows = matrix(rng, size)
    start = None if rng.random() < 0.25 else row(rng, size)
    return Case([rows] * (length - 1), start, epsilon)


def check_chain(rng: np.random.Generator, *, long: bool = True) -> str:
    """The recursion, and the public translation with its blocks, against counting mechanisms."""
    given = case(rng, long=long)
    length = len(given.epsilon)
    transition = given.matrices[0] if given.single else np.array(given.matrices)
    try:
        losses = chain_losses(
            transition if given.single else list(given.matrices), given.epsilon, start=given.start
        )
    except TakifuguError:
        return "refused"
    entries = sorted({0, length - 1, *rng.integers(0, length, 3).tolist()})
    known = {id(rows): rows.tolist() for rows in given.matrices}
    truth = oracle.counting_losses(
        [known[id(rows)] for rows in given.matrices],
        given.law,
        given.epsilon.tolist(),
        entries,
    )
    for entry in entries:
        _above(losses.at(entry), truth[entry], f"entry {entry}", given)
    if length > 200:
        return "held"
    start = "stationary" if given.start is None else given.start
    prior = MarkovChain(transition, start=start, length=length)  # type: ignore[arg-type]
    transport = transport_of(prior, Secrets())
    bound = transport.profile(given.epsilon)
    assert bound.by_entry is not None
    for entry in entries:
        least = max(max(line) for line in truth[entry])
        if not bound.by_entry[entry] >= _lower(least):
            raise Below(f"by entry {entry}: {bound.by_entry[entry]} < {least} of {given}")
    if len(set(given.epsilon.tolist())) == 1:
        least = max(max(map(max, truth[entry])) for entry in entries)
        if not transport.uniform(float(given.epsilon[0])).value >= _lower(least):
            raise Below(f"uniform < {least} of {given}")
    if given.start is None and len(set(given.epsilon.tolist())) == 1:
        if rng.random() < 0.2:
            _check_unbounded_witness(given)
        whole = unbounded_losses(transition, float(given.epsilon[0]))
        for entry in entries:
            _above(whole.upper, truth[entry], f"unbounded, entry {entry}", given)
    witness = transport.witness(given.epsilon, bound)
    if witness.binding is not None and witness.factors is not None:
        _attained(given, witness.factors, witness.entries, witness.leak, witness.binding)
    return "held"


def _check_unbounded_witness(given: Case) -> None:
    """The witness of a stationary unbounded chain, on the entries that it uses."""
    epsilon = float(given.epsilon[0])
    transport = transport_of(MarkovChain(given.matrices[0]), Secrets())
    witness = transport.witness(epsilon, transport.uniform(epsilon))
    if witness.binding is None or witness.factors is None:
        return
    first = int(witness.entries[0])
    count = len(witness.entries)
    moved = replace(witness.binding, entry=int(witness.binding.entry or 0) - first)
    window = Case(given.matrices[:1] * (count - 1), None, np.full(count, epsilon))
    _attained(window, witness.factors, tuple(range(count)), witness.leak, moved)


def check_interval(rng: np.random.Generator) -> str:
    """Members of an interval chain, a new matrix for every step, against its bound."""
    size = int(rng.choice([2, 3, 3]))
    middle = matrix(rng, size)
    if rng.random() < 0.8:  # with a zero column it is refused: nothing is known of the law there
        middle = (middle + float(rng.choice(TINY))) / (1 + size * float(rng.choice(TINY)))
    width = float(rng.choice([0.0, 1e-16, 1e-3, 0.2, 1.0]))
    low = np.clip(middle * (1 - width), 0.0, 1.0)
    high = np.clip(middle * (1 + width) + float(rng.choice([0.0, 1e-150, 1e-17, 0.1])), 0.0, 1.0)
    low = np.where(low < LEAST, 0.0, low)
    high = np.where((high > 0) & (high < LEAST), LEAST, high)
    length = int(rng.choice([2, 3, 6, 20]))
    epsilon = float(rng.choice(SPENT))
    start = "any" if rng.random() < 0.7 else "stationary"
    try:
        prior = IntervalMarkovChain(low, high, start=start, length=length)  # type: ignore[arg-type]
        with warnings.catch_warnings():
            warnings.simplefilter("error", LooserTranslation)
            transport = transport_of(prior, Secrets())
        guaranteed = transport.uniform(epsilon)
        leak = transport.witness(epsilon, guaranteed).leak
    except (TakifuguError, LooserTranslation):
        return "refused"
    if not guaranteed.value >= leak:
        raise Below(f"interval {low.tolist()} {high.tolist()} ε={epsilon}: a witness leaks {leak}")
    # a window of a chain that has run for longer than the bounds on its law look back
    before = 60 if start == "stationary" else 0
    matrices = [_member(rng, low, high) for _ in range(before + length - 1)]
    spent = [0.0] * before + [epsilon] * length
    law = row(rng, size).tolist()
    entries = [before, before + length // 2, before + length - 1]
    truth = oracle.counting_losses([m.tolist() for m in matrices], law, spent, entries)
    for entry in entries:
        least = max(max(line) for line in truth[entry])
        if not guaranteed.value >= _lower(least):
            raise Below(f"interval {low.tolist()} {high.tolist()} ε={epsilon} {start}: "
                        f"{guaranteed.value} < {least}")  # fmt: skip
    return "held"


def _member(rng: np.random.Generator, low: Floats, high: Floats) -> Floats:
    """A matrix in the boxes: room is filled up in a random order."""
    rows = low.copy()
    for x in range(len(rows)):
        left = 1 - rows[x].sum()
        for y in rng.permutation(len(rows)):
            step = min(max(left, 0.0), high[x, y] - rows[x, y])
            rows[x, y] += step
            left -= step
    return rows


def _lower(truth: float) -> float:
    return truth - 16 * 2.0**-53 * (1 + abs(truth)) if np.isfinite(truth) else -np.inf


def _above(bound: Floats, truth: oracle.Table, what: str, given: Case) -> None:
    for x, line in enumerate(truth):
        for y, value in enumerate(line):
            if x != y and not bound[x, y] >= _lower(value):
                raise Below(f"({x}, {y}): {bound[x, y]} < {value} at {what} of {given}")


def _attained(
    given: Case, factors: Floats, entries: Sequence[Name], leak: float, binding: Binding
) -> None:
    """A witness must be a mechanism, and leak what it says."""
    size, spent = factors.shape[1], given.epsilon
    whole = [[1.0] * size for _ in spent]
    for place, line in zip(map(int, entries), factors.tolist(), strict=True):
        if not (min(line) >= 1 and np.log(max(line)) <= spent[place] * (1 + 1e-12)):
            raise Below(f"a factor at {place} is not {spent[place]}-DP: {line}")
        whole[place] = line
    left, right = ([int(v) for v in side.split("|")] for side in (binding.left, binding.right))
    known = {id(rows): rows.tolist() for rows in given.matrices}
    matrices = [known[id(rows)] for rows in given.matrices]
    true = oracle.product_loss(matrices, given.law, whole, int(binding.entry or 0), left, right)
    # of two states the leak is that of factors with all their digits, not of the floats listed
    rounded = 1e-13 if size == 2 else 16 * 2.0**-53
    if not leak <= true + rounded * (1 + abs(true)):
        raise Below(f"the witness leaks {true}, not {leak}: {given}")


def check(rng: np.random.Generator, number: int, *, long: bool = True) -> str:
    """Two chains, then an interval chain, and so on."""
    return check_interval(rng) if number % 3 == 2 else check_chain(rng, long=long)


def main(count: int, first: int = 0) -> int:
    """Check ``count`` cases, print what became of them, and return how many did not hold."""
    warnings.simplefilter("error")
    seen: Counter[str] = Counter()
    for seed in range(first, first + count):
        kind = "intervals" if seed % 3 == 2 else "chains"
        try:
            became = check(np.random.default_rng(seed), seed)
        except Exception as error:  # noqa: BLE001 - a crash is counted, and shown
            became = "below" if isinstance(error, Below) else "crashed"
            sys.stdout.write(f"seed {seed}: {type(error).__name__}: {error}\n")
        seen[f"{kind} {became}"] += 1
        if (seed - first) % 500 == 499:
            sys.stdout.write(f"{seed - first + 1:,} of {count:,}: {dict(seen)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{dict(seen)}\n")
    return sum(n for became, n in seen.items() if "below" in became or "crashed" in became)


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:])) > 0)
