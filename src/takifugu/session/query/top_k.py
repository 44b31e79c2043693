"""``top_k``: the k most frequent labels, or combinations of labels, in order.

Two kinds of mechanism rank labels. Noise on all counts, which are then sorted, pays for the counts
as well: they are kept with the answer, and each place comes with its count, an interval and the
probability that it is right, under a flat prior on counts (`takifugu.mechanisms.prediction`). A
selection (permute-and-flip, the exponential mechanism) names labels and nothing else; how sure a
place is then depends on leads that nobody has seen, and only a public ``reference`` or a ``gap``
says how likely it is to be right. So a selection, which resolves leads that are 10 to 40 % smaller
if k = 1 and is worse for larger k, is used only where one of these is given.

The labels in ``leave_out`` are no candidates. A replaced row still takes one count down and another
up at most, so that the sensitivity is that of a histogram.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.declarations import Declaration, InvalidQuery
from takifugu.mechanisms import (
    Choice,
    Mechanism,
    NoisyTopK,
    RankingError,
    plan_top_k,
)
from takifugu.mechanisms.planner import merit, name, once, price
from takifugu.mechanisms.prediction import right_places
from takifugu.priors import Name
from takifugu.session.possible_answers import CUT, AnswerTable, Shown, Units, possible
from takifugu.session.query.counts import HistogramQuery
from takifugu.session.query.query import (
    CONFIDENCE,
    Aim,
    Axes,
    ChosenMechanism,
    in_currency,
    labels_of,
    own_columns,
    shape,
)
from takifugu.tables import Engine

# A selection is one call for each group, about 10 µs a label; noise is one call for them all.
MAX_SELECTIONS = 200_000
POSTERIOR = (
    "the probability of a place, that its label has the count that belongs there, is no guarantee:"
    " it assumes that before the release every count from 0 to the rows of its group was as likely"
    " as any other, each by itself; where it was not, as in small groups, the place may be right"
    " far less often than it says; the intervals assume nothing: those of a group all hold together"
    " with probability 0.95, whatever the counts are and whichever labels are named"
)
PREDICTED = (
    "the probability of a place is what was predicted for the reference or the gap, and is right"
    " only if the counts are like these: no counts were released"
)
UNKNOWN = (
    "no counts were released, so that how sure a place is depends on leads that are not known; give"
    " a `gap` or a `reference` to see how likely it is to be right for these"
)
TOO_MANY = "there are too many labels that may be ahead of another to compute probabilities"


@dataclass(frozen=True)
class TopKQuery(HistogramQuery):
    """The k most frequent labels, or combinations of labels of several columns.

    Attributes:
        k: How many are named, best first.
        leave_out: Labels that are not ranked.
    """

    kind: ClassVar[str] = "top_k"
    counts_rows: ClassVar[bool] = False
    summary: ClassVar[str] = "the {k} most frequent values of {column}{by}"
    question: ClassVar[str] = "Which are the {k} most frequent values of {column}{each}?"

    k: int = 1
    leave_out: tuple[Name, ...] = ()

    def check(self, declaration: Declaration) -> None:
        """The columns must hold labels, among them those that are left out and k others."""
        super().check(declaration)
        if not self.leave_out:
            return
        if self.beside:
            raise InvalidQuery(
                "leave_out",
                given=f"is beside several columns, {', '.join(self.columns)}",
                needed="be left out: of which of them a label is meant is not said",
                reason="several-columns",
            )
        keys, given = labels_of(declaration, self.kind, self.column).keys, ""
        if len(set(self.leave_out)) < len(self.leave_out):
            given = "repeats a label"
        unknown = [label for label in self.leave_out if label not in keys]
        if unknown:
            given = f"names {unknown[0]!r:.80}, which is not declared"
        elif len(keys) - len(self.leave_out) < max(self.k, 1):
            given = f"leaves {len(keys) - len(self.leave_out)} labels for {self.k} places"
        if given:
            listed = ", ".join(map(repr, keys))
            raise InvalidQuery(
                "leave_out", given=given, needed=f"be labels of {self.column}: {listed:.400}"
            )

    def body(self) -> dict[str, Any]:
        """With k, and what is left out, if anything is: as a ranking of all was always stored."""
        out = sorted(self.leave_out, key=str)
        return {**super().body(), "k": self.k, **({"leave_out": out} if out else {})}

    def axes(self, engine: Engine) -> Axes:
        """The groups and the labels that are ranked."""
        found = super().axes(engine)
        out = frozenset(self.leave_out)
        if not out:
            return found
        return (
            *found[:-1],
            (self.column, tuple(k for k in engine.keys(self.column) if k not in out)),
        )

    def scales(self, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:
        """A lead of many times the usual size may well be there: only the range is too much."""
        counted = super().scales(engine, rows, filled)
        return {**counted, "one": "a lead", "error": "gap", "noise": rows}

    def cells_of_a_group(self, engine: Engine) -> int:
        """All labels are counted, and those that are left out taken out."""
        return int(np.prod([len(engine.keys(column)) for column in self.columns]))

    def exact(self, engine: Engine) -> Integers:
        """``[by, label]``, with an axis for each column."""
        counts = super().exact(engine)
        if not self.leave_out:
            return counts
        out = frozenset(self.leave_out)
        return np.compress([key not in out for key in engine.keys(self.column)], counts, axis=-1)

    def choose(self, engine: Engine, aim: Aim) -> ChosenMechanism:
        """The mechanism that gets most places right, or the cheapest that gets enough right.

        Without a reference or a gap it is one that also releases counts, without which nobody knows
        how sure a place is.
        """
        choices, groups = self._choices(engine, aim)
        with_counts = tuple(c for c in choices if isinstance(c.mechanism, NoisyTopK))
        why = ""
        if groups > MAX_SELECTIONS:
            choices = with_counts
            why = f"; with more than {MAX_SELECTIONS:,} groups the noise of all is drawn at once"
        elif aim.reference is None and aim.gap is None:
            first: Choice[Any, RankingError] = in_currency(choices, aim)
            choices = with_counts
            if not isinstance(first.mechanism, NoisyTopK):
                why = (
                    f" Its counts say how sure each place is; {name(first.mechanism)}"
                    f" {merit(first)} and cannot: with a `gap` or a `reference` it is used"
                )
        return self._chosen_ranking(in_currency(choices, aim), aim, groups, why)

    def chosen_earlier(self, engine: Engine, aim: Aim) -> tuple[ChosenMechanism, ...]:
        """A selection that names one label, which was used without a reference as well."""
        if aim.reference is not None or aim.gap is not None or self.leave_out or self.k > 1:
            return ()
        choices, groups = self._choices(engine, aim)
        first: Choice[Any, RankingError] = in_currency(choices, aim)
        if groups > MAX_SELECTIONS or isinstance(first.mechanism, NoisyTopK):
            return ()
        return (self._chosen_ranking(first, aim, groups, ""),)

    def _choices(self, engine: Engine, aim: Aim) -> tuple[tuple[Choice[Any, Any], ...], int]:
        """Every mechanism, best first, and how many groups there are."""
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
        return found.choices, groups

    def _chosen_ranking(
        self, best: Choice[Any, RankingError], aim: Aim, groups: int, why: str
    ) -> ChosenMechanism:
        goal = ""
        if aim.allowed is None:
            goal = f", for places that are right with probability {aim.probability:.3g}"
        reason = (
            f"mechanism: {name(best.mechanism)}, which {merit(best)}{goal}; a per-entry DP loss of"
            f" {price(best.mechanism.loss)}{once(groups)}{why}"
        )
        return ChosenMechanism(best.mechanism, asdict(best.error), reason)

    def draw(self, mechanism: Mechanism, engine: Engine) -> list[Any]:
        """A list of noisy counts for each group, or the candidates that were selected, one by one.

        Combinations of labels are candidates; they are given by their places.
        """
        exact = self.exact(engine)
        size, groups = shape(self, engine)
        flat = exact.reshape(groups, size)
        if isinstance(mechanism, NoisyTopK):
            noisy: list[Any] = mechanism.noisy(flat).tolist()
            return noisy
        answer: list[Any] = np.ravel(mechanism.release(flat)).tolist()
        return answer

    def tabulated(
        self, mechanism: Mechanism, answer: list[Any], engine: Engine, error: Mapping[str, Any]
    ) -> AnswerTable:
        """The keys, the rank, the label of each column, what is known of its count, and how sure.

        Answers of earlier versions hold places alone, whatever the mechanism.
        """
        axes, many = self.axes(engine), len(self.by)
        labels = list(product(*(keys for _, keys in axes[many:])))
        groups = list(product(*(keys for _, keys in axes[:many])))
        names = tuple(name for name, _ in axes[:many])
        taken = (*names, *self.columns)
        (rank,) = own_columns(taken, "rank")
        counted = isinstance(mechanism, NoisyTopK) and bool(answer) and isinstance(answer[0], list)
        if counted and isinstance(mechanism, NoisyTopK):
            columns = own_columns(taken, "estimate", "low", "high", "probability")
            places, shown, raw, notes = self._placed(mechanism, np.array(answer), engine)
        else:
            right = error.get("right")
            columns = own_columns(taken, "probability")
            places = answer
            shown = [
                (None if right is None else float(right[i % self.k]),) for i in range(len(answer))
            ]
            raw, notes = shown, (UNKNOWN if right is None else PREDICTED,)

        def rows(cells: list[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...]:
            return tuple(
                (*groups[i // self.k], i % self.k + 1, *labels[place], *cells[i])
                for i, place in enumerate(places)
            )

        return AnswerTable(
            (*names, rank, *self.columns, *columns),
            rows(shown),
            rows(raw) if counted else None,
            notes,
        )

    def _placed(
        self, mechanism: NoisyTopK, noisy: Integers, engine: Engine
    ) -> tuple[list[int], list[tuple[Any, ...]], list[tuple[Any, ...]], tuple[str, ...]]:
        """``[group and place]``: the label, its cells, the same as drawn; and what was done."""
        most = np.ravel(self.public_rows(engine))
        named = mechanism.named(noisy)
        drawn = np.take_along_axis(noisy, named, axis=1)
        size = noisy.shape[1]
        half = mechanism.noise.reach(1 - CONFIDENCE ** (1 / size))  # of all labels together
        ends = ([0] * drawn.size, np.repeat(most, self.k).tolist())
        found, raw = possible(np.ravel(drawn).tolist(), half, ends, Units())
        right = right_places(noisy, self.k, most, mechanism.noise)
        sure: list[Any] = [None] * drawn.size if right is None else np.ravel(right).tolist()

        def cells(numbers: list[Shown]) -> list[tuple[Any, ...]]:
            return [(*number.cells, p) for number, p in zip(numbers, sure, strict=True)]

        notes = (CUT, POSTERIOR) if right is not None else (CUT, TOO_MANY)
        return np.ravel(named).tolist(), cells(found), cells(raw), notes
