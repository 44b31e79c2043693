"""The transport problem behind an exact translation, its sparse network, and the linear programme.

One pair, one prior, one allowance. Nothing that the solver returns is trusted: it is a guess at the
best function g and the best flow, which `exact_translation` turns into bounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers, frozen
from takifugu._core.rounding import gamma
from takifugu.errors import InvalidWorld, TooLarge, UnsoundRequest
from takifugu.priors.universe import Name, Tables, numbers_by_entry

MOST_LOSS = 300.0  # e^300 · 2^500 is still a float64; a larger total of ε is refused

Allowance = float | Mapping[Name, float] | Sequence[float] | Floats


def allowance_per_entry(universe: Tables, epsilon: Allowance) -> Floats:
    """``[entry]``: the total ε spent on every entry, from one number, a mapping or a list."""
    for name in epsilon if isinstance(epsilon, Mapping) else ():
        universe.entry(name)
    given = numbers_by_entry(universe.entries, epsilon, "epsilon", InvalidWorld).tolist()
    for name, value in zip(universe.entries, given, strict=True):
        if not 0 <= value < np.inf:
            raise UnsoundRequest(
                f"`epsilon` of entry {name!r} is {value:g}; it must be a finite number, 0 or more:"
                " a mechanism without a finite ε may reveal the entry outright",
                field="epsilon",
                given=value,
            )
    if sum(given) > MOST_LOSS:
        raise TooLarge(
            f"`epsilon` adds up to {sum(given):g} over the entries; at most {MOST_LOSS:g} can be"
            " certified in double precision. Ask for a smaller ε: the loss never exceeds the sum",
            field="epsilon",
            size=sum(given),
            limit=MOST_LOSS,
        )
    return frozen(given)


@dataclass(frozen=True, eq=False)
class TransportProblem:
    r"""Carry μ = P(·|s) to ν = P(·|s′), every changed entry j at a gain of e^{ε_j}.

    Entries that cannot matter are left out, which changes nothing but the size:

    * ε_j = 0: no admissible g depends on entry j, so only the laws of the others count.
    * μ has one value x of entry j only, and ν one value y: every coupling pays e^{ε_j [x≠y]}
      for it, whatever it does with the others. Secrets about one entry are of this kind.

    Attributes:
        source: ``[dataset]``: μ over the tables that are left.
        target: ``[dataset]``: ν over the same.
        allowance: ``[entry]``: ε_j > 0 of the entries that are left.
        shape: How many values each of them has.
        whole_shape: The same for all entries of the world.
        whole_allowance: ``[entry of the world]``: ε_j.
        kept: ``[entry of the world]``: whether it is left.
        paid: ``[entry of the world]``: x where the entry is settled at x ≠ y, else −1.
    """

    source: Floats
    target: Floats
    allowance: Floats
    shape: tuple[int, ...]
    whole_shape: tuple[int, ...]
    whole_allowance: Floats
    kept: Booleans
    paid: Integers

    @classmethod
    def between(
        cls, source: Floats, target: Floats, allowance: Floats, shape: tuple[int, ...]
    ) -> "TransportProblem":
        """The problem for two laws over all tables of ``shape``, with settled entries left out."""
        mu, nu = source.reshape(shape), target.reshape(shape)
        kept = np.ones(len(shape), dtype=bool)
        paid = np.full(len(shape), -1, dtype=np.int64)
        for j in range(len(shape)):
            others = tuple(k for k in range(len(shape)) if k != j)
            left, right = (np.flatnonzero(law.max(axis=others) > 0) for law in (mu, nu))
            if allowance[j] == 0:
                kept[j] = False
            elif len(left) == 1 and len(right) == 1:
                kept[j] = False
                paid[j] = left[0] if left[0] != right[0] else -1
        gone = tuple(int(j) for j in np.flatnonzero(~kept))
        return cls(
            source=frozen(mu.sum(axis=gone).ravel()),
            target=frozen(nu.sum(axis=gone).ravel()),
            allowance=frozen(allowance[kept]),
            shape=tuple(n for n, keep in zip(shape, kept, strict=True) if keep),
            whole_shape=shape,
            whole_allowance=allowance,
            kept=kept,
            paid=paid,
        )

    @property
    def settled(self) -> float:
        """Σ ε_j over the settled entries: what every coupling pays anyway."""
        return float(self.whole_allowance[self.paid >= 0].sum())

    @property
    def error(self) -> float:
        """How far, relatively, rounding may have moved a number of ``source`` or ``target``."""
        return 2 * gamma(2 * prod(self.whole_shape))

    def lift(self, log_g: Floats) -> Floats:
        """``[dataset of the world]``: log g with the left-out entries put back.

        A settled entry multiplies g by e^{ε_j} where it has the value x, and an entry with
        ε_j = 0 changes nothing: a product of admissible factors.
        """
        sizes = [n if keep else 1 for n, keep in zip(self.whole_shape, self.kept, strict=True)]
        whole = np.broadcast_to(log_g.reshape(sizes), self.whole_shape)
        for j in np.flatnonzero(self.paid >= 0):
            factor = np.zeros(self.whole_shape[j])
            factor[self.paid[j]] = self.whole_allowance[j]
            sizes = [-1 if k == j else 1 for k in range(len(self.whole_shape))]
            whole = whole + factor.reshape(sizes)
        return np.ascontiguousarray(whole).ravel()


MAX_LINE_WITHOUT_NODE = 3  # a line with more values than this gets a node of its own
SHARP = 2.0**20  # HiGHS drops coefficients below 1e-9; this keeps those above 1e-15
MOST_EDGES = 2_000_000  # beyond this the solver does not return in reasonable time


@dataclass(frozen=True, eq=False)
class Network:
    """Datasets, and edges that change one entry; on an edge g(tail) ≤ e^{loss}·g(head).

    The first nodes are the datasets. A line (the m datasets that differ in one entry alone) has
    m(m − 1) such edges. For m > 3 it is cheaper to send them through a node whose g is the least
    on the line: D → line at loss ε_j, line → D′ at loss 0, that is 2m edges.

    Attributes:
        datasets: How many nodes are datasets.
        nodes: How many nodes there are in all.
        tail: ``[edge]``: where it starts.
        head: ``[edge]``: where it ends.
        loss: ``[edge]``: the logarithm of its gain.
        lines: For every entry that has line nodes: (first node, the entry's axis).
    """

    datasets: int
    nodes: int
    tail: Integers
    head: Integers
    loss: Floats
    lines: tuple[tuple[int, int], ...]


def network(problem: TransportProblem) -> Network:
    """Write out the nodes and edges of ``problem``."""
    size = prod(problem.shape)
    order = np.arange(size, dtype=np.int64).reshape(problem.shape)
    tails, heads, losses, lines = [], [], [], []
    nodes = size
    for axis, (values, epsilon) in enumerate(zip(problem.shape, problem.allowance, strict=True)):
        members = np.moveaxis(order, axis, -1).reshape(-1, values)  # [line, value]
        if values > MAX_LINE_WITHOUT_NODE:
            line = np.repeat(nodes + np.arange(len(members)), values)
            tails += [members.ravel(), line]
            heads += [line, members.ravel()]
            losses += [np.full(members.size, epsilon), np.zeros(members.size)]
            lines.append((nodes, axis))
            nodes += len(members)
        else:
            a, b = np.nonzero(~np.eye(values, dtype=bool))
            tails.append(members[:, a].ravel())
            heads.append(members[:, b].ravel())
            losses.append(np.full(tails[-1].size, epsilon))
    tail, head, loss = np.concatenate(tails), np.concatenate(heads), np.concatenate(losses)
    if len(tail) > MOST_EDGES:
        raise TooLarge(
            f"the exact translation of this world needs {len(tail):,} constraints and at most"
            f" {MOST_EDGES:,} are tried; leave out entries, or use a bound for the prior's family",
            size=len(tail),
            limit=MOST_EDGES,
        )
    return Network(size, nodes, tail, head, loss, tuple(lines))


def on_nodes(net: Network, log_g: Floats, problem: TransportProblem) -> Floats:
    """``[node]``: log g on the datasets, and its least value on every line that has a node."""
    parts = [log_g]
    for _, axis in net.lines:
        parts.append(log_g.reshape(problem.shape).min(axis=axis).ravel())
    return np.concatenate(parts)


def solve(
    net: Network, problem: TransportProblem, log_guess: Floats, *, share: float = 1.0
) -> tuple[Floats, Floats] | None:
    r"""Solve the linear programme: ``[dataset]`` log g and ``[edge]`` flow, or None if it fails.

    The quotient is made linear by fixing its denominator (Charnes & Cooper, 1962), and the
    variables are measured in units of a guess g₀, g = g₀·h, so that the numbers the solver sees
    stay near 1 however large e^{Σε} is:

    .. math:: \max \sum_D \mu(D) g_0(D) h(D) \quad\text{s.t.}\quad \sum_D \nu(D) g_0(D) h(D) = 1,
              \quad h(\text{tail}) \le e^{loss}\, \tfrac{g_0(head)}{g_0(tail)}\, h(\text{head}).

    The dual variable of an edge, over g₀ at its tail, is the flow on it. ``share`` multiplies
    every ε.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    guess = on_nodes(net, log_guess, problem)
    guess = guess - _log_mean(problem.target, guess[: net.datasets])  # now E[g₀ | s′] = 1
    units = np.exp(guess[: net.datasets])
    objective, denominator = np.zeros(net.nodes), np.zeros(net.nodes)
    objective[: net.datasets] = problem.source * units
    denominator[: net.datasets] = problem.target * units
    edges = np.arange(len(net.tail))
    slack = share * net.loss + guess[net.head] - guess[net.tail]  # 0 where the guess is tight
    row = np.maximum(slack, 0.0)  # a row is divided by its larger coefficient
    matrix = csr_array(
        (
            np.concatenate([np.exp(-row), -np.exp(slack - row)]),
            (np.concatenate([edges, edges]), np.concatenate([net.tail, net.head])),
        ),
        shape=(len(edges), net.nodes),
    )
    scale = objective.max()
    for method in ("highs-ds", "highs-ipm"):
        answer: Any = linprog(
            -objective / scale,
            A_ub=matrix,
            b_ub=np.zeros(len(edges)),
            A_eq=csr_array(denominator[None, :] * SHARP),
            b_eq=[SHARP],
            bounds=(0, None),
            method=method,
            options={
                "primal_feasibility_tolerance": 1e-10,
                "dual_feasibility_tolerance": 1e-10,
                "maxiter": 1000 + 20 * len(edges),  # a solver that runs in circles gives up
            },
        )
        if answer.status == 0:
            h = np.maximum(answer.x[: net.datasets], 0.0)
            with np.errstate(divide="ignore"):
                log_g = np.log(h) + guess[: net.datasets]
            flow = np.maximum(-answer.ineqlin.marginals, 0.0) * scale
            return log_g, flow * np.exp(-row - guess[net.tail])
    return None


def _log_mean(weights: Floats, log_values: Floats) -> float:
    """Compute log Σ w·e^v without overflow."""
    top = float(log_values.max())
    return top + float(np.log(weights @ np.exp(log_values - top)))
