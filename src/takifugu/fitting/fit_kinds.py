"""What a fit returns, and what all kinds of fits share.

A kind of prior is one function, its *fitter*, which is given the table, the columns, the rows to
fit on and the options, and returns an `Estimate`. `fit_prior` does what all of them share: it keeps
rows apart, refuses options that a kind does not have, records in the prior which rows it was fitted
on, and says what it rests on. A new kind is one module beside this one, and one entry in
`fit_options.KINDS`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from takifugu._core.numeric import Integers
from takifugu.declarations.columns import FROM_THE_FITTED_ROWS, Amount, Category
from takifugu.declarations.declaration import Declaration
from takifugu.declarations.table_errors import InvalidQuery
from takifugu.fitting.fit_options import KINDS, ByEntity, FirstDays, FitKind, FitOptions, Split
from takifugu.priors import FittedRows, MarkovChain, Name, Prior
from takifugu.priors.adversaries import given_earlier_rows
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.networks import BayesianNetwork
from takifugu.priors.prior import state_text
from takifugu.tables import relations as rel
from takifugu.tables.engine import Engine
from takifugu.tables.label_lookup import refuse_many_labels
from takifugu.tables.relations import Relation
from takifugu.tables.run_counting import count_leavers
from takifugu.tables.scope import EVERYTHING, Scope, Share, fitted_rows
from takifugu.visible import visible

if TYPE_CHECKING:
    from takifugu.advice.prior_advice import FitEvidence, PriorAdvice
    from takifugu.drafting.declared_table import Table
    from takifugu.fitting.goodness import GoodnessOfFit
    from takifugu.translation.protocol import LossTranslation

AT_LEAST = 1  # entities, unless more are asked for


@dataclass(frozen=True)
class FoundLabels:
    """The labels of a column on the rows that a prior is fitted on.

    Attributes:
        column: The column.
        labels: The labels, sorted, without ``other``.
        left_out: How many labels too few entities had.
        at_least: How many entities a label needed.
        other: What everything else counts as.
    """

    column: str
    labels: tuple[Name, ...]
    left_out: int
    at_least: int
    other: Name

    @property
    def statement(self) -> str:
        """What readers of the policy should know about the list."""
        each = ", also those of one entity alone"
        if self.at_least > 1:
            each = f", each of at least {self.at_least} entities"
        rest = ""
        if self.left_out:
            labels = "label" if self.left_out == 1 else "labels"
            rest = f" {self.left_out:,} {labels} of fewer entities left out."
        return (
            f"The {len(self.labels):,} labels of {self.column!r} were found on the same"
            f" rows{each}, and are published; everything else counts as {self.other!r}.{rest}"
        )

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "column": self.column,
            "labels": len(self.labels),
            "left_out": self.left_out,
            "at_least": self.at_least,
            "other": self.other,
        }


def find_labels(
    engine: Engine,
    columns: Sequence[str],
    scope: Scope,
    at_least: int | None,
    *,
    every_pair: bool = False,
    otherwise: int = AT_LEAST,
) -> tuple[FoundLabels, ...]:
    """The labels of those ``columns`` that have none yet, on the rows of ``scope``.

    The list is published with the prior. A label that one person alone has had then says that
    somebody among the fitted rows had it: with ``at_least``, labels of fewer entities count as
    ``other``. One aggregate finds the list where the rows are; the labels that are not kept do not
    leave the database.

    ``every_pair``: whether which of any two labels a cell holds is to be kept secret.
    ``otherwise``: how many entities a label needs if ``at_least`` is None.
    """
    wanted = [column for column in columns if column in engine.declaration.unfitted]
    if at_least is not None:
        if isinstance(at_least, bool) or not isinstance(at_least, int) or at_least < 1:
            raise InvalidQuery(
                "at least", given=f"is {at_least!r:.40}", needed="be a whole number, ≥ 1"
            )
        if not wanted:
            raise InvalidQuery(
                "at least",
                given="is given, and the labels are declared",
                needed=f'be left out, or declare values = "{FROM_THE_FITTED_ROWS}"',
                reason="superfluous",
            )
    least = otherwise if at_least is None else at_least
    found = tuple(_found(engine, column, scope, least) for column in wanted)
    for each in found:
        refuse_many_labels(each.column, len(each.labels) + 1, every_pair=every_pair, found=True)
    return found


def _found(engine: Engine, column: str, scope: Scope, at_least: int) -> FoundLabels:
    entity = engine.declaration.entity
    rows = engine.collect(lambda rows: kept_labels(rows, column, entity, at_least), scope)
    other = engine.declaration.category(column).other
    left_out = sum(int(many) for label, many in rows if label is None)
    labels = tuple(sorted(label for label, _ in rows if label is not None and label != other))
    if not labels:
        raise InvalidQuery(
            "at least" if left_out else "split",
            given=f"leaves no label of {column!r}",
            needed="be fewer entities" if left_out else "fit on rows that have some",
            reason="no-labels",
        )
    return FoundLabels(column, labels, left_out, at_least, other)


def kept_labels(rows: Relation, column: str, entity: str, at_least: int) -> Relation:
    """Rows of: a label that enough entities have, or NULL for all others; how many labels it is."""
    owned = rows.filter(rows[column].notnull())
    owned = owned.select(label=owned[column], who=owned[entity]).distinct()
    each = owned.group_by("label").aggregate(entities=owned.who.count())
    enough = each.entities >= at_least
    labels = each.select(label=rel.ifelse(enough, each.label, rel.null(each.label.type)))
    return labels.group_by("label").aggregate(many=labels.count()).select("label", "many")


@dataclass(frozen=True)
class Estimate:
    """What a fitter found.

    Attributes:
        prior: The prior. Which rows it was fitted on is recorded by `fit_prior`.
        counted: How many things it rests on.
        unit: What they are: "steps", "rows", "products".
        rests: What it rests on, in sentences, for the statement of the policy.
        notes: What else the owner should see once: states hardly seen, what does not fit.
        facts: The same for programs, as JSON.
        over: What the entries of the prior are, where that is not plain from its kind.
        goodness: Tests whether it describes the rows; None for the tests of its kind.
        stated: What a policy says of ``over`` beside: the columns that group people.
        counts: ``[x, y]``: the steps that a chain was fitted to; None for other kinds.
        tau: What their zeros were smoothed to; None if they were not.
        rare: The states that were left fewer than ten times, and how often, the rarest first.
        rare_note: The one of ``notes`` that says so; empty if there is none.
        few: The states that were left by fewer than five people (at least one), and by how many,
            the fewest first; None if that was not counted.
    """

    prior: Prior
    counted: int
    unit: str
    rests: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    over: str | None = None
    goodness: "Callable[[], GoodnessOfFit] | None" = field(default=None, repr=False, compare=False)
    stated: Mapping[str, str] = field(default_factory=dict)
    counts: Integers | None = field(default=None, repr=False, compare=False)
    tau: float | None = None
    rare: tuple[tuple[str, int], ...] = ()
    rare_note: str = ""
    few: tuple[tuple[str, int], ...] | None = None


@dataclass(frozen=True)
class FitSize:
    """How large a table is, and the part of it that a prior was fitted on. All of it is public.

    Attributes:
        people: How many entities the prior was fitted on.
        rows: How many rows these have there.
        longest: The most rows that an entity has in the whole table.
    """

    people: int
    rows: int
    longest: int


Fitter = Callable[[Engine, tuple[str, ...], Scope, FitOptions], Estimate]

BY_STEP = ("markov", "interval")  # kinds whose counts are of steps from one row to the next
RARE = 10  # times that a state is left, below which its row of a table is little more than noise
MAX_LISTED_STATES = 5  # in a sentence


@dataclass(frozen=True)
class Fitted:
    """A prior fitted to a table, and what that does to the guarantee.

    Attributes:
        prior: The prior. It knows which rows it was fitted on, and so does what is made of it.
        estimate: What the fitter found.
        rows: The rows that it was fitted on, as a published policy names them.
        train: The same, as an engine takes them.
        test: The rows that were kept apart, for releases; None if there was no split.
        split: How they were kept apart.
        remaining: How many rows were kept apart, which is public; None if that was not counted.
        goodness: Whether it describes the rows that it was fitted on; None if not tested.
        size: How large the table is; None if that was not counted.
        labels: The labels that were found on the same rows, of each column that declares none.
    """

    prior: Prior
    estimate: Estimate
    rows: FittedRows
    train: Scope
    test: Scope | None
    split: Split
    remaining: int | None = None
    goodness: "GoodnessOfFit | None" = None
    size: FitSize | None = None
    labels: tuple[FoundLabels, ...] = ()

    @property
    def statement(self) -> str:
        """What readers of the policy should know about the fit."""
        return " ".join((self.rows.statement, *self.estimate.rests))

    @property
    def evidence(self) -> "FitEvidence":
        """What it rests on: how much, of how many people, and which states on hardly anything."""
        from takifugu.advice.prior_advice import FitEvidence

        chain, counts, size = self.estimate.prior, self.estimate.counts, self.size
        never = tuple[str, ...]()
        if isinstance(chain, MarkovChain) and chain.homogeneous and counts is not None:
            stays = np.diag(counts)
            away = counts.sum(axis=1) - stays
            never = tuple(
                state_text(chain.states[k]) for k in np.flatnonzero((away == 0) & (stays > 0))
            )
        return FitEvidence(
            self.estimate.counted,
            self.estimate.unit,
            None if size is None else size.people,
            None if size is None else size.rows,
            self.estimate.rare,
            never,
            self.estimate.few,
            max((each.at_least for each in self.labels), default=None),
        )

    def advice(
        self,
        epsilon: float = 1.0,
        *,
        translation: "LossTranslation | None" = None,
        progress: Callable[[str], None] | None = None,
    ) -> "PriorAdvice":
        """What it rests on, what ``epsilon`` allows under it, and what would allow more.

        Changed chains are those that a fit on changed labels would give, by the counts of this one.
        ``translation`` is that of the prior with the secrets to keep; by default every pair of
        values is one. It takes some seconds for priors of many states.
        """
        from takifugu.advice.prior_advice import advise
        from takifugu.priors.fitting import ChainSteps

        estimate = self.estimate
        steps, chain = None, estimate.prior
        if isinstance(chain, MarkovChain) and chain.homogeneous and estimate.counts is not None:
            steps = ChainSteps.of(chain, estimate.counts, estimate.tau)
        return advise(
            self.prior if translation is None else translation,
            epsilon,
            steps=steps,
            evidence=self.evidence,
            lengths=() if self.size is None else (self.size.longest,),  # a shorter one does not fit
            progress=progress,
        )


def fit_prior(
    engine: Engine,
    columns: Sequence[str],
    options: FitOptions,
    *,
    tested: bool = False,
    sized: bool = False,
    every_pair: bool = False,
    at_least: int | None = None,
) -> Fitted:
    """The prior that ``options`` describe, and how it was fitted.

    ``columns`` is what it is about if the options name none; empty for the default of the kind.
    With ``tested`` its goodness of fit is counted too, which reads the fitted rows again; with
    ``sized`` how many people and rows there are. Fewer labels can be handled where ``every_pair``
    of them is to be a secret pair. ``at_least`` is the rule for labels that are found on the
    fitted rows, if the options have none.
    """
    kind = KINDS[str(options.kind)]
    chosen = options.columns or tuple(columns) or _default(kind, engine.declaration)
    _refuse_columns(chosen, engine.declaration)
    train, test = parts(engine, options.split, EVERYTHING)
    remaining = None if test is None else engine.count(test)
    if remaining == 0:
        raise InvalidQuery(
            "split",
            given="leaves no rows to release from",
            needed="fit on fewer rows: on fewer first days than the table spans, or on a smaller"
            " share of the entities",
        )
    found_labels = find_labels(
        engine,
        chosen,
        train,
        options.at_least,
        every_pair=every_pair,
        otherwise=AT_LEAST if at_least is None else at_least,
    )
    engine = engine.with_labels({each.column: each.labels for each in found_labels})
    for column in engine.declaration.protected:
        if column.column in chosen and isinstance(column, Category):
            refuse_many_labels(column.column, len(column.keys), every_pair=every_pair)
    fitter: Fitter = getattr(import_module(kind.module), kind.fitter)
    estimate = fitter(engine, chosen, train, options)
    if found_labels:
        facts = {"found_labels": [each.document() for each in found_labels]}
        estimate = replace(
            estimate,
            rests=(*estimate.rests, *(each.statement for each in found_labels)),
            facts=dict(estimate.facts) | facts,
        )
    estimate = replace(estimate, notes=(*estimate.notes, *_gap_notes(engine, chosen)))
    if sized and estimate.counts is not None and options.kind in BY_STEP:
        estimate = _with_few(estimate, count_leavers(engine, chosen, train, cuts=options.cuts))
    rows = rows_of(engine, train, options.split)
    prior = replace(estimate.prior, fitted_on=(rows,))
    if rows.before is not None and estimate.over != "row":
        prior = given_earlier_rows(prior)
    goodness = None
    if tested:
        goodness = _goodness(engine, chosen, train, options, estimate)
    size = _size(engine, train) if sized else None
    return Fitted(
        *(prior, estimate, rows, train, test, options.split, remaining, goodness, size),
        labels=found_labels,
    )


def fit_table(table: "Table | Engine", column: str, options: FitOptions) -> Prior:
    """The prior of a column of a declared table, which is opened for it, or of an open one."""
    with nullcontext(table) if isinstance(table, Engine) else table.open() as engine:
        return fit_prior(engine, (column,), options).prior


def _gap_notes(engine: Engine, columns: tuple[str, ...]) -> tuple[str, ...]:
    """That a fit leaves cells out, of which the prior then says nothing."""
    return tuple(
        f"rows without one of the values of {column.column} were skipped, and the prior has no"
        " state for them: which rows these are is not protected from releases"
        + (" (outside = 'other' makes a value of them)" if isinstance(column, Category) else "")
        for column in engine.declaration.protected
        if column.column in columns
        and "drop" in (getattr(column, "outside", None), getattr(column, "missing", None))
    )


def _size(engine: Engine, train: Scope) -> FitSize:
    fitted, whole = engine.lengths(train), engine.lengths()
    rows = int((fitted.lengths * fitted.entities).sum())
    return FitSize(int(fitted.entities.sum()), rows, whole.longest)


def _default(kind: FitKind, declaration: Declaration) -> tuple[str, ...]:
    family = Amount if kind.columns == "numbers" else Category
    names = tuple(
        column.column
        for column in declaration.protected
        if kind.columns == "the one" or isinstance(column, family)
    )
    if kind.columns == "the one" and len(names) > 1:
        raise InvalidQuery(
            "columns",
            given="are not named",
            needed=f"name what the prior is about, of the protected columns {', '.join(names)}",
        )
    return names


def _refuse_columns(columns: tuple[str, ...], declaration: Declaration) -> None:
    protected = [column.column for column in declaration.protected]
    strange = [column for column in columns if column not in protected]
    if strange or not columns or len(set(columns)) < len(columns):
        given = f"name {strange[0]!r:.60}" if strange else "repeat a column"
        raise InvalidQuery(
            "columns",
            given=given if columns else "are none",
            needed=f"name protected columns, each once, of {', '.join(protected)}",
        )


# --- the rows to fit on ---


def parts(engine: Engine, split: Split, scope: Scope) -> tuple[Scope, Scope | None]:
    """The rows to fit on, and those that are kept apart."""
    match split:
        case None:
            return scope, None
        case FirstDays() if engine.declaration.order.absent:
            raise InvalidQuery(
                "first days",
                given="are of a table without an order, one row for each entity",
                needed="be a share of the entities instead: share = '1/5' (--share 1/5)",
                reason="no order",
            )
        case FirstDays(days):
            cut = _days_after(engine.span(scope)[0], days)
            return replace(scope, end=cut), replace(scope, start=cut)
        case ByEntity(share, salt):
            if scope.entities is not None:
                raise InvalidQuery(
                    "scope, entities", given="is given", needed="be left out of a split by entity"
                )
            train, test = Share(salt, Fraction(0), share), Share(salt, share, Fraction(1))
            return replace(scope, entities=train), replace(scope, entities=test)


def rows_of(engine: Engine, train: Scope, split: Split) -> FittedRows:
    """The rows of ``train`` as a published policy names them."""
    rows = fitted_rows(engine.declaration, train)
    return replace(rows, days=split.days) if isinstance(split, FirstDays) else rows


def _days_after(first: datetime | float, days: int) -> datetime | float:
    if not isinstance(first, datetime):
        return first + days
    try:
        return datetime.combine(first.date(), time()) + timedelta(days=days)
    except OverflowError:
        raise InvalidQuery(
            "days", given=f"is {days}", needed="end before the last day of the calendar"
        ) from None


# --- what it rests on, and whether it fits ---


def _goodness(
    engine: Engine,
    columns: tuple[str, ...],
    train: Scope,
    options: FitOptions,
    estimate: Estimate,
) -> "GoodnessOfFit":
    """Whether what was fitted describes the rows that it was fitted on.

    Of chains by hour of the day the order is not tested: hours that differ look like an order.
    """
    from takifugu.fitting.goodness import GoodnessOfFit, goodness, stationarity
    from takifugu.fitting.network_fitting import network_goodness

    if estimate.goodness is not None:
        return estimate.goodness()
    if isinstance(estimate.prior, BayesianNetwork):
        return network_goodness(engine, estimate.prior, train)
    if options.by_hour:
        return GoodnessOfFit((stationarity(engine, columns, train, options.cuts),))
    chain = estimate.prior
    order = chain.order if isinstance(chain, HigherOrderChain) else 1
    return goodness(engine, columns, train, order=order, cuts=options.cuts)


def steps_estimate(
    prior: Prior, states: Sequence[Any], counts: Integers, tau: float | None = None
) -> Estimate:
    """A prior over a sequence, and the steps that it rests on: ``[…, state, next state]``.

    ``tau`` is what their zeros were smoothed to.
    """
    total = int(counts.sum())
    if not total:
        raise InvalidQuery(
            "rows",
            given="to fit on have no row that follows another one of the same entity",
            needed="hold sequences: fit on more days, on a larger share, or check the entity. If"
            " every entity has one row, its columns may depend on each other: fit a network of"
            " them (--kind network)",
            reason="no-steps",
        )
    left = counts.sum(axis=(*range(counts.ndim - 2), counts.ndim - 1))  # [state]
    before = counts.ndim - 1
    rests = [f"It rests on {total:,} {'steps' if before == 1 else f'runs of {before + 1} rows'}."]
    rare = _rare(states, left)
    rare_note = f"hardly seen: {rare}" if rare else ""
    notes = [rare_note] if rare else []
    rows = counts.reshape(-1, counts.shape[-1]).sum(axis=1)
    if before > 1:
        unseen = int((rows == 0).sum())
        if unseen:
            notes.append(
                f"{unseen:,} of {len(rows):,} windows were never followed by a row; after them all"
                " states are taken to be equally likely"
            )
    facts = {
        "exits": {state_text(state): int(count) for state, count in zip(states, left, strict=True)}
    }
    return Estimate(
        *(prior, total, "steps", tuple(rests), tuple(notes), facts),
        rare=tuple((state_text(states[i]), int(left[i])) for i in _rarest(left)),
        rare_note=rare_note,
        counts=counts if before == 1 else None,
        tau=tau,
    )


def _with_few(estimate: Estimate, people: Integers) -> Estimate:
    """The same, with the states that few people have left: ``people`` counts them for each."""
    from takifugu.advice.prior_advice import FEW_PEOPLE

    states = getattr(estimate.prior, "states", ())
    low = [int(k) for k in np.argsort(people, kind="stable") if 0 < people[k] < FEW_PEOPLE]
    few = tuple((state_text(states[k]), int(people[k])) for k in low)
    return replace(estimate, few=few, facts=dict(estimate.facts) | {"few_people": dict(few)})


def _rare(states: Sequence[Any], left: Integers) -> str:
    """The states that were left hardly ever, the rarest first."""
    order = _rarest(left)
    named = [f"{name_of(states[i])} ({int(left[i])})" for i in order[:MAX_LISTED_STATES]]
    if len(order) > MAX_LISTED_STATES:
        named.append(f"and {len(order) - MAX_LISTED_STATES} more states")
    times = f"left fewer than {RARE} times in the rows that were counted"
    return f"{', '.join(named)}, {times}" if named else ""


def _rarest(left: Integers) -> list[int]:
    return [int(i) for i in np.argsort(left, kind="stable") if left[i] < RARE]


def name_of(state: Any) -> str:
    """A state as a sentence quotes it, on one line."""
    return visible(repr(state_text(state)))


def single_column(columns: tuple[str, ...], kind: str) -> str:
    """The one column; an error if there are several."""
    if len(columns) != 1:
        raise InvalidQuery(
            "columns",
            given=f"are {', '.join(columns)}",
            needed=f"be one for a prior of kind {kind}; joint states have kind markov",
        )
    return columns[0]


def refuse_uncut(engine: Engine, column: str) -> None:
    """Raise if a chain over a column of numbers is asked for and no ranges are given."""
    declared = next((c for c in engine.declaration.protected if c.column == column), None)
    if isinstance(declared, Amount):
        low, high = (f"{float(bound):g}" for bound in (declared.low, declared.high))
        raise InvalidQuery(
            "cuts",
            given=f"are missing, and {column} is a column of numbers",
            needed=f"be given, from {low} to {high}, for a chain over ranges of it; or take kind"
            " gaussian",
            reason="numbers",
        )
