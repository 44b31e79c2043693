r"""The necessary condition for composition, as linear programs with certificates.

Theorem "NfC" of the paper (Section 5). If mechanisms that claim ε compose linearly, then for
every ordered pair (s, s′) and dataset D* with s there is a convex combination β over the
datasets with s′, the same for all mechanisms and outputs, such that

.. math:: \log P(ω|D^*) \le ε + \sum_ℓ β_ℓ \log P(ω|D_ℓ) \quad\text{for every output } ω.

The smallest such ε is a linear program in β; its dual is a mixture α of outputs,

.. math:: \min_β \max_ω \sum_ℓ β_ℓ r_{ωℓ} = \max_α \min_ℓ \sum_ω α_ω r_{ωℓ},
          \qquad r_{ωℓ} = \log P(ω|D^*) - \log P(ω|D_ℓ).

Zeros: an output with P(ω|D*) = 0 asks for nothing. A dataset with P(ω|D_ℓ) = 0 for a kept ω
cannot carry weight; seeing that ω once rules it out. If none is left, ε is infinite.

The solver is not trusted: ``upper`` is recomputed from β and rounded up, ``lower`` from α and
rounded down.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Booleans, Floats, Integers, frozen
from takifugu._core.rounding import gamma
from takifugu.errors import InvalidMechanism, InvalidWorld, TooLarge, UnsoundRequest
from takifugu.finite.leakage import same_world
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.world import World
from takifugu.priors.secrets import SecretPair

MOST_REQUIREMENTS = 20_000  # one linear program each, at one or two milliseconds


@dataclass(frozen=True)
class MechanismOutput:
    """One output of one of several mechanisms; ``mechanism`` is its place in their list."""

    mechanism: int
    name: str
    output: Hashable

    def __str__(self) -> str:
        return f"{self.name}#{self.mechanism}={self.output}"


@dataclass(frozen=True, eq=False)
class OutputTable:
    """Every output of every mechanism; the paper's likelihood vectors, one per row.

    Attributes:
        labels: What each row is.
        probability: ``[output, dataset]``: P(ω | D).
        log: ``[output, dataset]``: log P(ω | D), −∞ where it is 0.
    """

    labels: tuple[MechanismOutput, ...]
    probability: Floats
    log: Floats

    @property
    def mechanism(self) -> Integers:
        """``[output]``: the place of the mechanism it comes from."""
        return np.array([output.mechanism for output in self.labels], dtype=np.int64)

    def position(self, output: MechanismOutput) -> int:
        """The row of ``output``; an error if no mechanism gives it."""
        if output not in self.labels:
            raise InvalidMechanism(
                "output",
                given=f"{output} is not an output of the mechanisms",
                needed="be one of `OutputTable.labels`",
            )
        return self.labels.index(output)


@dataclass(frozen=True)
class Requirement:
    """A dataset with the left secret that must hide among datasets with the right one.

    Attributes:
        pair: The ordered secret pair (s, s′).
        dataset: The position of D*, a dataset with s that some prior allows.
        among: The positions of the datasets with s′ that the same prior allows.
        priors: The names of the priors that require exactly this.
    """

    pair: SecretPair
    dataset: int
    among: tuple[int, ...]
    priors: tuple[str, ...]


def output_table(world: World, mechanisms: Sequence[FiniteMechanism]) -> OutputTable:
    """All outputs of ``mechanisms``, which have to be over the datasets of ``world``."""
    for mechanism in mechanisms:
        same_world(world, mechanism)
    if not mechanisms:
        raise InvalidMechanism("mechanisms", given="is empty", needed="hold at least one mechanism")
    outputs = tuple(
        MechanismOutput(place, mechanism.name, output)
        for place, mechanism in enumerate(mechanisms)
        for output in mechanism.outputs
    )
    probability = frozen(np.concatenate([mechanism.likelihood.T for mechanism in mechanisms]))
    with np.errstate(divide="ignore"):
        return OutputTable(outputs, probability, frozen(np.log(probability)))


def supports(world: World, pair: SecretPair, prior: int) -> tuple[Integers, Integers]:
    """The datasets with either secret that a prior allows; both empty where it leaves one out."""
    possible = world.weights[prior] > 0
    left = np.flatnonzero(world.mask(pair.left) & possible)
    right = np.flatnonzero(world.mask(pair.right) & possible)
    if not left.size or not right.size:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing
    return left, right


def requirements(world: World) -> tuple[Requirement, ...]:
    """Every (pair, dataset, support) that the necessary condition covers, each once.

    A dataset of probability 0 under a prior does not count, neither as D* nor among the D_ℓ: in
    the proof of the theorem both maxima run over datasets of positive weight.
    """
    required: dict[tuple[int, int, tuple[int, ...]], list[str]] = {}
    for p, pair in enumerate(world.pairs):
        for t, prior in enumerate(world.listed_priors):
            left, right = supports(world, pair, t)
            among = tuple(int(i) for i in right)
            for dataset in left:
                required.setdefault((p, int(dataset), among), []).append(prior.name)
    if not required:
        raise InvalidWorld(
            "priors",
            given="leave every secret pair without support",
            needed="give both sides of some pair a positive probability",
        )
    if len(required) > MOST_REQUIREMENTS:
        raise TooLarge(
            f"the necessary condition is {len(required):,} linear programs here and at most"
            f" {MOST_REQUIREMENTS:,} are solved; use fewer pairs or a smaller world",
            size=len(required),
            limit=MOST_REQUIREMENTS,
        )
    return tuple(
        Requirement(world.pairs[p], dataset, among, tuple(names))
        for (p, dataset, among), names in required.items()
    )


# of HiGHS
SOLVER_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
LEAST_WEIGHT = 1e-9  # a smaller weight is the solver's rounding, and left out of a certificate


@dataclass(frozen=True, eq=False)
class Certificate:
    """The answer to one `Requirement`, with the proof of either side.

    Attributes:
        requirement: Which dataset must hide among which.
        upper: An upper bound on the least ε (or excess over the claims), proven by ``beta``.
        lower: A lower bound on it, proven by ``alpha`` and ``once``.
        beta: ``[dataset]``: a convex combination; all 0 if no dataset may carry weight.
        alpha: ``[output]``: the mixture of outputs whose repetition leaks ``lower`` a run in the
            long run; all 0 if ``once`` alone reveals everything.
        once: Outputs to be seen once each: they rule out the datasets that cannot carry weight.
    """

    requirement: Requirement
    upper: float
    lower: float
    beta: Floats
    alpha: Floats
    once: tuple[MechanismOutput, ...]

    @property
    def gap(self) -> float:
        """How far the two bounds are apart; 0 if both are infinite."""
        return 0.0 if self.upper == self.lower else self.upper - self.lower


@dataclass(frozen=True, eq=False)
class Condition:
    """The necessary condition of a world and its mechanisms.

    Attributes:
        outputs: All outputs, in the order of every ``alpha``.
        certificates: One for each pair, dataset D* and support.
    """

    outputs: OutputTable
    certificates: tuple[Certificate, ...]

    @property
    def upper(self) -> float:
        """Every requirement is met with this ε (or excess over the claims)."""
        return max(c.upper for c in self.certificates)

    @property
    def lower(self) -> float:
        """Some requirement is met with no less than this: linear composition below it fails."""
        return max(c.lower for c in self.certificates)

    @property
    def worst(self) -> Certificate:
        """The requirement that asks for most, by its lower bound."""
        return max(self.certificates, key=lambda c: c.lower)


def necessary_condition(world: World, mechanisms: Sequence[FiniteMechanism]) -> Condition:
    """The least ε at which ``mechanisms`` pass the theorem, for every requirement of ``world``.

    It is never negative: the mixture α = P(·|D*) of one mechanism gives a Kullback-Leibler
    divergence for every D_ℓ.
    """
    outputs = output_table(world, mechanisms)
    return _solve_all(world, outputs, np.zeros(len(outputs.labels)))


def condition_on_claims(
    world: World, mechanisms: Sequence[FiniteMechanism], claims: Sequence[float]
) -> Condition:
    r"""How far ``mechanisms`` miss the condition when the i-th claims to cost ``claims[i]`` a run.

    The theorem with a claim per mechanism: the least t with
    :math:`\log P(ω|D^*) \le ε_{M(ω)} + t + \sum_ℓ β_ℓ \log P(ω|D_ℓ)`. The proof is the paper's,
    with :math:`\sum_i c_i ε_i` for :math:`ε \sum_i c_i`. If t > 0 the losses cannot add up to
    the claims; if t ≤ 0 the condition is passed.
    """
    outputs = output_table(world, mechanisms)
    return _solve_all(world, outputs, claims_by_output(outputs, mechanisms, claims))


def claims_by_output(
    outputs: OutputTable, mechanisms: Sequence[FiniteMechanism], claims: Sequence[float]
) -> Floats:
    """``[output]``: what the mechanism it comes from claims to cost."""
    if len(claims) != len(mechanisms) or not all(0 <= claim < np.inf for claim in claims):
        raise InvalidMechanism(
            "claims",
            given=f"are {list(claims)}",
            needed=f"be {len(mechanisms)} finite numbers, 0 or more, one for each mechanism",
        )
    return np.asarray(claims, dtype=np.float64)[outputs.mechanism]


def constraint_values(probability: ArrayLike, dataset: int, beta: Floats) -> Floats:
    """``[output]``: log P(ω|D*) − Σ β_ℓ log P(ω|D_ℓ), rounded up.

    ``probability`` is ``[output, dataset]``. −∞ where P(ω|D*) = 0, and +∞ where it is not and a
    dataset that carries weight has probability 0.
    ``beta`` is read as weights in proportion, so its own sum may be off 1 by rounding.
    """
    table = np.asarray(probability, dtype=np.float64)
    carried = np.flatnonzero(beta > 0)
    weight = beta[carried] / beta[carried].sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        own, other = np.log(table[..., dataset]), np.log(table[..., carried])
        value = own - other @ weight
        value = value + gamma(len(carried) + 16) * (np.abs(own) + np.abs(other) @ weight)
    missing = (table[..., carried] == 0).any(axis=-1)
    result: Floats = np.where(table[..., dataset] == 0, -np.inf, np.where(missing, np.inf, value))
    return result


def proven_by_beta(outputs: OutputTable, dataset: int, beta: Floats, claims: Floats) -> float:
    """The largest constraint value over all outputs, less the claims; rounded up."""
    if not (beta > 0).any():
        return np.inf
    kept = outputs.probability[:, dataset] > 0
    value, claim = constraint_values(outputs.probability[kept], dataset, beta), claims[kept]
    return float(np.max(value - claim + gamma(8) * (np.abs(value) + claim)))


def proven_by_alpha(
    outputs: OutputTable,
    requirement: Requirement,
    alpha: Floats,
    once: Sequence[int],
    claims: Floats,
) -> float:
    """The least Σ α_ω (r_ωℓ − claim_ω) over the D_ℓ that no seen output rules out; rounded down.

    It bounds every β from below: β is 0 where a seen output is impossible, and
    max_ω Σ_ℓ β_ℓ r_ωℓ ≥ Σ_ω α_ω Σ_ℓ β_ℓ r_ωℓ ≥ min_ℓ Σ_ω α_ω r_ωℓ.
    """
    seen = np.flatnonzero(alpha > 0)
    among = np.array(requirement.among)
    shown = np.union1d(seen, np.asarray(once, dtype=np.int64)).astype(np.int64)
    if (outputs.probability[shown, requirement.dataset] == 0).any():
        return -np.inf  # such an output never comes from D*
    alive = among[(outputs.probability[np.ix_(shown, among)] > 0).all(axis=0)]
    if not alive.size:
        return np.inf
    if not seen.size:
        return -np.inf
    weight = alpha[seen] / alpha[seen].sum()
    own, other = outputs.log[seen, requirement.dataset], outputs.log[np.ix_(seen, alive)]
    value = weight @ (own[:, None] - other - claims[seen, None])
    size = weight @ (np.abs(own)[:, None] + np.abs(other) + claims[seen, None])
    return float(np.min(value - gamma(len(seen) + 16) * size))


def dp_costs(world: World, mechanisms: Sequence[FiniteMechanism]) -> Floats:
    """``[D, D′]``: the least ε with P(ω|D) ≤ e^ε P(ω|D′) for all outputs, rounded up."""
    outputs = output_table(world, mechanisms)
    n = len(world.universe)
    costs = np.empty((n, n))
    with np.errstate(invalid="ignore"):
        for d in range(n):
            kept = outputs.log[outputs.probability[:, d] > 0]  # [output, dataset]
            slack = gamma(16) * (np.abs(kept[:, [d]]) + np.abs(kept))
            costs[d] = (kept[:, [d]] - kept + slack).max(axis=0)
    np.fill_diagonal(costs, 0.0)
    return frozen(costs)


def dp_epsilon(world: World, mechanisms: Sequence[FiniteMechanism]) -> float:
    """The least ε at which every dataset hides behind a single other one, rounded up.

    That is a certificate β with one non-zero entry, P(ω|D*) ≤ e^ε P(ω|D_ℓ): in the style of
    differential privacy. It may cost more than the best β, and never costs less.
    """
    cost = dp_costs(world, mechanisms)
    return max(float(cost[r.dataset, list(r.among)].min()) for r in requirements(world))


def _solve_all(world: World, outputs: OutputTable, claims: Floats) -> Condition:
    return Condition(outputs, tuple(_solve(outputs, r, claims) for r in requirements(world)))


def _solve(outputs: OutputTable, requirement: Requirement, claims: Floats) -> Certificate:
    kept = np.flatnonzero(outputs.probability[:, requirement.dataset] > 0)
    among = np.array(requirement.among)
    impossible = outputs.probability[np.ix_(kept, among)] == 0  # [output, dataset]
    once = tuple(int(kept[i]) for i in _rule_out(impossible))
    carriers = among[~impossible.any(axis=0)]
    beta, alpha = np.zeros(outputs.probability.shape[1]), np.zeros(len(outputs.labels))
    if carriers.size:
        ratio = outputs.log[kept, requirement.dataset, None] - outputs.log[np.ix_(kept, carriers)]
        beta[carriers], alpha[kept] = _game(ratio - claims[kept, None])
    return Certificate(
        requirement,
        upper=proven_by_beta(outputs, requirement.dataset, beta, claims),
        lower=proven_by_alpha(outputs, requirement, alpha, once, claims),
        beta=frozen(beta),
        alpha=frozen(alpha),
        once=tuple(outputs.labels[i] for i in once),
    )


def _rule_out(impossible: Booleans) -> list[int]:
    """Few outputs that between them are impossible wherever some output is (greedily)."""
    left, chosen = impossible.any(axis=0), []
    while left.any():
        chosen.append(int(np.argmax((impossible & left).sum(axis=1))))
        left &= ~impossible[chosen[-1]]
    return chosen


def _game(payoff: Floats) -> tuple[Floats, Floats]:
    """Optimal weights of the columns (who minimises) and of the rows (who maximises)."""
    rows, columns = payoff.shape
    if columns == 1:
        return np.ones(1), np.eye(rows)[int(np.argmax(payoff[:, 0]))]
    from scipy.optimize import linprog

    solved = linprog(
        np.append(np.zeros(columns), 1.0),
        A_ub=np.column_stack([payoff, -np.ones(rows)]),
        b_ub=np.zeros(rows),
        A_eq=np.append(np.ones(columns), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * columns + [(None, None)],
        method="highs",
        options=SOLVER_TOLERANCES,
    )
    if solved.status != 0:
        raise UnsoundRequest(
            f"the linear program of the necessary condition was not solved ({solved.message});"
            " no number is given. Likelihoods of very different size may be the cause",
            reason="not solved",
        )
    return without_dust(solved.x[:columns]), without_dust(-solved.ineqlin.marginals)


def without_dust(weights: Floats) -> Floats:
    """The solver's weights without its rounding, made to sum to 1 again."""
    clean = np.where(weights > LEAST_WEIGHT, weights, 0.0)
    total = clean.sum()
    return np.asarray(clean / total if total > 0 else clean)
