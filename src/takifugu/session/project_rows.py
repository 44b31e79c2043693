"""Keeping releases away from the rows that a prior was fitted on.

A fitted prior is published with the policy, and no loss is accounted for what it tells about the
rows behind it. So a dataset whose prior was fitted on the first days is released from the days
after them only, and one whose prior was fitted on some entities from the others only; unless the
owner of the policy says ``release_fitted_rows = true``, and then every promise says so too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from typing import Any

from takifugu.engines import (
    DataFingerprint,
    Declaration,
    Engine,
    InvalidQuery,
    Scope,
    Share,
)
from takifugu.errors import UnsoundRequest
from takifugu.fingerprint import fingerprint
from takifugu.ledger import Ledger
from takifugu.losses import Total
from takifugu.mechanisms.calibration import at_least
from takifugu.priors import Name
from takifugu.session.asking import Kind
from takifugu.session.cost import Cost
from takifugu.session.project_policy import DatasetPolicy, InvalidProject
from takifugu.session.rows import Bound, rows_of
from takifugu.session.session import Session
from takifugu.session.values import Plan, Result
from takifugu.translation.translation import Translation


@dataclass(frozen=True)
class Kept:
    """The rows that may be released from, and what is said about them.

    Attributes:
        start: The first place in the order; None if there is no such limit.
        entities: The share of the entities; None for all.
        statements: What readers of the policy are told.
        warning: Why releases come from rows that a prior was fitted on; None if they do not.
    """

    start: datetime | int | None = None
    entities: Share | None = None
    statements: tuple[str, ...] = ()
    warning: str | None = None

    @property
    def told(self) -> str:
        """All that a promise says about it."""
        note = () if self.warning is None else (f"Note: {self.warning}.",)
        return " ".join((*self.statements, *note))


def kept_rows(policy: DatasetPolicy, declaration: Declaration) -> Kept:
    """What the priors of a dataset have not seen: all of their limits together."""
    fitted = [prior for prior in policy.priors if prior.fitted is not None]
    statements = tuple(prior.statement for prior in fitted if prior.statement)
    everything = any(prior.fitted == "all-rows" for prior in fitted)
    if everything or (fitted and policy.release_fitted_rows):
        warning = (
            f"a prior of {policy.name!r} was fitted on rows that are released from; no loss is"
            " accounted for what the prior itself tells about them"
        )
        return Kept(statements=statements, warning=warning)
    starts = [prior.released_from for prior in fitted if prior.released_from is not None]
    shares = [(prior.salt or "", prior.share) for prior in fitted if prior.share is not None]
    if len({salt for salt, _ in shares}) > 1:
        raise InvalidProject(
            f"dataset, {policy.name}, prior",
            given="names shares with different salts",
            needed="use one salt, so that the entities outside all shares are known",
        )
    entities = None
    if shares:
        entities = Share(shares[0][0], max(share for _, share in shares), Fraction(1))
    start = max(starts, key=lambda place: _placed(declaration, place), default=None)
    return Kept(start, entities, statements)


def _placed(declaration: Declaration, place: Bound) -> Any:
    return rows_of(declaration, (place, None), None).scope.start


def _bound(word: Any, number: bool) -> Bound:
    if word is None or isinstance(word, int):
        return word
    if number and str(word).strip().removeprefix("-").isdecimal():
        return int(word)
    return str(word)


class HeldOut(Engine):
    """An engine that sees some of the entities only; all that it counts is about them.

    The ledger does not tell entities apart and charges every one: more than is read, never less.
    """

    def __init__(self, engine: Engine, entities: Share) -> None:
        super().__init__(engine.declaration, engine._backend)
        self._entities = entities

    def fingerprint(self) -> DataFingerprint:
        """The identity of the data and of the share: an answer about all is not one about some."""
        whole = super().fingerprint()
        mark = fingerprint(("held out", whole.fingerprint, self._entities))
        return replace(whole, fingerprint=mark)

    def _within(self, scope: Scope) -> Any:
        if scope.entities is not None:
            raise InvalidQuery(
                "scope, entities", given="is given", needed="be left to the policy of the project"
            )
        return super()._within(replace(scope, entities=self._entities))


class PolicySession(Session):
    """A session that keeps to the rows that a policy allows; made by `Project.session`.

    Its prices hold by the translation itself, whatever a table that was kept in a file says.
    """

    def __init__(
        self,
        engine: Engine,
        ledger: Ledger,
        translation: Translation,
        *,
        kept: Kept,
        **how: Any,
    ) -> None:
        super().__init__(engine, ledger, translation, statement=kept.told, **how)
        self._kept, self._declared = kept, engine.declaration
        self._prior, self._alone = translation, dict[tuple[Total, Fraction], float]()
        self._looked_up = how.get("table") is not None

    @property
    def kept(self) -> Kept:
        """The rows that may be released from."""
        return self._kept

    def plan(
        self,
        kind: Kind,
        column: str | None = None,
        *,
        window: tuple[Bound, Bound] | None = None,
        **how: Any,
    ) -> Plan:
        """As `Session.plan`; an open start of the window is the first row that may be released."""
        if self._kept.start is not None:
            pair = isinstance(window, tuple | list) and len(window) == 2
            if window is None or (pair and window[0] is None):
                window = (self._kept.start, None if window is None else window[1])
        plan = super().plan(kind, column, window=window, **how)
        self._refuse_fitted(plan)
        return replace(plan, cost=self._confirmed(plan.cost))

    def release(self, plan: Plan) -> Result:
        """As `Session.release`, once the plan is seen to keep to the rows."""
        self._refuse_fitted(plan)
        result = super().release(plan)
        return replace(result, cost=self._confirmed(result.cost))

    def _confirmed(self, cost: Cost) -> Cost:
        """The cost, its price not below what the translation itself finds."""
        if not self._looked_up:
            return cost
        lost = Total(**{cost.currency: cost.per_entry})
        if (lost, cost.delta) not in self._alone:
            found = (
                float(self._prior.pufferfish(at_least(lost.epsilon)))
                if cost.currency == "epsilon"
                else self._prior.pufferfish_of(lost, cost.delta)
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

    def _refuse_fitted(self, plan: Plan) -> None:
        limit = self._kept.start
        if limit is None:
            return
        start = plan.question.rows.scope.start
        if start is None or start < _placed(self._declared, limit):
            raise UnsoundRequest(
                f"the window begins before {limit}, in rows that the prior was fitted on; begin"
                " there, or have the owner of the policy write release_fitted_rows = true"
            )
