"""The contract of the ledger, on SQLite and on PostgreSQL (see the fixture ``url``)."""

from tests.contracts.ledger import *  # noqa: F403
from tests.contracts.ledger_chain import *  # noqa: F403
from tests.contracts.ledger_opening import *  # noqa: F403
