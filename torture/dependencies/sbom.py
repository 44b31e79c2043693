"""A software bill of materials (CycloneDX 1.6, JSON) of an environment, and what is wrong with one.

It lists what is installed of all that the project asks for, and what that asks for in turn: each
with its version, its licence as SPDX, and whether it is needed always ("required"), by an extra of
people who use takifugu ("optional") or by developers alone ("excluded").
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from importlib.metadata import Distribution
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from packaging.utils import canonicalize_name

from torture.dependencies.files_within import WITHIN
from torture.dependencies.licences import kind_of, licence_of
from torture.dependencies.requirements import (
    ALWAYS,
    OURSELVES,
    RUNTIME,
    Asked,
    asked_by,
    used_by,
)

FORMAT, VERSION = "CycloneDX", "1.6"
SCOPES = ("required", "optional", "excluded")
Document = dict[str, Any]


def bill(
    asked: Asked, there: Mapping[str, Distribution], *, version: str, at: datetime
) -> Document:
    """The bill of an environment, for that version of takifugu; equal for equal packages."""
    uses = used_by(asked, there)
    components = [_component(there[name], by) for name, by in uses.items()]
    root = f"pkg:pypi/{OURSELVES}@{version}"
    refs = {name: _purl(there[name]) for name in uses}
    direct = sorted(refs[name] for name in uses if name in asked.direct)
    dependencies: list[Document] = [{"ref": root, "dependsOn": direct}]
    for name, ref in refs.items():
        needed = {canonicalize_name(one.name) for one in asked_by(there[name])}
        dependencies.append(
            {"ref": ref, "dependsOn": sorted(refs[one] for one in needed if one in refs)}
        )
    content = "\n".join([root, *(one["bom-ref"] for one in components)])
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": FORMAT,
        "specVersion": VERSION,
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {
            "timestamp": at.isoformat(timespec="seconds"),
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": OURSELVES,
                "version": version,
                "purl": root,
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": components,
        "dependencies": dependencies,
    }


def _purl(one: Distribution) -> str:
    return f"pkg:pypi/{canonicalize_name(one.name)}@{one.version}"


def scope(by: Iterable[str]) -> str:
    """What CycloneDX calls the use of a package that these extras bring."""
    if ALWAYS in by:
        return "required"
    return "optional" if set(RUNTIME) & set(by) else "excluded"


def _component(one: Distribution, by: tuple[str, ...]) -> Document:
    licence = licence_of(one)
    name = canonicalize_name(one.name)
    component: Document = {
        "type": "library",
        "bom-ref": _purl(one),
        "name": name,
        "version": one.version,
        "scope": scope(by),
        "purl": _purl(one),
        "properties": [{"name": "takifugu:extras", "value": ", ".join(by)}],
    }
    if licence is not None:
        component["licenses"] = [{"expression": licence}]
    within = [file for file in WITHIN if file.package == name]
    if within:
        component["components"] = [
            {
                "type": "file",
                "bom-ref": f"{_purl(one)}#{file.path}",
                "name": file.path,
                "licenses": [{"expression": file.licence}],
                "description": file.what,
            }
            for file in within
        ]
    return component


_SERIAL = re.compile(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PURL = re.compile(r"pkg:pypi/[a-z0-9]+(-[a-z0-9]+)*@[^\s@]+")


def malformed(document: Document) -> list[str]:
    """What a bill lacks to be one: fields, forms, references that lead nowhere."""
    found: list[str] = []

    def must(true: object, otherwise: str) -> None:
        if not true:
            found.append(otherwise)

    must(document.get("bomFormat") == FORMAT, f"bomFormat must be {FORMAT}")
    must(document.get("specVersion") == VERSION, f"specVersion must be {VERSION}")
    must(
        _SERIAL.fullmatch(str(document.get("serialNumber"))) and _is_uuid(document["serialNumber"]),
        "serialNumber must be a UUID as a URN",
    )
    number = document.get("version")
    must(isinstance(number, int) and number >= 1, "version must be a number from 1")
    about = document.get("metadata", {})
    must(_is_time(about.get("timestamp")), "metadata.timestamp must be a time with its zone")
    parts = document.get("components", [])
    refs: list[str] = []
    for part in [about.get("component", {}), *parts]:
        called = str(part.get("name", "a component without a name"))
        must(part.get("name"), "every component must have a name")
        must(part.get("type") in {"application", "library"}, f"{called}: unknown type")
        must(part.get("version"), f"{called}: version is missing")
        must(_PURL.fullmatch(str(part.get("purl"))), f"{called}: purl must be one of PyPI")
        must(
            part.get("purl", "").endswith(f"/{called}@{part.get('version')}"),
            f"{called}: purl must name it and its version",
        )
        refs += [str(part.get("bom-ref")), *(str(x["bom-ref"]) for x in part.get("components", ()))]
    for part in parts:
        must(part.get("scope") in SCOPES, f"{part.get('name')}: scope must be one of {SCOPES}")
        for one in (part, *part.get("components", ())):
            said = [line.get("expression") for line in one.get("licenses", ())]
            must(
                len(said) == 1 and kind_of(said[0]).name != "UNKNOWN",
                f"{one.get('name')}: licence must be known",
            )
    must(len(refs) == len(set(refs)), "every bom-ref must be unique")
    graph = document.get("dependencies", [])
    told = [str(one.get("ref")) for one in graph]
    must(len(told) == len(set(told)), "every ref of dependencies must be unique")
    for one in graph:
        for ref in (one.get("ref"), *one.get("dependsOn", ())):
            must(ref in refs, f"dependencies name {ref}, which is no component")
    return found


def _is_uuid(text: str) -> bool:
    try:
        UUID(text.removeprefix("urn:uuid:"))
    except ValueError:
        return False
    return True


def _is_time(text: object) -> bool:
    try:
        return datetime.fromisoformat(str(text)).tzinfo is not None
    except ValueError:
        return False


def left_out(document: Document, asked: Asked, extras: Iterable[str]) -> list[str]:
    """What ``pyproject.toml`` asks for here, always and for these extras, and a bill lacks.

    So a package is missed also where it is not installed.
    """
    there = {part["name"] for part in document["components"]}
    waiting, wanted = [ALWAYS, *extras], set[str]()
    while waiting:
        for one in asked.requirements[waiting.pop()]:
            if one.marker is not None and not one.marker.evaluate({"extra": ""}):
                continue
            if one.name == OURSELVES:
                waiting += one.extras
            else:
                wanted.add(canonicalize_name(one.name))
    return sorted(wanted - there)
