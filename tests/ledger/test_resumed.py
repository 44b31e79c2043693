"""The contract of resumed charges, on SQLite and on PostgreSQL (see the fixture ``url``)."""

from tests.contracts.ledger_resumed import *  # noqa: F403
