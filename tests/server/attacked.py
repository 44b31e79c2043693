"""A server to attack, whose folder, data and tokens must not get out.

The project lies in a folder whose name is a canary; so do its declaration and its data. Nothing
that an analyst, or nobody, is sent may have it, nor words of a traceback, nor a token.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.server.projects import small_project
from tests.server.raw_requests import raw_connection, read_all
from tests.server.running import RunningServer, new_token, running_server

CANARY = "canary-folder"
LEAKS = re.compile(
    r"canary|Traceback|File \\?\"|\.py\b|site-packages|/home|/root|/tmp|/usr|stays\.csv|stays\.toml"
    r"|chain\.json|takifugu\.(?:toml|ledger|server)|sqlite|psycopg|duckdb|SELECT |starlette|uvicorn"
)
PLANS = "/api/v1/datasets/stays/plans"
ROLES = {"ana": "analyst", "olga": "owner", "udo": "auditor", "wim": "witness"}


@dataclass(frozen=True)
class Attacked:
    """A server and the tokens of four people."""

    server: RunningServer
    tokens: dict[str, str]

    def raw(self, *lines: str | bytes, body: bytes = b"") -> bytes:
        """All that is answered to these lines of a head, and a body."""
        head = b"\r\n".join(one if isinstance(one, bytes) else one.encode() for one in lines)
        with raw_connection(self.server) as connection:
            connection.sendall(head + b"\r\n\r\n" + body)
            return read_all(connection)

    def get_raw(self, target: str | bytes, who: str | None = "ana", *more: str) -> bytes:
        """The answer to a GET of exactly this target, which no library has tidied."""
        sent = target if isinstance(target, bytes) else target.encode()
        token = () if who is None else (f"Authorization: Bearer {self.tokens[who]}",)
        return self.raw(
            b"GET " + sent + b" HTTP/1.1", "Host: localhost", "Connection: close", *token, *more
        )

    def bearer(self, who: str) -> str:
        """The header of a token."""
        return f"Authorization: Bearer {self.tokens[who]}"


@contextmanager
def attacked(
    folder: Path, analysts: Mapping[str, str] | None = None, **settings: Any
) -> Iterator[Attacked]:
    """A server of a small project in a folder whose name must not get out."""
    project = small_project(folder / CANARY, analysts=analysts)
    people = ROLES | dict.fromkeys(analysts or (), "analyst")
    tokens = {name: new_token(project, role, name) for name, role in people.items()}  # type: ignore[arg-type]
    limits = {"rate": 100_000, "burst": 1_000, "time_step": 0.0} | settings
    with running_server(project, **limits) as server:
        yield Attacked(server, tokens)


def tells_nothing(answer: bytes) -> None:
    """No canary, no traceback, no path and no name of a part in an answer."""
    found = LEAKS.search(answer.decode("latin-1"))
    assert found is None, found
