r"""``over = "household"``: a few people whose joint state follows a chain, one row each at a time.

An entry of the prior is the joint state of a household at one time; a row of the table is what one
member is then. So a household of k people has k rows to an entry, and households are independent.

*Costs.* Let a release have the cost :math:`c_r` on row r. If the members' rows at one time change
from u to v one after the other, its likelihood moves by at most
:math:`\sum_m c_{r(m)}(u_m, v_m)`: that is a cost on the joint state, and it is the least one, since
a product of mechanisms of one row each attains it. Which row has lost which of some costs
:math:`c_1, \ldots, c_n` is not known. Over all assignments

.. math:: \max_a \sum_m c_{a(m)}(u_m, v_m) = \sum_m \max_j c_j(u_m, v_m),

so that every member is charged the entrywise maximum :math:`\max_j c_j`: all assignments at once,
at no loss to what a bound by one matrix for each entry can say. A maximum of costs that obey the
triangle inequality obeys it too.

*Secrets.* What one member is at one time, x against y, is a pair of groups of joint states: the
others may be anything. The loss of the column is the largest of its members'. If the chain is
exchangeable (`takifugu.priors.households`), a permutation of the members maps the secrets of one to
those of another and leaves the law and the costs as they are: then one member stands for all.

*Losses with a δ* are about rows as well: the transport couples households row by row, and a change
of d rows of a per-row (ε, δ)-DP release is what the theorem of `takifugu.translation.accounting`
adds up.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

from takifugu.costs.cost import Column, Cost, Jointly, Matrix
from takifugu.errors import UnsoundRequest
from takifugu.priors.households import is_exchangeable, refuse_large_household
from takifugu.priors.markov import MarkovChain
from takifugu.priors.prior import Prior
from takifugu.priors.secrets import Secrets
from takifugu.priors.universe import Name
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.rows.row_translation import RowTranslation
from takifugu.translation.translation import TranslatedLoss, Translation


class Household(RowTranslation):
    """Independent households, whose members' joint states follow a chain.

    >>> from takifugu.priors.households import household_contagion
    >>> pair = household_contagion(
    ...     2, background=0.1, infection=0.2, recovery=0.4, start=0.2, length=4
    ... )
    >>> study = Household({"sis": pair}, {"health": Secrets()})
    >>> f"{study.to_pufferfish(0.5):.5f}"  # the four rows of one of them would be 2, of both 4
    '1.35045'
    """

    over = "household"

    def __init__(
        self,
        priors: Mapping[str, Prior],
        secrets: Mapping[str, Secrets],
        uncertainty: float = 0.0,
        *,
        grouping: tuple[str | None, str | None] = (None, None),
    ) -> None:
        """``grouping`` names the public columns that say who is in a household, and as whom."""
        super().__init__(priors, secrets, uncertainty)
        self.grouping = grouping

    @property
    def reading(self) -> Any:
        """That it is households, and which columns group people."""
        return (self.over, *self.grouping)

    @property
    def column(self) -> str:
        """The protected column that the prior is about."""
        return next(iter(self.secrets))

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the members, as the prior has them."""
        return self._chain.columns or ()

    @cached_property
    def exchangeable(self) -> bool:
        """Whether every prior is the same whatever order the members are put in."""
        return all(is_exchangeable(chain) for chain in self._chains.values())

    def covering_cost(self, epsilon: Fraction, /) -> Cost | None:
        """ε for any change of a row, if every pair of values is secret: a row has one column."""
        every = all(kept == Secrets() for kept in self.secrets.values())
        return Cost.any(epsilon) if every else None

    def by_column(self, costs: tuple[Cost, ...], /) -> Mapping[str, float]:
        """The largest loss of any member, for the one protected column."""
        return {self.column: max(self.by_member(*costs).values())}

    def by_member(self, *costs: Cost) -> Mapping[str, float]:
        """What each member's secrets lose at most, if every row lost one of ``costs``."""
        if not any(costs):
            return dict.fromkeys(self.members, 0.0)
        charged = self.joint_cost(*costs)
        found = {m: t.cost_bound(charged).value for m, t in self._translations.items()}
        if len(found) == 1:
            return dict.fromkeys(self.members, next(iter(found.values())))
        return found

    def explain(self, member: str, *costs: Cost) -> TranslatedLoss:
        """The loss of one member's secrets, where it binds, and what some mechanism leaks."""
        if member not in self.members:
            raise UnsoundRequest(
                f"there is no member {member!r:.80}; members: {', '.join(self.members)}",
                field="member",
                given=member,
                needed=self.members,
            )
        shown = member if member in self._translations else next(iter(self._translations))
        return self._translations[shown].explain_cost(self.joint_cost(*costs))

    def joint_cost(self, *costs: Cost) -> EntryCosts:
        """What every joint state has lost, if every row lost one of ``costs``."""
        each = self._of_row(costs)
        joint = sum((each.of_column(member) for member in self.members), Cost())
        return EntryCosts((joint,))

    def _of_row(self, costs: tuple[Cost, ...]) -> Cost:
        """At least each of the costs, for every change of value: their entrywise maximum."""
        plain = [self._unnamed(cost) for cost in costs if cost]
        kept = [
            cost
            for k, cost in enumerate(plain)
            if not any(
                other.dominates(cost) and (other != cost or j < k)
                for j, other in enumerate(plain)
                if j != k
            )
        ]
        if len(kept) == 1:
            return kept[0]
        for cost in kept:
            for _, label in cost.labels():
                if label not in self._labels:
                    raise UnsoundRequest(
                        f"a cost is about label {label!r:.80}, which the prior does not have;"
                        " labels are matched by name",
                        field="cost",
                        reason="unknown label",
                        given=label,
                    )
        largest = [[max(c.between(u, v) for c in kept) for v in self._labels] for u in self._labels]
        return Cost.of({Matrix(self._labels, largest): 1})

    def _unnamed(self, cost: Cost) -> Cost:
        """The cost on the values of the protected column, which it may name.

        What was told of another column is refused: the prior does not say what that tells of this
        one, so it must not count as nothing.
        """
        named = [shape for shape, _ in cost.terms if isinstance(shape, Column | Jointly)]
        others = {
            column
            for shape in named
            for column in (shape.columns if isinstance(shape, Jointly) else (shape.column,))
        } - {self.column}
        if others:
            raise UnsoundRequest(
                f"a cost is about column {min(others)!r:.80}, and the households are about"
                f" {self.column!r:.80} alone: what one tells of the other is in no prior",
                field="columns",
                reason="unknown column",
                given=tuple(sorted(others)),
                needed=self.column,
            )
        return cost.on_column(self.column) if named else cost

    @cached_property
    def _labels(self) -> tuple[Name, ...]:
        """The values that every member may have."""
        return tuple(dict.fromkeys(state[0] for state in self._chain.states))  # type: ignore[index]

    @property
    def _chain(self) -> MarkovChain:
        return next(iter(self._chains.values()))

    @cached_property
    def _chains(self) -> Mapping[str, MarkovChain]:
        """The priors, if each is a chain on the joint states of the same members."""
        if len(self.secrets) != 1:
            raise UnsoundRequest(
                f"{', '.join(self.secrets)} are protected, and households are about one column;"
                " name it with `about`",
                field="about",
                needed=tuple(self.secrets),
            )
        chains = {name: household_chain(name, prior) for name, prior in self.priors.items()}
        first = next(iter(chains.values()))
        for name, chain in chains.items():
            if (chain.columns, chain.states) != (first.columns, first.states):
                raise UnsoundRequest(
                    f"{name} has other members or joint states than the first prior, or lists them"
                    " in another order; give all the same",
                    field=name,
                )
        return chains

    @cached_property
    def _translations(self) -> Mapping[str, Translation]:
        """By member: all priors, with that member's secrets; of the first, if all are alike."""
        kept = self.secrets[self.column]
        return {
            member: Translation(
                dict(self._chains),
                Secrets.of_column(
                    member,
                    self.members,
                    self._chain.states,
                    pairs=kept.pairs,  # type: ignore[arg-type]
                    entries=kept.entries,
                ),
                uncertainty=self.uncertainty,
            )
            for member in (self.members[:1] if self.exchangeable else self.members)
        }


def household_chain(name: str, prior: object) -> MarkovChain:
    """The prior, if it is a chain on all joint states of a few members; else an error."""
    if not isinstance(prior, MarkovChain) or prior.columns is None:
        raise UnsoundRequest(
            f"{name} has no joint states; a household needs a Markov chain whose `columns` are its"
            " members, as `takifugu prior household` writes",
            field=name,
            reason="no-members",
        )
    refuse_large_household(len(prior.columns), len(prior.states))
    if prior.known == "any":
        raise UnsoundRequest(
            f"{name} has known = 'any', and it is not stated whether that is all of a household at"
            " another time or some of its members; leave `known` out",
            field=name,
            reason="known",
        )
    values = [dict.fromkeys(column) for column in zip(*prior.states, strict=True)]
    if any(set(each) != set(values[0]) for each in values):
        raise UnsoundRequest(
            f"{name} gives its members different values; each must have every label of the column",
            field=name,
            reason="states-differ",
            given={m: tuple(v) for m, v in zip(prior.columns, values, strict=True)},
        )
    missing = set(product(*values)) - set(prior.states)
    if missing:
        raise UnsoundRequest(
            f"{name} leaves out {len(missing)} of {len(missing) + len(prior.states)} joint states;"
            " list every combination of the members' labels, with probability 0 where it cannot"
            " be",
            field=name,
            reason="states-missing",
            given=len(missing),
        )
    return prior
