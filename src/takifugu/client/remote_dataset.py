"""A dataset of a server: planned and released as in a local session, with its budget and history.

Answers that take long: the job of a request is followed until it ends.

A server that is not done within a second answers with a job (202). What the job says is shown as a
local session shows what it does; an interrupt (Ctrl-C) cancels it. If the server forgets the job,
because it was started again, or loses the worker or the ledger, the request is sent again: it is
the same one.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, unquote

from takifugu._core.closing import Closing
from takifugu.client.exchange import CONNECTION_LOST, LASTING, NOT_NOW, Exchange, Reply
from takifugu.client.problem_errors import (
    ApprovalDeclined,
    ApprovalPending,
    ServerRefused,
    ServerUnreachable,
    error_of,
)
from takifugu.documents.declared import Codec, from_document
from takifugu.documents.reading import DocumentPart, InvalidDocument, listed, text, truth
from takifugu.errors import LedgerUnavailable, TakifuguError, UnsoundRequest
from takifugu.session.activity import Activity, screen
from takifugu.session.plan_documents import digest, on_a_server, plan_from_document
from takifugu.session.planner import Planner
from takifugu.session.query_options import QueryOptions, checked
from takifugu.session.release_errors import SessionClosed, StalePlan
from takifugu.session.release_plan import Plan
from takifugu.session.release_result import Result, result_from_document

if TYPE_CHECKING:
    from takifugu.client.connection import Connection

API = "/api/v1"
SOON = {"Prefer": "wait=1"}  # then an interrupt has a job to cancel
POLL = 0.5  # seconds between two looks at a job
APPROVAL_POLL = (0.2, 5.0)  # seconds between two looks at a request: at first, and later


def answered(
    exchange: Exchange,
    method: str,
    path: str,
    activity: Activity,
    *,
    document: Any = None,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """The document of an answer, however long it takes.

    Raises:
        TakifuguError: The error that the server answered with.
    """
    until, pause = monotonic() + exchange.patience, 0.1
    while True:
        reply = exchange.ask(method, path, document=document, headers={**SOON, **(headers or {})})
        place = reply.headers.get("location", "")
        if reply.status != 202 or not place.startswith(f"{API}/jobs/"):
            return exchange.document(reply)
        ended = _followed(exchange, place, activity)
        if ended is not None and ended.get("state") == "done":
            return ended.get("result")
        problem = None if ended is None else _problem(ended)
        if problem is not None and (not _passing(problem) or monotonic() + pause > until):
            raise problem
        if monotonic() + pause > until:
            raise ServerUnreachable(
                exchange.address.url, "it was started again, again and again", reason="lost"
            )
        sleep(pause)  # the job is forgotten, or its worker ended: ask for the same again
        pause = min(2 * pause, 2.0)


def _passing(problem: TakifuguError) -> bool:
    """Whether a job failed by something that passes: its worker ended, the ledger was away."""
    if isinstance(problem, ServerRefused):
        return problem.status in NOT_NOW and problem.code not in LASTING
    return isinstance(problem, LedgerUnavailable)


def _problem(ended: Mapping[str, Any]) -> TakifuguError:
    if ended.get("problem") is not None:
        return error_of(ended["problem"])
    return ServerRefused("the job was cancelled", status=409, code="cancelled", reason="cancelled")


def _followed(exchange: Exchange, place: str, activity: Activity) -> Mapping[str, Any] | None:
    """The job at a place when it has ended; None if the server does not know it any more."""
    name = quote(unquote(place.removeprefix(f"{API}/jobs/")), safe="")
    path = f"{API}/jobs/{name}"
    try:
        ended: Mapping[str, Any] | None = None
        try:
            for kind, content in _events(exchange.lines(f"{path}/events")):
                if kind == "end":
                    ended = DocumentPart.of(content).given
                elif kind == "progress" and isinstance(content, Mapping):
                    activity(str(content.get("text", "")))
        except CONNECTION_LOST:
            pass  # look from time to time
        while ended is None:
            reply = exchange.ask("GET", path)
            if reply.status == 404:
                return None
            job = DocumentPart.of(exchange.document(reply)).given
            if job.get("state") not in ("waiting", "running"):
                return job
            sleep(POLL)
        return ended
    except KeyboardInterrupt:
        _cancel(exchange, path)
        raise


def _cancel(exchange: Exchange, path: str) -> Reply | None:
    """Cancel a job as well as that can be done; whoever interrupts does not wait for it."""
    try:
        return exchange.ask("DELETE", path, patience=2.0)
    except TakifuguError:
        return None


def _events(lines: Iterator[bytes]) -> Iterator[tuple[str, Any]]:
    """The server-sent events in lines: their kind and their content."""
    kind = "message"
    data: list[str] = []
    for line in lines:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if not text:
            if data:
                yield kind, _content("\n".join(data))
            kind, data = "message", []
        elif text.startswith("event:"):
            kind = text.removeprefix("event:").strip()
        elif text.startswith("data:"):
            data.append(text.removeprefix("data:").removeprefix(" "))


def _content(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _step(value: Any, path: str) -> tuple[datetime, float]:
    charge = DocumentPart.of(value, path)
    return charge.moment("at"), charge.number("spent")


@dataclass(frozen=True)
class RemoteBudget:
    """A lifetime budget, and what was spent of it.

    Attributes:
        epsilon: The Pufferfish ε of everything together; None if there is no budget yet.
        delta: The Pufferfish δ beside it.
        spent: The Pufferfish ε of all that was released, rounded up.
        left: What a release on all rows may still cost alone, rounded down; None without a budget.
        most: A Pufferfish ε that a release on all rows may cost now, rounded down; None if that
            is not known.
        by_column: Where rows have several protected columns: what was spent on each.
        steps: When it was spent: the time, and what was spent then, of the latest charges.
        own: The same of the analyst who asks; its ``epsilon`` is None if they have no budget of
            their own. None if they never asked.
    """

    epsilon: Fraction | None
    delta: Fraction
    spent: float
    left: float | None
    most: Decimal | None = None
    by_column: Mapping[str, float] | None = None
    steps: Annotated[tuple[tuple[datetime, float], ...], Codec(listed(_step), key="history")] = ()
    own: "RemoteBudget | None" = None


@dataclass(frozen=True)
class PastRelease:
    """A release that was made.

    Attributes:
        charge: The event of the ledger that paid for it: its name on the server.
        at: When.
        asked: The query in words.
        query: The query, as JSON.
        loss: What each row lost that was read, as JSON.
        kept: Whether its result can be fetched.
    """

    charge: int
    at: datetime
    asked: str
    query: Mapping[str, Any]
    loss: Mapping[str, Any]
    kept: Annotated[bool, Codec(truth, key="result")]


def budget_of(document: Any, analyst: str) -> RemoteBudget:
    """The budget of a dataset and, inside it, that of the analyst who asks."""
    budgets = DocumentPart.of(document).read("budgets", listed(DocumentPart.of))
    by_analyst = {part.given.get("analyst"): part for part in reversed(budgets)}
    if None not in by_analyst:
        raise InvalidDocument("budgets", given="has none of the dataset", needed="have one")
    whole = from_document(RemoteBudget, by_analyst[None].given)
    own = by_analyst.get(analyst)
    return whole if own is None else replace(whole, own=from_document(RemoteBudget, own.given))


def _refuse_no_number(field: str, given: object, of: str) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        message = f"{field} is {given!r:.40}; it must be the number of {of}"
        raise UnsoundRequest(message, field=field)


class RemoteDataset(Closing):
    """A dataset of a server, made by `Connection.dataset`.

    ``plan`` and ``release`` are those of a `takifugu.session.Session`, with the same values and the
    same errors; noise is drawn on the server, after the ledger there was charged. What a plan may
    be released with stays there too: a plan of this dataset is released here and nowhere else.

    A plan is charged once, however often its release is sent: every plan has its own idempotency
    key. After a lost connection release the same plan again.
    """

    def __init__(self, connection: "Connection", name: str) -> None:
        self._connection, self._name, self._closed = connection, name, False
        self._path = f"{API}/datasets/{quote(name, safe='')}"
        self._described: dict[str, Any] | None = None

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"<RemoteDataset {self._name!r} of {self._connection.url}{state}>"

    def close(self) -> None:
        """Ask nothing more here; the connection stays open."""
        self._closed = True

    @property
    def name(self) -> str:
        """Its name: that of its budget in the ledger."""
        return self._name

    # --- plan, then release ---

    @property
    def plan(self) -> Planner:
        """Plans queries, as ``visits.plan.histogram(by="country", epsilon=0.5)``."""
        return Planner(lambda options: self._planned(options)[0])

    def approval_needed(self, plan: Plan) -> str | None:
        """Why a release of a plan would wait for an owner, in words; None if it would not."""
        self._refuse_foreign(plan)
        return self._planned(plan.options)[1]

    def _planned(self, options: QueryOptions) -> tuple[Plan, str | None]:
        if not isinstance(options, QueryOptions):
            raise UnsoundRequest(
                f"a {type(options).__name__} says nothing of a query; give `QueryOptions`",
                field="options",
            )
        options = checked(options)
        answer = self._asked("plans", "planning", {"query": options.exact_document()})
        return (
            answer.read("plan", lambda value, _: plan_from_document(value, options)),
            answer.maybe("approval", text),
        )

    def release(self, plan: Plan, *, accept_noise: bool = False) -> Result:
        """Pay for a plan, then answer it; for free if the same was answered before.

        An answer that is mostly noise is charged only with ``accept_noise=True``.

        Raises:
            ApprovalPending: The policy wants an owner's approval; see `wait_for`.
            StalePlan: The plan is not what would be released now, or is not of this dataset.
        """
        self._refuse_foreign(plan)
        if not isinstance(accept_noise, bool):
            raise UnsoundRequest(
                f"accept_noise is a {type(accept_noise).__name__}; it must be true or false",
                field="accept_noise",
            )
        body = {
            "query": plan.options.exact_document(),
            "accept_noise": accept_noise,
            "plan": digest(plan),
        }
        answer = self._asked("releases", "releasing", body, key=plan.charge.key)
        if answer.has("approval") and not answer.has("result"):
            raise self._pending(answer.part("approval"))
        return answer.read("result", lambda value, _: result_from_document(value))

    def wait_for(self, request: int, *, timeout: float | None = None) -> Result:
        """The result of a release that waited for an owner, when it is approved and released.

        Args:
            request: The number of the request: `ApprovalPending.request`.
            timeout: For how many seconds to wait, at most; None for as long as it takes.

        Raises:
            ApprovalDeclined: The owner refused it, or it was withdrawn.
            ApprovalPending: It still waits when the time is over.
        """
        self._refuse_closed()
        _refuse_no_number("request", request, "one")
        until = None if timeout is None else monotonic() + timeout
        pause = APPROVAL_POLL[0]
        with self._doing("waiting for an approval"):
            while True:
                approval = DocumentPart.of(
                    self._connection.exchange.read(f"{API}/approvals/{request}")
                )
                state = approval.text("state")
                if state == "released":
                    return self.result(approval.whole("charge"))
                if state in ("refused", "withdrawn"):
                    note = approval.maybe("note", text) or ""
                    raise ApprovalDeclined(request, dataset=self._name, state=state, note=note)
                if state == "failed":
                    raise error_of(approval.given.get("problem"))
                if until is not None and monotonic() + pause > until:
                    raise self._pending(approval)
                sleep(pause)
                pause = min(1.5 * pause, APPROVAL_POLL[1])

    def _pending(self, approval: DocumentPart) -> TakifuguError:
        why = approval.maybe("why", text) or ""
        return ApprovalPending(approval.whole("id"), dataset=self._name, why=why)

    # --- what is public of it ---

    def describe(self) -> dict[str, Any]:
        """What it has, as JSON: columns, labels, public keys, the order, the kinds of query."""
        if self._described is None:
            self._described = dict(DocumentPart.of(self._told("")).given)
        return self._described

    @property
    def columns(self) -> tuple[str, ...]:
        """The protected columns that queries may be about, in the order of the declaration."""
        return DocumentPart.of(self.describe()).texts("about")

    @property
    def about(self) -> str | None:
        """The column that queries are about; None if there are several."""
        return self.columns[0] if len(self.columns) == 1 else None

    def guarantee(self) -> str:
        """What is protected and what is not, in plain words."""
        return DocumentPart.of(self._told("/guarantee")).text("guarantee")

    @property
    def budget(self) -> RemoteBudget:
        """The lifetime budget as it is now, with one's own inside it."""
        return budget_of(self._told("/budget"), self._connection.name)

    def spent(self) -> float:
        """The Pufferfish ε of all that was released, rounded up."""
        return self.budget.spent

    def history(self) -> tuple[PastRelease, ...]:
        """One's own releases of this dataset, the latest first."""
        self._refuse_closed()
        path = f"{API}/releases?limit=200&dataset={quote(self._name, safe='')}"
        releases = self._connection.exchange.items(path)
        return tuple(from_document(PastRelease, release.given) for release in releases)

    def result(self, charge: int) -> Result:
        """The result of a past release, by the event that paid for it."""
        self._refuse_closed()
        _refuse_no_number("charge", charge, "an event")
        return result_from_document(
            self._connection.exchange.read(f"{API}/releases/{charge}/result")
        )

    # --- asking ---

    def _doing(self, what: str) -> Activity:
        return Activity(what, screen(self._connection.progress))

    def _told(self, path: str) -> Any:
        self._refuse_closed()
        with self._doing("asking") as activity:
            return answered(self._connection.exchange, "GET", self._path + path, activity)

    def _asked(self, what: str, doing: str, body: Any, *, key: str | None = None) -> DocumentPart:
        self._refuse_closed()
        headers = {} if key is None else {"Idempotency-Key": key}
        try:
            with self._doing(doing) as activity:
                path = f"{self._path}/{what}"
                return DocumentPart.of(
                    answered(
                        *(self._connection.exchange, "POST", path, activity),
                        document=body,
                        headers=headers,
                    )
                )
        except ServerUnreachable as error:
            if key is None or not error.sent:
                raise
            raise ServerUnreachable(
                error.url,
                error.trouble,
                reason=error.reason,
                advice="It may have been charged: release the same plan again when the server is"
                " back, which is not charged twice",
                sent=True,
            ) from None

    def _refuse_closed(self) -> None:
        if self._closed or self._connection.closed:
            raise SessionClosed()

    def _refuse_foreign(self, plan: Any) -> None:
        """Raise for what is no plan, or no plan of this dataset."""
        self._refuse_closed()
        if not isinstance(plan, Plan):
            raise UnsoundRequest(
                f"a {type(plan).__name__} is not a plan; release what `.plan` of this dataset made,"
                " such as .plan.histogram(epsilon=0.5)",
                field="plan",
            )
        if not on_a_server(plan) or plan.charge.dataset != self._name:
            raise StalePlan(("charge",))
