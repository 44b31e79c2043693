"""Errors as problem documents (RFC 9457), with the fields of the Python errors.

One table says which errors there are, which status each has, and whether an analyst may read its
message. What is not in it, or not for analysts, is a trouble of the server: they get a reference to
the line in the owner's log, and no word of what happened.
"""

import dataclasses
import json
import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from http import HTTPStatus
from math import isfinite, isinf
from typing import TYPE_CHECKING, Any, Self

from takifugu.errors import Malformed, TakifuguError
from takifugu.server.access_rules import Actor, Role, may_see
from takifugu.server.operation.server_log import places_of
from takifugu.visible import four_digits, visible

if TYPE_CHECKING:
    from takifugu.project.policy import DatasetPolicy
    from takifugu.project.project import Project

log = logging.getLogger("takifugu.server.problems")
TYPE = "urn:takifugu:problem:"
MEDIA_TYPE = "application/problem+json"
MAX_KEY_SHOWN = 128  # letters of a key that a message repeats
_GIVEN = ("given", "needed")
_BUDGET = ("query", "dataset", "analyst", "currency", "needs", "left")
_LEDGER = ("dataset", "event")
WINDOW_NEEDED = "be [start, end], days, times or whole numbers in order; null for an open side"
TROUBLE = "Something is wrong on the server"
_ASCII = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True)
class ShownError:
    """How an error is answered.

    Attributes:
        status: The status of the response.
        title: What went wrong, the same for every error of the class.
        fields: The fields of the error that the problem has too, beside ``field`` and ``reason``.
        to_analysts: Whether an analyst may read its message and its fields: they hold the words of
            the request, public names and budgets, and nothing of the server.
    """

    status: int
    title: str
    fields: tuple[str, ...] = ()
    to_analysts: bool = True


ERRORS: Mapping[str, ShownError] = {
    # what was asked
    "InvalidQuery": ShownError(422, "The query has no meaning here", _GIVEN),
    "UnsoundRequest": ShownError(422, "No proof supports the requested number", _GIVEN),
    "TooLarge": ShownError(422, "The exact result is out of reach", ("size", "limit")),
    "InvalidCharge": ShownError(422, "The ledger cannot store this", _GIVEN),
    "InvalidToken": ShownError(422, "The token cannot be made", _GIVEN),
    "StateConflict": ShownError(409, "It was decided already, or is another's to decide"),
    # what the budget, the owner or the plan refuses: nothing was released
    "BudgetExceeded": ShownError(409, "The budget does not admit this", _BUDGET),
    "OverBudget": ShownError(
        409, "The budget does not admit this release", (*_BUDGET, "alone", "most")
    ),
    "MostlyNoise": ShownError(
        409,
        "The answer would be mostly noise",
        ("words", "half_width", "range", "size", "epsilon_needed", "rows_factor"),
    ),
    "StalePlan": ShownError(409, "The plan is not what would be released now", ("differences",)),
    "NoBudget": ShownError(409, "The dataset has no budget", _LEDGER),
    "NotAccepted": ShownError(
        409, "The owner has not accepted this policy", (*_LEDGER, "changed", "keys")
    ),
    "UnknownAnalyst": ShownError(
        403, "Analysts have budgets here, and you have none", (*_LEDGER, "analyst"), False
    ),
    "ApprovalRefused": ShownError(
        409, "The approval does not fit this release", (*_LEDGER, "approval")
    ),
    "LedgerConflict": ShownError(409, "The key was used for something else", _LEDGER),
    "ReleaseFailed": ShownError(
        500, "It was charged, and its answer could not be made", ("trouble",)
    ),
    # what only the owner can mend
    "CellsChanged": ShownError(409, "The declaration has changed", (*_LEDGER, "changes"), False),
    "SameRows": ShownError(
        409, "Another dataset has the same rows", (*_LEDGER, "other", "same"), False
    ),
    "BudgetConflict": ShownError(409, "The dataset has another budget", ("dataset",), False),
    "Malformed": ShownError(409, "A file or a value has no meaning", _GIVEN, False),
    "LedgerUnavailable": ShownError(503, "The ledger cannot be reached", _LEDGER, False),
    "LedgerUnwritable": ShownError(503, "The ledger cannot be written", _LEDGER, False),
    "LedgerError": ShownError(503, "The ledger gave no receipt", _LEDGER, False),
    "DatabaseFailed": ShownError(503, "The database gave up", ("doing", "trouble"), False),
    "DriverMissing": ShownError(
        503, "A package is missing on the server", ("package", "extra"), False
    ),
    "TakifuguError": ShownError(503, "Something is wrong on the server", (), False),
}


@dataclass(eq=False)
class Problem(Exception):
    """A request that is answered with a problem document.

    Attributes:
        status: The status of the response.
        kind: A short, stable name of the problem: the end of its ``type``.
        detail: What was given, what is needed, what to do next.
        title: What went wrong, the same for every problem of the kind; by default the words of the
            status.
        field: The parameter at fault; empty if no single one is.
        reason: The cause, where a kind has several.
        extra: More fields of the document.
        headers: Headers of the response.
    """

    status: int
    kind: str
    detail: str
    title: str = ""
    field: str = ""
    reason: str = ""
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(self.detail)

    def document(self) -> dict[str, Any]:
        """The problem as every client gets it."""
        return {
            "type": TYPE + self.kind,
            "title": self.title or HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "field": self.field,
            "reason": self.reason,
            **self.extra,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """The problem that `document` or `problem_of` wrote, as from a worker."""
        rest = dict(document)
        named = rest.pop("type")
        later = {"Retry-After": str(rest["retry_after"])} if "retry_after" in rest else {}
        return cls(
            status=rest.pop("status"),
            kind=named.removeprefix(TYPE) if named.startswith(TYPE) else rest.get("reason", ""),
            detail=rest.pop("detail"),
            title=rest.pop("title"),
            field=rest.pop("field"),
            reason=rest.pop("reason"),
            extra=rest,
            headers=later,
        )


class WorkFailed(Problem):
    """A task of a worker ended with an error, which is told already, to who asked for it."""


def find_policy(project: "Project", actor: Actor, name: str | None) -> "DatasetPolicy":
    """The policy of the dataset with exactly this name.

    Raises:
        Problem: There is none, or the policy lists analysts and the caller is not among them: 404
            for both.
    """
    policy = None if name is None else project.policy.datasets.get(name)
    if policy is None or not may_see(actor, policy):
        raise Problem(404, "no-dataset", "there is no such dataset here", field="dataset")
    return policy


def problem_of(
    error: BaseException, role: Role | None, *, key: str | None = None
) -> dict[str, Any]:
    """The problem document of an error, as the holder of ``role`` may read it.

    Owners and auditors read every message that takifugu wrote: none holds a protected value. An
    analyst reads those of the errors that are about their request. A message that takifugu did not
    write may hold anything and is shown to nobody: the owner's log gets the kind of error and
    where it was raised. ``key`` is the idempotency key that came with the request, if one did.
    """
    if isinstance(error, Problem):  # of a worker, it is told already, to this role
        return error.document()
    known = isinstance(error, TakifuguError)
    name, shown = _shown(error)
    exact = name == type(error).__name__
    if known and (role in ("owner", "auditor") or (exact and shown.to_analysts)):
        return _told(error, shown, key)
    reference = secrets.token_hex(6)
    log.error(
        "%s (reference %s): %s",
        *(
            type(error).__name__,
            reference,
            str(error) if known else " < ".join(places_of(error.__traceback__)[:4]),
        ),
        extra={"reference": reference, "error": type(error).__name__},
    )
    if name == "UnknownAnalyst":
        detail = "analysts have budgets of their own on this dataset; ask its owner for one"
        return Problem(shown.status, name, detail, title=shown.title).document()
    return Problem(
        max(shown.status, 503) if known else 500,
        "server",
        f"{TROUBLE} (reference {reference}); its owner finds the reference in the log",
        title=TROUBLE,
        reason="server",
        extra={"reference": reference},
    ).document()


def _shown(error: BaseException) -> tuple[str, ShownError]:
    """The line of the table for an error: that of its class, or of the nearest one above it."""
    for kind in type(error).__mro__:
        if kind.__module__.startswith("takifugu.") and kind.__name__ in ERRORS:
            return kind.__name__, ERRORS[kind.__name__]
    return "", ERRORS["TakifuguError"]


def _told(error: BaseException, shown: ShownError, key: str | None) -> dict[str, Any]:
    fields = {name: plain(getattr(error, name, None)) for name in shown.fields}
    if _is_of_window(error):
        fields["needed"] = WINDOW_NEEDED
    return Problem(
        shown.status,
        type(error).__name__,
        over_http(error, key),
        title=shown.title,
        field=str(getattr(error, "field", "")),
        reason=str(getattr(error, "reason", "")),
        extra=fields,
    ).document()


def over_http(error: BaseException, key: str | None = None) -> str:
    """The message of an error for somebody who sent a request: Python and options mean nothing.

    The words of an error are for sessions and the command line. Where they say what to do next,
    this says what that is in a request, or on a page that sends one.
    """
    name, reason = type(error).__name__, getattr(error, "reason", "")
    if name == "MostlyNoise" and isinstance(error, TakifuguError):
        return (
            f"{getattr(error, 'words', '')}. Nothing was charged. To release it all the same, send"
            ' `"accept_noise": true` in the body, or check the box on the page'
        )
    if name in ("LedgerConflict", "StateConflict") and reason == "key" and key is not None:
        sent = visible(repr(key[:MAX_KEY_SHOWN]))
        return f"`Idempotency-Key` {sent} was used for another release; send a new one"
    if name == "UnsoundRequest" and reason == "below-table":
        given, least = getattr(error, "given", None), getattr(error, "needed", None)
        return (
            f"epsilon is {four_digits(given or 0, 'down')}, and the translation table of this prior"
            f" begins at {four_digits(least or 0, 'up')}; ask for at least that"
        )
    if _is_of_window(error):
        return f"`window` {getattr(error, 'given', '')}; it must {WINDOW_NEEDED}"
    return str(error)


def _is_of_window(error: BaseException) -> bool:
    """Whether it says how a window is written, which Python and JSON do differently."""
    return isinstance(error, Malformed) and (error.field, error.reason) == ("window", "")


def plain(value: Any) -> Any:
    """A field of an error as JSON: exact numbers and infinite ones as text."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, Fraction | Decimal):
        return str(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [plain(part) for part in value]
    return type(value).__name__


def json_bytes(document: Any) -> bytes:
    """A document as JSON in ASCII: every character can be written, and none is misread.

    JSON has no number for what is infinite: null stands for it, as in the documents of results.

    Raises:
        ValueError: A number is NaN, which no document of ours means.
    """
    try:
        return _dumped(document)
    except ValueError:
        return _dumped(_without_infinite(document))


def _dumped(document: Any) -> bytes:
    return _ASCII.encode(document).encode("ascii")


def _without_infinite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_infinite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinite(part) for part in value]
    return None if isinstance(value, float) and isinf(value) else value
