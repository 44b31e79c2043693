r"""Certificates in the style of differential privacy: D* hides behind one single dataset.

A constraint of this style is :math:`P(ω|D^*) \le e^ε P(ω|D_ℓ)`, a certificate β with one
non-zero entry. It may cost more than the best β, and never costs less.

Constraints at one ε do not chain: D → D″ → D′ costs 2ε. So, for ε > 0, no set of distinct
DP-style constraints has a redundant member: to imply (D, D′) the others would have to carry one
unit from D to D′ with a total flow of at most 1, and any way other than the
direct one takes two steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from takifugu._core.numeric import Booleans
from takifugu.errors import UnsoundRequest
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.nfc.condition import Certificate, Condition, dp_costs, dp_epsilon
from takifugu.finite.nfc.outputs_and_requirements import Requirement, requirements
from takifugu.finite.world import World
from takifugu.visible import four_digits

MOST_SETS = 200_000  # candidate sets tried for one dataset to prove that none is smaller


@dataclass(frozen=True)
class StyleComparison:
    """How a certificate compares with the best of DP style.

    Attributes:
        certificate: The certificate compared.
        one_hot: Whether its β has one non-zero entry.
        behind: The position of the dataset of the best DP-style certificate.
        epsilon: What that certificate proves; an upper bound, infinite if there is none.
        same: Whether it costs no more than any other β, up to rounding:
            ``epsilon`` is within ``tolerance`` of the certificate's lower bound.
    """

    certificate: Certificate
    one_hot: bool
    behind: int
    epsilon: float
    same: bool


@dataclass(frozen=True)
class DpConstraints:
    """DP-style constraints (D, D′), by position, that meet every requirement of a world at ε.

    Attributes:
        epsilon: The ε of all of them.
        constraints: The ordered pairs (D, D′): P(ω|D) ≤ e^ε P(ω|D′).
        at_least: No set of fewer constraints than this will do.
    """

    epsilon: float
    constraints: tuple[tuple[int, int], ...]
    at_least: int

    @property
    def minimum(self) -> bool:
        """Whether it is proven that no set of fewer constraints will do."""
        return len(self.constraints) == self.at_least


def dp_styles(
    world: World,
    mechanisms: Sequence[FiniteMechanism],
    condition: Condition,
    *,
    tolerance: float = 1e-9,
) -> tuple[StyleComparison, ...]:
    """Which certificates of ``condition`` are DP-style, and what requiring that would cost."""
    cost = dp_costs(world, mechanisms)
    result = []
    for certificate in condition.certificates:
        requirement = certificate.requirement
        among = np.array(requirement.among)
        behind = int(among[np.argmin(cost[requirement.dataset, among])])
        epsilon = float(cost[requirement.dataset, behind])
        same = epsilon <= certificate.lower + tolerance
        one_hot = int(np.count_nonzero(certificate.beta)) == 1
        result.append(StyleComparison(certificate, one_hot, behind, epsilon, same))
    return tuple(result)


def least_dp_constraints(
    world: World, mechanisms: Sequence[FiniteMechanism], epsilon: float
) -> DpConstraints:
    """A smallest set of DP-style constraints at ``epsilon`` that meets every requirement.

    Only constraints that ``mechanisms`` obey are used. One (D, D′) serves every pair whose left
    secret is true of D and whose right one is true of D′, so the sets for different D are
    chosen independently: a set cover for each, begun greedily. The greedy cover is proven least
    by disjoint requirements, or by trying all smaller sets while they number at most
    ``MOST_SETS``; otherwise ``at_least`` says how far the proof got.
    """
    needed = dp_epsilon(world, mechanisms)
    if not needed <= epsilon:  # also true for NaN
        raise UnsoundRequest(
            f"no set of DP-style constraints meets every requirement at ε = {epsilon:g};"
            f" the mechanisms need ε = {four_digits(needed, 'up')} or more",
            field="epsilon",
            given=epsilon,
            needed=needed,
        )
    allowed = dp_costs(world, mechanisms) <= epsilon
    by_dataset: dict[int, list[Requirement]] = {}
    for requirement in requirements(world):
        by_dataset.setdefault(requirement.dataset, []).append(requirement)
    constraints: list[tuple[int, int]] = []
    at_least = 0
    for dataset, wanted in sorted(by_dataset.items()):
        meets = np.zeros((len(wanted), len(world.universe)), dtype=bool)
        for i, requirement in enumerate(wanted):
            meets[i, list(requirement.among)] = True
        chosen, bound = _cover(meets & allowed[dataset])
        constraints += [(dataset, target) for target in chosen]
        at_least += bound
    return DpConstraints(epsilon, tuple(constraints), at_least)


def _cover(meets: Booleans) -> tuple[list[int], int]:
    """Few columns of ``[requirement, dataset]`` that meet every row; and at least how many."""
    everything = (1 << len(meets)) - 1
    masks = {
        int(j): sum(1 << int(i) for i in np.flatnonzero(meets[:, j]))
        for j in np.flatnonzero(meets.any(axis=0))
    }
    useful: dict[int, int] = {}  # rows met -> column; dominated columns are left out
    for j, mask in sorted(masks.items(), key=lambda item: -item[1].bit_count()):
        if not any(mask & known == mask for known in useful):
            useful[mask] = j
    chosen = _greedy(list(useful), everything)
    bound = _disjoint(meets)
    for size in range(bound, len(chosen)):
        if comb(len(useful), size) > MOST_SETS:
            return sorted(useful[mask] for mask in chosen), size
        for pick in combinations(useful, size):
            met = 0
            for mask in pick:
                met |= mask
            if met == everything:
                return sorted(useful[mask] for mask in pick), size
    return sorted(useful[mask] for mask in chosen), len(chosen)


def _greedy(masks: list[int], everything: int) -> list[int]:
    """Repeatedly the mask that meets most of what is left; then redundant ones are dropped."""
    chosen: list[int] = []
    left = everything
    while left:
        chosen.append(max(masks, key=lambda mask: (mask & left).bit_count()))
        left &= ~chosen[-1]
    for mask in list(chosen):
        rest = 0
        for other in chosen:
            rest |= other if other != mask else 0
        if rest == everything:
            chosen.remove(mask)
    return chosen


def _disjoint(meets: Booleans) -> int:
    """Rows that share no column, chosen greedily: each needs a column of its own."""
    taken = np.zeros(meets.shape[1], dtype=bool)
    count = 0
    for row in sorted(meets, key=lambda row: int(row.sum())):
        if not (row & taken).any():
            taken |= row
            count += 1
    return count
