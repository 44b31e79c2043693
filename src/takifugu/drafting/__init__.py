"""Declarations drafted from names and types of columns, and the table that a program declares."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.drafting.declared_table import LabelColumn as LabelColumn
    from takifugu.drafting.declared_table import NumberColumn as NumberColumn
    from takifugu.drafting.declared_table import Table as Table
    from takifugu.drafting.declared_table import table as table
    from takifugu.drafting.draft import Draft as Draft
    from takifugu.drafting.draft import draft_of as draft_of
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
