"""Accounts that differ in everything, and a ledger in which they are stored."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from takifugu.costs.losses import Approximate, Concentrated, Pure, Total
from takifugu.ledger import Ledger, open_ledger
from takifugu.ledger.account import WHOLE, Account, Books, Shape, Touch
from takifugu.ledger.charge_values import END
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.storage import account_tables as tables


def books() -> Books:
    """Accounts that differ in everything."""
    found = Books()
    ward = found.book("ward", WHOLE)
    ward.epsilon, ward.delta = Fraction(7, 3), Fraction(1, 1000)
    ward.shape = Shape("step", ("age", "country"))
    ward.account.apply(Touch(), Pure("1/7"))
    ward.account.apply(Touch(0, 9), Pure("1/8"))
    ward.account.apply(Touch(4, 20, ("a", "b")), Pure("1/2"))
    ward.account.apply(Touch(4, 6, ("b",)), Approximate("1/3", "1/100"))
    ward.account.apply(Touch(30, END), Concentrated("1/5"))
    ana = found.book("ward", "ana")
    ana.epsilon = Fraction(2)
    ana.account.apply(Touch(4, 6, ("b",)), Pure("1/9"))
    clinic = found.book("clinic", WHOLE)
    clinic.lost = Total(Fraction(5), Fraction(1, 50), Fraction(1, 6))
    clinic.account = Account(always=clinic.lost, worst=(clinic.lost,))
    clinic.shape = Shape("day")
    return found


@contextmanager
def ledger_of_books(folder: Path) -> Iterator[Ledger]:
    """A ledger whose accounts are `books`, whatever its events say."""
    with open_ledger(folder / "ward.ledger", witness=False) as made:
        store_books(made, books())
        yield made


def store_books(ledger: Ledger, made: Books) -> None:
    """Put accounts in the place of all that are there."""
    with ledger._store.writing() as connection:
        tables.rebuild(connection, made)
        chain.append(connection, "totals", {"migration": "none"}, ledger._time())


def edit(ledger: Ledger, statement: str) -> None:
    """Behind the ledger's back."""
    with sqlite3.connect(ledger.name) as raw:
        assert raw.execute(statement).rowcount > 0
    raw.close()
