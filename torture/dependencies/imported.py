"""What the code imports of others, which it has to ask for by name: others may stop needing it."""

import ast
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.utils import canonicalize_name


def imported(folder: Path) -> dict[str, set[Path]]:
    """The modules of others that the files of a folder import anywhere, and which files do."""
    found: dict[str, set[Path]] = {}
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names = [node.module]
            else:
                continue
            for name in names:
                module = name.partition(".")[0]
                if module not in sys.stdlib_module_names:
                    found.setdefault(module, set()).add(path)
    return found


def packages(modules: dict[str, set[Path]], ours: set[str]) -> dict[str, set[str]]:
    """By module the packages that may hold it; a module that is not installed is its own."""
    known = packages_distributions()
    return {
        module: {canonicalize_name(name) for name in known.get(module, [module])}
        for module in modules
        if module not in ours
    }


def not_asked_for(
    modules: dict[str, set[Path]], asked: set[str], ours: set[str]
) -> dict[str, list[str]]:
    """Modules that no package holds which is asked for by name, and the files that import them."""
    return {
        module: sorted(path.name for path in modules[module])
        for module, holders in packages(modules, ours).items()
        if not holders & asked
    }
