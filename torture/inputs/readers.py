"""Files that Python reads without a command: each by the function that a program calls."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def _results(folder: Path) -> Any:
    from takifugu.papers.composition.experiments.measurements import read_results

    return read_results(folder / "results.json")


def _prepared(folder: Path) -> Any:
    from takifugu.papers.composition.data import read_prepared

    return read_prepared(folder / "prepared.json")


def _table(folder: Path) -> Any:
    from takifugu.priors import read_prior
    from takifugu.translation import Translation
    from takifugu.translation.accounting.tables import TranslationTable

    return TranslationTable.load(folder / "table.json", Translation(read_prior(folder / "a.json")))


def _declared(folder: Path) -> Any:
    import takifugu as tf

    return tf.table(folder / "stays.toml")


READERS: Mapping[str, Callable[[Path], Any]] = {
    "results.json": _results,
    "prepared.json": _prepared,
    "table.json": _table,
    "tf.table": _declared,
}
