r"""A sufficient condition: certificates β that move P(·|s) onto P(·|s′).

Let p = P(·|s, θ), q = P(·|s′, θ), and let β be a kernel: a convex combination β(D, ·) over the
datasets with s′ for every dataset D with s. Suppose that every mechanism M_i obeys

.. math:: \log P(ω|D) \le ε_i + \sum_ℓ β(D, D_ℓ) \log P(ω|D_ℓ)  \qquad (D \text{ with } s,\ ω).

**Theorem.** Any outputs ω_1, …, ω_k of M_1, …, M_k seen together leak, for (s, s′) and θ, at most

.. math:: ε_1 + … + ε_k + κ,  \qquad
    κ = \min\Big\{ \log\max_ℓ \frac{(pβ)_ℓ}{q_ℓ},\
        \log\sum_D p(D)\, e^{KL(β(D,·)\,‖\,q)} \Big\} ≥ 0.

In particular, if β is a *coupling kernel*, pβ = q, then κ = 0: the losses of this pair and prior
add up exactly, from the first run on.

Proof. g(D) = ∏ P(ω_i|D) obeys the inequality with ε = Σ ε_i and the same β: add them up. So
E[g|s] = Σ_D p(D) g(D) ≤ e^ε Σ_D p(D) ∏_ℓ g(D_ℓ)^{β(D,ℓ)}. By the inequality of weighted means
the product is at most Σ_ℓ β(D,ℓ) g(D_ℓ), and Σ_D p(D) Σ_ℓ β(D,ℓ) g(D_ℓ) = Σ_ℓ (pβ)_ℓ g(D_ℓ)
≤ max_ℓ (pβ)_ℓ/q_ℓ · E[g|s′]: the first bound. The same inequality with the terms q_ℓ g(D_ℓ)/β(D,ℓ)
gives ∏_ℓ g(D_ℓ)^{β(D,ℓ)} ≤ e^{KL(β(D,·)‖q)} E[g|s′]: the second. ∎

Exactly this is proven: runs are independent given the data, and may be chosen in advance or in
the light of earlier outputs, as long as each obeys its inequality whatever was seen before (the
proof is for one sequence of outputs). Post-processing each run keeps its inequality, by Hölder, and
post-processing the whole keeps the leak. It has to hold for every prior, each with a kernel of its
own, and for every ordered pair.

The κ is paid once, not per run. So every certificate of the necessary condition proves linear
composition up to a constant, and a kernel that rounding keeps from being a coupling is sound.

The coupling kernel that proves most is found by a linear program, certified from both sides.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import LEAST, Booleans, Floats, Integers, distribution, frozen
from takifugu._core.rounding import gamma, log_ratio_up
from takifugu.errors import InvalidWorld, UnsoundRequest
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.nfc.condition import (
    SOLVER_TOLERANCES,
    Condition,
    OutputTable,
    claims_by_output,
    output_table,
    proven_by_beta,
    supports,
    without_dust,
)
from takifugu.finite.world import World
from takifugu.priors.secrets import SecretPair


@dataclass(frozen=True, eq=False)
class KernelProof:
    """What a kernel proves about some mechanisms, for one ordered pair and one prior.

    Attributes:
        pair: The ordered secret pair.
        prior: The name of the prior.
        kernel: ``[dataset, dataset]``: β; rows of datasets without the left secret are 0.
        per_run: ε: what every run of any of the mechanisms adds; an upper bound.
        once: κ: what is paid once, whatever the number of runs; an upper bound, 0 or more.
        off: The largest |pβ − q|, by dataset; 0 up to rounding for a coupling kernel.
    """

    pair: SecretPair
    prior: str
    kernel: Floats
    per_run: float
    once: float
    off: float

    @property
    def couples(self) -> bool:
        """Whether the kernel moves P(·|s) onto P(·|s′), up to 1e-9."""
        return self.off <= 1e-9

    def loss(self, runs: int) -> float:
        """An upper bound on what ``runs`` runs leak together, for this pair and prior."""
        total = runs * self.per_run + self.once
        return total + gamma(8) * abs(total)


def prove_with_kernel(
    world: World, mechanisms: Sequence[FiniteMechanism], pair: SecretPair, kernel: ArrayLike
) -> tuple[KernelProof, ...]:
    """What ``kernel`` [dataset, dataset] proves for ``pair``, under each prior that allows it.

    Rows are read for the datasets with the left secret only; weight on a dataset without the
    right secret is an error. Where a dataset that carries weight has probability 0 under a
    prior, nothing is proven: ``once`` is infinite.
    """
    outputs = output_table(world, mechanisms)
    left, right = world.mask(pair.left), world.mask(pair.right)
    table = np.array(kernel, dtype=np.float64)
    n = len(world.universe)
    if table.shape != (n, n) or (table[left][:, ~right] != 0).any():
        raise InvalidWorld(
            "kernel",
            given=f"has shape {table.shape}, or weight on datasets without {pair.right}",
            needed=f"be {n} by {n}, with weight on datasets with {pair.right} only",
        )
    table[~left] = 0.0
    rows = distribution(table[left], "kernel", InvalidWorld)
    table[left] = rows / rows.sum(axis=1, keepdims=True)
    return tuple(
        prove_for_prior(world, outputs, pair, t, table)
        for t in range(len(world.listed_priors))
        if supports(world, pair, t)[0].size
    )


def prove_with_certificates(world: World, condition: Condition) -> tuple[KernelProof, ...]:
    """What the certificates of the necessary condition prove: linear up to a constant.

    One proof for each ordered pair and prior. With ε the largest ``per_run`` and κ the largest
    ``once``, k runs leak at most kε + κ.
    """
    proofs = []
    n = len(world.universe)
    beta = {
        (c.requirement.pair, c.requirement.dataset, c.requirement.among): c.beta
        for c in condition.certificates
    }
    for pair in world.pairs:
        for t in range(len(world.listed_priors)):
            left, right = supports(world, pair, t)
            if not left.size:
                continue
            kernel = np.zeros((n, n))
            for dataset in left:
                kernel[dataset] = beta[pair, int(dataset), tuple(int(i) for i in right)]
            proofs.append(prove_for_prior(world, condition.outputs, pair, t, kernel))
    return tuple(proofs)


def prove_for_prior(
    world: World,
    outputs: OutputTable,
    pair: SecretPair,
    prior: int,
    kernel: Floats,
    claims: Floats | None = None,
) -> KernelProof:
    """What ``kernel``, whose rows sum to 1, proves for one pair under one prior.

    With ``claims[output]``, ``per_run`` is what a run adds beyond the claim of its mechanism.
    """
    left, _ = supports(world, pair, prior)
    p, q = world.conditional(prior, pair.left), world.conditional(prior, pair.right)
    claimed = np.zeros(len(outputs.labels)) if claims is None else claims
    per_run = max(proven_by_beta(outputs, int(d), kernel[d], claimed) for d in left)
    arrived = p @ kernel
    error = gamma(2 * len(p) + 8)
    by_mass = float(log_ratio_up(arrived, q, error=error).max())
    return KernelProof(
        pair,
        world.listed_priors[prior].name,
        frozen(kernel),
        per_run,
        once=max(0.0, min(by_mass, _by_divergence(p, q, kernel))),
        off=float(np.abs(arrived - q).max()),
    )


def _by_divergence(p: Floats, q: Floats, kernel: Floats) -> float:
    """The second bound on κ: log Σ_D p(D) e^{KL(β(D,·)‖q)}, rounded up."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_b, log_q = np.log(kernel), np.log(q)
        terms = np.where(kernel > 0, kernel * (log_b - log_q), 0.0)
        size = np.where(kernel > 0, kernel * (np.abs(log_b) + np.abs(log_q)), 0.0)
        error = gamma(2 * len(p) + 16)
        exponent = (terms.sum(axis=1) + error * (1 + size.sum(axis=1)))[p > 0]
    peak = float(exponent.max())
    if not peak < np.inf:
        return np.inf
    value = peak + float(np.log(p[p > 0] @ np.exp(exponent - peak)))
    return value + 4 * error * (1 + abs(peak) + abs(value))


@dataclass(frozen=True, eq=False)
class BestCoupling:
    """The coupling kernel with the least ε, for one ordered pair and one prior.

    With claims, ε is what a run loses beyond the claim of its mechanism, throughout.

    Attributes:
        proof: What the kernel found proves; None if no coupling kernel has a finite ε.
        lower: A lower bound on the ε of every coupling kernel, proven by duality.
    """

    pair: SecretPair
    prior: str
    proof: KernelProof | None
    lower: float

    @property
    def upper(self) -> float:
        """The ε for which linear composition is proven, with what rounding costs once."""
        return np.inf if self.proof is None else self.proof.loss(1)


def best_couplings(
    world: World, mechanisms: Sequence[FiniteMechanism], claims: Sequence[float] | None = None
) -> tuple[BestCoupling, ...]:
    """The coupling kernel with the least ε for each ordered pair and prior.

    With ε the largest ``upper``, any k runs of the mechanisms, post-processed or not, leak at
    most kε: linear composition is proven at this ε, and fails below the ε of the necessary
    condition. With ``claims``, one for each mechanism, they leak at most their claims and kε more.
    """
    outputs = output_table(world, mechanisms)
    by_output = claims_by_output(outputs, mechanisms, claims or [0.0] * len(mechanisms))
    return tuple(
        _best(world, outputs, pair, t, by_output)
        for pair in world.pairs
        for t in range(len(world.listed_priors))
        if supports(world, pair, t)[0].size
    )


def _best(
    world: World, outputs: OutputTable, pair: SecretPair, prior: int, claims: Floats
) -> BestCoupling:
    left, right = supports(world, pair, prior)
    p = world.conditional(prior, pair.left)[left]
    q = world.conditional(prior, pair.right)[right]
    name = world.listed_priors[prior].name
    # [constraint, right], and [constraint]: which row of left it belongs to
    ratio, owner = _ratios(outputs, left, right, claims)
    allowed = np.ones((len(left), len(right)), dtype=bool)
    np.logical_and.at(allowed, owner, np.isfinite(ratio))
    solution = _solve(ratio, owner, p, q, allowed)
    if solution is None:
        _refute(p, q, allowed)
        return BestCoupling(pair, name, None, np.inf)
    full = np.zeros((len(world.universe), len(world.universe)))
    full[np.ix_(left, right)] = solution[0]
    proof = prove_for_prior(world, outputs, pair, prior, full, claims)
    return BestCoupling(pair, name, proof, _lower(solution, ratio, owner, p, q, allowed))


def _ratios(
    outputs: OutputTable, left: Integers, right: Integers, claims: Floats
) -> tuple[Floats, Integers]:
    """Every constraint log P(ω|D) − log P(ω|D_ℓ) − claim, by ℓ, and which D it belongs to."""
    rows, owner = [], []
    for i, dataset in enumerate(left):
        kept = np.flatnonzero(outputs.probability[:, dataset] > 0)
        own = outputs.log[kept, dataset] - claims[kept]
        rows.append(own[:, None] - outputs.log[np.ix_(kept, right)])
        owner += [i] * len(kept)
    return np.concatenate(rows), np.array(owner, dtype=np.int64)


def _solve(
    ratio: Floats, owner: Integers, p: Floats, q: Floats, allowed: Booleans
) -> tuple[Floats, Floats, Floats] | None:
    """The kernel [left, right], the dual α [constraint] and y [right]; None if infeasible.

    Variables are the allowed cells of β and ε. The column conditions are divided by q, so that
    the solver's tolerance is relative to the mass that has to arrive.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    cell = np.full(allowed.shape, -1)
    cell[allowed] = np.arange(allowed.sum())
    cells, constraints = int(allowed.sum()), len(ratio)
    row, to = np.nonzero(allowed[owner])  # the cells in which each constraint has a coefficient
    above = coo_array(
        (
            np.append(ratio[row, to], -np.ones(constraints)),
            (
                np.append(row, np.arange(constraints)),
                np.append(cell[owner[row], to], np.full(constraints, cells)),
            ),
        ),
        shape=(constraints, cells + 1),
    )
    d, to = np.nonzero(allowed)
    equal = coo_array(
        (
            np.append(np.ones(cells), p[d] / q[to]),
            (np.append(d, len(p) + to), np.append(cell[d, to], cell[d, to])),
        ),
        shape=(len(p) + len(q), cells + 1),
    )
    solved = linprog(
        np.append(np.zeros(cells), 1.0),
        A_ub=above.tocsr(),
        b_ub=np.zeros(constraints),
        A_eq=equal.tocsr(),
        b_eq=np.ones(len(p) + len(q)),
        bounds=[(0, None)] * cells + [(None, None)],
        method="highs",
        options=SOLVER_TOLERANCES,
    )
    if solved.status == 2:
        return None
    if solved.status != 0:
        raise UnsoundRequest(
            f"the linear program for the best coupling was not solved ({solved.message});"
            " no number is given",
            reason="not solved",
        )
    kernel = np.zeros(allowed.shape)
    kernel[allowed] = np.maximum(solved.x[:cells], 0.0)
    kernel /= kernel.sum(axis=1, keepdims=True)
    return kernel, without_dust(-solved.ineqlin.marginals), solved.eqlin.marginals[len(p) :]


def _lower(
    solution: tuple[Floats, Floats, Floats],
    ratio: Floats,
    owner: Integers,
    p: Floats,
    q: Floats,
    allowed: Booleans,
) -> float:
    r"""A bound from below on the ε of every coupling kernel, from α and y; rounded down.

    With :math:`R(D,ℓ) = \sum_ω α(D,ω) r(D,ω,ℓ)` and
    :math:`u(D) = \min_ℓ [R(D,ℓ) - y_ℓ p(D)/q_ℓ]` over the allowed ℓ, every coupling kernel has
    :math:`ε \ge \sum_{D,ℓ} β R \ge \sum_D u(D) + \sum_ℓ y_ℓ (pβ)_ℓ/q_ℓ = \sum_D u(D) + \sum_ℓ y_ℓ`.
    """
    _, alpha, y = solution
    payoff, size = np.zeros(allowed.shape), np.zeros(allowed.shape)
    finite = np.where(allowed[owner], ratio, 0.0)
    np.add.at(payoff, owner, alpha[:, None] * finite)
    np.add.at(size, owner, alpha[:, None] * np.abs(finite))
    price = y * p[:, None] / q
    u = np.where(allowed, payoff - price, np.inf).min(axis=1)
    error = gamma(len(ratio) + 2 * len(p) + 2 * len(q) + 32)
    # logs of ratio are off by their own size, at most |log LEAST|, weighted by α
    spread = np.where(allowed, size + np.abs(price), 0.0).max(axis=1).sum() + np.abs(y).sum()
    return float(u.sum() + y.sum() - 4 * error * (spread - float(np.log(LEAST))))


def _refute(p: Floats, q: Floats, allowed: Booleans) -> None:
    """Prove that no coupling stays on the allowed cells, or raise.

    A cover: u(D) + v(ℓ) ≥ 1 on every allowed cell. A coupling would have
    1 = Σ γ(D,ℓ) ≤ Σ p(D) u(D) + Σ q(ℓ) v(ℓ), so a cover that weighs less than 1 refutes it.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    d, to = np.nonzero(allowed)
    rows = np.arange(len(d))
    cover = coo_array(
        (-np.ones(2 * len(d)), (np.append(rows, rows), np.append(d, len(p) + to))),
        shape=(len(d), len(p) + len(q)),
    )
    u = np.zeros(len(p))
    if len(d):
        solved = linprog(np.append(p, q), A_ub=cover.tocsr(), b_ub=-np.ones(len(d)), bounds=(0, 1))
        u = np.clip(solved.x[: len(p)], 0.0, 1.0) if solved.status == 0 else np.ones(len(p))
    v = np.where(allowed, 1 - u[:, None], 0.0).max(axis=0)
    weight = float(p @ u + q @ v)
    if not weight * (1 + gamma(2 * len(p) + 2 * len(q) + 8)) < 1:
        raise UnsoundRequest(
            "the linear program for the best coupling has no solution, but this could not be"
            " proven; no number is given. Likelihoods of very different size may be the cause",
            reason="not proven",
        )
