"""What one transaction knows about the ledger: its head, its digests, the event it wrote."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from takifugu.ledger.storage.digest_tree import Tree

_OPTION = "takifugu_work"


@dataclass
class Work:
    """Kept beside a connection from the beginning of a transaction to its end.

    Attributes:
        head: The end of the chain, once it was read.
        locked: Whether nobody else can add to it.
        tree: The digests of accounts and segments, once they were held against the last event.
        appended: Whether an event was written.
        seen: What the witness had noted when the transaction began.
        unwitnessed: Whether no second place is told: events then say so.
    """

    head: Any = None
    locked: bool = False
    tree: Tree | None = None
    appended: bool = False
    seen: Any = None
    unwitnessed: bool = False


def work_of(connection: Connection) -> Work:
    """The work of the transaction that ``connection`` is in."""
    found: Work | None = connection.get_execution_options().get(_OPTION)
    if found is None:
        found = Work()
        connection.execution_options(**{_OPTION: found})
    return found
