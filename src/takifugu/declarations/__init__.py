"""Declarations: which columns a table has, where its rows are, and which cells are protected."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.declarations.columns import Amount, Category, Order, Source
    from takifugu.declarations.declaration import Declaration
    from takifugu.declarations.declaration_files import parse_declaration, read_declaration
    from takifugu.declarations.table_errors import (
        DatabaseFailed,
        DriverMissing,
        InvalidDeclaration,
        InvalidQuery,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "columns": (
                "Amount",
                "Category",
                "Order",
                "Source",
            ),
            "declaration": ("Declaration",),
            "declaration_files": (
                "parse_declaration",
                "read_declaration",
            ),
            "table_errors": (
                "DatabaseFailed",
                "DriverMissing",
                "InvalidDeclaration",
                "InvalidQuery",
            ),
        },
    )

__all__ = [
    "Amount",
    "Category",
    "DatabaseFailed",
    "Declaration",
    "DriverMissing",
    "InvalidDeclaration",
    "InvalidQuery",
    "Order",
    "Source",
    "parse_declaration",
    "read_declaration",
]
