"""Which of the named steps that made some tables were applied to a store."""

from collections.abc import Sequence

from takifugu.errors import NewerLedger, NotALedger
from takifugu.ledger.storage.schema import table_names
from takifugu.ledger.storage.statement import Connection, Statement
from takifugu.ledger.storage.store import Store


def applied_steps(connection: Connection, store: Store, table: str, known: Sequence[str]) -> int:
    """How many of the ``known`` steps were applied, as ``table`` has them; 0 without that table.

    Raises:
        NotALedger: The file holds something else, or the steps were made in another order.
        NewerLedger: A step is not known: a later version has made it.
    """
    names = table_names(connection)
    if table not in names:
        if store.sqlite and names:
            raise NotALedger(
                f"{store.name!r} is a database of something else; nothing was written",
                reason="foreign",
            )
        return 0
    rows = Statement(f"SELECT name FROM {table} ORDER BY place").all(connection, {})
    applied = [row.name for row in rows]
    later = [name for name in applied if name not in known]
    if later:
        raise NewerLedger(
            f"{store.name!r} was written by a later version of takifugu (it has {later[0]!r});"
            " update takifugu",
            field=later[0],
        )
    if applied != list(known[: len(applied)]):
        raise NotALedger(
            f"the migrations of {store.name!r} were made in another order; restore a copy",
            reason="order",
        )
    return len(applied)
