"""Charge, then release: plans are paid for, and answered.

A charge is durable before a protected value is read. What is shown is what the ledger has stored:
so a release with a key of its own may be tried again after a crash, and is paid once
(`takifugu.ledger.events.stored_answers`).

What the ledger stores of an answer: what was drawn, and the table that was published.

What was drawn decides: from it every later answer to the same query is laid out. The table, the
predicted error and the numbers of rows are copies for readers who have the ledger and not the data,
such as the report of a project. All of it is published, or public, already.

Steps of time: how long protected rows were worked on, told to a step and no finer.

Counting and drawing are the only parts of a release whose time may depend on protected values. They
begin right after the charge. Nothing follows them, neither the record of the answer nor a failure,
before a whole number of steps has passed since then; and whatever follows depends on what is
recorded, which is released. So all that can be seen of a release from outside (its end, the place
of its answer in the ledger, when its process is free for others) says in which step it was ready.
With a step that is longer than counting and drawing ever take, that is always the first one.

Steps are counted from the charge rather than from the request: what is done before the charge takes
a time that varies, and would carry what is within a step across the step's edge now and then, from
which somebody who repeats a query could find out more.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from time import monotonic, sleep
from typing import Any

from takifugu.declarations import DatabaseFailed
from takifugu.errors import (
    BudgetExceeded,
    LedgerConflict,
    LedgerError,
    LedgerUnavailable,
    TakifuguError,
)
from takifugu.ledger import Answer, EarlierCharge, Quote, Receipt
from takifugu.ledger.canonical_text import check_json
from takifugu.ledger.charging import Refusal
from takifugu.ledger.event_documents import asked_words
from takifugu.ledger.events.stored_answers import request_key
from takifugu.session.guarantee import guarantee
from takifugu.session.plans import Opened, Plans, refuse_stale
from takifugu.session.query.query import draw
from takifugu.session.release_cost import ReleaseCost
from takifugu.session.release_errors import ApprovalNeeded, ApprovalRule, OverBudget
from takifugu.session.release_plan import Plan, UnpricedPlan, query_body
from takifugu.session.release_result import Provenance, Result, priors_used, software
from takifugu.session.time_steps import until_step
from takifugu.tables import Engine


@contextmanager
def whole_steps(step: float) -> Iterator[None]:
    """Leave the block, also by an error, only when a whole number of steps has passed."""
    began = monotonic()
    try:
        yield
    finally:
        sleep(until_step(monotonic() - began, step))


MAX_STORED_ROWS = 5_000  # of a table that is copied; a longer one needs the data


def answer_record(made: UnpricedPlan, answer: list[Any], engine: Engine) -> dict[str, Any]:
    """The answer of a plan as JSON: ``drawn`` and, unless it is too long, ``shown``.

    It was paid for and drawn, so that nothing here may fail: without ``shown`` it is complete.
    """
    record: dict[str, Any] = {"drawn": answer}
    with suppress(TakifuguError, ArithmeticError, LookupError, TypeError, ValueError):
        shown = _shown(made, answer, engine)
        if len(shown["rows"]) <= MAX_STORED_ROWS:
            check_json(shown, "shown")
            record["shown"] = shown
    return record


def _shown(made: UnpricedPlan, answer: list[Any], engine: Engine) -> dict[str, Any]:
    table = made.query.table(made.mechanism, answer, engine, made.error)
    return {
        "columns": list(table.columns),
        "rows": [list(row) for row in table.rows],
        "notes": list(table.notes),
        "error": _plain(made.error),
        "delta": str(made.delta),
        **made.reads.record(),
    }


def _plain(value: Any) -> Any:
    """Lists for tuples, and null for what is infinite, which JSON has no number for."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and value - value != 0 else value


STAYS_CHARGED = "the release was charged before its rows were read, and the charge stays"
FROM_OUTSIDE = (DatabaseFailed, LedgerUnavailable)  # trouble that no draw can be the cause of


class Releases:
    """Charges the plans of a session, and releases their answers.

    Args:
        opened: What the session has open.
        plans: Makes the plans anew that are to be released.
        approval: Which releases wait for a second person.
        time_step: Seconds; a server has a step: see `takifugu.session.releases`.
    """

    def __init__(
        self,
        opened: Opened,
        plans: Plans,
        *,
        approval: ApprovalRule | None = None,
        time_step: float = 0.0,
    ) -> None:
        self._open, self._plans = opened, plans
        self._approval, self._time_step = approval, time_step

    def release(
        self,
        plan: Plan,
        accept_noise: bool,
        key: str | None,
        approval: int | None,
        request: str | None,
    ) -> Result:
        """Charge a plan that was made anew, then draw, store and show its answer."""
        made = self._plans.unpriced(plan.options)
        refuse_stale(plan, made)
        own = plan.charge.key if key is None else request_key(self._open.analyst, key)
        charge = replace(made.charge, key=own, approval=approval, request=request)
        quote = self._plans.quote(made, charge)
        earlier = None if key is None else self._open.ledger.earlier(charge)
        if earlier is not None:
            return self._resumed(made, quote, earlier)
        cost = self._plans.cost(made, quote)
        if not quote.stored:
            self._refuse_unapproved(made, quote, cost, approval)
            if not accept_noise and cost.fits:
                self._plans.refuse_noise(made, quote)
        try:
            known = quote.answer
            if known is None and quote.shared:  # another analyst's: charged to this one alone
                again = charge if key is not None else replace(charge, key=uuid.uuid4().hex)
                known = self._open.ledger.reuse(again, self._open.translation)
            if known is not None:
                return self._result(made, cost, known, free=not quote.reuse)
            receipt = self._open.ledger.charge(
                charge, self._open.translation, resume=key is not None
            )
            if not receipt.may_release and key is None:  # noise may have been drawn: pay again
                charge = replace(charge, key=uuid.uuid4().hex)
                receipt = self._open.ledger.charge(charge, self._open.translation)
        except BudgetExceeded as refused:
            most = self._plans.cost(
                made, self._plans.quote(made, charge)
            ).most  # others may have spent meanwhile
            raise OverBudget(refused, alone=cost.alone, most=most) from None
        if not receipt.may_release:  # others have answered under the same key since
            earlier = self._open.ledger.earlier(charge)
            if earlier is not None:
                return self._resumed(made, quote, earlier)
        return self._answered(made, cost, receipt)

    def _resumed(self, made: UnpricedPlan, quote: Quote, earlier: EarlierCharge) -> Result:
        """The answer under a key that was charged before: the stored one, or one drawn now."""
        cost = self._plans.paid_cost(made, quote)
        if earlier.answer is not None:
            return self._result(made, cost, earlier.answer, free=False)
        if not earlier.receipt.may_release:
            raise LedgerConflict(
                "an earlier release under this key was charged and its answer was lost; the charge"
                " stays spent. Ask again under a new key",
                reason="lost",
                dataset=self._open.dataset,
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
                answer = draw(made.query, made.mechanism, self._open.engine)
                self._plans.refuse_rows(
                    made.query
                )  # of a table that others write to, while it was read
                record = answer_record(made, answer, self._open.engine)
                record |= {"software": software(self._open.engine)}
            stored = self._open.ledger.record_answer(receipt, record)
        except Exception as error:
            error.add_note(STAYS_CHARGED)
            if not isinstance(error, FROM_OUTSIDE):
                with suppress(LedgerError):  # the trouble itself is what to show
                    self._open.ledger.abandon(receipt)
            raise
        return self._result(made, cost, stored, free=False)

    def waits(
        self, made: UnpricedPlan, quote: Quote, cost: ReleaseCost, *, after: bool = False
    ) -> ApprovalNeeded | None:
        """That a release waits for an owner; None if it does not.

        ``after`` says that others are to be released from the dataset before it, as in a batch.
        """
        if self._approval is None or quote.stored:
            return None
        why = self._approval.why(cost.alone, first=quote.last is None and not after)
        return None if why is None else ApprovalNeeded(made.charge.dataset, *why)

    def _refuse_unapproved(
        self, made: UnpricedPlan, quote: Quote, cost: ReleaseCost, approval: int | None
    ) -> None:
        """Raise if a release has to wait and no approval is named.

        Nobody has to decide on what no budget admits: that is refused as such.
        """
        needed = None if approval is not None else self.waits(made, quote, cost)
        if needed is None:
            return
        if not cost.fits:
            payers = (one for one in quote.standings if one.analyst or not quote.reuse)
            refused = Refusal(tuple(payers)).error(made.charge.body())
            raise OverBudget(refused, alone=cost.alone, most=cost.most)
        raise needed

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
        table = made.query.table(
            made.mechanism, answer.value["drawn"], self._open.engine, made.error
        )
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
            guarantee=self.guarantee(cost.budget, cost.budget_delta),
            reads=made.reads,
            provenance=Provenance(
                dataset=self._open.dataset,
                analyst=self._open.analyst,
                asked=asked_words(body),
                priors=priors_used(self._open.prior),
                translation=self._open.prior.fingerprint,
                charge=answer.paid,
                answer=answer.event,
                released=answer.at,
                software=answer.value.get("software", {}),
            ),
        )

    def guarantee(self, epsilon: Fraction | None, delta: Fraction) -> str:
        """What is protected and what is not, under a budget."""
        return guarantee(
            self._open.engine.declaration,
            self._open.prior,
            self._open.columns,
            self._open.entries,
            epsilon=epsilon,
            delta=delta,
            statement=self._open.statement,
        )
