"""Counts and sums of declared tables, made where the rows are."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.tables.aggregates import ColumnSums, Distribution, Histogram, Lengths
    from takifugu.tables.backends.backend import Backend, DataFingerprint
    from takifugu.tables.backends.frames import Frame
    from takifugu.tables.data_check import DataCheck, check
    from takifugu.tables.engine import Engine
    from takifugu.tables.opening import open_engine
    from takifugu.tables.row_identity import identities
    from takifugu.tables.scope import Scope, Share
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "aggregates": (
                "ColumnSums",
                "Distribution",
                "Histogram",
                "Lengths",
            ),
            "backends.backend": (
                "Backend",
                "DataFingerprint",
            ),
            "backends.frames": ("Frame",),
            "data_check": (
                "DataCheck",
                "check",
            ),
            "engine": ("Engine",),
            "opening": ("open_engine",),
            "row_identity": ("identities",),
            "scope": (
                "Scope",
                "Share",
            ),
        },
    )

__all__ = [
    "Backend",
    "ColumnSums",
    "DataCheck",
    "DataFingerprint",
    "Distribution",
    "Engine",
    "Frame",
    "Histogram",
    "Lengths",
    "Scope",
    "Share",
    "check",
    "identities",
    "open_engine",
]
