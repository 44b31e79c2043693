"""Whether a server can do its work now: what a load balancer or systemd asks.

Alive (`/healthz`) means that requests are answered at all. Ready (`/readyz`) means that a release
could be charged: the policy can be read, the ledger can be read and written and agrees with its
witness, the server's own state can be read, there is room on the disks of all three, and workers
can be started. Everybody may ask, so that only the names of the checks are told; why one fails is
in the owner's log.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from errno import ENOSPC
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from takifugu.errors import LedgerSetBack, TakifuguError
from takifugu.server.operation.disk_space import is_full

if TYPE_CHECKING:
    from takifugu.server.services import Services

log = logging.getLogger("takifugu.server.readiness")
KEPT = 2.0  # seconds: however often somebody asks, the ledger is asked no more often than that
PATIENCE = 20.0  # seconds for all checks; a ledger that others hold locked is waited for
CHECKS = ("policy", "ledger", "witness", "state", "disk", "workers")


class Readiness:
    """The checks of one server, made at most every `KEPT` seconds."""

    def __init__(self, services: "Services") -> None:
        self._services = services
        self._found: dict[str, bool] = {}
        self._at = float("-inf")
        self._lock = asyncio.Lock()
        self._told: tuple[str, ...] = ()
        self.stopping = False

    async def checks(self) -> dict[str, bool]:
        """Each check by name, and whether it went well."""
        if self.stopping:
            return {"running": False}
        async with self._lock:
            if monotonic() - self._at > KEPT:
                self._found = await self._all()
                self._at = monotonic()
                self._tell()
        return self._found

    async def _all(self) -> dict[str, bool]:
        try:
            async with asyncio.timeout(PATIENCE):
                found = await asyncio.to_thread(self._in_thread)
        except TimeoutError:
            log.error("the ledger or the state of the server did not answer in time")
            found = {"policy": True, "ledger": False, "witness": True, "state": False, "disk": True}
        return found | {"workers": self._services.pool.able}

    def _in_thread(self) -> dict[str, bool]:
        services = self._services
        found = {"policy": _goes_well("policy", lambda: services.project())}
        found["ledger"] = found["witness"] = found["policy"]
        if found["policy"]:
            broken = _failing_part(lambda: _write_nothing(services))
            found |= {"ledger": broken != "ledger", "witness": broken != "witness"}
        found["disk"] = not found["policy"] or _goes_well("disk", lambda: _has_room(services))
        return found | {"state": _goes_well("state", lambda: _read_state(services))}

    def _tell(self) -> None:
        failing = tuple(name for name, well in self._found.items() if not well)
        if failing != self._told:
            self._told = failing
            if failing:
                log.error("not ready: %s", ", ".join(failing))
            else:
                log.info("ready")


def _write_nothing(services: "Services") -> None:
    """Lock the ledger as a charge does, compare it with its witness, and write nothing."""
    with services.project().ledger() as ledger:
        ledger.check_writable()


def _read_state(services: "Services") -> None:
    state = services.state
    state.session_of("no such session")
    if state.in_file and not os.access(Path(state.name), os.W_OK):
        raise PermissionError(state.name)


def _has_room(services: "Services") -> None:
    if is_full(services.project()):
        raise OSError(ENOSPC, os.strerror(ENOSPC))


def _failing_part(work: Callable[[], object]) -> str:
    """Which of the ledger and its witness fails; empty if neither does."""
    try:
        work()
    except TakifuguError as error:
        witness = isinstance(error, LedgerSetBack) or error.reason == "witness"
        log.warning("the ledger is not ready: %s", error)
        return "witness" if witness else "ledger"
    except Exception as error:
        log.warning("the ledger is not ready", exc_info=error)
        return "ledger"
    return ""


def _goes_well(name: str, work: Callable[[], object]) -> bool:
    try:
        work()
    except Exception as error:
        log.warning("the check %r fails", name, exc_info=error)
        return False
    return True
