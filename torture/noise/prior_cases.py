"""Pufferfish: datasets drawn from a correlated prior given a secret, against a release's price.

The neighbours of `torture.noise.cases` differ in one entry. Here the adversary knows how entries go
together: a dataset is drawn from the prior given one secret, or given the other, a fresh one for
every run, and what is released about it may change the odds between the two by the price at most.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from takifugu.auditing import paths_given
from takifugu.priors import BayesianNetwork, MarkovChain
from takifugu.session import Plan
from torture.noise.leakage import Charged
from torture.noise.trial_tables import MOODS, STATES, Rows, Setting, rows_of

PLACES = ("home", "ward")
STICKY, START, LENGTH, NODE = ((0.97, 0.03), (0.03, 0.97)), (0.5, 0.5), 4, 1
ROUND = ((0.8, 0.15, 0.05), (0.1, 0.8, 0.1), (0.05, 0.15, 0.8))
EVENLY = (1 / 3, 1 / 3, 1 / 3)
OUT, ILL_GIVEN = (0.6, 0.4), ((0.9, 0.1), (0.2, 0.8))  # P(ward), and P(mood) at home and on a ward
Draw = Callable[[bool, int, np.random.Generator], list[Rows]]


def chain_setting(states: tuple[str, ...], transition: Any, start: Any) -> Setting:
    """Sequences of a few steps that go together."""
    prior = MarkovChain(np.array(transition), states=states, start=np.array(start), length=LENGTH)
    return Setting({"state": list(states)}, prior)


def chain_draw(
    states: tuple[str, ...], transition: Any, start: Any, sides: tuple[int, int]
) -> Draw:
    """Paths given that the second step is in one state, or in another."""

    def draw(second: bool, size: int, rng: np.random.Generator) -> list[Rows]:
        given = paths_given(transition, start, LENGTH, NODE, sides[second], rng=rng)
        return [rows_of("state", *(states[code] for code in path)) for path in given(size)]

    return draw


def row_draw(second: bool, size: int, rng: np.random.Generator) -> list[Rows]:
    """One row, given that its mood is the first or the second one."""
    joint = np.array(OUT) * np.array(ILL_GIVEN)[:, int(second)]
    places = rng.choice(len(PLACES), size, p=joint / joint.sum())
    return [({"state": PLACES[place], "mood": MOODS[second]},) for place in places]


TWO = chain_setting(PLACES, STICKY, START)
THREE = chain_setting(STATES, ROUND, EVENLY)
SURVEY = Setting(
    {"state": list(PLACES), "mood": list(MOODS)},
    BayesianNetwork(
        entries=("state", "mood"),
        states=(PLACES, MOODS),
        parents=((), ("state",)),
        tables=(np.array(OUT), np.array(ILL_GIVEN)),
        name="survey",
    ),
    over="row",
)
ADMITTED = chain_draw(PLACES, STICKY, START, (0, 1))
AROUND = chain_draw(STATES, ROUND, EVENLY, (0, 1))


@dataclass(frozen=True)
class PriorCase:
    """A query under a correlated prior, and two secrets.

    Attributes:
        name: The query and the prior in a few words.
        kind: The kind of the query.
        mechanism: The kind of mechanism that a session chooses.
        setting: Table and prior.
        draw: Datasets given the first secret, or the second.
        options: Of the query, beside its kind.
        hidden: The column that the secrets are about.
    """

    name: str
    kind: str
    mechanism: str
    setting: Setting
    draw: Draw
    options: Mapping[str, Any]
    hidden: str = "state"
    alone: bool = False

    @property
    def query(self) -> dict[str, Any]:
        """All options of the query."""
        return {"kind": self.kind, **self.options}

    def datasets(self, groups: int, rng: np.random.Generator) -> list[Rows]:
        """Given the first secret in the groups of even number, given the second in the others."""
        sides = [self.draw(second, (groups + 1) // 2, rng) for second in (False, True)]
        return [sides[group % 2][group // 2] for group in range(groups)]

    def charged(self, plan: Plan) -> Charged:
        """The Pufferfish ε of the release; of the column of the secrets where there are several."""
        if plan.cost.delta:
            raise ValueError("a price with a δ is audited entry by entry")
        by_column = plan.cost.by_column
        return Charged("epsilon", plan.cost.alone if by_column is None else by_column[self.hidden])


PRIOR_CASES = (
    PriorCase(
        "count in a chain",
        "count",
        "integer-laplace",
        TWO,
        ADMITTED,
        {"values": ["ward"], "epsilon": 2},
    ),
    PriorCase(
        "histogram in a chain", "histogram", "integer-laplace", TWO, ADMITTED, {"epsilon": 2}
    ),
    PriorCase(
        "top 1 in a chain, of a gap",
        "top_k",
        "permute-and-flip",
        TWO,
        ADMITTED,
        {"k": 1, "gap": 2, "epsilon": 2},
    ),
    PriorCase(
        "count in a chain of three states",
        "count",
        "integer-laplace",
        THREE,
        AROUND,
        {"values": ["ward"], "epsilon": 2},
    ),
    PriorCase(
        "marginals of related columns",
        "marginals",
        "integer-laplace",
        SURVEY,
        row_draw,
        {"epsilon": 2},
        "mood",
    ),
    PriorCase(
        "histogram of a related column",
        "histogram",
        "integer-laplace",
        SURVEY,
        row_draw,
        {"column": "state", "epsilon": 2},
        "mood",
    ),
)
