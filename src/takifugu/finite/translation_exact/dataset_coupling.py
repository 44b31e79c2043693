"""The proof of an upper bound as a table: how to turn one side of a secret into the other."""

from dataclasses import dataclass

import numpy as np

from takifugu._core.numeric import Floats, Integers, frozen
from takifugu._core.rounding import UNIT
from takifugu.errors import TooLarge
from takifugu.finite.translation_exact.certificates import Routing
from takifugu.finite.translation_exact.network import Network
from takifugu.finite.translation_exact.transport_problem import TransportProblem

MOST_CELLS = 2**24  # 128 MiB


@dataclass(frozen=True, eq=False)
class Coupling:
    r"""Mass γ(D, D′) ≥ 0 that carries P(·|s) to datasets where s′ is true.

    With rows that sum to P(D|s) it proves, for every admissible g,

    .. math:: E[g|s] = \sum γ(D,D') g(D) \le \sum γ(D,D') e^{d(D,D')} g(D') \le t \, E[g|s'],
              \qquad t = \max_{D'} \frac{\sum_D γ(D,D') e^{d(D,D')}}{P(D'|s')},

    where d(D, D′) is the sum of ε_j over the entries in which they differ.

    Attributes:
        sources: ``[row]``: the datasets D that are possible under s.
        targets: ``[column]``: the datasets D′ that are possible under s′.
        mass: ``[row, column]``: γ.
        left: ``[row]``: P(D|s).
        right: ``[column]``: P(D′|s′).
        distance: ``[row, column]``: d(D, D′).
    """

    sources: Integers
    targets: Integers
    mass: Floats
    left: Floats
    right: Floats
    distance: Floats

    @property
    def misfit(self) -> float:
        """The largest relative distance between a row's sum and P(D|s): only rounding."""
        return float(np.max(np.abs(self.mass.sum(axis=1) / self.left - 1)))

    @property
    def loss(self) -> float:
        """The logarithm of t, rounded up: what this table proves by itself, rows scaled to fit."""
        arrives = (self.mass * np.exp(self.distance)).sum(axis=0)
        t = float(np.max(arrives / self.right)) / (1 - self.misfit)
        rounding = 8 * (len(self.sources) + len(self.targets) + 8) * UNIT
        return float(np.log(t)) + rounding + 64 * UNIT * float(self.distance.max())


def coupling(
    problem: TransportProblem, net: Network | None, routing: Routing | None, mu: Floats, nu: Floats
) -> Coupling:
    """Follow the routed flow from every source to where it comes to rest; put entries back."""
    sources, targets = np.flatnonzero(mu), np.flatnonzero(nu)
    cells = len(sources) * len(targets)
    if cells > MOST_CELLS or (net is not None and net.nodes * net.datasets > MOST_CELLS):
        raise TooLarge(
            f"the coupling has {cells:,} cells and at most {MOST_CELLS:,} are written out; the"
            " upper bound itself does not need them",
            size=cells,
            limit=MOST_CELLS,
        )
    settled = np.ones((1, 1)) if net is None or routing is None else _rest(problem, net, routing)
    codes = np.stack(np.unravel_index(np.arange(len(mu)), problem.whole_shape), axis=1)
    kept = codes[:, problem.kept]
    place = (
        np.ravel_multi_index(tuple(kept.T), problem.shape)
        if problem.shape
        else np.zeros(len(mu), dtype=np.int64)
    )
    share_left = mu[sources] / problem.source[place[sources]]  # P(left-out entries | others, s)
    share_right = nu[targets] / problem.target[place[targets]]
    mass = settled[np.ix_(place[sources], place[targets])]
    distance = np.zeros(mass.shape)
    for j, epsilon in enumerate(problem.whole_allowance):
        distance += epsilon * (codes[sources, j][:, None] != codes[targets, j][None, :])
    return Coupling(
        sources,
        targets,
        frozen(mass * share_left[:, None] * share_right[None, :]),
        frozen(mu[sources]),
        frozen(nu[targets]),
        frozen(distance),
    )


def _rest(problem: TransportProblem, net: Network, routing: Routing) -> Floats:
    """``[dataset, dataset]``: where the mass of every source ends up, by path decomposition.

    Every node mixes what arrives, so each of its origins shares alike in what it sends, keeps and
    spreads. Mass is counted without gains; the gains are those of the path it took, which is at
    least as long as the distance.
    """
    size = net.datasets
    origin = np.zeros((net.nodes, size))  # [node, source]: mass that has arrived, without gains
    origin[np.arange(size), np.arange(size)] = problem.source
    held = np.zeros(net.nodes)  # the same mass, with gains
    held[:size] = problem.source
    gain = np.exp(net.loss[routing.edges])
    tail, head = net.tail[routing.edges], net.head[routing.edges]
    starts = np.zeros(net.nodes, dtype=np.int64)
    counts = np.bincount(tail, minlength=net.nodes)
    starts[routing.order] = np.concatenate([[0], np.cumsum(counts[routing.order])[:-1]])
    spread = np.zeros((net.nodes, size))
    for node in routing.order:
        mine = slice(starts[node], starts[node] + counts[node])
        if held[node] == 0:
            continue
        part = routing.flow[mine] / held[node]
        origin[head[mine]] += part[:, None] * origin[node][None, :]
        held[head[mine]] += routing.flow[mine] * gain[mine]
        left = max(0.0, 1 - float(part.sum()))
        lost = min(left, float(routing.spread[node]) / float(held[node]))
        spread[node] = lost * origin[node]
        origin[node] *= left - lost
    spread /= routing.overlap[:, None]
    spilled = np.zeros((size, size))  # [dataset it starts from, source]
    np.add.at(spilled, routing.best, spread)
    table = spilled.T.reshape((size, *problem.shape))
    for axis, epsilon in enumerate(problem.allowance):
        near = float(np.exp(-epsilon))
        table = table * -np.expm1(-epsilon) + near * table.sum(axis=axis + 1, keepdims=True)
    return origin[:size].T + table.reshape(size, size) * problem.target[None, :]
