"""JSON and TOML documents with a part dropped, doubled, renamed, retyped or made extreme.

A document is mutated as a tree and written by writers that also write what the formats forbid.
"""

import json
import tomllib
from contextlib import suppress
from datetime import date, datetime
from datetime import time as clock
from typing import Any

import numpy as np

from torture.inputs.hostile import KEYS, NUMBERS, any_text, one_of
from torture.inputs.mutations import spoiled_text, wrapped

DEEP = 200


class Raw(str):
    """Written as it stands, whatever the format says."""

    __slots__ = ()


class Doubled(dict[str, Any]):
    """An object whose first key is written twice."""


def mutated_json(rng: np.random.Generator, seed: bytes) -> bytes:
    """A JSON document that was changed as a tree, or as text."""
    text = seed.decode()
    if rng.random() < 0.75:
        text = json_text(spoiled_tree(rng, json.loads(text)))
    if rng.random() < 0.2:
        text = spoiled_text(rng, text)
    return wrapped(rng, text)


def mutated_toml(rng: np.random.Generator, seed: bytes) -> bytes:
    """A TOML document that was changed as a tree, or as text."""
    text = seed.decode()
    if rng.random() < 0.6:
        with suppress(RecursionError):  # too deep to be written by recursion: as it was
            text = toml_text(spoiled_tree(rng, tomllib.loads(text)))
    if rng.random() < 0.3:
        text = spoiled_text(rng, text)
    return wrapped(rng, text)


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every container of a tree, with each of its keys or positions."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        one = waiting.pop()
        keys = (
            list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        )
        for key in keys:
            found.append((one, key))
            waiting.append(one[key])
    return found


def spoiled_tree(rng: np.random.Generator, tree: Any) -> Any:
    """A tree with one to a few places changed; now and then another tree altogether."""
    if rng.random() < 0.02:
        return anything(rng, 3)
    for _ in range(int(rng.geometric(0.6))):
        known = places(tree)
        if not known:
            return anything(rng, 2)
        holder, key = one_of(rng, known)
        _spoil(rng, holder, key, known)
    return tree


def _spoil(rng: np.random.Generator, holder: Any, key: Any, known: list[tuple[Any, Any]]) -> None:
    value = holder[key]
    match int(rng.integers(12)):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[one_of(rng, KEYS)] = holder.pop(key)
        case 2 if isinstance(holder, dict):
            holder[one_of(rng, KEYS)] = value
        case 3 if isinstance(value, dict) and value:
            holder[key] = Doubled(value)
        case 4:
            other, name = one_of(rng, known)
            if _size(other[name]) < 2_000:
                holder[key] = json.loads(json_text(other[name], plain=True))
        case 5 if isinstance(value, list) and value:
            holder[key] = value * int(rng.integers(2, 30)) if _size(value) < 300 else value[:-1]
        case 6:
            holder[key] = [value] if rng.random() < 0.5 else {"value": value}
        case 7 if isinstance(value, int | float) and not isinstance(value, bool):
            holder[key] = _near(rng, value)
        case 8 if isinstance(value, list):
            rng.shuffle(value)
        case 9:
            holder[key] = Raw(one_of(rng, NUMBERS))
        case _:
            holder[key] = anything(rng, 2)


def _size(tree: Any) -> int:
    return 1 + len(places(tree))


def _near(rng: np.random.Generator, value: float) -> Any:
    """A number a little off, so that much of it still holds; or a far one."""
    ways: tuple[Any, ...] = (
        *(value + 1e-9, value * (1 + 1e-12), value + 1, -value, value * 1e6, 0, 1, value / 2),
        *(str(value), bool(value), float(value), Raw(f"{value}e-320"), 10**30),
    )
    return one_of(rng, ways)


def anything(rng: np.random.Generator, depth: int) -> Any:
    """A value of any type."""
    match int(rng.integers(12 if depth else 7)):
        case 0:
            return None
        case 1:
            return bool(rng.integers(2))
        case 2 | 3:
            return Raw(one_of(rng, NUMBERS))
        case 4 | 5:
            return any_text(rng)
        case 6:
            return int(rng.integers(-3, 1000))
        case 7:
            return []
        case 8:
            return {}
        case 9:
            return [anything(rng, depth - 1) for _ in range(int(rng.integers(1, 5)))]
        case 10:
            return {one_of(rng, KEYS): anything(rng, depth - 1) for _ in range(3)}
        case _:
            return nested(rng)


def nested(rng: np.random.Generator) -> Raw:
    """Lists in each other, or objects too: as text, so that only what reads it has to go deep."""
    both = bool(rng.integers(2))
    opened = ["[" if not both or rng.random() < 0.5 else '{"a": ' for _ in range(DEEP)]
    closed = ["]" if one == "[" else "}" for one in reversed(opened)]
    return Raw("".join([*opened, "1", *closed]))


def json_text(tree: Any, *, plain: bool = False) -> str:
    """A tree as JSON; what is `Raw` is written as it stands unless ``plain``."""
    if isinstance(tree, Raw):
        return json.dumps(str(tree)) if plain else str(tree)
    if isinstance(tree, dict):
        items = [f"{json.dumps(str(key))}: {json_text(tree[key], plain=plain)}" for key in tree]
        if isinstance(tree, Doubled) and not plain:
            items += items[:1]
        return "{" + ", ".join(items) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(json_text(part, plain=plain) for part in tree) + "]"
    if isinstance(tree, datetime | date | clock):
        return json.dumps(tree.isoformat())
    return json.dumps(tree)


def toml_text(tree: Any) -> str:
    """A tree as TOML: tables of the first two levels as sections, everything else inline."""
    if not isinstance(tree, dict):
        return f"value = {_toml(tree)}\n"
    lines = [f"{_key(key)} = {_toml(tree[key])}" for key in tree if not isinstance(tree[key], dict)]
    for key, table in tree.items():
        if isinstance(table, dict):
            lines.append(f"[{_key(key)}]")
            lines += [f"{_key(name)} = {_toml(value)}" for name, value in table.items()]
            if isinstance(table, Doubled):
                lines.append(f"[{_key(key)}]")
    return "\n".join(lines) + "\n"


def _key(key: Any) -> str:
    text = str(key)
    return text if text.isascii() and text.replace("_", "").isalnum() else json.dumps(text)


def _toml(value: Any) -> str:
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_toml(value[key])}" for key in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, datetime | date | clock):
        return value.isoformat()
    return '""' if value is None else json.dumps(value)
