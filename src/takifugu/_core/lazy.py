"""Packages whose names are imported when they are first used (PEP 562).

A command is a process of its own, and most of what it did before it began to work was to import
what it never used. A package states its names once, as imports for the type checker:

    if TYPE_CHECKING:
        from takifugu.tables.scope import Scope as Scope
    else:
        __getattr__, __dir__, __all__ = lazy_names(__name__)

Here the same lines are read, and each name is imported when somebody asks for it. No name may be
that of a module in the package: importing the module would replace it.
"""

import ast
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

Find = Callable[[str], Any]
Listed = Callable[[], list[str]]


def lazy_names(package: str) -> tuple[Find, Listed, list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, from its ``__name__``."""
    home = dict(_typed_names(package))
    names = sorted(home)

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: list(names), names


def _typed_names(package: str) -> Iterator[tuple[str, str]]:
    """The names that a package imports under ``if TYPE_CHECKING``, each with its module."""
    source = sys.modules[package].__spec__.loader.get_source(package)  # type: ignore[union-attr]
    for node in ast.parse(source).body:
        if isinstance(node, ast.If):
            for line in node.body:
                if isinstance(line, ast.ImportFrom):
                    yield from ((alias.name, str(line.module)) for alias in line.names)
