"""Datasets made ready for the experiments of the paper."""

from takifugu.papers.composition.data.catalogue import REAL, SIMULATED, SOURCES, find
from takifugu.papers.composition.data.dataset_source import Source, prepare
from takifugu.papers.composition.data.prepared_files import read_prepared, write_prepared

__all__ = [
    "REAL",
    "SIMULATED",
    "SOURCES",
    "Source",
    "find",
    "prepare",
    "read_prepared",
    "write_prepared",
]
