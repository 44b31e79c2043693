"""Decisions of owners in a running server: each is followed by its release, also after a crash."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from takifugu.errors import TakifuguError
from takifugu.server import approvals
from takifugu.server.approvals import Decision
from takifugu.server.roles import Actor
from takifugu.server.services import Services
from takifugu.server.state.approval_requests import Approval
from takifugu.server.state.state_errors import StateConflict

if TYPE_CHECKING:
    from takifugu.ledger import Ledger

log = logging.getLogger("takifugu.server.approvals")
DELAYS = (1.0, 5.0, 30.0, 300.0)  # seconds until the next attempt; the last one again and again
ATTEMPT = 3600.0  # seconds that one look at a job waits
Found = TypeVar("Found")


class ApprovalDesk:
    """Decides requests, and sees to it that what was approved is released.

    A release that fails for reasons that may pass (a worker that is lost, a ledger that cannot be
    reached) is tried again; when the server starts, what was approved before is taken up again.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._following: dict[int, asyncio.Task[None]] = {}
        self._starting: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Take up what was decided before the server stopped, however it did."""
        self._starting = asyncio.ensure_future(self._resume())

    async def _resume(self) -> None:
        for delay in _delays():
            try:
                await self._of_ledger(lambda ledger: self._adopt(ledger))
                waiting = await asyncio.to_thread(approvals.to_resume, self._services.state)
                break
            except TakifuguError as error:
                log.error("requests that were approved are not resumed yet: %s", error)
                await asyncio.sleep(delay)
        for approval in waiting:
            log.info("request %d was approved and is released now", approval.id)
            self.follow(approval)

    def _adopt(self, ledger: "Ledger") -> list[Approval]:
        return approvals.adopt_decisions(self._services.state, ledger)

    async def decide(self, actor: Actor, number: int, decision: Decision, note: str) -> Approval:
        """Decide a request in the name of ``actor``; an approved one is released at once.

        Nothing is approved for somebody whose tokens have all ended: nobody could read it.
        """
        state = self._services.state
        if decision == "approved":
            await asyncio.to_thread(self._refuse_gone, number, actor)
        try:
            found = await self._of_ledger(
                lambda ledger: approvals.decide(state, ledger, number, decision, actor.name, note)
            )
        except StateConflict:
            known = await asyncio.to_thread(state.approval, number)
            if known is not None and known.state == "approved":
                self.follow(known)  # a decision that a crash had left is found by the next one
            raise
        if found.state == "approved":
            self.follow(found)
        return found

    def _refuse_gone(self, number: int, by: Actor) -> None:
        state = self._services.state
        known, now = state.approval(number), state.now()
        if known is None or known.state != "pending" or by.name == known.request.analyst:
            return  # which is refused in its own words
        who = known.request.analyst
        live = (one for one in state.tokens() if one.role == "analyst" and one.live(now))
        if not any(one.name == who for one in live):
            raise StateConflict(
                f"{who!r:.80}, who asked, has no token that works any more; make one first, or"
                " refuse the request",
                field="analyst",
                reason="no token",
            )

    async def _of_ledger(self, work: "Callable[[Ledger], Found]") -> Found:
        def write() -> Found:
            with self._services.project().ledger() as ledger:
                return work(ledger)

        # a decision is not cut short when the client goes: what was begun is done
        return await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(write)))

    def follow(self, approval: Approval) -> None:
        """Release an approved request, in the background, until it is released or has failed."""
        if approval.id not in self._following:
            task = asyncio.ensure_future(self._release(approval))
            self._following[approval.id] = task
            task.add_done_callback(lambda _: self._following.pop(approval.id, None))

    async def _release(self, approval: Approval) -> None:
        from takifugu.server.work.tasks import Task

        request, state = approval.request, self._services.state
        analyst = Actor(request.analyst, "analyst", f"approval {approval.id}")
        task = Task("release", request.dataset, analyst, dict(request.options))
        for delay in _delays():
            problem = await self._attempt(analyst, task)
            now = await asyncio.to_thread(state.approval, approval.id)
            if now is None or now.state != "approved" or problem.get("reason") == "cancelled":
                return  # cancelled: the same request of the analyst, or the next start, resumes it
            if problem.get("status") not in (approvals.TRY_AGAIN, 429):
                await asyncio.to_thread(state.finish_approval, approval.id, problem=problem)
                return
            log.warning("request %d is not released yet: %s", approval.id, problem.get("detail"))
            await asyncio.sleep(delay)

    async def _attempt(self, analyst: Actor, task: Any) -> dict[str, Any]:
        """Try a release: the problem, or nothing of one."""
        from takifugu.server.work.work_errors import WorkFailed

        try:
            job = self._services.board.start(analyst, task)
        except WorkFailed as error:  # too many jobs of this analyst, or one with the same key
            return error.problem
        while not await job.wait(ATTEMPT):
            pass
        return dict(job.problem or {})

    async def close(self) -> None:
        """Follow nothing any more; the next start resumes what is left."""
        tasks = [*self._following.values(), *([self._starting] if self._starting else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _delays() -> Any:
    """Seconds to wait before the next attempts; the last delay is repeated."""
    yield from DELAYS
    while True:
        yield DELAYS[-1]
