"""The kinds of query, and ``session.plan``: one method for each, with the options that it has."""

from collections.abc import Callable, Mapping, Sequence

from takifugu._core.exact import Number
from takifugu.declarations import Category, Declaration, InvalidQuery
from takifugu.errors import one_of
from takifugu.priors import Name
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.independent import Product
from takifugu.priors.prior import Prior
from takifugu.session.cells import Bound, refuse_order, rows_of
from takifugu.session.query.count import CountQuery
from takifugu.session.query.counts import CountsQuery
from takifugu.session.query.histogram import HistogramQuery
from takifugu.session.query.linear import WeightedSum, WeightedSumQuery
from takifugu.session.query.marginals import MarginalsQuery
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
    "marginals": MarginalsQuery,
    "linear": WeightedSumQuery,
}  # registry: one line for each kind of query
NONE_DECLARED: Mapping[str, WeightedSum] = {}
UNORDERED = {"row": "the columns of each row", "entities": "entities with one row each"}


def query_of(
    options: QueryOptions,
    declaration: Declaration,
    about: str | Sequence[str],
    linear: Mapping[str, WeightedSum] = NONE_DECLARED,
) -> Query:
    """The query that options describe; refused unless it is about protected columns of a session.

    ``about`` is the column that a session is about, or the list of its columns. ``linear`` are the
    linear queries that the policy declares.
    """
    kind = KINDS[options.kind]
    columns = _columns(options, declaration, about, kind, linear)
    public = [category.column for category in declaration.public]
    for name in options.by:
        if name not in public:
            refuse_order(f"by, {name}", name, declaration)
            raise InvalidQuery(
                f"by, {name}",
                given="is not a public column",
                needed=one_of(public, name) if public else "be left out: no column is public",
            )
    if len(set(options.by)) < len(options.by):
        raise InvalidQuery("by", given="repeats a column", needed="name each one once")
    declared = None if options.query is None else linear[options.query]
    where = options.where if declared is None else declared.rows_read(declaration, options.where)
    rows = rows_of(declaration, options.window, where)
    query = kind.of(options, declaration, columns, rows)
    if isinstance(query, WeightedSumQuery) and declared is not None:
        query = query.declared(str(options.query), declared, declaration)
    query.check(declaration)
    return query


def _columns(
    options: QueryOptions,
    declaration: Declaration,
    about: str | Sequence[str],
    kind: type[Query],
    linear: Mapping[str, WeightedSum],
) -> tuple[str, ...]:
    """The protected columns that a query reads, in the order of the declaration.

    Which columns are counted together matters, and not in which order they are named: the same
    columns are the same query.
    """
    known = (about,) if isinstance(about, str) else tuple(about)
    given = options.column
    if options.query is not None:
        if options.query not in linear:
            raise InvalidQuery(
                "query",
                given=f"is {options.query!r:.80}",
                needed=one_of(linear, options.query)
                if linear
                else "be declared in the policy, which has none",
            )
        given = linear[options.query].column
    if given is None and len(known) == 1:
        given = known[0]
    if given is None and kind is MarginalsQuery:
        labels = [c.column for c in declaration.protected if isinstance(c, Category)]
        given = tuple(name for name in labels if name in known) or known
    if given is None:
        raise InvalidQuery(
            "column",
            given="is missing",
            needed=f"{one_of(known)}: the session is about several columns",
        )
    named = (given,) if isinstance(given, str) else given
    for column in named:
        if column not in known:
            raise InvalidQuery(
                column,
                given="is not a column that the prior is about",
                needed=f"{one_of(known, column)}: what another column tells is in no prior here",
            )
    if len(named) > 1 and not kind.several:
        can = [name for name, other in KINDS.items() if other.several]
        raise InvalidQuery(
            "column",
            given=f"lists {', '.join(named)}",
            needed=f"be one column for {options.kind}; {', '.join(can)} count several",
        )
    order = [column.column for column in declaration.protected]
    return tuple(sorted(named, key=order.index))


def refuse_unserved(query: Query, priors: Mapping[str, Prior], over: Mapping[str, str]) -> None:
    """Refuse a kind of query that some prior cannot serve, by name, with what to ask instead.

    Rows that are columns of independent draws (``over = "row"``), or people with one row each
    (``"entities"``), have no order that a prior speaks of: nothing follows anything. An unbounded
    Gaussian process moves every entry if one is moved, most by very little: a release that tells
    any two numbers apart alike, however near they are, has no finite price under it.
    """
    for name, prior in priors.items():
        reading = over[name]
        parts = prior.parts.values() if isinstance(prior, Product) else (prior,)
        if query.needs_order and reading in UNORDERED and not isinstance(prior, Product):
            raise InvalidQuery(
                "kind",
                given=f"is {query.kind}, which is about rows that follow one another",
                needed=f"be another: {name} is over {UNORDERED[reading]}, and has no order. Ask for"
                " histogram or counts",
                reason="no-order",
            )
        unbounded = (p for p in parts if isinstance(p, Gaussian) and p.size is None)
        if not query.by_distance and (process := next(unbounded, None)) is not None:
            raise InvalidQuery(
                "kind",
                given=f"is {query.kind}, which may tell any two numbers apart, however near",
                needed=f"be another: {name} is an unbounded {process.kind}, under which that has no"
                f" finite price. Ask for {', '.join(k for k, c in KINDS.items() if c.by_distance)}",
                reason="no-finite-price",
            )


By = str | Sequence[str]
Columns = str | Sequence[str] | None
Keys = Mapping[str, Sequence[Name]] | None
Span = tuple[Bound, Bound] | None


class Planner:
    """How a query would be answered, how well, and for how much. Nothing is spent.

    Every method takes these options; `QueryOptions` describes them all.

    * ``column``: the protected column; by default the one that the prior is about. For
      ``histogram``, ``proportions`` and ``top_k`` also a list of columns, whose labels are counted
      together: a cross-tabulation.
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
        column: Columns = None,
        *,
        by: By = (),
        window: Span = None,
        where: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Number | None = None,
        confidence: float | None = None,
        sum_to_one: bool = False,
    ) -> Plan:
        """How many rows have each label, or each combination of labels of several columns.

        With ``sum_to_one`` the counts add up to the rows of their group, for free: the answer is
        the same and is shown so. `QueryOptions` explains the other options.
        """
        options = QueryOptions(
            "histogram", column, by=by, window=window, where=where, epsilon=epsilon, delta=delta,
            within=within, confidence=confidence, sum_to_one=sum_to_one,
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
        column: Columns = None,
        *,
        by: By = (),
        window: Span = None,
        where: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        confidence: float | None = None,
        reference: ReferenceCounts | None = None,
        gap: float | None = None,
        leave_out: Name | Sequence[Name] = (),
    ) -> Plan:
        """The ``k`` most frequent labels, in order, each with the probability that it is right.

        Labels in ``leave_out``, such as ``other``, are not ranked, and have no counts in
        ``reference``.

        The plan predicts how many places are right for ``reference``, public or synthetic counts,
        or for a ``gap``, the lead of each place over the next. Instead of ``epsilon``, give one of
        them and ``confidence``, the probability that places are right. `QueryOptions` explains the
        other options.
        """
        options = QueryOptions(
            "top_k", column, k=k, by=by, window=window, where=where, epsilon=epsilon, delta=delta,
            confidence=confidence, reference=reference, gap=gap, leave_out=leave_out,
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
        column: Columns = None,
        *,
        by: By = (),
        window: Span = None,
        where: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Number | None = None,
        confidence: float | None = None,
        sum_to_one: bool = False,
    ) -> Plan:
        """The share of the rows of each group that have each label.

        With ``sum_to_one`` the shares of each group sum to 1, for free: the answer is the
        same and is shown so. `QueryOptions` explains the other options.
        """
        options = QueryOptions(
            "proportions", column, by=by, window=window, where=where, epsilon=epsilon, delta=delta,
            within=within, confidence=confidence, sum_to_one=sum_to_one,
        )  # fmt: skip
        return self._plan(options)

    def transitions(
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
        """How many times each label followed each other one, within the rows of an entity.

        Columns in ``by`` must be constant in the rows of each entity. `QueryOptions` explains the
        options.
        """
        options = QueryOptions(
            "transitions", column, by=by, window=window, where=where, epsilon=epsilon, delta=delta,
            within=within, confidence=confidence,
        )  # fmt: skip
        return self._plan(options)

    def marginals(
        self,
        column: Columns = None,
        *,
        by: By = (),
        window: Span = None,
        where: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Number | None = None,
        confidence: float | None = None,
    ) -> Plan:
        """A histogram of each of several columns, in one release; by default of all with labels.

        `QueryOptions` explains the options.
        """
        options = QueryOptions(
            "marginals", column, by=by, window=window, where=where, epsilon=epsilon, delta=delta,
            within=within, confidence=confidence,
        )  # fmt: skip
        return self._plan(options)

    def linear(
        self,
        query: str,
        *,
        by: By = (),
        window: Span = None,
        where: Keys = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Number | None = None,
        confidence: float | None = None,
    ) -> Plan:
        """The weighted sum of numbers that the policy declares under the name ``query``.

        `QueryOptions` explains the other options.
        """
        options = QueryOptions(
            "linear", query=query, by=by, window=window, where=where, epsilon=epsilon, delta=delta,
            within=within, confidence=confidence,
        )  # fmt: skip
        return self._plan(options)
