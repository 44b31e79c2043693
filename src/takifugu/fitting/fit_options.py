"""What can be fitted, and on which rows: every option of a fit, declared once.

The flags of ``takifugu prior fit``, the body of the server's ``prior-fits`` and the document that
both of them give to `FitRequest` derive from the fields below. A new option is one field, and its
name among the ``options`` of each kind that has it.

Nothing heavy is imported, so that ``takifugu prior --help`` answers at once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from takifugu._core.exact import exactly, shown
from takifugu.declarations.table_errors import InvalidQuery
from takifugu.errors import InvalidPrior, Malformed, UnsoundRequest, one_of

if TYPE_CHECKING:
    from takifugu.priors import Name

Form = Literal["text", "label", "whole", "number", "flag", "names", "share", "cuts", "parents"]
Default = Literal["the one", "labels", "numbers"]

SPLITS = ("first_days", "first_steps", "share", "all_rows")
MAX_SHARE_DENOMINATOR = 10**6


def option(form: Form, words: str, *, default: Any = None, example: Any = None) -> Any:
    """A field that people can give: what its value looks like, and what it means."""
    return field(default=default, metadata={"form": form, "help": words, "example": example})


# --- which rows ---


@dataclass(frozen=True)
class FirstDays:
    """Fit on the first days, protect the rest: the paper fits on 400 of 500 days.

    Days are days of the calendar in the declared zone, and the first is that of the first row.
    Where the order is a plain number, a day is one unit from the first number on.
    """

    days: int

    def __post_init__(self) -> None:
        if isinstance(self.days, bool) or not isinstance(self.days, int) or self.days < 1:
            raise InvalidQuery("days", given=f"is {self.days!r}", needed="be a whole number, ≥ 1")


@dataclass(frozen=True)
class ByEntity:
    """Fit on a share of the entities, protect the others; who is in it depends on a hash alone.

    Attributes:
        share: How large a share of the entities to fit on, about.
        salt: Any public text; another salt deals the entities out anew.
    """

    share: Fraction
    salt: str = "takifugu"

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidQuery(
                "share", given=f"is {shown(self.share)}", needed="be between 0 and 1"
            )


Split = FirstDays | ByEntity | None  # None fits on all rows, and none is left


def share_of_entities(given: Fraction | float | str | None) -> Fraction | None:
    """A share by its digits, 0.2 is a fifth; None for no split."""
    return None if given is None else parse_share(str(given), "share")


def parse_share(text: str, name: str, error: type[Malformed] = InvalidQuery) -> Fraction:
    """A share of the entities, as 1/5, that a policy can state."""
    try:
        share = exactly(text, name)
    except UnsoundRequest:
        share = Fraction(0)
    if not 0 < share < 1 or share.denominator > MAX_SHARE_DENOMINATOR:
        raise error(
            name,
            given=f"is {text!r:.40}",
            needed="be between 0 and 1, as '1/5' or '0.2'",
            reason="range",
        )
    return share


def refuse_other_unit(
    given: Mapping[str, Any],
    order: tuple[str, str],
    *,
    named: Callable[[str], str] = str,
    error: type[Malformed] = InvalidQuery,
) -> None:
    """Raise if days are counted where the order is a number, or steps where it is a time.

    ``order`` is the column that orders the rows, and its kind.
    """
    column, kind = order
    is_number = kind == "number"
    wrong, right = ("first_days", "first_steps") if is_number else ("first_steps", "first_days")
    if given.get(wrong) is not None:
        word = "number" if is_number else "time"
        raise error(
            named(wrong),
            given=f"is given, and the order, `{column}`, is a {word}",
            needed=f"be {named(right)} {given[wrong]} instead",
            reason=f"order-is-a-{word}",
        )


# --- what to fit ---


@dataclass(frozen=True)
class FitKind:
    """One kind of prior that can be fitted.

    Attributes:
        module: Where its fitter is; imported when it is needed.
        fitter: The name of a function that is a `fit_kinds.Fitter`.
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
    "household": FitKind(
        "takifugu.fitting.household_fitting",
        "fit_household",
        "a Markov chain on the joint states of the people of a household",
        ("household", "member", "tau", "length"),
    ),
    "network": FitKind(
        "takifugu.fitting.network_fitting",
        "fit_network",
        "a Bayesian network over the columns of a row",
        ("structure", "smoothing"),
        "labels",
    ),
    "gaussian": FitKind(
        "takifugu.fitting.moment_fitting",
        "fit_gaussian_process",
        "a Gaussian process, by its moments",
        ("kernel", "lags", "margin", "profile", "own_levels", "length"),
    ),
}
KIND_NAMES = f"{', '.join([*KINDS][:-1])} or {[*KINDS][-1]}"
COMMON = ("first_days", "share", "kind", "columns", "at_least")  # options of every kind


@dataclass(frozen=True)
class FitOptions:
    """What to fit, and on which rows: the first days, a share of the entities, or all.

    The words beside each field say what it means. ``structure`` has the parents of each column,
    and ``cuts`` the ends of the ranges in order.
    """

    kind: str | None = option("text", f"What to fit: {KIND_NAMES}; by default a Markov chain.")
    first_days: int | None = option(
        "whole", "Fit on the first N days; release from later ones only."
    )
    share: Fraction | None = option(
        "share",
        "Fit on a share of the entities, as 1/5; release from the others only.",
        example="1/5",
    )
    columns: tuple[str, ...] = option(
        "names",
        "The columns that the prior is about, as 'place,health': several are the joint states of a"
        " Markov chain, or the nodes of a network, for which all protected columns of labels are"
        " the default.",
        default=(),
    )
    at_least: int | None = option(
        "whole",
        'Where the labels are found on the fitted rows (values = "from the fitted rows"): keep'
        " those of at least N entities; fewer count as other. The list is published. By default"
        " what the prior that is replaced needed, else 1.",
    )
    other: "Name | None" = option("label", "markov: the state for values that do not occur.")
    tau: float | None = option(
        "number",
        "Chains: smooth zeros to this probability; 0 leaves them. For a dataset the default is"
        " 1e-5, as in the paper.",
    )
    length: int | None = option("whole", "The number of entries; by default unbounded.")
    confidence: float | None = option(
        "number",
        "interval: all chains within the confidence intervals at this level; by default 0.95.",
    )
    order: int | None = option(
        "whole", "higher-order: how many entries before it an entry depends on, by default 2."
    )
    cuts: tuple[Fraction, ...] | None = option(
        "cuts",
        "Chains over ranges of a column of numbers: where they begin, and the upper bound, as"
        " '0,0.5,1,2'.",
        example=["0", "0.5", "1", "2"],
    )
    by_hour: bool = option(
        "flag",
        "markov: a matrix for each hour of the day, where rows are one an hour.",
        default=False,
    )
    structure: Mapping[str, Sequence[str]] | None = option(
        "parents", "network: the parents of each column; by default a Chow-Liu tree."
    )
    smoothing: float | None = option(
        "number", "network: what is added to every count; by default 1."
    )
    kernel: str | None = option(
        "text",
        "gaussian: ar1, matern-1/2, matern-3/2, matern-5/2 or squared-exponential; by default the"
        " one that fits best.",
    )
    lags: int | None = option("whole", "gaussian: how many lags it is fitted to.")
    margin: float | None = option(
        "number", "gaussian: raise the correlation by so many standard errors."
    )
    profile: str | None = option(
        "text", "gaussian: a public column, each of whose keys has a mean of its own."
    )
    own_levels: bool = option("flag", "gaussian: each entity has a mean of its own.", default=False)
    household: str | None = option("text", "household: the public column that groups entities.")
    member: str | None = option(
        "text", "household: the public column that says who is which member."
    )

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
        for declared in fields(self):
            given = getattr(self, declared.name) != declared.default
            if given and declared.name not in (*COMMON, *kind.options):
                raise InvalidQuery(
                    declared.name.replace("_", " "),
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
class FitRequest:
    """A fit as somebody asks for it: what to fit, and what becomes of it.

    Exactly one of ``first_days``, ``first_steps``, ``share`` and ``all_rows`` names the rows.
    """

    fit: FitOptions
    first_steps: int | None = option(
        "whole",
        "The same as first days where the order is a number: fit on the rows within N of the"
        " smallest.",
    )
    all_rows: bool = option(
        "flag", "Fit on all rows, including those to be protected.", default=False
    )
    replace: bool = option(
        "flag",
        "Replace the priors that the dataset has; `start` and `known` are kept, and files of fitted"
        " ones are removed unless there was a budget under them.",
        default=False,
    )
    add: bool = option("flag", "Add to the priors that the dataset has.", default=False)
    publish_rows: str | None = option(
        "text",
        "Where releases were made from the rows that are fitted on: confirm by name, as 'before"
        " 30', that these are given up. It is an event of the ledger.",
        example="before 30",
    )
    goodness: bool = option(
        "flag",
        "Test whether a prior of this kind describes the rows that it was fitted on.",
        default=True,
    )
    advice: bool = option(
        "flag",
        "Compute what the budget (or ε = 1) allows under the prior, and what would allow more: some"
        " seconds for many states.",
        default=True,
    )

    @classmethod
    def from_document(
        cls,
        document: Mapping[str, Any],
        *,
        named: Callable[[str], str] = str,
        error: type[Malformed] = InvalidQuery,
    ) -> "FitRequest":
        """The fit that a document asks for, whose keys are those of ``FIT_OPTIONS``.

        ``named`` is how whoever wrote it calls a key, and ``error`` what they expect to see.
        """
        from takifugu.priors.labels import exact_cuts

        for name in document:
            if name not in FIT_OPTIONS:
                raise error(
                    named(name),
                    given="is unknown",
                    needed="be an option of a fit",
                    reason="unknown",
                )
        given = {name: value for name, value in document.items() if value is not None}
        splits = [name for name in SPLITS if given.get(name, False) is not False]
        if len(splits) != 1:
            ways = ", ".join(map(named, SPLITS))
            raise error(
                named(splits[0] if splits else "first_days"),
                given=f"comes with {', '.join(map(named, splits[1:]))}" if splits else "is missing",
                needed=f"name the rows to fit on, alone: give one of {ways}",
                reason="split",
            )
        if "share" in given:
            given["share"] = parse_share(str(given["share"]), named("share"), error)
        if "columns" in given:
            given["columns"] = tuple(given["columns"])
        if "cuts" in given:
            try:
                given["cuts"] = exact_cuts([str(cut) for cut in given["cuts"]])
            except InvalidPrior as wrong:
                raise error(
                    named("cuts"), given=wrong.given, needed=wrong.needed, reason=wrong.reason
                ) from None
        own = {name: given.pop(name) for name in [*given] if name in _OWN}
        if "first_steps" in own:
            given["first_days"] = own["first_steps"]
        return cls(FitOptions(**given), **own)


def _declared(record: Any) -> "dict[str, Field[Any]]":
    return {each.name: each for each in fields(record) if each.metadata}


_OWN = _declared(FitRequest)
_ALL = _declared(FitOptions) | _OWN
FIT_OPTIONS: "Mapping[str, Field[Any]]" = {name: _ALL[name] for name in ("kind", *SPLITS, *_ALL)}
