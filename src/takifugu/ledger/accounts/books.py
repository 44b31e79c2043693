"""Accounts and budgets by dataset and analyst, and how events change them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from takifugu.errors import LedgerDamaged
from takifugu.ledger.accounts.account import Account, Shape
from takifugu.ledger.charge_values import loss_of
from takifugu.losses import Total

CURRENCIES = ("epsilon", "delta", "rho")
WHOLE = ""  # the analyst of the account that everybody's charges are added to


@dataclass(eq=False)
class Book:
    """One account with its budget. ``id`` is 0 until it is stored.

    ``lost``, of a whole dataset: what any analyst may have learnt in a part of the history that was
    lost; accounts of analysts begin with it.
    """

    dataset: str
    analyst: str
    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    shape: Shape = field(default_factory=Shape)  # of the whole dataset; analysts use that one
    account: Account = field(default_factory=Account)
    id: int = 0
    lost: Total | None = None

    def of(self, analyst: str) -> "Book":
        """A new account of ``analyst`` on this dataset."""
        if self.lost is None:
            return Book(self.dataset, analyst)
        return Book(self.dataset, analyst, account=flat(self.lost))

    def everywhere(self) -> None:
        """Count all that was lost on every row; cells may then get new names."""
        self.account.everywhere()
        self.shape.unit = self.shape.partition = None


class Books:
    """All accounts, by replay of the events."""

    def __init__(self) -> None:
        self.books: dict[tuple[str, str], Book] = {}

    def book(self, dataset: str, analyst: str) -> Book:
        """The account of ``analyst`` on ``dataset``; opened if there is none."""
        found = self.books.get((dataset, analyst))
        if found is None:
            whole = self.books.get((dataset, WHOLE)) or Book(dataset, WHOLE)
            found = self.books[dataset, analyst] = whole.of(analyst)
        return found

    def apply(self, body: Mapping[str, Any]) -> None:
        """Take one more event into account."""
        match body["kind"]:
            case "budget":
                book = self.book(body["dataset"], body["analyst"] or WHOLE)
                book.epsilon, book.delta = Fraction(body["epsilon"]), Fraction(body["delta"])
            case "partition":
                self.book(body["dataset"], WHOLE).shape.partition = tuple(body["columns"])
            case "charge" | "reuse":
                shape = self.book(body["dataset"], WHOLE).shape
                touch = shape.touch(body["window"], body["groups"])
                for analyst in charged(body):
                    account = self.book(body["dataset"], analyst).account
                    account.apply(touch, loss_of(body["loss"]))
            case "loss":
                for lost in body["accounts"]:
                    book = self.book(lost["dataset"], lost["analyst"] or WHOLE)
                    total = Total(*(Fraction(lost[name]) for name in CURRENCIES))
                    book.account = flat(total)
                    if book.analyst == WHOLE:
                        book.lost = total
            case "cells":
                if body["how"] == "everywhere":
                    for (dataset, _), book in self.books.items():
                        if dataset == body["dataset"]:
                            book.everywhere()
            case "created" | "policy" | "accepted" | "answer" | "totals" | "source" | "separate":
                pass
            case kind:
                raise LedgerDamaged(f"unknown kind of event {kind!r}", reason="unknown kind")


def flat(total: Total) -> Account:
    """An account in which every entry has lost ``total``."""
    return Account(always=total, worst=(total,))


def charged(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Whose accounts a charge or reuse is added to. What was released before costs the whole 0."""
    whole = () if body["kind"] == "reuse" else (WHOLE,)
    return whole if body["analyst"] is None else (*whole, body["analyst"])


def contents(book: Book) -> dict[str, Any]:
    """The contents of an account, to compare two of them by."""
    account = book.account
    return {
        "budget": (book.epsilon, book.delta),
        "shape": (book.shape.unit, book.shape.partition),
        "totals": (account.always, account.worst, book.lost),
        "segments": [(s.start, s.end, s.base, s.peak, s.own) for s in account.segments],
    }
