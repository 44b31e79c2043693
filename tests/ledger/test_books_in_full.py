"""Accounts by hand: every field after a release, a cut, a loss of history and a renaming."""

from fractions import Fraction
from typing import Any

import pytest

from takifugu.errors import InvalidCharge, LedgerDamaged
from takifugu.ledger.accounts.account import (
    WHOLE,
    Account,
    Book,
    Books,
    Segment,
    Shape,
    Touch,
    charged,
    contents,
    flat,
)
from takifugu.ledger.accounts.frontier import ZERO
from takifugu.ledger.accounts.limits import Limit
from takifugu.ledger.accounts.standings import amount, paying
from takifugu.ledger.entries_read import BEGINNING, END
from takifugu.losses import Approximate, Concentrated, Pure, Total
from tests.ledger.charges import Blind, count
from tests.raising import raises

pytestmark = pytest.mark.nightly


def test_counts_of_different_labels_share_their_epsilon() -> None:
    limit = Limit(Blind(), Fraction(12), Fraction(0))
    assert limit.allowed == 2
    two = Total().plus(count("1", "home")).plus(count("1", "ward"))
    for beside in ((), (Total(Fraction(1)),)):
        for spent in ((two,), (two, Total(Fraction(1)))):
            assert limit.room(spent, count("1", "hall"), beside) == 1
    less = Total().plus(count("1", "home"))
    assert limit.room((less, Total(Fraction(3, 2))), count("1", "hall")) == Fraction(1, 2)
    assert limit.room((Total(Fraction(2)),), count("1", "hall")) == 0
    assert limit.room((Total(Fraction(3)),), count("1", "hall")) == 0


def eps(value: int) -> Total:
    """A total of ε alone."""
    return Total(Fraction(value))


def test_segments_are_cut_where_windows_begin_and_end() -> None:
    account = Account()
    first = account.apply(Touch(10, 20), Pure(1))
    assert [(s.start, s.end, s.base, s.cut_from) for s in account.segments] == [
        (BEGINNING, 10, ZERO, None),
        (10, 20, eps(1), BEGINNING),
        (20, END, ZERO, BEGINNING),
    ]
    assert {s.start for s in first} == {BEGINNING, 10, 20}
    assert len(first) == 3
    assert account.worst == (eps(1),)
    again = account.apply(Touch(10, 20), Pure(2))
    assert [s.start for s in again] == [10]
    assert account.worst == (eps(3),)
    inner = account.apply(Touch(15, 30, ("a", "b")), Pure(4))
    assert [(s.start, s.end, s.base, s.own, s.peak) for s in account.segments] == [
        (BEGINNING, 10, ZERO, {}, (ZERO,)),
        (10, 15, eps(3), {}, (ZERO,)),
        (15, 20, eps(3), {"a": eps(4), "b": eps(4)}, (eps(4),)),
        (20, 30, ZERO, {"a": eps(4), "b": eps(4)}, (eps(4),)),
        (30, END, ZERO, {}, (ZERO,)),
    ]
    assert sorted(s.start for s in inner) == [10, 15, 20, 30]
    assert account.worst == (eps(7),)
    assert account.apply(Touch(), Pure(10)) == []
    assert (account.always, account.worst) == (eps(10), (eps(17),))


@pytest.mark.parametrize(
    ("touch", "lost"),
    [
        (Touch(), 17),
        (Touch(BEGINNING, 10), 10),
        (Touch(BEGINNING, 11), 13),
        (Touch(10, 15), 13),
        (Touch(10, 15, ("a",)), 13),
        (Touch(14, 16), 17),
        (Touch(15, 20, ("a",)), 17),
        (Touch(15, 20, ("c",)), 13),
        (Touch(15, 20, ("c", "b")), 17),
        (Touch(20, 30), 14),
        (Touch(19, 30, ("c",)), 13),
        (Touch(29, END), 14),
        (Touch(30, END), 10),
        (Touch(30, END, ("a",)), 10),
        (Touch(BEGINNING, END, ("a",)), 17),
        (Touch(BEGINNING, END, ("z",)), 13),
        (Touch(12, 13), 13),
    ],
)
def test_what_cells_have_lost(touch: Touch, lost: int) -> None:
    account = Account()
    account.apply(Touch(10, 20), Pure(3))
    account.apply(Touch(15, 30, ("a", "b")), Pure(4))
    account.apply(Touch(), Pure(10))
    assert account.on(touch) == (eps(lost),)
    before = [(s.start, s.end) for s in account.segments]
    account.on(Touch(11, 12))
    assert [(s.start, s.end) for s in account.segments] == before
    account.everywhere()
    assert (account.always, account.worst) == (eps(17), (eps(17),))
    assert [(s.start, s.end, s.base, s.own) for s in account.segments] == [
        (BEGINNING, END, ZERO, {})
    ]


def test_everything_leaves_no_entry_out() -> None:
    assert Touch().everything
    assert Touch(BEGINNING, END, None).everything
    for part in (Touch(0), Touch(end=0), Touch(cells=("a",)), Touch(cells=())):
        assert not part.everything


def test_a_cut_keeps_what_a_segment_has() -> None:
    old = Segment(BEGINNING, END, eps(1), (eps(2),), {"a": eps(2)}, None, "f" * 64)
    account = Account(ZERO, (eps(3),), [old])
    account.apply(Touch(5, END), Pure(1))
    new = account.segments[1]
    assert (old.start, old.end, old.base) == (BEGINNING, 5, eps(1))
    assert (new.start, new.end, new.base, new.peak) == (5, END, eps(2), (eps(2),))
    assert (new.own, new.cut_from, new.root) == ({"a": eps(2)}, BEGINNING, "f" * 64)
    assert new.own is not old.own
    account.apply(Touch(7, END), Pure(1))
    assert account.segments[2].cut_from == BEGINNING


def test_a_shape_is_fixed_by_its_first_use() -> None:
    shape = Shape()
    assert shape.touch(None, None) == Touch()
    assert (shape.unit, shape.partition) == (None, None)
    day = {"unit": "day", "start": 3, "end": None}
    assert shape.touch(day, None) == Touch(3, END)
    assert shape.unit == "day"
    assert shape.touch({"unit": "day", "start": None, "end": 9}, None) == Touch(BEGINNING, 9)
    assert shape.touch({"unit": "day", "start": 0, "end": 0}, None) == Touch(0, 0)
    with raises(InvalidCharge, field="window", reason="unit"):
        shape.touch({"unit": "hour", "start": 3, "end": None}, None)
    found = shape.touch(None, {"columns": ["ward", "age"], "keys": [["w", "old"]]})
    assert shape.partition == ("age", "ward")
    assert found.cells is not None
    assert (found.start, found.end, len(found.cells)) == (BEGINNING, END, 1)


def charge(kind: str = "charge", analyst: str | None = None, epsilon: str = "1") -> dict[str, Any]:
    """The body of a charge of everything."""
    return {
        "kind": kind,
        "dataset": "d",
        "analyst": analyst,
        "window": None,
        "groups": None,
        "loss": {"epsilon": epsilon},
    }


def test_books_are_those_of_the_events() -> None:
    books = Books()
    for body in (
        {"kind": "created"},
        {"kind": "budget", "dataset": "d", "analyst": None, "epsilon": "5", "delta": "1/8"},
        {"kind": "budget", "dataset": "d", "analyst": "ann", "epsilon": "3", "delta": "0"},
        {"kind": "partition", "dataset": "d", "columns": ["a", "b"]},
    ):
        books.apply(body)
    whole, ann = books.books["d", WHOLE], books.books["d", "ann"]
    assert set(books.books) == {("d", WHOLE), ("d", "ann")}
    assert (whole.epsilon, whole.delta) == (Fraction(5), Fraction(1, 8))
    assert (ann.epsilon, ann.delta, ann.analyst) == (Fraction(3), Fraction(0), "ann")
    assert whole.shape.partition == ("a", "b")
    assert contents(ann) == {
        "budget": (Fraction(3), Fraction(0)),
        "shape": (None, None),
        "totals": (ZERO, (ZERO,), None),
        "segments": [(BEGINNING, END, ZERO, (ZERO,), {})],
    }
    with raises(LedgerDamaged, reason="unknown kind"):
        books.apply({"kind": "other"})
    assert books.book("d", "ann") is ann
    new = books.book("e", "bob")
    assert (new.dataset, new.analyst, new.epsilon) == ("e", "bob", None)


def test_a_lost_history_is_counted_on_every_account_that_begins() -> None:
    books = Books()
    lost = {"epsilon": "2", "delta": "1/4", "rho": "3"}
    books.apply({"kind": "loss", "accounts": [{"dataset": "d", "analyst": None, **lost}]})
    total = Total(Fraction(2), Fraction(1, 4), Fraction(3))
    whole = books.books["d", WHOLE]
    assert (whole.lost, whole.account.always, whole.account.worst) == (total, total, (total,))
    assert books.book("d", "ann").account.worst == (total,)
    assert books.book("d", "ann").lost is None
    assert books.book("e", "ann").account.worst == (ZERO,)
    mine = {"dataset": "d", "analyst": "ann", **lost, "rho": "4"}
    books.apply({"kind": "loss", "accounts": [mine]})
    assert books.book("d", "ann").account.always.rho == 4
    assert whole.lost == total
    assert flat(total).segments[0].base == ZERO


@pytest.mark.parametrize("how", ["everywhere", "renamed"])
def test_cells_with_new_names_are_counted_everywhere(how: str) -> None:
    books = Books()
    for dataset in ("d", "e"):
        for analyst in (WHOLE, "ann"):
            book = books.book(dataset, analyst)
            book.account.apply(Touch(1, 2), Pure(1))
            book.shape.unit, book.shape.partition = "day", ("a",)
    books.apply({"kind": "cells", "dataset": "d", "how": how})
    for (dataset, _), book in books.books.items():
        moved = dataset == "d" and how == "everywhere"
        assert len(book.account.segments) == (1 if moved else 3)
        assert book.account.always == (eps(1) if moved else ZERO)
        assert (book.shape.unit, book.shape.partition) == (
            (None, None) if moved else ("day", ("a",))
        )


def test_who_pays() -> None:
    assert charged(charge()) == (WHOLE,)
    assert charged(charge(analyst="ann")) == (WHOLE, "ann")
    assert charged(charge("reuse")) == ()
    assert charged(charge("reuse", "ann")) == ("ann",)
    assert paying(None) == (WHOLE,)
    assert paying("ann") == (WHOLE, "ann")
    assert amount(Pure(2)) == ("epsilon", Fraction(2))
    assert amount(Approximate(2, "0.1")) == ("epsilon", Fraction(2))
    assert amount(Concentrated(3)) == ("rho", Fraction(3))
    assert Book("d", "ann").of("bob").analyst == "bob"
