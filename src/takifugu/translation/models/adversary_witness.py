r"""Lower bounds against adversaries who know more: a law of the first entry, or known entries.

A law of the first entry makes a chain of its own, and so do known entries: given X_r = b the chain
moves by :math:`P(u,v)h_{t+1}(v)/h_t(u)`, where :math:`h_t(u)` is the probability of b at r given u
at t (Doob's transform). The witnesses of those chains are witnesses here: mechanisms which leak as
much to that adversary. Some candidates are tried, and the best is kept:

* a start on two states, of those that tell the worst pair apart best, at the odds at which each
  side of the pair is as far from certain as the other;
* the stationary start, if there is one;
* the nearest entries known on both sides at the same few distances, with the values that tell the
  pair apart best or least.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from takifugu._core.numeric import Booleans, Floats
from takifugu.costs.cost import NOTHING
from takifugu.errors import InvalidPrior, TooLarge, UnsoundRequest
from takifugu.priors.markov import MarkovChain, stationary_law
from takifugu.priors.secrets import Secrets
from takifugu.translation.bounds import Bound, TransportBound, Witness
from takifugu.translation.certify.laws import conditioned_slack
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.models.chain_transport import ChainTransport
from takifugu.translation.models.two_state_transport import BinaryTransport

REACH = 60  # entries on each side of the secret one that a witness uses, at most
EDGES = 4  # starts on two states
DISTANCES = (2, 3, 4, 6, 8, 12, 20)  # of known entries
TINY = 1e-100  # a chain with a smaller probability is not tried
Charged = float | Floats | EntryCosts


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A chain that some adversary holds: the entries from ``first`` on, and what is known.

    The secret is about the entry ``centre``.
    """

    chain: MarkovChain
    first: int
    centre: int
    known: tuple[int, ...]
    words: str


def strongest_witness(
    chain: MarkovChain,
    secrets: Secrets,
    charged: Charged,
    bound: Bound,
    *,
    start: tuple[int, Floats] | None = None,
) -> Witness:
    """The mechanism that leaks most to any of the adversaries that are tried.

    ``start`` is an entry, and a law of the first one which is likely to help there.
    """
    centre = _centre(chain, secrets, bound)
    best, begun = Witness(0.0, bound.binding), None
    for candidate in _plain(chain, centre, bound, start):
        found = _witness(candidate, secrets, charged, bound)
        if found is not None and found.leak > best.leak:
            best, begun = found, candidate
    if chain.known == "any" and begun is not None:
        for candidate in _bridged(chain, begun, _pair(chain, bound)):
            found = _witness(candidate, secrets, charged, bound)
            if found is not None and found.leak > best.leak:
                best = found
    return best


def _witness(
    candidate: _Candidate, secrets: Secrets, charged: Charged, bound: Bound
) -> Witness | None:
    part = candidate.chain
    length, first = part.length or 1, candidate.first
    centre = candidate.centre - first
    binding = None if bound.binding is None else replace(bound.binding, entry=centre)
    near = Bound(bound.value, binding, by_values=bound.by_values)
    try:
        inside = Secrets(entries=(centre,), pairs=secrets.pairs)
        transport: TransportBound = (
            BinaryTransport(part, inside) if len(part.states) == 2 else ChainTransport(part, inside)
        )
        if isinstance(charged, EntryCosts):
            costs = [charged.at(first + k) for k in range(length)]
            if any(len(listed) > 1 for listed in costs):
                return None
            known = {entry - first for entry in candidate.known}
            own = [NOTHING if k in known else costs[k][0] for k in range(length)]
            found = transport.valued_witness(EntryCosts(by_entry=tuple(own)), near)
        else:
            spent = np.zeros(length)
            spent[:] = charged if np.ndim(charged) == 0 else _cut(charged, first, length)
            spent[[entry - first for entry in candidate.known]] = 0.0
            found = transport.witness(spent, near)
    except (InvalidPrior, TooLarge, UnsoundRequest):
        return None
    rounding = conditioned_slack(len(part.states), length)
    moved = None if found.binding is None else replace(found.binding, entry=centre + first)
    return replace(
        found,
        leak=max(found.leak - rounding, 0.0),
        binding=moved,
        entries=tuple(int(entry) + first for entry in found.entries),
        against=candidate.words,
    )


def _cut(charged: float | Floats, first: int, length: int) -> Floats:
    """The losses of the entries from ``first`` on; those that are not listed lost nothing."""
    listed = np.zeros(length)
    given = np.asarray(charged, dtype=np.float64)[first : first + length]
    listed[: len(given)] = given
    return listed


def _centre(chain: MarkovChain, secrets: Secrets, bound: Bound) -> int:
    entry = None if bound.binding is None else bound.binding.entry
    if isinstance(entry, int):
        return entry
    if secrets.entries:
        return int(secrets.entries[len(secrets.entries) // 2])
    return REACH if chain.length is None else chain.length // 2


def _plain(
    chain: MarkovChain, centre: int, bound: Bound, start: tuple[int, Floats] | None
) -> Iterator[_Candidate]:
    """Chains of which no entry is known."""
    if start is not None:
        centre, law = start
        window = _window(chain, 0, _end(chain, centre), law)
        if window is not None and centre <= REACH:
            yield _Candidate(window, 0, centre, (), _in_words(chain, 0, law))
        centre = _centre(chain, Secrets(), bound) if bound.binding is None else centre
    for law, first, words in _starts(chain, centre, _pair(chain, bound)):
        window = _window(chain, first, _end(chain, centre), law)
        if window is not None:
            yield _Candidate(window, first, centre, (), words)


def _end(chain: MarkovChain, centre: int) -> int:
    return centre + REACH if chain.length is None else min(chain.length - 1, centre + REACH)


def _in_words(chain: MarkovChain, first: int, law: Floats) -> str:
    parts = [f"{chain.states[v]} with probability {law[v]:.3g}" for v in np.flatnonzero(law)]
    if len(parts) == 1:
        return f"entry {first} is {chain.states[int(np.argmax(law))]}"
    return f"entry {first} is {' or '.join(parts)}"


def _bridged(chain: MarkovChain, plain: _Candidate, pair: tuple[int, int]) -> Iterator[_Candidate]:
    """The same chain with an entry known on one side, or on both."""
    centre = plain.centre
    for distance in DISTANCES:
        for left, right in ((True, True), (False, True), (True, False)):
            lo, hi = centre - distance if left else None, centre + distance if right else None
            yield from _bridges(chain, plain, pair, lo, hi)


def _pair(chain: MarkovChain, bound: Bound) -> tuple[int, int]:
    """Two values of the pair that binds."""
    size = len(chain.states)
    if bound.by_values is None or not np.isfinite(bound.by_values).any():
        return 0, size - 1
    table = np.where(np.isfinite(bound.by_values), bound.by_values, -np.inf)
    x, y = np.unravel_index(int(np.argmax(table)), table.shape)
    return int(x), int(y)


def _kernels(chain: MarkovChain, first: int, end: int) -> list[Floats]:
    return [chain.kernel(time) for time in range(first, end)]


def _starts(
    chain: MarkovChain, centre: int, pair: tuple[int, int]
) -> Iterator[tuple[Floats, int, str]]:
    """Laws of a first entry that an adversary may hold, where it is, and what that is in words."""
    first = max(0, centre - REACH)
    if not chain.unknown_start:
        law = np.asarray(chain.start_law)
        for time in range(first if not chain.stationary_start else 0):
            law = law @ chain.kernel(time)
        yield law, first, ""
        return
    if chain.homogeneous:
        with suppress(InvalidPrior):
            yield stationary_law(chain.kernel(), entry_error=chain.row_error)[0], first, ""
    steps = _kernels(chain, first, centre) if first == 0 else [chain.kernel()] * (centre - first)
    product = np.eye(len(chain.states))
    for kernel in steps:
        product = product @ kernel
    x, y = pair
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(product[:, x]), np.log(product[:, y])
        apart = logs[0] - logs[1]
    apart = np.where(np.isnan(apart), 0.0, apart)
    finite = [np.maximum(log, -1000.0) for log in logs]  # a start that never leads there
    gaps = np.abs(np.clip(apart, -50, 50)[:, None] - np.clip(apart, -50, 50)[None])
    order = np.argsort(-np.triu(gaps, 1), axis=None, kind="stable")[:EDGES]
    for a, b in zip(*np.unravel_index(order, gaps.shape), strict=True):
        if not gaps[a, b] > 0 or a == b:
            continue
        middle = sum(np.clip(log[a] - log[b], -40, 40) for log in finite) / 2
        for shift in (0.0, -1.0, 1.0):
            share = 1 / (1 + np.exp(middle + shift))  # of a
            law = np.zeros(len(chain.states))
            law[a], law[b] = share, 1 - share
            yield law, first, _in_words(chain, first, law)


def _window(chain: MarkovChain, first: int, end: int, law: Floats) -> MarkovChain | None:
    """The entries from ``first`` to ``end``, as a chain that starts with ``law``."""
    if ((law > 0) & (law < TINY)).any():
        return None
    if first == end:
        alone = law / law.sum()
        return replace(chain, transition=chain.kernel(), start=alone, length=1, known="none")
    table = np.stack(_kernels(chain, first, end))
    start = law / law.sum()
    return replace(chain, transition=table, start=start, length=None, known="none")


def _bridges(
    chain: MarkovChain,
    base: _Candidate,
    pair: tuple[int, int],
    lo: int | None,
    hi: int | None,
) -> Iterator[_Candidate]:
    """Chains of which one entry is known on each side, or on one."""
    plain, first, centre, words = base.chain, base.first, base.centre, base.words
    last = first + (plain.length or 1) - 1
    if (lo is not None and lo < first) or (hi is not None and hi > last):
        return
    x, y = pair
    lefts: Sequence[int | None] = [None]
    rights: Sequence[int | None] = [None]
    if lo is not None:
        there = np.where(_possible(plain, lo - first)[:, None], _product(chain, lo, centre), 0.0)
        lefts = _telling(there[:, x], there[:, y])
    if hi is not None:
        there = _product(chain, centre, hi)
        rights = _telling(there[x], there[y])
    for a in lefts:
        for b in rights:
            law = np.asarray(plain.start_law)
            begin = first
            parts = []
            if a is not None and lo is not None:
                law, begin = np.eye(len(law))[a], lo
                parts.append(f"entry {lo} is {chain.states[a]}")
            elif words:
                parts.append(words)
            kernels = _kernels(chain, begin, last if hi is None else hi)
            if b is not None and hi is not None:
                parts.append(f"entry {hi} is {chain.states[b]}")
                law, kernels = _given_end(law, kernels, b)
            if not kernels or any(((k > 0) & (k < TINY)).any() for k in (law, *kernels)):
                continue
            known = tuple(e for e, v in ((lo, a), (hi, b)) if e is not None and v is not None)
            table = np.stack(kernels)
            bridge = replace(chain, transition=table, start=law, length=None, known="none")
            yield _Candidate(bridge, begin, centre, known, " and ".join(parts))


def _possible(chain: MarkovChain, entry: int) -> Booleans:
    """``[state]``: whether the chain can be there: nobody knows what never happens."""
    found: Booleans = np.asarray(chain.start_law) > 0
    for time in range(entry):
        found = np.asarray((chain.kernel(time) > 0)[found].any(axis=0))
    return found


def _product(chain: MarkovChain, first: int, end: int) -> Floats:
    product = np.eye(len(chain.states))
    for kernel in _kernels(chain, first, end):
        product = product @ kernel
    return product


def _telling(one: Floats, other: Floats) -> list[int]:
    """The values that speak most for the one, for the other, and for neither."""
    able = np.flatnonzero((one > 0) & (other > 0))
    if not len(able):
        return []
    ratio = np.log(one[able] / other[able])
    picks = [int(np.argmax(ratio)), int(np.argmin(ratio)), int(np.argmin(np.abs(ratio)))]
    return [int(able[k]) for k in dict.fromkeys(picks)]


def _given_end(law: Floats, kernels: Sequence[Floats], value: int) -> tuple[Floats, list[Floats]]:
    """The law and the kernels given that the chain ends in ``value``."""
    weight = np.eye(len(law))[value]
    found = []
    for kernel in reversed(kernels):
        joint = kernel * weight
        total = joint.sum(axis=1)
        rows = np.where(
            total[:, None] > 0, joint / np.where(total > 0, total, 1.0)[:, None], kernel
        )
        found.append(rows)
        weight = total / max(float(total.max()), np.finfo(np.float64).tiny)
    start = law * weight
    return start / max(float(start.sum()), np.finfo(np.float64).tiny), found[::-1]
