"""Totals and accounts against plain sums: how they are written, ordered, joined and replayed."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

import pytest

from takifugu.costs import Cost, Distance, Matrix, Membership
from takifugu.ledger.accounts import frontier
from takifugu.ledger.accounts.account import WHOLE, Account, Book, Books, Shape, Touch, contents
from takifugu.ledger.accounts.frontier import MOST_TOTALS, ZERO, covering, dominates, worst
from takifugu.ledger.accounts.standings import Payer, Standing
from takifugu.ledger.charge_values import loss_body
from takifugu.ledger.entries_read import BEGINNING, END
from takifugu.losses import Approximate, Concentrated, Loss, Pure, Total
from tests.ledger.charges import count

pytestmark = pytest.mark.nightly

HOME, WARD = Membership(["home"]), Membership(["ward"])


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


def test_a_total_of_which_every_part_is_long_is_rounded_up_in_every_part() -> None:
    tiny = Fraction(1, 2**1300)
    one, two, four = (Fraction(place, 3) + tiny for place in (1, 2, 4))
    found = frontier.joined(Total(one, two, four), total("1", "2", "3"))
    exact = one + 1, two + 2, four + 3
    parts = found.epsilon, found.delta, found.rho
    assert parts == tuple(map(frontier.bounded, exact))
    for long, part in zip(exact, parts, strict=True):
        assert long < part < long + Fraction(1, 2**1100)


def test_the_same_costs_dominate_with_no_less_of_all_else() -> None:
    same = total("1", "1/8", "1/4", home="1")
    assert dominates(same, same)
    more = Total(Fraction(2), same.delta, same.rho, same.costs)
    assert dominates(more, same) and not dominates(same, more)


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


def test_a_shape_counts_for_less_than_epsilon_by_how_far_it_reaches() -> None:
    """A matrix of at most 1/2 is covered by half of an ε."""
    near = Matrix(["home", "ward"], [[0, "1/4"], ["1/2", 0]])
    other = Total(costs=Cost.of({near: 2}))
    for epsilon, does in (("1", True), ("0.999", False), ("2", True)):
        assert dominates(total(epsilon), other) is does
        more = Total(Fraction(epsilon) + 3, costs=Cost.of({near: 1, HOME: 1}))
        both = Total(Fraction(3), costs=Cost.of({near: 3, HOME: 1}))
        assert dominates(more, both) is does
    assert dominates(Total(costs=Cost.of({near: 2, HOME: 1})), other)
    assert not dominates(Total(costs=Cost.of({near: 1, HOME: 1})), other)


def test_what_is_more_of_one_currency_does_not_make_up_for_another() -> None:
    base = total("1", "1/8", "1/4", home="1")
    for less in (
        total("7/8", "1/8", "1/4", home="9"),
        total("9", "1/9", "1/4", home="9"),
        total("9", "1/8", "1/5", home="9"),
    ):
        assert not dominates(less, base)
    assert dominates(total("1", "1/8", "1/4", home="1"), base)
    assert dominates(total("2", "1/8", "1/4"), base)
    assert not dominates(total("1.9", "1/8", "1/4"), base)


def apart(one: Total, other: Total) -> tuple[Fraction, Fraction]:
    """How far two totals are from each other, by hand: in δ and ρ, then in all else."""
    mine, others = one.costs.coefficients, other.costs.coefficients
    costs = [abs(mine.get(s, Fraction(0)) - others.get(s, Fraction(0))) for s in {*mine, *others}]
    first = abs(one.delta - other.delta) + abs(one.rho - other.rho)
    return first, abs(one.epsilon - other.epsilon) + sum(costs, Fraction(0))


GROWN: Sequence[tuple[Total, Total]] = (
    (total("1", "1/8", "1/4", home="3", ward="2"), total("4", "1/2", "1", home="1", work="5")),
    (total("4"), total("1")),
    (total(home="2"), total(home="5")),
    (total(home="2"), total()),
    (total(), total(ward="2", home="3")),
    (total("0", "1/2", "1/4"), total("0", "1/4", "1/2")),
)


@pytest.mark.parametrize(("one", "other"), GROWN)
def test_how_much_two_totals_grow_is_the_sum_of_their_differences(one: Total, other: Total) -> None:
    for pair in ((one, other), (other, one)):
        assert list(map(Fraction, frontier._growth(*pair))) == list(apart(one, other))
    assert frontier._growth(one, one) == (0.0, 0.0)


def test_one_too_many_is_joined_with_the_nearest_and_what_that_covers_goes() -> None:
    kept = [total(**{f"l{place}": "8"}) for place in range(MOST_TOTALS - 2)]
    near, covered = total(home="4", ward="1"), total(home="1", ward="2")
    new = total(home="4.5", ward="0.5", work="1")
    found = worst([*kept, covered, near, new])
    joint = total(home="4.5", ward="1", work="1")
    assert set(found) == {*kept, covered, joint}
    larger = total(home="3.5", ward="3")
    found = worst([*kept, covered, near, larger])  # the larger one takes the place of the covered
    assert set(found) == {*kept, near, larger}
    least = frontier._with([*kept, covered, near], total(home="4", ward="2", work="1"))
    assert least == [*kept, total(home="4", ward="2", work="1")]


def test_what_covers_totals_is_the_largest_of_each_part() -> None:
    found = covering(
        [
            total("1", "1/8", "3", home="2", ward="5"),
            total("2", "1/9", "4", home="3"),
            total("1/2", "1/4", "1", work="1"),
        ]
    )
    assert found == total("2", "1/4", "4", home="3", ward="5", work="1")


# --- accounts by replay ---


def body(
    loss: Loss,
    analyst: str | None = None,
    window: tuple[int, int] | None = None,
    keys: Sequence[str] | None = None,
    **others: Any,
) -> dict[str, Any]:
    """The part of a charge that is replayed."""
    given: dict[str, Any] = {
        "kind": "charge",
        "dataset": "d",
        "analyst": analyst,
        "window": None if window is None else {"unit": "day", "start": window[0], "end": window[1]},
        "groups": None if keys is None else {"columns": ["zone"], "keys": [[k] for k in keys]},
        "loss": loss_body(loss),
    }
    return given | others


def test_charges_and_reuses_are_replayed_into_the_accounts_that_pay() -> None:
    books = Books()
    for event in (
        {"kind": "budget", "dataset": "d", "analyst": None, "epsilon": "5/2", "delta": "1/8"},
        body(Pure("1/4"), "ann"),
        body(Concentrated("1/3"), "bob", (3, 7)),
        body(Approximate("1/5", "1/100"), None, (5, 9), ["x"]),
        body(count("1/6", "home"), "ann", kind="reuse"),
        body(Pure(7), "ann", dataset="e"),
    ):
        books.apply(event)
    assert set(books.books) == {("d", ""), ("d", "ann"), ("d", "bob"), ("e", ""), ("e", "ann")}
    whole, ann, bob = (books.books["d", who] for who in (WHOLE, "ann", "bob"))
    (cell,) = whole.account.segments[2].own
    own = total("1/5", "1/100")
    assert contents(whole) == {
        "budget": (Fraction(5, 2), Fraction(1, 8)),
        "shape": ("day", ("zone",)),
        "totals": (total("1/4"), (total("9/20", "1/100", "1/3"),), None),
        "segments": [
            (BEGINNING, 3, ZERO, (ZERO,), {}),
            (3, 5, total(rho="1/3"), (ZERO,), {}),
            (5, 7, total(rho="1/3"), (own,), {cell: own}),
            (7, 9, ZERO, (own,), {cell: own}),
            (9, END, ZERO, (ZERO,), {}),
        ],
    }
    assert (ann.account.always, ann.account.worst) == (
        total("1/4", home="1/6"),
        (total("1/4", home="1/6"),),
    )
    assert (bob.account.always, bob.account.worst) == (ZERO, (total(rho="1/3"),))
    assert books.books["e", "ann"].account.always == total("7")
    assert (ann.shape.unit, bob.shape.unit) == (None, None)  # the whole dataset has the shape


def test_what_is_counted_as_lost_of_an_analyst_is_lost_of_nobody_else() -> None:
    books = Books()
    costs = Cost.of({HOME: "1/2", Distance(0, 10): "1/3"})
    whole = {"dataset": "d", "analyst": None, "epsilon": "2", "delta": "1/4", "rho": "3"}
    own = {"dataset": "d", "analyst": "ann", "epsilon": "1", "delta": "1/5", "rho": "7"}
    accounts = [whole, own | {"costs": costs.document()}]
    books.apply({"kind": "loss", "accounts": accounts})
    all_of_it = total("2", "1/4", "3")
    hers = Total(Fraction(1), Fraction(1, 5), Fraction(7), costs)
    found = {who: contents(books.book("d", who))["totals"] for who in (WHOLE, "ann", "bob")}
    assert found == {
        WHOLE: (all_of_it, (all_of_it,), all_of_it),
        "ann": (hers, (hers,), None),
        "bob": (all_of_it, (all_of_it,), None),
    }


def test_columns_that_were_chosen_stay_whatever_a_later_charge_names() -> None:
    shape = Shape(partition=("zone",))
    finer = {"columns": ["age", "zone"], "keys": [[30, "x"], [40, "x"]]}
    assert shape.touch(None, finer) == shape.touch(None, {"columns": ["zone"], "keys": [["x"]]})
    assert shape.partition == ("zone",)
    assert shape.touch(None, {"columns": ["age"], "keys": [[30]]}).cells is None


def test_an_account_is_cut_neither_at_its_beginning_nor_at_its_end() -> None:
    account = Account()
    account.apply(Touch(BEGINNING, 5), Pure(1))
    account.apply(Touch(5, END), Pure(2))
    account.apply(Touch(cells=("a",)), Pure(4))
    assert [(one.start, one.end) for one in account.segments] == [(BEGINNING, 5), (5, END)]


def test_an_account_that_begins_with_a_loss_is_that_of_its_analyst() -> None:
    for lost in (None, total("2", "1/4")):
        made = Book("d", WHOLE, Fraction(5), lost=lost).of("ann")
        assert (made.dataset, made.analyst, made.epsilon, made.id) == ("d", "ann", None, 0)
        assert made.account.worst == (lost or ZERO,) and made.lost is None


def test_a_release_in_a_window_counts_on_top_of_what_everybody_lost() -> None:
    account = Account()
    account.apply(Touch(), Pure(1))
    account.apply(Touch(0, 5), Pure(2))
    account.apply(Touch(0, 5, ("a",)), Pure(4))
    account.apply(Touch(3, 5, ("b",)), Concentrated(8))
    assert account.worst == (total("3", "0", "8"), total("7"))
    changed = account.apply(Touch(), Pure(16))
    assert changed == [] and account.worst == (total("19", "0", "8"), total("23"))
    assert account.on(Touch(3, 5)) == account.worst
    assert account.on(Touch(0, 3)) == (total("23"),)
    assert account.on(Touch(0, 5, ("b", "c"))) == (total("19", "0", "8"),)
    assert account.on(Touch(4, 9, ("c",))) == (total("19"),)
    assert account.on(Touch(5, END)) == (total("17"),)
    account.everywhere()
    all_of_it = total("23", "0", "8")
    assert account.always == all_of_it and list(account.worst) == [all_of_it]


def test_a_standing_asks_its_limit_for_the_cells_that_are_read_beside_all_others() -> None:
    asked: list[tuple[Any, ...]] = []

    class Answers:
        """Notes what a limit is asked, and answers each in another way."""

        within = True

        def admits(self, totals: Any) -> bool:
            """Whether it does."""
            asked.append(("admits", totals))
            return self.within

        def room(self, *given: Any) -> Fraction:
            """Some room."""
            asked.append(("room", *given))
            return Fraction(5)

        def spent(self, totals: Any) -> float:
            """Some loss."""
            asked.append(("spent", totals))
            return 7.0

    limit: Any = Answers()
    overall, touched = (total("3"), total("1", "1/9")), (total("2"),)
    standing = Standing(Payer("ann", Fraction(11), Fraction(1, 13), overall, touched), limit)
    assert (standing.analyst, standing.epsilon, standing.delta) == (
        "ann",
        Fraction(11),
        Fraction(1, 13),
    )
    assert standing.room(Pure(4)) == 5 and standing.spent == 7.0
    after = (total("1", "1/9"), total("6"))
    assert standing.admits(Pure(4)) and standing.spent_after(Pure(4)) == 7.0
    assert asked == [
        ("admits", overall),
        ("room", touched, Pure(4), overall),
        ("spent", overall),
        ("admits", after),
        ("spent", after),
    ]
    limit.within = False
    assert standing.room(Pure(4)) == 0 and not standing.admits(Pure(4))
