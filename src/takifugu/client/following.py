"""Answers that take long: the job of a request is followed until it ends.

A server that is not done within a second answers with a job (202). What the job says is shown as a
local session shows what it does; an interrupt (Ctrl-C) cancels it. If the server forgets the job,
because it was started again, or loses the worker or the ledger, the request is sent again: it is
the same one.
"""

import json
from collections.abc import Iterator, Mapping
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote, unquote

from takifugu.client.exchange import LOST, NEVER, NOT_NOW, Exchange, Reply
from takifugu.client.problem_errors import error_of
from takifugu.client.remote_errors import ServerRefused, ServerUnreachable
from takifugu.documents.reading import DocumentPart
from takifugu.errors import LedgerUnavailable, TakifuguError
from takifugu.session.activity import Activity

API = "/api/v1"
SOON = {"Prefer": "wait=1"}  # then an interrupt has a job to cancel
POLL = 0.5  # seconds between two looks at a job


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
        return problem.status in NOT_NOW and problem.code not in NEVER
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
        except LOST:
            pass  # look from time to time
        while ended is None:
            reply = exchange.ask("GET", path)
            if reply.status == 404:
                return None
            found = DocumentPart.of(exchange.document(reply)).given
            if found.get("state") not in ("waiting", "running"):
                return found
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
