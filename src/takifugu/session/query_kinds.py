"""The kinds of query: one line for each, which names its class and says what it answers.

The line alone is enough to check a query's options, to list the kinds and to draw a form, so this
module imports nothing. `query_class` imports the class, which knows everything else about its kind:
see `takifugu.session.query.query`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from takifugu.session.query.query import Query

NOT_WITHIN = (
    "a ranking has no distance to be within; give `confidence` with a `gap` or a `reference`"
)
DECLARED_COLUMN = "the policy declares which column the query adds up"


@dataclass(frozen=True)
class QueryKind:
    """A kind of query, as far as it can be told without its class.

    Attributes:
        home: Its module in `takifugu.session.query` and its class, as ``module.Class``.
        title: What people call it.
        answers: What it answers, as the end of a sentence.
        of_numbers: Whether it is about columns of numbers; otherwise about labels.
        ranks: Whether it answers with a ranking of labels, which figures and pages show as one.
        least_columns: How many columns a dataset must have for a form to offer it.
        without: Options that other kinds share and this one lacks, each with the reason.
    """

    home: str
    title: str
    answers: str
    of_numbers: bool = False
    ranks: bool = False
    least_columns: int = 1
    without: Mapping[str, str] = field(default_factory=dict)


KINDS: Mapping[str, QueryKind] = {
    "histogram": QueryKind("counts.HistogramQuery", "Histogram", "how many rows have each label"),
    "count": QueryKind(
        "counts.CountQuery", "Count", "how many rows have one of some labels, together"
    ),
    "counts": QueryKind("counts.CountsQuery", "Counts", "how many rows have each of some labels"),
    "top_k": QueryKind(
        "top_k.TopKQuery",
        "Ranking",
        "the most frequent labels, best first",
        ranks=True,
        without={"within": NOT_WITHIN},
    ),
    "sum": QueryKind(
        "sums.SumQuery", "Sum", "the sum of a column of bounded numbers", of_numbers=True
    ),
    "mean": QueryKind(
        "sums.MeanQuery", "Mean", "the mean of a column of bounded numbers", of_numbers=True
    ),
    "quantile": QueryKind(
        "quantiles.QuantileQuery",
        "Quantile",
        "the number below which a share of the values lies",
        of_numbers=True,
    ),
    "proportions": QueryKind(
        "counts.ProportionsQuery", "Proportions", "the share of the rows that have each label"
    ),
    "transitions": QueryKind(
        "transitions.TransitionsQuery",
        "Transitions",
        "how often each label followed each other one",
    ),
    "marginals": QueryKind(
        "counts.MarginalsQuery",
        "Marginals",
        "a histogram of each of some columns",
        least_columns=2,
    ),
    "linear": QueryKind(
        "sums.WeightedSumQuery",
        "Weighted sum",
        "a weighted sum that the policy declares",
        of_numbers=True,
        without={"column": DECLARED_COLUMN},
    ),
}  # registry: one line for each kind of query


def is_ranking(kind: object) -> bool:
    """Whether a kind, by the name that a document has, answers with a ranking of labels."""
    return isinstance(kind, str) and kind in KINDS and KINDS[kind].ranks


def query_class(kind: str) -> "type[Query]":
    """The class of a kind of query."""
    module, _, name = KINDS[kind].home.partition(".")
    found: type[Query] = getattr(import_module(f"takifugu.session.query.{module}"), name)
    return found
