"""The kinds of priors that can be fitted to a declared table, and what a fit returns.

A kind is one function, its *fitter*, which is given the table, the columns, the rows to fit on and
the options, and returns an `Estimate`. `fit_prior` does what all of them share: it keeps rows
apart, refuses options that a kind does not have, records in the prior which rows it was fitted on,
and says what it rests on. A new kind is one module beside this one, and one entry in ``KINDS``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from takifugu._core.numeric import Integers
from takifugu.declarations.columns import Amount, Category
from takifugu.declarations.declaration import Declaration
from takifugu.declarations.table_errors import InvalidQuery
from takifugu.errors import one_of
from takifugu.fitting.fitted_part import ByEntity, FirstDays, Split, parts, rows_of
from takifugu.fitting.label_finding import AT_LEAST, FoundLabels, find_labels
from takifugu.priors import FittedRows, Name, Prior
from takifugu.priors.adversaries import given_earlier_rows
from takifugu.tables.engine import Engine
from takifugu.tables.label_lookup import refuse_many_labels
from takifugu.tables.run_counting import count_leavers
from takifugu.tables.scope import EVERYTHING, Scope

if TYPE_CHECKING:
    from takifugu.advice.prior_advice import FitEvidence, PriorAdvice
    from takifugu.fitting.goodness import GoodnessOfFit
    from takifugu.translation.protocol import LossTranslation


@dataclass(frozen=True)
class FitOptions:
    """What to fit, and on which rows: the first days, a share of the entities, or all.

    Attributes:
        first_days: Fit on so many days and release from those after them; where the order is a
            number, on the rows within so many of its smallest one.
        share: Fit on such a share of the entities and release from the others.
        other: The state for what was never seen; it must be a label of the column.
        tau: What zeros are smoothed to, by default as in the paper; 0 leaves them.
        length: How many entries the chain has; None for an unbounded chain.
        confidence: Instead of one chain, all that the counts do not rule out at this confidence.
        kind: What to fit, of ``KINDS``; None for a Markov chain, or with ``confidence`` for all
            that the counts do not rule out.
        columns: The columns that the prior is about; none for those that the kind is about by
            default.
        order: How many entries before it an entry depends on.
        cuts: Where the ranges of a column of numbers begin, in order, and its upper bound.
        by_hour: Whether to fit a matrix for each hour of the day.
        structure: The parents of each column of a network; None to find a tree.
        smoothing: What is added to every count of a network.
        kernel: The family of kernels of a Gaussian process, of `kernel_fitting.FAMILIES`.
        lags: How many lags it is fitted to.
        margin: By how many standard errors its parameter is raised.
        profile: A public column: each of its keys has a mean of its own.
        own_levels: Whether each entity has a mean of its own too, known to the adversary.
        household: For households, the public column that groups entities.
        member: The public column that says who is which member; None if all count alike.
        at_least: Where labels are found on the fitted rows: how many entities a label needs, so
            that fewer count as ``other``; None for 1, or in a project for what the prior that is
            replaced needed.
    """

    first_days: int | None = None
    share: Fraction | None = None
    other: Name | None = None
    tau: float | None = None
    length: int | None = None
    confidence: float | None = None
    kind: str | None = None
    columns: tuple[str, ...] = ()
    order: int | None = None
    cuts: tuple[Fraction, ...] | None = None
    by_hour: bool = False
    structure: Mapping[str, Sequence[str]] | None = None
    smoothing: float | None = None
    kernel: str | None = None
    lags: int | None = None
    margin: float | None = None
    profile: str | None = None
    own_levels: bool = False
    household: str | None = None
    member: str | None = None
    at_least: int | None = None

    def __post_init__(self) -> None:
        if self.first_days is not None and self.share is not None:
            raise InvalidQuery(
                "first days", given="come with a share", needed="be given alone: one split only"
            )
        if self.confidence is not None and (self.tau is not None or self.other is not None):
            raise InvalidQuery(
                "confidence", given="comes with tau or other", needed="be given alone"
            )
        if self.kind is None:
            object.__setattr__(self, "kind", "markov" if self.confidence is None else "interval")
        if self.kind is None or self.kind not in KINDS:
            raise InvalidQuery("kind", given=f"is {self.kind!r:.60}", needed=one_of(KINDS))
        kind = KINDS[self.kind]
        for option in fields(self):
            given = getattr(self, option.name) != option.default
            if given and option.name not in (*COMMON, *kind.options):
                raise InvalidQuery(
                    option.name.replace("_", " "),
                    given=f"is given for a prior of kind {self.kind}",
                    needed=f"be left out: that kind has {', '.join(kind.options)}",
                    reason="not-of-this-kind",
                )

    @property
    def split(self) -> Split:
        """Which rows to fit on."""
        if self.first_days is not None:
            return FirstDays(self.first_days)
        return None if self.share is None else ByEntity(self.share)


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
        goodness: Tests whether it describes the rows; None for the tests of its kind, by
            `fit_goodness`.
        stated: What a policy says of ``over`` beside: the columns that group people.
        counts: ``[x, y]``: the steps that a chain was fitted to; None for other kinds.
        tau: What their zeros were smoothed to; None if they were not.
        rare: The states that were left fewer than ten times, and how often, the rarest first.
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

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths that a prior may have: one that is shorter than a sequence does not fit."""
        return (self.longest,)


Fitter = Callable[[Engine, tuple[str, ...], Scope, FitOptions], Estimate]
Default = Literal["the one", "labels", "numbers"]

BY_STEP = ("markov", "interval")  # kinds whose counts are of steps from one row to the next
COMMON = ("first_days", "share", "kind", "columns", "at_least")


@dataclass(frozen=True)
class FitKind:
    """One kind of prior that can be fitted.

    Attributes:
        module: Where its fitter is; imported when it is needed.
        fitter: The name of a function that is a `Fitter`.
        about: What is fitted, in a few words.
        options: The fields of `FitOptions` that it has, beside those of all kinds.
        columns: What it is about by default: the one column that a dataset is about, or all
            protected columns of labels or of numbers.
    """

    module: str
    fitter: str
    about: str
    options: tuple[str, ...] = ()
    columns: Default = "the one"


KINDS: Mapping[str, FitKind] = {
    "markov": FitKind(
        "takifugu.fitting.chain_fitting",
        "fit_markov_chain",
        "a Markov chain; of several columns on their joint states",
        ("other", "tau", "length", "cuts", "by_hour"),
    ),
    "interval": FitKind(
        "takifugu.fitting.chain_fitting",
        "fit_interval_chain",
        "all Markov chains that the counts do not rule out",
        ("confidence", "length", "cuts"),
    ),
    "higher-order": FitKind(
        "takifugu.fitting.chain_fitting",
        "fit_higher_order",
        "a chain in which an entry depends on several before it",
        ("order", "tau", "length", "cuts"),
    ),
    "network": FitKind(
        "takifugu.fitting.network_fitting",
        "fit_network",
        "a Bayesian network over the columns of a row",
        ("structure", "smoothing"),
        "labels",
    ),
    "household": FitKind(
        "takifugu.fitting.household_fitting",
        "fit_household",
        "a Markov chain on the joint states of the people of a household",
        ("household", "member", "tau", "length"),
    ),
    "gaussian": FitKind(
        "takifugu.fitting.moment_fitting",
        "fit_gaussian_process",
        "a Gaussian process, by its moments",
        ("kernel", "lags", "margin", "profile", "own_levels", "length"),
    ),
}


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
        """What it rests on."""
        from takifugu.fitting.fit_advice import evidence_of

        return evidence_of(self)

    def advice(
        self,
        epsilon: float = 1.0,
        *,
        translation: "LossTranslation | None" = None,
        progress: Callable[[str], None] | None = None,
    ) -> "PriorAdvice":
        """What it rests on, what ``epsilon`` allows under it, and what would allow more.

        ``translation`` is that of the prior with the secrets to keep; by default every pair of
        values is one. It takes some seconds for priors of many states.
        """
        from takifugu.fitting.fit_advice import advice_of

        return advice_of(self, epsilon, translation=translation, progress=progress)


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
    found = find_labels(
        engine,
        chosen,
        train,
        options.at_least,
        every_pair=every_pair,
        otherwise=AT_LEAST if at_least is None else at_least,
    )
    engine = engine.with_labels({each.column: each.labels for each in found})
    for column in engine.declaration.protected:
        if column.column in chosen and isinstance(column, Category):
            refuse_many_labels(column.column, len(column.keys), every_pair=every_pair)
    fitter: Fitter = getattr(import_module(kind.module), kind.fitter)
    estimate = fitter(engine, chosen, train, options)
    if found:
        facts = {"found_labels": [each.document() for each in found]}
        estimate = replace(
            estimate,
            rests=(*estimate.rests, *(each.statement for each in found)),
            facts=dict(estimate.facts) | facts,
        )
    estimate = replace(estimate, notes=(*estimate.notes, *_gap_notes(engine, chosen)))
    if sized and estimate.counts is not None and options.kind in BY_STEP:
        from takifugu.fitting.fit_report import with_few

        estimate = with_few(estimate, count_leavers(engine, chosen, train, cuts=options.cuts))
    rows = rows_of(engine, train, options.split)
    prior = replace(estimate.prior, fitted_on=(rows,))
    if rows.before is not None and estimate.over != "row":
        prior = given_earlier_rows(prior)
    goodness = None
    if tested:
        from takifugu.fitting.fit_goodness import goodness_of

        goodness = goodness_of(engine, chosen, train, options, estimate)
    size = _size(engine, train) if sized else None
    return Fitted(
        *(prior, estimate, rows, train, test, options.split, remaining, goodness, size),
        labels=found,
    )


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
    known = [column.column for column in declaration.protected]
    for column in columns:
        if column not in known:
            raise InvalidQuery(
                "columns",
                given=f"name {column!r:.60}",
                needed=f"name protected columns, each once, of {', '.join(known)}",
            )
    if not columns or len(set(columns)) < len(columns):
        raise InvalidQuery(
            "columns",
            given="repeat a column" if columns else "are none",
            needed=f"name protected columns, each once, of {', '.join(known)}",
        )
