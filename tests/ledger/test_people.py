"""The contract about people, on SQLite and on PostgreSQL (see the fixture ``url``)."""

from tests.contracts.ledger_people import *  # noqa: F403
