"""Problem documents of a server as the errors of takifugu, with their fields.

The document of an error names its class and has its fields (RFC 9457). The error is made again
without its own constructor: the words are those of the server. A document that names no error of
takifugu, or lacks its fields, is a `ServerRefused`.

What can go wrong between a client and its server.

* TakifuguError
  x ServerUnreachable   no answer: refused, cut off, not to be trusted, or not a takifugu server
  x ServerRefused       an answer that no error of takifugu stands for: signed out, forbidden, …
  x ApprovalPending     the release waits for an owner
  x ApprovalDeclined    the owner said no, or the request was withdrawn

Everything else that a server says is raised as the error that a local session would raise:
`takifugu.client.problem_errors`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from takifugu.declarations import DriverMissing, InvalidQuery
from takifugu.declarations.table_errors import DatabaseFailed
from takifugu.documents.reading import (
    DocumentPart,
    InvalidDocument,
    decimal,
    fraction,
    json_value,
    listed,
    number,
    text,
    whole,
)
from takifugu.errors import (
    ApprovalRefused,
    BudgetExceeded,
    CellsChanged,
    InvalidCharge,
    LedgerConflict,
    LedgerUnavailable,
    LedgerUnwritable,
    NoBudget,
    NotAccepted,
    SameRows,
    TakifuguError,
    TooLarge,
    UnknownAnalyst,
    UnsoundRequest,
)
from takifugu.session.release_errors import MostlyNoise, OverBudget, ReleaseFailed, StalePlan


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
        words = f": {note}" if note else ""
        who = "the owner refused it" if state == "refused" else "it was withdrawn"
        super().__init__(
            f"request {request} came to nothing, {who}{words}; nothing was charged",
            field="approval",
            reason=state,
        )


TYPE = "urn:takifugu:problem:"
Reader = Callable[[Any, str], Any]


def _or_none(read: Reader) -> Reader:
    return lambda value, path: None if value is None else read(value, path)


def _pair(value: Any, path: str) -> tuple[float, float]:
    numbers = listed(number)(value, path)
    if len(numbers) != 2:
        raise InvalidDocument(path, given="is no pair", needed="be two numbers")
    return numbers[0], numbers[1]


_GIVEN: Mapping[str, Reader] = {"given": json_value, "needed": json_value}
_LEDGER: Mapping[str, Reader] = {"dataset": text, "event": _or_none(whole)}
_BUDGET: Mapping[str, Reader] = {
    "query": text,
    "dataset": text,
    "analyst": _or_none(text),
    "currency": text,
    "needs": fraction,
    "left": fraction,
}
ERRORS: Mapping[type[TakifuguError], Mapping[str, Reader]] = {
    InvalidQuery: {"given": text, "needed": text},
    InvalidCharge: {"given": text, "needed": text},
    UnsoundRequest: _GIVEN,
    TooLarge: {"size": _or_none(number), "limit": _or_none(number)},
    BudgetExceeded: _BUDGET,
    OverBudget: {**_BUDGET, "alone": number, "most": decimal},
    MostlyNoise: {
        "words": text,
        "name": _or_none(text),
        "half_width": number,
        "range": _pair,
        "size": number,
        "epsilon_needed": _or_none(decimal),
        "rows_factor": _or_none(whole),
    },
    StalePlan: {"differences": listed(text)},
    ReleaseFailed: {"trouble": text},
    NoBudget: _LEDGER,
    NotAccepted: {**_LEDGER, "changed": listed(text), "keys": listed(text)},
    UnknownAnalyst: {
        **_LEDGER,
        "analyst": _or_none(text),
        "known": listed(text),
        "similar": listed(text),
    },
    ApprovalRefused: {**_LEDGER, "approval": _or_none(whole)},
    ApprovalDeclined: {"request": whole, "dataset": text, "state": text, "note": text},
    LedgerConflict: _LEDGER,
    LedgerUnavailable: _LEDGER,
    LedgerUnwritable: _LEDGER,
    CellsChanged: {**_LEDGER, "changes": listed(text)},
    SameRows: {**_LEDGER, "other": text, "same": _or_none(text)},
    DatabaseFailed: {"doing": text, "trouble": text},
    DriverMissing: {"package": text, "extra": text},
}  # registry: one line for each error that a server may send
OPTIONAL: Mapping[str, Any] = {  # what a server leaves out for whom it is not
    "name": None,
    "event": None,
    "dataset": "",
    "analyst": None,
    "approval": None,
    "known": (),
    "similar": (),
    "keys": (),
}
BY_NAME = {kind.__name__: kind for kind in ERRORS}


def error_of(document: Any, *, status: int = 0, retry_after: float | None = None) -> TakifuguError:
    """The error that a problem document stands for."""
    try:
        problem = DocumentPart.of(document)
        kind = BY_NAME.get(problem.text("type").removeprefix(TYPE))
        if kind is not None:
            return _made(kind, problem)
    except InvalidDocument:  # it says too little to be made again
        pass
    known = document if isinstance(document, Mapping) else {}
    words = {key: part for key, part in known.items() if isinstance(part, str)}
    stated = known.get("status")
    if isinstance(stated, bool) or not isinstance(stated, int):
        stated = 0
    return ServerRefused(
        words.get("detail", f"the server answered with status {status}"),
        status=status or stated,
        code=str(known.get("type", "unknown"))[:200].removeprefix(TYPE),
        field=words.get("field", ""),
        reason=words.get("reason", ""),
        problem={str(key): value for key, value in known.items()},
        retry_after=retry_after,
    )


def _made(kind: type[TakifuguError], problem: DocumentPart) -> TakifuguError:
    """An error of this class with the words and the fields of a document."""
    message = problem.text("detail")
    field, reason = (problem.maybe(key, text) or "" for key in ("field", "reason"))
    values = {
        name: OPTIONAL[name]
        if name in OPTIONAL and name not in problem.given
        else problem.read(name, read)
        for name, read in ERRORS[kind].items()
    }
    if kind is MostlyNoise:  # in Python it is confirmed in another way than over HTTP
        return MostlyNoise(**values)
    error = kind.__new__(kind)
    TakifuguError.__init__(error, message, field=field, reason=reason)
    for name, value in values.items():
        setattr(error, name, value)
    return error
