"""Written by ``python -m takifugu.session.planner_stub``."""

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any

import numpy as np

from takifugu._core.exact import Number
from takifugu.session.query_options import Bound, Name, QueryOptions
from takifugu.session.release_plan import Plan

ReferenceCounts = Sequence[float] | Sequence[Sequence[float]] | np.ndarray[Any, Any]

def parameters_of(kind: str) -> list[Parameter]: ...
def words_of(kind: str) -> str: ...

class Planner:
    """How a query would be answered, how well, and for how much. Nothing is spent.

    Every method takes these options:

    * ``column``: The protected column; by default the one that the prior is about. Some kinds
      count the labels of several columns together: a list.
    * ``by``: Public columns whose groups are answered one by one, for one charge.
    * ``window``: Rows from the first bound to before the second: days, times or whole numbers,
      either side open. Without a start it begins with the first row that no prior was fitted on.
    * ``where``: For public columns, the keys to keep.
    * ``epsilon``: The Pufferfish ε that the release may cost alone.
    * ``delta``: The Pufferfish δ beside ε, at most the budget's; for Gaussian noise, whose losses
      add up to less over many releases.
    * ``within``: Instead of ε: the least ε that keeps every number within this distance of the
      exact one is used; for a quantile, in ranks.
    * ``confidence``: The probability of being within it, 0.95 by default; for a ranking, that its
      places are right.
    """
    def __init__(self, plan: Callable[[QueryOptions], Plan]) -> None: ...
    def __call__(self, options: QueryOptions) -> Plan: ...
    def histogram(
        self,
        column: str | Sequence[str] | None = ...,
        *,
        by: str | Sequence[str] = ...,
        window: tuple[Bound, Bound] | None = ...,
        where: Mapping[str, Sequence[Name]] | None = ...,
        epsilon: Number | None = ...,
        delta: Number | None = ...,
        within: Number | None = ...,
        confidence: float | None = ...,
        sum_to_one: bool = ...,
    ) -> Plan:
        """Histogram: how many rows have each label.

        * ``sum_to_one``: Show shares that sum to 1, or counts that add up to the rows. It costs
          nothing and changes nothing that is stored.
        """
    def count(
        self,
        values: Name | Sequence[Name],
        column: str | Sequence[str] | None = ...,
        *,
        by: str | Sequence[str] = ...,
        window: tuple[Bound, Bound] | None = ...,
        where: Mapping[str, Sequence[Name]] | None = ...,
        epsilon: Number | None = ...,
        delta: Number | None = ...,
        within: Number | None = ...,
        confidence: float | None = ...,
    ) -> Plan:
        """Count: how many rows have one of some labels, together.

        * ``values``: The labels that a count counts together, and counts one by one.
        """
    def counts(
        self,
        values: Name | Sequence[Name],
        column: str | Sequence[str] | None = ...,
        *,
        by: str | Sequence[str] = ...,
        window: tuple[Bound, Bound] | None = ...,
        where: Mapping[str, Sequence[Name]] | None = ...,
        epsilon: Number | None = ...,
        delta: Number | None = ...,
        within: Number | None = ...,
        confidence: float | None = ...,
    ) -> Plan:
        """Counts: how many rows have each of some labels.

        * ``values``: The labels that a count counts together, and counts one by one.
        """
    def top_k(
        self,
        k: int,
        column: str | Sequence[str] | None = ...,
        *,
        by: str | Sequence[str] = ...,
        window: tuple[Bound, Bound] | None = ...,
        where: Mapping[str, Sequence[Name]] | None = ...,
        epsilon: Number | None = ...,
        delta: Number | None = ...,
        confidence: float | None = ...,
        reference: ReferenceCounts | None = ...,
        gap: float | None = ...,
        leave_out: Name | Sequence[Name] = ...,
    ) -> Plan:
        """Ranking: the most frequent labels, best first.

        * ``k``: How many labels a ranking names.
        * ``reference``: Public or synthetic counts to plan a ranking for, of one group or of each.
        * ``gap``: Instead of a reference, the lead of each place of a ranking over the next.
        * ``leave_out``: Labels that a ranking leaves out, such as other.
        """
    def sum(
        self,
        column: str | Sequence[str] | None = ...,
        *,
        by: str | Sequence[str] = ...,
        window: tuple[Bound, Bound] | None = ...,
        where: Mapping[str, Sequence[Name]] | None = ...,
        epsilon: Number | None = ...,
        delta: Number | None = ...,
        within: Number | None = ...,
        confidence: float | None = ...,
    ) -> Plan:
        """Sum: the sum of a column of bounded numbers."""
    def mean(
        self,
        column: str | Sequence[str] | None = ...,
        *,
        by: str | Sequence[str] = ...,
        window: tuple[Bound, Bound] | None = ...,
        where: Mapping[str, Sequence[Name]] | None = ...,
        epsilon: Number | None = ...,
        delta: Number | None = ...,
        within: Number | None = ...,
        confidence: float | None = ...,
    ) -> Plan:
        """Mean: the mean of a column of bounded numbers."""
    def quantile(
        self,
        level: Number,
        column: str | Sequence[str] | None = ...,
        *,
        by: str | Sequence[str] = ...,
        window: tuple[Bound, Bound] | None = ...,
        where: Mapping[str, Sequence[Name]] | None = ...,
        epsilon: Number | None = ...,
        delta: Number | None = ...,
        within: Number | None = ...,
        confidence: float | None = ...,
        grid: Number | None = ...,
    ) -> Plan:
        """Quantile: the number below which a share of the values lies.

        * ``level``: Which quantile: 0.5 for the median.
        * ``grid``: The distance between the numbers that a quantile is chosen from; by default a
          step.
        """
    def proportions(
        self,
        column: str | Sequence[str] | None = ...,
        *,
        by: str | Sequence[str] = ...,
        window: tuple[Bound, Bound] | None = ...,
        where: Mapping[str, Sequence[Name]] | None = ...,
        epsilon: Number | None = ...,
        delta: Number | None = ...,
        within: Number | None = ...,
        confidence: float | None = ...,
        sum_to_one: bool = ...,
    ) -> Plan:
        """Proportions: the share of the rows that have each label.

        * ``sum_to_one``: Show shares that sum to 1, or counts that add up to the rows. It costs
          nothing and changes nothing that is stored.
        """
    def transitions(
        self,
        column: str | Sequence[str] | None = ...,
        *,
        by: str | Sequence[str] = ...,
        window: tuple[Bound, Bound] | None = ...,
        where: Mapping[str, Sequence[Name]] | None = ...,
        epsilon: Number | None = ...,
        delta: Number | None = ...,
        within: Number | None = ...,
        confidence: float | None = ...,
    ) -> Plan:
        """Transitions: how often each label followed each other one."""
    def marginals(
        self,
        column: str | Sequence[str] | None = ...,
        *,
        by: str | Sequence[str] = ...,
        window: tuple[Bound, Bound] | None = ...,
        where: Mapping[str, Sequence[Name]] | None = ...,
        epsilon: Number | None = ...,
        delta: Number | None = ...,
        within: Number | None = ...,
        confidence: float | None = ...,
    ) -> Plan:
        """Marginals: a histogram of each of some columns."""
    def linear(
        self,
        query: str,
        *,
        by: str | Sequence[str] = ...,
        window: tuple[Bound, Bound] | None = ...,
        where: Mapping[str, Sequence[Name]] | None = ...,
        epsilon: Number | None = ...,
        delta: Number | None = ...,
        within: Number | None = ...,
        confidence: float | None = ...,
    ) -> Plan:
        """Weighted sum: a weighted sum that the policy declares.

        * ``query``: The linear query, by the name that the policy gives it.
        """
