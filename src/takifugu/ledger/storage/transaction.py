"""What one transaction has read of the ledger: its head, its digests, the event it wrote."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from takifugu.ledger.storage.digest_tree import Tree

_OPTION = "takifugu_work"


@dataclass
class TransactionState:
    """Kept beside a connection from the beginning of a transaction to its end.

    Attributes:
        head: The end of the chain, once it was read.
        locked: Whether nobody else can add to it.
        tree: The digests of accounts and segments, once they were checked against the last event.
        appended: Whether an event was written.
        seen: What the witness had recorded when the transaction began.
        unwitnessed: Whether there is no witness: events then record that.
    """

    head: Any = None
    locked: bool = False
    tree: Tree | None = None
    appended: bool = False
    seen: Any = None
    unwitnessed: bool = False


def transaction_state(connection: Connection) -> TransactionState:
    """The state of the transaction that ``connection`` is in."""
    found: TransactionState | None = connection.get_execution_options().get(_OPTION)
    if found is None:
        found = TransactionState()
        connection.execution_options(**{_OPTION: found})
    return found
