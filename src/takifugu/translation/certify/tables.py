r"""Sums over all datasets with their rounding, costs as matrices, and what witnesses leak.

*Sums* run along a junction tree (Shafer & Shenoy 1990): the message from clique c to its neighbour
d is the product of the tables on c's side of their separator, summed over everything else on that
side. Nothing is ever subtracted or divided, so every cell keeps a small relative error:
``roundings`` counts it in units of 2⁻⁵³. Tables are rescaled by powers of two, which is exact; only
ratios within one table mean anything. A cell is 0 if and only if its state is impossible: a product
that could underflow is refused instead.

*Witnesses.* For a fixed output :math:`g(D) = \prod_j g_j(x_j)` with
:math:`g_j(u) \le e^{c_j(u,v)} g_j(v)` is what some mechanism with these costs may have as
likelihoods. Whatever was proposed is made admissible first: if g exceeds its bounds by a factor of
at most e^δ, :math:`\min_v g(v) e^{c(u,v)}` does not, and lies between g e^{−δ} and g, so that what
is shown falls by δ at most. A cost that is 0 in one direction is 0 in the other as well, since the
probabilities of all outputs add up to 1. Matrices of costs are rounded up, by less than a relative
`ROUNDED_UP`, and a mechanism must not have more than the true cost.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import fsum, inf

import numpy as np

from takifugu._core.numeric import Booleans, Floats
from takifugu._core.rounding import down, gamma, log_ratio_up
from takifugu.errors import InvalidPrior, TooLarge
from takifugu.priors.networks import Factor
from takifugu.translation.models.tree import JunctionTree

LEAST_EXPONENT = -960  # binary exponent below which a product could underflow
ROUNDED_UP = 1e-12  # relative: how far the matrix of a cost is above the cost at most
MAX_LOG_FACTOR = 600.0  # a logarithm of a factor beyond it is not exponentiated


def attainable_cost(cost: Floats) -> Floats:
    """At most ``cost``, for a mechanism that is to exist: 0 where the other direction costs 0.

    If all outputs are at most as likely for u as for v, they are equally likely, since the
    probabilities add up to 1. Closed under detours.
    """
    if not ((cost == 0) != (cost == 0).T).any():
        return cost
    return _closed(np.where((cost == 0).T, 0.0, cost))


def _closed(cost: Floats) -> Floats:
    least = np.array(cost)
    for w in range(len(least)):
        least = np.minimum(least, least[:, w : w + 1] + least[w : w + 1, :])
    return least


@dataclass(frozen=True, eq=False)
class Weights:
    """A table over ``scope``, one axis for each entry, known up to one common factor."""

    scope: tuple[int, ...]
    table: Floats
    roundings: int
    least: int  # a binary exponent below every positive cell

    @classmethod
    def scaled(cls, scope: tuple[int, ...], table: Floats, roundings: int) -> "Weights":
        """Rescale ``table`` so that its largest cell is between ½ and 1."""
        top = int(np.frexp(table.max())[1])
        cells = np.ldexp(table, -top)
        if table.size and not cells.any():
            raise InvalidPrior(
                "factors",
                given="allow no dataset at all",
                needed="leave at least one possible",
                reason="impossible",
            )
        positive = cells if cells.all() else cells[cells > 0]
        return cls(scope, cells, roundings, int(np.frexp(positive.min())[1]) - 1)

    def onto(self, scope: Sequence[int]) -> "Weights":
        """The sums over all entries but ``scope``, with axes in the order of ``scope``."""
        rest = tuple(v for v in self.scope if v in scope)
        gone = tuple(axis for axis, v in enumerate(self.scope) if v not in scope)
        sums = self.table.sum(axis=gone)
        terms = self.table.size // max(sums.size, 1)
        return Weights.scaled(
            tuple(scope), np.transpose(sums, [rest.index(v) for v in scope]), self.roundings + terms
        )


def product(scope: Sequence[int], sizes: Sequence[int], parts: Sequence[Weights]) -> Weights:
    """The product of tables over parts of ``scope``."""
    axis_of = {v: axis for axis, v in enumerate(scope)}
    table = np.ones(tuple(sizes[v] for v in scope))
    least, roundings = 0, 0
    for part in parts:
        least, roundings = least + part.least, roundings + part.roundings + 1
        if least < LEAST_EXPONENT:
            raise TooLarge(
                "the weights of this model span more than float64 can hold",
                field="factors",
                reason="range",
            )
        order = np.argsort([axis_of[v] for v in part.scope])
        axes = [1] * len(axis_of)
        for v in part.scope:
            axes[axis_of[v]] = sizes[v]
        table *= np.transpose(part.table, order).reshape(axes)
    return Weights.scaled(tuple(scope), table, roundings)


class PartitionSums:
    """A product of tables on a junction tree, with all messages in both directions.

    ``extra`` holds further weights on single entries (tilts, evidence), each with up to four
    roundings of its own; a table may have ``roundings`` as well.
    """

    def __init__(
        self,
        tree: JunctionTree,
        factors: Sequence[Factor],
        extra: Mapping[int, Floats] | None = None,
        *,
        roundings: int = 0,
    ) -> None:
        self.tree = tree
        own: list[list[Weights]] = [[] for _ in tree.cliques]
        given = [(factor.scope, factor.table, roundings) for factor in factors]
        given += [((entry,), table, 4) for entry, table in (extra or {}).items()]
        for scope, table, off in given:
            own[tree.clique_with(scope)].append(Weights.scaled(scope, table, off))
        self._own = [
            product(scope, tree.sizes, parts)
            for scope, parts in zip(tree.cliques, own, strict=True)
        ]
        self._sent: dict[tuple[int, int], Weights] = {}
        count = len(tree.cliques)
        for c in range(count - 1, 0, -1):
            self._send(c, tree.parents[c])
        for c in range(1, count):
            self._send(tree.parents[c], c)

    def _send(self, clique: int, to: int) -> None:
        self._sent[clique, to] = self.clique(clique, but=to).onto(self.tree.separator(clique, to))

    def sent(self, clique: int, to: int) -> Weights:
        """The message from a clique to its neighbour: weights of the separator's states."""
        return self._sent[clique, to]

    def clique(self, clique: int, *, but: int = -1) -> Weights:
        """Weights of a clique's states, from all of the model, or without neighbour ``but``'s side.

        Without that side the ratios are still those of the law given the separator's state.
        """
        near = [self._sent[c, clique] for c in self.tree.around(clique) if c != but]
        if not near:
            return self._own[clique]
        return product(self.tree.cliques[clique], self.tree.sizes, [self._own[clique], *near])

    def entry(self, entry: int) -> Weights:
        """Weights of the values of one entry."""
        return self.clique(self.tree.holding(entry)[0]).onto((entry,))


def joint_laws(
    tree: JunctionTree, factors: Sequence[Factor], read: tuple[int, ...]
) -> dict[int, Weights]:
    """For each entry the weights of the states of ``read`` and of its values, where one has others.

    Some clique holds ``read``. Left out are entries whose weights lie too far apart. `product`
    counts a rounding for its first table, which is multiplied by 1: none is counted here, as the
    weights become the only table of a problem.
    """
    law = PartitionSums(tree, factors).clique(tree.clique_with(read)).onto(read)
    given = {
        v: np.zeros((*law.table.shape, size)) for v, size in enumerate(tree.sizes) if v not in read
    }
    roundings = dict.fromkeys(given, 0)
    for state in zip(*np.nonzero(law.table), strict=True):
        seen = {v: np.eye(tree.sizes[v])[value] for v, value in zip(read, state, strict=True)}
        sums = PartitionSums(tree, factors, seen)
        for v, table in given.items():
            weights = sums.entry(v)
            table[state] = weights.table / weights.table.sum()
            roundings[v] = max(roundings[v], weights.roundings + tree.sizes[v] + 4)
    law = replace(law, roundings=law.roundings - 1)
    laws = dict.fromkeys(read, law)
    for v, table in given.items():
        with suppress(TooLarge):
            other = Weights.scaled((*read, v), table, roundings[v])
            joint = product(other.scope, tree.sizes, [law, other])
            laws[v] = replace(joint, roundings=joint.roundings - 1)
    return laws


def refuse_impossible(weights: Floats, *sides: Booleans) -> None:
    """Refuse a pair of sets of values of which one cannot happen."""
    if not all(weights[side].any() for side in sides):
        raise InvalidPrior(
            "pair",
            given="has a side that cannot happen",
            needed="be possible on both sides",
            reason="impossible",
        )


def excess(log_factor: Floats, cost: Floats) -> float:
    """δ: how far a factor of one entry exceeds what its cost allows, rounded up; ∞ if it is NaN.

    ``cost`` is attainable (`attainable_cost`) and closed.
    """
    allowed = cost * (1 - ROUNDED_UP)
    over = log_factor[:, None] - log_factor[None, :] - allowed
    size = float(np.abs(log_factor).max(initial=0.0))
    return float(max(over.max(initial=0.0), 0.0) + 2e-15 * size) if size < inf else inf


def _log_odds(weights: Weights, log_own: Floats, left: Booleans, right: Booleans) -> float:
    """A lower bound on the log odds of the left side, the entry's own factor included.

    The logarithms of that factor are at most `MAX_LOG_FACTOR` in size.
    """
    totals, tops, error = [], [], gamma(weights.roundings + len(left))
    for side in (left & (weights.table > 0), right & (weights.table > 0)):
        own = log_own[side]
        tops.append(float(own.max()))
        totals.append(float((weights.table[side] * np.exp(own - tops[-1])).sum()))
        if own.min() < tops[-1]:
            error = gamma(weights.roundings + len(left) + 8) + 1e-15 * float(np.abs(own).max())
    top = tops[0] - tops[1]
    return top * (1 - 4e-16 * float(np.sign(top))) - float(
        log_ratio_up(totals[1], totals[0], error=error)
    )


def product_lower(
    tree: JunctionTree | None,
    factors: Sequence[Factor],
    costs: Sequence[Floats],
    secret: tuple[int, Booleans, Booleans],
    log_factors: Sequence[Floats],
) -> float:
    """What a product of ``log_factors`` leaks about ``secret``, rounded down; 0 if it is no proof.

    ``secret`` is an entry and two sets of its values. Without a ``tree`` only the entry's own
    factor can show something.
    """
    entry, left, right = secret
    if [np.shape(log) for log in log_factors] != [(len(cost),) for cost in costs]:
        return 0.0
    logs = [np.asarray(log, dtype=np.float64) for log in log_factors]
    if any(not (np.isfinite(log).all() and np.ptp(log) <= MAX_LOG_FACTOR) for log in logs):
        return 0.0
    # a factor may have any level: logarithms far from 0 would lose digits
    logs = [log if np.abs(log).max() <= MAX_LOG_FACTOR else log - log.max() for log in logs]
    varying = [j for j, log in enumerate(logs) if log.max() > log.min()]
    over = fsum(excess(logs[j], _closed(attainable_cost(costs[j]))) for j in varying)
    own = logs[entry]
    shown = float(own[left].min() - own[right].max())
    extra = {j: np.exp(logs[j] - logs[j].max()) for j in varying if j != entry}
    if tree is not None and (extra or len(varying)):
        try:
            before = PartitionSums(tree, factors).entry(entry)
            after = PartitionSums(tree, factors, extra).entry(entry) if extra else before
        except TooLarge:  # beyond floats: the entry's own factor shows something without sums
            return 0.0 if extra else max(float(down(shown - over * (1 + 1e-15))), 0.0)
        refuse_impossible(before.table, left, right)
        odds = _log_odds(after, own, left, right)
        odds += _log_odds(before, np.zeros(len(own)), right, left)
        shown = odds if extra else max(shown, odds)
    elif extra:
        return 0.0
    return max(float(down(shown - over * (1 + 1e-15))), 0.0)


def table_lower(
    laws: tuple[Floats, Floats], costs: Sequence[Floats], log_table: Floats, roundings: int
) -> float:
    """What a table of likelihoods leaks, rounded down; 0 if it is no proof.

    ``laws`` has the weights of all datasets on either side, ``[value, value, …]``, each the sum of
    up to ``roundings`` numbers. The table is made admissible first: the least over all ways to
    change each entry.
    """
    shape = tuple(map(len, costs))
    table = np.asarray(log_table, dtype=np.float64)
    if table.shape != shape or not (np.abs(table) < MAX_LOG_FACTOR).all():
        return 0.0
    if any(law.min(where=law > 0, initial=1.0) < 2.0**LEAST_EXPONENT for law in laws):
        return 0.0  # a product could underflow
    if not all(law.any() for law in laws):
        return 0.0  # a side that cannot happen
    closed = [_closed(attainable_cost(cost)) for cost in costs]
    total = fsum(float(cost.max(initial=0.0)) for cost in closed)
    table = table - table.max()  # its level counts for nothing, but costs digits
    size = max(total, -float(table.min()))
    for axis, cost in enumerate(closed):
        table = np.moveaxis(table, axis, 0)
        rows = -1, *[1] * (table.ndim - 1)
        ways = [(table + row.reshape(rows)).min(axis=0) for row in cost]
        table = np.moveaxis(np.stack(ways), 0, axis)
    tops, totals = [], []
    for law in laws:  # each has a top of its own: what is lost beside that is negligible
        tops.append(float(table[law > 0].max()))
        totals.append(float((law * np.exp(np.minimum(table - tops[-1], 0.0))).sum()))
    error = gamma(table.size + roundings + 16)
    leak = tops[0] - tops[1] - float(log_ratio_up(totals[1], totals[0], error=error))
    leak -= float(log_ratio_up(laws[0].sum(), laws[1].sum(), error=error))
    return max(float(down(leak - 2 * ROUNDED_UP * total - 1e-14 * (1 + size))), 0.0)
