"""Networks along junction trees beside linear programs."""

from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from unittest.mock import patch

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.priors.bif import read_bif
from takifugu.priors.networks import BayesianNetwork
from takifugu.translation.certify.messages import Flows, Transports
from takifugu.translation.models.networks import network_losses
from takifugu.translation.search.products import best_witness

NETWORKS = (  # mildew last: it takes longest
    *("asia", "child", "alarm", "win95pts", "hepar2", "hailfinder", "insurance", "water"),
    "mildew",
)
SAMPLE = 400  # transport problems given to the general solver
Problem = tuple[Floats, Floats, Floats, float]  # chances, chances, costs, our answer


def run() -> None:
    """Print times, ratios and bounds."""
    networks()


def networks() -> None:
    """All secrets of the networks that come with pgmpy, at ε = 0.1 for every entry."""
    spec = find_spec("pgmpy")
    if spec is None or not spec.submodule_search_locations:
        print("pgmpy is not installed; its networks are left out")
        return
    folder = Path(spec.submodule_search_locations[0]) / "utils" / "example_models"
    network_losses(read_bif(folder / "asia.bif.gz"), 0.1)  # compile
    for name in NETWORKS:
        network = read_bif(folder / f"{name}.bif.gz")
        start = perf_counter()
        losses = network_losses(network, 0.1)
        seconds = perf_counter() - start
        shown = best_witness(network, 0.1, losses.pairs, losses.upper.tolist()).lower
        group = 0.1 * len(network.entries)
        print(
            f"{name}: {len(network.entries)} secrets in {seconds:.2f} s; worst {losses.binding}"
            f" loses at most {losses.loss:.4f}, at least {shown:.4f}: ratio"
            f" {losses.loss / shown:.3f}; group DP {group:.1f}; both bounds in"
            f" {perf_counter() - start:.2f} s",
            flush=True,
        )
        if name == "alarm":
            beside_linear_programs(network, seconds)


def beside_linear_programs(network: BayesianNetwork, seconds: float) -> None:
    """The same transport problems by HiGHS: a sample, spread evenly, scaled up to all of them."""
    from scipy.optimize import linprog

    problems = _problems(network)
    chosen = problems[:: max(len(problems) // SAMPLE, 1)]
    spent, worst = 0.0, 0.0
    for p, q, cost, ours in chosen:
        k, m = cost.shape
        moves = np.arange(k * m)
        leaving, arriving = np.zeros((k, k * m + 1)), np.zeros((m, k * m + 1))
        leaving[moves // m, moves] = 1.0
        arriving[moves % m, moves] = np.exp(cost).ravel()
        arriving[:, -1] = -q
        goal = np.r_[np.zeros(k * m), 1.0]
        start = perf_counter()
        found = linprog(goal, A_ub=arriving, b_ub=np.zeros(m), A_eq=leaving, b_eq=p)
        spent += perf_counter() - start
        worst = max(worst, abs(ours - float(np.log(found.fun))))
    whole = spent * len(problems) / len(chosen)
    print(
        f"  {len(problems):,} transport problems; HiGHS took {spent:.2f} s for {len(chosen)} of"
        f" them, so about {whole:.0f} s for all: {whole / seconds:.0f} times as long; largest"
        f" difference {worst:.1e}"
    )


def _problems(network: BayesianNetwork) -> list[Problem]:
    """Every transport problem of one recursion, written down as it is solved."""
    written: list[Problem] = []
    prove = Flows.prove

    def record(flows: Flows, problems: Transports) -> Floats:
        values = prove(flows, problems)
        starts, states, _, chances, (index, flat, offset, width, caps) = problems.shared
        for x, y, value in zip(problems.lefts, problems.rights, values, strict=True):
            a, b = slice(starts[x], starts[x + 1]), slice(starts[y], starts[y + 1])
            i, j = index[:, states[a], None], index[:, None, states[b]]
            tables = flat[offset[:, None, None] + i * width[:, None, None] + j]
            ends = np.flatnonzero(caps >= 0)  # tables up to here have a common cap
            groups = np.add.reduceat(tables, np.append(0, ends[:-1] + 1))
            cost = np.minimum(groups, caps[ends, None, None]).sum(axis=0)
            written.append((chances[a], chances[b], cost, float(value)))
        return values

    with patch.object(Flows, "prove", record):
        network_losses(network, 0.1)
    return written
