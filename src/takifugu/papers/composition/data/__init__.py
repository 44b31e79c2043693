"""Datasets prepared for the experiments of the paper."""

from takifugu.papers.composition.data.catalogue import REAL, SIMULATED, SOURCES, find
from takifugu.papers.composition.data.preparation import (
    DrawnCounts,
    Entries,
    PaperDataset,
    prepare,
    read_prepared,
    write_prepared,
)

__all__ = [
    "REAL",
    "SIMULATED",
    "SOURCES",
    "DrawnCounts",
    "Entries",
    "PaperDataset",
    "find",
    "prepare",
    "read_prepared",
    "write_prepared",
]
