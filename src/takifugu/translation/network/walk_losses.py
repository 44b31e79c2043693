r"""Bounds for pairwise fields of any size, signs and numbers of values: non-backtracking walks.

Let the law be a product of positive tables on entries and pairs of entries, Δ_ij the largest log
cross-ratio of the table of i and j (4|J| for Ising), c_j the largest cost of entry j, and

.. math:: β(Δ, α) = 4\,\mathrm{artanh}\big(\tanh(Δ/4) \tanh(α/4)\big).

Then the loss of a pair at entry i is at most

.. math:: c_i + \sum_{j \sim i} β(Δ_{ij}, c_j + L_{j \setminus i}), \qquad
   L_{j \setminus i} = \sum_{k \sim j, k \ne i} β(Δ_{jk}, c_k + L_{k \setminus j}).

*Lemma.* If w > 0 has range e^Δ (its largest over its smallest value) and H > 0 range e^α, then
E[wH] ≤ e^β E[w] E[H]. Proof: for a given w the ratio E[wH]/(E[w] E[H]) is linear-fractional in H,
so the best H takes two values, the larger one where w is large; likewise the best w takes two
values for this H, on the same event A. With p = P(A), a = e^{Δ/2}, b = e^{α/2} and the values
a^{±1}, b^{±1} the ratio is (p ab + (1−p)/(ab)) / ((p a + (1−p)/a)(p b + (1−p)/b)), largest at p =
1/(1 + ab), where it is ((1+ab)/(a+b))², and 2 log((1+ab)/(a+b)) = β.

*Proof of the bound.* Let h be admissible. To pass from X_i = y to X_i = x, replace the tables f(y,
·) of i's contacts by f(x, ·) one after the other. Replacing that of j reweights the law by w(X_j),
of range at most e^Δ. H = E[h | X_j], with i gone, has range at most e^{c_j + L}, L how far the law
of the others depends on X_j in the field without i: the same question again. So E[h] changes by a
factor of at most e^β each time. Unrolled, it is a sum over self-avoiding walks from i. To forbid
only the step back adds walks, and β rises in α: the recursion above dominates. No tables on single
entries enter, so the hybrid laws are covered too. L is at most the sum of Δ_jk, and at most the sum
of all costs: from there every round of the recursion is a bound. From 0 it is one after as many
rounds as there are entries: no self-avoiding walk is longer.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import fsum

import numpy as np

from takifugu._rounding import UNIT, up
from takifugu.errors import TooLarge
from takifugu.influence.network.network_curves import chosen_entries
from takifugu.numeric import Floats, Integers, frozen
from takifugu.priors.factors import FactorModel
from takifugu.priors.secrets import EntryIs, SecretPair, Secrets
from takifugu.translation.network.junction_losses import NetworkLosses
from takifugu.translation.network.spending import EntrySpending, cost_matrices, largest_costs

ROUNDS = 200  # of the recursion
SHORT = 256  # entries up to which the recursion is also run up from 0
CLOSE = 1e-9  # a relative gain below this ends it
DEPTH = 12  # steps of a self-avoiding walk
VISITS = 1_600_000  # entries that all walks together visit
STARTS = 16  # entries from which walks start: those with the largest losses


@dataclass(frozen=True, eq=False)
class Contacts:
    """Who shares a table with whom, and how far the tables reach.

    Attributes:
        start: ``[entry + 1]``: where the contacts of an entry begin.
        near: ``[contact]``: the other entry.
        back: ``[contact]``: the same contact seen from the other entry.
        spread: ``[contact]``: Δ, rounded up.
        tables: ``[contact]``: the logarithms of the table, own values first.
    """

    start: Integers
    near: Integers
    back: Integers
    spread: Floats
    tables: tuple[Floats, ...]


def contacts_of(model: FactorModel) -> Contacts:
    """Read a field of positive tables on entries and pairs of entries; refuse others."""
    logs: dict[tuple[int, int], Floats] = {}
    for factor in model.factors():
        if len(factor.scope) == 1:
            continue
        if len(factor.scope) != 2 or not (factor.table > 0).all():
            raise TooLarge(
                f"{model.name!r} is too densely connected for a junction tree, and bounds by walks"
                " are for positive tables on pairs of entries only; one joins"
                f" {len(factor.scope)} entries or holds a 0",
                size=len(factor.scope),
                limit=2,
            )
        i, j = factor.scope
        table = np.log(factor.table)
        key, table = ((i, j), table) if i < j else ((j, i), table.T)
        logs[key] = logs[key] + table if key in logs else table
    found: list[list[tuple[int, Floats]]] = [[] for _ in model.entries]
    for (i, j), table in logs.items():
        found[i].append((j, table))
        found[j].append((i, table.T))
    start = np.cumsum([0, *map(len, found)])
    near = np.array([j for own in found for j, _ in own], dtype=np.int64)
    place = {
        (i, j): int(start[i]) + k for i, own in enumerate(found) for k, (j, _) in enumerate(own)
    }
    back = np.array([place[j, i] for i, own in enumerate(found) for j, _ in own], dtype=np.int64)
    tables = tuple(table for own in found for _, table in own)
    spread = np.array([_spread(table).max() for table in tables], dtype=np.float64)
    return Contacts(start, near, back, spread, tables)


def _spread(table: Floats) -> Floats:
    """``[x, y]``: the log range of f(x, ·)/f(y, ·), rounded up."""
    apart = table[:, None] - table[None]  # [x, y, u]
    margin = 64 * UNIT * (1 + float(np.abs(table).max()))
    widths: Floats = apart.max(axis=2) - apart.min(axis=2)
    return np.where(widths > 0, widths + margin, 0.0)


def walk_losses(
    model: FactorModel,
    epsilon: EntrySpending,
    secrets: Secrets | None = None,
    *,
    depth: int = DEPTH,
    visits: int = VISITS,
) -> NetworkLosses:
    """Bound the loss of all secrets of a pairwise field, in time linear in its size.

    Every entry gets the non-backtracking bound. From the entries with the largest, self-avoiding
    walks of up to ``depth`` steps, ``visits`` visits in all, are followed; what lies behind is
    bounded as before. Tables on more than two entries, and zeros in tables on two, are refused
    (`TooLarge`).
    """
    from takifugu.translation.network import walk_kernel

    protected = secrets or Secrets()
    contacts = contacts_of(model)
    costs = cost_matrices(model, epsilon)
    largest = np.array(largest_costs(costs))
    whole = float(up(fsum(largest))) if largest.any() else 0.0  # group privacy
    shared = (largest, contacts.start, contacts.near)
    behind = np.full(len(contacts.near), whole)
    sums = np.array([fsum(contacts.spread[a:b]) for a, b in pairwise(contacts.start.tolist())])
    if len(behind):
        behind = np.minimum(behind, up(sums[contacts.near]))
    recursion = (CLOSE, *shared, contacts.back, contacts.spread)
    walk_kernel.rounds(ROUNDS, *recursion, behind, True)
    if len(largest) <= SHORT:
        walks = np.zeros_like(behind)
        walk_kernel.rounds(len(largest), *recursion, walks, False)
        behind = np.minimum(behind, walks)
    chosen = [v for v in chosen_entries(model, protected) if protected.sides(model.states[v])]

    def losses(entry: int, inner: Floats) -> list[float]:
        """The bounds of the pairs of one entry, given bounds behind each of its contacts."""
        sides = protected.sides(model.states[entry])
        span = range(contacts.start[entry], contacts.start[entry + 1])
        size = len(model.states[entry])
        total = np.array(costs[entry])
        for k in span:
            spread = _spread(contacts.tables[k])
            rise = float(up(largest[contacts.near[k]] + inner[k - contacts.start[entry]]))
            felt = [walk_kernel.reweighted(s, rise) for s in spread.ravel().tolist()]
            total = total + np.array(felt).reshape(size, size)
        total = up(total * (1 + 2 * (len(span) + 1) * UNIT))
        return [min(whole, float(total[np.ix_(left, right)].max())) for left, right in sides]

    upper = {v: losses(v, behind[contacts.start[v] : contacts.start[v + 1]]) for v in chosen}
    gone = np.zeros(len(model.entries), dtype=np.bool_)
    for _ in range(min(STARTS, len(chosen))):
        v = max(upper, key=lambda entry: max(upper[entry]))
        if gone[v]:
            break  # its walks are done, and it has the largest loss
        inner = behind[contacts.start[v] : contacts.start[v + 1]].copy()
        walked = np.zeros(len(model.entries), dtype=np.bool_)
        walked[v] = True
        left = np.array([visits // STARTS], dtype=np.int64)
        for k, j in enumerate(contacts.near[contacts.start[v] : contacts.start[v + 1]]):
            if depth > 0:
                found = walk_kernel.walked(
                    *(int(j), depth - 1, left, *shared, contacts.spread, behind, walked)
                )
                inner[k] = min(inner[k], found)
        upper[v] = np.minimum(upper[v], losses(v, inner)).tolist()
        gone[v] = True
    return _collected(model, protected, largest, upper)


def _collected(
    model: FactorModel, secrets: Secrets, largest: Floats, upper: dict[int, list[float]]
) -> NetworkLosses:
    """The bounds of all pairs, entry by entry."""
    pairs: list[SecretPair] = []
    values: list[float] = []
    by_entry = np.full(len(model.entries), -np.inf)
    for entry, found in upper.items():
        name, states = model.entries[entry], model.states[entry]
        for left, right in secrets.sides(states):
            one, other = (EntryIs(name, tuple(states[v] for v in side)) for side in (left, right))
            pairs.append(SecretPair(one, other))
        values += found
        by_entry[entry] = max(found)
    return NetworkLosses(
        model.entries, frozen(largest), tuple(pairs), frozen(values), frozen(by_entry)
    )
