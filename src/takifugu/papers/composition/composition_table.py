r"""The appendix's table of privacy definitions, with its column "composition" computed.

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

**The check** (`odds_together`) computes losses again, from the definition alone. Everything is read
off the world itself: each prior's own numbers, each secret's own statement about each dataset,
every sequence of outputs in every order.

**The table.** Each definition is put to the test on a small world of its own. *Yes*: the theorem
above applies, and its hypothesis was checked on that world; so all mechanisms compose linearly
there. *No*: a mechanism was found whose runs lose more than the sum of their losses; both losses
are exact and were computed a second time by code that shares nothing with the search. A definition
that is about functions of the data without any noise is refuted by two such functions. *Open*:
neither.
"""

from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from math import inf, prod
from typing import Literal

import numpy as np

from takifugu.errors import UnsoundRequest
from takifugu.finite.world import World
from takifugu.papers.composition.collapse.repeated_runs import Exact, log_up
from takifugu.papers.composition.composition_attack import (
    LETTERS,
    ComparedLaws,
    FunctionPair,
    Law,
    RepeatedMechanism,
    compared_laws,
    search_composition_attack,
    search_deterministic_attack,
)
from takifugu.papers.composition.definitions import (
    ABSENT,
    bayesian_privacy,
    blowfish_privacy,
    conditional_inference_privacy,
    dependent_privacy,
    differential_privacy,
    distributional_privacy,
    group_privacy,
    inferential_privacy,
    noiseless_privacy,
    per_entry_privacy,
)
from takifugu.priors.explicit import Explicit
from takifugu.priors.secrets import entry_pairs
from takifugu.priors.universe import Tables
from takifugu.visible import four_digits

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
    ahead = {d: [e for e in laws.right if (d, e) in edges] for d in laws.left}
    left, right = dict(laws.left), dict(laws.right)  # what is not carried yet
    flow: dict[Edge, Fraction] = {}
    while (path := _augmenting(ahead, flow, left, right)) is not None:
        first, last = path[0][0], path[-1][1]
        amount = min([left[first], right[last], *(flow[edge] for edge in path[1::2])])
        for place, edge in enumerate(path):
            flow[edge] = flow.get(edge, Fraction(0)) + (-amount if place % 2 else amount)
        left[first] -= amount
        right[last] -= amount
    return flow if sum(flow.values()) == 1 else None


def _augmenting(
    ahead: Mapping[int, list[int]], flow: Mapping[Edge, Fraction], left: Law, right: Law
) -> list[Edge] | None:
    """A shortest path to more flow, along an edge, back on one, along, …; None if there is none."""
    queue = deque([(d, e)] for d in ahead if left[d] for e in ahead[d])
    visited = set[int]()
    while queue:
        path = queue.popleft()
        end = path[-1][1]
        if right[end]:
            return path
        if end not in visited:
            visited.add(end)
            carriers = (d for d in ahead if flow.get((d, end), 0) > 0)
            queue += ([*path, (d, end), (d, e)] for d in carriers for e in ahead[d])
    return None


def odds_of_runs(world: World, rows: Sequence[Sequence[Fraction]], runs: int) -> Exact:
    """e^ε of ``runs`` runs of the mechanism with P(ω|D) = ``rows[D][ω]``; exact."""
    return odds_together(world, [rows] * runs)


def odds_together(world: World, mechanisms: Sequence[Sequence[Sequence[Fraction]]]) -> Exact:
    """e^ε of one run of each mechanism, P(ω|D) = ``mechanisms[i][D][ω]``, seen together; exact.

    For every pair, prior and sequence of outputs the two conditional probabilities are added up
    dataset by dataset and compared.
    """
    if any(sum(row) != 1 or min(row) < 0 for rows in mechanisms for row in rows):
        raise ValueError("every row of a mechanism must be a distribution")
    largest: Exact = Fraction(1)
    truth = {
        secret: secret.mask(world.universe).tolist()
        for pair in world.pairs
        for secret in (pair.left, pair.right)
    }
    for sequence in product(*(range(len(rows[0])) for rows in mechanisms)):
        likelihood = []
        for dataset in range(len(world.universe)):
            value = Fraction(1)
            for rows, output in zip(mechanisms, sequence, strict=True):
                value *= rows[dataset][output]
            likelihood.append(value)
        for prior in world.listed_priors:
            probability = list(map(Fraction, prior.probability.tolist()))
            given = {}
            for secret, holds in truth.items():
                mass = seen = Fraction(0)
                for true, p, value in zip(holds, probability, likelihood, strict=True):
                    if true:
                        mass += p
                        seen += p * value
                given[secret] = seen / mass if mass else None
            for pair in world.pairs:
                left, right = given[pair.left], given[pair.right]
                if left is None or right is None or left == 0:
                    continue
                largest = max(largest, left / right if right else inf)
    return largest


Answer = Literal["yes", "no", "open"]
INFINITE = "infinite"
MOST_NAMED = 3  # datasets that are listed rather than called the others


@dataclass(frozen=True)
class DefinitionOnWorld:
    """A definition, the small world it is examined on, and what the paper prints about it.

    Attributes:
        key: A short name.
        definition: The definition and its authors.
        where: The world in words.
        printed: The paper's "composition"; None if the definition has no row in its table.
        world: Makes the world.
        noiseless: Whether the definition is about mechanisms without randomness of their own.
    """

    key: str
    definition: str
    where: str
    printed: Literal["yes", "no"] | None
    world: Callable[[], World]
    noiseless: bool = False


@dataclass(frozen=True)
class CompositionRow:
    """A row of the table: a definition on its world, and whether it composes there.

    Attributes:
        about: The definition and its world.
        composes: The verdict.
        proof: The theorem's hypothesis, checked; None unless the verdict is yes.
        attack: What loses too much together; None unless the verdict is no.
    """

    about: DefinitionOnWorld
    composes: Answer
    proof: CouplingProof | None = None
    attack: RepeatedMechanism | FunctionPair | None = None

    @property
    def differs(self) -> bool:
        """Whether the paper prints something else."""
        return self.about.printed is not None and self.composes != self.about.printed

    @property
    def witness(self) -> str:
        """Why, in words: the theorem with its hypothesis, or what leaks, with its losses."""
        if self.proof is not None:
            most, every = self.proof.one_by_one, self.proof.comparisons
            rest = "" if most == every else f", {every - most} are mixtures of these"
            return f"theorem; {most} of {every} comparisons are of single datasets{rest}"
        if self.attack is None:
            return "neither a proof nor a counterexample was found"
        together = shown(self.attack.together)
        if isinstance(self.attack, FunctionPair):
            alone = " and ".join(
                f"{name} loses {shown(odds)}"
                for name, odds in zip(self.attack.names, self.attack.once, strict=True)
            )
            sure = f", which rules out {self.attack.pair.right}" if together == INFINITE else ""
            return (
                f"functions without noise: {alone}, both together {together}"
                f" (seen: {self.attack.seen[0]} and {self.attack.seen[1]}{sure})"
            )
        return (
            f"one run loses {shown(self.attack.once)}, {self.attack.runs} runs {together}"
            f" (seen: {_seen(self.attack)}): {_described(self.about.world(), self.attack)}"
        )


def composition_rows(
    listed: "Sequence[DefinitionOnWorld] | None" = None,
) -> tuple[CompositionRow, ...]:
    """Every definition on its world, examined; see the module."""
    return tuple(examined(one) for one in (DEFINED if listed is None else listed))


def examined(about: DefinitionOnWorld) -> CompositionRow:
    """Whether ``about`` composes on its world: a proof, else a counterexample, else open."""
    world = about.world()
    proof = coupling_proof(world)
    if proof is not None:
        return CompositionRow(about, "yes", proof=proof)
    attack: RepeatedMechanism | FunctionPair | None
    if about.noiseless:
        attack = search_deterministic_attack(world)
    else:
        attack = search_composition_attack(world)
    if attack is None:
        return CompositionRow(about, "open")
    recheck(world, attack)
    return CompositionRow(about, "no", attack=attack)


def recheck(world: World, attack: RepeatedMechanism | FunctionPair) -> None:
    """Compute all losses again by other code; refuse an attack that is not what it says."""
    said: tuple[Exact, ...]
    again: tuple[Exact, ...]
    if isinstance(attack, FunctionPair):
        name, said = " and ".join(attack.names), (*attack.once, attack.together)
        again = (
            *(odds_together(world, [rows]) for rows in attack.rows),
            odds_together(world, attack.rows),
        )
    else:
        name = attack.name
        said = (*[attack.once] * attack.runs, attack.together)
        again = (
            *[odds_of_runs(world, attack.rows, 1)] * attack.runs,
            odds_of_runs(world, attack.rows, attack.runs),
        )
    if again != said or not again[-1] > prod(again[:-1]):
        raise UnsoundRequest(
            f"a second computation of {name!r} gives {again[0]} and {again[-1]} instead of"
            f" {said[0]} and {said[-1]}; no verdict is given",
            reason="recheck",
        )


def shown(odds: Exact) -> str:
    """A loss with the exact ratio that it is the logarithm of."""
    if isinstance(odds, float):
        return INFINITE
    return "0" if odds == 1 else f"log {odds} = {four_digits(log_up(odds))}"


def _described(world: World, attack: RepeatedMechanism) -> str:
    if attack.outputs != LETTERS:
        return attack.name
    alike: dict[Fraction, list[str]] = {}
    for data, row in zip(world.universe.datasets, attack.rows, strict=True):
        alike.setdefault(row[1], []).append(_short(data))
    most, where = max(alike.items(), key=lambda item: len(item[1]))
    rest = len(where) > MOST_NAMED
    parts = [f"{p} for {', '.join(w)}" for p, w in sorted(alike.items(), reverse=True)
             if not rest or p != most]  # fmt: skip
    return f"outputs {LETTERS[1]} rather than {LETTERS[0]} with probability " + "; ".join(
        [*parts, f"{most} for the others"] if rest else parts
    )


def _seen(attack: RepeatedMechanism) -> str:
    words = [_short(one) for one in attack.seen]
    if len(set(words)) == 1:
        return f"{words[0]} {('', 'once', 'twice', 'three times')[len(words)]}"
    return " and ".join(words)


def _short(data: Hashable) -> str:
    """A dataset in few letters, entry by entry; - for an absent owner."""
    if not isinstance(data, tuple):
        return str(data)
    return "".join("-" if value == ABSENT else str(value) for value in data)


def _bits(names: str) -> Tables:
    return Tables.of(dict.fromkeys(names, (0, 1)))


def _coins(names: str) -> Explicit:
    return Explicit.uniform(_bits(names), name="fair coins")


def _walk(tables: Tables, start: Sequence[float], step: Sequence[Sequence[float]]) -> Explicit:
    """A Markov chain over the entries of ``tables``, in order."""
    paths = tables.codes.tolist()
    law = [start[path[0]] * prod(step[a][b] for a, b in pairwise(path)) for path in paths]
    return Explicit(tables, np.array(law), "Markov chain")


@cache
def _dependent() -> Explicit:
    return Explicit(_bits("ab"), np.array([1, 1, 3, 11]) / 16, "two dependent bits")


def _one_pair() -> World:
    prior = _coins("ab")
    return World(prior.universe, (prior,), entry_pairs(_bits("ab"), entries=["a"]))


DEFINED = (
    DefinitionOnWorld(
        "differential", "Differential privacy (Dwork et al.)",
        "records a of 2 and b of 3 values; all priors with independent records", "yes",
        lambda: differential_privacy(Tables.of({"a": (0, 1), "b": (0, 1, 2)})),
    ),
    DefinitionOnWorld(
        "per-entry", "Per-entry DP (Definition 2)",
        "3 bits, two of them of one person; all priors with independent entries", None,
        lambda: per_entry_privacy(
            Tables.of(dict.fromkeys("abc", (0, 1)), records={"a": "u", "b": "u", "c": "v"})
        ),
    ),
    DefinitionOnWorld(
        "group", "Group DP (Definition 3)",
        "3 bits; any 2 replaced at once", None,
        lambda: group_privacy(_bits("abc"), size=2),
    ),
    DefinitionOnWorld(
        "dependent", "Dependent DP (Liu et al.)",
        "3 bits; any dependence within any 2 of them", "yes",
        lambda: dependent_privacy(_bits("abc"), size=2),
    ),
    DefinitionOnWorld(
        "dependent-known", "Dependent DP, one dependence known and averaged over",
        "2 dependent bits (00, 01, 10, 11 as 1 : 1 : 3 : 11)", None,
        lambda: inferential_privacy([_dependent()]),
    ),
    DefinitionOnWorld(
        "noiseless", "Noiseless privacy (Bhaskar et al.)",
        "3 independent fair bits, each of them secret", "yes",
        lambda: noiseless_privacy(_coins("abc")), noiseless=True,
    ),
    DefinitionOnWorld(
        "blowfish", "Blowfish privacy (He et al.)",
        "2 entries of 3 values, neighbouring values secret; no constraints", "yes",
        lambda: blowfish_privacy(
            Tables.of({"a": (0, 1, 2), "b": (0, 1, 2)}),
            graph={"a": [(0, 1), (1, 2)], "b": [(0, 1), (1, 2)]},
        ),
    ),
    DefinitionOnWorld(
        "blowfish-constraints", "Blowfish privacy with public constraints (He et al.)",
        "3 bits, exactly one of them 1, which is public", "yes",
        lambda: blowfish_privacy(_bits("abc"), allowed=lambda data: sum(data) == 1),
    ),
    DefinitionOnWorld(
        "pufferfish", "Pufferfish privacy (Kifer and Machanavajjhala)",
        "2 independent fair bits, the first of them secret", "no",
        _one_pair,
    ),
    DefinitionOnWorld(
        "inferential", "Inferential privacy (Ghosh and Kleinberg)",
        "3 bits, a Markov chain that stays with probability 3/4", "no",
        lambda: inferential_privacy(
            [_walk(_bits("abc"), [0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])]
        ),
    ),
    DefinitionOnWorld(
        "conditional", "Conditional inference privacy (Meehan and Chaudhuri)",
        "3 places in a row at 2 times, a walk between neighbours; neighbouring places are secret",
        "no",
        lambda: conditional_inference_privacy(
            [
                _walk(
                    Tables.of({"first": (0, 1, 2), "second": (0, 1, 2)}),
                    [0.25, 0.5, 0.25],
                    [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]],
                )
            ],
            near=lambda x, y: abs(x - y) <= 1,
        ),
    ),
    DefinitionOnWorld(
        "partial-knowledge", "Partial knowledge DP (Desfontaines et al.)",
        "4 independent fair bits, of which the last is known", "no",
        lambda: bayesian_privacy([_coins("abcd")], known=[("d",)]),
    ),
    DefinitionOnWorld(
        "bayesian", "Bayesian DP (Yang et al.)",
        "2 dependent bits (00, 01, 10, 11 as 1 : 1 : 3 : 11); any bit may be known", "no",
        lambda: bayesian_privacy([_dependent()]),
    ),
    DefinitionOnWorld(
        "bayesian-independent", "Bayesian DP, independent entries",
        "2 independent fair bits; any bit may be known", None,
        lambda: bayesian_privacy([_coins("ab")]),
    ),
    DefinitionOnWorld(
        "distributional", "Distributional DP (Bassily et al.)",
        "2 independent fair bits, each against the absence of its owner", "no",
        lambda: distributional_privacy([_coins("ab")]),
    ),
)  # fmt: skip
