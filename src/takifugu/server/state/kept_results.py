"""The documents of results, so that they can be downloaded again.

A result was paid for and is public to its analyst; reading it again costs nothing. The ledger has
its numbers; this is the whole document, with its interpretation. An answer that was given to
several analysts, for one charge, has a document for each: it says what it cost them.

A charge is its number and its hash: after history was lost (`takifugu ledger accept-loss`) numbers
are used again, and what was kept of the lost ones belongs to no event any more.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from takifugu.ledger.events.event_chain import Anchor
from takifugu.ledger.storage.statement import Statement, insert
from takifugu.server.state.state_errors import InvalidResult
from takifugu.server.state.state_store import StateStore, json_text, moment_of, stamp
from takifugu.server.state.state_tables import RESULTS


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

    charge: Anchor
    dataset: str
    analyst: str | None
    document: Mapping[str, Any]
    kept: datetime


_ADD = insert(RESULTS, "charge", "hash", "dataset", "analyst", "document", "kept")
_KEPT = (
    f"SELECT charge, hash, dataset, analyst, document, kept FROM {RESULTS}"
    " WHERE charge = :charge AND hash = :hash"
)
_FIRST = Statement(f"{_KEPT} ORDER BY kept, analyst")
_OF = Statement(f"{_KEPT} AND analyst = :analyst")
_WHOSE = f"SELECT charge, hash, analyst FROM {RESULTS}"  # the documents are not read
_NOBODY = ""  # in place of an analyst


class ResultTable(StateStore):
    """The results of a server."""

    def keep_result(
        self, charge: Anchor, dataset: str, analyst: str | None, document: Mapping[str, Any]
    ) -> KeptResult:
        """Store what an analyst was given of a charge; if there is something already, it stays."""
        try:
            text = json_text(document)
        except (TypeError, ValueError):
            raise InvalidResult(
                "document", given="cannot be written as JSON", needed="be a JSON object"
            ) from None
        values = {"charge": charge.seq, "hash": charge.hash, "analyst": analyst or _NOBODY}
        with self._alone() as connection:
            found = _OF.one(connection, values)
            if found is None:
                more = {"dataset": dataset, "document": text, "kept": stamp(self.now())}
                _ADD.run(connection, values | more)
                found = _OF.one(connection, values)
        return _result(found)

    def kept_charges(
        self, wanted: Sequence[tuple[Anchor, str | None]]
    ) -> set[tuple[Anchor, str | None]]:
        """Of these charges and analysts, those that something is kept of; no document is read.

        As for `result`, an analyst of None stands for whoever has something.
        """
        if not wanted:
            return set()
        values = {f"c{n}": seq for n, seq in enumerate({charge.seq for charge, _ in wanted})}
        among = Statement(f"{_WHOSE} WHERE charge IN ({', '.join(f':{name}' for name in values)})")
        with self._store.unguarded() as connection:
            rows = among.all(connection, values)
        found = set[tuple[Anchor, str | None]]()
        for row in rows:
            charge = Anchor(row.charge, row.hash)
            found |= {(charge, row.analyst), (charge, None)}
        return found.intersection(wanted)

    def result(self, charge: Anchor, analyst: str | None = None) -> KeptResult | None:
        """What ``analyst`` was given of a charge, or whoever was first; None for nothing."""
        values = {"charge": charge.seq, "hash": charge.hash}
        with self._store.unguarded() as connection:
            if analyst is None:
                row = _FIRST.one(connection, values)
            else:
                row = _OF.one(connection, values | {"analyst": analyst})
        return None if row is None else _result(row)


def charge_of(document: Mapping[str, Any]) -> Anchor:
    """The charge that paid for a result, by its document."""
    charge: Mapping[str, Any] = document["provenance"]["charge"]
    return Anchor(charge["event"], charge["hash"])


def _result(row: Any) -> KeptResult:
    document = json.loads(row.document)
    charge = Anchor(row.charge, row.hash)
    return KeptResult(charge, row.dataset, row.analyst or None, document, moment_of(row.kept))
