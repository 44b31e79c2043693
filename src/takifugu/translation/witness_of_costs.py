"""A mechanism that leaks, where an entry has lost one of several costs by value."""

from takifugu.translation.bounds import Bound, TransportBound, Witness
from takifugu.translation.entry_costs import EntryCosts

TRIED = 4  # costs, the largest first


def leaking_with(transport: TransportBound, costs: EntryCosts, bound: Bound) -> Witness:
    """A mechanism with these costs that leaks nearly as much as ``bound``.

    Where every entry has lost one of several costs, a mechanism has one of them everywhere: none
    needs to have the largest of them value by value, which the bound is about.
    """
    choices = [
        cost
        for k, cost in enumerate(costs.anywhere)
        if not any(
            other.dominates(cost) and (k > j or not cost.dominates(other))
            for j, other in enumerate(costs.anywhere)
            if j != k
        )
    ]
    if costs.by_entry is not None or not choices:
        return transport.valued_witness(costs, bound)
    if len(choices) == 1:
        return transport.valued_witness(EntryCosts((choices[0],)), bound)
    alone = [EntryCosts((cost,)) for cost in sorted(choices, key=lambda c: -c.scalar)[:TRIED]]
    found = [transport.valued_witness(one, transport.valued(one)) for one in alone]
    return max(found, key=lambda witness: witness.leak)
