"""Values that nobody should send, and those that are only unusual."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")

_VALUES = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def _texts(name: str) -> tuple[str, ...]:
    """The values of a name; one that is a pattern and a number is that pattern so often."""
    return tuple(one if isinstance(one, str) else one[0] * one[1] for one in _VALUES[name])


NUMBERS, TEXTS, KEYS = _texts("NUMBERS"), _texts("TEXTS"), _texts("KEYS")
GARBAGE, ENCODINGS = _texts("GARBAGE"), _texts("ENCODINGS")


def one_of(rng: np.random.Generator, items: Sequence[Item]) -> Item:
    """One of them, all alike likely."""
    return items[int(rng.integers(len(items)))]


def any_text(rng: np.random.Generator) -> str:
    """A hostile text; long ones are rarer."""
    for _ in range(4):
        found = one_of(rng, TEXTS if rng.random() < 0.7 else NUMBERS)
        if len(found) < 400 or rng.random() < 0.15:
            return found
    return "x"
