"""A session: plan, charge, release, in that order.

A charge is durable before a protected value is read. A crash after it loses budget, never privacy:
noise may have been seen, so what was charged stays spent, and asking again pays again. An answer is
stored beside its charge, and the same question then costs nothing.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import product
from typing import Any, Literal, get_args

from numpy.typing import ArrayLike

from takifugu.engines import Engine, InvalidQuery
from takifugu.errors import BudgetExceeded, UnsoundRequest
from takifugu.ledger import Charge, Ledger
from takifugu.losses import Number, Pure
from takifugu.mechanisms import Mechanism
from takifugu.mechanisms.calibration import allowance, certify
from takifugu.priors import Name
from takifugu.session import questions as ask
from takifugu.session.belief import (
    belief_of,
    protected_column,
    refuse_change,
    refuse_misfit,
    secrets_of,
)
from takifugu.session.choosing import Wanted, choose, released, shown, spread
from takifugu.session.cost import Cost, Prices, Translates
from takifugu.session.problems import OverBudget, StalePlan
from takifugu.session.rows import Bound, Rows, rows_of
from takifugu.session.values import Plan, Result, asked, table_rows
from takifugu.translation.table import TranslationTable
from takifugu.translation.translation import Translation

Kind = Literal["histogram", "count", "top_k", "sum", "mean", "proportions", "transitions"]

PLAIN: Mapping[str, Callable[[str, tuple[str, ...], Rows], ask.Question]] = {
    "histogram": ask.HistogramOf,
    "sum": ask.SumOf,
    "mean": ask.MeanOf,
    "proportions": ask.ProportionsOf,
    "transitions": ask.TransitionsOf,
}  # the questions without options of their own


class Session:
    """Questions about one protected column of a declared table, paid from one ledger.

    Entities count as independent of one another, and each of them as following the prior.

    Args:
        engine: The table.
        ledger: The budget.
        translation: What the adversary believes, which secrets are kept, and what that costs.
        dataset: The name of the budget in the ledger.
        about: The protected column that the prior is about, if there are several.
        analyst: Who asks; a budget of their own counts beside that of the whole.
        table: The translation, looked up instead of computed.
        new_belief: Whether the prior or the secrets may differ from those charged under before.
    """

    def __init__(
        self,
        engine: Engine,
        ledger: Ledger,
        translation: Translation,
        *,
        dataset: str,
        about: str | None = None,
        analyst: str | None = None,
        table: TranslationTable | None = None,
        new_belief: bool = False,
    ) -> None:
        if table is not None and table.about != translation.fingerprint:
            raise UnsoundRequest("the table was made for another translation; tabulate this one")
        self._engine, self._ledger, self._belief = engine, ledger, translation
        self._dataset, self._analyst = dataset, analyst
        self._about = protected_column(engine.declaration, about)
        self._translation: Translates = translation if table is None else table
        self._mark = translation.fingerprint if table is None else table.fingerprint
        refuse_misfit(translation, engine, self._about)
        if not new_belief:
            refuse_change(ledger, dataset, translation)
        self._prices = Prices(ledger, dataset, self._translation, analyst)

    @property
    def about(self) -> str:
        """The column that is asked about."""
        return self._about

    def spent(self) -> float:
        """The Pufferfish ε of all that was released, rounded up."""
        return self._ledger.spent(self._dataset, self._translation)

    def promise(self) -> str:
        """What is protected and what is not, in plain words."""
        names = ", ".join(self._belief.priors)
        entity = self._engine.declaration.entity
        return (
            f"{self._engine.declaration.promise()}\n"
            f"The loss is about `{self._about}` alone, against {names}. Each `{entity}` is taken to"
            " follow it, and to be\nindependent of every other one.\n"
        )

    # --- plan: nothing is spent, nothing protected is read ---

    def plan(
        self,
        kind: Kind,
        column: str | None = None,
        *,
        by: str | Sequence[str] = (),
        window: tuple[Bound, Bound] | None = None,
        where: Mapping[str, Sequence[Name]] | None = None,
        epsilon: Number | None = None,
        within: Number | None = None,
        chance: float | None = None,
        values: Sequence[Name] = (),
        k: int | None = None,
        reference: ArrayLike | None = None,
        gap: float | None = None,
    ) -> Plan:
        """How a question would be answered, how well, and for how much.

        Args:
            kind: What to ask.
            column: Of which column; by default the one that the prior is about.
            by: Public columns whose groups are answered one by one, for one charge.
            window: Rows from the first to before the second; None leaves a side open.
            where: For public columns, the keys to keep.
            epsilon: The Pufferfish ε that the release may cost alone.
            within: Instead: the least ε that keeps every number this near …
            chance: … this often, 0.95 unless told. For a ranking, how often places are right.
            values: The labels that a count counts.
            k: How many labels a ranking names.
            reference: Public or made-up counts to plan a ranking for.
            gap: Instead of a reference, the lead of each place over the next.
        """
        question = self._question(kind, column or self._about, by, window, where, values, k)
        if (epsilon is None) == (within is None and chance is None):
            raise UnsoundRequest(
                "say what may be lost (`epsilon`) or how good the answer must be (`within`, or"
                " `chance` for a ranking): one of the two"
            )
        self._prices.account()
        self._engine.count(question.rows.scope)  # public; refuses rows that cannot be chosen
        if isinstance(question, ask.TransitionsOf):
            self._engine.refuse_disorder()  # public too, and better refused before it is paid for
        allowed = None if epsilon is None else Pure(allowance(epsilon, self._translation))
        chosen = choose(question, self._engine, Wanted(allowed, within, chance, reference, gap))
        if epsilon is not None:
            certify(chosen.loss, epsilon, self._translation)
        charge = self._charge(question, chosen.mechanism, chosen.loss)
        return Plan(
            question=question,
            mechanism=chosen.mechanism,
            error=chosen.error,
            reason=chosen.reason,
            cost=self._prices.of(chosen.loss, question.rows),
            charge=charge,
            stored=self._ledger.lookup(charge) is not None,
        )

    def _question(
        self,
        kind: Kind,
        column: str,
        by: str | Sequence[str],
        window: tuple[Bound, Bound] | None,
        where: Mapping[str, Sequence[Name]] | None,
        values: Sequence[Name],
        k: int | None,
    ) -> ask.Question:
        if kind not in get_args(Kind):
            raise InvalidQuery(
                "kind", given=f"is {kind!r}", needed=f"be one of {', '.join(get_args(Kind))}"
            )
        if (k is not None) != (kind == "top_k"):
            raise InvalidQuery("k", given="is missing, or not for this", needed="go with top_k")
        if values and kind != "count":
            raise InvalidQuery("values", given="are given", needed="be left out but for a count")
        declaration = self._engine.declaration
        groups = (by,) if isinstance(by, str) else tuple(by)
        where_asked = (column, groups, rows_of(declaration, window, where))
        made: ask.Question
        if kind == "top_k":
            made = ask.TopOf(*where_asked, k=k or 1)
        elif kind == "count":
            chosen = (values,) if isinstance(values, str | int) else tuple(values)
            made = ask.CountOf(*where_asked, values=chosen)
        else:
            made = PLAIN[kind](*where_asked)
        ask.refuse_unasked(made, declaration, self._about)
        return made

    def _charge(self, question: ask.Question, mechanism: Mechanism, loss: Pure) -> Charge:
        return Charge(
            dataset=self._dataset,
            query=question.body(),
            mechanism=mechanism.describe(),
            loss=loss,
            data=self._engine.fingerprint().fingerprint,
            prior=belief_of(self._belief),
            secrets=secrets_of(self._belief),
            translation=self._mark,
            window=question.rows.window,
            groups=question.rows.groups,
            analyst=self._analyst,
        )

    # --- charge, then release ---

    def release(self, plan: Plan) -> Result:
        """Pay for a plan, then answer it; for free if the same was answered before."""
        charge = plan.charge
        # made anew from what will be run: a plan is only as good as what it is charged for
        now = self._charge(plan.question, plan.mechanism, plan.mechanism.loss)  # type: ignore[arg-type]
        if replace(charge, key=now.key) != now:
            raise StalePlan(
                "the plan was made for other data, another session or another price; nothing was"
                " charged. Plan again"
            )
        cost = self._prices.of(now.loss, plan.question.rows)  # type: ignore[arg-type]
        try:
            known = self._known(charge)
            if known is not None:
                return self._result(plan, cost, known.value["drawn"], known.at, free=True)
            receipt = self._ledger.charge(charge, self._translation)
            if not receipt.may_release:  # noise may have been drawn under it: pay again
                charge = replace(charge, key=uuid.uuid4().hex)
                receipt = self._ledger.charge(charge, self._translation)
        except BudgetExceeded as refused:
            raise OverBudget(refused, alone=cost.alone, most=cost.most) from None
        drawn = released(plan.question, plan.mechanism, self._engine)
        answer = self._ledger.record_answer(receipt, {"drawn": drawn})
        return self._result(plan, cost, drawn, answer.at, free=False)

    def _known(self, charge: Charge) -> Any:
        if self._analyst is None:
            return self._ledger.lookup(charge)
        return self._ledger.reuse(
            replace(charge, key=uuid.uuid4().hex), self._translation
        )  # another's answer is charged to this analyst alone

    def _result(
        self, plan: Plan, cost: Cost, drawn: list[Any], at: datetime, *, free: bool
    ) -> Result:
        question, engine = plan.question, self._engine
        axes = question.axes(engine)
        names = tuple(name for name, _ in axes)
        keys = list(product(*(keys for _, keys in axes)))
        if isinstance(question, ask.TopOf):
            labels = axes[-1][1]
            groups = product(*(keys for _, keys in axes[:-1]))
            places = iter(drawn)
            columns = (*names[:-1], "place", question.column)
            rows = tuple(
                (*group, place + 1, labels[next(places)])
                for group in groups
                for place in range(question.k)
            )
        else:
            columns = (*names, "estimate", "low", "high")
            halves = spread(question, plan.mechanism, engine).tolist()
            rows = table_rows(keys, shown(question, drawn, engine), halves)
        return Result(
            question=asked(plan.charge),
            columns=columns,
            rows=rows,
            error=plan.error,
            cost=cost,
            free=free,
            at=at,
            mechanism=plan.mechanism.describe(),
            promise=self.promise(),
        )

    # --- plan and release in one ---

    def histogram(self, column: str | None = None, **how: Any) -> Result:
        """How many rows have each label; the options are those of `plan`."""
        return self.release(self.plan("histogram", column, **how))

    def count(self, values: Sequence[Name], column: str | None = None, **how: Any) -> Result:
        """How many rows have one of some labels; the options are those of `plan`."""
        return self.release(self.plan("count", column, values=values, **how))

    def top_k(self, k: int, column: str | None = None, **how: Any) -> Result:
        """The k most frequent labels, in order; the options are those of `plan`."""
        return self.release(self.plan("top_k", column, k=k, **how))

    def sum(self, column: str | None = None, **how: Any) -> Result:
        """The sum of bounded numbers; the options are those of `plan`."""
        return self.release(self.plan("sum", column, **how))

    def mean(self, column: str | None = None, **how: Any) -> Result:
        """The mean of bounded numbers; the options are those of `plan`."""
        return self.release(self.plan("mean", column, **how))

    def proportions(self, column: str | None = None, **how: Any) -> Result:
        """The share of rows with each label; the options are those of `plan`."""
        return self.release(self.plan("proportions", column, **how))

    def transitions(self, column: str | None = None, **how: Any) -> Result:
        """How often each label followed each other one; the options are those of `plan`."""
        return self.release(self.plan("transitions", column, **how))
