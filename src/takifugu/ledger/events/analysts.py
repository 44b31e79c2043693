"""Who may run queries: where analysts have budgets of their own, only they."""

import unicodedata
from collections.abc import Sequence
from difflib import get_close_matches

from sqlalchemy import Connection, bindparam, literal_column, select

from takifugu.errors import InvalidCharge, UnknownAnalyst
from takifugu.ledger.accounts.account import WHOLE
from takifugu.ledger.storage.schema import ACCOUNTS
from takifugu.ledger.storage.statement import Statement

_WITH_BUDGETS = Statement(
    select(ACCOUNTS.c.analyst).where(
        ACCOUNTS.c.dataset == bindparam("named"),
        ACCOUNTS.c.analyst != literal_column("''"),
        ACCOUNTS.c.epsilon.is_not(None),
    )
)


def with_budgets(connection: Connection, dataset: str) -> tuple[str, ...]:
    """The analysts who have a budget on ``dataset``, by name."""
    return tuple(sorted(row.analyst for row in _WITH_BUDGETS.all(connection, {"named": dataset})))


def refuse_unknown(connection: Connection, dataset: str, analyst: str | None) -> None:
    """Raise if analysts have budgets on ``dataset`` and ``analyst`` is not exactly one of them.

    A misspelt name would otherwise be somebody else, whom no budget of their own bounds.
    """
    names = with_budgets(connection, dataset)
    if names and analyst not in names:
        raise unknown_analyst(dataset, analyst, names)


def unknown_analyst(dataset: str, analyst: str | None, names: tuple[str, ...]) -> UnknownAnalyst:
    """The error for a query that names none of the analysts with a budget."""
    similar = () if analyst is None else similar_names(analyst, names)
    return UnknownAnalyst(dataset, analyst, names, similar)


def refuse_second_spelling(connection: Connection, dataset: str, analyst: str) -> None:
    """Raise if a new name looks like one that has an account: it would be a second budget."""
    if analyst != analyst.strip() or not analyst.isprintable():
        raise InvalidCharge(
            "analyst", given=f"is {analyst!r:.80}", needed="be printable, without spaces around it"
        )
    accounts = select(ACCOUNTS.c.analyst).where(
        ACCOUNTS.c.dataset == dataset, ACCOUNTS.c.analyst != WHOLE
    )
    names = connection.execute(accounts).scalars().all()
    double = [name for name in names if name != analyst and folded(name) == folded(analyst)]
    if double and analyst not in names:
        raise InvalidCharge(
            "analyst",
            given=f"is {analyst!r:.80} and {double[0]!r:.80} has an account already",
            needed="be spelt the same way: two spellings would have two budgets",
        )


def folded(name: str) -> str:
    """A name without what eyes overlook: case, width, the form of accents, spaces."""
    wide = unicodedata.normalize("NFKC", name).casefold()
    kept = (c for c in wide if not c.isspace() and unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", "".join(kept))


def similar_names(name: str, names: Sequence[str]) -> tuple[str, ...]:
    """The names that ``name`` was probably meant to be."""
    same = tuple(known for known in names if folded(known) == folded(name))
    if same:
        return same[:3]
    by_folded = {folded(known): known for known in names}
    close = get_close_matches(folded(name), by_folded, n=3, cutoff=0.6)
    return tuple(by_folded[one] for one in close)
