"""What a release costs an entry: per-entry losses, and costs by value."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.costs.cost import ANY as ANY
    from takifugu.costs.cost import NOTHING as NOTHING
    from takifugu.costs.cost import AnyValue as AnyValue
    from takifugu.costs.cost import Column as Column
    from takifugu.costs.cost import Cost as Cost
    from takifugu.costs.cost import Distance as Distance
    from takifugu.costs.cost import Jointly as Jointly
    from takifugu.costs.cost import Matrix as Matrix
    from takifugu.costs.cost import Membership as Membership
    from takifugu.costs.cost import Shape as Shape
    from takifugu.costs.cost import Steps as Steps
    from takifugu.costs.cost import Value as Value
    from takifugu.costs.cost import cost_words as cost_words
    from takifugu.costs.cost import largest_matrix as largest_matrix
    from takifugu.costs.cost import shape_of as shape_of
    from takifugu.costs.cost import shape_text as shape_text
    from takifugu.costs.cost import shape_words as shape_words
    from takifugu.costs.losses import Approximate as Approximate
    from takifugu.costs.losses import Concentrated as Concentrated
    from takifugu.costs.losses import Loss as Loss
    from takifugu.costs.losses import Metric as Metric
    from takifugu.costs.losses import Pure as Pure
    from takifugu.costs.losses import Total as Total
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
