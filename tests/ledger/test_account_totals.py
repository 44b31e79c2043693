"""Accounts by hand: every field after a release, a cut, a loss of history and a renaming."""

from fractions import Fraction

import pytest

from takifugu.costs.losses import Pure, Total
from takifugu.ledger.account import WHOLE, Account, Books, Touch, flat
from takifugu.ledger.charge_values import BEGINNING, END
from takifugu.ledger.frontier import ZERO

pytestmark = pytest.mark.nightly


def eps(value: int) -> Total:
    """A total of ε alone."""
    return Total(Fraction(value))


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
