"""Budgets and past releases, as a server lists them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from takifugu.documents.declared import Codec, from_document
from takifugu.documents.reading import (
    DocumentPart,
    InvalidDocument,
    by_name,
    decimal,
    fraction,
    listed,
    number,
    text,
    truth,
)


@dataclass(frozen=True)
class RemoteBudget:
    """A lifetime budget, and what was spent of it.

    Attributes:
        epsilon: The Pufferfish ε of everything together; None if there is no budget yet.
        delta: The Pufferfish δ beside it.
        spent: The Pufferfish ε of all that was released, rounded up.
        left: What a release on all rows may still cost alone, rounded down; None without a budget.
        most: A Pufferfish ε that a release on all rows may cost now, rounded down; None if that
            is not known.
        by_column: Where rows have several protected columns: what was spent on each.
        steps: When it was spent: the time, and what was spent then, of the latest charges.
        own: The same of the analyst who asks; its ``epsilon`` is None if they have no budget of
            their own. None if they never asked.
    """

    epsilon: Fraction | None
    delta: Fraction
    spent: float
    left: float | None
    most: Decimal | None = None
    by_column: Mapping[str, float] | None = None
    steps: tuple[tuple[datetime, float], ...] = ()
    own: "RemoteBudget | None" = None


@dataclass(frozen=True)
class PastRelease:
    """A release that was made.

    Attributes:
        charge: The event of the ledger that paid for it: its name on the server.
        at: When.
        asked: The query in words.
        query: The query, as JSON.
        loss: What each row lost that was read, as JSON.
        kept: Whether its result can be fetched.
    """

    charge: int
    at: datetime
    asked: str
    query: Mapping[str, Any]
    loss: Mapping[str, Any]
    kept: Annotated[bool, Codec(truth, key="result")]


def budget_of(document: Any, analyst: str) -> RemoteBudget:
    """The budget of a dataset and, inside it, that of the analyst who asks."""
    found = DocumentPart.of(document).read("budgets", listed(DocumentPart.of))
    whole = next((one for one in found if one.given.get("analyst") is None), None)
    if whole is None:
        raise InvalidDocument("budgets", given="has none of the dataset", needed="have one")
    mine = next((one for one in found if one.given.get("analyst") == analyst), None)
    return _budget(whole, None if mine is None else _budget(mine, None))


def _budget(found: DocumentPart, own: RemoteBudget | None) -> RemoteBudget:
    return RemoteBudget(
        epsilon=found.maybe("epsilon", fraction),
        delta=found.fraction("delta"),
        spent=found.number("spent"),
        left=found.maybe("left", number),
        most=found.maybe("most", decimal),
        by_column=found.maybe("by_column", by_name(number)),
        steps=tuple(
            (one.moment("at"), one.number("spent"))
            for one in found.read("history", listed(DocumentPart.of))
        ),
        own=own,
    )


def past_release(document: Any, path: str) -> PastRelease:
    """A release in a list."""
    return from_document(PastRelease, document, path)


def next_cursor(found: DocumentPart) -> str | None:
    """The cursor of the next page; None after the last."""
    return found.maybe("next", text)
