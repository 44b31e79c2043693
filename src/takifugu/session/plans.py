"""Plans of a session: how a query would be answered, by which mechanism, at what charge.

Nothing here is spent, and nothing protected is read. A query that tells less than everything about
an entry is charged by what it tells (`takifugu.binding.protected_values`): the ε that was asked for
then allows less noise, and the error that was asked for costs less.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol

from takifugu._core.exact import exactly
from takifugu._core.rounding import float_down
from takifugu.binding.entries import Entries
from takifugu.binding.matched_rows import refuse_unmatched
from takifugu.binding.prior_reading import PriorTranslation
from takifugu.binding.protected_values import WHOLLY, Values, without_steps
from takifugu.costs.cost import Cost
from takifugu.costs.losses import Concentrated, Metric, Pure
from takifugu.declarations import Category, Declaration, InvalidQuery
from takifugu.errors import UnsoundRequest, one_of
from takifugu.ledger import Cells, Charge, Ledger, Quote, Terms
from takifugu.mechanisms import Mechanism
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.independent import Product
from takifugu.priors.prior import Prior
from takifugu.session.cells import refuse_order, rows_of
from takifugu.session.guarantee import unprotected_gaps
from takifugu.session.held_out import ReleasableRows
from takifugu.session.query.query import Aim, ChosenMechanism, NumberQuery, Query
from takifugu.session.query.sums import WeightedSum, WeightedSumQuery
from takifugu.session.query_kinds import KINDS, query_class
from takifugu.session.query_options import Bound, QueryOptions, checked
from takifugu.session.release_cost import (
    Charged,
    ConfirmedPrices,
    Prices,
    ReleaseCost,
    checked_delta,
)
from takifugu.session.release_errors import MostlyNoise, StalePlan
from takifugu.session.release_plan import (
    Plan,
    RowsRead,
    UnpricedPlan,
    notes_before_paying,
    rows_read,
)
from takifugu.session.usefulness import (
    AnswerScales,
    Remedy,
    Usefulness,
    answer_scales,
    candidates_above,
    judged,
    least_useful,
    most_noise,
    rows_factor,
)
from takifugu.tables import DataFingerprint, Engine, identities
from takifugu.translation.protocol import LossTranslation
from takifugu.visible import visible

MATCHED_BY_NAME = ("entities", "household", "entities × sequence")  # readings
EARLIER_GAIN = Fraction(5, 4)  # so many times less an earlier version may have allowed
SEARCH_TOLERANCE = 1 + Fraction(1, 10**6)  # a search for an allowance ends this close to it
NONE_DECLARED: Mapping[str, WeightedSum] = {}
UNORDERED = {"row": "the columns of each row", "entities": "entities with one row each"}


class PlannedBefore(Protocol):
    """A plan that was made before: a `Plan`, or what a plan file holds."""

    @property
    def options(self) -> QueryOptions:
        """What was asked for."""

    def differences(self, made: Any, /) -> tuple[str, ...]:
        """The parts in which it is not the plan that was made from its options now."""


@dataclass(frozen=True, eq=False)
class Opened:
    """What a session has open, and what was checked when it was opened.

    Attributes:
        engine: The table, without the rows of entities that are held out.
        ledger: The ledger that pays.
        prior: Priors and secrets.
        translation: The same, or the table that was made of it.
        mark: The identity of that in the ledger.
        dataset: The name of the budget.
        analyst: Who asks; None for nobody by name.
        columns: The protected columns that queries may be about.
        entries: What the entries of each prior are.
        values: What the priors know of the values of each column.
        linear: The linear queries that are declared.
        releasable: The rows that may be released from.
        rules: The rules of a policy.
        terms: What the owner accepted.
        prices: What losses cost.
        cells: What names the rows and the values.
        read_as: How the declaration reads protected values.
        statement: How the prior came about.
        confirmed: Checks the prices of a table that was not made here; None if none is needed.
        sources: Marks of the data that was read last: see `Plans.charge`.
    """

    engine: Engine
    ledger: Ledger
    prior: PriorTranslation
    translation: LossTranslation
    mark: str
    dataset: str
    analyst: str | None
    columns: tuple[str, ...]
    entries: Mapping[str, Entries]
    values: Values
    linear: Mapping[str, WeightedSum]
    releasable: ReleasableRows
    rules: Mapping[str, Any] | None
    terms: Terms
    prices: Prices
    cells: Cells
    read_as: str
    statement: str
    confirmed: ConfirmedPrices | None = None
    sources: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict)


class Plans:
    """Makes the plans of a session."""

    def __init__(self, opened: Opened) -> None:
        self._open = opened

    def plan(self, options: QueryOptions, *, advice: bool) -> Plan:
        """The plan for a query. Nothing is spent, and nothing protected is read.

        Without ``advice`` nobody asks what would make its answer useful, and it is not computed.
        """
        with self._open.ledger.one_moment():
            made = self.unpriced(options)
            quote = self.quote(made, made.charge)
            return self._priced(made, quote, advice)

    def _priced(self, made: UnpricedPlan, quote: Quote, advice: bool) -> Plan:
        stored, reuse = quote.stored, quote.reuse
        cost = self.cost(made, quote)
        instead = None
        if made.options.epsilon is None and not cost.fits and not reuse and cost.most > 0:
            best = made.query.choose(
                self._open.engine, self._aim(made.options, epsilon=cost.most, unit=made.unit)
            )
            instead = {"epsilon": str(cost.most), "error": dict(best.error)}
        return Plan(
            **{part: getattr(made, part) for part in UnpricedPlan.__dataclass_fields__},
            cost=cost,
            usefulness=self._usefulness(made, quote, advice),
            stored=stored,
            instead=instead,
            notes=()
            if stored
            else (*notes_before_paying(made.charge, quote.last), *self._gap_notes()),
        )

    def _gap_notes(self) -> tuple[str, ...]:
        """That it is not protected which cells are left out, where a prior has no state for it."""
        openly = unprotected_gaps(
            self._open.engine.declaration, self._open.prior, self._open.columns
        )
        return tuple(
            f"which cells of `{visible(column)}` are left out is not protected: the prior has no"
            " state for them"
            for column in openly
        )

    def unpriced(self, options: QueryOptions) -> UnpricedPlan:
        """All of a plan but its price: the one place where plans are made."""
        if not isinstance(options, QueryOptions):
            raise UnsoundRequest(
                f"a {type(options).__name__} says nothing of a query; give `QueryOptions`",
                field="options",
            )
        options = checked(options)
        window = self._open.releasable.opened(options.window)
        query = query_of(
            options,
            self._open.engine.declaration,
            self._open.columns,
            self._open.linear,
            window=window,
        )
        refuse_unserved(
            query, self._open.prior.priors, {name: e.over for name, e in self._open.entries.items()}
        )
        self.refuse_rows(query)
        delta = None if options.delta is None else checked_delta(options.delta)
        reads = rows_read(
            query, options, self._open.engine, self._open.releasable
        )  # public; refuses none
        query.check_order(self._open.engine)  # public too, and better refused before it is paid for
        everything = WHOLLY if delta is not None else query.whole_cost(self._open.values)
        unit = WHOLLY if delta is not None else query.unit_cost(self._open.values)
        try:
            whole = self._made(options, query, delta, everything, reads)
        except UnsoundRequest:
            if unit == everything:
                raise
            # so little that only values allow it
            return self._made(options, query, delta, unit, reads)
        if unit == everything:
            return self._answered_earlier(whole) or whole
        before = self._released_before(whole)
        if before is not None:
            return before
        made = self._made(options, query, delta, unit, reads)
        if _epsilon(made) < _epsilon(whole):
            return whole  # a bound that is searched for: that of the lesser cost ended above
        return replace(self._charged_unrounded(made) or made, otherwise=whole.error)

    def _charged_unrounded(self, made: UnpricedPlan) -> UnpricedPlan | None:
        """The plan of a sum that is stored by a version that charged it without its step."""
        unit = without_steps(made.unit)
        if unit == made.unit:
            return None
        charge = replace(made.charge, loss=_loss(made.mechanism, unit))
        if self._open.ledger.lookup(charge) is None:
            return None
        return replace(made, unit=unit, charge=charge)

    def _released_before(self, whole: UnpricedPlan) -> UnpricedPlan | None:
        """The plan of a release of the same query by a version that charged it as ``whole``.

        Its answer is stored and free. Bounds have become less since, so that the same ε may have
        allowed a little less then, up to `EARLIER_GAIN` times, or as much but for
        `SEARCH_TOLERANCE`.
        """
        quote = self.quote(whole, whole.charge)
        if quote.stored or quote.reuse:
            return whole
        if whole.options.epsilon is None or not isinstance(whole.query, NumberQuery):
            return None
        for mechanism, loss in reversed(self._open.ledger.released(whole.charge)):
            if not isinstance(loss, Pure) or mechanism.get("scale") is None:
                continue
            if (
                not loss.epsilon / SEARCH_TOLERANCE
                <= _epsilon(whole)
                <= loss.epsilon * EARLIER_GAIN
            ):
                continue
            chosen = whole.query.chosen_before(float(mechanism["scale"]), self._open.engine)
            if chosen.mechanism.loss != loss:
                continue
            stored = self._if_stored(whole, chosen, loss)
            if stored is not None:
                return stored
        return None

    def _answered_earlier(self, whole: UnpricedPlan) -> UnpricedPlan | None:
        """The plan of the same query by a mechanism of an earlier version, if it is answered."""
        aim = self._aim(whole.options, epsilon=whole.options.epsilon, unit=whole.unit)
        for chosen in whole.query.chosen_earlier(self._open.engine, aim):
            stored = self._if_stored(whole, chosen, _loss(chosen.mechanism, whole.unit))
            if stored is not None:
                return stored
        return None

    def _if_stored(
        self, whole: UnpricedPlan, chosen: ChosenMechanism, loss: Charged
    ) -> UnpricedPlan | None:
        """The plan with another mechanism, if an answer by it is stored; None if none is."""
        found = self._open.engine.fingerprint()
        charge = self.charge(whole.query, chosen.mechanism, loss, found)
        quote = self.quote(whole, charge)
        if not (quote.stored or quote.reuse):
            return None
        return replace(whole, charge=charge, **vars(chosen))

    def _made(
        self,
        options: QueryOptions,
        query: Query,
        delta: Fraction | None,
        unit: Cost,
        reads: RowsRead,
    ) -> UnpricedPlan:
        """How a query would be answered if it is charged as telling ``unit`` of an entry."""
        chosen = query.choose(
            self._open.engine, self._aim(options, epsilon=options.epsilon, unit=unit)
        )
        loss = _loss(chosen.mechanism, unit)
        if options.epsilon is not None:
            self._open.prices.certify(loss, options.epsilon, delta or Fraction(0))
        found = self._open.engine.fingerprint()
        return UnpricedPlan(
            options=options,
            query=query,
            mechanism=chosen.mechanism,
            error=chosen.error,
            reason=chosen.reason,
            delta=delta or Fraction(0),
            unit=unit,
            otherwise=None,
            charge=self.charge(query, chosen.mechanism, loss, found),
            reads=reads.of_table(found.rows),
        )

    def quote(self, made: UnpricedPlan, charge: Charge) -> Quote:
        """What a charge would meet now: one read of the ledger, which refuses as the charge does.

        Raises for another analyst, other terms, rules or cells than the owner accepted, and for
        a δ above that of a budget that pays.
        """
        quote = self._open.ledger.quote(charge, self._open.translation)
        self._open.prices.refuse_delta(made.delta, quote.snapshot.payers)
        return quote

    def _aim(self, options: QueryOptions, *, epsilon: Any, unit: Cost) -> Aim:
        """What the answer may lose: what ``epsilon`` allows, or else what the error needs."""
        delta = None if options.delta is None else exactly(options.delta, "delta")
        near = None if delta is None else float_down(delta)
        if epsilon is None:
            return Aim(
                delta=near,
                within=options.within,
                confidence=options.confidence,
                reference=options.reference,
                gap=options.gap,
            )
        allowed = self._open.prices.allowed(epsilon, delta, unit)
        return Aim(allowed, near, reference=options.reference, gap=options.gap)

    def cost(self, made: UnpricedPlan, quote: Quote) -> ReleaseCost:
        """What a plan costs now; not less than the translation itself finds."""
        cost = self._open.prices.of(
            _loss(made.mechanism, made.unit),
            made.delta,
            quote.standings,
            reuse=quote.reuse,
            stored=quote.stored,
            asked=made.options.epsilon,
        )
        return cost if self._open.confirmed is None else self._open.confirmed.confirm(cost)

    def paid_cost(self, made: UnpricedPlan, quote: Quote) -> ReleaseCost:
        """What a plan has cost that is paid already: it adds nothing to what is spent now."""
        free = replace(quote, shared=True, snapshot=replace(quote.snapshot, own=None))
        return self.cost(made, free)

    def _usefulness(self, made: UnpricedPlan, quote: Quote, advice: bool) -> Usefulness:
        """Whether the answer will be worth having; if not, and it costs, what would make it so."""
        scales = answer_scales(made.query, self._open.engine)
        found = judged(scales, made.error)
        if found.verdict == "useful" or quote.stored or not advice:
            return found
        epsilon, admitted = self._useful_epsilon(made, quote, scales)
        more = rows_factor(float(made.error[scales.error]), most_noise(scales))
        return replace(found, remedy=Remedy(epsilon, admitted, more))

    def _useful_epsilon(
        self, made: UnpricedPlan, quote: Quote, scales: AnswerScales
    ) -> tuple[Decimal | None, bool]:
        """A Pufferfish ε whose plan is useful, and whether the budget admits it now."""
        limit = most_noise(scales)
        near = None if made.options.delta is None else float_down(made.delta)

        def within(amount: Fraction) -> ChosenMechanism | None:
            """A mechanism within a per-entry loss, if it is useful."""
            loss = Pure(amount) if near is None else Concentrated(amount)
            found = made.query.choose(self._open.engine, Aim(loss, near))
            return found if float(found.error[scales.error]) < limit else None

        loss = made.mechanism.loss
        now = loss.rho if isinstance(loss, Concentrated) else loss.epsilon
        best = least_useful(now, within)
        if best is None:
            return None, False
        prices = self._open.prices.apart()
        price = prices.alone(_loss(best.mechanism, made.unit), made.delta)
        for epsilon in candidates_above(price):
            try:
                allowed = prices.allowed(epsilon, made.delta if near else None, made.unit)
                found = made.query.choose(self._open.engine, Aim(allowed, near))
            except UnsoundRequest:  # below what a table translates, for one
                continue
            if float(found.error[scales.error]) < limit:
                charged = _loss(found.mechanism, made.unit)
                payers = [one for one in quote.standings if one.analyst or not quote.reuse]
                return epsilon, all(one.admits(charged) for one in payers)
        return None, False

    def refuse_noise(self, made: UnpricedPlan, quote: Quote) -> None:
        """Raise if an answer is mostly noise."""
        if not judged(answer_scales(made.query, self._open.engine), made.error).needs_confirmation:
            return
        found = self._usefulness(made, quote, advice=True)
        remedy, accuracy = found.remedy, found.accuracy
        raise MostlyNoise(
            found.words,
            half_width=accuracy.half_width,
            range=(accuracy.low, accuracy.high),
            size=accuracy.size,
            epsilon_needed=None if remedy is None else remedy.epsilon,
            rows_factor=None if remedy is None else remedy.rows,
        )

    def refuse_rows(self, query: Query) -> None:
        """Raise if the rows of a query were fitted on, or are not what the priors are about.

        The lengths of sequences are checked again only in a table that others may write to: files
        that change while they are open are refused by the engine.
        """
        self._open.releasable.refuse_fitted(query.rows.scope.start, self._open.engine.declaration)
        named = any(entries.over in MATCHED_BY_NAME for entries in self._open.entries.values())
        if named or self._open.engine.may_change:
            refuse_unmatched(self._open.prior.priors, self._open.entries, self._open.engine)

    def charge(
        self, query: Query, mechanism: Mechanism, loss: Charged, found: DataFingerprint
    ) -> Charge:
        """What a release of a query by a mechanism will write in the ledger first."""
        mark = self._open.ledger.mark("data", found.fingerprint)
        data = self._open.ledger.data_state(self._open.dataset, mark)
        return Charge(
            dataset=self._open.dataset,
            query=query.body(),
            mechanism=mechanism.describe(),
            loss=loss,
            data=data,
            prior=self._open.terms.prior,
            secrets=self._open.terms.secrets,
            translation=self._open.mark,
            cells=self._open.cells,
            declared=self._open.read_as,
            rules=self._open.rules,
            sources=self._marks(data)[0],
            elsewhere=self._marks(data)[1],
            window=query.rows.window,
            groups=query.rows.groups,
            analyst=self._open.analyst,
        )

    def _marks(self, data: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Keyed marks of where the rows are and what they hold; none if the ledger has them.

        The first are for datasets of this ledger, the others for the other ledgers of this user.
        """
        if data not in self._open.sources:
            found: tuple[tuple[str, Any], ...] = ()
            if not self._open.ledger.knows_data(self._open.dataset, data):
                found = tuple(identities(self._open.engine, self._open.columns))
            marks = tuple(f"{kind} {self._open.ledger.mark(kind, what)}" for kind, what in found)
            self._open.sources.clear()
            self._open.sources[data] = (
                marks,
                self._open.ledger.marks_elsewhere(found) if found else (),
            )
        return self._open.sources[data]


def refuse_stale(plan: PlannedBefore, made: UnpricedPlan) -> None:
    """Raise if a plan is not what was made from its options now."""
    differences = plan.differences(made)
    if differences:
        raise StalePlan(differences)


def _loss(mechanism: Mechanism, unit: Cost) -> Charged:
    """What a mechanism loses, by its own proof, of an answer that tells ``unit`` of an entry."""
    loss = mechanism.loss
    if isinstance(loss, Pure):
        return loss if unit == WHOLLY else Metric(unit * loss.epsilon)
    if not isinstance(loss, Concentrated):
        raise UnsoundRequest("a session charges losses in ε or in ρ; this mechanism has another")
    return loss


def _epsilon(made: UnpricedPlan) -> Fraction:
    loss = made.mechanism.loss
    return loss.epsilon if isinstance(loss, Pure) else Fraction(0)


def query_of(
    options: QueryOptions,
    declaration: Declaration,
    about: str | Sequence[str],
    linear: Mapping[str, WeightedSum] = NONE_DECLARED,
    *,
    window: tuple[Bound, Bound] | None = None,
) -> Query:
    """The query that options describe; refused unless it is about protected columns of a session.

    ``about`` is the column that a session is about, or the list of its columns. ``linear`` are the
    linear queries that the policy declares. ``window`` stands for that of the options, if given.
    """
    kind = query_class(options.kind)
    columns = _columns(options, declaration, about, kind, linear)
    public = [category.column for category in declaration.public]
    for name in options.by:
        if name not in public:
            refuse_order(f"by, {name}", name, declaration)
            raise InvalidQuery(
                f"by, {name}",
                given="is not a public column",
                needed=one_of(public, name) if public else "be left out: no column is public",
            )
    if len(set(options.by)) < len(options.by):
        raise InvalidQuery("by", given="repeats a column", needed="name each one once")
    declared = None if options.query is None else linear[options.query]
    where = options.where if declared is None else declared.rows_read(declaration, options.where)
    rows = rows_of(declaration, window or options.window, where)
    query = kind.of(options, declaration, columns, rows)
    if isinstance(query, WeightedSumQuery) and declared is not None:
        query = query.declared(str(options.query), declared, declaration)
    query.check(declaration)
    return query


def _columns(
    options: QueryOptions,
    declaration: Declaration,
    about: str | Sequence[str],
    kind: type[Query],
    linear: Mapping[str, WeightedSum],
) -> tuple[str, ...]:
    """The protected columns that a query reads, in the order of the declaration.

    Which columns are counted together matters, and not in which order they are named: the same
    columns are the same query.
    """
    known = (about,) if isinstance(about, str) else tuple(about)
    given = options.column
    if options.query is not None:
        if options.query not in linear:
            raise InvalidQuery(
                "query",
                given=f"is {options.query!r:.80}",
                needed=one_of(linear, options.query)
                if linear
                else "be declared in the policy, which has none",
            )
        given = linear[options.query].column
    if given is None and len(known) == 1:
        given = known[0]
    if given is None and kind.all_labels:
        labels = [c.column for c in declaration.protected if isinstance(c, Category)]
        given = tuple(name for name in labels if name in known) or known
    if given is None:
        raise InvalidQuery(
            "column",
            given="is missing",
            needed=f"{one_of(known)}: the session is about several columns",
        )
    named = (given,) if isinstance(given, str) else given
    for column in named:
        if column not in known:
            raise InvalidQuery(
                column,
                given="is not a column that the prior is about",
                needed=f"{one_of(known, column)}: what another column tells is in no prior here",
            )
    if len(named) > 1 and not kind.several:
        can = [name for name in KINDS if query_class(name).several]
        raise InvalidQuery(
            "column",
            given=f"lists {', '.join(named)}",
            needed=f"be one column for {options.kind}; {', '.join(can)} count several",
        )
    order = [column.column for column in declaration.protected]
    return tuple(sorted(named, key=order.index))


def refuse_unserved(query: Query, priors: Mapping[str, Prior], over: Mapping[str, str]) -> None:
    """Refuse a kind of query that some prior cannot serve, by name, with what to ask instead.

    Rows that are columns of independent draws (``over = "row"``), or people with one row each
    (``"entities"``), have no order that a prior speaks of: nothing follows anything. An unbounded
    Gaussian process moves every entry if one is moved, most by very little: a release that tells
    any two numbers apart alike, however near they are, has no finite price under it.
    """
    for name, prior in priors.items():
        reading = over[name]
        parts = prior.parts.values() if isinstance(prior, Product) else (prior,)
        if query.needs_order and reading in UNORDERED and not isinstance(prior, Product):
            raise InvalidQuery(
                "kind",
                given=f"is {query.kind}, which is about rows that follow one another",
                needed=f"be another: {name} is over {UNORDERED[reading]}, and has no order. Ask for"
                " histogram or counts",
                reason="no-order",
            )
        unbounded = (p for p in parts if isinstance(p, Gaussian) and p.size is None)
        others = ", ".join(kind for kind in KINDS if query_class(kind).by_distance)
        if not query.by_distance and (process := next(unbounded, None)) is not None:
            raise InvalidQuery(
                "kind",
                given=f"is {query.kind}, which may tell any two numbers apart, however near",
                needed=f"be another: {name} is an unbounded {process.kind}, under which that has no"
                f" finite price. Ask for {others}",
                reason="no-finite-price",
            )
