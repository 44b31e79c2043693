"""Datasets made ready for the experiments of the paper."""

from papers.composition.data.registry import SOURCES, Source, find, prepare

__all__ = ["SOURCES", "Source", "find", "prepare"]
