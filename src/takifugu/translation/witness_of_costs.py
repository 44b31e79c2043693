"""A mechanism that leaks, where an entry has lost one of several costs by value."""

from takifugu.translation.bounds import Bound, TransportBound, Witness
from takifugu.translation.entry_costs import EntryCosts

TRIED = 4  # costs, the largest first


def leaking_with(transport: TransportBound, costs: EntryCosts, bound: Bound) -> Witness:
    """A mechanism with these costs that leaks nearly as much as ``bound``.

    Where every entry has lost one of several costs, a mechanism has one of them everywhere: none
    needs to have the largest of them value by value, which the bound is about.
    """
    alone = costs.alone
    if len(alone) == 1:
        return transport.valued_witness(alone[0], bound)
    found = [transport.valued_witness(one, transport.valued(one)) for one in alone[:TRIED]]
    return max(found, key=lambda witness: witness.leak)
