"""The documents of results, so that they can be downloaded again: one for each charge.

A result was paid for and is public to its analyst; reading it again costs nothing. The ledger has
its numbers; this is the whole document, with its interpretation.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from takifugu.errors import Malformed
from takifugu.ledger.storage.statement import Statement, insert
from takifugu.server.state.state_store import StateStore, json_text, moment_of, stamp
from takifugu.server.state.state_tables import RESULTS


class InvalidResult(Malformed):
    """A result that cannot be kept."""


@dataclass(frozen=True)
class KeptResult:
    """A result that was released.

    Attributes:
        charge: The ledger's event that paid for it.
        dataset: The dataset.
        analyst: Whose it is; None if nobody was named.
        document: The result.
        kept: When it was stored.
    """

    charge: int
    dataset: str
    analyst: str | None
    document: Mapping[str, Any]
    kept: datetime


_ADD = insert(RESULTS, "charge", "dataset", "analyst", "document", "kept")
_ONE = Statement(
    f"SELECT charge, dataset, analyst, document, kept FROM {RESULTS} WHERE charge = :charge"
)


class ResultTable(StateStore):
    """The results of a server."""

    def keep_result(
        self, charge: int, dataset: str, analyst: str | None, document: Mapping[str, Any]
    ) -> KeptResult:
        """Store the result of a charge; if there is one already, that one stays."""
        try:
            text = json_text(document)
        except (TypeError, ValueError):
            raise InvalidResult(
                "document", given="cannot be written as JSON", needed="be a JSON object"
            ) from None
        values = {"charge": charge, "dataset": dataset, "analyst": analyst, "document": text}
        with self._alone() as connection:
            found = _ONE.one(connection, {"charge": charge})
            if found is None:
                _ADD.run(connection, values | {"kept": stamp(self.now())})
                found = _ONE.one(connection, {"charge": charge})
        return _result(found)

    def result(self, charge: int) -> KeptResult | None:
        """The result of a charge; None if there is none."""
        with self._store.unguarded() as connection:
            row = _ONE.one(connection, {"charge": charge})
        return None if row is None else _result(row)


def _result(row: Any) -> KeptResult:
    document = json.loads(row.document)
    return KeptResult(row.charge, row.dataset, row.analyst, document, moment_of(row.kept))
