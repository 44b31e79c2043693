"""The bill of materials of this environment: nothing is missing, and every licence is known."""

import json
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from packaging.utils import canonicalize_name

import takifugu
from torture.dependencies.__main__ import main
from torture.dependencies.licences import Kind, kind_of
from torture.dependencies.requirements import Asked

pytestmark = pytest.mark.nightly

AT = datetime(2026, 1, 1, tzinfo=UTC)
EXTRAS = ("dev", *(["spark"] if find_spec("pyspark") else []))


@pytest.fixture(scope="module")
def listing(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The bill of this environment, as the command writes it."""
    path = tmp_path_factory.mktemp("bill") / "sbom.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", str(int(AT.timestamp())))
        assert main(["--sbom", str(path)]) == 0
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def asked_for(extras: tuple[str, ...]) -> set[str]:
    """What ``pyproject.toml`` asks for by name here, always and for these extras."""
    asked, waiting, names = Asked.read(), ["always", *extras], set[str]()
    while waiting:
        for one in asked.requirements[waiting.pop()]:
            if one.name == "takifugu":
                waiting += one.extras
            elif one.marker is None or one.marker.evaluate({"extra": ""}):
                names.add(canonicalize_name(one.name))
    return names


def test_the_bill_of_this_environment_is_complete(listing: dict[str, Any]) -> None:
    parts = {str(canonicalize_name(part["name"])): part for part in listing["components"]}
    assert asked_for(EXTRAS) <= set(parts) and len(parts) > 100
    assert takifugu.__name__ not in parts  # but the root
    assert (listing["bomFormat"], listing["specVersion"]) == ("CycloneDX", "1.6")
    assert UUID(listing["serialNumber"].removeprefix("urn:uuid:"))
    assert datetime.fromisoformat(listing["metadata"]["timestamp"]) == AT
    assert listing["metadata"]["component"]["version"] == takifugu.__version__
    inside = [file for part in parts.values() for file in part.get("components", ())]
    for component in (*parts.values(), *inside):
        (licence,) = component["licenses"]
        assert kind_of(licence["expression"]) is not Kind.UNKNOWN
    refs = {component["bom-ref"] for component in (*parts.values(), *inside)}
    assert len(refs) == len(parts) + len(inside)
    graph = {entry["ref"]: set(entry.get("dependsOn", ())) for entry in listing["dependencies"]}
    about = listing["metadata"]["component"]["bom-ref"]
    assert {*graph, *(ref for needed in graph.values() for ref in needed)} <= {about, *refs}
    assert parts["scipy"]["bom-ref"] in graph[about]
    assert parts["numpy"]["bom-ref"] in graph[parts["scipy"]["bom-ref"]]


def test_what_people_need_is_required_or_optional_and_tools_are_neither(
    listing: dict[str, Any],
) -> None:
    scopes = {str(canonicalize_name(part["name"])): part["scope"] for part in listing["components"]}
    assert {scopes[name] for name in ("duckdb", "numpy", "opendp", "scipy")} == {"required"}
    assert {scopes[name] for name in ("psycopg", "pandas", "fastapi")} == {"optional"}
    assert {scopes[name] for name in ("pytest", "sphinx", "mypy")} == {"excluded"}
    (axe,) = (part for part in listing["components"] if part["name"] == "axe-playwright-python")
    assert axe["components"][0]["licenses"] == [{"expression": "MPL-2.0"}]


def test_the_command_says_what_it_cannot_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--licences", str(tmp_path / "nowhere" / "licences.md")]) == 1
    assert capsys.readouterr().err.startswith("takifugu: ")
    with pytest.raises(SystemExit):
        main([])
