"""Curves of ALARM and of the hospital ward, beside plain enumeration with einsum.

The reference is what one writes first: list all connected sets, and for each set and each secret
in it one ``einsum`` over the tables that touch it, with every state of the boundary. Sets of up
to four entries are all timed; of the larger ones every k-th, and the time is scaled up. Which of
the two was done is printed. Times are processor times; ours are taken after a first call that
compiles the loops (numba keeps them on disk), whose time is printed too.
"""

import time
from importlib.util import find_spec
from itertools import permutations
from pathlib import Path

import numpy as np

from benchmarks._data import WARD
from takifugu.influence import InfluenceCurve
from takifugu.influence.network.attractive_curves import attractive_curve
from takifugu.influence.network.network_curves import network_curve
from takifugu.priors.bif import read_bif
from takifugu.priors.contacts import contagion, read_contacts
from takifugu.priors.networks import NetworkPrior, neighbours

IN_FULL = 4  # sets of up to so many entries are all given to the reference
SAMPLED = 60  # larger sets, of each size, that the reference evaluates
MOST = 2**27  # cells of one of its tables; a larger set is counted as not done
MINUTE = 60.0


def run() -> None:
    """Print the processor times side by side."""
    spec = find_spec("pgmpy")
    if spec is None or not spec.submodule_search_locations:
        print("ALARM comes with pgmpy, which is not installed: skipped")
    else:
        folder = Path(spec.submodule_search_locations[0]) / "utils" / "example_models"
        model = read_bif(folder / "alarm.bif.gz")
        _alarm(model)
        _minute(model)
    if WARD.exists():
        _ward()
    else:
        print(f"{WARD} is not there: the ward was skipped")


def _alarm(model: NetworkPrior) -> None:
    start = time.process_time()
    network_curve(model, largest=1)
    print(f"first call, compiling if need be: {time.process_time() - start:.1f} s")
    plain = 0.0
    sets = {frozenset((v,)) for v in range(len(model.entries))}
    near = neighbours(model)
    for b in range(1, 6):
        plain += _reference(model, sorted(sets, key=sorted), b)
        sets = {s | {w} for s in sets for v in s for w in near[v] if w not in s}
        if b < 3:
            continue  # too quick to compare
        start = time.process_time()
        curve = network_curve(model, largest=b)
        ours = time.process_time() - start
        scaled = "" if b <= IN_FULL else " (sets of 5 scaled up from a sample)"
        print(
            f"ALARM b <= {b}: plain {plain:.2f} s{scaled}, ours {ours:.2f} s,"
            f" ratio {plain / ours:.1f}; {_told(curve, b)}"
        )


def _told(curve: InfluenceCurve, b: int) -> str:
    share = curve.exact[:, b - 1].mean()
    return f"a({b}) = {curve.pooled()[b - 1]:.6f}, {share:.1%} of the pairs exact"


def _minute(model: NetworkPrior) -> None:
    """As far as a minute of processor time reaches; what is left open is an upper bound."""
    start = time.process_time()
    curve = network_curve(
        model, largest=12, progress=lambda _: time.process_time() - start < MINUTE
    )
    print(f"ALARM in {time.process_time() - start:.1f} s:")
    for b in range(5, 13):
        if b == 5 or curve.exact[:, b - 2].all():
            print(f"  {_told(curve, b)}")


def _reference(model: NetworkPrior, sets: list[frozenset[int]], b: int) -> float:
    """Seconds for all sets of one size, scaled up from a sample if they are large."""
    near, sample = neighbours(model), sets
    if b > IN_FULL:  # every k-th by size of the boundary, which the cost grows with
        edges = {s: frozenset[int]().union(*(near[v] for v in s)) - s for s in sets}
        cost = {s: np.prod([float(len(model.states[v])) for v in edges[s]]) for s in sets}
        step = max(1, len(sets) // SAMPLED)
        sample = sorted(sets, key=lambda s: (cost[s], sorted(s)))[step // 2 :: step]
    factors = model.factors()
    start, skipped = time.process_time(), 0
    for inside in sample:
        touching = [f for f in factors if inside & set(f.scope)]
        edge = sorted({v for f in touching for v in f.scope} - inside)
        for s in sorted(inside):
            if np.prod([float(len(model.states[v])) for v in (*edge, s)]) > MOST:
                skipped += 1
                continue
            operands: list[object] = []
            for factor in touching:
                operands += [factor.table, list(factor.scope)]
            law = np.einsum(*operands, [s, *edge], optimize=True)  # type: ignore[call-overload]
            with np.errstate(divide="ignore", invalid="ignore"):
                for x, y in permutations(range(len(law)), 2):
                    np.nanmax(law[x] / law[y])
    spent = time.process_time() - start
    print(
        f"  plain, sets of {b}: {len(sample)} of {len(sets)} timed, {spent:.2f} s;"
        f" {skipped} tables too large and left out (in its favour)"
    )
    return spent * len(sets) / len(sample)


def _ward() -> None:
    model = contagion(read_contacts(WARD), background=0.02, odds_per_hour=1.5, most=3.0)
    start = time.process_time()
    curve = attractive_curve(model, largest=12)
    spent = time.process_time() - start
    shown = ", ".join(f"{a:.3f}" for a in curve.pooled())
    print(f"ward: 75 people, {len(curve.pairs)} pairs, b <= 12 in {spent:.2f} s: a = {shown}")


if __name__ == "__main__":
    run()
