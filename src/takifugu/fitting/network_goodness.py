r"""What a fitted network leaves out: pairs of columns that depend on each other beyond it.

For two columns that are not joined, the counts :math:`n_{ab}` of N rows are compared with the law
:math:`p_{ab}` that the network implies for the pair:
:math:`G^2 = 2\sum n_{ab}\log(n_{ab}/(N p_{ab}))` is about chi-square if the network is right, and
:math:`(G^2 - \mathrm{df})/2N` is what the two tell about each other that the network does not know,
in nats. The p-value of the worst pair is multiplied by the number of pairs (Bonferroni).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import log
from typing import Any

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.fitting.count_tests import MATERIAL_SHARE, log_tail, p_words
from takifugu.fitting.goodness import MAX_BARS, FitTest, GoodnessOfFit, Panel, conclude
from takifugu.priors.networks import BayesianNetwork
from takifugu.tables.engine import Engine
from takifugu.tables.scope import EVERYTHING, Scope
from takifugu.visible import four_digits

MAX_SUMMED_CELLS = 2**22  # cells of a table on the way to the law of a pair
MAX_SUMMED_NAMES = 52  # that numpy can sum over at once


def network_goodness(
    engine: Engine, network: BayesianNetwork, scope: Scope = EVERYTHING
) -> GoodnessOfFit:
    """Which pairs of columns depend on each other beyond the network, on the rows of ``scope``."""
    joined = {
        frozenset((str(parent), str(child)))
        for child, above in zip(network.entries, network.parents, strict=True)
        for parent in above
    }
    names = [str(entry) for entry in network.entries]
    pairs = [pair for pair in combinations(names, 2) if frozenset(pair) not in joined]
    if not pairs:
        sentence = "The network joins all columns: it leaves no pair out."
        return GoodnessOfFit((FitTest("left out", "fits", sentence, {}),))
    tables = engine.cross_tabulations(pairs, scope)
    counts = {pair: table.counts for pair, table in zip(pairs, tables, strict=True)}
    return GoodnessOfFit((left_out_test(network, counts),))


def left_out_test(network: BayesianNetwork, counts: Mapping[tuple[str, str], Integers]) -> FitTest:
    """The worst of some pairs, from how many rows have each two values."""
    measured = sorted(_measured(network, counts), key=lambda one: (-one["share"], one["pair"]))
    skipped = len(counts) - len(measured)
    numbers: dict[str, Any] = {
        "pairs": measured[:MAX_BARS],
        "tested": len(measured),
        "skipped": skipped,
    }
    if not measured:
        sentence = "What the network leaves out was not tested: it is too dense to be summed over."
        return FitTest("left out", "not tested", sentence, numbers)
    worst = measured[0]
    log_p = min(worst["log_p"] + log(len(measured)), 0.0)
    first, second = worst["pair"]
    facts = (
        f"{first} and {second} tell {four_digits(100 * worst['share'])} % of each other's"
        f" uncertainty beyond it ({p_words(log_p)} for the worst of {len(measured):,} pairs)"
    )
    panel = Panel(
        "What two columns tell about each other beyond the network",
        "nats a row",
        tuple(" – ".join(one["pair"]) for one in measured[:MAX_BARS]),
        tuple(one["gain"] for one in measured[:MAX_BARS]),
    )
    return conclude(
        *("left out", log_p, worst["share"] >= MATERIAL_SHARE, numbers, panel),
        fits=f"The network leaves out no pair of columns: at most {facts}.",
        little=f"The network leaves out little: {facts}.",
        not_at_all=f"The network leaves something out: {facts}. Give it a structure with that edge"
        " (--structure), and see whether the loss grows.",
    )


def _measured(
    network: BayesianNetwork, counts: Mapping[tuple[str, str], Integers]
) -> Iterator[dict[str, Any]]:
    for pair, table in counts.items():
        law = pair_law(network, *pair)
        total = int(table.sum())
        if law is None or not total:
            continue
        n = table.astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(n > 0, n * np.log(n / (total * law)), 0.0)
        statistic = max(2 * float(terms.sum()), 0.0)
        seen = [int((n.sum(axis=axis) > 0).sum()) - 1 for axis in (0, 1)]
        degrees = max(seen[0], 0) * max(seen[1], 0)
        gain = max(statistic - degrees, 0.0) / (2 * total)
        uncertain = min(_entropy(n.sum(axis=1)), _entropy(n.sum(axis=0)))
        yield {
            "pair": list(pair),
            "statistic": statistic,
            "degrees": degrees,
            "log_p": log_tail(statistic, degrees),
            "gain": gain,
            "share": min(gain / uncertain, 1.0) if uncertain > 0 else 0.0,
        }


def _entropy(counts: Floats) -> float:
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log(share)).sum())


def pair_law(network: BayesianNetwork, first: str, second: str) -> Floats | None:
    """``[value of first, value of second]`` by the network; None if that is out of reach.

    Only ancestors of the two matter; the others sum to 1.
    """
    number = {str(entry): i for i, entry in enumerate(network.entries)}
    wanted, waiting = set[str](), [first, second]
    while waiting:
        entry = waiting.pop()
        if entry not in wanted:
            wanted.add(entry)
            waiting += [str(parent) for parent in network.parents[number[entry]]]
    if len(wanted) > MAX_SUMMED_NAMES:
        return None
    place = {entry: i for i, entry in enumerate(sorted(wanted))}
    factors: list[tuple[list[int], Floats]] = []
    for entry in sorted(wanted):
        above = [str(parent) for parent in network.parents[number[entry]]]
        factors.append(([place[name] for name in (*above, entry)], network.tables[number[entry]]))
    asked = {place[first], place[second]}
    for name in _order(factors, asked):
        touching = [factor for factor in factors if name in factor[0]]
        factors = [factor for factor in factors if name not in factor[0]]
        merged = _summed(touching, drop=name)
        if merged is None:
            return None
        factors.append(merged)
    last = _summed(factors, drop=None)
    if last is None:
        return None
    names, law = last
    return law if names == [place[first], place[second]] else law.T


def _order(factors: Sequence[tuple[list[int], Floats]], kept: set[int]) -> Iterator[int]:
    """The names to sum over, the one whose table is smallest first."""
    scopes = [(set(names), dict(zip(names, table.shape, strict=True))) for names, table in factors]
    sizes = {name: size for _, shape in scopes for name, size in shape.items()}
    left = [names for names, _ in scopes]
    open_names = set(sizes) - kept
    while open_names:
        best = min(open_names, key=lambda n: (_cells(left, n, sizes), n))
        joint = set[int]().union(*(names for names in left if best in names)) - {best}
        left = [names for names in left if best not in names] + [joint]
        open_names.remove(best)
        yield best


def _cells(scopes: Sequence[set[int]], name: int, sizes: Mapping[int, int]) -> float:
    joint = set[int]().union(*(names for names in scopes if name in names))
    return float(np.prod([float(sizes[n]) for n in joint]))


def _summed(
    factors: Sequence[tuple[list[int], Floats]], *, drop: int | None
) -> tuple[list[int], Floats] | None:
    """The product of some tables, summed over one name; None if it is too large."""
    sizes = {n: s for names, table in factors for n, s in zip(names, table.shape, strict=True)}
    if float(np.prod([float(size) for size in sizes.values()])) > MAX_SUMMED_CELLS:
        return None
    result = sorted(name for name in sizes if name != drop)
    given: list[Any] = [part for names, table in factors for part in (table, names)]
    return result, np.asarray(np.einsum(*given, result, optimize="greedy"), dtype=np.float64)
