"""Declarations drafted from names and types of columns, and the table that a program declares."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.drafting.declared_table import LabelColumn, NumberColumn, Table, table
    from takifugu.drafting.draft import Draft, draft_of
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "declared_table": (
                "LabelColumn",
                "NumberColumn",
                "Table",
                "table",
            ),
            "draft": (
                "Draft",
                "draft_of",
            ),
        },
    )

__all__ = [
    "Draft",
    "LabelColumn",
    "NumberColumn",
    "Table",
    "draft_of",
    "table",
]
