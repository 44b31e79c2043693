"""From the words of a caller to a query: which kind, with which options of its own."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

from takifugu.engines import Declaration, InvalidQuery
from takifugu.losses import Number
from takifugu.priors import Name
from takifugu.session import queries as ask
from takifugu.session.quantiles import quantile_of
from takifugu.session.rows import Bound, Rows, rows_of

Kind = Literal[
    "histogram", "count", "top_k", "sum", "mean", "quantile", "proportions", "transitions"
]

PLAIN: Mapping[str, Callable[[str, tuple[str, ...], Rows], ask.Query]] = {
    "histogram": ask.HistogramOf,
    "sum": ask.SumOf,
    "mean": ask.MeanOf,
    "proportions": ask.ProportionsOf,
    "transitions": ask.TransitionsOf,
}  # the queries without options of their own
NEEDED = {"values": "count", "k": "top_k", "level": "quantile"}  # and the kind that needs each


def asked_for(
    declaration: Declaration,
    about: str,
    kind: Kind,
    column: str | None,
    *,
    by: str | Sequence[str],
    window: tuple[Bound, Bound] | None,
    where: Mapping[str, Sequence[Name]] | None,
    values: Sequence[Name],
    k: int | None,
    level: Number | None,
    grid: Number | None,
) -> ask.Query:
    """The query that is meant, or one line on why it cannot be asked."""
    if kind not in get_args(Kind):
        raise InvalidQuery(
            "kind", given=f"is {kind!r}", needed=f"be one of {', '.join(get_args(Kind))}"
        )
    given = {"values": bool(values), "k": k is not None, "level": level is not None}
    for option, its_kind in NEEDED.items():
        if given[option] != (kind == its_kind):
            raise InvalidQuery(
                option,
                given="is given" if given[option] else "is missing",
                needed=f"be given for {its_kind.replace('_', ' ')}, and for nothing else",
            )
    if grid is not None and kind != "quantile":
        raise InvalidQuery("grid", given="is given", needed="be left out but for a quantile")
    groups = (by,) if isinstance(by, str) else tuple(by)
    which = (column or about, groups, rows_of(declaration, window, where))
    made: ask.Query
    if kind == "top_k":
        made = ask.TopOf(*which, k=k or 1)
    elif kind == "count":
        listed = (values,) if isinstance(values, str | int) else tuple(values)
        made = ask.CountOf(*which, values=listed)
    elif kind == "quantile":
        made = quantile_of(declaration, *which, level or 0, grid)
    else:
        made = PLAIN[kind](*which)
    ask.refuse_unasked(made, declaration, about)
    return made
