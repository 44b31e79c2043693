"""``python -m benchmarks [NAME …]``: run every benchmark, or those named."""

import importlib
import pkgutil
import sys

import benchmarks


def main() -> None:
    """Import each module of this folder and call its ``run``."""
    names = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    wanted = sys.argv[1:] or [name for name in names if not name.startswith("_")]
    for name in wanted:
        print(f"== {name}")
        importlib.import_module(f"benchmarks.{name}").run()


main()
