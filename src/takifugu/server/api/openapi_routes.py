"""The OpenAPI document, for everybody."""

from fastapi import APIRouter, Request, Response

from takifugu.server.api.problem_responses import json_response

router = APIRouter()


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """The OpenAPI document of this server."""
    return json_response(request.app.openapi())
