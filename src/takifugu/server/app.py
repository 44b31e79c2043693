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


def create_app(services: Services) -> FastAPI:
    """The app of a server, whose routes share ``services``."""
    from takifugu import __version__

    desk = ApprovalDesk(services)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        desk.start()
        yield
        await desk.close()

    app = FastAPI(
        lifespan=lifespan,
        title="takifugu",
        version=__version__,
        openapi_url=None,  # a route of ours, which the table of rules knows
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(authorize)],
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.services, app.state.routes = services, routes()
    app.state.approvals = desk
    for router in routers():
        app.include_router(router)
    add_handlers(app)
    app.add_middleware(ProblemsOnly)
    add_pages(app)
    add_access(app, services.settings)
    app.openapi = lambda: openapi_document(app)  # type: ignore[method-assign]
    return app
