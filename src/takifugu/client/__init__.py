"""Ask a takifugu server as one asks a local session: `takifugu.connect`.

It needs nothing beyond the standard library to talk to the server. Plans and results are the values
of `takifugu.session`, and errors are the errors of takifugu, made again from what the server sent.
"""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.client.connection import Connection as Connection
    from takifugu.client.connection import connect as connect
    from takifugu.client.problem_errors import ApprovalDeclined as ApprovalDeclined
    from takifugu.client.problem_errors import ApprovalPending as ApprovalPending
    from takifugu.client.problem_errors import ServerRefused as ServerRefused
    from takifugu.client.problem_errors import ServerUnreachable as ServerUnreachable
    from takifugu.client.remote_dataset import RemoteDataset as RemoteDataset
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
