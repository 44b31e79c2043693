r"""``over = "row"``: the columns of a row depend on each other, and rows are independent.

An entry of the prior is a column, called by its name: a row is one draw. Fix all rows but the
secret's own: they are independent of the secret. What is left of a release is a function g of that
row whose logarithm moves by at most c(u, v), the row's cost, and a bound on the ratio of its
expectations given either side holds for the expectation over the other rows as well. If rows lost
different costs, only that of the secret's own row counts: the largest loss of any of them.

Of the following bounds the least counts. What every move between the two sides costs is taken out
first (`RowSpending`).

*By the columns that were read*, if they are few: exact (`ChargedColumns`).

*By the network.* A change of several columns costs at most what changes of them one after the other
cost, which is :math:`\sum_j c_j`, c_j being what c makes of a change of column j alone. That is a
profile on the entries of the network, which has a translation. A cross-tabulation that does not
hold the secret's column need not be counted for each of its columns: it is a term of its own in the
recursion along a junction tree that has a clique with all of them. It may also be left out and be
added as a whole: if :math:`c = c' + c''` and c'' is at most C, all gains of a coupling rise by at
most a factor of e^C.

*By the row.* Any two rows are apart by at most C, the scalar of c. So is the ratio of two
expectations, whatever their laws: group DP for a row, all its columns at once.

An ``uncertainty`` is about the law of a row; rows stay independent. It raises the first two bounds
by log((1+r)/(1−r)) and leaves the third as it is, which holds for every law.

``over = "sequence"`` of several columns (`JointColumns`): the rows of an entity are a chain on
joint states. An entry of the prior is a row, whose state is the tuple of its columns' values, so
that a cost on rows is a cost on entries as it is. A secret about one column at one place is a pair
of groups of joint states: x there, against y there, whatever the other columns are.
"""

from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from math import inf, prod
from typing import Any

from takifugu._core.numeric import Floats
from takifugu.costs.cost import NOTHING, Cost
from takifugu.errors import TooLarge, UnsoundRequest
from takifugu.influence.rounded_ratios import uncertainty_shift
from takifugu.priors.explicit import Explicit
from takifugu.priors.independent import IndependentEntries
from takifugu.priors.markov import MarkovChain
from takifugu.priors.networks import Factor, NetworkPrior, Sides
from takifugu.priors.prior import Prior
from takifugu.priors.secrets import Secrets
from takifugu.priors.universe import Name
from takifugu.translation.bounds import Cache
from takifugu.translation.certify import messages
from takifugu.translation.certify.closed import (
    epsilon_up,
    profile_group_loss,
)
from takifugu.translation.certify.tables import Weights, joint_laws
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.models.tree import JunctionTree, Tree
from takifugu.translation.rows.row_translation import RowSpending, RowTranslation, maximal
from takifugu.translation.search.junction import CouplingSearch, junction_tree
from takifugu.translation.translation import Translation

MAX_JOINT_VALUES = 512  # of a cross-tabulation that is a term of its own
MAX_CACHED_BOUNDS = 64  # of all columns
MAX_READ_STATES = 256  # joint states of the columns that were read
MAX_READ_CELLS = 4_000_000  # of cost matrices, of all pairs and columns; beyond, by the network
MAX_CLIQUE_STATES = 2**16  # of a clique that holds them all
MAX_CACHED_LAWS = 32  # sets of columns
RARE = 1e-9  # a rarer state, beside the likeliest, may keep the solver from its best coupling


class ChargedColumns:
    """Few columns were read: the exact loss of every column's secrets, by one coupling.

    An admissible function of the row does not change with any column that was not read. What
    remains is a transport with gains between the laws of the columns that were read given either
    side of the secret. It is solved as a whole, so that the bound is the worst case itself.
    """

    def __init__(self, model: NetworkPrior) -> None:
        self._model = model
        self._sizes = tuple(len(states) for states in model.states)
        self._place = {name: k for k, name in enumerate(model.entries)}
        self._laws = Cache[tuple[int, ...], Mapping[int, Weights]](MAX_CACHED_LAWS)

    def losses(self, spending: RowSpending, column: Name, sides: Sides) -> Floats | None:
        """``[pair]``: the loss of each pair of sets of values of ``column``, rounded up.

        −∞ for a pair of which one side cannot happen. None if the columns that were read have too
        many states, which takes too long for the little that it gains over the network, or
        probabilities too far apart.
        """
        law = self._law(spending, column)
        if law is None:
            return None
        names = [self._model.entries[v] for v in law.scope]
        costs = [
            spending.alone.get(str(name), NOTHING).matrix(self._model.states[v])
            for v, name in zip(law.scope, names, strict=True)
        ]
        together = {
            tuple(sorted(map(names.index, columns))): epsilon_up(epsilon)
            for columns, epsilon in spending.together.items()
        }
        every, sizes = tuple(range(len(names))), law.table.shape
        problem = Tree(sizes, (Factor(every, law.table),), tuple(costs), together, law.roundings)
        search = CouplingSearch(JunctionTree(sizes, (every,), (-1,)), at_once=law.table.size)
        entry = names.index(column)
        return messages.upper(problem, search, {entry: sides})[entry]

    def has_rare_states(self, spending: RowSpending, column: Name) -> bool:
        """Whether `losses` are sound but need not be the best: some states are all but impossible.

        The solver perturbs gains by more than such a state weighs.
        """
        law = self._law(spending, column)
        return law is not None and law.table[law.table > 0].min() < RARE * law.table.max()

    def _law(self, spending: RowSpending, column: Name) -> Weights | None:
        """The joint law of the columns that were read and ``column``; None if out of reach."""
        read = tuple(sorted(self._place[name] for name in spending.columns))
        laws = self._laws.computed(read, lambda: self._joint_laws(read))
        return laws.get(self._place[column])

    def _joint_laws(self, read: tuple[int, ...]) -> Mapping[int, Weights]:
        states, most = prod(self._sizes[v] for v in read), max(self._sizes)
        cells = len(self._sizes) * most * (most - 1) * states**2
        if states <= MAX_READ_STATES and cells <= MAX_READ_CELLS:
            with suppress(TooLarge):
                tree = junction_tree(self._model, largest=MAX_CLIQUE_STATES, together=(read,))
                return joint_laws(tree, self._model.factors(), read)
        return {}


class ColumnsOfRow(RowTranslation):
    """Independent rows, each a draw from a network whose nodes are the protected columns."""

    over = "row"

    def __init__(
        self,
        priors: Mapping[str, Prior],
        secrets: Mapping[str, Secrets],
        uncertainty: float = 0.0,
    ) -> None:
        super().__init__(priors, secrets, uncertainty)
        for name, prior in self.priors.items():
            if not isinstance(prior, NetworkPrior | IndependentEntries | Explicit):
                raise UnsoundRequest(
                    f"{name} is a {type(prior).__name__}; the columns of a row need a network whose"
                    " nodes are the columns, or a table of them",
                    field=name,
                    given=type(prior).__name__,
                )
            self._refuse_unknown(name, self.secrets)
        for column, kept in self.secrets.items():
            if kept.entries is not None:
                raise UnsoundRequest(
                    f"the secrets of column {column!r} name entries; the entries of a row are its"
                    " columns, so leave out columns instead",
                    field="entries",
                    given=kept.entries,
                )

    def by_column(self, costs: tuple[Cost, ...], /) -> Mapping[str, float]:
        """The least bound of each column, of the worst cost and prior."""
        found = dict.fromkeys(self.secrets, 0.0)
        for cost in maximal(costs):
            spending = RowSpending.from_cost(cost)
            row = epsilon_up(cost.scalar)
            for name in self.priors:
                self._refuse_unknown(name, spending.columns)
                self._refuse_labels(name, cost)
                for column in self.secrets:
                    loss = min(row, self._loss(name, column, spending))
                    found[column] = max(found[column], loss)
        return found

    def _loss(self, name: str, column: str, spending: RowSpending) -> float:
        """By the columns that were read, or by the network."""
        own, rest = epsilon_up(spending.constant(column)), spending.beside(column)
        if not rest.columns:
            return own
        if name in self._charged:
            exact = self._charged[name].losses(rest, column, self._sides[name, column])
            if exact is not None:
                loss = max(float(exact.max(initial=0.0)), 0.0)
                loss = profile_group_loss((loss, own, self._shift))
                if self._charged[name].has_rare_states(rest, column):
                    loss = min(loss, self._along_network(name, column, rest, own))
                return loss
        return self._along_network(name, column, rest, own)

    def _along_network(self, name: str, column: str, rest: RowSpending, own: float) -> float:
        """The least bound by the network, with what is constant added."""
        loss = self._by_network(name, column, rest)
        if rest.together:
            loss = min(loss, self._by_terms(name, column, rest))
            apart = RowSpending(Fraction(0), {}, rest.alone)
            whole = epsilon_up(rest.at_once)
            other = self._by_network(name, column, apart) if apart.columns else 0.0
            loss = min(loss, profile_group_loss((other, whole)))
        return profile_group_loss((loss, own))

    def _by_network(self, name: str, column: str, spending: RowSpending) -> float:
        asked = None if self.secrets[column] == Secrets() else column
        translation = self._translation(name, asked)
        entries = translation.entries or ()
        profile = tuple(spending.by_column(str(entry)) for entry in entries)
        costs = EntryCosts(by_entry=profile)
        bound = translation.cost_bound(costs, "transport")
        if not bound.value < inf:
            return translation.cost_bound(costs).value
        if asked is None and bound.by_entry is not None:
            return float(bound.by_entry[entries.index(column)])
        return bound.value

    def _by_terms(self, name: str, column: str, spending: RowSpending) -> float:
        """Along a junction tree, with cross-tabulations as terms; ∞ if there is none."""
        from takifugu.translation.models.networks import network_losses

        prior, place = self.priors[name], {c: k for k, c in enumerate(self._values[name])}
        groups = {
            tuple(place[c] for c in columns): epsilon_up(epsilon)
            for columns, epsilon in spending.together.items()
        }
        sizes = [len(values) for values in self._values[name].values()]
        widest = max(prod(sizes[v] for v in group) for group in groups)
        if not isinstance(prior, NetworkPrior) or widest > MAX_JOINT_VALUES:
            return inf
        asked = None if self.secrets[column] == Secrets() else column
        alone = tuple(spending.alone.get(str(c), NOTHING) for c in self._values[name])
        key = name, asked, alone, tuple(sorted(groups.items()))

        def by_entry() -> Floats | None:
            secrets = None if asked is None else Secrets((asked,), self.secrets[asked].pairs)
            costs = EntryCosts(by_entry=alone)
            with suppress(TooLarge):
                return network_losses(prior, costs, secrets, together=groups).by_entry
            return None

        losses = self._by_entry.computed(key, by_entry)
        if losses is None:
            return inf
        return profile_group_loss((losses[place[column]], self._shift))

    @cached_property
    def _by_entry(self) -> Cache[Any, Floats | None]:
        """Columns that cross-tabulations leave out share their bounds."""
        return Cache(MAX_CACHED_BOUNDS)

    def _translation(self, name: str, asked: str | None) -> Translation:
        """Of the secrets of one column; of all columns, whose pairs are all kept, if None."""
        if (name, asked) not in self._translations:
            secrets = Secrets()
            if asked is not None:
                secrets = Secrets((asked,), self.secrets[asked].pairs)
            self._translations[name, asked] = Translation(
                self.priors[name], secrets, uncertainty=self.uncertainty
            )
        return self._translations[name, asked]

    def _refuse_unknown(self, name: str, columns: Iterable[str]) -> None:
        """Refuse a column that the prior does not relate to the others."""
        known = self._values[name]
        for column in columns:
            if column not in known:
                raise UnsoundRequest(
                    f"{name} has no column {column!r}; its columns: {', '.join(map(str, known))}",
                    field=name,
                    reason="unknown column",
                    given=column,
                    needed=tuple(known),
                )

    def _refuse_labels(self, name: str, cost: Cost) -> None:
        """Refuse a label that its column cannot have: it would count as telling nothing."""
        for column, label in cost.labels():
            values = self._values[name][str(column)]
            if label not in values:
                raise UnsoundRequest(
                    f"a cost is about label {label!r:.80} of column {column!r}, which {name} does"
                    " not have; labels are matched by name",
                    field="cost",
                    reason="unknown label",
                    given=label,
                )

    @cached_property
    def _translations(self) -> dict[tuple[str, str | None], Translation]:
        """A cache: made where they are needed, which is not for few columns."""
        return {}

    @cached_property
    def _charged(self) -> Mapping[str, ChargedColumns]:
        """By prior, of networks."""
        return {
            name: ChargedColumns(prior)
            for name, prior in self.priors.items()
            if isinstance(prior, NetworkPrior)
        }

    @cached_property
    def _sides(self) -> Mapping[tuple[str, str], Sides]:
        """The ordered secret pairs of a column under a prior, by number of value."""
        return {
            (name, column): kept.sides(self._values[name][column])
            for name in self.priors
            for column, kept in self.secrets.items()
        }

    @cached_property
    def _values(self) -> Mapping[str, Mapping[Name, tuple[Hashable, ...]]]:
        """By prior and column: the values."""
        return {
            name: dict(zip(prior.entry_names or (), prior.entry_values, strict=True))
            for name, prior in self.priors.items()
        }

    @cached_property
    def _shift(self) -> float:
        return uncertainty_shift(self.uncertainty)


class JointColumns(RowTranslation):
    """Chains on joint states, with secrets about every column."""

    over = "sequence"

    def __init__(
        self,
        priors: Mapping[str, Prior],
        secrets: Mapping[str, Secrets],
        uncertainty: float = 0.0,
    ) -> None:
        super().__init__(priors, secrets, uncertainty)
        for name, prior in self.priors.items():
            if not isinstance(prior, MarkovChain) or prior.columns is None:
                raise UnsoundRequest(
                    f"{name} has no joint states; several columns of a sequence need a Markov chain"
                    " with `columns`",
                    field=name,
                )
            for column, kept in self.secrets.items():
                self._joint[name, column] = Secrets.of_column(
                    column,
                    prior.columns,
                    prior.states,
                    pairs=kept.pairs,  # type: ignore[arg-type]
                    entries=kept.entries,
                )

    @cached_property
    def _joint(self) -> dict[tuple[str, str], Secrets]:
        """By prior and column: what a column is, as pairs of groups of joint states."""
        return {}

    def by_column(self, costs: tuple[Cost, ...], /) -> Mapping[str, float]:
        """The translation of joint costs, for the secrets of each column; of the worst prior."""
        charged = EntryCosts(costs)
        found = dict.fromkeys(self.secrets, 0.0)
        for (_, column), translation in self._translations.items():
            found[column] = max(found[column], translation.cost_bound(charged).value)
        return found

    @cached_property
    def _translations(self) -> Mapping[tuple[str, str], Translation]:
        """By prior and column: of the secrets of that column, whatever the other columns are."""
        return {
            key: Translation(self.priors[key[0]], secrets, uncertainty=self.uncertainty)
            for key, secrets in self._joint.items()
        }
