"""How tight chains are: upper bounds over what some mechanism leaks, by family.

``python -m benchmarks tightness``. Random chains come from fixed seeds. Beside the ratio stands
that of the pairwise recursion alone, which was the bound before star-shaped costs were solved.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks._data import CHECKINS
from benchmarks.translation import fitted
from benchmarks.transport import example_rows
from takifugu._core.numeric import Floats
from takifugu.costs.cost import Cost, Distance, Membership
from takifugu.priors import MarkovChain
from takifugu.translation import Translation, unbounded_losses

LOSSES = (0.1, 0.5, 1.0)
MOST_STATES = 20  # of a chain for which the pairwise recursion is run as well


@dataclass(frozen=True)
class Case:
    """A chain and what every entry of it has lost."""

    chain: MarkovChain
    lost: float | Cost


def run() -> None:
    """Print the median, the 90th percentile and the largest ratio of every family."""
    unit = Translation(MarkovChain(np.full((3, 3), 1 / 3), length=3))
    unit.explain(0.1)  # compile
    families = {
        "3-4 states, 100 entries": _random((3, 4), 100, 12),
        "3-4 states, 100 entries, given start": _random((3, 4), 100, 6, start=True),
        "12-20 states, unbounded": _random((12, 16, 20), None, 4),
        "5-10 states, sticky, 100 entries": _random((5, 10), 100, 6, stay=0.9),
        "6-12 states, count of one label": _valued("label"),
        "6-12 states, counts of all labels": _valued("labels"),
        "6-12 states, count of a set": _valued("set"),
        "6-12 states, sum": _valued("sum"),
        "78 states, dense": _large(0.0),
        "78 states, sticky .9": _large(0.9),
        "78 states, sticky .97": _large(0.97),
        "78 New York labels": _new_york(),
    }
    for name, cases in families.items():
        found = [_ratios(case) for case in cases]
        if not found:
            print(f"{name}: no data here")
            continue
        now, before = (np.array([ratios[k] for ratios in found]) for k in (0, 1))
        print(
            f"{name}: {len(found)} chains, {_summary(now)}; pairwise {_summary(before)}", flush=True
        )


def _summary(ratios: Floats) -> str:
    kept = ratios[np.isfinite(ratios)]
    if not len(kept):
        return "no bound"
    median, high = np.quantile(kept, [0.5, 0.9])
    if len(kept) < 10:
        return f"median {np.median(kept):.4f}, largest {kept.max():.4f}"
    return f"median {median:.4f}, p90 {high:.4f}, largest {kept.max():.4f}"


def _ratios(case: Case) -> tuple[float, float]:
    """The bound over what is attained; the same for the pairwise recursion, unbounded."""
    translation = Translation(case.chain)
    if isinstance(case.lost, Cost):
        found = translation.explain_cost(case.lost, "transport")
        cost = case.lost.matrix(case.chain.states)
    else:
        found = translation.explain(case.lost, "transport")
        cost = case.lost * (1 - np.eye(len(case.chain.states)))
    if not found.lower > 0:
        return np.nan, np.nan
    pairwise = np.inf
    if isinstance(case.chain.start, str) and len(cost) <= MOST_STATES:
        pairwise = unbounded_losses(case.chain.transition, cost).loss
    return found.pufferfish / found.lower, pairwise / found.lower


def _random(
    sizes: tuple[int, ...],
    length: int | None,
    each: int,
    *,
    start: bool = False,
    stay: float = 0.0,
) -> Iterator[Case]:
    rng = np.random.default_rng(len(sizes) * 100 + sizes[0])
    for states in sizes:
        for k in range(each):
            rows = _rows(rng, states, 0.3 if k % 2 else 1.0, stay)
            chain = MarkovChain(rows, length=length)
            if start:
                chain = MarkovChain(rows, start=rng.dirichlet(np.ones(states)), length=length)
            yield Case(chain, LOSSES[k % len(LOSSES)])


def _valued(kind: str) -> Iterator[Case]:
    rng = np.random.default_rng(6)
    for states in (6, 9, 12):
        for k in range(4):
            chain = MarkovChain(_rows(rng, states, 0.3 if k % 2 else 1.0, 0.0), length=100)
            scale = LOSSES[k % len(LOSSES)]
            match kind:
                case "label":
                    cost = Cost.of({Membership([0]): scale})
                case "labels":
                    labels = range(states)
                    cost = Cost.of({Membership([label]): scale / (1 + label) for label in labels})
                case "set":
                    cost = Cost.of({Membership(range(states // 2)): scale})
                case _:
                    cost = Cost.of({Distance(0, states - 1): scale})
            yield Case(chain, cost)


def _large(stay: float) -> Iterator[Case]:
    rows = stay * np.eye(78) + (1 - stay) * example_rows(4, 78, 78)
    for epsilon in (0.01, 0.05) if stay else (0.05, 0.5):
        yield Case(MarkovChain(rows), epsilon)


def _new_york() -> Iterator[Case]:
    if CHECKINS.exists():
        chain = fitted(CHECKINS)
        for epsilon in LOSSES:
            yield Case(chain, epsilon)


def _rows(rng: np.random.Generator, states: int, spread: float, stay: float) -> Floats:
    rows: Floats = rng.dirichlet(np.full(states, spread), size=states) + 1e-9
    rows /= rows.sum(axis=1, keepdims=True)
    return stay * np.eye(states) + (1 - stay) * rows
