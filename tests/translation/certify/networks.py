"""Small networks with the programs over all their datasets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from takifugu._core.numeric import Booleans, Floats
from takifugu.priors import BayesianNetwork
from takifugu.priors.networks import Sides
from takifugu.translation.entry_costs import cost_matrices
from takifugu.translation.models.tree import JunctionTree, Tree
from takifugu.translation.search.junction import junction_tree
from tests.oracles.cost_instances import instance
from tests.oracles.cost_programs import Solved


@dataclass(frozen=True, eq=False)
class SolvedNetwork:
    """A problem, its secrets, a junction tree, and the truth about each pair."""

    problem: Tree
    tree: JunctionTree
    secrets: dict[int, Sides]
    truth: dict[tuple[int, tuple[int, ...], tuple[int, ...]], Solved]

    def below(self, bounds: dict[int, Floats]) -> list[tuple[float, float]]:
        """Bounds that lie below what some mechanism leaks, with that."""
        return [
            (float(bound), self.truth[entry, *pair].lower)
            for entry, pairs in self.secrets.items()
            for pair, bound in zip(pairs, bounds[entry], strict=True)
            if (entry, *pair) in self.truth
            and not bound >= self.truth[entry, *pair].lower * (1 - 1e-9) - 1e-9
        ]

    def mask(self, entry: int, values: Sequence[int]) -> Booleans:
        """The values of one side of a secret."""
        return np.isin(np.arange(self.problem.sizes[entry]), values)


def solved_network(seed: int) -> SolvedNetwork:
    """The network of this number, with the linear programs of all its secrets."""
    drawn = instance(seed, "network")
    assert isinstance(drawn.prior, BayesianNetwork)
    prior = drawn.prior
    problem = Tree.from_model(prior, cost_matrices(prior.entries, prior.states, drawn.costs))
    truth = {(pair.entry, pair.left, pair.right): loss for pair, loss in drawn.losses()}
    secrets: dict[int, Sides] = {}
    for pair in drawn.asked:
        secrets[pair.entry] = (*secrets.get(pair.entry, ()), (pair.left, pair.right))
    return SolvedNetwork(problem, junction_tree(prior, largest=2**16), secrets, truth)
