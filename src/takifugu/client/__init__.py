"""Ask a takifugu server as one asks a local session: `takifugu.connect`.

It needs nothing beyond the standard library to talk to the server. Plans and results are the values
of `takifugu.session`, and errors are the errors of takifugu, made again from what the server sent.
"""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.client.connection import Connection, connect
    from takifugu.client.problem_errors import (
        ApprovalDeclined,
        ApprovalPending,
        ServerRefused,
        ServerUnreachable,
    )
    from takifugu.client.remote_dataset import RemoteDataset
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "connection": ("Connection", "connect"),
            "remote_dataset": ("RemoteDataset",),
            "problem_errors": (
                "ApprovalDeclined",
                "ApprovalPending",
                "ServerRefused",
                "ServerUnreachable",
            ),
        },
    )

__all__ = [
    "ApprovalDeclined",
    "ApprovalPending",
    "Connection",
    "RemoteDataset",
    "ServerRefused",
    "ServerUnreachable",
    "connect",
]
