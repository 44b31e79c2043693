"""Plan, charge, release: queries about a declared table, paid from a ledger.

For example::

    with Session(table, prior, ledger="visits.ledger", budget=2) as session:
        plan = session.plan.histogram(by="country", epsilon=0.5)   # nothing is spent
        print(session.release(plan))                                 # charged, then drawn
"""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.binding.entries import Entries
    from takifugu.session.query.linear import WeightedSum
    from takifugu.session.query_options import QueryOptions
    from takifugu.session.release_cost import ReleaseCost
    from takifugu.session.release_errors import (
        BudgetConflict,
        OverBudget,
        ReleaseFailed,
        SessionClosed,
        StalePlan,
    )
    from takifugu.session.release_plan import Plan
    from takifugu.session.release_result import Result
    from takifugu.session.session import Session
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "takifugu.binding.entries": ("Entries",),
            "query.linear": ("WeightedSum",),
            "query_options": ("QueryOptions",),
            "release_cost": ("ReleaseCost",),
            "release_errors": (
                "BudgetConflict",
                "OverBudget",
                "ReleaseFailed",
                "SessionClosed",
                "StalePlan",
            ),
            "release_plan": ("Plan",),
            "release_result": ("Result",),
            "session": ("Session",),
        },
    )

__all__ = [
    "BudgetConflict",
    "Entries",
    "OverBudget",
    "Plan",
    "QueryOptions",
    "ReleaseCost",
    "ReleaseFailed",
    "Result",
    "Session",
    "SessionClosed",
    "StalePlan",
    "WeightedSum",
]
