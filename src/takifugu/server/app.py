"""The app: routes, who may call them, and problem documents for whatever goes wrong."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI

from takifugu.server.access.authentication import add_access, authorize
from takifugu.server.api.openapi_document import openapi_document
from takifugu.server.api.problem_responses import ProblemsOnly, add_handlers
from takifugu.server.approval_desk import ApprovalDesk
from takifugu.server.pages.error_pages import add_pages
from takifugu.server.routers import routers, routes
from takifugu.server.services import Services


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
    for router in routers():
        app.include_router(router)
    app.openapi = lambda: openapi_document(app)  # type: ignore[method-assign]
    return app


def create_app(services: Services) -> FastAPI:
    """The app of a server, whose routes share ``services``."""
    app = documented_app()
    app.state.services, app.state.approvals = services, ApprovalDesk(services)
    add_handlers(app)
    app.add_middleware(ProblemsOnly)
    add_pages(app)
    add_access(app, services.settings)  # the outermost: whatever is answered has its headers
    return app


@asynccontextmanager
async def _living(app: FastAPI) -> AsyncIterator[None]:
    """From the start of the app to its end: what was approved is released meanwhile."""
    desk: ApprovalDesk = app.state.approvals
    desk.start()
    yield
    await desk.close()
