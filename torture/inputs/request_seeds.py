"""Parts of good requests, and of bad ones."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SEEDS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))

PEOPLE: Mapping[str, str] = _SEEDS["PEOPLE"]
KNOWN: Mapping[str, tuple[str, ...]] = {k: tuple(v) for k, v in _SEEDS["KNOWN"].items()}
QUERIES: tuple[dict[str, Any], ...] = tuple(_SEEDS["QUERIES"])
FORMS: Mapping[str, tuple[dict[str, str], ...]] = {k: tuple(v) for k, v in _SEEDS["FORMS"].items()}
ASKED: Mapping[str, str] = _SEEDS["ASKED"]
METHODS: tuple[str, ...] = tuple(_SEEDS["METHODS"])
TYPES: tuple[str, ...] = tuple(_SEEDS["TYPES"])
HEADERS: tuple[str, ...] = tuple(_SEEDS["HEADERS"])
GOOD_HEADERS: tuple[str, ...] = tuple(_SEEDS["GOOD_HEADERS"])
FRAMES: tuple[str, ...] = tuple(_SEEDS["FRAMES"])
LARGE = 80_000  # bytes: above what the server takes
