"""Charge, then release: the half of a session that pays for plans and answers them.

A charge is durable before a protected value is read. What is shown is what the ledger has stored:
so a release with a key of its own may be tried again after a crash, and is paid once
(`takifugu.ledger.events.stored_answers`).
"""

import uuid
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from takifugu.declarations import DatabaseFailed
from takifugu.errors import (
    BudgetExceeded,
    LedgerConflict,
    LedgerError,
    LedgerUnavailable,
    UnsoundRequest,
)
from takifugu.ledger import Answer, EarlierCharge, Quote, Receipt
from takifugu.ledger.event_documents import asked_words
from takifugu.ledger.events.stored_answers import request_key
from takifugu.session.activity import Activity, screen
from takifugu.session.answer_record import answer_record
from takifugu.session.guarantee import guarantee
from takifugu.session.planning import QueryPlanning, refuse_stale
from takifugu.session.provenance import Provenance, priors_used, software
from takifugu.session.query.query import draw
from takifugu.session.release_cost import ReleaseCost
from takifugu.session.release_errors import OverBudget
from takifugu.session.release_plan import Plan, UnpricedPlan, query_body
from takifugu.session.release_result import Result
from takifugu.session.time_steps import whole_steps

CHARGED = "the release was charged before its rows were read, and the charge stays"
FROM_OUTSIDE = (DatabaseFailed, LedgerUnavailable)  # trouble that no draw can be the cause of


class Releasing(QueryPlanning):
    """The half of a `Session` that charges plans and releases their answers."""

    _progress: bool | None
    _statement: str
    _time_step: float = 0.0  # seconds; a server has one: see `takifugu.session.time_steps`

    def _doing(self, what: str) -> Activity:
        """What is being done, shown where the session shows such things."""
        return Activity(what, screen(self._progress))

    def release(
        self,
        plan: Plan,
        *,
        accept_noise: bool = False,
        key: str | None = None,
        approval: int | None = None,
        request: str | None = None,
    ) -> Result:
        """Pay for a plan, then answer it; for free if the same was answered before.

        An answer that is mostly noise (`takifugu.session.usefulness`) is charged only with
        ``accept_noise=True``: `MostlyNoise` otherwise.

        A plan is a value, and a value can be put together from parts of others. So it is made anew
        from its options by the code that makes plans, refused if it is not the same, and only what
        was made here is charged, read and drawn. What was released to another analyst costs this
        one's own budget, if they have one.

        Args:
            plan: What to release.
            accept_noise: Whether an answer of mostly noise is wanted all the same.
            key: Identifies this release of this analyst. The same release again under the same key
                is the same charge and has the same answer, also after a crash and from another
                process; another release under it is a `LedgerConflict`. A stored answer is free
                and uses up no key.
            approval: The number of the event that allows it, where a second person has to.
            request: What identifies the request that the approval was given for, if it names one.
        """
        if not isinstance(plan, Plan):
            raise UnsoundRequest(
                f"a {type(plan).__name__} is not a plan; release what `session.plan` made, such as"
                " session.plan.histogram(epsilon=0.5)",
                field="plan",
            )
        if not isinstance(accept_noise, bool):
            raise UnsoundRequest(
                f"accept_noise is a {type(accept_noise).__name__}; it must be true or false",
                field="accept_noise",
            )
        with self._doing("releasing"):
            return self._released(plan, accept_noise, key, approval, request)

    def _released(
        self,
        plan: Plan,
        accept_noise: bool,
        key: str | None,
        approval: int | None,
        request: str | None,
    ) -> Result:
        """Charge a plan that was made anew, then draw, store and show its answer."""
        made = self._unpriced(plan.options)
        refuse_stale(plan, made)
        own = plan.charge.key if key is None else request_key(self._analyst, key)
        charge = replace(made.charge, key=own, approval=approval, request=request)
        quote = self._quote(made, charge)
        earlier = None if key is None else self._ledger.earlier(charge)
        if earlier is not None:
            return self._resumed(made, quote, earlier)
        cost = self._cost(made, quote)
        if not quote.stored:
            self._refuse_unapproved(made, quote, cost, approval)
            if not accept_noise and cost.fits:
                self._refuse_noise(made, quote)
        try:
            known = quote.answer
            if known is None and quote.shared:  # another analyst's: charged to this one alone
                again = charge if key is not None else replace(charge, key=uuid.uuid4().hex)
                known = self._ledger.reuse(again, self._translation)
            if known is not None:
                return self._result(made, cost, known, free=not quote.reuse)
            receipt = self._ledger.charge(charge, self._translation, resume=key is not None)
            if not receipt.may_release and key is None:  # noise may have been drawn: pay again
                charge = replace(charge, key=uuid.uuid4().hex)
                receipt = self._ledger.charge(charge, self._translation)
        except BudgetExceeded as refused:
            most = self._cost(
                made, self._quote(made, charge)
            ).most  # others may have spent meanwhile
            raise OverBudget(refused, alone=cost.alone, most=most) from None
        if not receipt.may_release:  # others have answered under the same key since
            earlier = self._ledger.earlier(charge)
            if earlier is not None:
                return self._resumed(made, quote, earlier)
        return self._answered(made, cost, receipt)

    def _resumed(self, made: UnpricedPlan, quote: Quote, earlier: EarlierCharge) -> Result:
        """The answer under a key that was charged before: the stored one, or one drawn now."""
        cost = self._paid_cost(made, quote)
        if earlier.answer is not None:
            return self._result(made, cost, earlier.answer, free=False)
        if not earlier.receipt.may_release:
            raise LedgerConflict(
                "an earlier release under this key was charged and its answer was lost; the charge"
                " stays spent. Ask again under a new key",
                reason="lost",
                dataset=self._dataset,
                event=earlier.receipt.anchor.seq,
            )
        return self._answered(made, cost, earlier.receipt)

    def _answered(self, made: UnpricedPlan, cost: ReleaseCost, receipt: Receipt) -> Result:
        """Draw an answer that is paid for, store it, and show what is stored.

        Trouble that may depend on what was drawn ends a charge that could be resumed. Neither shows
        before the step of time is over.
        """
        try:
            with whole_steps(self._time_step):
                answer = draw(made.query, made.mechanism, self._engine)
                self._refuse_rows(made.query)  # of a table that others write to, while it was read
                record = answer_record(made, answer, self._engine)
                record |= {"software": software(self._engine)}
            stored = self._ledger.record_answer(receipt, record)
        except FROM_OUTSIDE:
            raise
        except Exception as error:
            with suppress(LedgerError):  # the trouble itself is what to show
                self._ledger.abandon(receipt)
            error.add_note(CHARGED)
            raise
        return self._result(made, cost, stored, free=False)

    def _refuse_unapproved(
        self, made: UnpricedPlan, quote: Quote, cost: ReleaseCost, approval: int | None
    ) -> None:
        """Raise if a release needs an approval and has none. Policies have such a rule."""

    def _result(
        self, made: UnpricedPlan, cost: ReleaseCost, answer: Answer, *, free: bool
    ) -> Result:
        if not isinstance(answer.value, dict) or not isinstance(answer.value.get("drawn"), list):
            raise LedgerConflict(
                f"the answer to this query (event {answer.event.seq}) was stored by another"
                " program, in a form of its own; ask that program for it",
                reason="foreign answer",
                event=answer.event.seq,
            )
        table = made.query.table(made.mechanism, answer.value["drawn"], self._engine, made.error)
        body = query_body(made.charge)
        return Result(
            query=body,
            columns=table.columns,
            rows=table.rows,
            raw=table.raw,
            shown=table.notes,
            error=made.error,
            cost=cost,
            saving=None if free else made.saving(cost),
            free=free,
            at=answer.at,
            mechanism=made.mechanism.describe(),
            guarantee=self._guarantee(cost.budget, cost.budget_delta),
            reads=made.reads,
            provenance=Provenance(
                dataset=self._dataset,
                analyst=self._analyst,
                asked=asked_words(body),
                priors=priors_used(self._prior),
                translation=self._prior.fingerprint,
                charge=answer.paid,
                answer=answer.event,
                released=answer.at,
                software=answer.value.get("software", {}),
            ),
        )

    def _guarantee(self, epsilon: Fraction | None, delta: Fraction) -> str:
        return guarantee(
            self._engine.declaration,
            self._prior,
            self._columns,
            self._entries,
            epsilon=epsilon,
            delta=delta,
            statement=self._statement,
        )
