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
from functools import cached_property
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
from takifugu.translation.network.spending import (
    EntrySpending,
    cost_matrices,
    group_loss,
    largest_costs,
)

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


def check_pairwise(model: FactorModel) -> None:
    """An error unless all tables are on entries, or positive and on pairs of entries."""
    for factor in model.factors():
        many = len(factor.scope)
        if many > 2 or (many == 2 and not factor.table.min() > 0):
            raise TooLarge(
                f"{model.name!r} is too densely connected for a junction tree, and bounds by walks"
                " are for positive tables on pairs of entries only; one joins"
                f" {many} entries or holds a 0",
                size=many,
                limit=2,
            )


def contacts_of(model: FactorModel) -> Contacts:
    """Read a field of positive tables on entries and pairs of entries; refuse others."""
    check_pairwise(model)
    logs: dict[tuple[int, int], Floats] = {}
    for factor in model.factors():
        if len(factor.scope) == 1:
            continue
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


class PairwiseWalks:
    """A pairwise field and its secrets, read once: bounds for any spending.

    Tables on more than two entries, and zeros in tables on two, are refused (`TooLarge`).
    """

    def __init__(self, model: FactorModel, secrets: Secrets | None = None) -> None:
        check_pairwise(model)
        self.model, self._protected = model, secrets or Secrets()

    @cached_property
    def _contacts(self) -> Contacts:
        return contacts_of(self.model)

    @cached_property
    def _sides(self) -> dict[int, tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]]:
        """The secret pairs of each entry that has some, as sets of its values."""
        chosen = chosen_entries(self.model, self._protected)
        listed = {self.model.states[v] for v in chosen}
        known = {states: self._protected.sides(states) for states in listed}
        return {v: known[self.model.states[v]] for v in chosen if known[self.model.states[v]]}

    @cached_property
    def _pairs(self) -> tuple[SecretPair, ...]:
        found = []
        for entry, sides in self._sides.items():
            name, states = self.model.entries[entry], self.model.states[entry]
            for pair in sides:
                one, other = (EntryIs(name, tuple(states[v] for v in side)) for side in pair)
                found.append(SecretPair(one, other))
        return tuple(found)

    @cached_property
    def _spreads(self) -> tuple[Floats, Integers]:
        """The ranges of all tables for each pair of own values, and where those of each begin."""
        parts = [_spread(table).ravel() for table in self._contacts.tables]
        starts = np.cumsum([0, *map(len, parts)])
        return np.concatenate([*parts, np.zeros(0)]), starts

    @cached_property
    def _sums(self) -> Floats:
        """``[entry]``: the sum of Δ over its contacts."""
        ends = self._contacts.start.tolist()
        return np.array([fsum(self._contacts.spread[a:b]) for a, b in pairwise(ends)])

    def losses(
        self, epsilon: EntrySpending, *, depth: int = DEPTH, visits: int = VISITS
    ) -> NetworkLosses:
        """Bound the loss of all secrets.

        Every entry gets the non-backtracking bound. From the entries with the largest,
        self-avoiding walks of up to ``depth`` steps, ``visits`` visits in all, are followed; what
        lies behind is bounded as before.
        """
        from takifugu.translation.network import walk_kernel

        contacts = self._contacts
        costs = cost_matrices(self.model, epsilon)
        largest = np.array(largest_costs(costs))
        whole = group_loss(largest.tolist())
        behind = self._behind(largest, whole)
        spreads, offsets = self._spreads

        def losses(entry: int, inner: Floats) -> list[float]:
            """The bounds of the pairs of one entry, given bounds behind each of its contacts."""
            total = np.array(costs[entry])
            first, last = contacts.start[entry : entry + 2]
            walk_kernel.summed(
                *(first, last, offsets, contacts.near, spreads, largest, inner, total)
            )
            return [
                min(whole, float(total[np.ix_(left, right)].max()))
                for left, right in self._sides[entry]
            ]

        upper = {v: losses(v, behind[slice(*contacts.start[v : v + 2])]) for v in self._sides}
        worst = sorted(upper, key=lambda v: -max(upper[v]))[:STARTS]
        done = 0.0
        shared = (largest, contacts.start, contacts.near, contacts.spread, behind)
        for v in worst if depth > 0 else ():
            if max(upper[v]) <= done:
                break  # the largest loss is that of an entry whose walks were followed
            inner = behind[slice(*contacts.start[v : v + 2])].copy()
            gone = np.zeros(len(largest), dtype=np.bool_)
            gone[v] = True
            left = np.array([visits // STARTS], dtype=np.int64)
            for k, j in enumerate(contacts.near[slice(*contacts.start[v : v + 2])]):
                found = walk_kernel.walked(int(j), depth - 1, left, *shared, gone)
                inner[k] = min(inner[k], found)
            upper[v] = np.minimum(upper[v], losses(v, inner)).tolist()
            done = max(done, *upper[v])
        by_entry = np.full(len(largest), -np.inf)
        by_entry[list(upper)] = [max(found) for found in upper.values()]
        values = [value for found in upper.values() for value in found]
        return NetworkLosses(
            self.model.entries, frozen(largest), self._pairs, frozen(values), frozen(by_entry)
        )

    def _behind(self, largest: Floats, whole: float) -> Floats:
        """``[contact]``: the non-backtracking bound L of what lies behind each contact."""
        from takifugu.translation.network import walk_kernel

        contacts = self._contacts
        behind = np.full(len(contacts.near), whole)
        if len(behind):
            behind = np.minimum(behind, up(self._sums[contacts.near]))
        shared = (CLOSE, largest, contacts.start, contacts.near, contacts.back, contacts.spread)
        walk_kernel.rounds(ROUNDS, *shared, behind, True)
        if len(largest) <= SHORT:
            walks = np.zeros_like(behind)
            walk_kernel.rounds(len(largest), *shared, walks, False)
            behind = np.minimum(behind, walks)
        return behind


def walk_losses(
    model: FactorModel,
    epsilon: EntrySpending,
    secrets: Secrets | None = None,
    *,
    depth: int = DEPTH,
    visits: int = VISITS,
) -> NetworkLosses:
    """Bound the loss of all secrets of a pairwise field, in time linear in its size.

    See `PairwiseWalks`, which reads the field once for many spendings.
    """
    return PairwiseWalks(model, secrets).losses(epsilon, depth=depth, visits=visits)
