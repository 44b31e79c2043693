r"""By which names the priors of a session know the values that its queries read.

A query that tells less than everything about an entry is charged by what it tells: the count of
``home`` costs nothing between ``work`` and ``shop``. That needs the labels of the column and the
states of every prior to be the same things, and names say so, not places: a prior whose states are
only numbered may count in another order than the declaration. Where names do not settle it, the
cost is ε·[u≠v], which holds for all values whatever they are called.

Labels that are mapped or folded into ``other`` have the label's name, in the table as in the prior,
so a query about a label is about that state. For numbers a prior's states are the very numbers that
a cell is rounded to, and a sum sees how far two of them are apart, or ranges of them. A Gaussian
process is about real numbers: a cell is clamped, then rounded to steps, and a sum sees how many
steps two numbers are apart.

**States of a column of numbers**: the numbers themselves, or ranges. A cell is clamped to the
declared bounds and rounded to a step. A state is then one of these numbers, if the prior has each
of them; or a range, ``[0, 0.5)``, which names the numbers that it stands for
(`takifugu.priors.labels`). Priors of earlier versions may number their states 0, 1, …, for ranges
that are nowhere written: what a sum tells of those is everything.

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

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from takifugu._core.exact import exactly
from takifugu.costs.cost import Column, Cost, Matrix, Membership, Shape, Steps, Value
from takifugu.costs.shapes import column_and_shape
from takifugu.declarations import Amount, Category, Declaration
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.priors import Name
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.independent import people_of
from takifugu.priors.labels import are_ranges, refuse_other_bounds
from takifugu.priors.markov import MarkovChain
from takifugu.priors.prior import Prior
from takifugu.priors.truncated_gaussian import TruncatedGaussian
from takifugu.translation.rows.row_translation import RowTranslation
from takifugu.translation.translation import Translation

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


Values = Mapping[str, "ProtectedValues"]  # of each protected column of a session
WHOLLY = Cost.any(1)  # a query that may tell everything about an entry: ε·[u≠v]


@dataclass(frozen=True)
class ProtectedValues:
    """The values of a protected column that every prior knows by name.

    Attributes:
        labels: The states of the priors, if they are the column's labels; None if they are not,
            or may not be.
        bounds: The lower and upper bound of a column of numbers, if every prior is about its
            numbers; None if they are not.
        step: What these numbers are rounded to.
        column: The column that costs name, if rows have several protected columns.
        by_range: What a sum tells of the ranges that the priors know of a column of numbers, which
            are then its labels; None if they know none, or if it is everything.
    """

    labels: frozenset[Value] | None = None
    bounds: tuple[Fraction, Fraction] | None = None
    step: Fraction | None = None
    column: str | None = None
    by_range: Cost | None = None

    @classmethod
    def of(
        cls, translation: Translation, declaration: Declaration, about: str
    ) -> "ProtectedValues":
        """What the priors of ``translation`` know of the column ``about``."""
        column = next(c for c in declaration.protected if c.column == about)
        priors = list(people_of(translation.priors.values()))
        if isinstance(column, Amount) and all(isinstance(prior, Gaussian) for prior in priors):
            return cls(bounds=(column.low, column.high), step=column.step)
        if any(isinstance(prior, Gaussian | TruncatedGaussian) for prior in priors):
            return cls()
        states = {values for prior in priors for values in prior.entry_values}
        return _known(states, declaration, about)

    @property
    def by_name(self) -> bool:
        """Whether a name of a value is the same thing to the declaration and to every prior."""
        return self.labels is not None or self.bounds is not None

    @property
    def wholly(self) -> Cost:
        """What a query tells that may tell everything about a value."""
        return self._named(WHOLLY)

    def _named(self, cost: Cost) -> Cost:
        return cost if self.column is None else cost.of_column(self.column)

    def count(self, labels: Iterable[Name]) -> Cost:
        """What the count of some labels tells: whether a value is one of them."""
        members = frozenset(labels)
        if self.labels is None or not members < self.labels or len(self.labels) == 2:
            return self.wholly  # of one label in two, that is everything; of all it is no matter
        return self._named(Cost.of({Membership(members): 1}))

    def counts(self, labels: Iterable[Name]) -> Cost:
        r"""What counts of several labels tell, each with noise of its own of one scale b.

        A change from u to v moves the count of u, if it is listed, and that of v: it costs
        ([u listed] + [v listed])/b, which is the sum of |[u=a] − [v=a]|/b over the listed a. That
        is at most 2/b, the loss of the vector, and as much as a histogram's if all are listed.
        """
        listed = frozenset(labels)
        if self.labels is None or not listed <= self.labels:
            return self.wholly
        if len(listed) == 1:
            return self.count(listed)
        if listed == self.labels:
            return self.wholly
        half: dict[Shape, Fraction] = {Membership({label}): Fraction(1, 2) for label in listed}
        return self._named(Cost.of(half))

    def sum(self) -> Cost:
        """What a sum tells: how far two numbers are apart, as a share of the width."""
        if self.by_range is not None:
            return self._named(self.by_range)
        if self.bounds is None or self.step is None:
            return self.wholly
        return self._named(Cost.of({Steps(*self.bounds, self.step): 1}))


def values_of(
    translation: Translation | RowTranslation, declaration: Declaration, columns: tuple[str, ...]
) -> Values:
    """What the priors know of each column of a session; costs name it where rows have several."""
    if isinstance(translation, Translation):
        return {c: ProtectedValues.of(translation, declaration, c) for c in columns}
    known = [values_by_column(prior) for prior in translation.priors.values()]
    if translation.over == "household":  # what a prior calls columns are members
        (column,) = columns
        return {column: _known({v for by in known for v in by.values()}, declaration, column)}
    return {
        column: replace(_known({by[column] for by in known}, declaration, column), column=column)
        for column in columns
    }


def _known(
    states: Collection[tuple[Value, ...]], declaration: Declaration, about: str
) -> ProtectedValues:
    """What is known of a column if priors have these lists of states of it."""
    column = next(c for c in declaration.protected if c.column == about)
    if isinstance(column, Category):
        known = all(are_labels(values, column) for values in states)
        labels = frozenset(v for values in states for v in values)
        return ProtectedValues(labels=labels if known else None)
    if (names := ranges_of(states, column)) is not None:
        return ProtectedValues(labels=frozenset(names), by_range=cost_by_range(names, column))
    known = isinstance(column.missing, Fraction) or column.missing == "refuse"
    known = known and all(are_numbers(values, column) for values in states)
    if not known:
        return ProtectedValues()
    return ProtectedValues(bounds=(column.low, column.high), step=column.step)


def values_by_column(prior: Prior) -> Mapping[Name, tuple[Name, ...]]:
    """The values that a prior over columns has of each of them, in order."""
    if isinstance(prior, MarkovChain) and prior.columns is not None:
        return {
            column: tuple(dict.fromkeys(state[place] for state in prior.states))  # type: ignore[index]
            for place, column in enumerate(prior.columns)
        }
    entries = zip(prior.entry_names or (), prior.entry_values, strict=True)
    return {entry: tuple(values) for entry, values in entries}  # type: ignore[arg-type]


def telling(unit: Cost) -> str:
    """In words why less is charged than for everything about a value."""
    shapes = [column_and_shape(shape)[1] for shape, _ in unit.terms]
    labels = sorted(repr(name) for s in shapes if isinstance(s, Membership) for name in s.labels)
    listed = ", ".join(labels[:3]) + (f" and {len(labels) - 3} more" if len(labels) > 3 else "")
    if not labels:
        return "a sum of clamped numbers tells less than each of them does"
    if len(shapes) > 1:
        return f"counts of {listed} tell less than a histogram of all labels does"
    return f"a count of {listed} tells less than the label itself does"


def without_steps(unit: Cost) -> Cost:
    """What earlier versions charged for a sum of numbers that priors know: their distance alone."""
    found: dict[Shape, Fraction] = {}
    for shape, value in unit.terms:
        column, inner = column_and_shape(shape)
        if isinstance(inner, Steps):
            shape = inner.distance if column is None else Column(column, inner.distance)
        found[shape] = value
    return Cost.of(found)


def are_labels(states: tuple[Value, ...], column: Category) -> bool:
    """Whether states are labels by name; numbered states only if the labels have these numbers.

    A state that is no label may stand for a cell that is dropped. It must not be the name of a
    value that is mapped to a label, or folded into one: such a cell is counted with that label.
    """
    numbered = states == tuple(range(len(states)))
    if numbered and column.keys != tuple(range(len(column.keys))):
        return False
    typed = {(type(state), state) for state in states}
    keys = {(type(key), key) for key in column.keys}
    # a state beside the labels stands for what is dropped: never for what counts as a label
    mapped = {str(raw) for raw, _ in column.labels}
    beside = {str(state) for _, state in typed - keys}
    return keys <= typed and (not beside or (column.outside == "drop" and not beside & mapped))
