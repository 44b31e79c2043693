"""The contract of the ledger for costs, on SQLite and on PostgreSQL (see the fixture ``url``)."""

from tests.contracts.ledger_costs import *  # noqa: F403
