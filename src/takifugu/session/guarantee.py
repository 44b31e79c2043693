r"""What is guaranteed, in plain words: against which prior, which secrets, on which assumptions.

What a Pufferfish loss means for one entry: how far it can move somebody's opinion.

Somebody who holds one of the priors, and for whom two values of a secret are as likely as each
other, sees a release. Their odds change by the ratio of the probabilities of what they saw under
the two values. A loss of :math:`\varepsilon` bounds that ratio by :math:`e^\varepsilon`, whatever
they saw: from 50 : 50 they come to at most :math:`e^\varepsilon : 1`.

*With a δ* the ratio may be larger, and "except with probability δ" is not what
:math:`(\varepsilon, \delta)` says: for Gaussian noise the ratio is above :math:`e^\varepsilon` with
a probability that is larger than δ. What follows is this. Let S hold the outcomes whose ratio
P/Q is above :math:`e^\varepsilon / (1 - 1/c)`, for a :math:`c > 1`. Then
:math:`P(S) \le e^\varepsilon Q(S) + \delta \le (1 - 1/c)\,P(S) + \delta`, and so
:math:`P(S) \le c\,\delta`. That is one side. An opinion may also be moved the other way, to the
value that is false: let S′ hold the outcomes whose ratio Q/P is as large. The guarantee holds in
both directions, so that :math:`Q(S') \le c\,\delta` too, and
:math:`P(S') \le (1 - 1/c)\,e^{-\varepsilon} Q(S') \le (c - 1)\,\delta`. Both sides together,
whichever value is true: :math:`P(S \cup S') \le (2c - 1)\,\delta`. With c = 10: the odds are at
most :math:`\tfrac{10}{9} e^\varepsilon : 1` either way, except with probability at most 20 δ.

The main numbers of a prior are part of it (`main_numbers`): what a release costs depends on how
long values stay as they are, and on how improbable the least probable step is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from math import exp, floor, isnan, log, log10
from textwrap import fill
from typing import Any

import numpy as np

from takifugu._core.numeric import Floats
from takifugu._core.rounding import float_up
from takifugu.binding.entries import Entries
from takifugu.binding.prior_reading import PriorTranslation
from takifugu.binding.protected_values import stand_for_ranges, values_by_column
from takifugu.declarations import Amount, Category, Declaration
from takifugu.errors import UnsoundRequest
from takifugu.priors.adversaries import chains_of
from takifugu.priors.gaussian import Gaussian, secret_distance
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.independent import Product, people_of
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.kernels import Covariance
from takifugu.priors.markov import MarkovChain
from takifugu.priors.networks import BayesianNetwork, MarkovRandomField
from takifugu.priors.prior import Prior
from takifugu.priors.secrets import Secrets
from takifugu.priors.time_of_day import TimeOfDayChain
from takifugu.priors.truncated_gaussian import TruncatedGaussian
from takifugu.translation.rows.row_translation import RowTranslation
from takifugu.translation.translation import Translation
from takifugu.visible import four_digits

TAIL_FACTOR = 10  # c: odds hold except with c times δ on either side
ROUNDING_MARGIN = 1e-12  # more than the rounding of an exponential and a division, in parts
CERTAINTY = 1e-6  # a smaller side below this is not written out
MAX_PERCENT_DECIMALS = 6  # of a percentage


@dataclass(frozen=True)
class PosteriorOdds:
    """How far a loss can move somebody who thought two values of a secret equally likely.

    Attributes:
        epsilon: The Pufferfish ε.
        delta: The Pufferfish δ.
        against: The least probability that can be left to the value that seems less likely, be it
            the true one or the other, rounded down.
        beyond: The probability, at most, with which it is less than that, whichever value is
            true; 0 without a δ.
    """

    epsilon: float
    delta: Fraction
    against: float
    beyond: float

    @property
    def ratio(self) -> str:
        """The odds as ``"73 : 27"``, in percent, the larger side rounded up."""
        if not self.against > CERTAINTY:
            return "100 : 0"
        small = self._percent
        return f"{_plain(100 - small)} : {_plain(small)}"

    @property
    def _percent(self) -> Decimal:
        """The smaller side in percent: two digits of it, and two of how far it is from 50."""
        exact = Decimal(self.against * 100)
        first = [floor(log10(x)) for x in (self.against * 100, 50 - self.against * 100) if x > 0]
        decimals = min(max(0, 1 - min(first)), MAX_PERCENT_DECIMALS)
        return exact.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_FLOOR)

    @property
    def outcome(self) -> str:
        """Where they can come to."""
        if not self.against > CERTAINTY:
            return "can become certain"
        text = f"can come to at most {self.ratio}"
        if self.beyond > 0:
            text += f", except with probability at most {four_digits(self.beyond, 'up')}"
        return text

    @property
    def words(self) -> str:
        """One sentence, without its full stop."""
        return f"someone who thought 50 : 50 {self.outcome}"

    def describe(self) -> Mapping[str, Any]:
        """Ready to be written as JSON; null for an ε that is infinite."""
        return {
            "epsilon": or_null(self.epsilon),
            "delta": str(self.delta),
            "from": 0.5,
            "to_at_most": float_up(1 - Fraction(self.against)),
            "except_with_probability": self.beyond,
            "words": self.words,
        }


def or_null(loss: float | None) -> float | None:
    """A loss as JSON: null for what is infinite."""
    return None if loss is None or loss == float("inf") else loss


def odds(epsilon: float | Fraction | Decimal, delta: float | Fraction = 0) -> PosteriorOdds:
    """How far a Pufferfish loss can move somebody; the odds rounded up.

    >>> odds(1).ratio, odds(0.1).ratio, odds(5).ratio
    ('74 : 26', '52.5 : 47.5', '99.34 : 0.66')
    """
    loss = float_up(Fraction(epsilon)) if float(epsilon) < float("inf") else float(epsilon)
    room = Fraction(delta)
    if isnan(loss) or not loss >= 0 or not 0 <= room <= 1:
        raise UnsoundRequest(
            f"odds are for an epsilon of 0 or more and a delta from 0 to 1, not {loss!r} and"
            f" {float(room)!r}",
            field="epsilon",
        )
    beyond = float_up(2 * TAIL_FACTOR * room)
    if beyond >= 1:  # any outcome may be one that is excepted
        return PosteriorOdds(loss, room, 0.0, beyond)
    widened = loss + (log(TAIL_FACTOR / (TAIL_FACTOR - 1)) * (1 + ROUNDING_MARGIN) if room else 0.0)
    against = 1 / (1 + exp(widened)) * (1 - ROUNDING_MARGIN) if widened < 700 else 0.0
    if widened == 0:
        against = 0.5  # exactly: nothing moves
    return PosteriorOdds(loss, room, against, beyond)


def odds_words(epsilon: float | Fraction | Decimal, delta: float | Fraction = 0) -> str:
    """The sentence for plans, results, budgets and pages.

    >>> odds_words(0.99)
    'someone who thought 50 : 50 can come to at most 73 : 27'
    >>> odds_words(1, Fraction(1, 10**6))
    'someone who thought 50 : 50 can come to at most 76 : 24, except with probability at most 2e-5'
    """
    return odds(epsilon, delta).words


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


NAMES = {"markov": "Markov", "bayesian": "Bayesian", "gaussian": "Gaussian"}
MAX_LISTED_SECRETS = 12  # entries or pairs of values that are listed


def guarantee(
    declaration: Declaration,
    translation: PriorTranslation,
    columns: tuple[str, ...],
    read: Mapping[str, Entries],
    *,
    epsilon: Fraction | None,
    delta: Fraction,
    statement: str,
) -> str:
    """The guarantee of the declaration, and what the prior and the budget add to it."""
    parts = [
        f"The loss is about {_about(columns)}, against {_priors(translation)}.",
        *filter(None, (main_numbers(translation.priors),)),
        *_drawn(declaration, translation, read),
        *_assumed(declaration, translation),
    ]
    priors = list(people_of(translation.priors.values()))
    if any(isinstance(p, Gaussian) for p in priors):
        parts.append(
            f"The numbers of `{columns[0]}` are taken to be jointly normal, as the prior states,"
            " before they are clamped and rounded, around means that may differ from row to row"
            " (by hour, for instance): the loss is the same whatever they are, even if the"
            " adversary knows them. A query is charged by how far it sees two of the numbers apart."
        )
    for column in declaration.protected:
        if isinstance(column, Amount) and column.column in columns:
            states = _states(translation, column.column)
            if stand_for_ranges(states, column):
                parts.append(
                    f"The states of a prior stand for ranges of `{column.column}`; within them"
                    " numbers are taken to be independent of all else."
                )
    parts += _kept(translation, columns)
    parts += _left_out(declaration, translation, columns)
    if delta > 0:
        most = four_digits(delta, "up")
        parts.append(
            f"Beside the loss ε there is a δ of at most {most}: any set of outcomes is at most e^ε"
            " times as probable under one of two values as under the other, plus a probability of"
            f" at most {most}."
        )
    if epsilon is not None:
        found = odds(epsilon, delta)
        parts.append(
            f"In numbers, for one entry: someone with such a prior who thought 50 : 50 about which"
            f" of two values an entry has {found.outcome} from all that the budget of ε ="
            f" {four_digits(epsilon, 'up')} admits."
        )
    if statement:
        parts.append(statement)
    text = "\n".join(fill(part, 100, break_on_hyphens=False) for part in parts)
    return f"{declaration.guarantee()}\n{text}\n"


def _about(columns: tuple[str, ...]) -> str:
    named = [f"`{column}`" for column in columns]
    if len(named) == 1:
        return f"{named[0]} alone"
    which = "either of them, from all queries on both"
    if len(named) > 2:
        which = "any of them, from all queries on all of them"
    return f"{_and(named)}, which share one budget: it is the largest loss of {which}"


def _kept(translation: PriorTranslation, columns: tuple[str, ...]) -> Iterator[str]:
    """Which secrets are kept: all, or which."""
    if isinstance(translation.secrets, Secrets):
        if translation.secrets != Secrets():
            yield _secrets(translation.secrets)
        else:
            yield f"Every pair of values of `{columns[0]}` is kept secret, at every entry."
        return
    some = {c: kept for c, kept in translation.secrets.items() if kept != Secrets()}
    for column, kept in some.items():
        yield f"Of `{column}`: {_secrets(kept)}"
    every = [f"`{column}`" for column in translation.secrets if column not in some]
    if every:
        others = ", whatever the other columns are" if len(translation.secrets) > 1 else ""
        yield f"Every pair of values of {_and(every)} is kept secret{others}."


def unprotected_gaps(
    declaration: Declaration, translation: PriorTranslation, columns: tuple[str, ...]
) -> tuple[str, ...]:
    """The columns of which some cells may be left out, and a prior has no state for these."""
    priors = people_of(translation.priors.values())
    numbers = any(isinstance(p, Gaussian | TruncatedGaussian) for p in priors)
    found = []
    for column in declaration.protected:
        if column.column not in columns or not _drops(column):
            continue
        sizes = () if numbers else {len(s) for s in _states(translation, column.column)}
        if isinstance(column, Amount) or sizes != {len(column.keys) + 1}:
            found.append(column.column)
    return tuple(found)


def _drops(column: Category | Amount) -> bool:
    rule = column.missing if isinstance(column, Amount) else column.outside
    return rule == "drop"


def _left_out(
    declaration: Declaration, translation: PriorTranslation, columns: tuple[str, ...]
) -> Iterator[str]:
    """Whether it is protected that a cell is left out."""
    openly = unprotected_gaps(declaration, translation, columns)
    for column in declaration.protected:
        if column.column in openly:
            yield (
                f"Not protected: which cells of `{column.column}` are left out. The prior has no"
                " state for them, so that nothing bounds what releases tell about it: whether a"
                " cell is left out or holds one of the values may become known in full. It is"
                ' protected with outside = "other", which makes a value of it, or with a prior'
                " that has one more state."
                if isinstance(column, Category)
                else f"Not protected: which values of `{column.column}` are missing. The prior has"
                " no state for them, so that nothing bounds what releases tell about it. Declare"
                " the number that a missing value counts as to protect it."
            )
        elif column.column in columns and _drops(column):
            yield (
                f"That a cell of `{column.column}` is left out is protected too: the prior has a"
                " state for it."
            )


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _priors(translation: PriorTranslation) -> str:
    named = len(translation.priors) > 1
    listed = [
        f"{name} ({described(prior)})" if named else described(prior)
        for name, prior in translation.priors.items()
    ]
    off = translation.uncertainty
    unsure = f", each probability off by up to {off:.3g} of itself" if off else ""
    return " and ".join(listed) + unsure


def _states(translation: PriorTranslation, column: str) -> set[tuple[Any, ...]]:
    """Every list of states that a prior with states has of a column."""
    priors = list(people_of(translation.priors.values()))
    if isinstance(translation, Translation) or translation.over == "household":
        plain = [p for p in priors if not isinstance(p, Gaussian | TruncatedGaussian)]
        return {tuple(values) for prior in plain for values in prior.entry_values}
    return {values_by_column(prior)[column] for prior in priors}


def described(prior: Prior) -> str:
    """A prior in a few words."""
    if isinstance(prior, TruncatedGaussian):
        return f"a truncated Gaussian of {prior.size} entries"
    if isinstance(prior, Product):
        kinds = sorted({described(part) for part in prior.parts.values()})
        return f"{len(prior.parts)} independent people, each with {' or '.join(kinds)}"
    kind = " ".join(NAMES.get(word, word) for word in prior.kind.split("-"))
    called = f" {prior.name!r}" if prior.name not in ("", "network", "field", "prior") else ""
    size = prior.size
    length = "of unbounded length" if size is None else f"of {size} entries"
    plural = kind.endswith("s") and not kind.endswith("ss")
    article = "" if plural else "an " if kind[0] in "aeiou" else "a "
    return f"{article}{kind}{called} {length}"


def _drawn(
    declaration: Declaration, translation: PriorTranslation, read: Mapping[str, Entries]
) -> Iterator[str]:
    """What one draw from each prior is; once for all that are read alike."""
    entity, ordered = declaration.entity, _ordered(declaration)
    alike: dict[tuple[str, bool], list[str]] = {}
    for name, prior in translation.priors.items():
        alike.setdefault((read[name].over, isinstance(prior, Product)), []).append(name)
    for (over, product), names in alike.items():
        it = "it" if len(translation.priors) == 1 else "one of them"
        if len(alike) > 1:
            it = " or ".join(names)
        if product:
            yield (
                f"The rows of each `{entity}`{ordered} are taken to be a draw"
                f" from the part of {it} that has its name, or the beginning of one, and to be"
                " independent of every other one's."
            )
        elif over == "entities":
            yield (
                f"All rows together are taken to be one draw from {it}, whose entries are the"
                f" entities of `{entity}`, matched by name, with one row each: they depend on each"
                " other as it states, and no more."
            )
        elif over == "row":
            yield (
                f"The columns of each row are taken to be one draw from {it}, whose entries are the"
                " protected columns, matched by name; rows are independent of each other."
            )
        elif over == "household":
            yield from _households(declaration, it, read, names)
        elif over == "entities × sequence":
            yield (
                f"All rows together are taken to be one draw from {it}, whose entries are the rows"
                f" of each `{entity}`{ordered} matched by name and position: they"
                " depend on each other as it states, and no more."
            )
        elif isinstance(translation, RowTranslation):
            yield (
                f"The rows of each `{entity}`{ordered} with the values of all"
                f" protected columns as one joint state each, are taken to be a draw from {it}, or"
                " the beginning of one, and to be independent of every other one's."
            )
        else:
            yield (
                f"The rows of each `{entity}`{ordered} are taken to be a draw"
                f" from {it}, or the beginning of one, and to be independent of every other one's."
            )


def _ordered(declaration: Declaration) -> str:
    """In which order the rows of an entity are, or that it has one, between commas."""
    order = declaration.order
    return ", one each," if order.absent else f", in the order of `{order.column}`,"


def _households(
    declaration: Declaration, it: str, read: Mapping[str, Entries], names: Sequence[str]
) -> Iterator[str]:
    """What one draw is for the entities that a public column groups."""
    entity, ordered = declaration.entity, _ordered(declaration)
    for entries in dict.fromkeys(read[name] for name in names):
        by_name = "" if entries.member is None else f", told apart by `{entries.member}`"
        yield (
            f"The rows of all of `{entity}` in one `{entries.household}`{by_name}{ordered}"
            f" are taken to be a draw of joint states from {it}, or the beginning of"
            f" one, and to be independent of every other `{entries.household}`."
        )


def _assumed(declaration: Declaration, translation: PriorTranslation) -> Iterator[str]:
    """What an adversary is assumed to know beyond the prior."""
    chains = [chain for prior in translation.priors.values() for chain in chains_of(prior)]
    starts = [getattr(p, "start", "") for p in people_of(translation.priors.values())]
    unknown = [isinstance(start, str) and start == "unknown" for start in starts]
    if any(unknown):
        yield (
            f"{'The' if all(unknown) else 'For some of them the'} adversary knows how one value"
            " follows another, and may hold any law for the first row that is read: also one that"
            f" follows from earlier rows of the same `{declaration.entity}`."
        )
    if any(chain.known == "any" for chain in chains):
        whole = all(chain.known == "any" for chain in chains)
        yield (
            f"{'The' if whole else 'For some of them the'} adversary may also know any other rows"
            f" of the same `{declaration.entity}` exactly: the loss is about a row's value beyond"
            " what those reveal."
        )


def _secrets(secrets: Secrets) -> str:
    kept = []
    if secrets.entries is not None:
        kept.append(f"the entries {_some(secrets.entries)}")
    if secrets.pairs is not None:
        sides = [
            f"{'/'.join(map(str, a))} against {'/'.join(map(str, b))}" for a, b in secrets.pairs
        ]
        kept.append(f"the pairs {_some(sides)}")
    if secrets.within is not None:
        apart = four_digits(secret_distance(secrets), "down")
        kept.append(f"which of two numbers it is that are at most {apart} apart")
    return f"Only these are kept secret: {' and '.join(kept)}. Nothing is guaranteed for others."


def _some(names: Any) -> str:
    listed = [str(name) for name in names]
    more = len(listed) - MAX_LISTED_SECRETS
    return ", ".join(listed[:MAX_LISTED_SECRETS]) + (f" and {more} more" if more > 0 else "")


def main_numbers(priors: Mapping[str, Prior]) -> str:
    """The main numbers of some priors, as a sentence; empty if none has any."""
    found = {name: numbers for name, prior in priors.items() if (numbers := _numbers(prior))}
    if not found:
        return ""
    if len(priors) == 1:
        return f"The prior in numbers: {next(iter(found.values()))}."
    each = "; ".join(f"{name}, {numbers}" for name, numbers in found.items())
    return f"The priors in numbers: {each}."


def _numbers(prior: Prior) -> str:
    match prior:
        case Product():
            each = {_numbers(part) for part in prior.parts.values()}
            return each.pop() if len(each) == 1 else ""
        case MarkovChain() | TimeOfDayChain():
            matrices = prior.transition.reshape(-1, *prior.transition.shape[-2:])
            return _steps(matrices, matrices)
        case IntervalMarkovChain():
            return _steps(prior.lower[None], prior.upper[None])
        case HigherOrderChain():
            least = four_digits(float(prior.transition.min()), "down")
            return (
                f"{len(prior.states)} states, each step by the last {prior.order}; the least"
                f" probable step has the probability {least}"
            )
        case Gaussian():
            if isinstance(prior.kernel, Covariance):
                return ""
            rule = ", ".join(f"{name} {value}" for name, value in prior.kernel.parameters().items())
            return (
                f"covariance {prior.kernel.word} ({rule}), variance {four_digits(prior.variance)}"
            )
        case MarkovRandomField():
            return f"{len(prior.entries):,} entries and {len(prior.edges):,} pairs that depend"
        case BayesianNetwork():
            arrows = sum(map(len, prior.parents))
            return f"{len(prior.entries):,} entries and {arrows:,} arrows"
    return ""


def _steps(lower: Floats, upper: Floats) -> str:
    """How often values stay, and the least probable step, of matrices ``[t, x, y]``."""
    stays = [np.diagonal(each, axis1=-2, axis2=-1) for each in (lower, upper)]
    low, high = four_digits(float(stays[0].min()), "down"), four_digits(float(stays[1].max()), "up")
    often = low if low == high else f"{low} to {high}"
    least = four_digits(float(lower.min()), "down")
    return (
        f"{lower.shape[-1]} states; a value is followed by itself with probability {often}, and the"
        f" least probable step has the probability {least}"
    )
