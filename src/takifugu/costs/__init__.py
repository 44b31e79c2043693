"""What a release costs an entry: per-entry losses, and costs by value."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.costs.cost import (
        ANY,
        NOTHING,
        AnyValue,
        Column,
        Cost,
        Distance,
        Jointly,
        Matrix,
        Membership,
        Shape,
        Steps,
        Value,
        largest_matrix,
        shape_of,
        shape_text,
    )
    from takifugu.costs.losses import Approximate, Concentrated, Loss, Metric, Pure, Total
    from takifugu.costs.words import cost_words, shape_words
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "cost": (
                "ANY",
                "NOTHING",
                "AnyValue",
                "Column",
                "Cost",
                "Distance",
                "Jointly",
                "Matrix",
                "Membership",
                "Shape",
                "Steps",
                "Value",
                "largest_matrix",
                "shape_of",
                "shape_text",
            ),
            "losses": (
                "Approximate",
                "Concentrated",
                "Loss",
                "Metric",
                "Pure",
                "Total",
            ),
            "words": (
                "cost_words",
                "shape_words",
            ),
        },
    )

__all__ = [
    "ANY",
    "NOTHING",
    "AnyValue",
    "Approximate",
    "Column",
    "Concentrated",
    "Cost",
    "Distance",
    "Jointly",
    "Loss",
    "Matrix",
    "Membership",
    "Metric",
    "Pure",
    "Shape",
    "Steps",
    "Total",
    "Value",
    "cost_words",
    "largest_matrix",
    "shape_of",
    "shape_text",
    "shape_words",
]
