"""What a release costs: alone, after all that was spent before, and what is left."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Annotated, Any, Protocol, TypeVar

from takifugu._core.exact import Number, exactly, shown
from takifugu._core.rounding import float_down, float_up
from takifugu.binding.prior_reading import PriorTranslation
from takifugu.binding.protected_values import WHOLLY
from takifugu.costs.cost import Cost
from takifugu.costs.losses import Concentrated, Metric, Pure, Total
from takifugu.documents.declared import Codec, NullFloat, parts_from, to_document
from takifugu.documents.reading import DocumentPart, InvalidDocument
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Position, Standing
from takifugu.mechanisms.calibration import allowance, certify, no_allowance, target_of
from takifugu.session.guarantee import odds
from takifugu.translation.protocol import LossTranslation, rho_within, total_to_pufferfish
from takifugu.translation.rows.row_translation import RowTranslation
from takifugu.visible import four_digits, visible

MAX_PRICED_COLUMNS = 6  # columns whose share of a price is printed
MICRO = Decimal("0.000001")
MAX_PRICES = 1024  # that are remembered
K = TypeVar("K")
V = TypeVar("V")
Charged = Pure | Metric | Concentrated  # what a session charges; ρ where a δ is given
NEARLY_EQUAL = 1 - Fraction(1, 2**20)  # a loss this close below another one is priced as that
PRICE_TOLERANCE = 1 + 1e-6  # a price by value is that of a cost which is as close as this
CLEARLY_LESS = Fraction(998, 1000)  # of a price: an ε below it asks for less, whatever the rounding


def value_cost(document: Any, path: str) -> Cost:
    """What `Cost.document` wrote; refused if it is written in another way."""
    if not isinstance(document, list):
        raise InvalidDocument(path, given="is no list", needed="list coefficients and shapes")
    cost = Cost.of_document(document)
    if cost.document() != document:
        raise InvalidDocument(path, given="is in another order", needed="be as it was written")
    return cost


ValueCost = Annotated[Cost, Codec(value_cost, Cost.document)]


@dataclass(frozen=True)
class AnalystCost:
    """What a release costs an analyst who has a budget of their own.

    Attributes:
        analyst: Who asks.
        budget: The Pufferfish ε that the owner allows them.
        before: The Pufferfish ε of all that was released to them before, rounded up.
        after: The same with this release; None if it does not fit.
    """

    analyst: str
    budget: Fraction
    before: NullFloat
    after: NullFloat | None

    @property
    def spent_words(self) -> str:
        """How much of their budget would be spent."""
        return _spent_words(self.before if self.after is None else self.after, self.budget)


@dataclass(frozen=True)
class ReleaseCost:
    """The price of a release.

    Attributes:
        currency: ``epsilon`` or ``rho``: what every row that is read loses.
        per_entry: How much of it at worst; this is what is charged, unless values are told apart.
        delta: The Pufferfish δ that ``alone`` holds at; 0 for a loss in ε.
        alone: The Pufferfish ε of the release if nothing else were ever released.
        before: The Pufferfish ε, at the δ of the budget, of all that was released before.
        after: The same with this release; None if it does not fit. Both are rounded up, and bounds
            that are searched for: after is never below before. A stored answer adds nothing.
        budget: The Pufferfish ε that the owner allows.
        budget_delta: The Pufferfish δ that the owner allows.
        fits: Whether the ledger would accept the charge now.
        most: A Pufferfish ε that would be accepted on these rows now, rounded down; 0 if none.
        own: What it costs the analyst who asks; None if they have no budget of their own.
        reuse: Whether the same was released to another analyst: then it costs this analyst's own
            budget, and nothing of the whole.
        by_value: What is charged, if that is less than ``per_entry`` between some values.
        without_values: What ``alone`` would be if it were charged ``per_entry`` between all.
        by_column: Where rows have several protected columns: what ``alone`` is for the secrets of
            each, rounded up. ``alone`` is the largest.
    """

    currency: str
    per_entry: Fraction
    delta: Fraction
    alone: NullFloat
    before: NullFloat
    after: NullFloat | None
    budget: Fraction
    budget_delta: Fraction
    fits: bool
    most: Decimal
    own: AnalystCost | None = None
    reuse: bool = False
    by_value: ValueCost | None = None
    without_values: NullFloat | None = None
    by_column: Mapping[str, NullFloat] | None = None

    @property
    def marginal(self) -> float | None:
        """What it adds to all that was released before, rounded up; often less than alone."""
        if self.after is None or self.after == self.before:  # both may be infinite
            return None if self.after is None else 0.0
        added = Fraction(self.after) - Fraction(self.before)
        return float_up(max(added, Fraction(0)))

    @property
    def words(self) -> str:
        """The price alone, in a few letters."""
        return self._price("epsilon", "delta")

    @property
    def symbols(self) -> str:
        """The same with ε and δ, for a page."""
        return self._price("ε", "δ")

    def _price(self, epsilon: str, delta: str) -> str:
        at = f" at {delta} = {four_digits(self.delta, 'up')}" if self.delta else ""
        return f"{epsilon} = {four_digits(self.alone, 'up')}{at}"

    @property
    def alone_words(self) -> str:
        """The price alone, and how much of it each column pays, largest first."""
        if self.by_column is None:
            return f"{self.words} alone"
        ranked = sorted(self.by_column.items(), key=lambda pair: -pair[1])
        if ranked[0][1] == ranked[-1][1]:  # a ρ is what any change of a row loses
            return f"{self.words} alone, for each column"
        first, more = ranked[:MAX_PRICED_COLUMNS], ranked[MAX_PRICED_COLUMNS:]
        shown = [f"{visible(name)} {four_digits(loss, 'up')}" for name, loss in first]
        if more:
            shown.append(f"{len(more)} more at most {four_digits(more[0][1], 'up')}")
        return f"{self.words} alone ({', '.join(shown)})"

    @property
    def spent_words(self) -> str:
        """How much of the budget would be spent, and of an analyst's own.

        What is left is not the rest of it: two releases together may cost more or less than the
        sum of what they cost alone. `most`, and the budget's standing, say what fits.
        """
        return f"{self.spent_of_budget} is spent{self._spent_of_analyst}"

    @property
    def spent_of_budget(self) -> str:
        """How much of the budget would be spent, as in "0.5 of 2"."""
        return _spent_words(self.before if self.after is None else self.after, self.budget)

    @property
    def reuse_words(self) -> str:
        """What an answer costs that was released to another analyst."""
        if self.own is None:
            return self.words
        return (
            f"{self.words} of the budget of analyst {self.own.analyst!r} alone, nothing of the"
            " dataset's: the same was released to another analyst" + self._spent_of_analyst
        )

    @property
    def _spent_of_analyst(self) -> str:
        if self.own is None:
            return ""
        return f"; {self.own.spent_words} is spent by analyst {self.own.analyst!r}"

    @property
    def odds_of_entry(self) -> str:
        """What it means for one entry: from this release, and from all that the budget admits.

        Of a release that does not fit only the latter: it is not to be had.
        """
        alone, all_of_it = odds(self.alone, self.delta), odds(self.budget, self.budget_delta)
        if not self.fits:
            return f"{all_of_it.words} from all that the budget admits"
        return (
            f"{alone.words} from this release; from all that the budget admits they"
            f" {all_of_it.outcome}"
        )

    @property
    def odds_words(self) -> str:
        """The same as a line that says whom it is about."""
        return f"for one entry: {self.odds_of_entry}"

    def describe(self) -> dict[str, Any]:
        """Ready to be written as JSON; exact numbers as text, and null for what is infinite."""
        document: dict[str, Any] = to_document(self, after={"after": {"marginal": self.marginal}})
        return document | {
            "odds": {
                "alone": odds(self.alone, self.delta).describe(),
                "budget": odds(self.budget, self.budget_delta).describe(),
            }
        }

    @classmethod
    def from_document(cls, document: Any, path: str = "cost") -> "ReleaseCost":
        """What `describe` wrote. Null is nothing where it does not fit, and infinite elsewhere."""
        found = DocumentPart.of(document, path)
        parts = parts_from(cls, found)
        own, fits = parts["own"], parts["fits"]
        parts["after"] = found.number("after") if fits else None
        if own is not None:
            after = found.part("own").number("after") if fits else None
            parts["own"] = replace(own, after=after)
        by_value = parts["by_value"] is not None
        parts["without_values"] = found.number("without_values") if by_value else None
        return cls(**parts)


def checked_delta(delta: Number) -> Fraction:
    """The Pufferfish δ of a query, exactly; it must be between 0 and 1."""
    found = exactly(delta, "delta")
    if not 0 < found < 1:
        raise UnsoundRequest(
            f"delta is {shown(found)}; it must be between 0 and 1. Leave it out for a loss in"
            " epsilon alone",
            field="delta",
            given=found,
        )
    return found


def _spent_words(spent: float, budget: Fraction) -> str:
    return f"{four_digits(spent, 'up')} of {four_digits(budget, 'down')}"


def beside_what_is_left(most: Decimal, left: float, spent: float) -> str:
    """Why a release may cost ``most`` alone where another amount is left; empty if both agree.

    Nothing was spent: then the price of the largest loss that fits is below the budget. Otherwise
    two releases together may cost more or less than the sum of what they cost alone.

    >>> beside_what_is_left(Decimal("0.4747"), 0.5, 0.0), beside_what_is_left(Decimal(2), 2.0, 0.0)
    (' (prices come in steps, and the next one is too much)', '')
    """
    low, high = sorted((Fraction(most), Fraction(left)))
    if not most > 0 or CLEARLY_LESS * high <= low:
        return ""
    if spent == 0:
        return " (prices come in steps, and the next one is too much)"
    return " (prices do not simply add up)"


class Allowances(Protocol):
    """Where factors that a Pufferfish loss allows are kept: `project.project_cache` has one."""

    def find(self, unit: Cost, pufferfish: float, /) -> Fraction | None:
        """The factor of ``unit`` that was found for a Pufferfish loss; None if there is none."""

    def keep(self, unit: Cost, pufferfish: float, factor: Fraction, /) -> None:
        """Keep a factor for the next time."""


class Prices:
    """Prices of releases on one dataset, by one translation.

    A price by value is computed once: an allowance is searched for, and the loss of the mechanism
    that keeps it is the allowance but for a rounding, and priced as that.
    """

    def __init__(
        self, dataset: str, translation: LossTranslation, kept: Allowances | None = None
    ) -> None:
        self._dataset, self._translation, self._kept = dataset, translation, kept
        self._allowed: dict[tuple[Cost, float], Fraction] = {}
        self._priced: dict[Cost, tuple[Fraction, float]] = {}  # by unit: a factor, and its price

    def apart(self) -> "Prices":
        """The same prices, to look into others: what is found there is not remembered here.

        A price by value may differ by a rounding from one that was searched for from elsewhere, and
        a plan and its release must come to the same.
        """
        found = Prices(self._dataset, self._translation, self._kept)
        found._allowed = dict(self._allowed)
        return found

    def of(
        self,
        loss: Charged,
        delta: Fraction,
        standings: Sequence[Standing],
        *,
        reuse: bool = False,
        stored: bool = False,
        asked: Any = None,
    ) -> ReleaseCost:
        """What ``loss`` would cost the accounts in ``standings``. Nothing is spent.

        With ``stored``: what an answer costs that is given again, which adds nothing to what was
        spent. With ``reuse``: what another analyst's answer at that price would cost this one.
        ``asked`` is the Pufferfish ε that the loss was calibrated to, if one was given.
        """
        (whole,) = (one for one in standings if one.analyst is None)
        mine = next((one for one in standings if one.analyst is not None), None)
        fits = stored or all(one.admits(loss) for one in standings if one.analyst or not reuse)
        before = whole.spent
        after = before if stored or reuse or not fits else max(before, whole.spent_after(loss))
        own = None
        if mine is not None:
            own = AnalystCost(
                str(mine.analyst),
                mine.epsilon,
                mine.spent,
                mine.spent if stored else max(mine.spent, mine.spent_after(loss)) if fits else None,
            )
        concentrated = isinstance(loss, Concentrated)
        alone = self.alone(loss, delta)
        if asked is not None:  # it was calibrated to this, and certified
            alone = min(alone, target_of(asked))
        by_value, without = None, None
        if isinstance(loss, Metric):
            by_value, without = loss.cost, self.alone(Pure(loss.epsilon), delta)
            alone = min(alone, without)
        return ReleaseCost(
            currency="rho" if concentrated else "epsilon",
            per_entry=loss.rho if isinstance(loss, Concentrated) else loss.epsilon,
            delta=delta if concentrated else Fraction(0),
            alone=alone,
            before=before,
            after=after if fits else None,
            budget=whole.epsilon,
            budget_delta=whole.delta,
            fits=fits,
            most=self._asked_again(alone, asked)
            if by_value is not None and fits
            else self.most(loss, delta, standings),
            own=own,
            reuse=reuse,
            by_value=by_value,
            without_values=without,
            by_column=self._by_column(loss, delta, alone),
        )

    def _by_column(self, loss: Charged, delta: Fraction, most: float) -> dict[str, float] | None:
        """What each protected column pays of a price; None if there is but one.

        A ρ is what any change of a row loses: the theorem of `translation.certify.closed` holds
        for the secrets of each column by itself.
        """
        rows = self._translation
        if not isinstance(rows, RowTranslation) or len(rows.secrets) < 2:
            return None
        if isinstance(loss, Concentrated):
            total = Total().plus(loss)
            found = {
                column: total_to_pufferfish(
                    lambda dp, c=column: (dp, rows.losses(Cost.any(dp))[c]),  # type: ignore[misc]
                    total,
                    delta,
                )
                for column in rows.secrets
            }
        else:
            cost = Cost.any(loss.epsilon)
            if isinstance(loss, Metric):
                factor, _ = self._priced.get(_unit(loss.cost), (Fraction(0), 0.0))
                near = factor * NEARLY_EQUAL <= loss.epsilon <= factor
                cost = _unit(loss.cost) * factor if near else loss.cost
            found = dict(rows.losses(cost))
        return {column: min(value, most) for column, value in found.items()}

    def refuse_delta(self, delta: Fraction, accounts: Iterable[Position]) -> None:
        """Raise if some budget that pays for a release has less δ than it is read at."""
        for position in accounts:
            if position.delta < delta:
                whose = f"analyst {position.analyst!r} on " if position.analyst else ""
                raise UnsoundRequest(
                    f"delta is {four_digits(delta, 'up')}, and the budget of {whose}dataset"
                    f" {self._dataset!r} has {four_digits(position.delta, 'down')}; give at most"
                    " that, or have the owner raise it",
                    field="delta",
                    reason="above-budget",
                    given=delta,
                    needed=position.delta,
                )

    def allowed(
        self, epsilon: Any, delta: Fraction | None, unit: Cost = WHOLLY
    ) -> Pure | Concentrated:
        """The per-entry loss that a Pufferfish ε allows; in ρ if there is a δ.

        Of a release that tells ``unit`` of an entry for each 1 of its own loss.
        """
        target = target_of(epsilon)
        least = self._translation.least
        if target < least and (unit.is_scalar or delta is not None):
            raise UnsoundRequest(
                f"epsilon is {four_digits(target, 'down')}, and the translation table of this"
                f" prior begins at {four_digits(least, 'up')}; ask for at least that, or translate"
                " each number (--no-table, or no `translation_table`)",
                field="epsilon",
                reason="below-table",
                given=target,
                needed=least,
            )
        if delta is not None:
            return Concentrated(rho_within(self._translation, target, delta))
        if unit.is_scalar:
            return Pure(allowance(epsilon, self._translation))
        factor = self._allowed.get((unit, target))
        if factor is None:
            factor = None if self._kept is None else self._kept.find(unit, target)
            if factor is None or not self._within(unit, factor, target):
                factor = self._searched(unit, target)
            _remember(self._allowed, (unit, target), factor)
        return Pure(factor)

    def _searched(self, unit: Cost, target: float) -> Fraction:
        """The factor of ``unit`` that the translation allows, confirmed by the translation."""
        found = self._translation.to_cost(unit, target)
        if not found > 0:
            raise no_allowance(target, found, self._translation)
        if not self._within(unit, found, target):
            raise UnsoundRequest(
                f"the translation allows {float(found)!r} for a loss of {target!r}, and says that"
                " it loses more; its two directions contradict each other, and nothing can be"
                " built",
                field="translation",
                given=found,
                needed=target,
            )
        if self._kept is not None:
            self._kept.keep(unit, target, found)
        return found

    def _within(self, unit: Cost, factor: Fraction, target: float) -> bool:
        """Whether a factor of ``unit`` loses at most ``target``; then its price is remembered."""
        price = float(self._translation.cost_to_pufferfish(unit * factor))
        if not price <= target:  # a bound that has no values may be the one that allows it
            price = min(price, self.alone(Pure((unit * factor).scalar), Fraction(0)))
        if not price <= target:  # also false for NaN
            return False
        _remember(self._priced, _unit(unit), ((unit * factor).scalar, price))
        return True

    def certify(self, loss: Charged, epsilon: Any, delta: Fraction) -> None:
        """Refuse a loss that would cost more than ``epsilon`` alone."""
        if isinstance(loss, Pure):
            certify(loss, epsilon, self._translation)
        elif not self.alone(loss, delta) <= target_of(epsilon):
            raise UnsoundRequest(
                "the mechanism would lose more than epsilon allows; nothing can be built"
            )

    def most(self, loss: Charged, delta: Fraction, standings: Sequence[Standing]) -> Decimal:
        """A Pufferfish ε, in millionths, whose allowance is verified to fit in ``standings``.

        Mechanisms lose at most the allowance, so that asking for it is accepted.
        """
        room = min(one.room(loss) for one in standings)
        if isinstance(loss, Metric):
            room *= loss.epsilon  # of a cost, the factor
        if room <= 0:
            return Decimal(0)
        found = self.alone(_with(loss, room), delta)
        if found == math.inf:
            return Decimal(0)
        step = MICRO
        most = Decimal(found).quantize(MICRO, rounding=ROUND_FLOOR)
        while most > 0:  # an exact translation may allow a little more for a little less
            if self._covered(most, loss, delta, room):
                advised = Decimal(four_digits(most, "down"))  # what a message advises
                if advised > 0 and self._covered(advised, loss, delta, room):
                    return most
            most, step = max(most - step, Decimal(0)), 2 * step
        return Decimal(0)

    def _asked_again(self, alone: float, asked: Any) -> Decimal:
        """An ε that asks for no more than a release that fits: what was asked, or a little less."""
        if asked is not None:
            return Decimal(float_down(exactly(asked, "epsilon")))
        less = Decimal(float_down(Fraction(alone) * CLEARLY_LESS))
        return less.quantize(MICRO, rounding=ROUND_FLOOR)

    def _covered(self, epsilon: Decimal, like: Charged, delta: Fraction, room: Fraction) -> bool:
        if float(epsilon) < self._translation.least and not isinstance(like, Metric):
            return False  # it would be accepted, and is below what the table can translate
        try:
            if isinstance(like, Concentrated):
                return rho_within(self._translation, float(epsilon), delta) <= room
            if isinstance(like, Metric):
                allowed = self.allowed(epsilon, None, _unit(like.cost))
                return isinstance(allowed, Pure) and allowed.epsilon <= room
        except UnsoundRequest:
            return False
        return Fraction(float(self._translation.to_dp(float(epsilon)))) <= room

    def alone(self, loss: Charged, delta: Fraction) -> float:
        """The Pufferfish ε of a loss if nothing else were ever released."""
        if isinstance(loss, Pure):
            return float(self._translation.to_pufferfish(float_up(loss.epsilon)))
        if isinstance(loss, Concentrated):
            return float(self._translation.total_to_pufferfish(Total().plus(loss), delta))
        unit = _unit(loss.cost)
        factor, price = self._priced.get(unit, (Fraction(0), 0.0))
        if not factor * NEARLY_EQUAL <= loss.epsilon <= factor:
            price = float(self._translation.cost_to_pufferfish(loss.cost))
            _remember(self._priced, unit, (loss.epsilon, price))
        return price


class ConfirmedPrices:
    """Prices that are not below what the translation itself finds, whatever a table says."""

    def __init__(self, translation: PriorTranslation) -> None:
        self._translation = translation
        self._alone: dict[tuple[Total, Fraction], float] = {}

    def confirm(self, cost: ReleaseCost) -> ReleaseCost:
        """The same cost, or a higher one."""
        if cost.by_value is not None:
            return self._by_value(cost, cost.by_value)
        lost = Total(cost.per_entry) if cost.currency == "epsilon" else Total(rho=cost.per_entry)
        if (lost, cost.delta) not in self._alone:
            self._alone[lost, cost.delta] = (
                float(self._translation.to_pufferfish(float_up(lost.epsilon)))
                if cost.currency == "epsilon"
                else self._translation.total_to_pufferfish(lost, cost.delta)
            )
        return replace(cost, alone=max(cost.alone, self._alone[lost, cost.delta]))

    def _by_value(self, cost: ReleaseCost, by_value: Cost) -> ReleaseCost:
        """A price by value, which a table may have lowered by what it says without values."""
        found = self._translation.cost_to_pufferfish(by_value)
        if found <= cost.alone * PRICE_TOLERANCE:
            return cost
        plain = float(self._translation.to_pufferfish(float_up(by_value.scalar)))
        return replace(
            cost,
            alone=max(cost.alone, min(found, plain)),
            without_values=max(cost.without_values or 0.0, plain),
        )


def _remember(prices: dict[K, V], key: K, value: V) -> None:
    """Remember one more; the first that was is forgotten if there are too many."""
    prices[key] = value
    if len(prices) > MAX_PRICES:
        del prices[next(iter(prices))]


def _unit(cost: Cost) -> Cost:
    """The shape of a cost: that of a per-entry loss of 1."""
    return cost * (1 / cost.scalar)


def _with(loss: Charged, amount: Fraction) -> Charged:
    """A loss of the same currency and shape, of another amount."""
    match loss:
        case Pure():
            return Pure(amount)
        case Concentrated():
            return Concentrated(amount)
        case Metric(cost=cost):
            return Metric(_unit(cost) * amount)
