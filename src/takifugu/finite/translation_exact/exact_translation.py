"""The exact translation: how much all per-entry DP mechanisms together can reveal.

The proof of an upper bound can be had as a table: how to turn one side of a secret into the other
(`Coupling`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from takifugu._core.numeric import Floats, Integers, frozen
from takifugu._core.rounding import UNIT, gamma
from takifugu.errors import InvalidWorld, TooLarge, UnsoundRequest
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.translation_exact.certificates import (
    Routing,
    close,
    ratio_down,
    route,
    witness,
)
from takifugu.finite.translation_exact.network import Network, network, solve
from takifugu.finite.translation_exact.transport_problem import (
    Allowance,
    TransportProblem,
    allowance_per_entry,
)
from takifugu.finite.world import World
from takifugu.priors.secrets import SecretPair
from takifugu.priors.universe import Tables

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
        upper: At least E*(ε): no per-entry ε-DP mechanism leaks more, proved by ``coupling``.
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
    _proof: "_Solved" = field(repr=False)

    @property
    def gap(self) -> float:
        """How far the two bounds are apart."""
        return self.upper - self.lower

    def coupling(self) -> Coupling:
        """The proof of ``upper``, written out for the binding pair and prior."""
        proof = self._proof
        return coupling(proof.problem, proof.net, proof.routing, proof.mu, proof.nu)

    def approximate(self, delta: float) -> tuple[float, float]:
        r"""What per-entry (ε, δ)-DP gives: (ε, δ) of Pufferfish privacy, both rounded up.

        Let P(M(D) ∈ S) = g(D) ≤ e^{ε_j} g(D′) + δ for neighbours in entry j, and let D, D′ differ
        in entries 1 … d. Step by step, with S_k = ε_1 + … + ε_k,

        .. math:: g(D) \le e^{S_d} g(D') + \delta \sum_k e^{S_{k-1}}, \qquad
                  e^{S_{k-1}} = \frac{e^{S_k} - e^{S_{k-1}}}{e^{\varepsilon_k} - 1},

        so the sum is at most (e^{S_d} − 1)/(e^{ε_min} − 1). Average over a coupling that proves
        t: E[g|s] ≤ t·E[g|s′] + δ·(t − 1)/(e^{ε_min} − 1), since Σ γ e^{d} ≤ t.
        """
        if not 0 <= delta <= 1:
            raise UnsoundRequest(
                f"`delta` is {delta:g}; it must be a probability, from 0 to 1",
                field="delta",
                given=delta,
            )
        least = float(self.epsilon.min())
        if delta == 0:
            return self.upper, 0.0
        if least == 0:
            raise UnsoundRequest(
                "an entry has ε = 0 and `delta` is positive; the proof divides by e^ε − 1. Give"
                " every entry a positive ε",
                field="epsilon",
                given=0.0,
            )
        spent = delta * float(np.expm1(self.upper) / np.expm1(least)) * (1 + 32 * UNIT)
        return self.upper, min(1.0, spent)


@dataclass(frozen=True, eq=False)
class _Solved:
    """One pair and prior, solved: the two bounds and what proves them."""

    upper: float
    lower: float
    g: Floats
    mu: Floats
    nu: Floats
    problem: TransportProblem
    net: Network | None
    routing: Routing | None


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
    a flow that is made feasible first (see `Coupling` for why that is a proof).

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
            left, right = chosen_world.sides[p]
            if (
                min(
                    chosen_world.secret_probabilities[q, left],
                    chosen_world.secret_probabilities[q, right],
                )
                == 0
            ):
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
        _proof=above,
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
        return _Solved(upper, lower, g, mu, nu, problem, None, None)
    net = network(problem)
    upper, lower, routing, g = np.inf, -1.0, None, np.ones(0)
    for climbing in (False, True):
        log_g = _climb(net, problem) if climbing else np.zeros(net.datasets)
        for _ in range(MAX_REFINEMENT_ROUNDS):
            solved = solve(net, problem, log_g)
            if solved is None:
                break
            log_g = close(solved[0], problem.allowance, problem.shape)
            routed = route(net, problem, log_g, solved[1])
            above = _raised(problem.settled + float(np.log(routed.factor)), len(shape))
            if above < upper:
                upper, routing = above, routed
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
    return _Solved(upper, min(lower, upper), g, mu, nu, problem, net, routing)


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
