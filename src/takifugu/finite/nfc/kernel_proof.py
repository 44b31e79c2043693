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
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats, distribution, frozen
from takifugu._core.rounding import gamma, log_ratio_up
from takifugu.errors import InvalidWorld
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.nfc.condition import Condition, proven_by_beta
from takifugu.finite.nfc.outputs_and_requirements import OutputTable, output_table, supports
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
