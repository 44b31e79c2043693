"""Totals and accounts against plain sums: how they are written, ordered, joined and replayed."""

from fractions import Fraction
from itertools import permutations

import pytest

from takifugu.costs.cost import Cost, Membership
from takifugu.costs.losses import Total
from takifugu.ledger import frontier
from takifugu.ledger.frontier import ZERO, worst
from tests.ledger.charges import count

pytestmark = pytest.mark.nightly


def total(epsilon: str = "0", delta: str = "0", rho: str = "0", **counts: str) -> Total:
    """A total of currencies and of counts of single labels."""
    found = Total(Fraction(epsilon), Fraction(delta), Fraction(rho))
    for label, size in counts.items():
        found = found.plus(count(size, label))
    return found


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
