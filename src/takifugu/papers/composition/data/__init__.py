"""Datasets prepared for the experiments of the paper."""

from takifugu.papers.composition.data.catalogue import REAL, SIMULATED, SOURCES, find
from takifugu.papers.composition.data.paper_dataset import (
    DrawnCounts,
    Entries,
    PaperDataset,
    prepare,
)
from takifugu.papers.composition.data.prepared_files import read_prepared, write_prepared

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
