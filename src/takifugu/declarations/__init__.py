"""Declarations: which columns a table has, where its rows are, and which cells are protected."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.declarations.columns import Amount as Amount
    from takifugu.declarations.columns import Category as Category
    from takifugu.declarations.columns import Order as Order
    from takifugu.declarations.columns import Source as Source
    from takifugu.declarations.declaration import Declaration as Declaration
    from takifugu.declarations.declaration_files import parse_declaration as parse_declaration
    from takifugu.declarations.declaration_files import read_declaration as read_declaration
    from takifugu.declarations.table_errors import DatabaseFailed as DatabaseFailed
    from takifugu.declarations.table_errors import DriverMissing as DriverMissing
    from takifugu.declarations.table_errors import InvalidDeclaration as InvalidDeclaration
    from takifugu.declarations.table_errors import InvalidQuery as InvalidQuery
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
