"""The app: routes, who may call them, and problem documents for whatever goes wrong."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute

from takifugu.server.access.authentication import add_access, authorize
from takifugu.server.api import (
    approval_routes,
    description_routes,
    job_routes,
    ledger_routes,
    openapi_document,
    owner_routes,
    query_routes,
    release_routes,
)
from takifugu.server.api.responses import ProblemsOnly, add_handlers
from takifugu.server.operation import health
from takifugu.server.pages import (
    ask_pages,
    dataset_pages,
    page_rendering,
    release_pages,
    token_pages,
)
from takifugu.server.pages.page_rendering import add_pages
from takifugu.server.services import Services

MODULES = (  # each has a `router`, whose paths all stand in `access_rules.RULES`
    query_routes,  # the first to be found: most requests are plans
    health,
    openapi_document,
    description_routes,
    release_routes,
    job_routes,
    approval_routes,
    owner_routes,
    ledger_routes,
    page_rendering,
    dataset_pages,
    ask_pages,
    release_pages,
    token_pages,
)


def routes() -> tuple[APIRoute, ...]:
    """Every route of the app, in the order in which they are tried."""
    every = (route for module in MODULES for route in module.router.routes)
    return tuple(route for route in every if isinstance(route, APIRoute))


def documented_app() -> FastAPI:
    """The routes, who may call them, and their OpenAPI document; nothing that they work with."""
    from takifugu import __version__

    app = FastAPI(
        lifespan=_living,
        title="takifugu",
        version=__version__,
        openapi_url=None,  # a route of ours, which the table of rules knows
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(authorize)],
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.routes = routes()
    for module in MODULES:
        app.include_router(module.router)
    app.openapi = lambda: openapi_document.openapi_document(app)  # type: ignore[method-assign]
    return app


def create_app(services: Services) -> FastAPI:
    """The app of a server, whose routes share ``services``."""
    app = documented_app()
    app.state.services, app.state.approvals = services, approval_routes.ApprovalDesk(services)
    add_handlers(app)
    app.add_middleware(ProblemsOnly)
    add_pages(app)
    add_access(app, services.settings)  # the outermost: whatever is answered has its headers
    return app


@asynccontextmanager
async def _living(app: FastAPI) -> AsyncIterator[None]:
    """From the start of the app to its end: what was approved is released meanwhile."""
    desk: approval_routes.ApprovalDesk = app.state.approvals
    desk.start()
    yield
    await desk.close()
