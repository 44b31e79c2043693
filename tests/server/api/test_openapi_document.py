"""The OpenAPI document: complete, described, and the page of the reference is made from it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from takifugu.server.access_rules import BY_ROUTE
from takifugu.server.api.openapi_document import TAGS
from takifugu.server.api.rest_reference import rewritten
from takifugu.server.app import documented_app, routes

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "rest.md"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return documented_app().openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def test_the_page_of_the_reference_is_made_from_it() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == rewritten(page), "make references"


def test_every_operation_has_a_name_a_tag_and_a_description(document: dict[str, Any]) -> None:
    found = list(operations(document))
    assert {(method, path) for method, path, _ in found} == {
        (method, route.path)
        for route in routes()
        if route.include_in_schema
        for method in route.methods or ()
    }
    names = [operation["operationId"] for _, _, operation in found]
    assert len(set(names)) == len(names)
    for method, path, operation in found:
        (tag,) = operation["tags"]
        assert tag in TAGS, (method, path)
        assert operation["summary"].endswith((".", ":")), (method, path)
        for parameter in operation.get("parameters", ()):
            assert parameter["description"], (method, path, parameter["name"])


def test_who_may_call_is_in_it(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        rule = BY_ROUTE[method, path]
        assert ("security" in operation) != rule.anybody
        if not rule.anybody:
            assert f"Roles: {', '.join(rule.roles)}." in operation["description"]
            assert operation["security"] == [{"token": []}, {"session": []}]
            assert {"401", "403"} <= set(operation["responses"])
    assert set(document["components"]["securitySchemes"]) == {"token", "session"}


def test_every_error_is_a_problem_document(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        for status, response in operation["responses"].items():
            if status >= "400":
                (media,) = response["content"]
                assert media == "application/problem+json", (method, path, status)
                schema = response["content"][media]["schema"]
                assert schema == {"$ref": "#/components/schemas/ProblemDocument"}
        if "202" in operation["responses"]:
            assert "Location" in operation["responses"]["202"]["headers"], (method, path)


def test_every_field_is_described(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        assert schema.get("description"), name
        for field, one in schema.get("properties", {}).items():
            assert one.get("description") or "$ref" in one or "const" in one, (name, field)


def test_a_release_needs_its_key(document: dict[str, Any]) -> None:
    operation = document["paths"]["/api/v1/datasets/{dataset}/releases"]["post"]
    headers = {one["name"]: one for one in operation["parameters"] if one["in"] == "header"}
    assert headers["Idempotency-Key"]["required"] and not headers["Prefer"].get("required")


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]

    def look(part: Any) -> None:
        if isinstance(part, dict):
            if "$ref" in part:
                assert part["$ref"].removeprefix("#/components/schemas/") in schemas
            for one in part.values():
                look(one)
        elif isinstance(part, list):
            for one in part:
                look(one)

    look(document)
