"""The part of a ledger that owners use: terms in force, what they change, who may ask."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from takifugu.ledger.canonical_text import check_name
from takifugu.ledger.events import accepted_terms as decisions
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.accepted_terms import Review, Terms
from takifugu.ledger.events.event_chain import Event
from takifugu.ledger.storage.store import Store
from takifugu.translation.protocol import LossTranslation


class Deciding:
    """What `Ledger` inherits; see `takifugu.ledger.events.accepted_terms` for what it means."""

    _store: Store
    _actor: str
    _time: Callable[[], datetime]

    def terms(self, dataset: str) -> Terms | None:
        """The prior and secrets that charges on ``dataset`` must be made under; None if any."""
        with self._store.reading() as connection:
            return decisions.in_force(connection, dataset)

    def accepted(self, dataset: str) -> Event | None:
        """The last acceptance of terms for ``dataset``; None if there was none."""
        with self._store.reading() as connection:
            return decisions.accepted(connection, dataset)

    def refuse_terms(self, dataset: str, terms: Terms) -> None:
        """Raise `NotAccepted` if a charge under ``terms`` would be refused."""
        with self._store.reading() as connection:
            decisions.refuse_terms(connection, dataset, terms)

    def rules(self, dataset: str) -> Mapping[str, Any] | None:
        """The rules that charges on ``dataset`` must be made by; None if any."""
        with self._store.reading() as connection:
            return decisions.rules_in_force(connection, dataset)

    def refuse_rules(self, dataset: str, rules: Mapping[str, Any] | None) -> None:
        """Raise `NotAccepted` if a charge by ``rules`` would be refused."""
        with self._store.reading() as connection:
            decisions.refuse_rules(connection, dataset, rules)

    def refuse_stranger(self, dataset: str, analyst: str | None) -> None:
        """Raise `UnknownAnalyst` if analysts have budgets and ``analyst`` is none of them."""
        with self._store.reading() as connection:
            decisions.refuse_stranger(connection, dataset, analyst)

    def review(
        self, dataset: str, new: LossTranslation, old: LossTranslation | None = None
    ) -> Review:
        """What is spent from ``dataset`` under the terms in force and under ``new`` ones.

        Args:
            dataset: Whose terms.
            new: Translates under the new prior and secrets.
            old: Translates under those in force; None if they are not at hand any more.
        """
        check_name(dataset, "dataset")
        with self._store.reading() as connection:
            return decisions.review(connection, dataset, new, old)

    def accept(self, terms: Terms, seen: Review, **details: Any) -> Event:
        """Put other terms in force: from now on charges are made under these, and no others.

        Args:
            terms: The prior and the secrets.
            seen: What the owner saw. Raises if the dataset was charged or changed since.
            details: What else is to be written down, as JSON.
        """
        with self._store.writing() as connection:
            last = chain.head(connection, lock=True)
            return decisions.accept(
                connection, last, terms, seen, details, self._actor, self._time()
            )

    def enter_policy(self, dataset: str, terms: Terms, details: Mapping[str, Any]) -> Event:
        """Write down a prior, a fit or secrets that were entered into a policy.

        Nothing is put in force by it, unless nothing was ever charged on ``dataset``.
        """
        check_name(dataset, "dataset")
        with self._store.writing() as connection:
            last = chain.head(connection, lock=True)
            return decisions.enter(
                connection, last, dataset, terms, details, self._actor, self._time()
            )
