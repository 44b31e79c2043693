"""Worlds that people write by hand, as TOML or JSON (docs/reference/worlds.md)."""

from takifugu.finite.files.world_file import Form, WorldFile, parse_world, read_world
from takifugu.finite.files.world_text import write_world

__all__ = ["Form", "WorldFile", "parse_world", "read_world", "write_world"]
