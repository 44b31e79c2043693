"""The bill of materials of this environment: nothing is missing, and every licence is known."""

import json
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from uuid import UUID

import pytest
from packaging.utils import canonicalize_name

import takifugu
from torture.dependencies.__main__ import main
from torture.dependencies.licences import Kind, kind_of
from torture.dependencies.requirements import Asked, installed
from torture.dependencies.sbom import Document, bill

pytestmark = pytest.mark.nightly

AT = datetime(2026, 1, 1, tzinfo=UTC)
EXTRAS = ("dev", *(["spark"] if find_spec("pyspark") else []))


@pytest.fixture(scope="module")
def made() -> Document:
    """The bill of this environment."""
    return bill(Asked.read(), installed(), version=takifugu.__version__, at=AT)


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


def test_the_bill_of_this_environment_is_well_formed_and_complete(made: Document) -> None:
    parts = made["components"]
    assert asked_for(EXTRAS) <= {part["name"] for part in parts} and len(parts) > 100
    assert made == bill(Asked.read(), installed(), version=takifugu.__version__, at=AT)
    assert (made["bomFormat"], made["specVersion"], made["version"]) == ("CycloneDX", "1.6", 1)
    assert UUID(made["serialNumber"].removeprefix("urn:uuid:"))
    assert made["metadata"]["timestamp"] == AT.isoformat()
    inside = [file for part in parts for file in part.get("components", ())]
    for one in (*parts, *inside):
        (licence,) = one["licenses"]
        assert kind_of(licence["expression"]) is not Kind.UNKNOWN
    for part in parts:
        assert part["purl"] == part["bom-ref"] == f"pkg:pypi/{part['name']}@{part['version']}"
    about = made["metadata"]["component"]
    refs = [one["bom-ref"] for one in (about, *parts, *inside)]
    graph = {one["ref"]: one["dependsOn"] for one in made["dependencies"]}
    assert len(refs) == len(set(refs)) and len(graph) == len(made["dependencies"])
    assert {*graph, *(ref for needed in graph.values() for ref in needed)} <= set(refs)


def test_what_people_need_is_required_or_optional_and_tools_are_neither(made: Document) -> None:
    scopes = {part["name"]: part["scope"] for part in made["components"]}
    assert {scopes[name] for name in ("duckdb", "numpy", "opendp", "scipy")} == {"required"}
    assert {scopes[name] for name in ("psycopg", "pandas", "fastapi")} == {"optional"}
    assert {scopes[name] for name in ("pytest", "sphinx", "mypy")} == {"excluded"}
    (axe,) = (part for part in made["components"] if part["name"] == "axe-playwright-python")
    assert axe["components"][0]["licenses"] == [{"expression": "MPL-2.0"}]


def test_the_command_writes_the_bill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(AT.timestamp())))
    path = tmp_path / "sbom.json"
    assert main(["--sbom", str(path)]) == 0
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(
        json.dumps(bill(Asked.read(), installed(), version=takifugu.__version__, at=AT))
    )
    assert main(["--sbom", str(tmp_path / "nowhere" / "sbom.json")]) == 1
    assert capsys.readouterr().err.startswith("takifugu: ")
    with pytest.raises(SystemExit):
        main([])
