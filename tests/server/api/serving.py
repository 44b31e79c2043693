"""The app of a small project with its real parts, called without a socket."""

from collections.abc import Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from fastapi import FastAPI
from fastapi.testclient import TestClient

from takifugu.project.server_section import ServerSettings
from takifugu.server.app import create_app
from takifugu.server.services import Services, open_services

SETTINGS = ServerSettings(rate=1_000_000, burst=100_000, wait=600.0, time_step=0.0)
PEOPLE = {"ana": "analyst", "bo": "analyst", "olga": "owner", "udo": "auditor"}
HISTOGRAM = {"kind": "histogram", "by": ["zone"], "epsilon": "1"}


@dataclass(frozen=True)
class Served:
    """An app that runs, and its tokens."""

    client: TestClient
    services: Services
    tokens: Mapping[str, str] = field(repr=False)

    def ask(self, who: str | None, method: str, path: str, **how: Any) -> Any:
        """A request by the token of ``who``; nobody's if None."""
        headers = dict(how.pop("headers", {}))
        if who is not None:
            headers["Authorization"] = f"Bearer {self.tokens[who]}"
        return self.client.request(method, path, headers=headers, **how)

    def get(self, who: str | None, path: str, **how: Any) -> Any:
        """GET."""
        return self.ask(who, "GET", f"/api/v1{path}", **how)

    def items(self, who: str, path: str, **query: Any) -> list[Any]:
        """All of a list, by its pages, none of which has more than the ``limit``."""
        items: list[Any] = []
        cursor: dict[str, str] = {}
        while True:
            page = self.get(who, path, params=query | cursor).json()
            assert len(page["items"]) <= query.get("limit", 50)
            items += page["items"]
            if page["next"] is None:
                return items
            assert page["items"]
            cursor = {"cursor": page["next"]}

    def plan(self, who: str, query: Mapping[str, Any], dataset: str = "stays", **how: Any) -> Any:
        """POST of a plan."""
        return self.ask(
            who, "POST", f"/api/v1/datasets/{dataset}/plans", json={"query": query}, **how
        )

    def release(
        self, who: str, query: Mapping[str, Any], key: str | None = None, **body: Any
    ) -> Any:
        """POST of a release."""
        headers = {"Idempotency-Key": key or str(uuid4())} | body.pop("headers", {})
        document = {"query": query, **body}
        path = "/api/v1/datasets/stays/releases"
        return self.ask(who, "POST", path, json=document, headers=headers)


@contextmanager
def served(project: Path, **settings: Any) -> Iterator[Served]:
    """The app of a project, from its start to its end, with a token for everybody in `PEOPLE`."""
    services = open_services(project, replace(SETTINGS, **settings))
    app = create_app(services)
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> Any:
        async with inner(app):
            yield
        await services.close()

    app.router.lifespan_context = lifespan
    tokens = {
        name: services.state.create_token(name, role, None, "test").secret  # type: ignore[arg-type]
        for name, role in PEOPLE.items()
    }
    with TestClient(app) as client:
        yield Served(client, services, tokens)
