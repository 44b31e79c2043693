"""From the options of a query to the query itself, refused where a session cannot answer it."""

from collections.abc import Mapping, Sequence

from takifugu.declarations import Category, Declaration, InvalidQuery
from takifugu.errors import one_of
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.independent import Product
from takifugu.priors.prior import Prior
from takifugu.session.cells import refuse_order, rows_of
from takifugu.session.query.query import Query
from takifugu.session.query.sums import WeightedSum, WeightedSumQuery
from takifugu.session.query_kinds import KINDS, query_class
from takifugu.session.query_options import Bound, QueryOptions

NONE_DECLARED: Mapping[str, WeightedSum] = {}
UNORDERED = {"row": "the columns of each row", "entities": "entities with one row each"}


def query_of(
    options: QueryOptions,
    declaration: Declaration,
    about: str | Sequence[str],
    linear: Mapping[str, WeightedSum] = NONE_DECLARED,
    *,
    window: tuple[Bound, Bound] | None = None,
) -> Query:
    """The query that options describe; refused unless it is about protected columns of a session.

    ``about`` is the column that a session is about, or the list of its columns. ``linear`` are the
    linear queries that the policy declares. ``window`` stands for that of the options, if given.
    """
    kind = query_class(options.kind)
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
    rows = rows_of(declaration, window or options.window, where)
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
    if given is None and kind.all_labels:
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
        can = [name for name in KINDS if query_class(name).several]
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
        others = ", ".join(kind for kind in KINDS if query_class(kind).by_distance)
        if not query.by_distance and (process := next(unbounded, None)) is not None:
            raise InvalidQuery(
                "kind",
                given=f"is {query.kind}, which may tell any two numbers apart, however near",
                needed=f"be another: {name} is an unbounded {process.kind}, under which that has no"
                f" finite price. Ask for {others}",
                reason="no-finite-price",
            )
