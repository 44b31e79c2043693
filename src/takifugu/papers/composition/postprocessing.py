r"""NfC constraints survive every post-processing; the paper's theorem that they do not is false.

The paper (Section 5, Theorem "NfC and Post-processing Invariance") states that a non-redundant set
of constraints

.. math:: \log P(ω|D_t) \le ε + \sum_ℓ β_ℓ \log P(ω|D_ℓ) \quad\text{for every output } ω

is lost under some post-processing as soon as one β has two non-zero entries. It never is. Let A
be any channel. By the constraint and by Hölder's inequality (the β sum to 1)

.. math:: P(o|D_t) = \sum_ω A(o|ω) P(ω|D_t) \le e^ε \sum_ω \prod_ℓ [A(o|ω) P(ω|D_ℓ)]^{β_ℓ}
          \le e^ε \prod_ℓ \Big[\sum_ω A(o|ω) P(ω|D_ℓ)\Big]^{β_ℓ} = e^ε \prod_ℓ P(o|D_ℓ)^{β_ℓ}.

The printed proof multiplies log(a + b) ≥ log(2√(ab)) by weights w_i and adds up. The inequality
turns round where w_i = −β_i < 0; and at the only positive weight, that of D_t, both sides are
equal, because the construction makes a = b = 1 there. So the printed "≥" is a "≤", in every
instance. `paper_construction` builds it and shows the numbers.

Constraints on their own: the ε that a mechanism needs for each, and which of them are redundant.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from takifugu._core.fingerprint import ByContent
from takifugu._core.numeric import Floats, distribution, frozen
from takifugu.errors import InvalidWorld, UnsoundRequest
from takifugu.finite.joint_runs import post_process
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


@dataclass(frozen=True, eq=False)
class Construction:
    """The paper's counterexample and its numbers.

    Attributes:
        constraint: The position of the constraint that it is meant to break.
        epsilon: The ε of all constraints.
        mechanism: M̂, with outputs 0, 1, 2, 3; outputs 0 and 2 use up the constraint.
        channel: ``[4, 2]``: the randomised post-processing A.
        processed: A∘M̂, with outputs 0 and 1.
        before: ``[constraint, 4]``: the ε that the outputs of M̂ need in each constraint.
        after: ``[constraint, 2]``: the ε that the outputs of A∘M̂ need in each.
        weights: ``[dataset]``: w, the coefficients of the printed sum.
        sums: ``[dataset]``: log(a + b), a and b the two ratios of the printed proof.
        roots: ``[dataset]``: log(2√(ab)), what the proof puts in its place.
    """

    constraint: int
    epsilon: float
    mechanism: FiniteMechanism
    channel: Floats
    processed: FiniteMechanism
    before: Floats
    after: Floats
    weights: Floats
    sums: Floats
    roots: Floats

    @property
    def broken(self) -> bool:
        """Whether A∘M̂ needs more than ε in some constraint: so says the theorem, against Hölder."""
        return bool(self.after.max() > self.epsilon + TOLERANCE)

    @property
    def steps(self) -> Floats:
        """``[dataset]``: w_i·[log(a+b) − log(2√(ab))]; the proof needs them to add up to ≥ 0."""
        return frozen(self.weights * (self.sums - self.roots))


def paper_construction(
    constraints: Sequence[Constraint], epsilon: float, *, which: int | None = None
) -> Construction:
    """Build M̂ and A of the paper's proof against constraint ``which``, and evaluate them.

    ``which`` is by default the first constraint whose β has two or more non-zero entries. It
    must not be redundant, and ε must be positive (here: more than the tolerance), as the proof
    requires. The steps are the paper's; where it says "there exists", the choices here are: v† is
    the witness of `non_redundant`, scaled to use up the constraint; v* and v′ lie at v† ± δd,
    d = −1/β at one dataset of β and 1/β at another, so that d·w = 0; c* is found by doubling.
    """
    if not TOLERANCE < epsilon < np.inf:
        raise UnsoundRequest(
            f"the construction needs a finite ε > {TOLERANCE:g}, not {epsilon:g}",
            field="epsilon",
            given=epsilon,
        )
    universe = one_universe(constraints)
    rows = np.array([c.weights for c in constraints])
    mixed = [i for i, c in enumerate(constraints) if np.count_nonzero(c.beta) >= 2]
    target = which if which is not None else (mixed[0] if mixed else -1)
    if target not in mixed:
        raise UnsoundRequest(
            "the construction is against a constraint with two or more non-zero weights;"
            f" {'constraint ' + str(which) if which is not None else 'every one given'} has one",
            field="which",
            given=which,
        )
    witness, _ = decide(rows, target, range(len(rows)))
    if witness is None:
        raise UnsoundRequest(
            f"constraint {target} is implied by the others; the construction is for"
            " non-redundant constraints: call `non_redundant` first",
            field="constraints",
            given=target,
        )
    star, prime = _step_1(rows, target, witness, epsilon)
    mechanism = _step_2(universe, rows, star, prime, epsilon)
    t = universe.position(constraints[target].dataset)
    seen = mechanism.likelihood[:, [0, 2]]
    kept = seen[t].min() / seen[t]  # p* over P(M̂(D_t) = 0) and over P(M̂(D_t) = 2)
    channel = np.array([[1 - kept[0], kept[0]], [1, 0], [1 - kept[1], kept[1]], [1, 0]])
    processed = post_process(mechanism, channel, outputs=(0, 1))
    ratios = seen / seen[t]
    return Construction(
        constraint=target,
        epsilon=epsilon,
        mechanism=mechanism,
        channel=frozen(channel),
        processed=processed,
        before=needed_epsilons(constraints, mechanism),
        after=needed_epsilons(constraints, processed),
        weights=frozen(rows[target]),
        sums=frozen(np.log(ratios.sum(axis=1))),
        roots=frozen(np.log(2.0) + np.log(ratios).mean(axis=1)),
    )


def _step_1(rows: Floats, target: int, witness: Floats, epsilon: float) -> tuple[Floats, Floats]:
    """v* and v′: both use up the target constraint, stay inside the others, and differ."""
    middle = witness * (epsilon / (rows[target] @ witness))
    first, second = np.flatnonzero(rows[target] < 0)[:2]
    along = np.zeros(rows.shape[1])
    along[first], along[second] = 1 / rows[target, first], -1 / rows[target, second]
    others = np.delete(rows, target, axis=0)
    room = np.append((epsilon - others @ middle) / 2, 1.0)
    step = np.append(np.abs(others @ along), np.abs(along).max())
    delta = float((room[step > 0] / step[step > 0]).min())
    return middle + delta * along, middle - delta * along


def _step_2(
    universe: Universe, rows: Floats, star: Floats, prime: Floats, epsilon: float
) -> FiniteMechanism:
    """M̂: outputs 0 and 2 are v* and v′ less a constant, outputs 1 and 3 fill each up to 1/2."""
    c, top = 2.0, max(star.max(), prime.max())
    while True:  # ends: in the limit every value is 0, up to rounding far below ε
        parts = np.exp(np.stack([star, prime]) - top - c)  # [2, dataset]
        rest = 0.5 - parts
        if (rest > 0).all() and (rows @ np.log(rest).T <= epsilon).all():
            return FiniteMechanism(
                universe,
                np.column_stack([parts[0], rest[0], parts[1], rest[1]]),
                name="the paper's construction",
            )
        c *= 2
