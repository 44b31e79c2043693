"""What owners decide: budgets, groups, cells, and the terms that charges are made under."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from fractions import Fraction
from typing import Any, Literal, NotRequired, TypedDict, Unpack

from takifugu._exact import Number, exactly
from takifugu.errors import ApprovalRefused, InvalidCharge, LedgerConflict
from takifugu.ledger.accounts.account import WHOLE, Book
from takifugu.ledger.canonical_text import check_name, check_text, write_fraction
from takifugu.ledger.charge_values import Cells
from takifugu.ledger.entries_read import Groups
from takifugu.ledger.events import accepted_terms, approved_requests, cell_naming
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.accepted_terms import Review, Terms
from takifugu.ledger.events.event_chain import Event
from takifugu.ledger.open_store import OpenStore
from takifugu.ledger.snapshot import refuse_second_spelling
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.statement import Connection
from takifugu.translation.protocol import LossTranslation
from takifugu.visible import four_digits


class Asked(TypedDict):
    """What an owner decides about: one query of one analyst.

    Attributes:
        dataset: The dataset that it is about.
        analyst: Who asks; None if no analyst is named.
        question: What identifies the query: ``charge.body()["question"]``.
        words: The query in words, as the owner saw it.
        epsilon: What it costs alone, as the owner saw it: the Pufferfish ε.
        request: What identifies the request, where the same query may be asked for twice.
        check: Called under the lock with the last decision on this request, or None; what it
            raises keeps the event from being written.
    """

    dataset: str
    analyst: str | None
    question: str
    words: str
    epsilon: Number
    request: NotRequired[str | None]
    check: NotRequired[Callable[[Event | None], object] | None]


class OwnerDecisions(OpenStore):
    """The part of a ledger that owners use. Every decision is an event that names its actor."""

    @contextmanager
    def _deciding(self) -> Iterator[tuple[Connection, Callable[[str, Mapping[str, Any]], Event]]]:
        """A transaction that holds the lock, and what appends one event to its chain."""
        with self._store.writing() as connection:
            last = chain.head(connection, lock=True)

            def append(kind: str, content: Mapping[str, Any]) -> Event:
                signed = {**content, "actor": self._actor}
                return chain.append(connection, last, kind, signed, self._time())

            yield connection, append

    def set_budget(
        self, dataset: str, epsilon: Number, *, analyst: str | None = None, delta: Number = 0
    ) -> Event:
        """From now on the Pufferfish loss of ``dataset`` is at most (``epsilon``, ``delta``).

        With ``analyst``, that of the analyst's own charges, beside the budget of the whole.
        """
        if analyst is not None:
            check_name(analyst, "analyst")
        limit, content = _budget(dataset, analyst, epsilon, delta)
        with self._deciding() as (connection, append):
            if analyst is not None:
                refuse_second_spelling(connection, dataset, analyst)
            _limit(connection, dataset, analyst or WHOLE, limit)
            return append("budget", content)

    def begin_budget(
        self, dataset: str, epsilon: Number, *, delta: Number = 0
    ) -> tuple[Fraction, Fraction]:
        """Set the budget of a dataset that has none; the budget that it has then."""
        limit, content = _budget(dataset, None, epsilon, delta)
        with self._deciding() as (connection, append):
            whole = tables.find(connection, dataset).get(WHOLE)
            if whole is not None and whole.epsilon is not None:
                return whole.epsilon, whole.delta
            _limit(connection, dataset, WHOLE, limit)
            append("budget", content)
        return limit

    def set_partition(self, dataset: str, columns: tuple[str, ...]) -> Event:
        """Count the groups of ``dataset`` by these public columns, from the first release on.

        Without this the first charge with groups decides. A charge whose groups lack one of the
        columns counts on every group.
        """
        check_name(dataset, "dataset")
        partition = tuple(sorted(Groups(columns, [("",) * len(columns)]).columns))
        content = {"dataset": dataset, "analyst": None, "columns": list(partition)}
        with self._deciding() as (connection, append):
            book = tables.find(connection, dataset).get(WHOLE)
            if book is None:
                book = tables.open_book(connection, Book(dataset, WHOLE))
            if book.shape.partition not in (None, partition):
                raise LedgerConflict(
                    f"the groups of dataset {dataset!r} are counted by"
                    f" {', '.join(book.shape.partition or ())}; that cannot change",
                    reason="partition",
                    dataset=dataset,
                )
            book.shape.partition = partition
            tables.save(connection, [book])
            return append("partition", content)

    def accept_cells(self, dataset: str, found: Cells, *, unchanged: bool = False) -> Event:
        """Name the cells of ``dataset`` as in ``found`` from now on.

        All that was released so far then counts on every row, and groups and windows may be chosen
        again. Where values are named otherwise than before, costs by value count as their scalar.
        With ``unchanged`` the owner confirms instead that the declaration is the one that
        was used before: for charges that do not record it, or where only the source has moved.
        """
        check_name(dataset, "dataset")
        how = cell_naming.UNCHANGED if unchanged else cell_naming.EVERYWHERE
        with self._deciding() as (connection, append):
            return append("cells", cell_naming.accept_cells(connection, dataset, found, how))

    def count_separately(self, dataset: str, other: str) -> Event:
        """Let two datasets have a budget each although they have the same rows."""
        for name in (dataset, other):
            check_name(name, "dataset")
        if dataset == other:
            raise InvalidCharge("dataset", given="is named twice", needed="be two datasets")
        with self._deciding() as (_, append):
            return append("separate", {"dataset": dataset, "analyst": None, "other": other})

    def counted_separately(self, dataset: str) -> frozenset[str]:
        """The datasets that the owner allowed to have the same rows as ``dataset``."""
        with self._store.reading() as connection:
            return frozenset(cell_naming.separated(connection, dataset))

    def review(
        self,
        dataset: str,
        new: LossTranslation,
        old: LossTranslation | None = None,
        *,
        cells: Cells | None = None,
    ) -> Review:
        """What is spent from ``dataset`` under the terms in force and under ``new`` ones.

        Args:
            dataset: Whose terms.
            new: Translates under the new prior and secrets.
            old: Translates under those in force; None if they are not at hand any more.
            cells: What names protected values along with the new terms: see `Ledger.spent`.
        """
        check_name(dataset, "dataset")
        with self._store.reading() as connection:
            return accepted_terms.review(
                connection,
                dataset,
                new,
                old,
                lambda totals: cell_naming.as_read(connection, dataset, totals, cells),
            )

    def accept(self, terms: Terms, seen: Review, **details: Any) -> Event:
        """Put other terms in force: from now on charges are made under these, and no others.

        Args:
            terms: The prior and the secrets.
            seen: What the owner saw. Raises if the dataset was charged or changed since.
            details: What else is to be written down, as JSON.
        """
        with self._store.writing() as connection:
            last = chain.head(connection, lock=True)
            return accepted_terms.accept(
                connection, last, terms, seen, details, self._actor, self._time()
            )

    def enter_policy(self, dataset: str, terms: Terms, details: Mapping[str, Any]) -> Event:
        """Write down a prior, a fit or secrets that were entered into a policy.

        Nothing is put in force by it, unless nothing was ever charged on ``dataset``.
        """
        check_name(dataset, "dataset")
        with self._store.writing() as connection:
            last = chain.head(connection, lock=True)
            return accepted_terms.enter_policy(
                connection, last, dataset, terms, details, self._actor, self._time()
            )

    # --- who may ask, and what a second person allowed ---

    def record_access(
        self,
        change: Literal["made", "revoked"],
        *,
        name: str,
        role: str,
        token: str,
        expires: datetime | None = None,
    ) -> Event:
        """Write down that a token was made for ``name``, or revoked.

        Args:
            change: What happened.
            name: Whose it is.
            role: What it allows.
            token: Its public id; never the secret, nor a hash of it.
            expires: When it ends by itself; None for never.
        """
        if change not in ("made", "revoked"):
            raise InvalidCharge("change", given=f"is {change!r:.40}", needed="be made or revoked")
        for field, value in (("name", name), ("role", role), ("token", token)):
            check_name(value, field)
        content = {
            "dataset": None,
            "analyst": None,
            "how": change,
            "name": name,
            "role": role,
            "token": token,
            "expires": None if expires is None else expires.isoformat(),
        }
        with self._deciding() as (_, append):
            return append("access", content)

    def approve(self, **asked: Unpack[Asked]) -> Event:
        """Allow one query of one analyst; its charge then names this event, once.

        Args:
            asked: What is decided about; see `Asked`.

        Raises:
            ApprovalRefused: The actor is the analyst: that is one person, not two.
        """
        return self._decide(approved_requests.APPROVED, **asked)

    def refuse_request(self, **asked: Unpack[Asked]) -> Event:
        """Refuse one query of one analyst; an approval of it that is not used yet is withdrawn.

        With ``request``, only approvals of that request are. For the arguments see `Asked`.
        """
        return self._decide(approved_requests.REFUSED, **asked)

    @contextmanager
    def decision_on(self, question: str, request: str) -> Iterator[Event | None]:
        """The last decision on a request, or None; nobody decides until the block is left."""
        with self._deciding() as (connection, _):
            yield approved_requests.decision_on(connection, question, request)

    def _decide(
        self,
        decision: str,
        *,
        dataset: str,
        analyst: str | None,
        question: str,
        words: str,
        epsilon: Number,
        request: str | None = None,
        check: Callable[[Event | None], object] | None = None,
    ) -> Event:
        check_name(dataset, "dataset")
        check_name(question, "question")
        check_text(words, "words")
        for field, name in (("analyst", analyst), ("request", request)):
            if name is not None:
                check_name(name, field)
        approves = decision == approved_requests.APPROVED
        if approves and approved_requests.same_person(self._actor, analyst):
            raise ApprovalRefused(None, "person", dataset=dataset)
        content: dict[str, Any] = {
            "dataset": dataset,
            "analyst": analyst,
            "question": question,
            "decision": decision,
            "words": words,
            "epsilon": write_fraction(exactly(epsilon, "epsilon"), "epsilon"),
        }
        if request is not None:
            content |= {"request": request, approved_requests.BOUND: True}
        with self._deciding() as (connection, append):
            if check is not None:
                last = None
                if request is not None:
                    last = approved_requests.decision_on(connection, question, request)
                check(last)
            return append(
                "approval", content | {"under": approved_requests.under(connection, dataset)}
            )


def _budget(
    dataset: str, analyst: str | None, epsilon: Number, delta: Number
) -> tuple[tuple[Fraction, Fraction], dict[str, Any]]:
    """A budget, exactly, and the content of its event."""
    check_name(dataset, "dataset")
    limit = exactly(epsilon, "epsilon"), exactly(delta, "delta")
    if limit[0] < 0 or not 0 <= limit[1] < 1:
        shown = f"is ε = {four_digits(limit[0], 'down')}, δ = {four_digits(limit[1], 'down')}"
        raise InvalidCharge(
            "budget", given=shown, needed="have ε of 0 or more and δ from 0 to below 1"
        )
    return limit, {
        "dataset": dataset,
        "analyst": analyst,
        "epsilon": write_fraction(limit[0], "budget"),
        "delta": write_fraction(limit[1], "budget"),
    }


def _limit(
    connection: Connection, dataset: str, who: str, limit: tuple[Fraction, Fraction]
) -> None:
    """Write the budget of an account, which is opened if there is none."""
    found = tables.find(connection, dataset, who)
    book = found.get(who)
    if book is None:
        whole = found.get(WHOLE) or Book(dataset, WHOLE)
        book = tables.open_book(connection, whole.of(who))
    book.epsilon, book.delta = limit
    tables.save(connection, [book])
