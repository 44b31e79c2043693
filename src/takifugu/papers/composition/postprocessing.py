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
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from takifugu._core.numeric import Floats, frozen
from takifugu.errors import UnsoundRequest
from takifugu.finite.joint_runs import post_process
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.papers.composition.nfc_constraints import (
    TOLERANCE,
    Constraint,
    decide,
    needed_epsilons,
    one_universe,
)
from takifugu.priors.universe import Universe


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
