"""A session: plan, charge, release, in that order.

A charge is durable before a protected value is read. A crash after it loses budget, never privacy:
noise may have been seen, so what was charged stays spent, and asking again pays again. An answer is
stored beside its charge, and the same query then costs nothing.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from takifugu._core.closing import Closing
from takifugu._core.exact import Number, exactly
from takifugu.binding.entries import Entries
from takifugu.binding.prior_reading import (
    OverOption,
    PriorTranslation,
    SecretsOption,
    columns_of,
    fitted_labels,
    named_priors,
    refuse_misfit,
    terms_of,
    translates_rows,
    translation_of,
)
from takifugu.binding.protected_values import values_of
from takifugu.declarations import Declaration
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Anchor, Cells, Charge, Ledger, Snapshot, open_ledger
from takifugu.ledger.charge_values import groups_body, window_body
from takifugu.ledger.events.replay import Rehearsed
from takifugu.priors import Name, Secrets
from takifugu.priors.prior import Prior
from takifugu.session.activity import Activity, screen
from takifugu.session.cells import cells_of, declared
from takifugu.session.held_out import (
    HeldOutEngine,
    ReleasableRows,
    against_earlier_rows,
    fitted_rows_of,
    published_statement,
    published_windows,
    refuse_publishing,
    releasable_rows,
)
from takifugu.session.planner import Planner
from takifugu.session.plans import Opened, PlannedBefore, Plans, query_of, refuse_stale
from takifugu.session.query.sums import WeightedSum, declared_sums
from takifugu.session.query_options import OPTIONS, Bound, QueryOptions, checked
from takifugu.session.release_cost import Allowances, ConfirmedPrices, Prices
from takifugu.session.release_errors import (
    ApprovalNeeded,
    ApprovalRule,
    BudgetConflict,
    SessionClosed,
)
from takifugu.session.release_plan import Plan
from takifugu.session.release_result import Result
from takifugu.session.releases import Releases
from takifugu.tables import Engine
from takifugu.translation.accounting.tables import TabledTranslation, TranslationTable
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.rows.row_translation import RowTranslation
from takifugu.translation.translation import Translation

if TYPE_CHECKING:
    from takifugu.drafting import Table


class Session(Closing):
    """Queries about the protected columns of a declared table, paid from one ledger.

    For example::

        with Session(table, prior, ledger="visits.ledger", budget=2) as session:
            plan = session.plan.histogram(by="country", epsilon=0.5)  # spends nothing
            result = session.release(plan)  # charged, then drawn

    What the entries of a prior are is given by ``over`` and never guessed: see
    `takifugu.binding.entries`. A session is about one protected column, unless its prior is over
    several; these share one budget, a query on one is charged for what it tells about each, and
    the secrets of each are kept. Rows that a prior was fitted on are not released from: see
    `takifugu.session.held_out`. `guarantee` states all of this.

    The prior and the secrets are those that the owner accepted, or that the budget was last spent
    under: others are refused (`Ledger.accept`). Where analysts have budgets, one of them asks.

    A session is a context manager that closes what it opened itself: a table, or a ledger that was
    given by its path.

    Args:
        table: The table, or an open engine of one, which stays open.
        prior: What the adversary may believe: a prior, several by name, or a translation, which
            also has the secrets.
        ledger: The ledger that pays: its path, its URL, or an open one.
        dataset: The name of the budget in the ledger; by default the name of the table. An engine
            has none.
        budget: The Pufferfish ε of the dataset. It is set if there is no budget yet; another one
            than there is, is refused.
        budget_delta: The Pufferfish δ of the budget.
        secrets: Which secrets are kept; by default every value of every entry. By column if the
            prior is over several; all of a column that is not named.
        uncertainty: By how much of itself each probability of the prior may be off.
        about: The protected column that the prior is about, if there are several and it is about
            one of them.
        analyst: Who asks; a budget of their own counts beside that of the whole.
        translation_table: The translation as a table, made by `tabulate` for speed.
        statement: How the prior came about, for readers of the guarantee. A fitted prior says so
            by itself.
        home: What paths of the source are relative to when the ledger compares sources; by default
            the folder of the ledger, so that both may be moved together.
        over: What the entries of the prior are, ``"sequence"``, ``"row"``, ``"entities"`` or
            ``"entities × sequence"``, or `Entries`, which ``"household"`` needs; by name if there
            are several priors. Chains of one column and products need none.
        release_fitted_rows: Whether the owner also allows rows that a prior was fitted on.
        rules: The rules of a policy, which the ledger compares with those that were accepted.
        linear: The linear queries that ``plan.linear`` knows, by name.
        progress: Whether to show what takes longer than a second: True in a notebook and in a
            terminal, False nowhere; by default in a notebook.
    """

    def __init__(
        self,
        table: "Table | Engine",
        prior: Prior | Mapping[str, Prior] | PriorTranslation,
        *,
        ledger: Ledger | str | Path,
        dataset: str | None = None,
        budget: Number | None = None,
        budget_delta: Number = 0,
        secrets: SecretsOption | None = None,
        uncertainty: float = 0,
        about: str | None = None,
        analyst: str | None = None,
        translation_table: TranslationTable | None = None,
        statement: str = "",
        home: Path | None = None,
        over: OverOption = None,
        release_fitted_rows: bool = False,
        rules: Mapping[str, Any] | None = None,
        linear: Mapping[str, WeightedSum] | None = None,
        progress: bool | None = None,
    ) -> None:
        """Open what is given by path, and check that table, prior, entries and budget fit."""
        _refuse_types(table, translation_table, statement, release_fitted_rows, progress)
        if budget is None and budget_delta:
            raise UnsoundRequest("budget_delta comes without a budget; give both", field="budget")
        if over is None and isinstance(prior, RowTranslation):
            over = prior.over
        self._owns = not (isinstance(table, Engine) and isinstance(ledger, Ledger))
        self._closed = False
        self._progress = progress
        with ExitStack() as opened, self._doing("opening the session"):
            engine = table if isinstance(table, Engine) else opened.enter_context(table.open())
            if not isinstance(ledger, Ledger):
                ledger = opened.enter_context(open_ledger(ledger))
            if engine.declaration.unfitted:
                given = prior.priors if isinstance(prior, Translation | RowTranslation) else prior
                engine = engine.with_labels(
                    fitted_labels(named_priors(given), engine.declaration, over=over, about=about)
                )
            declaration, dataset = engine.declaration, _name(table, dataset)
            translation = _translation(
                prior, secrets, uncertainty, over=over, declaration=declaration, about=about
            )
            translation = _against_earlier_rows(
                translation, over, declaration, about, release=release_fitted_rows
            )
            if translation_table is not None:
                _tabled(translation, translation_table)  # refused before the ledger is read
            releasable = releasable_rows(
                fitted_rows_of(translation.priors.values()),
                declaration,
                dataset=dataset,
                release=release_fitted_rows,
            )
            if rules is None and releasable.warning is not None:
                rules = {"release_fitted_rows": True}  # there is no policy that says so
            held_out = HeldOutEngine.of(engine, releasable.entities)
            columns = columns_of(translation, declaration, about)
            entries = refuse_misfit(translation, held_out, columns, over)
            values = values_of(translation, declaration, columns)
            known = releasable.statement
            statement = known if statement in known else f"{known} {statement}".strip()
            snapshot, terms = ledger.snapshot(dataset, analyst=analyst), terms_of(translation)
            refuse_publishing(
                ledger,
                dataset,
                fitted_rows_of(translation.priors.values()),
                declaration,
                prior=terms.prior,
                how='ledger.accept(…, published=["{}"])',
            )
            given_up = published_statement(published_windows(ledger, dataset))
            snapshot.refuse(terms, rules)
            home = ledger.folder if home is None else home
            made = Opened(
                engine=held_out,
                ledger=ledger,
                prior=translation,
                translation=translation,
                mark=translation.fingerprint,
                dataset=dataset,
                analyst=analyst,
                columns=columns,
                entries=entries,
                values=values,
                linear=declared_sums(linear, declaration, columns) if linear else {},
                releasable=releasable,
                rules=rules,
                terms=terms,
                prices=Prices(dataset, translation),
                cells=cells_of(engine, columns, home, values),
                read_as=declared(declaration),
                statement=f"{statement} {given_up}".strip(),
            )
            self._approval: ApprovalRule | None = None
            self._time_step = 0.0
            self._use(made)
            if translation_table is not None:
                self.use_table(translation_table, trusted=True)
            if budget is not None:
                self._agree_on(budget, budget_delta, snapshot)
            self._owned = opened.pop_all()

    def _use(self, opened: Opened) -> None:
        """Plan and release with what is open now."""
        self._open, self._plans = opened, Plans(opened)
        self._releases = Releases(
            opened, self._plans, approval=self._approval, time_step=self._time_step
        )

    def _doing(self, what: str) -> Activity:
        """What is being done, shown where the session shows such things."""
        return Activity(what, screen(self._progress))

    @property
    def _is_closed(self) -> bool:
        """Whether it was closed, or what it reads: a release would be charged, and then fail."""
        return self._closed or self._open.engine.closed

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise SessionClosed()

    def __repr__(self) -> str:
        state = ", closed" if self._is_closed else ""
        columns = ", ".join(map(repr, self._open.columns))
        return f"<Session on {columns} of dataset {self._open.dataset!r}{state}>"

    def close(self) -> None:
        """Close what the session opened itself; what the caller opened can still be used."""
        self._closed = self._closed or self._owns
        self._owned.close()

    @property
    def plan(self) -> Planner:
        """Plans queries, as ``session.plan.histogram(by="country", epsilon=0.5)``."""
        return Planner(self.planned)

    def planned(self, options: QueryOptions, *, advice: bool = True) -> Plan:
        """The plan for a query that is given as one value.

        To find what would make a noisy answer useful can take as long as a translation: it is left
        out without ``advice``, for a query that is released whatever its answer is worth.
        """
        self._refuse_closed()
        with self._doing("planning"):
            return self._plans.plan(options, advice=advice)

    def replan(self, plan: PlannedBefore, *, advice: bool = True) -> Plan:
        """A plan as it is made now from its options; `StalePlan` if it is not the same."""
        made = self.planned(plan.options, advice=advice)
        refuse_stale(plan, made)
        return made

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
        self._refuse_closed()
        with self._doing("releasing"):
            return self._releases.release(plan, accept_noise, key, approval, request)

    def require_approval(self, rule: ApprovalRule | None) -> None:
        """Let releases wait for a second person, as the rule of a policy says."""
        self._approval = rule
        self._use(self._open)

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
        needed = self._waits(plan, after=after)
        return None if needed is None else needed.why

    def refuse_unapproved(self, plan: Plan, *, after: bool = False, name: str = "") -> None:
        """Raise `ApprovalNeeded` if a release waits for an owner; ``name``: in its batch."""
        needed = self._waits(plan, after=after)
        if needed is not None:
            raise ApprovalNeeded(needed.dataset, str(needed.reason), needed.why, name=name)

    def _waits(self, plan: Plan, *, after: bool) -> ApprovalNeeded | None:
        quote = self._plans.quote(plan, plan.charge)
        return self._releases.waits(plan, quote, self._plans.cost(plan, quote), after=after)

    def release_in_steps(self, seconds: float) -> None:
        """Record answers, and fail, a whole number of steps of so many seconds after the charge.

        See `takifugu.session.releases`. Sessions of other analysts are not changed.
        """
        self._time_step = seconds
        self._use(self._open)

    def use_table(self, table: TranslationTable, *, trusted: bool) -> None:
        """Read losses from a table of the translation; prices too if it was computed here."""
        tabled = _tabled(self._open.prior, table)
        self._use(
            replace(
                self._open,
                translation=tabled,
                mark=table.fingerprint,
                prices=Prices(self._open.dataset, tabled),
                confirmed=None if trusted else ConfirmedPrices(self._open.prior),
            )
        )

    def keep_allowances(self, kept: Allowances) -> None:
        """Look allowances by value up in ``kept`` first, and keep those that are searched for."""
        prices = Prices(self._open.dataset, self._open.translation, kept)
        self._use(replace(self._open, prices=prices))

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
        opened = replace(self._open, analyst=analyst, ledger=ledger or self._open.ledger)
        if opened.ledger.origin != self._open.ledger.origin:
            raise UnsoundRequest(
                f"{opened.ledger.name!r} is not the ledger of this session; open one on it",
                field="ledger",
            )
        opened.ledger.snapshot(opened.dataset, analyst=analyst).refuse(opened.terms, opened.rules)
        made = copy(self)
        made._owned, made._owns = ExitStack(), False
        made._use(opened)
        return made

    def resolved(self, options: QueryOptions) -> QueryOptions:
        """Options whose keys and bounds may be given as text, as the columns have them."""
        column = options.column if isinstance(options.column, str) else self.about
        changed: dict[str, Any] = {}
        if options.window is not None:
            number = self._open.engine.declaration.order.kind == "number"
            changed["window"] = tuple(_bound(end, number) for end in options.window)
        if options.where:
            changed["where"] = {
                name: self._keys(name, keys) for name, keys in options.where.items()
            }
        for name, declared_option in OPTIONS.items():
            labels = getattr(options, name)
            if declared_option.type == "labels" and labels and column:
                changed[name] = self._keys(column, labels)
        return replace(options, **changed) if changed else options

    def _keys(self, column: str, texts: Sequence[Name]) -> tuple[Name, ...]:
        """The keys of a column that the texts name; a text that names none is passed on."""
        keys = {str(key): key for key in self._open.engine.keys(column)}
        return tuple(keys.get(str(text), text) for text in texts)

    @property
    def columns(self) -> tuple[str, ...]:
        """The protected columns that queries may be about, in the order of the declaration."""
        return self._open.columns

    @property
    def about(self) -> str | None:
        """The column that queries are about; None if there are several."""
        return self._open.columns[0] if len(self._open.columns) == 1 else None

    @property
    def releasable(self) -> ReleasableRows:
        """The rows that may be released from: none that a prior was fitted on."""
        return self._open.releasable

    @property
    def cells(self) -> Cells:
        """What names the rows and the values of the table: what `Ledger.accept_cells` accepts."""
        return self._open.cells

    def spent(self) -> float:
        """The Pufferfish ε of all that was released, rounded up.

        If the declaration names protected values otherwise than before, this is what will be spent
        once the owner has accepted that.
        """
        self._refuse_closed()
        return self._open.ledger.spent(
            self._open.dataset, self._open.translation, cells=self._open.cells
        )

    def guarantee(self) -> str:
        """What is protected and what is not, in plain words."""
        self._refuse_closed()
        whole = self._open.ledger.snapshot(self._open.dataset).whole
        if whole is None:
            return self._releases.guarantee(None, Fraction(0))
        return self._releases.guarantee(whole.epsilon, whole.delta)

    def _agree_on(self, budget: Number, budget_delta: Number, snapshot: Snapshot) -> None:
        """Set the budget of the dataset if it has none; refuse another one than it has."""
        given = exactly(budget, "budget"), exactly(budget_delta, "budget_delta")
        whole = snapshot.whole
        if whole is None:
            current = self._open.ledger.begin_budget(self._open.dataset, given[0], delta=given[1])
        else:
            current = whole.epsilon or Fraction(0), whole.delta
        same = (
            exact == known or (isinstance(number, float) and number == float(known))  # 0.1 is "0.1"
            for number, exact, known in zip((budget, budget_delta), given, current, strict=True)
        )
        if not all(same):
            raise BudgetConflict(self._open.dataset, given, current)

    def chargeable(self, plan: Plan) -> tuple[Charge, LossTranslation]:
        """What a plan would charge, and by which translation: for `rehearse`."""
        self._refuse_closed()
        return plan.charge, self._open.translation

    def rehearse(self, charges: Sequence[tuple[Charge, LossTranslation]]) -> tuple[Rehearsed, ...]:
        """What charges of this dataset would meet, one after another. Nothing is spent."""
        self._refuse_closed()
        return self._open.ledger.rehearse(charges)

    def refuse_noise(self, plan: Plan) -> None:
        """Raise `MostlyNoise` if the answer of a plan is mostly noise."""
        if plan.needs_confirmation and not plan.stored:
            self._plans.refuse_noise(plan, self._plans.quote(plan, plan.charge))

    def identity(self, options: QueryOptions) -> dict[str, Any]:
        """What tells a query from others, whatever it costs: its body, window and groups."""
        self._refuse_closed()
        query = query_of(
            checked(options), self._open.engine.declaration, self._open.columns, self._open.linear
        )
        rows = query.rows
        body = {"window": window_body(rows.window), "groups": groups_body(rows.groups)}
        return {"query": json.loads(json.dumps(query.body())), **body}

    @property
    def declaration(self) -> Declaration:
        """What the table was declared to be."""
        return self._open.engine.declaration

    def event(self, number: int) -> Anchor | None:
        """An event of the ledger by its number, with its hash; None if there is none."""
        self._refuse_closed()
        found = self._open.ledger.event(number)
        return None if found is None else Anchor(found.seq, found.hash)

    def latest(self) -> datetime | int:
        """The last place in the order that a row has: public, by declaration."""
        self._refuse_closed()
        _, last = self._open.engine.span()
        return last if isinstance(last, datetime) else int(last)


def _tabled(translation: PriorTranslation, table: TranslationTable) -> TabledTranslation:
    """The translation as its table; refused if the table is of another one."""
    if not isinstance(translation, Translation) or table.about != translation.fingerprint:
        raise UnsoundRequest(
            "the table was made for another translation; tabulate this one",
            field="translation_table",
        )
    return TabledTranslation(translation, table)


def _bound(text: Any, number: bool) -> Bound:
    """A bound of a window that may be given as text."""
    if text is None or isinstance(text, int):
        return text
    if number and str(text).strip().removeprefix("-").isdecimal():
        return int(text)
    return str(text)


def _refuse_types(
    table: Any, translation_table: Any, statement: Any, release: Any, progress: Any
) -> None:
    """Refuse what a type checker would: "no" counts as true, and would release fitted rows."""
    tables: Any = Engine
    if not isinstance(table, Engine):
        from takifugu.drafting import Table as tables
    for field, value, kinds, needed in (
        ("table", table, tables, "a table: `tf.table(…)` makes one"),
        ("translation_table", translation_table, TranslationTable | None, "made by `tabulate`"),
        ("statement", statement, str, "text"),
        ("release_fitted_rows", release, bool, "true or false"),
        ("progress", progress, bool | None, "true or false, or left out"),
    ):
        if not isinstance(value, kinds):
            raise UnsoundRequest(
                f"{field} is a {type(value).__name__}; it must be {needed}", field=field
            )


def _translation(
    prior: Prior | Mapping[str, Prior] | PriorTranslation,
    secrets: SecretsOption | None,
    uncertainty: float,
    *,
    over: OverOption,
    declaration: Declaration,
    about: str | None,
) -> PriorTranslation:
    given = isinstance(prior, Translation | RowTranslation)
    if given and (secrets is not None or uncertainty):
        raise UnsoundRequest(
            "a translation has its own secrets and uncertainty; give these to the translation, or"
            " give the session a prior"
        )
    if isinstance(prior, Translation):
        if not translates_rows(prior.priors, over):
            return prior
        if prior.secrets != Secrets():
            raise UnsoundRequest(
                "the prior is over several columns or members, and the translation keeps some"
                " secrets of its entries; give the session the prior, and secrets by column",
                field="secrets",
                reason="by-column",
            )
        secrets, uncertainty = prior.secrets, prior.uncertainty
    kept: SecretsOption = Secrets() if secrets is None else secrets
    if isinstance(prior, RowTranslation):
        kept, uncertainty = prior.secrets, prior.uncertainty
    priors = named_priors(
        prior.priors if isinstance(prior, Translation | RowTranslation) else prior
    )
    made = translation_of(
        priors, kept, uncertainty, over=over, declaration=declaration, about=about
    )
    if isinstance(prior, RowTranslation) and made.fingerprint != prior.fingerprint:
        raise UnsoundRequest(
            f'the translation reads its priors as over = "{prior.over}", or keeps other secrets'
            " than those of every protected column; give the session the prior",
            field="over",
            reason="over",
        )
    return prior if isinstance(prior, RowTranslation) else made


def _against_earlier_rows(
    translation: PriorTranslation,
    over: OverOption,
    declaration: Declaration,
    about: str | None,
    *,
    release: bool,
) -> PriorTranslation:
    """The translation of the same priors against somebody who knows the rows that are given up."""
    stated = {
        name: over.get(name) if isinstance(over, Mapping) else over for name in translation.priors
    }
    readings = {
        name: reading.over if isinstance(reading, Entries) else reading
        for name, reading in stated.items()
    }
    given = against_earlier_rows(translation.priors, translation.secrets, readings, release=release)
    if given == dict(translation.priors):
        return translation
    if isinstance(translation, Translation):
        return replace(translation, prior=given)
    kept, uncertainty = translation.secrets, translation.uncertainty
    return translation_of(given, kept, uncertainty, over=over, declaration=declaration, about=about)


def _name(table: "Table | Engine", dataset: str | None) -> str:
    if dataset is not None:
        return dataset
    if isinstance(table, Engine):
        raise UnsoundRequest(
            "an engine has no name; name the budget with `dataset`", field="dataset"
        )
    return table.name
