r"""The exact translation: how much all per-entry DP mechanisms together can reveal.

A coupling is mass γ(D, D′) ≥ 0 with rows that sum to P(D|s). It proves, for every admissible g,

.. math:: E[g|s] = \sum γ(D,D') g(D) \le \sum γ(D,D') e^{d(D,D')} g(D') \le t \, E[g|s'],
          \qquad t = \max_{D'} \frac{\sum_D γ(D,D') e^{d(D,D')}}{P(D'|s')},

where d(D, D′) is the sum of ε_j over the entries in which they differ. The flow of a solver, made
feasible, is such a coupling, and its t is the upper bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from takifugu._core.numeric import LEAST, Floats, frozen
from takifugu._core.rounding import UNIT, gamma, log_ratio_up
from takifugu.errors import InvalidWorld, UnsoundRequest
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.translation_exact.transport_problem import (
    Allowance,
    Network,
    TransportProblem,
    allowance_per_entry,
    network,
    on_nodes,
    solve,
)
from takifugu.finite.world import World
from takifugu.priors.secrets import SecretPair
from takifugu.priors.universe import Tables

FIRST = 20.0  # the Σ ε at which climbing starts
STEP = 1.5  # by what ε grows
MAX_REFINEMENT_ROUNDS = 3  # refinements of a solution from itself
ENOUGH = 1e-9  # a gap at which refining stops


@dataclass(frozen=True)
class PairAndPrior:
    """Where the loss is largest: this ordered pair, under this prior."""

    pair: SecretPair
    prior: str


@dataclass(frozen=True, eq=False)
class ExactTranslation:
    """The worst Pufferfish loss E*(ε) over all per-entry ε-DP mechanisms, between two proofs.

    Attributes:
        upper: At least E*(ε): no per-entry ε-DP mechanism leaks more.
        lower: At most E*(ε), and attained: ``mechanism`` leaks at least this much.
        binding: The pair and prior whose upper bound is ``upper``.
        attacked: The pair and prior for which ``mechanism`` leaks ``lower``.
        epsilon: ``[entry]``: the total ε spent on every entry.
        uppers: ``[pair, prior]``: the same per pair and prior; −∞ where a prior leaves a pair out.
        lowers: ``[pair, prior]``: the same from below.
        mechanism: A per-entry ε-DP mechanism with the outputs "yes" and "no"; seeing "yes" moves
            the odds of ``attacked`` by ``lower``.
    """

    upper: float
    lower: float
    binding: PairAndPrior
    attacked: PairAndPrior
    epsilon: Floats
    uppers: Floats
    lowers: Floats
    mechanism: FiniteMechanism

    @property
    def gap(self) -> float:
        """How far the two bounds are apart."""
        return self.upper - self.lower


@dataclass(frozen=True, eq=False)
class _Solved:
    """One pair and prior, solved: the two bounds, and the function that proves the lower one."""

    upper: float
    lower: float
    g: Floats


def translation_exact(
    world: World,
    epsilon: Allowance,
    *,
    pairs: Sequence[SecretPair] | None = None,
    tolerance: float = 1e-6,
) -> ExactTranslation:
    r"""The largest Pufferfish loss over **all** per-entry ε-DP mechanisms, certified.

    For a fixed output a per-entry ε-DP mechanism is a function g > 0 on datasets with
    g(D) ≤ e^{ε_j} g(D′) whenever D and D′ differ in entry j alone, so the worst loss is

    .. math:: E^*(ε) = \max_g \log \frac{E[g|s]}{E[g|s']},

    a linear-fractional programme. It is solved by HiGHS, and neither bound relies on the solver:
    the lower one is the loss of a mechanism that is checked to be ε-DP, the upper one comes from
    a flow that is made feasible first, which is a coupling.

    Args:
        world: Tables, a list of priors, and ordered secret pairs.
        epsilon: The total ε spent on an entry: one number, or one for each entry, by name or in
            order. 0 means that no mechanism uses the entry.
        pairs: Only these pairs of the world; all of them if left out.
        tolerance: The largest gap allowed between the bounds; a wider one is an error.
    """
    universe = world.universe
    if not isinstance(universe, Tables):
        raise InvalidWorld(
            "world",
            given="has datasets that are not tables",
            needed="be over `Tables`; per-entry privacy is about entries",
        )
    allowance = allowance_per_entry(universe, epsilon)
    if not tolerance > 0:
        raise UnsoundRequest(
            f"`tolerance` is {tolerance:g}; it must be positive", field="tolerance", given=tolerance
        )
    chosen = world.pairs if pairs is None else tuple(pairs)
    chosen_world = World(universe, world.priors, chosen, world.unsupported)
    shape = (len(chosen_world.pairs), len(chosen_world.listed_priors))
    uppers, lowers = np.full(shape, -np.inf), np.full(shape, -np.inf)
    top: dict[str, tuple[_Solved, PairAndPrior]] = {}
    for p, pair in enumerate(chosen_world.pairs):
        for q, prior in enumerate(chosen_world.listed_priors):
            if chosen_world.secret_probabilities[q, list(chosen_world.sides[p])].min() == 0:
                continue  # the world was built with unsupported="skip"
            solved = _solve(chosen_world, q, pair, allowance, universe.shape, tolerance)
            uppers[p, q], lowers[p, q] = solved.upper, solved.lower
            here = PairAndPrior(pair, prior.name)
            if "upper" not in top or solved.upper > top["upper"][0].upper:
                top["upper"] = solved, here
            if "lower" not in top or solved.lower > top["lower"][0].lower:
                top["lower"] = solved, here
    if not top:
        raise InvalidWorld(
            "world",
            given="has no pair of which some prior allows both sides",
            needed="have at least one such pair",
        )
    (above, binding), (below, attacked) = top["upper"], top["lower"]
    mechanism = FiniteMechanism(
        universe, np.stack([below.g, 1 - below.g], axis=1), ("yes", "no"), "worst mechanism"
    )
    return ExactTranslation(
        upper=above.upper,
        lower=below.lower,
        binding=binding,
        attacked=attacked,
        epsilon=allowance,
        uppers=frozen(uppers),
        lowers=frozen(lowers),
        mechanism=mechanism,
    )


def _solve(
    world: World,
    prior: int,
    pair: SecretPair,
    allowance: Floats,
    shape: tuple[int, ...],
    tolerance: float,
) -> _Solved:
    """Both bounds for one pair and prior."""
    mu, nu = world.conditional(prior, pair.left), world.conditional(prior, pair.right)
    problem = TransportProblem.between(mu, nu, allowance, shape)
    error = 4 * gamma(2 * len(world.universe))
    if not problem.shape:  # every entry is settled: all couplings pay the same
        g = witness(problem.lift(np.zeros(1)), allowance, shape)
        upper = _raised(problem.settled, len(shape))
        lower = min(upper, ratio_down(g, mu, nu, error=error))
        return _Solved(upper, lower, g)
    net = network(problem)
    upper, lower, g = np.inf, -1.0, np.ones(0)
    for climbing in (False, True):
        log_g = _climb(net, problem) if climbing else np.zeros(net.datasets)
        for _ in range(MAX_REFINEMENT_ROUNDS):
            solved = solve(net, problem, log_g)
            if solved is None:
                break
            log_g = close(solved[0], problem.allowance, problem.shape)
            factor = route(net, problem, log_g, solved[1])
            upper = min(upper, _raised(problem.settled + float(np.log(factor)), len(shape)))
            worst = witness(problem.lift(log_g), allowance, shape)
            below = ratio_down(worst, mu, nu, error=error)
            if below > lower:
                lower, g = below, worst
            if upper - lower <= min(tolerance, ENOUGH):
                break
        if upper - lower <= tolerance:
            break
    if not upper - lower <= tolerance:
        raise UnsoundRequest(
            f"the exact translation for {pair} ends with bounds {upper - lower:.3g} apart, and"
            f" `tolerance` asks for {tolerance:g}; nothing uncertified is returned. Ask for a"
            " smaller ε (Σ ε over the entries up to 30 works as a rule) or a wider tolerance",
            field="tolerance",
            given=tolerance,
            needed=upper - lower,
        )
    return _Solved(upper, min(lower, upper), g)


def _raised(loss: float, entries: int) -> float:
    """An upper bound that is past the rounding of a logarithm and a sum over the entries."""
    return max(0.0, loss * (1 + 4 * (4 + entries) * UNIT))


def _climb(net: Network, problem: TransportProblem) -> Floats:
    """A better guess at log g, for large ε: solve for a smaller one and scale up, step by step.

    If g is admissible for ε then g^c is for c·ε, so each solution is a fair unit for the next.
    """
    log_g = np.zeros(net.datasets)
    share = FIRST / float(problem.allowance.sum())
    while share < 1:
        solved = solve(net, problem, log_g, share=share)
        if solved is not None:
            log_g = close(solved[0], share * problem.allowance, problem.shape)
        log_g = log_g * min(STEP, 1 / share)
        share *= STEP
    return log_g


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


def route(net: Network, problem: TransportProblem, log_g: Floats, flow: Floats) -> float:
    r"""Make ``flow`` feasible, node by node in decreasing order of g: the factor t that it proves.

    At an optimum flow runs only where g(tail) = e^{loss}·g(head), hence downhill in g: dropping
    every other edge loses only the solver's noise, and no cycle is left. All sums are of
    non-negative numbers and rounded outwards.

    Every node passes on part of what it holds; the rest stays, up to ``room``·ν(D). What does
    not fit is spread: from D a share proportional to ν(D′)·e^{−d(D,D′)} goes to each D′, d being
    Σ ε_j over the entries that differ. It arrives with weight in proportion to ν and thus adds
    1/Z(D) = 1/E_ν[e^{−d(D,·)}] per unit to t. So

    .. math:: t = room + \sum_D spread(D) / Z(D).
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
    overlap = _overlap(net, problem)
    room, spread = _settle(stays, problem.target, overlap)
    total = room + float((spread / overlap).sum()) * (1 + 2 * (net.nodes + 8) * UNIT)
    return total * (1 + 4 * problem.error) * UP


def _overlap(net: Network, problem: TransportProblem) -> Floats:
    """``[node]``: Z(D) = E_ν[e^{−d(D,·)}], rounded down; for a line the best of its datasets."""
    table = problem.target.reshape(problem.shape)
    for axis, epsilon in enumerate(problem.allowance):
        near = float(np.exp(-epsilon))
        table = table * -np.expm1(-epsilon) + near * table.sum(axis=axis, keepdims=True)
    steps = sum(problem.shape) + 8 * len(problem.shape)
    parts = [table.ravel() * (1 - 4 * steps * UNIT) * (1 - problem.error)]
    for _, axis in net.lines:
        members = np.moveaxis(parts[0].reshape(problem.shape), axis, -1)
        parts.append(members.reshape(-1, problem.shape[axis]).max(axis=1))
    return np.concatenate(parts)


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
