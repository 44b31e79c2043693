"""What can go wrong between a client and its server.

* TakifuguError
  x ServerUnreachable   no answer: refused, cut off, not to be trusted, or not a takifugu server
  x ServerRefused       an answer that no error of takifugu stands for: signed out, forbidden, …
  x ApprovalPending     the release waits for an owner
  x ApprovalDeclined    the owner said no, or the request was withdrawn

Everything else that a server says is raised as the error that a local session would raise:
`takifugu.client.problem_errors`.
"""

from collections.abc import Mapping
from typing import Any

from takifugu.errors import TakifuguError


class ServerUnreachable(TakifuguError):
    """The server gave no answer that can be used.

    Attributes:
        url: The address of the server.
        trouble: What happened, in a few words.
        sent: Whether the request may have arrived before the connection was lost.
    """

    def __init__(
        self, url: str, trouble: str, *, reason: str, advice: str = "", sent: bool = False
    ) -> None:
        self.url, self.trouble, self.sent = url, trouble, sent
        ending = f". {advice}" if advice else ""
        super().__init__(f"{url} cannot be used: {trouble}{ending}", field="url", reason=reason)


class ServerRefused(TakifuguError):
    """The server refused a request, or failed.

    Attributes:
        status: The status of the response: 401, 403, 404, 429, 500, ….
        code: The short name of the problem, such as ``no-dataset``.
        problem: The problem document (RFC 9457), as it came.
        retry_after: After how many seconds to ask again; None if the server does not say.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str,
        field: str = "",
        reason: str = "",
        problem: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, field=field, reason=reason)
        self.status, self.code = status, code
        self.problem, self.retry_after = dict(problem or {}), retry_after


class ApprovalPending(TakifuguError):
    """A release that waits for an owner; nothing was charged yet.

    Once it is approved the server releases it: `RemoteDataset.wait_for` gives the result.

    Attributes:
        request: The number of the request for approval.
        dataset: The dataset.
        why: Why it needs an approval, in words.
    """

    def __init__(self, request: int, *, dataset: str, why: str = "") -> None:
        self.request, self.dataset, self.why = request, dataset, why
        because = f" ({why})" if why else ""
        super().__init__(
            f"the release waits for an owner's approval{because}: request {request}. Nothing was"
            f" charged. When it is approved it is released: wait for it with .wait_for({request})",
            field="approval",
            reason="pending",
        )


class ApprovalDeclined(TakifuguError):
    """A request for approval that came to nothing; nothing was charged.

    Attributes:
        request: The number of the request.
        dataset: The dataset.
        state: ``refused`` or ``withdrawn``.
        note: What the owner wrote.
    """

    def __init__(self, request: int, *, dataset: str, state: str, note: str = "") -> None:
        self.request, self.dataset, self.state, self.note = request, dataset, state, note
        said = f": {note}" if note else ""
        who = "the owner refused it" if state == "refused" else "it was withdrawn"
        super().__init__(
            f"request {request} came to nothing, {who}{said}; nothing was charged",
            field="approval",
            reason=state,
        )
