"""What a project adds to a session: keys given as text, confirmed prices, plan files.

A plan file is never trusted: its options are planned anew, and must come to the same price.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from takifugu._core.rounding import float_up
from takifugu.costs.cost import Cost
from takifugu.costs.losses import Total
from takifugu.errors import InvalidFile, UnsoundRequest
from takifugu.ledger import Ledger, Quote
from takifugu.ledger.charging import Refusal
from takifugu.priors import Name
from takifugu.priors.documents import read_json
from takifugu.project.approval_rule import ApprovalNeeded, ApprovalRule
from takifugu.session.cells import Bound
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_cost import Allowances, Prices, ReleaseCost
from takifugu.session.release_errors import OverBudget
from takifugu.session.release_plan import Plan, UnpricedPlan
from takifugu.session.session import Session
from takifugu.translation.accounting.tables import TabledTranslation, TranslationTable
from takifugu.translation.translation import Translation

PRICE_TOLERANCE = 1 + 1e-6  # a price by value is that of a cost which is as close as this


def _bound(text: Any, number: bool) -> Bound:
    if text is None or isinstance(text, int):
        return text
    if number and str(text).strip().removeprefix("-").isdecimal():
        return int(text)
    return str(text)


class PolicySession(Session):
    """A session of a project, made by `Project.session`; its options may be given as text.

    Its prices hold by the translation itself, whatever a cached table contains that was not
    computed here.
    """

    _trusted = False
    _approval: ApprovalRule | None = None

    def require_approval(self, rule: ApprovalRule | None) -> None:
        """Keep the rule of the policy on which releases wait for an owner."""
        self._approval = rule

    def approval_needed(self, plan: Plan, *, after: bool = False) -> str | None:
        """Why a release waits for an owner's approval, in words; None if it does not.

        Answers that are stored, and so free, need none.

        Args:
            plan: What is to be released.
            after: Whether others are to be released from the dataset before it, as in a batch.
        """
        self._refuse_closed()
        if self._approval is None:
            return None
        quote = self._quote(plan, plan.charge)
        waits = self._waits(quote, self._cost(plan, quote), after=after)
        return None if waits is None else waits[1]

    def refuse_unapproved(self, plan: Plan, *, after: bool = False, name: str = "") -> None:
        """Raise `ApprovalNeeded` if a release waits for an owner; ``name``: in its batch."""
        quote = self._quote(plan, plan.charge)
        waits = self._waits(quote, self._cost(plan, quote), after=after)
        if waits is not None:
            raise ApprovalNeeded(self._dataset, *waits, name=name)

    def _waits(
        self, quote: Quote, cost: ReleaseCost, *, after: bool = False
    ) -> tuple[str, str] | None:
        if self._approval is None or quote.stored:
            return None
        return self._approval.why(cost.alone, first=quote.last is None and not after)

    def _refuse_unapproved(
        self, made: UnpricedPlan, quote: Quote, cost: ReleaseCost, approval: int | None
    ) -> None:
        """Raise if the policy makes this release wait and no approval is named.

        Nobody has to decide on what no budget admits: that is refused as such.
        """
        super()._refuse_unapproved(made, quote, cost, approval)
        waits = None if approval is not None else self._waits(quote, cost)
        if waits is None:
            return
        if not cost.fits:
            payers = (one for one in quote.standings if one.analyst or not quote.reuse)
            refused = Refusal(tuple(payers)).error(made.charge.body())
            raise OverBudget(refused, alone=cost.alone, most=cost.most)
        raise ApprovalNeeded(self._dataset, *waits)

    def release_in_steps(self, seconds: float) -> None:
        """Record answers, and fail, a whole number of steps of so many seconds after the charge.

        See `takifugu.session.time_steps`. Sessions of other analysts are not changed.
        """
        self._time_step = seconds

    def use_table(self, table: TranslationTable, *, trusted: bool) -> None:
        """Read losses from a table of the translation; prices too if it was computed here."""
        translation = self._prior
        if not isinstance(translation, Translation) or table.about != translation.fingerprint:
            raise UnsoundRequest(
                "the table was made for another translation; tabulate this one", field="table"
            )
        self._translation, self._mark = TabledTranslation(translation, table), table.fingerprint
        self._prices, self._trusted = Prices(self._dataset, self._translation), trusted

    def for_analyst(self, analyst: str | None, ledger: Ledger | None = None) -> Self:
        """The same session for another analyst, if the ledger admits them: takes one read of it.

        Table, translation and prices are shared, and the one who opened them closes them. Nothing
        of what was checked when the session was opened depends on who asks, but for what the ledger
        says of them, which is compared here.

        Args:
            analyst: Who asks; None for nobody by name.
            ledger: The same ledger with another actor; by default with that of this session.
        """
        self._refuse_closed()
        made = copy(self)
        made._opened, made._owns = ExitStack(), False
        made._analyst = analyst
        if ledger is not None:
            if ledger.origin != self._ledger.origin:
                raise UnsoundRequest(
                    f"{ledger.name!r} is not the ledger of this session; open one on it",
                    field="ledger",
                )
            made._ledger = ledger
        made._ledger.snapshot(made._dataset, analyst=analyst).refuse(made._terms, made._rules)
        return made

    def _cost(self, made: UnpricedPlan, quote: Quote) -> ReleaseCost:
        """The cost of a plan, its price not below what the translation itself finds."""
        cost = super()._cost(made, quote)
        if self._trusted or self._translation is self._prior:
            return cost
        if cost.by_value is not None:
            return self._confirmed(cost, cost.by_value)
        lost = Total(cost.per_entry) if cost.currency == "epsilon" else Total(rho=cost.per_entry)
        if (lost, cost.delta) not in self._alone:
            self._alone[lost, cost.delta] = (
                float(self._prior.to_pufferfish(float_up(lost.epsilon)))
                if cost.currency == "epsilon"
                else self._prior.total_to_pufferfish(lost, cost.delta)
            )
        return replace(cost, alone=max(cost.alone, self._alone[lost, cost.delta]))

    def _confirmed(self, cost: ReleaseCost, by_value: Cost) -> ReleaseCost:
        """A price by value, which a table may have lowered by what it says without values."""
        price = self._prior.cost_to_pufferfish(by_value)
        if price <= cost.alone * PRICE_TOLERANCE:
            return cost
        plain = float(self._prior.to_pufferfish(float_up(by_value.scalar)))
        return replace(
            cost,
            alone=max(cost.alone, min(price, plain)),
            without_values=max(cost.without_values or 0.0, plain),
        )

    def keep_allowances(self, kept: Allowances) -> None:
        """Look allowances by value up in ``kept`` first, and keep those that are searched for."""
        self._prices = Prices(self._dataset, self._translation, kept)

    @cached_property
    def _alone(self) -> dict[tuple[Total, Fraction], float]:
        """Confirmed prices."""
        return {}

    def resolved(self, options: QueryOptions) -> QueryOptions:
        """Options whose keys and bounds may be given as text, as the columns have them."""
        column = options.column if isinstance(options.column, str) else self.about
        window = options.window
        if window is not None:
            number = self._engine.declaration.order.kind == "number"
            window = (_bound(window[0], number), _bound(window[1], number))
        where = {name: self._keys(name, keys) for name, keys in options.where.items()}
        values, leave_out = (
            self._keys(column, given) if given and column else given
            for given in (options.values, options.leave_out)
        )
        return replace(options, window=window, where=where, values=values, leave_out=leave_out)

    def _keys(self, column: str, texts: Sequence[Name]) -> tuple[Name, ...]:
        """The keys of a column that the texts name; a text that names none is passed on."""
        keys = {str(key): key for key in self._engine.keys(column)}
        return tuple(keys.get(str(text), text) for text in texts)


PLAN_FORM = "takifugu-plan-1"
SAME_PLAN_PARTS = (
    "dataset",
    "query",
    "window",
    "groups",
    "mechanism",
    "cells",
)  # must not differ in a plan
SAME_COST_PARTS = ("currency", "per_entry", "delta", "by_value")  # nor in its cost: the rest moves


@dataclass(frozen=True)
class PlanFile:
    """What a plan file holds.

    Attributes:
        dataset: The dataset of the project.
        options: The options of the query; a key of a column may be given as text.
        analyst: Who asks.
        document: The plan as the file has it.
    """

    dataset: str
    options: QueryOptions
    analyst: str | None = None
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def differences(self, made: Plan) -> tuple[str, ...]:
        """The parts in which the file is not the plan that was made from its options now."""
        now, cost = made.describe(), self.document.get("cost")
        then = cost if isinstance(cost, dict) else {}
        parts = [key for key in SAME_PLAN_PARTS if self.document.get(key) != now[key]]
        return (*parts, *(key for key in SAME_COST_PARTS if then.get(key) != now["cost"][key]))


def plan_document(dataset: str, analyst: str | None, plan: Plan, guarantee: str) -> dict[str, Any]:
    """A plan as JSON, ready to be released from later."""
    options = plan.options.document()
    query = {"dataset": dataset, "kind": options.pop("kind"), "analyst": analyst, "how": options}
    return {"form": PLAN_FORM, "asked": query, **plan.describe(), "guarantee": guarantee}


def read_plan(path: Path) -> PlanFile:
    """What a plan file holds."""
    document = read_json(path, needed="be a plan: `takifugu plan … --out FILE` writes one")
    if not isinstance(document, dict) or document.get("form") != PLAN_FORM:
        raise InvalidFile(
            str(path),
            given="is not a plan",
            needed="be one: `takifugu plan … --out FILE` writes it",
            reason="not-a-plan",
        )
    try:
        query = document["asked"]
        dataset, kind, analyst, how = (query[key] for key in ("dataset", "kind", "analyst", "how"))
        if not (isinstance(dataset, str) and isinstance(kind, str) and isinstance(how, dict)):
            raise TypeError
        if not isinstance(analyst, str | None) or "kind" in how:
            raise TypeError
    except (KeyError, TypeError):
        raise InvalidFile(
            str(path),
            given="was changed",
            needed="be as `takifugu plan` wrote it",
            reason="changed",
        ) from None
    return PlanFile(dataset, QueryOptions.from_document({"kind": kind} | how), analyst, document)
