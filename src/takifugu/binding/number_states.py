r"""What the states of a prior are to a column of numbers: the numbers themselves, or ranges.

A cell is clamped to the declared bounds and rounded to a step. A state is then one of these
numbers, if the prior has each of them; or a range, ``[0, 0.5)``, which names the numbers that it
stands for (`takifugu.priors.labels`). Priors of earlier versions may number their states 0, 1, …,
for ranges that are nowhere written: what a sum tells of those is everything.

**Sums under a prior over ranges.** Within a range, numbers are taken to be independent of all else:
given the ranges of all cells, each number has a law of its own on its range, whatever that is. Let
a release have likelihoods that change by at most :math:`e^{c(x,y)}` if one cell changes from x to
y, with c(x, y) = ε·|x − y|/width for a noisy sum. Let G(r) be its expectation given that the cells
have the ranges r. For r and r' that differ in one cell, u here and v there, draw all other numbers
alike and those of that cell independently: every pair (x, y) has
:math:`g(\ldots x \ldots) ≤ e^{C} g(\ldots y \ldots)` with C the largest c(x, y) of x in u and y in
v, and so have the expectations. So G is a function of ranges with the cost

.. math:: C(u, v) = ε·\max(\max v − \min u, \max u − \min v) / \mathrm{width}, \qquad C(u, u) = 0,

and the translation of a chain or network over ranges bounds what it tells. Costs of several
releases add up first, cell by cell, for the same numbers: the largest sum is at most the sum of the
largest. The greatest number of a range that is not closed is a step below its end.
"""

from collections.abc import Collection
from fractions import Fraction

from takifugu._core.exact import exactly
from takifugu.costs.cost import Cost, Matrix, Value
from takifugu.declarations import Amount
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.priors.labels import are_ranges, refuse_other_bounds

MAX_COMPARED_NUMBERS = 4096  # of a column whose numbers are compared with a prior's states
MAX_PRICED_RANGES = 128  # of a prior whose sums are charged by range


def stand_for_ranges(states: Collection[tuple[Value, ...]], column: Amount) -> bool:
    """Whether some prior has states of a column that are not its numbers."""
    return any(not are_numbers(values, column) for values in states)


def are_numbers(states: tuple[Value, ...], column: Amount) -> bool:
    """Whether states are the numbers that cells are rounded to, each of them once."""
    if not len(states) == column.cells() <= MAX_COMPARED_NUMBERS:
        return False
    try:
        found = {exactly(state, "state") for state in states if isinstance(state, str | int)}
    except UnsoundRequest:
        return False
    return found == set(column.grid())


def refuse_other_numbers(
    name: str, states: tuple[Value, ...], column: Amount, *, numbered: bool = False
) -> None:
    """Raise unless states are the numbers of a column, or ranges that cut its bounds at steps.

    With ``numbered`` states may also be 0, 1, …: ranges that an earlier version took as they came.
    """
    if are_ranges(states):
        try:
            refuse_other_bounds(
                states, column=column.column, low=column.low, high=column.high, step=column.step
            )
        except InvalidPrior as error:
            raise UnsoundRequest(
                f"{name} is not about `{column.column}`: its states {error.given}; they must"
                f" {error.needed}",
                field=name,
                reason=error.reason,
                given=states,
            ) from error
    elif numbered and states == tuple(range(len(states))):
        return
    elif not are_numbers(states, column):
        raise UnsoundRequest(
            f"{name} has {len(states)} states for `{column.column}`, a column of numbers, and they"
            f" are neither its {column.cells():,} numbers, by steps, nor ranges of them such as"
            " '[0, 0.5)', '[0.5, 1]'; name them so (`takifugu prior fit … --cuts` does)",
            field=name,
            reason="no-numbers",
            given=states,
        )
    if column.missing == "drop" and (are_ranges(states) or not numbered):
        raise UnsoundRequest(
            f"missing values of `{column.column}` are left out, which is protected too, and"
            f' {name} has no state for them; declare missing = "refuse", or the number that a'
            " missing value counts as",
            field=name,
            reason="missing",
        )


def ranges_of(states: Collection[tuple[Value, ...]], column: Amount) -> tuple[str, ...] | None:
    """The ranges that all priors have for a column; None if they have none, or other ones."""
    if len(states) != 1 or column.missing == "drop":
        return None
    (names,) = states
    if not are_ranges(names) or len(names) > MAX_PRICED_RANGES:
        return None
    return tuple(map(str, names))


def cost_by_range(names: tuple[str, ...], column: Amount) -> Cost | None:
    """What a sum of loss 1 tells of ranges; None if that is as much as everything."""
    found = refuse_other_bounds(
        names, column=column.column, low=column.low, high=column.high, step=column.step
    )
    last = len(found) - 1
    ends = [
        (low, high if place == last else high - column.step)
        for place, (low, high) in enumerate(found)
    ]
    width = column.high - column.low
    rows = [
        [
            Fraction(0) if u == v else max(ends[v][1] - ends[u][0], ends[u][1] - ends[v][0]) / width
            for v in range(len(ends))
        ]
        for u in range(len(ends))
    ]
    if all(cost == 1 for u, row in enumerate(rows) for v, cost in enumerate(row) if u != v):
        return None
    return Cost.of({Matrix(names, rows): 1})
