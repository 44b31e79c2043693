"""Bounds that hold whatever the solver did: every g proves one below, every flow one above."""

from dataclasses import dataclass

import numpy as np

from takifugu._core.numeric import LEAST, Floats, Integers
from takifugu._core.rounding import UNIT, log_ratio_up
from takifugu.errors import UnsoundRequest
from takifugu.finite.translation_exact.network import Network, on_nodes
from takifugu.finite.translation_exact.transport_problem import TransportProblem

SHRINK = 2.0**-46  # how much the closure tightens e^ε, so that rounding cannot loosen it
MARGIN = 2.0**-48  # what is left of that when the result is checked
UP, DOWN = 1 + 8 * UNIT, 1 - 8 * UNIT  # past the rounding of one or two operations


def close(log_g: Floats, allowance: Floats, shape: tuple[int, ...]) -> Floats:
    """``[dataset]``: the largest admissible function that is nowhere above g.

    It is min over D′ of g(D′)·e^{Σ ε_j [D_j ≠ D′_j]}. The exponent is a sum over entries, so one
    entry after the other gives exactly this.
    """
    finite = log_g.copy()
    finite[~np.isfinite(finite)] = np.inf  # where the solver said 0 the neighbours decide
    table = finite.reshape(shape)
    for axis, epsilon in enumerate(allowance):
        table = np.minimum(table, table.min(axis=axis, keepdims=True) + epsilon)
    return table.ravel()


def admissible(g: Floats, allowance: Floats, shape: tuple[int, ...]) -> bool:
    """Whether g(D) ≤ e^{ε_j}·g(D′) for all datasets that differ in entry j alone, in floats."""
    table = g.reshape(shape)
    for axis, epsilon in enumerate(allowance):
        low, high = table.min(axis=axis), table.max(axis=axis)
        if not ((high == low) | (high <= low * (np.exp(epsilon) * (1 - MARGIN)))).all():
            return False
    return bool((g > 0).all())


def witness(log_g: Floats, allowance: Floats, shape: tuple[int, ...]) -> Floats:
    """``[dataset]``: an admissible g, in floats, close to e^{log_g} and scaled to at most 1/4.

    Below 1/4 the complement 1 − g is admissible too: if b ≤ a ≤ e^ε·b and a ≤ 1/4, then
    (1 − b)/(1 − a) ≤ 1 + (a − a·e^{−ε})/(1 − a) ≤ 1 + ε/3 ≤ e^ε. So (g, 1 − g) is a mechanism.
    """
    table = np.exp(log_g - log_g.max() - np.log(4) - SHRINK).reshape(shape)
    for axis, epsilon in enumerate(allowance):
        factor = max(1.0, float(np.exp(epsilon)) * (1 - SHRINK))
        table = np.minimum(table, table.min(axis=axis, keepdims=True) * factor)
    g: Floats = table.ravel()
    if not (admissible(g, allowance, shape) and admissible(1 - g, allowance, shape)):
        raise UnsoundRequest(
            "the worst mechanism found is not differentially private after rounding; no bound is"
            " given. Ask for an ε that is not so small or so uneven",
            field="epsilon",
            reason="rounding",
        )
    return g


def ratio_down(g: Floats, left: Floats, right: Floats, *, error: float) -> float:
    """A lower bound on log E[g | s] / E[g | s′], and at least 0: the reverse of an upper one."""
    return max(0.0, -float(log_ratio_up(right @ g, left @ g, error=error)))


@dataclass(frozen=True, eq=False)
class Routing:
    r"""A flow that was made feasible, and the factor t that it proves.

    Every node passes on part of what it holds; the rest stays, up to ``room``·ν(D). What does
    not fit is spread: from D a share proportional to ν(D′)·e^{−d(D,D′)} goes to each D′, d being
    Σ ε_j over the entries that differ. It arrives with weight in proportion to ν and thus adds
    1/Z(D) = 1/E_ν[e^{−d(D,·)}] per unit to t. So

    .. math:: t = room + \sum_D spread(D) / Z(D).

    Attributes:
        order: ``[node]``: the order in which nodes pass things on; edges go forward in it.
        edges: ``[edge]``: the edges in use, by increasing position of their tails.
        flow: ``[edge]``: what is sent along each of them, before its gain.
        held: ``[node]``: an upper bound on all that arrives at it, weighted by gains.
        room: How much of ν the stays may fill.
        spread: ``[node]``: an upper bound on what is spread from it.
        overlap: ``[node]``: Z, a lower bound. For a line the best Z of its datasets.
        best: ``[node]``: the dataset from which the node's spread starts.
        factor: t, rounded up.
    """

    order: Integers
    edges: Integers
    flow: Floats
    held: Floats
    room: float
    spread: Floats
    overlap: Floats
    best: Integers
    factor: float


def route(net: Network, problem: TransportProblem, log_g: Floats, flow: Floats) -> Routing:
    """Make ``flow`` feasible, node by node in decreasing order of g, and add up what it proves.

    At an optimum flow runs only where g(tail) = e^{loss}·g(head), hence downhill in g: dropping
    every other edge loses only the solver's noise, and no cycle is left. All sums are of
    non-negative numbers and rounded outwards.
    """
    height = on_nodes(net, log_g, problem)
    for first, axis in net.lines:
        count = net.datasets // problem.shape[axis]
        height[first : first + count] += problem.allowance[axis] / 2
    used = np.flatnonzero((height[net.tail] > height[net.head]) & (flow > LEAST))
    order = np.argsort(-height, kind="stable")
    rank = np.empty(net.nodes, dtype=np.int64)
    rank[order] = np.arange(net.nodes)
    used = used[np.argsort(rank[net.tail[used]], kind="stable")]
    sent, head, gain = flow[used].copy(), net.head[used], np.exp(net.loss[used])
    starts = np.searchsorted(rank[net.tail[used]], np.arange(net.nodes + 1))
    low, high = np.zeros(net.nodes), np.zeros(net.nodes)
    low[: net.datasets] = problem.source * (1 - problem.error)
    high[: net.datasets] = problem.source * (1 + problem.error)
    stays = np.zeros(net.nodes)
    for place, node in enumerate(order):
        mine = slice(starts[place], starts[place + 1])
        if mine.start == mine.stop or low[node] == 0:
            sent[mine] = 0.0
            stays[node] = high[node]
            continue
        wanted = float(sent[mine].sum())
        most = low[node] * (1 - 4 * (mine.stop - mine.start + 4) * UNIT)
        if wanted > most or node >= net.datasets:  # a line keeps nothing
            sent[mine] *= most / wanted
            wanted = float(sent[mine].sum())
        stays[node] = high[node] - wanted * (1 - 2 * (mine.stop - mine.start + 4) * UNIT)
        stays[node] = stays[node] * UP + 0.0
        arrives = sent[mine] * gain[mine]
        low[head[mine]] = (low[head[mine]] + arrives * DOWN) * DOWN
        high[head[mine]] = (high[head[mine]] + arrives * UP) * UP
    overlap, best = _overlap(net, problem)
    room, spread = _settle(stays, problem.target, overlap)
    total = room + float((spread / overlap).sum()) * (1 + 2 * (net.nodes + 8) * UNIT)
    factor = total * (1 + 4 * problem.error) * UP
    return Routing(order, used, sent, high, room, spread, overlap, best, factor)


def _overlap(net: Network, problem: TransportProblem) -> tuple[Floats, Integers]:
    """``[node]``: Z(D) = E_ν[e^{−d(D,·)}], rounded down, and where a line's best dataset is."""
    table = problem.target.reshape(problem.shape)
    for axis, epsilon in enumerate(problem.allowance):
        near = float(np.exp(-epsilon))
        table = table * -np.expm1(-epsilon) + near * table.sum(axis=axis, keepdims=True)
    steps = sum(problem.shape) + 8 * len(problem.shape)
    parts = [table.ravel() * (1 - 4 * steps * UNIT) * (1 - problem.error)]
    best = [np.arange(net.datasets, dtype=np.int64)]
    order = np.arange(net.datasets, dtype=np.int64).reshape(problem.shape)
    for _, axis in net.lines:
        members = np.moveaxis(order, axis, -1).reshape(-1, problem.shape[axis])
        choice = np.argmax(parts[0][members], axis=1)
        best.append(members[np.arange(len(members)), choice])
        parts.append(parts[0][best[-1]])
    return np.concatenate(parts), np.concatenate(best)


def _settle(stays: Floats, target: Floats, overlap: Floats) -> tuple[float, Floats]:
    """The room that makes t least, and what has to be spread from every node then.

    t is convex and piecewise linear in the room: lowering it past the point where a dataset is
    just full costs ν(D)/Z(D) there, so go down while those costs stay below 1.
    """
    nu = np.zeros(len(stays))
    nu[: len(target)] = target
    with np.errstate(divide="ignore", invalid="ignore"):
        full = np.where(nu > 0, stays / nu, 0.0)
    order = np.argsort(-full)
    cost = np.cumsum(nu[order] / overlap[order])
    room = float(full[order[min(int(np.searchsorted(cost, 1.0)), len(order) - 1)]])
    spread = np.maximum(stays * UP - room * nu * DOWN, 0.0)
    spread[(nu > 0) & (full <= room)] = 0.0
    return room * UP, spread
