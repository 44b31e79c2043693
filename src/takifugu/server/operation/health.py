"""Whether a server can do its work now, and what it has done: health and metrics.

Alive (`/healthz`) means that requests are answered at all. Ready (`/readyz`) means that a release
could be charged: the policy can be read, the ledger can be read and written and agrees with its
witness, the state of the server can be read, there is room on the disks of all three, and workers
can be started. Everybody may ask, so that only the names of the checks are told; why one fails is
in the log, which the owner reads.

What a server counts for Prometheus: requests, refusals, workers and jobs, and never data. Labels
are words of the code: the template of a route, a role, a status, the kind of a refusal. No dataset,
no analyst, no query, no amount of a budget: whoever reads metrics for operation needs none of them,
time series are kept for years, and a label is easily forwarded to a place with fewer rules. How
often releases were refused does say something about how people work; so `/metrics` is for owners
and auditors alone.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from errno import ENOSPC
from functools import cache
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from pydantic import BaseModel, Field

from takifugu.errors import LedgerSetBack, TakifuguError
from takifugu.server.api.problems import Problem
from takifugu.server.api.responses import json_response
from takifugu.server.services import services_of

if TYPE_CHECKING:
    from takifugu.server.services import Services

log = logging.getLogger("takifugu.server.readiness")
CHECK_INTERVAL = 2.0  # seconds: the ledger is asked no more often, whoever asks
CHECK_TIMEOUT = 20.0  # seconds for all checks; a ledger that others hold locked is waited for
CHECKS = ("policy", "ledger", "witness", "state", "disk", "workers")
router = APIRouter(tags=["operation"])
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8"
OTHER = "other"  # an address that is no route: what was asked for must not become a label
NOBODY = "nobody"
Gauges = Callable[[], Iterable[tuple[str, str, str, float]]]


class Readiness:
    """The checks of one server, made at most every `CHECK_INTERVAL` seconds."""

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
            if monotonic() - self._at > CHECK_INTERVAL:
                self._found = await self._all()
                self._at = monotonic()
                self._tell()
        return self._found

    async def _all(self) -> dict[str, bool]:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT):
                checks = await asyncio.to_thread(self._in_thread)
        except TimeoutError:
            log.error("the ledger or the state of the server did not answer in time")
            checks = {
                "policy": True,
                "ledger": False,
                "witness": True,
                "state": False,
                "disk": True,
            }
        return checks | {"workers": self._services.pool.able}

    def _in_thread(self) -> dict[str, bool]:
        services = self._services
        checks = {"policy": _goes_well("policy", lambda: services.project())}
        checks["ledger"] = checks["witness"] = checks["policy"]
        if checks["policy"]:
            broken = _failing_part(lambda: _write_nothing(services))
            checks |= {"ledger": broken != "ledger", "witness": broken != "witness"}
        checks["disk"] = not checks["policy"] or _goes_well("disk", lambda: _has_room(services))
        return checks | {"state": _goes_well("state", lambda: _read_state(services))}

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
    from takifugu.server.operation.preflight import is_full

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


class ServerMetrics:
    """The counts of one server, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "takifugu_requests",
            "Requests that were answered.",
            ("method", "route", "role", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "takifugu_request_seconds",
            "From the first byte of a request in the app to the last of its response.",
            ("route", "role"),
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._sent = Counter(
            "takifugu_sent_bytes", "Bytes of response bodies.", registry=self.registry
        )
        self._refused = Counter(
            "takifugu_refusals",
            "Requests that were refused, by the kind of the problem.",
            ("kind",),
            registry=self.registry,
        )
        # found once: labels are words of the code, of which there are few
        self._counted = cache(lambda *labels: self._requests.labels(*map(str, labels)))
        self._timed = cache(self._seconds.labels)
        self._began = monotonic()
        self._states: list[Gauges] = []
        self.registry.register(_Gauges(self._states))
        ProcessCollector(registry=self.registry)

    def answered(
        self, *, method: str, route: str, role: str, status: int, seconds: float, sent: int
    ) -> None:
        """Count a request that was answered."""
        self._counted(method, route, role, status).inc()
        self._timed(route, role).observe(seconds)
        self._sent.inc(sent)

    def refused(self, kind: str) -> None:
        """Count a refusal."""
        self._refused.labels(kind).inc()

    def watch(self, gauges: Gauges) -> None:
        """Ask for the present values of gauges whenever metrics are read.

        Each is a name, its help, a state and a value, as ("takifugu_jobs", "…", "running", 2).
        """
        self._states.append(gauges)

    def text(self) -> bytes:
        """All of it as Prometheus reads it."""
        return generate_latest(self.registry)


class _Gauges(Collector):
    """Values that are asked for when metrics are read."""

    def __init__(self, states: list[Gauges]) -> None:
        self._states = states

    def collect(self) -> Iterable[Metric]:
        families: dict[str, GaugeMetricFamily] = {}
        for gauges in self._states:
            for name, words, state, value in gauges():
                if name not in families:
                    families[name] = GaugeMetricFamily(name, words, labels=("state",))
                families[name].add_metric((state,), value)
        return families.values()


class Alive(BaseModel):
    """The server answers."""

    status: str = Field(description="That it does.", examples=["alive"])


class Ready(BaseModel):
    """The server can do its work."""

    status: str = Field(description="That it can.", examples=["ready"])
    checks: dict[str, bool] = Field(description="What was checked, and whether it went well.")


@router.get("/healthz", response_model=Alive)
async def healthz() -> Response:
    """Whether the server answers at all."""
    return json_response({"status": "alive"})


@router.get("/readyz", response_model=Ready)
async def readyz(request: Request) -> Response:
    """Whether a release could be charged now: 200, or 503 with the checks that fail."""
    app = request.app
    if not hasattr(app.state, "readiness"):
        app.state.readiness = Readiness(services_of(request))
    checks = await app.state.readiness.checks()
    failing = sorted(name for name, well in checks.items() if not well)
    if failing:
        raise Problem(
            503,
            "not-ready",
            f"not ready: {', '.join(failing)}; the server's log says why",
            reason=failing[0],
            extra={"checks": checks},
            headers={"Retry-After": "5"},
        )
    return json_response({"status": "ready", "checks": checks})


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}, "description": "Counts for Prometheus."}},
)
async def metrics(request: Request) -> Response:
    """Counts and durations for Prometheus; no names and no data."""
    counts: ServerMetrics | None = services_of(request).metrics
    if counts is None:
        raise Problem(404, "not-found", "this server counts nothing")
    return Response(counts.text(), headers={"Content-Type": CONTENT_TYPE})
