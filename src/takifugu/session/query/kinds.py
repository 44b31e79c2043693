"""The kinds of query, and the query that options describe."""

from collections.abc import Mapping

from takifugu.engines import Declaration, InvalidQuery
from takifugu.errors import one_of
from takifugu.session.query.count import CountQuery
from takifugu.session.query.histogram import HistogramQuery
from takifugu.session.query.proportions import ProportionsQuery
from takifugu.session.query.quantiles import QuantileQuery
from takifugu.session.query.query import Query
from takifugu.session.query.sum_and_mean import MeanQuery, SumQuery
from takifugu.session.query.top_k import TopKQuery
from takifugu.session.query.transitions import TransitionsQuery
from takifugu.session.query_options import Kind, QueryOptions
from takifugu.session.rows import rows_of

KINDS: Mapping[Kind, type[Query]] = {
    "histogram": HistogramQuery,
    "count": CountQuery,
    "top_k": TopKQuery,
    "sum": SumQuery,
    "mean": MeanQuery,
    "quantile": QuantileQuery,
    "proportions": ProportionsQuery,
    "transitions": TransitionsQuery,
}  # registry: one line for each kind of query


def query_of(options: QueryOptions, declaration: Declaration, about: str) -> Query:
    """The query that options describe; refused unless it reads ``about``, by public columns."""
    column = options.column or about
    if column != about:
        raise InvalidQuery(
            column,
            given="is not what the prior is about",
            needed=f"be {about}; what one column tells of another is in no prior of this session",
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
