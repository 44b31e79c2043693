"""Counts and sums of declared tables, made where the rows are."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.tables.aggregates import ColumnSums as ColumnSums
    from takifugu.tables.aggregates import Distribution as Distribution
    from takifugu.tables.aggregates import Histogram as Histogram
    from takifugu.tables.aggregates import Lengths as Lengths
    from takifugu.tables.backends.backend import Backend as Backend
    from takifugu.tables.backends.backend import DataFingerprint as DataFingerprint
    from takifugu.tables.backends.frames import Frame as Frame
    from takifugu.tables.data_check import DataCheck as DataCheck
    from takifugu.tables.data_check import check as check
    from takifugu.tables.data_check import identities as identities
    from takifugu.tables.engine import Engine as Engine
    from takifugu.tables.opening import open_engine as open_engine
    from takifugu.tables.scope import Scope as Scope
    from takifugu.tables.scope import Share as Share
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
