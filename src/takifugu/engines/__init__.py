"""Declared tables, and counts and sums of them made where the rows are."""

from takifugu.engines.answers import Distribution, Histogram, Lengths, Sums
from takifugu.engines.backend import Backend, DataFingerprint
from takifugu.engines.checking import Checked, check
from takifugu.engines.columns import Amount, Category, Order, Source
from takifugu.engines.declaration import Declaration
from takifugu.engines.declaration_files import parse_declaration, read_declaration
from takifugu.engines.declared_table import LabelColumn, NumberColumn, Table, table
from takifugu.engines.engine import Engine
from takifugu.engines.fitting import (
    ByEntity,
    FirstDays,
    FitOptions,
    Fitted,
    fit,
    fit_markov,
    fit_prior,
)
from takifugu.engines.frames import Frame
from takifugu.engines.identity import identities
from takifugu.engines.opening import open_engine
from takifugu.engines.problems import (
    DatabaseFailed,
    DriverMissing,
    InvalidDeclaration,
    InvalidQuery,
)
from takifugu.engines.scope import Scope, Share

__all__ = [
    "Amount",
    "Backend",
    "ByEntity",
    "Category",
    "Checked",
    "DataFingerprint",
    "DatabaseFailed",
    "Declaration",
    "Distribution",
    "DriverMissing",
    "Engine",
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
    "Sums",
    "Table",
    "check",
    "fit",
    "fit_markov",
    "fit_prior",
    "identities",
    "open_engine",
    "parse_declaration",
    "read_declaration",
    "table",
]
