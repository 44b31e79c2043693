"""A session: plan, charge, release, in that order.

A charge is durable before a protected value is read. A crash after it loses budget, never privacy:
noise may have been seen, so what was charged stays spent, and asking again pays again. An answer is
stored beside its charge, and the same query then costs nothing.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from takifugu._core.closing import Closing
from takifugu._core.exact import Number, exactly
from takifugu.binding.entries import Entries
from takifugu.binding.fitted_labels import labels_of
from takifugu.binding.prior_checks import refuse_misfit, terms_of
from takifugu.binding.prior_reading import (
    OverOption,
    PriorTranslation,
    SecretsOption,
    columns_of,
    named_priors,
    translates_rows,
    translation_of,
)
from takifugu.binding.protected_values import values_of
from takifugu.declarations import Declaration
from takifugu.drafting import Table
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Anchor, Cells, Charge, Ledger, Snapshot, open_ledger
from takifugu.ledger.charge_values import groups_body, window_body
from takifugu.ledger.events.replay import Rehearsed
from takifugu.priors import Secrets
from takifugu.priors.prior import Prior
from takifugu.session.cells import cells_of, declared
from takifugu.session.held_out import (
    HeldOutEngine,
    ReleasableRows,
    against_earlier_rows,
    fitted_rows_of,
    releasable_rows,
)
from takifugu.session.planner import Planner
from takifugu.session.published_rows import (
    published_statement,
    published_windows,
    refuse_publishing,
)
from takifugu.session.query.linear import WeightedSum, declared_sums
from takifugu.session.query_options import QueryOptions, checked
from takifugu.session.query_planner import query_of
from takifugu.session.release_cost import Prices
from takifugu.session.release_errors import (
    BudgetConflict,
)
from takifugu.session.release_plan import Plan
from takifugu.session.releasing import Releasing
from takifugu.tables import Engine
from takifugu.translation.accounting.tables import TabledTranslation, TranslationTable
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.rows.row_translation import RowTranslation
from takifugu.translation.translation import Translation


class Session(Releasing, Closing):
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
        table: Table | Engine,
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
                    labels_of(named_priors(given), engine.declaration, over=over, about=about)
                )
            declaration, dataset = engine.declaration, _name(table, dataset)
            translation = _translation(
                prior, secrets, uncertainty, over=over, declaration=declaration, about=about
            )
            translation = _against_earlier_rows(
                translation, over, declaration, about, release=release_fitted_rows
            )
            self._releasable = releasable_rows(
                fitted_rows_of(translation.priors.values()),
                declaration,
                dataset=dataset,
                release=release_fitted_rows,
            )
            if rules is None and self._releasable.warning is not None:
                rules = {"release_fitted_rows": True}  # there is no policy that says so
            self._rules = rules
            self._engine = HeldOutEngine.of(engine, self._releasable.entities)
            self._ledger, self._prior = ledger, translation
            self._dataset, self._analyst = dataset, analyst
            self._columns = columns_of(translation, declaration, about)
            self._translation: LossTranslation = translation
            self._mark = translation.fingerprint
            if translation_table is not None:
                if (
                    not isinstance(translation, Translation)
                    or translation_table.about != translation.fingerprint
                ):
                    raise UnsoundRequest(
                        "the table was made for another translation; tabulate this one",
                        field="translation_table",
                    )
                self._translation = TabledTranslation(translation, translation_table)
                self._mark = translation_table.fingerprint
            self._entries = refuse_misfit(translation, self._engine, self._columns, over)
            self._values = values_of(translation, declaration, self._columns)
            self._linear = declared_sums(linear or {}, declaration, self._columns)
            known = self._releasable.statement
            self._statement = known if statement in known else f"{known} {statement}".strip()
            snapshot = ledger.snapshot(dataset, analyst=analyst)
            self._terms = terms_of(translation)
            refuse_publishing(
                ledger,
                dataset,
                fitted_rows_of(translation.priors.values()),
                declaration,
                prior=self._terms.prior,
                how='ledger.accept(…, published=["{}"])',
            )
            given_up = published_statement(published_windows(ledger, dataset))
            self._statement = f"{self._statement} {given_up}".strip()
            snapshot.refuse(self._terms, rules)
            self._prices = Prices(dataset, self._translation)
            home = ledger.folder if home is None else home
            self._cells = cells_of(engine, self._columns, home, self._values)
            self._read_as = declared(declaration)
            self._sources = {}  # of the last data, its marks
            if budget is not None:
                self._agree_on(budget, budget_delta, snapshot)
            self._opened = opened.pop_all()

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        columns = ", ".join(map(repr, self._columns))
        return f"<Session on {columns} of dataset {self._dataset!r}{state}>"

    def close(self) -> None:
        """Close what the session opened itself; what the caller opened can still be used."""
        self._closed = self._closed or self._owns
        self._opened.close()

    @property
    def plan(self) -> Planner:
        """Plans queries, as ``session.plan.histogram(by="country", epsilon=0.5)``."""

        def shown(options: QueryOptions) -> Plan:
            with self._doing("planning"):
                return self._plan(options)

        return Planner(shown)

    @property
    def columns(self) -> tuple[str, ...]:
        """The protected columns that queries may be about, in the order of the declaration."""
        return self._columns

    @property
    def about(self) -> str | None:
        """The column that queries are about; None if there are several."""
        return self._columns[0] if len(self._columns) == 1 else None

    @property
    def releasable(self) -> ReleasableRows:
        """The rows that may be released from: none that a prior was fitted on."""
        return self._releasable

    @property
    def cells(self) -> Cells:
        """What names the rows and the values of the table: what `Ledger.accept_cells` accepts."""
        return self._cells

    def spent(self) -> float:
        """The Pufferfish ε of all that was released, rounded up.

        If the declaration names protected values otherwise than before, this is what will be spent
        once the owner has accepted that.
        """
        self._refuse_closed()
        return self._ledger.spent(self._dataset, self._translation, cells=self._cells)

    def guarantee(self) -> str:
        """What is protected and what is not, in plain words."""
        self._refuse_closed()
        whole = self._ledger.snapshot(self._dataset).whole
        if whole is None:
            return self._guarantee(None, Fraction(0))
        return self._guarantee(whole.epsilon, whole.delta)

    def _agree_on(self, budget: Number, budget_delta: Number, snapshot: Snapshot) -> None:
        """Set the budget of the dataset if it has none; refuse another one than it has."""
        given = exactly(budget, "budget"), exactly(budget_delta, "budget_delta")
        whole = snapshot.whole
        if whole is None:
            current = self._ledger.begin_budget(self._dataset, given[0], delta=given[1])
        else:
            current = whole.epsilon or Fraction(0), whole.delta
        same = (
            exact == known or (isinstance(number, float) and number == float(known))  # 0.1 is "0.1"
            for number, exact, known in zip((budget, budget_delta), given, current, strict=True)
        )
        if not all(same):
            raise BudgetConflict(self._dataset, given, current)

    def chargeable(self, plan: Plan) -> tuple[Charge, LossTranslation]:
        """What a plan would charge, and by which translation: for `rehearse`."""
        self._refuse_closed()
        return plan.charge, self._translation

    def rehearse(self, charges: Sequence[tuple[Charge, LossTranslation]]) -> tuple[Rehearsed, ...]:
        """What charges of this dataset would meet, one after another. Nothing is spent."""
        self._refuse_closed()
        return self._ledger.rehearse(charges)

    def refuse_noise(self, plan: Plan) -> None:
        """Raise `MostlyNoise` if the answer of a plan is mostly noise."""
        if plan.needs_confirmation and not plan.stored:
            self._refuse_noise(plan, self._quote(plan, plan.charge))

    def identity(self, options: QueryOptions) -> dict[str, Any]:
        """What tells a query from others, whatever it costs: its body, window and groups."""
        self._refuse_closed()
        query = query_of(checked(options), self._engine.declaration, self._columns, self._linear)
        rows = query.rows
        body = {"window": window_body(rows.window), "groups": groups_body(rows.groups)}
        return {"query": json.loads(json.dumps(query.body())), **body}

    @property
    def declaration(self) -> Declaration:
        """What the table was declared to be."""
        return self._engine.declaration

    def event(self, number: int) -> Anchor | None:
        """An event of the ledger by its number, with its hash; None if there is none."""
        self._refuse_closed()
        found = self._ledger.event(number)
        return None if found is None else Anchor(found.seq, found.hash)

    def latest(self) -> datetime | int:
        """The last place in the order that a row has: public, by declaration."""
        self._refuse_closed()
        _, last = self._engine.span()
        return last if isinstance(last, datetime) else int(last)


def _refuse_types(
    table: Any, translation_table: Any, statement: Any, release: Any, progress: Any
) -> None:
    """Refuse what a type checker would: "no" counts as true, and would release fitted rows."""
    for field, value, kinds, needed in (
        ("table", table, Table | Engine, "a table: `tf.table(…)` makes one"),
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


def _name(table: Table | Engine, dataset: str | None) -> str:
    if dataset is not None:
        return dataset
    if isinstance(table, Engine):
        raise UnsoundRequest(
            "an engine has no name; name the budget with `dataset`", field="dataset"
        )
    return table.name
