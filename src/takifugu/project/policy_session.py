"""What a policy adds to a session: the rows that it says a prior was fitted on, and its words."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from takifugu._rounding import float_up
from takifugu.engines import Declaration, Engine, InvalidQuery
from takifugu.engines.scope import EVERYTHING
from takifugu.engines.seen import fitted_rows
from takifugu.ledger import Ledger
from takifugu.losses import Total
from takifugu.priors import FittedRows, Name
from takifugu.priors.prior import Prior
from takifugu.project.policy import PriorPolicy
from takifugu.session.asking import Kind
from takifugu.session.cost import Cost
from takifugu.session.held_out import first_kept
from takifugu.session.rows import Bound
from takifugu.session.session import Session
from takifugu.session.values import Plan, Result
from takifugu.translation.translation import Translation


def with_policy(prior: Prior, policy: PriorPolicy, declaration: Declaration) -> Prior:
    """The prior as the policy has it: fitted on the rows that the policy names, and on its own.

    The policy is about this very table, whatever its files are called by now, so that it stands
    for what the prior says of itself where both name the same rows.
    """
    if policy.fitted is None:
        return prior
    rows = replace(
        fitted_rows(declaration, EVERYTHING),
        before=policy.released_from,
        share=policy.share,
        salt=policy.salt,
        words=policy.statement,
    )
    others = [rule for rule in prior.fitted_on if not _same(rule, rows, declaration)]
    return replace(prior, fitted_on=(rows, *others))


def _same(rule: FittedRows, rows: FittedRows, declaration: Declaration) -> bool:
    """Whether a prior says of itself what the policy says: a start is rounded up in a policy."""
    if rule.before is not None and rows.before is not None:
        try:
            rule = replace(rule, before=first_kept(rule.before, declaration))
        except InvalidQuery:
            return False
    return rule.same_limits(rows)


def _bound(word: Any, number: bool) -> Bound:
    if word is None or isinstance(word, int):
        return word
    if number and str(word).strip().removeprefix("-").isdecimal():
        return int(word)
    return str(word)


class PolicySession(Session):
    """A session that understands the words of commands; made by `Project.session`.

    Its prices hold by the translation itself, whatever a table that was kept in a file says.
    """

    def __init__(
        self,
        engine: Engine,
        ledger: Ledger,
        translation: Translation,
        **how: Any,
    ) -> None:
        super().__init__(engine, ledger, translation, **how)
        self._declared = engine.declaration
        self._prior, self._alone = translation, dict[tuple[Total, Fraction], float]()
        self._looked_up = how.get("table") is not None

    def plan(self, kind: Kind, column: str | None = None, **how: Any) -> Plan:
        """As `Session.plan`, its price confirmed."""
        plan = super().plan(kind, column, **how)
        return replace(plan, cost=self._confirmed(plan.cost))

    def release(self, plan: Plan) -> Result:
        """As `Session.release`, its price confirmed."""
        result = super().release(plan)
        return replace(result, cost=self._confirmed(result.cost))

    def _confirmed(self, cost: Cost) -> Cost:
        """The cost, its price not below what the translation itself finds."""
        if not self._looked_up:
            return cost
        lost = Total(**{cost.currency: cost.per_entry})
        if (lost, cost.delta) not in self._alone:
            found = (
                float(self._prior.to_pufferfish(float_up(lost.epsilon)))
                if cost.currency == "epsilon"
                else self._prior.total_to_pufferfish(lost, cost.delta)
            )
            self._alone[lost, cost.delta] = found
        return replace(cost, alone=max(cost.alone, self._alone[lost, cost.delta]))

    def named(self, column: str, words: Any) -> tuple[Name, ...]:
        """The keys of a column that ``words`` name; a word that names none is passed on."""
        if isinstance(words, str | int) or not isinstance(words, Sequence):
            words = (words,)
        keys = {str(key): key for key in self._engine.keys(column)}
        return tuple(keys.get(str(word), word) for word in words)

    def window(self, words: Any) -> tuple[Bound, Bound]:
        """Both ends of a window; whole numbers where the order is a number."""
        if not isinstance(words, Sequence) or isinstance(words, str) or len(words) != 2:
            raise InvalidQuery("window", given="is no pair", needed="be two ends, as A..B")
        number = self._declared.order.kind == "number"
        return _bound(words[0], number), _bound(words[1], number)
