"""How long the exact translation takes, and how far apart its two proofs end up."""

from time import perf_counter

import numpy as np

from takifugu.finite import World
from takifugu.finite.translation_exact import translation_exact
from takifugu.priors import EntryIs, Explicit, SecretPair, Tables


def run() -> None:
    """Random and chain priors over tables of growing size, one ordered pair each."""
    rng = np.random.default_rng(0)
    print(f"{'tables':>16} {'datasets':>8} {'prior':>7} {'ε':>4} {'E* ≤':>10} {'gap':>8} seconds")
    for shape in [(2,) * 7, (2,) * 9, (2,) * 11, (2,) * 12, (2, 8, 8, 8), (2, 32, 32)]:
        universe = Tables.of({j: range(n) for j, n in enumerate(shape)})
        secret = len(shape) // 2 if set(shape) == {2} else 0
        pair = SecretPair(EntryIs(secret, (1,)), EntryIs(secret, (0,)))
        weight = rng.gamma(0.5, size=len(universe)) + 1e-9
        priors = {"random": Explicit(universe, weight / weight.sum())}
        if set(shape) == {2}:
            priors["chain"] = _chain(universe, stay=0.9)
        for name, prior in priors.items():
            for epsilon in (0.1, 1.0):
                start = perf_counter()
                found = translation_exact(World(universe, (prior,), (pair,)), epsilon)
                seconds = perf_counter() - start
                size = "×".join(map(str, shape)) if len(set(shape)) > 1 else f"2^{len(shape)}"
                print(
                    f"{size:>16} {len(universe):>8} {name:>7} {epsilon:>4} {found.upper:>10.6f}"
                    f" {found.gap:>8.1e} {seconds:.2f}"
                )


def _chain(universe: Tables, *, stay: float) -> Explicit:
    """A binary chain that keeps its state with chance ``stay``."""
    same = universe.codes[:, 1:] == universe.codes[:, :-1]
    return Explicit(universe, np.where(same, stay, 1 - stay).prod(axis=1) / 2)
