"""The app: routes, who may call them, and problem documents for whatever goes wrong."""

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

from fastapi import Depends, FastAPI, Request

from takifugu.server.api.openapi_document import openapi_document
from takifugu.server.api.problem_responses import ProblemsOnly, add_handlers
from takifugu.server.routers import routers, routes
from takifugu.server.services import Services

Guard = Callable[[Request], Awaitable[Any]]


def create_app(services: Services, *, guard: Guard | None = None) -> FastAPI:
    """The app of a server.

    Args:
        services: What its routes share.
        guard: What decides who may call which route; `authorize` unless a test has another.
    """
    from takifugu import __version__

    if guard is None:
        guard = import_module("takifugu.server.access.authentication").authorize
    app = FastAPI(
        title="takifugu",
        version=__version__,
        openapi_url=None,  # a route of ours, which the table of rules knows
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(guard)],
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.services, app.state.routes = services, routes()
    for router in routers():
        app.include_router(router)
    add_handlers(app)
    app.add_middleware(ProblemsOnly)
    app.openapi = lambda: openapi_document(app)  # type: ignore[method-assign]
    return app
