"""Whether the charges of a chain were within their budgets, judged again from its events.

A program without the filter can write a chain whose hashes and totals agree although a budget is
overspent. Without a prior a part of that can be told: no sound translation is below the per-entry
loss (`witnesses.lost_history`), so that no total may have an ε above that of the budget, nor a δ
above its δ, nor a ρ beside a δ of 0. With the translation in use the rest can: totals only grow, so
that a budget which admits the totals after the last of several charges admits those before it.
"""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from takifugu.ledger.accounts.account import WHOLE, Books, charged
from takifugu.ledger.accounts.frontier import Frontier
from takifugu.ledger.accounts.limits import Limits
from takifugu.ledger.events.accepted_terms import Terms
from takifugu.translation.protocol import LossTranslation
from takifugu.visible import four_digits

TranslationUnder = Callable[[str, Terms], LossTranslation | None]


class _Admitted(NamedTuple):
    """The totals of an account after a charge, and the terms and budget that admitted them."""

    terms: Terms
    budget: tuple[Fraction, Fraction]
    totals: Frontier
    event: int


class Admissions:
    """The charges of a chain, read from its beginning.

    Attributes:
        unproven: Datasets with charges under a prior that is not at hand.
    """

    def __init__(self, translation_under: TranslationUnder | None = None) -> None:
        """``translation_under``: the translation of a dataset under some terms, if it is known."""
        self._translation_under, self._limits = translation_under, Limits()
        self._last: dict[tuple[str, str], _Admitted] = {}
        self.unproven: set[str] = set()

    def misfits(self, books: Books, body: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
        """Events that overspend a budget, once ``books`` have one more event, and why."""
        if body["kind"] not in ("charge", "reuse"):
            return
        dataset, event = body["dataset"], body["seq"]
        if books.book(dataset, WHOLE).epsilon is None:
            yield event, f"event {event} was charged to {dataset!r}, which had no budget"
        for analyst in charged(body):
            book = books.book(dataset, analyst)
            if book.epsilon is None:
                continue
            totals, budget = book.account.worst, (book.epsilon, book.delta)
            if any(
                total.epsilon > book.epsilon
                or total.delta > book.delta
                or (total.rho and not book.delta)
                for total in totals
            ):
                lost = four_digits(max(total.epsilon for total in totals), "up")
                whose = f"{dataset!r}" + (f", analyst {analyst!r}" if analyst else "")
                yield (
                    event,
                    f"event {event} overspends the budget of {whose}: an entry has lost epsilon ="
                    f" {lost} under a budget of {four_digits(book.epsilon)}",
                )
                continue
            last = self._last.get((dataset, analyst))
            terms = Terms(body["prior"], body["secrets"])
            if last is not None and (last.terms, last.budget) != (terms, budget):
                yield from self._judged(dataset, analyst, last)
            self._last[dataset, analyst] = _Admitted(terms, budget, totals, event)

    def remaining(self) -> Iterator[tuple[int, str]]:
        """The same at the end of the chain."""
        for (dataset, analyst), last in self._last.items():
            yield from self._judged(dataset, analyst, last)

    def _judged(self, dataset: str, analyst: str, last: _Admitted) -> Iterator[tuple[int, str]]:
        if self._translation_under is None:
            return
        translation = self._translation_under(dataset, last.terms)
        if translation is None:
            self.unproven.add(dataset)
        elif not self._limits.limit(translation, *last.budget).admits(last.totals):
            whose = f"{dataset!r}" + (f", analyst {analyst!r}" if analyst else "")
            yield (
                last.event,
                f"event {last.event}: what was charged to {whose} up to it is not within the budget"
                f" of {four_digits(last.budget[0])} under its prior",
            )
