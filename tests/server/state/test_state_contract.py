"""The contract of a server's state, on SQLite and on PostgreSQL (see the fixture ``place``)."""

from tests.contracts.server_records import *  # noqa: F403
from tests.contracts.server_requests import *  # noqa: F403
from tests.contracts.server_state import *  # noqa: F403
