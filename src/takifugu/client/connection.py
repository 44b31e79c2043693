"""A connection to a server: who asks, and which datasets there are."""

import os
from pathlib import Path

from takifugu._core.closing import Closing
from takifugu._core.exact import is_finite
from takifugu.client.exchange import Exchange, read_address, trust_of
from takifugu.client.remote_dataset import API, RemoteDataset
from takifugu.documents.reading import DocumentPart
from takifugu.errors import UnsoundRequest
from takifugu.session.release_errors import SessionClosed

TOKEN = "TAKIFUGU_TOKEN"  # noqa: S105 - the name of a variable
TIMEOUT = 60.0  # seconds for a part of an answer; work that takes longer is a job
PATIENCE = 60.0  # seconds


def connect(
    url: str,
    token: str | None = None,
    *,
    ca: str | Path | None = None,
    progress: bool | None = None,
    patience: float = PATIENCE,
) -> "Connection":
    """Connect to a takifugu server, and ask there as in a local session.

    For example::

        with tf.connect("https://stats.example.org") as server:
            visits = server.dataset("visits")
            plan = visits.plan.histogram(by="country", epsilon=0.5)  # spends nothing
            result = visits.release(plan)  # charged there, then drawn there

    Args:
        url: The address of the server: https, or http on this machine. A token never travels in
            the clear, and never stands in an address.
        token: The token that the owner of the server made; by default that in the variable
            ``TAKIFUGU_TOKEN`` of the environment.
        ca: The file of the authority that signed the server's certificate, if it is one of your
            own; it alone is trusted then.
        progress: Whether to show what takes longer than a second: True in a notebook and in a
            terminal, False nowhere; by default in a notebook.
        patience: For how many seconds to ask again when the connection is lost, or the server says
            that it cannot answer now. A release is charged once, however often it is sent.
    """
    address = read_address(url)
    secret = _token(token)
    if not isinstance(progress, bool | None):
        raise UnsoundRequest(
            f"progress is a {type(progress).__name__}; it must be true or false, or left out",
            field="progress",
        )
    if (
        isinstance(patience, bool)
        or not isinstance(patience, int | float)
        or not (is_finite(patience) and patience >= 0)
    ):
        raise UnsoundRequest("patience must be a number of seconds, 0 or more", field="patience")
    exchange = Exchange(
        address, secret, trust=trust_of(address, ca), timeout=TIMEOUT, patience=float(patience)
    )
    try:
        me = DocumentPart.of(exchange.document(exchange.ask("GET", f"{API}/me", reach=2.0)))
        return Connection(exchange, me.text("name"), me.text("role"), progress)
    except BaseException:
        exchange.close()
        raise


def _token(given: str | None) -> str:
    """The token that was given, or that of the environment."""
    token = os.environ.get(TOKEN) if given is None else given
    if token is None:
        raise UnsoundRequest(
            f"there is no token; give `token`, or set {TOKEN}: the owner of the server makes one"
            " with `takifugu token create --role analyst --name NAME`",
            field="token",
            reason="missing",
        )
    if not isinstance(token, str) or not (secret := token.strip()):
        raise UnsoundRequest("the token is empty or no text", field="token", reason="form")
    if not secret.isascii() or not secret.isprintable() or " " in secret or len(secret) > 500:
        raise UnsoundRequest(
            "the token has spaces, or letters that a token has not; paste it as it was shown",
            field="token",
            reason="form",
        )
    return secret


class Connection(Closing):
    """A connection to a server, made by `connect`; a context manager that closes it.

    It may be used by several threads: each has a connection of its own.

    Attributes:
        name: Who asks: the name that the ledger has for them.
        role: What they may do: ``analyst``, ``owner`` or ``auditor``.
        progress: Whether to show what takes long.
        exchange: The requests and answers beneath.
    """

    def __init__(self, exchange: Exchange, name: str, role: str, progress: bool | None) -> None:
        self.exchange, self.name, self.role, self.progress = exchange, name, role, progress
        self.closed = False

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<Connection to {self.url} as {self.role} {self.name!r}{state}>"

    def close(self) -> None:
        """Close it; what was released stays released."""
        self.closed = True
        self.exchange.close()

    @property
    def url(self) -> str:
        """The address of the server."""
        return self.exchange.address.url

    def datasets(self) -> tuple[str, ...]:
        """The names of the datasets that one may ask about."""
        if self.closed:
            raise SessionClosed()
        items = self.exchange.items(f"{API}/datasets?limit=200")
        return tuple(item.text("name") for item in items)

    def dataset(self, name: str) -> RemoteDataset:
        """A dataset by its name. Nothing is asked before the first plan."""
        if self.closed:
            raise SessionClosed()
        if not isinstance(name, str) or not name:
            raise UnsoundRequest(
                "the name of a dataset must be text; `.datasets()` lists them", field="dataset"
            )
        return RemoteDataset(self, name)
