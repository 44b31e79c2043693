"""The kinds of query, and ``session.plan``: one method for each, with the options that it has."""

from collections.abc import Callable, Mapping, Sequence

from takifugu._exact import Number
from takifugu.engines import Declaration, InvalidQuery
from takifugu.errors import one_of
from takifugu.priors import Name
from takifugu.session.cells import Bound, rows_of
from takifugu.session.query.count import CountQuery
from takifugu.session.query.counts import CountsQuery
from takifugu.session.query.histogram import HistogramQuery
from takifugu.session.query.proportions import ProportionsQuery
from takifugu.session.query.quantiles import QuantileQuery
from takifugu.session.query.query import Query
from takifugu.session.query.sum_and_mean import MeanQuery, SumQuery
from takifugu.session.query.top_k import TopKQuery
from takifugu.session.query.transitions import TransitionsQuery
from takifugu.session.query_options import Kind, QueryOptions, ReferenceCounts
from takifugu.session.release_plan import Plan

KINDS: Mapping[Kind, type[Query]] = {
    "histogram": HistogramQuery,
    "count": CountQuery,
    "counts": CountsQuery,
    "top_k": TopKQuery,
    "sum": SumQuery,
    "mean": MeanQuery,
    "quantile": QuantileQuery,
    "proportions": ProportionsQuery,
    "transitions": TransitionsQuery,
}  # registry: one line for each kind of query


def query_of(options: QueryOptions, declaration: Declaration, columns: tuple[str, ...]) -> Query:
    """The query that options describe; refused unless it reads ``columns``, by public columns."""
    if options.column is None and len(columns) > 1:
        raise InvalidQuery("column", given="is missing", needed=one_of(columns))
    column = options.column or columns[0]
    if column not in columns:
        raise InvalidQuery(
            column,
            given="is not what the prior is about",
            needed=f"{one_of(columns)}; what one column tells of another is in no prior of this"
            " session",
        )
    public = [category.column for category in declaration.public]
    for name in options.by:
        if name not in public:
            raise InvalidQuery(
                f"by, {name}",
                given="is not a public column",
                needed=one_of(public) if public else "be left out: no column is public",
            )
    if len(set(options.by)) < len(options.by):
        raise InvalidQuery("by", given="repeats a column", needed="name each one once")
    rows = rows_of(declaration, options.window, options.where)
    query = KINDS[options.kind].of(options, declaration, column, rows)
    query.check(declaration)
    return query


By = str | Sequence[str]
Keys = Mapping[str, Sequence[Name]] | None
Span = tuple[Bound, Bound] | None


class Planner:
    """How a query would be answered, how well, and for how much. Nothing is spent.

    Every method takes these options; `QueryOptions` describes them all.

    * ``column``: the protected column; by default the one that the prior is about.
    * ``by``: public columns whose groups are answered one by one, for one charge.
    * ``window``: rows from the first bound to before the second; None leaves a side open.
    * ``where``: for public columns, the keys to keep.
    * ``epsilon``: the Pufferfish ε that the release may cost alone. Or ``within`` and
      ``confidence``: find the least ε that keeps every number within this distance of the exact
      one, with this probability (0.95 by default).
    * ``delta``: the Pufferfish δ beside ε, at most that of the budget.
    """

    def __init__(self, plan: Callable[[QueryOptions], Plan]) -> None:
        self._plan = plan

    def __call__(self, options: QueryOptions) -> Plan:
        """The plan for a query that is given as one value, for programs."""
        return self._plan(options)

    def histogram(
        self,
        column: str | None = None,
        *,
        by: By = (),
        window: Span = None,
        where: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Number | None = None,
        confidence: float | None = None,
    ) -> Plan:
        """How many rows have each label. `QueryOptions` explains the options."""
        options = QueryOptions(
            "histogram", column, by=by, window=window, where=where, epsilon=epsilon, delta=delta,
            within=within, confidence=confidence,
        )  # fmt: skip
        return self._plan(options)

    def count(
        self,
        values: Name | Sequence[Name],
        column: str | None = None,
        *,
        by: By = (),
        window: Span = None,
        where: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Number | None = None,
        confidence: float | None = None,
    ) -> Plan:
        """How many rows have one of the labels in ``values``.

        `QueryOptions` explains the options.
        """
        options = QueryOptions(
            "count", column, values=values, by=by, window=window, where=where, epsilon=epsilon,
            delta=delta, within=within, confidence=confidence,
        )  # fmt: skip
        return self._plan(options)

    def counts(
        self,
        values: Name | Sequence[Name],
        column: str | None = None,
        *,
        by: By = (),
        window: Span = None,
        where: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Number | None = None,
        confidence: float | None = None,
    ) -> Plan:
        """How many rows have each of the labels in ``values``: one number for each label.

        `QueryOptions` explains the options.
        """
        options = QueryOptions(
            "counts", column, values=values, by=by, window=window, where=where, epsilon=epsilon,
            delta=delta, within=within, confidence=confidence,
        )  # fmt: skip
        return self._plan(options)

    def top_k(
        self,
        k: int,
        column: str | None = None,
        *,
        by: By = (),
        window: Span = None,
        where: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        confidence: float | None = None,
        reference: ReferenceCounts | None = None,
        gap: float | None = None,
    ) -> Plan:
        """The ``k`` most frequent labels, in order.

        The plan predicts how many places are right for ``reference``, public or synthetic counts,
        or for a ``gap``, the lead of each place over the next. Instead of ``epsilon``, give one of
        them and ``confidence``, the probability that places are right. `QueryOptions` explains the
        other options.
        """
        options = QueryOptions(
            "top_k", column, k=k, by=by, window=window, where=where, epsilon=epsilon, delta=delta,
            confidence=confidence, reference=reference, gap=gap,
        )  # fmt: skip
        return self._plan(options)

    def sum(
        self,
        column: str | None = None,
        *,
        by: By = (),
        window: Span = None,
        where: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Number | None = None,
        confidence: float | None = None,
    ) -> Plan:
        """The sum of numbers, clamped to their declared bounds.

        `QueryOptions` explains the options.
        """
        options = QueryOptions(
            "sum", column, by=by, window=window, where=where, epsilon=epsilon, delta=delta,
            within=within, confidence=confidence,
        )  # fmt: skip
        return self._plan(options)

    def mean(
        self,
        column: str | None = None,
        *,
        by: By = (),
        window: Span = None,
        where: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Number | None = None,
        confidence: float | None = None,
    ) -> Plan:
        """The mean of numbers, clamped to their declared bounds, over the public number of rows.

        `QueryOptions` explains the options.
        """
        options = QueryOptions(
            "mean", column, by=by, window=window, where=where, epsilon=epsilon, delta=delta,
            within=within, confidence=confidence,
        )  # fmt: skip
        return self._plan(options)

    def quantile(
        self,
        level: Number,
        column: str | None = None,
        *,
        by: By = (),
        window: Span = None,
        where: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Number | None = None,
        confidence: float | None = None,
        grid: Number | None = None,
    ) -> Plan:
        """The number below which the share ``level`` of the values lies: 0.5 for the median.

        It is chosen from numbers that are ``grid`` apart, by default the declared step. ``within``
        counts ranks. `QueryOptions` explains the other options.
        """
        options = QueryOptions(
            "quantile", column, level=level, by=by, window=window, where=where, epsilon=epsilon,
            delta=delta, within=within, confidence=confidence, grid=grid,
        )  # fmt: skip
        return self._plan(options)

    def proportions(
        self,
        column: str | None = None,
        *,
        by: By = (),
        window: Span = None,
        where: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Number | None = None,
        confidence: float | None = None,
    ) -> Plan:
        """The share of the rows of each group that have each label.

        `QueryOptions` explains the options.
        """
        options = QueryOptions(
            "proportions", column, by=by, window=window, where=where, epsilon=epsilon, delta=delta,
            within=within, confidence=confidence,
        )  # fmt: skip
        return self._plan(options)

    def transitions(
        self,
        column: str | None = None,
        *,
        window: Span = None,
        where: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Number | None = None,
        confidence: float | None = None,
    ) -> Plan:
        """How many times each label followed each other one, within the rows of an entity.

        `QueryOptions` explains the options.
        """
        options = QueryOptions(
            "transitions", column, window=window, where=where, epsilon=epsilon, delta=delta,
            within=within, confidence=confidence,
        )  # fmt: skip
        return self._plan(options)
