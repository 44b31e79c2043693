"""Declared tables, and counts and sums of them made where the rows are."""

from typing import TYPE_CHECKING

from takifugu._lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.engines.aggregates import ColumnSums, Distribution, Histogram, Lengths
    from takifugu.engines.backends.backend import Backend, DataFingerprint
    from takifugu.engines.backends.frames import Frame
    from takifugu.engines.chain_fitting import fit, fit_markov
    from takifugu.engines.data_check import DataCheck, check
    from takifugu.engines.declarations.columns import Amount, Category, Order, Source
    from takifugu.engines.declarations.declaration import Declaration
    from takifugu.engines.declarations.declaration_files import parse_declaration, read_declaration
    from takifugu.engines.declared_table import LabelColumn, NumberColumn, Table, table
    from takifugu.engines.drafting import Draft, draft_of
    from takifugu.engines.engine import Engine
    from takifugu.engines.engine_errors import (
        DatabaseFailed,
        DriverMissing,
        InvalidDeclaration,
        InvalidQuery,
    )
    from takifugu.engines.fit_kinds import Estimate, FitOptions, Fitted, fit_prior
    from takifugu.engines.fitted_part import ByEntity, FirstDays
    from takifugu.engines.moment_fitting import fit_gaussian
    from takifugu.engines.opening import open_engine
    from takifugu.engines.row_identity import identities
    from takifugu.engines.scope import Scope, Share
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "aggregates": ("ColumnSums", "Distribution", "Histogram", "Lengths"),
            "backends.backend": ("Backend", "DataFingerprint"),
            "backends.frames": ("Frame",),
            "chain_fitting": ("fit", "fit_markov"),
            "data_check": ("DataCheck", "check"),
            "declarations.columns": ("Amount", "Category", "Order", "Source"),
            "declarations.declaration": ("Declaration",),
            "declarations.declaration_files": ("parse_declaration", "read_declaration"),
            "declared_table": ("LabelColumn", "NumberColumn", "Table", "table"),
            "drafting": ("Draft", "draft_of"),
            "engine": ("Engine",),
            "engine_errors": (
                "DatabaseFailed",
                "DriverMissing",
                "InvalidDeclaration",
                "InvalidQuery",
            ),
            "fit_kinds": ("Estimate", "FitOptions", "Fitted", "fit_prior"),
            "fitted_part": ("ByEntity", "FirstDays"),
            "moment_fitting": ("fit_gaussian",),
            "opening": ("open_engine",),
            "row_identity": ("identities",),
            "scope": ("Scope", "Share"),
        },
    )

__all__ = [
    "Amount",
    "Backend",
    "ByEntity",
    "Category",
    "ColumnSums",
    "DataCheck",
    "DataFingerprint",
    "DatabaseFailed",
    "Declaration",
    "Distribution",
    "Draft",
    "DriverMissing",
    "Engine",
    "Estimate",
    "FirstDays",
    "FitOptions",
    "Fitted",
    "Frame",
    "Histogram",
    "InvalidDeclaration",
    "InvalidQuery",
    "LabelColumn",
    "Lengths",
    "NumberColumn",
    "Order",
    "Scope",
    "Share",
    "Source",
    "Table",
    "check",
    "draft_of",
    "fit",
    "fit_gaussian",
    "fit_markov",
    "fit_prior",
    "identities",
    "open_engine",
    "parse_declaration",
    "read_declaration",
    "table",
]
