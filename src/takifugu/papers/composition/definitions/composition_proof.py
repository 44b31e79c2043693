r"""When every mechanism composes linearly: whatever is compared is compared dataset by dataset.

**Theorem.** Let a world compare the datasets D and D' *one by one* if under some prior one side of
a pair leaves D alone and the other D' alone; let C be the set of these (D, D'). If for every pair
and prior there is a coupling of :math:`P(\cdot|s)` and :math:`P(\cdot|s')` that is supported on
C, then the loss of every mechanism is

.. math:: ε(M) = \max_{(D, D') \in C}\ \max_ω\ \log\frac{P(ω|D)}{P(ω|D')},

so that mechanisms on the same data, however they are post-processed, lose together at most the sum
of what they lose one by one: linear composition, for all mechanisms and any number of them.

*Proof.* At least: each (D, D') of C is what some pair under some prior compares. At most: with a
coupling :math:`κ` on C, :math:`P(ω|s) = \sum κ(D,D') P(ω|D) \le e^{ε} \sum κ(D,D') P(ω|D')
= e^{ε} P(ω|s')`. The joint law of independent runs is a product, and the logarithm of a product of
ratios is the sum of the logarithms. ∎

It is the converse of the paper's Theorem 4 (NfC) where that has one: the rows of the coupling are
convex combinations β, the same for all mechanisms, and they cost what single datasets cost, as
differential privacy has it. Whether there is such a coupling is a question of flows, which is
answered here in fractions.
"""

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction

from takifugu.finite.world import World
from takifugu.papers.composition.definitions.compared_laws import ComparedLaws, Law, compared_laws

Edge = tuple[int, int]


@dataclass(frozen=True)
class CouplingProof:
    """The hypothesis of the theorem, checked on a world.

    Attributes:
        edges: C, the datasets that are compared one by one, by position.
        comparisons: How many pairs under priors there are.
        one_by_one: How many of these compare single datasets; the others needed a coupling.
    """

    edges: frozenset[Edge]
    comparisons: int
    one_by_one: int


def coupling_proof(world: World) -> CouplingProof | None:
    """The theorem's hypothesis, if it is true of ``world``; else None."""
    laws = compared_laws(world)
    edges = frozenset(one.single for one in laws if one.single is not None)
    rest = [one for one in laws if one.single is None]
    if not edges or any(coupling(one, edges) is None for one in rest):
        return None
    return CouplingProof(edges, len(laws), len(laws) - len(rest))


def coupling(laws: ComparedLaws, edges: Collection[Edge]) -> Mapping[Edge, Fraction] | None:
    """A coupling of the two laws that is supported on ``edges``; None if there is none.

    A flow from the left to the right law that carries everything, found by augmenting paths:
    shortest ones, so that it ends also with fractions (Edmonds and Karp).
    """
    ahead: dict[int, list[int]] = {d: [e for e in laws.right if (d, e) in edges] for d in laws.left}
    flow: dict[Edge, Fraction] = {}
    while True:
        path = _augmenting(laws, ahead, flow)
        if path is None:
            break
        room = _room(laws, path, flow)
        for place, (left, right) in enumerate(path):
            flow[left, right] = flow.get((left, right), Fraction(0)) + (
                -room if place % 2 else room
            )
    return flow if sum(flow.values()) == 1 else None


def _augmenting(
    laws: ComparedLaws, ahead: Mapping[int, list[int]], flow: Mapping[Edge, Fraction]
) -> list[Edge] | None:
    """Edges of a path to more flow: along, back, along, …; None if there is none."""
    came: dict[tuple[bool, int], int | None] = {}
    queue: deque[tuple[bool, int]] = deque()
    for d in laws.left:
        if _spare(laws.left, d, flow, side=0) > 0:
            came[True, d] = None
            queue.append((True, d))
    while queue:
        on_left, here = queue.popleft()
        if not on_left and _spare(laws.right, here, flow, side=1) > 0:
            return _traced(came, here)
        nexts = (
            ahead[here]
            if on_left
            else [d for d in laws.left if flow.get((d, here), Fraction(0)) > 0]
        )
        for other in nexts:
            if (not on_left, other) not in came:
                came[not on_left, other] = here
                queue.append((not on_left, other))
    return None


def _traced(came: Mapping[tuple[bool, int], int | None], end: int) -> list[Edge]:
    path: list[Edge] = []
    on_left, here = False, end
    while (before := came[on_left, here]) is not None:
        path.append((here, before) if on_left else (before, here))
        on_left, here = not on_left, before
    return path[::-1]


def _room(laws: ComparedLaws, path: list[Edge], flow: Mapping[Edge, Fraction]) -> Fraction:
    ends = (
        _spare(laws.left, path[0][0], flow, side=0),
        _spare(laws.right, path[-1][1], flow, side=1),
    )
    return min(*ends, *(flow[edge] for edge in path[1::2])) if len(path) > 1 else min(ends)


def _spare(law: Law, dataset: int, flow: Mapping[Edge, Fraction], *, side: int) -> Fraction:
    return law[dataset] - sum((f for edge, f in flow.items() if edge[side] == dataset), Fraction(0))
