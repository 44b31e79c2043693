"""The routers of the app: one line for each module, which has ``router = APIRouter()``.

A module is named here and imported when the app is made. Every path of it stands in
`takifugu.server.access_rules.RULES`.
"""

from importlib import import_module

from fastapi import APIRouter
from fastapi.routing import APIRoute

ROUTERS: tuple[str, ...] = (
    "takifugu.server.api.query_routes",  # the first to be found: most requests are plans
    "takifugu.server.operation.probe_routes",
    "takifugu.server.api.openapi_routes",
    "takifugu.server.api.me_routes",
    "takifugu.server.api.description_routes",
    "takifugu.server.api.release_routes",
    "takifugu.server.api.job_routes",
    "takifugu.server.api.approval_routes",
    "takifugu.server.api.budget_routes",
    "takifugu.server.api.dataset_routes",
    "takifugu.server.api.prior_routes",
    "takifugu.server.api.ledger_routes",
    "takifugu.server.api.report_routes",
    "takifugu.server.api.witness_routes",
    "takifugu.server.api.token_routes",
    "takifugu.server.pages.static_files",
    "takifugu.server.pages.sign_in_pages",
    "takifugu.server.pages.dataset_pages",
    "takifugu.server.pages.ask_pages",
    "takifugu.server.pages.release_pages",
    "takifugu.server.pages.approval_pages",
    "takifugu.server.pages.ledger_pages",
    "takifugu.server.pages.token_pages",
)


def routers() -> tuple[APIRouter, ...]:
    """The router of every module in `ROUTERS`, in order."""
    return tuple(import_module(module).router for module in ROUTERS)


def routes() -> tuple[APIRoute, ...]:
    """Every route of the routers, in order."""
    found = (route for router in routers() for route in router.routes)
    return tuple(route for route in found if isinstance(route, APIRoute))
