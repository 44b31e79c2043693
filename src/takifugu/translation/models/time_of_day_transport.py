r"""The transport bound of chains with a matrix for each hour of the day.

Let Z be the chain that begins at hour 0 (`takifugu.priors.time_of_day.TimeOfDayChain`), p the
number of hours of a day and T the number of entries. An entity that begins at hour h has the
entries :math:`X_i = Z_{h+i}`, :math:`0 \le i < T`. A mechanism on X is one on
:math:`Z_0, \ldots, Z_{h+T-1}` that does not read the first h entries, and a secret about
:math:`X_i` is one about :math:`Z_{h+i}`. So

1. the worst loss of X is that of Z with the costs of X on the entries from h on and 0 before: a
   chain with a start that is known exactly and a matrix for each step, for each of the p hours;
2. it is at most that of :math:`Z_0, \ldots, Z_{T+p-2}` with the cost
   :math:`\max_{0 \le h < p} c_{j-h}` on entry j, for all hours at once: a larger cost and more
   entries to read admit more mechanisms.

The first is as tight as the bound of a chain is, and takes p of them. It is used while it is quick,
otherwise the second, whose p − 1 additional entries hardly matter to long sequences.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from takifugu._core.numeric import Floats, frozen
from takifugu.costs.cost import NOTHING
from takifugu.priors.secrets import Secrets
from takifugu.priors.time_of_day import TimeOfDayChain
from takifugu.priors.universe import Name
from takifugu.translation.accounting.largest_epsilon import largest_within
from takifugu.translation.bounds import Binding, Bound, Witness
from takifugu.translation.entry_costs import CostLevels, EntryCosts
from takifugu.translation.models.chain_entries import (
    ChainBound,
    refuse_other_length,
    secret_entries,
)
from takifugu.translation.models.chain_transport import ChainTransport
from takifugu.translation.models.two_state_transport import BinaryTransport

QUICK = 60_000  # hours × entries × states² up to which every hour is translated on its own
MANY = 4  # hours from which one of them is searched first


class TimeOfDayTransport(ChainBound):
    """One chain by hour of the day and chosen secrets, for entities that begin at any hour."""

    def __init__(self, prior: TimeOfDayChain, secrets: Secrets, *, tolerance: float = 1e-3) -> None:
        self._prior, self._secrets, self._tolerance = prior, secrets, tolerance
        self.states, self.length = prior.states, prior.entries
        self._hours, self._length = prior.hours, prior.entries
        self._covered = secret_entries(secrets, prior.length)
        work = self._hours * (self._length + self._hours) * len(prior.states) ** 2
        self._each = work <= QUICK
        self._known: dict[int, ChainBound] = {}
        self._worst: dict[tuple[str, str, Name | None], int] = {}
        _ = self._together if not self._each else self._beginning(0)  # an error now, not later

    def everywhere(self, cost: Floats) -> Bound:
        """The loss when every entry has the same cost, of an entity that begins at any hour."""
        if self._each:
            return self.one_by_one(CostLevels((cost,), np.zeros(self._length, dtype=np.int64)))
        return self._over_all_hours(self._together.everywhere(cost))

    def one_by_one(self, charged: CostLevels) -> Bound:
        """The loss if every entry has a cost of its own."""
        self._refuse_size(len(charged))
        if self._each:
            return self._worst_hour(
                lambda h: self._beginning(h).one_by_one(_delayed(charged, h).checked())
            )
        return self._over_all_hours(self._together.one_by_one(self._largest_costs(charged)))

    def _largest_costs(self, charged: CostLevels) -> CostLevels:
        """What an entry of Z costs at most, whichever hour an entity begins at."""
        size = self._length + self._hours - 1
        windows = [
            frozenset(charged.at[max(0, j - self._hours + 1) : j + 1].tolist()) for j in range(size)
        ]
        numbers = {levels: k for k, levels in enumerate(dict.fromkeys(windows))}
        largest = (np.max([charged.matrices[k] for k in levels], axis=0) for levels in numbers)
        at = np.array([numbers[levels] for levels in windows], dtype=np.int64)
        return CostLevels(tuple(map(frozen, largest)), at).checked()

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``.

        The search begins at that of one hour, which takes a small part of all of them.
        """
        first = None
        if self._each and self._hours >= MANY:
            first = self._beginning(0).largest(target) or None
        return largest_within(lambda e: self.uniform(e).value, target, first=first)

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:
        """A mechanism that leaks nearly as much, to an entity that begins at the worst hour."""
        spent = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), (self._length,))
        hour = self._hour_of(bound)
        transport, later = self._beginning(hour), _later(spent, hour)
        return _earlier(transport.witness(later, transport.profile(later)), hour)

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """The same with factors that obey the cost of each entry."""
        if len(costs.anywhere) > 1:  # which of them an entry lost is not known
            return Witness(0.0, bound.binding)
        hour = self._hour_of(bound)
        transport, later = self._beginning(hour), self._shifted(costs, hour)
        return _earlier(transport.valued_witness(later, transport.valued(later)), hour)

    def _worst_hour(self, at: Callable[[int], Bound]) -> Bound:
        """The largest loss over the hours at which an entity may begin."""
        best, by_entry = None, np.zeros(self._length)
        for hour in range(self._hours):
            found = at(hour)
            if found.by_entry is None:
                raise TypeError("a chain with a given start has a loss for each entry")
            np.maximum(by_entry, found.by_entry[hour:], out=by_entry)
            if best is None or found.value > best[0].value:
                best = found, hour
        if best is None:
            raise TypeError("a day has at least one hour")
        (found, hour) = best
        # entries before the first have no secret that counts, and no loss that is the largest
        return Bound(
            float(by_entry.max()),
            self._named(found.binding, hour),
            frozen(by_entry),
            found.by_values,
        )

    def _over_all_hours(self, found: Bound) -> Bound:
        """The bound of Z as one of every entity."""
        by_entry = None
        if found.by_entry is not None:
            windows = np.lib.stride_tricks.sliding_window_view(found.by_entry, self._hours)
            by_entry = frozen(windows.max(axis=1))
        return Bound(found.value, self._named(found.binding, None), by_entry, found.by_values)

    def _named(self, binding: Binding | None, hour: int | None) -> Binding | None:
        """A binding about Z as one about the entries of an entity that begins at ``hour``.

        With None at the hour at which the entry is as near as can be to the middle.
        """
        if binding is None or not isinstance(binding.entry, int):
            return binding
        place = binding.entry
        if hour is None:
            first, last = max(0, place - self._hours + 1), min(place, self._length - 1)
            hour = place - min(max(self._length // 2, first), last)
        found = replace(binding, entry=place - hour)
        self._worst[found.left, found.right, found.entry] = hour  # for the witness
        return found

    def _hour_of(self, bound: Bound) -> int:
        """At which hour an entity begins of which a pair loses most.

        Any hour makes a mechanism that leaks what its witness says.
        """
        pair = bound.binding
        return 0 if pair is None else self._worst.get((pair.left, pair.right, pair.entry), 0)

    @cached_property
    def _together(self) -> ChainBound:
        """Z with the entries of all entities, whichever hour they begin at."""
        size = self._length + self._hours - 1
        entries = None
        if self._covered is not None:
            later = {int(i) + hour for i in self._covered for hour in range(self._hours)}
            entries = tuple(sorted(later))
        return self._transport(size, entries)

    def _beginning(self, hour: int) -> ChainBound:
        """Z up to the last entry of an entity that begins at ``hour``."""
        if hour not in self._known:
            covered = range(self._length) if self._covered is None else self._covered.tolist()
            entries = tuple(int(i) + hour for i in covered)
            self._known[hour] = self._transport(self._length + hour, entries)
        return self._known[hour]

    def _transport(self, size: int, entries: tuple[int, ...] | None) -> ChainBound:
        chain, secrets = self._prior.days_of(size), replace(self._secrets, entries=entries)
        if len(chain.states) == 2:
            return BinaryTransport(chain, secrets)
        return ChainTransport(chain, secrets, tolerance=self._tolerance)

    def _shifted(self, costs: EntryCosts, hour: int) -> EntryCosts:
        """The costs of X as costs of Z."""
        own = tuple(costs.by_entry or (costs.anywhere or (NOTHING,)) * self._length)
        return EntryCosts(by_entry=(NOTHING,) * hour + own)

    def _refuse_size(self, given: int) -> None:
        refuse_other_length(given, self._length)


def _delayed(charged: CostLevels, hour: int) -> CostLevels:
    """The costs of X as costs of Z, whose first entries nobody reads."""
    nothing = frozen(np.zeros_like(charged.matrices[0]))
    before = np.full(hour, len(charged.matrices), dtype=np.int64)
    return CostLevels((*charged.matrices, nothing), np.concatenate([before, charged.at]))


def _later(spent: Floats, hour: int) -> Floats:
    return np.concatenate([np.zeros(hour), spent])


def _earlier(witness: Witness, hour: int) -> Witness:
    """A mechanism on Z that reads nothing before ``hour`` as one on the entity's entries."""
    binding = witness.binding
    if binding is not None and isinstance(binding.entry, int):
        binding = replace(binding, entry=binding.entry - hour)
    kept = [k for k, e in enumerate(witness.entries) if isinstance(e, int) and e >= hour]
    entries = tuple(int(witness.entries[k]) - hour for k in kept)
    factors = None if witness.factors is None else frozen(witness.factors[kept])
    return replace(
        witness,
        binding=binding,
        entries=entries,
        factors=factors,
        against=f"of an entity whose first row is at hour {hour}",
    )
