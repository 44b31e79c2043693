"""Good lines of every command, and values that its options may well take."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

_SEEDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

LINES: Mapping[str, tuple[str, ...]] = {k: tuple(v) for k, v in _SEEDS["lines"].items()}
GOOD: Mapping[str, tuple[str, ...]] = {k: tuple(v) for k, v in _SEEDS["good"].items()}
COSTLY: Mapping[str, float] = _SEEDS["costly"]
ALWAYS: Mapping[str, str] = _SEEDS["always"]
LONG_BY_RIGHT = {(name, option) for name, option in _SEEDS["long_by_right"]}
SMALL: tuple[str, ...] = tuple(_SEEDS["small"])
FILES: tuple[str, ...] = tuple(_SEEDS["files"])
