"""Routes for what is asked most: the same checks in the same order, without FastAPI's machinery.

FastAPI finds out for every request which dependencies a route has and which values they need, which
takes longer than all that they do. A plan takes milliseconds, so that this counts. A route of this
class is declared as every other is, and its OpenAPI document is FastAPI's; but it calls `authorize`
itself, before anything is read, then reads the body as its model, and then calls its function.
"""

from collections.abc import Callable, Coroutine
from inspect import signature
from typing import Any, get_args

from fastapi import Request, Response
from fastapi.routing import APIRoute

from takifugu.server.access.authentication import authorize
from takifugu.server.api.bodies import RequestBody, json_body, validated

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class DirectRoute(APIRoute):
    """A route whose function takes ``request``, parts of the path, ``body`` and headers.

    Parts of the path are texts without conditions; ``body`` is a `RequestBody`; every other
    parameter is an optional header, whose name is that of the parameter with hyphens.
    """

    def get_route_handler(self) -> Handler:
        """What answers a request that matches the route."""
        endpoint, model, parts, headers = self.endpoint, *_parameters(self)

        async def handle(request: Request) -> Response:
            await authorize(request)  # first of all, as for every route
            body = validated(model, await json_body(request))
            named: dict[str, str | None] = {name: request.path_params[name] for name in parts}
            for name, header in headers:
                named[name] = request.headers.get(header)
            response: Response = await endpoint(request=request, body=body, **named)
            return response

        return handle


def _parameters(
    route: APIRoute,
) -> tuple[type[RequestBody], tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The model of the body, the parts of the path, and the headers with their names."""
    parts = tuple(route.param_convertors)
    parameters = signature(route.endpoint).parameters
    model = get_args(parameters["body"].annotation)[0]
    others = [name for name in parameters if name not in ("request", "body", *parts)]
    if not issubclass(model, RequestBody) or set(parts) - set(parameters):
        raise TypeError(f"{route.path} cannot be called directly")
    return model, parts, tuple((name, name.replace("_", "-")) for name in others)
