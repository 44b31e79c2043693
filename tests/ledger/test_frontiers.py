"""Totals against plain sums: how they are written, ordered and joined, and which are the worst."""

from fractions import Fraction
from itertools import permutations

import pytest

from takifugu.costs.cost import Cost, Membership
from takifugu.costs.losses import Approximate, Concentrated, Metric, Pure, Total
from takifugu.ledger import frontier
from takifugu.ledger.frontier import ZERO, dominates, worst
from takifugu.ledger.limits import (
    Limit,
    Limits,
    after,
    spent_epsilon,
    to_pufferfish,
)
from tests.ledger.charges import DOUBLING, KNOWN, PLACES, RICH, Places, count, total

# --- as text ---


@pytest.mark.parametrize(
    ("totals", "text"),
    [
        ((total(),), "0 0 0"),
        ((total("1/3"),), "1/3 0 0"),
        ((total("1/3", "1/7"),), "1/3 1/7 0"),
        ((total("1/3", "0", "2"),), "1/3 0 2"),
        ((total("1/3", "1/2", "1/2"),), "1/3 1/2 1/2"),
        ((total("0", "1/7", "2"), total("5")), "0 1/7 2;5 0 0"),
        ((total("3", home="1/2"),), '3 0 0 [["1/2",["member",["home"]]]]'),
        (
            (total("3", "1/4", "5", home="1/2", ward="7"),),
            '3 1/4 5 [["1/2",["member",["home"]]],["7",["member",["ward"]]]]',
        ),
        (
            (Total(costs=Cost.of({Membership(["a b;c"]): 1})), total()),
            '0 0 0 [["1",["member",["a\\u0020b\\u003bc"]]]];0 0 0',
        ),
    ],
)
def test_totals_are_written_in_one_way_and_read_back(totals: tuple[Total, ...], text: str) -> None:
    assert frontier.write(totals) == text
    assert frontier.read(text) == totals
    if len(totals) == 1:
        assert frontier.read_one(text) == totals[0]


NO_LIST = "costs that are no list of coefficients and shapes"
NONE_SUCH = "costs that are none, that belong to ε, or that are written differently"


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("null", NO_LIST),
        ("4", NO_LIST),
        ("[4]", NO_LIST),
        ('[["1",["member",["home"]]],4]', NO_LIST),
        ('[[1,["member",["home"]]]]', NO_LIST),
        ("[]", NONE_SUCH),
        ("{}", NONE_SUCH),
        ('[["1",["any"]]]', NONE_SUCH),
        ('[["1",["any"]],["1",["member",["home"]]]]', NONE_SUCH),
        ('[["0",["member",["home"]]]]', NONE_SUCH),
        ('[["2/4",["member",["home"]]]]', NONE_SUCH),
        ('[["1",["member",["home"]]],["1",["member",["home"]]]]', NONE_SUCH),
        ('[["1",["member",["ward"]]],["1",["member",["home"]]]]', NONE_SUCH),
    ],
)
def test_costs_that_nobody_wrote_are_not_read_and_it_is_told_why(document: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        frontier.read_one(f"0 0 0 {document}")
    with pytest.raises(ValueError, match=why):
        frontier.read(f"1 0 0;0 0 0 {document}")


@pytest.mark.parametrize("text", ["", "0", "0 0", "0 0 0 0 0", "x 0 0", "0 -1 0", "0 0 1/0"])
def test_what_is_no_total_is_not_read(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whoever reads a row says which
        frontier.read(text)


# --- which are the worst ---


def test_every_version_rounds_and_joins_alike() -> None:
    """Stored totals are compared with a replay: these sizes are part of what is stored."""
    kept, long = Fraction(1, 2**1199), Fraction(1, 2**1200)
    assert frontier.bounded(kept) == kept
    assert frontier.bounded(long) == Fraction(1, 2**1150)
    labels = [total(**{f"l{place}": "1"}) for place in range(9)]
    assert len(worst(labels[:8])) == len(worst(labels)) == 8
    assert len(worst([*labels[:8], total("1/2")])) == 8  # one without costs among them
    steps = [total(str(place), str(9 - place)) for place in range(9)]
    assert len(worst(steps[:8])) == 8 and worst(steps) == (total("8", "9"),)
    assert worst([total("1", "1/4"), total("2", "1/4"), total("2", "1/2")]) == (total("2", "1/2"),)


def test_the_worst_stand_in_one_order_whatever_came_first() -> None:
    ordered = (
        total("1", "1/4", "3"),
        total("1", "1/2", "1"),
        total("1", "1/2", "0", home="3"),
        total("1", "1/2", "0", ward="3"),
        total("2"),
    )
    in_order = (ordered[0], ordered[2], ordered[3], ordered[1], ordered[4])
    for given in permutations(ordered):
        assert worst(given) == in_order
        assert worst((*given, total("1", "1/4", "2"), ZERO)) == in_order


@pytest.mark.parametrize(
    ("one", "other", "does"),
    [
        (total(home="1"), total(home="1"), True),
        (total(home="1"), total(home="1.000001"), False),
        (total("1"), total(home="1"), True),  # ε of any change covers a count
        (total("1"), total(home="1.5"), False),
        (total("1", home="1"), total(home="2"), True),
        (total("1", home="1"), total(home="1", ward="1"), True),
        (total("1", home="1"), total("0.5", ward="1"), False),
        (total(home="1"), total(ward="1"), False),
        (total(home="1", ward="1"), total(home="1"), True),
        (total(home="1"), total("0.5"), False),
        (total(home="2"), total(home="1", ward="1"), False),  # more of one is not more of another
        (total(ward="2"), total(home="1", ward="1"), False),
        (total("1", home="2"), total("0.5", home="1", ward="0.6"), False),
        (total("1", home="2"), total("0.5", home="1", ward="0.5"), True),
        (total("1", home="1"), total("0", home="1.5", ward="0.6"), False),
        (total(home="1"), total(delta="1e-9"), False),
    ],
)
def test_what_is_more_of_epsilon_makes_up_for_less_of_a_count(
    one: Total, other: Total, does: bool
) -> None:
    assert dominates(one, other) is does
    if does:
        for pair in permutations(PLACES, 2):
            assert one.cost.between(*pair) >= other.cost.between(*pair)


def test_what_is_spent_is_at_most_a_budget_that_admits_it() -> None:
    class Loose(Places):
        """Translates a cost to a little more than it should."""

        def cost_to_pufferfish(self, *costs: Cost) -> float:
            return super().cost_to_pufferfish(*costs) * (1 + 2**-30)

    loose = Loose()
    spent = (Total().plus(count("1", "home")),)
    exact = to_pufferfish(KNOWN, spent, Fraction(0))
    assert exact == 4.0
    assert to_pufferfish(loose, spent, Fraction(0)) > 4.0
    assert spent_epsilon(loose, spent, None, Fraction(0)) > 4.0
    assert spent_epsilon(loose, spent, Fraction(4), Fraction(0)) > 4.0  # not admitted
    assert spent_epsilon(loose, spent, Fraction(5), Fraction(0), Limits()) > 4.0
    assert spent_epsilon(loose, spent, Fraction(6), Fraction(0)) < 4.1


def test_room_is_that_of_the_currency_beside_what_was_spent() -> None:
    limit = Limit(DOUBLING, Fraction(4), Fraction(0))
    assert limit.room((total("0.5"),), Pure("1")) == Fraction(3, 2)
    assert limit.room((total("0.5"), total("1.5")), Pure("1")) == Fraction(1, 2)
    assert limit.room((total("0.5"),), Metric(Cost.any(2))) == Fraction(3, 4)
    known = Limit(KNOWN, Fraction(12), Fraction(0))
    assert known.room((total(),), count("1", "home")) == 3  # four times what it costs
    assert known.room((total(home="1"),), count("1", "home")) == 2
    assert known.room((total(),), count("1", "home"), (total(home="3"),)) == 3
    full = (total(home="3"),)  # which takes the whole budget by value, and more than it by ε
    assert known.room((total(),), Pure("1"), full) == 0
    assert known.admits(full) and not known.admits(after((total(),), Pure("1e-9"), full))
    half = (total(home="1.5"),)
    room = known.room((total(),), Pure("1"), half)
    assert room == 2 and known.admits(after((total(),), Pure(room), half))
    most = (total(home="2.5"),)
    room = known.room((total(),), Pure("1"), most)
    assert room == 1 and known.admits(after((total(),), Pure(room), most))  # 10 + 2 · 1
    rich = Limit(RICH, Fraction(1), Fraction(1, 1000))
    assert rich.room((total(),), Concentrated("0.001")) > 0
    assert rich.room((total(),), Approximate("0.1", "1e-6")) > 0
    assert rich.room((total(),), Approximate("0.1", "0.01")) == 0  # more δ than there is
    assert rich.room((total(),), Concentrated("0.001"), (total(home="9"),)) == 0
