"""A software bill of materials (CycloneDX 1.6, JSON) of an environment.

It lists what is installed of all that the project asks for, and what that asks for in turn: each
with its version, its licence as SPDX, and whether it is needed always ("required"), by an extra of
people who use takifugu ("optional") or by developers alone ("excluded").
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from importlib.metadata import Distribution
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from packaging.utils import canonicalize_name

from torture.dependencies.files_within import WITHIN
from torture.dependencies.licences import licence_of
from torture.dependencies.requirements import (
    ALWAYS,
    OURSELVES,
    RUNTIME,
    Asked,
    asked_by,
    used_by,
)

FORMAT, VERSION = "CycloneDX", "1.6"
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
