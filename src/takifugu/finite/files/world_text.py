"""Write a world with its mechanisms as the text of a world file."""

import json
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from takifugu.errors import InvalidFile
from takifugu.finite.files import fields as doc
from takifugu.finite.files.world_file import Form, WorldFile
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.world import World
from takifugu.priors.explicit import Between, Knowledge
from takifugu.priors.secrets import EntryIs, Secret
from takifugu.priors.universe import Tables


def write_world(written: WorldFile, *, form: Form = "toml") -> str:
    """The text of a file that `parse_world` reads back.

    A world that was read from a file comes back with the same fingerprint. A world made in Python
    may hold what a file cannot: a predicate is written as the datasets of which it is true, an
    entry named by an integer as text; labels other than text, integers, true/false and tuples are
    refused.
    """
    content = _document(written)
    if form == "json":
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return "\n".join(_toml(content)) + "\n"


def _document(written: WorldFile) -> dict[str, Any]:
    world = written.world
    found: dict[str, Any] = {"title": written.title} if written.title else {}
    if world.unsupported != "refuse":
        found["unsupported"] = world.unsupported
    found |= _universe(world)
    secrets = [(secret, _statement(secret, world)) for secret in world.secrets]
    named = {secret: part for secret, part in secrets if "name" in part}
    if len({part["name"] for part in named.values()}) != len(named):
        raise InvalidFile("secret", given="has a name that another has", needed="have its own")
    sides = {secret: part.get("name", part) for secret, part in secrets}
    if isinstance(world.priors, Knowledge):
        found["knowledge"] = [
            {"secret": sides[secret], **_line(line, world)}
            for secret, lines in world.priors.about
            if secret in sides  # what is known of a secret in no pair changes nothing
            for line in lines
        ]
    else:
        found["prior"] = [
            {"name": prior.name, "probability": prior.probability.tolist()}
            for prior in world.priors
        ]
    if named:
        found["secret"] = list(named.values())
    found["pair"] = [
        {"left": sides[pair.left], "right": sides[pair.right], "one_way": True}
        for pair in world.pairs
    ]
    found["mechanism"] = [
        _mechanism(mechanism, claim)
        for mechanism, claim in zip(written.mechanisms, written.claims, strict=True)
    ]
    return found


def _universe(world: World) -> dict[str, Any]:
    universe = world.universe
    if not isinstance(universe, Tables):
        return {"datasets": [_plain(dataset) for dataset in universe.datasets]}
    names = [str(entry) for entry in universe.entries]
    if len(set(names)) != len(names):
        raise InvalidFile("entries", given="have names alike as text", needed="differ")
    found: dict[str, Any] = {
        "entries": {
            name: [_plain(value) for value in values]
            for name, values in zip(names, universe.values, strict=True)
        }
    }
    if universe.records != universe.entries:
        found["records"] = dict(zip(names, universe.records, strict=True))
    return found


def _statement(secret: Secret, world: World) -> dict[str, Any]:
    if isinstance(secret, EntryIs):
        return {"entry": str(secret.entry), "values": [_plain(v) for v in secret.values]}
    return {"name": str(secret), "datasets": _where(world.mask(secret), world)}


def _where(mask: Any, world: World) -> list[Any]:
    return [_plain(world.universe.datasets[i]) for i in np.flatnonzero(mask)]


def _line(line: Between, world: World) -> dict[str, Any]:
    """An indicator between 0 and 1 as an event, anything else with its coefficients."""
    weights = line.coefficients
    bounds = {"low": float(line.low), "high": float(line.high)}
    if not np.isfinite([line.low, line.high]).all():
        raise InvalidFile("knowledge", given="has no finite bound", needed="have two to be written")
    if np.isin(weights, (0, 1)).all() and weights.any() and line.low >= 0 and line.high <= 1:
        return {"event": _where(weights == 1, world), **bounds}
    return {"coefficients": weights.tolist(), **bounds}


def _mechanism(mechanism: FiniteMechanism, claim: float | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": mechanism.name,
        "outputs": [_plain(output) for output in mechanism.outputs],
        "rows": mechanism.likelihood.tolist(),
    }
    return found if claim is None else {**found, "claim": claim}


def _plain(value: Hashable) -> Any:
    """A label as TOML and JSON know it."""
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, bool | int) else doc.name(value, "label")


def _toml(content: dict[str, Any]) -> Iterable[str]:
    """TOML, line by line: plain keys first, then tables, then lists of tables."""
    tables = {k: v for k, v in content.items() if isinstance(v, dict)}
    lists = {k: v for k, v in content.items() if isinstance(v, list) and v and _all_tables(v)}
    for key, value in content.items():
        if key not in tables and key not in lists:
            yield f"{key} = {_value(value)}"
    for key, value in tables.items():
        yield ""
        yield f"[{key}]"
        yield from (f"{_key(k)} = {_value(v)}" for k, v in value.items())
    for key, value in lists.items():
        for item in value:
            yield ""
            yield f"[[{key}]]"
            yield from (f"{_key(k)} = {_value(v)}" for k, v in item.items())


def _all_tables(values: list[Any]) -> bool:
    return all(isinstance(value, dict) for value in values)


def _key(key: str) -> str:
    plain = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if plain else _value(key)


def _value(value: Any) -> str:
    """One value on one line; JSON's text, numbers and booleans are TOML's too."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
