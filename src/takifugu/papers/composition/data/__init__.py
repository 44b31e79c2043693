"""Datasets made ready for the experiments of the paper."""

from takifugu.papers.composition.data.catalogue import REAL, SIMULATED, SOURCES, find
from takifugu.papers.composition.data.documents import read_prepared, write_prepared
from takifugu.papers.composition.data.sources import Source, prepare

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
