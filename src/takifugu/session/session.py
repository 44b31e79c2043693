"""A session: plan, charge, release, in that order.

A charge is durable before a protected value is read. A crash after it loses budget, never privacy:
noise may have been seen, so what was charged stays spent, and asking again pays again. An answer is
stored beside its charge, and the same query then costs nothing.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from takifugu._rounding import float_down
from takifugu.engines import Engine, identities
from takifugu.errors import BudgetExceeded, UnsoundRequest
from takifugu.keys import same_key
from takifugu.ledger import Charge, Ledger
from takifugu.losses import Concentrated, Number, Pure, exactly
from takifugu.mechanisms import Mechanism
from takifugu.priors import Name
from takifugu.session.answering import drawn, table
from takifugu.session.asking import Kind, asked_for
from takifugu.session.belief import (
    belief_of,
    protected_column,
    refuse_misfit,
    secrets_of,
    terms_of,
)
from takifugu.session.binding import Said, refuse_unmatched
from takifugu.session.cells import cells_of, declared
from takifugu.session.checking import charged, same_mechanism, same_query
from takifugu.session.choosing import Wanted, choose
from takifugu.session.cost import Cost, Prices
from takifugu.session.guarantee import guarantee
from takifugu.session.held_out import HeldOut, Kept, kept_rows, rules_of
from takifugu.session.problems import OverBudget, StalePlan
from takifugu.session.queries import Query, TransitionsOf
from takifugu.session.rows import Bound
from takifugu.session.values import Plan, Result, asked
from takifugu.translation.accounting.table import TranslationTable
from takifugu.translation.accounting.tabled import TabledTranslation
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.translation import Translation

CHANGED = (
    "the data changed since the last release ({at}). What was released then stays spent, and a"
    " query that was answered then is charged again. If rows were edited in their order or public"
    " columns, not only added, have the owner count the earlier releases on every row first"
)
OTHER_KEY = (
    "the last release ({at}) was marked with another key than this one, or without one: whether"
    " the same was answered before on the same data cannot be told, and it is charged again"
)
MAY_CHANGE = ("postgres", "spark")  # sources that others may write to while they are read


class Session:
    """Queries about one protected column of a declared table, paid from one ledger.

    What the entries of a prior are is said by ``over`` and never guessed: see
    `takifugu.session.binding`. Rows that a prior was fitted on are not released from: see
    `takifugu.session.held_out`. `guarantee` tells both.

    The prior and the secrets are those that the owner accepted, or that the budget was last spent
    under: others are refused (`Ledger.accept`). Where analysts have budgets, one of them asks.

    Args:
        engine: The table.
        ledger: The budget.
        translation: What the adversary believes, which secrets are kept, and what that costs.
        dataset: The name of the budget in the ledger.
        about: The protected column that the prior is about, if there are several.
        analyst: Who asks; a budget of their own counts beside that of the whole.
        table: The translation, looked up instead of computed.
        statement: How the prior came about, for those who read the guarantee. A fitted prior tells
            by itself.
        home: What paths of the source count from when the ledger asks whether it is the same one;
            by default the folder of the ledger, so that both may be moved together.
        over: What the entries of the prior are, ``"sequence"`` or ``"entities"``, or `Entries`; by
            name if there are several priors. Chains and products need none.
        release_fitted_rows: Whether the owner also allows rows that a prior was fitted on.
        rules: The rules of a policy, which the ledger holds against those that were accepted.
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
        statement: str = "",
        home: Path | None = None,
        over: Said | Mapping[str, Said] = None,
        release_fitted_rows: bool = False,
        rules: Mapping[str, Any] | None = None,
    ) -> None:
        if table is not None and table.about != translation.fingerprint:
            raise UnsoundRequest("the table was made for another translation; tabulate this one")
        self._kept = kept_rows(
            rules_of(translation.priors.values()),
            engine.declaration,
            dataset=dataset,
            release=release_fitted_rows,
        )
        if rules is None and self._kept.warning is not None:
            rules = {"release_fitted_rows": True}  # no owner of a policy has said so
        self._rules = rules
        self._engine = HeldOut.of(engine, self._kept.entities)
        self._ledger, self._belief = ledger, translation
        self._dataset, self._analyst = dataset, analyst
        self._about = protected_column(engine.declaration, about)
        self._translation: LossTranslation = (
            translation if table is None else TabledTranslation(translation, table)
        )
        self._mark = translation.fingerprint if table is None else table.fingerprint
        self._read = refuse_misfit(translation, self._engine, self._about, over)
        told = self._kept.told
        self._statement = told if statement in told else f"{told} {statement}".strip()
        ledger.refuse_terms(dataset, terms_of(translation))
        ledger.refuse_rules(dataset, rules)
        ledger.refuse_stranger(dataset, analyst)
        self._prices = Prices(ledger, dataset, self._translation, analyst)
        self._cells = cells_of(engine, self._about, ledger.folder if home is None else home)
        self._read_as = declared(engine.declaration)
        self._sources: tuple[str, tuple[str, ...]] = ("", ())  # of which data, and its marks

    @property
    def about(self) -> str:
        """The column that is asked about."""
        return self._about

    @property
    def kept(self) -> Kept:
        """The rows that may be released from: none that a prior was fitted on."""
        return self._kept

    def spent(self) -> float:
        """The Pufferfish ε of all that was released, rounded up."""
        return self._ledger.spent(self._dataset, self._translation)

    def guarantee(self) -> str:
        """What is protected and what is not, in plain words."""
        return guarantee(
            self._engine.declaration,
            self._belief,
            self._about,
            self._read,
            delta=self._prices.delta,
            statement=self._statement,
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
        delta: Number | None = None,
        within: Number | None = None,
        chance: float | None = None,
        values: Sequence[Name] = (),
        k: int | None = None,
        level: Number | None = None,
        grid: Number | None = None,
        reference: ArrayLike | None = None,
        gap: float | None = None,
    ) -> Plan:
        """How a query would be answered, how well, and for how much.

        Args:
            kind: What to ask.
            column: Of which column; by default the one that the prior is about.
            by: Public columns whose groups are answered one by one, for one charge.
            window: Rows from the first to before the second; None leaves a side open. Without a
                start it begins with the first row that no prior was fitted on.
            where: For public columns, the keys to keep.
            epsilon: The Pufferfish ε that the release may cost alone.
            delta: The Pufferfish δ beside it, at most that of the budget: noise is then of a kind
                whose losses add up as ρ, which is less for many releases on the same rows.
            within: Instead of ε: the least ε that keeps every number this near (a quantile: in
                ranks) …
            chance: … this often, 0.95 unless told. For a ranking, how often places are right.
            values: The labels that a count counts.
            k: How many labels a ranking names.
            level: Which quantile, 0.5 for the median.
            grid: How far apart the numbers are that a quantile is chosen from; a step, unless told.
            reference: Public or made-up counts to plan a ranking for.
            gap: Instead of a reference, the lead of each place over the next.
        """
        query = asked_for(
            self._engine.declaration,
            self._about,
            kind,
            column,
            by=by,
            window=self._kept.opened(window),
            where=where,
            values=values,
            k=k,
            level=level,
            grid=grid,
        )
        if (epsilon is None) == (within is None and chance is None):
            raise UnsoundRequest(
                "say what may be lost (`epsilon`) or how good the answer must be (`within`, or"
                " `chance` for a ranking): one of the two"
            )
        self._ledger.refuse_stranger(self._dataset, self._analyst)
        self._ledger.refuse_terms(self._dataset, terms_of(self._belief))
        self._ledger.refuse_rules(self._dataset, self._rules)
        self._refuse_rows(query)
        self._prices.account()
        refused = self._ledger.cells_changed(self._dataset, self._cells)
        if refused is not None:
            raise refused
        spare = None if delta is None else exactly(delta, "delta")
        if spare is not None:
            self._prices.refuse_delta(spare)
        self._engine.count(query.rows.scope)  # public; refuses rows that cannot be chosen
        if isinstance(query, TransitionsOf):
            self._engine.refuse_disorder()  # public too, and better refused before it is paid for
        allowed = None if epsilon is None else self._prices.allowed(epsilon, spare)
        near = None if spare is None else float_down(spare)
        chosen = choose(query, self._engine, Wanted(allowed, near, within, chance, reference, gap))
        loss, read_at = charged(chosen.mechanism), spare or Fraction(0)
        if epsilon is not None:
            self._prices.certify(loss, epsilon, read_at)
        charge = self._charge(query, chosen.mechanism, loss)
        self._ledger.check(charge)
        stored, reuse = self._told(charge)
        cost = self._prices.of(loss, query.rows, read_at, reuse=reuse)
        instead = None
        if epsilon is None and not cost.fits and not reuse and cost.most > 0:
            wanted = Wanted(
                self._prices.allowed(cost.most, spare), near, None, None, reference, gap
            )
            best = choose(query, self._engine, wanted)
            instead = {"epsilon": str(cost.most), "error": dict(best.error)}
        return Plan(
            query=query,
            mechanism=chosen.mechanism,
            error=chosen.error,
            reason=chosen.reason,
            cost=cost,
            delta=read_at,
            charge=charge,
            stored=stored,
            instead=instead,
            notes=() if stored else self._notes(charge),
        )

    def _told(self, charge: Charge) -> tuple[bool, bool]:
        """Whether the answer is known and free, and whether it is known and costs this analyst."""
        if self._ledger.lookup(charge) is not None:
            return True, False
        known = self._analyst is not None and self._ledger.told_others(charge)
        costs = self._prices.own() is not None
        return known and not costs, known and costs

    def _refuse_rows(self, query: Query) -> None:
        """Raise if rows that are asked for were fitted on, or are not what the priors are about.

        The lengths of sequences are looked at again only in a table that others may write to: files
        that change while they are open are refused by the engine.
        """
        self._kept.refuse_fitted(query.rows.scope.start, self._engine.declaration)
        named = any(entries.over == "entities" for entries in self._read.values())
        if named or self._engine.declaration.source.kind in MAY_CHANGE:
            refuse_unmatched(self._belief.priors, self._read, self._engine)

    def _charge(self, query: Query, mechanism: Mechanism, loss: Pure | Concentrated) -> Charge:
        data = self._ledger.mark("data", self._engine.fingerprint().fingerprint)
        return Charge(
            dataset=self._dataset,
            query=query.body(),
            mechanism=mechanism.describe(),
            loss=loss,
            data=data,
            prior=belief_of(self._belief),
            secrets=secrets_of(self._belief),
            translation=self._mark,
            cells=self._cells,
            declared=self._read_as,
            rules=self._rules,
            sources=self._marks(data),
            window=query.rows.window,
            groups=query.rows.groups,
            analyst=self._analyst,
        )

    def _marks(self, data: str) -> tuple[str, ...]:
        """Keyed marks of where the rows are and what they hold; none if the ledger has them."""
        if self._sources[0] != data:
            marks: tuple[str, ...] = ()
            if not self._ledger.knows_data(self._dataset, data):
                found = identities(self._engine, self._about)
                marks = tuple(f"{kind} {self._ledger.mark(kind, what)}" for kind, what in found)
            self._sources = (data, marks)
        return self._sources[1]

    def _notes(self, charge: Charge) -> tuple[str, ...]:
        """What to know before paying: that the data is not what it was, or that nobody can say."""
        for event in self._ledger.history(self._dataset, kind="charge", last=1):
            before, at = str(event.body["data"]), f"{event.at:%Y-%m-%d %H:%M} UTC"
            if not same_key(before, charge.data):
                return (OTHER_KEY.format(at=at),)
            if before != charge.data:
                return (CHANGED.format(at=at),)
        return ()

    # --- charge, then release ---

    def release(self, plan: Plan) -> Result:
        """Pay for a plan, then answer it; for free if the same was answered before.

        What another analyst was told costs this one's own budget, if they have one.
        """
        self._ledger.refuse_stranger(self._dataset, self._analyst)
        self._ledger.refuse_terms(self._dataset, terms_of(self._belief))
        self._ledger.refuse_rules(self._dataset, self._rules)
        query = same_query(plan.query, self._engine.declaration, self._about)
        mechanism = same_mechanism(plan.mechanism, query, self._engine)
        self._refuse_rows(query)
        loss, charge = charged(mechanism), plan.charge
        made = self._charge(query, mechanism, loss)
        if charge != made:  # but for its key
            raise StalePlan(
                "the plan was made for other data, another session or another price; nothing was"
                " charged. Plan again"
            )
        charge = replace(made, key=charge.key)  # what is written is what was made here
        _, reuse = self._told(charge)
        cost = self._prices.of(loss, query.rows, self._read_at(plan), reuse=reuse)
        sure = replace(plan, query=query, mechanism=mechanism)
        try:
            known = self._known(charge)
            if known is not None:
                return self._result(sure, cost, known.value["drawn"], known.at, free=not reuse)
            receipt = self._ledger.charge(charge, self._translation)
            if not receipt.may_release:  # noise may have been drawn under it: pay again
                charge = replace(charge, key=uuid.uuid4().hex)
                receipt = self._ledger.charge(charge, self._translation)
        except BudgetExceeded as refused:
            raise OverBudget(refused, alone=cost.alone, most=cost.most) from None
        answer = drawn(query, mechanism, self._engine)
        self._refuse_rows(query)  # of a table that others write to, while it was read
        stored = self._ledger.record_answer(receipt, {"drawn": answer})
        return self._result(sure, cost, answer, stored.at, free=False)

    def _read_at(self, plan: Plan) -> Fraction:
        """The δ that a plan's price is read at: it tells, and decides nothing."""
        known = plan.delta if isinstance(plan.delta, Fraction) else Fraction(0)
        return min(max(known, Fraction(0)), self._prices.delta)

    def _known(self, charge: Charge) -> Any:
        if self._analyst is None:
            return self._ledger.lookup(charge)
        return self._ledger.reuse(
            replace(charge, key=uuid.uuid4().hex), self._translation
        )  # another's answer is charged to this analyst alone

    def _result(
        self, plan: Plan, cost: Cost, answer: list[Any], at: datetime, *, free: bool
    ) -> Result:
        columns, rows = table(plan.query, plan.mechanism, answer, self._engine)
        return Result(
            query=asked(plan.charge),
            columns=columns,
            rows=rows,
            error=plan.error,
            cost=cost,
            free=free,
            at=at,
            mechanism=plan.mechanism.describe(),
            guarantee=self.guarantee(),
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

    def quantile(self, level: Number, column: str | None = None, **how: Any) -> Result:
        """The number below which a share of the values lies; the options are those of `plan`."""
        return self.release(self.plan("quantile", column, level=level, **how))

    def proportions(self, column: str | None = None, **how: Any) -> Result:
        """The share of rows with each label; the options are those of `plan`."""
        return self.release(self.plan("proportions", column, **how))

    def transitions(self, column: str | None = None, **how: Any) -> Result:
        """How often each label followed each other one; the options are those of `plan`."""
        return self.release(self.plan("transitions", column, **how))
