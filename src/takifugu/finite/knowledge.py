"""The largest and smallest probability of an output over all priors that knowledge allows."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers, frozen
from takifugu._core.rounding import UNIT
from takifugu.errors import InvalidPrior
from takifugu.finite.world import World
from takifugu.priors.explicit import Knowledge
from takifugu.priors.secrets import Secret


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
