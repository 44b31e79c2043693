"""Routes for machines: whether the server is alive and ready, and its metrics."""

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from takifugu.server.api.problem_responses import json_response
from takifugu.server.api.problems import Problem
from takifugu.server.operation.readiness import Readiness
from takifugu.server.operation.server_metrics import CONTENT_TYPE, ServerMetrics
from takifugu.server.services import services_of

router = APIRouter(tags=["operation"])


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
    found: ServerMetrics | None = services_of(request).metrics
    if found is None:
        raise Problem(404, "not-found", "this server counts nothing")
    return Response(found.text(), headers={"Content-Type": CONTENT_TYPE})
