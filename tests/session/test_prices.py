"""Prices by translations that are exact: what is charged, what fits, and what is left, by hand."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from takifugu._core.rounding import float_up
from takifugu.costs.cost import ANY, Cost, Membership
from takifugu.costs.losses import Concentrated, Loss, Metric, Pure, Total
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Position, Standing
from takifugu.ledger.charging import Payer
from takifugu.ledger.limits import Limit
from takifugu.priors.secrets import Secrets
from takifugu.session.release_cost import (
    CLEARLY_LESS,
    MAX_PRICED_COLUMNS,
    NEARLY_EQUAL,
    AnalystCost,
    Charged,
    Prices,
    ReleaseCost,
    beside_what_is_left,
    checked_delta,
)
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.rows.row_translation import RowTranslation
from tests.ledger.charges import DOUBLING, KNOWN, RICH, Doubling, Identity, Places, Rich, count
from tests.raising import raises

NONE = Fraction(0)
HOME = Cost.of({Membership(["home"]): 1})
TINY = Fraction(1, 2**70)


def standing(
    translation: LossTranslation,
    budget: str,
    *spent: Loss,
    delta: str = "0",
    analyst: str | None = None,
    elsewhere: Sequence[Loss] = (),
) -> Standing:
    """An account whose touched cells have lost ``spent``, and others ``elsewhere``."""
    here, there = Total(), Total()
    for loss in spent:
        here = here.plus(loss)
    for loss in elsewhere:
        there = there.plus(loss)
    overall = (here, there) if elsewhere else (here,)
    payer = Payer(analyst, Fraction(budget), Fraction(delta), overall, (here,))
    return Standing.under(payer, Limit(translation, Fraction(budget), Fraction(delta)))


def priced(
    translation: LossTranslation, loss: Any, *standings: Standing, **how: Any
) -> ReleaseCost:
    delta = how.pop("delta", NONE)
    return Prices("ward", translation).of(loss, delta, standings, **how)


# --- a price, after others and before ---


def test_a_price_beside_what_was_spent() -> None:
    whole = standing(DOUBLING, "4", Pure("0.5"))
    found = priced(DOUBLING, Pure("0.25"), whole)
    assert (found.alone, found.before, found.after, found.fits) == (0.5, 1.0, 1.5, True)
    assert (found.marginal, found.after, found.most) == (0.5, 1.5, Decimal(3))
    assert (found.currency, found.per_entry, found.delta) == ("epsilon", Fraction(1, 4), NONE)
    assert found.budget == 4 and found.budget_delta == 0 and found.own is None and not found.reuse
    assert found.by_value is None and found.without_values is None and found.by_column is None


class Wobbling(Doubling):
    """A bound that is searched for: that of a larger loss may end below that of a smaller one."""

    fingerprint = "wobbling"

    def to_pufferfish(self, dp: float, /) -> float:
        """Rounded up, and a little more for some losses."""
        return 2 * dp + (0.5 if dp == 0.5 else 0)


def test_what_is_spent_after_a_release_is_never_less_than_before() -> None:
    translation = Wobbling()
    whole = standing(translation, "4", Pure("0.5"))
    found = priced(translation, Pure("0.125"), whole)
    assert (found.before, found.after, found.marginal) == (1.5, 1.5, 0.0)


def test_all_of_a_budget_fits_and_no_more() -> None:
    whole = standing(DOUBLING, "4", Pure("0.5"))
    assert priced(DOUBLING, Pure("1.5"), whole).fits
    above = priced(DOUBLING, Pure(Fraction("1.5") + TINY), whole)
    assert not above.fits and above.after is None and above.marginal is None
    assert above.most == 3
    full = priced(DOUBLING, Pure(1), standing(DOUBLING, "4", Pure(2)))
    assert not full.fits and full.most == 0


def test_a_budget_of_an_analyst_pays_beside_that_of_the_whole() -> None:
    whole = standing(DOUBLING, "4", Pure("0.5"))
    mine = standing(DOUBLING, "2", Pure("0.25"), analyst="Ann")
    found = priced(DOUBLING, Pure("0.25"), whole, mine)
    assert found.own == AnalystCost("Ann", Fraction(2), 0.5, 1.0)
    assert found.after == 1.5 and found.most == Decimal("1.5")  # the lesser room
    assert priced(DOUBLING, Pure("0.25"), mine, whole) == found  # in any order
    small = standing(DOUBLING, "0.75", Pure("0.25"), analyst="Ann")
    short = priced(DOUBLING, Pure("0.25"), whole, small)
    assert not short.fits and short.own == AnalystCost("Ann", Fraction(3, 4), 0.5, None)
    assert short.after is None
    assert short.describe()["own"] == {
        "analyst": "Ann",
        "budget": "3/4",
        "before": 0.5,
        "after": None,
    }


def test_an_answer_that_is_stored_adds_nothing_even_to_a_budget_that_is_full() -> None:
    whole = standing(DOUBLING, "4", Pure(2))
    mine = standing(DOUBLING, "2", Pure(1), analyst="Ann")
    found = priced(DOUBLING, Pure("0.25"), whole, mine, stored=True)
    assert found.fits and found.before == found.after == 4.0 and found.marginal == 0.0
    assert found.own == AnalystCost("Ann", Fraction(2), 2.0, 2.0)


def test_what_another_analyst_has_costs_this_one_alone() -> None:
    full = standing(DOUBLING, "4", Pure(2))
    mine = standing(DOUBLING, "2", Pure("0.25"), analyst="Ann")
    found = priced(DOUBLING, Pure("0.25"), full, mine, reuse=True)
    assert found.fits and found.reuse and found.before == found.after == 4.0
    assert found.own == AnalystCost("Ann", Fraction(2), 0.5, 1.0)
    assert "'Ann'" in found.reuse_words and "1 of 2 is spent" in found.reuse_words
    empty = standing(DOUBLING, "2", Pure(1), analyst="Ann")
    assert not priced(DOUBLING, Pure("0.25"), full, empty, reuse=True).fits
    assert not priced(DOUBLING, Pure("0.25"), full, mine).fits  # without reuse both pay


def test_rows_that_were_not_read_count_in_what_is_spent_and_not_in_the_room() -> None:
    whole = standing(DOUBLING, "4", Pure("0.5"), elsewhere=[Pure("1.5")])
    found = priced(DOUBLING, Pure("0.25"), whole)
    assert found.before == found.after == 3.0 and found.marginal == 0.0 and found.most == 3


def test_a_price_is_at_most_what_was_asked_for() -> None:
    whole = standing(DOUBLING, "4")
    assert priced(DOUBLING, Pure("0.25"), whole, asked="0.375").alone == 0.375
    assert priced(DOUBLING, Pure("0.25"), whole, asked="0.6").alone == 0.5


def test_a_price_in_rho_is_at_its_delta() -> None:
    delta = Fraction(1, 1000)
    whole = standing(RICH, "10", Concentrated("0.01"), delta="1/1000")
    found = priced(RICH, Concentrated("0.25"), whole, delta=delta)
    alone = 0.25 + 2 * math.sqrt(0.25 * math.log(1000))
    assert found.currency == "rho" and found.per_entry == Fraction(1, 4) and found.delta == delta
    assert alone <= found.alone <= alone * (1 + 1e-9) and found.fits
    assert found.words.endswith(" at delta = 0.001")
    assert found.after is not None and found.before < found.after < found.before + found.alone
    pure = priced(RICH, Pure("0.25"), whole, delta=delta)
    assert (pure.currency, pure.delta, pure.alone) == ("epsilon", NONE, 0.25)


def test_a_cost_by_value_is_charged_as_it_is_and_never_above_its_epsilon() -> None:
    """Six changes between three places; a count of one of them tells four apart."""
    whole = standing(KNOWN, "12")
    found = priced(KNOWN, count("0.5", "home"), whole)
    assert found.alone == 2.0 and found.without_values == 3.0 and found.per_entry == Fraction(1, 2)
    assert found.by_value == count("0.5", "home").cost and found.currency == "epsilon"
    assert 2 * CLEARLY_LESS - Fraction(2, 10**6) < Fraction(found.most) <= 2 * CLEARLY_LESS
    assert found.most.as_tuple().exponent == -6
    asked = priced(KNOWN, count("0.5", "home"), whole, asked="2.25")
    assert asked.most == Decimal("2.25") and asked.alone == 2.0

    class Dear(Places):
        """By value it says more than its ε does: a bound that is searched for may."""

        def cost_to_pufferfish(self, *costs: Cost) -> float:
            """Too much."""
            return 2 * super().cost_to_pufferfish(*costs)

    dear = priced(Dear(), count("0.5", "home"), standing(Dear(), "12"))
    assert dear.alone == dear.without_values == 3.0


# --- the price of a shape is remembered, and never for more than it was found for ---


class Counting(Places):
    """Counts how often costs are translated."""

    asked = 0

    def cost_to_pufferfish(self, *costs: Cost) -> float:
        """As it is."""
        self.asked += 1
        return super().cost_to_pufferfish(*costs)


def test_a_remembered_price_is_for_what_is_nearly_as_much_and_never_for_more() -> None:
    translation = Counting()
    prices = Prices("ward", translation)
    allowed = prices.allowed("2", None, HOME)
    assert isinstance(allowed, Pure) and Fraction("0.49") < allowed.epsilon <= Fraction(1, 2)
    known, factor = translation.asked, allowed.epsilon
    price = prices.alone(Metric(HOME * factor), NONE)
    assert price == KNOWN.cost_to_pufferfish(HOME * factor) <= 2
    assert prices.alone(Metric(HOME * (factor * NEARLY_EQUAL)), NONE) == price
    assert translation.asked == known  # nothing was translated again
    less = factor * NEARLY_EQUAL - TINY
    assert prices.apart().alone(Metric(HOME * less), NONE) < price
    more = factor * (1 + Fraction(1, 2**30))
    assert prices.alone(Metric(HOME * more), NONE) == KNOWN.cost_to_pufferfish(HOME * more) > price
    known = translation.asked
    assert prices.alone(Metric(HOME * more), NONE) > price and translation.asked == known
    half = prices.alone(Metric(HOME * (more / 2)), NONE)
    assert half == KNOWN.cost_to_pufferfish(HOME * (more / 2)) < price


class Kept:
    """Factors in memory."""

    def __init__(self, **known: Fraction) -> None:
        self.known = {float(name.strip("_")): factor for name, factor in known.items()}
        self.kept: list[tuple[Cost, float, Fraction]] = []

    def find(self, unit: Cost, pufferfish: float, /) -> Fraction | None:
        """What is known for a loss."""
        assert unit == HOME
        return self.known.get(pufferfish)

    def keep(self, unit: Cost, pufferfish: float, factor: Fraction, /) -> None:
        """Note it."""
        self.kept.append((unit, pufferfish, factor))


def test_a_kept_factor_is_used_if_it_is_within_and_found_again_if_it_is_not() -> None:
    kept = Kept(_2=Fraction(1, 2), _1=Fraction(1, 4) + TINY)
    prices = Prices("ward", KNOWN, kept)
    assert prices.allowed("2", None, HOME) == Pure("0.5") and not kept.kept  # all of it: 4·0.5
    found = prices.allowed("1", None, HOME)
    assert isinstance(found, Pure) and found.epsilon <= Fraction(1, 4)
    assert kept.kept == [(HOME, 1.0, found.epsilon)]
    assert prices.allowed("1", None, HOME) == found and len(kept.kept) == 1


# --- what an ε allows ---


def test_an_epsilon_allows_what_its_translation_says() -> None:
    prices = Prices("ward", DOUBLING)
    assert prices.allowed("3", None) == Pure("1.5")
    rho = Prices("ward", RICH).allowed("3", Fraction(1, 1000))
    assert isinstance(rho, Concentrated) and rho.rho > 0
    assert RICH.total_to_pufferfish(Total(rho=rho.rho), Fraction(1, 1000)) <= 3


class Tabled(Doubling):
    """A table that begins at 1/2."""

    @property
    def least(self) -> float:
        """Where it begins."""
        return 0.5

    def to_cost(self, unit: Cost, pufferfish: float, **_: Any) -> Fraction:
        """Costs are translated without the table."""
        return Fraction(pufferfish) / 2 / unit.scalar


def test_nothing_is_asked_of_a_table_below_its_beginning() -> None:
    prices = Prices("ward", Tabled())
    assert prices.allowed("0.5", None) == Pure("0.25")
    below = math.nextafter(0.5, 0)
    with raises(UnsoundRequest, field="epsilon", reason="below-table", given=below, needed=0.5):
        prices.allowed(below, None)
    with raises(UnsoundRequest, reason="below-table"):
        prices.allowed(below, Fraction(1, 1000), HOME)
    assert prices.allowed("0.25", None, HOME) == Pure("0.125")  # by value, without the table
    whole = standing(Tabled(), "4", Pure("1.875"))
    assert priced(Tabled(), Pure("0.25"), whole).most == 0  # 0.25 fits, and cannot be asked for
    assert priced(Tabled(), Pure("0.25"), standing(Tabled(), "4", Pure("1.75"))).most == 1 / 2


class Shifted(Doubling):
    """A table that says too much or nothing in one direction."""

    def __init__(self, factor: Fraction) -> None:
        self.factor = factor

    def to_cost(self, unit: Cost, pufferfish: float, **_: Any) -> Fraction:
        """As many times as it should be."""
        return self.factor * Fraction(pufferfish) / 2 / unit.scalar


def test_a_factor_that_contradicts_the_other_direction_is_refused() -> None:
    assert Prices("ward", Shifted(Fraction(1))).allowed("2", None, HOME) == Pure(1)
    more = 1 + Fraction(1, 2**40)
    with raises(UnsoundRequest, field="translation", given=more, needed=2.0):
        Prices("ward", Shifted(more)).allowed("2", None, HOME)
    for nothing in (Fraction(0), Fraction(-1)):
        with raises(UnsoundRequest, field="epsilon", reason="no allowance", given=2.0):
            Prices("ward", Shifted(nothing)).allowed("2", None, HOME)


def test_a_mechanism_that_loses_more_than_was_asked_is_refused() -> None:
    prices, delta = Prices("ward", DOUBLING), Fraction(1, 1000)
    prices.certify(Pure("0.5"), 1, NONE)
    with raises(UnsoundRequest, field="translation"):
        prices.certify(Pure(Fraction("0.5") + TINY), 1, NONE)
    known = Prices("ward", KNOWN)
    known.certify(count("0.25", "home"), 1, NONE)
    with pytest.raises(UnsoundRequest):
        known.certify(count(Fraction("0.25") + TINY, "home"), 1, NONE)
    rich = Prices("ward", RICH)
    fits = rich.allowed("1", delta)
    rich.certify(fits, 1, delta)
    assert isinstance(fits, Concentrated)
    with pytest.raises(UnsoundRequest):
        rich.certify(Concentrated(fits.rho * Fraction(101, 100)), 1, delta)


# --- what may be asked for at most ---


class Steps(LossTranslation):
    """Losses come in whole steps."""

    def to_pufferfish(self, dp: float, /) -> float:
        """Rounded up to a whole number."""
        return float(math.ceil(dp))

    def to_dp(self, pufferfish: float, /) -> float:
        """Rounded down to a whole number."""
        return float(math.floor(pufferfish))


def test_the_most_that_is_advised_is_accepted_where_prices_come_in_steps() -> None:
    """With half of 2 spent, 1.5 is left: 2 would ask for all of 2, and 1.999999 asks for 1."""
    found = priced(Steps(), Pure(1), standing(Steps(), "2", Pure("0.5")))
    assert found.most == Decimal("1.999999")
    assert priced(Steps(), Pure(1), standing(Steps(), "2")).most == 2


class Uneven(Identity):
    """It allows a little more for 1.234 than for what lies on both sides, as searches may."""

    def to_dp(self, pufferfish: float, /) -> float:
        """As it is, but for one number."""
        return pufferfish * (1.1 if pufferfish == 1.234 else 1)


def test_what_is_advised_is_looked_for_below_a_number_that_is_not_accepted() -> None:
    found = priced(Uneven(), Pure(1), standing(Uneven(), "2", Pure("0.76544"))).most
    assert Decimal("1.23") < found < Decimal("1.234")


class Loose(Identity):
    """Its price of a loss is a little above what its allowance says."""

    def __init__(self, gap: Fraction) -> None:
        self.gap, self.asked = gap, 0

    def to_pufferfish(self, dp: float, /) -> float:
        """Too much, by the gap."""
        return float_up(Fraction(dp) * (1 + self.gap))

    def to_dp(self, pufferfish: float, /) -> float:
        """As it is, and counted."""
        self.asked += 1
        return pufferfish


def test_there_is_no_most_where_nothing_is_left_or_no_loss_is_known() -> None:
    class Unknown(Doubling):
        """A total with ρ means nothing to it."""

        def total_to_pufferfish(self, total: Total, delta: Fraction, /) -> float:
            """Unknown."""
            del delta
            return math.inf if total.rho else super().total_to_pufferfish(total, NONE)

    delta = Fraction(1, 1000)
    whole = standing(Unknown(), "4", delta="1/1000")
    prices = Prices("ward", Unknown())
    assert prices.most(Concentrated(1), delta, [whole]) == 0
    assert prices.most(Pure(1), NONE, [whole]) == 4
    assert prices.most(Pure(1), NONE, [standing(DOUBLING, "4", Pure(2))]) == 0
    assert prices.most(Pure(1), NONE, [whole, standing(DOUBLING, "4", Pure("1.5"))]) == 1


@pytest.mark.parametrize("spent", ["0", "0.5", "1.25"])
def test_the_most_in_rho_and_by_value_is_accepted(spent: str) -> None:
    delta = Fraction(1, 1000)
    rich = standing(RICH, "8", Pure(spent), delta="1/1000")
    prices = Prices("ward", RICH)
    most = prices.most(Concentrated("0.01"), delta, [rich])
    allowed = prices.allowed(most, delta)
    assert most > 1 and rich.admits(allowed) and most.as_tuple().exponent == -6
    price = prices.alone(Concentrated(rich.room(Concentrated(1))), delta)
    assert 0 <= Fraction(price) - Fraction(most) < Fraction(1, 10**6)  # no less than it need be
    known = standing(KNOWN, "12", count(spent, "ward"))
    by_value = Prices("ward", KNOWN)
    most = by_value.most(count("0.125", "home"), NONE, [known])
    factor = by_value.allowed(most, None, HOME)
    assert isinstance(factor, Pure) and known.admits(Metric(HOME * factor.epsilon))
    above = by_value.allowed(most + Decimal("0.001"), None, HOME)
    assert isinstance(above, Pure) and not known.admits(Metric(HOME * above.epsilon))


def test_a_delta_above_that_of_a_budget_is_refused() -> None:
    prices, delta = Prices("ward", RICH), Fraction(1, 1000)
    whole = Position("ward", None, Fraction(1), delta, (Total(),))
    mine = replace(whole, analyst="Ann", delta=delta / 2)
    prices.refuse_delta(delta, [whole])
    prices.refuse_delta(delta / 2, [whole, mine])
    above = delta + TINY
    with raises(UnsoundRequest, field="delta", reason="above-budget", given=above, needed=delta):
        prices.refuse_delta(above, [whole])
    with raises(UnsoundRequest, reason="above-budget", needed=delta / 2) as caught:
        prices.refuse_delta(delta, [whole, mine])
    assert "'Ann'" in str(caught.value)


@pytest.mark.parametrize("wrong", [0, 1, -1, 2, "1.5"])
def test_a_delta_is_between_0_and_1(wrong: Any) -> None:
    with raises(UnsoundRequest, field="delta", given=Fraction(wrong)):
        checked_delta(wrong)


def test_a_delta_next_to_0_or_1_is_taken_as_it_is() -> None:
    for right in (Fraction(1, 10**30), 1 - Fraction(1, 10**9)):
        assert checked_delta(right) == right


# --- words and numbers of a price ---


def cost(**changes: Any) -> ReleaseCost:
    parts: dict[str, Any] = {
        "currency": "epsilon",
        "per_entry": Fraction(1, 4),
        "delta": NONE,
        "alone": 0.5,
        "before": 1.0,
        "after": 1.5,
        "budget": Fraction(4),
        "budget_delta": NONE,
        "fits": True,
        "most": Decimal(3),
    }
    return ReleaseCost(**(parts | changes))


def test_what_a_release_adds_is_rounded_up() -> None:
    third = cost(before=0.1, after=0.7)
    assert third.marginal is not None and Fraction(third.marginal) >= Fraction(0.7) - Fraction(0.1)
    assert third.marginal == float_up(Fraction(0.7) - Fraction(0.1))
    assert cost(before=2.0, after=1.0).marginal == 0.0  # a bound that is searched for may fall
    assert cost(after=1.0).marginal == 0.0 and cost(after=None).marginal is None
    assert cost(before=math.inf, after=math.inf).marginal == 0.0


def test_a_price_in_words() -> None:
    assert cost().words == "epsilon = 0.5" and cost().alone_words == "epsilon = 0.5 alone"
    with_delta = cost(alone=0.50001, delta=Fraction(1, 3000))
    assert with_delta.words == "epsilon = 0.5001 at delta = 0.0003334"
    assert cost(after=1.00001).spent_words == "1.001 of 4 is spent"
    own = AnalystCost("Ann", Fraction(20001, 10000), 0.5, 1.00001)
    said = "1.5 of 4 is spent; 1.001 of 2 is spent by analyst 'Ann'"
    assert cost(own=own).spent_words == said
    assert cost().reuse_words == "epsilon = 0.5"
    assert cost(own=own).reuse_words.startswith("epsilon = 0.5 of the budget of analyst 'Ann'")


def test_the_price_of_each_column_largest_first() -> None:
    named = {f"c{place}": 1.0 + place for place in range(MAX_PRICED_COLUMNS)}
    ranked = ", ".join(f"c{place} {place + 1}" for place in reversed(range(MAX_PRICED_COLUMNS)))
    assert cost(by_column=named).alone_words == f"epsilon = 0.5 alone ({ranked})"
    more = named | {"x": 0.50001, "y": 0.25}
    words = cost(by_column=more).alone_words
    assert words == f"epsilon = 0.5 alone ({ranked}, 2 more at most 0.5001)"
    same = cost(by_column={"a": 1.0, "b": 1.0})
    assert same.alone_words == "epsilon = 0.5 alone, for each column"
    assert cost(by_column={"a": 1.0, "b": 1.5}).alone_words.endswith("(b 1.5, a 1)")


def test_odds_of_a_release_that_does_not_fit_are_those_of_the_budget() -> None:
    fits, not_fits = cost().odds_words, cost(fits=False, after=None).odds_words
    assert "from this release" in fits and "this release" not in not_fits
    assert "all that the budget admits" in fits and "all that the budget admits" in not_fits


def test_a_price_as_json() -> None:
    found = cost(
        by_value=HOME,
        without_values=0.75,
        by_column={"a": 0.5, "b": math.inf},
        own=AnalystCost("Ann", Fraction(2), 0.5, math.inf),
        reuse=True,
    ).describe()
    odds = found.pop("odds")
    assert found == {
        "currency": "epsilon",
        "per_entry": "1/4",
        "delta": "0",
        "alone": 0.5,
        "before": 1.0,
        "after": 1.5,
        "marginal": 0.5,
        "budget": "4",
        "budget_delta": "0",
        "fits": True,
        "most": "3",
        "own": {"analyst": "Ann", "budget": "2", "before": 0.5, "after": None},
        "reuse": True,
        "by_value": HOME.document(),
        "without_values": 0.75,
        "by_column": {"a": 0.5, "b": None},
    }
    assert odds["alone"]["epsilon"] == 0.5 and odds["budget"]["epsilon"] == 4.0
    plain = cost(alone=math.inf).describe()
    assert plain["alone"] is plain["own"] is plain["by_value"] is plain["by_column"] is None


@pytest.mark.parametrize(
    ("most", "left", "spent", "says"),
    [
        ("0.998", 1.0, 0.0, ""),
        ("0.997999", 1.0, 0.0, "steps"),
        ("0.997999", 1.0, 0.5, "add up"),
        ("1", 0.5, 0.5, "add up"),
        ("0.5", 0.49901, 0.5, ""),
        ("0", 1.0, 0.5, ""),
        ("0.000001", 1.0, 1.0, "add up"),
    ],
)
def test_the_most_that_differs_from_what_is_left_is_explained(
    most: str, left: float, spent: float, says: str
) -> None:
    found = beside_what_is_left(Decimal(most), left, spent)
    assert says in found if says else found == ""


def test_a_shape_is_priced_per_entry_whatever_its_amount() -> None:
    """Two amounts of one shape share what is remembered; another shape has its own."""
    prices = Prices("ward", KNOWN)
    other = Cost.of({Membership(["ward"]): 1, ANY: 1})
    first = prices.alone(Metric(HOME * 2), NONE)
    second = prices.alone(Metric(other * 2), NONE)
    assert first == 8.0 and second == KNOWN.cost_to_pufferfish(other * 2) > first
    assert prices.alone(Metric(HOME * 2), NONE) == first


def test_what_was_asked_is_told_again_and_never_a_rounding_more() -> None:
    """2.1 and 2.3 are no floats, and lie on different sides of the nearest one."""
    for asked in ("2.1", "2.3"):
        found = priced(KNOWN, count("0.5", "home"), standing(KNOWN, "12"), asked=asked)
        assert 0 <= Fraction(asked) - Fraction(found.most) < Fraction(1, 10**12)


def test_a_factor_may_be_within_by_its_epsilon_alone() -> None:
    class Covered(Places):
        """By value it says twice as much as it need, and allows what the ε that covers it does."""

        def cost_to_pufferfish(self, *costs: Cost) -> float:
            """Too much."""
            return 2 * super().cost_to_pufferfish(*costs)

        def to_cost(self, unit: Cost, pufferfish: float, **_: Any) -> Fraction:
            """By the ε that covers a cost."""
            return Fraction(self.to_dp(pufferfish)) / unit.scalar

    prices = Prices("ward", Covered())
    assert prices.allowed("1.5", None, HOME) == Pure("0.25")
    assert prices.alone(Metric(HOME * Fraction(1, 4)), NONE) == 1.5  # and not the 2 by value


# --- by column, and at the edges ---


TIMES = {"heat": 2, "place": 3}


class ByFactor(RowTranslation):
    """Each column loses so many times the largest cost, exactly; what it was asked is noted."""

    over = "row"

    def __init__(self, *columns: str) -> None:
        prior: Any = object()
        super().__init__({"prior": prior}, {column: Secrets() for column in columns})
        self.asked: list[tuple[Cost, ...]] = []

    def by_column(self, costs: tuple[Cost, ...], /) -> Mapping[str, float]:
        """A factor of the largest."""
        self.asked.append(costs)
        largest = max(cost.scalar for cost in costs)
        return {column: float(TIMES[column] * largest) for column in self.secrets}


@pytest.mark.nightly
def test_one_column_pays_all_of_a_price() -> None:
    found = priced(ByFactor("heat"), Pure("0.25"), standing(ByFactor("heat"), "8"))
    assert found.by_column is None and found.alone == 0.5


@pytest.mark.nightly
def test_each_column_pays_its_part_and_no_more_than_the_price() -> None:
    rows = ByFactor("heat", "place")
    found = priced(rows, Pure("0.25"), standing(rows, "8"))
    assert found.alone == 0.75 and found.by_column == {"heat": 0.5, "place": 0.75}


# --- edges of prices and of what is advised ---


@pytest.mark.nightly
def test_a_price_is_of_a_loss_that_is_rounded_up() -> None:
    third = Prices("ward", DOUBLING).alone(Pure("1/3"), NONE)
    assert third == 2 * float_up(Fraction(1, 3)) and Fraction(third) > Fraction(2, 3)


@pytest.mark.nightly
def test_a_most_below_a_millionth_is_told_as_nothing() -> None:
    nearly_full = standing(DOUBLING, "4", Pure(2 - Fraction(1, 10**9)))
    found = priced(DOUBLING, Pure("0.25"), nearly_full)
    assert found.most == 0 and found.describe()["most"] == "0"


@pytest.mark.nightly
def test_the_most_is_lowered_to_what_is_covered_also_below_one() -> None:
    found = priced(Loose(Fraction(6, 10**6)), Pure("0.25"), standing(Loose(NONE), "0.5"))
    assert Decimal("0.499995") <= found.most <= Decimal("0.5")


@pytest.mark.nightly
def test_what_is_advised_in_four_digits_must_be_accepted_too() -> None:
    """0.5001 may be asked for, and a message would advise 0.5, which is below the table."""

    class Later(Doubling):
        least = 0.50005

    whole = standing(Later(), "4", Pure(2 - Fraction("0.25004")))
    assert priced(Later(), Pure("0.25"), whole).most == 0
    whole = standing(Later(), "4", Pure(2 - Fraction("0.25005")))
    assert priced(Later(), Pure("0.25"), whole).most == Decimal("0.5001")


# --- where each would be refused ---


DELTA = Fraction(1, 1000)
HOME = Cost.of({Membership(["home"]): 1})


class NothingByValue(Places):
    """It has a price for every cost, and finds no cost for any loss."""

    def to_cost(self, unit: Cost, pufferfish: float, **_: Any) -> Fraction:
        """Nothing."""
        del unit, pufferfish
        return Fraction(0)


class NothingInRho(Rich):
    """It has a price for every ρ, and finds no ρ for any loss."""

    def to_dp(self, pufferfish: float, /) -> float:
        """Nothing."""
        del pufferfish
        return 0.0


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("translation", "other", "loss", "unit", "delta"),
    [
        (NothingByValue(), KNOWN, count("0.125", "home"), HOME, None),
        (NothingInRho(), RICH, Concentrated("0.01"), Cost.any(1), DELTA),
    ],
    ids=["by value", "rho"],
)
def test_no_epsilon_is_advised_where_each_would_be_refused(
    translation: LossTranslation,
    other: LossTranslation,
    loss: Charged,
    unit: Cost,
    delta: Fraction | None,
) -> None:
    room = Standing.under(
        Payer(None, Fraction(8), DELTA, (Total(),), (Total(),)), Limit(other, Fraction(8), DELTA)
    )
    at = delta or Fraction(0)
    assert Prices("ward", other).most(loss, at, [room]) > 1
    prices = Prices("ward", translation)
    for epsilon in (8, 1, "0.001"):
        with pytest.raises(UnsoundRequest):
            prices.allowed(epsilon, delta, unit)
    assert prices.most(loss, at, [room]) == 0
