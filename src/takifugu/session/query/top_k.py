"""``top_k``: the k most frequent labels, or combinations of labels, in order."""

from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np

from takifugu.engines import Declaration, Engine
from takifugu.mechanisms import (
    Choice,
    Mechanism,
    NoisyTopK,
    RankingError,
    plan_top_k,
)
from takifugu.mechanisms.mechanism_plan import merit, name, once, price
from takifugu.session.cells import Rows
from takifugu.session.query.histogram import HistogramQuery
from takifugu.session.query.query import (
    Aim,
    ChosenMechanism,
    ResultTable,
    in_currency,
    own_columns,
    shape,
)
from takifugu.session.query_options import QueryOptions

# A selection is one call of OpenDP for each group, about .1 ms; noise is one call for them all.
MOST_SELECTIONS = 200_000


@dataclass(frozen=True)
class TopKQuery(HistogramQuery):
    """The k most frequent labels, or combinations of labels of several columns."""

    kind: ClassVar[str] = "top_k"

    k: int = 1

    @classmethod
    def of(
        cls,
        options: QueryOptions,
        declaration: Declaration,  # noqa: ARG003
        columns: tuple[str, ...],
        rows: Rows,
    ) -> Self:
        """With k."""
        k = 1 if options.k is None else options.k
        return cls(columns[0], options.by, rows, k, beside=columns[1:])

    def body(self) -> dict[str, Any]:
        """With k."""
        return {**super().body(), "k": self.k}

    def choose(self, engine: Engine, aim: Aim) -> ChosenMechanism:
        """The mechanism that gets most places right, or the cheapest that gets enough right."""
        size, groups = shape(self, engine)
        found = plan_top_k(
            size,
            self.k,
            groups,
            loss=aim.allowed,
            delta=aim.delta if aim.allowed is None else None,
            reference=aim.reference,
            gap=aim.gap,
            confidence=aim.confidence,
        )
        choices = found.choices
        at_once = ""
        if groups > MOST_SELECTIONS:
            choices = tuple(c for c in choices if isinstance(c.mechanism, NoisyTopK))
            at_once = (
                f"; with more than {MOST_SELECTIONS:,} groups the noise of all is drawn at once"
            )
        best: Choice[Any, RankingError] = in_currency(choices, aim)
        goal = ""
        if aim.allowed is None:
            goal = f", for places that are right with probability {aim.probability:.3g}"
        reason = (
            f"mechanism: {name(best.mechanism)}, which {merit(best)}{goal}; a per-entry DP loss of"
            f" {price(best.mechanism.loss)}{once(groups)}{at_once}"
        )
        return ChosenMechanism(best.mechanism, asdict(best.error), reason)

    def table(self, mechanism: Mechanism, answer: list[Any], engine: Engine) -> ResultTable:  # noqa: ARG002
        """The keys, the rank and the label of each column."""
        axes, many = self.axes(engine), len(self.by)
        groups, labels = axes[:many], list(product(*(keys for _, keys in axes[many:])))
        names, places = tuple(name for name, _ in groups), iter(answer)
        rows = tuple(
            (*group, place + 1, *labels[next(places)])
            for group in product(*(keys for _, keys in groups))
            for place in range(self.k)
        )
        return (*names, *own_columns((*names, *self.columns), "rank"), *self.columns), rows

    def draw(self, mechanism: Mechanism, engine: Engine) -> list[Any]:
        """The places of the candidates, in each group: combinations of labels are candidates."""
        exact = self.exact(engine)
        size, _ = shape(self, engine)
        flat = exact.reshape(*exact.shape[: len(self.by)], size)
        answer: list[Any] = np.ravel(mechanism.release(flat)).tolist()
        return answer
