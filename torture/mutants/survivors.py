"""Mutants that live because they change nothing that matters, each with its reason."""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from torture.mutants.finding import PACKAGES, SOURCE, all_mutants
from torture.mutants.mutation import Mutant

HOME = Path(__file__).with_name("survivors.toml")
ONE, MANY = {"id", "reason"}, {"packages", "operators", "where", "reason"}


def listed(path: Path = HOME) -> dict[str, str]:
    """Id to reason, of those listed one by one and of every mutant that a pattern names."""
    with path.open("rb") as file:
        patterns = tomllib.load(file).get("pattern", [])
    known = singly(path)
    for entry in patterns:
        known |= dict.fromkeys(_named(entry), str(entry["reason"]))
    return known


def singly(path: Path = HOME) -> dict[str, str]:
    """Id to reason, of those listed one by one."""
    with path.open("rb") as file:
        entries = tomllib.load(file).get("survivor", [])
    known: dict[str, str] = {}
    for entry in entries:
        if set(entry) != ONE or not str(entry["reason"]).strip():
            raise ValueError(f"a survivor needs an id and a reason, nothing else: {entry}")
        if entry["id"] in known:
            raise ValueError(f"listed twice: {entry['id']}")
        known[entry["id"]] = entry["reason"]
    return known


def _named(entry: dict[str, Any]) -> list[str]:
    """The mutants that a pattern names; it must name some."""
    if set(entry) != MANY or not str(entry["reason"]).strip():
        raise ValueError(f"a pattern needs {sorted(MANY)}, nothing else: {entry}")
    where, operators = re.compile(entry["where"]), set(entry["operators"])
    found = [
        one.id
        for package in entry["packages"]
        if package in PACKAGES
        for one in all_mutants(package)
        if one.operator in operators and where.search(marked(one))
    ]
    if not found:
        raise ValueError(f"no mutant is named by {entry}")
    return found


@cache
def _read(path: Path) -> bytes:
    return path.read_bytes()


def marked(one: Mutant, root: Path = SOURCE) -> str:
    """Module, function if it is in one, and line of a mutant; what it replaces between « and »."""
    source = _read(root / one.module)
    begin = source.rfind(b"\n", 0, one.start) + 1
    end = source.find(b"\n", one.end)
    parts = source[begin : one.start], source[one.start : one.end], source[one.end : end]
    before, changed, after = (part.decode() for part in parts)
    function = one.id.split(":")[1]
    place = f"{one.module}:{function}" if function else one.module
    return f"{place}: {before}«{changed}»{after}"
