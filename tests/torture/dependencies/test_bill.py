"""The bill of materials of this environment is whole, and what is wrong with one is found."""

import copy
import json
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import takifugu
from torture.dependencies.__main__ import main
from torture.dependencies.requirements import Asked, installed
from torture.dependencies.sbom import Document, bill, left_out, malformed

pytestmark = pytest.mark.nightly

AT = datetime(2026, 1, 1, tzinfo=UTC)
EXTRAS = ("dev", *(["spark"] if find_spec("pyspark") else []))


@pytest.fixture(scope="module")
def made() -> Document:
    """The bill of this environment."""
    return bill(Asked.read(), installed(), version=takifugu.__version__, at=AT)


def test_the_bill_of_this_environment_is_well_formed_and_complete(made: Document) -> None:
    assert malformed(made) == []
    assert left_out(made, Asked.read(), EXTRAS) == []
    assert len(made["components"]) > 100
    assert made == bill(Asked.read(), installed(), version=takifugu.__version__, at=AT)


def test_every_package_of_the_bill_has_what_it_needs_in_the_bill(made: Document) -> None:
    names = {part["name"] for part in made["components"]}
    there = installed()
    graph = {one["ref"]: set(one["dependsOn"]) for one in made["dependencies"]}
    seen = 0
    for part in made["components"]:
        assert part["version"] == there[part["name"]].version
        for needed in map(Requirement, there[part["name"]].requires or ()):
            if needed.marker is None and part["name"] != "pgmpy":  # which has only its files here
                name = canonicalize_name(needed.name)
                assert name in names
                assert any(ref.startswith(f"pkg:pypi/{name}@") for ref in graph[part["bom-ref"]])
                seen += 1
    assert seen > 100


def test_what_people_need_is_required_or_optional_and_tools_are_neither(made: Document) -> None:
    scopes = {part["name"]: part["scope"] for part in made["components"]}
    assert {scopes[name] for name in ("duckdb", "numpy", "opendp", "scipy")} == {"required"}
    assert {scopes[name] for name in ("psycopg", "pandas", "fastapi")} == {"optional"}
    assert {scopes[name] for name in ("pytest", "sphinx", "mypy")} == {"excluded"}
    (axe,) = (part for part in made["components"] if part["name"] == "axe-playwright-python")
    assert axe["components"][0]["licenses"] == [{"expression": "MPL-2.0"}]


def test_a_package_that_is_missing_from_a_bill_is_found(made: Document) -> None:
    for name in ("duckdb", "psycopg", "fastapi", "hypothesis"):
        less = copy.deepcopy(made)
        less["components"] = [part for part in less["components"] if part["name"] != name]
        assert left_out(less, Asked.read(), EXTRAS) == [name]
        assert any(name in fault for fault in malformed(less))  # others depend on it
    there = {name: one for name, one in installed().items() if name != "opendp"}
    without = bill(Asked.read(), there, version=takifugu.__version__, at=AT)
    assert left_out(without, Asked.read(), EXTRAS) == ["opendp"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bomFormat", "SPDX"),
        ("specVersion", "1.0"),
        ("serialNumber", "urn:uuid:1"),
        ("version", 0),
        ("metadata", {}),
    ],
)
def test_a_field_of_the_bill_that_is_wrong_is_found(
    made: Document, field: str, value: object
) -> None:
    assert malformed({**made, field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("type", "thing"),
        ("version", "0"),
        ("scope", "perhaps"),
        ("purl", "pkg:npm/axe@1"),
        ("bom-ref", "pkg:pypi/numpy@2"),
        ("licenses", []),
        ("licenses", [{"expression": "Proprietary"}]),
    ],
)
def test_a_field_of_a_component_that_is_wrong_is_found(
    made: Document, field: str, value: object
) -> None:
    changed = copy.deepcopy(made)
    changed["components"][3][field] = value
    assert malformed(changed)
    twice = copy.deepcopy(made)
    twice["components"].append(twice["components"][3])
    assert malformed(twice)


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
