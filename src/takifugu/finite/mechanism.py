"""Mechanisms over finite universes: for every dataset, a distribution over outputs."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, SupportsFloat

import numpy as np

from takifugu._core.fingerprint import ByContent
from takifugu._core.numeric import Floats, distribution
from takifugu.errors import InvalidMechanism
from takifugu.priors.universe import Universe, distinct


@dataclass(frozen=True, eq=False)
class FiniteMechanism(ByContent):
    """A row-stochastic table ``likelihood[dataset, output]`` = P(M(dataset) = output).

    >>> coin = FiniteMechanism(Universe((0, 1)), [[0.75, 0.25], [0.25, 0.75]])
    >>> coin.outputs
    (0, 1)
    """

    hashed_as: ClassVar[str] = "Mechanism"

    universe: Universe
    likelihood: Floats
    outputs: tuple[Hashable, ...] = ()
    name: str = "mechanism"

    def __post_init__(self) -> None:
        table = distribution(self.likelihood, "likelihood", InvalidMechanism)
        object.__setattr__(self, "likelihood", table)
        if table.ndim != 2 or len(table) != len(self.universe):
            raise InvalidMechanism(
                "likelihood",
                given=f"has shape {table.shape}",
                needed=f"have one row for each of the {len(self.universe)} datasets",
            )
        outputs = tuple(self.outputs) or tuple(range(table.shape[1]))
        object.__setattr__(self, "outputs", outputs)
        unlike = distinct(outputs, "outputs", InvalidMechanism)
        if len(outputs) != table.shape[1] or not unlike:
            raise InvalidMechanism(
                "outputs",
                given=f"names {len(outputs)} outputs, or one of them twice",
                needed=f"name each of the {table.shape[1]} columns of `likelihood` once",
            )

    @classmethod
    def from_function(
        cls,
        universe: Universe,
        answer: Callable[[Any], Mapping[Any, SupportsFloat] | Hashable],
        *,
        name: str = "mechanism",
    ) -> "FiniteMechanism":
        """Call ``answer`` on every dataset: it returns output → probability, or one output."""
        rows: list[dict[Hashable, float]] = []
        outputs: dict[Hashable, int] = {}
        for dataset in universe.datasets:
            reply = answer(dataset)
            if reply is None:
                raise InvalidMechanism(
                    "answer",
                    given="returned nothing",
                    needed="return outputs with their probabilities",
                )
            try:
                row = reply if isinstance(reply, Mapping) else {reply: 1.0}
                rows.append({output: float(probability) for output, probability in row.items()})
            except (OverflowError, TypeError, ValueError) as error:
                raise InvalidMechanism(
                    "answer",
                    given=f"returned a {type(reply).__name__} that cannot be read",
                    needed="return a mapping from outputs to probabilities, or one output",
                ) from error
            for output in row:
                outputs.setdefault(output, len(outputs))
        table = np.zeros((len(rows), max(len(outputs), 1)))
        for i, row in enumerate(rows):
            for output, probability in row.items():
                table[i, outputs[output]] = probability
        return cls(universe, table, tuple(outputs) or (0,), name)
