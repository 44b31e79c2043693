"""NfC constraints on their own: the ε a mechanism needs for each, and which are redundant."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from takifugu._core.fingerprint import ByContent
from takifugu._core.numeric import Floats, distribution, frozen
from takifugu.errors import InvalidWorld, UnsoundRequest
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.nfc.condition import SOLVER_TOLERANCES, Condition, constraint_values
from takifugu.priors.universe import Universe

TOLERANCE = 1e-9  # of the linear programs that decide redundancy


@dataclass(frozen=True, eq=False)
class Constraint(ByContent):
    """log P(ω|``dataset``) ≤ ε + Σ β_ℓ log P(ω|D_ℓ) for all outputs; ε is given elsewhere."""

    universe: Universe
    dataset: Hashable
    beta: Floats

    def __post_init__(self) -> None:
        beta = distribution(self.beta, "beta", InvalidWorld)
        object.__setattr__(self, "beta", beta)
        n = len(self.universe)
        if beta.shape != (n,) or beta[self.universe.position(self.dataset)] != 0:
            raise InvalidWorld(
                "beta",
                given=f"has shape {beta.shape}, or weight on {self.dataset!r} itself",
                needed=f"hold one weight for each of {n} datasets, 0 for the one that must hide",
            )

    @property
    def weights(self) -> Floats:
        """``[dataset]``: the paper's w: 1 at the dataset that hides, −β elsewhere; sums to 0."""
        w = -np.asarray(self.beta) / self.beta.sum()
        w[self.universe.position(self.dataset)] = 1.0
        return frozen(w)


@dataclass(frozen=True, eq=False)
class ReducedConstraints:
    """A set of constraints without those that the others imply.

    Attributes:
        kept: Positions of a non-redundant set that implies all of them.
        removed: For each one left out, its position and λ, ``[constraint]``: how the kept imply it.
        witnesses: ``[kept, dataset]``: for each one kept, a vector v ≤ 0 with v·w > 1 for it and
            v·w ≤ 1 for all other kept ones: at ε = 1, log-likelihoods that it alone forbids.
    """

    kept: tuple[int, ...]
    removed: tuple[tuple[int, Floats], ...]
    witnesses: Floats


def needed_epsilons(constraints: Sequence[Constraint], mechanism: FiniteMechanism) -> Floats:
    """``[constraint, output]``: the ε that each output needs in each constraint, rounded up."""
    universe = one_universe(constraints)
    if mechanism.universe != universe:
        raise InvalidWorld(
            "mechanism",
            given=f"{mechanism.name!r} is over other datasets than the constraints",
            needed="be over the same datasets",
        )
    rows = [
        constraint_values(mechanism.likelihood.T, universe.position(c.dataset), c.beta)
        for c in constraints
    ]
    return frozen(rows)


def constraints_of(universe: Universe, condition: Condition) -> tuple[Constraint, ...]:
    """The certificates of a necessary condition as constraints, each once."""
    if not all(certificate.beta.any() for certificate in condition.certificates):
        raise UnsoundRequest(
            "some requirement has no certificate at any ε (its ε is infinite), so there is no"
            " set of constraints that meets the necessary condition",
            reason="no certificate",
        )
    return tuple(
        dict.fromkeys(
            Constraint(universe, universe.datasets[c.requirement.dataset], c.beta)
            for c in condition.certificates
        )
    )


def non_redundant(constraints: Sequence[Constraint]) -> ReducedConstraints:
    r"""Leave out, one after another, the constraints that the remaining ones imply.

    The constraint w is implied by w¹, …, w^m at the same ε > 0 if no v in Ω₂ (all components
    ≤ 0) has v·wⁱ ≤ ε for all i and v·w > ε. By linear duality that is so if and only if there is

    .. math:: λ \ge 0, \quad \sum_i λ_i \le 1, \quad \sum_i λ_i w^i = w.

    (Duality over Ω₂ asks for Σ λ_i wⁱ ≤ w only; all these vectors sum to 0, so equality holds,
    and Ω₂ may be replaced by all vectors. ε drops out.) The same λ shows it for likelihoods with
    zeros, and for ε > 0 every such v is part of a mechanism: the paper's Step 2. At ε = 0 the
    condition is empty: a mechanism that obeys w with ε = 0 is the same on D_t and all D_ℓ.

    What is left depends on the order of the constraints; it is always non-redundant.
    """
    one_universe(constraints)
    rows = np.array([c.weights for c in constraints])
    kept = list(range(len(constraints)))
    for i in reversed(range(len(constraints))):
        if decide(rows, i, kept)[0] is None:
            kept.remove(i)
    removed, witnesses = [], []
    for i in range(len(constraints)):
        witness, combination = decide(rows, i, kept)
        if (witness is not None) != (i in kept):
            raise UnsoundRequest(
                "rounding leaves it open which of the constraints are redundant",
                reason="rounding",
            )
        if witness is not None:
            witnesses.append(witness)
        if combination is not None:
            removed.append((i, combination))
    return ReducedConstraints(tuple(kept), tuple(removed), frozen(witnesses))


def decide(rows: Floats, i: int, kept: Sequence[int]) -> tuple[Floats | None, Floats | None]:
    """Either v, which constraint i alone forbids, or λ, by which the other ``kept`` imply it."""
    from scipy.optimize import linprog

    others = [j for j in kept if j != i]
    solved = linprog(  # the largest v·w, capped at 2, with v·w ≤ 1 for the others
        -rows[i],
        A_ub=np.vstack([rows[others].reshape(-1, rows.shape[1]), rows[i]]),
        b_ub=np.append(np.ones(len(others)), 2.0),
        bounds=(None, None),
        method="highs",
        options=SOLVER_TOLERANCES,
    )
    if solved.status != 0:
        raise UnsoundRequest(
            f"redundancy could not be decided ({solved.message})", reason="not solved"
        )
    if -solved.fun > 1 + TOLERANCE:
        v = solved.x - solved.x.max()
        v = v / max(1.0, float((rows[others] @ v).max(initial=0.0)))
        if rows[i] @ v > 1 + TOLERANCE / 2:
            return frozen(v), None
    combination = np.zeros(len(rows))
    combination[others] = np.maximum(-solved.ineqlin.marginals[:-1], 0.0)
    residual = float(np.abs(combination @ rows - rows[i]).max())
    if not max(residual, combination.sum() - 1) <= TOLERANCE:
        raise UnsoundRequest(
            f"redundancy could not be decided: constraint {i} is implied up to {residual:g} only",
            reason="rounding",
        )
    return None, frozen(combination)


def one_universe(constraints: Sequence[Constraint]) -> Universe:
    """The datasets that all constraints are about; an error if they differ."""
    if not constraints or any(c.universe != constraints[0].universe for c in constraints):
        raise InvalidWorld(
            "constraints",
            given="is empty, or about different datasets",
            needed="hold at least one constraint, all over the same datasets",
        )
    return constraints[0].universe
