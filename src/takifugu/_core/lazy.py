"""Packages whose names are imported when they are first used (PEP 562).

A command is a process of its own, and most of what it did before it began to work was to import
what it never used. A package states its names twice: for the type checker, under ``if
TYPE_CHECKING``, and here, by the module that has them. A test compares the two.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

Names = tuple[Callable[[str], Any], Callable[[], list[str]]]


def lazy_names(package: str, homes: Mapping[str, Sequence[str]]) -> Names:
    """``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: Its ``__name__``.
        homes: Module, relative to the package or in full, to the names that it has. No name may be
            that of a module in the package: importing the module would replace it.
    """
    home = {
        name: module if module.startswith("takifugu.") else f"{package}.{module}"
        for module, names in homes.items()
        for name in names
    }

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted(home)

    return find, listed
