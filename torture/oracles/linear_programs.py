"""Larger instances beside linear programs over all datasets, certified from both sides.

Those of `tests/oracles/cost_instances.py` (costs that know values, profiles, adversaries who know
more, intervals) and of `tests/oracles/table_instances.py` (columns of rows that depend, households,
people, people and times). HiGHS proposes a mechanism and a flow; both are evaluated again, so that
the truth is between them but for rounding, which is below `ROUNDING` for these sizes.
"""

from collections.abc import Callable, Iterator
from functools import partial

import mpmath

from takifugu.translation import Translation
from tests.oracles import cost_instances, table_instances
from torture.oracles.comparison import Compared, Family, Instance, Rng

ROUNDING = 1e-12  # of a loss: sums of at most 1,024 floats, and exponentials of at most 100


def _draw(rng: Rng) -> Instance:
    return {"seed": int(rng.integers(2**53))}


def _costs(instance: Instance, *, family: str) -> Iterator[Compared]:
    drawn = cost_instances.instance(instance["seed"], family)
    found = Translation(drawn.prior, drawn.secrets).explain_cost(drawn.costs)
    losses = drawn.losses()
    least = max((solved.lower for _, solved in losses), default=0.0)
    most = max((solved.upper for _, solved in losses), default=0.0)
    yield Compared(
        *("all secrets", found.pufferfish, _less(least)),
        _more(most) if drawn.complete else mpmath.inf,
        *(found.witness.leak, found.exact if drawn.complete else None),
        bounded=drawn.prior.size is not None,
    )
    if found.by_entry is None:
        return
    for pair, solved in losses:
        bound = float(found.by_entry[pair.entry])
        yield Compared(f"{pair}", bound, _less(solved.lower), mpmath.inf, counted=False)


def _tables(instance: Instance, *, family: str) -> Iterator[Compared]:
    for one in table_instances.table_instance(instance["seed"], family):
        most = _more(one.most) if one.complete else mpmath.inf
        yield Compared(f"column {one.column}", one.upper, _less(one.least), most)


def _less(loss: float) -> mpmath.mpf:
    return mpmath.mpf(max(loss - ROUNDING, 0.0))


def _more(loss: float) -> mpmath.mpf:
    return mpmath.mpf(loss + ROUNDING)


NAMES = {
    "chain": "chain, costs, LP",
    "unbounded": "unbounded chain, costs, LP",
    "intervals": "chain within intervals, costs, LP",
    "second order": "chain of order 2, costs, LP",
    "unknown start": "chain with an unknown start, LP",
    "known entries": "chain with known entries, LP",
    "both": "unknown start and known entries, LP",
    "network": "network, costs, LP",
    "field": "field, costs, LP",
    "attractive field": "attractive field, costs, LP",
    "table": "table, costs, LP",
    "people": "people, costs, LP",
}
ORACLE = "HiGHS over all datasets, certified"


def _family(name: str, compare: Callable[..., Iterator[Compared]], family: str) -> Family:
    return Family(name, ORACLE, _draw, partial(compare, family=family), 1e-12)


FAMILIES = (
    *(_family(NAMES[name], _costs, name) for name in cost_instances.FAMILIES if name in NAMES),
    *(_family(f"rows: {name}, LP", _tables, name) for name in table_instances.FAMILIES),
)
