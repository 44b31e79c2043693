r"""Changes of a prior or of its secrets that make releases cheaper, each one translated.

There are too many changes to translate all of them: 78 states can be merged in 3,003 ways. So they
are ranked first. To first order in the loss of each entry, what a pair x, y loses is proportional
to

.. math:: S_{xy} = 1 + \sum_{k \ge 1} \mathrm{TV}(P^k_{x\cdot}, P^k_{y\cdot})
               + \mathrm{TV}(\hat P^k_{x\cdot}, \hat P^k_{y\cdot}),

how much of every later and earlier entry depends on which of both it is (:math:`\hat P` is the
reversed chain). If two states count as one, a row of it is a mixture of theirs, and total variation
is convex. What is reported is never the ranking but the translation of the changed prior.

No change leaves rows out: that a row is left out would be protected by no prior without a state for
it, and a chain of what remains says nothing about that.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from time import process_time
from typing import Any, Literal

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.errors import TakifuguError
from takifugu.priors.fitting import ChainSteps, secrets_merged
from takifugu.priors.labels import are_ranges
from takifugu.priors.prior import Prior, SequencePrior, state_text
from takifugu.priors.secrets import Secrets
from takifugu.translation.bounds import Binding
from takifugu.translation.translation import Translation
from takifugu.visible import four_digits, visible

MIN_FACTOR = 1.1  # times what is allowed now: less is not worth a change
DEFAULT_LENGTHS = (100, 10)  # of sequences that are tried where nothing is known of them
MAX_LISTED_STATES = 48  # beyond which few changes are tried
RANKING_DOUBLINGS = 14  # powers of two steps that the ranking looks ahead
MAX_LENGTH_SECONDS = 2.0  # seconds that the translation of a bounded sequence may take, about

Kind = Literal["merge", "pairs", "length"]


@dataclass(frozen=True)
class Remedy:
    """A change, and what it allows.

    Attributes:
        kind: ``merge`` two states, protect fewer ``pairs``, or bound the ``length``.
        change: What to change, in words.
        states: The states that it is about.
        allowed: What each entry may lose then at the same Pufferfish loss, rounded down.
        factor: How many times that is of what it may lose now; infinite if that is nothing.
        length: The largest number of entries, of a change of ``length``.
    """

    kind: Kind
    change: str
    states: tuple[str, ...]
    allowed: float
    factor: float
    length: int | None = None

    @property
    def words(self) -> str:
        """What to change, and what it gains."""
        times = f" ({times_words(self.factor)})" if self.factor < np.inf else ""
        return f"{self.change}: {four_digits(self.allowed, 'down')}{times}"

    def document(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        return {
            "kind": self.kind,
            "change": self.change,
            "states": list(self.states),
            "length": self.length,
            "allowed": self.allowed,
            "factor": None if self.factor == np.inf else self.factor,
        }


def times_words(factor: float) -> str:
    """How many times more, rounded down.

    >>> times_words(139.7), times_words(5.31), times_words(1.28)
    ('139 times as much', '5.3 times as much', '1.2 times as much')
    """
    value = np.floor(factor) if factor >= 10 else np.floor(factor * 10) / 10
    return f"{value:,.0f} times as much" if factor >= 10 else f"{value:g} times as much"


@dataclass(frozen=True, eq=False)
class _Change:
    """A change that may be tried: how to translate it."""

    kind: Kind
    words: str
    states: tuple[str, ...]
    make: Callable[[], Translation | None]
    length: int | None = None
    quick: bool = True  # else by group DP alone, which is a lower bound on what is allowed


def remedies_of(
    translation: Translation,
    epsilon: float,
    allowed: float,
    *,
    steps: ChainSteps | None,
    sticky: Sequence[str],
    pair: Binding | None,
    lengths: Sequence[int],
    seconds: float,
    progress: Callable[[str], None],
) -> tuple[tuple[Remedy, ...], int, int]:
    """What allows more than ``allowed``, the most first; how many changes were tried, and not.

    ``lengths``, if any, are those of the table, so that all sequences fit: these come first.
    """
    changes = list(_changes(translation, steps, sticky, pair, lengths))
    remedies, tried, deadline = list[Remedy](), 0, process_time() + seconds
    for change in changes:
        if tried and process_time() > deadline:
            break
        progress(f"{change.words} ({tried + 1} of {len(changes)})")
        tried += 1
        more = _allowed(change, epsilon)
        if more is None or not allowed < more < np.inf or more < MIN_FACTOR * allowed:
            continue
        factor = more / allowed if allowed else np.inf
        remedies.append(
            Remedy(change.kind, change.words, change.states, more, factor, change.length)
        )
    first = "length" if lengths else None  # of the table: nothing is given up for it
    remedies.sort(key=lambda remedy: (remedy.kind != first, -remedy.allowed, remedy.change))
    return tuple(remedies), tried, len(changes) - tried


def _allowed(change: _Change, epsilon: float) -> float | None:
    """What a changed prior allows; None if it cannot be, or nothing can be proven of it."""
    try:
        changed = change.make()
        if changed is None:
            return None
        return float(changed.to_dp(epsilon, "best" if change.quick else "group"))
    except TakifuguError:  # such as a chain of one state, or without a stationary law
        return None


def _changes(
    translation: Translation,
    steps: ChainSteps | None,
    sticky: Sequence[str],
    pair: Binding | None,
    lengths: Sequence[int],
) -> Iterator[_Change]:
    """What to try, what is likely to gain most first, of each kind."""
    (prior,) = translation.priors.values()
    merges = list[_Change]()
    if steps is not None and len(steps.flow) > 2 and steps.weighed:
        merges = list(_merges(translation, steps, expense(steps)))[: max_merges(len(steps.flow))]
    pairs = list(_pairs(translation, prior, sticky, pair))
    bounds = list(_lengths(translation, prior, lengths))
    kinds = [bounds, pairs, merges]
    for rank in range(max(map(len, kinds))):  # the best of each kind first
        for changes in kinds:
            yield from changes[rank : rank + 1]


def max_merges(states: int) -> int:
    """How many pairs of states to merge: a translation is cubic in the states."""
    if states <= 12:
        return 8
    return 3 if states <= MAX_LISTED_STATES else 1


def expense(steps: ChainSteps) -> Floats:
    """``[x, y]``: how much of all other entries depends on which of two states one has, about."""
    chain, tiny = steps.chain, np.finfo(np.float64).tiny
    kernel = chain.kernel()
    law = np.maximum(chain.stationary, tiny) if steps.weighed else np.ones(len(kernel))
    back = kernel.T * law[None, :] / law[:, None]  # [y, x]: x came before y
    back = back / np.maximum(back.sum(axis=1, keepdims=True), tiny)
    most = np.inf if chain.length is None else max(chain.length / 2, 1)
    total = np.ones((len(kernel), len(kernel)))
    for table in (kernel, back):
        power, reach = table, 1.0
        for _ in range(RANKING_DOUBLINGS):
            if reach > most:
                break
            apart = np.abs(power[:, None, :] - power[None, :, :]).sum(axis=-1) / 2
            total += min(reach, most - reach + 1) * apart
            power, reach = power @ power, 2 * reach
    np.fill_diagonal(total, 0.0)
    return total


def _merges(translation: Translation, steps: ChainSteps, weight: Floats) -> Iterator[_Change]:
    """Pairs of states that count as one, the most promising first."""
    names, size = [state_text(state) for state in steps.chain.states], len(steps.flow)
    mass = np.maximum(steps.weights, np.finfo(np.float64).tiny)
    order = []
    ranges = are_ranges(steps.chain.states)  # only neighbours are one range together
    for a, b in combinations(range(size), 2):
        if ranges and b != a + 1:
            continue
        rest = [k for k in range(size) if k not in (a, b)]
        mixed = (mass[a] * weight[a, rest] + mass[b] * weight[b, rest]) / (mass[a] + mass[b])
        order.append((float(mixed.max(initial=0.0)), a, b))
    top = _largest_without(weight)
    ranked = sorted((max(mixed, top[a, b]), names[a], names[b], a, b) for mixed, a, b in order)
    for *_, a, b in ranked:
        common, rare = (a, b) if mass[a] >= mass[b] else (b, a)

        def make(common: int = common, rare: int = rare) -> Translation | None:
            states = steps.chain.states
            secrets = secrets_merged(translation.secrets, states[common], states[rare])
            merged = None if secrets is None else steps.merged(common, rare)
            if merged is None or secrets is None:
                return None
            return _changed(translation, merged, secrets)

        both = (names[common], names[rare])
        yield _Change("merge", f"count {quoted(both[0])} and {quoted(both[1])} as one", both, make)


def _largest_without(weight: Floats) -> Floats:
    """``[a, b]``: the largest expense of a pair that has neither a nor b in it."""
    size = len(weight)
    best = np.zeros((size, size))
    order = np.argsort(-weight, axis=None, kind="stable")
    pairs = [(int(k) // size, int(k) % size) for k in order]
    for a in range(size):
        for b in range(a + 1, size):
            free = next((p for p in pairs if not {a, b} & {*p}), None)
            best[a, b] = best[b, a] = 0.0 if free is None else weight[free]
    return best


def _pairs(
    translation: Translation, prior: Prior, sticky: Sequence[str], pair: Binding | None
) -> Iterator[_Change]:
    """Secrets without the expensive pair, and without all pairs of a state that is hardly left."""
    if (
        pair is None
        or not isinstance(prior, SequencePrior)
        or len(prior.states) > MAX_LISTED_STATES
    ):
        return  # thousands of pairs, each of them listed, take long
    secrets, states = translation.secrets, prior.states
    listed = secrets.pairs or tuple(((x,), (y,)) for x, y in combinations(states, 2))
    sides = [tuple("|".join(map(state_text, side)) for side in both) for both in listed]
    expensive = {pair.left, pair.right}
    cheaper = tuple(
        both for both, names in zip(listed, sides, strict=True) if {*names} != expensive
    )
    fewer: list[tuple[Any, tuple[str, ...]]] = [(cheaper, (pair.left, pair.right))]
    for name in [name for name in sticky if name in (pair.left, pair.right)][:1]:
        others = tuple(
            both
            for both in listed
            if not any(state_text(value) == name for side in both for value in side)
        )
        fewer.insert(0, (others, (name,)))
    for pairs, names in fewer:
        if not pairs or len(pairs) == len(listed):
            continue
        words = (
            f"do not protect whether a row is {quoted(names[0])}"
            if len(names) == 1
            else f"do not protect {quoted(names[0])} against {quoted(names[1])}"
        )

        def make(pairs: Any = pairs) -> Translation:
            return _changed(translation, prior, replace(secrets, pairs=pairs))

        yield _Change("pairs", words, names, make)


def _lengths(translation: Translation, prior: Prior, lengths: Sequence[int]) -> Iterator[_Change]:
    """Shorter sequences; by group DP alone where their translation takes long."""
    own = getattr(prior, "length", 0)
    every_entry = isinstance(prior, SequencePrior) and translation.secrets.entries is None
    if not every_entry or own == 0 or getattr(prior, "transition", np.zeros((1, 1))).ndim != 2:
        return
    size = len(getattr(prior, "states", ()))
    last = "the longest here" if lengths else "if none is longer"
    for length in dict.fromkeys(lengths or DEFAULT_LENGTHS):
        if length < 1 or (own is not None and length >= own):
            continue
        quick = length * (2.7e-6 * size**3 + 3e-3) < MAX_LENGTH_SECONDS

        def make(length: int = length) -> Translation:
            return _changed(translation, replace(prior, length=length), translation.secrets)  # type: ignore[call-arg]

        rows = "one row" if length == 1 else f"at most {length:,} rows"
        words = f"sequences of {rows} each, {last} (--length {length})"
        yield _Change("length", words, (), make, length, quick)


def _changed(translation: Translation, prior: Prior, secrets: Secrets) -> Translation:
    return replace(translation, prior=prior, secrets=secrets)


def quoted(name: object) -> str:
    """A name as messages show it."""
    return visible(repr(str(name)))
