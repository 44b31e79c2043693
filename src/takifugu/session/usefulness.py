r"""Whether an answer will be worth having, in words, before it is paid for.

The half width of the 95 % interval is compared with what the answer may be, as far as that is
public (`takifugu.session.usefulness`):

* *mostly noise*: it is at least as wide as the range. Whatever possible number is published, its
  interval then holds every possible answer, and excludes none. Of counts and shares also if it is
  at least five times what is expected: only a label that is several times as common as the others
  would then be told from one that nobody has.
* *rough*: it is at least as large as what is expected: the interval around a count of the usual
  size holds 0. From three times that on, or half of the range, the words say that single numbers
  will mostly be noise.
* *useful*: otherwise.

Of groups of different size the smallest decides, but for those that together hold less than 5 % of
the rows: these are named. What would make the answer useful is computed by whoever plans it: the
least ε, verified by planning with it, and how many times as many rows.

What an answer may be and how large it is likely to be, from what is public alone.

How good an answer is can be said before it is paid for only by facts that everybody may know: how
many rows a group has, how many labels there are, between which bounds numbers are declared. From
them follow, for each kind of query,

* the *range* of the possible answers: a count of n rows is from 0 to n, a share from 0 to 1, a mean
  between the declared bounds, a sum n times as far, the rank of a quantile from 0 to n;
* the *size* that the error should stay below for the answer to say something: for counts and shares
  what each label would have if all had the same, n/L; for numbers, where nothing is known of their
  size, a quarter of the range; for a quantile half of the way to the nearer end;
* the *noise* from which on it is not worth its price unless somebody says so: the range, and for
  counts and shares already five times their size.

No protected value is read here.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import floor, inf, isfinite
from typing import Any, Literal, TypeVar

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.documents.declared import codec_of, parts_from
from takifugu.documents.reading import DocumentPart, decimal
from takifugu.priors import Name
from takifugu.session.query.query import Query
from takifugu.tables import Engine
from takifugu.visible import four_digits, visible

NEGLIGIBLE_SHARE = 0.05  # of the rows: the smallest groups that hold less together do not decide


@dataclass(frozen=True, eq=False)
class AnswerScales:
    """The range and the size of the answers of each group that has rows.

    Attributes:
        one: What one answer is: "a count".
        many: What several are called, where their size is known: "counts"; empty if it is not.
        rows: ``[group]``: how many rows it has.
        low: ``[group]``: the least possible answer.
        high: ``[group]``: the greatest.
        size: ``[group]``: an error below this leaves something to be told.
        noise: ``[group]``: an error from this on is mostly noise; at most the range.
        error: Which number of a predicted error is compared with them: ``interval``, ``ranks`` of
            a quantile or ``gap`` of a ranking.
        per_row: Whether that number is about the smallest group, and is less in larger ones.
        name: The keys of the group with a number, by column.
        guessed: Whether the size is that of labels that are equally common, and the answer is about
            some of them only: others make up for nothing.
    """

    one: str
    many: str
    rows: Integers
    low: Floats
    high: Floats
    size: Floats
    noise: Floats
    error: str
    per_row: bool
    name: Callable[[int], Mapping[str, Name]]
    guessed: bool = False

    @property
    def half_widths(self) -> Floats:
        """``[group]``: the error there if the predicted one is 1."""
        if not self.per_row:
            return np.ones(len(self.rows))
        return np.asarray(self.rows.min() / self.rows)

    @property
    def by_size(self) -> Integers:
        """The groups, first those whose answers stand the least noise."""
        return np.argsort(self.size / self.half_widths, kind="stable")

    @property
    def deciding(self) -> int:
        """The smallest group but for those that together hold a `NEGLIGIBLE_SHARE`."""
        order = self.by_size
        held = np.cumsum(self.rows[order])
        return int(order[np.searchsorted(held, NEGLIGIBLE_SHARE * held[-1])])


def answer_scales(query: Query, engine: Engine) -> AnswerScales:
    """What the answers of a query may be, by group; reads public columns only."""
    sizes = np.ravel(query.public_rows(engine)).astype(np.int64)
    filled = np.flatnonzero(sizes > 0)
    rows = sizes[filled]
    of_kind = query.scales(engine, rows.astype(np.float64), filled)
    axes = query.groups(engine)

    def name(group: int) -> dict[str, Name]:
        at = np.unravel_index(filled[group], [len(keys) for _, keys in axes]) if axes else ()
        return {column: keys[int(place)] for (column, keys), place in zip(axes, at, strict=True)}

    scales: dict[str, Any] = {"many": "", "error": "interval", "per_row": False, **of_kind}
    scales.setdefault("noise", scales["high"] - scales["low"])
    return AnswerScales(rows=rows, name=name, **scales)


MAX_SEARCHED_LOSS = 10_000  # a per-entry loss beyond which none is looked for
FAINT_NOISE = 3  # times its size: an error beside which a number of that size is hardly seen
TWO_DIGITS = Context(prec=2, rounding=ROUND_CEILING)
NOISE = "single numbers will mostly be noise"
Verdict = Literal["useful", "rough", "mostly noise"]


@dataclass(frozen=True)
class Remedy:
    """What would make an answer useful.

    Attributes:
        epsilon: A Pufferfish ε, verified and rounded up; None if none was found.
        admitted: Whether the budget admits it now.
        rows: How many times as many rows in each group would do at the same noise.
    """

    epsilon: Decimal | None
    admitted: bool
    rows: int

    @property
    def words(self) -> str:
        """As the end of a sentence."""
        more = "twice as many rows" if self.rows == 2 else f"{self.rows:,} times as many rows"
        if self.epsilon is None:
            return f"needs {more}: no ε makes it useful under this prior"
        beyond = "" if self.admitted else ", more than the budget admits now,"
        return f"needs ε ≥ {four_digits(self.epsilon, 'up')}{beyond} or {more}"


@dataclass(frozen=True)
class GroupAccuracy:
    """The error of the answers of one group beside what they may be.

    Attributes:
        verdict: Whether they will be useful.
        half_width: Half of the 95 % interval; of a quantile in ranks, of a ranking the lead that
            is resolved.
        low: The least possible answer.
        high: The greatest.
        size: The size that answers are expected to have; for numbers a part of their range.
        rows: How many rows the group has.
        group: Its keys by column; empty if there is one group.
    """

    verdict: Verdict
    half_width: float
    low: float
    high: float
    size: float
    rows: int
    group: Mapping[str, Name]

    @classmethod
    def from_document(cls, document: Any, path: str) -> "GroupAccuracy":
        """What `describe` wrote."""
        found = DocumentPart.of(document, path)
        low, high = found.read("range", codec_of(tuple[float, float]).read)
        return cls(low=low, high=high, **parts_from(cls, found, without=("low", "high")))

    @property
    def faint(self) -> bool:
        """Whether single numbers will mostly be noise, although their noise is below the limit."""
        wide = self.half_width > (self.high - self.low) / 2
        return self.verdict == "rough" and (wide or self.half_width >= FAINT_NOISE * self.size)

    def describe(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        return {
            "verdict": self.verdict,
            "half_width": self.half_width,
            "range": [self.low, self.high],
            "size": self.size,
            "single_numbers_are_noise": self.faint or self.verdict == "mostly noise",
            "rows": self.rows,
            "group": dict(self.group),
        }


@dataclass(frozen=True)
class Usefulness:
    """Whether an answer will be worth having.

    Attributes:
        accuracy: The smallest group; or the one that decides, if small ones are worse.
        one: What one of its answers is: "a count".
        many: What several are called; empty for numbers of unknown size.
        groups: How many groups there are.
        alike: Whether all of them have the same number of rows.
        worse: In how many small groups the answer is worse than in the one that decides.
        worst: The smallest group, if it is worse; None otherwise.
        guessed: Whether the size is a guess: that of labels that are equally common.
        remedy: What would make it useful; None if it is, or if that was not computed.
    """

    accuracy: GroupAccuracy
    one: str
    many: str
    groups: int
    alike: bool
    worse: int = 0
    worst: GroupAccuracy | None = None
    guessed: bool = False
    remedy: Remedy | None = None

    @property
    def verdict(self) -> Verdict:
        """Useful, rough or mostly noise."""
        return self.accuracy.verdict

    @property
    def needs_confirmation(self) -> bool:
        """Whether it must be confirmed before it is charged: it is mostly noise."""
        return self.verdict == "mostly noise"

    @property
    def words(self) -> str:
        """One line: the verdict, and why."""
        return f"{self.verdict}: {self.explanation}"

    @property
    def explanation(self) -> str:
        """What the error is beside what the answer may be, and what would make it useful."""
        text = f"{self._error}{self._where}"
        if self.accuracy.faint:
            there = " there" if self.groups > 1 and not self.alike else ""
            ranked = self.one == "a lead"
            text += f": {'places will mostly be left to chance' if ranked else NOISE}{there}"
        if self.worst is not None:
            text += (
                f"; {self.worst.verdict} in {self.worse:,} smaller"
                f" {'group' if self.worse == 1 else 'groups'}, the smallest being"
                f" {_named(self.worst)}"
            )
        return text if self.remedy is None else f"{text}; {self.remedy.words}"

    @property
    def _error(self) -> str:
        found = self.accuracy
        half, noise = (
            four_digits(found.half_width, "up"),
            not found.half_width < found.high - found.low,
        )
        if self.one == "a rank":
            return f"a rank within ±{half} of the requested one, among {found.rows:,} rows"
        if self.one == "a lead":
            if noise:
                return f"only leads of {half} are resolved, among {found.rows:,} rows"
            return f"leads of {half} are resolved, on counts around {_number(found.size)}"
        within = f"about ±{half}" if found.half_width else "off by less than one unit"
        if noise or not self.many:
            return f"{within} on {self.one} between {_number(found.low)} and {_number(found.high)}"
        guessed = " (if labels were equally common)" if self.guessed else ""
        return f"{within} on {self.many} around {_number(found.size)}{guessed}"

    @property
    def _where(self) -> str:
        if self.groups < 2:
            return ""
        named = _named(self.accuracy, rows=self.one not in ("a rank", "a lead"))
        if self.alike:
            return f" in each of {self.groups:,} groups"
        if self.worst is not None:
            return f" in {named}"
        return f" in the smallest of {self.groups:,} groups ({named})"

    def describe(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        remedy = self.remedy
        return {
            **self.accuracy.describe(),
            "words": self.words,
            "one": self.one,
            "many": self.many,
            "guessed": self.guessed,
            "groups": self.groups,
            "alike": self.alike,
            "worse_groups": self.worse,
            "worst": None if self.worst is None else self.worst.describe(),
            "epsilon_needed": None if not remedy or not remedy.epsilon else str(remedy.epsilon),
            "budget_admits_it": None if remedy is None else remedy.admitted,
            "rows_factor": None if remedy is None else remedy.rows,
        }

    @classmethod
    def from_document(cls, document: Any, path: str = "usefulness") -> "Usefulness":
        """What `describe` wrote."""
        found = DocumentPart.of(document, path)
        remedy = None
        if found.has("rows_factor"):
            remedy = Remedy(
                found.maybe("epsilon_needed", decimal),
                found.truth("budget_admits_it"),
                found.whole("rows_factor"),
            )
        return cls(
            accuracy=GroupAccuracy.from_document(document, path),
            worse=found.whole("worse_groups"),
            worst=found.maybe("worst", GroupAccuracy.from_document),
            remedy=remedy,
            **parts_from(cls, found, without=("accuracy", "worse", "worst", "remedy")),
        )


def judged(scales: AnswerScales, error: Mapping[str, Any]) -> Usefulness:
    """Whether answers with a predicted error will be useful."""
    noise = float(error[scales.error])
    found = _accuracy(scales, scales.deciding, noise)
    smallest = _accuracy(scales, int(scales.by_size[0]), noise)
    groups, alike = len(scales.rows), bool(np.all(scales.rows == scales.rows[0]))
    about = scales.one, scales.many, groups, alike
    if smallest.verdict == found.verdict:
        return Usefulness(smallest, *about, guessed=scales.guessed)
    halves = noise * scales.half_widths
    limit = scales.size if found.verdict == "useful" else scales.noise
    worse = int(np.count_nonzero(halves >= limit))
    return Usefulness(found, *about, worse, smallest, scales.guessed)


def most_noise(scales: AnswerScales) -> float:
    """A predicted error below this is useful in the group that decides."""
    at = scales.deciding
    return float(scales.size[at] / scales.half_widths[at])


def rows_factor(noise: float, most: float) -> int:
    """How many times as many rows make an answer useful, at the same noise; rounded up.

    Twice as many rows halve the error of a mean or a share and double the size of a count, a sum
    or a rank: the error in parts of the size goes down as rows go up. ``most`` is `most_noise`.
    """
    times = noise / most if most > 0 else inf
    if not isfinite(times):
        return 10**15
    least = floor(times * (1 + 1e-12)) + 1
    step: int = 10 ** max(len(str(least)) - 2, 0)  # two digits
    return -(-least // step) * step


M = TypeVar("M")


def least_useful(now: Fraction, useful: Callable[[Fraction], M | None]) -> M | None:
    """What ``useful`` finds at the least amount, to one part in a hundred, at which it finds any.

    The search goes up from ``now``, a positive amount that is not enough, and ends at
    `MAX_SEARCHED_LOSS`.
    """
    low, high, best = now, 2 * now, None
    while best is None:
        if high > MAX_SEARCHED_LOSS:
            return None
        best = useful(high)
        if best is None:
            low, high = high, 4 * high
    while high - low > high / 100:
        middle = (low + high) / 2
        found = useful(middle)
        low, high, best = (middle, high, best) if found is None else (low, middle, found)
    return best


def candidates_above(price: float) -> Iterator[Decimal]:
    """Values of ε to try, from a price upwards: two digits, rounded up."""
    if not 0 < price < inf:
        return
    for more in (1.0, 1.02, 1.1, 1.3, 2.0):
        yield TWO_DIGITS.create_decimal_from_float(price * more)


def _accuracy(scales: AnswerScales, group: int, noise: float) -> GroupAccuracy:
    half = noise * float(scales.half_widths[group])
    low, high = float(scales.low[group]), float(scales.high[group])
    size = float(scales.size[group])
    verdict: Verdict = "useful"
    if not half < size:  # also true for NaN
        verdict = "rough" if half < float(scales.noise[group]) else "mostly noise"
    return GroupAccuracy(
        verdict, half, low, high, size, int(scales.rows[group]), scales.name(group)
    )


def _named(accuracy: GroupAccuracy, *, rows: bool = True) -> str:
    keys = ", ".join(visible(f"{column} {key}") for column, key in accuracy.group.items())
    if not rows:
        return keys
    return f"{keys}, {'1 row' if accuracy.rows == 1 else f'{accuracy.rows:,} rows'}"


def _number(value: float) -> str:
    return f"{int(value):,}" if value.is_integer() and abs(value) < 1e15 else four_digits(value)
