"""How far one output moves the odds: the Pufferfish loss of a mechanism, exactly.

Where the priors are given by linear inequalities, the largest and the smallest probability of an
output over all of them are linear programs (`Polytope`).
"""

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers, frozen
from takifugu._core.rounding import UNIT, added_by, gamma, log_bounds, losses_up
from takifugu.errors import InvalidPrior, InvalidWorld
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.world import World
from takifugu.priors.explicit import Knowledge, same_universe
from takifugu.priors.secrets import Secret, SecretPair


@dataclass(frozen=True, eq=False)
class Corner:
    """A distribution at a corner of the polytope, and its exact value if it lies in it exactly."""

    distribution: Floats  # [dataset]
    value: Fraction | None


@dataclass(frozen=True, eq=False)
class Polytope:
    """All distributions p on the datasets of one secret with ``matrix`` @ p ≤ ``limit``.

    The solver's results are approximate, so none of its values is used. It returns multipliers
    λ ≤ 0, and for *any* such λ and every p allowed, weak duality gives

        c·p = (c − λA)·p + λ·(Ap) ≥ min_D (c − λA)_D + λ·b,

    which is evaluated here and rounded down. Rounding or a bad λ make the bound looser, never
    wrong. The plain bounds min c ≤ c·p ≤ max c hold too.
    """

    secret: Secret
    datasets: int
    rows: Integers  # [row]: the datasets of which the secret is true
    matrix: Floats  # [line, row]
    limit: Floats  # [line]

    def most(self, likelihood: Floats) -> Floats:
        """``[output]``: an upper bound on the largest P(ω | s), within rounding."""
        return -self._least(-likelihood[self.rows])

    def least(self, likelihood: Floats) -> Floats:
        """``[output]``: a lower bound, at least 0, on the smallest P(ω | s), within rounding."""
        return self._least(likelihood[self.rows])

    def attain(self, objective: Floats) -> Corner:
        """The distribution with the largest expectation of ``objective[dataset]``."""
        cost = -objective[self.rows]
        distribution = np.zeros(self.datasets)
        if not len(self.matrix):
            best = int(np.argmin(cost))
            distribution[self.rows[best]] = 1.0
            return Corner(frozen(distribution), Fraction(float(-cost[best])))
        p, multipliers = self._solve(cost)
        distribution[self.rows] = np.maximum(p, 0.0)
        corner = self._corner(p, multipliers)
        if corner is None:
            return Corner(frozen(distribution), None)
        value = sum((-Fraction(float(cost[i])) * q for i, q in corner.items()), Fraction(0))
        return Corner(frozen(distribution), value)

    def _least(self, costs: Floats) -> Floats:
        floor: Floats = costs.min(axis=0)
        if not len(self.matrix):
            return floor
        proved = np.array([self._dual_bound(cost) for cost in costs.T])
        return np.asarray(np.maximum(floor, proved))

    def _dual_bound(self, cost: Floats) -> float:
        _, multipliers = self._solve(cost)
        reduced = cost - multipliers @ self.matrix
        magnitude = np.abs(cost) + np.abs(multipliers) @ np.abs(self.matrix)
        offset = float(multipliers @ self.limit)
        size = float(magnitude.max() + np.abs(multipliers) @ np.abs(self.limit))
        return float(reduced.min()) + offset - (2 * len(self.limit) + 8) * UNIT * size

    def _solve(self, cost: Floats) -> tuple[Floats, Floats]:
        """An approximate minimiser of ``cost`` and its multipliers, clipped to be ≤ 0."""
        from scipy.optimize import linprog

        scale = float(np.abs(cost).max()) or 1.0
        answer = linprog(
            cost / scale,
            A_ub=self.matrix,
            b_ub=self.limit,
            A_eq=np.ones((1, len(self.rows))),
            b_eq=[1.0],
            bounds=(0, None),
            method="highs-ds",
        )
        if answer.status == 0:
            return answer.x, np.minimum(answer.ineqlin.marginals, 0.0) * scale
        if answer.status == 2:
            raise _contradiction(self.secret)
        raise InvalidPrior(
            "knowledge",
            given=f"about {str(self.secret)!r} is out of the solver's reach",
            needed="be written with numbers of similar size",
        )

    def _corner(self, p: Floats, multipliers: Floats) -> dict[int, Fraction] | None:
        """The exact corner near ``p``, or None if none obeys every line exactly.

        Its support and the lines that are tight there determine it: solve for it in fractions,
        the lines with the largest multipliers first.
        """
        support = [int(i) for i in np.flatnonzero(p)]
        tight = np.flatnonzero(self.limit - self.matrix @ p <= 1e-7)
        order = tight[np.argsort(multipliers[tight], kind="stable")]
        equations = [[Fraction(1)] * (len(support) + 1)]
        for line in order:
            row = [Fraction(float(self.matrix[line, i])) for i in support]
            equations.append([*row, Fraction(float(self.limit[line]))])
        solution = _solve_exactly(equations, len(support))
        if solution is None or min(solution) < 0:
            return None
        for line, limit in zip(self.matrix, self.limit, strict=True):
            terms = (Fraction(float(line[i])) * q for i, q in zip(support, solution, strict=True))
            if sum(terms, Fraction(0)) > Fraction(float(limit)):
                return None
        return dict(zip(support, solution, strict=True))


def polytope(known: Knowledge, secret: Secret, mask: Booleans) -> Polytope:
    """The knowledge about ``secret``, as inequalities on P(· | secret); refuses a contradiction."""
    rows = np.flatnonzero(mask)
    matrix, limit = [], []
    for line in known.lines(secret):
        row = line.coefficients[rows]
        # scaling by a power of two is exact, except for numbers that become too small for float64:
        # then the limit is widened by more than all of them together
        power = -int(np.frexp(np.abs(row).max(initial=0.0))[1])
        scaled = np.ldexp(row, power)
        loose = 0.0 if (np.ldexp(scaled, -power) == row).all() else 2.0**-1000
        for sign, bound in ((1.0, line.high), (-1.0, -line.low)):
            with np.errstate(over="ignore"):  # beyond all floats: no bound, or a contradiction
                most = float(np.ldexp(bound, power))
            if most == -np.inf:
                raise _contradiction(secret)
            if most < np.inf:
                exact = loose == 0 and np.ldexp(most, -power) == bound
                matrix.append(sign * scaled)
                limit.append(most if exact else float(np.nextafter(most + 2.0**-1000, np.inf)))
    allowed = Polytope(
        secret,
        len(mask),
        rows,
        frozen(np.array(matrix).reshape(len(limit), len(rows))),
        frozen(limit),
    )
    if limit:
        allowed.attain(np.zeros(len(mask)))
    return allowed


def coupled(world: World, known: Knowledge) -> bool:
    """Whether knowledge about a third secret ties the two sides of some pair together.

    Otherwise every choice of P(·|s) and P(·|s′) is made by some allowed prior: one that gives
    the third secrets probability 0.
    """
    described = [(secret, world.mask(secret)) for secret, lines in known.about if lines]
    for pair in world.pairs:
        own = world.mask(pair.left) | world.mask(pair.right)
        for secret, mask in described:
            if secret not in (pair.left, pair.right) and bool((mask & own).any()):
                return True
    return False


def _contradiction(secret: Secret) -> InvalidPrior:
    return InvalidPrior(
        "knowledge",
        given=f"about {str(secret)!r} contradicts itself",
        needed="be obeyed by at least one distribution on the secret's datasets",
    )


def _solve_exactly(equations: list[list[Fraction]], unknowns: int) -> list[Fraction] | None:
    """Solve the first independent equations, in order; None if they do not suffice."""
    reduced: list[tuple[int, list[Fraction]]] = []
    for equation in equations:
        row = list(equation)
        for pivot, other in reduced:
            if row[pivot]:
                factor = row[pivot]
                row = [a - factor * b for a, b in zip(row, other, strict=True)]
        lead = next((i for i in range(unknowns) if row[i]), None)
        if lead is None:
            continue
        row = [a / row[lead] for a in row]
        reduced = [
            (pivot, [a - other[lead] * b for a, b in zip(other, row, strict=True)])
            for pivot, other in reduced
        ]
        reduced.append((lead, row))
        if len(reduced) == unknowns:
            return [row[-1] for _, row in sorted(reduced)]
    return None


MAX_BATCH_CELLS = 2**24  # numbers in one batch of weights


@dataclass(frozen=True)
class WorstCase:
    """Where the loss is largest: this pair, under this prior, when this output is seen."""

    pair: SecretPair
    prior: str
    output: Hashable


@dataclass(frozen=True, eq=False)
class Leakage:
    """The Pufferfish loss of a mechanism in a world (the paper, Definition 5).

    Attributes:
        epsilon: The loss ε, at least 0: an upper bound, above the exact value by at most `slack`.
        slack: How far rounding may have raised ``epsilon``; 0 when it is infinite.
        worst: The pair, prior and output that attain it.
        table: ``[pair, prior, output]``: log P(ω|s)/P(ω|s′), rounded up; −∞ where the output
            cannot happen under s or the pair is left out for that prior; +∞ where it can happen
            under s only. Under linear knowledge there is one "prior", the worst of all.
        conditionals: P(D | s) and P(D | s′), ``[dataset]`` each, that attain ``worst``, to the
            accuracy of float64 (of the solver, under linear knowledge).
        kind: ``"exact"``, or ``"upper"`` where linear knowledge about further secrets ties the
            two sides together: then ``epsilon`` may be more than rounding above the exact value.
    """

    epsilon: float
    slack: float
    worst: WorstCase
    table: Floats
    conditionals: tuple[Floats, Floats]
    kind: Literal["exact", "upper"] = "exact"

    def by_pair(self) -> Floats:
        """``[pair]``: the loss of every ordered pair on its own, at least 0."""
        losses: Floats = np.maximum(self.table.max(axis=(1, 2)), 0.0)
        return losses


@dataclass(frozen=True, eq=False)
class Odds:
    """The odds of every pair under each prior, before and after seeing an output.

    Attributes:
        prior: ``[pair, prior]``: P(s)/P(s′).
        posterior: ``[pair, prior, output]``: P(s | ω)/P(s′ | ω).
        error: Every finite value is within a factor of 1 ± ``error`` of the exact one. Zero and
            infinity are exact. NaN stands where neither side is possible.
    """

    prior: Floats
    posterior: Floats
    error: float


def leakage(world: World, mechanism: FiniteMechanism) -> Leakage:
    r"""The Pufferfish loss of one run of ``mechanism``, over all priors, pairs and outputs.

    Against linear knowledge the laws given s and given s′ are chosen separately, so the loss of an
    output ω is :math:`\log \max P(ω \mid s) - \log \min P(ω \mid s')`: two linear programs.
    """
    return measure(world, mechanism, error=0.0)


def measure(world: World, mechanism: FiniteMechanism, *, error: float) -> Leakage:
    """`leakage`, when the likelihoods were themselves computed within a factor 1 ± ``error``."""
    same_world(world, mechanism)
    if isinstance(world.priors, Knowledge):
        return _against_knowledge(world, world.priors, mechanism, error)
    return _against_list(world, mechanism, error)


def odds(world: World, mechanism: FiniteMechanism) -> Odds:
    """Prior odds of every pair, and its posterior odds for every output."""
    same_world(world, mechanism)
    left, right = _sides(world)
    joint = _joint(world, mechanism)
    probability = world.secret_probabilities.T
    with np.errstate(divide="ignore", invalid="ignore"):
        before = probability[left] / probability[right]
        after = joint[left] / joint[right]
    n = len(world.universe)
    return Odds(frozen(before), frozen(after), 2 * gamma(n) / (1 - gamma(n)) + gamma(1))


def same_world(world: World, mechanism: FiniteMechanism) -> None:
    """Refuse a mechanism over other datasets than the world's."""
    if not same_universe(world.universe, mechanism):
        raise InvalidWorld(
            "mechanism",
            given=f"{mechanism.name!r} is over other datasets than the world",
            needed="have a row for each of the world's datasets, in their order",
        )


def possible(world: World) -> Booleans:
    """``[pair, prior]``: where both sides are possible, so that the definition applies."""
    left, right = _sides(world)
    probability = world.secret_probabilities.T
    both: Booleans = (probability[left] > 0) & (probability[right] > 0)
    if not both.any():
        raise InvalidWorld(
            "priors",
            given="leave no pair with two possible sides, so that nothing would be protected",
            needed="give both sides of at least one pair a positive probability",
        )
    return both


def _against_list(world: World, mechanism: FiniteMechanism, error: float) -> Leakage:
    left, right = _sides(world)
    applies = possible(world)
    joint = _joint(world, mechanism)  # [secret, prior, output]
    probability = world.secret_probabilities.T[:, :, None]  # [secret, prior, 1]
    given = joint / np.where(probability > 0, probability, 1.0)
    total = 2 * gamma(len(world.universe) + 2) + error
    table = losses_up(given, left, right, error=total)
    table[~applies] = -np.inf
    table.setflags(write=False)
    place = np.unravel_index(int(np.argmax(table)), table.shape)
    pair, prior, output = (int(i) for i in place)
    loss = float(table[place])
    n, d = given[left[pair], prior, output], given[right[pair], prior, output]
    sides = world.pairs[pair]
    return Leakage(
        max(loss, 0.0),
        added_by(loss, float(n), float(d)),
        WorstCase(sides, world.listed_priors[prior].name, mechanism.outputs[output]),
        table,
        (world.conditional(prior, sides.left), world.conditional(prior, sides.right)),
    )


def _against_knowledge(
    world: World, known: Knowledge, mechanism: FiniteMechanism, error: float
) -> Leakage:
    left, right = _sides(world)
    feasible = [polytope(known, secret, world.mask(secret)) for secret in world.secrets]
    most = {s: feasible[s].most(mechanism.likelihood) for s in sorted(set(left))}
    least = {s: feasible[s].least(mechanism.likelihood) for s in sorted(set(right))}
    sides = np.array([most[s] for s in left] + [least[s] for s in right])  # bounds already
    first = list(range(len(left)))
    second = list(range(len(left), len(sides)))
    table = losses_up(sides, first, second, error=error)[:, None, :]
    place = np.unravel_index(int(np.argmax(table)), table.shape)
    pair, output = int(place[0]), int(place[2])
    column = mechanism.likelihood[:, output]
    high, low = feasible[left[pair]].attain(column), feasible[right[pair]].attain(-column)
    loss = float(table[place])
    slack = 0.0 if np.isinf(loss) else np.inf
    if high.value is not None and low.value and np.isfinite(loss):
        floor = log_bounds(high.value / -low.value)[0] - 4 * error
        slack = max(loss, 0.0) - max(floor, 0.0)
    return Leakage(
        max(loss, 0.0),
        float(slack),
        WorstCase(world.pairs[pair], "knowledge", mechanism.outputs[output]),
        frozen(table),
        (high.distribution, low.distribution),
        "upper" if coupled(world, known) else "exact",
    )


def _sides(world: World) -> tuple[list[int], list[int]]:
    """The positions of the left and of the right secret of every pair."""
    return [left for left, _ in world.sides], [right for _, right in world.sides]


def _joint(world: World, mechanism: FiniteMechanism) -> Floats:
    """``[secret, prior, output]``: P(s, M(D) = ω | θ).

    Large secrets share one matrix product for many secrets; small ones have one each, over the
    datasets of which they are true. Either way a value is a sum of at most as many products as
    there are datasets.
    """
    priors, outputs = len(world.listed_priors), len(mechanism.outputs)
    joint = np.empty((len(world.secrets), priors, outputs))
    if world.masks.mean() < 1 / 4:
        for s, secret in enumerate(world.secrets):
            rows = np.flatnonzero(world.mask(secret))
            np.matmul(world.weights[:, rows], mechanism.likelihood[rows], out=joint[s])
        return joint
    step = max(1, MAX_BATCH_CELLS // world.weights.size)
    for start in range(0, len(joint), step):
        part = world.masks[start : start + step, None] * world.weights  # [secret, prior, dataset]
        flat = joint[start : start + step].reshape(-1, outputs)
        np.matmul(part.reshape(-1, len(world.universe)), mechanism.likelihood, out=flat)
    return joint
